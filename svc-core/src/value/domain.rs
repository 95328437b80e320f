//! Host names, and patterns over them.
//!
//! **Invariant:** two writings of one host are one [`Domain`], and nobody names a public suffix: nobody owns one, so nothing can be bought
//! there or allowed there. What is stored goes on being read when its name has become one, and allows nothing any more.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{BuildHasher as _, Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use idna::AsciiDenyList;
use idna::uts46::{DnsLength, Hyphens, Uts46};

use super::Invalid;
use super::text::plumbing;

/// Bytes of text that are looked at: more than any host name has even in its longest writing.
const TEXT_MAX: usize = 2_048;
/// Bytes of one label and of a whole name (RFC 1035, 2.3.4; without the root's dot).
const LABEL_MAX: usize = 63;
const NAME_MAX: usize = 253;
/// No name is so long.
const NOWHERE: u8 = u8::MAX;

/// A host name as the DNS has it: lower case, A-labels, no dot at the end, below a public suffix (or, in what is stored, a name that was).
#[derive(Clone)]
pub struct Domain {
    name: Arc<str>,
    /// Equal names have equal marks, so that a list of names is gone through without following a pointer to each. It
    /// follows from the name, is kept nowhere, and proves nothing where it is equal.
    mark: u32,
    /// Where in the name the registrable domain begins; it follows from the name. [`NOWHERE`] where it is a public suffix by now.
    registrable_from: u8,
}

/// What a mandate's list of merchants names.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DomainPattern {
    /// `example.com`: this host alone.
    Exact(Domain),
    /// `*.example.com`: every host below it, not itself.
    Under(Domain),
}

impl Domain {
    /// Reads a host name in any writing: upper case, U-labels and one dot at the end are normalised (UTS 46).
    ///
    /// # Errors
    /// [`Invalid`] for a scheme, port, path, user, IP address in any notation, empty or over-long label, over-long
    /// name, what is no host name, and a public suffix alone (by the public-suffix list, its private section included).
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let refused = || Invalid::new("must be a host name such as `shop.example.com`, without scheme, port or path");
        if text.len() > TEXT_MAX {
            return Err(refused());
        }
        let name: Arc<str> = if is_plain(text) {
            text.into()
        } else {
            let ascii = Uts46::new()
                .to_ascii(text.as_bytes(), AsciiDenyList::STD3, Hyphens::CheckFirstLast, DnsLength::VerifyAllowRootDot)
                .map_err(|_| refused())?;
            ascii.strip_suffix('.').unwrap_or(&ascii).into()
        };
        if is_address(&name) {
            return Err(Invalid::new("must be a host name, not an IP address"));
        }
        let registrable = psl::domain(name.as_bytes())
            .ok_or_else(|| Invalid::new("must be below a public suffix such as `com`, not one itself"))?;
        let from = name.len().saturating_sub(registrable.as_bytes().len());
        let registrable_from = u8::try_from(from).map_err(|_| refused())?;
        Ok(Self { mark: mark(&name), name, registrable_from })
    }

    /// Reads a name as it is stored. Neither the public-suffix list nor what UTS 46 knows is asked whether it is one: both move.
    fn parse_stored(text: &str) -> Result<Self, Invalid> {
        if !is_normal(text) || !text.contains('.') || is_address(text) {
            return Err(Invalid::new("must be a normalised host name"));
        }
        let from = psl::domain(text.as_bytes()).map(|it| text.len().saturating_sub(it.as_bytes().len()));
        let registrable_from = from.and_then(|it| u8::try_from(it).ok()).unwrap_or(NOWHERE);
        Ok(Self { mark: mark(text), name: text.into(), registrable_from })
    }

    /// The name, normalised.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// Whether it has become a public suffix since it was stored.
    #[must_use]
    pub const fn is_suffix(&self) -> bool {
        self.registrable_from == NOWHERE
    }

    /// The registrable domain: one label and the public suffix below which it is registered, private section included. The whole name
    /// stands for it where that has become such a suffix.
    #[must_use]
    pub fn registrable(&self) -> &str {
        self.name.get(usize::from(self.registrable_from)..).unwrap_or(&self.name)
    }

    /// A few bits that equal names have in common.
    pub(super) const fn mark(&self) -> u32 {
        self.mark
    }

    /// Whether this is `other` or a host below it.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        self.name.strip_suffix(&*other.name).is_some_and(|front| front.is_empty() || front.ends_with('.'))
    }
}

plumbing!(Domain, Domain::parse_stored);

impl PartialEq for Domain {
    fn eq(&self, other: &Self) -> bool {
        self.mark == other.mark && self.name == other.name
    }
}

impl Eq for Domain {}

impl PartialOrd for Domain {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Domain {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name.cmp(&other.name)
    }
}

impl Hash for Domain {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl DomainPattern {
    /// Reads a host name, or `*.` and a host name.
    ///
    /// # Errors
    /// [`Invalid`] where what follows the star is no [`Domain`], and for a star anywhere else.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        match text.strip_prefix("*.") {
            Some(rest) => Domain::parse(rest).map(Self::Under),
            None if text == "*" => Err(Invalid::new("must name a host; `*` alone would be every host")),
            None => Domain::parse(text).map(Self::Exact),
        }
    }

    fn parse_stored(text: &str) -> Result<Self, Invalid> {
        match text.strip_prefix("*.") {
            Some(rest) => Domain::parse_stored(rest).map(Self::Under),
            None => Domain::parse_stored(text).map(Self::Exact),
        }
    }

    /// Whether it speaks of every host of whoever likes: below some names that are no public suffix themselves each name is one
    /// (`*.kawasaki.jp`), as below `*.com`, which is no pattern but of a name that has become a suffix since it was stored.
    #[must_use]
    pub fn is_everybodys(&self) -> bool {
        match self {
            // No rule of the list names such a label: it is a suffix there only where all are.
            Self::Under(domain) => domain.is_suffix() || psl::domain(format!("xn0.{domain}").as_bytes()).is_none(),
            Self::Exact(_) => false,
        }
    }

    /// Whether its name has become a public suffix since it was stored: whoever likes has a host below it by now, so it allows none.
    #[must_use]
    pub const fn is_lapsed(&self) -> bool {
        match self {
            Self::Exact(domain) | Self::Under(domain) => domain.is_suffix(),
        }
    }

    /// Whether it speaks of this host.
    #[must_use]
    pub fn covers(&self, host: &Domain) -> bool {
        match self {
            Self::Exact(domain) => host == domain,
            // The lengths stand beside the pointers: most of a long list is told apart by them.
            Self::Under(domain) => host.name.len() > domain.name.len() && host.is_within(domain),
        }
    }

    /// Whether it names one host alone.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        matches!(self, Self::Exact(_))
    }
}

impl fmt::Display for DomainPattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(domain) => domain.fmt(out),
            Self::Under(domain) => write!(out, "*.{domain}"),
        }
    }
}

impl fmt::Debug for DomainPattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl FromStr for DomainPattern {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::parse(text)
    }
}

impl serde::Serialize for DomainPattern {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for DomainPattern {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        crate::value::stored::read(from, Self::parse_stored)
    }
}

/// A few bits of a name's hash.
fn mark(name: &str) -> u32 {
    let hash = foldhash::fast::FixedState::default().hash_one(name);
    u32::try_from(hash >> 32).unwrap_or(0)
}

/// Whether the text is a normalised host name already, so that the work of normalising can be spared. Names with
/// A-labels go the long way, which checks what the labels stand for.
fn is_plain(text: &str) -> bool {
    is_normal(text) && !text.split('.').any(|label| label.starts_with("xn--"))
}

/// Whether the text has the shape of a normalised host name, whatever its A-labels stand for.
fn is_normal(text: &str) -> bool {
    text.len() <= NAME_MAX
        && text.split('.').all(|label| {
            (1..=LABEL_MAX).contains(&label.len())
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        })
}

/// Whether URL parsers would read the host as an IPv4 address: its last label is a number (WHATWG URL, "ends in a
/// number"), decimal, octal or hexadecimal. No top-level domain is one. IPv6 has its brackets and colons against it.
fn is_address(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    last.bytes().all(|byte| byte.is_ascii_digit())
        || last.strip_prefix("0x").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use proptest::prelude::*;

    use super::*;

    fn domain(text: &str) -> Domain {
        Domain::parse(text).unwrap()
    }

    fn pattern(text: &str) -> DomainPattern {
        DomainPattern::parse(text).unwrap()
    }

    /// Every writing of a host is read as the one name that it has, with its registrable domain.
    #[test]
    fn writings_of_one_host_are_one_domain() {
        for (text, name, registrable) in [
            ("example.com", "example.com", "example.com"),
            ("Shop.EXAMPLE.com.", "shop.example.com", "example.com"),
            ("shop.example.co.uk", "shop.example.co.uk", "example.co.uk"),
            ("Bücher.example", "xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("XN--BCHER-KVA.example", "xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("bu\u{308}cher.example", "xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("ｅｘａｍｐｌｅ。com", "example.com", "example.com"),
            ("exam\u{ad}ple.com", "example.com", "example.com"),
            ("me.github.io", "me.github.io", "me.github.io"),
            ("a.me.github.io", "a.me.github.io", "me.github.io"),
            ("食狮.公司.cn", "xn--85x722f.xn--55qx5d.cn", "xn--85x722f.xn--55qx5d.cn"),
            ("www.食狮.公司.cn", "www.xn--85x722f.xn--55qx5d.cn", "xn--85x722f.xn--55qx5d.cn"),
            ("straße.de", "xn--strae-oqa.de", "xn--strae-oqa.de"),
            ("r3---sn-5hne.example.com", "r3---sn-5hne.example.com", "example.com"),
            ("123.example.com", "123.example.com", "example.com"),
            ("a.b.city.kawasaki.jp", "a.b.city.kawasaki.jp", "city.kawasaki.jp"),
        ] {
            let read = domain(text);
            assert_eq!((read.as_str(), read.registrable()), (name, registrable), "{text}");
        }
    }

    /// Whatever is more, less or other than a host below a public suffix is refused.
    #[test]
    fn what_is_no_host_is_refused() {
        for bad in [
            "",
            ".",
            "..",
            " ",
            "example",
            "localhost",
            "com",
            "COM.",
            "co.uk",
            "github.io",
            "公司.cn",
            "xn--55qx5d.cn",
            "foo.kawasaki.jp",
            "https://example.com",
            "//example.com",
            "example.com/",
            "example.com/path",
            "example.com:443",
            "example.com?q",
            "example.com#f",
            "user@example.com",
            "user:pw@example.com",
            ".example.com",
            "example..com",
            "example.com..",
            "example.com。.",
            "exa mple.com",
            " example.com",
            "example.com\n",
            "example.com\0",
            "exa_mple.com",
            "-example.com",
            "example-.com",
            "*.example.com",
            "%65xample.com",
            "example%2ecom",
            "exam\\ple.com",
            "xn--.com",
            "xn--a.com",
            "xn--zzzzzzzz99999.com",
            "xn--example-.com",
            "\u{200d}.com",
            "\u{ad}.com",
            "<b>.com",
            "exa\u{2028}mple.com",
        ] {
            assert!(Domain::parse(bad).is_err(), "{bad:?}");
        }
    }

    /// Below some names anybody can have a host, although they are no public suffix themselves: a pattern of them trusts everybody.
    #[test]
    fn a_pattern_can_be_everybodys() {
        for open in ["*.compute.amazonaws.com", "*.kawasaki.jp", "*.Kobe.jp."] {
            assert!(pattern(open).is_everybodys(), "{open}");
        }
        for own in
            ["*.example.com", "*.shop.example.co.uk", "*.city.kawasaki.jp", "*.example.foo.kawasaki.jp", "kawasaki.jp"]
        {
            assert!(!pattern(own).is_everybodys(), "{own}");
        }
    }

    /// An IP address is refused in every notation that a URL parser would read as one.
    #[test]
    fn addresses_are_refused() {
        for bad in [
            "127.0.0.1",
            "127.0.0.1.",
            "127.1",
            "0x7f.1",
            "0x7f000001",
            "2130706433",
            "017700000001",
            "0X7F.0.0.1",
            "1.2.3.4.5",
            "256.256.256.256",
            "0.0.0.0",
            "example.com.1",
            "a.0x1f",
            "a.0x",
            "１２７.0.0.1",
            "127。0。0。1",
            "①.①.①.①",
            "[::1]",
            "::1",
            "::ffff:127.0.0.1",
            "[2001:db8::1]",
            "fe80::1%eth0",
            "1.2.3.09",
        ] {
            assert!(Domain::parse(bad).is_err(), "{bad:?}");
        }
    }

    /// Labels have at most 63 bytes and names at most 253, counted as A-labels; a huge text is not looked at.
    #[test]
    fn lengths_are_bounded() {
        let label = |count: usize| "a".repeat(count);
        assert!(Domain::parse(&format!("{}.com", label(63))).is_ok());
        assert!(Domain::parse(&format!("{}.com", label(64))).is_err());
        assert!(Domain::parse(&format!("{}.COM", label(64))).is_err());
        assert!(Domain::parse(&format!("{}.com", "ü".repeat(60))).is_err());
        let long = |last: usize| format!("{0}.{0}.{0}.{1}.com", label(63), label(last));
        assert_eq!(domain(&long(57)).as_str().len(), 253);
        assert_eq!(domain(&format!("{}.", long(57))).as_str().len(), 253);
        assert!(Domain::parse(&long(58)).is_err());
        assert!(Domain::parse(&long(58).to_uppercase()).is_err());
        assert!(Domain::parse(&format!("{}com", "a.".repeat(1 << 19))).is_err());
    }

    /// A host is within itself and whatever it is a label or more below, never within what only ends alike.
    #[test]
    fn hosts_nest_on_label_boundaries() {
        let apex = domain("example.com");
        for (host, within) in [
            ("example.com", true),
            ("shop.example.com", true),
            ("a.b.example.com", true),
            ("badexample.com", false),
            ("example.com.evil.com", false),
            ("example.org", false),
        ] {
            assert_eq!(domain(host).is_within(&apex), within, "{host}");
        }
        assert!(!apex.is_within(&domain("shop.example.com")));
    }

    /// An exact pattern covers its host; a star covers what is below, not the apex, and nothing that ends alike.
    #[test]
    fn patterns_cover_what_they_say() {
        let (exact, under) = (pattern("Example.COM."), pattern("*.Example.COM"));
        assert!(exact.is_exact() && !under.is_exact());
        assert_eq!((exact.to_string(), under.to_string()), ("example.com".to_owned(), "*.example.com".to_owned()));
        for (host, by_exact, by_under) in [
            ("example.com", true, false),
            ("shop.example.com", false, true),
            ("a.b.example.com", false, true),
            ("badexample.com", false, false),
        ] {
            assert_eq!((exact.covers(&domain(host)), under.covers(&domain(host))), (by_exact, by_under), "{host}");
        }
        assert!(pattern("*.me.github.io").covers(&domain("a.me.github.io")));
    }

    /// A star alone, before a public suffix or inside a name would cover what nobody meant.
    #[test]
    fn patterns_without_an_owner_are_refused() {
        for bad in [
            "",
            "*",
            "*.",
            "*.com",
            "*.co.uk",
            "*.github.io",
            "*.公司.cn",
            "*example.com",
            "shop.*.com",
            "*.*.example.com",
            "**.example.com",
            "＊.example.com",
            "*.127.0.0.1",
            ".example.com",
            "*..example.com",
        ] {
            assert!(DomainPattern::parse(bad).is_err(), "{bad:?}");
        }
    }

    /// Storage keeps the normalised name, and takes it when the list of public suffixes has come to hold it: the whole name stands for the
    /// registrable one then, and a pattern of it allows nobody. What never was a normalised name is an error.
    #[test]
    fn a_stored_name_is_read_when_it_became_a_suffix() {
        let stored = serde_json::to_string(&domain("Shop.Example.com")).unwrap();
        assert_eq!(stored, "\"shop.example.com\"");
        let read = serde_json::from_str::<Domain>(&stored).unwrap();
        assert_eq!((read.registrable(), read.is_suffix(), &read), ("example.com", false, &domain("shop.example.com")));
        for suffix in ["co.uk", "github.io", "xn--55qx5d.cn", "foo.kawasaki.jp"] {
            let read = serde_json::from_str::<Domain>(&format!("\"{suffix}\"")).unwrap();
            assert_eq!((read.as_str(), read.registrable(), read.is_suffix()), (suffix, suffix, true));
            assert!(Domain::parse(suffix).is_err() && suffix.parse::<Domain>().is_err(), "{suffix}");
            for pattern in [suffix.to_owned(), format!("*.{suffix}")] {
                let read = serde_json::from_str::<DomainPattern>(&format!("\"{pattern}\"")).unwrap();
                assert_eq!(
                    (read.to_string(), read.is_lapsed(), read.is_everybodys()),
                    (pattern.clone(), true, !read.is_exact())
                );
                assert!(DomainPattern::parse(&pattern).is_err(), "{pattern}");
            }
        }
        // What UTS 46 makes of these labels is asked where they come in.
        assert!(Domain::parse("xn--a.com").is_err() && serde_json::from_str::<Domain>("\"xn--a.com\"").is_ok());
        let read = serde_json::from_str::<DomainPattern>("\"*.example.com\"").unwrap();
        assert_eq!((&read, read.is_lapsed()), (&pattern("*.example.com"), false));
        for no_name in
            ["", "com", "Example.com", "example.com.", "b\u{fc}cher.example", "-a.com", "a b.com", "127.0.0.1"]
        {
            assert!(serde_json::from_str::<Domain>(&format!("\"{no_name}\"")).is_err(), "{no_name}");
        }
        for no_pattern in ["*", "*.com", "*.*.example.com", "shop.*.com"] {
            assert!(serde_json::from_str::<DomainPattern>(&format!("\"{no_pattern}\"")).is_err(), "{no_pattern}");
        }
    }

    proptest! {
        /// No text makes the reader panic, and a name that was read is read as itself.
        #[test]
        fn normalising_twice_is_normalising_once(
            text in "\\PC{0,24}|(\\PC{1,6}[.。]){1,3}(com|de|公司\\.cn)\\.?|[a-zA-Z0-9ßüΑ一.-]{1,20}\\.com",
        ) {
            if let Ok(read) = Domain::parse(&text) {
                prop_assert_eq!(&domain(read.as_str()), &read);
                prop_assert!(read.as_str().ends_with(read.registrable()));
                prop_assert!(domain(read.registrable()).registrable() == read.registrable());
            }
            if let Ok(read) = DomainPattern::parse(&text) {
                prop_assert_eq!(pattern(&read.to_string()), read);
            }
        }

        /// The short way for names that are normal already ends where the long way ends.
        #[test]
        fn the_short_way_agrees_with_the_long_way(
            text in "([a-z0-9-]{1,5}\\.){1,3}[a-z0-9]{1,3}|xn--[a-z0-9-]{1,6}\\.com",
        ) {
            let strict = (AsciiDenyList::STD3, Hyphens::CheckFirstLast, DnsLength::Verify);
            let long = Uts46::new().to_ascii(text.as_bytes(), strict.0, strict.1, strict.2);
            if is_plain(&text) {
                prop_assert_eq!(long.unwrap(), &*text);
            }
        }
    }
}
