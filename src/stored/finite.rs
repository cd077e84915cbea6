//! A check of values that were read.

use crate::data::{Layout as _, OwnedRows, Row, Rows};
use crate::{Error, Result};

/// Values that are checked together: without a branch for each, the loop is vectorised.
const CHECKED_TOGETHER: usize = 256;

/// An error that names the first value that is not finite; `row_of` gives the row of the matrix.
pub(super) fn check_finite(rows: &OwnedRows, row_of: impl Fn(usize) -> usize) -> Result<()> {
    let are_finite = |values: &[f64]| {
        values
            .iter()
            .fold(true, |all, value| all & value.is_finite())
    };
    if rows.values().chunks(CHECKED_TOGETHER).all(are_finite) {
        return Ok(());
    }
    let data = rows.dataset()?;
    for number in 0..rows.n_rows() {
        let bad = match data.rows() {
            Rows::Dense(rows) => first_bad(rows.row(number)),
            Rows::Csr32(rows) => first_bad(rows.row(number)),
            Rows::Csr64(rows) => first_bad(rows.row(number)),
            Rows::Stored(_) | Rows::External { .. } => None,
        };
        if let Some((column, value)) = bad {
            return Err(Error::Value {
                place: format!("X[{}, {column}]", row_of(number)),
                value,
                rule: "every value must be finite",
            });
        }
    }
    Ok(())
}

fn first_bad<R: Row>(row: R) -> Option<(usize, f64)> {
    row.entries().find(|(_, value)| !value.is_finite())
}
