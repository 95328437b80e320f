//! What others wrote, as a page shows it: names of clients, agents, workspaces and people.
//!
//! **Invariant:** none of it is markup, turns what stands around it, or hides in it.

use std::fmt::Write as _;

use crate::docs::escape;
use crate::pages::signs::{is_hidden, is_unseen};

/// Others' text for a page, in an element of its own.
pub(crate) fn quoted(text: &str) -> String {
    format!("<bdi>{}</bdi>", escape(&plain(text)))
}

/// The text with a name in the place of each sign that nobody sees; as the page of an approval and the console have it. A sign that
/// joins those beside it, or chooses their form, stays where it does.
pub(crate) fn plain(text: &str) -> String {
    let is_blank = text.chars().all(|it| it.is_whitespace() || is_hidden(it));
    let mut plain = String::with_capacity(text.len());
    let mut before = [None; 2];
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        let is_named =
            if is_blank { !matches!(sign, ' ' | '\t' | '\n') } else { is_unseen(sign, before, signs.peek().copied()) };
        if is_named {
            let _ = write!(plain, "\u{2039}U+{:04X}\u{203a}", u32::from(sign));
        } else {
            plain.push(sign);
        }
        before = [Some(sign), before[0]];
    }
    plain
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
        assert_eq!(quoted("<b>\u{202e}"), "<bdi>&lt;b&gt;‹U+202E›</bdi>");
    }
}
