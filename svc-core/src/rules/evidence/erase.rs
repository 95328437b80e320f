//! Erases what is personal: the texts behind commitments, and the salts they rest on. Records stay as they are, so the tree
//! and every proof stay whole; what was erased can be shown by nobody.

use crate::refusal::Refusal;
use crate::rules::edge::integrations::unlink;
use crate::rules::people::by::{self, By};
use crate::rules::people::owners;
use crate::state::edge::Job;
use crate::state::evidence::{Disclosure, Fact, Subject};
use crate::state::gate::{Action, Agent, Approval, Payload, Replay, State};
use crate::state::people::{Account, Application, EmailUse, Hold, Principal, Right, SsoLink};
use crate::store::{Key, Row as _};
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
use crate::value::id::{ActionId, AgentId, ApplicationId, ApprovalId, EvidenceId, HoldId, PrincipalId, WorkspaceId};
use crate::value::text::Email;

/// Whose or what personal texts are erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Of one action: its words, whom data went to, the payee's name.
    Action(ActionId),
    /// Of one person: texts about them, and those that they wrote.
    Principal(PrincipalId),
}

/// Erases.
#[derive(Clone, Debug)]
pub struct Erase {
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Who asks.
    pub by: By,
    /// What.
    pub target: Target,
    /// The disclosures that a scan found of the target; each is looked at again.
    pub disclosures: Vec<EvidenceId>,
    /// The approvals that a scan found of the target; each is looked at again.
    pub approvals: Vec<ApprovalId>,
    /// The applications that a scan found of the target; each is looked at again.
    pub applications: Vec<ApplicationId>,
    /// The agents whose freeze a scan found to have a reason of the target's; each is looked at again.
    pub agents: Vec<AgentId>,
    /// The holds of the same kind.
    pub holds: Vec<HoldId>,
    /// Whether a person's own row is erased, too: with the last command of several, since their address is looked for by it.
    pub last: bool,
}

impl Erase {
    /// All of what scans have found nothing beside.
    #[must_use]
    pub const fn new(workspace: WorkspaceId, by: By, target: Target) -> Self {
        Self {
            workspace,
            by,
            target,
            disclosures: Vec::new(),
            approvals: Vec::new(),
            applications: Vec::new(),
            agents: Vec::new(),
            holds: Vec::new(),
            last: true,
        }
    }
}

/// Erases, records that it was done, and gives how many rows lost their texts.
///
/// # Errors
/// `forbidden` or `missing_scope` where the caller may not, `not_found` where the workspace has no such action or principal,
/// `not_allowed` where the action waits for a person, who decides by its texts.
pub fn erase(scope: &mut Scope<'_>, asked: &Erase) -> Result<u64, Halt> {
    by::entitled(scope, &asked.by, asked.workspace, Right::Erase)?;
    let own = |row: &Disclosure| row.workspace == asked.workspace && concerns(row, asked.target);
    let mut erased = let_go(scope, &asked.disclosures, own)?;
    let subject = match asked.target {
        Target::Action(id) => {
            erased = erased.saturating_add(erase_action(scope, asked.workspace, id)?);
            Subject::Action(id)
        }
        Target::Principal(id) => {
            erased = erased.saturating_add(erase_notes(scope, asked, id)?);
            if asked.last {
                erased = erased.saturating_add(erase_person(scope, asked, id)?);
            }
            Subject::Principal(id)
        }
    };
    let data = Object::new().raw("erased", &erased.to_string()).finish();
    scope.append(asked.workspace, Fact { kind: "erasure", actor: asked.by.actor(), subject, data });
    Ok(erased)
}

fn concerns(row: &Disclosure, target: Target) -> bool {
    match target {
        Target::Action(id) => *row.subject == *id.to_string(),
        Target::Principal(id) => row.by == Some(id) || *row.subject == *id.to_string(),
    }
}

/// Lets go of those disclosures that are meant, and gives how many they were.
pub(super) fn let_go(
    scope: &mut Scope<'_>,
    disclosures: &[EvidenceId],
    is_meant: impl Fn(&Disclosure) -> bool,
) -> Result<u64, Halt> {
    scope.want(&disclosures.iter().map(|id| Disclosure::key(*id)).collect::<Vec<Key>>())?;
    let mut erased: u64 = 0;
    for id in disclosures {
        if scope.get::<Disclosure>(*id)?.is_some_and(|it| is_meant(&it)) {
            scope.delete::<Disclosure>(*id);
            erased = erased.saturating_add(1);
        }
    }
    Ok(erased)
}

fn erase_action(scope: &mut Scope<'_>, workspace: WorkspaceId, id: ActionId) -> Result<u64, Halt> {
    let action = scope.get::<Action>(id)?.filter(|it| it.workspace == workspace).ok_or_else(Refusal::not_found)?;
    // Nobody says yes to what nobody can read.
    if matches!(action.state, State::Pending { expires_at } if scope.now() < expires_at) {
        return Err(
            Refusal::not_allowed("it waits for a person: decide it, or let it expire, and erase it then").into()
        );
    }
    strip(scope, &action)
}

/// The address that goes with a person: of one who is no member, whom nobody reaches by it any more.
///
/// # Errors
/// [`Halt::Load`], or `not_found` where the workspace has no such principal.
pub fn address_of(scope: &mut Scope<'_>, workspace: WorkspaceId, id: PrincipalId) -> Result<Option<Email>, Halt> {
    let person = scope.get::<Principal>(id)?.filter(|it| it.workspace == workspace).ok_or_else(Refusal::not_found)?;
    Ok(person.membership().is_none().then(|| person.email.clone()))
}

/// Takes out of approvals and applications what a person wrote, and out of these their address.
fn erase_notes(scope: &mut Scope<'_>, asked: &Erase, person: PrincipalId) -> Result<u64, Halt> {
    let approvals = asked.approvals.iter().map(|it| Approval::key(*it));
    let agents = asked.agents.iter().map(|it| Agent::key(*it)).chain(asked.holds.iter().map(|it| Hold::key(*it)));
    let applications = asked.applications.iter().map(|it| Application::key(*it));
    let address = address_of(scope, asked.workspace, person)?;
    scope.want(&approvals.chain(applications).chain(agents).collect::<Vec<Key>>())?;
    let mut erased: u64 = 0;
    for id in &asked.approvals {
        let Some(row) = scope.get::<Approval>(*id)?.filter(|it| it.workspace == asked.workspace) else { continue };
        let bare = Approval::clone(&row).forget(Some(person));
        if bare != *row {
            scope.put(bare);
            erased = erased.saturating_add(1);
        }
    }
    for id in &asked.applications {
        let Some(row) = scope.get::<Application>(*id)?.filter(|it| it.workspace == asked.workspace) else { continue };
        let bare = Application::clone(&row).forget(person, address.as_ref());
        if bare != *row {
            scope.put(bare);
            erased = erased.saturating_add(1);
        }
    }
    for id in &asked.agents {
        let Some(row) = scope.get::<Agent>(*id)?.filter(|it| it.workspace == asked.workspace) else { continue };
        let bare = Agent::clone(&row).forget(person);
        if bare != *row {
            scope.put(bare);
            erased = erased.saturating_add(1);
        }
    }
    for id in &asked.holds {
        let Some(row) = scope.get::<Hold>(*id)?.filter(|it| it.workspace == asked.workspace) else { continue };
        let bare = Hold::clone(&row).forget(person);
        if bare != *row {
            scope.put(bare);
            erased = erased.saturating_add(1);
        }
    }
    Ok(erased)
}

/// Takes name and address out of a person's own row, and ends the account of one who is nobody anywhere any more. Who is a
/// member keeps both: they sign in by them. A question whether they come in as an owner ends, for nobody could be reached.
fn erase_person(scope: &mut Scope<'_>, asked: &Erase, id: PrincipalId) -> Result<u64, Halt> {
    let workspace = asked.workspace;
    let person = scope.get::<Principal>(id)?.filter(|it| it.workspace == workspace).ok_or_else(Refusal::not_found)?;
    if person.membership().is_some() {
        return Ok(0);
    }
    let mut erased = unlink(scope, workspace, id)?;
    let person = owners::end_invite(scope, &person, &asked.by.actor())?;
    let bare = person.clone().forget();
    if bare == person {
        return Ok(erased);
    }
    for used in EmailUse::all_of_principal(workspace, &person.email) {
        if scope.get::<EmailUse>(used)?.is_some_and(|it| it.principal == Some(id)) {
            scope.delete::<EmailUse>(used);
        }
    }
    erased = erased.saturating_add(1);
    if let Some(member) = &person.member
        && let Some(link) = member.sso
        && scope.get::<SsoLink>(link)?.is_some_and(|it| it.account == member.account)
    {
        scope.delete::<SsoLink>(link);
    }
    if let Some(account) = person.member.as_ref().map(|it| it.account)
        && let Some(account) = scope.get::<Account>(account)?.filter(|it| it.memberships.is_empty())
    {
        for used in EmailUse::all_of_account(&account.email) {
            if scope.get::<EmailUse>(used)?.is_some_and(|it| it.account == Some(account.id)) {
                scope.delete::<EmailUse>(used);
            }
        }
        scope.delete::<Account>(account.id);
        erased = erased.saturating_add(1);
    }
    scope.put(bare);
    Ok(erased)
}

/// The rows that [`strip`] looks at.
pub(super) fn beside(action: &Action) -> Vec<Key> {
    let mut keys: Vec<Key> = action.replay.map(Replay::key).into_iter().collect();
    keys.extend(action.payload.then(|| Payload::key(action.id)));
    keys.extend(action.callback.as_ref().map(|it| Job::key(it.id.into())));
    keys.extend(action.approval.map(Approval::key));
    keys
}

/// Takes what is personal out of an action, and what it could be guessed by, and gives how many rows lost texts: one, or none where
/// that was done before. Its idempotency key makes no other action, and is told to be another request's from then on.
pub(super) fn strip(scope: &mut Scope<'_>, action: &Action) -> Result<u64, Halt> {
    scope.want(&beside(action))?;
    let replay = match action.replay {
        Some(id) => scope.get::<Replay>(id)?.filter(|it| it.action == action.id && it.body.is_some()),
        None => None,
    };
    let mut bare = action.clone().erase();
    if !is_to_be_told(scope, action)? {
        bare.callback = None;
    }
    if bare == *action && replay.is_none() {
        return Ok(0);
    }
    if let Some(row) = replay {
        scope.put(Replay { body: None, ..Replay::clone(&row) });
    }
    if action.payload && scope.get::<Payload>(action.id)?.is_some() {
        scope.delete::<Payload>(action.id);
    }
    if let Some(approval) = action.approval
        && let Some(row) = scope.get::<Approval>(approval)?
    {
        let without = Approval::clone(&row).forget(None);
        if without != *row {
            scope.put(without);
        }
    }
    scope.put(bare);
    Ok(1)
}

/// Whether whoever an agent named is still to be called about an action, or called again.
fn is_to_be_told(scope: &mut Scope<'_>, action: &Action) -> Result<bool, Halt> {
    let Some(callback) = &action.callback else { return Ok(false) };
    if matches!(action.state, State::Pending { .. }) {
        return Ok(true);
    }
    Ok(scope.get::<Job>(callback.id.into())?.is_some_and(|it| it.due().is_some()))
}
