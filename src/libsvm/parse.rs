//! A block of whole lines, parsed into columns.
//!
//! ```text
//! line   = [labels] ["qid:" integer] {index ":" value} ["#" comment]
//! labels = number            or, with multilabel,  [number {"," number}]
//! ```
//!
//! Tokens are separated by ASCII blanks, indices increase strictly within a line, and a line without
//! any token is skipped. Anything else in a line is a [`LineError`].

use std::ops::Range;

use super::number::{MAX_U64_DIGITS, parse_any, parse_digits, parse_short};
use super::{IndexBase, ReadOptions, ValueType};

/// What a line may contain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    multilabel: bool,
    query_id: bool,
    allow_nonfinite: bool,
    precision: ValueType,
    /// Valid indices are `first..end`.
    first: i64,
    end: i64,
}

impl Rules {
    pub(super) fn new(options: &ReadOptions) -> Self {
        let first = i64::from(options.base == IndexBase::One);
        // If the base is not known yet, `n_features` may be the last index of a one-based file.
        let past_first = i64::from(options.base != IndexBase::Zero);
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

/// The rows of one block, column by column. Indices are as in the file, zero- or one-based.
#[derive(Debug, Default)]
pub(super) struct Columns {
    pub(super) labels: Vec<f64>,
    /// The end of each row's labels, for multilabel files.
    pub(super) label_ends: Vec<usize>,
    pub(super) qids: Vec<i64>,
    pub(super) row_ends: Vec<usize>,
    pub(super) indices: Vec<i64>,
    pub(super) values: Vec<f64>,
    /// `i64::MAX` and -1 if there is no index.
    pub(super) min_index: i64,
    pub(super) max_index: i64,
    /// Number of lines, with or without a row.
    pub(super) n_lines: u64,
}

impl Columns {
    /// The range of the indices and values of some rows.
    pub(super) fn entries_of(&self, rows: &Range<usize>) -> Range<usize> {
        between(&self.row_ends, rows)
    }

    /// The range of the labels of some rows.
    pub(super) fn labels_of(&self, rows: &Range<usize>) -> Range<usize> {
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
        self.min_index = i64::MAX;
        self.max_index = -1;
        self.n_lines = 0;
    }
}

/// The union of the parts `range`, if part `i` ends at `ends[i]`.
fn between(ends: &[usize], range: &Range<usize>) -> Range<usize> {
    let before = |part: usize| part.checked_sub(1).map_or(0, |last| ends[last]);
    before(range.start)..before(range.end)
}

/// What a number is.
#[derive(Clone, Copy)]
enum Role {
    Label,
    Value,
}

/// Why the line after the last parsed one is not valid.
#[derive(Debug)]
pub(super) struct LineError {
    pub(super) reason: &'static str,
    pub(super) text: String,
}

/// Parses `block` into `columns`; on error these hold the lines before the invalid one.
pub(super) fn parse(block: &[u8], rules: Rules, columns: &mut Columns) -> Result<(), LineError> {
    columns.clear();
    let parser = Parser {
        bytes: block,
        rules,
    };
    let mut at = 0;
    while at < block.len() {
        at = parser.line(at, columns)?;
        columns.n_lines += 1;
    }
    Ok(())
}

/// The beginning of `bytes`, for a message.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    const MAX_BYTES: usize = 60;
    if bytes.len() <= MAX_BYTES {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    format!("{}…", String::from_utf8_lossy(&bytes[..MAX_BYTES]))
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)
}

const fn is_token_end(byte: u8) -> bool {
    is_blank(byte) || matches!(byte, b'\n' | b'#')
}

/// A block and its rules. Every method takes the position where it starts and returns the one where
/// it ended, so that the position stays in a register.
#[derive(Clone, Copy)]
struct Parser<'a> {
    bytes: &'a [u8],
    rules: Rules,
}

impl<'a> Parser<'a> {
    /// The byte at a position; the end of the block is the end of a line.
    #[inline(always)]
    fn byte(self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(b'\n')
    }

    /// The start of the next token of the line, if there is one.
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
        let end = rest.iter().position(|&byte| is_token_end(byte));
        &rest[..end.unwrap_or(rest.len())]
    }

    #[cold]
    fn error<T>(self, start: usize, reason: &'static str) -> Result<T, LineError> {
        let text = excerpt(self.token(start));
        Err(LineError { reason, text })
    }

    /// Parses one line into `columns`; nothing of an invalid line remains there.
    fn line(self, start: usize, columns: &mut Columns) -> Result<usize, LineError> {
        let mut end = start;
        if let Some(first) = self.next_token(start) {
            let (n_labels, n_entries) = (columns.labels.len(), columns.indices.len());
            end = self.row(first, columns).inspect_err(|_| {
                columns.labels.truncate(n_labels);
                columns.qids.truncate(columns.row_ends.len());
                columns.indices.truncate(n_entries);
                columns.values.truncate(n_entries);
            })?;
            let added = &columns.indices[n_entries..];
            if let (Some(&first), Some(&last)) = (added.first(), added.last()) {
                columns.min_index = columns.min_index.min(first);
                columns.max_index = columns.max_index.max(last);
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

    fn row(self, start: usize, columns: &mut Columns) -> Result<usize, LineError> {
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
            return self.error(start, "the line has no qid");
        }
        self.entries(at, columns)
    }

    /// The labels of a multilabel row, sorted; none if the line begins with a feature.
    fn labels(self, start: usize, labels: &mut Vec<f64>) -> Result<usize, LineError> {
        let token = self.token(start);
        if token.contains(&b':') {
            return Ok(start);
        }
        let n_before = labels.len();
        for label in token.split(|&byte| byte == b',') {
            labels.push(self.float(label, start, Role::Label)?);
        }
        // Adding zero makes -0 and 0 compare equal, so that the sort keeps their order.
        labels[n_before..].sort_by(|a, b| (a + 0.0).total_cmp(&(b + 0.0)));
        Ok(start + token.len())
    }

    fn qid(self, at: usize, qids: &mut Vec<i64>) -> Result<usize, LineError> {
        let start = self.next_token(at).unwrap_or(at);
        let token = self.token(start);
        let number = std::str::from_utf8(&token[b"qid:".len()..]).ok();
        let Some(qid) = number.and_then(|text| text.parse().ok()) else {
            return self.error(start, "the qid is not a 64-bit integer");
        };
        if self.rules.query_id {
            qids.push(qid);
        }
        Ok(start + token.len())
    }

    /// All `index:value` pairs up to the end of the line or its comment.
    fn entries(self, mut at: usize, columns: &mut Columns) -> Result<usize, LineError> {
        let mut previous = self.rules.first - 1;
        while let Some(start) = self.next_token(at) {
            let (index, colon) = self.index(start)?;
            if index <= previous || index >= self.rules.end {
                return self.index_error(start, index, previous);
            }
            let (value, end) = self.number(colon + 1, start, Role::Value)?;
            columns.indices.push(index);
            columns.values.push(value);
            previous = index;
            at = end;
        }
        Ok(at)
    }

    /// The index at `start`, and the position of its colon.
    #[inline(always)]
    fn index(self, start: usize) -> Result<(i64, usize), LineError> {
        let mut index = 0;
        let end = parse_digits(self.bytes, start, &mut index);
        let n_digits = end - start;
        if n_digits > 0 && n_digits <= MAX_U64_DIGITS && self.byte(end) == b':' {
            Ok((index.cast_signed(), end))
        } else {
            self.index_slow(start)
        }
    }

    #[cold]
    fn index_slow(self, start: usize) -> Result<(i64, usize), LineError> {
        use std::num::IntErrorKind::{NegOverflow, PosOverflow};
        let token = self.token(start);
        let Some(length) = token.iter().position(|&byte| byte == b':') else {
            return self.error(start, "expected index:value");
        };
        let index = match std::str::from_utf8(&token[..length]).map(str::parse::<i64>) {
            Ok(Ok(index)) => index,
            Ok(Err(error)) if *error.kind() == PosOverflow => i64::MAX,
            Ok(Err(error)) if *error.kind() == NegOverflow => i64::MIN,
            _ => return self.error(start, "the feature index is not an integer"),
        };
        Ok((index, start + length))
    }

    #[cold]
    fn index_error(self, start: usize, index: i64, previous: i64) -> Result<usize, LineError> {
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
        self.error(start, reason)
    }

    /// The number at `at`, in the token that began at `start`, and its end.
    #[inline(always)]
    fn number(self, at: usize, start: usize, role: Role) -> Result<(f64, usize), LineError> {
        match parse_short(self.bytes, at) {
            Some((value, end)) if is_token_end(self.byte(end)) => Ok((value, end)),
            _ => self.number_slow(at, start, role),
        }
    }

    #[inline(never)]
    fn number_slow(self, at: usize, start: usize, role: Role) -> Result<(f64, usize), LineError> {
        let token = self.token(at);
        Ok((self.float(token, start, role)?, at + token.len()))
    }

    /// The value of `token`, part of the token that began at `start`.
    fn float(self, token: &[u8], start: usize, role: Role) -> Result<f64, LineError> {
        let Some(value) = parse_any(token) else {
            let reason = match role {
                Role::Label => "the label is not a number",
                Role::Value => "the value is not a number",
            };
            return self.error(start, reason);
        };
        #[allow(clippy::cast_possible_truncation)] // overflow to infinity is what is tested
        let is_finite = match (role, self.rules.precision) {
            (Role::Value, ValueType::Single) => (value as f32).is_finite(),
            _ => value.is_finite(),
        };
        if is_finite || self.rules.allow_nonfinite {
            Ok(value)
        } else {
            self.error(start, "not a finite number, and allow_nonfinite is not set")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(line: &str, options: &ReadOptions) -> (&'static str, String) {
        let mut columns = Columns::default();
        let block = format!("1 1:1\n{line}\n");
        let error = parse(block.as_bytes(), Rules::new(options), &mut columns).expect_err(line);
        assert_eq!((columns.n_lines, columns.labels.len()), (1, 1), "{line}");
        assert_eq!((columns.indices.len(), columns.values.len()), (1, 1));
        (error.reason, error.text)
    }

    #[test]
    fn every_error_has_its_reason() {
        let options = ReadOptions::default();
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
    fn options_determine_the_rules() {
        let one_based = ReadOptions {
            base: IndexBase::One,
            n_features: Some(4),
            ..ReadOptions::default()
        };
        let zero_based = ReadOptions {
            base: IndexBase::Zero,
            ..one_based.clone()
        };
        let beyond = "the feature index is beyond n_features";
        assert_eq!(reason("1 5:1", &one_based).0, beyond);
        assert_eq!(reason("1 4:1", &zero_based).0, beyond);
        let zero = "feature index 0 in a one-based file";
        assert_eq!(reason("1 0:1", &one_based).0, zero);
        let single = ReadOptions {
            precision: ValueType::Single,
            ..ReadOptions::default()
        };
        assert!(reason("1 1:1e39", &single).0.starts_with("not a finite"));
    }
}
