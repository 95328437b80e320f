//! The one pair of tokens that a connection has.

use std::sync::Arc;

use super::end::end;
use crate::refusal::{Kind, Refusal};
use crate::rules::gate::hold::held_by;
use crate::rules::gate::still_connects;
use crate::rules::people::keys::NewKey;
use crate::state::connect::{ACCESS_LIFE, Connection, EndedBy, RefreshToken};
use crate::state::evidence::Actor;
use crate::state::gate::{Agent, HeldKey, Through};
use crate::state::people::{Binding, Credential, KeyScope, Maker, Principal, Workspace};
use crate::turn::{Halt, Scope};
use crate::value::Timestamp;
use crate::value::digest::Digest;
use crate::value::id::{AgentId, ConnectionId, KeyId, PrincipalId, WorkspaceId};

/// A pair that somebody drew: digests, and what may be shown of the access token.
#[derive(Clone, Debug)]
pub struct NewTokens {
    /// The access token: `aat_` and 32 random bytes in base64url. The server looks for no other.
    pub access: NewKey,
    /// The digest of the refresh token.
    pub refresh: Digest,
}

/// What comes of asking for tokens.
#[derive(Clone, Debug)]
pub enum Grant {
    /// They are in force.
    Given(Arc<Connection>),
    /// They are not. What the refusal leaves is kept.
    Refused(Refusal),
    /// They are not, and what was shown again ended a connection in this commit.
    Ended {
        /// Which.
        connection: ConnectionId,
        /// By what.
        by: EndedBy,
        /// What the client is told.
        refusal: Refusal,
    },
}

pub(super) fn invalid_grant(why: &'static str) -> Grant {
    Grant::Refused(Refusal::oauth(Kind::InvalidGrant, why))
}

/// Ends a connection that has not ended, since something of it was shown again.
pub(super) fn reused(
    scope: &mut Scope<'_>,
    connection: &Connection,
    by: EndedBy,
    why: &'static str,
) -> Result<Grant, Halt> {
    end(scope, connection, by, Actor::Policy)?;
    Ok(Grant::Ended { connection: connection.id, by, refusal: Refusal::oauth(Kind::InvalidGrant, why) })
}

/// The agent, where a client may still act as it: it is not stopped, and whoever connected it may still connect it.
pub(super) fn willing(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    agent: AgentId,
    person: PrincipalId,
    since: Timestamp,
) -> Result<Option<Arc<Agent>>, Halt> {
    let agent = scope.get::<Agent>(agent)?.filter(|it| it.workspace == workspace && it.is_active());
    let Some(agent) = agent else { return Ok(None) };
    let person = scope.get::<Principal>(person)?.filter(|it| it.signs_in() && still_connects(it, &agent, since));
    let row = scope.get::<Workspace>(workspace)?.ok_or_else(Refusal::internal)?;
    let held = held_by(scope, &row, agent.id)?.is_some();
    Ok((person.is_some() && !held).then_some(agent))
}

/// Whether a client that `person` connected may still act as an agent: what each renewal asks first.
///
/// # Errors
/// `invalid_grant` where it may not.
pub fn check_willing(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    agent: AgentId,
    person: PrincipalId,
    since: Timestamp,
) -> Result<(), Halt> {
    match willing(scope, workspace, agent, person, since)? {
        Some(_) => Ok(()),
        None => Err(Refusal::oauth(
            Kind::InvalidGrant,
            "the agent is stopped, or whoever connected it may connect it no more",
        )
        .into()),
    }
}

/// Puts a new pair in force in place of the connection's, and gives the connection and its agent as they are to be put.
pub(super) fn renew(
    scope: &mut Scope<'_>,
    connection: Connection,
    agent: &Agent,
    new: &NewTokens,
) -> Result<(Connection, Agent), Halt> {
    let (access, refresh) = (Credential::id_of(&new.access.digest), RefreshToken::id_of(&new.refresh));
    if scope.get::<Credential>(access)?.is_some() || scope.get::<RefreshToken>(refresh)?.is_some() {
        // 256 random bits came twice: whoever drew them has no entropy, and gets no token.
        return Err(Refusal::internal().into());
    }
    forget_access(scope, &connection)?;
    let now = scope.now();
    let key: KeyId = scope.fresh();
    let expires_at = Some(now.plus(ACCESS_LIFE));
    let binding = Binding {
        key,
        workspace: connection.workspace,
        scope: KeyScope::Agent(connection.agent),
        principal: agent.principal,
        team: None,
        task_class: None,
        profile: None,
        task_class_open: false,
        connection: Some(connection.id),
    };
    scope.put(Credential {
        id: access,
        digest: new.access.digest,
        binding,
        prefix: new.access.prefix.clone(),
        label: None,
        created_by: Some(Maker::Person(connection.person)),
        made_under: Vec::new(),
        created_at: now,
        expires_at,
        revoked_at: None,
    });
    scope.put(RefreshToken { id: refresh, digest: new.refresh, connection: connection.id });
    let via = Through { connection: connection.id, person: connection.person, since: connection.created_at };
    let mut agent = agent.clone();
    agent.keys.retain(|it| it.via.as_ref().is_none_or(|it| it.connection != connection.id));
    agent.keys.push(HeldKey { id: key, credential: access, via: Some(via), made_by: None, expires_at });
    Ok((Connection { access, refresh: new.refresh, refreshed_at: now, ..connection }, agent))
}

/// Lets go of the access token that a connection had.
pub(super) fn forget_access(scope: &mut Scope<'_>, connection: &Connection) -> Result<(), Halt> {
    if scope.get::<Credential>(connection.access)?.is_some() {
        scope.delete::<Credential>(connection.access);
    }
    Ok(())
}
