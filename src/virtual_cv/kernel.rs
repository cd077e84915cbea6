//! Kernel ridge: the dual form with a kernel matrix that the caller made.

use super::dual::{Dual, Targets};
use super::problem::{Cv, Model, check, roots};
use super::sink::{Sink, walk};
use super::{Foldable, eliminate_all};
use crate::linalg::{self, Mat};
use crate::{Error, Monitor, Result};

/// Largest over smallest |d + λ| for which a fold's own system still gives six digits.
const WORST: f64 = 1e10;

/// A kernel matrix, targets and weights.
#[derive(Debug)]
pub struct KernelProblem<'a> {
    gram: &'a [f64],
    n_rows: usize,
    targets: &'a [f64],
    n_outputs: usize,
    root_weights: Option<Vec<f64>>,
}

/// A ridge model without intercept or scaler.
pub(super) fn model(alphas: &[f64]) -> Model {
    Model {
        alphas: alphas.to_vec(),
        intercept: false,
        scaler: None,
    }
}

impl<'a> KernelProblem<'a> {
    /// `gram` holds K(x_i, x_j), row after row; `targets` `n_outputs` values a row.
    pub fn new(
        gram: &'a [f64],
        targets: &'a [f64],
        n_outputs: usize,
        weights: Option<&[f64]>,
    ) -> Result<Self> {
        let n_rows = targets.len() / n_outputs.max(1);
        check(n_rows, targets, n_outputs)?;
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
            n_outputs,
            root_weights: weights.map(|w| roots(n_rows, w)).transpose()?,
        })
    }

    fn root_weight(&self, row: usize) -> f64 {
        self.root_weights.as_ref().map_or(1.0, |w| w[row])
    }

    /// Fits one fold by itself: predictions of `test`, a column a row.
    fn fit(
        &self,
        alphas: &[f64],
        train: &[usize],
        test: &[usize],
        fold: usize,
    ) -> Result<Mat<f64>> {
        let has_weight = |row: &&usize| self.root_weight(**row) > 0.0;
        let train: Vec<usize> = train.iter().filter(has_weight).copied().collect();
        let (n, q) = (train.len(), self.n_outputs);
        let value = |i: usize, j: usize| self.gram[i * self.n_rows + j];
        let root = |i: usize| self.root_weight(train[i]);
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
            if sizes.fold(f64::INFINITY, f64::min) * WORST < largest {
                return Err(undetermined());
            }
        }
        let weighted = Mat::from_fn(n, q, |i, o| root(i) * self.targets[train[i] * q + o]);
        let along = linalg::product(vectors.transpose(), weighted.as_ref());
        let scaled = Mat::from_fn(n, alphas.len() * q, |i, c| {
            along[(i, c % q)] / (values[i] + alphas[c / q])
        });
        let dual = linalg::product(vectors.as_ref(), scaled.as_ref());
        let across = Mat::from_fn(n, test.len(), |i, c| root(i) * value(test[c], train[i]));
        Ok(linalg::product(dual.transpose(), across.as_ref()))
    }
}

impl Foldable for KernelProblem<'_> {
    fn n_rows(&self) -> usize {
        self.n_rows
    }

    fn n_outputs(&self) -> usize {
        self.n_outputs
    }

    fn targets(&self) -> &[f64] {
        self.targets
    }

    fn run<S: Sink>(&self, model: &Model, cv: Cv<'_>, sink: S, monitor: &Monitor) -> Result<S> {
        monitor.expect(cv.n_folds() as u64);
        let hard = |fold: usize, sink: &mut S| {
            let found = self.fit(&model.alphas, &cv.train(fold), cv.test(fold), fold)?;
            sink.take(fold, found.as_ref());
            Ok(())
        };
        let gram = linalg::row_major(self.gram, self.n_rows, self.n_rows).to_owned();
        let targets = Targets {
            values: self.targets,
            n_outputs: self.n_outputs,
            root_weights: self.root_weights.as_deref(),
        };
        match Dual::new(gram, targets, model, monitor)? {
            Some(dual) => eliminate_all(&dual, cv, sink, &hard, monitor),
            None => walk(0..cv.n_folds(), 1, sink, monitor, &|mut folds, sink| {
                folds.try_for_each(|fold| hard(fold, sink))
            }),
        }
    }
}
