//! A slow reader of one line after another, obviously correct.

use onefold::libsvm::{IndexBase, ReadOptions, ValueType};

/// The contents of a file, floats as their bits.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Contents {
    pub(super) n_features: u64,
    pub(super) entries: Vec<Vec<(i64, u64)>>,
    pub(super) labels: Vec<Vec<u64>>,
    pub(super) qids: Vec<i64>,
}

/// What is wrong: a line, or the number of features.
#[derive(Debug, PartialEq)]
pub(super) enum Wrong {
    Line(u64),
    Features,
}

/// Reads `text`, as it is after decompression.
pub(super) fn read(text: &[u8], options: &ReadOptions) -> Result<Contents, Wrong> {
    let partial = options.offset > 0 || options.length.is_some();
    if partial && options.n_features.is_none() {
        return Err(Wrong::Features);
    }
    let mut options = options.clone();
    if partial && options.base == IndexBase::Auto {
        options.base = IndexBase::Zero;
    }
    let mut rows = Contents::default();
    let mut number = 0;
    let mut start = 0;
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        let is_after = start > options.offset || options.offset == 0;
        let is_before = options.length.is_none_or(|l| start <= options.offset + l);
        if is_after && is_before {
            number += 1;
            read_line(line, &options, &mut rows).ok_or(Wrong::Line(number))?;
        }
        start += line.len() as u64;
    }
    let all = || rows.entries.iter().flatten().map(|entry| entry.0);
    let first = match (options.base, all().min()) {
        (IndexBase::One, _) => 1,
        (IndexBase::Auto, Some(smallest)) if smallest > 0 => 1,
        _ => 0,
    };
    let needed = all().max().map_or(0, |largest| largest - first) + 1;
    rows.n_features = options.n_features.unwrap_or(needed.unsigned_abs());
    if rows.n_features < needed.unsigned_abs() {
        return Err(Wrong::Features);
    }
    for entry in rows.entries.iter_mut().flatten() {
        entry.0 -= first;
    }
    Ok(rows)
}

fn read_line(line: &[u8], options: &ReadOptions, rows: &mut Contents) -> Option<()> {
    let line = line.split(|&byte| byte == b'#').next()?;
    let is_blank = |byte: &u8| b" \t\r\x0b\x0c\n".contains(byte);
    let mut tokens: Vec<&[u8]> = line.split(is_blank).filter(|t| !t.is_empty()).collect();
    if tokens.is_empty() {
        return Some(());
    }
    let mut labels = Vec::new();
    if !options.multilabel {
        labels.push(float(tokens.remove(0), options, ValueType::Double)?);
    } else if !tokens[0].contains(&b':') {
        for label in tokens.remove(0).split(|&byte| byte == b',') {
            labels.push(float(label, options, ValueType::Double)?);
        }
        // Numerically, stable for -0 and 0; NaN at the ends.
        labels.sort_by(|a, b| (a + 0.0).total_cmp(&(b + 0.0)));
    }
    if tokens
        .first()
        .is_some_and(|token| token.starts_with(b"qid:"))
    {
        let qid = text(&tokens.remove(0)[4..])?.parse().ok()?;
        if options.query_id {
            rows.qids.push(qid);
        }
    } else if options.query_id {
        return None;
    }
    let mut entries: Vec<(i64, u64)> = Vec::new();
    for token in tokens {
        let colon = token.iter().position(|&byte| byte == b':')?;
        let index: i64 = text(&token[..colon])?.parse().ok()?;
        let value = float(&token[colon + 1..], options, options.precision)?;
        let least = entries
            .last()
            .map_or(i64::from(options.base == IndexBase::One), |e| e.0 + 1);
        let is_too_large = match (options.n_features, options.base) {
            (None, _) => index == i64::MAX,
            (Some(n), IndexBase::Zero) => index >= n.cast_signed(),
            (Some(n), _) => index > n.cast_signed(),
        };
        if index < least || is_too_large {
            return None;
        }
        entries.push((index, value.to_bits()));
    }
    rows.entries.push(entries);
    rows.labels
        .push(labels.into_iter().map(f64::to_bits).collect());
    Some(())
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

#[allow(clippy::cast_possible_truncation)]
fn float(token: &[u8], options: &ReadOptions, precision: ValueType) -> Option<f64> {
    let mut value: f64 = text(token)?.parse().ok()?;
    if precision == ValueType::Single {
        value = (value as f32).into();
    }
    (value.is_finite() || options.allow_nonfinite).then_some(value)
}
