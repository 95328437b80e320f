//! E-mail addresses and telephone numbers.

use super::card::{goes_on, is_inside_a_number};
use super::few::Few;
use super::text::Text;
use super::told::Told;

/// Bytes before and after the `@` (RFC 5321).
const LOCAL_MAX: usize = 64;
const DOMAIN_MAX: usize = 253;
/// Endings of files, which names such as `logo@2x.png` have where a domain has its top level.
const FILES: [&[u8]; 20] = [
    b"png", b"jpg", b"jpeg", b"gif", b"svg", b"webp", b"avif", b"ico", b"css", b"js", b"jsx", b"tsx", b"json", b"html",
    b"pdf", b"mp4", b"mp3", b"whl", b"tgz", b"gz",
];
/// Digits of an international number (E.164), the country's with them.
const DIGITS: std::ops::RangeInclusive<usize> = 8..=15;
/// Digits of one group, and groups, that are looked at; digits of all groups then.
const GROUP_MAX: usize = 16;
const GROUPS_MAX: usize = 8;
const DIALLED_MAX: usize = *DIGITS.end() + GROUP_MAX;

/// Where the address around this `@` begins and ends; what stands before `free` belongs to another finding.
pub(super) fn email(text: &Text<'_>, at: usize, free: usize) -> Option<(usize, usize)> {
    let from = at + 1;
    let end = from + domain(text, from).len();
    if end == from {
        return None;
    }
    let is_local = |it: u8| it.is_ascii_alphanumeric() || b"._%+-'".contains(&it);
    let mut start = at;
    while start > free && at - start <= LOCAL_MAX && text.before(start).is_some_and(is_local) {
        start -= 1;
    }
    while start < at && text.at(start).is_some_and(|it| b".'%".contains(&it)) || starts_with_an_escape(text, start, at)
    {
        start += 1;
    }
    let local = text.part(start, at);
    let dotted = |it: &[u8]| it.starts_with(b".") || it.ends_with(b".") || it.windows(2).any(|pair| pair == b"..");
    if local.is_empty() || local.len() > LOCAL_MAX || dotted(local) || is_in_an_address(text, start) {
        return None;
    }
    let domain = text.part(from, end).to_ascii_lowercase();
    let names: Vec<&[u8]> = domain.split(|it| *it == b'.').collect();
    let top = names.last().filter(|_| names.len() > 1)?;
    let sound = |name: &&[u8]| {
        !name.is_empty() && name.len() <= 63 && name.first() != Some(&b'-') && name.last() != Some(&b'-')
    };
    let is_letter = |it: &u8| it.is_ascii_alphabetic() || !it.is_ascii();
    let letters = top.starts_with(b"xn--") || (top.len() >= 2 && top.iter().all(is_letter));
    let fits = names.iter().all(sound) && letters && !FILES.contains(top);
    let is_remote = local == b"git" && text.at(end) == Some(b':');
    (fits && !is_remote && text.at(end) != Some(b'@')).then_some((start, end))
}

/// What may be a domain here: letters of any script, digits, dots and dashes. Where its top level is one of ASCII, the letters of
/// another script behind it are prose.
fn domain<'a>(text: &Text<'a>, from: usize) -> &'a str {
    let end = text.run(from, DOMAIN_MAX, |it| it.is_ascii_alphanumeric() || matches!(it, b'.' | b'-' | 0x80..));
    let bytes = text.part(from, end);
    let whole = match std::str::from_utf8(bytes) {
        Ok(whole) => whole,
        Err(cut) => bytes.get(..cut.valid_up_to()).and_then(|it| std::str::from_utf8(it).ok()).unwrap_or_default(),
    };
    let is_other = |it: char| !(it.is_alphanumeric() || it == '.' || it == '-');
    let named = whole.split(is_other).next().unwrap_or_default().trim_end_matches(['.', '-']);
    let top = named.rsplit('.').next().unwrap_or_default();
    let ascii = top.bytes().take_while(u8::is_ascii_alphabetic).count();
    let rest = top.get(ascii..).unwrap_or_default();
    let is_prose = ascii >= 2 && rest.starts_with(|it: char| !it.is_ascii());
    named.get(..named.len() - if is_prose { rest.len() } else { 0 }).unwrap_or_default()
}

/// Whether the first letter is that of an escape such as `\n`, which a JSON text within a text has.
fn starts_with_an_escape(text: &Text<'_>, start: usize, at: usize) -> bool {
    start + 1 < at && text.before(start) == Some(b'\\') && matches!(text.at(start), Some(b'n' | b'r' | b't'))
}

/// Whether what ends here is the scheme and the user of an address such as `https://user:secret@host`.
fn is_in_an_address(text: &Text<'_>, place: usize) -> bool {
    let slashes =
        |it: usize| text.before(it) == Some(b'/') && it.checked_sub(1).and_then(|it| text.before(it)) == Some(b'/');
    if slashes(place) {
        return true;
    }
    if text.before(place) != Some(b':') {
        return false;
    }
    let mut start = place - 1;
    while place - start <= LOCAL_MAX
        && text.before(start).is_some_and(|it| it.is_ascii_graphic() && !b"/@:\"'".contains(&it))
    {
        start -= 1;
    }
    slashes(start)
}

/// Where a telephone number that begins here ends: `+` and a country, the shape of North America, or digits after a
/// word that tells.
pub(super) fn phone(text: &Text<'_>, place: usize) -> Option<usize> {
    let first = text.at(place)?;
    if text.before(place).is_some_and(|it| it.is_ascii_alphanumeric() || b"+_=/".contains(&it)) && !text.begins(place) {
        return None;
    }
    if is_inside_a_number(text, place) {
        return None;
    }
    let (digits, groups, end) = dialled(text, place)?;
    if !text.ends(end) || goes_on(text, end, true) {
        return None;
    }
    let found = match first {
        b'+' => is_international(&digits),
        _ if is_american(text, place, &digits, &groups) => true,
        _ => {
            (7..=15).contains(&digits.len())
                && !groups.starts_with(&[4, 2, 2]) // a date
                && (groups.len() > 1 || digits.first() == Some(&0) || digits.len() >= 9)
                && text.told(place, Told::Phone)
        }
    };
    found.then_some(end)
}

/// The digits of a number, the lengths of its groups, and where it ends.
type Dialled = (Few<u8, DIALLED_MAX>, Few<usize, GROUPS_MAX>, usize);

/// Digits with single separators, one pair of brackets and one `(0)`; the lengths of the groups; and where they end.
fn dialled(text: &Text<'_>, place: usize) -> Option<Dialled> {
    let mut at = place + usize::from(text.at(place) == Some(b'+'));
    let (mut digits, mut groups, mut end) = (Few::<u8, DIALLED_MAX>::new(), Few::<usize, GROUPS_MAX>::new(), None);
    while digits.len() <= *DIGITS.end() && groups.len() < GROUPS_MAX {
        let open = text.at(at) == Some(b'(');
        let from = at + usize::from(open);
        let stop = text.run(from, GROUP_MAX, |it| it.is_ascii_digit());
        if stop == from || (open && text.at(stop) != Some(b')')) {
            break;
        }
        if !(open && stop - from == 1 && !digits.is_empty()) {
            text.part(from, stop).iter().for_each(|it| digits.push(it.wrapping_sub(b'0')));
        }
        groups.push(stop - from);
        let close = stop + usize::from(open);
        end = Some(close);
        let next = close + text.separator(close);
        let goes_on = next > close || open || text.at(next) == Some(b'(');
        if !goes_on {
            break;
        }
        at = next;
    }
    Some((digits, groups, end?))
}

/// Whether these digits are an international number: an assigned country, and its length.
fn is_international(digits: &[u8]) -> bool {
    let one_digit = digits.get(2..).unwrap_or_default().windows(2).all(|pair| pair.first() == pair.last());
    if !DIGITS.contains(&digits.len()) || one_digit {
        return false;
    }
    match digits {
        [1, rest @ ..] => rest.len() == 10 && is_exchange(rest),
        [7, ..] => digits.len() == 11,
        [2, 0 | 7, ..] | [3, 0 | 1 | 2 | 3 | 4 | 6 | 9, ..] | [4, 0 | 1 | 3..=9, ..] => true,
        [5, 1..=8, ..] | [6, 0..=6, ..] | [8, 1 | 2 | 4 | 6, ..] | [9, 0..=5 | 8, ..] => true,
        [2, 1..=6 | 8 | 9, ..] | [3, 5 | 7 | 8, ..] | [4, 2, ..] | [5, 0 | 9, ..] => digits.len() > 8,
        [6, 7..=9, ..] | [8, 0 | 5 | 7 | 8, ..] | [9, 6 | 7 | 9, ..] => digits.len() > 8,
        _ => false,
    }
}

/// Whether this is written as numbers of North America are: `(415) 555-2671`, `415-555-2671`, with a 1 before or not.
fn is_american(text: &Text<'_>, place: usize, digits: &[u8], groups: &[usize]) -> bool {
    let bracketed = text.at(place) == Some(b'(') || text.at(place + 2) == Some(b'(');
    let (digits, groups) = match (digits, groups) {
        ([1, digits @ ..], [1, groups @ ..]) => (digits, groups),
        whole => whole,
    };
    let dashed = bracketed || text.at(place + 3) == Some(b'-') || text.at(place + 5) == Some(b'-');
    groups == [3, 3, 4] && dashed && is_exchange(digits)
}

/// Whether an area and an exchange of North America may begin so.
fn is_exchange(digits: &[u8]) -> bool {
    matches!(digits, [2..=9, second, third, 2..=9, _, _, _, _, _, _] if !(*second == 1 && *third == 1))
}
