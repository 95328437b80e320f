//! Connections end: by a person, with their agent, with whoever made them.

use std::sync::Arc;

use super::tokens::forget_access;
use crate::refusal::{Kind, Refusal};
use crate::rules::gate::still_connects;
use crate::rules::people::by::{By, entitled, reaches};
use crate::state::connect::{Connection, Ended, EndedBy, UNUSED_AFTER};
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::gate::Agent;
use crate::state::people::{Principal, Right};
use crate::store::Row as _;
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
use crate::value::id::{ConnectionId, PrincipalId, WorkspaceId};

/// Ends a connection.
#[derive(Clone, Debug)]
pub struct EndConnection {
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Who ends it.
    pub by: By,
    /// Which.
    pub connection: ConnectionId,
}

/// Ends a connection; ending an ended one changes nothing.
///
/// # Errors
/// Those of [`entitled`]; `not_found` where there is none, or it is of an agent that is not theirs.
pub fn end_connection(scope: &mut Scope<'_>, asked: &EndConnection) -> Result<Arc<Connection>, Halt> {
    let found = connection_of(scope, &asked.by, asked.workspace, asked.connection)?;
    end(scope, &found, EndedBy::Revoked, asked.by.actor())?;
    scope.get::<Connection>(asked.connection)?.ok_or_else(|| Refusal::internal().into())
}

/// A connection that `by` may read and end: by the right to its agent's keys.
///
/// # Errors
/// As [`end_connection`].
pub fn connection_of(
    scope: &mut Scope<'_>,
    by: &By,
    workspace: WorkspaceId,
    id: ConnectionId,
) -> Result<Arc<Connection>, Halt> {
    let reach = entitled(scope, by, workspace, Right::AgentKeys)?;
    let found = scope.get::<Connection>(id)?.filter(|it| it.workspace == workspace).ok_or_else(Refusal::not_found)?;
    let agent = scope.get::<Agent>(found.agent)?.ok_or_else(Refusal::internal)?;
    if by.principal() != Some(found.person) {
        reaches(by, reach, &agent)?;
    }
    Ok(found)
}

/// Several connections as [`connection_of`] has them, in their order; `None` for what `by` may not read.
///
/// # Errors
/// `forbidden` and `missing_scope` where `by` may read none.
pub fn connections_of(
    scope: &mut Scope<'_>,
    by: &By,
    workspace: WorkspaceId,
    ids: &[ConnectionId],
) -> Result<Vec<Option<Arc<Connection>>>, Halt> {
    entitled(scope, by, workspace, Right::AgentKeys)?;
    scope.want(&ids.iter().map(|it| Connection::key(*it)).collect::<Vec<_>>())?;
    let mut agents = Vec::with_capacity(ids.len());
    for id in ids {
        agents.extend(scope.get::<Connection>(*id)?.map(|it| Agent::key(it.agent)));
    }
    scope.want(&agents)?;
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        match connection_of(scope, by, workspace, *id) {
            Ok(connection) => found.push(Some(connection)),
            Err(Halt::Refuse(refusal)) if refusal.kind() == Kind::NotFound => found.push(None),
            Err(other) => return Err(other),
        }
    }
    Ok(found)
}

/// Ends a connection of somebody who left.
#[derive(Clone, Copy, Debug)]
pub struct EndLeft {
    /// Which.
    pub connection: ConnectionId,
    /// Who left.
    pub left: PrincipalId,
}

/// Ends a connection that became void when whoever made it left, or might connect the agent no more, so that its own row says so.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn end_left(scope: &mut Scope<'_>, asked: &EndLeft) -> Result<(), Halt> {
    let found = scope.get::<Connection>(asked.connection)?.filter(|it| it.person == asked.left);
    let Some(connection) = found else { return Ok(()) };
    let left = scope.get::<Principal>(asked.left)?.ok_or_else(Refusal::internal)?;
    let agent = scope.get::<Agent>(connection.agent)?.ok_or_else(Refusal::internal)?;
    if !still_connects(&left, &agent, connection.created_at) {
        end(scope, &connection, EndedBy::Left, Actor::Policy)?;
    }
    Ok(())
}

/// Ends every connection of an agent that is stopped in this commit. A freeze itself takes their keys from its row; with a
/// removal they stay in it until their time is up.
pub(crate) fn end_all(scope: &mut Scope<'_>, agent: &Agent, by: EndedBy, actor: &Actor) -> Result<(), Halt> {
    for id in agent.connections() {
        let connection = scope.get::<Connection>(id)?.ok_or_else(Refusal::internal)?;
        end_row(scope, &connection, by, actor.clone())?;
    }
    Ok(())
}

/// Ends the one of an agent's connections whose tokens were not renewed for longest, where that is over
/// [`UNUSED_AFTER`], so that logins that clients have forgotten keep no new one out. Gives the agent as it is then;
/// nothing where all are in use.
pub(super) fn end_unused(scope: &mut Scope<'_>, agent: &Agent) -> Result<Option<Arc<Agent>>, Halt> {
    let ids: Vec<ConnectionId> = agent.connections().collect();
    scope.want(&ids.iter().map(|it| Connection::key(*it)).collect::<Vec<_>>())?;
    let mut unused: Option<Arc<Connection>> = None;
    for id in ids {
        let connection = scope.get::<Connection>(id)?.ok_or_else(Refusal::internal)?;
        if unused.as_ref().is_none_or(|it| connection.refreshed_at < it.refreshed_at) {
            unused = Some(connection);
        }
    }
    let now = scope.now();
    let Some(unused) = unused.filter(|it| now.since(it.refreshed_at) > UNUSED_AFTER) else { return Ok(None) };
    end(scope, &unused, EndedBy::Unused, Actor::Policy)?;
    scope.get::<Agent>(agent.id)
}

/// Ends a connection and takes its access token from the agent.
pub(super) fn end(scope: &mut Scope<'_>, connection: &Connection, by: EndedBy, actor: Actor) -> Result<(), Halt> {
    if connection.ended.is_some() {
        return Ok(());
    }
    let agent = scope.get::<Agent>(connection.agent)?.ok_or_else(Refusal::internal)?;
    end_row(scope, connection, by, actor)?;
    let mut agent = Agent::clone(&agent);
    agent.keys.retain(|it| it.via.as_ref().is_none_or(|it| it.connection != connection.id));
    scope.put(agent);
    Ok(())
}

/// The access token of a removed agent is known as one, like its keys, so that its client is told what happened and does not
/// ask for another.
fn end_row(scope: &mut Scope<'_>, connection: &Connection, by: EndedBy, actor: Actor) -> Result<(), Halt> {
    if connection.ended.is_some() {
        return Ok(());
    }
    if by != EndedBy::Removed {
        forget_access(scope, connection)?;
    }
    let data = Object::new().text("agentId", &connection.agent.to_string()).text("clientId", &connection.client);
    let data = data.text("endedBy", by.as_str()).finish();
    let subject = Subject::Connection(connection.id);
    scope.append(connection.workspace, Fact { kind: "connection.ended", actor, subject, data });
    scope.put(Connection { ended: Some(Ended { at: scope.now(), by }), ..connection.clone() });
    Ok(())
}
