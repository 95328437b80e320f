//! A refresh token becomes a new pair, once: of two that show the same one, the second ends the connection.

use std::sync::Arc;

use super::authenticate::{ClientShown, authenticate};
use super::end::end;
use super::tokens::{Grant, NewTokens, invalid_grant, renew, reused, willing};
use crate::refusal::Refusal;
use crate::state::connect::{Connection, EndedBy, RefreshToken};
use crate::state::evidence::Actor;
use crate::turn::{Halt, Scope};
use crate::value::digest::Digest;

/// Renews a connection's tokens.
#[derive(Clone, Debug)]
pub struct RefreshTokens {
    /// The client.
    pub client: ClientShown,
    /// The digest of the refresh token.
    pub token: Digest,
    /// The tokens that it gets.
    pub new: NewTokens,
}

/// Renews a connection's tokens. A token that was used before ends the connection in this commit, as does one that comes after
/// [`CONNECTION_IDLE`](crate::state::connect::CONNECTION_IDLE).
///
/// # Errors
/// [`Halt::Load`], or `internal` where a row that another names is not there.
pub fn refresh_tokens(scope: &mut Scope<'_>, asked: &RefreshTokens) -> Result<Grant, Halt> {
    if let Err(refusal) = authenticate(scope, &asked.client)? {
        return Ok(Grant::Refused(refusal));
    }
    let found = scope.get::<RefreshToken>(RefreshToken::id_of(&asked.token))?.filter(|it| it.digest == asked.token);
    let Some(token) = found else { return Ok(invalid_grant("the refresh token is unknown")) };
    let connection = scope.get::<Connection>(token.connection)?.ok_or_else(Refusal::internal)?;
    let is_used = connection.refresh != asked.token;
    // One that was used has got about, whoever shows it; one that is good keeps its connection from a client that it is not for.
    if connection.client != asked.client.id && (!is_used || connection.ended.is_some()) {
        return Ok(invalid_grant("the refresh token is another client's"));
    }
    if connection.ended.is_some() {
        return Ok(invalid_grant("the connection has ended; connect again"));
    }
    if is_used {
        let why = "the refresh token was used before, so the connection has ended; connect again";
        return reused(scope, &connection, EndedBy::Reuse, why);
    }
    if connection.is_idle(scope.now()) {
        // Its timer may be late; a token is not the better for it.
        let why = "the refresh token was not used for 90 days, so the connection has ended; connect again";
        end(scope, &connection, EndedBy::Unused, Actor::Policy)?;
        return Ok(invalid_grant(why));
    }
    let since = connection.created_at;
    let agent = willing(scope, connection.workspace, connection.agent, connection.person, since)?;
    let Some(agent) = agent.filter(|it| it.connections().any(|it| it == connection.id)) else {
        return Ok(invalid_grant("the agent is stopped, or whoever connected it may connect it no more"));
    };
    let (connection, agent) = renew(scope, Connection::clone(&connection), &agent, &asked.new)?;
    scope.put(agent);
    scope.put(connection.clone());
    Ok(Grant::Given(Arc::new(connection)))
}
