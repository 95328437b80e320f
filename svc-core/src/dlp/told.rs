//! Words before a number that tell what it is.
//!
//! Numbers are asked for from left to right, and each asks about the same bytes as those before it: where a word ended is remembered,
//! so that a byte is searched for words once, however many numbers follow it.

use std::cell::Cell;

use super::text::Text;

/// What a word tells of the number behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Phone,
    SocialSecurity,
    Dni,
    Cpf,
    Insurance,
}

/// The words, in lower case.
const WORDS: [(&str, Told); 29] = [
    ("phone", Told::Phone),
    ("tel", Told::Phone),
    ("telephone", Told::Phone),
    ("telefon", Told::Phone),
    ("teléfono", Told::Phone),
    ("telefono", Told::Phone),
    ("tél", Told::Phone),
    ("mobile", Told::Phone),
    ("mobil", Told::Phone),
    ("cell", Told::Phone),
    ("call", Told::Phone),
    ("fax", Told::Phone),
    ("handy", Told::Phone),
    ("móvil", Told::Phone),
    ("movil", Told::Phone),
    ("whatsapp", Told::Phone),
    ("sms", Told::Phone),
    ("portable", Told::Phone),
    ("ring", Told::Phone),
    ("dial", Told::Phone),
    ("ssn", Told::SocialSecurity),
    ("social security", Told::SocialSecurity),
    ("dni", Told::Dni),
    ("nie", Told::Dni),
    ("nif", Told::Dni),
    ("cpf", Told::Cpf),
    ("nino", Told::Insurance),
    ("national insurance", Told::Insurance),
    ("ni number", Told::Insurance),
];

/// So many bytes before a telephone number are searched.
const WITHIN_OF_PHONES: usize = 24;
/// And before any other number, which is as far as any is.
const WITHIN: usize = 40;

impl Told {
    const fn within(self) -> usize {
        match self {
            Self::Phone => WITHIN_OF_PHONES,
            Self::SocialSecurity | Self::Dni | Self::Cpf | Self::Insurance => WITHIN,
        }
    }
}

/// How far a text was searched, and where the last word of each kind began.
#[derive(Default)]
pub(super) struct Words {
    /// Words that end up to here were found.
    upto: Cell<usize>,
    phone: Cell<Option<usize>>,
    social_security: Cell<Option<usize>>,
    dni: Cell<Option<usize>>,
    cpf: Cell<Option<usize>>,
    insurance: Cell<Option<usize>>,
}

impl Words {
    const fn of(&self, told: Told) -> &Cell<Option<usize>> {
        match told {
            Told::Phone => &self.phone,
            Told::SocialSecurity => &self.social_security,
            Told::Dni => &self.dni,
            Told::Cpf => &self.cpf,
            Told::Insurance => &self.insurance,
        }
    }

    /// Whether a word that tells this stands whole among the bytes before a place that are searched for it.
    pub(super) fn tell(&self, text: &Text<'_>, place: usize, told: Told) -> bool {
        // Whoever goes back begins anew.
        let upto = Some(self.upto.get()).filter(|it| *it <= place).unwrap_or_else(|| self.forget());
        let from = upto.max(place.saturating_sub(WITHIN));
        for end in from.saturating_add(1)..=place {
            self.find(text, end);
        }
        self.upto.set(place);
        self.of(told).get().is_some_and(|start| start >= place.saturating_sub(told.within()))
    }

    /// Forgets what was found; up to where words were found then.
    fn forget(&self) -> usize {
        for found in [&self.phone, &self.social_security, &self.dni, &self.cpf, &self.insurance] {
            found.set(None);
        }
        0
    }

    /// Finds the words that end here.
    fn find(&self, text: &Text<'_>, end: usize) {
        let Some(last) = text.before(end).map(|it| it.to_ascii_lowercase()).filter(u8::is_ascii_alphabetic) else {
            return;
        };
        if text.at(end).is_some_and(|it| it.is_ascii_alphanumeric()) {
            return;
        }
        for (word, told) in &WORDS {
            let (Some(start), true) = (end.checked_sub(word.len()), word.as_bytes().last() == Some(&last)) else {
                continue;
            };
            let is_whole = !text.before(start).is_some_and(|it| it.is_ascii_alphanumeric());
            if text.has_ignoring_case(start, word) && is_whole {
                let found = self.of(*told);
                found.set(found.get().max(Some(start)));
            }
        }
    }
}
