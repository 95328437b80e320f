//! What a request brings into the context that no tool was called for: what its provider takes from an address, and what a search has
//! found. A file that a provider keeps, or whose bytes stand in the request, is the client's own.

use std::borrow::Cow;

use url::Url;

use super::super::doc::{Form, Value};
use super::{OF_NO_FILE, OF_TEXT, own, result};
use crate::state::gateway::ToolResult;

/// Parts within parts that are looked through: a document in the result of a tool has parts itself.
const PARTS_LEVELS_MAX: usize = 4;
/// Levels of one part at which an address may stand.
const LEVELS_MAX: usize = 4;
/// What a part is called and told by, which may well be where it is from; and what it is itself.
const NO_SOURCE: &[&str] =
    &["type", "id", "title", "context", "name", "filename", "text", "citations", "cache_control", "media_type"];

/// Adds what the parts of a content bring in.
pub(super) fn brought_in(content: Value<'_>, results: &mut Vec<ToolResult>) {
    of_parts(content, true, PARTS_LEVELS_MAX, results);
}

/// What a search has found counts where it stands by itself: within the result of a tool it is that tool's.
fn of_parts(content: Value<'_>, by_itself: bool, levels: usize, results: &mut Vec<ToolResult>) {
    let Some(levels) = levels.checked_sub(1).filter(|_| content.form() == Form::List) else { return };
    let mut add = |tool: &'static str, part| results.push(result(Some(&Cow::Borrowed(tool)), Some(part)));
    for part in content.items() {
        let kind = part.text_of("type").unwrap_or_default();
        if kind == own::FOUND && by_itself {
            add(own::FOUND, part);
        } else if is_medium(&kind) && holds_web_address(part, LEVELS_MAX) {
            add(own::FETCH, part);
        }
    }
    for part in content.items() {
        let within = if part.has("type", "document") {
            part.get("source").filter(|it| it.has("type", "content"))
        } else {
            Some(part).filter(|it| it.has("type", "tool_result"))
        };
        if let Some(inner) = within.and_then(|it| it.get("content")) {
            of_parts(inner, false, levels, results);
        }
    }
}

/// Whether a part of this kind is one that a provider may have to fetch: what is text, a call or a result is there as it is.
fn is_medium(kind: &str) -> bool {
    let is_text = OF_TEXT.contains(&kind) || OF_NO_FILE.contains(&kind);
    !is_text && !kind.ends_with("_result") && !kind.ends_with("tool_use") && !kind.starts_with("tool_")
}

/// Whether a value is an address of the web, or holds one where a part has its source.
fn holds_web_address(value: Value<'_>, levels: usize) -> bool {
    let Some(levels) = levels.checked_sub(1) else { return false };
    match value.form() {
        Form::Plain | Form::Escaped => is_web_address(value),
        Form::List => value.items().any(|it| holds_web_address(it, levels)),
        // Its parts are parts of their own, and a text is one whatever stands in it.
        Form::Object if value.has("type", "text") || value.has("type", "content") => false,
        Form::Object => value
            .members()
            .any(|(name, it)| !NO_SOURCE.contains(&&*name.text().unwrap_or_default()) && holds_web_address(it, levels)),
        Form::Null | Form::Bool(_) | Form::Number => false,
    }
}

/// Whether a text is an address of the web for whoever fetches it: that may be one with one slash or none, with backslashes, with signs
/// that nobody sees before it, and with line ends in it (WHATWG URL). What only begins like one counts as well: who fetches may be lenient.
pub(super) fn is_web_address(value: Value<'_>) -> bool {
    const SCHEMES: [&str; 2] = ["https:", "http:"];
    let text = value.text().unwrap_or_default();
    let text = text.trim_start_matches(|it: char| it.is_whitespace() || it.is_control());
    // Bytes that are held here have another scheme: they are not read for this.
    let mut signs = text.chars().filter(|it| !matches!(it, '\t' | '\n' | '\r'));
    let head: String = signs.by_ref().take("https://".len()).collect::<String>().to_ascii_lowercase();
    SCHEMES.iter().filter_map(|it| head.strip_prefix(it)).any(|rest| rest.starts_with("//") || is_fetched(text))
}

fn is_fetched(text: &str) -> bool {
    Url::parse(text).is_ok_and(|it| matches!(it.scheme(), "http" | "https") && it.has_host())
}
