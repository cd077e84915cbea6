//! Products of the rows U with a few columns of parameters, and of Uᵀ with a few columns of values.
//!
//! Panels are row-major: one value of a sparse row is multiplied with as many consecutive numbers as
//! there are columns. Sparse rows are kept transposed as well, so that both products write every number
//! of their result once, whatever the number of threads.

use std::ops::Range;

use ndarray::ArrayView1;
use rayon::prelude::*;

use super::super::design::{BLOCK_ROWS, Design, blocks, map_all};
use crate::data::{Csr, Dataset, Index as _, Layout, Row as _, Rows, with_layout};
use crate::linalg::{Mat, MatMut, add_product, row_major};
use crate::runtime::memory;
use crate::runtime::simd::{self, Simd, WithSimd};
use crate::{Monitor, Result};

/// The most parts of a sum over dense rows.
const MOST_PARTS: usize = 32;

/// Sparse rows by column.
#[derive(Debug)]
pub(super) struct Transposed {
    starts: Vec<i64>,
    rows: Vec<i64>,
    values: Vec<f64>,
    n_rows: usize,
}

impl Transposed {
    /// `None` for dense rows.
    pub(super) fn new(data: &Dataset<'_>) -> Result<Option<Self>> {
        if matches!(data.rows(), Rows::Dense(_)) {
            return Ok(None);
        }
        with_layout!(data, |examples| Ok(Some(Self::of(examples.rows())?)))
    }

    fn of<R: Layout>(rows: &R) -> Result<Self> {
        let n_stored = rows.n_stored();
        memory::check_shape::<f64>(format_args!("transposed rows"), &[2, n_stored])?;
        let mut ends = vec![0_usize; rows.n_features() + 1];
        let all = || (0..rows.n_rows()).flat_map(|i| rows.row(i).entries().map(move |e| (i, e)));
        for (_, (j, _)) in all() {
            ends[j + 1] += 1;
        }
        for j in 0..rows.n_features() {
            ends[j + 1] += ends[j];
        }
        let starts = ends.iter().map(|&end| i64::from_offset(end)).collect();
        let (mut indices, mut values) = (vec![0_i64; n_stored], vec![0.0; n_stored]);
        for (i, (j, value)) in all() {
            (indices[ends[j]], values[ends[j]]) = (i64::from_offset(i), value);
            ends[j] += 1;
        }
        Ok(Self {
            starts,
            rows: indices,
            values,
            n_rows: rows.n_rows(),
        })
    }

    fn view(&self) -> Result<Csr<'_, i64>> {
        Csr::new(
            ArrayView1::from(&self.starts),
            ArrayView1::from(&self.rows),
            ArrayView1::from(&self.values),
            self.n_rows,
        )
    }
}

/// The rows u = (x − c, 1).
pub(super) enum Products<'a> {
    Dense(Design<'a>),
    Sparse {
        data: Dataset<'a>,
        transposed: Csr<'a, i64>,
        /// c = 0.
        centre: Vec<f64>,
    },
}

impl<'a> Products<'a> {
    /// The rows of a data set, which must be finite.
    pub(super) fn new(
        data: &Dataset<'a>,
        transposed: Option<&'a Transposed>,
        monitor: &Monitor,
    ) -> Result<Self> {
        Ok(match transposed {
            None => Self::Dense(Design::new(data, monitor)?),
            Some(transposed) => {
                data.check_finite(monitor)?;
                Self::Sparse {
                    data: *data,
                    transposed: transposed.view()?,
                    centre: vec![0.0; data.n_features()],
                }
            }
        })
    }

    pub(super) fn n_rows(&self) -> usize {
        match self {
            Self::Dense(design) => design.n_rows(),
            Self::Sparse { data, .. } => data.n_rows(),
        }
    }

    /// The number of features.
    pub(super) fn n_features(&self) -> usize {
        self.centre().len()
    }

    pub(super) fn centre(&self) -> &[f64] {
        match self {
            Self::Dense(design) => design.centre(),
            Self::Sparse { centre, .. } => centre,
        }
    }

    /// UΘ, row-major, for the columns `theta`.
    pub(super) fn forward(&self, theta: &[Vec<f64>], monitor: &Monitor) -> Result<Vec<f64>> {
        monitor.check()?;
        let (width, p) = (theta.len(), self.n_features());
        let mut out = vec![0.0; self.n_rows() * width];
        let chunks = out.par_chunks_mut(BLOCK_ROWS * width.max(1)).enumerate();
        match self {
            Self::Dense(design) => {
                let theta = Mat::from_fn(p + 1, width, |j, column| theta[column][j]);
                chunks.try_for_each_init(Vec::new, |buffer, (block, out)| {
                    let first = block * BLOCK_ROWS;
                    let rows = first..first + out.len() / width;
                    let u = design.block(rows.clone(), buffer)?;
                    let out = MatMut::from_row_major_slice_mut(out, rows.len(), width);
                    add_product(out, u, theta.as_ref());
                    Ok(())
                })?;
            }
            Self::Sparse { data, .. } => {
                let last: Vec<f64> = theta.iter().map(|theta| theta[p]).collect();
                let theta = interleave(theta, p);
                with_layout!(data, |examples| {
                    chunks.for_each(|(block, out)| {
                        simd::dispatch(Multiply {
                            rows: examples.rows(),
                            first: block * BLOCK_ROWS,
                            columns: &theta,
                            out: &mut *out,
                            width,
                        });
                        for row in out.chunks_exact_mut(width) {
                            row.iter_mut().zip(&last).for_each(|(z, b)| *z += b);
                        }
                    });
                    Ok(())
                })?;
            }
        }
        Ok(out)
    }

    /// The columns of UᵀR, for a row-major R of `width` columns.
    pub(super) fn adjoint(
        &self,
        values: &[f64],
        width: usize,
        monitor: &Monitor,
    ) -> Result<Vec<Vec<f64>>> {
        monitor.check()?;
        let p = self.n_features();
        match self {
            Self::Dense(design) => {
                let total = self.sum_parts(monitor, |rows| {
                    let mut sum = Mat::<f64>::zeros(p + 1, width);
                    let mut buffer = vec![];
                    for block in blocks(rows) {
                        let own = &values[block.start * width..block.end * width];
                        let u = design.block(block.clone(), &mut buffer)?;
                        let own = row_major(own, block.len(), width);
                        add_product(sum.as_mut(), u.transpose(), own);
                    }
                    Ok(sum)
                })?;
                Ok((0..width).map(|c| total.col_as_slice(c).to_vec()).collect())
            }
            Self::Sparse { transposed, .. } => {
                let mut sums = vec![0.0; p * width];
                let chunks = sums.par_chunks_mut(BLOCK_ROWS * width.max(1)).enumerate();
                chunks.for_each(|(block, out)| {
                    simd::dispatch(Multiply {
                        rows: transposed,
                        first: block * BLOCK_ROWS,
                        columns: values,
                        out,
                        width,
                    });
                });
                let mut last = vec![0.0; width];
                for row in values.chunks_exact(width) {
                    last.iter_mut().zip(row).for_each(|(sum, v)| *sum += v);
                }
                Ok((0..width)
                    .into_par_iter()
                    .map(|c| {
                        let column = sums.iter().skip(c).step_by(width).copied();
                        column.chain([last[c]]).collect()
                    })
                    .collect())
            }
        }
    }

    /// Σ w·f(u) of every column of U.
    pub(super) fn column_sums(
        &self,
        weights: &[f64],
        of: impl Fn(f64) -> f64 + Sync,
        monitor: &Monitor,
    ) -> Result<Vec<f64>> {
        let p = self.n_features();
        match self {
            Self::Dense(design) => {
                let total = self.sum_parts(monitor, |rows| {
                    let mut sum = Mat::<f64>::zeros(p + 1, 1);
                    let mut buffer = vec![];
                    for block in blocks(rows) {
                        let weights = &weights[block.clone()];
                        design.block(block, &mut buffer)?;
                        for (u, w) in buffer.chunks_exact(p + 1).zip(weights) {
                            let sums = sum.col_as_slice_mut(0).iter_mut();
                            sums.zip(u).for_each(|(sum, u)| *sum += w * of(*u));
                        }
                    }
                    Ok(sum)
                })?;
                Ok(total.col_as_slice(0).to_vec())
            }
            Self::Sparse { transposed, .. } => {
                let sum = |j: usize| -> f64 {
                    let entries = transposed.row(j).entries();
                    entries.map(|(i, v)| weights[i] * of(v)).sum()
                };
                let mut sums: Vec<f64> = (0..p).into_par_iter().map(sum).collect();
                sums.push(weights.iter().sum::<f64>() * of(1.0));
                Ok(sums)
            }
        }
    }

    /// Σ v·f(u) of every row of U, with one value v per column.
    pub(super) fn row_sums(
        &self,
        values: &[f64],
        of: impl Fn(f64) -> f64 + Sync,
    ) -> Result<Vec<f64>> {
        let p = self.n_features();
        let mut out = vec![0.0; self.n_rows()];
        let chunks = out.par_chunks_mut(BLOCK_ROWS).enumerate();
        match self {
            Self::Dense(design) => chunks.try_for_each_init(Vec::new, |buffer, (block, out)| {
                let first = block * BLOCK_ROWS;
                design.block(first..first + out.len(), buffer)?;
                for (out, u) in out.iter_mut().zip(buffer.chunks_exact(p + 1)) {
                    *out = u.iter().zip(values).map(|(u, v)| v * of(*u)).sum();
                }
                Ok(())
            })?,
            Self::Sparse { data, .. } => with_layout!(data, |examples| {
                chunks.for_each(|(block, out)| {
                    for (i, out) in out.iter_mut().enumerate() {
                        let entries = examples.rows().row(block * BLOCK_ROWS + i).entries();
                        let sum: f64 = entries.map(|(j, u)| values[j] * of(u)).sum();
                        *out = sum + values[p] * of(1.0);
                    }
                });
                Ok(())
            })?,
        }
        Ok(out)
    }

    /// √w·u of some rows, row-major; those of sparse rows are filled in.
    pub(super) fn weighted_rows(&self, rows: &[usize], weights: &[f64]) -> Result<Vec<f64>> {
        let width = self.n_features() + 1;
        let mut out = vec![];
        match self {
            Self::Dense(design) => {
                design.block(rows.iter().copied(), &mut out)?;
            }
            Self::Sparse { data, .. } => {
                out.resize(rows.len() * width, 0.0);
                with_layout!(data, |examples| {
                    for (out, &row) in out.chunks_exact_mut(width).zip(rows) {
                        out[width - 1] = 1.0;
                        for (j, value) in examples.rows().row(row).entries() {
                            out[j] = value;
                        }
                    }
                    Ok(())
                })?;
            }
        }
        for (out, &row) in out.chunks_exact_mut(width).zip(rows) {
            let root = weights[row].sqrt();
            for u in out {
                *u *= root;
            }
        }
        Ok(out)
    }

    /// The sum of what `work` finds for parts of the rows, in their order.
    fn sum_parts(
        &self,
        monitor: &Monitor,
        work: impl Fn(Range<usize>) -> Result<Mat<f64>> + Sync,
    ) -> Result<Mat<f64>> {
        let n = self.n_rows();
        let length = n.div_ceil(MOST_PARTS).next_multiple_of(BLOCK_ROWS);
        let starts: Vec<usize> = (0..n).step_by(length.max(1)).collect();
        let parts = map_all(&starts, monitor, |&start| {
            work(start..n.min(start + length))
        })?;
        let mut parts = parts.into_iter();
        let first = parts.next().unwrap_or_else(|| Mat::zeros(0, 0));
        Ok(parts.fold(first, |sum, part| sum + part))
    }
}

/// The first `n` values of some columns, row-major.
fn interleave(columns: &[Vec<f64>], n: usize) -> Vec<f64> {
    let width = columns.len();
    let mut out = vec![0.0; n * width];
    let chunks = out.par_chunks_mut(BLOCK_ROWS * width.max(1)).enumerate();
    chunks.for_each(|(block, out)| {
        for (c, column) in columns.iter().enumerate() {
            let values = &column[block * BLOCK_ROWS..];
            let own = out.iter_mut().skip(c).step_by(width);
            own.zip(values).for_each(|(out, value)| *out = *value);
        }
    });
    out
}

/// Products of consecutive rows with `width` columns, row-major.
struct Multiply<'a, R> {
    rows: &'a R,
    first: usize,
    columns: &'a [f64],
    out: &'a mut [f64],
    width: usize,
}

impl<R: Layout> WithSimd for Multiply<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { rows, width, .. } = self;
        for (i, out) in self.out.chunks_exact_mut(width).enumerate() {
            let row = rows.row(self.first + i);
            if width == 1 {
                out[0] = row.dot(simd, self.columns);
                continue;
            }
            let mut done = 0;
            while done < width {
                let columns = &self.columns[done..];
                let out = &mut out[done..];
                done += match width - done {
                    16.. => some_columns::<S, R, 16>(row, columns, width, out),
                    8.. => some_columns::<S, R, 8>(row, columns, width, out),
                    4.. => some_columns::<S, R, 4>(row, columns, width, out),
                    2.. => some_columns::<S, R, 2>(row, columns, width, out),
                    _ => some_columns::<S, R, 1>(row, columns, width, out),
                };
            }
        }
    }
}

/// The products of a row with the first N columns.
#[inline(always)]
fn some_columns<S: Simd, R: Layout, const N: usize>(
    row: R::Row<'_>,
    columns: &[f64],
    width: usize,
    out: &mut [f64],
) -> usize {
    let mut sums = [0.0; N];
    for (j, value) in row.entries() {
        let own = &columns[j * width..][..N];
        for (sum, own) in sums.iter_mut().zip(own) {
            *sum = simd::multiply_add::<S>(value, *own, *sum);
        }
    }
    out[..N].copy_from_slice(&sums);
    N
}
