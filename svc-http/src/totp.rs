//! Time-based one-time passwords (RFC 6238) as phones make them: SHA-1, six digits, thirty seconds.

use aws_lc_rs::hmac;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use qrcodegen::{QrCode, QrCodeEcc};
use svc_core::value::Timestamp;

/// Bytes of a secret.
pub const SECRET_BYTES: usize = 20;
/// Seconds of one step.
const STEP_S: i64 = 30;
/// Steps before and after the present one that a slow hand or a wrong clock may be at.
const SLACK: u64 = 1;
/// Who issues, as phones show it.
const ISSUER: &str = "svc";

/// The step that a code belongs to, of those that count at `now`.
#[must_use]
pub fn step_of(secret: &[u8], code: &str, now: Timestamp) -> Option<u64> {
    let present = u64::try_from(now.as_millis() / 1_000 / STEP_S).ok()?;
    let steps = present.saturating_sub(SLACK)..=present.saturating_add(SLACK);
    // Every step is looked at, so that the time it takes tells nothing.
    let mut found = None;
    for step in steps {
        let own = code_at(secret, step);
        if aws_lc_rs::constant_time::verify_slices_are_equal(own.as_bytes(), code.as_bytes()).is_ok() {
            found = Some(step);
        }
    }
    found
}

/// The code of a step.
#[must_use]
pub fn code_at(secret: &[u8], step: u64) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret);
    let tag = hmac::sign(&key, &step.to_be_bytes());
    let bytes = tag.as_ref();
    let offset = usize::from(bytes.last().copied().unwrap_or(0) & 0xf);
    let four = bytes.get(offset..).and_then(|it| it.first_chunk::<4>()).copied().unwrap_or_default();
    format!("{:06}", (u32::from_be_bytes(four) & 0x7fff_ffff) % 1_000_000)
}

/// A secret as people type it: base32 (RFC 4648) without padding.
#[must_use]
pub fn base32(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut out = String::with_capacity(bytes.len().div_ceil(5) * 8);
    let (mut bits, mut held) = (0_u32, 0_u32);
    for byte in bytes {
        bits = (bits << 8) | u32::from(*byte);
        held += 8;
        while held >= 5 {
            held -= 5;
            out.push(char::from(LETTERS.get((bits >> held & 31) as usize).copied().unwrap_or(b'A')));
        }
        bits &= (1 << held) - 1;
    }
    if held > 0 {
        out.push(char::from(LETTERS.get((bits << (5 - held) & 31) as usize).copied().unwrap_or(b'A')));
    }
    out
}

/// Bytes of an address that a picture has room for as they are encoded, and a camera can tell apart: more than those of any of ASCII.
const LABEL_BYTES_MAX: usize = 768;

/// What a phone's camera reads: the secret, whose it is and who issues it. Of an address that is too long for a picture it has the
/// beginning: it is for people alone.
#[must_use]
pub fn otpauth_url(secret: &[u8], email: &str) -> String {
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let mut label = encoded(email);
    if label.len() > LABEL_BYTES_MAX {
        label.clear();
        for sign in email.chars() {
            let more = encoded(sign.encode_utf8(&mut [0; 4]));
            if label.len().saturating_add(more.len()) > LABEL_BYTES_MAX {
                break;
            }
            label.push_str(&more);
        }
        label.push_str(&encoded("…"));
    }
    format!("otpauth://totp/{ISSUER}:{label}?secret={}&issuer={ISSUER}", base32(secret))
}

/// A text as a QR code in SVG; nothing where it is too long for one.
#[must_use]
pub fn qr_svg(text: &str) -> Option<String> {
    const BORDER: i32 = 4;
    let code = QrCode::encode_text(text, QrCodeEcc::Medium).ok()?;
    let side = code.size() + 2 * BORDER;
    let mut path = String::new();
    for y in 0..code.size() {
        for x in (0..code.size()).filter(|x| code.get_module(*x, y)) {
            path.push_str(&format!("M{},{}h1v1h-1z", x + BORDER, y + BORDER));
        }
    }
    Some(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {side} {side}\" shape-rendering=\"crispEdges\">\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/><path d=\"{path}\"/></svg>"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6238, appendix B, for SHA-1: the last six of its eight digits.
    #[test]
    fn codes_are_those_of_the_rfc() {
        let secret = b"12345678901234567890";
        for (second, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            assert_eq!(code_at(secret, second / 30), code, "{second}");
            let at = |second: u64| Timestamp::from_millis(i64::try_from(second * 1_000).unwrap_or(0));
            assert_eq!(step_of(secret, code, at(second)), Some(second / 30));
            assert_eq!(step_of(secret, code, at(second + 30)), Some(second / 30), "one step late");
            assert_eq!(step_of(secret, code, at(second + 60)), None, "two steps late");
        }
        for bad in ["", "28708", "2870820", "abcdef", "２８７０８２"] {
            assert_eq!(step_of(secret, bad, Timestamp::from_millis(59_000)), None, "{bad}");
        }
    }

    /// RFC 4648, section 10, without padding.
    #[test]
    fn base32_is_that_of_the_rfc() {
        for (plain, text) in [
            ("", ""),
            ("f", "MY"),
            ("fo", "MZXQ"),
            ("foo", "MZXW6"),
            ("foob", "MZXW6YQ"),
            ("fooba", "MZXW6YTB"),
            ("foobar", "MZXW6YTBOI"),
        ] {
            assert_eq!(base32(plain.as_bytes()), text);
        }
    }

    /// An address of any letters and length has a picture, in which it is cut where it must be.
    #[test]
    fn every_address_has_a_picture() {
        let (ascii, wide) = (format!("{}@b.example", "+".repeat(244)), format!("{}@b.example", "😀".repeat(200)));
        let whole = otpauth_url(b"12345678901234567890", &ascii);
        assert!(whole.contains("%40b%2Eexample?") && qr_svg(&whole).is_some());
        let cut = otpauth_url(b"12345678901234567890", &wide);
        assert!(
            cut.contains(&format!(
                "svc:{}%E2%80%A6?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&",
                "%F0%9F%98%80".repeat(64)
            )),
            "{cut}"
        );
        assert!(qr_svg(&cut).is_some());
    }

    /// The address is one that phones read, and its picture is an SVG that runs nothing.
    #[test]
    fn the_picture_holds_the_address() {
        let url = otpauth_url(b"12345678901234567890", "ann+x@example.com");
        assert_eq!(
            url,
            "otpauth://totp/svc:ann%2Bx%40example%2Ecom?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=svc"
        );
        let svg = qr_svg(&url).unwrap_or_default();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>") && !svg.contains("script"), "{svg}");
    }
}
