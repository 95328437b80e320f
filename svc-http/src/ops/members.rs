//! Members and teams.

use http::StatusCode;
use serde_json::{Value, json};
use svc_core::refusal::Refusal;
use svc_core::rules::people::by::{By, entitled};
use svc_core::rules::people::members::{ChangeMember, InviteMember, MemberDone, RemoveMember, read_member};
use svc_core::rules::people::teams::{KeepTeam, RemoveTeam, read_team};
use svc_core::state::edge::News;
use svc_core::state::gate::Approval;
use svc_core::state::people::{Principal, Right, Team};
use svc_core::store::{Found, Range, Row as _};
use svc_core::value::Id as _;
use svc_core::value::id::WorkspaceId;
use svc_core::value::link::Index;

use super::{Caller, GateService, refusal};
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::routes::MembersOp;
use crate::secrets::{LINK_PREFIX, draw, sign_in_link};
use crate::wire::page::{Page, Query};
use crate::wire::{member, stop};

/// Rows that one page looks at, at most; what is not found among them is looked for from the cursor on.
const LOOKED_MAX: usize = 2_000;
/// Rows that are looked at together, at least.
const CHUNK: usize = 128;

/// Answers a route of this family.
///
/// # Errors
/// As the routes declare.
pub(super) async fn answer(
    service: &GateService,
    op: MembersOp,
    caller: &Caller,
    call: &Call,
) -> Result<Answer, Refusal> {
    let (by, workspace) = caller.by()?;
    match op {
        MembersOp::Members => {
            let write =
                |row: &Found| row.row.record.as_ref().and_then(Principal::peel).and_then(|it| member::write(it));
            list(service, &by, workspace, call, "members", Index::PrincipalsOf, write).await
        }
        MembersOp::Invite => invite(service, by, workspace, call).await,
        MembersOp::Member => {
            let principal = call.param_id("prp")?;
            let found = service.read(|scope| read_member(scope, &by, workspace, principal))?;
            shown(&found)
        }
        MembersOp::Change => {
            let read = member::read_change(&call.body);
            let change = read.map_err(|it| service.and_named(workspace, &call.body, member::IDS, it))?;
            let principal = call.param_id("prp")?;
            let change = ChangeMember { workspace, by, principal, role: change.role, teams: change.teams };
            match service.run(change).await? {
                MemberDone::Done { principal, .. } => shown(&principal),
                MemberDone::Asked(approval) => asked(service, &approval),
            }
        }
        MembersOp::Remove => {
            let principal = call.param_id("prp")?;
            match service.run(RemoveMember { workspace, by, principal }).await? {
                MemberDone::Done { .. } => Ok(Answer::empty()),
                MemberDone::Asked(approval) => asked(service, &approval),
            }
        }
        MembersOp::Teams => {
            let write = |row: &Found| row.row.record.as_ref().and_then(Team::peel).map(|it| member::write_team(it));
            list(service, &by, workspace, call, "teams", Index::TeamsOf, write).await
        }
        MembersOp::CreateTeam => keep(service, by, workspace, true, call).await.map(Answer::created),
        MembersOp::Team => {
            let team = call.param_id("team")?;
            let found = service.read(|scope| read_team(scope, &by, workspace, team))?;
            json(&member::write_team(&found))
        }
        MembersOp::ChangeTeam => keep(service, by, workspace, false, call).await,
        MembersOp::RemoveTeam => {
            let team = call.param_id("team")?;
            service.run(RemoveTeam { workspace, by, team }).await?;
            Ok(Answer::empty())
        }
    }
}

async fn invite(service: &GateService, by: By, workspace: WorkspaceId, call: &Call) -> Result<Answer, Refusal> {
    let read = member::read(&call.body);
    let asked = read.map_err(|it| service.and_named(workspace, &call.body, member::IDS, it))?;
    let token = draw(LINK_PREFIX).map_err(refusal)?;
    let mailed = match &service.mailer {
        Some(_) => {
            let sealed = service.gate.seal(&News::purpose(workspace), token.text.expose().as_bytes());
            Some(sealed.map_err(refusal)?.into())
        }
        None => None,
    };
    let invite = InviteMember {
        workspace,
        by,
        email: asked.email,
        name: asked.name,
        role: asked.role,
        teams: asked.teams,
        token: token.digest,
        mailed,
    };
    let (principal, linked) = match service.run(invite).await? {
        MemberDone::Done { principal, linked } => (principal, linked),
        MemberDone::Asked(approval) => return self::asked(service, &approval),
    };
    let mut shown = member::write(&principal).ok_or_else(Refusal::internal)?;
    if let Some(members) = shown.as_object_mut().filter(|_| linked && service.mailer.is_none()) {
        members.insert("signInLink".to_owned(), json!(sign_in_link(&service.base_url, token.text.expose())));
    }
    json(&shown).map(Answer::created)
}

async fn keep(
    service: &GateService,
    by: By,
    workspace: WorkspaceId,
    is_new: bool,
    call: &Call,
) -> Result<Answer, Refusal> {
    let read = member::read_team(&call.body, is_new);
    let asked = read.map_err(|it| service.and_named(workspace, &call.body, member::TEAM_IDS, it))?;
    let team = if is_new { None } else { Some(call.param_id("team")?) };
    let keep = KeepTeam { workspace, by, team, name: asked.name, owner: asked.owner, members: asked.members };
    let kept = service.run(keep).await?;
    json(&member::write_team(&kept))
}

async fn list(
    service: &GateService,
    by: &By,
    workspace: WorkspaceId,
    call: &Call,
    name: &str,
    index: Index,
    write: impl Fn(&Found) -> Option<Value>,
) -> Result<Answer, Refusal> {
    let mut query = Query::among(&call.uri, call.route.query);
    let page = query.page(name, workspace);
    query.finish()?;
    service.read(|scope| entitled(scope, by, workspace, Right::ReadMembers))?;
    let mut range = Range { newest_first: true, ..Range::all(index, workspace.bits(), page.limit) };
    (range.after, range.limit) = (page.after, page.limit.saturating_add(1).max(CHUNK));
    let (data, next) = gather(service, &page, range, write).await?;
    Ok(Answer::json(page.list(data, next)?))
}

/// The items of one page, and where the next begins. Rows that are no item, such as principals that agents act for and that
/// nobody signs in as, are passed over, so that a page is full while there is more.
async fn gather(
    service: &GateService,
    page: &Page,
    mut range: Range,
    write: impl Fn(&Found) -> Option<Value>,
) -> Result<(Vec<Value>, Option<String>), Refusal> {
    let (mut data, mut looked, mut last) = (Vec::new(), 0_usize, None);
    loop {
        let found = service.scan(&range)?;
        for row in &found {
            let Some(item) = write(row) else { continue };
            if data.len() == page.limit {
                return Ok((data, last));
            }
            data.push(item);
            last = Some(page.cursor(row.order, row.row.key));
        }
        let Some(end) = found.last().filter(|_| found.len() == range.limit) else { return Ok((data, None)) };
        looked = looked.saturating_add(found.len());
        if looked >= LOOKED_MAX {
            return Ok((data, Some(page.cursor(end.order, end.row.key))));
        }
        range.after = Some((end.order, end.row.key));
        // Others have their turn between two looks.
        tokio::task::yield_now().await;
    }
}

fn asked(service: &GateService, approval: &Approval) -> Result<Answer, Refusal> {
    let answer = json(&stop::write_asked(approval, &service.base_url))?;
    Ok(answer.with_status(StatusCode::ACCEPTED))
}

fn shown(principal: &Principal) -> Result<Answer, Refusal> {
    json(&member::write(principal).ok_or_else(Refusal::not_found)?)
}

fn json(shown: &Value) -> Result<Answer, Refusal> {
    serde_json::to_vec(shown).map(Answer::json).map_err(|_| Refusal::internal())
}
