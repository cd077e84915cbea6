//! Pegasos: a linear support vector machine, one row at a time.
//!
//! # Problem
//! min over w of λ/2·‖w‖² + Σ sᵢ·max(0, 1 − yᵢ⟨w, xᵢ⟩) / Σ sᵢ, with labels y = ±1 and weights s.
//!
//! # Method
//! Stochastic subgradient steps of length 1/(λT), where T is the weight seen so far, and the last
//! hypothesis. With u = λTw the shrinking of w disappears and no step divides:
//!
//! > if y⟨u, x⟩ < λT then u ← u + s·y·x; T ← T + s.
//!
//! A weight multiplies both the loss of its row and the row's share of T: a row of weight 0 is as
//! good as absent, and the scale of the weights does not matter. Unit weights give Pegasos as it
//! was published.
//!
//! *Projection*, where wanted, keeps ‖w‖ ≤ 1/√λ after every step, which is ‖u‖² ≤ λT². It scales
//! u, kept as a·v so that a step never costs more than its row; the product ⟨u, x⟩ updates ‖u‖².
//!
//! *Intercept*: the weight of a constant feature 1, regularised as every other.
//!
//! *Several classes*: one against the rest, an output a class. Two classes need one output, which
//! is positive for the second class.
//!
//! # Cost
//! | operation | numbers |
//! |---|---|
//! | feed or evaluate a row | stored values of the row × outputs |
//! | copy | (features + 1) × outputs |
//!
//! # References
//! S. Shalev-Shwartz, Y. Singer, N. Srebro, A. Cotter, *Pegasos: primal estimated sub-gradient
//! solver for SVM*, Mathematical Programming 127 (2011), figure 1.

use crate::data::{Examples, Row, Rows};
use crate::simd::{self, Simd, WithSimd};
use crate::tree::{Effort, Flat, Learner, Undo};
use crate::{Error, Result};

/// Below this the scale moves into the weights, long before 1/a could overflow.
const SMALLEST_SCALE: f64 = 1e-100;

/// How Pegasos learns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PegasosOptions {
    /// λ, the strength of the regularisation.
    pub alpha: f64,
    /// Whether every step ends with a projection on the ball of radius 1/√λ.
    pub project: bool,
    /// Whether there is a constant feature.
    pub intercept: bool,
}

/// A linear support vector machine.
///
/// State: for each output its weights v, with the intercept last; then for each output the scale a
/// and ‖u‖² (both at rest without projection); then T.
#[derive(Clone, Debug)]
pub struct Pegasos {
    options: PegasosOptions,
    n_features: usize,
    n_outputs: usize,
    state: Vec<f64>,
}

impl Pegasos {
    /// A machine for `n_classes` classes that has learnt nothing.
    pub fn new(options: PegasosOptions, n_features: usize, n_classes: usize) -> Result<Self> {
        if !(options.alpha.is_finite() && options.alpha > 0.0) {
            return Err(Error::Parameter {
                name: "alpha",
                rule: "positive and finite",
                value: options.alpha.to_string(),
            });
        }
        let n_outputs = super::n_decisions(n_classes)?;
        let width = n_features + usize::from(options.intercept);
        let mut state = vec![0.0; n_outputs * (width + 2) + 1];
        for output in state[n_outputs * width..].chunks_exact_mut(2) {
            output[0] = 1.0;
        }
        Ok(Self {
            options,
            n_features,
            n_outputs,
            state,
        })
    }

    /// The weights w and the intercept of an output.
    ///
    /// # Panics
    /// When there is no such output.
    pub fn hypothesis(&self, output: usize) -> (Vec<f64>, f64) {
        let width = self.width();
        let (weights, tail) = self.state.split_at(self.n_outputs * width);
        let factor = self.factor(tail, output);
        let weights = &weights[output * width..][..width];
        let intercept = weights.get(self.n_features).map_or(0.0, |b| b * factor);
        let weights = weights[..self.n_features].iter().map(|v| v * factor);
        (weights.collect(), intercept)
    }

    /// Numbers in the weights of one output.
    #[inline(always)]
    fn width(&self) -> usize {
        self.n_features + usize::from(self.options.intercept)
    }

    /// w = factor × v.
    #[inline(always)]
    fn factor(&self, tail: &[f64], output: usize) -> f64 {
        let total = tail[2 * self.n_outputs];
        if total > 0.0 {
            tail[2 * output] / (self.options.alpha * total)
        } else {
            0.0
        }
    }
}

impl Flat for Pegasos {
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

impl<R: Rows> Learner<Examples<'_, R>> for Pegasos {
    fn effort(&self, data: &Examples<'_, R>) -> Effort {
        let touched = data.stored_per_row() * self.n_outputs as f64;
        Effort {
            update: touched,
            copy: self.state.len() as f64,
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
        let codes = data.classes(self.n_outputs.max(2))?;
        simd::dispatch(Feed {
            model: self,
            data,
            codes,
            rows,
            undo,
        });
        Ok(())
    }

    fn evaluate(&self, data: &Examples<'_, R>, rows: &[usize], out: &mut [f64]) -> Result<()> {
        data.check_features(self.n_features)?;
        simd::dispatch(Evaluate {
            model: self,
            data,
            rows,
            out,
        });
        Ok(())
    }
}

struct Feed<'a, 'd, R, U> {
    model: &'a mut Pegasos,
    data: &'a Examples<'d, R>,
    codes: &'a [u32],
    rows: &'a [usize],
    undo: &'a mut U,
}

impl<R: Rows, U: Undo> WithSimd for Feed<'_, '_, R, U> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { model, data, .. } = self;
        let PegasosOptions { alpha, project, .. } = model.options;
        let (width, n_features, n_outputs) = (model.width(), model.n_features, model.n_outputs);
        let (weights, tail) = model.state.split_at_mut(n_outputs * width);
        self.undo.save_all(weights.len(), tail);
        let (scales, total) = tail.split_at_mut(2 * n_outputs);
        let total = &mut total[0];
        for &index in self.rows {
            let row = data.rows().row(index);
            let weight = data.weight(index);
            let after = *total + weight;
            for output in 0..n_outputs {
                let start = output * width;
                let v = &mut weights[start..start + width];
                let [scale, norm] = &mut scales[2 * output..2 * output + 2] else {
                    unreachable!("two numbers an output");
                };
                let y = super::sign(self.codes[index], output, n_outputs);
                let margin = y * *scale * product(simd, row, v, n_features);
                if margin >= alpha * *total && *total > 0.0 {
                    continue;
                }
                self.undo.save_row(row, start, v);
                self.undo.save_all(start + n_features, &v[n_features..]);
                let step = weight * y / *scale;
                row.axpy(simd, step, &mut v[..n_features]);
                for intercept in &mut v[n_features..] {
                    *intercept += step;
                }
                if project {
                    let constant = if width > n_features { 1.0 } else { 0.0 };
                    let x_norm = row.squared_norm(simd) + constant;
                    *norm += weight * (2.0 * margin + weight * x_norm);
                    let limit = alpha * after * after;
                    if *norm > limit {
                        *scale *= (limit / *norm).sqrt();
                        *norm = limit;
                    }
                    if *scale < SMALLEST_SCALE {
                        self.undo.save_all(start, v);
                        for v in v {
                            *v *= *scale;
                        }
                        *scale = 1.0;
                    }
                }
            }
            *total = after;
        }
    }
}

struct Evaluate<'a, 'd, R> {
    model: &'a Pegasos,
    data: &'a Examples<'d, R>,
    rows: &'a [usize],
    out: &'a mut [f64],
}

impl<R: Rows> WithSimd for Evaluate<'_, '_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { model, data, .. } = self;
        let (width, n_outputs) = (model.width(), model.n_outputs);
        let (weights, tail) = model.state.split_at(n_outputs * width);
        for output in 0..n_outputs {
            let v = &weights[output * width..][..width];
            let factor = model.factor(tail, output);
            let outs = self.out.iter_mut().skip(output).step_by(n_outputs);
            for (&index, out) in self.rows.iter().zip(outs) {
                *out = factor * product(simd, data.rows().row(index), v, model.n_features);
            }
        }
    }
}

/// ⟨v, x⟩, with the intercept where `v` has one.
#[inline(always)]
fn product<S: Simd, X: Row>(simd: S, row: X, v: &[f64], n_features: usize) -> f64 {
    let (weights, intercept) = v.split_at(n_features);
    row.dot(simd, weights) + intercept.first().copied().unwrap_or(0.0)
}
