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
/// is set in `level` times. A comment stays in the line that it is about, and a comma behind the last stays one.
pub(super) fn append(
    text: &str,
    container: &Node,
    name: Option<&str>,
    value: &Value,
    indent: Indent<'_>,
    level: usize,
) -> String {
    let (outer, inner) = (indent.0.repeat(level - 1), indent.0.repeat(level));
    let is_blank = |it: &str| it.trim().is_empty();
    let value = pretty(value, indent.0).replace('\n', &format!("\n{inner}"));
    let item = match name {
        Some(name) => format!("{}: {value}", Value::from(name)),
        None => value,
    };
    let close = container.span.end - 1;
    let open = container.span.start + 1;
    let inside = text.get(open..close).unwrap_or_default();
    match container.children().last() {
        // Nothing is put behind it: by that, whoever takes it out again sees that this stood there empty.
        None if is_blank(inside) && (level > 1 || !inside.is_empty()) => {
            replaced(text, close, close, &format!("\n{inner}{item}"))
        }
        None if is_blank(inside) => replaced(text, open, close, &format!("\n{inner}{item}\n{outer}")),
        None => {
            let at = open + inside.trim_end().len();
            replaced(text, at, at, &format!("\n{inner}{item}"))
        }
        Some(last) => match comma(text, last.end, close) {
            Some(comma) => {
                let at = behind_comments(text, comma + 1, close);
                replaced(text, at, at, &format!("\n{inner}{item},"))
            }
            None => {
                let at = behind_comments(text, last.end, close);
                let longer = replaced(text, at, at, &format!("\n{inner}{item}"));
                replaced(&longer, last.end, last.end, ",")
            }
        },
    }
}

/// Whether a container stood there before its last child was put into it: empty, or with comments in it.
pub(super) fn was_there(text: &str, container: &Node) -> bool {
    let children = container.children();
    let (Some(first), Some(last)) = (children.first(), children.last()) else { return true };
    let before = text.get(container.span.start + 1..first.start).unwrap_or_default();
    let after = text.get(last.end..container.span.end - 1).unwrap_or_default();
    after.is_empty() || !is_filling(before) || !is_filling(after)
}

/// Whether this is what stands between values and says nothing.
fn is_filling(text: &str) -> bool {
    text.trim_matches([' ', '\t', '\r', '\n', ',']).is_empty()
}

/// The text without the child at `at` of `container`.
pub(super) fn remove(text: &str, container: &Node, at: usize) -> String {
    let children = container.children();
    let Some(own) = children.get(at) else { return text.to_owned() };
    let (open, close) = (container.span.start + 1, container.span.end - 1);
    let (previous, next) = (at.checked_sub(1).and_then(|it| children.get(it)), children.get(at + 1));
    let from = previous.map_or(open, |it| it.end);
    let own_comma = comma(text, own.end, next.map_or(close, |it| it.start));
    let blanks = text.get(from..own.start).map_or(0, |it| it.len() - it.trim_end().len());
    match (previous, next) {
        (None, None) => {
            let before = text.get(open..own.start).unwrap_or_default();
            let after = text.get(own.end..close).unwrap_or_default();
            let (from, to) = match (is_filling(before), is_filling(after)) {
                (true, true) if after.is_empty() => (open + before.rfind('\n').unwrap_or(0), close),
                (true, true) => (open, close),
                (true, false) => (own.start, own_comma.map_or(own.end, |it| it + 1)),
                (false, _) => (own.start - blanks, own_comma.map_or(own.end, |it| it + 1)),
            };
            replaced(text, from, to, "")
        }
        (None, Some(next)) => match own_comma {
            Some(comma) if text.get(comma + 1..next.start).is_some_and(|it| it.trim().is_empty()) => {
                replaced(text, own.start, next.start, "")
            }
            Some(comma) => replaced(text, own.start, comma + 1, ""),
            None => text.to_owned(),
        },
        // What has a comma of its own takes that along, and else the one before it.
        (Some(previous), _) => {
            let Some(before) = comma(text, previous.end, own.start) else { return text.to_owned() };
            match own_comma {
                Some(comma) => {
                    let shorter = replaced(text, comma, comma + 1, "");
                    replaced(&shorter, own.start - blanks, own.end, "")
                }
                None => {
                    let shorter = replaced(text, own.start - blanks, own.end, "");
                    replaced(&shorter, before, before + 1, "")
                }
            }
        }
    }
}

/// Where comments end that stand behind something in its line.
fn behind_comments(text: &str, from: usize, to: usize) -> usize {
    let (mut at, mut end) = (from, from);
    while at < to {
        let rest = text.get(at..to).unwrap_or_default();
        match rest.as_bytes() {
            [b' ' | b'\t', ..] => at += 1,
            [b'/', b'/', ..] => return at + rest.lines().next().unwrap_or_default().trim_end().len(),
            [b'/', b'*', ..] => {
                let Some(length) = rest.find("*/") else { return end };
                at += length + 2;
                end = at;
            }
            _ => return end,
        }
    }
    end
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
