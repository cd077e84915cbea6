//! Weighted second moments of rows and targets, as one symmetric matrix.
//!
//! **Problem.** With a = (x − s, y, 1), Σ w·aaᵀ holds the Gram, the products with the targets, the
//! sums and the total weight. The shift s is near the mean of the columns, so that centring
//! afterwards loses no digits.
//!
//! **Method.** Rows are packed into dense panels and multiplied as matrices; sparse rows are added
//! entry by entry.

use super::problem::LinearProblem;
use crate::data::{Layout, Row};
use crate::linalg::{self, Mat, MatRef};
use crate::{Folds, Monitor, Resampling, Result};

/// Rows that are packed and multiplied at a time.
pub(crate) const PANEL_ROWS: usize = 256;
/// Rows below which work is not split between threads. Fixed, so that sums have one order.
const MIN_SPLIT_ROWS: usize = 16 * PANEL_ROWS;
/// Features per stored value from which sparse arithmetic is faster than dense.
const MIN_SPARSITY: usize = 8;
/// Rows that the first estimate of the mean is computed from.
const MEAN_SAMPLE_ROWS: usize = 1024;
/// Distance from the mean, in standard deviations, from which moments lose too many digits when
/// they are centred.
const MAX_MEAN_OFFSET: f64 = 10.0;

/// An affine map of the columns: x becomes (x − shift)·scale.
#[derive(Clone, Debug)]
pub(crate) struct AffineFrame {
    pub(crate) shift: Vec<f64>,
    pub(crate) scale: Vec<f64>,
}

impl AffineFrame {
    pub(crate) fn identity(n_features: usize) -> Self {
        Self::shifted(vec![0.0; n_features])
    }

    /// x − shift.
    pub(crate) fn shifted(shift: Vec<f64>) -> Self {
        Self {
            scale: vec![1.0; shift.len()],
            shift,
        }
    }

    /// A shift near the mean, from a sample of rows spread over all. Sparse rows are not shifted.
    pub(crate) fn near_mean<R: Layout>(rows: &R) -> Self {
        let mut frame = Self::identity(rows.n_features());
        if is_sparse(rows) {
            return frame;
        }
        let n = rows.n_rows().min(MEAN_SAMPLE_ROWS);
        let part = (n as f64).recip();
        for i in 0..n {
            for (j, v) in rows.row(i * rows.n_rows() / n).entries() {
                frame.shift[j] += v * part;
            }
        }
        frame
    }

    pub(crate) fn is_identity(&self) -> bool {
        self.shift.iter().all(|&s| s == 0.0) && self.scale.iter().all(|&s| s == 1.0)
    }

    /// Writes (x − shift)·scale of the features from `first` on, as many as `out` holds.
    pub(crate) fn write_from<T: Row>(&self, first: usize, row: T, out: &mut [f64]) {
        let columns = self.shift[first..].iter().zip(&self.scale[first..]);
        if row.n_stored() == self.shift.len() {
            let entries = row.entries().skip(first);
            for (((_, v), (shift, scale)), out) in entries.zip(columns).zip(out) {
                *out = (v - shift) * scale;
            }
            return;
        }
        for (out, (shift, scale)) in out.iter_mut().zip(columns) {
            *out = -shift * scale;
        }
        let features = first..first + out.len();
        for (j, v) in row.entries().filter(|e| features.contains(&e.0)) {
            out[j - first] = (v - self.shift[j]) * self.scale[j];
        }
    }

    /// Writes (x − shift)·scale·factor to the start of `out`.
    pub(crate) fn write<T: Row>(&self, row: T, factor: f64, out: &mut [f64]) {
        let columns = self.shift.iter().zip(&self.scale);
        if row.n_stored() == out.len() {
            for (((_, v), (shift, scale)), out) in row.entries().zip(columns).zip(out) {
                *out = (v - shift) * scale * factor;
            }
        } else {
            for (out, (shift, scale)) in out.iter_mut().zip(columns) {
                *out = -shift * scale * factor;
            }
            for (j, v) in row.entries() {
                out[j] = (v - self.shift[j]) * self.scale[j] * factor;
            }
        }
    }
}

/// Returns true if arithmetic on the stored values is faster than dense panels.
pub(crate) fn is_sparse<R: Layout>(rows: &R) -> bool {
    rows.n_stored() * MIN_SPARSITY < rows.n_rows() * rows.n_features()
}

/// A dense copy of a few rows.
pub(crate) struct RowPanel {
    values: Vec<f64>,
    width: usize,
}

impl RowPanel {
    pub(crate) fn new(width: usize) -> Self {
        Self {
            values: vec![0.0; width * PANEL_ROWS],
            width,
        }
    }

    /// Writes each of `rows` and returns them as columns: width × |rows|.
    pub(crate) fn columns(
        &mut self,
        rows: &[usize],
        mut write: impl FnMut(usize, &mut [f64]),
    ) -> MatRef<'_, f64> {
        let used = &mut self.values[..rows.len() * self.width];
        for (out, &row) in used.chunks_exact_mut(self.width).zip(rows) {
            write(row, out);
        }
        linalg::row_major(used, rows.len(), self.width).transpose()
    }
}

/// Second moments of all rows and, if stored, of each fold.
pub(crate) struct Moments {
    pub(crate) frame: AffineFrame,
    pub(crate) all: Mat<f64>,
    pub(crate) folds: Vec<Mat<f64>>,
}

impl Moments {
    /// Mean − shift of column `j`, in the frame's units.
    pub(crate) fn mean_offset(&self, j: usize) -> f64 {
        let last = self.all.nrows() - 1;
        self.all[(last, j)] / self.all[(last, last)]
    }

    /// Σ w.
    pub(crate) fn weight(&self) -> f64 {
        let last = self.all.nrows() - 1;
        self.all[(last, last)]
    }

    /// Returns true if centring column `j` would lose too many digits.
    fn is_far_from_mean(&self, j: usize) -> bool {
        let offset = self.mean_offset(j);
        let correction = self.weight() * offset.powi(2);
        // The offset of a constant column is rounding error; another round would not reduce it.
        let shift = self.frame.shift[j] * self.frame.scale[j];
        let is_rounding = offset.abs() <= 1e-12 * shift.abs();
        let variation = self.all[(j, j)] - correction;
        !is_rounding && correction > MAX_MEAN_OFFSET * MAX_MEAN_OFFSET * variation
    }
}

impl<R: Layout> LinearProblem<'_, R> {
    /// [`LinearProblem::moments`] of all rows.
    pub(crate) fn moments_of_all(
        &self,
        is_centred: bool,
        folds: &dyn Resampling,
        monitor: &Monitor,
    ) -> Result<Option<Moments>> {
        let rows: Vec<usize> = (0..self.n_rows()).collect();
        self.moments(is_centred, &rows, folds.partition(), monitor)
    }

    /// Moments of `rows`, and of the folds if they are a partition of these, in a frame in which they
    /// can be centred; `None` if the columns have no common scale.
    pub(crate) fn moments(
        &self,
        is_centred: bool,
        rows: &[usize],
        folds: Option<&Folds>,
        monitor: &Monitor,
    ) -> Result<Option<Moments>> {
        let p = self.rows.n_features();
        let frame = if is_centred {
            AffineFrame::near_mean(&self.rows)
        } else {
            AffineFrame::identity(p)
        };
        let mut moments = self.moments_in(frame, folds, rows, monitor)?;
        // The sum of squares of a column is 0 if all are, or if they underflow.
        let is_in_range = |d: f64| (1e-200..1e200).contains(&d);
        if !(0..p).all(|j| is_in_range(moments.all[(j, j)])) {
            let Some((unit, _)) = self.unit(&moments.frame, rows) else {
                return Ok(None);
            };
            if unit != 1.0 {
                let frame = AffineFrame {
                    scale: vec![unit; p],
                    ..moments.frame
                };
                moments = self.moments_in(frame, folds, rows, monitor)?;
            }
        }
        if is_centred && (0..p).any(|j| moments.is_far_from_mean(j)) {
            let mut frame = moments.frame.clone();
            for j in 0..p {
                frame.shift[j] += moments.mean_offset(j) / frame.scale[j];
            }
            moments = self.moments_in(frame, folds, rows, monitor)?;
        }
        Ok(Some(moments))
    }

    fn moments_in(
        &self,
        frame: AffineFrame,
        folds: Option<&Folds>,
        rows: &[usize],
        monitor: &Monitor,
    ) -> Result<Moments> {
        let width = self.width();
        // Moments of folds are stored if they are small beside the rows, otherwise formed twice.
        let are_small = |folds: &&Folds| folds.len() * width * 8 < self.n_rows();
        let Some(folds) = folds.filter(are_small) else {
            let all = self.second_moments(&frame, rows, monitor)?;
            return Ok(Moments {
                frame,
                all,
                folds: vec![],
            });
        };
        let mut all = linalg::zeros("second moments", width, width)?;
        let mut each = vec![];
        for fold in 0..folds.len() {
            let own = self.second_moments(&frame, folds.rows(fold..fold + 1), monitor)?;
            all += &own;
            each.push(own);
        }
        Ok(Moments {
            frame,
            all,
            folds: each,
        })
    }

    /// A power of two that brings the largest value of `rows` near 1, or 1 if no square overflows or
    /// underflows; and the largest value of every column. `None` if other columns would underflow.
    pub(crate) fn unit(&self, frame: &AffineFrame, rows: &[usize]) -> Option<(f64, Vec<f64>)> {
        let mut values = vec![0.0; frame.shift.len()];
        let mut sizes = values.clone();
        for &row in rows {
            frame.write(self.rows.row(row), 1.0, &mut values);
            for (size, v) in sizes.iter_mut().zip(&values) {
                *size = v.abs().max(*size);
            }
        }
        let largest = sizes.iter().copied().fold(0.0, f64::max);
        let smallest = sizes
            .iter()
            .filter(|&&s| s > 0.0)
            .copied()
            .fold(largest, f64::min);
        if !largest.is_finite() || smallest < largest * 1e-140 {
            return None;
        }
        if largest == 0.0 || (smallest > 1e-100 && largest < 1e100) {
            return Some((1.0, sizes));
        }
        let unit = largest.log2().round().clamp(-1000.0, 1000.0).exp2().recip();
        Some((unit, sizes))
    }

    /// p + q + 1: the length of a.
    pub(crate) fn width(&self) -> usize {
        self.rows.n_features() + self.targets.n_outputs + 1
    }

    /// √w·a.
    fn write(&self, frame: &AffineFrame, row: usize, out: &mut [f64]) {
        let (x, rest) = out.split_at_mut(self.rows.n_features());
        let root = self.targets.root_weight(row);
        frame.write(self.rows.row(row), root, x);
        for (out, y) in rest.iter_mut().zip(self.targets.row(row)) {
            *out = y * root;
        }
        rest[self.targets.n_outputs] = root;
    }

    /// Σ w·aaᵀ over `rows`, lower triangle.
    pub(crate) fn second_moments(
        &self,
        frame: &AffineFrame,
        rows: &[usize],
        monitor: &Monitor,
    ) -> Result<Mat<f64>> {
        par_sum(rows, self.width(), monitor, &|rows, total| {
            let is_added_sparse = frame.is_identity() && is_sparse(&self.rows);
            let mut panel = RowPanel::new(if is_added_sparse { 0 } else { self.width() });
            for rows in rows.chunks(PANEL_ROWS) {
                // The sum is not used after a cancellation.
                if monitor.check().is_err() {
                    return;
                }
                if is_added_sparse {
                    for &row in rows {
                        self.add_sparse(row, total);
                    }
                    continue;
                }
                let a = panel.columns(rows, |row, out| self.write(frame, row, out));
                linalg::add_outer(total.as_mut(), a);
            }
        })
    }

    fn add_sparse(&self, row: usize, total: &mut Mat<f64>) {
        let (p, w) = (self.rows.n_features(), self.targets.weight(row));
        let rest = self.targets.row(row).iter().copied().chain([1.0]);
        let x = self.rows.row(row);
        for (k, u) in x.entries() {
            for (j, v) in x.entries().skip_while(|e| e.0 < k) {
                total[(j, k)] += w * u * v;
            }
            for (j, v) in rest.clone().enumerate() {
                total[(p + j, k)] += w * u * v;
            }
        }
        for (k, u) in rest.clone().enumerate() {
            for (j, v) in rest.clone().enumerate().skip(k) {
                total[(p + j, p + k)] += w * u * v;
            }
        }
    }
}

/// The sum of what `leaf` adds for blocks of `rows`, in an order independent of the threads.
pub(crate) fn par_sum(
    rows: &[usize],
    width: usize,
    monitor: &Monitor,
    leaf: &(impl Fn(&[usize], &mut Mat<f64>) + Sync),
) -> Result<Mat<f64>> {
    if rows.len() <= MIN_SPLIT_ROWS {
        let mut total = linalg::zeros("second moments", width, width)?;
        leaf(rows, &mut total);
        monitor.check()?;
        return Ok(total);
    }
    let middle = (rows.len() / 2).next_multiple_of(PANEL_ROWS);
    let (left, right) = rows.split_at(middle);
    let (left, right) = rayon::join(
        || par_sum(left, width, monitor, leaf),
        || par_sum(right, width, monitor, leaf),
    );
    let mut total = left?;
    total += right?;
    Ok(total)
}
