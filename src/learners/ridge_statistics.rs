//! Ridge regression by its sufficient statistics.
//!
//! # Problem
//! min over β, b of Σ wᵢ‖yᵢ − βxᵢ − b‖² + α‖β‖², with one row of β for each output. The intercept b,
//! where wanted, is not penalised.
//!
//! # Method
//! The [scatter](super::scatter) of (x, y), about the means with an intercept and about zero
//! without. Evaluating solves (Sₓₓ + αI)βᵀ = Sₓᵧ by a new Cholesky factor, so that no error
//! accumulates; b = ȳ − βx̄. Merging adds.
//!
//! # Cost
//! For p features and q outputs:
//!
//! | operation | values |
//! |---|---|
//! | update with a row | p(p + q)/2; without intercept p × stored values |
//! | evaluate m rows | p²(p/6 + q) multiplications, plus m × stored values of a row × q |
//! | copy, merge | (p + q)²/2 |
//!
//! With few features and large folds this is the cheapest way to cross-validate ridge regression
//! one row at a time; for leave-one-out, p³/6 per leaf is more than the closed forms need.

use std::ops::Range;

use ndarray::Array1;

use super::hyper_parameters;
use super::learner::{CostModel, Fitted, Learner, same_type};
use super::linear::linear_attributes;
use super::scatter::{Centering, Scatter, densify};
use super::state::State;
use super::undo::Undo;
use super::{state_methods, update_method};
use crate::data::{Dataset, Examples, Layout, Row, with_layout};
use crate::linalg::packed;
use crate::runtime::memory;
use crate::runtime::simd::{self, Simd, WithSimd};
use crate::{Error, Result};

/// Sums of squares with all their digits.
const SQUARES: Range<f64> = 1e-300..1e307;

hyper_parameters! {
    /// Hyper-parameters of ridge regression.
    #[derive(Clone, Copy, PartialEq)]
    pub struct RidgeOptions {
        /// α, the strength of the regularisation.
        alpha: f64 = 1.0;
        /// Whether there is an intercept.
        fit_intercept: bool = true;
    }
}

impl RidgeOptions {
    pub(super) fn centering(self) -> Centering {
        if self.fit_intercept {
            Centering::Means
        } else {
            Centering::Zero
        }
    }
}

/// Ridge regression that keeps sums of squares and products.
///
/// State: one vector, the scatter of (x, y).
#[derive(Clone, Debug)]
pub struct RidgeStatistics {
    options: RidgeOptions,
    n_features: usize,
    n_outputs: usize,
    state: State,
}

impl RidgeStatistics {
    /// A regression of `n_outputs` values that has learnt nothing; α is not negative.
    pub fn new(options: RidgeOptions, n_features: usize, n_outputs: usize) -> Result<Self> {
        super::check_not_negative("alpha", options.alpha)?;
        super::check_domain(
            n_outputs > 0,
            "columns of y",
            "at least 1",
            n_outputs as f64,
        )?;
        let mut model = Self {
            options,
            n_features,
            n_outputs,
            state: State::default(),
        };
        let what = format_args!("ridge regression on X with {n_features} features");
        model.state = State::zeros(what, 1, model.scatter().len(), 0)?;
        Ok(model)
    }

    /// The weights and the intercept of each output.
    pub fn weights(&self) -> Result<Vec<(Array1<f64>, f64)>> {
        memory::check::<f64>("the Cholesky factor of XᵀX", self.state.len() as u64)?;
        let triangle = self.scatter().triangle(self.state.vector(0));
        for (feature, square) in packed::diagonal(triangle, self.n_features).enumerate() {
            let total = square + self.options.alpha;
            if total != 0.0 && !SQUARES.contains(&total) {
                return Err(Error::Value {
                    place: format!("the sum of squares of feature {feature}"),
                    value: square,
                    rule: "it overflows or underflows; scale the features or the weights",
                });
            }
        }
        simd::dispatch(Solve(self)).ok_or_else(|| Error::Parameter {
            name: "alpha",
            rule: "large enough to make XᵀX + alpha·I of the training rows positive definite",
            value: self.options.alpha.to_string(),
        })
    }

    fn scatter(&self) -> Scatter {
        Scatter {
            n: self.n_features + self.n_outputs,
            centering: self.options.centering(),
        }
    }
}

struct Solve<'a>(&'a RidgeStatistics);

impl WithSimd for Solve<'_> {
    type Output = Option<Vec<(Array1<f64>, f64)>>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
        let Self(model) = self;
        let (p, scatter) = (model.n_features, model.scatter());
        let mut l = scatter.triangle(model.state.vector(0)).to_vec();
        packed::add_diagonal(&mut l, p, model.options.alpha);
        // The rows of y stand below those of x and come out as L⁻¹Sₓᵧ.
        packed::cholesky(simd, &mut l, p)?;
        let (x_means, y_means) = scatter.means(model.state.vector(0)).split_at(p);
        let outputs = y_means.iter().enumerate().map(|(output, y_mean)| {
            let mut weights = l[packed::len(p + output)..][..p].to_vec();
            packed::solve_lower_transposed(simd, &l, &mut weights);
            let intercept = y_mean - simd::dot(simd, &weights, x_means);
            (weights.into(), intercept)
        });
        Some(outputs.collect())
    }
}

impl RidgeStatistics {
    fn learn<X: Layout, U: Undo>(
        &mut self,
        data: &Examples<'_, X>,
        rows: &[usize],
        undo: &mut U,
    ) -> Result<()> {
        data.check_features(self.n_features)?;
        let values = data.values(self.n_outputs)?;
        if !rows.is_empty() {
            let scatter = self.scatter();
            let vector = self.state.vector_mut(0);
            undo.save_all(0, 0, vector);
            simd::dispatch(Update {
                scatter,
                vector,
                data,
                values,
                rows,
            });
        }
        Ok(())
    }
}

impl Learner for RidgeStatistics {
    fn n_outputs(&self) -> usize {
        self.n_outputs
    }

    fn cost_model(&self, _: &Dataset<'_>) -> CostModel {
        let touched = self.state.len() as f64;
        CostModel::logged(touched, touched, &self.state)
    }

    update_method!();

    fn evaluate(&self, data: &Dataset<'_>, rows: &[usize], out: &mut [f64]) -> Result<()> {
        with_layout!(data, |data| {
            data.check_features(self.n_features)?;
            simd::dispatch(Predict {
                weights: &self.weights()?,
                data,
                rows,
                out,
            });
            Ok(())
        })
    }

    fn min_evaluation_rows(&self, data: &Dataset<'_>) -> usize {
        let (p, q) = (self.n_features as f64, self.n_outputs as f64);
        super::rows_worth(p * p * (p / 6.0 + q), q * data.mean_nnz())
    }

    state_methods!();

    fn is_mergeable(&self) -> bool {
        true
    }

    fn merge(&mut self, other: &dyn Learner) -> Result<()> {
        let other: &Self = same_type(other)?;
        simd::dispatch(Merge {
            scatter: self.scatter(),
            vector: self.state.vector_mut(0),
            other: other.state.vector(0),
        });
        Ok(())
    }

    fn fitted(&self) -> Result<Fitted> {
        Ok(linear_attributes(
            self.weights()?.into_iter(),
            self.n_features,
        ))
    }
}

struct Update<'a, 'd, X> {
    scatter: Scatter,
    vector: &'a mut [f64],
    data: &'a Examples<'d, X>,
    values: &'a [f64],
    rows: &'a [usize],
}

impl<X: Layout> WithSimd for Update<'_, '_, X> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { scatter, data, .. } = self;
        let p = data.rows().n_features();
        let q = scatter.n - p;
        let mut z = vec![0.0; scatter.n];
        for index in data.prefetched(self.rows) {
            densify(data.rows().row(index), &mut z);
            z[p..].copy_from_slice(&self.values[index * q..][..q]);
            scatter.add(simd, self.vector, &mut z, data.weight(index));
        }
    }
}

/// Linear predictions: for each output its weights and intercept.
pub(super) struct Predict<'a, 'd, R> {
    pub(super) weights: &'a [(Array1<f64>, f64)],
    pub(super) data: &'a Examples<'d, R>,
    pub(super) rows: &'a [usize],
    pub(super) out: &'a mut [f64],
}

impl<R: Layout> WithSimd for Predict<'_, '_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let slice = |(weights, intercept): &'_ (Array1<f64>, f64)| (weights.to_vec(), *intercept);
        let outputs: Vec<_> = self.weights.iter().map(slice).collect();
        let outs = self.out.chunks_exact_mut(outputs.len());
        for (index, outs) in self.data.prefetched(self.rows).zip(outs) {
            let row = self.data.rows().row(index);
            for (out, (weights, intercept)) in outs.iter_mut().zip(&outputs) {
                *out = row.dot(simd, weights) + intercept;
            }
        }
    }
}

struct Merge<'a> {
    scatter: Scatter,
    vector: &'a mut [f64],
    other: &'a [f64],
}

impl WithSimd for Merge<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        self.scatter.merge(simd, self.vector, self.other);
    }
}
