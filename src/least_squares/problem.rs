//! Rows, targets and weights of linear models.

use std::borrow::Cow;

use crate::data::{Dataset, Layout, Targets};
use crate::{Error, Result};

/// Targets and square roots of weights, in units in which neither their squares nor sums of these
/// overflow or underflow.
pub(crate) struct NormalizedTargets<'a> {
    values: Cow<'a, [f64]>,
    n_outputs: usize,
    root_weights: Option<Vec<f64>>,
    /// The unit of y: a power of two.
    pub(crate) unit: f64,
    /// The unit of the weights, and so of the penalties: a power of two.
    pub(crate) weight_unit: f64,
}

impl<'a> NormalizedTargets<'a> {
    /// The targets and weights of `data`.
    pub(crate) fn new(data: &Dataset<'a>) -> Result<Self> {
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
    pub(crate) fn of_rows(targets: WeightedTargets<'_>, rows: &[usize]) -> Self {
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

    pub(crate) fn view(&self) -> WeightedTargets<'_> {
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
pub(crate) struct WeightedTargets<'a> {
    values: &'a [f64],
    pub(crate) n_outputs: usize,
    root_weights: Option<&'a [f64]>,
}

impl<'a> WeightedTargets<'a> {
    /// y of a row.
    pub(crate) fn row(&self, row: usize) -> &'a [f64] {
        &self.values[row * self.n_outputs..][..self.n_outputs]
    }

    pub(crate) fn is_weighted(&self) -> bool {
        self.root_weights.is_some()
    }

    /// √w of a row.
    pub(crate) fn root_weight(&self, row: usize) -> f64 {
        self.root_weights.map_or(1.0, |w| w[row])
    }

    /// w of a row.
    pub(crate) fn weight(&self, row: usize) -> f64 {
        self.root_weight(row).powi(2)
    }

    /// Returns true if some row has zero weight: it is predicted, but does not affect any fit.
    pub(crate) fn has_zero_weights(&self) -> bool {
        self.root_weights.is_some_and(|w| w.contains(&0.0))
    }
}

/// The rows and targets of a linear model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinearProblem<'a, R> {
    pub(crate) rows: R,
    pub(crate) targets: WeightedTargets<'a>,
}

impl<R: Layout> LinearProblem<'_, R> {
    pub(crate) fn n_rows(&self) -> usize {
        self.rows.n_rows()
    }
}
