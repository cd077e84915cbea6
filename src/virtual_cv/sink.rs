//! Where held-out predictions go: into an array, or into running sums of squared errors.

use std::ops::Range;

use super::problem::Cv;
use crate::linalg::{Mat, MatRef};
use crate::{Monitor, Result};

/// Receives the predictions of a run of consecutive folds.
pub(super) trait Sink: Send + Sized {
    /// The sink of the first `n_folds` folds, and that of the others.
    fn split(self, n_folds: usize) -> (Self, Self);

    /// What the sinks of two neighbouring runs hold together.
    fn join(self, right: Self) -> Self;

    /// Takes the predictions of one fold: a column a test row, in it λ after λ, output after output.
    fn take(&mut self, fold: usize, predictions: MatRef<'_, f64>);

    /// Whether sums of squared errors will do.
    fn wants_errors_only(&self) -> bool {
        false
    }

    /// Takes, in place of predictions, the sums of their squared errors: λ after λ, output after
    /// output.
    fn take_squared_errors(&mut self, _fold: usize, _squares: &[f64]) {}

    /// Whether coefficients are wanted too.
    fn wants_coefficients(&self) -> bool {
        false
    }

    /// Takes the coefficients of one fold: a column a λ and output, the intercept last.
    fn take_coefficients(&mut self, _fold: usize, _coefficients: &Mat<f64>) {}
}

/// Calls `leaf` with runs of at most `grain` folds, in parallel, each with its part of `sink`.
/// Once the work is cancelled, no run is begun.
pub(super) fn walk<S: Sink>(
    folds: Range<usize>,
    grain: usize,
    mut sink: S,
    monitor: &Monitor,
    leaf: &(impl Fn(Range<usize>, &mut S) -> Result<()> + Sync),
) -> Result<S> {
    if folds.len() <= grain {
        monitor.check()?;
        let n_folds = folds.len() as u64;
        leaf(folds, &mut sink)?;
        monitor.advance(n_folds)?;
        return Ok(sink);
    }
    let half = (folds.len() / 2).next_multiple_of(grain);
    let middle = folds.start + half;
    let (left, right) = sink.split(half);
    let (left, right) = rayon::join(
        || walk(folds.start..middle, grain, left, monitor, leaf),
        || walk(middle..folds.end, grain, right, monitor, leaf),
    );
    Ok(left?.join(right?))
}

/// Predictions and, where asked for, coefficients, fold after fold.
#[derive(Debug, Default)]
pub(super) struct Store<'a> {
    pub(super) offsets: &'a [usize],
    /// Values a test row.
    pub(super) width: usize,
    /// Coefficients a fold; 0 when none are wanted.
    pub(super) n_coefficients: usize,
    pub(super) first: usize,
    pub(super) predictions: &'a mut [f64],
    pub(super) coefficients: &'a mut [f64],
}

impl Sink for Store<'_> {
    fn split(self, n_folds: usize) -> (Self, Self) {
        let middle = self.first + n_folds;
        let n_rows = self.offsets[middle] - self.offsets[self.first];
        let (left, right) = self.predictions.split_at_mut(n_rows * self.width);
        let (left_c, right_c) = self
            .coefficients
            .split_at_mut(n_folds * self.n_coefficients);
        (
            Self {
                predictions: left,
                coefficients: left_c,
                ..self
            },
            Self {
                first: middle,
                predictions: right,
                coefficients: right_c,
                ..self
            },
        )
    }

    fn join(self, _: Self) -> Self {
        // Both halves have been written to where they belong.
        Self::default()
    }

    fn take(&mut self, fold: usize, predictions: MatRef<'_, f64>) {
        let start = (self.offsets[fold] - self.offsets[self.first]) * self.width;
        let out = self.predictions[start..].chunks_exact_mut(self.width);
        for (out, column) in out.zip(predictions.col_iter()) {
            for (out, value) in out.iter_mut().zip(column.iter()) {
                *out = *value;
            }
        }
    }

    fn wants_coefficients(&self) -> bool {
        self.n_coefficients > 0
    }

    fn take_coefficients(&mut self, fold: usize, coefficients: &Mat<f64>) {
        let out = &mut self.coefficients[(fold - self.first) * self.n_coefficients..];
        let n = coefficients.nrows();
        for (c, out) in out
            .chunks_exact_mut(n)
            .take(coefficients.ncols())
            .enumerate()
        {
            out.copy_from_slice(coefficients.col_as_slice(c));
        }
    }
}

/// Mean squared errors over the folds, for every λ and output.
#[derive(Clone, Debug)]
pub struct Errors {
    /// Folds so far.
    n_folds: f64,
    /// The mean over the folds of each fold's mean squared error.
    pub mean: Vec<f64>,
    /// The sum of the squared deviations from that mean.
    spread: Vec<f64>,
    /// The squared errors of all predictions, summed.
    pub total: Vec<f64>,
}

impl Errors {
    /// The standard error of [`Errors::mean`].
    pub fn standard_error(&self) -> Vec<f64> {
        let n = self.n_folds;
        let variance_of_mean = |s: &f64| s / ((n - 1.0).max(1.0) * n);
        self.spread
            .iter()
            .map(|s| variance_of_mean(s).sqrt())
            .collect()
    }

    /// Welford's update: one more fold, with these sums of squared errors over `n_rows` rows.
    fn add(&mut self, squares: &[f64], n_rows: f64) {
        self.n_folds += 1.0;
        let moments = self.mean.iter_mut().zip(&mut self.spread);
        for (((mean, spread), total), square) in moments.zip(&mut self.total).zip(squares) {
            let gap = square / n_rows - *mean;
            *mean += gap / self.n_folds;
            *spread += gap * (square / n_rows - *mean);
            *total += square;
        }
    }

    /// Chan's update: the mean and spread of two groups together.
    fn merge(&mut self, other: &Self) {
        let n = self.n_folds + other.n_folds;
        if n == 0.0 {
            return;
        }
        for c in 0..self.mean.len() {
            let gap = other.mean[c] - self.mean[c];
            self.mean[c] += gap * other.n_folds / n;
            self.spread[c] += other.spread[c] + gap * gap * self.n_folds * other.n_folds / n;
            self.total[c] += other.total[c];
        }
        self.n_folds = n;
    }
}

/// Sums squared errors; needs no memory for the predictions.
#[derive(Debug)]
pub(super) struct Sums<'a> {
    pub(super) cv: Cv<'a>,
    pub(super) targets: &'a [f64],
    pub(super) n_outputs: usize,
    pub(super) errors: Errors,
    /// Those of the fold at hand.
    squares: Vec<f64>,
}

impl<'a> Sums<'a> {
    pub(super) fn new(cv: Cv<'a>, targets: &'a [f64], n_outputs: usize, width: usize) -> Self {
        let errors = Errors {
            n_folds: 0.0,
            mean: vec![0.0; width],
            spread: vec![0.0; width],
            total: vec![0.0; width],
        };
        Self {
            cv,
            targets,
            n_outputs,
            errors,
            squares: vec![0.0; width],
        }
    }
}

impl Sink for Sums<'_> {
    fn split(self, _: usize) -> (Self, Self) {
        let twin = Self::new(
            self.cv,
            self.targets,
            self.n_outputs,
            self.errors.mean.len(),
        );
        (self, twin)
    }

    fn join(mut self, right: Self) -> Self {
        self.errors.merge(&right.errors);
        self
    }

    fn wants_errors_only(&self) -> bool {
        true
    }

    fn take_squared_errors(&mut self, fold: usize, squares: &[f64]) {
        self.errors.add(squares, self.cv.test(fold).len() as f64);
    }

    fn take(&mut self, fold: usize, predictions: MatRef<'_, f64>) {
        let rows = self.cv.test(fold);
        self.squares.fill(0.0);
        for (column, &row) in predictions.col_iter().zip(rows) {
            let targets = &self.targets[row * self.n_outputs..][..self.n_outputs];
            let sums = self.squares.iter_mut().zip(column.iter());
            for ((sum, prediction), target) in sums.zip(targets.iter().cycle()) {
                *sum += (target - prediction).powi(2);
            }
        }
        self.errors.add(&self.squares, rows.len() as f64);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    struct Nowhere;

    impl Sink for Nowhere {
        fn split(self, _: usize) -> (Self, Self) {
            (Self, Self)
        }
        fn join(self, _: Self) -> Self {
            self
        }
        fn take(&mut self, _: usize, _: MatRef<'_, f64>) {}
    }

    #[test]
    fn no_run_is_begun_after_the_end() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1);
        let pool = pool.build().expect("a thread");
        for last in [1, 3, 5] {
            let (monitor, begun) = (Monitor::new(), AtomicUsize::new(0));
            let leaf = |_, _: &mut Nowhere| {
                if begun.fetch_add(1, Ordering::Relaxed) + 1 == last {
                    monitor.cancel();
                }
                Ok(())
            };
            let ended = pool.install(|| walk(0..9, 2, Nowhere, &monitor, &leaf));
            assert!(ended.is_err());
            assert_eq!(begun.into_inner(), last);
        }
    }
}
