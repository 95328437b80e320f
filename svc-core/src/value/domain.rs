//! Host names, and patterns over them.
//!
//! **Invariant:** two writings of one host are one [`Domain`], and no domain is a public suffix: nobody owns one, so
//! nothing can be bought there or allowed there.

use std::fmt;
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

/// A host name as the DNS has it: lower case, A-labels, no dot at the end, below a public suffix.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Domain {
    name: Arc<str>,
    /// Where in the name the registrable domain begins; it follows from the name.
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
    /// [`Invalid`] for a scheme, port, path, user, IP address in any notation, empty or over-long label, over-long name,
    /// what is no host name, and a public suffix alone (by the public-suffix list, its private section included).
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
        Ok(Self { name, registrable_from })
    }

    /// The name, normalised.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// The registrable domain: one label and the public suffix below which it is registered, private section included.
    #[must_use]
    pub fn registrable(&self) -> &str {
        self.name.get(usize::from(self.registrable_from)..).unwrap_or(&self.name)
    }

    /// Whether this is `other` or a host below it.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        self.name.strip_suffix(&*other.name).is_some_and(|front| front.is_empty() || front.ends_with('.'))
    }
}

plumbing!(Domain);

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

    /// Whether it speaks of this host.
    #[must_use]
    pub fn covers(&self, host: &Domain) -> bool {
        match self {
            Self::Exact(domain) => host == domain,
            Self::Under(domain) => host != domain && host.is_within(domain),
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
        let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// Whether the text is a normalised host name already, so that the work of normalising can be spared. Names with A-labels
/// go the long way, which checks what the labels stand for.
fn is_plain(text: &str) -> bool {
    text.len() <= NAME_MAX
        && text.split('.').all(|label| {
            (1..=LABEL_MAX).contains(&label.len())
                && !label.starts_with('-')
                && !label.ends_with('-')
                && !label.starts_with("xn--")
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
