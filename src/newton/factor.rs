//! Factors of Hessians, and of Hessians without one row.

use std::sync::Arc;

use crate::linalg::{Cholesky, Mat};
use crate::{Monitor, Result};

/// Pivots of a Hessian with unit diagonal that are below it, per row, are rounding errors.
const MIN_PIVOT: f64 = 1e-14;

/// The first value that is added to the diagonal, then of unit values, of a Hessian that is singular
/// to rounding although there is a penalty. It changes steps, not the optimum.
const FIRST_SHIFT: f64 = 1e-12;

/// What is left of the Hessian in the direction of a row without that row must exceed this part of it:
/// otherwise it is lost in rounding.
const MIN_KEPT: f64 = 1e-8;

/// A Hessian A, factored.
#[derive(Clone, Debug)]
pub(super) struct Factor {
    whole: Arc<Whole>,
    removed: Option<Removed>,
}

/// A factor of DAD, for the diagonal matrix D that makes its diagonal one.
#[derive(Debug)]
struct Whole {
    cholesky: Cholesky,
    /// The diagonal of D.
    scale: Vec<f64>,
    /// What was added to the diagonal of DAD.
    shift: f64,
}

/// A term c·xxᵀ that is subtracted: (A − cxxᵀ)⁻¹ = A⁻¹ + c/(1 − c·xᵀA⁻¹x)·A⁻¹x(A⁻¹x)ᵀ.
#[derive(Clone, Debug)]
struct Removed {
    /// A⁻¹x.
    solved: Vec<f64>,
    /// c/(1 − c·xᵀA⁻¹x).
    gain: f64,
}

impl Factor {
    /// `None` if the matrix, of which the lower triangle is read, is singular to rounding and there is
    /// no penalty.
    pub(super) fn new(hessian: &Mat<f64>, penalty: f64, monitor: &Monitor) -> Result<Option<Self>> {
        let n = hessian.nrows();
        let diagonal = |j: usize| hessian[(j, j)];
        // With a penalty, an intercept without one may have no curvature, where losses have none.
        let is_flat = |j: usize| diagonal(j) <= 0.0;
        if (0..n).any(|j| !diagonal(j).is_finite() || is_flat(j) && penalty == 0.0) {
            return Ok(None);
        }
        let root = |j: usize| if is_flat(j) { 1.0 } else { diagonal(j).sqrt() };
        let scale: Vec<f64> = (0..n).map(|j| root(j).recip()).collect();
        let mut shift = 0.0;
        loop {
            let scaled = Mat::from_fn(n, n, |i, j| {
                let entry = if i < j || i != j && (is_flat(i) || is_flat(j)) {
                    0.0
                } else if i == j && is_flat(j) {
                    1.0
                } else {
                    hessian[(i, j)]
                };
                entry * scale[i] * scale[j] + if i == j { shift } else { 0.0 }
            });
            let min_pivot = MIN_PIVOT * n as f64;
            if let Some(cholesky) = Cholesky::new(scaled, min_pivot, monitor)? {
                let whole = Whole {
                    cholesky,
                    scale,
                    shift,
                };
                return Ok(Some(Self {
                    whole: Arc::new(whole),
                    removed: None,
                }));
            }
            if penalty == 0.0 || shift > 1.0 {
                return Ok(None);
            }
            shift = if shift == 0.0 {
                FIRST_SHIFT
            } else {
                shift * 100.0
            };
        }
    }

    /// Whether nothing was added to the matrix.
    pub(super) fn is_exact(&self) -> bool {
        self.whole.shift == 0.0
    }

    /// The factor without the term `c`·xxᵀ of a row; `None` if what is left is singular to rounding.
    pub(super) fn without(&self, row: &[f64], c: f64) -> Option<Self> {
        let solved = self.solve(row);
        let kept = 1.0 - c * dot(row, &solved);
        (kept > MIN_KEPT).then(|| Self {
            whole: self.whole.clone(),
            removed: Some(Removed {
                solved,
                gain: c / kept,
            }),
        })
    }

    /// A⁻¹b.
    pub(super) fn solve(&self, b: &[f64]) -> Vec<f64> {
        let scale = &self.whole.scale;
        let mut solved = Mat::from_fn(b.len(), 1, |i, _| b[i] * scale[i]);
        self.whole.cholesky.solve(&mut solved);
        let found = scale.iter().enumerate();
        let mut found: Vec<f64> = found.map(|(i, s)| solved[(i, 0)] * s).collect();
        if let Some(Removed { solved, gain }) = &self.removed {
            let factor = gain * dot(solved, b);
            for (found, solved) in found.iter_mut().zip(solved) {
                *found += factor * solved;
            }
        }
        found
    }

    /// KB, where KᵀK is the inverse of the matrix before any row was removed.
    pub(super) fn whiten(&self, mut b: Mat<f64>) -> Mat<f64> {
        let scale = &self.whole.scale;
        for j in 0..b.ncols() {
            for (i, scale) in scale.iter().enumerate() {
                b[(i, j)] *= scale;
            }
        }
        self.whole.cholesky.solve_lower(&mut b);
        b
    }
}

/// ⟨a, b⟩.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::product;

    const N: usize = 5;

    fn hessian() -> Mat<f64> {
        Mat::from_fn(N, N, |i, j| {
            let scale = 10f64.powf((i + j) as f64 - 4.0);
            scale * (1.0 / (1.0 + (i + j) as f64) + f64::from(u8::from(i == j)))
        })
    }

    fn factor(hessian: &Mat<f64>) -> Factor {
        let found = Factor::new(hessian, 0.0, &Monitor::new()).expect("not cancelled");
        found.expect("definite")
    }

    #[test]
    fn systems_are_solved_with_and_without_a_row() {
        let whole = hessian();
        let (row, c) = ([0.001, -0.02, 0.3, 1.0, -20.0], 0.4);
        let removed = Mat::from_fn(N, N, |i, j| whole[(i, j)] - c * row[i] * row[j]);
        let gradient = [1.0, -2.0, 0.5, 0.1, 3.0];
        let direct = factor(&removed).solve(&gradient);
        let updated = factor(&whole).without(&row, c).expect("definite");
        for (found, expected) in updated.solve(&gradient).iter().zip(&direct) {
            assert!((found - expected).abs() < 1e-9 * expected.abs(), "{found}");
        }
        let all = 1.0 / dot(&row, &factor(&whole).solve(&row));
        assert!(factor(&whole).without(&row, all).is_none());
    }

    #[test]
    fn whitening_is_a_root_of_the_inverse() {
        let whole = hessian();
        let k = factor(&whole).whiten(Mat::identity(N, N));
        let inverse = product(k.transpose(), k.as_ref());
        let unit = product(inverse.as_ref(), whole.as_ref());
        assert!((unit - Mat::<f64>::identity(N, N)).norm_max() < 1e-9);
    }
}
