//! What a person is asked before a client acts as an agent of theirs: a page's single-use request.

use serde::{Deserialize, Serialize};

use super::redirect::Redirect;
use crate::value::digest::{ConsentId, Digest, SessionDigest};
use crate::value::link::{Link, Linked};
use crate::value::text::Label;
use crate::value::{Span, Timestamp};

/// How long a page can be answered.
pub const CONSENT_LIFE: Span = Span::minutes(10);
/// Characters of a client's `state`.
pub const STATE_MAX: usize = 4_096;

/// What a client wants, as far as it was found good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// Its `client_id`: `mcp_…`, or the URL of its metadata.
    pub client: Box<str>,
    /// What it calls itself.
    pub name: Label,
    /// Where the answer goes, byte for byte.
    pub redirect: Redirect,
    /// The S256 challenge of RFC 7636.
    pub challenge: Box<str>,
    /// What the client wants to hear back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Box<str>>,
}

/// A page that was shown to a signed-in person and can be answered once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consent {
    /// The first half of the digest.
    pub id: ConsentId,
    /// The whole digest of its token.
    pub digest: Digest,
    /// The session that it was shown to.
    pub session: SessionDigest,
    /// What the client wants.
    pub wish: Wish,
    /// Until when it can be answered.
    pub expires_at: Timestamp,
}

impl Consent {
    /// The row of the page with this digest.
    #[must_use]
    pub fn id_of(digest: &Digest) -> ConsentId {
        ConsentId::of(&[digest.as_bytes()])
    }
}

impl Linked for Consent {
    fn links(&self) -> Vec<Link> {
        vec![Link::wake_of(self.id.bits(), self.expires_at)]
    }
}
