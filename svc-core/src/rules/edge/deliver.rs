//! Who makes a call to the outside, and what came of it: a job is claimed, tried by the shell, and ended or put off.

use std::sync::Arc;

use super::export;
use super::message::{self, Message, Sent};
use super::tell;
use crate::refusal::Refusal;
use crate::rules::people::by::{By, entitled};
use crate::state::edge::{
    Integration, IntegrationKind, Job, JobState, News, Posted, SealedSecret, Tried, Trouble, Work,
};
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::people::Right;
use crate::turn::{Halt, Scope};
use crate::value::Span;
use crate::value::canonical::Object;
use crate::value::id::{DeliveryId, WorkspaceId};

/// Takes a job to try it.
#[derive(Clone, Copy, Debug)]
pub struct ClaimDelivery {
    /// Which job.
    pub job: DeliveryId,
}

/// A job in the hands of whoever is to try it, until its lease ends.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// The job.
    pub job: Arc<Job>,
    /// The secrets to sign with, sealed, the newest first.
    pub secrets: Vec<SealedSecret>,
    /// What is said, where it is a message.
    pub message: Option<Box<Message>>,
}

/// What came of a claim.
#[derive(Clone, Debug)]
pub enum Claim {
    /// The job is to be tried, by whoever claimed it.
    Taken(Claimed),
    /// The job was given up in this claim's own commit, so that one of any number who claim it hears so, and counts it.
    GivenUp(GivenUp),
    /// There is nothing to do: it is not due, somebody has it, or it has ended.
    Nothing,
}

/// A job that was given up without another try.
#[derive(Clone, Debug)]
pub struct GivenUp {
    /// The job as it ended.
    pub job: Arc<Job>,
    /// Why.
    pub why: Trouble,
}

impl Claim {
    /// The job, where it is to be tried.
    #[must_use]
    pub fn taken(self) -> Option<Claimed> {
        match self {
            Self::Taken(claimed) => Some(claimed),
            Self::GivenUp(_) | Self::Nothing => None,
        }
    }
}

/// Takes a job that is due.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn claim(scope: &mut Scope<'_>, asked: &ClaimDelivery) -> Result<Claim, Halt> {
    let now = scope.now();
    let Some(job) = scope.get::<Job>(asked.job)? else { return Ok(Claim::Nothing) };
    let Some(claimed) = Job::clone(&job).claimed(now) else { return Ok(Claim::Nothing) };
    let integration = over(scope, &claimed)?;
    if export::gives_way(scope, &job, integration.as_deref())? {
        return Ok(Claim::Nothing);
    }
    if let JobState::Failed { .. } = claimed.state {
        scope.put(claimed.clone());
        let why = give_up(scope, &claimed, integration.as_deref());
        return Ok(Claim::GivenUp(GivenUp { job: Arc::new(claimed), why }));
    }
    let secrets = integration.as_ref().map(|it| it.in_force(now)).unwrap_or_default();
    let (claimed, message) = match &claimed.work {
        Work::Decided { .. }
        | Work::Export { .. }
        | Work::Tell { .. }
        | Work::Test { over: IntegrationKind::Callbacks | IntegrationKind::Export, .. } => (claimed, None),
        Work::Test { .. } | Work::Message { .. } => {
            match message::of(scope, claimed.clone(), integration.as_deref())? {
                Sent::Now(sent) => {
                    let (job, message) = *sent;
                    (job, Some(Box::new(message)))
                }
                // Nothing is to be told any more: the message ends without a try.
                Sent::Over => {
                    scope.put(Job::clone(&job).replaced(now));
                    return Ok(Claim::Nothing);
                }
                Sent::Lapsed => {
                    let lapsed = Job::clone(&job).given_up(now);
                    scope.put(lapsed.clone());
                    record_end(scope, &lapsed, Trouble::Lapsed);
                    return Ok(Claim::GivenUp(GivenUp { job: Arc::new(lapsed), why: Trouble::Lapsed }));
                }
            }
        }
    };
    scope.put(claimed.clone());
    Ok(Claim::Taken(Claimed { job: Arc::new(claimed), secrets, message }))
}

/// The integration that a job goes over.
fn over(scope: &mut Scope<'_>, job: &Job) -> Result<Option<Arc<Integration>>, Halt> {
    match job.slot() {
        Some(slot) => scope.get::<Integration>(slot),
        None => Ok(None),
    }
}

/// Has a job that a clock that was ahead has put off tried now.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn bring_forward(scope: &mut Scope<'_>, job: DeliveryId) -> Result<(), Halt> {
    let now = scope.now();
    if let Some(job) = scope.get::<Job>(job)?.and_then(|it| Job::clone(&it).brought_forward(now)) {
        scope.put(job);
    }
    Ok(())
}

/// Tells what came of a try.
#[derive(Clone, Debug)]
pub struct FinishDelivery {
    /// Which job.
    pub job: DeliveryId,
    /// The claim that it was tried under: [`Job::claims`].
    pub claim: u32,
    /// What came of it.
    pub tried: Tried,
    /// How long whoever was called wants to be left alone, in seconds, where it said so; an hour at most is kept to.
    pub wait_s: Option<u32>,
    /// Where the message stands, where whoever took it says so.
    pub posted: Option<Posted>,
}

/// The longest wait that somebody who is called can ask for.
const WAIT_MAX: Span = Span::hours(1);

/// Ends a job, or puts it off to its next try. What comes back after its lease changes nothing; after the address was replaced, it
/// is noted of the try that was made, and the job stays replaced.
///
/// # Errors
/// `not_found` where there is no such job.
pub fn finish(scope: &mut Scope<'_>, asked: &FinishDelivery) -> Result<Arc<Job>, Halt> {
    let now = scope.now();
    let job = scope.get::<Job>(asked.job)?.ok_or_else(Refusal::not_found)?;
    if job.claims == asked.claim && matches!(job.state, JobState::Replaced { .. }) {
        let noted = Job::clone(&job).came_back(asked.tried);
        if noted != *job {
            scope.put(noted.clone());
        }
        return Ok(Arc::new(noted));
    }
    if job.claims != asked.claim || !matches!(job.state, JobState::Sending { .. }) {
        return Ok(job);
    }
    let integration = over(scope, &job)?;
    let [high, low, ..] = scope.draw();
    let wait = asked.wait_s.map(|it| Span::seconds(it.into()).min(WAIT_MAX));
    let tried = Job::clone(&job).tried(asked.tried, u16::from_be_bytes([high, low]), now);
    let tried = wait.into_iter().fold(tried, |tried, wait| tried.not_before(now.plus(wait)));
    let tried = tell::posted(scope, tried, asked.posted.as_ref())?;
    let is_over = matches!(tried.state, JobState::Delivered { .. });
    if !is_over && export::gives_way(scope, &tried, integration.as_deref())? {
        return Ok(scope.get::<Job>(asked.job)?.unwrap_or(job));
    }
    scope.put(tried.clone());
    if let JobState::Delivered { .. } = tried.state {
        export::delivered(scope, &tried)?;
    }
    if let JobState::Failed { .. } = tried.state {
        give_up(scope, &tried, integration.as_deref());
    } else if let Some(integration) = integration.filter(|_| shows(&tried)) {
        let error = asked.tried.error;
        scope.put(Integration {
            last_event_at: Some(now),
            last_error: error.map(|it| it.as_str().into()),
            failing: integration.failing && (error.is_some() || is_test_of_export(&tried)),
            ..Integration::clone(&integration)
        });
    }
    Ok(Arc::new(tried))
}

/// A call as it stands.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn find(scope: &mut Scope<'_>, id: DeliveryId) -> Result<Option<Arc<Job>>, Halt> {
    scope.get::<Job>(id)
}

/// Has a call tried again.
#[derive(Clone, Debug)]
pub struct RetryDelivery {
    /// Who asks.
    pub by: By,
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Which call.
    pub id: DeliveryId,
}

/// Has a call that waits or was given up tried at once, and then on the whole schedule. One that is being tried stays so.
///
/// # Errors
/// Those of [`entitled`]; `not_found`, and `not_allowed` where it was delivered or another address took its place.
pub fn retry(scope: &mut Scope<'_>, asked: &RetryDelivery) -> Result<Arc<Job>, Halt> {
    let job = owned(scope, &asked.by, asked.workspace, asked.id)?;
    match job.state {
        JobState::Delivered { .. } => return Err(Refusal::not_allowed("it was delivered").into()),
        JobState::Replaced { .. } => {
            return Err(Refusal::not_allowed("another took its place, or nobody is to be told any more").into());
        }
        JobState::Sending { .. } => return Ok(job),
        JobState::Waiting { .. } | JobState::Failed { .. } => {}
    }
    if matches!(&job.work, Work::Message { news, .. } if news.is_spent()) {
        return Err(Refusal::not_allowed("its link was let go of: invite them again").into());
    }
    let again = Job::clone(&job).again(scope.now());
    let data = Object::new().text("host", &again.host()).finish();
    let (kind, subject) = ("integration.retried", Subject::Delivery(job.id));
    scope.append(asked.workspace, Fact { kind, actor: asked.by.actor(), subject, data });
    scope.put(again.clone());
    Ok(Arc::new(again))
}

/// One of a workspace's calls.
///
/// # Errors
/// Those of [`entitled`], and `not_found`.
pub fn owned(scope: &mut Scope<'_>, by: &By, workspace: WorkspaceId, id: DeliveryId) -> Result<Arc<Job>, Halt> {
    entitled(scope, by, workspace, Right::ManageIntegrations)?;
    let found = scope.get::<Job>(id)?.filter(|it| it.workspace == workspace && !it.is_to_spread());
    found.ok_or_else(|| Refusal::not_found().into())
}

/// A member of a record and the id in it.
type Named = Option<(&'static str, String)>;

/// What a job is about, as a record names it. A test has somebody who waits for its outcome.
fn about(job: &Job) -> (Named, Named) {
    match &job.work {
        Work::Decided { callback, action, .. } => {
            (Some(("actionId", action.to_string())), Some(("callbackId", callback.to_string())))
        }
        Work::Message { news, to, .. } => {
            let to = to.map(|it| ("principalId", it.to_string()));
            match news {
                News::Asked { approval } | News::Ended { approval, .. } => {
                    (Some(("approvalId", approval.to_string())), to)
                }
                News::Conflict { action, .. } | News::Ran { action } => (Some(("actionId", action.to_string())), to),
                News::Loosened { record, .. } => (Some(("evidenceId", record.to_string())), to),
                News::Invited { .. } => (None, to),
            }
        }
        Work::Export { integration, .. } => (Some(("integrationId", integration.to_string())), None),
        Work::Test { .. } | Work::Tell { .. } => (None, None),
    }
}

/// Whether what comes of a job shows on the integration of its kind: one that is sent without any tells nothing of it.
const fn shows(job: &Job) -> bool {
    match &job.work {
        Work::Message { news, .. } => message::needs_one(news),
        Work::Decided { .. } | Work::Export { .. } | Work::Test { .. } | Work::Tell { .. } => true,
    }
}

/// Whether a job tries an export out: the export stands where its records are not taken, whatever becomes of a test, which may go
/// elsewhere.
const fn is_test_of_export(job: &Job) -> bool {
    matches!(job.work, Work::Test { over: IntegrationKind::Export, .. })
}

/// Records that a job was given up, in the ledger and on the integration that it went over, and says why.
fn give_up(scope: &mut Scope<'_>, job: &Job, integration: Option<&Integration>) -> Trouble {
    let last = job.last().and_then(|it| it.tried.error).unwrap_or(Trouble::Interrupted);
    record_end(scope, job, last);
    if let Some(integration) = integration.filter(|_| shows(job)) {
        scope.put(Integration {
            last_event_at: Some(scope.now()),
            last_error: Some(last.as_str().into()),
            failing: integration.failing || !is_test_of_export(job),
            ..Integration::clone(integration)
        });
    }
    last
}

/// Records that a job was given up.
fn record_end(scope: &mut Scope<'_>, job: &Job, why: Trouble) {
    let (host, kind) = (job.host(), job.over().map(IntegrationKind::as_str).unwrap_or_default());
    let mut data = Object::new();
    // Where mail goes, whoever serves has set.
    if !host.is_empty() {
        data = data.text("host", &host);
    }
    data = data.text("error", why.as_str()).int("tries", job.tries.into()).text("kind", kind);
    let (one, other) = about(job);
    for (name, id) in [&one, &other].into_iter().flatten() {
        data = data.text(name, id);
    }
    if let Work::Export { from, to, .. } = &job.work {
        data = data.raw("fromSeq", &from.to_string()).raw("toSeq", &to.to_string());
    }
    let subject = Subject::Delivery(job.id);
    let fact = Fact { kind: "delivery.failed", actor: Actor::Timer, subject, data: data.finish() };
    scope.append(job.workspace, fact);
}
