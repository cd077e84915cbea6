//! Residuals of a training set and their products with the features, from the rows.

use super::fold::FoldProblem;
use crate::data::Layout;
use crate::linear::{FoldMap, LinearProblem, NormalEquations, TrainingSet};
use crate::runtime::simd::{self, Simd, WithSimd};

/// What a Gram matrix approximates.
pub(super) trait RowProducts: Sync {
    /// Writes Xᵀ(y − Xβ) of an output to `g`, and returns ‖y − Xβ‖².
    fn correlate(&self, beta: &[f64], output: usize, g: &mut [f64]) -> f64;
}

/// Training rows as [`NormalEquations`] centre and scale them.
pub(super) struct TrainingRows<'a, R> {
    problem: &'a FoldProblem<'a, R>,
    set: TrainingSet,
    /// Maps rows to centred ones.
    map: FoldMap,
    /// What centred rows are multiplied by; zero for constant features.
    scale: Vec<f64>,
    target_mean: &'a [f64],
}

impl<'a, R: Layout> TrainingRows<'a, R> {
    pub(super) fn new(
        problem: &'a FoldProblem<'a, R>,
        set: TrainingSet,
        normal: &'a NormalEquations<'_>,
        is_constant: &[bool],
    ) -> Self {
        let (p, common) = (normal.n_features(), &normal.common);
        let shift = |j| common.shift(j) + normal.map.shift(j) / common.scale(j);
        let scale = |j: usize| {
            if is_constant[j] {
                0.0
            } else {
                normal.map.scale(j)
            }
        };
        Self {
            problem,
            set,
            map: FoldMap::affine((0..p).map(shift).collect(), common.scales()).of_sums_of(common),
            scale: (0..p).map(scale).collect(),
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
        let scaled = beta.iter().zip(&training.scale);
        let coefficients: Vec<f64> = scaled.map(|(b, f)| b * f).collect();
        let mut z = vec![0.0; beta.len()];
        let mut square = 0.0;
        g.fill(0.0);
        for &row in &*training.problem.training(training.set) {
            let weight = targets.weight(row);
            if weight == 0.0 {
                continue;
            }
            training.map.write(&rows, row, &mut z);
            let residual = targets.row(row)[output]
                - training.target_mean[output]
                - simd::dot(simd, &coefficients, &z);
            square += weight * residual * residual;
            simd::axpy(simd, weight * residual, &z, g);
        }
        g.iter_mut().zip(&training.scale).for_each(|(g, f)| *g *= f);
        square
    }
}
