//! Files and pictures in parts of either shape: where their bytes come from, and which of them are texts.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};

/// A text, the one kind of document beside a PDF that the messages shape knows.
pub(super) const TEXT: &str = "text/plain";
/// The other one.
const PDF: &str = "application/pdf";
/// Kinds of images, as they are told, and as the messages shape has them.
const IMAGES: [(&str, &str); 5] = [
    ("image/jpeg", "image/jpeg"),
    ("image/jpg", "image/jpeg"),
    ("image/png", "image/png"),
    ("image/gif", "image/gif"),
    ("image/webp", "image/webp"),
];
/// Kinds that are texts, beside those of `text/` and of `+json` and `+xml`.
const TEXTS: [&str; 11] = [
    "application/csv",
    "application/javascript",
    "application/json",
    "application/jsonl",
    "application/sql",
    "application/toml",
    "application/x-javascript",
    "application/x-ndjson",
    "application/x-yaml",
    "application/xml",
    "application/yaml",
];
/// Base64 as lenient readers take it: they ask for no padding, nor for its last bits to be zero.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
/// Characters within which what is written as base64 is may be a number or a name as well.
const NUMBERS: std::ops::RangeInclusive<usize> = 8..=64;

/// Where bytes come from: their kind and base64, the text that they are, or a URL.
pub(super) enum Source<'a> {
    Bytes(&'a str, &'a str),
    Text(String),
    Url(&'a str),
}

/// What stands at an address, or within it.
pub(super) fn address(url: &str) -> Option<Source<'_>> {
    const SCHEME: &str = "data:";
    let own = url.trim_start();
    let Some(rest) = own.get(..SCHEME.len()).filter(|it| it.eq_ignore_ascii_case(SCHEME)) else {
        return Some(Source::Url(url));
    };
    let (head, data) = own.get(rest.len()..)?.split_once(',')?;
    let mut told = head.split(';').map(str::trim);
    let kind = told.next().unwrap_or_default();
    told.any(|it| it.eq_ignore_ascii_case("base64")).then_some(Source::Bytes(kind, data))
}

/// An image of one of the kinds that the messages shape knows, by that shape's word for it; one at an address of its own may be of any.
pub(super) fn picture(source: Source<'_>) -> Option<Source<'_>> {
    match source {
        Source::Bytes(kind, data) => {
            let kind = IMAGES.iter().find(|(known, _)| kind.eq_ignore_ascii_case(known)).map(|(_, told)| *told)?;
            Some(Source::Bytes(kind, data))
        }
        Source::Url(_) => Some(source),
        Source::Text(_) => None,
    }
}

/// A file of this name as a document of the messages shape, which knows two kinds. Its bytes stand at an address, or are base64 as
/// it is, of the kind that the name tells: base64 has no colon.
pub(super) fn document<'a>(data: &'a str, name: &str) -> Option<Source<'a>> {
    let source = if data.contains(':') { address(data)? } else { Source::Bytes(kind_of(name)?, data) };
    match source {
        Source::Bytes(kind, data) if is_text(kind) => utf8(data).map(Source::Text),
        Source::Bytes(kind, data) if kind.eq_ignore_ascii_case(PDF) => Some(Source::Bytes(PDF, data)),
        Source::Url(_) => Some(source),
        Source::Bytes(..) | Source::Text(_) => None,
    }
}

/// Whether bytes of this kind are a text.
pub(super) fn is_text(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind.starts_with("text/") || kind.ends_with("+json") || kind.ends_with("+xml") || TEXTS.contains(&&*kind)
}

/// The text that bytes in base64 of this kind are; of a kind that is not known, where they read as one. None for media, and for
/// what is no base64.
pub(super) fn decoded(kind: &str, data: &str) -> Option<String> {
    if is_text(kind) {
        return bytes(data).map(text);
    }
    let kind = kind.trim_start().to_ascii_lowercase();
    if kind.starts_with(PDF) || ["image/", "audio/", "video/"].iter().any(|it| kind.starts_with(it)) {
        return None;
    }
    utf8(data).filter(|it| !it.contains(is_of_no_text))
}

/// The text that bytes in base64 are as they stand, where they are one.
pub(super) fn utf8(data: &str) -> Option<String> {
    String::from_utf8(bytes(data)?).ok()
}

/// A text as bytes in base64.
pub(super) fn encoded(text: &str) -> String {
    STANDARD.encode(text)
}

/// Whether a text is nothing but bytes in base64: it may be in lines, and is too long, or too short, to be a number as well.
pub(super) fn is_base64(text: &str) -> bool {
    let has = |it: u8| it.is_ascii_alphanumeric() || b"+/-_=\r\n".contains(&it);
    !NUMBERS.contains(&text.len()) && text.bytes().all(has)
}

/// The kind of a file of this name, where that is known.
pub(super) fn kind_of(name: &str) -> Option<&'static str> {
    let (_, end) = name.rsplit_once('.')?;
    match &*end.to_ascii_lowercase() {
        "pdf" => Some(PDF),
        "txt" | "md" | "csv" | "tsv" | "json" | "jsonl" | "xml" | "svg" | "html" | "htm" | "yaml" | "yml" | "log" => {
            Some(TEXT)
        }
        _ => None,
    }
}

/// Bytes in base64 of either alphabet, with white space or without, padded or not.
pub(super) fn bytes(data: &str) -> Option<Vec<u8>> {
    let plain = data.bytes().filter(|it| !it.is_ascii_whitespace() && *it != b'=');
    let plain: Vec<u8> = plain
        .map(|it| {
            if it == b'-' {
                b'+'
            } else if it == b'_' {
                b'/'
            } else {
                it
            }
        })
        .collect();
    LENIENT.decode(plain).ok()
}

/// The text that bytes are: UTF-8, UTF-16 where they say so, else Latin-1, which every byte is a letter of.
fn text(bytes: Vec<u8>) -> String {
    let wide = |unit: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes.chunks_exact(2).skip(1).filter_map(|it| Some(unit(it.try_into().ok()?))).collect();
        String::from_utf16_lossy(&units)
    };
    match bytes.first_chunk() {
        Some([0xff, 0xfe]) => wide(u16::from_le_bytes),
        Some([0xfe, 0xff]) => wide(u16::from_be_bytes),
        Some(_) | None => {
            String::from_utf8(bytes).unwrap_or_else(|it| it.into_bytes().into_iter().map(char::from).collect())
        }
    }
}

/// Whether a text has no such sign, but bytes that are none read as one may.
fn is_of_no_text(sign: char) -> bool {
    sign.is_control() && !sign.is_ascii_whitespace()
}
