//! The rows of one fold: which columns its training rows have, and rows with some of the columns.

// `CountRows::new` checks that offsets and columns are positive and in range.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

use crate::{Error, Monitor, Result};

/// A CSR matrix of counts, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct CountRows<'a> {
    indptr: &'a [i64],
    indices: &'a [i32],
    counts: &'a [i32],
    n_columns: usize,
}

impl<'a> CountRows<'a> {
    /// [`Error::Csr`] unless the arrays are those of a matrix.
    pub fn new(
        indptr: &'a [i64],
        indices: &'a [i32],
        counts: &'a [i32],
        n_columns: usize,
    ) -> Result<Self> {
        let ends = indptr.first() == Some(&0) && indptr.is_sorted();
        let n = indptr.last().map_or(0, |&end| end as usize);
        let is_column = |&column: &i32| usize::try_from(column).is_ok_and(|at| at < n_columns);
        if !ends || n != indices.len() || n != counts.len() || !indices.iter().all(is_column) {
            return Err(Error::Csr {
                reason: "its arrays contradict each other".to_owned(),
            });
        }
        Ok(Self {
            indptr,
            indices,
            counts,
            n_columns,
        })
    }

    fn row(&self, row: i64) -> Result<(&'a [i32], &'a [i32])> {
        let row = usize::try_from(row).ok();
        let bounds = row.and_then(|row| self.indptr.get(row..row + 2));
        let Some(&[start, end]) = bounds else {
            return Err(Error::Shape {
                what: "rows",
                expected: self.indptr.len().saturating_sub(1),
                found: row.unwrap_or(usize::MAX),
            });
        };
        let range = start as usize..end as usize;
        Ok((&self.indices[range.clone()], &self.counts[range]))
    }
}

/// What the rows of a training set say about each column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// In how many rows it occurs.
    pub n_rows: Vec<i64>,
    /// Where it occurs first, among all values of these rows.
    pub first: Vec<i64>,
}

/// Frequencies and first occurrences in some rows.
pub fn statistics(matrix: CountRows<'_>, rows: &[i64], monitor: &Monitor) -> Result<Statistics> {
    monitor.check()?;
    let mut found = Statistics {
        n_rows: vec![0; matrix.n_columns],
        first: vec![i64::MAX; matrix.n_columns],
    };
    let mut position = 0;
    for &row in rows {
        for &column in matrix.row(row)?.0 {
            let column = column as usize;
            if found.n_rows[column] == 0 {
                found.first[column] = position;
            }
            found.n_rows[column] += 1;
            position += 1;
        }
    }
    Ok(found)
}

/// Some rows and columns of a matrix of counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Where each row begins, and the last one ends.
    pub indptr: Vec<i64>,
    /// Columns, by their new numbers.
    pub indices: Vec<i32>,
    /// The counts.
    pub counts: Vec<i32>,
}

/// Takes rows, and the columns that have a new number, which others have below 0.
///
/// Within a row, columns are in the order of `keys`, or of their new numbers.
pub fn select(
    matrix: CountRows<'_>,
    rows: &[i64],
    new_columns: &[i32],
    keys: Option<&[i64]>,
    monitor: &Monitor,
) -> Result<Selection> {
    for (what, found) in [
        ("new_columns", new_columns.len()),
        ("keys", keys.map_or(matrix.n_columns, <[i64]>::len)),
    ] {
        if found != matrix.n_columns {
            return Err(Error::Shape {
                what,
                expected: matrix.n_columns,
                found,
            });
        }
    }
    monitor.check()?;
    let mut selected = Selection::default();
    let mut values: Vec<(i64, i32, i32)> = Vec::new();
    selected.indptr.push(0);
    for &row in rows {
        let (columns, counts) = matrix.row(row)?;
        values.clear();
        for (&column, &count) in columns.iter().zip(counts) {
            let new = new_columns[column as usize];
            if new >= 0 {
                let key = keys.map_or(i64::from(new), |keys| keys[column as usize]);
                values.push((key, new, count));
            }
        }
        values.sort_unstable_by_key(|value| value.0);
        selected.indices.extend(values.iter().map(|value| value.1));
        selected.counts.extend(values.iter().map(|value| value.2));
        selected.indptr.push(selected.indices.len() as i64);
    }
    Ok(selected)
}
