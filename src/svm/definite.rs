//! Test of a kernel matrix for negative eigenvalues.
//!
//! # Problem
//! Without negative eigenvalues the dual has one optimal value, which every start leads to. With some
//! there are several local solutions, and the start decides which one is found.
//!
//! # Method
//! A negative eigenvalue found by Lanczos is proof. That none was found is not, but one that was missed
//! is small.
//!
//! # Cost
//! At most 40 passes over the matrix.

use rayon::prelude::*;

use super::gram::Gram;
use crate::linalg::extreme_eigenvalues;
use crate::{Monitor, Result};

/// Maximum number of products with the matrix.
const MAX_PRODUCTS: usize = 40;

/// Negative eigenvalues up to this fraction of the largest are rounding: values are f32.
const F32_ROUNDING: f64 = 1e-5;

/// Returns true if no negative eigenvalue was found; false also for a matrix that is not in memory.
pub(super) fn is_definite(gram: &Gram<'_>, monitor: &Monitor) -> Result<bool> {
    if !gram.is_full() {
        return Ok(false);
    }
    let all: Vec<usize> = (0..gram.len()).collect();
    gram.reserve(&all, monitor)?;
    let (smallest, largest) = extreme_eigenvalues(gram.len(), MAX_PRODUCTS, |vector| {
        monitor.check()?;
        let dot = |i: usize| {
            let row = gram.row(i);
            let terms = row.iter().zip(vector);
            terms.map(|(&k, v)| f64::from(k) * v).sum()
        };
        Ok((0..gram.len()).into_par_iter().map(dot).collect())
    })?;
    Ok(smallest >= -F32_ROUNDING * largest.max(0.0))
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;
    use crate::data::Dense;
    use crate::svm::kernel::Kernel;
    use crate::svm::memory::Budget;

    /// The result for the matrix with these entries.
    fn verdict(n: usize, entry: impl Fn(usize, usize) -> f64, megabytes: f64) -> bool {
        let values = Array2::from_shape_fn((n, n), |(i, j)| entry(i, j));
        let rows = Dense::new(values.view()).expect("contiguous");
        let row_of_sample: Vec<usize> = (0..n).collect();
        let budget = Budget::new(Some(megabytes)).expect("positive");
        let monitor = Monitor::new();
        let kernel = Kernel::Precomputed;
        let gram = Gram::new(&rows, &row_of_sample, kernel, budget, &monitor).expect("fits");
        is_definite(&gram, &monitor).expect("not stopped")
    }

    #[test]
    fn a_negative_eigenvalue_is_found() {
        let rbf = |i: usize, j: usize| (-0.01 * (i.abs_diff(j) as f64).powi(2)).exp();
        for n in [1, 2, 3, 50, 300] {
            assert!(verdict(n, rbf, 16.0));
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
