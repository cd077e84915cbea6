//! Rows as engines of linear models read them, and products with them.
//!
//! # Problem
//! A row is u = ((x − c)∘s, 1): shifted and scaled by a map that all folds share, with a constant column.
//! Solvers need UΘ, UᵀR and UᵀDU for a few columns, or for all folds together.
//!
//! # Method
//! Rows are copied in blocks, mapped, and multiplied as matrices. Rows of which few values are stored are
//! multiplied as they are, if the map is the identity; then they are kept transposed as well, so that
//! both products write every number of their result once, whatever the number of threads. Panels of
//! these products are row-major: a value is multiplied with as many consecutive numbers as there are
//! columns. Rows on disk are read block by block in every pass, by each thread into a buffer of its own.

use std::ops::Range;

use rayon::prelude::*;

use super::FoldMap;
use super::reduce::{BLOCK_ROWS, MATRIX_ROWS, blocks, par_reduce};
use crate::data::{Csr, Dataset, Index as _, Layout, Row as _, RowBuffer, Rows, with_layout};
use crate::linalg::{Mat, MatMut, MatRef, add_outer, add_product, product, row_major};
use crate::runtime::buffers::BufferPool;
use crate::runtime::memory;
use crate::runtime::simd::{self, Simd, WithSimd};
use crate::{Monitor, Result};

/// The rows of a data set behind a map, with a constant column.
#[derive(Debug)]
pub(crate) struct Design<'a> {
    data: Dataset<'a>,
    map: FoldMap,
    transposed: Option<Transposed>,
    /// Memory for blocks of rows on disk.
    #[cfg_attr(not(feature = "stored"), allow(dead_code))]
    buffers: BufferPool<RowBuffer>,
}

impl<'a> Design<'a> {
    /// The rows behind a map.
    pub(crate) fn new(data: &Dataset<'a>, map: FoldMap) -> Self {
        Self {
            data: *data,
            map,
            transposed: None,
            buffers: BufferPool::default(),
        }
    }

    /// Dense rows about the means of their columns, sparse rows as they are.
    pub(crate) fn centred(data: &Dataset<'a>, monitor: &Monitor) -> Result<Self> {
        let mut design = Self::new(data, FoldMap::identity(data.n_features()));
        if data.is_dense() {
            let n = data.n_rows();
            let mut means = design
                .column_sums(&[vec![1.0; n]], |_, u| u, monitor)?
                .swap_remove(0);
            means.truncate(data.n_features());
            for sum in &mut means {
                *sum /= n.max(1) as f64;
            }
            design.map = FoldMap::shifted(means);
        }
        Ok(design)
    }

    /// The same rows, if they are sparse with a transposed copy for products.
    pub(crate) fn transposed(self) -> Result<Self> {
        let transposed = match self.data.rows() {
            Rows::Dense(_) => None,
            _ => with_layout!(&self.data, |examples| Ok(Some(Transposed::of(
                examples.rows()
            )?)))?,
        };
        Ok(Self { transposed, ..self })
    }

    /// Whether there is a transposed copy.
    pub(crate) fn is_transposed(&self) -> bool {
        self.transposed.is_some()
    }

    /// Calls a function with the row and the value of each stored value of a feature; of transposed rows only.
    #[inline(always)]
    pub(crate) fn for_each_stored(&self, feature: usize, mut with: impl FnMut(usize, f64)) {
        if let Some(transposed) = &self.transposed {
            for (i, v) in transposed.rows().row(feature).entries() {
                with(i, v);
            }
        }
    }

    /// The number of features and 1.
    pub(crate) fn n_columns(&self) -> usize {
        self.n_features() + 1
    }

    pub(crate) fn n_features(&self) -> usize {
        self.map.n_features()
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.data.n_rows()
    }

    /// The map that all folds share.
    pub(crate) fn map(&self) -> &FoldMap {
        &self.map
    }

    /// Writes u of some rows, each to as many values of `out` as the width says: what there is room for.
    pub(crate) fn write(
        &self,
        rows: impl Iterator<Item = usize>,
        width: usize,
        out: &mut [f64],
    ) -> Result<()> {
        #[cfg(feature = "stored")]
        if let Rows::Stored(stored) = self.data.rows() {
            let rows: Vec<usize> = rows.collect();
            let idle = self.buffers.acquire();
            let mut block = idle.unwrap_or_else(|| stored.rows.new_block());
            let positions = stored.rows.gather(&rows, &mut block)?;
            let data = Dataset::new_unchecked(block.view());
            self.write_from(&data, positions.into_iter(), width, out)?;
            self.buffers.release(block);
            return Ok(());
        }
        self.write_from(&self.data, rows, width, out)
    }

    /// Writes rows of a data set in memory.
    fn write_from(
        &self,
        data: &Dataset<'_>,
        rows: impl Iterator<Item = usize>,
        width: usize,
        out: &mut [f64],
    ) -> Result<()> {
        with_layout!(data, |examples| {
            simd::dispatch(Write {
                rows: *examples.rows(),
                order: rows,
                map: &self.map,
                width,
                out,
            });
            Ok(())
        })
    }

    /// u of some rows, one after the other, in `buffer`.
    pub(crate) fn block<'b>(
        &self,
        rows: impl ExactSizeIterator<Item = usize>,
        buffer: &'b mut Vec<f64>,
    ) -> Result<MatRef<'b, f64>> {
        let (n, width) = (rows.len(), self.n_columns());
        buffer.resize(n * width, 0.0);
        self.write(rows, width, buffer)?;
        Ok(row_major(buffer, n, width))
    }

    /// UᵀR, where `derive` computes a block of R from the same block of UΘ: rows are read once.
    pub(crate) fn fused_gradient(
        &self,
        theta: MatRef<'_, f64>,
        monitor: &Monitor,
        derive: impl Fn(Range<usize>, MatRef<'_, f64>, MatMut<'_, f64>) + Sync,
    ) -> Result<Mat<f64>> {
        let part = |rows: Range<usize>| {
            let mut sum = Mat::zeros(theta.nrows(), theta.ncols());
            let mut buffer = vec![];
            let mut residuals = Mat::zeros(0, 0);
            for block in blocks(rows) {
                let n = block.len();
                if residuals.nrows() != n {
                    residuals = Mat::zeros(n, theta.ncols());
                }
                let u = self.block(block.clone(), &mut buffer)?;
                let predictors = product(u, theta);
                derive(block, predictors.as_ref(), residuals.as_mut());
                add_product(sum.as_mut(), u.transpose(), residuals.as_ref());
            }
            Ok(sum)
        };
        par_reduce((self.n_rows(), BLOCK_ROWS), monitor, part, |sum, part| {
            *sum += part;
        })
    }

    /// UΘ, row-major, for the columns `theta`.
    pub(crate) fn forward(&self, theta: &[Vec<f64>], monitor: &Monitor) -> Result<Vec<f64>> {
        monitor.check()?;
        let (width, p) = (theta.len(), self.n_features());
        let mut out = vec![0.0; self.n_rows() * width];
        let chunks = out.par_chunks_mut(BLOCK_ROWS * width.max(1)).enumerate();
        if self.transposed.is_none() {
            let theta = Mat::from_fn(p + 1, width, |j, column| theta[column][j]);
            chunks.try_for_each_init(Vec::new, |buffer, (block, out)| {
                let first = block * BLOCK_ROWS;
                let rows = first..first + out.len() / width;
                let u = self.block(rows.clone(), buffer)?;
                let out = MatMut::from_row_major_slice_mut(out, rows.len(), width);
                add_product(out, u, theta.as_ref());
                Ok(())
            })?;
            return Ok(out);
        }
        let constants: Vec<f64> = theta.iter().map(|theta| theta[p]).collect();
        let theta = interleave(theta, p);
        with_layout!(&self.data, |examples| {
            chunks.for_each(|(block, out)| {
                simd::dispatch(Multiply {
                    rows: examples.rows(),
                    first: block * BLOCK_ROWS,
                    columns: &theta,
                    out: &mut *out,
                    width,
                });
                for row in out.chunks_exact_mut(width) {
                    row.iter_mut().zip(&constants).for_each(|(z, b)| *z += b);
                }
            });
            Ok(())
        })?;
        Ok(out)
    }

    /// The columns of UᵀR, for a row-major R of `width` columns.
    pub(crate) fn adjoint(
        &self,
        values: &[f64],
        width: usize,
        monitor: &Monitor,
    ) -> Result<Vec<Vec<f64>>> {
        monitor.check()?;
        let p = self.n_features();
        let Some(transposed) = &self.transposed else {
            let part = |rows: Range<usize>| {
                let mut sum = Mat::<f64>::zeros(p + 1, width);
                let mut buffer = vec![];
                for block in blocks(rows) {
                    let values = &values[block.start * width..block.end * width];
                    let u = self.block(block.clone(), &mut buffer)?;
                    let values = row_major(values, block.len(), width);
                    add_product(sum.as_mut(), u.transpose(), values);
                }
                Ok(sum)
            };
            let sum = par_reduce((self.n_rows(), BLOCK_ROWS), monitor, part, |sum, part| {
                *sum += part;
            })?;
            return Ok((0..width).map(|c| sum.col_as_slice(c).to_vec()).collect());
        };
        let rows = &transposed.rows();
        let mut sums = vec![0.0; p * width];
        let chunks = sums.par_chunks_mut(BLOCK_ROWS * width.max(1)).enumerate();
        chunks.for_each(|(block, out)| {
            simd::dispatch(Multiply {
                rows,
                first: block * BLOCK_ROWS,
                columns: values,
                out,
                width,
            });
        });
        let mut constants = vec![0.0; width];
        for row in values.chunks_exact(width) {
            constants.iter_mut().zip(row).for_each(|(sum, v)| *sum += v);
        }
        let column = |c: usize| {
            let features = sums.iter().skip(c).step_by(width).copied();
            features.chain([constants[c]]).collect()
        };
        Ok((0..width).into_par_iter().map(column).collect())
    }

    /// Σ w·f(j, u) of every column j of U, for each of some vectors of weights.
    pub(crate) fn column_sums(
        &self,
        weights: &[Vec<f64>],
        of: impl Fn(usize, f64) -> f64 + Sync,
        monitor: &Monitor,
    ) -> Result<Vec<Vec<f64>>> {
        let width = self.n_columns();
        if let Some(transposed) = &self.transposed {
            let rows = transposed.rows();
            let sums = |weights: &Vec<f64>| -> Vec<f64> {
                let sum = |j: usize| -> f64 {
                    let entries = rows.row(j).entries();
                    entries.map(|(i, v)| weights[i] * of(j, v)).sum()
                };
                let mut sums: Vec<f64> = (0..width - 1).into_par_iter().map(sum).collect();
                sums.push(weights.iter().sum::<f64>() * of(width - 1, 1.0));
                sums
            };
            return Ok(weights.iter().map(sums).collect());
        }
        let part = |rows: Range<usize>| {
            let mut sums = vec![vec![0.0; width]; weights.len()];
            let mut buffer = vec![];
            for block in blocks(rows) {
                self.block(block.clone(), &mut buffer)?;
                for row in buffer.chunks_exact_mut(width) {
                    for (j, u) in row.iter_mut().enumerate() {
                        *u = of(j, *u);
                    }
                }
                for (sums, weights) in sums.iter_mut().zip(weights) {
                    let weights = &weights[block.clone()];
                    for (values, weight) in buffer.chunks_exact(width).zip(weights) {
                        sums.iter_mut()
                            .zip(values)
                            .for_each(|(sum, u)| *sum += weight * u);
                    }
                }
            }
            Ok(sums)
        };
        par_reduce((self.n_rows(), BLOCK_ROWS), monitor, part, |sums, part| {
            let values = sums.iter_mut().flatten().zip(part.iter().flatten());
            values.for_each(|(sum, part)| *sum += part);
        })
    }

    /// Σ v·f(u) of every row of U, with one value v per column.
    pub(crate) fn row_sums(
        &self,
        values: &[f64],
        of: impl Fn(f64) -> f64 + Sync,
    ) -> Result<Vec<f64>> {
        let p = self.n_features();
        let mut out = vec![0.0; self.n_rows()];
        let chunks = out.par_chunks_mut(BLOCK_ROWS).enumerate();
        if self.transposed.is_none() {
            chunks.try_for_each_init(Vec::new, |buffer, (block, out)| {
                let first = block * BLOCK_ROWS;
                self.block(first..first + out.len(), buffer)?;
                for (out, u) in out.iter_mut().zip(buffer.chunks_exact(p + 1)) {
                    *out = u.iter().zip(values).map(|(u, v)| v * of(*u)).sum();
                }
                Ok(())
            })?;
            return Ok(out);
        }
        with_layout!(&self.data, |examples| {
            chunks.for_each(|(block, out)| {
                for (i, out) in out.iter_mut().enumerate() {
                    let entries = examples.rows().row(block * BLOCK_ROWS + i).entries();
                    let sum: f64 = entries.map(|(j, u)| values[j] * of(u)).sum();
                    *out = sum + values[p] * of(1.0);
                }
            });
            Ok(())
        })?;
        Ok(out)
    }

    /// Σ w·uuᵀ over all rows; the lower triangle. Rows without weight are not read.
    pub(crate) fn gram(&self, weights: &[f64], monitor: &Monitor) -> Result<Mat<f64>> {
        let width = self.n_columns();
        memory::check_shape::<f64>(format_args!("a Gram matrix"), &[4, width, width])?;
        let part = |rows: Range<usize>| {
            let mut sum = Mat::zeros(width, width);
            let mut buffer = vec![];
            for block in blocks(rows) {
                let rows: Vec<usize> = block.filter(|&row| weights[row] != 0.0).collect();
                self.block(rows.iter().copied(), &mut buffer)?;
                for (u, &row) in buffer.chunks_exact_mut(width).zip(&rows) {
                    let root = weights[row].sqrt();
                    for u in u {
                        *u *= root;
                    }
                }
                let weighted = row_major(&buffer, rows.len(), width);
                add_outer(sum.as_mut(), weighted.transpose());
            }
            Ok(sum)
        };
        par_reduce((self.n_rows(), MATRIX_ROWS), monitor, part, |sum, part| {
            *sum += part;
        })
    }
}

/// Writes rows behind a map, with a one behind their features where there is room for it.
struct Write<'a, X, I> {
    rows: X,
    order: I,
    map: &'a FoldMap,
    width: usize,
    out: &'a mut [f64],
}

impl<X: Layout, I: Iterator<Item = usize>> WithSimd for Write<'_, X, I> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let p = self.map.n_features();
        for (out, row) in self.out.chunks_exact_mut(self.width).zip(self.order) {
            let (features, rest) = out.split_at_mut(p);
            if let Some(constant) = rest.first_mut() {
                *constant = 1.0;
            }
            self.map.write(&self.rows, row, features);
        }
    }
}

/// Sparse rows by column.
#[derive(Debug)]
struct Transposed {
    starts: Vec<i64>,
    indices: Vec<i64>,
    values: Vec<f64>,
    n_rows: usize,
}

impl Transposed {
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
            indices,
            values,
            n_rows: rows.n_rows(),
        })
    }

    /// The columns as rows.
    fn rows(&self) -> Csr<'_, i64> {
        Csr::new_unchecked(&self.starts, &self.indices, &self.values, self.n_rows)
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
            let out = out.iter_mut().skip(c).step_by(width);
            out.zip(values).for_each(|(out, value)| *out = *value);
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
        let columns = &columns[j * width..][..N];
        for (sum, column) in sums.iter_mut().zip(columns) {
            *sum = simd::multiply_add::<S>(value, *column, *sum);
        }
    }
    out[..N].copy_from_slice(&sums);
    N
}
