//! Numbers by which states know persons, each with the check that its state gave it: United States SSN, Spain DNI and
//! NIE, Germany Steuer-ID, France NIR, United Kingdom NINO, Italy codice fiscale, Switzerland AHV, Brazil CPF.

use super::card::{goes_on, is_inside_a_number};
use super::few::Few;
use super::text::Text;
use super::told::Told;

/// Where a number that begins with a digit here ends.
pub(super) fn in_digits(text: &Text<'_>, place: usize) -> Option<usize> {
    if is_inside_a_number(text, place) {
        return None;
    }
    let found = social_security(text, place)
        .or_else(|| dni(text, place))
        .or_else(|| grouped(text, place))
        .or_else(|| nir(text, place));
    found.filter(|end| text.ends(*end) && !goes_on(text, *end, true))
}

/// Where a number that begins with a letter here ends.
pub(super) fn in_letters(text: &Text<'_>, place: usize) -> Option<usize> {
    let found = nie(text, place).or_else(|| insurance(text, place)).or_else(|| codice(text, place));
    found.filter(|end| text.ends(*end))
}

/// United States: three, two and four digits, none of which the administration never gives.
fn social_security(text: &Text<'_>, place: usize) -> Option<usize> {
    let groups = text.groups(place, 3);
    let (count, end) = match groups.shaped(&[3, 2, 4]) {
        Some(end) if groups.between(3).first() != Some(&b'.') => (3, end),
        _ => (1, groups.shaped(&[9]).filter(|_| text.told(place, Told::SocialSecurity))?),
    };
    let digits = text.digits(groups.list.get(..count)?);
    let (area, group, serial) = (number(digits.get(..3)?), number(digits.get(3..5)?), number(digits.get(5..)?));
    (area != 0 && area != 666 && area < 900 && group != 0 && serial != 0).then_some(end)
}

/// Spain: eight digits and the letter of their remainder by 23.
fn dni(text: &Text<'_>, place: usize) -> Option<usize> {
    let groups = text.groups(place, 3);
    let (count, end) = match groups.shaped(&[2, 3, 3]) {
        Some(end) => (3, end),
        None => (1, groups.shaped(&[8])?),
    };
    control(text, place, number(&text.digits(groups.list.get(..count)?)), end)
}

/// Spain, for foreigners: X, Y or Z for the digit 0, 1 or 2, seven digits and the letter.
fn nie(text: &Text<'_>, place: usize) -> Option<usize> {
    let leading = match text.at(place)?.to_ascii_uppercase() {
        b'X' => 0,
        b'Y' => 1,
        b'Z' => 2,
        _ => return None,
    };
    let after = place.checked_add(1)?;
    let from = after.checked_add(text.separator(after))?;
    let end = text.run(from, 8, |it| it.is_ascii_digit());
    let digits = text.digits(&[(from, end)]);
    (digits.len() == 7).then_some(())?;
    control(text, place, number(&digits).checked_add(leading * 10_000_000)?, end)
}

/// The letter of a Spanish number, in upper case unless a word before it tells what it is.
fn control(text: &Text<'_>, place: usize, number: u64, end: usize) -> Option<usize> {
    let at = end.checked_add(text.separator(end))?;
    let letter = text.at(at)?;
    let wanted = b"TRWAGMYFPDXBNJZSQVHLCKE".get(usize::try_from(number % 23).ok()?)?;
    let fits = letter.to_ascii_uppercase() == *wanted && (letter.is_ascii_uppercase() || text.told(place, Told::Dni));
    fits.then(|| at.checked_add(1))?
}

/// Germany, Switzerland, Brazil: digits whose grouping or beginning tells the state.
fn grouped(text: &Text<'_>, place: usize) -> Option<usize> {
    let groups = text.groups(place, 4);
    let bare = |length| groups.shaped(&[length]).map(|end| (1, end));
    let taken = |(count, end): (usize, usize)| Some((text.digits(groups.list.get(..count)?), end));
    let german = groups.shaped(&[2, 3, 3, 3]).map(|end| (4, end)).or_else(|| bare(11)).and_then(taken);
    if let Some((_, end)) = german.filter(|(digits, _)| is_german(digits)) {
        return Some(end);
    }
    let swiss = groups.shaped(&[3, 4, 4, 2]).map(|end| (4, end)).or_else(|| bare(13)).and_then(taken);
    if let Some((_, end)) = swiss.filter(|(digits, _)| is_swiss(digits)) {
        return Some(end);
    }
    let told = || bare(11).filter(|_| text.told(place, Told::Cpf));
    let dotted = text.groups(place, 3);
    let brazilian = match (dotted.shaped(&[3, 3, 3]), text.groups(place, 4)) {
        (Some(_), all) if all.separators.first() == Some(&b'.') && all.separators.get(2) == Some(&b'-') => {
            all.list.get(3).filter(|(from, to)| to.saturating_sub(*from) == 2).map(|(_, end)| (4, *end))
        }
        _ => told(),
    };
    brazilian.and_then(taken).filter(|(digits, _)| is_brazilian(digits)).map(|(_, end)| end)
}

/// Germany: eleven digits, the first not 0; of the first ten one stands twice or thrice; ISO 7064 mod 11, 10.
fn is_german(digits: &[u8]) -> bool {
    let Some((check, body)) = digits.split_last() else { return false };
    let mut seen = [0_u8; 10];
    for digit in body {
        if let Some(times) = seen.get_mut(usize::from(*digit)) {
            *times += 1;
        }
    }
    let repeated = seen.iter().filter(|times| **times > 1).count();
    let most = seen.iter().max().copied().unwrap_or_default();
    let product = body.iter().fold(10_u32, |product, digit| {
        let sum = (product + u32::from(*digit)) % 10;
        (if sum == 0 { 10 } else { sum } * 2) % 11
    });
    let expected = (11 - product) % 10;
    body.len() == 10 && body.first() != Some(&0) && repeated == 1 && most <= 3 && u32::from(*check) == expected
}

/// Switzerland: 756, nine digits, and the check of an article number.
fn is_swiss(digits: &[u8]) -> bool {
    let Some((check, body)) = digits.split_last() else { return false };
    let weighed = |(place, digit): (usize, &u8)| u32::from(*digit) * if place % 2 == 0 { 1 } else { 3 };
    let sum: u32 = body.iter().enumerate().map(weighed).sum();
    digits.starts_with(&[7, 5, 6]) && digits.len() == 13 && u32::from(*check) == (10 - sum % 10) % 10
}

/// Brazil: nine digits, not all the same, and two checks of remainders by 11.
fn is_brazilian(digits: &[u8]) -> bool {
    let check = |length: usize| -> Option<u32> {
        let body = digits.get(..length)?.iter().rev();
        let sum: u32 = body.zip(2_u32..).map(|(digit, weight)| u32::from(*digit) * weight).sum();
        Some((sum * 10 % 11) % 10)
    };
    let fits = |length: usize| digits.get(length).map(|it| u32::from(*it)) == check(length);
    let one_digit = digits.windows(2).all(|pair| pair.first() == pair.last());
    digits.len() == 11 && !one_digit && fits(9) && fits(10)
}

/// France: sex, year, month, department (2A and 2B on Corsica), commune, order, and 97 less the remainder by 97.
fn nir(text: &Text<'_>, place: usize) -> Option<usize> {
    let (mut digits, mut at, mut corsica) = (Few::<u8, 15>::new(), place, 0_u64);
    while digits.len() < 15 {
        if matches!(digits.len(), 1 | 3 | 5 | 7 | 10 | 13) {
            at = at.checked_add(text.separator(at))?;
        }
        let digit = match (digits.len(), digits.last(), text.at(at)?) {
            (_, _, byte @ b'0'..=b'9') => byte - b'0',
            (6, Some(2), b'A') => {
                corsica = 1_000_000;
                0
            }
            (6, Some(2), b'B') => {
                corsica = 2_000_000;
                0
            }
            _ => return None,
        };
        digits.push(digit);
        at = at.checked_add(1)?;
    }
    let month = number(digits.get(3..5)?);
    let body = number(digits.get(..13)?).checked_sub(corsica)?;
    let fits = matches!(digits.first(), Some(1 | 2 | 3 | 4 | 7 | 8))
        && matches!(month, 1..=12 | 20..=42 | 50..=99)
        && number(digits.get(5..7)?).saturating_add(corsica) > 0
        && 97 - body % 97 == number(digits.get(13..)?);
    fits.then_some(at)
}

/// United Kingdom: two letters that are given, six digits, and A to D; upper case unless told.
fn insurance(text: &Text<'_>, place: usize) -> Option<usize> {
    let letters = text.part(place, place.checked_add(2)?).to_ascii_uppercase();
    let [first, second] = letters.as_slice() else { return None };
    let given = |it: &u8| it.is_ascii_uppercase() && !b"DFIQUV".contains(it);
    let never = [&b"BG"[..], b"GB", b"NK", b"KN", b"TN", b"NT", b"ZZ"];
    if !given(first) || !given(second) || *second == b'O' || never.contains(&letters.as_slice()) {
        return None;
    }
    let mut at = place.checked_add(2)?;
    for _ in 0..3 {
        at = at.checked_add(text.separator(at))?;
        let end = text.run(at, 2, |it| it.is_ascii_digit());
        (end.saturating_sub(at) == 2).then_some(())?;
        at = end;
    }
    at = at.checked_add(text.separator(at))?;
    let suffix = text.at(at)?;
    let upper = text.at(place)?.is_ascii_uppercase() && suffix.is_ascii_uppercase();
    let told = || text.told(place, Told::Insurance);
    let fits = matches!(suffix.to_ascii_uppercase(), b'A'..=b'D') && (upper || told());
    fits.then(|| at.checked_add(1))?
}

/// Italy: six letters, year, month, day, place, and the check character; letters may stand for digits where two persons
/// would have one number.
fn codice(text: &Text<'_>, place: usize) -> Option<usize> {
    let end = text.run(place, 17, |it| it.is_ascii_alphanumeric());
    let code = text.part(place, end).to_ascii_uppercase();
    let (check, body) = code.split_last()?;
    let shape = b"LLLLLLDDMDDLDDD";
    let fits = body.len() == shape.len()
        && body.iter().zip(shape).all(|(byte, class)| match class {
            b'L' => byte.is_ascii_uppercase(),
            b'M' => b"ABCDEHLMPRST".contains(byte),
            _ => byte.is_ascii_digit() || b"LMNPQRSTUV".contains(byte),
        });
    let values = body.iter().enumerate().map(|(at, byte)| if at % 2 == 0 { odd(*byte) } else { even(*byte) });
    (fits && u32::from(check.wrapping_sub(b'A')) == values.sum::<u32>() % 26).then_some(end)
}

/// What a character counts at the second, fourth … place.
fn even(byte: u8) -> u32 {
    u32::from(if byte.is_ascii_digit() { byte - b'0' } else { byte.saturating_sub(b'A') })
}

/// What a character counts at the first, third … place.
fn odd(byte: u8) -> u32 {
    const ODD: [u8; 26] =
        [1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23];
    usize::try_from(even(byte)).ok().and_then(|it| ODD.get(it)).copied().unwrap_or_default().into()
}

fn number(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |sum, digit| sum.saturating_mul(10).saturating_add((*digit).into()))
}
