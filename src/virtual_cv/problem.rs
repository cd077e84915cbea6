//! Least-squares problems: rows, targets, weights and penalties.

use std::borrow::Cow;
use std::sync::Arc;

use super::model::Cutoff;
use crate::data::{Dataset, Layout, Targets};
use crate::scaling::FoldScaling;
use crate::{Error, Result};

/// Targets and square roots of weights, in units in which neither their squares nor sums of these
/// overflow or underflow.
pub(super) struct NormalizedTargets<'a> {
    values: Cow<'a, [f64]>,
    n_outputs: usize,
    root_weights: Option<Vec<f64>>,
    /// The unit of y: a power of two.
    pub(super) unit: f64,
    /// The unit of the weights, and so of the penalties: a power of two.
    pub(super) weight_unit: f64,
}

impl<'a> NormalizedTargets<'a> {
    /// The targets and weights of `data`.
    pub(super) fn new(data: &Dataset<'a>) -> Result<Self> {
        let Targets::Values { values, n_outputs } = data.targets() else {
            return Err(Error::Parameter {
                name: "y",
                rule: "numbers",
                value: "classes or nothing".into(),
            });
        };
        let (unit, weight_unit) = (unit(values), data.weights().map_or(1.0, unit));
        let root_weights = data
            .weights()
            .map(|weights| weights.iter().map(|w| (w / weight_unit).sqrt()).collect());
        let values = if unit == 1.0 {
            Cow::Borrowed(values)
        } else {
            values.iter().map(|y| y / unit).collect()
        };
        Ok(Self {
            values,
            n_outputs,
            root_weights,
            unit,
            weight_unit,
        })
    }

    /// Those of some rows, in their order.
    pub(super) fn of_rows(targets: WeightedTargets<'_>, rows: &[usize]) -> Self {
        let values = rows.iter().flat_map(|&row| targets.row(row)).copied();
        let roots = rows.iter().map(|&row| targets.root_weight(row));
        Self {
            values: values.collect(),
            n_outputs: targets.n_outputs,
            root_weights: targets.is_weighted().then(|| roots.collect()),
            unit: 1.0,
            weight_unit: 1.0,
        }
    }

    pub(super) fn view(&self) -> WeightedTargets<'_> {
        WeightedTargets {
            values: &self.values,
            n_outputs: self.n_outputs,
            root_weights: self.root_weights.as_deref(),
        }
    }
}

/// A power of two near the largest of `values`; 1 if that is far from the limits of f64.
fn unit(values: &[f64]) -> f64 {
    let largest = values
        .iter()
        .fold(0.0, |largest: f64, v| largest.max(v.abs()));
    if largest == 0.0 || (1e-50..1e50).contains(&largest) {
        return 1.0;
    }
    largest.log2().round().clamp(-1000.0, 1000.0).exp2()
}

/// A view of [`NormalizedTargets`].
#[derive(Clone, Copy, Debug)]
pub(super) struct WeightedTargets<'a> {
    values: &'a [f64],
    pub(super) n_outputs: usize,
    root_weights: Option<&'a [f64]>,
}

impl<'a> WeightedTargets<'a> {
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
    pub(super) scaling: Option<Arc<FoldScaling>>,
    pub(super) cutoff: Option<Cutoff>,
}

impl RidgePath {
    /// The smallest λ, that of the worst conditioned system.
    pub(super) fn min_alpha(&self) -> f64 {
        self.alphas.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The scaling, if it changes the predictions: an intercept absorbs any shift, and unpenalised
    /// least squares any scale, unless the rows are `rank_deficient`. (A cut-off depends on the scale,
    /// but only in folds with singular values near it, which are refitted.)
    pub(super) fn effective_scaling(&self, rank_deficient: bool) -> Option<&FoldScaling> {
        let depends_on_scale = rank_deficient || self.alphas.iter().any(|&a| a > 0.0);
        self.scaling.as_deref().filter(|s| {
            (s.has_shift() && !self.fit_intercept) || (depends_on_scale && s.has_scale())
        })
    }
}
