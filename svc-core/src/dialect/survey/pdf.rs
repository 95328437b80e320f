//! How many pages a PDF is likely to have, as far as its bytes tell without being unpacked.
//!
//! **Invariant:** each byte is looked at a few times, however they are arranged; no bound rests on what is found.

/// The beginning of a PDF, which may stand behind others' bytes.
const HEAD: &[u8] = b"%PDF-";
/// Within so many bytes readers look for it.
const HEAD_WITHIN: usize = 1_024;
/// A page of what does not tell its pages has about so many bytes.
const PAGE_BYTES: usize = 8_192;
/// Signs that end a name beside white space.
const ENDS: &[u8] = b"()<>[]{}/%";

/// Whether these are the bytes of a PDF.
pub(super) fn is_pdf(bytes: &[u8]) -> bool {
    let head = bytes.get(..HEAD_WITHIN).unwrap_or(bytes);
    head.windows(HEAD.len()).any(|it| it == HEAD)
}

/// About how many pages a document of these bytes has, one at least.
///
/// Pages that stand in the open are counted. Where they may be packed, one that was written for the web says how many there are; of
/// another, or of what is no PDF, its size tells, as nearly every page has a stream of its own.
pub(super) fn likely_pages(bytes: &[u8]) -> u32 {
    let found = Found::of(bytes);
    let pages = match found.told {
        Some(told) => told.max(found.pages),
        None if !found.packed && found.pages > 0 => found.pages,
        None => {
            let by_size = bytes.len() / PAGE_BYTES + 1;
            let streams = streams(bytes);
            let guessed = if streams > 0 { by_size.min(streams) } else { by_size };
            guessed.max(found.pages)
        }
    };
    u32::try_from(pages).unwrap_or(u32::MAX).max(1)
}

/// What stands in the open.
#[derive(Default)]
struct Found {
    /// Objects that are pages.
    pages: usize,
    /// Whether further objects are packed.
    packed: bool,
    /// The number of pages that it says itself, for whoever reads it before all of it is there.
    told: Option<usize>,
}

impl Found {
    fn of(bytes: &[u8]) -> Self {
        let mut found = Self::default();
        let (mut of_type, mut of_all) = (false, false);
        // Every piece but the first begins with a name.
        for piece in bytes.split(|it| *it == b'/').skip(1) {
            match named(piece) {
                b"Page" if of_type => found.pages += 1,
                b"ObjStm" if of_type => found.packed = true,
                b"Linearized" => of_all = true,
                b"N" if of_all => found.told = found.told.or_else(|| number(piece)),
                _ => {}
            }
            of_type = piece.strip_prefix(b"Type").is_some_and(|it| it.trim_ascii().is_empty());
            of_all &= !piece.contains(&b'>');
        }
        found
    }
}

/// The name that a piece begins with.
fn named(piece: &[u8]) -> &[u8] {
    let ends = |it: &u8| it.is_ascii_whitespace() || *it == 0 || ENDS.contains(it);
    piece.split(ends).next().unwrap_or_default()
}

/// The number behind the name that a piece begins with.
fn number(piece: &[u8]) -> Option<usize> {
    let digits = piece.get(named(piece).len()..)?.trim_ascii_start();
    let digits = digits.split(|it| !it.is_ascii_digit()).next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// How many streams end, by the middle of the word for it.
fn streams(bytes: &[u8]) -> usize {
    bytes.split(|it| *it == b'e').filter(|it| *it == b"ndstr").count()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    const HEADER: &str = "%PDF-1.7\n";

    fn pages(text: &str) -> u32 {
        likely_pages(format!("{HEADER}{text}").as_bytes())
    }

    /// Pages in the open are counted, however their objects are written, and nothing else is taken for one.
    #[test]
    fn pages_in_the_open_are_counted() {
        let tree = "1 0 obj<</Type/Pages/Kids[2 0 R 3 0 R]/Count 2>>endobj ";
        let two = "2 0 obj<</Type/Page/Parent 1 0 R>>endobj 3 0 obj<< /Parent 1 0 R /Type \r\n /Page>>endobj ";
        assert_eq!(pages(&format!("{tree}{two}")), 2);
        let others = "<</Type/PageLabel>><</Type/Pages>><</S/Page>><</PageMode/Page>><</Type/Font/Page 3>>";
        assert_eq!(pages(&format!("{tree}{two}{others}")), 2);
        // However large what they show is.
        assert_eq!(pages(&format!("{two}{}", "endstream ".repeat(90_000))), 2);
    }

    /// Where pages may be packed it counts what the document says of itself, else its streams or its size, whichever is less.
    #[test]
    fn packed_pages_are_guessed() {
        let packed = "9 0 obj<</Type /ObjStm/N 80/First 10>>stream\nxxx\nendstream endobj ";
        let web = "1 0 obj<</Linearized 1/L 54321/H[ 668 142]/O 44/E 9/N 12/T 54000>>endobj ";
        assert_eq!(pages(&format!("{web}<</Type/Page>>{packed}")), 12);
        let large = "x".repeat(PAGE_BYTES * 40);
        assert_eq!(pages(&format!("{packed}{large}")), 1);
        let streams = "stream\nxxx\nendstream ".repeat(9);
        assert_eq!(pages(&format!("{packed}{streams}{large}")), 10);
        assert_eq!(pages(&format!("{packed}{}{large}", "endstream ".repeat(900))), 42);
        assert_eq!(likely_pages(large.as_bytes()), 41, "no PDF");
        assert_eq!(likely_pages(b""), 1);
    }

    /// A number that is none, or stands elsewhere, tells nothing.
    #[test]
    fn what_tells_no_number_is_passed_over() {
        for odd in ["/Linearized 1/N -4>>", "/Linearized 1/N 99999999999999999999>>", "/Linearized 1>><</N 7>>", "/N 7"]
        {
            assert_eq!(pages(odd), 1, "{odd}");
        }
    }

    /// A PDF is one behind a few bytes of another kind too.
    #[test]
    fn a_pdf_is_known_by_its_head() {
        assert!(is_pdf(b"%PDF-1.4") && is_pdf(b"\n\nx %PDF-2.0"));
        assert!(!is_pdf(b"PDF-1.4") && !is_pdf(&[&[b' '; HEAD_WITHIN][..], HEAD].concat()));
    }
}
