//! What others wrote, as a page shows it: names of clients, agents, workspaces and people.
//!
//! **Invariant:** none of it is markup, turns what stands around it, or hides in it.

use std::fmt::Write as _;

use crate::docs::escape;

/// Others' text for a page, in an element of its own.
pub(crate) fn quoted(text: &str) -> String {
    format!("<bdi>{}</bdi>", escape(&plain(text)))
}

/// The text with a name in the place of each sign that nobody sees; as the page of an approval has it. A sign that joins those
/// beside it stays, unless there is nothing to join.
pub(crate) fn plain(text: &str) -> String {
    let is_blank = text.chars().all(|it| it.is_whitespace() || is_hidden(it) || is_joining(it));
    let mut plain = String::with_capacity(text.len());
    for sign in text.chars() {
        if is_hidden(sign) || (is_blank && !matches!(sign, ' ' | '\t' | '\n')) {
            let _ = write!(plain, "\u{2039}U+{:04X}\u{203a}", u32::from(sign));
        } else {
            plain.push(sign);
        }
    }
    plain
}

/// Controls, signs of format (the Unicode category Cf, but for the joiners) and of lines, and letters without a shape.
fn is_hidden(sign: char) -> bool {
    if sign.is_control() {
        return !matches!(sign, '\t' | '\n');
    }
    matches!(
        sign,
        '\u{ad}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{115f}'..='\u{1160}'
            | '\u{180e}'
            | '\u{200b}'
            | '\u{200e}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2064}'
            | '\u{2066}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{110bd}'
            | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0001}'
            | '\u{e0020}'..='\u{e007f}'
    )
}

/// Signs that change those beside them and have no shape of their own.
fn is_joining(sign: char) -> bool {
    matches!(
        sign,
        '\u{34f}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200c}'..='\u{200d}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{e0100}'..='\u{e01ef}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing in a name is unseen or moves what is beside it, and names of every script are left as they are.
    #[test]
    fn what_is_not_seen_is_named() {
        let named = [
            ("Google\u{202e}\u{2066}", "Google‹U+202E›‹U+2066›"),
            ("\u{200b}\u{feff}", "‹U+200B›‹U+FEFF›"),
            ("\u{200d}", "‹U+200D›"),
            ("\u{3164}\u{a0}\u{fe0f}", "‹U+3164›‹U+00A0›‹U+FE0F›"),
            ("a\u{7}\u{2028}b", "a‹U+0007›‹U+2028›b"),
            ("Desk\u{e0041}", "Desk‹U+E0041›"),
        ];
        for (name, shown) in named {
            assert_eq!(plain(name), shown);
        }
        for name in ["Jörg & <b>", "מותר", "می\u{200c}خواهم", "क\u{94d}\u{200d}ष", "👩\u{200d}🔧", "❤\u{fe0f}", ""]
        {
            assert_eq!(plain(name), name);
        }
        assert_eq!(quoted("<b>\u{202e}"), "<bdi>&lt;b&gt;‹U+202E›</bdi>");
    }
}
