//! Whether a kernel matrix is positive semidefinite, as far as a few products with it tell.
//!
//! # Problem
//! Without a negative eigenvalue the dual has one optimal value, and every start leads to it. With
//! one there are several solutions, and where the solver ends depends on where it starts.
//!
//! # Method
//! Lanczos: after m products of the matrix with a vector, the eigenvalues of a small tridiagonal
//! matrix lie between the extremes of the large one, and the outermost are soon close to these. So
//! a negative one is proof; that none was found is not, but what is missed then is small.
//!
//! # Cost
//! At most 40 readings of the matrix.
//!
//! # References
//! Golub, Van Loan (2013), *Matrix Computations*, chapter 10.

use faer::{Mat, Side};
use rayon::prelude::*;

use super::gram::Gram;
use crate::{Monitor, Result};

/// Products with the matrix.
const PRODUCTS: usize = 40;

/// Negative eigenvalues up to this share of the largest are rounding: values are f32.
const ROUNDING: f64 = 1e-5;

/// Whether no eigenvalue is negative. A matrix that is not in memory is not looked at: no.
pub(super) fn is_definite(gram: &Gram<'_>, monitor: &Monitor) -> Result<bool> {
    if !gram.is_full() {
        return Ok(false);
    }
    let n = gram.len();
    let mut previous = vec![0.0; n];
    let mut vector = normalised(crate::linalg::start_vector(n)).0;
    let (mut diagonal, mut beside) = (vec![], vec![]);
    for _ in 0..PRODUCTS.min(n) {
        monitor.check()?;
        let product = product(gram, &vector);
        let share: f64 = product.iter().zip(&vector).map(|(a, b)| a * b).sum();
        let before = beside.last().copied().unwrap_or(0.0);
        let known = vector.iter().zip(&previous);
        let rest = product.iter().zip(known);
        let rest = rest.map(|(p, (v, l))| p - share * v - before * l).collect();
        diagonal.push(share);
        previous = vector;
        let length;
        (vector, length) = normalised(rest);
        beside.push(length);
        if length == 0.0 {
            break;
        }
    }
    let m = diagonal.len();
    let small = Mat::from_fn(m, m, |i, j| match i.abs_diff(j) {
        0 => diagonal[i],
        1 => beside[i.min(j)],
        _ => 0.0,
    });
    let values = small.self_adjoint_eigenvalues(Side::Lower);
    let values = values.unwrap_or_else(|_| vec![f64::NEG_INFINITY]);
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    Ok(least >= -ROUNDING * most)
}

fn product(gram: &Gram<'_>, vector: &[f64]) -> Vec<f64> {
    let dot = |i: usize| {
        let row = gram.row(i);
        let terms = row.iter().zip(vector);
        terms.map(|(&k, v)| f64::from(k) * v).sum()
    };
    (0..gram.len()).into_par_iter().map(dot).collect()
}

/// The vector at length 1, and the length it had.
fn normalised(mut vector: Vec<f64>) -> (Vec<f64>, f64) {
    let length = vector.iter().map(|v| v * v).sum::<f64>().sqrt();
    if length > 0.0 {
        for v in &mut vector {
            *v /= length;
        }
    }
    (vector, length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dense;
    use crate::svm::kernel::Kernel;
    use crate::svm::memory::Budget;

    /// Whether the matrix with these entries is taken for definite.
    fn verdict(n: usize, entry: impl Fn(usize, usize) -> f64, megabytes: f64) -> bool {
        let values: Vec<f64> = (0..n * n).map(|at| entry(at / n, at % n)).collect();
        let rows = Dense::new(&values, n, n).expect("square");
        let order: Vec<usize> = (0..n).collect();
        let budget = Budget::new(Some(megabytes)).expect("positive");
        let monitor = Monitor::new();
        let gram = Gram::new(&rows, &order, Kernel::Precomputed, budget, &monitor).expect("fits");
        is_definite(&gram, &monitor).expect("not stopped")
    }

    #[test]
    fn a_negative_eigenvalue_is_found() {
        let distance = |i: usize, j: usize| i.abs_diff(j) as f64;
        for n in [1, 2, 3, 50, 300] {
            assert!(verdict(
                n,
                |i, j| (-0.01 * distance(i, j).powi(2)).exp(),
                16.0
            ));
            assert!(verdict(n, |_, _| 1.0, 16.0));
            // 1 − ε on the diagonal of a matrix of ones: one negative eigenvalue or more.
            let dented = |i, j| if i == j { 0.99 } else { 1.0 };
            assert_eq!(verdict(n, dented, 16.0), n == 1);
        }
    }

    #[test]
    fn a_matrix_that_is_not_in_memory_is_not_trusted() {
        assert!(!verdict(300, |i, j| if i == j { 1.0 } else { 0.0 }, 0.1));
    }
}
