//! MCP servers behind this one (CONTRACT part 2, "Integrations, connections, MCP servers"). Their credentials come in and never
//! go out.

use serde_json::{Map, Value, json};
use svc_core::dlp;
use svc_core::refusal::{FieldError, Refusal};
use svc_core::rules::edge::mcp_servers::{McpServerView, Set};
use svc_core::state::edge::{MCP_TOOLS_MAX, McpCredential, McpState, McpTool, TOOL_GLOBS_MAX, ToolFilter};
use svc_core::value::Invalid;
use svc_core::value::digest::Digest;
use svc_core::value::json::Json;
use svc_core::value::secret::Secret;
use svc_core::value::text::{ServerName, UrlText};

use url::form_urlencoded;

use super::named::Names;
use super::{Fields, parse, parse_or_empty, text, truth};
use crate::difference::difference;
use crate::upstream::is_own_header;

/// Bytes of a server's definitions, laid out line by line, that are compared for people.
const COMPARED_BYTES_MAX: usize = 256 * 1024;
/// What stands for a difference that would be longer.
const UNCOMPARED: &str = "too long to be shown line by line: compare `before` with `after`\n";
/// What is said of a tool that cannot be accepted.
const UNCALLABLE: &str = "its name is longer than the 100 characters that an action has for one: rename it at the server, or leave it out with `tools.deny`";
/// Parameters of addresses that are keys where they have so many bytes, beside those whose name says so anywhere.
const KEY_BYTES_MIN: usize = 8;
const KEY_NAMES: [&str; 6] = ["key", "auth", "authorization", "sig", "signature", "code"];
/// Characters of a credential.
const SECRET_MAX: usize = 4_096;

/// What is set of a server, and what it is shown where that was sent.
#[derive(Debug)]
pub struct Sent {
    /// All but the credential.
    pub set: Vec<Set>,
    /// The credential.
    pub credential: Option<Shown>,
}

/// What a server is shown.
#[derive(Debug)]
pub enum Shown {
    /// Nothing.
    None,
    /// A bearer token.
    Bearer(Secret<String>),
    /// A text in this header.
    Header(Box<str>, Secret<String>),
}

/// What an MCP server names.
pub const IDS: &[(&str, Names)] = &[("name", Names::NewServer)];

/// Tools that a person accepts, and the hash of what they have looked at.
#[derive(Debug)]
pub struct Accepted {
    /// Their names.
    pub tools: Vec<Box<str>>,
    /// `toolsHash`.
    pub hash: Digest,
}

/// Reads a server that is to be made (`is_new`) or changed. `judge` is the outbound guard.
///
/// # Errors
/// `invalid_json`, or `invalid_request` naming every fault.
pub fn read(body: &[u8], is_new: bool, judge: impl FnOnce(&str) -> Result<(), Invalid>) -> Result<Sent, Refusal> {
    let json = if is_new { parse(body)? } else { parse_or_empty(body)? };
    let mut fields = Fields::of(&json)?;
    fields.only(&["name", "url", "credential", "tools", "enabled"]);
    for name in ["name", "url"] {
        if is_new && fields.raw(name).is_none() {
            fields.note(FieldError::missing(name));
        }
    }
    let mut set = Vec::new();
    set.extend(fields.optional("name", |it| ServerName::parse(text(it)?)).map(Set::Name));
    let url = fields.optional("url", |it| {
        let url = UrlText::parse(text(it)?)?;
        keyless(url.as_str())?;
        judge(url.as_str()).map(|()| url)
    });
    set.extend(url.map(Set::Url));
    let credential =
        if fields.is_null("credential") { Some(Shown::None) } else { fields.nested("credential", credential) };
    if fields.is_null("tools") {
        set.push(Set::Tools(ToolFilter::default()));
    } else {
        set.extend(fields.nested("tools", filter).map(Set::Tools));
    }
    let enabled = if fields.is_null("enabled") { Some(true) } else { fields.optional("enabled", truth) };
    set.extend(enabled.map(Set::Enabled));
    fields.finish(Some(Sent { set, credential }))
}

/// An address is shown and kept as it is: a key in it would be no secret.
fn keyless(url: &str) -> Result<(), Invalid> {
    let query = url.split_once('?').map_or("", |(_, it)| it);
    let is_key = |name: &str, value: &str| {
        let is_long = value.len() >= KEY_BYTES_MIN && KEY_NAMES.iter().any(|it| it.eq_ignore_ascii_case(name));
        is_long || (dlp::names_secret(name) && !value.is_empty()) || !dlp::scan(value).is_empty()
    };
    match form_urlencoded::parse(query.as_bytes()).find(|(name, value)| is_key(name, value)) {
        None => Ok(()),
        Some(_) => Err(Invalid::new(
            "must not hold a key, as everybody who sees the server sees its address: send it as `credential`, in a header",
        )),
    }
}

fn credential(fields: &mut Fields<'_>) -> Option<Shown> {
    fields.only(&["type", "header", "secret"]);
    let kind = fields.required("type", |it| match text(it)? {
        known @ ("bearer" | "header" | "none") => Ok(known),
        _ => Err(Invalid::new("must be `bearer`, `header` or `none`")),
    });
    match kind? {
        "none" => {
            for name in ["header", "secret"] {
                if fields.raw(name).is_some() {
                    fields.fault(name, Invalid::new("must not be there where the type is `none`"));
                }
            }
            Some(Shown::None)
        }
        "bearer" => {
            if fields.raw("header").is_some() {
                fields.fault("header", Invalid::new("must not be there where the type is `bearer`"));
            }
            fields.required("secret", |it| secret(it, false)).map(Shown::Bearer)
        }
        _ => {
            let header = fields.required("header", header);
            let secret = fields.required("secret", |it| secret(it, true));
            header.zip(secret).map(|(header, secret)| Shown::Header(header, secret))
        }
    }
}

fn header(value: &Json) -> Result<Box<str>, Invalid> {
    let name = http::HeaderName::from_bytes(text(value)?.as_bytes())
        .map_err(|_| Invalid::new("must be the name of a header"))?;
    let is_ours = is_own_header(&name) || name.as_str().starts_with("mcp-") || name.as_str() == "user-agent";
    if is_ours || name.as_str().len() > 100 {
        return Err(Invalid::new("must be a header that a call does not set itself"));
    }
    Ok(name.as_str().into())
}

fn secret(value: &Json, spaced: bool) -> Result<Secret<String>, Invalid> {
    let secret = text(value)?;
    let sound = (1..=SECRET_MAX).contains(&secret.len())
        && secret.trim() == secret
        && secret.bytes().all(|it| it.is_ascii_graphic() || (spaced && it == b' '));
    let why = || Invalid::new(format!("must be 1 to {SECRET_MAX} visible ASCII characters"));
    sound.then(|| Secret::new(secret.to_owned())).ok_or_else(why)
}

fn filter(fields: &mut Fields<'_>) -> Option<ToolFilter> {
    fields.only(&["allow", "deny"]);
    let mut globs = |name| fields.texts(name, (0, TOOL_GLOBS_MAX), ToolFilter::glob).unwrap_or_default();
    Some(ToolFilter { allow: globs("allow"), deny: globs("deny") })
}

/// Reads what a person accepts.
///
/// # Errors
/// `invalid_json`, or `invalid_request` naming every fault.
pub fn read_accepted(body: &[u8]) -> Result<Accepted, Refusal> {
    let json = parse(body)?;
    let mut fields = Fields::of(&json)?;
    fields.only(&["tools", "toolsHash"]);
    fields.demand("tools");
    let tools = fields.texts("tools", (1, MCP_TOOLS_MAX), |it| Ok(it.into()));
    let hash = fields.required("toolsHash", |it| {
        let digest = text(it)?.strip_prefix("sha256:").and_then(|hex| Digest::parse(hex).ok());
        digest.ok_or_else(|| Invalid::new("must be `sha256:` and 64 hex digits"))
    });
    fields.finish(tools.zip(hash).map(|(tools, hash)| Accepted { tools, hash }))
}

/// A server as it stands, with what waits for a person; `trouble` is why it gave no list of its tools, where that is known.
#[must_use]
pub fn write(view: &McpServerView, trouble: impl FnOnce() -> Option<String>) -> Value {
    let McpServerView { server, tools } = view;
    let state = tools.as_ref().map_or(McpState::Unreachable, |it| it.state(&server.tools));
    let mut room = COMPARED_BYTES_MAX;
    let held: Vec<Value> = tools
        .iter()
        .flat_map(|it| it.held(&server.tools))
        .map(|(name, tool)| write_held(name, tool, &mut room))
        .collect();
    let mut out = json!({
        "id": server.id,
        "name": server.name,
        "url": server.url,
        "credential": write_credential(&server.credential),
        "tools": { "allow": server.tools.allow, "deny": server.tools.deny },
        "enabled": server.enabled,
        "state": state.as_str(),
        "toolsHash": tools.as_ref().map(|it| format!("sha256:{}", it.hash())),
        "held": held,
        "createdAt": server.created_at.to_string(),
        "createdBy": server.created_by.as_ref().map(ToString::to_string),
    });
    if state == McpState::Unreachable
        && let Some(trouble) = trouble()
    {
        super::put(&mut out, "trouble", json!(trouble));
    }
    out
}

fn write_credential(credential: &McpCredential) -> Value {
    let mut out = Map::new();
    let mut put = |name: &str, value: &str| out.insert(name.to_owned(), json!(value));
    put("type", credential.kind());
    match credential {
        McpCredential::None => {}
        McpCredential::Bearer { hint, .. } => {
            put("secretHint", hint);
        }
        McpCredential::Header { name, hint, .. } => {
            put("header", name);
            put("secretHint", hint);
        }
    }
    Value::Object(out)
}

fn write_held(name: &str, tool: &McpTool, room: &mut usize) -> Value {
    let value = |text: Option<&str>| text.and_then(|it| serde_json::from_str::<Value>(it).ok());
    let (before, after) = (value(tool.accepted.as_deref()), value(tool.seen.as_deref()));
    let both = laid_out(before.as_ref(), *room).zip(laid_out(after.as_ref(), *room));
    let diff = match both.filter(|(old, new)| old.len() + new.len() <= *room) {
        Some((old, new)) => {
            *room -= old.len() + new.len();
            difference(&old, &new)
        }
        None => UNCOMPARED.to_owned(),
    };
    let mut held = json!({ "name": name, "before": before, "after": after, "diff": diff });
    if !McpTool::is_callable(name) {
        super::put(&mut held, "reason", json!(UNCALLABLE));
    }
    held
}

/// A definition line by line, where that takes `most` bytes at most: what is nested deeply takes very many.
fn laid_out(definition: Option<&Value>, most: usize) -> Option<String> {
    let Some(definition) = definition else { return Some(String::new()) };
    let mut out = Capped { text: Vec::new(), most };
    serde_json::to_writer_pretty(&mut out, definition).ok()?;
    String::from_utf8(out.text).ok()
}

/// Takes so many bytes and no more.
struct Capped {
    text: Vec<u8>,
    most: usize,
}

impl std::io::Write for Capped {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.text.len() + bytes.len() > self.most {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `null` returns every member that has a default to it.
    #[test]
    fn null_is_the_default_of_a_member() {
        let sent = read(br#"{"credential":null,"tools":null,"enabled":null}"#, false, |_| Ok(()));
        let sent = sent.ok().map(|it| (it.set, matches!(it.credential, Some(Shown::None))));
        assert!(
            matches!(&sent, Some((set, true)) if matches!(set.as_slice(), [Set::Tools(_), Set::Enabled(true)])),
            "{sent:?}"
        );
    }

    /// Why a tool cannot be accepted is told beside it.
    #[test]
    fn a_tool_that_cannot_be_accepted_says_why() {
        let tool = McpTool { accepted: None, seen: Some("{}".into()) };
        let mut room = COMPARED_BYTES_MAX;
        let mut shown = |name: &str| write_held(name, &tool, &mut room);
        assert!(shown(&"x".repeat(100)).get("reason").is_none());
        assert_eq!(shown(&"x".repeat(101))["reason"], UNCALLABLE);
    }

    /// However a definition is nested and however many there are, what is shown of differences has a bound.
    #[test]
    fn a_difference_has_a_bound() {
        let deep = format!("{}{}{}", "[".repeat(60), "1,".repeat(4_000) + "1", "]".repeat(60));
        let tool = |seen: &str| McpTool { accepted: Some("{}".into()), seen: Some(seen.into()) };
        let mut room = COMPARED_BYTES_MAX;
        assert_eq!(write_held("deep", &tool(&deep), &mut room)["diff"], UNCOMPARED);
        assert_eq!(write_held("a", &tool("[1]"), &mut room)["diff"], "- {}\n+ [\n+   1\n+ ]\n");
        let long = tool(&format!("[{}1]", "1,".repeat(10_000)));
        let shown = (0..20).filter(|_| write_held("long", &long, &mut room)["diff"] != UNCOMPARED).count();
        assert!((1..20).contains(&shown), "{shown}");
    }
}
