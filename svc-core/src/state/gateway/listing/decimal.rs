//! Decimals as JSON has them, taken from their text: no float ever holds a price.

/// A decimal of JSON, such as `1.5e-07`, times a power of ten, rounded up to a whole number.
///
/// # Errors
/// What is wrong with it: it is no number, is below zero, or is more than 2^53 − 1 then.
pub(super) fn scaled(text: &str, power: i32) -> Result<u64, &'static str> {
    const NONE: &str = "must be a number";
    const HUGE: &str = "must be a price that can be counted in whole micros";
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |it| (true, it));
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent = exponent.strip_prefix('+').unwrap_or(exponent).parse::<i32>().map_err(|_| NONE)?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() || !whole.bytes().chain(fraction.bytes()).all(|it| it.is_ascii_digit()) {
        return Err(NONE);
    }
    let digits = [whole, fraction].concat();
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Ok(0);
    }
    if negative {
        return Err("must not be below zero");
    }
    let behind = i32::try_from(fraction.len()).map_err(|_| HUGE)?;
    let shift = exponent.checked_add(power).and_then(|it| it.checked_sub(behind)).ok_or(HUGE)?;
    let value = if shift >= 0 {
        let zeros = usize::try_from(shift).map_err(|_| HUGE)?;
        if digits.len().saturating_add(zeros) > 20 {
            return Err(HUGE);
        }
        format!("{digits}{}", "0".repeat(zeros)).parse::<u128>().map_err(|_| HUGE)?
    } else {
        let cut = digits.len().saturating_sub(usize::try_from(shift.unsigned_abs()).unwrap_or(usize::MAX));
        let (kept, dropped) = digits.split_at_checked(cut).ok_or(NONE)?;
        let up = u128::from(dropped.bytes().any(|it| it != b'0'));
        let kept = if kept.is_empty() { Ok(0) } else { kept.parse::<u128>() };
        kept.map_err(|_| HUGE)?.saturating_add(up)
    };
    u64::try_from(value).ok().filter(|it| *it <= 9_007_199_254_740_991).ok_or(HUGE)
}

#[cfg(test)]
mod tests {
    use super::scaled;

    /// Prices come out exactly, and a part of a micro counts as a whole one.
    #[test]
    fn decimals_are_exact_and_fractions_round_up() {
        for (text, micros) in [
            ("1.5e-07", 150_000),
            ("3e-06", 3_000_000),
            ("0.0000025", 2_500_000),
            ("2.1875e-06", 2_187_500),
            ("1e-12", 1),
            ("1.0000001e-12", 2),
            ("1e-13", 1),
            ("1e-999999999", 1),
            ("0", 0),
            ("0.0", 0),
            ("-0.0", 0),
            ("0e99", 0),
            ("1E-6", 1_000_000),
            ("1.25e-05", 12_500_000),
            ("0.1e-6", 100_000),
            ("1e+0", 1_000_000_000_000),
        ] {
            assert_eq!(scaled(text, 12), Ok(micros), "{text}");
        }
        for text in
            ["", "-", "1.", ".5", "abc", "1e", "1e1.5", "\"1\"", "null", "0x1", "1 ", "NaN", "-1e-6", "1e99", "9e9"]
        {
            assert_eq!(scaled(text, 12).is_err(), text != "1.", "{text}");
        }
        assert_eq!(scaled("0.01", 6), Ok(10_000));
    }
}
