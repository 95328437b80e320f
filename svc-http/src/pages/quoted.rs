//! What others wrote, as a page or a terminal shows it: names of clients, agents, workspaces and people.
//!
//! **Invariant:** none of it is markup, turns what stands around it, or hides in it.

use std::fmt::Write as _;

use svc_core::value::hidden::{is_hidden, is_space};

use crate::docs::escape;
use crate::pages::signs::{is_mark, is_unseen};

/// Others' text for a page, in an element of its own.
pub(crate) fn quoted(text: &str) -> String {
    format!("<bdi>{}</bdi>", apart(&escape(&plain(text))))
}

/// Each name of a sign in an element of its own: it is read from the left, whichever way what stands around it is.
fn apart(text: &str) -> String {
    let mut parts = text.split('\u{2039}');
    let mut apart = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('\u{203a}') {
            Some((name, after)) if name.contains("U+") => {
                let _ = write!(apart, "<bdi dir=\"ltr\">\u{2039}{name}\u{203a}</bdi>{after}");
            }
            _ => {
                let _ = write!(apart, "\u{2039}{part}");
            }
        }
    }
    apart
}

/// Spaces and ends of lines in a row that stand as they are; more would push what follows out of sight.
const SPACES_MAX: usize = 16;

/// Marks in a row that stand as they are on the sign before them; more would leave their line.
const MARKS_MAX: usize = 8;

/// The text with a name in the place of each sign that nobody sees, of many spaces in a row, and of marks that stand on no sign of the
/// text or on many others; as the page of an approval and the console have it. A sign that joins those beside it, or chooses their form,
/// stays where it does.
#[must_use]
pub fn plain(text: &str) -> String {
    let is_unseen_at_all = text.chars().all(|it| it.is_whitespace() || is_hidden(it));
    let mut plain = String::with_capacity(text.len());
    let mut before = [None; 2];
    let mut signs = text.chars().peekable();
    // Of the run of spaces that ends here: where it begins in what is shown, how many they are, and which.
    let (mut begin, mut many, mut which) = (0, 0, Vec::new());
    while let Some(sign) = signs.next() {
        if is_blank(sign) {
            if many == 0 {
                begin = plain.len();
                which.clear();
            }
            many += 1;
            if !which.contains(&sign) {
                which.push(sign);
            }
        } else {
            many = 0;
        }
        let is_named = if is_unseen_at_all {
            !matches!(sign, ' ' | '\t' | '\n')
        } else {
            is_unseen(sign, before, signs.peek().copied())
        };
        if is_named {
            let _ = write!(plain, "\u{2039}U+{:04X}\u{203a}", u32::from(sign));
        } else {
            plain.push(sign);
        }
        if many > SPACES_MAX && !signs.peek().copied().is_some_and(is_blank) {
            plain.truncate(begin);
            let names: Vec<String> = which.iter().map(|it| format!("U+{:04X}", u32::from(*it))).collect();
            let _ = write!(plain, "\u{2039}{many} \u{d7} {}\u{203a}", names.join(" "));
        }
        before = [Some(sign), before[0]];
    }
    if plain.chars().any(is_mark) { upheld(&plain) } else { plain }
}

/// The same with a name in the place of each mark that has nothing of the text to stand on, and of those beyond the first few: it would
/// strike through what is before the text, or cover the lines around it.
fn upheld(text: &str) -> String {
    let mut upheld = String::with_capacity(text.len());
    let (mut has_base, mut many) = (false, 0);
    for sign in text.chars() {
        if is_mark(sign) || matches!(sign, '\u{200c}' | '\u{200d}') {
            many += 1;
            if has_base && many <= MARKS_MAX {
                upheld.push(sign);
            } else {
                let _ = write!(upheld, "\u{2039}U+{:04X}\u{203a}", u32::from(sign));
            }
        } else {
            // The name of a sign is ours.
            has_base = !sign.is_whitespace() && sign != '\u{203a}';
            many = 0;
            upheld.push(sign);
        }
    }
    upheld
}

/// The same in one line: no part of it can be taken for a line of ours.
#[must_use]
pub fn in_line(text: &str) -> String {
    plain(text).replace(['\n', '\t'], " ")
}

/// Spaces of every width, tabs and ends of lines.
const fn is_blank(sign: char) -> bool {
    matches!(sign, '\t' | '\n') || is_space(sign)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// Nothing in a text is unseen or moves what is beside it, and texts of every script are left as they are. The checks of the pages'
    /// scripts read the same cases.
    #[test]
    fn what_is_not_seen_is_named() {
        let cases: Vec<(String, String)> = serde_json::from_str(include_str!("quoted.cases.json")).unwrap();
        assert!(cases.len() > 30);
        for (text, shown) in cases {
            assert_eq!(plain(&text), shown, "{}", text.escape_unicode());
        }
        assert_eq!(quoted("<b>\u{202e}a"), "<bdi>&lt;b&gt;<bdi dir=\"ltr\">‹U+202E›</bdi>a</bdi>");
        assert_eq!(quoted("‹a› b‹"), "<bdi>‹a› b‹</bdi>");
    }
}
