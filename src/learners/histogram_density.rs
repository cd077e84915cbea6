//! Histogram density: independent features, each with a histogram of fixed edges.
//!
//! # Problem
//! ln p(x) = Σⱼ ln pⱼ(xⱼ), where feature j has B bins [e₀, e₁), [e₁, e₂), … and
//!
//! > pⱼ(x) = (weight in the bin of x + α) / ((weight of all rows + αB) × width of the bin),
//!
//! and pⱼ(x) = 0 outside the edges: ln p = −∞. Rows outside stay in the weight of all rows, so that
//! the mass inside the edges is that of the rows inside. Edges are fixed beforehand and the same
//! in every fold: edges computed from the data would depend on the rows held out.
//!
//! # Method
//! Only stored values are counted. The other rows have a zero there: their weight is that of all
//! rows less that of the rows that store the feature.
//!
//! # Cost
//! | operation | values |
//! |---|---|
//! | update with a row | stored values of the row (× log2 B to find the bin) |
//! | evaluate m rows | m × 2 × stored values of a row, plus features where some row is not full |
//! | copy, merge | bins of all features |

use std::sync::Arc;

use ndarray::Array1;

use super::learner::{CostModel, Learner};
use super::state::State;
use super::undo::Undo;
use super::{HyperParameters, check_not_negative, hyper_parameters};
use super::{state_methods, update_method};
use crate::data::{Dataset, Examples, Layout, Row, with_layout};
use crate::{Error, Result};

hyper_parameters! {
    /// Hyper-parameters of [`HistogramDensity`].
    #[derive(Clone, PartialEq)]
    pub struct HistogramOptions {
        /// Increasing edges of the bins of each feature.
        edges: Vec<Vec<f64>> = Vec::new();
        /// α, which is added to the weight of every bin.
        smoothing: f64 = 1.0, check_not_negative;
    }
}

/// A density of independent features.
///
/// State: one vector with, for each feature, the weight in each bin and the weight of the rows that
/// store it; one scalar, the weight of all rows.
#[derive(Clone, Debug)]
pub struct HistogramDensity {
    grid: Arc<[Bins]>,
    smoothing: f64,
    state: State,
}

/// The bins of a feature.
#[derive(Debug)]
struct Bins {
    edges: Vec<f64>,
    /// Where its weights begin.
    start: usize,
    /// The bin of the values that are not stored.
    zero: Option<usize>,
}

impl Bins {
    fn new(edges: Vec<f64>, start: usize) -> Self {
        let mut bins = Self {
            edges,
            start,
            zero: None,
        };
        bins.zero = bins.find(0.0);
        bins
    }

    fn len(&self) -> usize {
        self.edges.len() - 1
    }

    /// The bin that holds `value`.
    #[inline(always)]
    fn find(&self, value: f64) -> Option<usize> {
        let bin = self.edges.partition_point(|edge| *edge <= value);
        match bin.checked_sub(1) {
            Some(bin) if bin < self.len() => Some(bin),
            // The last bin is closed.
            Some(bin) if value == self.edges[bin] => Some(bin - 1),
            _ => None,
        }
    }
}

impl HistogramDensity {
    /// A density without rows; α is not negative.
    pub fn new(options: &HistogramOptions) -> Result<Self> {
        options.check()?;
        let edges = &options.edges;
        let mut start = 0;
        let mut grid = Vec::with_capacity(edges.len());
        for (feature, edges) in edges.iter().enumerate() {
            let increasing = edges.windows(2).all(|pair| pair[0] < pair[1]);
            let finite = edges.iter().all(|edge| edge.is_finite());
            if edges.len() < 2 || !increasing || !finite {
                return Err(Error::Parameter {
                    name: "bins",
                    rule: "two or more increasing edges for each feature",
                    value: format!("{edges:?} for feature {feature}"),
                });
            }
            grid.push(Bins::new(edges.clone(), start));
            start += edges.len();
        }
        Ok(Self {
            grid: grid.into(),
            smoothing: options.smoothing,
            state: State::zeros("bins", 1, start, 1)?,
        })
    }

    /// The weight of all rows.
    pub fn weight(&self) -> f64 {
        self.state.scalars()[0]
    }

    /// The density of a feature in each of its bins.
    ///
    /// # Panics
    /// When there is no such feature.
    pub fn densities(&self, feature: usize) -> Array1<f64> {
        let bins = &self.grid[feature];
        (0..bins.len())
            .map(|bin| self.density(bins, Some(bin)))
            .collect()
    }

    /// p of a feature in one of its bins, or outside of them.
    fn density(&self, bins: &Bins, bin: Option<usize>) -> f64 {
        let Some(bin) = bin else {
            return 0.0;
        };
        let counts = &self.state.vector(0)[bins.start..][..bins.edges.len()];
        let (counts, stored) = counts.split_at(bins.len());
        let zeros = if bins.zero == Some(bin) {
            (self.weight() - stored[0]).max(0.0)
        } else {
            0.0
        };
        let weight = counts[bin] + zeros + self.smoothing;
        let all = self.weight() + self.smoothing * bins.len() as f64;
        if weight > 0.0 {
            weight / (all * (bins.edges[bin + 1] - bins.edges[bin]))
        } else {
            0.0
        }
    }

    /// ln p of a row of zeros.
    fn zeros(&self) -> LogDensity {
        let mut sum = LogDensity::default();
        for bins in self.grid.iter() {
            sum.add(self.density(bins, bins.zero), 1.0);
        }
        sum
    }
}

/// A sum of logarithms that can lose terms again, even −∞.
#[derive(Clone, Copy, Debug, Default)]
struct LogDensity {
    finite: f64,
    impossible: f64,
}

impl LogDensity {
    /// Adds ln `density`, or takes it away.
    fn add(&mut self, density: f64, sign: f64) {
        if density > 0.0 {
            self.finite += sign * density.ln();
        } else {
            self.impossible += sign;
        }
    }

    fn value(self) -> f64 {
        if self.impossible > 0.0 {
            f64::NEG_INFINITY
        } else {
            self.finite
        }
    }
}

impl HistogramDensity {
    fn learn<X: Layout, U: Undo>(
        &mut self,
        data: &Examples<'_, X>,
        rows: &[usize],
        undo: &mut U,
    ) -> Result<()> {
        data.check_features(self.grid.len())?;
        if rows.is_empty() {
            return Ok(());
        }
        let (counts, all) = self.state.parts_mut(0);
        undo.save_all(1, 0, all);
        for index in data.prefetched(rows) {
            let weight = data.weight(index);
            for (feature, value) in data.rows().row(index).entries() {
                let bins = &self.grid[feature];
                let stored = bins.start + bins.len();
                undo.save(0, stored, counts[stored]);
                counts[stored] += weight;
                if let Some(bin) = bins.find(value) {
                    undo.save(0, bins.start + bin, counts[bins.start + bin]);
                    counts[bins.start + bin] += weight;
                }
            }
            all[0] += weight;
        }
        Ok(())
    }
}

impl Learner for HistogramDensity {
    fn n_outputs(&self) -> usize {
        1
    }

    fn cost_model(&self, data: &Dataset<'_>) -> CostModel {
        let touched = 2.0 * data.mean_nnz();
        CostModel::logged(touched, touched, &self.state)
    }

    update_method!();

    fn evaluate(&self, data: &Dataset<'_>, rows: &[usize], out: &mut [f64]) -> Result<()> {
        with_layout!(data, |data| {
            let n_features = self.grid.len();
            data.check_features(n_features)?;
            let mut zeros = None;
            for (index, out) in data.prefetched(rows).zip(out) {
                let row = data.rows().row(index);
                let is_full = row.n_stored() == n_features;
                let mut sum = if is_full {
                    LogDensity::default()
                } else {
                    *zeros.get_or_insert_with(|| self.zeros())
                };
                for (feature, value) in row.entries() {
                    let bins = &self.grid[feature];
                    if !is_full {
                        sum.add(self.density(bins, bins.zero), -1.0);
                    }
                    sum.add(self.density(bins, bins.find(value)), 1.0);
                }
                *out = sum.value();
            }
            Ok(())
        })
    }

    fn min_evaluation_rows(&self, data: &Dataset<'_>) -> usize {
        super::rows_worth(self.grid.len() as f64, data.mean_nnz())
    }

    fn outputs_may_be_infinite(&self) -> bool {
        true
    }

    state_methods!();

    fn is_mergeable(&self) -> bool {
        true
    }

    fn merge(&mut self, other: &dyn Learner) -> Result<()> {
        super::add_state::<Self>(&mut self.state, other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_half_open_and_the_last_is_closed() {
        let bins = Bins::new(vec![-1.0, 0.0, 2.0], 0);
        assert_eq!(bins.zero, Some(1));
        let found = [-1.5, -1.0, -0.1, 0.0, 1.9, 2.0, 2.1].map(|value| bins.find(value));
        assert_eq!(
            found,
            [None, Some(0), Some(0), Some(1), Some(1), Some(1), None]
        );
    }
}
