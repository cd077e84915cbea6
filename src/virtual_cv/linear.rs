//! The choice of a method for linear models.

use super::collect::{Collector, par_each};
use super::dual::Dual;
use super::eliminate::{eliminate, eliminate_all};
use super::per_fold::PerFold;
use super::primal::Primal;
use super::ridge_path::RidgePath;
use crate::data::Layout;
use crate::linear::{Fitted, LinearProblem, Removed, training_rows};
use crate::runtime::memory;
use crate::{Monitor, Resampling, Result};

/// What the folds share.
enum Method<'a, R> {
    /// Nothing: training rows are factored, because there are too few of them for anything else, or
    /// because what the folds share has too few digits.
    EachFold { for_want_of_digits: bool },
    /// Moments, from which each fold has a decomposition of its own.
    Moments(PerFold<'a, R>),
    /// A factor of the Gram matrix of the rows.
    Dual(Dual<'a>),
    /// Coordinates in which the Gram matrix of the columns is diagonal.
    Primal(Box<Primal<'a, R>>),
}

impl<'a, R: Layout> Method<'a, R> {
    const REFITS: Self = Self::EachFold {
        for_want_of_digits: true,
    };

    /// The method that takes least time, of those that have enough digits.
    fn choose(
        problem: &'a LinearProblem<'a, R>,
        path: &'a RidgePath<'a>,
        folds: &dyn Resampling,
        needs_coefficients: bool,
        monitor: &Monitor,
    ) -> Result<Self> {
        let is_wide = problem.rows.n_features() >= problem.n_rows();
        let is_dual = is_wide && !needs_coefficients;
        problem.check_memory(is_dual)?;
        // Rows of zero weight are predicted, and may lie outside the span of the others.
        let has_zero_weights = problem.targets.has_zero_weights();
        let scaling = path.effective_scaling(is_wide || has_zero_weights);
        let moments = |scaling| {
            if is_dual {
                return Ok(Self::EachFold {
                    for_want_of_digits: false,
                });
            }
            let per_fold = PerFold::new(problem, scaling, path, folds, monitor)?;
            Ok(per_fold.map_or(Self::REFITS, Self::Moments))
        };
        if scaling.is_some() {
            return moments(scaling);
        }
        if folds.n_splits() == 1 && !is_dual {
            return moments(path.model.scaling.as_deref());
        }
        if is_dual && !has_zero_weights {
            let dual = problem.dual(path, monitor)?;
            return Ok(dual.map_or(Self::REFITS, Self::Dual));
        }
        let Some(primal) = Primal::new(problem, path, folds, monitor)? else {
            return Ok(Self::REFITS);
        };
        if primal.min_eigenvalue < 1.0 {
            return Ok(Self::Primal(Box::new(primal)));
        }
        // No fold is known to stay above the cut-off.
        match path.effective_scaling(true) {
            None => Ok(Self::REFITS),
            scaling => moments(scaling),
        }
    }
}

impl<R: Layout> LinearProblem<'_, R> {
    /// Passes the predictions of all folds for every λ to `collector`.
    pub(super) fn run<S: Collector>(
        &self,
        path: &RidgePath<'_>,
        folds: &dyn Resampling,
        collector: S,
        monitor: &Monitor,
    ) -> Result<S> {
        let k = folds.n_splits();
        monitor.add_total(k as u64);
        let fit_fold = |fold: usize, collector: &mut S| {
            let train = training_rows(folds, Some(fold));
            match self.refit(path, &train, fold, monitor) {
                Ok(fitted) => self.emit(&fitted, folds, fold, collector),
                Err(error) => collector.reject(error),
            }
        };
        let refit_fold = |fold: usize, collector: &mut S| {
            collector.add_refit(fold);
            fit_fold(fold, collector)
        };
        let needs_coefficients = collector.needs_coefficients();
        match Method::choose(self, path, folds, needs_coefficients, monitor)? {
            Method::EachFold {
                for_want_of_digits: true,
            } => par_each(k, collector, monitor, &refit_fold),
            Method::EachFold { .. } => par_each(k, collector, monitor, &fit_fold),
            Method::Moments(moments) => {
                par_each(k, collector, monitor, &|fold, collector| match moments
                    .fit(path, folds, fold, monitor)?
                {
                    Some(fitted) => self.emit(&fitted, folds, fold, collector),
                    None => refit_fold(fold, collector),
                })
            }
            Method::Dual(dual) => eliminate_all(&dual, folds, collector, &refit_fold, monitor),
            Method::Primal(primal) => {
                self.run_primal(&primal, folds, collector, &refit_fold, monitor)
            }
        }
    }

    /// Eliminates the rows of small folds, and subtracts the moments of large ones.
    fn run_primal<S: Collector>(
        &self,
        primal: &Primal<'_, R>,
        folds: &dyn Resampling,
        collector: S,
        refit_fold: &(impl Fn(usize, &mut S) -> Result<()> + Sync),
        monitor: &Monitor,
    ) -> Result<S> {
        let (k, n_coordinates) = (folds.n_splits(), primal.n_coordinates());
        let max_removed = (0..k).map(|fold| Removed::count(folds, fold)).max();
        if max_removed.unwrap_or(0) < n_coordinates.max(2) {
            return eliminate_all(primal, folds, collector, refit_fold, monitor);
        }
        par_each(k, collector, monitor, &|fold, collector| {
            if Removed::count(folds, fold) < n_coordinates {
                let span = fold..fold + 1;
                return eliminate(primal, folds, span, collector, refit_fold, monitor);
            }
            let Some(downdated) = primal.downdate(folds, fold, monitor)? else {
                return refit_fold(fold, collector);
            };
            let are_summed = collector.needs_errors_only();
            match are_summed.then(|| downdated.squared_errors()).flatten() {
                Some(squares) => {
                    collector.add_squared_errors(fold, &squares);
                    Ok(())
                }
                None => self.emit(&downdated.fitted, folds, fold, collector),
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
