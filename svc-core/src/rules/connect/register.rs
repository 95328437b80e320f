//! A client registers itself; one that nobody connects an agent with goes by itself.

use std::sync::Arc;

use crate::refusal::Refusal;
use crate::state::connect::{CLIENT_LIFE, ClientAuth, ClientTally, OAuthClient, Redirect, UNUSED_CLIENTS_MAX};
use crate::turn::{Halt, Scope};
use crate::value::digest::Digest;
use crate::value::id::ClientId;
use crate::value::text::Label;

/// Registers a client.
#[derive(Clone, Debug)]
pub struct RegisterClient {
    /// What it calls itself.
    pub name: Label,
    /// Where it may be sent back to.
    pub redirects: Vec<Redirect>,
    /// How it says who it is.
    pub auth: ClientAuth,
    /// The digest of its secret, where it gets one.
    pub secret: Option<Digest>,
    /// The oldest that a scan found unused: it goes where there is no place otherwise.
    pub instead_of: Option<ClientId>,
}

/// Registers a client.
///
/// # Errors
/// `not_ready` while as many clients as there may be have never been used, and none of them is named to go.
pub fn register_client(scope: &mut Scope<'_>, asked: &RegisterClient) -> Result<Arc<OAuthClient>, Halt> {
    let mut unused = unused(scope)?;
    if unused >= UNUSED_CLIENTS_MAX {
        let named = asked.instead_of.map(|id| scope.get::<OAuthClient>(id)).transpose()?.flatten();
        let gone = named.filter(|it| !it.used).ok_or_else(Refusal::not_ready)?;
        scope.delete::<OAuthClient>(gone.id);
        unused = unused.saturating_sub(1);
    }
    let client = OAuthClient {
        id: scope.fresh(),
        name: asked.name.clone(),
        redirects: asked.redirects.clone(),
        auth: asked.auth,
        secret: asked.secret,
        used: false,
        created_at: scope.now(),
    };
    scope.put(ClientTally { id: ClientTally::key_id(), unused: unused.saturating_add(1) });
    scope.put(client.clone());
    Ok(Arc::new(client))
}

fn unused(scope: &mut Scope<'_>) -> Result<u32, Halt> {
    Ok(scope.get::<ClientTally>(ClientTally::key_id())?.map_or(0, |it| it.unused))
}

fn one_less(scope: &mut Scope<'_>) -> Result<(), Halt> {
    let unused = unused(scope)?.saturating_sub(1);
    scope.put(ClientTally { id: ClientTally::key_id(), unused });
    Ok(())
}

/// Keeps a client for good, now that somebody connects an agent with it. The URL of a client's metadata names no row.
pub(super) fn keep_client(scope: &mut Scope<'_>, client: &str) -> Result<(), Halt> {
    let Ok(id) = ClientId::parse(client) else { return Ok(()) };
    let row = scope.get::<OAuthClient>(id)?.ok_or_else(Refusal::not_found)?;
    if !row.used {
        one_less(scope)?;
        scope.put(OAuthClient { used: true, ..OAuthClient::clone(&row) });
    }
    Ok(())
}

/// Lets go of a client that nobody has used.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn expire_client(scope: &mut Scope<'_>, id: ClientId) -> Result<(), Halt> {
    let now = scope.now();
    let is_due = |it: &Arc<OAuthClient>| !it.used && now >= it.created_at.plus(CLIENT_LIFE);
    if scope.get::<OAuthClient>(id)?.as_ref().is_some_and(is_due) {
        one_less(scope)?;
        scope.delete::<OAuthClient>(id);
    }
    Ok(())
}
