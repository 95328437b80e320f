//! Names of tools that are longer than the gate takes.

use std::borrow::Cow;

use super::digest::Digest;
use super::likeness::composed;

/// Characters of a tool's name that the gate takes (CONTRACT part 1, "Texts").
const NAME_CHARS: usize = 100;
/// Characters that stand in front of the digest of a longer one, of the digest, and behind it.
const PARTS: [usize; 3] = [52, 24, 22];
/// What stands on both sides of the digest.
const MARK: char = '~';

/// The name by which the gate knows a tool: its own, or of a longer one than it takes the beginning and the end, and between them a
/// digest of the whole. A longer one is shortened as it is composed, so that lists mean it in either writing of an accent.
#[must_use]
pub fn known_by(name: &str) -> Cow<'_, str> {
    if name.chars().count() <= NAME_CHARS {
        return Cow::Borrowed(name);
    }
    let name = composed(name);
    let count = name.chars().count();
    if count <= NAME_CHARS {
        return name;
    }
    let [head, digest, tail] = PARTS;
    let first: String = name.chars().take(head).collect();
    let whole: String = Digest::of(&*name).to_string().chars().take(digest).collect();
    let last: String = name.chars().skip(count - tail).collect();
    Cow::Owned(format!("{first}{MARK}{whole}{MARK}{last}"))
}

/// The beginning and the end of a longer name for which this one may stand; `None` where it stands for itself alone.
#[must_use]
pub(crate) fn ends(name: &str) -> Option<(&str, &str)> {
    let [head, digest, tail] = PARTS;
    let at = name.char_indices().nth(head)?.0;
    let (first, rest) = name.split_at_checked(at)?;
    let (whole, last) = rest.strip_prefix(MARK)?.split_once(MARK)?;
    let is_digest = whole.len() == digest && whole.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
    (is_digest && last.chars().count() == tail).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A longer name fits, is told from every other with the same ends, and has them; a shorter one stands for itself.
    #[test]
    fn a_longer_name_has_its_ends_and_a_digest() {
        for short in ["", "Read", &"é".repeat(NAME_CHARS)] {
            assert_eq!((known_by(short).as_ref(), ends(short)), (short, None));
        }
        let long = |middle: &str| format!("{}{middle}{}", "é".repeat(60), "z".repeat(60));
        let (one, other) = (known_by(&long("a")).into_owned(), known_by(&long("b")).into_owned());
        assert_eq!((one.chars().count(), one != other, known_by(&one).as_ref()), (NAME_CHARS, true, one.as_str()));
        assert_eq!(ends(&one), Some((&*"é".repeat(52), &*"z".repeat(22))));
        for no_digest in
            [one.replace('~', "-"), one.replacen(|it: char| it.is_ascii_digit(), "G", 1), format!("{one}z")]
        {
            assert_eq!(ends(&no_digest), None, "{no_digest}");
        }
    }
}
