//! Signs that are written in full width, digits of other scripts, spaces of every width, and what is not seen: what they say in ASCII is
//! what is looked through.

use super::Span;
use crate::value::hidden::{is_hidden, is_space};

/// A text without them, and where its parts stand in the text as it was.
#[derive(Default)]
pub(super) struct Narrow {
    pub(super) text: String,
    /// Places in it, and where what begins there stands in the text as it was; between two of them it goes on as that does. Of several
    /// for one place the last is meant: what is not seen belongs to what stands before it.
    places: Vec<(usize, usize)>,
}

impl Narrow {
    /// The narrow form of a text that has such signs.
    pub(super) fn of(text: &str) -> Option<Self> {
        // Most texts have nothing else, and are looked at in strides.
        if text.as_bytes().chunks(64).all(|stride| stride.iter().fold(true, |all, it| all & is_plain(*it))) {
            return None;
        }
        let (mut narrow, mut kept) = (Self::default(), 0);
        for (place, sign) in text.char_indices() {
            // One that ends no line is a blank, as other ends of lines are that nobody sees.
            let is_alone = sign == '\r' && text.as_bytes().get(place.saturating_add(1)) != Some(&b'\n');
            let said = if is_alone { Some(' ') } else { narrowed(sign) };
            if said == Some(sign) {
                continue;
            }
            narrow.text.push_str(text.get(kept..place)?);
            narrow.places.push((narrow.text.len(), place));
            narrow.text.extend(said);
            kept = place.saturating_add(sign.len_utf8());
            narrow.places.push((narrow.text.len(), kept));
        }
        narrow.text.push_str(text.get(kept..)?);
        (!narrow.places.is_empty()).then_some(narrow)
    }

    /// Where what was found in it stands in the text as it was.
    pub(super) fn place(&self, found: Span) -> Span {
        let at = |place: usize| {
            let before = self.places.partition_point(|(here, _)| *here <= place).checked_sub(1);
            let (here, there) = before.and_then(|it| self.places.get(it)).copied().unwrap_or_default();
            there.saturating_add(place.saturating_sub(here))
        };
        Span { start: at(found.start), end: at(found.end), ..found }
    }
}

/// Whether a byte is a sign of ASCII that says itself, whatever stands behind it.
const fn is_plain(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b' '..=b'~')
}

/// What a sign says; nothing where it is not seen. A blank is a space, as is what ends a line unseen: words stand apart by them.
fn narrowed(sign: char) -> Option<char> {
    match sign {
        '\t' | '\n' | '\r' | ' '..='~' => Some(sign),
        '\u{b}'
        | '\u{c}'
        | '\u{1c}'..='\u{1f}'
        | '\u{85}'
        | '\u{2028}'
        | '\u{2029}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{2800}'
        | '\u{3164}'
        | '\u{ffa0}' => Some(' '),
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(sign) - 0xfee0),
        _ if is_space(sign) => Some(' '),
        _ if is_hidden(sign) => None,
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
