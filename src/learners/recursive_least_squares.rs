//! Recursive least squares: ridge regression by a QR factor that takes in one row after the other.
//!
//! # Problem
//! That of [`RidgeStatistics`](super::RidgeStatistics), with α > 0.
//!
//! # Method
//! A triangle L with Lᵀ·L = Sₓₓ + αI and the rotated targets Z with Lᵀ·Z = Sₓᵧ are kept. A row changes
//! Sₓₓ by cδδᵀ and Sₓᵧ by cδεᵀ (see `scatter`); p plane rotations bring √c·(δ, ε) into (L, Z). The
//! coefficients solve Lβᵀ = Z when they are needed.
//!
//! Without intercept δ = x, ε = y and c is the row's weight. With one, δ = x − x̄ and ε = y − ȳ are
//! the deviations from the means of the rows before, which leaves the intercept b = ȳ − βx̄
//! unpenalised at no more than the cost of a constant feature.
//!
//! *Numerics.* Rotations are backward stable: β is as exact as by QR of all rows, with an error that
//! grows with the condition of (X, √α·I) and not with its square, whatever the scale of the features
//! or of α. `RidgeStatistics`, which forms Sₓₓ, and recursions for (Sₓₓ + αI)⁻¹ have the square.
//!
//! # Cost
//! For p features and q outputs:
//!
//! | operation | values |
//! |---|---|
//! | update with a row | 2p(p + q), however sparse it is |
//! | evaluate m rows | p²q/2, plus m × stored values of a row × q |
//! | copy | p²/2 + pq |
//!
//! # References
//! W. M. Gentleman, *Least squares computations by Givens transformations without square roots*, IMA
//! Journal of Applied Mathematics 12 (1973); as a recursion, S. Haykin, *Adaptive filter theory*,
//! chapter on square-root adaptive filters.

use ndarray::Array1;

use super::learner::{CostModel, Fitted, Learner};
use super::linear::linear_attributes;
use super::ridge_statistics::{Predict, RidgeOptions};
use super::scatter::densify;
use super::state::State;
use super::undo::Undo;
use super::{state_methods, update_method};
use crate::Result;
use crate::data::{Dataset, Examples, Layout, with_layout};
use crate::linalg::packed;
use crate::runtime::memory;
use crate::runtime::simd::{self, Simd, WithSimd};

/// Ridge regression that keeps a factor of its normal equations.
///
/// State: one vector, the triangle L followed by Z, feature by feature; scalars: the weight and the
/// means of (x, y).
#[derive(Clone, Debug)]
pub struct RecursiveLeastSquares {
    options: RidgeOptions,
    n_features: usize,
    n_outputs: usize,
    state: State,
}

impl RecursiveLeastSquares {
    /// A regression of `n_outputs` values that has learnt nothing; α is positive.
    pub fn new(options: RidgeOptions, n_features: usize, n_outputs: usize) -> Result<Self> {
        super::check_positive("alpha", options.alpha)?;
        super::check_domain(
            n_outputs > 0,
            "columns of y",
            "at least 1",
            n_outputs as f64,
        )?;
        let what = format_args!("recursive least squares on X with {n_features} features");
        let n_values = n_features.saturating_mul(n_outputs);
        let n_values = n_values.saturating_add(packed::saturating_len(n_features));
        memory::check::<f64>(what, n_values as u64)?;
        let mut vector = vec![0.0; packed::len(n_features)];
        packed::add_diagonal(&mut vector, n_features, options.alpha.sqrt());
        vector.resize(vector.len() + n_features * n_outputs, 0.0);
        Ok(Self {
            options,
            n_features,
            n_outputs,
            state: State::new([vector], vec![0.0; 1 + n_features + n_outputs]),
        })
    }

    /// The weights and the intercept of each output.
    pub fn weights(&self) -> Vec<(Array1<f64>, f64)> {
        let (p, q) = (self.n_features, self.n_outputs);
        let (x_means, y_means) = self.state.scalars()[1..].split_at(p);
        let (triangle, rotated) = self.state.vector(0).split_at(packed::len(p));
        let outputs = y_means.iter().enumerate().map(|(output, y_mean)| {
            let rotated = rotated.iter().skip(output).step_by(q);
            let mut weights: Vec<f64> = rotated.copied().collect();
            simd::dispatch(Solve(triangle, &mut weights));
            let shift: f64 = weights.iter().zip(x_means).map(|(w, x)| w * x).sum();
            (weights.into(), y_mean - shift)
        });
        outputs.collect()
    }

    fn learn<X: Layout, U: Undo>(
        &mut self,
        data: &Examples<'_, X>,
        rows: &[usize],
        undo: &mut U,
    ) -> Result<()> {
        data.check_features(self.n_features)?;
        let values = data.values(self.n_outputs)?;
        if !rows.is_empty() {
            undo.save_all(0, 0, self.state.vector(0));
            undo.save_all(1, 0, self.state.scalars());
            simd::dispatch(Update {
                model: self,
                data,
                values,
                rows,
            });
        }
        Ok(())
    }
}

impl Learner for RecursiveLeastSquares {
    fn n_outputs(&self) -> usize {
        self.n_outputs
    }

    fn cost_model(&self, _: &Dataset<'_>) -> CostModel {
        let touched = self.state.len() as f64;
        CostModel::logged(2.0 * touched, touched, &self.state)
    }

    update_method!();

    fn evaluate(&self, data: &Dataset<'_>, rows: &[usize], out: &mut [f64]) -> Result<()> {
        with_layout!(data, |data| {
            data.check_features(self.n_features)?;
            simd::dispatch(Predict {
                weights: &self.weights(),
                data,
                rows,
                out,
            });
            Ok(())
        })
    }

    fn min_evaluation_rows(&self, data: &Dataset<'_>) -> usize {
        let p = self.n_features as f64;
        super::rows_worth(p * p / 2.0, data.mean_nnz())
    }

    /// No: the solution of one least-squares problem.
    fn depends_on_order(&self) -> bool {
        false
    }

    state_methods!();

    fn fitted(&self) -> Result<Fitted> {
        Ok(linear_attributes(
            self.weights().into_iter(),
            self.n_features,
        ))
    }
}

/// v ← L⁻¹v.
struct Solve<'a>(&'a [f64], &'a mut [f64]);

impl WithSimd for Solve<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        packed::solve_lower(simd, self.0, self.1);
    }
}

struct Update<'a, 'd, R> {
    model: &'a mut RecursiveLeastSquares,
    data: &'a Examples<'d, R>,
    values: &'a [f64],
    rows: &'a [usize],
}

impl<R: Layout> WithSimd for Update<'_, '_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { model, data, .. } = self;
        let (p, q) = (model.n_features, model.n_outputs);
        let centering = model.options.centering();
        let (vector, head) = model.state.parts_mut(0);
        let (triangle, rotated) = vector.split_at_mut(packed::len(p));
        let mut z = vec![0.0; p + q];
        for index in data.prefetched(self.rows) {
            densify(data.rows().row(index), &mut z);
            z[p..].copy_from_slice(&self.values[index * q..][..q]);
            let weight = centering.absorb(head, &mut z, data.weight(index));
            if weight <= 0.0 {
                continue;
            }
            let root = weight.sqrt();
            for z in &mut z {
                *z *= root;
            }
            let (x, y) = z.split_at_mut(p);
            packed::rotate_in(simd, triangle, rotated, x, y);
        }
    }
}
