//! The quadratic of a training set from its Gram matrix: no pass over rows.

use super::solver::Quadratic;
use crate::least_squares::NormalEquations;
use crate::runtime::simd::{self, Simd};

/// ½‖y − Xβ‖² from S = XᵀX, Xᵀy and ‖y‖².
pub(super) struct GramQuadratic {
    n_features: usize,
    /// S, all of it, so that a row is contiguous.
    gram: Vec<f64>,
    products: Vec<f64>,
    target_square: f64,
    g: Vec<f64>,
}

impl GramQuadratic {
    /// The features of `normal`, those `is_constant` left out.
    pub(super) fn new(normal: &NormalEquations<'_>, is_constant: &[bool]) -> Self {
        let p = is_constant.len();
        let mut gram = vec![0.0; p * p];
        for i in (0..p).filter(|&i| !is_constant[i]) {
            for j in (0..=i).filter(|&j| !is_constant[j]) {
                gram[i * p + j] = normal.gram(i, j);
                gram[j * p + i] = gram[i * p + j];
            }
        }
        Self {
            n_features: p,
            gram,
            products: vec![0.0; p],
            target_square: 0.0,
            g: vec![0.0; p],
        }
    }

    /// Takes another output.
    pub(super) fn set_output(
        &mut self,
        normal: &NormalEquations<'_>,
        is_constant: &[bool],
        output: usize,
    ) {
        for (j, product) in self.products.iter_mut().enumerate() {
            *product = if is_constant[j] {
                0.0
            } else {
                normal.product(j, output)
            };
        }
        self.target_square = normal.target_square(output);
    }

    #[inline(always)]
    fn row(&self, j: usize) -> &[f64] {
        &self.gram[j * self.n_features..][..self.n_features]
    }
}

impl Quadratic for GramQuadratic {
    fn target_square(&self) -> f64 {
        self.target_square
    }

    #[inline(always)]
    fn curvature(&self, j: usize) -> f64 {
        self.gram[j * self.n_features + j]
    }

    #[inline(always)]
    fn correlation<S: Simd>(&self, _: S, j: usize) -> f64 {
        self.g[j]
    }

    #[inline(always)]
    fn step<S: Simd>(&mut self, simd: S, j: usize, delta: f64) {
        let row = &self.gram[j * self.n_features..][..self.n_features];
        simd::axpy(simd, -delta, row, &mut self.g);
    }

    #[inline(always)]
    fn set<S: Simd>(&mut self, simd: S, beta: &[f64], _: f64, g: &mut [f64]) -> f64 {
        self.g.copy_from_slice(&self.products);
        for (j, &b) in beta.iter().enumerate().filter(|e| *e.1 != 0.0) {
            self.step(simd, j, b);
        }
        g.copy_from_slice(&self.g);
        let explained: f64 = beta
            .iter()
            .zip(self.products.iter().zip(&*g))
            .map(|(b, (product, g))| b * (product + g))
            .sum();
        (self.target_square - explained).max(0.0)
    }

    #[inline(always)]
    fn block<S: Simd>(&mut self, _: S, support: &[usize], out: &mut Vec<f64>) {
        for (i, &j) in support.iter().enumerate() {
            let row = self.row(j);
            out.extend(support[..=i].iter().map(|&other| row[other]));
        }
    }

    fn step_cost(&self) -> usize {
        self.n_features
    }
}
