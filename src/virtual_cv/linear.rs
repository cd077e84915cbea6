//! The choice of a method for linear models.

use super::collect::{Collector, par_each};
use super::eliminate::{eliminate, eliminate_all};
use super::per_fold::PerFold;
use super::primal::Primal;
use super::ridge_path::RidgePath;
use crate::data::Layout;
use crate::least_squares::{Fitted, LinearProblem, n_removed, training_rows};
use crate::runtime::memory;
use crate::scaling::FoldScaling;
use crate::{Monitor, Resampling, Result};

impl<R: Layout> LinearProblem<'_, R> {
    /// Passes the predictions of all folds for every λ to `collector`.
    pub(super) fn run<S: Collector>(
        &self,
        path: &RidgePath,
        folds: &dyn Resampling,
        collector: S,
        monitor: &Monitor,
    ) -> Result<S> {
        let k = folds.n_splits();
        monitor.add_total(k as u64);
        let fit_fold = |fold: usize, collector: &mut S| {
            let fitted = self.refit(path, &training_rows(folds, fold), fold, monitor);
            match fitted {
                Ok(fitted) => self.emit(&fitted, folds, fold, collector),
                Err(error) => collector.refuse(error),
            }
        };
        let refit_fold = |fold: usize, collector: &mut S| {
            collector.add_refit(fold);
            fit_fold(fold, collector)
        };
        let (n, p) = (self.n_rows(), self.rows.n_features());
        let is_dual = p >= n && !collector.needs_coefficients();
        self.check_memory(is_dual)?;
        let has_zero_weights = self.targets.has_zero_weights();
        let run_per_fold = |scaling: Option<&FoldScaling>, collector: S| {
            let per_fold = if is_dual {
                None
            } else {
                PerFold::new(self, scaling, path, folds, monitor)?
            };
            par_each(k, collector, monitor, &|fold, collector| {
                if is_dual {
                    return fit_fold(fold, collector);
                }
                let fitted = match &per_fold {
                    Some(per_fold) => per_fold.fit(path, folds, fold, monitor)?,
                    None => None,
                };
                let Some(fitted) = fitted else {
                    return refit_fold(fold, collector);
                };
                self.emit(&fitted, folds, fold, collector)
            })
        };
        // Rows of zero weight are predicted, and may lie outside the span of the others.
        let is_rank_deficient = p >= n || has_zero_weights;
        let scaling = path.effective_scaling(is_rank_deficient);
        if scaling.is_some() {
            return run_per_fold(scaling, collector);
        }
        if k == 1 && !is_dual {
            return run_per_fold(path.scaling.as_deref(), collector);
        }
        if is_dual && !has_zero_weights {
            return match self.dual(path, monitor)? {
                Some(dual) => eliminate_all(&dual, folds, collector, &refit_fold, monitor),
                None => par_each(k, collector, monitor, &refit_fold),
            };
        }
        let Some(primal) = Primal::new(self, path, folds, monitor)? else {
            return par_each(k, collector, monitor, &refit_fold);
        };
        if primal.min_eigenvalue >= 1.0 {
            // No fold is known to stay above the cut-off.
            return match path.effective_scaling(true) {
                Some(scaling) => run_per_fold(Some(scaling), collector),
                None => par_each(k, collector, monitor, &refit_fold),
            };
        }
        let n_coordinates = primal.n_coordinates();
        let max_removed = (0..k).map(|fold| n_removed(folds, fold)).max();
        if max_removed.unwrap_or(0) < n_coordinates.max(2) {
            return eliminate_all(&primal, folds, collector, &refit_fold, monitor);
        }
        par_each(k, collector, monitor, &|fold, collector| {
            if n_removed(folds, fold) < n_coordinates {
                let span = fold..fold + 1;
                return eliminate(&primal, folds, span, collector, &refit_fold, monitor);
            }
            let Some(found) = primal.downdate(folds, fold, monitor)? else {
                return refit_fold(fold, collector);
            };
            let are_summed = collector.needs_errors_only();
            match are_summed.then(|| found.squared_errors()).flatten() {
                Some(squares) => {
                    collector.add_squared_errors(fold, &squares);
                    Ok(())
                }
                None => self.emit(&found.fitted, folds, fold, collector),
            }
        })
    }

    /// Checks the memory of the fit to all rows: a few n × n matrices in the dual form, otherwise p × p.
    pub(super) fn check_memory(&self, is_dual: bool) -> Result<()> {
        let (n, p) = (self.n_rows(), self.rows.n_features());
        let (n_matrices, order) = if is_dual { (4, n) } else { (8, self.width()) };
        let what = format_args!("least squares on X of {n} rows and {p} features");
        memory::check_shape::<f64>(what, &[n_matrices, order, order])?;
        let what = format_args!("the columns of X with {p} features");
        memory::check_shape::<f64>(what, &[8, p])
    }

    /// Passes the predictions of a fitted fold, and its coefficients if needed, to `collector`.
    fn emit<S: Collector>(
        &self,
        fitted: &Fitted,
        folds: &dyn Resampling,
        fold: usize,
        collector: &mut S,
    ) -> Result<()> {
        let predictions = fitted.predict(&self.rows, folds.held_out(fold));
        if collector.needs_coefficients() {
            collector.add_coefficients(fold, &fitted.coefficients());
        }
        collector.add(fold, predictions.as_ref())
    }
}
