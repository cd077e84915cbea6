//! Residuals of a training set and their products with the features, from the rows.

use super::fold::FoldProblem;
use crate::data::Layout;
use crate::least_squares::{AffineFrame, LinearProblem, NormalEquations};
use crate::runtime::simd::{self, Simd, WithSimd};

/// What a Gram matrix approximates.
pub(super) trait RowProducts {
    /// Writes Xᵀ(y − Xβ) of an output to `g`, and returns ‖y − Xβ‖².
    fn correlate(&self, beta: &[f64], output: usize, g: &mut [f64]) -> f64;
}

/// Training rows as [`NormalEquations`] centre and scale them.
pub(super) struct TrainingRows<'a, R> {
    problem: &'a FoldProblem<'a, R>,
    /// The fold, or all rows.
    fold: Option<usize>,
    /// Maps rows to u − centre.
    frame: AffineFrame,
    /// Zero for constant features.
    factor: Vec<f64>,
    target_mean: &'a [f64],
}

impl<'a, R: Layout> TrainingRows<'a, R> {
    pub(super) fn new(
        problem: &'a FoldProblem<'a, R>,
        fold: Option<usize>,
        (normal, frame): (&'a NormalEquations<'_>, &AffineFrame),
        is_constant: &[bool],
    ) -> Self {
        let centres = normal.centre.iter().zip(&frame.scale);
        let shift = frame.shift.iter().zip(centres);
        let factor = normal.factor.iter().zip(is_constant);
        Self {
            problem,
            fold,
            frame: AffineFrame {
                shift: shift.map(|(shift, (c, scale))| shift + c / scale).collect(),
                scale: frame.scale.clone(),
            },
            factor: factor.map(|(f, &is)| if is { 0.0 } else { *f }).collect(),
            target_mean: &normal.target_mean,
        }
    }
}

impl<R: Layout> RowProducts for TrainingRows<'_, R> {
    fn correlate(&self, beta: &[f64], output: usize, g: &mut [f64]) -> f64 {
        simd::dispatch(Correlate(self, beta, output, g))
    }
}

struct Correlate<'a, R>(&'a TrainingRows<'a, R>, &'a [f64], usize, &'a mut [f64]);

impl<R: Layout> WithSimd for Correlate<'_, R> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let Self(training, beta, output, g) = self;
        let LinearProblem { rows, targets } = training.problem.linear;
        let scaled = beta.iter().zip(&training.factor);
        let coefficients: Vec<f64> = scaled.map(|(b, f)| b * f).collect();
        let mut z = vec![0.0; beta.len()];
        let mut square = 0.0;
        g.fill(0.0);
        for &row in &*training.problem.training(training.fold) {
            let weight = targets.weight(row);
            if weight == 0.0 {
                continue;
            }
            training.frame.write(rows.row(row), 1.0, &mut z);
            let residual = targets.row(row)[output]
                - training.target_mean[output]
                - simd::dot(simd, &coefficients, &z);
            square += weight * residual * residual;
            simd::axpy(simd, weight * residual, &z, g);
        }
        g.iter_mut()
            .zip(&training.factor)
            .for_each(|(g, f)| *g *= f);
        square
    }
}
