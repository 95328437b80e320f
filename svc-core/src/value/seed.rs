//! Entropy that comes in from outside: one seed a turn, every random bit a function of it.

use sha2::{Digest, Sha256};

/// 32 random bytes that the driver of a turn took from the operating system. Used for one turn, then gone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Seed([u8; 32]);

impl Seed {
    /// A seed over these bytes. Whoever reuses bytes reuses ids.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Sixteen bytes for the `n`-th need of the `command`-th command: the same at every run of the rule.
    #[must_use]
    pub fn draw(&self, command: u32, n: u32) -> [u8; 16] {
        let hash = Sha256::new()
            .chain_update(self.0)
            .chain_update(command.to_be_bytes())
            .chain_update(n.to_be_bytes())
            .finalize();
        let mut out = [0; 16];
        for (to, from) in out.iter_mut().zip(hash.iter()) {
            *to = *from;
        }
        out
    }

    /// The seed that follows this one, for a driver that has only one.
    #[must_use]
    pub fn next(&self) -> Self {
        self.next_of(b"next")
    }

    /// A seed for `purpose` that tells nothing of this one.
    #[must_use]
    pub fn next_of(&self, purpose: &[u8]) -> Self {
        Self(Sha256::new().chain_update(purpose).chain_update(self.0).finalize().into())
    }
}

impl std::fmt::Debug for Seed {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Seed(…)")
    }
}
