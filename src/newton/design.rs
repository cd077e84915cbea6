//! Rows as the passes read them: centred, with a constant column, in blocks.

use std::ops::Range;

use crate::data::{Dataset, Layout, Row as _, Rows, with_layout};
use crate::linalg::{MatRef, row_major};
use crate::runtime::simd::{self, Simd, WithSimd};
use crate::{Monitor, Result};

/// Rows of a block: with a hundred columns, a block stays in the second-level cache.
pub(super) const BLOCK_ROWS: usize = 512;

/// Fewest and most parts into which a pass over the rows is divided. It depends on the number of rows
/// alone, so that sums have the same bits for any number of threads.
const MOST_PARTS: usize = 64;

/// u = (x − c, 1) of every row x, with the means of dense columns as c, and c = 0 for sparse rows.
#[derive(Debug)]
pub(super) struct Design<'a> {
    data: Dataset<'a>,
    centre: Vec<f64>,
}

impl<'a> Design<'a> {
    pub(super) fn new(data: &Dataset<'a>, monitor: &Monitor) -> Result<Self> {
        data.check_finite(monitor)?;
        let mut design = Self {
            data: *data,
            centre: vec![0.0; data.n_features()],
        };
        if matches!(data.rows(), Rows::Dense(_)) {
            design.centre = design.means(monitor)?;
        }
        Ok(design)
    }

    /// The number of features and 1.
    pub(super) fn n_columns(&self) -> usize {
        self.centre.len() + 1
    }

    pub(super) fn n_rows(&self) -> usize {
        self.data.n_rows()
    }

    pub(super) fn centre(&self) -> &[f64] {
        &self.centre
    }

    fn means(&self, monitor: &Monitor) -> Result<Vec<f64>> {
        let p = self.centre.len();
        let sums = map_parts(self.n_rows(), monitor, |rows| {
            let mut sum = vec![0.0; p + 1];
            let mut buffer = vec![];
            for block in blocks(rows) {
                let u = self.block(block, &mut buffer)?;
                for i in 0..u.nrows() {
                    for (j, sum) in sum.iter_mut().enumerate() {
                        *sum += u[(i, j)];
                    }
                }
            }
            Ok(sum)
        })?;
        let n = self.n_rows().max(1) as f64;
        Ok((0..p)
            .map(|j| sums.iter().map(|sum| sum[j]).sum::<f64>() / n)
            .collect())
    }

    /// u of some rows, one after the other, in `buffer`.
    pub(super) fn block<'b>(
        &self,
        rows: impl ExactSizeIterator<Item = usize>,
        buffer: &'b mut Vec<f64>,
    ) -> Result<MatRef<'b, f64>> {
        let (n, width) = (rows.len(), self.n_columns());
        buffer.resize(n * width, 0.0);
        with_layout!(&self.data, |examples| {
            simd::dispatch(Fill {
                rows: *examples.rows(),
                order: rows,
                centre: &self.centre,
                out: buffer,
            });
            Ok(())
        })?;
        Ok(row_major(buffer, n, width))
    }
}

struct Fill<'a, X, I> {
    rows: X,
    order: I,
    centre: &'a [f64],
    out: &'a mut [f64],
}

impl<X: Layout, I: Iterator<Item = usize>> WithSimd for Fill<'_, X, I> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let width = self.centre.len() + 1;
        for (out, row) in self.out.chunks_exact_mut(width).zip(self.order) {
            let (features, last) = out.split_at_mut(width - 1);
            last[0] = 1.0;
            if let Some(values) = self.rows.values(row) {
                for ((out, x), c) in features.iter_mut().zip(values).zip(self.centre) {
                    *out = x - c;
                }
            } else {
                features.fill(0.0);
                for (feature, value) in self.rows.row(row).entries() {
                    features[feature] = value;
                }
            }
        }
    }
}

/// The blocks of a range of rows.
pub(super) fn blocks(rows: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = rows.end;
    rows.step_by(BLOCK_ROWS)
        .map(move |start| start..end.min(start + BLOCK_ROWS))
}

/// What `work` finds for each part of `0..n`, in their order; parts are divided among threads.
pub(super) fn map_parts<T: Send>(
    n: usize,
    monitor: &Monitor,
    work: impl Fn(Range<usize>) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let length = n
        .div_ceil(MOST_PARTS)
        .next_multiple_of(BLOCK_ROWS)
        .max(BLOCK_ROWS);
    let parts: Vec<Range<usize>> = (0..n)
        .step_by(length)
        .map(|start| start..n.min(start + length))
        .collect();
    map_all(&parts, monitor, |part| work(part.clone()))
}

/// What `work` finds for each item, in their order; items are divided among threads.
pub(super) fn map_all<I: Sync, T: Send>(
    items: &[I],
    monitor: &Monitor,
    work: impl Fn(&I) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    use rayon::prelude::*;

    let one = |item: &I| monitor.check().and_then(|()| work(item));
    if crate::runtime::threads::is_parallel() {
        items.par_iter().map(one).collect()
    } else {
        items.iter().map(one).collect()
    }
}
