//! When two names are one to whoever reads them.
//!
//! **Invariant:** only comparing goes by this: what was sent is kept, shown, hashed and signed as it was sent.

use std::borrow::Cow;

use icu_normalizer::ComposingNormalizerBorrowed;

use super::hidden::is_hidden;

/// A text as it is compared: canonically equal ones are one (Unicode, normalisation form C), whichever way a keyboard or a file system
/// writes an accent. One of ASCII is so already, and nothing else looks at it.
#[must_use]
pub fn composed(text: &str) -> Cow<'_, str> {
    if text.is_ascii() { Cow::Borrowed(text) } else { ComposingNormalizerBorrowed::new_nfc().normalize(text) }
}

/// A name as it is told from others of which each is to have its own: composed, without what nobody sees.
#[must_use]
pub fn told_by(name: &str) -> Cow<'_, str> {
    if name.is_ascii() || !name.contains(is_hidden) {
        return composed(name);
    }
    let seen: String = name.chars().filter(|it| !is_hidden(*it)).collect();
    Cow::Owned(composed(&seen).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Canonically equal texts are compared as one, others are not, and what is composed already is not written anew.
    #[test]
    fn canonically_equal_texts_are_one() {
        for (one, other) in
            [("K\u{f6}ln", "Ko\u{308}ln"), ("\u{1e69}", "s\u{307}\u{323}"), ("\u{ac00}", "\u{1100}\u{1161}")]
        {
            assert!(one != other && composed(one) == composed(other), "{one}");
            assert!(matches!(composed(one), Cow::Borrowed(_)), "{one}");
        }
        assert!(matches!(composed("plain"), Cow::Borrowed("plain")));
        for (one, other) in [("caf\u{e9}", "cafe"), ("\u{fb01}", "fi"), ("a\u{200b}", "a")] {
            assert_ne!(composed(one), composed(other), "{one}");
        }
    }

    /// Names that look alike because of what nobody sees are one, also where that stands within what is composed.
    #[test]
    fn what_nobody_sees_tells_no_names_apart() {
        for (one, other) in [("ci", "c\u{200b}i"), ("caf\u{e9}", "cafe\u{200b}\u{301}"), ("ci", "\u{feff}ci\u{2060}")] {
            assert_eq!(told_by(one), told_by(other), "{one}");
        }
        assert!(matches!(told_by("ci"), Cow::Borrowed("ci")));
        assert_ne!(told_by("ci"), told_by("Ci"));
    }
}
