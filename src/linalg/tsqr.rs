//! TSQR: the R factor of many rows, in blocks.
//!
//! # Problem
//! R of a tall matrix that is read in blocks of rows. QR of the rows works with the
//! condition number of X, the Gram with its square.
//!
//! # Method
//! Blocks are factored; pairs of their R factors are stacked and factored again, in a
//! binary tree. At most a few blocks are in memory, whether the rows are dense or sparse.
//!
//! # References
//! Demmel, Grigori, Hoemmen and Langou, SIAM J. Sci. Comput. 34 (2012).

use super::decompositions::r_factor;
use super::{Mat, row_major};
use crate::runtime::memory;
use crate::{Monitor, Result};

/// R of `rows`, of which `write` writes one, `width` values each: at most `width` rows.
pub(crate) fn tsqr(
    rows: &[usize],
    width: usize,
    monitor: &Monitor,
    write: &(impl Fn(usize, &mut [f64]) + Sync),
) -> Result<Mat<f64>> {
    // Four times as tall as wide: little is factored twice.
    let block_rows = (4 * width).max(1024);
    if rows.len() <= block_rows {
        monitor.check()?;
        let what = format_args!("a block of {} rows and {width} columns", rows.len());
        memory::check_shape::<f64>(what, &[2, rows.len(), width])?;
        let mut values = vec![0.0; rows.len() * width];
        for (out, &row) in values.chunks_exact_mut(width.max(1)).zip(rows) {
            write(row, out);
        }
        let block = row_major(&values, rows.len(), width).to_owned();
        return r_factor(block, monitor);
    }
    let (left, right) = rows.split_at((rows.len() / 2).next_multiple_of(block_rows));
    let (left, right) = rayon::join(
        || tsqr(left, width, monitor, write),
        || tsqr(right, width, monitor, write),
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
    r_factor(stacked, monitor)
}
