//! International bank account numbers (ISO 13616): the length of the country, and remainder 1 of 97.

use super::text::Text;

/// Countries of the registry and the length of their numbers.
#[rustfmt::skip]
const LENGTHS: [(&[u8; 2], usize); 89] = [
    (b"AD", 24), (b"AE", 23), (b"AL", 28), (b"AT", 20), (b"AZ", 28), (b"BA", 20), (b"BE", 16), (b"BG", 22),
    (b"BH", 22), (b"BI", 27), (b"BR", 29), (b"BY", 28), (b"CH", 21), (b"CR", 22), (b"CY", 28), (b"CZ", 24),
    (b"DE", 22), (b"DJ", 27), (b"DK", 18), (b"DO", 28), (b"EE", 20), (b"EG", 29), (b"ES", 24), (b"FI", 18),
    (b"FK", 18), (b"FO", 18), (b"FR", 27), (b"GB", 22), (b"GE", 22), (b"GI", 23), (b"GL", 18), (b"GR", 27),
    (b"GT", 28), (b"HN", 28), (b"HR", 21), (b"HU", 28), (b"IE", 22), (b"IL", 23), (b"IQ", 23), (b"IS", 26),
    (b"IT", 27), (b"JO", 30), (b"KW", 30), (b"KZ", 20), (b"LB", 28), (b"LC", 32), (b"LI", 21), (b"LT", 20),
    (b"LU", 20), (b"LV", 21), (b"LY", 25), (b"MC", 27), (b"MD", 24), (b"ME", 22), (b"MK", 19), (b"MN", 20),
    (b"MR", 27), (b"MT", 31), (b"MU", 30), (b"NI", 28), (b"NL", 18), (b"NO", 15), (b"OM", 23), (b"PK", 24),
    (b"PL", 28), (b"PS", 29), (b"PT", 25), (b"QA", 29), (b"RO", 24), (b"RS", 22), (b"RU", 33), (b"SA", 24),
    (b"SC", 31), (b"SD", 18), (b"SE", 24), (b"SI", 19), (b"SK", 24), (b"SM", 27), (b"SO", 23), (b"ST", 25),
    (b"SV", 28), (b"TL", 23), (b"TN", 24), (b"TR", 26), (b"UA", 29), (b"VA", 22), (b"VG", 24), (b"XK", 20),
    (b"YE", 30),
];
/// Digits that the account's part of every number has at least.
const DIGITS_MIN: usize = 6;

/// Where an account number that begins here ends.
pub(super) fn iban(text: &Text<'_>, place: usize) -> Option<usize> {
    let country = [text.at(place)?.to_ascii_uppercase(), text.at(place.checked_add(1)?)?.to_ascii_uppercase()];
    let check = text.part(place.checked_add(2)?, place.checked_add(4)?);
    if !check.iter().all(u8::is_ascii_digit) || matches!(check, b"00" | b"01" | b"99") {
        return None;
    }
    let length = LENGTHS.iter().find(|(code, _)| **code == country)?.1;
    let (number, end) = collect(text, place, length)?;
    let digits = number.iter().skip(4).filter(|it| it.is_ascii_digit()).count();
    (text.ends(end) && digits >= DIGITS_MIN && remainder(&number) == 1).then_some(end)
}

/// So many letters and digits, alone or in groups of four, and where they end.
fn collect(text: &Text<'_>, place: usize, length: usize) -> Option<(Vec<u8>, usize)> {
    let mut number = Vec::with_capacity(length);
    let mut at = place;
    let grouped = text.separator(place.checked_add(4)?) > 0;
    while number.len() < length {
        if grouped && !number.is_empty() && number.len() % 4 == 0 {
            let width = text.separator(at);
            if width == 0 {
                return None;
            }
            at = at.checked_add(width)?;
        }
        let byte = text.at(at).filter(u8::is_ascii_alphanumeric)?;
        number.push(byte.to_ascii_uppercase());
        at = at.checked_add(1)?;
    }
    Some((number, at))
}

/// The remainder by 97 of the number with its first four characters behind the rest and letters as 10 to 35.
fn remainder(number: &[u8]) -> u32 {
    let (head, tail) = number.split_at_checked(4).unwrap_or_default();
    tail.iter().chain(head).fold(0, |rest: u32, byte| match byte {
        b'0'..=b'9' => (rest * 10 + u32::from(byte - b'0')) % 97,
        _ => (rest * 100 + u32::from(byte.saturating_sub(b'A')) + 10) % 97,
    })
}
