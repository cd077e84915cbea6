//! Means and variances of the columns of every training set of k-fold.
//!
//! # Method
//! Sums of (x − s) and (x − s)² over each fold, with s near the mean of the column; those
//! of a training set are the sums of all folds minus those of the fold. Where nearly all variation of
//! a column is in the fold, the difference has too few digits: that column is computed from the
//! training rows themselves.
//!
//! # Cost
//! One pass over the rows, or two if a sample of rows missed the mean; at most one more for
//! each of the few folds and columns whose difference cancels.

use ndarray::{Array1, Array2};
use rayon::prelude::*;

use super::moments::{MAX_MEAN_OFFSET, sample_mean};
use super::{MIN_KEPT_FRACTION, ROUNDING};
use crate::data::{Dataset, Examples, Layout, Row, with_layout};
use crate::runtime::memory;
use crate::{Folds, Monitor, Resampling as _, Result};

/// Rows summed at a time.
const BLOCK_ROWS: usize = 2048;

/// Moments of the columns: those of all rows first, then those of the training set of each fold.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingMoments {
    /// Σ w.
    pub weights: Array1<f64>,
    /// One row per training set.
    pub means: Array2<f64>,
    /// Σ w(x − mean)²/Σ w: one row per training set.
    pub variances: Array2<f64>,
}

/// The moments of the columns of `data`, by its weights.
pub fn training_moments(
    data: &Dataset<'_>,
    folds: &Folds,
    monitor: &Monitor,
) -> Result<TrainingMoments> {
    data.check_samples(folds.n_samples())?;
    let shape = [4, folds.len() + 1, data.n_features()];
    let what = format_args!("the means of {} training sets", folds.len());
    memory::check_shape::<f64>(what, &shape)?;
    with_layout!(data, |examples| Columns { examples, folds }
        .moments(monitor))
}

struct Columns<'a, 'd, R> {
    examples: &'a Examples<'d, R>,
    folds: &'a Folds,
}

/// Sums over the rows of each fold of w, and by column of w(x − s) and w(x − s)².
struct FoldSums {
    weights: Vec<f64>,
    /// One row per fold: the sums of all columns, then those of the squares.
    sums: Array2<f64>,
}

impl<R: Layout> Columns<'_, '_, R> {
    fn n_features(&self) -> usize {
        self.examples.rows().n_features()
    }

    fn moments(&self, monitor: &Monitor) -> Result<TrainingMoments> {
        let p = self.n_features();
        let mut shift = sample_mean(self.examples.rows());
        let mut sums = self.fold_sums(&shift, monitor)?;
        if sums.is_far_from_mean(&shift) {
            let (weight, total) = sums.total();
            for (shift, sum) in shift.iter_mut().zip(&total[..p]) {
                *shift += sum / weight;
            }
            sums = self.fold_sums(&shift, monitor)?;
        }
        let (weight, total) = sums.total();
        let k = self.folds.len();
        let mut found = TrainingMoments {
            weights: Array1::zeros(k + 1),
            means: Array2::zeros((k + 1, p)),
            variances: Array2::zeros((k + 1, p)),
        };
        for line in 0..=k {
            let own = line.checked_sub(1).map(|fold| sums.sums.row(fold));
            let rest = weight - line.checked_sub(1).map_or(0.0, |fold| sums.weights[fold]);
            found.weights[line] = rest;
            let mut cancelled = vec![];
            for j in 0..p {
                let without = |i: usize| total[i] - own.map_or(0.0, |own| own[i]);
                let offset = without(j) / rest;
                let squares = without(p + j) - rest * offset * offset;
                found.means[(line, j)] = shift[j] + offset;
                let level = (ROUNDING * shift[j]).powi(2);
                let is_constant = total[p + j] <= weight * level;
                found.variances[(line, j)] = if is_constant { 0.0 } else { squares / rest };
                // Also if it is NaN.
                let is_kept = squares >= MIN_KEPT_FRACTION * total[p + j];
                if !is_constant && !is_kept {
                    cancelled.push(j);
                }
            }
            if !cancelled.is_empty() {
                self.recompute(line, &cancelled, &mut found);
            }
            monitor.check()?;
        }
        Ok(found)
    }

    /// The sums of every fold, in an order that does not depend on the threads.
    fn fold_sums(&self, shift: &[f64], monitor: &Monitor) -> Result<FoldSums> {
        let (k, p) = (self.folds.len(), shift.len());
        let mut sums = Array2::zeros((k, 2 * p));
        let mut weights = vec![0.0; k];
        let mut blocks = vec![];
        for fold in 0..k {
            let rows = self.folds.rows(fold..fold + 1);
            blocks.extend(rows.chunks(BLOCK_ROWS).map(|rows| (fold, rows)));
        }
        // A few hundred blocks at a time: their sums are held until they are added.
        for blocks in blocks.chunks(512) {
            monitor.check()?;
            let mut values = vec![0.0; blocks.len() * 2 * p];
            let found: Vec<f64> = values
                .par_chunks_mut((2 * p).max(1))
                .zip(blocks)
                .map(|(out, (_, rows))| self.add_block(rows, shift, out))
                .collect();
            for ((values, weight), &(fold, _)) in
                values.chunks_exact((2 * p).max(1)).zip(found).zip(blocks)
            {
                weights[fold] += weight;
                for (sum, value) in sums.row_mut(fold).iter_mut().zip(values) {
                    *sum += value;
                }
            }
        }
        Ok(FoldSums { weights, sums })
    }

    /// Adds the sums over `rows` to `out`; returns Σ w.
    fn add_block(&self, rows: &[usize], shift: &[f64], out: &mut [f64]) -> f64 {
        let p = shift.len();
        let (sums, squares) = out.split_at_mut(p);
        let mut total = 0.0;
        // By column, the weight of the rows that store it.
        let mut stored = vec![0.0; if R::Row::STORES_ALL { 0 } else { p }];
        for &row in rows {
            let weight = self.examples.weight(row);
            total += weight;
            if let Some(values) = self.examples.rows().values(row) {
                let columns = sums.iter_mut().zip(squares.iter_mut());
                for ((v, s), (sum, square)) in values.iter().zip(shift).zip(columns) {
                    let deviation = v - s;
                    *sum += weight * deviation;
                    *square += weight * deviation * deviation;
                }
                continue;
            }
            for (j, v) in self.examples.rows().row(row).entries() {
                let deviation = v - shift[j];
                sums[j] += weight * deviation;
                squares[j] += weight * deviation * deviation;
                stored[j] += weight;
            }
        }
        for (j, stored) in stored.into_iter().enumerate() {
            let zeros = (total - stored).max(0.0);
            sums[j] -= zeros * shift[j];
            squares[j] += zeros * shift[j] * shift[j];
        }
        total
    }

    /// Means and variances of some columns from the training rows themselves.
    fn recompute(&self, line: usize, columns: &[usize], found: &mut TrainingMoments) {
        let pieces = match line.checked_sub(1) {
            Some(fold) => self.folds.training(fold),
            None => [self.folds.rows(0..self.folds.len()), &[]],
        };
        let rows = || pieces.iter().flat_map(|rows| rows.iter().copied());
        // In the order of the sums below: equal for a column that all rows store.
        let total: f64 = rows().map(|row| self.examples.weight(row)).sum();
        let mut position = vec![usize::MAX; self.n_features()];
        for (at, &j) in columns.iter().enumerate() {
            position[j] = at;
        }
        let mut means = vec![0.0; columns.len()];
        let mut squares = vec![0.0; columns.len()];
        // The mean, then a correction of it together with the squares.
        for round in 0..2 {
            let mut sums = vec![0.0; columns.len()];
            let mut stored = vec![0.0; columns.len()];
            for row in rows() {
                let weight = self.examples.weight(row);
                for (j, v) in self.examples.rows().row(row).entries() {
                    if position[j] == usize::MAX {
                        continue;
                    }
                    let at = position[j];
                    let deviation = v - means[at];
                    sums[at] += weight * deviation;
                    stored[at] += weight;
                    if round == 1 {
                        squares[at] += weight * deviation * deviation;
                    }
                }
            }
            for at in 0..columns.len() {
                let zeros = if R::Row::STORES_ALL {
                    0.0
                } else {
                    (total - stored[at]).max(0.0)
                };
                let sum = sums[at] - zeros * means[at];
                if round == 1 {
                    squares[at] += zeros * means[at] * means[at] - sum * sum / total;
                }
                means[at] += sum / total;
            }
        }
        for (at, &j) in columns.iter().enumerate() {
            found.means[(line, j)] = means[at];
            found.variances[(line, j)] = (squares[at] / total).max(0.0);
        }
    }
}

impl FoldSums {
    /// The sums of all rows.
    fn total(&self) -> (f64, Vec<f64>) {
        let mut total = vec![0.0; self.sums.ncols()];
        for row in self.sums.rows() {
            for (total, value) in total.iter_mut().zip(row) {
                *total += value;
            }
        }
        (self.weights.iter().sum(), total)
    }

    /// Returns true if subtracting the mean of some column would lose too many digits.
    fn is_far_from_mean(&self, shift: &[f64]) -> bool {
        let (weight, total) = self.total();
        let (sums, squares) = total.split_at(shift.len());
        let columns = sums.iter().zip(squares).zip(shift);
        columns.into_iter().any(|((sum, square), shift)| {
            let correction = sum * sum / weight;
            let is_rounding = (sum / weight).abs() <= ROUNDING * shift.abs();
            !is_rounding && correction > MAX_MEAN_OFFSET.powi(2) * (square - correction)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Csr, Index as _, Rows};

    /// Mean and variance of a column of the rows outside `fold`, in two passes.
    fn plain(x: &Array2<f64>, w: &Array1<f64>, folds: &Folds, line: usize, j: usize) -> [f64; 3] {
        let rows: Vec<usize> = match line.checked_sub(1) {
            None => (0..x.nrows()).collect(),
            Some(fold) => folds.training(fold).concat(),
        };
        let total: f64 = rows.iter().map(|&i| w[i]).sum();
        let mean = rows.iter().map(|&i| w[i] * x[(i, j)]).sum::<f64>() / total;
        let squares = rows.iter().map(|&i| w[i] * (x[(i, j)] - mean).powi(2));
        [total, mean, squares.sum::<f64>() / total]
    }

    #[test]
    fn moments_are_those_of_the_training_rows() {
        let n = 60;
        let wave = |i: usize, j: usize| ((i * (j + 2)) as f64).sin();
        let x = Array2::from_shape_fn((n, 6), |(i, j)| match j {
            0 => wave(i, j),
            1 => 1e8 + wave(i, j),
            2 => f64::from(i == 7),             // all variation in one row
            3 => 3.7,                           // constant
            4 => 5.0 + 1e9 * f64::from(i == 8), // constant elsewhere
            _ => wave(i, j) * f64::from(i % 9 == 0),
        });
        let weights = Array1::from_shape_fn(n, |i| 0.25 + (i % 5) as f64);
        let mut ends = vec![0_i64];
        let (mut indices, mut values) = (vec![], vec![]);
        for row in x.rows() {
            for (j, &v) in row.iter().enumerate().filter(|(_, v)| **v != 0.0) {
                indices.push(i64::from_offset(j));
                values.push(v);
            }
            ends.push(i64::from_offset(indices.len()));
        }
        let (ends, indices, values) = (
            Array1::from(ends),
            Array1::from(indices),
            Array1::from(values),
        );
        let sparse = Csr::new(ends.view(), indices.view(), values.view(), 6).expect("valid");
        let ones = Array1::ones(n);
        for k in [2, 5, n] {
            let folds = Folds::shuffled(n, k, 1).expect("valid");
            for weights in [&ones, &weights] {
                let dense = Dataset::dense(x.view()).expect("contiguous");
                for data in [dense, Dataset::new_unchecked(Rows::Csr64(sparse))] {
                    let data = data.with_weights(weights.view()).expect("valid");
                    let found = training_moments(&data, &folds, &Monitor::new()).expect("fits");
                    for (line, j) in (0..=k).flat_map(|line| (0..6).map(move |j| (line, j))) {
                        let [total, mean, variance] = plain(&x, weights, &folds, line, j);
                        assert!((found.weights[line] / total - 1.0).abs() < 1e-12);
                        let error = (found.means[(line, j)] - mean).abs();
                        assert!(error <= 1e-13 * mean.abs().max(1.0), "mean {line} {j}");
                        let error = (found.variances[(line, j)] - variance).abs();
                        let rounding = (1e-14 * mean).powi(2);
                        assert!(
                            error <= 1e-9 * variance + rounding,
                            "variance {line} {j} {error}"
                        );
                    }
                }
            }
        }
    }
}
