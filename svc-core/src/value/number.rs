//! JSON numbers, as they were written.

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
    /// An integer literal beyond the others, as the double that is nearest to it.
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

    /// Whether it was written as an integer and lies beyond ±[`SAFE_INTEGER_MAX`].
    #[must_use]
    pub fn is_unsafe_integer(self) -> bool {
        !matches!(self, Self::Float(_)) && !self.is_safe()
    }

    /// Whether it is a double where an integer literal would be one too.
    pub(super) fn is_beyond_words(self) -> bool {
        const BOUND: f64 = 9_223_372_036_854_775_808.0;
        matches!(self, Self::Float(value) if value.0.abs() >= BOUND)
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

/// Tells of each number of a sound JSON text, in its order, whether it was written as an integer: the reader gives a double for
/// either.
pub(super) fn integer_literals(text: &str) -> impl Iterator<Item = bool> {
    let mut bytes = text.bytes().peekable();
    std::iter::from_fn(move || {
        loop {
            match bytes.next()? {
                b'"' => loop {
                    match bytes.next()? {
                        b'"' => break,
                        b'\\' => drop(bytes.next()),
                        _ => {}
                    }
                },
                b'-' | b'0'..=b'9' => {
                    let mut is_integer = true;
                    while let Some(it) =
                        bytes.next_if(|it| matches!(it, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'))
                    {
                        is_integer &= it.is_ascii_digit();
                    }
                    return Some(is_integer);
                }
                _ => {}
            }
        }
    })
}
