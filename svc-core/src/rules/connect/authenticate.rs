//! Which client calls the token endpoint (RFC 6749 part 2.3).

use crate::refusal::{Kind, Refusal};
use crate::state::connect::{ClientAuth, OAuthClient};
use crate::turn::{Halt, Scope};
use crate::value::digest::Digest;
use crate::value::id::ClientId;

/// A client as it shows itself.
#[derive(Clone, Debug)]
pub struct ClientShown {
    /// Its `client_id`: `mcp_…`, or the URL of its metadata, which has no secret.
    pub id: Box<str>,
    /// The digest of the secret that it showed, where it showed one.
    pub secret: Option<Digest>,
}

/// That a client is who it says: one with a secret shows it, one without shows none.
///
/// # Errors
/// [`Halt::Load`]; inside, `invalid_client`.
pub fn authenticate(scope: &mut Scope<'_>, shown: &ClientShown) -> Result<Result<(), Refusal>, Halt> {
    let no = |why| Ok(Err(Refusal::oauth(Kind::InvalidClient, why)));
    let Ok(id) = ClientId::parse(&shown.id) else {
        let is_url = shown.id.starts_with("https://") || shown.id.starts_with("http://");
        return if is_url && shown.secret.is_none() { Ok(Ok(())) } else { no("there is no such client") };
    };
    let Some(client) = scope.get::<OAuthClient>(id)? else { return no("there is no such client") };
    match (client.auth, client.secret, shown.secret) {
        (ClientAuth::None, _, None) => Ok(Ok(())),
        (ClientAuth::None, _, Some(_)) => no("this client has no secret"),
        (_, Some(kept), Some(secret)) if kept == secret => Ok(Ok(())),
        _ => no("the client's secret is missing or wrong"),
    }
}
