//! Weighted second moments of rows and targets, as one symmetric matrix.
//!
//! # Problem
//! With a = (x − s, y, 1), Σ w·aaᵀ holds the Gram, the products with the targets, the
//! sums and the total weight. The shift s is near the mean of the columns, so that centring
//! afterwards loses no digits.
//!
//! # Method
//! Rows are packed into dense panels and multiplied as matrices; sparse rows are added
//! entry by entry.

use std::ops::Range;

use super::problem::LinearProblem;
use super::{FoldMap, MATRIX_ROWS, MIN_KEPT_FRACTION, Removed, par_reduce, training_rows};
use crate::data::{Layout, Row};
use crate::linalg::{self, Mat, MatRef};
use crate::{Folds, Monitor, Resampling, Result};

/// Rows that are packed and multiplied at a time.
pub(crate) const PANEL_ROWS: usize = 256;
/// Features per stored value from which sparse arithmetic is faster than dense.
const MIN_SPARSITY: usize = 8;
/// Rows that the first estimate of the mean is computed from.
const MEAN_SAMPLE_ROWS: usize = 1024;
/// Distance from the mean, in standard deviations, from which moments lose too many digits when
/// they are centred.
pub(super) const MAX_MEAN_OFFSET: f64 = 10.0;

/// A shift near the mean, from a sample of rows spread over all. Sparse rows are not shifted.
pub(crate) fn near_mean<R: Layout>(rows: &R) -> FoldMap {
    if is_sparse(rows) {
        return FoldMap::identity(rows.n_features());
    }
    FoldMap::shifted(sample_mean(rows))
}

/// The mean of some rows spread over all.
pub(super) fn sample_mean<R: Layout>(rows: &R) -> Vec<f64> {
    let n = rows.n_rows().min(MEAN_SAMPLE_ROWS);
    let part = (n as f64).recip();
    let mut mean = vec![0.0; rows.n_features()];
    for i in 0..n {
        for (j, v) in rows.row(i * rows.n_rows() / n).entries() {
            mean[j] += v * part;
        }
    }
    mean
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
    pub(crate) map: FoldMap,
    pub(crate) all: Mat<f64>,
    pub(crate) folds: Vec<Mat<f64>>,
}

impl Moments {
    /// Mean − shift of column `j`, in the units of the map.
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
        let shift = self.map.shift(j) * self.map.scale(j);
        let is_rounding = offset.abs() <= 1e-12 * shift.abs();
        let variation = self.all[(j, j)] - correction;
        !is_rounding && correction > MAX_MEAN_OFFSET * MAX_MEAN_OFFSET * variation
    }
}

/// Second moments of a training set.
pub(crate) struct DowndatedMoments {
    pub(crate) train: Mat<f64>,
    /// Those of the rows that the fold removes, if they were subtracted.
    pub(crate) removed: Option<Mat<f64>>,
}

impl<R: Layout> LinearProblem<'_, R> {
    /// Moments of the training set of a fold behind the map of those of all rows: the difference of those
    /// of all rows and of the few that are removed, or, if it has too few digits, from the training rows.
    pub(crate) fn training_moments(
        &self,
        moments: &Moments,
        folds: &dyn Resampling,
        fold: usize,
        monitor: &Monitor,
    ) -> Result<DowndatedMoments> {
        let removed = Removed::new(folds, fold);
        if removed.are_few(folds.n_samples()) || folds.partition().is_some() {
            let of_removed = match moments.folds.get(fold) {
                Some(stored) => stored.clone(),
                None => self.second_moments(&moments.map, &removed.rows, monitor)?,
            };
            let train = &moments.all - &of_removed;
            let is_kept = |j| train[(j, j)] >= MIN_KEPT_FRACTION * moments.all[(j, j)];
            if (0..train.nrows()).all(is_kept) {
                return Ok(DowndatedMoments {
                    train,
                    removed: Some(of_removed),
                });
            }
        }
        let rows = training_rows(folds, Some(fold));
        Ok(DowndatedMoments {
            train: self.second_moments(&moments.map, &rows, monitor)?,
            removed: None,
        })
    }

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

    /// Moments of `rows`, and of the folds if they are a partition of these, behind a map in which they
    /// can be centred; `None` if the columns have no common scale.
    pub(crate) fn moments(
        &self,
        is_centred: bool,
        rows: &[usize],
        folds: Option<&Folds>,
        monitor: &Monitor,
    ) -> Result<Option<Moments>> {
        let p = self.rows.n_features();
        let map = if is_centred {
            near_mean(&self.rows)
        } else {
            FoldMap::identity(p)
        };
        let mut moments = self.moments_behind(map, folds, rows, monitor)?;
        // The sum of squares of a column is 0 if all are, or if they underflow.
        let is_in_range = |d: f64| (1e-200..1e200).contains(&d);
        if !(0..p).all(|j| is_in_range(moments.all[(j, j)])) {
            let Some((unit, _)) = self.unit(&moments.map, rows) else {
                return Ok(None);
            };
            if unit != 1.0 {
                let map = moments.map.with_scale(vec![unit; p]);
                moments = self.moments_behind(map, folds, rows, monitor)?;
            }
        }
        if is_centred && (0..p).any(|j| moments.is_far_from_mean(j)) {
            let offset = |j: usize| moments.mean_offset(j) / moments.map.scale(j);
            let shift = (0..p).map(|j| moments.map.shift(j) + offset(j)).collect();
            let map = moments.map.clone().with_shift(shift);
            moments = self.moments_behind(map, folds, rows, monitor)?;
        }
        Ok(Some(moments))
    }

    fn moments_behind(
        &self,
        map: FoldMap,
        folds: Option<&Folds>,
        rows: &[usize],
        monitor: &Monitor,
    ) -> Result<Moments> {
        let width = self.width();
        // Moments of folds are stored if they are small beside the rows, otherwise formed twice.
        let are_small = |folds: &&Folds| folds.len() * width * 8 < self.n_rows();
        let Some(folds) = folds.filter(are_small) else {
            let all = self.second_moments(&map, rows, monitor)?;
            return Ok(Moments {
                map,
                all,
                folds: vec![],
            });
        };
        let mut all = linalg::zeros("second moments", width, width)?;
        let mut each = vec![];
        for fold in 0..folds.len() {
            let moments = self.second_moments(&map, folds.rows(fold..fold + 1), monitor)?;
            all += &moments;
            each.push(moments);
        }
        Ok(Moments {
            map,
            all,
            folds: each,
        })
    }

    /// A power of two that brings the largest value of `rows` near 1, or 1 if no square overflows or
    /// underflows; and the largest value of every column. `None` if other columns would underflow.
    pub(crate) fn unit(&self, map: &FoldMap, rows: &[usize]) -> Option<(f64, Vec<f64>)> {
        let mut values = vec![0.0; map.n_features()];
        let mut sizes = values.clone();
        for &row in rows {
            map.write(&self.rows, row, &mut values);
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
    fn write(&self, map: &FoldMap, row: usize, out: &mut [f64]) {
        let (x, rest) = out.split_at_mut(self.rows.n_features());
        let root = self.targets.root_weight(row);
        map.write(&self.rows, row, x);
        if root != 1.0 {
            for x in x {
                *x *= root;
            }
        }
        for (out, y) in rest.iter_mut().zip(self.targets.row(row)) {
            *out = y * root;
        }
        rest[self.targets.n_outputs] = root;
    }

    /// Σ w·aaᵀ over `rows`, lower triangle.
    pub(crate) fn second_moments(
        &self,
        map: &FoldMap,
        rows: &[usize],
        monitor: &Monitor,
    ) -> Result<Mat<f64>> {
        let is_added_sparse = map.is_identity() && is_sparse(&self.rows);
        let width = if is_added_sparse { 0 } else { self.width() };
        let part = |part: Range<usize>| {
            let mut total = linalg::zeros("second moments", self.width(), self.width())?;
            let mut panel = RowPanel::new(width);
            for rows in rows[part].chunks(PANEL_ROWS) {
                monitor.check()?;
                if is_added_sparse {
                    for &row in rows {
                        self.add_sparse(row, &mut total);
                    }
                    continue;
                }
                let a = panel.columns(rows, |row, out| self.write(map, row, out));
                linalg::add_outer(total.as_mut(), a);
            }
            Ok(total)
        };
        par_reduce((rows.len(), MATRIX_ROWS), monitor, part, |total, part| {
            *total += part;
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
