//! Signs of a text that nobody sees.
//!
//! **Invariant:** what is looked through for what should not leave, and what is shown to people, go by this one list.

/// Controls, signs of format (the Unicode category Cf) and of lines, letters without a shape, and what no font shows
/// (`Default_Ignorable_Code_Point`). Tabs and ends of lines are seen.
#[must_use]
pub fn is_hidden(sign: char) -> bool {
    if sign.is_control() {
        return !matches!(sign, '\t' | '\n');
    }
    // Most of what is read is below them all.
    if sign < '\u{ad}' {
        return false;
    }
    matches!(
        sign,
        '\u{ad}'
            | '\u{34f}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{110bd}'
            | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// A space of any width (the Unicode category Zs).
#[must_use]
pub const fn is_space(sign: char) -> bool {
    matches!(sign, ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}')
}
