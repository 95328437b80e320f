//! The way of an OAuth client, step by step, as a browser and a client go it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use svc_core::state::people::Role;
use svc_core::testing::world::BASE_URL;

use crate::client::{Client, Got};
use crate::people::Person;
use crate::requests::{OFFICE, payment};
use crate::site::{Agent, Site};

/// The host that the server answers to.
pub const HOST: &str = "gate.example.com";
/// A verifier with every kind of character that one may have.
pub const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk.~";
/// Where the client is sent back to.
pub const REDIRECT: &str = "http://localhost:51645/callback";

/// An owner, an agent, and a client that is registered.
#[derive(Debug)]
pub struct Scene {
    /// The site.
    pub site: Site,
    /// A connection.
    pub client: Client,
    /// An owner.
    pub owner: Person,
    /// An agent.
    pub agent: Agent,
    /// The id of the client.
    pub id: String,
}

impl Scene {
    /// Of a public client.
    pub async fn new() -> Self {
        let site = Site::start().await;
        let mut client = site.client().await;
        let (owner, agent) = (site.member(Role::Owner), site.agent(&[OFFICE]));
        let id = public(&mut client).await;
        Self { site, client, owner, agent, id }
    }

    /// The page that a browser with these cookies is shown.
    pub async fn page(&mut self, cookies: &str) -> Got {
        let challenge = challenge(VERIFIER);
        let path = format!("/oauth/authorize?{}", form(&wish(&self.id, &challenge)));
        self.client.ask("GET", &path, &[("host", HOST), ("cookie", cookies)], b"").await
    }

    /// What comes of the owner's yes.
    pub async fn code(&mut self) -> String {
        code(&mut self.client, &self.owner, &self.id, &self.agent.id.to_string()).await
    }

    /// The tokens that the client has for it.
    pub async fn connect(&mut self) -> Tokens {
        connect(&mut self.client, &self.owner, &self.id, &self.agent.id.to_string()).await
    }
}

/// The S256 challenge of a verifier.
#[must_use]
pub fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()))
}

/// Members as a form or query has them.
#[must_use]
pub fn form(members: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(members).finish()
}

/// Posts a form as a client does.
pub async fn post(client: &mut Client, path: &str, members: &[(&str, &str)], more: &[(&str, &str)]) -> Got {
    let mut headers = vec![("host", HOST), ("content-type", "application/x-www-form-urlencoded")];
    headers.extend_from_slice(more);
    client.ask("POST", path, &headers, form(members).as_bytes()).await
}

/// Status and word of a flat error.
#[must_use]
pub fn flat(got: &Got) -> (u16, String) {
    (got.status, got.json()["error"].as_str().unwrap_or_default().to_owned())
}

/// What [`flat`] is to be.
#[must_use]
pub fn refused(status: u16, word: &str) -> (u16, String) {
    (status, word.to_owned())
}

/// Registers a client.
pub async fn register(client: &mut Client, body: &Value) -> Got {
    client.ask("POST", "/oauth/register", &[("host", HOST)], body.to_string().as_bytes()).await
}

/// Registers a public client that is sent back to a loopback address; its id.
pub async fn public(client: &mut Client) -> String {
    let body = json!({ "client_name": "Desk", "redirect_uris": ["http://localhost/callback"] });
    register(client, &body).await.made()["client_id"].as_str().unwrap_or_default().to_owned()
}

/// The members that a client asks a person with.
#[must_use]
pub fn wish<'a>(client_id: &'a str, challenge: &'a str) -> Vec<(&'static str, &'a str)> {
    vec![
        ("response_type", "code"),
        ("client_id", client_id),
        ("redirect_uri", REDIRECT),
        ("code_challenge", challenge),
        ("code_challenge_method", "S256"),
        ("state", "a b&c"),
        ("resource", "https://gate.example.com/mcp"),
        ("scope", "svc:agent"),
    ]
}

/// Opens the page that asks.
pub async fn open(client: &mut Client, person: Option<&Person>, wish: &[(&str, &str)]) -> Got {
    let cookie = person.map(|it| format!("__Host-sid={}", it.sid));
    let mut headers = vec![("host", HOST)];
    headers.extend(cookie.as_deref().map(|it| ("cookie", it)));
    client.ask("GET", &format!("/oauth/authorize?{}", form(wish)), &headers, b"").await
}

/// The value of a page's hidden member.
///
/// # Panics
/// Where the page has none.
#[must_use]
pub fn hidden(page: &str, name: &str) -> String {
    let begin = format!("name=\"{name}\" value=\"");
    let (_, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("no {name} in {page}"));
    rest.split('"').next().unwrap_or_default().replace("&amp;", "&")
}

/// The cookies that an answer sets.
#[must_use]
pub fn cookies(got: &Got) -> Vec<String> {
    got.headers.iter().filter(|(name, _)| name == "set-cookie").map(|(_, value)| value.clone()).collect()
}

/// The cookie of this name as a browser sends it back.
#[must_use]
pub fn cookie(got: &Got, name: &str) -> Option<String> {
    let set = cookies(got).into_iter().find(|it| it.split('=').next() == Some(name))?;
    set.split(';').next().map(str::to_owned)
}

/// Answers a page of signing in, as the browser that it was shown to does.
///
/// # Panics
/// Where it came without the cookie of its form.
pub async fn send(client: &mut Client, page: &Got, members: &[(&str, &str)]) -> Got {
    let form = cookie(page, "__Host-form").expect("a form's cookie");
    send_with(client, page, members, &form).await
}

/// The same with these cookies.
pub async fn send_with(client: &mut Client, page: &Got, members: &[(&str, &str)], cookies: &str) -> Got {
    let text = page.text();
    let (request, next) = (hidden(&text, "request"), hidden(&text, "next"));
    let all = [&[("request", request.as_str()), ("next", next.as_str())][..], members].concat();
    post(client, "/sign-in", &all, &[("cookie", cookies), ("origin", BASE_URL)]).await
}

/// Answers the page.
pub async fn decide(client: &mut Client, person: &Person, members: &[(&str, &str)], origin: Option<&str>) -> Got {
    let cookie = format!("__Host-sid={}", person.sid);
    let mut headers = vec![("cookie", cookie.as_str())];
    headers.extend(origin.map(|it| ("origin", it)));
    post(client, "/oauth/authorize", members, &headers).await
}

/// A member of the address that an answer leads to.
///
/// # Panics
/// Where it leads nowhere.
#[must_use]
pub fn led(got: &Got, name: &str) -> Option<String> {
    assert_eq!(got.status, 303, "{}", got.text());
    let to = url::Url::parse(got.header("location").expect("a location")).expect("an address");
    to.query_pairs().find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
}

/// A code for a client, from a person who says yes for an agent.
///
/// # Panics
/// Where there is none.
pub async fn code(client: &mut Client, person: &Person, client_id: &str, agent: &str) -> String {
    let challenge = challenge(VERIFIER);
    let page = open(client, Some(person), &wish(client_id, &challenge)).await;
    assert_eq!(page.status, 200, "{}", page.text());
    let request = hidden(&page.text(), "request");
    let said = [("request", request.as_str()), ("agentId", agent), ("choice", "allow")];
    let got = decide(client, person, &said, Some(BASE_URL)).await;
    led(&got, "code").expect("a code")
}

/// Shows a code with everything right, but for what `change` changes.
pub async fn exchange(client: &mut Client, client_id: &str, code: &str, change: &[(&str, &str)]) -> Got {
    let mut members = vec![
        ("grant_type", "authorization_code"),
        ("code", code),
        ("code_verifier", VERIFIER),
        ("client_id", client_id),
        ("redirect_uri", REDIRECT),
        ("resource", "https://gate.example.com/mcp"),
    ];
    for (name, value) in change {
        members.retain(|(known, _)| known != name);
        members.push((name, value));
    }
    post(client, "/oauth/token", &members, &[]).await
}

/// Shows a refresh token.
pub async fn refresh(client: &mut Client, client_id: &str, token: &str) -> Got {
    let members = [("grant_type", "refresh_token"), ("refresh_token", token), ("client_id", client_id)];
    post(client, "/oauth/token", &members, &[]).await
}

/// Tokens of a new connection.
#[derive(Clone, Debug)]
pub struct Tokens {
    /// The access token.
    pub access: String,
    /// The refresh token.
    pub refresh: String,
}

/// The tokens in an answer.
///
/// # Panics
/// Where there are none.
#[must_use]
pub fn tokens(got: &Got) -> Tokens {
    let body = got.clone().ok();
    let text = |name: &str| body[name].as_str().expect("a token").to_owned();
    Tokens { access: text("access_token"), refresh: text("refresh_token") }
}

/// Goes the whole way.
pub async fn connect(client: &mut Client, person: &Person, client_id: &str, agent: &str) -> Tokens {
    let code = code(client, person, client_id, agent).await;
    tokens(&exchange(client, client_id, &code, &[]).await)
}

/// The status of asking the gate with an access token.
pub async fn works(scene: &mut Scene, access: &str) -> u16 {
    scene.client.authorize(access, &payment(100)).await.status
}
