//! Ridge regression by its sufficient statistics.
//!
//! # Problem
//! min over β, b of Σ wᵢ‖yᵢ − βxᵢ − b‖² + α‖β‖², with one row of β for each output. The intercept b,
//! where wanted, is not penalised.
//!
//! # Method
//! The [scatter](super::scatter) of (x, y), about the means with an intercept and about zero
//! without. Evaluating solves (Sₓₓ + αI)βᵀ = Sₓᵧ by a Cholesky factor made anew, so that no error
//! builds up; b = ȳ − βx̄. Merging adds.
//!
//! # Cost
//! For p features and q outputs:
//!
//! | operation | numbers |
//! |---|---|
//! | feed a row | p(p + q)/2; without intercept p × stored values |
//! | evaluate m rows | p²(p/6 + q) multiplications, plus m × stored values of a row × q |
//! | copy, merge | (p + q)²/2 |
//!
//! With few features and large folds this is the cheapest way to cross-validate ridge regression
//! one row at a time; for leave-one-out, p³/6 a leaf is more than the closed forms need.

use super::scatter::{About, Scatter, expand};
use super::triangle;
use crate::data::{Examples, Layout, Row};
use crate::merge::Mergeable;
use crate::runtime::simd::{self, Simd, WithSimd};
use crate::tree::{Effort, Flat, Learner, Undo};
use crate::{Error, Result};

/// What ridge regression minimises.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RidgeOptions {
    /// α, the strength of the regularisation.
    pub alpha: f64,
    /// Whether there is an intercept.
    pub intercept: bool,
}

impl RidgeOptions {
    pub(super) fn about(self) -> About {
        if self.intercept {
            About::Means
        } else {
            About::Zero
        }
    }
}

/// Ridge regression that keeps sums of squares and products.
///
/// State: the scatter of (x, y).
#[derive(Clone, Debug)]
pub struct LeastSquaresStatistics {
    options: RidgeOptions,
    n_features: usize,
    n_outputs: usize,
    state: Vec<f64>,
}

impl LeastSquaresStatistics {
    /// A regression of `n_outputs` numbers that has seen nothing; α is not negative.
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
            state: vec![],
        };
        model.state = vec![0.0; model.scatter().len()];
        Ok(model)
    }

    /// The weights and the intercept of each output.
    pub fn hypotheses(&self) -> Result<Vec<(Vec<f64>, f64)>> {
        simd::dispatch(Solve(self)).ok_or_else(|| Error::Parameter {
            name: "alpha",
            rule: "large enough to make XᵀX + alpha·I of the training rows positive definite",
            value: self.options.alpha.to_string(),
        })
    }

    fn scatter(&self) -> Scatter {
        Scatter {
            n: self.n_features + self.n_outputs,
            about: self.options.about(),
        }
    }
}

struct Solve<'a>(&'a LeastSquaresStatistics);

impl WithSimd for Solve<'_> {
    type Output = Option<Vec<(Vec<f64>, f64)>>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
        let Self(model) = self;
        let (p, scatter) = (model.n_features, model.scatter());
        let mut l = scatter.triangle(&model.state).to_vec();
        triangle::add_diagonal(&mut l, p, model.options.alpha);
        // The rows of y stand below those of x and come out as L⁻¹Sₓᵧ.
        triangle::factor(simd, &mut l, p)?;
        let (x_means, y_means) = scatter.means(&model.state).split_at(p);
        let outputs = y_means.iter().enumerate().map(|(output, y_mean)| {
            let mut weights = l[triangle::len(p + output)..][..p].to_vec();
            triangle::backward(simd, &l, &mut weights);
            let intercept = y_mean - simd::dot(simd, &weights, x_means);
            (weights, intercept)
        });
        Some(outputs.collect())
    }
}

impl Flat for LeastSquaresStatistics {
    fn n_outputs(&self) -> usize {
        self.n_outputs
    }

    fn state(&self) -> &[f64] {
        &self.state
    }

    fn state_mut(&mut self) -> &mut [f64] {
        &mut self.state
    }
}

impl<R: Layout> Learner<Examples<'_, R>> for LeastSquaresStatistics {
    fn effort(&self, _: &Examples<'_, R>) -> Effort {
        let touched = self.state.len() as f64;
        Effort {
            update: touched,
            copy: touched,
            undo: Some(touched),
            indivisible: false,
        }
    }

    fn learn<U: Undo>(
        &mut self,
        data: &Examples<'_, R>,
        rows: &[usize],
        undo: &mut U,
    ) -> Result<()> {
        data.check_features(self.n_features)?;
        let values = data.values(self.n_outputs)?;
        if !rows.is_empty() {
            undo.save_all(0, &self.state);
            simd::dispatch(Feed {
                model: self,
                data,
                values,
                rows,
            });
        }
        Ok(())
    }

    fn evaluate(&self, data: &Examples<'_, R>, rows: &[usize], out: &mut [f64]) -> Result<()> {
        data.check_features(self.n_features)?;
        simd::dispatch(Predict {
            hypotheses: &self.hypotheses()?,
            data,
            rows,
            out,
        });
        Ok(())
    }

    fn batch(&self, data: &Examples<'_, R>) -> usize {
        let (p, q) = (self.n_features as f64, self.n_outputs as f64);
        super::rows_worth(p * p * (p / 6.0 + q), q * data.stored_per_row())
    }
}

struct Feed<'a, 'd, R> {
    model: &'a mut LeastSquaresStatistics,
    data: &'a Examples<'d, R>,
    values: &'a [f64],
    rows: &'a [usize],
}

impl<R: Layout> WithSimd for Feed<'_, '_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { model, data, .. } = self;
        let (scatter, q) = (model.scatter(), model.n_outputs);
        let mut z = vec![0.0; scatter.n];
        for index in data.ahead(self.rows) {
            expand(data.rows().row(index), &mut z);
            z[model.n_features..].copy_from_slice(&self.values[index * q..][..q]);
            scatter.add(simd, &mut model.state, &mut z, data.weight(index));
        }
    }
}

/// Linear predictions: for each output its weights and intercept.
pub(super) struct Predict<'a, 'd, R> {
    pub(super) hypotheses: &'a [(Vec<f64>, f64)],
    pub(super) data: &'a Examples<'d, R>,
    pub(super) rows: &'a [usize],
    pub(super) out: &'a mut [f64],
}

impl<R: Layout> WithSimd for Predict<'_, '_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let outs = self.out.chunks_exact_mut(self.hypotheses.len());
        for (index, outs) in self.data.ahead(self.rows).zip(outs) {
            let row = self.data.rows().row(index);
            for (out, (weights, intercept)) in outs.iter_mut().zip(self.hypotheses) {
                *out = row.dot(simd, weights) + intercept;
            }
        }
    }
}

struct Merge<'a>(&'a mut LeastSquaresStatistics, &'a LeastSquaresStatistics);

impl WithSimd for Merge<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self(model, other) = self;
        let scatter = model.scatter();
        scatter.merge(simd, &mut model.state, &other.state);
    }
}

impl Mergeable for LeastSquaresStatistics {
    fn merge(&mut self, other: &Self) -> Result<()> {
        simd::dispatch(Merge(self, other));
        Ok(())
    }
}
