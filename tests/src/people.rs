//! People and machines of a site: members signed in with every role, service tokens, and what they send.

use std::sync::Arc;

use serde_json::{Value, json};
use svc_core::rules::people::by::{Person as Signed, Seat};
use svc_core::state::people::{
    Account, EmailUse, Member, MemberState, Membership, Principal, Proof, Role, ServiceToken, Session, TokenScope,
    Workspace,
};
use svc_core::store::{Commit, Committed, MemoryStore, Record, Row, Store as _, Write};
use svc_core::testing::world::BASE_URL;
use svc_core::value::digest::Digest;
use svc_core::value::id::{AccountId, PrincipalId, SessionId, TokenId};
use svc_core::value::text::{Email, Label};
use svc_core::value::{Id as _, Span, Timestamp};
use svc_http::totp::code_at;

use crate::client::{Client, Got};
use crate::site::Site;

/// A member who is signed in.
#[derive(Clone, Debug)]
pub struct Person {
    /// Who they are in the workspace.
    pub principal: PrincipalId,
    /// Their account.
    pub account: AccountId,
    /// Where they are reached.
    pub email: String,
    /// The session's cookie, without its name.
    pub sid: String,
    /// Who they are to a command.
    pub signed: Signed,
}

impl Site {
    /// A new member with this role, signed in by a password that nobody typed: its rows are put into the store.
    ///
    /// # Panics
    /// Where the rows are not in memory.
    pub fn member(&self, role: Role) -> Person {
        let (now, workspace) = (self.now(), self.workspace());
        let bits = self.fresh_bits();
        let (account, principal) = (AccountId::from_bits(bits), PrincipalId::from_bits(bits));
        let email = Email::parse(&format!("{}-{bits:032x}@example.com", role.as_str())).expect("an address");
        let membership = Membership { workspace, principal };
        let member = Member::new(role, MemberState::Active, account);
        self.plant(Account {
            memberships: vec![membership],
            signed_in_at: Some(now),
            ..Account::new(account, email.clone(), now)
        });
        self.plant(EmailUse { id: EmailUse::of_account(&email), account: Some(account), principal: None });
        self.plant(EmailUse {
            id: EmailUse::of_principal(workspace, &email),
            account: None,
            principal: Some(principal),
        });
        self.plant(Principal { member: Some(member), ..Principal::new(principal, workspace, email.clone(), now) });
        if role == Role::Owner {
            let found = self.memory().load(&[Workspace::key(workspace)]).expect("a load succeeds").remove(0);
            let mut row = Workspace::clone(found.record.as_ref().and_then(Workspace::peel).expect("a workspace"));
            row.owners.push(principal);
            self.plant(row);
        }
        let sid = self.sign_in(account);
        let session = Session::id_of(&Digest::of(&sid));
        let signed = Signed { workspace, principal, account, seat: Seat::Session(session) };
        Person { principal, account, email: email.as_str().to_owned(), sid, signed }
    }

    /// One more session of an account; its cookie.
    ///
    /// # Panics
    /// Where the rows are not in memory.
    pub fn sign_in(&self, account: AccountId) -> String {
        let sid = format!("sid{:032x}{:08x}", self.fresh_bits(), 0);
        let digest = Digest::of(&sid);
        self.plant(Session {
            id: Session::id_of(&digest),
            digest,
            session: SessionId::from_bits(self.fresh_bits()),
            account,
            epoch: 0,
            proof: Proof::Password,
            must_enroll: false,
            created_at: self.now(),
            seen_at: self.now(),
            ended_at: None,
        });
        sid
    }

    /// A new service token with these scopes, good for 90 days from anywhere.
    ///
    /// # Panics
    /// Where the rows are not in memory.
    pub fn token(&self, scopes: &[TokenScope]) -> String {
        let text = format!("ims_{:032x}{:011x}", self.fresh_bits(), 0);
        let digest = Digest::of(&text);
        let token = TokenId::from_bits(self.fresh_bits());
        self.plant(ServiceToken {
            id: ServiceToken::id_of(&digest),
            digest,
            token,
            workspace: self.workspace(),
            name: Label::parse(&format!("token {}", token.bits() % 1_000_000)).expect("a name"),
            scopes: scopes.to_vec(),
            ip_allow: Vec::new(),
            created_by: None,
            created_at: self.now(),
            expires_at: self.now().plus(Span::hours(90 * 24)),
            revoked_at: None,
        });
        text
    }

    /// Puts a row into the store behind the gate's back.
    ///
    /// # Panics
    /// Where the rows are not in memory.
    pub fn plant<R: Row>(&self, row: R) {
        let mut store: MemoryStore = self.memory();
        let key = R::key(row.id());
        let found = store.load(&[key]).expect("a load succeeds").remove(0);
        let unlink = found.record.as_ref().map(Record::links).unwrap_or_default();
        let record = R::wrap(Arc::new(row));
        let link = record.links();
        let write = Write { key, record: Some(record), unlink, link };
        let commit = Commit { checks: vec![(key, found.stamp)], writes: vec![write] };
        assert!(
            matches!(store.commit(&commit).expect("a commit succeeds"), Committed::Applied(_)),
            "nobody else writes"
        );
    }
}

impl Person {
    /// Sets up a second factor: its secret and the recovery codes.
    pub async fn second_factor(&self, client: &mut Client, now: Timestamp) -> (Vec<u8>, Vec<String>) {
        second_factor(client, &self.sid, now).await
    }

    /// Sends a request of the console as its pages do: with the session's cookie, and on writes the mark of its own pages.
    pub async fn ask(&self, client: &mut Client, method: &str, path: &str, body: Option<&Value>) -> Got {
        ask(client, Some(&self.sid), method, path, body).await
    }
}

/// Sets up a second factor with this session: its secret and the recovery codes.
pub async fn second_factor(client: &mut Client, sid: &str, now: Timestamp) -> (Vec<u8>, Vec<String>) {
    let begun = ask(client, Some(sid), "POST", "/api/me/totp", Some(&json!({}))).await.ok();
    let secret = unbase32(begun["secret"].as_str().unwrap());
    let code = json!({ "code": code_now(&secret, now) });
    let made = ask(client, Some(sid), "POST", "/api/me/totp/confirm", Some(&code)).await.ok();
    (secret, serde_json::from_value(made["recoveryCodes"].clone()).unwrap())
}

/// The code that an authenticator app with this secret shows at `now`.
pub fn code_now(secret: &[u8], now: Timestamp) -> String {
    code_at(secret, u64::try_from(now.as_millis() / 30_000).unwrap())
}

/// Sends a request of the console as its pages do.
pub async fn ask(client: &mut Client, sid: Option<&str>, method: &str, path: &str, body: Option<&Value>) -> Got {
    let host = BASE_URL.trim_start_matches("https://");
    let cookie = sid.map(|it| format!("__Host-sid={it}"));
    let mut headers = vec![("host", host)];
    headers.extend(cookie.as_deref().map(|it| ("cookie", it)));
    if method != "GET" && method != "HEAD" {
        headers.extend([("x-svc-csrf", "1"), ("origin", BASE_URL)]);
    }
    let text = body.map(Value::to_string);
    headers.extend(text.as_ref().map(|_| ("content-type", "application/json")));
    client.ask(method, path, &headers, text.unwrap_or_default().as_bytes()).await
}

/// The bytes of a base32 text, as authenticator applications take it.
///
/// # Panics
/// Where it is none.
#[must_use]
pub fn unbase32(text: &str) -> Vec<u8> {
    let (mut bits, mut held, mut out) = (0_u32, 0, Vec::new());
    for letter in text.bytes() {
        let value = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".iter().position(|it| *it == letter).expect("base32");
        bits = (bits << 5 | u32::try_from(value).expect("base32")) & 0xfff;
        held += 5;
        if held >= 8 {
            held -= 8;
            out.push(u8::try_from(bits >> held & 0xff).expect("base32"));
        }
    }
    out
}
