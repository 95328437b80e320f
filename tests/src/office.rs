//! A site with a person in front of it who asks the console's routes: where tests of these begin.

use serde_json::{Value, json};
use svc_core::state::people::Role;

use crate::client::{Client, Got};
use crate::people::Person;
use crate::site::{Plan, Site};

/// A site, somebody who is signed in, and a connection.
#[derive(Debug)]
pub struct Office {
    /// The site.
    pub site: Site,
    /// A connection.
    pub client: Client,
    /// Who asks.
    pub who: Person,
}

impl Office {
    /// An owner's.
    pub async fn open() -> Self {
        Self::of(Role::Owner).await
    }

    /// That of a member with this role.
    pub async fn of(role: Role) -> Self {
        Self::at(Site::start().await, role).await
    }

    /// An owner's at a site that differs from the usual one.
    pub async fn with(change: impl FnOnce(&mut Plan)) -> Self {
        Self::at(Site::with(change).await, Role::Owner).await
    }

    async fn at(site: Site, role: Role) -> Self {
        let (client, who) = (site.client().await, site.member(role));
        Self { site, client, who }
    }

    /// Asks a route of the workspace; `null` sends no body.
    pub async fn ask(&mut self, method: &str, path: &str, body: Value) -> Got {
        self.ask_as(&self.who.clone(), method, path, body).await
    }

    /// The same as somebody else.
    pub async fn ask_as(&mut self, who: &Person, method: &str, path: &str, body: Value) -> Got {
        let path = format!("/api/w/{}/{path}", self.site.workspace());
        let body = Some(&body).filter(|it| !it.is_null());
        who.ask(&mut self.client, method, &path, body).await
    }

    /// `POST` on a route of the workspace.
    pub async fn post(&mut self, path: &str, body: Value) -> Got {
        self.ask("POST", path, body).await
    }

    /// `PATCH` on a route of the workspace.
    pub async fn patch(&mut self, path: &str, body: Value) -> Got {
        self.ask("PATCH", path, body).await
    }

    /// `GET` of a route of the workspace that succeeds.
    pub async fn read(&mut self, path: &str) -> Value {
        self.ask("GET", path, Value::Null).await.ok()
    }

    /// Asks a route with a key or a token.
    pub async fn machine(&mut self, token: &str, method: &str, path: &str, body: &Value) -> Got {
        let bearer = format!("Bearer {token}");
        self.client.ask(method, path, &[("authorization", &bearer)], body.to_string().as_bytes()).await
    }

    /// Makes an agent of which the blueprint says `more` than its name; the record, as `POST` answers it.
    pub async fn agent(&mut self, more: &Value) -> Value {
        let mut blueprint = json!({ "name": "Buyer", "principalEmail": "ann@example.com" });
        let members = blueprint.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        self.post("agents", blueprint).await.made()
    }
}
