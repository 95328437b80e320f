//! A text as the detectors see it: bytes by place, and what stands around a place.

#[cfg(test)]
use std::cell::Cell;

use super::few::Few;
use super::told::{Told, Words};

/// A text. What a detector searches is ASCII, but for letters of a domain, so a place that it finds is always between two characters.
pub(super) struct Text<'a> {
    bytes: &'a [u8],
    /// Words before numbers, as far as they were looked for.
    words: Words,
    /// How often a byte was looked at: what a test holds the work to.
    #[cfg(test)]
    reads: Cell<u64>,
}

impl<'a> Text<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            bytes: text.as_bytes(),
            words: Words::default(),
            #[cfg(test)]
            reads: Cell::new(0),
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The byte at a place.
    pub(super) fn at(&self, place: usize) -> Option<u8> {
        #[cfg(test)]
        self.reads.set(self.reads.get() + 1);
        self.bytes.get(place).copied()
    }

    /// How often a byte was looked at.
    #[cfg(test)]
    pub(super) const fn reads(&self) -> u64 {
        self.reads.get()
    }

    /// The byte before a place.
    pub(super) fn before(&self, place: usize) -> Option<u8> {
        self.at(place.checked_sub(1)?)
    }

    /// The bytes of a part; each counts as looked at.
    pub(super) fn part(&self, from: usize, to: usize) -> &'a [u8] {
        #[cfg(test)]
        self.reads.set(self.reads.get() + u64::try_from(to.saturating_sub(from)).unwrap_or(0));
        self.bytes.get(from..to).unwrap_or_default()
    }

    /// Whether these bytes stand at a place.
    pub(super) fn has(&self, place: usize, wanted: &str) -> bool {
        wanted.bytes().enumerate().all(|(offset, byte)| self.at(place.saturating_add(offset)) == Some(byte))
    }

    /// The same for bytes in lower case, whatever the case of those here.
    pub(super) fn has_ignoring_case(&self, place: usize, wanted: &str) -> bool {
        let is_there =
            |(offset, byte)| self.at(place.saturating_add(offset)).map(|it| it.to_ascii_lowercase()) == Some(byte);
        wanted.bytes().enumerate().all(is_there)
    }

    /// Where bytes of a class that begin at a place end, at most `max` of them.
    pub(super) fn run(&self, from: usize, max: usize, class: impl Fn(u8) -> bool) -> usize {
        let mut place = from;
        while place.saturating_sub(from) < max && self.at(place).is_some_and(&class) {
            place = place.saturating_add(1);
        }
        place
    }

    /// Whether a word may begin here: no letter, digit or `_` stands before, but for the letter of an escape such as
    /// `\n`, which a JSON text within a text has.
    pub(super) fn begins(&self, place: usize) -> bool {
        match self.before(place) {
            Some(b'n' | b'r' | b't') => place.checked_sub(2).and_then(|it| self.at(it)) == Some(b'\\'),
            before => !before.is_some_and(is_word),
        }
    }

    /// Whether a word ends before this place.
    pub(super) fn ends(&self, place: usize) -> bool {
        !self.at(place).is_some_and(is_word)
    }

    /// How many bytes a separator between groups of a number takes here; none where there is none. A space of any width is one of ASCII.
    pub(super) fn separator(&self, place: usize) -> usize {
        match self.at(place) {
            Some(b' ') if self.at(place.saturating_add(1)) == Some(b' ') => 2,
            Some(b' ' | b'-' | b'.') => 1,
            Some(0xe2) if self.at(place.saturating_add(1)) == Some(0x80) => match self.at(place.saturating_add(2)) {
                Some(0x90 | 0x91 | 0x93) => 3, // hyphens, the en dash
                _ => 0,
            },
            _ => 0,
        }
    }

    /// What ends a line or a column here, and how many bytes it takes: as it is, or as a JSON text within a text writes it.
    fn broken(&self, place: usize) -> Option<(u8, usize)> {
        match (self.at(place)?, self.at(place.saturating_add(1))) {
            (byte @ (b'\t' | b'\n'), _) => Some((byte, 1)),
            (b'\r', Some(b'\n')) | (b'\\', Some(b'n')) => Some((b'\n', 2)),
            (b'\\', Some(b't')) => Some((b'\t', 2)),
            (b'\\', Some(b'r')) if self.has(place.saturating_add(2), "\\n") => Some((b'\n', 4)),
            (b'\\', Some(b'r')) => Some((b'\n', 2)),
            _ => None,
        }
    }

    /// What joins the parts of a path or of a name here, and how many bytes it takes: as it is, or as a JSON text within a text may
    /// write it.
    pub(super) fn joint(&self, place: usize) -> Option<(u8, usize)> {
        match (self.at(place)?, self.at(place.saturating_add(1))) {
            (byte @ (b'/' | b'_'), _) => Some((byte, 1)),
            (b'\\', Some(b'/')) => Some((b'/', 2)),
            _ => None,
        }
    }

    /// Whether so many digits stand in the line or the column before this place.
    pub(super) fn follows_digits(&self, place: usize, count: usize) -> bool {
        (1..=4).filter_map(|width| place.checked_sub(width)).any(|end| {
            let is_between = self.broken(end).is_some_and(|(_, width)| end.saturating_add(width) == place);
            is_between && end.checked_sub(count).is_some_and(|it| self.part(it, end).iter().all(u8::is_ascii_digit))
        })
    }

    /// Groups of digits from a place on, with one separator between two: up to `max` of them.
    pub(super) fn groups(&self, from: usize, max: usize) -> Groups {
        self.groups_by(from, max, |end| match self.separator(end) {
            0 => None,
            width => Some((self.at(end).unwrap_or_default(), width)),
        })
    }

    /// The same with each group in a line or a column of its own.
    pub(super) fn broken_groups(&self, from: usize, max: usize) -> Groups {
        self.groups_by(from, max, |end| self.broken(end))
    }

    /// The same with the groups joined as the parts of a path or of a name are.
    pub(super) fn joined_groups(&self, from: usize, max: usize) -> Groups {
        self.groups_by(from, max, |end| self.joint(end))
    }

    fn groups_by(&self, from: usize, max: usize, separator: impl Fn(usize) -> Option<(u8, usize)>) -> Groups {
        let mut groups = Groups { list: Few::new(), separators: Few::new() };
        let mut place = from;
        while groups.list.len() < max.min(GROUPS_MAX) {
            let end = self.run(place, GROUP_MAX, |it| it.is_ascii_digit());
            if end == place {
                break;
            }
            groups.list.push((place, end));
            let Some((byte, width)) = separator(end) else { break };
            groups.separators.push(byte);
            place = end.saturating_add(width);
        }
        groups
    }

    /// The digits of groups, one after the other.
    pub(super) fn digits(&self, groups: &[(usize, usize)]) -> Vec<u8> {
        let parts = groups.iter().flat_map(|(from, to)| self.part(*from, *to));
        parts.map(|it| it.wrapping_sub(b'0')).collect()
    }

    /// Whether a word before this place tells that a number here is one of these.
    pub(super) fn told(&self, place: usize, told: Told) -> bool {
        self.words.tell(self, place, told)
    }
}

/// Groups of digits, and the first byte of each separator between them; one more separator where one follows the last.
pub(super) struct Groups {
    pub(super) list: Few<(usize, usize), GROUPS_MAX>,
    pub(super) separators: Few<u8, GROUPS_MAX>,
}

impl Groups {
    /// Where the first of these lengths end, if they follow one another here with equal separators.
    pub(super) fn shaped(&self, lengths: &[usize]) -> Option<usize> {
        let groups = self.list.get(..lengths.len())?;
        let fits = groups.iter().zip(lengths).all(|((from, to), length)| to.saturating_sub(*from) == *length);
        let between = self.separators.get(..lengths.len().saturating_sub(1))?;
        let equal = between.windows(2).all(|pair| pair.first() == pair.last());
        (fits && equal).then(|| groups.last().map(|it| it.1))?
    }

    /// The separators between the first `count` groups.
    pub(super) fn between(&self, count: usize) -> &[u8] {
        self.separators.get(..count.saturating_sub(1)).unwrap_or_default()
    }
}

/// Groups of one number that are looked at.
const GROUPS_MAX: usize = 5;
/// Digits of one group that are looked at; no number has as many.
const GROUP_MAX: usize = 24;

/// A letter, a digit or `_`.
pub(super) const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// What base64url is written in.
pub(super) const fn is_base64url(byte: u8) -> bool {
    is_word(byte) || byte == b'-'
}
