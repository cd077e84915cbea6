//! The triangular factor of many rows, a block at a time.
//!
//! Where the Gram has lost too many digits, QR of the rows themselves has not: it works with the
//! condition of X, not with its square. Blocks are factored and their factors stacked and factored
//! again, so that no more than a few blocks are ever held, dense or sparse.

use super::linalg::{self, Mat};
use crate::{Monitor, Result};

/// R of the rows that `write` writes, `width` values each: at most `width` rows.
pub(super) fn triangle(
    rows: &[usize],
    width: usize,
    monitor: &Monitor,
    write: &(impl Fn(usize, &mut [f64]) + Sync),
) -> Result<Mat<f64>> {
    // Four times as tall as wide: little is factored twice.
    let leaf = (4 * width).max(1024);
    if rows.len() <= leaf {
        monitor.check()?;
        let mut values = vec![0.0; rows.len() * width];
        for (out, &row) in values.chunks_exact_mut(width.max(1)).zip(rows) {
            write(row, out);
        }
        let block = linalg::row_major(&values, rows.len(), width).to_owned();
        return Ok(linalg::triangle(&block));
    }
    let (left, right) = rows.split_at((rows.len() / 2).next_multiple_of(leaf));
    let (left, right) = rayon::join(
        || triangle(left, width, monitor, write),
        || triangle(right, width, monitor, write),
    );
    let (top, bottom) = (left?, right?);
    let n = top.nrows();
    let stacked = Mat::from_fn(n + bottom.nrows(), width, |i, j| {
        if i < n {
            top[(i, j)]
        } else {
            bottom[(i - n, j)]
        }
    });
    Ok(linalg::triangle(&stacked))
}
