//! A site whose people come by an identity provider, and browsers that are led there and back.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use svc_core::rules::people::members::MemberDone;
use svc_core::state::edge::Integration;
use svc_core::state::people::{Role, Settings};
use svc_core::testing::people::invitation;
use svc_core::testing::world::BASE_URL;
use svc_core::value::domain::Domain;
use svc_core::value::id::{AccountId, PrincipalId};
use svc_http::upstream::Allowed;
use url::Url;

use crate::client::{Client, Got};
use crate::identity::IdentityProvider;
use crate::receiver::{Names, Receiver, Reply, tls};
use crate::site::Site;

/// The domain that the tests' certificate is of.
pub const DOMAIN: &str = "hooks.example.com";
/// Somebody with an address of that domain.
pub const ANN: &str = "ann@hooks.example.com";

fn settings(require_sso: bool) -> Settings {
    let mut settings = Settings::default();
    settings.sign_in.sso_domains = vec![Domain::parse(DOMAIN).unwrap(), Domain::parse("other.example").unwrap()];
    settings.sign_in.require_sso = require_sso;
    settings
}

/// A site with a provider, and the domain that says whose it is.
#[derive(Debug)]
pub struct Stage {
    /// The site.
    pub site: Site,
    /// The provider.
    pub provider: IdentityProvider,
    /// Where the domain says whose it is.
    pub domain: Receiver,
    /// What names the provider.
    pub integration: Arc<Integration>,
}

impl Stage {
    /// A site whose workspace has a provider, and names the domain and `other.example`.
    pub async fn set() -> Self {
        let (provider, domain, names) = (IdentityProvider::start().await, Receiver::start_tls().await, Names::new());
        names.set(DOMAIN, &[&["127.0.0.1"]]);
        let port = domain.address.port();
        let site = Site::with(|plan| {
            plan.settings = settings(false);
            plan.config.allow_private_callbacks = true;
            plan.config.outbound.allow = Allowed::parse(["127.0.0.1", DOMAIN]).unwrap();
            plan.config.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
            plan.config.outbound.ca_file = Some(tls("ca.pem"));
            (plan.names, plan.proof_port) = (Some(names), Some(port));
        })
        .await;
        let integration = provider.connect(&site);
        Self { site, provider, domain, integration }
    }

    /// Has the domain say that it is the workspace's.
    ///
    /// # Panics
    /// Never, in a test that has not failed yet.
    pub fn prove(&self) {
        let said = format!("wsp_{}\r\n{}\n", "0".repeat(26), self.site.workspace());
        self.domain.answer([Reply::Document("no-store", said)]);
    }

    /// Invites somebody, in the operator's name.
    ///
    /// # Panics
    /// Where they are a member already.
    pub fn invite(&self, email: &str, role: Role) -> (PrincipalId, AccountId) {
        let invited = self.site.gate.execute(invitation(self.site.workspace(), email, role));
        match invited.unwrap() {
            MemberDone::Done { principal, .. } => (principal.id, principal.membership().unwrap().account),
            MemberDone::Asked(_) => panic!("nobody is asked"),
        }
    }

    /// What the provider says of whom it calls `subject`.
    #[must_use]
    pub fn claims(&self, subject: &str, email: &str) -> Value {
        let now = self.site.now().as_seconds();
        json!({ "sub": subject, "email": email, "email_verified": true, "iat": now, "exp": now + 300 })
    }

    /// Where a sign-in begins.
    #[must_use]
    pub fn start(&self) -> String {
        format!("/api/sign-in/sso/{}", self.site.workspace())
    }

    /// A browser that was nowhere yet.
    pub async fn browser(&self) -> Browser {
        // Each comes from an address of its own.
        let address = format!("2001:db8:{:x}::1", self.site.fresh_bits() & 0xffff);
        Browser { client: self.site.client().await, cookies: BTreeMap::new(), address }
    }

    /// A browser that was led to the provider, and where its person is led back to.
    pub async fn led(&self, claims: Value) -> (Browser, Url) {
        let mut browser = self.browser().await;
        let got = browser.get(&self.start()).await;
        assert_eq!(got.status, 303, "{got:?}");
        let back = self.provider.signs_in(got.header("location").unwrap(), claims);
        (browser, back)
    }

    /// How a sign-in of whom these claims are about ends, in a browser of its own.
    pub async fn come(&self, claims: Value) -> (Browser, Got) {
        let (mut browser, back) = self.led(claims).await;
        let got = browser.back(&back).await;
        (browser, got)
    }

    /// Whether a sign-in leaves nobody signed in, with a page that shows no word of the provider.
    pub async fn refuses(&self, claims: Value, status: u16, why: &str) {
        let (mut browser, got) = self.come(claims).await;
        is_refused(&mut browser, &got, status, why).await;
    }
}

/// That nobody is signed in, and that the page says so without a word of the provider's.
///
/// # Panics
/// Where it is not so.
pub async fn is_refused(browser: &mut Browser, got: &Got, status: u16, why: &str) {
    assert_eq!((got.status, got.header("content-type")), (status, Some("text/html; charset=utf-8")), "{why}: {got:?}");
    assert!(got.text().contains("This did not work") && !got.text().contains("provider's words"), "{why}: {got:?}");
    assert_eq!(browser.get("/api/me").await.status, 401, "{why}");
}

/// A browser: it keeps cookies, and follows nobody by itself.
#[derive(Debug)]
pub struct Browser {
    /// Its connection.
    pub client: Client,
    /// Its cookies.
    pub cookies: BTreeMap<String, String>,
    address: String,
}

impl Browser {
    /// Sends a request as a page of the site does.
    ///
    /// # Panics
    /// Where a cookie is set that other pages or connections could read.
    pub async fn send(&mut self, method: &str, path: &str, body: Option<&Value>) -> Got {
        let cookies: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let cookies = cookies.join("; ");
        let mut headers = vec![("host", BASE_URL.trim_start_matches("https://")), ("x-forwarded-for", &self.address)];
        headers.push(("accept", if method == "GET" && path != "/api/me" { "text/html" } else { "application/json" }));
        if !cookies.is_empty() {
            headers.push(("cookie", &cookies));
        }
        if method != "GET" {
            headers.extend([("x-svc-csrf", "1"), ("origin", BASE_URL), ("content-type", "application/json")]);
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        let got = self.client.ask(method, path, &headers, body.as_bytes()).await;
        for (_, set) in got.headers.iter().filter(|(name, _)| name == "set-cookie") {
            let (pair, rest) = set.split_once(';').unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            assert!(["HttpOnly", "Secure", "SameSite=Lax", "Path=/"].iter().all(|it| rest.contains(it)), "{set}");
            assert!(name.starts_with("__Host-"), "{set}");
            if value.is_empty() {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        got
    }

    /// Goes somewhere.
    pub async fn get(&mut self, path: &str) -> Got {
        self.send("GET", path, None).await
    }

    /// Posts as a page of the site does.
    pub async fn post(&mut self, path: &str, body: Value) -> Got {
        self.send("POST", path, Some(&body)).await
    }

    /// Goes where the provider leads back to.
    pub async fn back(&mut self, to: &Url) -> Got {
        assert!(to.as_str().starts_with(BASE_URL), "{to}");
        self.get(&format!("{}?{}", to.path(), to.query().unwrap())).await
    }

    /// Who is signed in.
    pub async fn me(&mut self) -> Value {
        self.get("/api/me").await.ok()
    }
}

/// Where an answer leads.
///
/// # Panics
/// Where it leads nowhere.
#[must_use]
pub fn to(got: &Got) -> &str {
    assert_eq!(got.status, 303, "{got:?}");
    got.header("location").unwrap()
}
