//! A button of another system is pressed: somebody's word on an approval, decided by the very rule that decides what they say in
//! the console.
//!
//! **Invariant:** whoever presses it is the member that the integration links, with the role that they have now; where there is no
//! such member, nothing tells whether there is such an approval.
//!
//! **Invariant:** a word that is not taken leaves nothing but the record of it.

use super::receive::Done;
use crate::refusal::{Kind, Refusal};
use crate::rules::gate::asked::{Question, Stands, get_approval};
use crate::rules::gate::decide::{Choice, DecideApproval, decide_approval};
use crate::rules::people::by::{By, Person, Seat};
use crate::state::edge::{Heard, Integration, IntegrationKind, Received};
use crate::state::gate::{ApprovalSubject, Via};
use crate::state::people::Principal;
use crate::turn::{Halt, Scope};
use crate::value::Timestamp;
use crate::value::digest::{Digest, ReceivedId};
use crate::value::id::ApprovalId;

/// A button that was pressed.
#[derive(Clone, Debug)]
pub struct Press {
    /// What the other system calls whoever pressed it.
    pub name: Box<str>,
    /// What it decides.
    pub approval: ApprovalId,
    /// How.
    pub choice: Choice,
    /// The digest of what it was shown beside, where that has one.
    pub digest: Option<Digest>,
    /// That it is pressed once, where its text alone says so.
    pub once: Option<Once>,
}

/// A button that is pressed once.
#[derive(Clone, Copy, Debug)]
pub struct Once {
    /// The row that says that it was.
    pub row: ReceivedId,
    /// Until when it is good.
    pub until: Timestamp,
}

/// The other system's name is linked to nobody who may come in.
pub const NOT_LINKED: &str = "not_linked";
/// There is no such approval for them.
pub const NOT_FOUND: &str = "not_found";
/// Their role, or how the workspace has its members sign in, lets them decide none like it.
pub const FORBIDDEN: &str = "forbidden";
/// It has been pressed.
pub const USED: &str = "used";
/// Its time is up, or the approval's.
pub const EXPIRED: &str = "expired";
/// It is decided.
pub const DECIDED: &str = "decided";
/// What waits is not what the button was shown beside.
pub const CHANGED: &str = "changed";
/// It is another person's to decide.
pub const SECOND_PERSON: &str = "second_person";
/// It takes the second factor, which no button shows.
pub const SECOND_FACTOR: &str = "second_factor";
/// A yes to it is said on its page.
pub const ON_PAGE: &str = "on_page";
/// What it asks for can no longer be done.
pub const NOT_POSSIBLE: &str = "not_possible";

/// Takes the word of whoever pressed a button.
///
/// # Errors
/// `not_ready` and `internal` alone: what is refused is an answer.
pub(super) fn press(scope: &mut Scope<'_>, integration: &Integration, press: &Press) -> Result<Done, Halt> {
    let Some(person) = whose(scope, integration, &press.name)? else {
        return Ok(Done { name: Some(press.name.clone()), ..Done::of(NOT_LINKED, None) });
    };
    let unseen = |outcome: &str| Done { principal: Some(person.principal), ..Done::of(outcome, None) };
    if let Some(once) = press.once {
        if once.until <= scope.now() {
            return Ok(unseen(EXPIRED));
        }
        if scope.get::<Received>(once.row)?.is_some() {
            return Ok(unseen(USED));
        }
    }
    let by = By::Person(person);
    let seen = scope.attempt(|scope| get_approval(scope, &by, person.workspace, press.approval))?;
    let seen = match seen {
        Ok(question) => question,
        Err(refusal) => return Ok(unseen(word(refusal)?)),
    };
    let done = |outcome: &str, stands: &str, approved: Option<bool>| Done {
        heard: Heard { approved, outcome: outcome.into(), stands: Some(stands.into()) },
        approval: Some(press.approval),
        ..Done { principal: Some(person.principal), ..Done::of("", action_of(&seen)) }
    };
    // What it stood beside is nobody's to leave out: whoever signs for it could have their word on what has changed since.
    if press.digest.is_none() && seen.approval.asked_action().is_some() {
        return Ok(done(CHANGED, seen.stands.as_str(), None));
    }
    if press.choice == Choice::Approve && seen.stands == Stands::Waiting && is_said_on_page(&seen) {
        return Ok(done(ON_PAGE, seen.stands.as_str(), None));
    }
    let said = said(press, person, via(integration)?);
    match scope.attempt(|scope| decide_approval(scope, &said))? {
        Ok(decided) => {
            // A yes that came to a no, as what forbids it has changed since it was asked, is not what was said.
            let outcome = match (press.choice, taken(decided.stands)?) {
                (Choice::Approve, "denied") => NOT_POSSIBLE,
                (_, outcome) => outcome,
            };
            if let Some(once) = press.once {
                let (id, workspace) = (once.row, person.workspace);
                scope.put(Received { id, workspace, until: once.until, answer: None });
            }
            let is_approved = decided.stands == Stands::Approved;
            Ok(done(outcome, decided.stands.as_str(), is_approved.then_some(true)))
        }
        Err(refusal) => {
            let stands = refusal.reason().and_then(ended).unwrap_or(seen.stands);
            Ok(done(word(refusal)?, stands.as_str(), None))
        }
    }
}

/// The member that a name is linked to; `None` where it is to nobody, or to one whose link does not hold.
fn whose(scope: &mut Scope<'_>, integration: &Integration, name: &str) -> Result<Option<Person>, Halt> {
    let Some(link) = integration.config.members().iter().find(|it| &*it.name == name) else { return Ok(None) };
    let workspace = integration.slot.workspace;
    let principal = scope.get::<Principal>(link.principal)?.filter(|it| it.workspace == workspace && link.holds(it));
    let account = principal.as_ref().and_then(|it| it.membership()).map(|it| it.account);
    let seat = Seat::Link(integration.slot);
    Ok(account.map(|account| Person { workspace, principal: link.principal, account, seat }))
}

fn said(press: &Press, by: Person, via: Via) -> DecideApproval {
    DecideApproval { digest: press.digest, via, ..DecideApproval::new(by, press.approval, press.choice) }
}

fn via(integration: &Integration) -> Result<Via, Refusal> {
    match integration.slot.kind {
        IntegrationKind::Slack => Ok(Via::Slack),
        IntegrationKind::Relay => Ok(Via::Relay),
        IntegrationKind::Callbacks
        | IntegrationKind::Chat
        | IntegrationKind::Export
        | IntegrationKind::Github
        | IntegrationKind::Issuer
        | IntegrationKind::Mail
        | IntegrationKind::Oidc
        | IntegrationKind::Ssf
        | IntegrationKind::Stripe => Err(Refusal::internal()),
    }
}

/// Whether a yes is said in a session alone. Who owns a workspace, and what starts every agent again, is worth more than one
/// account of another system; and a freeze of all of them looks through all of them first. Where two persons have to agree, neither
/// says so over a link: whoever knows an integration's secret speaks for all whom it links, and would be both.
fn is_said_on_page(question: &Question) -> bool {
    let is_owners = match &question.approval.subject {
        ApprovalSubject::HoldLift(_) | ApprovalSubject::Owner(_) => true,
        ApprovalSubject::Freeze(of) => of.all,
        ApprovalSubject::Action(_) | ApprovalSubject::Budget(_) => false,
    };
    is_owners || question.needed > 1
}

/// Whether no button says yes: as one that is said on its page alone, and where who says so shows their second factor, which a button cannot.
#[must_use]
pub fn has_no_yes(question: &Question) -> bool {
    is_said_on_page(question) || question.second_factor
}

fn action_of(question: &Question) -> Option<crate::value::id::ActionId> {
    question.approval.asked_action().map(|it| it.action)
}

/// The word for a word that was taken. It ends what waits: a yes that is one of two is said on the page, so that where one were
/// left waiting here, nothing is kept of it.
fn taken(stands: Stands) -> Result<&'static str, Refusal> {
    match stands {
        Stands::Waiting => Err(Refusal::internal()),
        Stands::Approved | Stands::Denied | Stands::Expired => Ok(stands.as_str()),
    }
}

/// How an approval had ended, where a refusal says that it had.
fn ended(reason: &str) -> Option<Stands> {
    let over = [Stands::Approved, Stands::Denied, Stands::Expired];
    over.into_iter().find(|it| it.as_str() == reason)
}

/// The word for a refusal. What is nobody's fault outside stops the command. Whoever has to set up a second factor is told that it
/// takes one: that is so of whatever they press, and tells of no approval.
fn word(refusal: Refusal) -> Result<&'static str, Halt> {
    if refusal.message() == Refusal::must_enroll().message() {
        return Ok(SECOND_FACTOR);
    }
    let reason = refusal.reason().and_then(ended);
    WORDS.iter().find(|(kind, _)| *kind == refusal.kind()).map_or_else(
        || Err(Halt::from(refusal)),
        |(kind, word)| match reason {
            Some(Stands::Expired) if *kind == Kind::NotAllowed => Ok(EXPIRED),
            Some(_) if *kind == Kind::NotAllowed => Ok(DECIDED),
            _ => Ok(*word),
        },
    )
}

/// What is told of each refusal.
const WORDS: [(Kind, &str); 8] = [
    (Kind::Forbidden, FORBIDDEN),
    (Kind::NotAllowed, NOT_POSSIBLE),
    (Kind::NotFound, NOT_FOUND),
    (Kind::SecondFactorAsked, SECOND_FACTOR),
    (Kind::SecondOwnerRequired, SECOND_PERSON),
    (Kind::SecondPersonRequired, SECOND_PERSON),
    (Kind::DigestChanged, CHANGED),
    (Kind::Unauthenticated, NOT_LINKED),
];
