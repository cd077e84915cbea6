//! Extreme eigenvalues of a symmetric matrix that is known by its products.
//!
//! # Method
//! Lanczos: after m products of the matrix with a vector, the eigenvalues of a tridiagonal m × m matrix
//! lie between the extreme eigenvalues of the large one, and the outermost soon approach them.
//!
//! # References
//! Golub, Van Loan (2013), *Matrix Computations*, chapter 10.

use faer::{Mat, Side};

use super::start_vector;
use crate::Result;

/// Estimates of the smallest and the largest eigenvalue of an `n × n` matrix, from at most
/// `max_products` products with it. They lie between the true ones.
pub(crate) fn extreme_eigenvalues(
    n: usize,
    max_products: usize,
    product: impl Fn(&[f64]) -> Result<Vec<f64>>,
) -> Result<(f64, f64)> {
    let mut previous = vec![0.0; n];
    let mut vector = normalised(start_vector(n)).0;
    let (mut diagonal, mut off_diagonal) = (vec![], vec![]);
    for _ in 0..max_products.min(n) {
        let product = product(&vector)?;
        let alpha: f64 = product.iter().zip(&vector).map(|(a, b)| a * b).sum();
        let beta = off_diagonal.last().copied().unwrap_or(0.0);
        let basis = vector.iter().zip(&previous);
        let rest = product.iter().zip(basis);
        let rest = rest.map(|(p, (v, l))| p - alpha * v - beta * l).collect();
        diagonal.push(alpha);
        previous = vector;
        let length;
        (vector, length) = normalised(rest);
        off_diagonal.push(length);
        if length == 0.0 {
            break;
        }
    }
    let m = diagonal.len();
    let tridiagonal = Mat::from_fn(m, m, |i, j| match i.abs_diff(j) {
        0 => diagonal[i],
        1 => off_diagonal[i.min(j)],
        _ => 0.0,
    });
    let values = tridiagonal.self_adjoint_eigenvalues(Side::Lower);
    let values = values.unwrap_or_else(|_| vec![f64::NEG_INFINITY]);
    let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Ok((smallest, largest))
}

/// The vector scaled to length 1, and its length before.
fn normalised(mut vector: Vec<f64>) -> (Vec<f64>, f64) {
    let length = vector.iter().map(|v| v * v).sum::<f64>().sqrt();
    if length > 0.0 {
        for v in &mut vector {
            *v /= length;
        }
    }
    (vector, length)
}
