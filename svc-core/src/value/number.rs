//! JSON numbers, as they were written.

use std::ops::Range;

use serde::de::IgnoredAny;

/// The largest magnitude that an integer on the wire may have: 2^53 − 1, the last that every JSON reader gets right.
pub const SAFE_INTEGER_MAX: i64 = (1 << 53) - 1;

/// A JSON number, in the narrowest form that keeps it as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// An integer literal that fits.
    Int(i64),
    /// An integer literal above `i64::MAX`.
    Big(u64),
    /// A literal with a fraction or an exponent.
    Float(Finite),
    /// An integer literal beyond the others, or any literal beyond all doubles, as the double that is nearest to it.
    Huge(Finite),
}

/// A double that is neither infinite nor NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finite(f64);

impl Number {
    /// Whether it lies within ±[`SAFE_INTEGER_MAX`].
    #[must_use]
    pub fn is_safe(self) -> bool {
        const BOUND: f64 = 9_007_199_254_740_991.0;
        match self {
            Self::Int(value) => value.unsigned_abs() <= SAFE_INTEGER_MAX.unsigned_abs(),
            Self::Big(_) | Self::Huge(_) => false,
            Self::Float(value) => value.0.abs() <= BOUND,
        }
    }

    /// Whether it was written as an integer and lies beyond ±[`SAFE_INTEGER_MAX`], or lies beyond all doubles: readers differ about
    /// such a number, and no canonical form tells it from its neighbours.
    #[must_use]
    pub fn is_out_of_range(self) -> bool {
        !matches!(self, Self::Float(_)) && !self.is_safe()
    }

    /// Whether it is a double where an integer literal would be one too: a large one, or a zero below zero.
    pub(super) fn may_be_literal(self) -> bool {
        const BOUND: f64 = 9_223_372_036_854_775_808.0;
        matches!(self, Self::Float(value) if value.0.abs() >= BOUND || (value.0 == 0.0 && value.0.is_sign_negative()))
    }

    /// The same, by its literal: the reader gives a double for whatever is no small integer.
    pub(super) fn as_written(self, literal: &str) -> Self {
        match self {
            Self::Float(value) if is_beyond_doubles(literal) => Self::Huge(Finite(f64::MAX.copysign(value.0))),
            Self::Float(_) if literal == "-0" => Self::Int(0),
            Self::Float(value) if !literal.contains(['.', 'e', 'E']) => Self::Huge(value),
            Self::Int(_) | Self::Big(_) | Self::Float(_) | Self::Huge(_) => self,
        }
    }
}

impl Finite {
    /// The double, unless it is infinite or NaN.
    #[must_use]
    pub fn new(value: f64) -> Option<Self> {
        value.is_finite().then_some(Self(value))
    }

    /// The double.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

/// A finite double equals itself.
impl Eq for Finite {}

/// Where each number of a sound JSON text stands, in its order.
pub(super) fn literals(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut bytes = text.bytes().enumerate().peekable();
    std::iter::from_fn(move || {
        loop {
            match bytes.next()? {
                (_, b'"') => loop {
                    match bytes.next()?.1 {
                        b'"' => break,
                        b'\\' => drop(bytes.next()),
                        _ => {}
                    }
                },
                (start, b'-' | b'0'..=b'9') => {
                    let mut end = start + 1;
                    while bytes
                        .next_if(|(_, it)| matches!(it, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'))
                        .is_some()
                    {
                        end += 1;
                    }
                    return Some(start..end);
                }
                _ => {}
            }
        }
    })
}

/// The text with a large double of the same length in the place of each number beyond all doubles, which the reader does not take;
/// `None` where there is no such number. What else is wrong with it stays wrong.
pub(super) fn within_doubles(text: &str) -> Option<String> {
    let beyond = |it: &Range<usize>| text.get(it.clone()).is_some_and(is_beyond_doubles);
    let places: Vec<Range<usize>> = literals(text).filter(beyond).collect();
    if places.is_empty() {
        return None;
    }
    let (mut out, mut from) = (String::with_capacity(text.len()), 0);
    for place in places {
        out.push_str(text.get(from..place.start)?);
        let literal = text.get(place.clone())?;
        let digits = literal.trim_start_matches('-').len();
        out.push_str(if literal.len() > digits { "-9e" } else { "9e" });
        out.extend(std::iter::repeat_n('0', digits.saturating_sub("9e300".len())));
        out.push_str("300");
        from = place.end;
    }
    out.push_str(text.get(from..)?);
    Some(out)
}

/// Whether this is a JSON number that lies beyond all doubles.
fn is_beyond_doubles(literal: &str) -> bool {
    literal.parse::<f64>().is_ok_and(f64::is_infinite) && serde_json::from_str::<IgnoredAny>(literal).is_ok()
}
