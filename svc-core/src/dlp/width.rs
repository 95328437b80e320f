//! Signs that are written in full width, digits of other scripts, and what is not seen: what they say in ASCII is what is looked
//! through.

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
        _ if sign.is_ascii() || !sign.is_numeric() => Some(sign),
        _ => Some(digit(sign).unwrap_or(sign)),
    }
}

/// The decimal digit that a sign of another script is (Unicode, general category Nd).
fn digit(sign: char) -> Option<char> {
    let sign = u32::from(sign);
    let zero = ZEROS.get(ZEROS.partition_point(|it| *it <= sign).checked_sub(1)?)?;
    char::from_digit(sign.checked_sub(*zero)?, 10)
}

/// The zero of each script that has digits of its own, in their order; its nine others follow it.
#[rustfmt::skip]
const ZEROS: [u32; 73] = [
    0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50, 0xed0, 0xf20,
    0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0,
    0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0x104a0, 0x10d30, 0x10d40, 0x11066, 0x110f0, 0x11136, 0x111d0, 0x112f0,
    0x11450, 0x114d0, 0x11650, 0x116c0, 0x116d0, 0x116da, 0x11730, 0x118e0, 0x11950, 0x11bf0, 0x11c50, 0x11d50,
    0x11da0, 0x11f50, 0x16a60, 0x16ac0, 0x16b50, 0x16d70, 0x1ccf0, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6,
    0x1e140, 0x1e2f0, 0x1e4f0, 0x1e5f1, 0x1e950, 0x1fbf0,
];
