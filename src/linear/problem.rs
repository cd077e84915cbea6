//! Rows, targets and weights of linear models.

use std::borrow::Cow;

use super::MIN_KEPT_FRACTION;
use crate::data::{Dataset, Layout, Targets};
use crate::{Error, Result};

/// Targets and square roots of weights, in units in which neither their squares nor sums of these
/// overflow or underflow.
pub(crate) struct NormalizedTargets<'a> {
    values: Cow<'a, [f64]>,
    n_outputs: usize,
    root_weights: Option<Vec<f64>>,
    spreads: Vec<Spread>,
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
        let spreads = Spread::of_outputs(&values, n_outputs, root_weights.as_deref());
        Ok(Self {
            values,
            n_outputs,
            root_weights,
            spreads,
            unit,
            weight_unit,
        })
    }

    /// Those of some rows, in their order.
    pub(crate) fn of_rows(targets: WeightedTargets<'_>, rows: &[usize]) -> Self {
        let values = rows.iter().flat_map(|&row| targets.row(row)).copied();
        let roots = rows.iter().map(|&row| targets.root_weight(row));
        let values: Vec<f64> = values.collect();
        let root_weights: Option<Vec<f64>> = targets.is_weighted().then(|| roots.collect());
        let spreads = Spread::of_outputs(&values, targets.n_outputs, root_weights.as_deref());
        Self {
            values: values.into(),
            n_outputs: targets.n_outputs,
            root_weights,
            spreads,
            unit: 1.0,
            weight_unit: 1.0,
        }
    }

    pub(crate) fn view(&self) -> WeightedTargets<'_> {
        WeightedTargets {
            values: &self.values,
            n_outputs: self.n_outputs,
            root_weights: self.root_weights.as_deref(),
            spreads: &self.spreads,
        }
    }
}

/// How far the targets of one output are from each other.
#[derive(Clone, Copy, Debug)]
struct Spread {
    median: f64,
    /// Σ w(y − median)².
    square: f64,
}

impl Spread {
    fn of_outputs(values: &[f64], n_outputs: usize, roots: Option<&[f64]>) -> Vec<Self> {
        let of_output = |o: usize| {
            let column = || values.iter().skip(o).step_by(n_outputs);
            let median = median(column().copied());
            let root = |i: usize| roots.map_or(1.0, |roots| roots[i]);
            let squares = column().enumerate();
            Self {
                median,
                square: squares.map(|(i, y)| (root(i) * (y - median)).powi(2)).sum(),
            }
        };
        let n_outputs = if values.is_empty() { 0 } else { n_outputs };
        (0..n_outputs).map(of_output).collect()
    }
}

/// The upper median of values, of which there is one at least.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    let middle = sorted.len() / 2;
    *sorted.select_nth_unstable_by(middle, f64::total_cmp).1
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
    spreads: &'a [Spread],
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

    /// The intercepts of constant models of some rows, their weighted means: 0 without an intercept.
    pub(crate) fn means(
        &self,
        rows: impl Iterator<Item = usize> + Clone,
        fit_intercept: bool,
    ) -> Vec<f64> {
        if !fit_intercept {
            return vec![0.0; self.n_outputs];
        }
        let weight: f64 = rows.clone().map(|row| self.weight(row)).sum();
        let mut means = vec![0.0; self.n_outputs];
        for row in rows {
            let part = self.weight(row) / weight;
            for (mean, y) in means.iter_mut().zip(self.row(row)) {
                *mean += part * y;
            }
        }
        means
    }

    /// Returns true if nearly all that the targets differ from their medians is in these rows, so that
    /// sums over all rows have too few digits of the others.
    pub(crate) fn are_mostly_in(&self, rows: &[usize]) -> bool {
        self.spreads.iter().enumerate().any(|(o, spread)| {
            let deviation =
                |&row: &usize| self.root_weight(row) * (self.row(row)[o] - spread.median);
            let held_out: f64 = rows.iter().map(|row| deviation(row).powi(2)).sum();
            held_out > 0.0 && spread.square - held_out < MIN_KEPT_FRACTION * spread.square
        })
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
