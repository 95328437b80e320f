//! Keys, tokens and passwords: by their makers' prefixes, in PEM, as JSON web tokens, in addresses, and behind a name that
//! says what they are.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::text::{Text, is_base64url, is_word};
use crate::value::json::Json;

/// Bytes of the header of a JSON web token; longer ones are not read.
const HEADER_MAX: usize = 4_096;
/// Bytes behind the header of a token, below which it carries nothing.
const REST_MIN: usize = 10;
/// Bytes of a key that are looked at where its length is open.
const KEY_MAX: usize = 512;
/// Letters and digits of a PEM's body, below which it is the mention of one.
const PEM_MIN: usize = 40;
/// Bytes of a value that is a secret for what it is called.
const VALUE: std::ops::RangeInclusive<usize> = 16..=KEY_MAX;
/// Bytes of its name that are looked at.
const NAME_MAX: usize = 40;

/// What a key is written in behind its prefix.
#[derive(Clone, Copy)]
enum Body {
    /// Letters and digits.
    Plain,
    /// Letters, digits, `_` and `-`.
    Url,
    /// What either alphabet of base64 is written in.
    Base64,
    /// Upper-case letters and digits.
    Upper,
    /// Hexadecimal digits in lower case.
    Hex,
    /// Letters, digits, `_`, `-` and dots.
    Dotted,
}

/// Prefixes that makers give their keys, and the least and most bytes that follow; svc's own too. Longer prefixes of one maker
/// first; one whose keys have most often one length stands here with that alone too.
#[rustfmt::skip]
const PREFIXES: [(&str, Body, usize, usize); 49] = [
    ("sk-ant-", Body::Url, 20, KEY_MAX), ("sk-proj-", Body::Url, 20, KEY_MAX), ("sk-svcacct-", Body::Url, 20, KEY_MAX),
    ("sk-admin-", Body::Url, 20, KEY_MAX), ("sk-or-v1-", Body::Hex, 32, 64), ("sk-", Body::Url, 20, KEY_MAX),
    ("sk_live_", Body::Plain, 16, 256), ("sk_test_", Body::Plain, 16, 256), ("rk_live_", Body::Plain, 16, 256),
    ("rk_test_", Body::Plain, 16, 256), ("whsec_", Body::Base64, 24, 90), ("ghp_", Body::Plain, 36, 255),
    ("gho_", Body::Plain, 36, 255), ("ghu_", Body::Plain, 36, 255), ("ghs_", Body::Plain, 36, 255),
    ("ghr_", Body::Plain, 36, 255), ("github_pat_", Body::Url, 22, 255), ("glpat-", Body::Url, 20, 20), ("glpat-", Body::Url, 20, 255),
    ("AKIA", Body::Upper, 16, 16), ("ASIA", Body::Upper, 16, 16), ("xoxb-", Body::Url, 10, 250),
    ("xoxp-", Body::Url, 10, 250), ("xoxa-", Body::Url, 10, 250), ("xoxr-", Body::Url, 10, 250),
    ("xoxs-", Body::Url, 10, 250), ("xoxe-", Body::Url, 10, 250), ("xapp-", Body::Url, 10, 250),
    ("AIza", Body::Url, 35, 35), ("ims_", Body::Url, 43, 43), ("ask_", Body::Url, 43, 43),
    ("aat_", Body::Url, 43, 43), ("art_", Body::Url, 43, 43), ("sil_", Body::Url, 43, 43),
    ("whsec_", Body::Url, 43, 43),
    ("npm_", Body::Plain, 36, 36), ("pypi-", Body::Url, 40, KEY_MAX), ("hf_", Body::Plain, 30, 60),
    ("SG.", Body::Dotted, 40, 80), ("gsk_", Body::Plain, 40, 64), ("xai-", Body::Plain, 60, 100),
    ("pplx-", Body::Plain, 40, 64), ("ya29.", Body::Url, 30, KEY_MAX), ("dop_v1_", Body::Hex, 64, 64),
    ("shpat_", Body::Hex, 32, 32), ("r8_", Body::Plain, 37, 40), ("lin_api_", Body::Plain, 32, 48),
    ("tvly-", Body::Url, 20, 64), ("AGE-SECRET-KEY-1", Body::Upper, 58, 58),
];

/// Names whose value is a secret, folded: in lower case and without `_`, `-`, spaces and dots.
const NAMES: [&str; 16] = [
    "apikey",
    "secret",
    "secretkey",
    "clientsecret",
    "accesstoken",
    "authtoken",
    "refreshtoken",
    "apitoken",
    "token",
    "password",
    "passwd",
    "pwd",
    "privatekey",
    "accesskey",
    "credential",
    "bearer",
];

/// Where a private key in PEM that begins here ends, or what there is of one that was cut.
pub(super) fn pem(text: &Text<'_>, place: usize) -> Option<usize> {
    if !text.has(place, "-----BEGIN ") {
        return None;
    }
    let label = place + "-----BEGIN ".len();
    let begun = text.run(label, 48, |it| it.is_ascii_uppercase() || it.is_ascii_digit() || it == b' ');
    if !text.part(label, begun).windows(11).any(|it| it == b"PRIVATE KEY") || !text.has(begun, "-----") {
        return None;
    }
    let from = begun + 5;
    let mut body = from;
    while text.at(body).is_some_and(is_pem) && !text.has(body, "-----") {
        body += 1;
    }
    let written = text.part(from, body).iter().filter(|it| it.is_ascii_alphanumeric()).count();
    if written < PEM_MIN {
        return None;
    }
    if !text.has(body, "-----END ") {
        return Some(body);
    }
    let label =
        text.run(body + "-----END ".len(), 48, |it| it.is_ascii_uppercase() || it.is_ascii_digit() || it == b' ');
    Some(text.run(label, 5, |it| it == b'-'))
}

/// What the lines of a PEM are written in, its headers and the escapes of their ends with them.
fn is_pem(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte.is_ascii_whitespace() || b"+/=\\:,-.()".contains(&byte)
}

/// Where a JSON web token that begins here ends: three parts, or five of an encrypted one, and a header that is one.
pub(super) fn jwt(text: &Text<'_>, place: usize) -> Option<usize> {
    if !text.has(place, "eyJ") || text.before(place) == Some(b'-') {
        return None;
    }
    let header = text.run(place, HEADER_MAX, is_base64url);
    let (mut end, mut parts) = (header, 1);
    while parts < 5 && text.at(end) == Some(b'.') {
        let to = text.run(end + 1, text.len(), is_base64url);
        if to == end + 1 && parts > 2 {
            break;
        }
        end = to;
        parts += 1;
    }
    if parts < 3 || end - header < REST_MIN {
        return None;
    }
    let decoded = URL_SAFE_NO_PAD.decode(text.part(place, header)).ok()?;
    let json = Json::parse(&decoded).ok()?;
    let is_header = ["alg", "enc"].iter().any(|name| json.get(name).is_some_and(|it| it.as_str().is_some()));
    is_header.then_some(end)
}

/// Where a key of a known maker that begins here ends.
pub(super) fn prefixed(text: &Text<'_>, place: usize) -> Option<usize> {
    if text.before(place) == Some(b'-') {
        return None;
    }
    let first = text.at(place)?;
    PREFIXES.iter().filter(|(prefix, ..)| prefix.as_bytes().first() == Some(&first)).find_map(
        |(prefix, body, least, most)| {
            if !text.has(place, prefix) {
                return None;
            }
            let from = place + prefix.len();
            let end = text.run(from, most + 1, |it| body.has(it));
            let length = end - from;
            let key = text.part(from, end);
            let drawn = if least == most { is_of_chance(key, *body) } else { has_digit(key) && !reads_as_words(key) };
            ((*least..=*most).contains(&length) && text.ends(end) && distinct(key) >= 6 && drawn).then_some(end)
        },
    )
}

/// Where a value that begins here ends, if its name says that it is a secret and it looks drawn by chance.
pub(super) fn assigned(text: &Text<'_>, place: usize) -> Option<usize> {
    let is_value = |it: u8| it.is_ascii_alphanumeric() || b"+/_.~-!@#$%^&*".contains(&it);
    // Where the run before this place is part of a value, that value began there and was no secret.
    if text.before(place).is_some_and(|it| b"+/_.~-!@#%^&*$".contains(&it)) {
        return None;
    }
    let named = named(text, place)?;
    let mut end = text.run(place, *VALUE.end() + 1, is_value);
    while end > place && matches!(text.before(end), Some(b'.' | b'!')) {
        end -= 1;
    }
    let value = text.part(place, end);
    let fits = VALUE.contains(&value.len()) && text.at(end) != Some(b'(') && is_drawn(value) && is_secret(&named);
    fits.then(|| text.run(end, 2, |it| it == b'='))
}

/// Where the password in an address such as `postgres://user:secret@host` begins and ends; the place is that of `://`.
pub(super) fn in_address(text: &Text<'_>, place: usize) -> Option<(usize, usize)> {
    if !text.has(place, "://") {
        return None;
    }
    let is_user = |it: u8| it.is_ascii_graphic() && !b":/@\"'<>`?#".contains(&it);
    let user = text.run(place + 3, 64, is_user);
    if text.at(user) != Some(b':') {
        return None;
    }
    let end = text.run(user + 1, 128, is_user);
    let secret = text.part(user + 1, end);
    let blank = secret.len() < 6 || distinct(secret) < 4 || secret.iter().any(|it| b"{}$[]*%".contains(it));
    (text.at(end) == Some(b'@') && !blank && !PLACEHOLDERS.contains(&secret)).then_some((user + 1, end))
}

/// Passwords of examples.
const PLACEHOLDERS: [&[u8]; 6] = [b"password", b"passwd", b"secret", b"changeme", b"postgres", b"example"];

impl Body {
    const fn has(self, byte: u8) -> bool {
        match self {
            Self::Plain => byte.is_ascii_alphanumeric(),
            Self::Url => is_base64url(byte),
            Self::Base64 => is_base64url(byte) || matches!(byte, b'+' | b'/'),
            Self::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Hex => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            Self::Dotted => is_base64url(byte) || byte == b'.',
        }
    }
}

/// The name before an assignment whose value begins here: behind `=`, `:`, `=>`, or `Bearer `, quotes aside.
fn named(text: &Text<'_>, place: usize) -> Option<Vec<u8>> {
    let quote = |it: u8| matches!(it, b'"' | b'\'' | b'`' | b'\\');
    let back = |from: usize, max: usize, class: &dyn Fn(u8) -> bool| {
        let mut at = from;
        while from - at < max && text.before(at).is_some_and(class) {
            at -= 1;
        }
        at
    };
    let value = back(back(place, 2, &quote), 4, &|it| it == b' ');
    let sign = back(value, 2, &|it| matches!(it, b'=' | b':' | b'>'));
    if sign == value {
        let from = sign.saturating_sub(6);
        let is_bearer = value < place && text.part(from, sign).eq_ignore_ascii_case(b"bearer");
        return is_bearer.then(|| b"bearer".to_vec());
    }
    let end = back(back(sign, 2, &|it| it == b' '), 2, &quote);
    let start = back(end, NAME_MAX, &|it| is_word(it) || it == b'-' || it == b'.');
    let name = text.part(start, end).iter().filter(|it| it.is_ascii_alphanumeric());
    Some(name.map(u8::to_ascii_lowercase).collect())
}

/// Whether a name, however it is written, says that its value is a secret.
pub(super) fn names_secret(name: &str) -> bool {
    let folded: Vec<u8> = name.bytes().filter(u8::is_ascii_alphanumeric).map(|it| it.to_ascii_lowercase()).collect();
    is_secret(&folded)
}

/// Whether a folded name says that its value is a secret.
fn is_secret(name: &[u8]) -> bool {
    let ends = |words: &[&str]| words.iter().any(|it| name.ends_with(it.as_bytes()));
    ends(&NAMES) && !ends(&["pagetoken", "nexttoken", "continuationtoken", "csrftoken"])
}

/// Whether a value looks drawn by chance: letters and digits, no words, and the entropy of neither prose nor a pattern.
fn is_drawn(value: &[u8]) -> bool {
    let letters = value.iter().any(u8::is_ascii_alphabetic);
    let digits = has_digit(value);
    let hex = value.iter().all(u8::is_ascii_hexdigit);
    let least = if hex { 2_900 } else { 3_300 };
    letters && digits && !reads_as_words(value) && !is_uuid(value) && entropy_millibits(value) >= least
}

/// Whether a key whose prefix and length tell almost all is no name made of words, which has letters of one case. Of some keys of a
/// maker chance leaves out every digit, or puts its dashes as a writer would.
fn is_of_chance(key: &[u8], body: Body) -> bool {
    let mixed = key.iter().any(u8::is_ascii_lowercase) && key.iter().any(u8::is_ascii_uppercase);
    mixed || has_digit(key) || matches!(body, Body::Upper)
}

fn has_digit(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_digit)
}

/// Whether dashes, dots or `_` part it into words and short numbers, as names and placeholders are.
fn reads_as_words(value: &[u8]) -> bool {
    let parts = value.split(|it| matches!(it, b'-' | b'_' | b'.' | b'/'));
    let mut words = 0_usize;
    let mut other = 0_usize;
    for part in parts.filter(|it| !it.is_empty()) {
        let letters = part.iter().filter(|it| it.is_ascii_alphabetic()).count();
        let digits = part.iter().filter(|it| it.is_ascii_digit()).count();
        let is_word = digits == 0 && letters <= 12 || letters == 0 && digits <= 4 || digits <= 1 && letters <= 6;
        if is_word {
            words += part.len();
        } else {
            other += part.len();
        }
    }
    words > other
}

fn is_uuid(value: &[u8]) -> bool {
    let lengths: Vec<usize> = value.split(|it| *it == b'-').map(<[u8]>::len).collect();
    lengths == [8, 4, 4, 4, 12] && value.iter().all(|it| it.is_ascii_hexdigit() || *it == b'-')
}

fn distinct(value: &[u8]) -> usize {
    counts(value).iter().filter(|it| **it > 0).count()
}

fn counts(value: &[u8]) -> [u32; 256] {
    let mut counts = [0; 256];
    for byte in value {
        if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count += 1;
        }
    }
    counts
}

/// Shannon's entropy of the bytes, in thousandths of a bit a byte.
fn entropy_millibits(value: &[u8]) -> u32 {
    let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
    let Some(whole) = length.checked_mul(log2_thousandths(length)) else { return 0 };
    let used = counts(value).iter().map(|count| count.saturating_mul(log2_thousandths(*count))).sum::<u32>();
    whole.saturating_sub(used).checked_div(length).unwrap_or_default()
}

/// The binary logarithm in thousandths, rounded down, by squaring a 32-bit fraction; 0 of 0.
fn log2_thousandths(number: u32) -> u32 {
    let Some(whole) = number.checked_ilog2() else { return 0 };
    let mut fraction = u64::from(number) << (32 - whole); // from 2^32 to below 2^33
    let mut thousandths = 0;
    let mut bit = 512; // in 1/1024
    while bit > 0 {
        fraction = (fraction >> 1).saturating_mul(fraction >> 1) >> 30;
        if fraction >= 1 << 33 {
            fraction >>= 1;
            thousandths += bit;
        }
        bit >>= 1;
    }
    whole.saturating_mul(1_000).saturating_add(thousandths * 1_000 / 1_024)
}
