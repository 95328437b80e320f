//! Systems that send what they sign.

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;
use svc_core::state::edge::{ConfigChange, IntegrationKind, signature};
use svc_core::value::{Span, Timestamp};

use crate::client::{Client, Got};
use crate::receiver::{SECRET, connect_kind};
use crate::site::Site;

/// A site that hears from a system, and that system.
#[derive(Debug)]
pub struct Sender {
    /// The site.
    pub site: Site,
    /// A connection to it.
    pub client: Client,
    /// Where events are sent to.
    pub path: String,
    header: &'static str,
    sent: i64,
}

impl Sender {
    /// A sender of this kind, to a site of its own, that signs by `t=,v1=` in this header.
    pub async fn new(kind: IntegrationKind, header: &'static str) -> Self {
        let site = Site::start().await;
        connect_kind(&site, kind, ConfigChange::default());
        let client = site.client().await;
        let path = format!("/hooks/{}/{}", kind.as_str(), site.workspace());
        Self { site, client, path, header, sent: 0 }
    }

    /// Signs a body at an instant.
    #[must_use]
    pub fn signed(&self, at: Timestamp, body: &[u8]) -> String {
        signature(at, body, [SECRET.as_bytes()])
    }

    /// Sends a body with these headers.
    pub async fn send(&mut self, headers: &[(&str, &str)], body: &[u8]) -> Got {
        self.client.ask("POST", &self.path.clone(), headers, body).await
    }

    /// Sends an event, signed at a time that no event before was signed at.
    pub async fn tell(&mut self, event: &Value) -> Got {
        self.sent += 1;
        // A clock that stands still would make the same request of the same event.
        let at = self.site.now().minus(Span::millis(self.sent * 1_000));
        let body = event.to_string();
        let signed = self.signed(at, body.as_bytes());
        self.send(&[(self.header, &signed)], body.as_bytes()).await
    }
}

/// How a code host signs a body.
///
/// # Panics
/// Never: a key of any length is one.
#[must_use]
pub fn code_host_signature(body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("a key");
    mac.update(body.as_bytes());
    format!("sha256={}", hex::encode(mac.finalize().into_bytes()))
}
