//! A block of whole lines, parsed into columns.
//!
//! ```text
//! line   = [labels] ["qid:" integer] {index ":" value} ["#" comment]
//! labels = number            or, with multilabel,  [number {"," number}]
//! ```
//!
//! Tokens stand between ASCII blanks, indices increase strictly within a line, and a line without
//! any token is skipped. Whatever else a line holds is a [`Fault`].

use std::ops::Range;

use super::number::{SAFE_DIGITS, digits, general, plain};
use super::{Base, Options, Precision};

/// What the lines of a block may hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    multilabel: bool,
    query_id: bool,
    allow_nonfinite: bool,
    precision: Precision,
    /// The first index that may occur, and the first that is too large.
    first: i64,
    end: i64,
}

impl Rules {
    pub(super) fn new(options: &Options) -> Self {
        let first = i64::from(options.base == Base::One);
        // Where the base is still open, an index of `n_features` may prove to be the last one.
        let past_first = i64::from(options.base != Base::Zero);
        let end = options
            .n_features
            .and_then(|n| i64::try_from(n).ok())
            .map_or(i64::MAX, |n| n.saturating_add(past_first));
        Self {
            multilabel: options.multilabel,
            query_id: options.query_id,
            allow_nonfinite: options.allow_nonfinite,
            precision: options.precision,
            first,
            end,
        }
    }
}

/// The rows of one block. Indices are as in the file, zero- or one-based.
#[derive(Debug, Default)]
pub(super) struct Columns {
    pub(super) labels: Vec<f64>,
    /// Where each row's labels end, for multilabel files.
    pub(super) label_ends: Vec<usize>,
    pub(super) qids: Vec<i64>,
    pub(super) row_ends: Vec<usize>,
    pub(super) indices: Vec<i64>,
    pub(super) values: Vec<f64>,
    /// The smallest and the largest index: `i64::MAX` and -1 when there is none.
    pub(super) smallest: i64,
    pub(super) largest: i64,
    /// How many lines were read, with or without a row.
    pub(super) n_lines: u64,
}

impl Columns {
    /// Where the values of some rows stand.
    pub(super) fn stored(&self, rows: &Range<usize>) -> Range<usize> {
        between(&self.row_ends, rows)
    }

    /// Where the labels of some rows stand.
    pub(super) fn label_range(&self, rows: &Range<usize>) -> Range<usize> {
        if self.label_ends.is_empty() {
            rows.clone()
        } else {
            between(&self.label_ends, rows)
        }
    }

    fn clear(&mut self) {
        self.labels.clear();
        self.label_ends.clear();
        self.qids.clear();
        self.row_ends.clear();
        self.indices.clear();
        self.values.clear();
        self.smallest = i64::MAX;
        self.largest = -1;
        self.n_lines = 0;
    }
}

/// From where the parts `range` begin to where they end, when each ends as `ends` say.
fn between(ends: &[usize], range: &Range<usize>) -> Range<usize> {
    let before = |part: usize| part.checked_sub(1).map_or(0, |last| ends[last]);
    before(range.start)..before(range.end)
}

/// What a number stands for.
#[derive(Clone, Copy)]
enum Role {
    Label,
    Value,
}

/// What is wrong with the line after the last one that was read.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) reason: &'static str,
    pub(super) text: String,
}

/// Parses `block` into `columns`; after a fault these hold the lines before it.
pub(super) fn parse(block: &[u8], rules: Rules, columns: &mut Columns) -> Result<(), Fault> {
    columns.clear();
    let text = Text {
        bytes: block,
        rules,
    };
    let mut at = 0;
    while at < block.len() {
        at = text.line(at, columns)?;
        columns.n_lines += 1;
    }
    Ok(())
}

/// The beginning of `bytes`, for a message.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    const LONGEST: usize = 60;
    if bytes.len() <= LONGEST {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    format!("{}…", String::from_utf8_lossy(&bytes[..LONGEST]))
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)
}

const fn ends_token(byte: u8) -> bool {
    is_blank(byte) || matches!(byte, b'\n' | b'#')
}

/// A block and its rules. Every method reads from a place on and returns where it stopped, so that
/// the place can stay in a register.
#[derive(Clone, Copy)]
struct Text<'a> {
    bytes: &'a [u8],
    rules: Rules,
}

impl<'a> Text<'a> {
    /// The byte at a place; the end of the block reads as the end of a line.
    #[inline(always)]
    fn byte(self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(b'\n')
    }

    /// Where the next token of the line begins, if there is one.
    #[inline(always)]
    fn next_token(self, mut at: usize) -> Option<usize> {
        while is_blank(self.byte(at)) {
            at += 1;
        }
        let byte = self.byte(at);
        (byte != b'\n' && byte != b'#').then_some(at)
    }

    /// The token that begins at `start`.
    fn token(self, start: usize) -> &'a [u8] {
        let rest = &self.bytes[start..];
        let end = rest.iter().position(|&byte| ends_token(byte));
        &rest[..end.unwrap_or(rest.len())]
    }

    #[cold]
    fn fault<T>(self, start: usize, reason: &'static str) -> Result<T, Fault> {
        let text = excerpt(self.token(start));
        Err(Fault { reason, text })
    }

    /// Reads one line into `columns`; nothing of a bad one stays there.
    fn line(self, start: usize, columns: &mut Columns) -> Result<usize, Fault> {
        let mut end = start;
        if let Some(first) = self.next_token(start) {
            let (n_labels, n_stored) = (columns.labels.len(), columns.indices.len());
            end = self.row(first, columns).inspect_err(|_| {
                columns.labels.truncate(n_labels);
                columns.qids.truncate(columns.row_ends.len());
                columns.indices.truncate(n_stored);
                columns.values.truncate(n_stored);
            })?;
            let stored = &columns.indices[n_stored..];
            if let (Some(&smallest), Some(&largest)) = (stored.first(), stored.last()) {
                columns.smallest = columns.smallest.min(smallest);
                columns.largest = columns.largest.max(largest);
            }
            columns.row_ends.push(columns.indices.len());
            if self.rules.multilabel {
                columns.label_ends.push(columns.labels.len());
            }
        }
        while self.byte(end) != b'\n' {
            end += 1;
        }
        Ok(end + 1)
    }

    fn row(self, start: usize, columns: &mut Columns) -> Result<usize, Fault> {
        let mut at = if self.rules.multilabel {
            self.labels(start, &mut columns.labels)?
        } else {
            let (label, end) = self.number(start, start, Role::Label)?;
            columns.labels.push(label);
            end
        };
        let rest = self.next_token(at).map(|token| &self.bytes[token..]);
        if rest.is_some_and(|rest| rest.starts_with(b"qid:")) {
            at = self.qid(at, &mut columns.qids)?;
        } else if self.rules.query_id {
            return self.fault(start, "the line has no qid");
        }
        self.entries(at, columns)
    }

    /// The labels of a multilabel row, sorted; none when the line begins with a feature.
    fn labels(self, start: usize, labels: &mut Vec<f64>) -> Result<usize, Fault> {
        let token = self.token(start);
        if token.contains(&b':') {
            return Ok(start);
        }
        let n_before = labels.len();
        for label in token.split(|&byte| byte == b',') {
            labels.push(self.general(label, start, Role::Label)?);
        }
        // Adding zero makes -0 and 0 equal, so that they keep their order.
        labels[n_before..].sort_by(|a, b| (a + 0.0).total_cmp(&(b + 0.0)));
        Ok(start + token.len())
    }

    fn qid(self, at: usize, qids: &mut Vec<i64>) -> Result<usize, Fault> {
        let start = self.next_token(at).unwrap_or(at);
        let token = self.token(start);
        let number = std::str::from_utf8(&token[b"qid:".len()..]).ok();
        let Some(qid) = number.and_then(|text| text.parse().ok()) else {
            return self.fault(start, "the qid is not a 64-bit integer");
        };
        if self.rules.query_id {
            qids.push(qid);
        }
        Ok(start + token.len())
    }

    /// All `index:value` up to the end of the line or its comment.
    fn entries(self, mut at: usize, columns: &mut Columns) -> Result<usize, Fault> {
        let mut previous = self.rules.first - 1;
        while let Some(start) = self.next_token(at) {
            let (index, colon) = self.index(start)?;
            if index <= previous || index >= self.rules.end {
                return self.bad_index(start, index, previous);
            }
            let (value, end) = self.number(colon + 1, start, Role::Value)?;
            columns.indices.push(index);
            columns.values.push(value);
            previous = index;
            at = end;
        }
        Ok(at)
    }

    /// The index at `start`, and where its colon is.
    #[inline(always)]
    fn index(self, start: usize) -> Result<(i64, usize), Fault> {
        let mut index = 0;
        let end = digits(self.bytes, start, &mut index);
        let n_digits = end - start;
        if n_digits > 0 && n_digits <= SAFE_DIGITS && self.byte(end) == b':' {
            Ok((index.cast_signed(), end))
        } else {
            self.long_index(start)
        }
    }

    #[cold]
    fn long_index(self, start: usize) -> Result<(i64, usize), Fault> {
        use std::num::IntErrorKind::{NegOverflow, PosOverflow};
        let token = self.token(start);
        let Some(length) = token.iter().position(|&byte| byte == b':') else {
            return self.fault(start, "expected index:value");
        };
        let index = match std::str::from_utf8(&token[..length]).map(str::parse::<i64>) {
            Ok(Ok(index)) => index,
            Ok(Err(error)) if *error.kind() == PosOverflow => i64::MAX,
            Ok(Err(error)) if *error.kind() == NegOverflow => i64::MIN,
            _ => return self.fault(start, "the feature index is not an integer"),
        };
        Ok((index, start + length))
    }

    #[cold]
    fn bad_index(self, start: usize, index: i64, previous: i64) -> Result<usize, Fault> {
        let reason = if index < 0 {
            "negative feature index"
        } else if index == i64::MAX {
            "the feature index is too large"
        } else if index >= self.rules.end {
            "the feature index is beyond n_features"
        } else if index < self.rules.first {
            "feature index 0 in a one-based file"
        } else if index == previous {
            "repeated feature index"
        } else {
            "decreasing feature index"
        };
        self.fault(start, reason)
    }

    /// The number at a place, and where it ends, with the token that began at `start`.
    #[inline(always)]
    fn number(self, at: usize, start: usize, role: Role) -> Result<(f64, usize), Fault> {
        match plain(self.bytes, at) {
            Some((value, end)) if ends_token(self.byte(end)) => Ok((value, end)),
            _ => self.long_number(at, start, role),
        }
    }

    #[inline(never)]
    fn long_number(self, at: usize, start: usize, role: Role) -> Result<(f64, usize), Fault> {
        let token = self.token(at);
        Ok((self.general(token, start, role)?, at + token.len()))
    }

    /// The number that `token`, part of what began at `start`, spells.
    fn general(self, token: &[u8], start: usize, role: Role) -> Result<f64, Fault> {
        let Some(value) = general(token) else {
            let reason = match role {
                Role::Label => "the label is not a number",
                Role::Value => "the value is not a number",
            };
            return self.fault(start, reason);
        };
        #[allow(clippy::cast_possible_truncation)] // what becomes infinite is what we look for
        let is_finite = match (role, self.rules.precision) {
            (Role::Value, Precision::Single) => (value as f32).is_finite(),
            _ => value.is_finite(),
        };
        if is_finite || self.rules.allow_nonfinite {
            Ok(value)
        } else {
            self.fault(start, "not a finite number, and allow_nonfinite is not set")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(line: &str, options: &Options) -> (&'static str, String) {
        let mut columns = Columns::default();
        let block = format!("1 1:1\n{line}\n");
        let fault = parse(block.as_bytes(), Rules::new(options), &mut columns).expect_err(line);
        assert_eq!((columns.n_lines, columns.labels.len()), (1, 1), "{line}");
        assert_eq!((columns.indices.len(), columns.values.len()), (1, 1));
        (fault.reason, fault.text)
    }

    #[test]
    fn every_fault_is_named() {
        let options = Options::default();
        for (line, expected) in [
            ("x 1:1", "the label is not a number"),
            ("1:1 2:1", "the label is not a number"),
            ("1,2 2:1", "the label is not a number"),
            ("1 2", "expected index:value"),
            ("1 :2", "the feature index is not an integer"),
            ("1 1.5:2", "the feature index is not an integer"),
            ("1 -1:2", "negative feature index"),
            ("1 -99999999999999999999:2", "negative feature index"),
            ("1 9223372036854775807:2", "the feature index is too large"),
            ("1 99999999999999999999:2", "the feature index is too large"),
            ("1 3:1 3:1", "repeated feature index"),
            ("1 3:1 2:1", "decreasing feature index"),
            ("1 3:", "the value is not a number"),
            ("1 3:1x", "the value is not a number"),
            ("1 3:1:2", "the value is not a number"),
            ("1 3:1_0", "the value is not a number"),
            ("1 3:1\0", "the value is not a number"),
            ("1 qid:x", "the qid is not a 64-bit integer"),
            ("1 3:1 qid:1", "the feature index is not an integer"),
            (
                "1 3:nan",
                "not a finite number, and allow_nonfinite is not set",
            ),
            (
                "inf 3:1",
                "not a finite number, and allow_nonfinite is not set",
            ),
            (
                "1 3:1e999",
                "not a finite number, and allow_nonfinite is not set",
            ),
        ] {
            let (found, text) = reason(line, &options);
            assert_eq!(found, expected, "{line}");
            assert!(line.split_whitespace().any(|token| token == text), "{text}");
        }
    }

    #[test]
    fn options_make_rules() {
        let one_based = Options {
            base: Base::One,
            n_features: Some(4),
            ..Options::default()
        };
        let zero_based = Options {
            base: Base::Zero,
            ..one_based.clone()
        };
        let beyond = "the feature index is beyond n_features";
        assert_eq!(reason("1 5:1", &one_based).0, beyond);
        assert_eq!(reason("1 4:1", &zero_based).0, beyond);
        let zero = "feature index 0 in a one-based file";
        assert_eq!(reason("1 0:1", &one_based).0, zero);
        let single = Options {
            precision: Precision::Single,
            ..Options::default()
        };
        assert!(reason("1 1:1e39", &single).0.starts_with("not a finite"));
    }
}
