//! Numbers of payment cards (ISO/IEC 7812): issued ranges, their lengths, Luhn.

use super::text::Text;

/// How the digits of a card are grouped where they are.
const GROUPINGS: [&[usize]; 5] = [&[4, 4, 4, 4, 3], &[4, 4, 4, 4], &[4, 6, 5], &[4, 6, 4], &[4, 4, 4, 1]];
/// The same where each group has a line or a column of its own: those of most cards alone, as numbers in tables look alike.
const BROKEN_GROUPINGS: [&[usize]; 2] = [&[4, 4, 4, 4], &[4, 6, 5]];
/// So many digits in the line or the column before or after are a further number of a table; fewer may be what stands beside a card's.
const TABLE_DIGITS: usize = 4;
/// Digits of a fraction that are looked at.
const FRACTION_MAX: usize = 8;

/// Where a card's number that begins here ends.
pub(super) fn card(text: &Text<'_>, place: usize) -> Option<usize> {
    if is_inside_a_number(text, place) {
        return None;
    }
    let groups = text.groups(place, 5);
    let (_, first) = *groups.list.first()?;
    let whole = ((13..=19).contains(&first.saturating_sub(place))).then_some((1, first));
    let grouped = GROUPINGS.iter().filter_map(|it| Some((it.len(), groups.shaped(it)?)));
    whole
        .into_iter()
        .chain(grouped)
        .find_map(|(count, end)| {
            let dashed = groups.between(count).first() == Some(&b'-');
            let digits = text.digits(groups.list.get(..count)?);
            let ends = text.ends(end) && (!goes_on(text, end, dashed) || count == 1 && is_whole(text, end));
            (ends && is_card(&digits)).then_some(end)
        })
        .or_else(|| broken(text, place))
        .or_else(|| joined(text, place))
}

/// The same of a number whose groups are joined as the parts of a path or of a name are, and that is no part of a longer one.
fn joined(text: &Text<'_>, place: usize) -> Option<usize> {
    let groups = text.joined_groups(place, 5);
    let is_digit = |it: Option<u8>| it.is_some_and(|it| it.is_ascii_digit());
    let is_inside = matches!(text.before(place), Some(b'/' | b'_')) && is_digit(text.before(place.saturating_sub(1)));
    let (grouping, end) = GROUPINGS.iter().find_map(|it| Some((it, groups.shaped(it)?)))?;
    let goes_on_joined = text.joint(end).is_some_and(|(_, width)| is_digit(text.at(end.saturating_add(width))));
    let digits = text.digits(groups.list.get(..grouping.len())?);
    let is_alone = !is_inside && !goes_on_joined && text.ends(end) && !goes_on(text, end, false);
    (is_alone && is_card(&digits)).then_some(end)
}

/// The same of a number whose groups have a line or a column each, and that does not stand among more of them, as in a table.
fn broken(text: &Text<'_>, place: usize) -> Option<usize> {
    let groups = text.broken_groups(place, 5);
    let (grouping, end) = BROKEN_GROUPINGS.iter().find_map(|it| Some((it, groups.shaped(it)?)))?;
    let digits = text.digits(groups.list.get(..grouping.len())?);
    let is_group = |(from, to): &(usize, usize)| to.saturating_sub(*from) >= TABLE_DIGITS;
    let goes_on_below = groups.list.get(grouping.len()).is_some_and(is_group);
    let is_alone = !goes_on_below && !text.follows_digits(place, TABLE_DIGITS);
    (is_alone && text.ends(end) && !goes_on(text, end, false) && is_card(&digits)).then_some(end)
}

/// Whether a fraction of noughts alone follows, as programs write whole numbers that they hold as others.
fn is_whole(text: &Text<'_>, end: usize) -> bool {
    let from = end.saturating_add(1);
    let stop = text.run(from, FRACTION_MAX, |it| it == b'0');
    stop > from && text.at(end) == Some(b'.') && text.ends(stop) && !goes_on(text, stop, false)
}

/// Whether a digit and a point or a dash stand before this place: a fraction, or a part of a longer number.
pub(super) fn is_inside_a_number(text: &Text<'_>, place: usize) -> bool {
    matches!(text.before(place), Some(b'.' | b'-'))
        && place.checked_sub(2).and_then(|it| text.at(it)).is_some_and(|it| it.is_ascii_digit())
}

/// Whether a number goes on behind its end: with a fraction, or with a further group of a longer identifier.
pub(super) fn goes_on(text: &Text<'_>, end: usize, dashed: bool) -> bool {
    let next = text.at(end.saturating_add(1));
    match text.at(end) {
        Some(b'.') => next.is_some_and(|it| it.is_ascii_digit()),
        Some(b'-') => dashed && next.is_some_and(|it| it.is_ascii_alphanumeric()),
        _ => false,
    }
}

/// Whether these digits are a card's: of a range that is issued at this length, with more than one digit, and Luhn.
fn is_card(digits: &[u8]) -> bool {
    let leading =
        digits.iter().take(6).fold(0_u32, |sum, digit| sum.saturating_mul(10).saturating_add((*digit).into()));
    let one_digit = digits.windows(2).all(|pair| pair.first() == pair.last());
    !one_digit && is_issued(leading, digits.len()) && luhn(digits)
}

/// Whether cards of this length begin with these six digits.
fn is_issued(leading: u32, length: usize) -> bool {
    let (one, two, three, four) = (leading / 100_000, leading / 10_000, leading / 1_000, leading / 100);
    let visa = one == 4 && matches!(length, 13 | 16 | 19);
    let mastercard = ((51..=55).contains(&two) || (2221..=2720).contains(&four)) && length == 16;
    let amex = matches!(two, 34 | 37) && length == 15;
    let diners = (matches!(two, 36 | 38 | 39) || (300..=305).contains(&three) || four == 3095) && length == 14;
    let discover = (four == 6011 || (644..=649).contains(&three) || two == 65) && matches!(length, 16 | 19);
    let jcb = (3528..=3589).contains(&four) && (16..=19).contains(&length);
    let unionpay = matches!(two, 62 | 81) && (16..=19).contains(&length);
    let maestro = matches!(four, 5018 | 5020 | 5038 | 5893 | 6304 | 6759 | 6761..=6763) && (13..=19).contains(&length);
    let national = ((2200..=2205).contains(&four) || four == 9792 || three == 508) && length == 16;
    visa || mastercard || amex || diners || discover || jcb || unionpay || maestro || national
}

/// The check of ISO/IEC 7812-1: every second digit from the right doubled, the sum a multiple of ten.
pub(super) fn luhn(digits: &[u8]) -> bool {
    let doubled = |digit: u32| if digit > 4 { digit * 2 - 9 } else { digit * 2 };
    let weigh = |(place, digit): (usize, &u8)| {
        let digit = u32::from(*digit).min(9);
        if place % 2 == 1 { doubled(digit) } else { digit }
    };
    digits.iter().rev().enumerate().map(weigh).sum::<u32>().is_multiple_of(10)
}
