//! Consumers of held-out predictions: an array of all, or running sums of squared errors.

use std::ops::Range;

use ndarray::Array2;

use crate::engine::UndeterminedFold;
use crate::linalg::{Mat, MatRef};
use crate::linear::WeightedTargets;
use crate::{Error, Monitor, Resampling, Result};

/// Consumes the predictions of consecutive folds.
pub(super) trait Collector: Send + Sized {
    /// The collectors of the first `n_folds` folds and of the others.
    fn split(self, n_folds: usize) -> (Self, Self);

    /// The collector of two neighboring runs of folds.
    fn join(self, right: Self) -> Self;

    /// Adds the predictions of one fold: one column per test row, λ-major, then output. Those that are
    /// not finite are rejected.
    fn add(&mut self, fold: usize, predictions: MatRef<'_, f64>) -> Result<()> {
        if predictions
            .col_iter()
            .all(|c| c.iter().all(|v| v.is_finite()))
        {
            self.add_finite(fold, predictions);
            return Ok(());
        }
        self.reject(Error::Undetermined {
            fold,
            reason: "its predictions are not finite; scale X, y or the weights".into(),
        })
    }

    /// Adds predictions that are finite.
    fn add_finite(&mut self, fold: usize, predictions: MatRef<'_, f64>);

    /// Receives the error of a fold instead of its predictions; returns it unless it is kept.
    fn reject(&mut self, error: Error) -> Result<()> {
        Err(error)
    }

    /// Is told that a fold is fitted to its training rows alone, because sums over all rows have too
    /// few digits for it.
    fn add_refit(&mut self, _fold: usize) {}

    /// Returns true if sums of squared errors suffice.
    fn needs_errors_only(&self) -> bool {
        false
    }

    /// Adds, in place of predictions, the sums of their squared errors: λ-major, then output.
    fn add_squared_errors(&mut self, _fold: usize, _squares: &[f64]) {}

    /// Returns true if coefficients are collected, too.
    fn needs_coefficients(&self) -> bool {
        false
    }

    /// Adds the coefficients of one fold: one column per λ and output, the intercept last.
    fn add_coefficients(&mut self, _fold: usize, _coefficients: &Mat<f64>) {}
}

/// Calls `leaf` for runs of at most `grain` folds, in parallel, each with its part of `collector`.
/// After a cancellation no run is started.
pub(super) fn par_folds<S: Collector>(
    folds: Range<usize>,
    grain: usize,
    mut collector: S,
    monitor: &Monitor,
    leaf: &(impl Fn(Range<usize>, &mut S) -> Result<()> + Sync),
) -> Result<S> {
    if folds.len() <= grain {
        monitor.check()?;
        let n_folds = folds.len() as u64;
        leaf(folds, &mut collector)?;
        monitor.advance(n_folds)?;
        return Ok(collector);
    }
    let half = (folds.len() / 2).next_multiple_of(grain);
    let middle = folds.start + half;
    let (left, right) = collector.split(half);
    let (left, right) = rayon::join(
        || par_folds(folds.start..middle, grain, left, monitor, leaf),
        || par_folds(middle..folds.end, grain, right, monitor, leaf),
    );
    Ok(left?.join(right?))
}

/// Calls `predict` for every fold, in parallel, with its part of `collector`.
pub(super) fn par_each<S: Collector>(
    n_folds: usize,
    collector: S,
    monitor: &Monitor,
    predict: &(impl Fn(usize, &mut S) -> Result<()> + Sync),
) -> Result<S> {
    par_folds(0..n_folds, 1, collector, monitor, &|mut span, collector| {
        span.try_for_each(|fold| predict(fold, collector))
    })
}

/// Writes predictions and, if needed, coefficients into arrays, in the order of the folds.
pub(super) struct Predictions<'a> {
    /// The first test row of each fold, then their number.
    pub(super) offsets: &'a [usize],
    /// Values per test row and candidate.
    pub(super) n_outputs: usize,
    /// Coefficients per fold and candidate; 0 if they are not needed.
    pub(super) n_coefficients: usize,
    /// The first fold.
    pub(super) first: usize,
    /// One per candidate.
    pub(super) places: Vec<Place<'a>>,
    /// Receives the folds that are undetermined; without it they are an error.
    pub(super) undetermined: Option<Vec<UndeterminedFold>>,
    /// Receives the folds that are fitted to their training rows alone.
    pub(super) refitted: Vec<usize>,
}

/// Where the predictions and coefficients of a candidate go.
pub(super) struct Place<'a> {
    pub(super) outputs: &'a mut [f64],
    pub(super) coefficients: &'a mut [f64],
}

impl Collector for Predictions<'_> {
    fn split(self, n_folds: usize) -> (Self, Self) {
        let middle = self.first + n_folds;
        let n_rows = self.offsets[middle] - self.offsets[self.first];
        let split = self.places.into_iter().map(|place| {
            let (outputs, right_outputs) = place.outputs.split_at_mut(n_rows * self.n_outputs);
            let n_coefficients = n_folds * self.n_coefficients;
            let (coefficients, right_coefficients) =
                place.coefficients.split_at_mut(n_coefficients);
            let left = Place {
                outputs,
                coefficients,
            };
            let right = Place {
                outputs: right_outputs,
                coefficients: right_coefficients,
            };
            (left, right)
        });
        let (places, right_places) = split.unzip();
        let right_undetermined = self.undetermined.as_ref().map(|_| vec![]);
        (
            Self { places, ..self },
            Self {
                first: middle,
                places: right_places,
                undetermined: right_undetermined,
                refitted: vec![],
                ..self
            },
        )
    }

    fn join(mut self, right: Self) -> Self {
        if let Some(undetermined) = &mut self.undetermined {
            undetermined.extend(right.undetermined.into_iter().flatten());
        }
        self.refitted.extend(right.refitted);
        self
    }

    fn reject(&mut self, error: Error) -> Result<()> {
        match (&mut self.undetermined, error) {
            (Some(undetermined), Error::Undetermined { fold, reason }) => {
                undetermined.push(UndeterminedFold { fold, reason });
                Ok(())
            }
            (_, error) => Err(error),
        }
    }

    fn add_refit(&mut self, fold: usize) {
        self.refitted.push(fold);
    }

    fn add_finite(&mut self, fold: usize, predictions: MatRef<'_, f64>) {
        let q = self.n_outputs;
        let start = (self.offsets[fold] - self.offsets[self.first]) * q;
        for (index, place) in self.places.iter_mut().enumerate() {
            let out = place.outputs[start..].chunks_exact_mut(q);
            for (out, column) in out.zip(predictions.col_iter()) {
                for (out, value) in out.iter_mut().zip(column.iter().skip(index * q)) {
                    *out = *value;
                }
            }
        }
    }

    fn needs_coefficients(&self) -> bool {
        self.n_coefficients > 0
    }

    fn add_coefficients(&mut self, fold: usize, coefficients: &Mat<f64>) {
        let (n, q) = (coefficients.nrows(), self.n_outputs);
        for (index, place) in self.places.iter_mut().enumerate() {
            let out = &mut place.coefficients[(fold - self.first) * self.n_coefficients..];
            for (output, out) in out.chunks_exact_mut(n).take(q).enumerate() {
                out.copy_from_slice(coefficients.col_as_slice(index * q + output));
            }
        }
    }
}

/// Mean squared errors over the folds: one row per candidate, one column per output.
#[derive(Clone, Debug, PartialEq)]
pub struct MeanSquaredErrors {
    /// The mean over the folds of each fold's mean squared error.
    pub mean: Array2<f64>,
    /// The standard error of that mean.
    pub standard_error: Array2<f64>,
    /// The sum of the squared errors of all predictions.
    pub total: Array2<f64>,
}

/// Accumulates squared errors; predictions are not stored.
pub(super) struct MseAccumulator<'a> {
    folds: &'a dyn Resampling,
    targets: WeightedTargets<'a>,
    n_folds: f64,
    /// For every λ and output, the mean over the folds of each fold's mean squared error.
    mean: Vec<f64>,
    /// The sum of the squared deviations from that mean.
    spread: Vec<f64>,
    /// The sum of the squared errors of all predictions.
    total: Vec<f64>,
    /// Sums of squared errors of the current fold.
    squares: Vec<f64>,
}

impl<'a> MseAccumulator<'a> {
    pub(super) fn new(
        folds: &'a dyn Resampling,
        targets: WeightedTargets<'a>,
        n_alphas: usize,
    ) -> Self {
        let zeros = vec![0.0; n_alphas * targets.n_outputs];
        Self {
            folds,
            targets,
            n_folds: 0.0,
            mean: zeros.clone(),
            spread: zeros.clone(),
            total: zeros.clone(),
            squares: zeros,
        }
    }

    pub(super) fn finish(self) -> MeanSquaredErrors {
        let (n, q) = (self.n_folds, self.targets.n_outputs);
        let variance_of_mean = |s: &f64| s / ((n - 1.0).max(1.0) * n);
        let standard_error = self.spread.iter().map(|s| variance_of_mean(s).sqrt());
        let by_output = |values: Vec<f64>| {
            let shape = (values.len() / q, q);
            Array2::from_shape_vec(shape, values).expect("one value per λ and output")
        };
        MeanSquaredErrors {
            standard_error: by_output(standard_error.collect()),
            mean: by_output(self.mean),
            total: by_output(self.total),
        }
    }

    /// Welford's update: one more fold, with sums of squared errors over `n_rows` rows.
    fn add_fold(&mut self, squares: &[f64], n_rows: usize) {
        self.n_folds += 1.0;
        let moments = self.mean.iter_mut().zip(&mut self.spread);
        for (((mean, spread), total), square) in moments.zip(&mut self.total).zip(squares) {
            let gap = square / n_rows as f64 - *mean;
            *mean += gap / self.n_folds;
            *spread += gap * (square / n_rows as f64 - *mean);
            *total += square;
        }
    }
}

impl Collector for MseAccumulator<'_> {
    fn split(self, _: usize) -> (Self, Self) {
        let n_alphas = self.mean.len() / self.targets.n_outputs;
        let other = Self::new(self.folds, self.targets, n_alphas);
        (self, other)
    }

    /// Chan's update: the mean and spread of the union of two sets of folds.
    fn join(mut self, right: Self) -> Self {
        let n = self.n_folds + right.n_folds;
        for c in 0..self.mean.len() {
            let gap = right.mean[c] - self.mean[c];
            self.mean[c] += gap * right.n_folds / n;
            self.spread[c] += right.spread[c] + gap * gap * self.n_folds * right.n_folds / n;
            self.total[c] += right.total[c];
        }
        self.n_folds = n;
        self
    }

    fn needs_errors_only(&self) -> bool {
        true
    }

    fn add_squared_errors(&mut self, fold: usize, squares: &[f64]) {
        self.add_fold(squares, self.folds.held_out(fold).len());
    }

    fn add_finite(&mut self, fold: usize, predictions: MatRef<'_, f64>) {
        let rows = self.folds.held_out(fold);
        let mut squares = std::mem::take(&mut self.squares);
        squares.fill(0.0);
        for (column, &row) in predictions.col_iter().zip(rows) {
            let targets = self.targets.row(row).iter().cycle();
            let sums = squares.iter_mut().zip(column.iter());
            for ((sum, prediction), target) in sums.zip(targets) {
                *sum += (target - prediction).powi(2);
            }
        }
        self.add_fold(&squares, rows.len());
        self.squares = squares;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    struct Nowhere;

    impl Collector for Nowhere {
        fn split(self, _: usize) -> (Self, Self) {
            (Self, Self)
        }
        fn join(self, _: Self) -> Self {
            self
        }
        fn add_finite(&mut self, _: usize, _: MatRef<'_, f64>) {}
    }

    #[test]
    fn no_run_is_started_after_a_cancellation() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1);
        let pool = pool.build().expect("a thread");
        for last in [1, 3, 5] {
            let (monitor, started) = (Monitor::new(), AtomicUsize::new(0));
            let leaf = |_, _: &mut Nowhere| {
                if started.fetch_add(1, Ordering::Relaxed) + 1 == last {
                    monitor.cancel();
                }
                Ok(())
            };
            let ended = pool.install(|| par_folds(0..9, 2, Nowhere, &monitor, &leaf));
            assert!(ended.is_err());
            assert_eq!(started.into_inner(), last);
        }
    }
}
