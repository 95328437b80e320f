//! Where a client is sent back to (RFC 8252 part 7, CONTRACT part 4 "OAuth").
//!
//! **Invariant:** two redirects are the same by their text alone, but for the port of a loopback address.

use serde::{Deserialize, Serialize};
use url::Url;

use crate::value::Invalid;

/// Characters of a redirect URI.
const REDIRECT_MAX: usize = 2_048;
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// A redirect URI that may be sent to: https, or http on a loopback address, or one that the operator has named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Redirect(Box<str>);

/// A URI in its parts.
struct Parts<'a> {
    scheme: &'a str,
    host: &'a str,
    port: Option<&'a str>,
    /// Path and query, as they stand.
    rest: &'a str,
}

impl Redirect {
    /// Reads a redirect URI; one of `named` is taken as it is, whatever its scheme.
    ///
    /// # Errors
    /// [`Invalid`] for any other scheme, for a fragment, user information, a wildcard, a host that is not ASCII or that a browser
    /// reads as another one, or where it is longer than 2048 characters.
    pub fn parse(text: &str, named: &[Box<str>]) -> Result<Self, Invalid> {
        if named.iter().any(|it| **it == *text) {
            return Ok(Self(text.into()));
        }
        if text.len() > REDIRECT_MAX || !text.bytes().all(is_plain) {
            return Err(Invalid::new("must be at most 2048 plain ASCII characters"));
        }
        if text.contains('#') {
            return Err(Invalid::new("must have no fragment"));
        }
        let parts = split(text).ok_or_else(|| {
            Invalid::new(
                "must be an absolute https URI whose scheme and host are in lower case, or one that `oauth.allowRedirects` names",
            )
        })?;
        // What people are shown is where a browser goes: it takes `https://1.2/` for an address, and some names for none.
        if Url::parse(text).ok().is_none_or(|it| it.host_str() != Some(parts.host)) {
            return Err(Invalid::new("must name its host as browsers write it"));
        }
        match parts.scheme {
            "https" => Ok(Self(text.into())),
            "http" if LOOPBACK.contains(&parts.host) => Ok(Self(text.into())),
            _ => Err(Invalid::new(
                "must be https, http at `localhost`, `127.0.0.1` or `[::1]`, or one that `oauth.allowRedirects` names",
            )),
        }
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its host, as people are shown it; a scheme of its own stands for an application's.
    #[must_use]
    pub fn host(&self) -> &str {
        split(&self.0).map_or_else(|| self.0.split(':').next().unwrap_or_default(), |it| it.host)
    }

    /// Scheme, host and port, as a content policy names them; nothing where the scheme is an application's own.
    #[must_use]
    pub fn origin(&self) -> Option<String> {
        let parts = split(&self.0).filter(|it| matches!(it.scheme, "https" | "http"))?;
        let port = parts.port.map(|it| format!(":{it}")).unwrap_or_default();
        Some(format!("{}://{}{port}", parts.scheme, parts.host))
    }

    /// Whether it leads to the machine of whoever follows it.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        split(&self.0).is_some_and(|it| it.scheme == "http" && LOOPBACK.contains(&it.host))
    }

    /// Whether `asked` is this redirect: the same text, but for the port of a loopback address.
    #[must_use]
    pub fn admits(&self, asked: &Self) -> bool {
        if self == asked {
            return true;
        }
        match (split(&self.0), split(&asked.0)) {
            (Some(own), Some(other)) => {
                own.scheme == "http"
                    && LOOPBACK.contains(&own.host)
                    && (own.scheme, own.host, own.rest) == (other.scheme, other.host, other.rest)
            }
            _ => false,
        }
    }
}

/// What a browser reads as it stands: no space, quote, backslash or bracket that it would turn into something else.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}')
}

fn split(text: &str) -> Option<Parts<'_>> {
    let (scheme, after) = text.split_once("://")?;
    let end = after.find(['/', '?']).unwrap_or(after.len());
    let (authority, rest) = after.split_at_checked(end)?;
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !authority.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let bracketed = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let good_host = match bracketed {
        Some(address) => address.bytes().all(|it| it.is_ascii_hexdigit() || it == b':'),
        None => {
            let named = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || matches!(it, b'-' | b'.');
            !host.is_empty() && !host.starts_with('.') && host.bytes().all(named)
        }
    };
    let good_port = port.is_none_or(|it| it.bytes().all(|it| it.is_ascii_digit()) && it.parse::<u16>().is_ok());
    (good_host && good_port).then_some(Parts { scheme, host, port, rest })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn read(text: &str) -> Result<Redirect, Invalid> {
        Redirect::parse(text, &[])
    }

    /// What a browser could be led astray by is no redirect.
    #[test]
    fn only_https_and_loopback_are_redirects() {
        for good in [
            "https://app.example/cb",
            "https://app.example:8443/cb?x=1",
            "http://localhost/cb",
            "http://127.0.0.1:33418/",
            "http://[::1]:7/cb",
        ] {
            assert!(read(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "javascript:alert(1)",
            "javascript://app.example/%0aalert(1)",
            "data:text/html,x",
            "cursor://anysphere.cursor-mcp/oauth/callback",
            "http://app.example/cb",
            "http://localhost.evil.example/cb",
            "http://127.0.0.2@evil.example/cb",
            "https://user@app.example/cb",
            "https://user:pass@app.example/cb",
            "https://*.example/cb",
            "https://app.example/cb#x",
            "https://äpp.example/cb",
            "https://APP.example/cb",
            "https://app.example\\@evil.example/",
            "https:///cb",
            "https://1.2/cb",
            "https://2130706433/cb",
            "https://0x7f.1/cb",
            "https://127.0.0.01/cb",
            "https://xn--a/cb",
            "https://[::0001]/cb",
            "https://app.example:99999/cb",
            "https://app.example:x/cb",
            "https://app.exa mple/cb",
            "//app.example/cb",
            "/cb",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
        assert!(read(&format!("https://a.example/{}", "x".repeat(2_048))).is_err());
        let named: Vec<Box<str>> = vec!["cursor://anysphere.cursor-mcp/oauth/callback".into()];
        assert!(Redirect::parse(&named[0], &named).is_ok() && Redirect::parse("cursor://other", &named).is_err());
    }

    /// A loopback port is the client's own choice at each start; nothing else may differ.
    #[test]
    fn loopback_ports_alone_are_ignored() {
        let admits = |own: &str, asked: &str| read(own).unwrap().admits(&read(asked).unwrap());
        assert!(admits("http://localhost/callback", "http://localhost:51645/callback"));
        assert!(admits("http://127.0.0.1:1/cb?a=b", "http://127.0.0.1:2/cb?a=b"));
        assert!(admits("http://[::1]/cb", "http://[::1]:9/cb"));
        for (own, asked) in [
            ("http://localhost/callback", "http://127.0.0.1/callback"),
            ("http://localhost/callback", "http://localhost/callback/"),
            ("http://localhost/callback", "http://localhost/callback?x"),
            ("https://app.example/cb", "https://app.example:8443/cb"),
            ("https://app.example/cb", "https://app.example/cb/evil"),
            ("https://app.example/cb", "https://app.example/cb?x=1"),
            ("https://localhost/cb", "https://localhost:1/cb"),
        ] {
            assert!(!admits(own, asked), "{own} {asked}");
        }
    }

    /// A page names the redirect's host to people and its origin to browsers.
    #[test]
    fn host_and_origin_are_those_of_the_text() {
        let it = read("http://[::1]:7/cb").unwrap();
        assert_eq!((it.host(), it.origin().as_deref()), ("[::1]", Some("http://[::1]:7")));
        let own = Redirect::parse("cursor://x/y", &["cursor://x/y".into()]).unwrap();
        assert_eq!((own.host(), own.origin()), ("x", None));
    }
}
