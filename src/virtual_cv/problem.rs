//! Least-squares problems: rows, targets, weights and models.

use super::collect::Collector;
use crate::data::Layout;
use crate::{Error, Monitor, Resampling, Result};

/// A problem whose folds are predicted from the fit to all rows.
pub(super) trait LooProblem: Sync {
    fn n_rows(&self) -> usize;
    fn targets(&self) -> &WeightedTargets<'_>;
    fn run<S: Collector>(
        &self,
        model: &Model,
        folds: &dyn Resampling,
        collector: S,
        monitor: &Monitor,
    ) -> Result<S>;
}

/// Rows, targets and weights of a least-squares problem.
#[derive(Debug)]
pub struct Problem<'a, R> {
    pub(super) rows: R,
    pub(super) targets: WeightedTargets<'a>,
}

impl<'a, R: Layout> Problem<'a, R> {
    /// `targets` holds `n_outputs` values per row, row by row; weights must not be negative.
    pub fn new(
        rows: R,
        targets: &'a [f64],
        n_outputs: usize,
        weights: Option<&[f64]>,
    ) -> Result<Self> {
        Ok(Self {
            targets: WeightedTargets::new(rows.n_rows(), targets, n_outputs, weights)?,
            rows,
        })
    }

    pub(super) fn n_rows(&self) -> usize {
        self.rows.n_rows()
    }
}

/// Targets and square roots of the weights.
#[derive(Clone, Debug)]
pub(super) struct WeightedTargets<'a> {
    values: &'a [f64],
    pub(super) n_outputs: usize,
    root_weights: Option<Vec<f64>>,
}

impl<'a> WeightedTargets<'a> {
    pub(super) fn new(
        n_rows: usize,
        values: &'a [f64],
        n_outputs: usize,
        weights: Option<&[f64]>,
    ) -> Result<Self> {
        check(n_rows, values, n_outputs)?;
        let root_weights = weights.map(|w| roots(n_rows, w)).transpose()?;
        Ok(Self {
            values,
            n_outputs,
            root_weights,
        })
    }

    /// The same targets without weights.
    pub(super) fn unweighted(&self) -> Self {
        Self {
            root_weights: None,
            ..*self
        }
    }

    /// y of a row.
    pub(super) fn row(&self, row: usize) -> &'a [f64] {
        &self.values[row * self.n_outputs..][..self.n_outputs]
    }

    pub(super) fn is_weighted(&self) -> bool {
        self.root_weights.is_some()
    }

    /// √w of a row.
    pub(super) fn root_weight(&self, row: usize) -> f64 {
        self.root_weights.as_ref().map_or(1.0, |w| w[row])
    }

    /// w of a row.
    pub(super) fn weight(&self, row: usize) -> f64 {
        self.root_weight(row).powi(2)
    }

    /// Returns true if some row has zero weight: it is predicted, but does not affect any fit.
    pub(super) fn has_zero_weights(&self) -> bool {
        self.root_weights.as_ref().is_some_and(|w| w.contains(&0.0))
    }
}

/// Checks that there are `n_outputs` finite targets per row.
fn check(n_rows: usize, targets: &[f64], n_outputs: usize) -> Result<()> {
    if n_outputs == 0 || targets.len() != n_rows * n_outputs {
        return Err(Error::Shape {
            what: "y",
            expected: n_rows * n_outputs.max(1),
            found: targets.len(),
        });
    }
    match targets.iter().position(|v| !v.is_finite()) {
        None => Ok(()),
        Some(at) => Err(Error::Value {
            place: format!("y[{}]", at / n_outputs),
            value: targets[at],
            rule: "every value must be finite",
        }),
    }
}

/// √w, checked.
fn roots(n_rows: usize, weights: &[f64]) -> Result<Vec<f64>> {
    if weights.len() != n_rows {
        return Err(Error::Shape {
            what: "sample_weight",
            expected: n_rows,
            found: weights.len(),
        });
    }
    match weights.iter().position(|w| !(w.is_finite() && *w >= 0.0)) {
        None => Ok(weights.iter().map(|w| w.sqrt()).collect()),
        Some(row) => Err(Error::Value {
            place: format!("sample_weight[{row}]"),
            value: weights[row],
            rule: "weights must be finite and not negative",
        }),
    }
}

/// Ridge regression for every λ of a path.
#[derive(Clone, Debug)]
pub struct Model {
    /// λ of λ‖β‖², one fit each; 0 is ordinary least squares.
    pub alphas: Vec<f64>,
    /// Whether there is an intercept: unpenalised, estimated in every fold.
    pub fit_intercept: bool,
    /// A scaler of the columns, fitted to the training rows of every fold.
    pub scaler: Option<Scaler>,
}

/// scikit-learn's `StandardScaler` in front of the model. It ignores weights.
#[derive(Clone, Copy, Debug)]
pub struct Scaler {
    /// Subtract the mean.
    pub with_mean: bool,
    /// Divide by the standard deviation, unless the column is constant.
    pub with_std: bool,
}

impl Model {
    pub(super) fn check(&self) -> Result<()> {
        match self.alphas.iter().find(|a| !(a.is_finite() && **a >= 0.0)) {
            None if !self.alphas.is_empty() => Ok(()),
            found => Err(Error::Parameter {
                name: "alpha",
                rule: "finite and not negative",
                value: found.map_or("nothing".into(), f64::to_string),
            }),
        }
    }

    /// The smallest λ, that of the worst conditioned system.
    pub(super) fn min_alpha(&self) -> f64 {
        self.alphas.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The scaler, if it changes the predictions: an intercept absorbs any shift, and unpenalised
    /// least squares any scale, unless the rows are `rank_deficient`.
    pub(super) fn effective_scaler(&self, rank_deficient: bool) -> Option<Scaler> {
        let depends_on_scale = rank_deficient || self.alphas.iter().any(|&a| a > 0.0);
        self.scaler
            .filter(|s| (s.with_mean && !self.fit_intercept) || (s.with_std && depends_on_scale))
    }
}

/// Checks that the folds are folds of `n_rows` samples.
pub(super) fn check_folds(folds: &dyn Resampling, n_rows: usize) -> Result<()> {
    if folds.n_samples() == n_rows {
        return Ok(());
    }
    Err(Error::Folds {
        reason: format!("{} samples for {n_rows} rows", folds.n_samples()),
    })
}
