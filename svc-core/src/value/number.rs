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

/// Whether every number of a sound JSON text is the one that its nearest double is written as: readers of doubles and readers of
/// digits get the same from it. Integers count as they stand; whether they are too large is [another question](Number::is_safe).
#[must_use]
pub fn has_exact_numbers(text: &str) -> bool {
    literals(text).filter_map(|it| text.get(it)).filter(|it| it.contains(['.', 'e', 'E'])).all(is_exact)
}

fn is_exact(literal: &str) -> bool {
    let Ok(double) = literal.parse::<f64>() else { return false };
    let (digits, _) = digits_of(literal);
    if digits.is_empty() || !double.is_finite() {
        return digits.is_empty();
    }
    let written = format!("{double:e}");
    digits_of(literal) == digits_of(&written)
}

/// The digits of a number from the first to the last that is no zero, and the power of ten that the first of them counts; `None` for
/// one that no exponent holds.
fn digits_of(literal: &str) -> (String, Option<i64>) {
    let unsigned = literal.trim_start_matches('-');
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = [whole, fraction].concat();
    let digits = all.trim_start_matches('0');
    let zeros = all.len() - digits.len();
    let place = |exponent: i64| {
        let first = i64::try_from(whole.len()).ok()?.checked_sub(i64::try_from(zeros).ok()?)?;
        exponent.checked_add(first)
    };
    (digits.trim_end_matches('0').to_owned(), exponent.parse().ok().and_then(place))
}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// A number is exact where its digits are those that its double is written with, however long they are and wherever the point stands.
    #[test]
    fn a_number_is_exact_by_its_digits() {
        for exact in [
            "1",
            "-1.50",
            "0.1",
            "100e-2",
            "1E5",
            "0.0",
            "-0e999999999999999999999",
            "5e-324",
            "0.30000000000000004",
            "9007199254740993",
        ] {
            assert!(has_exact_numbers(&format!("{{\"a\":[{exact},\"1e-400\"]}}")), "{exact}");
        }
        let long = format!("1.{}1234567", "0".repeat(100_000));
        for inexact in ["1e-400", "0.1000000000000000055511151231257827", "1e400", "1e-999999999999999999999", &*long] {
            assert!(!has_exact_numbers(&format!("{{\"a\":[{inexact}]}}")), "{inexact:.40}");
        }
    }
}
