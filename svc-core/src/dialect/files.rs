//! Files and pictures in parts of the chat shape: where their bytes come from, and which of them are texts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A text, the one kind of document beside a PDF that the messages shape knows.
pub(super) const TEXT: &str = "text/plain";
const PDF: &str = "application/pdf";
/// Kinds of images, as they are told, and as the messages shape has them.
const IMAGES: [(&str, &str); 5] = [
    ("image/jpeg", "image/jpeg"),
    ("image/jpg", "image/jpeg"),
    ("image/png", "image/png"),
    ("image/gif", "image/gif"),
    ("image/webp", "image/webp"),
];

/// Where bytes come from: their kind and base64, the text that they are, or a URL.
pub(super) enum Source<'a> {
    Bytes(&'a str, &'a str),
    Text(String),
    Url(&'a str),
}

/// What stands at an address, or within it.
pub(super) fn address(url: &str) -> Option<Source<'_>> {
    match url.strip_prefix("data:") {
        None => Some(Source::Url(url)),
        Some(rest) => {
            let (kind, data) = rest.split_once(',')?;
            let kind = kind.strip_suffix(";base64")?;
            Some(Source::Bytes(kind.split(';').next().unwrap_or(kind), data))
        }
    }
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
        Source::Bytes(kind, data) if kind.starts_with("text/") => {
            Some(Source::Text(String::from_utf8(STANDARD.decode(data).ok()?).ok()?))
        }
        Source::Bytes(PDF, _) | Source::Url(_) => Some(source),
        Source::Bytes(..) | Source::Text(_) => None,
    }
}

/// The text that a file of this name is, where it is one.
pub(super) fn text(data: &str, name: &str) -> Option<String> {
    match document(data, name)? {
        Source::Text(text) => Some(text),
        Source::Bytes(..) | Source::Url(_) => None,
    }
}

/// A text as a file's bytes.
pub(super) fn bytes(text: &str) -> String {
    format!("data:{TEXT};base64,{}", STANDARD.encode(text))
}

/// The kind of a file of this name, where it is one of those that the messages shape knows.
fn kind_of(name: &str) -> Option<&'static str> {
    let (_, end) = name.rsplit_once('.')?;
    match &*end.to_ascii_lowercase() {
        "pdf" => Some(PDF),
        "txt" | "md" | "csv" => Some(TEXT),
        _ => None,
    }
}
