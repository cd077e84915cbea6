//! Completes a symmetric matrix from its upper triangle.

use rayon::prelude::*;

use crate::{Monitor, Result};

/// Writes the lower triangle of a symmetric matrix of `n` columns. `rows` holds the rows from `first`
/// on; in each block of `BLOCK` rows the columns from the block's first row on are known. A serial run
/// stays on its thread.
pub(super) fn mirror<T: Copy + Send + Sync, const BLOCK: usize>(
    rows: &mut [T],
    first: usize,
    n: usize,
    is_serial: bool,
    monitor: &Monitor,
) -> Result<()> {
    let n_blocks = (rows.len() / n.max(1)).div_ceil(BLOCK);
    if n_blocks < 2 {
        return Ok(());
    }
    let above = n_blocks / 2 * BLOCK;
    let (upper, lower) = rows.split_at_mut(above * n);
    let known = &*upper;
    lower
        .par_chunks_mut(BLOCK * n)
        .with_min_len(if is_serial { usize::MAX } else { 1 })
        .enumerate()
        .try_for_each(|(index, block)| {
            monitor.check()?;
            let start = first + above + index * BLOCK;
            // Square tiles: each cache line is read once and written once.
            for (tile, known) in known.chunks(BLOCK * n).enumerate() {
                for (row, out) in block.chunks_mut(n).enumerate() {
                    let out = &mut out[first + tile * BLOCK..];
                    for (value, known) in out.iter_mut().zip(known.chunks(n)) {
                        *value = known[start + row];
                    }
                }
            }
            Ok(())
        })?;
    let mut upper = || mirror::<T, BLOCK>(upper, first, n, is_serial, monitor);
    let mut lower = || mirror::<T, BLOCK>(lower, first + above, n, is_serial, monitor);
    if is_serial {
        return upper().and_then(|()| lower());
    }
    let (upper, lower) = rayon::join(upper, lower);
    upper.and(lower)
}
