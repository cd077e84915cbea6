//! Recursive least squares: ridge regression, always solved.
//!
//! # Problem
//! That of [`LeastSquaresStatistics`](super::LeastSquaresStatistics), with α > 0.
//!
//! # Method
//! P = (Sₓₓ + αI)⁻¹ and β are kept. A row changes Sₓₓ by cδδᵀ (see `scatter`), so by Sherman and
//! Morrison, with g = Pδ and h = 1/c + ⟨δ, g⟩,
//!
//! > β ← β + (ε − βδ)gᵀ/h,  P ← P − ggᵀ/h.
//!
//! Without intercept δ = x, ε = y and c is the row's weight. With one, δ = x − x̄ and ε = y − ȳ are
//! the deviations from the means of the rows before, which leaves the intercept b = ȳ − βx̄
//! unpenalised at no more than the cost of a constant feature.
//!
//! *Numerics.* After all rows β is the ridge solution whatever their order, up to rounding that
//! grows with the number of rows and with the condition of Sₓₓ + αI: P begins as I/α, so an α far
//! below the scale of Sₓₓ (times 1e-10, say) costs as many digits. `LeastSquaresStatistics` has
//! no such loss.
//!
//! # Cost
//! For p features and q outputs:
//!
//! | operation | numbers |
//! |---|---|
//! | feed a row | p² + pq, however sparse it is |
//! | evaluate m rows | pq, plus m × stored values of a row × q |
//! | copy | p²/2 + pq |
//!
//! # References
//! J. Sherman, W. J. Morrison, *Adjustment of an inverse matrix corresponding to a change in one
//! element of a given matrix*, Annals of Mathematical Statistics 21 (1950); in this form, S. Haykin,
//! *Adaptive filter theory*, chapter on recursive least squares.

use super::least_squares_statistics::{Predict, RidgeOptions};
use super::scatter::expand;
use super::triangle;
use crate::Result;
use crate::data::{Examples, Layout};
use crate::runtime::simd::{self, Simd, WithSimd};
use crate::tree::{Effort, Flat, Learner, Undo};

/// Ridge regression that keeps its solution.
///
/// State: the weight and the means of (x, y); the triangle of P; β, one output after the other.
#[derive(Clone, Debug)]
pub struct RecursiveLeastSquares {
    options: RidgeOptions,
    n_features: usize,
    n_outputs: usize,
    state: Vec<f64>,
}

impl RecursiveLeastSquares {
    /// A regression of `n_outputs` numbers that has seen nothing; α is positive.
    pub fn new(options: RidgeOptions, n_features: usize, n_outputs: usize) -> Result<Self> {
        super::check_positive("alpha", options.alpha)?;
        super::check_domain(
            n_outputs > 0,
            "columns of y",
            "at least 1",
            n_outputs as f64,
        )?;
        let mut inverse = vec![0.0; triangle::len(n_features)];
        triangle::add_diagonal(&mut inverse, n_features, 1.0 / options.alpha);
        let mut state = vec![0.0; 1 + n_features + n_outputs];
        state.extend(inverse);
        state.resize(state.len() + n_features * n_outputs, 0.0);
        Ok(Self {
            options,
            n_features,
            n_outputs,
            state,
        })
    }

    /// The weights and the intercept of each output.
    pub fn hypotheses(&self) -> Vec<(Vec<f64>, f64)> {
        let (p, q) = (self.n_features, self.n_outputs);
        let (x_means, y_means) = self.state[1..=p + q].split_at(p);
        let weights = &self.state[self.state.len() - p * q..];
        let outputs = y_means.iter().enumerate().map(|(output, y_mean)| {
            let weights = weights[output * p..][..p].to_vec();
            let shift: f64 = weights.iter().zip(x_means).map(|(w, x)| w * x).sum();
            (weights, y_mean - shift)
        });
        outputs.collect()
    }
}

impl Flat for RecursiveLeastSquares {
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

impl<R: Layout> Learner<Examples<'_, R>> for RecursiveLeastSquares {
    fn effort(&self, _: &Examples<'_, R>) -> Effort {
        let touched = self.state.len() as f64;
        Effort {
            update: 2.0 * touched,
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
            hypotheses: &self.hypotheses(),
            data,
            rows,
            out,
        });
        Ok(())
    }

    fn batch(&self, data: &Examples<'_, R>) -> usize {
        super::rows_worth(self.n_features as f64, data.stored_per_row())
    }
}

struct Feed<'a, 'd, R> {
    model: &'a mut RecursiveLeastSquares,
    data: &'a Examples<'d, R>,
    values: &'a [f64],
    rows: &'a [usize],
}

impl<R: Layout> WithSimd for Feed<'_, '_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { model, data, .. } = self;
        let (p, q) = (model.n_features, model.n_outputs);
        let (head, rest) = model.state.split_at_mut(1 + p + q);
        let (inverse, weights) = rest.split_at_mut(triangle::len(p));
        let (mut z, mut g) = (vec![0.0; p + q], vec![0.0; p]);
        for index in data.ahead(self.rows) {
            expand(data.rows().row(index), &mut z);
            z[p..].copy_from_slice(&self.values[index * q..][..q]);
            let about = model.options.about();
            let weight = about.take(head, &mut z, data.weight(index));
            if weight <= 0.0 {
                continue;
            }
            let (x, y) = z.split_at(p);
            triangle::multiply(simd, inverse, x, &mut g);
            let h = 1.0 / weight + simd::dot(simd, x, &g);
            for (output, y) in y.iter().enumerate() {
                let weights = &mut weights[output * p..][..p];
                let error = y - simd::dot(simd, weights, x);
                simd::axpy(simd, error / h, &g, weights);
            }
            triangle::rank_one(simd, inverse, -1.0 / h, &g);
        }
    }
}
