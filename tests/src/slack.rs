//! A workspace whose people decide in Slack, and Slack: it hears what it is sent and tells of what somebody presses.

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;
use svc_core::state::edge::{ConfigChange, Integration, IntegrationKind, LinkedMember, SealedSecret};
use svc_core::state::people::{Role, Settings};
use svc_core::value::id::PrincipalId;
use svc_core::value::{Span, Timestamp};

use crate::client::{Client, Got};
use crate::people::Person;
use crate::receiver::{Call, Receiver, SECRET, connect_kind};
use crate::requests::{OFFICE, payment};
use crate::site::{Agent, Site};

/// What messages are sent with.
pub const BOT_TOKEN: &str = "xoxb-of-the-tests-0123456789";
/// Who the owner is in Slack.
pub const OWNER: &str = "UOWNER";

/// How Slack signs a body at a time in seconds.
///
/// # Panics
/// Never: a key of any length is one.
#[must_use]
pub fn slack_signature(at: i64, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("a key");
    mac.update(format!("v0:{at}:").as_bytes());
    mac.update(body);
    format!("v0={}", hex::encode(mac.finalize().into_bytes()))
}

/// The links of an integration.
#[must_use]
pub fn links(members: &[(&str, PrincipalId)]) -> Option<Vec<LinkedMember>> {
    let link = |(name, principal): &(&str, PrincipalId)| LinkedMember {
        name: (*name).into(),
        principal: *principal,
        since: Timestamp::default(),
    };
    Some(members.iter().map(link).collect())
}

/// A form as Slack sends it.
#[must_use]
pub fn form(payload: &Value) -> String {
    url::form_urlencoded::Serializer::new(String::new()).append_pair("payload", &payload.to_string()).finish()
}

/// A workspace with an agent, and its Slack.
#[derive(Debug)]
pub struct Chat {
    /// The workspace's site.
    pub site: Site,
    /// An agent whose payments above 200.00 wait for a person.
    pub agent: Agent,
    /// An owner, who is [`OWNER`] in Slack.
    pub owner: Person,
    /// Slack's methods, and where presses are answered.
    pub slack: Receiver,
    /// A connection to the site.
    pub client: Client,
    /// The integration.
    pub integration: std::sync::Arc<Integration>,
    sent: i64,
}

impl Chat {
    /// One with these settings, in which Slack tells of presses.
    pub async fn with(settings: impl FnOnce(&mut Settings)) -> Self {
        Self::of(IntegrationKind::Slack, settings).await
    }

    /// One with these settings, and an integration of this kind.
    ///
    /// # Panics
    /// Where it cannot be made.
    pub async fn of(kind: IntegrationKind, settings: impl FnOnce(&mut Settings)) -> Self {
        let slack = Receiver::start().await;
        let api = slack.url("/api");
        let site = Site::with(|plan| {
            plan.config.allow_private_callbacks = true;
            plan.config.slack_api = api.into();
            settings(&mut plan.settings);
        })
        .await;
        let (owner, agent) = (site.member(Role::Owner), site.agent(&[OFFICE]));
        let slot = svc_core::state::edge::IntegrationSlot { workspace: site.workspace(), kind };
        let sealed = site.gate.seal(&Integration::bot_purpose(slot), BOT_TOKEN.as_bytes()).expect("a vault").into();
        let token = SealedSecret { sealed, hint: "6789".into(), created_at: site.now(), ends_at: None };
        let bot_token = Some((kind == IntegrationKind::Slack).then_some(token));
        let config = ConfigChange { members: links(&[(OWNER, owner.principal)]), bot_token, ..ConfigChange::default() };
        let integration = connect_kind(&site, kind, config);
        let client = site.client().await;
        Self { site, agent, owner, slack, client, integration, sent: 0 }
    }

    /// Links these names beside the owner's.
    ///
    /// # Panics
    /// Where one of them cannot be.
    pub fn link(&self, members: &[(&str, PrincipalId)]) {
        use svc_core::rules::edge::integrations::ChangeIntegration;
        use svc_core::rules::people::by::By;
        let mut all = vec![(OWNER, self.owner.principal)];
        all.extend(members);
        let config = ConfigChange { members: links(&all), ..ConfigChange::default() };
        let (workspace, id) = (self.site.workspace(), self.integration.id);
        let change = ChangeIntegration { by: By::Program, workspace, id, enabled: None, config };
        self.site.gate.execute(change).expect("a change");
    }

    /// An action that waits, as it was answered.
    ///
    /// # Panics
    /// Where it does not.
    pub async fn asked(&mut self) -> Value {
        let decision = self.client.authorize(&self.agent.key, &payment(30_000)).await.ok();
        assert_eq!(decision["status"], "pending", "{decision}");
        decision
    }

    /// The action as it stands.
    pub async fn status(&mut self, decision: &Value) -> String {
        let id = decision["id"].as_str().unwrap_or_default().to_owned();
        let read = self.client.read_action(&self.agent.key, &id).await.ok();
        read["status"].as_str().unwrap_or_default().to_owned()
    }

    /// What Slack sends of a press of a button beside `decision`.
    #[must_use]
    pub fn press(&self, user: &str, word: &str, decision: &Value) -> Value {
        let digest = decision["actionDigest"].as_str().unwrap_or_default().trim_start_matches("sha256:");
        let value = format!("{}.{digest}", decision["approval"]["id"].as_str().unwrap_or_default());
        json!({
            "type": "block_actions",
            "user": { "id": user, "username": "somebody" },
            "message": { "blocks": [{ "type": "section", "block_id": "said" }, { "type": "actions", "elements": [] }] },
            "response_url": self.slack.url("/actions/T1/2"),
            "actions": [{ "type": "button", "block_id": "b", "action_id": word, "value": value }],
        })
    }

    /// Where events are sent to.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/hooks/{}/{}", self.integration.slot.kind.as_str(), self.site.workspace())
    }

    /// Sends a body, signed at a time that none before was signed at.
    pub async fn tell(&mut self, body: &str, content: &str) -> Got {
        self.sent += 1;
        let at = self.site.now().minus(Span::millis(self.sent * 1_000)).as_seconds();
        let (signature, at) = (slack_signature(at, body.as_bytes()), at.to_string());
        let headers =
            [("x-slack-signature", &*signature), ("x-slack-request-timestamp", &*at), ("content-type", content)];
        self.client.ask("POST", &self.path(), &headers, body.as_bytes()).await
    }

    /// Presses a button: what is told in the answer, and at the address for answers.
    ///
    /// # Panics
    /// Where both are not the same.
    pub async fn pressed(&mut self, user: &str, word: &str, decision: &Value) -> Value {
        let payload = self.press(user, word, decision);
        let told = self.tell(&form(&payload), "application/x-www-form-urlencoded").await.ok();
        let answered = self.answered().await;
        assert_eq!((answered.line.as_str(), answered.json()), ("POST /actions/T1/2 HTTP/1.1", told.clone()));
        told
    }

    /// The next answer to a press; messages in between are passed over.
    pub async fn answered(&mut self) -> Call {
        loop {
            let call = self.slack.next().await;
            if call.line.contains("/actions/") {
                return call;
            }
        }
    }
}
