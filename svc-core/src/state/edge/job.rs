//! The outbox: calls to the outside that a decision has brought about. Each is a row, written in the deciding commit and
//! tried afterwards; what came of a try returns as a command.
//!
//! **Invariant:** a job that is neither delivered, given up nor replaced is listed in the outbox at the instant from which
//! somebody may try it. One that is being tried is listed at the end of its lease, so that no crash loses it.

use serde::{Deserialize, Serialize};

use super::export::EventClass;
use super::integration::{IntegrationKind, IntegrationSlot};
use super::news::News;
use crate::state::gate::{Status, Verb};
use crate::value::id::{ActionId, AgentId, CallbackId, DeliveryId, IntegrationId, PrincipalId, WorkspaceId};
use crate::value::link::{Index, Link, Linked, Order, instant_order, shard};
use crate::value::text::UrlText;
use crate::value::words::words;
use crate::value::{Id, Span, Timestamp};

/// How long after the try before it each try comes, give or take a fifth (CONTRACT part 2): eight of them.
pub const RETRY_AFTER: [Span; 8] = [
    Span::seconds(0),
    Span::seconds(5),
    Span::seconds(30),
    Span::minutes(5),
    Span::minutes(30),
    Span::hours(2),
    Span::hours(6),
    Span::hours(12),
];
/// How long whoever tries a job has it to itself: longer than a try can last, which is 13 s, by clocks that are 5 s apart, so
/// that no other server takes it for lost meanwhile.
pub const LEASE: Span = Span::seconds(30);
/// Tries that are remembered of one job; older ones are forgotten.
const ATTEMPTS_KEPT: usize = 24;

/// One call to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Its id; that of a callback's job has the callback's bits.
    pub id: DeliveryId,
    /// Whose call it is.
    pub workspace: WorkspaceId,
    /// What is told.
    pub work: Work,
    /// Who is called; absent of what no URL is called for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<UrlText>,
    /// When it was written.
    pub created_at: Timestamp,
    /// Where it stands.
    pub state: JobState,
    /// Tries of the present round, the running one included.
    #[serde(default)]
    pub tries: u8,
    /// Tries ever begun: tells one claim from the next.
    #[serde(default)]
    pub claims: u32,
    /// The tries that came to an end, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
    /// Where its message stands, where another system that took it says so and it may have to be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posted: Option<Posted>,
}

/// Where a message stands in the system that took it: what it is changed by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Posted {
    /// The conversation.
    pub channel: Box<str>,
    /// The message in it.
    pub ts: Box<str>,
}

/// What a call tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// An action was decided.
    Decided {
        /// Who asked to be called.
        callback: CallbackId,
        /// The action.
        action: ActionId,
        /// What the agent is to do.
        verb: Verb,
        /// How the action read.
        status: Status,
        /// When it was decided.
        at: Timestamp,
        /// Whose action it is; absent of what was written before it was kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentId>,
    },
    /// Records of the ledger are exported.
    Export {
        /// By which integration.
        integration: IntegrationId,
        /// The place of the first of them.
        from: u64,
        /// The place behind the last of them.
        to: u64,
        /// The classes of events that they are sent as; all where none is named. Those in force when it was made: every try sends
        /// the same.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        classes: Vec<EventClass>,
    },
    /// Somebody tries an integration out.
    Test {
        /// Which one.
        integration: IntegrationId,
        /// Of which kind it is.
        #[serde(default = "callbacks", skip_serializing_if = "is_callbacks")]
        over: IntegrationKind,
        /// Who tries it, where it is a person who is to get the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<PrincipalId>,
    },
    /// People are to be told. Who they are is found out page by page; each page writes its messages and how far it came in one
    /// commit.
    Tell {
        /// What of.
        news: News,
        /// The last principal that was looked at.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reached: Option<PrincipalId>,
    },
    /// One message. What it says is what stands when it is sent.
    Message {
        /// What it tells.
        news: News,
        /// Over which kind of integration.
        over: IntegrationKind,
        /// To whom; absent where it goes to a room.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<PrincipalId>,
    },
}

const fn callbacks() -> IntegrationKind {
    IntegrationKind::Callbacks
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's shape")]
const fn is_callbacks(kind: &IntegrationKind) -> bool {
    matches!(kind, IntegrationKind::Callbacks)
}

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// It is to be tried.
    Waiting {
        /// Not before.
        due: Timestamp,
    },
    /// Somebody tries it.
    Sending {
        /// Since when.
        since: Timestamp,
        /// Until when nobody else does.
        until: Timestamp,
    },
    /// It was taken.
    Delivered {
        /// When.
        at: Timestamp,
    },
    /// It was given up.
    Failed {
        /// When.
        at: Timestamp,
    },
    /// Another address took the place of this one.
    Replaced {
        /// When.
        at: Timestamp,
    },
}

words! {
    /// The word on the wire.
    JobState::as_str;
    Waiting "waiting";
    Sending "sending";
    Delivered "delivered";
    Failed "failed";
    Replaced "replaced";
}

/// A try that came to an end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// When it began.
    pub at: Timestamp,
    /// What came of it.
    #[serde(flatten)]
    pub tried: Tried,
}

/// What came of a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    /// The status of the answer, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// What was wrong, where something was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Trouble>,
    /// How long it took, in milliseconds.
    pub ms: u32,
}

/// What can be wrong with a try. What the other side wrote is never repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// An address of the host may not be called.
    Address,
    /// The answer is not 2xx.
    Answer,
    /// No connection.
    Connect,
    /// The mail server has not answered for the message within thirteen seconds.
    Handover,
    /// The service answered that it did not do what it was asked.
    Declined,
    /// This server was stopped meanwhile.
    Interrupted,
    /// This server sends no mail.
    NoMail,
    /// What answered does not speak what was spoken to it.
    Protocol,
    /// What was to be sent could not be read.
    Records,
    /// The mail server takes no address of the recipient's form, and was told nothing.
    Recipient,
    /// The answer leads elsewhere.
    Redirect,
    /// The mail server takes the message never.
    Refused,
    /// What it was to tell has lapsed: the link in it signs nobody in any more.
    Lapsed,
    /// The host has no address.
    Resolve,
    /// There is no secret to sign with.
    Secret,
    /// The mail server takes no address of the sender's form, and was told nothing: `mail.from` can be mended.
    Sender,
    /// Ten seconds were over.
    Timeout,
    /// The certificate is not trusted, or not of that host.
    Tls,
    /// The mail server offers no encryption.
    Unsecured,
}

impl Trouble {
    /// A clause for people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Address => "the host has an address that may not be called",
            Self::Answer => "the answer is not 2xx",
            Self::Connect => "no connection could be made",
            Self::Handover => "the mail server did not answer for the message within 13 seconds",
            Self::Declined => "the service answered that it did not take the message",
            Self::Interrupted => "the server was stopped during this try",
            Self::Lapsed => "the link in it has expired",
            Self::NoMail => "this server has no `mail.url`",
            Self::Protocol => "the answer is of no such protocol",
            Self::Records => "what is to be sent could not be read",
            Self::Recipient => "the mail server takes no address of the recipient's form",
            Self::Redirect => "the answer is a redirect, which is not followed",
            Self::Refused => "the mail server refuses the message for good",
            Self::Resolve => "the host has no address",
            Self::Secret => "there is no secret in force to sign with",
            Self::Sender => "the mail server takes no address of the form of `mail.from`",
            Self::Timeout => "there was no answer within 10 seconds",
            Self::Tls => "the certificate is not trusted or names another host",
            Self::Unsecured => "the mail server offers no encryption",
        }
    }
}

impl Linked for Job {
    fn links(&self) -> Vec<Link> {
        let of = (!self.is_to_spread()).then(|| Link {
            index: Index::DeliveriesOf,
            prefix: self.workspace.bits(),
            order: Order::At(instant_order(self.created_at)),
        });
        let outbox = self.due().map(|at| Link {
            index: Index::Outbox,
            prefix: shard(self.workspace),
            order: Order::At(instant_order(at)),
        });
        [of, outbox].into_iter().flatten().collect()
    }
}

impl Job {
    /// A job that is due at once.
    #[must_use]
    pub fn new(id: DeliveryId, workspace: WorkspaceId, work: Work, url: UrlText, now: Timestamp) -> Self {
        Self { url: Some(url), ..Self::without_url(id, workspace, work, now) }
    }

    /// A job that is due at once and for which no URL is called.
    #[must_use]
    pub const fn without_url(id: DeliveryId, workspace: WorkspaceId, work: Work, now: Timestamp) -> Self {
        let state = JobState::Waiting { due: now };
        Self {
            id,
            workspace,
            work,
            url: None,
            created_at: now,
            state,
            tries: 0,
            claims: 0,
            attempts: Vec::new(),
            posted: None,
        }
    }

    /// The same, due at `due` and not before.
    #[must_use]
    pub fn later(mut self, due: Timestamp) -> Self {
        self.state = JobState::Waiting { due };
        self
    }

    /// Whether it becomes messages and is itself nothing that is sent: nobody sees it in a list.
    #[must_use]
    pub const fn is_to_spread(&self) -> bool {
        matches!(self.work, Work::Tell { .. })
    }

    /// From when on somebody may try it; `None` once it has come to its end.
    #[must_use]
    pub const fn due(&self) -> Option<Timestamp> {
        match self.state {
            JobState::Waiting { due } => Some(due),
            JobState::Sending { until, .. } => Some(until),
            JobState::Delivered { .. } | JobState::Failed { .. } | JobState::Replaced { .. } => None,
        }
    }

    /// The job in the hands of whoever tries it now, or given up where its last try never came back; `None` where it is not
    /// to be tried now.
    #[must_use]
    pub fn claimed(mut self, now: Timestamp) -> Option<Self> {
        self.due().filter(|due| now >= *due)?;
        if let JobState::Sending { since, until } = self.state {
            let ms = u32::try_from(until.since(since).as_millis()).unwrap_or(u32::MAX);
            self.remember(since, Tried { status: None, error: Some(Trouble::Interrupted), ms });
            if self.is_used_up() {
                return Some(self.ended(JobState::Failed { at: now }));
            }
        }
        self.tries = self.tries.saturating_add(1);
        self.claims = self.claims.saturating_add(1);
        self.state = JobState::Sending { since: now, until: now.plus(LEASE) };
        Some(self)
    }

    /// The job after its running try: delivered, to be tried again, or given up. `jitter` of 0 to 65,535 spreads the next try
    /// over a fifth on both sides.
    #[must_use]
    pub fn tried(mut self, tried: Tried, jitter: u16, now: Timestamp) -> Self {
        let JobState::Sending { since, .. } = self.state else { return self };
        self.remember(since, tried);
        match (tried.error, self.next_after()) {
            (None, _) => self.ended(JobState::Delivered { at: now }),
            (Some(Trouble::Refused | Trouble::Recipient), _) | (Some(_), None) => {
                self.ended(JobState::Failed { at: now })
            }
            (Some(_), Some(after)) => {
                self.state = JobState::Waiting { due: now.plus(spread(after, jitter)) };
                self
            }
        }
    }

    /// The job given up before its tries are.
    #[must_use]
    pub fn given_up(self, now: Timestamp) -> Self {
        self.ended(JobState::Failed { at: now })
    }

    /// The job at its end, which holds no secret any more.
    pub(super) fn ended(mut self, state: JobState) -> Self {
        if let Work::Message { news, .. } = &mut self.work {
            news.let_go();
        }
        self.state = state;
        self
    }

    /// The job with its next try, where there is one, not before `due`.
    #[must_use]
    pub fn not_before(mut self, at: Timestamp) -> Self {
        if let JobState::Waiting { due } = &mut self.state {
            *due = at.max(*due);
        }
        self
    }

    /// The job with a new round of tries, the first of them at once. What is being tried stays so.
    #[must_use]
    pub fn again(mut self, now: Timestamp) -> Self {
        match self.state {
            JobState::Waiting { .. } | JobState::Failed { .. } => {
                self.tries = 0;
                self.state = JobState::Waiting { due: now };
            }
            JobState::Sending { .. } | JobState::Delivered { .. } | JobState::Replaced { .. } => {}
        }
        self
    }

    /// What the last try came to.
    #[must_use]
    pub fn last(&self) -> Option<&Attempt> {
        self.attempts.last()
    }

    /// The kind of integration that it goes over; `None` of what becomes messages.
    #[must_use]
    pub const fn over(&self) -> Option<IntegrationKind> {
        match self.work {
            Work::Decided { .. } => Some(IntegrationKind::Callbacks),
            Work::Export { .. } => Some(IntegrationKind::Export),
            Work::Test { over, .. } | Work::Message { over, .. } => Some(over),
            Work::Tell { .. } => None,
        }
    }

    /// The integration that it goes over, where it goes over one.
    #[must_use]
    pub fn slot(&self) -> Option<IntegrationSlot> {
        self.over().map(|kind| IntegrationSlot { workspace: self.workspace, kind })
    }

    /// The host that is called, without what else the URL holds; empty where no URL is called.
    #[must_use]
    pub fn host(&self) -> String {
        let url = self.url.as_ref().and_then(|it| url::Url::parse(it.as_str()).ok());
        url.and_then(|it| it.host_str().map(str::to_owned)).unwrap_or_default()
    }

    /// What it waits in line with: what goes to one host, or over one kind, hinders nothing else.
    #[must_use]
    pub fn line(&self) -> String {
        match (&self.url, self.over()) {
            (Some(_), _) => self.host(),
            (None, Some(over)) => over.as_str().to_owned(),
            (None, None) => String::new(),
        }
    }

    pub(super) fn remember(&mut self, at: Timestamp, tried: Tried) {
        if self.attempts.len() >= ATTEMPTS_KEPT {
            self.attempts.remove(0);
        }
        self.attempts.push(Attempt { at, tried });
    }

    /// How long after this try the next one comes, if there is one.
    fn next_after(&self) -> Option<Span> {
        let schedule: &[Span] = match self.work {
            Work::Decided { .. } | Work::Export { .. } | Work::Message { .. } => &RETRY_AFTER,
            // Whoever tries something out tries again themselves.
            Work::Test { .. } => &[],
            // Nobody outside is waited for: it goes on until it is done, or what it tells of has come to its end.
            Work::Tell { .. } => return Some(Span::seconds(5)),
        };
        schedule.get(usize::from(self.tries)).copied()
    }

    fn is_used_up(&self) -> bool {
        self.next_after().is_none()
    }
}

/// A span, give or take a fifth of it.
fn spread(span: Span, jitter: u16) -> Span {
    let ms = span.as_millis();
    let offset = ms.saturating_mul(2).saturating_mul(jitter.into()).div_euclid(5 * i64::from(u16::MAX));
    Span::millis(ms.saturating_sub(ms.div_euclid(5)).saturating_add(offset))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    const NO: Tried = Tried { status: Some(503), error: Some(Trouble::Answer), ms: 7 };
    const YES: Tried = Tried { status: Some(204), error: None, ms: 7 };

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn job() -> Job {
        let work = Work::Decided {
            callback: CallbackId::from_bits(1),
            action: ActionId::from_bits(2),
            verb: Verb::Allow,
            status: Status::Allowed,
            at: at(0),
            agent: None,
        };
        let url = UrlText::parse("https://agent.example.com:8443/hook?secret=1").unwrap();
        Job::new(DeliveryId::from_bits(1), WorkspaceId::from_bits(3), work, url, at(0))
    }

    /// Eight tries, each as long after the one before as the schedule says, in the middle of its jitter; then no more.
    #[test]
    fn a_job_is_tried_eight_times_on_its_schedule() {
        let (mut job, mut now, mut waits) = (job(), at(0), Vec::new());
        while let Some(due) = job.due() {
            waits.push(due.since(now).as_millis() / 1_000);
            now = due;
            assert!(job.clone().claimed(at(now.as_millis() - 1)).is_none(), "it is not tried early");
            job = job.claimed(now).unwrap().tried(NO, 32_768, now);
        }
        assert_eq!(waits, [0, 5, 30, 300, 1_800, 7_200, 21_600, 43_200]);
        assert_eq!((job.state, job.attempts.len()), (JobState::Failed { at: now }, 8));
        assert!(job.links().iter().all(|it| it.index != Index::Outbox), "what is given up is not looked at again");
    }

    /// The jitter spreads a wait over a fifth on both sides and no further.
    #[test]
    fn the_jitter_is_a_fifth_on_both_sides() {
        for (span, low, high) in [(5_000, 4_000, 6_000), (43_200_000, 34_560_000, 51_840_000), (0, 0, 0)] {
            assert_eq!(spread(Span::millis(span), 0).as_millis(), low);
            assert_eq!(spread(Span::millis(span), u16::MAX).as_millis(), high);
        }
    }

    /// While somebody tries it nobody else does; when that one never came back, the next may, and what was lost is remembered
    /// as a try. After eight lost ones it is given up.
    #[test]
    fn a_try_that_never_came_back_counts() {
        let mut now = at(0);
        let mut job = job().claimed(now).unwrap();
        assert!(job.clone().claimed(at(14_999)).is_none());
        for lost in 1..8 {
            now = job.due().unwrap();
            job = job.claimed(now).unwrap();
            assert_eq!((job.tries, job.claims, job.attempts.len()), (lost + 1, u32::from(lost) + 1, usize::from(lost)));
        }
        let given_up = job.claimed(now.plus(LEASE)).unwrap();
        assert!(matches!(given_up.state, JobState::Failed { .. }));
        assert!(given_up.attempts.iter().all(|it| it.tried.error == Some(Trouble::Interrupted)));
    }

    /// What is delivered or replaced stays so, whatever comes back late; what was given up may be tried again from the first.
    #[test]
    fn an_end_is_an_end_unless_somebody_asks_again() {
        let sent = job().claimed(at(0)).unwrap();
        let delivered = sent.clone().tried(YES, 0, at(9));
        assert_eq!(delivered.state, JobState::Delivered { at: at(9) });
        assert_eq!(delivered.clone().replaced(at(10)).again(at(11)).tried(NO, 0, at(12)), delivered);
        let replaced = sent.clone().replaced(at(5));
        assert_eq!((replaced.state, replaced.due()), (JobState::Replaced { at: at(5) }, None));
        assert_eq!(replaced.clone().tried(YES, 0, at(9)).again(at(10)), replaced);
        assert_eq!(sent.clone().again(at(5)), sent, "what is being tried is left alone");
        let failed = Job { tries: 8, state: JobState::Failed { at: at(5) }, ..sent };
        let again = failed.again(at(6));
        assert_eq!((again.tries, again.due()), (0, Some(at(6))));
    }

    /// Of a URL only the host is shown, and no more tries are kept than so many.
    #[test]
    fn little_is_shown_and_little_is_kept() {
        assert_eq!(job().host(), "agent.example.com");
        let mut job = job();
        for round in 0..30 {
            job = job.again(at(round)).claimed(at(round)).unwrap().tried(NO, 0, at(round));
        }
        assert_eq!((job.attempts.len(), job.claims, job.last().map(|it| it.at)), (ATTEMPTS_KEPT, 30, Some(at(29))));
    }
}
