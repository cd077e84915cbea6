//! Factors of Hessians, and of Hessians without one row.

use super::vectors::dot;
use std::sync::Arc;

use crate::linalg::Mat;
use crate::linear::ScaledCholesky;
use crate::{Monitor, Result};

/// Pivots of a Hessian with unit diagonal that are below it, per row, are rounding errors.
const MIN_PIVOT: f64 = 1e-14;

/// What is left of the Hessian in the direction of a row without that row must exceed this part of it:
/// otherwise it is lost in rounding.
const MIN_KEPT: f64 = 1e-8;

/// A Hessian A, factored.
#[derive(Clone, Debug)]
pub(super) struct Factor {
    complete: Arc<ScaledCholesky>,
    removed: Option<Removed>,
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
        let min_pivot = MIN_PIVOT * hessian.nrows() as f64;
        // With a penalty there is an optimum, and a shift changes steps only.
        let complete = if penalty > 0.0 {
            ScaledCholesky::with_shift(hessian, min_pivot, monitor)?
        } else {
            ScaledCholesky::new(hessian, min_pivot, monitor)?
        };
        Ok(complete.map(|complete| Self {
            complete: Arc::new(complete),
            removed: None,
        }))
    }

    /// Whether nothing was added to the matrix.
    pub(super) fn is_exact(&self) -> bool {
        self.complete.is_exact()
    }

    /// The factor without the term `c`·xxᵀ of a row; `None` if what is left is singular to rounding.
    pub(super) fn without(&self, row: &[f64], c: f64) -> Option<Self> {
        let solved = self.solve(row);
        let kept = 1.0 - c * dot(row, &solved);
        (kept > MIN_KEPT).then(|| Self {
            complete: self.complete.clone(),
            removed: Some(Removed {
                solved,
                gain: c / kept,
            }),
        })
    }

    /// A⁻¹b.
    pub(super) fn solve(&self, b: &[f64]) -> Vec<f64> {
        let mut solution = Mat::from_fn(b.len(), 1, |i, _| b[i]);
        self.complete.solve(&mut solution);
        let mut solution = solution.col_as_slice(0).to_vec();
        if let Some(Removed { solved, gain }) = &self.removed {
            let factor = gain * dot(solved, b);
            for (value, solved) in solution.iter_mut().zip(solved) {
                *value += factor * solved;
            }
        }
        solution
    }

    /// KB, where KᵀK is the inverse of the matrix before any row was removed.
    pub(super) fn whiten(&self, mut b: Mat<f64>) -> Mat<f64> {
        self.complete.whiten(&mut b);
        b
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
