//! Cholesky factors of matrices whose diagonal is scaled to one.

use crate::linalg::{Cholesky, Mat};
use crate::{Monitor, Result};

/// The first value that is added to the diagonal, then of unit values, of a matrix that is singular to
/// rounding, and the factor by which it grows until there is a factor.
const FIRST_SHIFT: f64 = 1e-12;
const SHIFT_GROWTH: f64 = 100.0;

/// A factor of DAD + shift·I, where the diagonal matrix D makes the diagonal of DAD one.
#[derive(Debug)]
pub(crate) struct ScaledCholesky {
    factor: Cholesky,
    /// The diagonal of D.
    scale: Vec<f64>,
    shift: f64,
}

impl ScaledCholesky {
    /// `None` unless the diagonal of A is positive, and every pivot of DAD above `min_pivot`. The lower
    /// triangle of A is read.
    pub(crate) fn new(a: &Mat<f64>, min_pivot: f64, monitor: &Monitor) -> Result<Option<Self>> {
        let diagonal: Vec<f64> = (0..a.nrows()).map(|j| a[(j, j)]).collect();
        if diagonal.iter().all(|&d| d.is_finite() && d > 0.0) {
            Self::shifted(a, min_pivot, 0.0, monitor)
        } else {
            Ok(None)
        }
    }

    /// The same with as small a shift as there must be. Rows and columns whose diagonal is not positive
    /// are taken for those of the unit matrix. `None` if some value of the diagonal is not finite.
    pub(crate) fn with_shift(
        a: &Mat<f64>,
        min_pivot: f64,
        monitor: &Monitor,
    ) -> Result<Option<Self>> {
        if (0..a.nrows()).any(|j| !a[(j, j)].is_finite()) {
            return Ok(None);
        }
        let mut shift = 0.0;
        loop {
            let found = Self::shifted(a, min_pivot, shift, monitor)?;
            if found.is_some() || shift > 1.0 {
                return Ok(found);
            }
            shift = FIRST_SHIFT.max(shift * SHIFT_GROWTH);
        }
    }

    fn shifted(
        a: &Mat<f64>,
        min_pivot: f64,
        shift: f64,
        monitor: &Monitor,
    ) -> Result<Option<Self>> {
        let n = a.nrows();
        let is_flat: Vec<bool> = (0..n).map(|j| a[(j, j)] <= 0.0).collect();
        let root = |j: usize| if is_flat[j] { 1.0 } else { a[(j, j)].sqrt() };
        let scale: Vec<f64> = (0..n).map(|j| root(j).recip()).collect();
        let scaled = Mat::from_fn(n, n, |i, j| {
            if i == j {
                1.0 + shift
            } else if i < j || is_flat[i] || is_flat[j] {
                0.0
            } else {
                a[(i, j)] * scale[i] * scale[j]
            }
        });
        let factor = Cholesky::new(scaled, min_pivot, monitor)?;
        Ok(factor.map(|factor| Self {
            factor,
            scale,
            shift,
        }))
    }

    /// Whether nothing was added to the matrix.
    pub(crate) fn is_exact(&self) -> bool {
        self.shift == 0.0
    }

    fn multiply_scale(&self, b: &mut Mat<f64>) {
        for column in b.col_iter_mut() {
            for (b, scale) in column.iter_mut().zip(&self.scale) {
                *b *= scale;
            }
        }
    }

    /// B ← A⁻¹B.
    pub(crate) fn solve(&self, b: &mut Mat<f64>) {
        self.multiply_scale(b);
        self.factor.solve(b);
        self.multiply_scale(b);
    }

    /// B ← KB, where KᵀK = A⁻¹.
    pub(crate) fn whiten(&self, b: &mut Mat<f64>) {
        self.multiply_scale(b);
        self.factor.solve_lower(b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::product;

    const N: usize = 5;

    fn matrix() -> Mat<f64> {
        Mat::from_fn(N, N, |i, j| {
            let scale = 10f64.powf((i + j) as f64 - 4.0);
            scale * (1.0 / (1.0 + (i + j) as f64) + f64::from(u8::from(i == j)))
        })
    }

    #[test]
    fn a_factor_solves_and_whitens() {
        let a = matrix();
        let factor = ScaledCholesky::new(&a, 0.0, &Monitor::new()).expect("not cancelled");
        let factor = factor.expect("definite");
        assert!(factor.is_exact());
        let (mut inverse, mut root) = (Mat::identity(N, N), Mat::identity(N, N));
        factor.solve(&mut inverse);
        factor.whiten(&mut root);
        let unit = Mat::<f64>::identity(N, N);
        assert!((product(inverse.as_ref(), a.as_ref()) - &unit).norm_max() < 1e-9);
        let inverse = product(root.transpose(), root.as_ref());
        assert!((product(inverse.as_ref(), a.as_ref()) - &unit).norm_max() < 1e-9);
    }

    #[test]
    fn singular_matrices_have_a_factor_with_a_shift_only() {
        let (monitor, singular) = (Monitor::new(), Mat::from_fn(2, 2, |_, _| 1.0));
        let factor = ScaledCholesky::new(&singular, 1e-14, &monitor);
        assert!(factor.expect("not cancelled").is_none());
        let factor = ScaledCholesky::with_shift(&singular, 1e-14, &monitor);
        assert!(!factor.expect("not cancelled").expect("finite").is_exact());
        // The second parameter has no curvature: it stays where it is.
        let flat = Mat::from_fn(2, 2, |i, j| f64::from(u8::from(i + j == 0)) * 4.0);
        assert!(
            ScaledCholesky::new(&flat, 0.0, &monitor)
                .expect("not cancelled")
                .is_none()
        );
        let factor = ScaledCholesky::with_shift(&flat, 0.0, &monitor).expect("not cancelled");
        let mut b = Mat::from_fn(2, 1, |_, _| 1.0);
        factor.expect("finite").solve(&mut b);
        assert!((b[(0, 0)] - 0.25).abs() < 1e-15 && (b[(1, 0)] - 1.0).abs() < 1e-15);
        let undefined = Mat::from_fn(1, 1, |_, _| f64::NAN);
        let factor = ScaledCholesky::with_shift(&undefined, 0.0, &monitor);
        assert!(factor.expect("not cancelled").is_none());
    }
}
