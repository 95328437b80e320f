//! Random bytes for request ids and trace ids, taken from the operating system a block at a time.
//!
//! **Invariant:** no secret and no id of a stored thing is made here.

use std::cell::RefCell;

/// Bytes fetched at once: about 150 requests' worth, so that a request seldom costs a system call.
const BLOCK: usize = 4096;

thread_local! {
    static POOL: RefCell<Pool> = const { RefCell::new(Pool { block: [0; BLOCK], used: BLOCK }) };
}

struct Pool {
    block: [u8; BLOCK],
    used: usize,
}

/// `N` random bytes, never all zero. `N` is at most a few dozen.
#[must_use]
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    POOL.with_borrow_mut(|pool| {
        let mut out = [0; N];
        while out == [0; N] {
            if pool.used.saturating_add(N) > BLOCK {
                // Without entropy an id may repeat; the operating system refuses only before it has booted.
                if getrandom::fill(&mut pool.block).is_err() {
                    return [1; N];
                }
                pool.used = 0;
            }
            if let Some(from) = pool.block.get(pool.used..pool.used.saturating_add(N)) {
                out.copy_from_slice(from);
            }
            pool.used = pool.used.saturating_add(N);
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Bytes do not repeat, across blocks either.
    #[test]
    fn bytes_do_not_repeat() {
        let seen: HashSet<[u8; 16]> = (0..1_000).map(|_| bytes()).collect();
        assert_eq!(seen.len(), 1_000);
    }
}
