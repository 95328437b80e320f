//! Which hosts a list of patterns may speak of, in 16 bytes.
//!
//! **Invariant:** a host that a pattern of the list covers is never told to be outside.

use super::domain::{Domain, DomainPattern};

/// A Bloom filter with one hash over the host names of a list. Where a pattern of the list covers many hosts, it lets all pass.
///
/// It follows from the list, is kept nowhere, and proves nothing where it lets a host pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostFilter(u128);

impl HostFilter {
    /// Lets every host pass.
    pub const ALL: Self = Self(u128::MAX);

    /// The filter of this list; none passes where the list is empty.
    #[must_use]
    pub fn of(list: &[DomainPattern]) -> Self {
        let bits = |pattern: &DomainPattern| match pattern {
            DomainPattern::Exact(host) => bit(host),
            DomainPattern::Under(_) => u128::MAX,
        };
        Self(list.iter().map(bits).fold(0, |all, one| all | one))
    }

    /// Whether a pattern of the list may cover `host`; where not, none does.
    #[must_use]
    pub fn may_cover(self, host: &Domain) -> bool {
        self.0 & bit(host) != 0
    }
}

const fn bit(host: &Domain) -> u128 {
    1 << (host.mark() % u128::BITS)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// Hosts of the list pass, most others do not, and all do where a pattern covers many; none does where the list is empty.
    #[test]
    fn what_a_list_names_passes() {
        let host = |number: usize| Domain::parse(&format!("shop-{number}.example")).unwrap();
        let list: Vec<_> = (0..8).map(|it| DomainPattern::Exact(host(it))).collect();
        let filter = HostFilter::of(&list);
        assert!((0..8).all(|it| filter.may_cover(&host(it))));
        let passing = (8..1_008).filter(|it| filter.may_cover(&host(*it))).count();
        assert!(passing < 125, "{passing} of a thousand");
        let under = DomainPattern::parse("*.other.example").unwrap();
        let wide = HostFilter::of(&[list, vec![under]].concat());
        assert!((0..1_000).all(|it| wide.may_cover(&host(it))) && wide == HostFilter::ALL);
        assert!(!(0..1_000).any(|it| HostFilter::of(&[]).may_cover(&host(it))));
    }
}
