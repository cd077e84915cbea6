//! Kernel ridge: the dual form with a precomputed kernel matrix.

use super::collect::{Collector, par_each};
use super::dual::Dual;
use super::eliminate::eliminate_all;
use super::held_out::training_rows;
use super::problem::{LooProblem, Model, WeightedTargets};
use crate::linalg::{self, Mat};
use crate::{Error, Monitor, Resampling, Result};

/// The condition number of K + λI, max |d + λ| / min |d + λ|, that leaves six digits in a refit.
const MAX_CONDITION: f64 = 1e10;

/// A kernel matrix, targets and weights.
#[derive(Debug)]
pub struct KernelProblem<'a> {
    gram: &'a [f64],
    n_rows: usize,
    targets: WeightedTargets<'a>,
}

/// A ridge model without intercept or scaler.
pub(super) fn model(alphas: &[f64]) -> Model {
    Model {
        alphas: alphas.to_vec(),
        fit_intercept: false,
        scaler: None,
    }
}

impl<'a> KernelProblem<'a> {
    /// `gram` holds K(x_i, x_j), row by row; `targets` `n_outputs` values per row.
    pub fn new(
        gram: &'a [f64],
        targets: &'a [f64],
        n_outputs: usize,
        weights: Option<&[f64]>,
    ) -> Result<Self> {
        let n_rows = targets.len() / n_outputs.max(1);
        let targets = WeightedTargets::new(n_rows, targets, n_outputs, weights)?;
        if gram.len() != n_rows * n_rows {
            return Err(Error::Shape {
                what: "K",
                expected: n_rows * n_rows,
                found: gram.len(),
            });
        }
        if let Some(at) = gram.iter().position(|v| !v.is_finite()) {
            return Err(Error::Value {
                place: format!("K[{}, {}]", at / n_rows, at % n_rows),
                value: gram[at],
                rule: "every value must be finite",
            });
        }
        Ok(Self {
            gram,
            n_rows,
            targets,
        })
    }

    /// Fits the training rows of one fold and predicts `test`: one column per row.
    fn refit(
        &self,
        alphas: &[f64],
        train: &[usize],
        test: &[usize],
        fold: usize,
    ) -> Result<Mat<f64>> {
        let has_weight = |row: &&usize| self.targets.root_weight(**row) > 0.0;
        let train: Vec<usize> = train.iter().filter(has_weight).copied().collect();
        let (n, q) = (train.len(), self.targets.n_outputs);
        let value = |i: usize, j: usize| self.gram[i * self.n_rows + j];
        let root = |i: usize| self.targets.root_weight(train[i]);
        let gram = Mat::from_fn(n, n, |i, j| root(i) * root(j) * value(train[i], train[j]));
        let undetermined = || Error::Undetermined {
            fold,
            reason: "alpha is too small for its kernel matrix, which is singular to rounding; \
                     raise alpha"
                .into(),
        };
        let (values, vectors) = linalg::symmetric_eigen(&gram).ok_or_else(undetermined)?;
        for alpha in alphas {
            let sizes = values.iter().map(|d| (d + alpha).abs());
            let largest = sizes.clone().fold(0.0, f64::max);
            if sizes.fold(f64::INFINITY, f64::min) * MAX_CONDITION < largest {
                return Err(undetermined());
            }
        }
        let weighted = Mat::from_fn(n, q, |i, o| root(i) * self.targets.row(train[i])[o]);
        let along = linalg::product(vectors.transpose(), weighted.as_ref());
        let scaled = Mat::from_fn(n, alphas.len() * q, |i, c| {
            along[(i, c % q)] / (values[i] + alphas[c / q])
        });
        let dual = linalg::product(vectors.as_ref(), scaled.as_ref());
        let across = Mat::from_fn(n, test.len(), |i, c| root(i) * value(test[c], train[i]));
        Ok(linalg::product(dual.transpose(), across.as_ref()))
    }
}

impl LooProblem for KernelProblem<'_> {
    fn n_rows(&self) -> usize {
        self.n_rows
    }

    fn targets(&self) -> &WeightedTargets<'_> {
        &self.targets
    }

    fn run<S: Collector>(
        &self,
        model: &Model,
        folds: &dyn Resampling,
        collector: S,
        monitor: &Monitor,
    ) -> Result<S> {
        monitor.expect(folds.n_splits() as u64);
        let refit_fold = |fold: usize, collector: &mut S| {
            let (train, test) = (training_rows(folds, fold), folds.held_out(fold));
            let found = self.refit(&model.alphas, &train, test, fold)?;
            collector.add(fold, found.as_ref());
            Ok(())
        };
        let gram = linalg::row_major(self.gram, self.n_rows, self.n_rows).to_owned();
        match Dual::new(gram, &self.targets, model, monitor)? {
            Some(dual) => eliminate_all(&dual, folds, collector, &refit_fold, monitor),
            None => par_each(folds.n_splits(), collector, monitor, &refit_fold),
        }
    }
}
