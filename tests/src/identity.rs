//! An identity provider for tests: it describes itself, has keys, and turns codes into ID tokens as OpenID Connect has it, or as a
//! test tells it to.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair as RsaPair, KeySize};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use svc_core::rules::edge::integrations::{CreateIntegration, NewSecret};
use svc_core::rules::people::by::By;
use svc_core::state::edge::{ConfigChange, Integration, IntegrationKind, IntegrationSlot};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use url::Url;

use crate::site::Site;

/// What it calls a site, and the secret that they share. Both hold signs that a form and a header write in another way.
pub const CLIENT_ID: &str = "svc:site+1";
/// See [`CLIENT_ID`].
pub const CLIENT_SECRET: &str = "s3cret&of=the:site%21";

/// How it behaves beyond what it is there for.
#[derive(Debug)]
pub struct Conduct {
    /// The members of its description that are otherwise; `null` takes one away.
    pub described: BTreeMap<&'static str, Value>,
    /// The claims of its tokens that are otherwise; `null` takes one away.
    pub claims: BTreeMap<&'static str, Value>,
    /// What its tokens' headers say beside `kid`.
    pub alg: &'static str,
    /// What it answers in the place of a path, as bytes of HTTP.
    pub answers: BTreeMap<&'static str, Vec<u8>>,
    /// The secret that it knows the site by.
    pub secret: &'static str,
    /// With which status and word it tells that it does not know the site so.
    pub unknown_client: (u16, &'static str),
}

/// Somebody who was sent to it and has signed in.
#[derive(Clone, Debug)]
struct Authorized {
    client_id: String,
    redirect: String,
    nonce: String,
    challenge: String,
    claims: Value,
}

#[derive(Debug)]
struct Inner {
    address: SocketAddr,
    elliptic: EcdsaKeyPair,
    rsa: RsaPair,
    conduct: Conduct,
    codes: BTreeMap<String, Authorized>,
    issued: u32,
    /// Calls of each path.
    calls: BTreeMap<String, u32>,
}

/// An identity provider on a free port of loopback.
#[derive(Debug)]
pub struct IdentityProvider {
    inner: Arc<Mutex<Inner>>,
    task: JoinHandle<()>,
}

impl IdentityProvider {
    /// One that behaves.
    ///
    /// # Panics
    /// Where there is no free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let inner = Arc::new(Mutex::new(Inner {
            address: listener.local_addr().expect("an address"),
            elliptic: EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key"),
            rsa: RsaPair::generate(KeySize::Rsa2048).expect("a key"),
            conduct: Conduct {
                described: BTreeMap::new(),
                claims: BTreeMap::new(),
                alg: "ES256",
                answers: BTreeMap::new(),
                secret: CLIENT_SECRET,
                unknown_client: (400, "invalid_client"),
            },
            codes: BTreeMap::new(),
            issued: 0,
            calls: BTreeMap::new(),
        }));
        let shared = Arc::clone(&inner);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(hear(stream, Arc::clone(&shared)));
            }
        });
        Self { inner, task }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("nobody panicked")
    }

    /// Its issuer.
    #[must_use]
    pub fn issuer(&self) -> String {
        format!("http://{}", self.inner().address)
    }

    /// Has it behave otherwise from now on.
    pub fn behave(&self, change: impl FnOnce(&mut Conduct)) {
        change(&mut self.inner().conduct);
    }

    /// How often a path was asked for.
    #[must_use]
    pub fn calls(&self, path: &str) -> u32 {
        self.inner().calls.get(path).copied().unwrap_or_default()
    }

    /// Its integration at a site, made by the operator's shell.
    ///
    /// # Panics
    /// Where the site has one.
    pub fn connect(&self, site: &Site) -> Arc<Integration> {
        let slot = IntegrationSlot { workspace: site.workspace(), kind: IntegrationKind::Oidc };
        let sealed = site.gate.seal(&Integration::purpose(slot), CLIENT_SECRET.as_bytes()).expect("a vault").into();
        let config = ConfigChange {
            issuer: Some(Some(self.issuer().into())),
            client_id: Some(Some(CLIENT_ID.into())),
            ..ConfigChange::default()
        };
        let secret = NewSecret { sealed, hint: "%21".into() };
        let made = CreateIntegration { by: By::Program, workspace: slot.workspace, kind: slot.kind, secret, config };
        site.gate.execute(made).expect("an integration")
    }

    /// What a browser does that was led here: its person signs in as whom the claims are about, and it is led back, to this address.
    ///
    /// # Panics
    /// Where it was led here wrongly.
    #[must_use]
    pub fn signs_in(&self, led: &str, claims: Value) -> Url {
        let led = Url::parse(led).expect("a URL");
        let sent: BTreeMap<String, String> = led.query_pairs().into_owned().collect();
        let get = |name: &str| sent.get(name).cloned().unwrap_or_else(|| panic!("no {name}: {led}"));
        let said = ["response_type", "scope", "code_challenge_method"].map(get);
        assert_eq!(said, ["code", "openid email", "S256"].map(str::to_owned));
        assert_eq!((led.host_str(), led.path()), (Some("127.0.0.1"), "/login"));
        let mut inner = self.inner();
        inner.issued += 1;
        let code = format!("code-{}", inner.issued);
        let redirect = get("redirect_uri");
        let authorized = Authorized {
            client_id: get("client_id"),
            redirect: redirect.clone(),
            nonce: get("nonce"),
            challenge: get("code_challenge"),
            claims,
        };
        inner.codes.insert(code.clone(), authorized);
        let mut back = Url::parse(&redirect).expect("a URL");
        back.query_pairs_mut().append_pair("code", &code).append_pair("state", &get("state"));
        back
    }
}

impl Drop for IdentityProvider {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn hear(mut stream: TcpStream, inner: Arc<Mutex<Inner>>) -> Option<()> {
    let (mut heard, mut chunk) = (Vec::new(), [0; 4_096]);
    let end = loop {
        if let Some(end) = heard.windows(4).position(|it| it == b"\r\n\r\n") {
            break end + 4;
        }
        let read = stream.read(&mut chunk).await.ok().filter(|read| *read > 0)?;
        heard.extend_from_slice(&chunk[..read]);
    };
    let head = String::from_utf8_lossy(&heard[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let header = |name: &str| {
        let found = head.split("\r\n").filter_map(|line| line.split_once(": "));
        found.filter(|(it, _)| it.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).next()
    };
    let length: usize = header("content-length").and_then(|it| it.parse().ok()).unwrap_or(0);
    while heard.len() < end + length {
        let read = stream.read(&mut chunk).await.ok().filter(|read| *read > 0)?;
        heard.extend_from_slice(&chunk[..read]);
    }
    let answer = inner.lock().ok()?.answer(&path, header("authorization").as_deref(), &heard[end..]);
    stream.write_all(&answer).await.ok()?;
    stream.shutdown().await.ok()
}

impl Inner {
    fn answer(&mut self, path: &str, authorization: Option<&str>, body: &[u8]) -> Vec<u8> {
        *self.calls.entry(path.to_owned()).or_default() += 1;
        if let Some(answer) = self.conduct.answers.get(path) {
            return answer.clone();
        }
        match path {
            "/.well-known/openid-configuration" => document(200, &self.description()),
            "/keys" => document(200, &self.keys()),
            "/token" => match self.token(authorization, body) {
                Ok(token) => document(
                    200,
                    &json!({ "access_token": "never-used", "token_type": "Bearer", "expires_in": 300, "id_token": token }),
                ),
                Err(error) => {
                    let unknown = self.conduct.unknown_client;
                    let (status, error) = if error == "invalid_client" { unknown } else { (400, error) };
                    document(status, &json!({ "error": error, "error_description": "<b>provider's words</b>" }))
                }
            },
            _ => document(404, &json!({})),
        }
    }

    fn issuer(&self) -> String {
        format!("http://{}", self.address)
    }

    fn description(&self) -> Value {
        let issuer = self.issuer();
        let mut said = json!({
            "issuer": issuer,
            "authorization_endpoint": format!("{issuer}/login"),
            "token_endpoint": format!("{issuer}/token"),
            "jwks_uri": format!("{issuer}/keys"),
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256", "RS256"],
        });
        overlay(&mut said, &self.conduct.described);
        said
    }

    fn keys(&self) -> Value {
        let of = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let (x, y) = self.elliptic.public_key().as_ref()[1..].split_at(32);
        json!({ "keys": [
            { "kty": "EC", "crv": "P-256", "kid": "ES256", "use": "sig", "x": of(x), "y": of(y) },
            // In the public half's DER the modulus of 2048 bits stands behind nine bytes.
            { "kty": "RSA", "kid": "RS256", "use": "sig", "n": of(&self.rsa.public_key().as_ref()[9..265]), "e": "AQAB" },
        ] })
    }

    /// Turns a code into a token, for whoever shows who they are and what they began with; once.
    fn token(&mut self, authorization: Option<&str>, body: &[u8]) -> Result<String, &'static str> {
        let form: BTreeMap<String, String> = url::form_urlencoded::parse(body).into_owned().collect();
        let get = |name: &str| form.get(name).map(String::as_str);
        let methods = self.conduct.described.get("token_endpoint_auth_methods_supported");
        let in_form = methods.is_some_and(|it| it == &json!(["client_secret_post"]));
        let shown = match authorization.and_then(|it| it.strip_prefix("Basic ")) {
            Some(basic) if !in_form && get("client_secret").is_none() => {
                let pair =
                    STANDARD.decode(basic).ok().and_then(|it| String::from_utf8(it).ok()).ok_or("invalid_client")?;
                let (id, secret) = pair.split_once(':').ok_or("invalid_client")?;
                let plain = |it: &str| {
                    url::form_urlencoded::parse(format!("x={it}").as_bytes()).next().map(|it| it.1.into_owned())
                };
                (plain(id), plain(secret))
            }
            None if in_form => (get("client_id").map(str::to_owned), get("client_secret").map(str::to_owned)),
            _ => return Err("invalid_client"),
        };
        if shown != (Some(CLIENT_ID.to_owned()), Some(self.conduct.secret.to_owned())) {
            return Err("invalid_client");
        }
        if get("grant_type") != Some("authorization_code") {
            return Err("unsupported_grant_type");
        }
        let authorized = get("code").and_then(|it| self.codes.remove(it)).ok_or("invalid_grant")?;
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(get("code_verifier").unwrap_or_default()));
        let fits = authorized.client_id == CLIENT_ID
            && get("redirect_uri") == Some(&authorized.redirect)
            && challenge == authorized.challenge;
        if fits { Ok(self.signed(&authorized)) } else { Err("invalid_grant") }
    }

    fn signed(&self, of: &Authorized) -> String {
        let mut claims = json!({ "iss": self.issuer(), "aud": of.client_id, "nonce": of.nonce });
        for (name, value) in of.claims.as_object().into_iter().flatten() {
            claims[name] = value.clone();
        }
        overlay(&mut claims, &self.conduct.claims);
        let alg = self.conduct.alg;
        let header = json!({ "alg": alg, "kid": if alg == "HS256" { "RS256" } else { alg }, "typ": "JWT" });
        let signed = [&header, &claims].map(|it| URL_SAFE_NO_PAD.encode(it.to_string())).join(".");
        let signature = match alg {
            "ES256" => {
                self.elliptic.sign(&SystemRandom::new(), signed.as_bytes()).expect("a signature").as_ref().to_vec()
            }
            "RS256" => {
                let mut signature = vec![0; self.rsa.public_modulus_len()];
                let made = self.rsa.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature);
                made.map(|()| signature).expect("a signature")
            }
            // By the public key as if it were a shared one.
            "HS256" => {
                let mut mac = Hmac::<Sha256>::new_from_slice(self.rsa.public_key().as_ref()).expect("a key");
                mac.update(signed.as_bytes());
                mac.finalize().into_bytes().to_vec()
            }
            _ => Vec::new(),
        };
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

fn overlay(said: &mut Value, changes: &BTreeMap<&'static str, Value>) {
    let members = said.as_object_mut().expect("an object");
    for (name, value) in changes {
        match value {
            Value::Null => drop(members.remove(*name)),
            value => drop(members.insert((*name).to_owned(), value.clone())),
        }
    }
}

fn document(status: u16, json: &Value) -> Vec<u8> {
    let body = json.to_string();
    let head = format!("content-type: application/json\r\ncache-control: no-store\r\ncontent-length: {}", body.len());
    format!("HTTP/1.1 {status} It\r\n{head}\r\n\r\n{body}").into_bytes()
}
