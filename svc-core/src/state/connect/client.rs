//! OAuth clients that registered themselves (RFC 7591). Registering gives nothing: a person has to connect an agent.

use serde::{Deserialize, Serialize};

use super::redirect::Redirect;
use crate::value::digest::{ClientTallyId, Digest};
use crate::value::id::ClientId;
use crate::value::link::{Index, Link, Linked};
use crate::value::text::Label;
use crate::value::words::words;
use crate::value::{Id, Span, Timestamp};

/// How long a client is kept that nobody connects an agent with.
pub const CLIENT_LIFE: Span = Span::hours(24);
/// How many clients are kept that nobody has used.
pub const UNUSED_CLIENTS_MAX: u32 = 10_000;
/// Redirect URIs of one client.
pub const REDIRECTS_MAX: usize = 20;

/// A client that registered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OAuthClient {
    /// Its id.
    pub id: ClientId,
    /// What it calls itself: shown, never believed.
    pub name: Label,
    /// Where it may be sent back to.
    pub redirects: Vec<Redirect>,
    /// How it says who it is.
    pub auth: ClientAuth,
    /// The digest of its secret, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Digest>,
    /// Whether an agent was ever connected with it; one that was not goes by itself.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub used: bool,
    /// When it registered.
    pub created_at: Timestamp,
}

impl OAuthClient {
    /// Whether it may be sent back to `asked`.
    #[must_use]
    pub fn admits(&self, asked: &Redirect) -> bool {
        self.redirects.iter().any(|it| it.admits(asked))
    }
}

impl Linked for OAuthClient {
    fn links(&self) -> Vec<Link> {
        if self.used {
            return Vec::new();
        }
        let due = Link::wake_of(self.id.bits(), self.created_at.plus(CLIENT_LIFE));
        vec![due, Link::by_id(Index::ClientsUnused, 0, self.id)]
    }
}

/// How a client says who it is at the token endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuth {
    /// By its id alone.
    None,
    /// By a secret in the form.
    ClientSecretPost,
    /// By a secret in `authorization: Basic`.
    ClientSecretBasic,
}

words! {
    /// The default first.
    ClientAuth;
    None "none";
    ClientSecretPost "client_secret_post";
    ClientSecretBasic "client_secret_basic";
}

/// How many clients nobody has used yet: the guard of their bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientTally {
    /// The one row.
    pub id: ClientTallyId,
    /// How many.
    pub unused: u32,
}

impl ClientTally {
    /// The one row's key.
    #[must_use]
    pub fn key_id() -> ClientTallyId {
        ClientTallyId::of(&[])
    }
}

impl Linked for ClientTally {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}
