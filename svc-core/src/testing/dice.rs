//! Chance that can be had again: everything random in a test follows from one printed seed.

/// A generator of numbers from a seed (SplitMix64): the same seed, the same numbers. Not for secrets.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The generator with this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number of `0..below`; 0 where there is none.
    pub fn below(&mut self, below: usize) -> usize {
        let below = u64::try_from(below).unwrap_or(u64::MAX);
        usize::try_from(self.bits() % below.max(1)).unwrap_or(0)
    }

    /// A number of `from..=to`.
    pub fn between(&mut self, from: i64, to: i64) -> i64 {
        let width = usize::try_from(to.saturating_sub(from)).unwrap_or(0).saturating_add(1);
        from.saturating_add(i64::try_from(self.below(width)).unwrap_or(0))
    }

    /// Whether something of `per_mille` in a thousand happens.
    pub fn chance(&mut self, per_mille: u32) -> bool {
        self.bits() % 1_000 < u64::from(per_mille)
    }

    /// One of these.
    ///
    /// # Panics
    /// Where there is none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// 32 bytes, such as a turn's seed.
    pub fn bytes(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&self.bits().to_be_bytes()[..part.len()]);
        }
        bytes
    }
}
