//! Putting one thing into a text of JSON, and taking one out.

use serde_json::Value;

use super::json::Node;

/// What a level is set in by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Indent<'a>(&'a str);

impl<'a> Indent<'a> {
    /// As the text has it: what stands before its first member; two blanks where that says nothing.
    pub(super) fn of(text: &'a str, root: &Node) -> Self {
        let first = root.children().first().map(|it| it.start);
        let before = first.and_then(|it| text.get(..it)).and_then(|it| it.rsplit_once('\n')).map(|it| it.1);
        let blank = before.filter(|it| !it.is_empty() && it.chars().all(|at| matches!(at, ' ' | '\t')));
        Self(blank.unwrap_or("  "))
    }
}

/// The text with one value more behind the last in `container`, under a name where it is an object. What the container holds
/// is set in `level` times.
pub(super) fn append(
    text: &str,
    container: &Node,
    name: Option<&str>,
    value: &Value,
    indent: Indent<'_>,
    level: usize,
) -> String {
    let (outer, inner) = (indent.0.repeat(level - 1), indent.0.repeat(level));
    let value = pretty(value, indent.0).replace('\n', &format!("\n{inner}"));
    let item = match name {
        Some(name) => format!("{}: {value}", Value::from(name)),
        None => value,
    };
    let close = container.span.end - 1;
    let (at, new) = match container.children().last() {
        None => {
            let inside = text.get(container.span.start + 1..close).unwrap_or_default();
            if inside.trim().is_empty() && level > 1 {
                // Nothing is put behind it: by that, whoever takes it out again sees that this stood there empty.
                return replaced(text, close, close, &format!("\n{inner}{item}"));
            }
            if inside.trim().is_empty() {
                let all = format!("\n{inner}{item}\n{outer}");
                return replaced(text, container.span.start + 1, close, &all);
            }
            // A comment stands there: it stays in front.
            let from = container.span.start + 1 + inside.trim_end().len();
            return replaced(text, from, close, &format!("\n{inner}{item}\n{outer}"));
        }
        Some(last) => match comma(text, last.end, close) {
            Some(comma) => (comma + 1, format!("\n{inner}{item}")),
            None => (last.end, format!(",\n{inner}{item}")),
        },
    };
    replaced(text, at, at, &new)
}

/// Whether a container stood there empty before its last child was put into it.
pub(super) fn was_empty(container: &Node) -> bool {
    container.children().last().is_some_and(|it| it.end + 1 == container.span.end)
}

/// The text without the child at `at` of `container`.
pub(super) fn remove(text: &str, container: &Node, at: usize) -> String {
    let children = container.children();
    let Some(own) = children.get(at) else { return text.to_owned() };
    let (open, close) = (container.span.start + 1, container.span.end - 1);
    match (at.checked_sub(1).and_then(|it| children.get(it)), children.get(at + 1)) {
        (None, None) => {
            let before = text.get(open..own.start).unwrap_or_default();
            let after = text.get(own.end..close).unwrap_or_default();
            let is_blank = |it: &str| it.trim_matches([' ', '\t', '\r', '\n', ',']).is_empty();
            let (from, to) = match (is_blank(before), is_blank(after)) {
                (true, true) if after.is_empty() => (open + before.rfind('\n').unwrap_or(0), close),
                (true, true) => (open, close),
                _ => (own.start, comma(text, own.end, close).map_or(own.end, |it| it + 1)),
            };
            replaced(text, from, to, "")
        }
        (None, Some(next)) => match comma(text, own.end, next.start) {
            Some(comma) if text.get(comma + 1..next.start).is_some_and(|it| it.trim().is_empty()) => {
                replaced(text, own.start, next.start, "")
            }
            Some(comma) => replaced(text, own.start, comma + 1, ""),
            None => text.to_owned(),
        },
        (Some(previous), _) => {
            let Some(comma) = comma(text, previous.end, own.start) else { return text.to_owned() };
            let between = text.get(comma + 1..own.start).unwrap_or_default();
            let blank = between.len() - between.trim_end().len();
            let shorter = replaced(text, own.start - blank, own.end, "");
            replaced(&shorter, comma, comma + 1, "")
        }
    }
}

/// Where the comma stands in a stretch that otherwise holds blanks and comments.
fn comma(text: &str, from: usize, to: usize) -> Option<usize> {
    let mut at = from;
    while at < to {
        let rest = text.get(at..to)?;
        at += match rest.as_bytes() {
            [b',', ..] => return Some(at),
            [b'/', b'/', ..] => rest.find('\n')?,
            [b'/', b'*', ..] => rest.find("*/")? + 2,
            _ => rest.chars().next()?.len_utf8(),
        };
    }
    None
}

fn replaced(text: &str, from: usize, to: usize, new: &str) -> String {
    let (before, after) = (text.get(..from).unwrap_or_default(), text.get(to..).unwrap_or_default());
    format!("{before}{new}{after}")
}

fn pretty(value: &Value, indent: &str) -> String {
    let mut out = Vec::new();
    let style = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
    let mut writer = serde_json::Serializer::with_formatter(&mut out, style);
    // A `Value` can always be written to memory.
    let _ = serde::Serialize::serialize(value, &mut writer);
    String::from_utf8_lossy(&out).into_owned()
}
