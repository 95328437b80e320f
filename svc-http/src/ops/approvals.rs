//! What waits for a person, and their word on it.

use std::sync::Arc;

use serde_json::Value;
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::gate::asked::{Question, Stands, get_approval, names, questions, which_readable};
use svc_core::rules::gate::decide::{Choice, DecideApproval};
use svc_core::rules::people::by::{By, entitled, reaches};
use svc_core::rules::people::members::MailedLink;
use svc_core::state::edge::News;
use svc_core::state::gate::{Agent, Approval, ApprovalSubject};
use svc_core::state::people::{Account, Reach, Right};
use svc_core::store::{Found, Key, Range};
use svc_core::value::Id as _;
use svc_core::value::id::{ApprovalId, WorkspaceId};
use svc_core::value::link::Index;
use svc_store::Gate;

use super::aside::Asker;
use super::suggested::suggested;
use super::{Caller, GateService, refusal};
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::routes::ApprovalsOp;
use crate::secrets::{LINK_PREFIX, draw};
use crate::wire::approval::{self, Filter};
use crate::wire::page::{Page, Query};
use crate::wire::sign_in::Factor;

/// Rows that one request looks at for its page: a filter that shows little goes on with the cursor.
const LOOKED_AT_MAX: usize = 2_000;

/// Answers a route of this family.
///
/// # Errors
/// As the routes declare.
pub(super) async fn answer(
    service: &GateService,
    op: ApprovalsOp,
    caller: &Caller,
    call: &Call,
) -> Result<Answer, Refusal> {
    let (by, workspace) = caller.by()?;
    match op {
        ApprovalsOp::List => {
            let mut query = Query::among(&call.uri, call.route.query);
            let filter = Filter::of(&mut query);
            let page = query.page("approvals", workspace);
            query.finish()?;
            list(service, &by, workspace, filter, &page).await
        }
        ApprovalsOp::Waiting => {
            let mut query = Query::among(&call.uri, call.route.query);
            let page = query.page("waiting approvals", workspace);
            query.finish()?;
            list(service, &by, workspace, Filter { state: Some(Stands::Waiting), ..Filter::default() }, &page).await
        }
        ApprovalsOp::Suggested => {
            let mut query = Query::among(&call.uri, call.route.query);
            let page = query.page("suggested rules", workspace);
            query.finish()?;
            suggested(service, by, workspace, page).await
        }
        ApprovalsOp::Get => {
            let id = id(call)?;
            let read = || service.read(|scope| get_approval(scope, &by, workspace, id));
            let mut found = read()?;
            if let Some(untold) = found.untold() {
                service.run(untold).await?;
                found = read()?;
            }
            written(service, &by, &found)
        }
        ApprovalsOp::Approve => decide(service, caller, call, Choice::Approve).await,
        ApprovalsOp::Deny => decide(service, caller, call, Choice::Deny).await,
    }
}

async fn decide(service: &GateService, caller: &Caller, call: &Call, choice: Choice) -> Result<Answer, Refusal> {
    let person = caller.member()?.person;
    let word = approval::read(&call.body, choice, person.principal)?;
    let plain = DecideApproval::new(person, id(call)?, word.choice);
    let decide = DecideApproval { note: word.note, digest: word.digest, ..plain };
    let decided = match word.factor {
        None => decided(service, decide).await?,
        Some(factor) => with_factor(service, call, decide, &factor).await?,
    };
    written(service, &By::Person(person), &decided)
}

/// An approval with what its people are called.
fn written(service: &GateService, by: &By, question: &Question) -> Result<Answer, Refusal> {
    let names = service.read(|scope| names(scope, by, std::iter::once(question)))?;
    Ok(Answer::json(approval::write(question, &names, &service.base_url)?))
}

/// Takes the word of a person who shows their second factor again. A wrong one counts as a wrong try to sign in.
async fn with_factor(
    service: &GateService,
    call: &Call,
    decide: DecideApproval,
    factor: &Factor,
) -> Result<Question, Refusal> {
    let account =
        service.read(|scope| scope.get::<Account>(decide.by.account))?.ok_or_else(Refusal::unauthenticated)?;
    let tried = service.begin_try(account.email.folded(), call)?;
    let decided = match service.look_at_factor(&account, factor) {
        Ok(factor) => decided(service, DecideApproval { factor: Some(factor), ..decide }).await,
        Err(unseen) => Err(unseen),
    };
    if !decided.as_ref().is_err_and(|it| it.kind() == Kind::InvalidRequest) {
        tried.forgive();
    }
    decided
}

/// Takes a person's word. A yes to a freeze looks through all agents, and one to a lift ends what stops of agents end: neither
/// happens on a thread that serves others.
async fn decided(service: &GateService, decide: DecideApproval) -> Result<Question, Refusal> {
    let is_long = |it: &Arc<Approval>| matches!(it.subject, ApprovalSubject::Freeze(_) | ApprovalSubject::HoldLift(_));
    let asked = service.read(|scope| scope.get::<Approval>(decide.approval))?;
    if !asked.as_ref().is_some_and(is_long) {
        let invites = asked.as_ref().is_some_and(|it| matches!(it.subject, ApprovalSubject::Owner(_)));
        let mailed = if invites { invitation(service, decide.by.workspace)? } else { None };
        return service.run(DecideApproval { mailed, ..decide }).await;
    }
    let gate = service.gate.clone();
    let decided = crate::at_hand::spawn_blocking(move || gate.decide(&decide)).await;
    decided.map_err(|_| Refusal::internal())?.map_err(refusal)
}

/// A link for whoever a yes invites, where this server mails.
fn invitation(service: &GateService, workspace: WorkspaceId) -> Result<Option<MailedLink>, Refusal> {
    if service.mailer.is_none() {
        return Ok(None);
    }
    let token = draw(LINK_PREFIX).map_err(refusal)?;
    let sealed = service.gate.seal(&News::purpose(workspace), token.text.expose().as_bytes()).map_err(refusal)?;
    Ok(Some(MailedLink { token: token.digest, sealed: sealed.into() }))
}

fn id(call: &Call) -> Result<ApprovalId, Refusal> {
    ApprovalId::parse(call.param("apv")).map_err(|_| Refusal::not_found())
}

/// A page of what `by` may read, newest first.
async fn list(
    service: &GateService,
    by: &By,
    workspace: WorkspaceId,
    filter: Filter,
    page: &Page,
) -> Result<Answer, Refusal> {
    let reach = service.read(|scope| entitled(scope, by, workspace, Right::ReadApprovals))?;
    if let Some(agent) = filter.agent {
        // Another's is not looked through to find that nothing of it may be shown: how long that takes would tell how much there is.
        let found = service.read(|scope| Ok(scope.get::<Agent>(agent)?.filter(|it| it.workspace == workspace)))?;
        if found.is_none_or(|it| reaches(by, reach, &it).is_err()) {
            return page.list(Vec::<Value>::new(), None).map(Answer::json);
        }
    }
    let (index, prefix) = match (filter.agent, filter.state == Some(Stands::Waiting)) {
        (Some(agent), true) => (Index::WaitingOf, agent.bits()),
        (Some(agent), false) => (Index::AskedOf, agent.bits()),
        (None, true) => (Index::WaitingIn, workspace.bits()),
        (None, false) => (Index::ApprovalsOf, workspace.bits()),
    };
    let (mut data, mut after, mut looked_at) = (Vec::<Value>::new(), page.after, 0);
    let mut next = None;
    while data.len() < page.limit && looked_at < LOOKED_AT_MAX {
        let range = Range { newest_first: true, after, ..Range::all(index, prefix, page.limit.saturating_add(1)) };
        let found = match (reach, filter.agent) {
            (Reach::Own | Reach::No, None) => readable(service, by, workspace, range).await?,
            (Reach::All, _) | (_, Some(_)) => service.scan(&range)?,
        };
        looked_at += found.len();
        let read = || service.read(|scope| questions(scope, by, workspace, &ids(&found)));
        let read = service.seen_all(read()?, |it| it.as_ref().and_then(Question::untold), read).await?;
        let names = service.read(|scope| names(scope, by, read.iter().flatten()))?;
        for (row, question) in found.iter().zip(&read).take(page.limit) {
            after = Some((row.order, row.row.key));
            if let Some(question) = question.as_ref().filter(|it| filter.shows(it)) {
                data.push(approval::item(question, &names, &service.base_url));
                if data.len() == page.limit {
                    break;
                }
            }
        }
        let more = found.len() > page.limit || found.last().is_some_and(|it| Some((it.order, it.row.key)) != after);
        next = after.filter(|_| more).map(|(order, key)| page.cursor(order, key));
        if found.len() <= page.limit {
            break;
        }
        // Others have their turn between two looks.
        tokio::task::yield_now().await;
    }
    Ok(Answer::json(page.list(data, next)?))
}

/// Those of a range that `by` may read.
async fn readable(service: &GateService, by: &By, workspace: WorkspaceId, range: Range) -> Result<Vec<Found>, Refusal> {
    let own = by.clone();
    let sees = move |gate: &Gate, found: &[Found]| {
        gate.read(|scope| which_readable(scope, &own, workspace, &ids(found))).map_err(refusal)
    };
    service.scan_seen(Asker::of(by, workspace), range, sees).await
}

pub(super) fn ids(found: &[Found]) -> Vec<ApprovalId> {
    let id = |it: &Found| if let Key::Approval(id) = it.row.key { Some(id) } else { None };
    found.iter().filter_map(id).collect()
}
