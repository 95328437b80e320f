//! Which addresses are none to call, and names and addresses in every form that they have.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use proptest::prelude::*;

use super::*;

fn strict() -> Outbound {
    Outbound { private: Private::Nowhere, own_host: "gate.example.com".into() }
}

fn lenient() -> Outbound {
    Outbound { private: Private::Anywhere, own_host: "127.0.0.1:8080".into() }
}

fn named() -> Host<String> {
    Host::Domain("host.example.com".to_owned())
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap_or_else(|_| panic!("{text} is no address"))
}

/// Each range's first and last address, and its neighbours where those are public.
const RANGES: &[(&str, &str, &str, &str)] = &[
    ("", "0.0.0.0", "0.255.255.255", "1.0.0.0"),
    ("9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0"),
    ("100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0"),
    ("126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0"),
    ("169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0"),
    ("172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0"),
    ("191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0"),
    ("192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0"),
    ("192.31.195.255", "192.31.196.0", "192.31.196.255", "192.31.197.0"),
    ("192.52.192.255", "192.52.193.0", "192.52.193.255", "192.52.194.0"),
    ("192.88.98.255", "192.88.99.0", "192.88.99.255", "192.88.100.0"),
    ("192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0"),
    ("192.175.47.255", "192.175.48.0", "192.175.48.255", "192.175.49.0"),
    ("198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0"),
    ("198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0"),
    ("203.0.112.255", "203.0.113.0", "203.0.113.255", "203.0.114.0"),
    ("223.255.255.255", "224.0.0.0", "239.255.255.255", ""),
    ("", "240.0.0.0", "255.255.255.255", ""),
    ("", "::", "::", ""),
    ("", "::1", "::1", ""),
    ("", "::7f00:1", "::808:808", ""),
    ("", "100::", "100::ffff:ffff:ffff:ffff", ""),
    ("", "100:0:0:1::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2000::"),
    ("", "2001:1::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "2001:200::"),
    ("2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db9::"),
    (
        "2620:4f:7fff:ffff:ffff:ffff:ffff:ffff",
        "2620:4f:8000::",
        "2620:4f:8000:ffff:ffff:ffff:ffff:ffff",
        "2620:4f:8001::",
    ),
    ("3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "3fff:1000::"),
    ("3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "4000::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ""),
    ("", "fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ""),
    ("", "fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ""),
    ("", "fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ""),
    ("", "ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ""),
];

/// The first and last address of each special range is none to call, its neighbours are, and a literal of a URL is judged
/// as a resolved address is.
#[test]
fn every_special_range_ends_where_it_ends() {
    let in_url = |it: IpAddr| match it {
        IpAddr::V4(it) => format!("https://{it}/"),
        IpAddr::V6(it) => format!("https://[{it}]/"),
    };
    for (before, first, last, after) in RANGES {
        for inside in [first, last].map(|it| address(it)) {
            assert!(!is_public(inside) && !strict().is_allowed(&named(), inside), "{inside}");
            assert!(OutboundUrl::parse(&in_url(inside), &strict()).is_err(), "{inside}");
        }
        for outside in [before, after].into_iter().filter(|it| !it.is_empty()).map(|it| address(it)) {
            assert!(is_public(outside) && strict().is_allowed(&named(), outside), "{outside}");
            assert!(OutboundUrl::parse(&in_url(outside), &strict()).is_ok(), "{outside}");
        }
    }
}

/// An IPv4 address inside an IPv6 one is judged as itself, in every form that carries one.
#[test]
fn what_is_carried_is_judged() {
    let forms = |it: Ipv4Addr| {
        let [a, b] = [it.to_bits() >> 16, it.to_bits() & 0xffff];
        let [not_a, not_b] = [a ^ 0xffff, b ^ 0xffff];
        [
            format!("::ffff:{a:x}:{b:x}"),
            format!("64:ff9b::{a:x}:{b:x}"),
            format!("64:ff9b:1::{a:x}:{b:x}"),
            format!("2002:{a:x}:{b:x}::1"),
            format!("2001:0:808:808::{not_a:x}:{not_b:x}"),
            format!("2001:0:{a:x}:{b:x}::f7f7:f7f7"),
        ]
    };
    let v4 = |text: &&&str| matches!(address(text), IpAddr::V4(_));
    for (before, first, last, after) in RANGES.iter().filter(|it| v4(&&it.1)) {
        for (texts, public) in [([first, last], false), ([before, after], true)] {
            for text in texts.into_iter().filter(|it| !it.is_empty()) {
                for form in forms(text.parse().unwrap()) {
                    assert_eq!(is_public(address(&form)), public, "{form} carries {text}");
                }
            }
        }
    }
    // Which address a longer local prefix carries only its network knows.
    assert!(!is_public(address("64:ff9b:1:7f00:0:100:808:808")));
    assert!(!is_public(address("64:ff9b:0:1::808:808")));
}

/// URLs that are called, and how they are written from then on.
#[test]
fn public_urls_pass_normalised() {
    let long = format!("https://example.com/{}", "a".repeat(2_028));
    for (sent, kept) in [
        ("https://example.com", "https://example.com/"),
        ("HTTPS://EXAMPLE.com:443/hook?a=1", "https://example.com/hook?a=1"),
        ("https://example.com:8443/", "https://example.com:8443/"),
        ("https://bücher.example/ä", "https://xn--bcher-kva.example/%C3%A4"),
        ("https://example.com./", "https://example.com./"),
        ("https://93.184.216.34/x", "https://93.184.216.34/x"),
        ("https://[2606:2800:220:1::1]/", "https://[2606:2800:220:1::1]/"),
        ("https://example.com/%00?@", "https://example.com/%00?@"),
        (&long, &long),
    ] {
        let url = OutboundUrl::parse(sent, &strict()).unwrap_or_else(|why| panic!("{sent}: {why:?}"));
        assert_eq!(url.as_str(), kept);
        assert_eq!(UrlText::try_from(url).unwrap().as_str(), kept);
    }
    let url = OutboundUrl::parse("https://Example.com:8443/a", &strict()).unwrap();
    assert_eq!((url.host(), url.port()), ("example.com", 8443));
}

/// Texts that lead inside, to this server, or past what was checked.
const TRICKS: &[&str] = &[
    // Not an https URL.
    "",
    "/",
    "example.com",
    "//example.com/",
    "https:",
    "https://",
    "https:///",
    "https:example.com",
    "https:/example.com/",
    "https:///example.com/",
    "http://example.com/",
    "ftp://example.com/",
    "file:///etc/passwd",
    "data:text/plain,x",
    "javascript:alert(1)",
    "ws://example.com/",
    "httpss://example.com/",
    // Users, fragments, ports.
    "https://user@example.com/",
    "https://user:pass@example.com/",
    "https://:@example.com/",
    "https://@example.com/",
    "https://example.com@10.0.0.1/",
    "https://example.com/#",
    "https://example.com/#a",
    "https://example.com:0/",
    "https://example.com:65536/",
    "https://example.com:-1/",
    // What a parser would drop or turn round.
    "https://example.com\\@10.0.0.1/",
    "https:\\\\example.com/",
    "https://exa\tmple.com/",
    "https://example.com/\n",
    " https://example.com/",
    "https://example.com/ ",
    "https://example.com/a b",
    "https://example.com/\u{a0}",
    "https://example.com/\0",
    "https://example.com/\u{7f}",
    "https://example.com/\u{85}",
    "https://exa%00mple.com/",
    "https://example%2ecom%2f@/",
    "https://a..example.com/",
    "https://example.com../",
    "https://./",
    "https://.com/",
    // Addresses in other clothes.
    "https://0x7f.1/",
    "https://0x7f000001/",
    "https://2130706433/",
    "https://0177.0.0.1/",
    "https://127.1/",
    "https://127.0.0.1./",
    "https://%31%32%37.0.0.1/",
    "https://１２７.0.0.1/",
    "https://①②⑦.0.0.1/",
    "https://127。0。0。1/",
    "https://0/",
    "https://256.256.256.256/",
    "https://1.2.3.4.5/",
    "https://169.254.169.254/latest/meta-data",
    "https://[::1]/",
    "https://[::]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:7f00:1]/",
    "https://[::127.0.0.1]/",
    "https://[64:ff9b::10.0.0.1]/",
    "https://[2002:7f00:1::]/",
    "https://[fe80::1%25eth0]/",
    "https://[fe80::1%eth0]/",
    "https://[::1",
    "https://::1/",
    // This machine and this server.
    "https://localhost/",
    "https://LOCALHOST./",
    "https://localhost../",
    "https://a.localhost/",
    "https://a.b.localhost./",
    "https://ｌocalhost/",
    "https://loc%61lhost/",
    "https://gate.example.com/",
    "https://GATE.example.com./",
    "https://gate.example.com:8443/",
    "https://g%61te.example.com/",
];

/// Everything that could lead inside, to this server, or past what was checked.
#[test]
fn tricks_are_refused() {
    let long = format!("https://example.com/{}", "a".repeat(2_029));
    let encoded = format!("https://example.com/{}", "ä".repeat(1_000));
    for bad in TRICKS.iter().copied().chain([long.as_str(), encoded.as_str()]) {
        assert!(OutboundUrl::parse(bad, &strict()).is_err(), "{bad:?}");
    }
}

/// Development reaches private addresses, and loopback without TLS, but not this server, nor what clouds keep.
#[test]
fn development_reaches_its_own_network() {
    for good in [
        "http://127.0.0.1:9/x",
        "http://[::1]:9/",
        "http://[::ffff:127.0.0.1]:9/",
        "https://10.0.0.1/",
        "https://192.168.1.1/",
        "https://[fd00::1]/",
        "https://localhost:9/",
        "https://example.com/",
        "http://127.0.0.2/",
    ] {
        assert!(OutboundUrl::parse(good, &lenient()).is_ok(), "{good}");
        assert!(good.contains("example.com") || OutboundUrl::parse(good, &strict()).is_err(), "{good}");
    }
    for bad in [
        "http://example.com/x",
        "http://10.0.0.1/",
        "http://localhost:9/",
        "http://127.0.0.1:8080/v1",
        "http://0x7f.1:8080/",
        "https://127.0.0.1:8080/",
        "https://169.254.169.254/",
        "https://[fe80::1]/",
        "https://0.0.0.0/",
        "https://224.0.0.1/",
        "https://[64:ff9b::10.0.0.1]/",
        "https://[2002:7f00:1::]/",
    ] {
        assert!(OutboundUrl::parse(bad, &lenient()).is_err(), "{bad}");
    }
}

/// Who named hosts has let those alone be private: not others of their networks, nor what is never called.
#[test]
fn private_is_what_was_named() {
    let named = ["localhost", "127.0.0.1", "[::1]", "idp.internal", "10.0.0.5"].map(|it| Host::parse(it).unwrap());
    let policy = Outbound { private: Private::At(named.into()), own_host: "127.0.0.1:8080".into() };
    for (url, may) in [
        ("http://127.0.0.1:9/x", true),
        ("https://localhost:9/", true),
        ("https://[::1]:9/", true),
        ("https://10.0.0.5/", true),
        ("https://idp.internal/", true),
        ("http://10.0.0.5/", false),
        ("https://10.0.0.6/", false),
        ("https://127.0.0.2/", false),
        ("http://127.0.0.2:9/", false),
        ("https://other.localhost/", false),
        ("https://[fd00::1]/", false),
        ("http://127.0.0.1:8080/", false),
    ] {
        assert_eq!(OutboundUrl::parse(url, &policy).is_ok(), may, "{url}");
    }
    let host = |text: &str| Host::parse(text).unwrap();
    for (name, at, may) in [
        ("idp.internal", "10.1.2.3", true),
        ("idp.internal", "::1", true),
        ("idp.internal", "169.254.169.254", false),
        ("idp.internal", "fe80::1", false),
        ("idp.internal.", "10.1.2.3", false),
        ("stranger.example", "10.1.2.3", false),
        ("stranger.example", "127.0.0.1", false),
        ("stranger.example", "93.184.216.34", true),
    ] {
        assert_eq!(policy.is_allowed(&host(name), address(at)), may, "{name} at {at}");
    }
}

/// The server's own name is its own at every port, with or without the final dot; its address alone at its port.
#[test]
fn own_hosts_are_not_called() {
    let own = |own: &str, url: &str| {
        let policy = Outbound { private: Private::Anywhere, own_host: own.into() };
        OutboundUrl::parse(url, &policy).is_err()
    };
    assert!(own("gate.example.com:8443", "https://gate.example.com/"));
    assert!(own("Gate.Example.com.", "https://gate.example.com:1/"));
    assert!(own("93.184.216.34", "https://93.184.216.34:9/"));
    assert!(own("[2606:2800:220:1::1]:9", "https://[2606:2800:220:1:0:0:0:1]/"));
    assert!(own("[::1]:8080", "http://[::1]:8080/") && !own("[::1]:8080", "http://[::1]:8081/"));
    assert!(own("localhost:8080", "https://localhost:8080/") && !own("localhost:8080", "https://localhost:1/"));
    assert!(own("127.0.0.1", "http://127.0.0.1/") && !own("127.0.0.1", "http://127.0.0.1:9/"));
    assert!(!own("gate.example.com", "https://agate.example.com/"));
}

proptest! {
    /// No text makes the guard panic; what it lets through is read the same again and holds what was promised.
    #[test]
    fn what_passes_passes_again(
        text in prop_oneof![
            any::<String>(),
            "(https?|ftp|wss?)?:?[/\\\\]{0,3}[a-z0-9@:.%\\[\\]{}#?/\u{ff10}-\u{ff19}。-]{0,40}",
            "https://[0-9a-fx.]{1,20}(:[0-9]{1,6})?/?",
            "https://\\[[0-9a-f:.%]{1,30}\\]/",
        ],
        allow in any::<bool>(),
    ) {
        let policy = Outbound { private: if allow { Private::Anywhere } else { Private::Nowhere }, ..strict() };
        if let Ok(url) = OutboundUrl::parse(&text, &policy) {
            let again = OutboundUrl::parse(url.as_str(), &policy).unwrap();
            prop_assert_eq!(again.as_str(), url.as_str());
            prop_assert!(url.as_str().starts_with("https://") || allow);
            prop_assert!(!url.as_str().contains(['@', '#']) || url.as_str().contains(['/', '?']));
            prop_assert!(UrlText::try_from(url).is_ok());
        }
    }
}
