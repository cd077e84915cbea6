//! Decimal numbers, correctly rounded.
//!
//! Most numbers in a file are short: the digits, read as an integer, and the power of ten of the
//! fraction are both exact as f64, so that one division rounds correctly (Clinger 1990, the fast
//! path of most float parsers). All others go to the standard library.

/// The powers of ten that an f64 holds exactly.
const POWERS_OF_TEN: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Decimal digits that an f64 always holds exactly.
const MAX_EXACT_DIGITS: usize = 15;

/// Up to here, an f64 holds every integer.
const MAX_EXACT_INTEGER: u64 = 1 << 53;

/// Decimal digits that a u64 always holds.
pub(super) const MAX_U64_DIGITS: usize = 18;

/// Appends the digits from `start` on to `number`, and returns their end.
#[inline(always)]
pub(super) fn parse_digits(bytes: &[u8], start: usize, number: &mut u64) -> usize {
    let mut end = start;
    for byte in bytes.get(start..).unwrap_or_default() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        *number = number.wrapping_mul(10).wrapping_add(digit.into());
        end += 1;
    }
    end
}

/// Parses the decimal at `start`; returns its value and its end, or `None` if one division cannot
/// round it correctly.
#[inline(always)]
pub(super) fn parse_short(bytes: &[u8], start: usize) -> Option<(f64, usize)> {
    let sign = bytes.get(start).copied();
    let whole = start + usize::from(matches!(sign, Some(b'-' | b'+')));
    let mut number = 0;
    let mut end = parse_digits(bytes, whole, &mut number);
    // Signed, because processors convert signed integers faster; longer numbers are refused below.
    let mut value = number.cast_signed() as f64;
    if bytes.get(end) == Some(&b'.') {
        let decimals = end + 1;
        end = parse_digits(bytes, decimals, &mut number);
        let n_digits = end - whole - 1;
        if n_digits == 0 || n_digits > MAX_U64_DIGITS || number > MAX_EXACT_INTEGER {
            return None;
        }
        value = number.cast_signed() as f64 / POWERS_OF_TEN[end - decimals];
    } else if end == whole || end - whole > MAX_EXACT_DIGITS {
        return None;
    }
    Some((if sign == Some(b'-') { -value } else { value }, end))
}

/// Parses any number, including `1e-5`, `inf` and `nan`.
pub(super) fn parse_any(token: &[u8]) -> Option<f64> {
    std::str::from_utf8(token).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_numbers_round_as_the_standard_library_does() {
        for text in [
            "0",
            "-0",
            "+1",
            "2596",
            "5.",
            ".5",
            "-0.419847",
            "0.1",
            "999999999999999",
            "0.3333333333333333",
            "1.000000000000000",
        ] {
            let (value, end) = parse_short(text.as_bytes(), 0).expect("short");
            let exact: f64 = text.parse().expect("a number");
            assert_eq!((value.to_bits(), end), (exact.to_bits(), text.len()));
        }
    }

    #[test]
    fn what_one_division_cannot_round_is_refused() {
        for text in [
            "",
            "-",
            ".",
            "x",
            "9007199254740993",
            "0.12345678901234567890",
        ] {
            assert_eq!(parse_short(text.as_bytes(), 0), None, "{text}");
        }
        // The caller sees that the number goes on.
        assert_eq!(parse_short(b"1e5", 0), Some((1.0, 1)));
    }
}
