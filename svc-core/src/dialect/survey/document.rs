//! How large a document is: text by its bytes, anything else by its pages.

use std::borrow::Cow;

use super::super::doc::{Value, length};
use super::super::files::{self, Source};
use super::{holds_bytes, pdf};

/// The most pages of one document that a provider takes.
const PAGES_MAX: u32 = 600;
/// A page of a document takes at least so many characters of base64.
const PAGE_CHARS: u64 = 128;
/// Pages that a document is likely to have which nobody here has seen.
const PAGES_UNSEEN: u32 = 30;

/// What a document counts as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    /// UTF-8 bytes of the text that it is.
    pub(super) bytes: u64,
    /// The most pages that it can have; none where it is a text.
    pub(super) pages: u32,
    /// The pages that it is likely to have.
    pub(super) pages_likely: u32,
}

impl Size {
    /// Of what nobody here has seen: it may be the largest document that a provider takes, and is likely a usual one.
    pub(super) const UNSEEN: Self = Self { bytes: 0, pages: PAGES_MAX, pages_likely: PAGES_UNSEEN };

    /// Of a part whose document is no text, nor a content, of the part's own.
    ///
    /// The bound goes by the length alone, as what a document says of itself may be wrong; only a likely figure goes by that.
    pub(super) fn of(part: Value<'_>) -> Self {
        let Some(Held { kind, data, chars }) = Held::of(part) else { return Self::UNSEEN };
        if let Some(bytes) = kind.filter(|it| files::is_text(it)).and_then(|it| text_bytes(&it, &data)) {
            return Self { bytes, ..Self::default() };
        }
        let pages = u32::try_from(chars / PAGE_CHARS + 1).unwrap_or(u32::MAX).min(PAGES_MAX);
        let likely = files::bytes(&data).map_or(PAGES_UNSEEN, |it| pdf::likely_pages(&it));
        Self { bytes: 0, pages, pages_likely: likely.min(pages) }
    }
}

/// A document whose bytes are held here.
struct Held<'a> {
    /// What it is said to be, where that is said.
    kind: Option<Cow<'a, str>>,
    /// Its bytes in base64.
    data: Cow<'a, str>,
    /// Characters that its bytes take, and what stands before them.
    chars: u64,
}

impl<'a> Held<'a> {
    /// Only what the provider reads the data of is as long as that: beside an address or an id it may be anything.
    fn of(part: Value<'a>) -> Option<Self> {
        let source = part.get("source");
        if let Some(source) = source.filter(|it| it.has("type", "base64")) {
            let data = source.get("data")?;
            let (kind, text) = (source.text_of("media_type"), data.text().unwrap_or_default());
            return Some(Self { kind, data: text, chars: length(data.raw()) });
        }
        let is_alone = |of: Value<'_>| of.given("file_id").is_none() && of.given("file_url").is_none();
        let file = part.get("file").unwrap_or(part);
        if source.is_some() || !is_alone(part) || !is_alone(file) {
            return None;
        }
        let data = file.get("file_data").filter(|it| holds_bytes(*it))?;
        let (text, chars) = (data.text().unwrap_or_default(), length(data.raw()));
        if text.contains(':') {
            let Some(Source::Bytes(kind, data)) = files::address(&text) else {
                return Some(Self { kind: None, data: text, chars });
            };
            return Some(Self { kind: Some(kind.to_owned().into()), data: data.to_owned().into(), chars });
        }
        let kind = file.text_of("filename").and_then(|it| files::kind_of(&it));
        Some(Self { kind: kind.map(Cow::Borrowed), data: text, chars })
    }
}

/// UTF-8 bytes of the text that these bytes are, in base64, which are said to be one. What is a PDF, or holds signs that no text
/// has, is none whatever is said of it.
fn text_bytes(kind: &str, data: &str) -> Option<u64> {
    let text = files::decoded(kind, data)?;
    (!text.contains('\0') && !pdf::is_pdf(text.as_bytes())).then(|| length(&text))
}
