//! min ‖Ax − b‖ by conjugate gradients, from x = 0.
//!
//! Started at 0, the iterates stay in the row space of A, so the limit is A⁺b even if A is singular.
//! A is only multiplied (Hestenes and Stiefel's CGLS, algorithm 7.4.1 of Björck 1996).

use crate::Result;

/// Relative tolerance: low, because SMO corrects the start.
const RELATIVE_TOLERANCE: f64 = 1e-5;

/// Maximum number of iterations.
const MAX_ITERATIONS: usize = 60;

/// A matrix known by its products.
pub(super) trait Operator {
    /// Ax.
    fn times(&self, x: &[f64]) -> Result<Vec<f64>>;

    /// Aᵀy.
    fn transposed_times(&self, y: &[f64]) -> Result<Vec<f64>>;
}

/// The least-squares solution of least norm, approximately.
pub(super) fn solve(a: &impl Operator, b: Vec<f64>) -> Result<Vec<f64>> {
    let mut residual = b;
    let mut slope = a.transposed_times(&residual)?;
    let mut x = vec![0.0; slope.len()];
    let mut direction = slope.clone();
    let mut size = squared(&slope);
    let goal = RELATIVE_TOLERANCE * RELATIVE_TOLERANCE * size;
    for _ in 0..MAX_ITERATIONS.min(2 * x.len() + 2) {
        if size <= goal || size == 0.0 {
            break;
        }
        let image = a.times(&direction)?;
        let length = size / squared(&image);
        if !length.is_finite() {
            break;
        }
        add(&mut x, length, &direction);
        add(&mut residual, -length, &image);
        slope = a.transposed_times(&residual)?;
        let next = squared(&slope);
        for (d, s) in direction.iter_mut().zip(&slope) {
            *d = s + next / size * *d;
        }
        size = next;
    }
    Ok(x)
}

fn squared(x: &[f64]) -> f64 {
    x.iter().map(|v| v * v).sum()
}

fn add(to: &mut [f64], factor: f64, x: &[f64]) {
    for (to, x) in to.iter_mut().zip(x) {
        *to += factor * x;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Matrix<const N: usize>(Vec<[f64; N]>);

    impl<const N: usize> Operator for Matrix<N> {
        fn times(&self, x: &[f64]) -> Result<Vec<f64>> {
            let dot = |row: &[f64; N]| row.iter().zip(x).map(|(a, x)| a * x).sum();
            Ok(self.0.iter().map(dot).collect())
        }

        fn transposed_times(&self, y: &[f64]) -> Result<Vec<f64>> {
            let column = |j| self.0.iter().zip(y).map(|(row, y)| row[j] * y).sum();
            Ok((0..N).map(column).collect())
        }
    }

    #[test]
    fn a_singular_system_gets_its_pseudo_inverse() {
        // Columns 0 and 1 are equal, so x₀ + x₁ is determined and the least norm halves it.
        let a = Matrix(vec![[1.0, 1.0, 0.0], [2.0, 2.0, 1.0], [0.0, 0.0, 3.0]]);
        let x = solve(&a, vec![2.0, 7.0, 9.0]).expect("not stopped");
        for (found, expected) in x.iter().zip([1.0, 1.0, 3.0]) {
            assert!((found - expected).abs() < 1e-4, "{x:?}");
        }
        let zero = solve(&a, vec![0.0; 3]).expect("not stopped");
        assert_eq!(zero, [0.0; 3]);
    }
}
