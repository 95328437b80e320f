//! 128 bits as two words.
//!
//! An id of a `u128` would have to lie at a multiple of sixteen bytes: a key, and whatever holds an id beside something small, would
//! be half again as long, and more of memory is looked at for every decision.

/// 128 bits. Their order is that of the number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Bits {
    high: u64,
    low: u64,
}

impl Bits {
    /// These bits.
    #[expect(clippy::cast_possible_truncation, reason = "each half is taken")]
    pub(crate) const fn of(bits: u128) -> Self {
        Self { high: (bits >> 64) as u64, low: bits as u64 }
    }

    /// The bits as one number.
    pub(crate) const fn get(self) -> u128 {
        (self.high as u128) << 64 | self.low as u128
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits come back as they were, and sort as their numbers do.
    #[test]
    fn bits_are_their_number() {
        let numbers = [0, 1, u128::from(u64::MAX), 1 << 64, (1 << 64) + 1, u128::MAX - 1, u128::MAX];
        assert_eq!(numbers.map(|it| Bits::of(it).get()), numbers);
        assert!(numbers.map(Bits::of).is_sorted());
    }
}
