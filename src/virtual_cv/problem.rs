//! Least-squares problems: rows, targets, weights and penalties.

use super::model::Scaler;
use crate::data::{Dataset, Layout, Targets};
use crate::{Error, Result};

/// Targets and square roots of the weights.
#[derive(Clone, Copy, Debug)]
pub(super) struct WeightedTargets<'a> {
    values: &'a [f64],
    pub(super) n_outputs: usize,
    root_weights: Option<&'a [f64]>,
}

impl<'a> WeightedTargets<'a> {
    /// The targets of `data`, with √w as [`root_weights`] returns them.
    pub(super) fn new(data: &Dataset<'a>, root_weights: Option<&'a [f64]>) -> Result<Self> {
        let Targets::Values { values, n_outputs } = data.targets() else {
            return Err(Error::Parameter {
                name: "y",
                rule: "numbers",
                value: "classes or nothing".into(),
            });
        };
        Ok(Self {
            values,
            n_outputs,
            root_weights,
        })
    }

    /// The same targets without weights.
    pub(super) fn unweighted(self) -> Self {
        Self {
            root_weights: None,
            ..self
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
        self.root_weights.map_or(1.0, |w| w[row])
    }

    /// w of a row.
    pub(super) fn weight(&self, row: usize) -> f64 {
        self.root_weight(row).powi(2)
    }

    /// Returns true if some row has zero weight: it is predicted, but does not affect any fit.
    pub(super) fn has_zero_weights(&self) -> bool {
        self.root_weights.is_some_and(|w| w.contains(&0.0))
    }
}

/// √w of every row, if there are weights.
pub(super) fn root_weights(data: &Dataset<'_>) -> Option<Vec<f64>> {
    let weights = data.weights()?;
    Some(weights.iter().map(|w| w.sqrt()).collect())
}

/// The rows and targets of a linear model.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinearProblem<'a, R> {
    pub(super) rows: R,
    pub(super) targets: WeightedTargets<'a>,
}

impl<R: Layout> LinearProblem<'_, R> {
    pub(super) fn n_rows(&self) -> usize {
        self.rows.n_rows()
    }
}

/// Linear models that differ in the penalty.
#[derive(Clone, Debug)]
pub(super) struct RidgePath {
    /// Every λ.
    pub(super) alphas: Vec<f64>,
    pub(super) fit_intercept: bool,
    pub(super) scaler: Option<Scaler>,
}

impl RidgePath {
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
