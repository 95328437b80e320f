//! Secrets in memory: never copied, never printed, wiped on drop.

use std::fmt;

use zeroize::Zeroize;

/// A value that is shown to nobody. It has no `Clone`, its `Debug` prints `…`, and its memory is wiped.
pub struct Secret<T: Zeroize>(T);

impl<T: Zeroize> Secret<T> {
    /// Takes the value in.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// The value, for the one who needs it.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T: Zeroize> Drop for Secret<T> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl<T: Zeroize> fmt::Debug for Secret<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("…")
    }
}
