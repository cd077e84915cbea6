//! The quadratic of a training set from its Gram matrix: no pass over rows, as long as that is exact.
//!
//! Rounding changes the elements of S by about ε√(SᵢᵢSⱼⱼ), and so the duality gap by up to about
//! ε(Σ√Sⱼⱼ|βⱼ|)². Where features nearly depend on each other, coefficients are large, and that is more
//! than the gap asked for. Then Xᵀ(y − Xβ) is computed from the rows whenever all features are checked,
//! and S serves for the changes of β in between, as in iterative refinement.

use super::row_products::RowProducts;
use super::solver::Quadratic;
use crate::linear::NormalEquations;
use crate::runtime::simd::{self, Simd};

/// ½‖y − Xβ‖² from S = XᵀX, Xᵀy and ‖y‖².
pub(super) struct GramQuadratic<'a> {
    n_features: usize,
    /// S, all of it, so that a row is contiguous.
    gram: Vec<f64>,
    products: Vec<f64>,
    target_square: f64,
    g: Vec<f64>,
    /// The relative error of the elements of S.
    error: f64,
    /// The rows, where they are at hand.
    rows: Option<&'a dyn RowProducts>,
    output: usize,
    uses_rows: bool,
}

impl<'a> GramQuadratic<'a> {
    /// The features of `normal`, those `is_constant` left out, with elements of a relative `error`.
    pub(super) fn new(
        normal: &NormalEquations<'_>,
        is_constant: &[bool],
        error: f64,
        rows: &'a dyn RowProducts,
    ) -> Self {
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
            error,
            rows: Some(rows),
            output: 0,
            uses_rows: false,
        }
    }

    /// The quadratic with this Gram matrix, row by row; its linear part is to be set.
    pub(super) fn of_gram(gram: Vec<f64>, n_features: usize) -> Self {
        Self {
            n_features,
            gram,
            products: vec![0.0; n_features],
            target_square: 0.0,
            g: vec![0.0; n_features],
            error: 0.0,
            rows: None,
            output: 0,
            uses_rows: false,
        }
    }

    /// Takes the targets for which Xᵀ(y − Xβ) is `g` and ‖y − Xβ‖² is `residual_square` at `beta`.
    pub(super) fn set_correlation(&mut self, beta: &[f64], g: &[f64], residual_square: f64) {
        self.products.copy_from_slice(g);
        for (j, &b) in beta.iter().enumerate().filter(|e| *e.1 != 0.0) {
            let row = &self.gram[j * self.n_features..][..self.n_features];
            for (product, s) in self.products.iter_mut().zip(row) {
                *product += b * s;
            }
        }
        let sums = self.products.iter().zip(g).map(|(product, g)| product + g);
        let explained: f64 = beta.iter().zip(sums).map(|(b, sum)| b * sum).sum();
        self.target_square = residual_square + explained;
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
        self.output = output;
    }

    #[inline(always)]
    fn row(&self, j: usize) -> &[f64] {
        &self.gram[j * self.n_features..][..self.n_features]
    }
}

impl Quadratic for GramQuadratic<'_> {
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
        if let (true, Some(rows)) = (self.uses_rows, self.rows) {
            let square = rows.correlate(beta, self.output, &mut self.g);
            g.copy_from_slice(&self.g);
            return square;
        }
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

    fn gap_error(&self, beta: &[f64]) -> f64 {
        let sizes = beta.iter().enumerate();
        let size: f64 = sizes
            .map(|(j, b)| self.curvature(j).max(0.0).sqrt() * b.abs())
            .sum();
        let error = if self.uses_rows {
            f64::EPSILON
        } else {
            self.error
        };
        error * size * size
    }

    fn use_rows(&mut self, is_used: bool) -> bool {
        let is_used = is_used && self.rows.is_some();
        std::mem::replace(&mut self.uses_rows, is_used) != is_used
    }
}
