//! A client gives its tokens back (RFC 7009). Nobody learns whether there was such a token; a client that has a secret learns that it did
//! not show it (part 2.1), as it would else take a token for revoked that is not.

use super::authenticate::{ClientShown, authenticate};
use super::end::end;
use crate::state::connect::{ClientAuth, Connection, EndedBy, OAuthClient, RefreshToken};
use crate::state::evidence::Actor;
use crate::state::people::Credential;
use crate::turn::{Halt, Scope};
use crate::value::digest::Digest;
use crate::value::id::{ClientId, ConnectionId};

/// Ends the connection that a token is of.
#[derive(Clone, Debug)]
pub struct RevokeOAuth {
    /// The client.
    pub client: ClientShown,
    /// The digest of either token.
    pub token: Digest,
}

/// Ends the connection that a token of this client is of, if it is of one.
///
/// # Errors
/// `invalid_client` where the client has a secret and shows another or none.
pub fn revoke_oauth(scope: &mut Scope<'_>, asked: &RevokeOAuth) -> Result<(), Halt> {
    if let Err(unknown) = authenticate(scope, &asked.client)? {
        let id = ClientId::parse(&asked.client.id).ok();
        let client = id.map(|id| scope.get::<OAuthClient>(id)).transpose()?.flatten();
        // One that is not known, or has no secret to show, is told nothing.
        return if client.is_some_and(|it| it.auth != ClientAuth::None) { Err(unknown.into()) } else { Ok(()) };
    }
    let Some(id) = connection(scope, &asked.token)? else { return Ok(()) };
    let found = scope.get::<Connection>(id)?.filter(|it| it.client == asked.client.id);
    let Some(connection) = found else { return Ok(()) };
    end(scope, &connection, EndedBy::Revoked, Actor::Agent(connection.agent))
}

fn connection(scope: &mut Scope<'_>, token: &Digest) -> Result<Option<ConnectionId>, Halt> {
    if let Some(access) = scope.get::<Credential>(Credential::id_of(token))?.filter(|it| it.digest == *token) {
        return Ok(access.binding.connection);
    }
    let refresh = scope.get::<RefreshToken>(RefreshToken::id_of(token))?.filter(|it| it.digest == *token);
    Ok(refresh.map(|it| it.connection))
}
