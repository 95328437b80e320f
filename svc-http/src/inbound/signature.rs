//! Signatures of requests from outside, over their raw bodies.
//!
//! **Invariant:** signatures are compared in constant time, and the same is computed whatever of a request is wrong: nothing
//! tells whether there is an integration, or how far a signature fits.

use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{HeaderMap, HeaderName};
use sha2::Sha256;
use svc_core::value::secret::Secret;
use svc_core::value::{Span, Timestamp};

use crate::headers::single;

/// How far the time of a signature may be from the gate's clock, before it or behind it.
pub const FRESH: Span = Span::minutes(5);
/// How long a request is remembered whose signature names a time within [`FRESH`]: longer than it could be fresh.
pub const STAMPED_KEPT: Span = Span::minutes(15);

/// Members of a header that are read.
const MEMBERS_MAX: usize = 32;
/// What a signature is computed with where there is no secret.
const DECOY: &[u8] = b"there is no integration";

/// The secrets that a request may be signed with.
#[derive(Debug, Default)]
pub struct Secrets(Vec<Secret<Vec<u8>>>);

impl Secrets {
    /// These; none where the request can be nobody's.
    #[must_use]
    pub const fn new(secrets: Vec<Secret<Vec<u8>>>) -> Self {
        Self(secrets)
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The place of the one under which one of `signatures` is HMAC-SHA256 of `parts`.
    #[must_use]
    pub fn fit(&self, parts: &[&[u8]], signatures: &[Vec<u8>]) -> Option<usize> {
        let mut fits = None;
        let decoy = [DECOY];
        let keys: Vec<&[u8]> = self.0.iter().map(|it| it.expose().as_slice()).collect();
        let tried = if keys.is_empty() { &decoy[..] } else { &keys };
        for (place, key) in tried.iter().enumerate() {
            // A key of any length is one.
            let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { continue };
            for part in parts {
                mac.update(part);
            }
            for signature in signatures {
                let is_one = mac.clone().verify_slice(signature).is_ok();
                fits = fits.or_else(|| is_one.then_some(place));
            }
        }
        fits.filter(|_| !self.0.is_empty())
    }
}

/// The work of verifying a body, done on one that nobody can have signed: how long its refusal takes does not tell that.
#[derive(Clone, Debug)]
pub(crate) struct Decoy(Option<Hmac<Sha256>>);

impl Decoy {
    pub(crate) fn new() -> Self {
        Self(Hmac::new_from_slice(DECOY).ok())
    }

    pub(crate) fn update(&mut self, piece: &[u8]) {
        if let Some(mac) = &mut self.0 {
            mac.update(piece);
        }
    }
}

/// What a good signature with a time in it was over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamped {
    /// The time as it was sent, which is what was signed.
    pub stamp: Box<str>,
    /// The place of the secret that it was made with.
    pub secret: usize,
}

/// Verifies `t=<unix seconds>,v1=<hex>`, where `v1` is HMAC-SHA256 of `t`, a full stop and the body, under the whole text of a
/// secret. Of several `v1` one that fits is enough, whatever the others are; members of other names are another scheme's, and are
/// passed over.
///
/// `None`: the header is not there, there twice, malformed or too far from `now`, or nothing in it fits.
#[must_use]
pub fn stamped(
    headers: &HeaderMap,
    name: &HeaderName,
    body: &[u8],
    secrets: &Secrets,
    now: Timestamp,
) -> Option<Stamped> {
    let sent = single(headers, name).ok().flatten().and_then(|it| it.to_str().ok());
    let read = sent.and_then(read);
    let (stamp, signatures) = read.as_ref().map_or(("0", &[][..]), |it| (it.stamp, &it.signatures));
    let fits = secrets.fit(&[stamp.as_bytes(), b".", body], signatures);
    let at = read.as_ref()?.at;
    fits.filter(|_| is_fresh(at, now)).map(|secret| Stamped { stamp: stamp.into(), secret })
}

/// Whether a time in seconds is within [`FRESH`] of `now`.
fn is_fresh(at: i64, now: Timestamp) -> bool {
    now.as_seconds().abs_diff(at) <= FRESH.as_millis().unsigned_abs() / 1_000
}

/// Verifies Slack's scheme of version 0: `v0=<hex>` in the first header, HMAC-SHA256 of `v0:`, the time in the second, a colon and
/// the body, under the whole text of a secret.
///
/// `None`: a header is not there, there twice, malformed or too far from `now`, or the signature does not fit.
#[must_use]
pub fn slack(
    headers: &HeaderMap,
    (signature, time): (&HeaderName, &HeaderName),
    body: &[u8],
    secrets: &Secrets,
    now: Timestamp,
) -> Option<Stamped> {
    let text = |name| single(headers, name).ok().flatten().and_then(|it| it.to_str().ok());
    let stamp = text(time).filter(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()));
    let digits = text(signature).and_then(|it| it.strip_prefix("v0=")).filter(|it| it.len() == 64);
    let sent = digits.and_then(|it| hex::decode(it).ok());
    let fits = secrets.fit(&[b"v0:", stamp.unwrap_or("0").as_bytes(), b":", body], sent.as_slice());
    let at: i64 = stamp?.parse().ok()?;
    let secret = fits.filter(|_| is_fresh(at, now))?;
    Some(Stamped { stamp: stamp.unwrap_or_default().into(), secret })
}

/// Verifies `sha256=<hex>`: HMAC-SHA256 of the body alone, under the whole text of a secret, whose place it gives. There is no time
/// in it.
#[must_use]
pub fn plain(headers: &HeaderMap, name: &HeaderName, body: &[u8], secrets: &Secrets) -> Option<usize> {
    let sent = single(headers, name).ok().flatten().and_then(|it| it.to_str().ok());
    let digits = sent.and_then(|it| it.strip_prefix("sha256=")).filter(|it| it.len() == 64);
    let signature = digits.and_then(|it| hex::decode(it).ok());
    secrets.fit(&[body], signature.as_slice())
}

struct Read<'a> {
    stamp: &'a str,
    at: i64,
    signatures: Vec<Vec<u8>>,
}

fn read(text: &str) -> Option<Read<'_>> {
    let (mut stamp, mut signatures) = (None, Vec::new());
    for (place, member) in text.split(',').enumerate() {
        let (name, value) = member.split_once('=').filter(|_| place < MEMBERS_MAX)?;
        match name {
            "t" if stamp.is_some() => return None,
            "t" => stamp = Some(value),
            // One that is no signature spoils none beside it.
            "v1" => signatures.extend(hex::decode(value).ok()),
            _ => {}
        }
    }
    let stamp = stamp.filter(|it| it.bytes().all(|byte| byte.is_ascii_digit()))?;
    Some(Read { stamp, at: stamp.parse().ok()?, signatures })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use http::HeaderValue;
    use svc_core::state::edge::signature;

    use super::*;

    const NAME: HeaderName = HeaderName::from_static("svc-signature");
    const BODY: &[u8] = br#"{"id":"evt_1","object":"event"}"#;
    const SECRET: &str = "whsec_test_secret";
    const AT: i64 = 1_614_265_330;
    const KNOWN: &str = "42b3d2b2181207b6b299df380bf37599bb895dc182467ba12e046b1916c4cd19";

    fn secrets(texts: &[&str]) -> Secrets {
        Secrets::new(texts.iter().map(|it| Secret::new(it.as_bytes().to_vec())).collect())
    }

    fn is_good(sent: &[&str], secrets: &Secrets, at: i64) -> bool {
        let mut headers = HeaderMap::new();
        for value in sent {
            headers.append(NAME, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        stamped(&headers, &NAME, BODY, secrets, Timestamp::from_millis(at * 1_000)).is_some()
    }

    /// The published example is good under its secret for five minutes on both sides of its time, to the second.
    #[test]
    fn a_known_signature_is_good_for_five_minutes_on_both_sides() {
        let (sent, one) = (format!("t={AT},v1={KNOWN}"), secrets(&[SECRET]));
        for (apart, good) in [(0, true), (300, true), (-300, true), (301, false), (-301, false), (86_400, false)] {
            assert_eq!(is_good(&[&sent], &one, AT + apart), good, "{apart}");
        }
        let both = secrets(&["whsec_next_secret", SECRET]);
        assert!(is_good(&[&sent], &both, AT), "while secrets take turns both are good");
        let own = signature(Timestamp::from_millis(AT * 1_000), BODY, [SECRET.as_bytes()]);
        assert!(is_good(&[&own], &one, AT), "what is signed here is good here");
    }

    /// One `v1` that fits is enough, members of other schemes are passed over, and whatever else there is, is none.
    #[test]
    fn what_does_not_fit_is_no_signature() {
        let one = secrets(&[SECRET]);
        let wrong = "0".repeat(64);
        for good in [
            format!("t={AT},v1={wrong},v1={KNOWN}"),
            format!("v1={KNOWN},t={AT}"),
            format!("t={AT},v0={wrong},v1={KNOWN},more=1"),
            format!("t={AT},v1=x,v1={KNOWN}"),
            format!("t={AT},v1={KNOWN},v1=,v1={}", &KNOWN[..63]),
        ] {
            assert!(is_good(&[&good], &one, AT), "{good}");
        }
        let sent = format!("t={AT},v1={KNOWN}");
        for bad in [
            String::new(),
            format!("t={AT}"),
            format!("v1={KNOWN}"),
            format!("t={AT},v0={KNOWN}"),
            format!("t={AT},v1={wrong}"),
            format!("t={AT},v1={}", &KNOWN[..62]),
            format!("t={AT},v1={KNOWN}00"),
            format!("t={AT},v1=x"),
            format!("t={AT},t={AT},v1={KNOWN}"),
            format!("t=+{AT},v1={KNOWN}"),
            format!("t=,v1={KNOWN}"),
            format!("t={}0,v1={KNOWN}", "9".repeat(30)),
            format!("t={AT};v1={KNOWN}"),
            format!("t={AT},{},v1={KNOWN}", "a=b,".repeat(MEMBERS_MAX)),
        ] {
            assert!(!is_good(&[&bad], &one, AT), "{bad}");
        }
        assert!(!is_good(&[], &one, AT) && !is_good(&[&sent, &sent], &one, AT));
        assert!(!is_good(&[&sent], &secrets(&["whsec_other"]), AT) && !is_good(&[&sent], &secrets(&[]), AT));
        let decoy = signature(Timestamp::from_millis(AT * 1_000), BODY, [DECOY]);
        assert!(!is_good(&[&decoy], &secrets(&[]), AT), "what stands in for a secret is none");
    }

    /// Slack's published example holds in each of its cases, and a header that is missing, there twice or spelt otherwise is none.
    #[test]
    fn slacks_example_holds() {
        let file: serde_json::Value =
            serde_json::from_str(include_str!("../../tests/data/slack_signature.json")).unwrap();
        let text = |name: &str| file[name].as_str().unwrap();
        let (sign, time) =
            (HeaderName::from_static("x-slack-signature"), HeaderName::from_static("x-slack-request-timestamp"));
        let at = file["timestamp"].as_i64().unwrap();
        let holds = |signs: &[&str], times: &[&str], body: &str, texts: &[&str], now: i64| {
            let mut headers = HeaderMap::new();
            for (name, values) in [(&sign, signs), (&time, times)] {
                for value in values {
                    headers.append(name, HeaderValue::from_str(value).unwrap());
                }
            }
            let now = Timestamp::from_millis(now * 1_000);
            slack(&headers, (&sign, &time), body.as_bytes(), &secrets(texts), now).is_some()
        };
        let (good, stamp, body, secret) = (text("signature"), at.to_string(), text("body"), text("signingSecret"));
        let cases = file["cases"].as_array().unwrap().iter().filter(|it| it["repeat"] != true);
        for case in cases {
            let body = case["body"].as_str().unwrap_or(body);
            let secret = case["secret"].as_str().unwrap_or(secret);
            let now = case["now"].as_i64().unwrap();
            assert_eq!(holds(&[good], &[&stamp], body, &[secret], now), case["accept"], "{case}");
        }
        for (signs, times, now) in [
            (vec![], vec![&*stamp], at),
            (vec![good], vec![], at),
            (vec![good, good], vec![&*stamp], at),
            (vec![good], vec![&*stamp, &stamp], at),
            (vec![&good[3..]], vec![&*stamp], at),
            (vec![good], vec!["+1531420618"], at),
            (vec![good], vec!["99999999999999999999"], at),
            (vec![good], vec![&*stamp], at - 301),
        ] {
            assert!(!holds(&signs, &times, body, &[secret], now), "{signs:?} {times:?}");
        }
        assert!(holds(&[good], &[&stamp], body, &["other", secret], at - 300));
        assert!(!holds(&[good], &[&stamp], body, &[], at), "no secret, no signature");
    }

    /// The code host's published example is good under either of two secrets; each published forgery, another spelling, another
    /// secret and none are not.
    #[test]
    fn the_code_hosts_example_holds() {
        let file: serde_json::Value =
            serde_json::from_str(include_str!("../../tests/data/github_webhook.json")).unwrap();
        let of = |value: &serde_json::Value, name: &str| value[name].as_str().unwrap().to_owned();
        let (secret, body, good) = (of(&file, "secret"), of(&file, "payload"), of(&file, "signature"));
        let holds = |sent: &[&str], body: &str, texts: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in sent {
                headers.append(NAME, HeaderValue::from_bytes(value.as_bytes()).unwrap());
            }
            plain(&headers, &NAME, body.as_bytes(), &secrets(texts)).is_some()
        };
        for texts in [&[&*secret][..], &["other", &secret]] {
            assert!(holds(&[&good], &body, texts));
        }
        for forged in file["mustReject"].as_array().unwrap() {
            assert!(!holds(&[&of(forged, "signature")], &of(forged, "payload"), &[&secret]), "{forged}");
        }
        for spelt in ["", "sha256=", &good[7..], &good.replace("sha256", "sha1"), &format!("{good}00")] {
            assert!(!holds(&[spelt], &body, &[&secret]), "{spelt}");
        }
        assert!(!holds(&[], &body, &[&secret]) && !holds(&[&good, &good], &body, &[&secret]));
        assert!(!holds(&[&good], &body, &["other"]) && !holds(&[&good], &body, &[]));
    }
    /// Wycheproof's HMAC-SHA256: every whole tag is judged as published, as a code host sends it; a shortened one never holds, though
    /// it is valid where that many bits are asked for.
    #[test]
    fn wycheproof_hmac_agrees() {
        let text = include_str!("../../tests/data/wycheproof_hmac_sha256.json");
        let file: serde_json::Value = serde_json::from_str(text).unwrap();
        let bytes = |it: &serde_json::Value| hex::decode(it.as_str().unwrap()).unwrap();
        let (mut seen, mut held) = (0, 0);
        for group in file["testGroups"].as_array().unwrap() {
            let is_whole = group["tagSize"] == 256;
            for test in group["tests"].as_array().unwrap() {
                let (message, secret) = (bytes(&test["msg"]), Secrets::new(vec![Secret::new(bytes(&test["key"]))]));
                let sent = format!("sha256={}", test["tag"].as_str().unwrap());
                let mut headers = HeaderMap::new();
                headers.append(NAME, HeaderValue::from_str(&sent).unwrap());
                let fits = secret.fit(&[&message], &[bytes(&test["tag"])]).is_some();
                let holds = plain(&headers, &NAME, &message, &secret).is_some();
                assert_eq!([fits, holds], [is_whole && test["result"] == "valid"; 2], "{test}");
                seen += 1;
                held += usize::from(holds);
            }
        }
        assert_eq!(seen, file["numberOfTests"]);
        assert!(held > 0, "some hold");
    }

    /// The processor's published header is read: its time and the one signature of the scheme, past that of another; a published text
    /// that is no header is none, though a secret would fit.
    #[test]
    fn the_processors_example_is_read() {
        let file: serde_json::Value =
            serde_json::from_str(include_str!("../../tests/data/stripe_signature.json")).unwrap();
        let parsed = &file["parsed"];
        let got = read(file["header"].as_str().unwrap()).unwrap();
        let signatures: Vec<String> = got.signatures.iter().map(hex::encode).collect();
        assert_eq!((got.at, got.stamp), (parsed["t"].as_i64().unwrap(), &*parsed["t"].to_string()));
        assert_eq!(serde_json::json!(signatures), parsed["v1"]);
        for bad in file["mustRejectHeaders"].as_array().unwrap() {
            let bad = bad.as_str().unwrap();
            assert!(read(bad).is_none_or(|it| it.signatures.is_empty()), "{bad}");
            assert!(!is_good(&[bad], &secrets(&[SECRET]), 1), "{bad}");
        }
    }

    /// A signature of the scheme that writes `v1,<base64>` is none of ours, under its own secret and for its own body, nor are several
    /// of them; and its empty secret is one that nobody can have.
    #[test]
    fn another_scheme_of_webhooks_is_none() {
        let file: serde_json::Value =
            serde_json::from_str(include_str!("../../tests/data/standard_webhooks.json")).unwrap();
        let text = |name: &str| file[name].as_str().unwrap();
        let (body, at) = (text("payload"), file["timestamp"].as_i64().unwrap());
        let decoded = STANDARD.decode(text("secret").trim_start_matches("whsec_")).unwrap();
        let both = Secrets::new(vec![Secret::new(text("secret").as_bytes().to_vec()), Secret::new(decoded)]);
        let now = Timestamp::from_millis(at * 1_000);
        for sent in [text("signature"), file["rotation"]["header"].as_str().unwrap()] {
            let base64 = sent.rsplit_once(',').unwrap().1;
            let digits = hex::encode(STANDARD.decode(base64).unwrap());
            for sent in [sent.to_owned(), format!("t={at},v1={base64}"), format!("t={at},v1={digits}")] {
                let mut headers = HeaderMap::new();
                headers.append(NAME, HeaderValue::from_str(&sent).unwrap());
                assert_eq!(stamped(&headers, &NAME, body.as_bytes(), &both, now), None, "{sent}");
            }
        }
        let empty = file["mustReject"][0]["secret"].as_str().unwrap();
        assert!(crate::callback_secret::parse(empty).is_err() && crate::callback_secret::parse_given(empty).is_err());
    }
}
