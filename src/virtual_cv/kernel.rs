//! Kernel ridge: the dual form with a precomputed kernel matrix.

use super::collect::{Collector, par_each};
use super::dual::{self, Dual};
use super::eliminate::eliminate_all;
use crate::data::{Dataset, Dense, Layout, Rows};
use crate::linalg::{self, Cholesky, Mat};
use crate::linear::{NormalizedTargets, WeightedTargets, training_rows};
use crate::runtime::memory;
use crate::{Error, Monitor, Resampling, Result};

/// The condition number of K + λI, max |d + λ| / min |d + λ|, that leaves six digits in a refit.
const MAX_CONDITION: f64 = 1e10;

/// The number of λ from which one band form is faster than one Cholesky factorisation each.
const MIN_BAND_ALPHAS: usize = 5;

/// The time of the band form of K in Cholesky factorisations of K.
const BAND_FACTORIZATIONS: f64 = 5.0;

/// A kernel matrix, targets and weights.
pub(super) struct KernelProblem<'a> {
    gram: Dense<'a>,
    targets: WeightedTargets<'a>,
}

/// The time of one Cholesky factorisation per fold and λ, in those of K.
fn fold_factorizations(n_alphas: usize, folds: &dyn Resampling) -> f64 {
    let n = folds.n_samples() as f64;
    let share = |fold: usize| training_rows(folds, Some(fold)).len() as f64 / n;
    let cubes: f64 = (0..folds.n_splits()).map(|fold| share(fold).powi(3)).sum();
    n_alphas as f64 * cubes
}

impl<'a> KernelProblem<'a> {
    /// The rows of `data` must be those of a square and dense matrix.
    pub(super) fn new(data: &Dataset<'a>, targets: WeightedTargets<'a>) -> Result<Self> {
        let Rows::Dense(gram) = *data.rows() else {
            return Err(Error::Parameter {
                name: "K",
                rule: "a dense matrix",
                value: "other rows".into(),
            });
        };
        let n = gram.n_rows();
        if gram.n_features() != n {
            return Err(Error::Shape {
                what: "K",
                expected: n * n,
                found: gram.n_stored(),
            });
        }
        Ok(Self { gram, targets })
    }

    /// Passes the predictions of all folds for every λ to `collector`.
    pub(super) fn run<S: Collector>(
        &self,
        alphas: &[f64],
        folds: &dyn Resampling,
        collector: S,
        monitor: &Monitor,
    ) -> Result<S> {
        let (n, k) = (self.gram.n_rows(), folds.n_splits());
        monitor.add_total(k as u64);
        let is_each_fitted = fold_factorizations(alphas.len(), folds) <= BAND_FACTORIZATIONS;
        let fit_fold = |fold: usize, collector: &mut S| {
            let (train, test) = (training_rows(folds, Some(fold)), folds.held_out(fold));
            match self.refit(alphas, &train, test, fold, is_each_fitted, monitor) {
                Ok(found) => collector.add(fold, found.as_ref()),
                Err(error) => collector.reject(error),
            }
        };
        let refit_fold = |fold: usize, collector: &mut S| {
            collector.add_refit(fold);
            fit_fold(fold, collector)
        };
        memory::check_shape::<f64>(format_args!("the band form of K, {n} × {n},"), &[4, n, n])?;
        if is_each_fitted {
            return par_each(k, collector, monitor, &fit_fold);
        }
        let gram = Mat::from_fn(n, n, |i, j| self.gram.row(i)[j]);
        let max_condition = dual::MAX_CONDITION;
        match Dual::new(gram, self.targets, alphas, false, max_condition, monitor)? {
            Some(dual) => eliminate_all(&dual, folds, collector, &refit_fold, monitor),
            None => par_each(k, collector, monitor, &refit_fold),
        }
    }

    /// Fits the training rows of one fold and predicts `test`: one column per row. Those that
    /// `may_be_definite` are tried without eigenvalues first.
    fn refit(
        &self,
        alphas: &[f64],
        train: &[usize],
        test: &[usize],
        fold: usize,
        may_be_definite: bool,
        monitor: &Monitor,
    ) -> Result<Mat<f64>> {
        let has_weight = |row: &&usize| self.targets.root_weight(**row) > 0.0;
        let train: Vec<usize> = train.iter().filter(has_weight).copied().collect();
        let n = train.len();
        let root = |i: usize| self.targets.root_weight(train[i]);
        let what = format_args!("the kernel matrix of the {n} training rows of fold {fold}");
        memory::check_shape::<f64>(what, &[n, n])?;
        let definite = if may_be_definite {
            self.solve_definite(alphas, &train, monitor)?
        } else {
            None
        };
        let dual = match definite {
            Some(dual) => dual,
            None => self.solve_by_eigenvalues(alphas, &train, fold, monitor)?,
        };
        let across = Mat::from_fn(n, test.len(), |i, c| {
            root(i) * self.gram.row(test[c])[train[i]]
        });
        Ok(linalg::product(dual.transpose(), across.as_ref()))
    }

    /// c = (√w·K·√w + λI)⁻¹√w·y of the rows `train`, of positive weight: one column per λ and output.
    /// `None` if the matrix is not positive definite, or c has too few digits.
    fn solve_definite(
        &self,
        alphas: &[f64],
        train: &[usize],
        monitor: &Monitor,
    ) -> Result<Option<Mat<f64>>> {
        let n = train.len();
        let targets = NormalizedTargets::of_rows(self.targets, train);
        let targets = targets.view();
        let gram = Mat::from_fn(n, n, |i, j| self.gram.row(train[i])[train[j]]);
        if alphas.len() >= MIN_BAND_ALPHAS {
            let max_condition = dual::MAX_CONDITION;
            let found = Dual::new(gram, targets, alphas, false, max_condition, monitor)?;
            return Ok(found.map(|dual| dual.coefficients_of_rows()));
        }
        let (root, q) = (|i: usize| targets.root_weight(i), targets.n_outputs);
        let mut found = Mat::zeros(n, alphas.len() * q);
        for (l, alpha) in alphas.iter().enumerate() {
            let system = Mat::from_fn(n, n, |i, j| {
                root(i) * root(j) * gram[(i, j)] + alpha * f64::from(i == j)
            });
            let min_pivot = system.norm_max() / dual::MAX_CONDITION;
            let Some(factor) = Cholesky::new(system, min_pivot, monitor)? else {
                return Ok(None);
            };
            let mut b = Mat::from_fn(n, q, |i, o| root(i) * targets.row(i)[o]);
            factor.solve(&mut b);
            found.get_mut(.., l * q..(l + 1) * q).copy_from(&b);
        }
        Ok(Some(found))
    }

    /// [`KernelProblem::solve_definite`] of any matrix that is not singular.
    fn solve_by_eigenvalues(
        &self,
        alphas: &[f64],
        train: &[usize],
        fold: usize,
        monitor: &Monitor,
    ) -> Result<Mat<f64>> {
        let (n, q) = (train.len(), self.targets.n_outputs);
        let root = |i: usize| self.targets.root_weight(train[i]);
        let gram = Mat::from_fn(n, n, |i, j| {
            root(i) * root(j) * self.gram.row(train[i])[train[j]]
        });
        if !gram.norm_max().is_finite() {
            return Err(Error::Undetermined {
                fold,
                reason: "its weighted kernel matrix overflows; scale K or the weights".into(),
            });
        }
        let undetermined = || Error::Undetermined {
            fold,
            reason: "alpha is too small for its kernel matrix, which is singular to rounding; \
                     raise alpha"
                .into(),
        };
        let found = linalg::symmetric_eigen(gram, monitor)?;
        let (values, vectors) = found.ok_or_else(undetermined)?;
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
        Ok(linalg::product(vectors.as_ref(), scaled.as_ref()))
    }
}
