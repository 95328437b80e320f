//! What the kind of an integration needs besides its secrets (CONTRACT part 2, "Integrations").

use serde_json::{Map, Value, json};
use svc_core::refusal::FieldError;
use svc_core::state::edge::outbound::{Outbound, OutboundUrl};
use svc_core::state::edge::{
    CODE_PLACES_MAX, ChatFormat, ConfigChange, DeciderConfig, EventClass, IntegrationConfig, IntegrationKind, KeysGone,
    LINKED_MAX, LINKED_NAME_MAX, LinkedMember, MAILED_MAX, SignalConfig, SignalKeys,
};
use svc_core::value::canonical::canonical;
use svc_core::value::id::PrincipalId;
use svc_core::value::json::Json;
use svc_core::value::secret::Secret;
use svc_core::value::text::UrlText;
use svc_core::value::{Invalid, Timestamp};

use super::Guards;
use crate::inbound::jwks::Jwks;
use crate::wire::{Fields, integer, list_of, text};

/// Bytes of a set of keys.
const JWKS_BYTES_MAX: usize = 64 * 1024;

/// The members that a kind has; where it is not known, those of all.
fn members(kind: Option<IntegrationKind>) -> &'static [&'static str] {
    match kind {
        Some(IntegrationKind::Callbacks | IntegrationKind::Issuer | IntegrationKind::Stripe) => &[],
        Some(IntegrationKind::Export) => &["url", "classes"],
        Some(IntegrationKind::Github) => &["repositories", "branches"],
        Some(IntegrationKind::Oidc) => &["issuer", "clientId"],
        Some(IntegrationKind::Ssf) => &["issuer", "audience", "jwksUrl", "jwks"],
        Some(IntegrationKind::Mail) => &["to"],
        Some(IntegrationKind::Chat) => &["url", "format"],
        Some(IntegrationKind::Slack) => &["botToken", "members"],
        Some(IntegrationKind::Relay) => &["members"],
        None => &[
            "repositories",
            "branches",
            "issuer",
            "audience",
            "jwksUrl",
            "jwks",
            "clientId",
            "to",
            "url",
            "format",
            "classes",
            "botToken",
            "members",
        ],
    }
}

/// What is configured, and a secret of it that is to be sealed before anything keeps it.
#[derive(Debug, Default)]
pub struct Configured {
    /// All but that.
    pub change: ConfigChange,
    /// What messages are sent with: another, or none.
    pub bot_token: Option<Option<Secret<String>>>,
}

/// Reads what is configured of an integration of this kind.
pub(super) fn read(fields: &mut Fields<'_>, kind: Option<IntegrationKind>, guards: Guards<'_>) -> Configured {
    if fields.is_null("config") {
        return Configured { change: emptied(), bot_token: Some(None) };
    }
    let read = fields.nested("config", |config| {
        config.only(members(kind));
        let (code, signals, client_id) = (code(config), signals(config, guards.providers), client_id(config));
        if kind == Some(IntegrationKind::Oidc)
            && let Some(Some(Err(fault))) =
                signals.issuer.as_ref().map(|it| it.as_deref().map(|it| issuer(it, guards.providers)))
        {
            config.fault("issuer", fault);
        }
        let to = if config.is_null("to") {
            Some(Vec::new())
        } else {
            config.texts("to", (0, MAILED_MAX), PrincipalId::parse)
        };
        let (repositories, branches, members) = (code.repositories, code.branches, linked(config, kind));
        let ConfigChange { url, classes, .. } = export(config, guards.receivers);
        let format = if config.is_null("format") {
            Some(ChatFormat::default())
        } else {
            config.optional("format", |it| ChatFormat::parse(text(it)?))
        };
        let change = ConfigChange { repositories, branches, client_id, to, url, format, classes, members, ..signals };
        Some(Configured { change, bot_token: bot_token(config) })
    });
    read.unwrap_or_default()
}

/// An address that the outbound guard lets pass, or none.
fn address(config: &mut Fields<'_>, name: &str, guard: &Outbound) -> Option<Option<UrlText>> {
    if config.is_null(name) {
        return Some(None);
    }
    config.optional(name, |it| OutboundUrl::of_text(text(it)?, guard)).map(Some)
}

fn bot_token(config: &mut Fields<'_>) -> Option<Option<Secret<String>>> {
    if config.is_null("botToken") {
        return Some(None);
    }
    let read = config.optional("botToken", |it| {
        let text = text(it)?;
        let is_one = (8..=512).contains(&text.len()) && text.starts_with("xox");
        if is_one && text.bytes().all(|it| it.is_ascii_graphic()) {
            Ok(Secret::new(text.to_owned()))
        } else {
            Err(Invalid::new("must be a token as Slack gives it to an app: `xoxb-` and what follows"))
        }
    });
    read.map(Some)
}

/// Who is linked to whom. Names that the other system does not have are told at once; whether there are such members, the rule
/// looks up.
fn linked(config: &mut Fields<'_>, kind: Option<IntegrationKind>) -> Option<Vec<LinkedMember>> {
    if config.is_null("members") {
        return Some(Vec::new());
    }
    config.nested("members", |members| {
        let names: Vec<&str> = members.names().collect();
        if names.len() > LINKED_MAX {
            members.note(FieldError::new("config.members", format!("must have at most {LINKED_MAX} members")));
            return None;
        }
        let mut linked = Vec::with_capacity(names.len());
        for name in names {
            let read = |it| name_of(name, kind).and_then(|()| PrincipalId::parse(text(it)?));
            let link = |principal| LinkedMember { name: name.into(), principal, since: Timestamp::default() };
            linked.extend(members.required(name, read).map(link));
        }
        linked.sort_by(|one, other| one.name.cmp(&other.name));
        Some(linked)
    })
}

/// That another system could call somebody so.
fn name_of(name: &str, kind: Option<IntegrationKind>) -> Result<(), Invalid> {
    let is_slacks =
        name.starts_with(['U', 'W']) && name.bytes().all(|it| it.is_ascii_uppercase() || it.is_ascii_digit());
    if kind == Some(IntegrationKind::Slack) && !(is_slacks && (3..=32).contains(&name.len())) {
        return Err(Invalid::new(
            "is no id of somebody in Slack: `U` or `W` and then capital letters and digits, 3 to 32 characters in all",
        ));
    }
    let is_one = (1..=LINKED_NAME_MAX).contains(&name.len()) && !name.chars().any(char::is_control);
    if is_one { Ok(()) } else { Err(Invalid::new(format!("must have a name of 1 to {LINKED_NAME_MAX} bytes"))) }
}

fn emptied() -> ConfigChange {
    ConfigChange {
        repositories: Some(Vec::new()),
        branches: Some(Vec::new()),
        classes: Some(Vec::new()),
        issuer: Some(None),
        audience: Some(None),
        client_id: Some(None),
        keys_gone: KeysGone { url: true, set: true },
        keys: None,
        to: Some(Vec::new()),
        url: Some(None),
        format: Some(ChatFormat::default()),
        members: Some(Vec::new()),
        bot_token: Some(None),
        secret: None,
    }
}

fn code(config: &mut Fields<'_>) -> ConfigChange {
    let mut list = |name: &str, read: fn(&str) -> Result<Box<str>, Invalid>| {
        if config.is_null(name) { Some(Vec::new()) } else { config.texts(name, (0, CODE_PLACES_MAX), read) }
    };
    let (repositories, branches) = (list("repositories", repository), list("branches", branch));
    ConfigChange { repositories, branches, ..ConfigChange::default() }
}

fn repository(text: &str) -> Result<Box<str>, Invalid> {
    let part = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_.".contains(&it));
    let is_one = text.len() <= 140 && text.split_once('/').is_some_and(|(owner, name)| part(owner) && part(name));
    if is_one { Ok(text.into()) } else { Err(Invalid::new("must be a repository as `owner/name`")) }
}

fn branch(text: &str) -> Result<Box<str>, Invalid> {
    let is_sound = (1..=250).contains(&text.len()) && !text.chars().any(|it| it.is_control() || it.is_whitespace());
    if !is_sound {
        return Err(Invalid::new("must be a branch of 1 to 250 bytes without space"));
    }
    // What no branch can be called (git-check-ref-format) would be met by none, and look as if it were a pattern.
    if text.contains(['*', '?', '[', '\\', '~', '^', ':']) || text.contains("..") || text.starts_with("refs/heads/") {
        return Err(Invalid::new(
            "must be the name of one branch, such as `main`: no pattern, and no `refs/heads/` before it",
        ));
    }
    Ok(text.into())
}

fn export(config: &mut Fields<'_>, guard: &Outbound) -> ConfigChange {
    let url = address(config, "url", guard);
    // All of them where none is named.
    let classes = if config.is_null("classes") { Some(Vec::new()) } else { classes(config) };
    ConfigChange { url, classes, ..ConfigChange::default() }
}

fn classes(config: &mut Fields<'_>) -> Option<Vec<EventClass>> {
    let list = config.optional("classes", |it| list_of(it, 1, EventClass::ALL.len()))?;
    let mut named = Vec::with_capacity(list.len());
    for (at, item) in list.iter().enumerate() {
        let class = integer(item).ok().and_then(EventClass::of).ok_or_else(|| {
            let uids: Vec<String> = EventClass::ALL.iter().map(|it| format!("`{}`", it.uid())).collect();
            Invalid::new(format!("must be one of {}", uids.join(", ")))
        });
        match class {
            Ok(class) if named.contains(&class) => {
                config.fault(&format!("classes.{at}"), Invalid::new("must not be named twice"));
            }
            Ok(class) => named.push(class),
            Err(why) => config.fault(&format!("classes.{at}"), why),
        }
    }
    (named.len() == list.len()).then_some(named)
}

fn signals(config: &mut Fields<'_>, guard: &Outbound) -> ConfigChange {
    let mut name = |member: &str| {
        if config.is_null(member) { Some(None) } else { config.optional(member, |it| named(text(it)?)).map(Some) }
    };
    let (issuer, audience) = (name("issuer"), name("audience"));
    let keys_gone = KeysGone { url: config.is_null("jwksUrl"), set: config.is_null("jwks") };
    let url = config.optional("jwksUrl", |it| OutboundUrl::of_text(text(it)?, guard));
    let set = config.optional("jwks", key_set);
    if url.is_some() && set.is_some() {
        config.fault("jwks", Invalid::new("must not be sent beside `jwksUrl`: keys come from one place"));
    }
    let keys = url.map(SignalKeys::Url).or_else(|| set.map(SignalKeys::Set));
    ConfigChange { issuer, audience, keys_gone, keys, ..ConfigChange::default() }
}

fn client_id(config: &mut Fields<'_>) -> Option<Option<Box<str>>> {
    if config.is_null("clientId") {
        return Some(None);
    }
    config.optional("clientId", |it| named(text(it)?)).map(Some)
}

/// That an issuer is an address below which its description can be read (OpenID Connect Discovery 1.0, 3 and 4).
fn issuer(text: &str, guard: &Outbound) -> Result<(), Invalid> {
    OutboundUrl::parse(text, guard)?;
    if text.contains('?') { Err(Invalid::new("must not hold a query")) } else { Ok(()) }
}

fn named(text: &str) -> Result<Box<str>, Invalid> {
    let is_one = (1..=500).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_graphic());
    if is_one { Ok(text.into()) } else { Err(Invalid::new("must be 1 to 500 visible ASCII characters without space")) }
}

/// A set of keys, kept as its canonical text.
fn key_set(value: &Json) -> Result<Box<str>, Invalid> {
    // What would verify nothing, or is a secret that everybody could read, is told at once.
    Jwks::of(value)?;
    let text = canonical(value);
    if text.len() > JWKS_BYTES_MAX {
        return Err(Invalid::new(format!("must have at most {JWKS_BYTES_MAX} bytes")));
    }
    Ok(text.into())
}

/// What is configured, each member of the kind by its name.
pub(super) fn write(config: &IntegrationConfig, kind: IntegrationKind) -> Value {
    match config {
        IntegrationConfig::Nothing => json!({}),
        IntegrationConfig::Mail(it) => json!({ "to": it.to }),
        IntegrationConfig::Chat(it) => {
            json!({ "url": it.url.as_ref().map(UrlText::as_str), "format": it.format.as_str() })
        }
        IntegrationConfig::Code(it) => json!({ "repositories": it.repositories, "branches": it.branches }),
        IntegrationConfig::Oidc(it) => json!({ "issuer": it.issuer, "clientId": it.client_id }),
        IntegrationConfig::Export(it) => {
            // `null` where none is named, as it is sent.
            let classes = (!it.classes.is_empty()).then(|| it.classes.iter().map(|it| it.uid()).collect::<Vec<_>>());
            json!({ "url": it.url.as_ref().map(UrlText::as_str), "classes": classes })
        }
        IntegrationConfig::Deciders(DeciderConfig { members, bot_token }) => {
            let members = members.iter().map(|it| (it.name.to_string(), json!(it.principal)));
            let members: Map<String, Value> = members.collect();
            let hint = bot_token.as_ref().map(|it| &*it.hint);
            if kind == IntegrationKind::Slack {
                json!({ "members": members, "botTokenHint": hint })
            } else {
                json!({ "members": members })
            }
        }
        IntegrationConfig::Signals(SignalConfig { issuer, audience, keys }) => {
            let (url, set) = match keys {
                None => (None, None),
                Some(SignalKeys::Url(url)) => (Some(url.as_str()), None),
                Some(SignalKeys::Set(set)) => (None, serde_json::from_str::<Value>(set).ok()),
            };
            json!({ "issuer": issuer, "audience": audience, "jwksUrl": url, "jwks": set })
        }
    }
}
