//! Single values: names, texts, instants, addresses.

use svc_core::state::edge::outbound::{Outbound, OutboundUrl, Private};
use svc_core::state::gate::{ActionKind, ActionPattern, OutcomeStatus};
use svc_core::value::currency::Currency;
use svc_core::value::digest::Digest;
use svc_core::value::domain::{Domain, DomainPattern};
use svc_core::value::glob::ToolGlob;
use svc_core::value::id::{ActionId, AgentId, ReceiptId, WorkspaceId};
use svc_core::value::period::{Period, Zone};
use svc_core::value::text::{Detail, Email, IdempotencyKey, Label, Note, SessionId, Source, Summary, UrlText};
use svc_core::value::{Span, Timestamp};
use url::Host;

use svc_http::callback_secret;
use svc_http::log::scrub;
use svc_http::pages::quoted::{in_line, plain};
use svc_http::secrets::is_drawn;
use svc_http::totp::{code_at, step_of};

use super::inputs;

/// Every value that is read from a text is written as a text that reads as the same.
///
/// # Panics
/// Where one is not.
pub fn text(data: &[u8]) {
    shown(data);
    let Ok(text) = std::str::from_utf8(data) else { return };
    macro_rules! once { ($($name:ty)*) => {$(
        if let Ok(read) = <$name>::parse(text) {
            let again = <$name>::parse(read.as_str()).expect(stringify!($name));
            assert_eq!(again.as_str(), read.as_str(), stringify!($name));
        }
    )*} }
    once!(Label Summary Note UrlText SessionId IdempotencyKey Source Detail Email Currency ToolGlob Zone Period ActionKind);
    macro_rules! shown { ($($name:ty)*) => {$(
        if let Ok(read) = <$name>::parse(text) {
            assert_eq!(<$name>::parse(&read.to_string()).expect(stringify!($name)), read);
        }
    )*} }
    shown!(ActionId AgentId ReceiptId WorkspaceId Timestamp Digest ActionPattern);
    let _ = OutcomeStatus::parse(text);
    if let (Ok(glob), Some((server, name))) = (ToolGlob::parse(text), text.split_once('/')) {
        let _ = (glob.covers(Some(server), name), glob.covers(None, text));
    }
}

/// What a text is taken for, and how it is shown: a secret is cut whole out of what is logged, a line stays one, and a code is one of its
/// time.
///
/// # Panics
/// Where that is not so.
pub fn shown(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let scrubbed = scrub(text);
    assert_eq!(scrub(&scrubbed), scrubbed, "nothing of a secret is left");
    let is_secret = is_drawn("ask_", text);
    assert!(!is_secret || text.starts_with("ask_") && scrubbed == "ask_…", "{scrubbed}");
    let line = in_line(text);
    let is_plain =
        |it: char| !matches!(it, '\n' | '\t' | '\u{200b}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    assert!(line.chars().all(is_plain), "{line:?}");
    assert_eq!(line, plain(text).replace(['\n', '\t'], " "));
    let (key, now) = (b"the key of a phone's", Timestamp::from_millis(1_790_847_000_000));
    assert!(step_of(key, text, now).is_none_or(|it| code_at(key, it) == text), "{text}");
    if let Ok(secret) = callback_secret::parse(text) {
        assert!(secret.expose() == text && callback_secret::parse(text.trim()).is_ok());
    }
}

/// One text of each kind.
#[must_use]
pub fn text_seeds() -> Vec<Vec<u8>> {
    inputs(&[
        "Renew the \u{fc}ber domain",
        "one\n\ttwo\r\nthree",
        "https://example.com/",
        "Ann.Lee@Example.COM",
        "EUR",
        "Europe/Vienna",
        "month",
        "tool.call",
        "crm.lead.*",
        "web/search_*",
        "act_01K6FN0001000000000000000A",
        "agt_7ZZZZZZZZZZZZZZZZZZZZZZZZZ",
        "2026-10-01T09:30:00.000Z",
        "2026-10-01T11:30:00+02:00",
        "completed",
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "a ask_0123456789012345678901234567890123456789012 of svc_x: whsec_01234567890123456789",
        "ask_0123456789012345678901234567890123456789012",
        "pay \u{202e}moc.elpmaxe\u{202c}\u{200b} e\u{301}\u{301}\u{301}               \u{2003}  now",
    ])
}

/// A host name that is read is normal: it reads as itself, lies within its registrable domain and is covered by itself.
///
/// # Panics
/// Where it is not.
pub fn domain(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(domain) = Domain::parse(text) {
        assert_eq!(Domain::parse(domain.as_str()).as_ref(), Ok(&domain), "{text}");
        assert!(domain.as_str().is_ascii() && domain.as_str().len() <= 253, "{domain}");
        assert!(domain.as_str().ends_with(domain.registrable()) && domain.registrable().contains('.'), "{domain}");
        assert!(domain.is_within(&domain));
        assert!(DomainPattern::parse(domain.as_str()).is_ok_and(|it| it.is_exact() && it.covers(&domain)), "{domain}");
    }
    if let Ok(pattern) = DomainPattern::parse(text) {
        assert_eq!(DomainPattern::parse(&pattern.to_string()).as_ref(), Ok(&pattern), "{text}");
    }
}

/// Names, patterns, public suffixes and what is none of these.
#[must_use]
pub fn domain_seeds() -> Vec<Vec<u8>> {
    inputs(&[
        "shop.example.com",
        "*.example.com",
        "B\u{dc}CHER.example.",
        "xn--bcher-kva.example",
        "a.b.c.d.co.uk",
        "co.uk",
        "github.io",
        "x.github.io",
        "127.0.0.1",
        "[::1]",
        "a..b",
        "\u{ff45}xample\u{3002}com",
        "fa\u{df}.de",
        "\u{5d0}\u{5d1}.com",
        "a_b.example.com",
    ])
}

/// A period holds the instant that it is the period of. The first eight bytes are the instant, the rest a zone's name.
///
/// # Panics
/// Where it does not.
pub fn calendar(data: &[u8]) {
    let Some((ms, zone)) = data.split_first_chunk::<8>() else { return };
    let Some(zone) = std::str::from_utf8(zone).ok().and_then(|it| Zone::parse(it).ok()) else { return };
    let raw = i64::from_be_bytes(*ms);
    let outside = Timestamp::from_millis(raw);
    let _ = (outside.to_string(), Period::ALL.map(|it| it.bounds(outside, &zone)));
    // Instants outside the years 1 to 9998 have the periods of the nearest inside; a day less is for the zones.
    let years = -62_135_510_400_000..253_370_678_400_000;
    let at = if years.contains(&raw) { raw } else { years.start + raw.rem_euclid(years.end - years.start) };
    let at = Timestamp::from_millis(at);
    let written = at.to_string();
    assert_eq!(Timestamp::parse(&written).as_ref(), Ok(&at), "{written}");
    for period in Period::ALL {
        let (from, until) = period.bounds(at, &zone);
        assert!(
            from <= at && at < until,
            "{at} is not from {from} to {until}, its {} in {}",
            period.as_str(),
            zone.as_str()
        );
        let again = period.bounds(until.minus(Span::millis(1)), &zone);
        assert_eq!(again, (from, until), "the last {} before {until} in {}", period.as_str(), zone.as_str());
        assert!(until.since(from) <= Span::hours(24 * 367));
    }
}

/// Instants around changes of the clocks, and the ends of time.
#[must_use]
pub fn calendar_seeds() -> Vec<Vec<u8>> {
    let zones = ["UTC", "Europe/Vienna", "America/New_York", "Asia/Kathmandu", "Pacific/Apia", "Australia/Lord_Howe"];
    let instants = [0, 1_790_847_000_000, 1_793_059_199_999, 1_774_746_000_000, 1_325_239_200_000, 253_402_300_799_999];
    let seed = |(zone, ms): (&str, i64)| [ms.to_be_bytes().as_slice(), zone.as_bytes()].concat();
    zones.into_iter().flat_map(|zone| instants.map(|ms| seed((zone, ms)))).collect()
}

/// What may be called, may be called as it is written from then on; the first byte says whether private places may.
///
/// # Panics
/// Where it may not.
pub fn outbound(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let policy = Outbound {
        private: if first % 2 == 1 { Private::Anywhere } else { Private::Nowhere },
        own_host: "gate.example.com:8443".into(),
    };
    let Ok(url) = OutboundUrl::parse(text, &policy) else { return };
    assert_eq!(OutboundUrl::parse(url.as_str(), &policy).as_ref(), Ok(&url), "{text}");
    assert!(!url.host().is_empty() && !url.host().contains("gate.example.com") || url.host().len() > 16, "{text}");
    let bare = url.host().trim_matches(['[', ']']);
    if let Ok(address) = bare.parse() {
        assert!(policy.is_allowed(&Host::parse(url.host()).expect("a host is read again"), address), "{text}");
    }
    assert!(UrlText::try_from(url).is_ok(), "{text}");
}

/// Addresses in every form.
#[must_use]
pub fn outbound_seeds() -> Vec<Vec<u8>> {
    inputs(&[
        "0https://example.com/hook?a=1",
        "1http://127.0.0.1:9/",
        "0https://[2606:2800:220:1::1]/",
        "1https://[::ffff:10.0.0.1]/",
        "0https://0x5d.184.55330/",
        "0https://gate.example.com/",
        "0https://b\u{fc}cher.example/\u{e4}",
        "1https://a.localhost:1/",
        "0https://[2002:5db8:d822::1]:8443/x",
        "0https://\u{ff11}\u{3002}1.1.1/",
    ])
}
