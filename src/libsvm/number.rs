//! Decimal numbers, rounded exactly.
//!
//! Most numbers in a file are short: the digits, read as an integer, and the power of ten of the
//! fraction are both exact as f64, so that one division rounds correctly (Clinger 1990, the fast
//! path of every reader of floats). All others go to the standard library.

/// The powers of ten that an f64 holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// As many digits as an f64 always holds exactly, and the largest integer up to which it holds all.
const EXACT_DIGITS: usize = 15;
const EXACT: u64 = 1 << 53;

/// As many digits as a u64 surely holds.
pub(super) const SAFE_DIGITS: usize = 18;

/// Reads digits from `start` on into `number`, and returns where they end.
#[inline(always)]
pub(super) fn digits(bytes: &[u8], start: usize, number: &mut u64) -> usize {
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

/// A plain decimal at `start`, and where it ends; `None` when it takes more than one division.
#[inline(always)]
pub(super) fn plain(bytes: &[u8], start: usize) -> Option<(f64, usize)> {
    let sign = bytes.get(start).copied();
    let whole = start + usize::from(matches!(sign, Some(b'-' | b'+')));
    let mut number = 0;
    let mut end = digits(bytes, whole, &mut number);
    // Signed, because processors convert signed integers faster; more digits are not used.
    let mut value = number.cast_signed() as f64;
    if bytes.get(end) == Some(&b'.') {
        let decimals = end + 1;
        end = digits(bytes, decimals, &mut number);
        let n_digits = end - whole - 1;
        if n_digits == 0 || n_digits > SAFE_DIGITS || number > EXACT {
            return None;
        }
        value = number.cast_signed() as f64 / POWERS[end - decimals];
    } else if end == whole || end - whole > EXACT_DIGITS {
        return None;
    }
    Some((if sign == Some(b'-') { -value } else { value }, end))
}

/// Any number, whole: also `1e-5`, `inf` and `nan`.
pub(super) fn general(token: &[u8]) -> Option<f64> {
    std::str::from_utf8(token).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_numbers_round_as_the_standard_library_does() {
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
            let (value, end) = plain(text.as_bytes(), 0).expect("plain");
            let exact: f64 = text.parse().expect("a number");
            assert_eq!((value.to_bits(), end), (exact.to_bits(), text.len()));
        }
    }

    #[test]
    fn what_one_division_cannot_round_is_left_alone() {
        for text in [
            "",
            "-",
            ".",
            "x",
            "9007199254740993",
            "0.12345678901234567890",
        ] {
            assert_eq!(plain(text.as_bytes(), 0), None, "{text}");
        }
        // The caller sees that the number goes on.
        assert_eq!(plain(b"1e5", 0), Some((1.0, 1)));
    }
}
