//! Integrations and the calls made over them (CONTRACT part 2, "Integrations").

mod config;

use serde_json::{Map, Value, json};
use svc_core::refusal::Refusal;
use svc_core::state::edge::outbound::{Outbound, OutboundUrl};
use svc_core::state::edge::{
    Integration, IntegrationConfig, IntegrationKind, IntegrationSlot, Job, JobState, OVERLAP_MAX_HOURS, SealedSecret,
    Work,
};
use svc_core::value::json::Json;
use svc_core::value::secret::Secret;
use svc_core::value::text::UrlText;
use svc_core::value::{Invalid, Timestamp};

pub use self::config::Configured;
use super::named::Names;
use super::{Fields, integer, parse, parse_or_empty, text, truth};
use crate::callback_secret;

/// How long the secret before stays good where nothing is said, in hours.
const OVERLAP_HOURS: u16 = 24;

/// What judges the addresses that integrations name.
#[derive(Clone, Copy, Debug)]
pub struct Guards<'a> {
    /// Those of receivers of calls.
    pub receivers: &'a Outbound,
    /// Those of providers of identity and of their keys.
    pub providers: &'a Outbound,
}

/// A wish for an integration.
#[derive(Debug)]
pub struct NewIntegration {
    /// What for.
    pub kind: IntegrationKind,
    /// Its secret; one is made where none was sent.
    pub secret: Option<Secret<String>>,
    /// What its kind needs besides.
    pub config: Configured,
}

/// What is named in an integration of this kind; where that is not known, in one of any kind.
#[must_use]
pub const fn ids(kind: Option<IntegrationKind>) -> &'static [(&'static str, Names)] {
    match kind {
        Some(IntegrationKind::Mail) => &[("config.to.[]", Names::Member)],
        Some(IntegrationKind::Relay | IntegrationKind::Slack) => &[("config.members.{}", Names::Decider)],
        Some(
            IntegrationKind::Callbacks
            | IntegrationKind::Chat
            | IntegrationKind::Export
            | IntegrationKind::Github
            | IntegrationKind::Issuer
            | IntegrationKind::Oidc
            | IntegrationKind::Ssf
            | IntegrationKind::Stripe,
        ) => &[],
        None => &[("config.to.[]", Names::Member), ("config.members.{}", Names::Decider)],
    }
}

/// What is named in a wish for an integration, by the kind that it says.
#[must_use]
pub fn new_ids(body: &[u8]) -> &'static [(&'static str, Names)] {
    let json = parse(body).unwrap_or(Json::Null);
    ids(json.get("kind").and_then(|it| IntegrationKind::parse(text(it).ok()?).ok()))
}

/// Reads a wish for an integration.
///
/// # Errors
/// `invalid_json`, or `invalid_request` naming every fault.
pub fn read_new(body: &[u8], guards: Guards<'_>) -> Result<NewIntegration, Refusal> {
    let json = parse(body)?;
    let mut fields = Fields::of(&json)?;
    fields.only(&["kind", "secret", "config"]);
    let kind = fields.required("kind", |it| IntegrationKind::parse(text(it)?));
    let secret = secret(&mut fields, kind);
    let config = config::read(&mut fields, kind, guards);
    fields.finish(kind.map(|kind| NewIntegration { kind, secret, config }))
}

/// A wish that an integration be changed.
#[derive(Debug)]
pub struct Change {
    /// Whether it is to be used; `None` where nothing is said.
    pub enabled: Option<bool>,
    /// What of its configuration changes.
    pub config: Configured,
    /// The secret that another provider of identity knows this server by.
    pub secret: Option<Secret<String>>,
}

/// Reads a change of an integration of this kind, where that is known.
///
/// # Errors
/// `invalid_json`, or `invalid_request` naming every fault.
pub fn read_change(body: &[u8], kind: Option<IntegrationKind>, guards: Guards<'_>) -> Result<Change, Refusal> {
    let json = parse_or_empty(body)?;
    let mut fields = Fields::of(&json)?;
    fields.only(&["enabled", "config", "secret"]);
    // `null` returns it to what it begins with.
    let enabled = if fields.is_null("enabled") { Some(true) } else { fields.optional("enabled", truth) };
    let config = config::read(&mut fields, kind, guards);
    let secret = fields.optional("secret", |it| match kind {
        None | Some(IntegrationKind::Oidc) => callback_secret::parse_given(text(it)?),
        Some(_) => Err(Invalid::new("is changed with `POST …/rotate`: this kind shows its own to nobody")),
    });
    fields.finish(Some(Change { enabled, config, secret }))
}

/// The secret that was sent. An identity provider draws its own, of whatever length, and none here is of use to it.
fn secret(fields: &mut Fields<'_>, kind: Option<IntegrationKind>) -> Option<Secret<String>> {
    if kind == Some(IntegrationKind::Oidc) {
        return fields.required("secret", |it| callback_secret::parse_given(text(it)?));
    }
    fields.optional("secret", |it| callback_secret::parse(text(it)?))
}

/// Reads a wish for another secret of an integration of this kind, where that is known: how long the one before stays good, in hours, and the secret, where one was sent.
///
/// # Errors
/// `invalid_json`, or `invalid_request` naming every fault.
pub fn read_rotation(body: &[u8], kind: Option<IntegrationKind>) -> Result<(u16, Option<Secret<String>>), Refusal> {
    let json = parse_or_empty(body)?;
    let mut fields = Fields::of(&json)?;
    fields.only(&["overlapHours", "secret"]);
    let hours = fields.optional("overlapHours", |it| {
        let hours = u16::try_from(integer(it)?).ok().filter(|it| *it <= OVERLAP_MAX_HOURS);
        hours.ok_or_else(|| Invalid::new(format!("must be between 0 and {OVERLAP_MAX_HOURS}")))
    });
    let secret = secret(&mut fields, kind);
    fields.finish(Some((hours.unwrap_or(OVERLAP_HOURS), secret)))
}

/// Reads who is called to try an integration out, through the outbound guard; `None` where nobody is named.
///
/// # Errors
/// `invalid_json`, or `invalid_request` naming every fault.
pub fn read_test(body: &[u8], guard: &Outbound) -> Result<Option<UrlText>, Refusal> {
    let json = parse_or_empty(body)?;
    let mut fields = Fields::of(&json)?;
    fields.only(&["url"]);
    let url = fields.optional("url", |it| OutboundUrl::of_text(text(it)?, guard));
    fields.finish(Some(url))
}

/// An integration as it stands, at a server that is reached at `base`, with the names of those whose links are over, and the secret that
/// was drawn just now where there is one.
#[must_use]
pub fn write(
    integration: &Integration,
    ended: &[Box<str>],
    base: &str,
    now: Timestamp,
    secret: Option<&Secret<String>>,
) -> Map<String, Value> {
    let live = integration.secrets.iter().filter(|it| it.ends_at.is_none_or(|end| now < end));
    let secrets: Vec<Value> = live.map(write_secret).collect();
    let hint = integration.secrets.first().map(|it| &*it.hint);
    let mut out = Map::new();
    let mut put = |name: &str, value: Value| out.insert(name.to_owned(), value);
    put("id", json!(integration.id));
    put("kind", json!(integration.slot.kind.as_str()));
    put("config", config::write(&integration.config, integration.slot.kind));
    put("enabled", json!(integration.enabled));
    if matches!(integration.config, IntegrationConfig::Deciders(_)) {
        put("ended", json!(ended));
    }
    put("state", json!(integration.state_without(ended.len()).as_str()));
    let IntegrationSlot { workspace, kind } = integration.slot;
    if let Some(path) = kind.receive_path(workspace) {
        put("receiveUrl", json!(format!("{base}{path}")));
    }
    if let Some(secret) = secret {
        put("secret", json!(secret.expose()));
    }
    put("secretHint", json!(hint));
    put("secrets", json!(secrets));
    put("lastEventAt", json!(integration.last_event_at.map(|it| it.to_string())));
    put("lastError", json!(integration.last_error));
    put("createdAt", json!(integration.created_at.to_string()));
    put("createdBy", json!(integration.created_by));
    out
}

fn write_secret(secret: &SealedSecret) -> Value {
    let mut out = json!({ "hint": secret.hint, "createdAt": secret.created_at.to_string() });
    if let (Some(end), Some(members)) = (secret.ends_at, out.as_object_mut()) {
        members.insert("endsAt".to_owned(), json!(end.to_string()));
    }
    out
}

/// A call or message as it stands: of its URL the host alone, of a mail the host that takes it.
#[must_use]
pub fn write_delivery(job: &Job, host: &str) -> Value {
    let subject = match &job.work {
        Work::Decided { action, .. } => action.to_string(),
        Work::Export { integration, .. } | Work::Test { integration, .. } => integration.to_string(),
        Work::Tell { news, .. } | Work::Message { news, .. } => news.subject(),
    };
    let attempts: Vec<Value> = job
        .attempts
        .iter()
        .map(|it| {
            let mut out = json!({ "at": it.at.to_string(), "ms": it.tried.ms });
            if let Some(members) = out.as_object_mut() {
                members.extend(it.tried.status.map(|status| ("status".to_owned(), json!(status))));
                members.extend(it.tried.error.map(|error| ("error".to_owned(), json!(error.as_str()))));
            }
            out
        })
        .collect();
    let next = if let JobState::Waiting { due } = job.state { Some(due.to_string()) } else { None };
    json!({
        "id": job.id,
        "kind": job.over().map(IntegrationKind::as_str),
        "subject": subject,
        "host": if job.url.is_none() { host.to_owned() } else { job.host() },
        "state": job.state.as_str(),
        "attempts": attempts,
        "nextAt": next,
        "createdAt": job.created_at.to_string(),
        // What is told of happens by itself: nobody makes a delivery.
        "createdBy": null,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use svc_core::state::edge::outbound::Private;

    /// White space around an address is no part of it, wherever an integration names one.
    #[test]
    fn addresses_are_trimmed() {
        let guard = Outbound { private: Private::Nowhere, own_host: "svc.example".into() };
        let url = read_test(br#"{"url":" https://a.example.com/x\n"}"#, &guard).unwrap();
        assert_eq!(url.as_ref().map(UrlText::as_str), Some("https://a.example.com/x"));
        let guards = Guards { receivers: &guard, providers: &guard };
        for (kind, member) in [(IntegrationKind::Chat, "url"), (IntegrationKind::Ssf, "jwksUrl")] {
            let body = format!(r#"{{"config":{{"{member}":" https://a.example.com/x "}}}}"#);
            let told = format!("{:?}", read_change(body.as_bytes(), Some(kind), guards).unwrap());
            assert!(
                told.contains("\"https://a.example.com/x\"") || told.contains("(https://a.example.com/x)"),
                "{told}"
            );
        }
    }

    /// `null` returns `enabled` to what an integration begins with; what is not named stays.
    #[test]
    fn null_is_the_default_of_enabled() {
        let told = [r#"{"enabled":null}"#, r#"{"enabled":false}"#, "{}"].map(|it| {
            let guard = Outbound { private: Private::Nowhere, own_host: "svc.example".into() };
            read_change(
                it.as_bytes(),
                Some(IntegrationKind::Callbacks),
                Guards { receivers: &guard, providers: &guard },
            )
            .unwrap()
            .enabled
        });
        assert_eq!(told, [Some(true), Some(false), None]);
    }
}
