//! Agents that come through OAuth: clients, what a person is asked about them, codes, connections and their tokens.
//!
//! **Invariant:** rows are found by the digest of a secret; the secret itself is nowhere.

mod client;
mod code;
mod connection;
mod consent;
mod redirect;

pub use client::{CLIENT_LIFE, ClientAuth, ClientTally, OAuthClient, REDIRECTS_MAX, UNUSED_CLIENTS_MAX};
pub use code::{AuthCode, CODE_KEPT, CODE_LIFE, CodeState};
pub use connection::{
    ACCESS_LIFE, CONNECTION_IDLE, CONNECTIONS_MAX, Connection, Ended, EndedBy, RefreshToken, TOKENS_KEPT, UNUSED_AFTER,
};
pub use consent::{CONSENT_LIFE, Consent, STATE_MAX, Wish};
pub use redirect::Redirect;
