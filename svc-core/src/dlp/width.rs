//! Signs that are written in full width, or are not seen: what they say in ASCII is what is looked through.

use super::Span;

/// A text without them, and where each of its bytes stands in the text as it was.
pub(super) struct Narrow {
    pub(super) text: String,
    places: Vec<usize>,
}

impl Narrow {
    /// The narrow form of a text that has such signs.
    pub(super) fn of(text: &str) -> Option<Self> {
        if text.is_ascii() || !text.chars().any(|it| narrowed(it) != Some(it)) {
            return None;
        }
        let mut narrow = Self { text: String::with_capacity(text.len()), places: Vec::with_capacity(text.len()) };
        for (place, sign) in text.char_indices() {
            if let Some(sign) = narrowed(sign) {
                narrow.text.push(sign);
                narrow.places.resize(narrow.text.len(), place);
            }
        }
        narrow.places.push(text.len());
        Some(narrow)
    }

    /// Where what was found in it stands in the text as it was.
    pub(super) fn place(&self, found: Span) -> Span {
        let at = |place: usize| self.places.get(place).copied().unwrap_or_default();
        Span { start: at(found.start), end: at(found.end), ..found }
    }
}

/// What a sign says; nothing where it is not seen: joiners, breaks of no width, soft hyphens.
fn narrowed(sign: char) -> Option<char> {
    match sign {
        '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' => None,
        '\u{3000}' => Some(' '),
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(sign) - 0xfee0),
        _ => Some(sign),
    }
}
