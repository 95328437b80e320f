//! Goes through a text once, and asks at each place where something may begin the detectors that know its first byte.

use super::text::{Text, is_word};
use super::{Kind, Span, card, contact, iban, key, national};

/// What was found, from left to right; no two spans overlap.
pub(super) struct Scan<'a, 't> {
    text: &'t Text<'a>,
    place: usize,
    /// Where the last finding ended.
    free: usize,
}

impl<'a, 't> Scan<'a, 't> {
    pub(super) const fn new(text: &'t Text<'a>) -> Self {
        Self { text, place: 0, free: 0 }
    }

    /// What begins at this place, by its first byte.
    fn begin(&self, place: usize, byte: u8) -> Option<Span> {
        let text = self.text;
        let span = |kind: Kind, start: usize| move |end: usize| Span { kind, start, end };
        match byte {
            b'@' => contact::email(text, place, self.free).map(|(start, end)| Span { kind: Kind::Email, start, end }),
            b'-' => key::pem(text, place).map(span(Kind::PrivateKey, place)),
            b':' => key::in_address(text, place).map(|(start, end)| Span { kind: Kind::ApiKey, start, end }),
            b'+' | b'(' => contact::phone(text, place).map(span(Kind::Phone, place)),
            _ if !is_word(byte) || !text.begins(place) => None,
            b'0'..=b'9' => card::card(text, place)
                .map(span(Kind::PaymentCard, place))
                .or_else(|| national::in_digits(text, place).map(span(Kind::NationalId, place)))
                .or_else(|| contact::phone(text, place).map(span(Kind::Phone, place)))
                .or_else(|| key::assigned(text, place).map(span(Kind::ApiKey, place))),
            _ => key::jwt(text, place)
                .map(span(Kind::Jwt, place))
                .or_else(|| key::prefixed(text, place).map(span(Kind::ApiKey, place)))
                .or_else(|| iban::iban(text, place).map(span(Kind::Iban, place)))
                .or_else(|| national::in_letters(text, place).map(span(Kind::NationalId, place)))
                .or_else(|| key::assigned(text, place).map(span(Kind::ApiKey, place))),
        }
    }
}

impl Iterator for Scan<'_, '_> {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        while let Some(byte) = self.text.at(self.place) {
            let found = self.begin(self.place, byte).filter(|it| it.start >= self.free && it.end > it.start);
            if let Some(span) = found {
                self.place = span.end;
                self.free = span.end;
                return Some(span);
            }
            self.place = self.place.saturating_add(1);
        }
        None
    }
}
