//! Sums over rows on all threads, with the same bits for any number of them.

use std::ops::Range;

use rayon::prelude::*;

use crate::runtime::threads::is_parallel;
use crate::{Monitor, Result};

/// Rows of a block: with a hundred columns, a block stays in the second-level cache.
pub(crate) const BLOCK_ROWS: usize = 512;

/// The most parts into which the rows are divided. Parts depend on the number of rows alone.
const MAX_PARTS: usize = 64;

/// The blocks of a range of rows.
pub(crate) fn blocks(rows: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = rows.end;
    rows.step_by(BLOCK_ROWS)
        .map(move |start| start..end.min(start + BLOCK_ROWS))
}

/// What `work` finds for each item, in their order; items are divided among threads.
pub(crate) fn par_map<I: Sync, T: Send>(
    items: &[I],
    monitor: &Monitor,
    work: impl Fn(&I) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let one = |item: &I| monitor.check().and_then(|()| work(item));
    if is_parallel() {
        items.par_iter().map(one).collect()
    } else {
        items.iter().map(one).collect()
    }
}

/// The least rows of a part whose sum is a matrix as wide as the rows: they cost more than adding it.
pub(crate) const MATRIX_ROWS: usize = 8 * BLOCK_ROWS;

/// The sum of what `work` finds for parts of `0..n` of at least `min_rows`, whole blocks each. Sums are
/// added in a binary tree over the parts, of which few are in memory.
pub(crate) fn par_reduce<T: Send>(
    (n, min_rows): (usize, usize),
    monitor: &Monitor,
    work: impl Fn(Range<usize>) -> Result<T> + Sync,
    add: impl Fn(&mut T, T) + Sync,
) -> Result<T> {
    let length = n.div_ceil(MAX_PARTS).next_multiple_of(BLOCK_ROWS);
    reduce(0..n, length.max(min_rows), monitor, &work, &add)
}

fn reduce<T: Send>(
    rows: Range<usize>,
    length: usize,
    monitor: &Monitor,
    work: &(impl Fn(Range<usize>) -> Result<T> + Sync),
    add: &(impl Fn(&mut T, T) + Sync),
) -> Result<T> {
    if rows.len() <= length {
        monitor.check()?;
        return work(rows);
    }
    let middle = rows.start + (rows.len() / 2).next_multiple_of(length);
    let left = || reduce(rows.start..middle, length, monitor, work, add);
    let right = || reduce(middle..rows.end, length, monitor, work, add);
    let (left, right) = if is_parallel() {
        rayon::join(left, right)
    } else {
        (left(), right())
    };
    let mut sum = left?;
    add(&mut sum, right?);
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_blocks_in_order_and_each_row_is_in_one() {
        for n in [0, 1, 512, 513, 40_000, 100_001] {
            let rows = par_reduce(
                (n, BLOCK_ROWS),
                &Monitor::new(),
                |part| {
                    assert!(part.start % BLOCK_ROWS == 0);
                    Ok(part.collect::<Vec<_>>())
                },
                Vec::extend,
            );
            assert_eq!(rows.expect("not cancelled"), (0..n).collect::<Vec<_>>());
        }
    }
}
