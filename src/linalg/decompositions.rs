//! Eigenvalues of symmetric matrices, QR and Cholesky.

use faer::Side;
use faer::linalg::solvers::{Llt, Solve};

use super::Mat;

/// The eigenvalues of a symmetric matrix in increasing order, and its eigenvectors as columns;
/// `None` if a value is not finite or the iteration does not converge.
pub(crate) fn symmetric_eigen(a: &Mat<f64>) -> Option<(Vec<f64>, Mat<f64>)> {
    let all_finite = a.col_iter().all(|c| c.iter().all(|v| v.is_finite()));
    let found = all_finite.then(|| a.self_adjoint_eigen(Side::Lower).ok())??;
    let values = found.S().column_vector().iter().copied().collect();
    Some((values, found.U().to_owned()))
}

/// The R factor of a QR decomposition: min(m, n) × n.
pub(super) fn r_factor(a: &Mat<f64>) -> Mat<f64> {
    let mut r = a.qr().thin_R().to_owned();
    for j in 0..r.ncols() {
        for i in j + 1..r.nrows() {
            r[(i, j)] = 0.0;
        }
    }
    r
}

/// Q and R of a QR decomposition, Q with as many columns as R has rows.
pub(crate) fn thin_qr(a: &Mat<f64>) -> (Mat<f64>, Mat<f64>) {
    (a.qr().compute_thin_Q(), r_factor(a))
}

/// A Cholesky factorisation.
pub(crate) struct Cholesky(Llt<f64>);

impl Cholesky {
    /// Factors the lower triangle of `a`; `None` unless every pivot is above `min_pivot`.
    pub(crate) fn new(a: &Mat<f64>, min_pivot: f64) -> Option<Self> {
        let factor = a.llt(Side::Lower).ok()?;
        let l = factor.L();
        let is_safe = (0..a.nrows()).all(|i| l[(i, i)] * l[(i, i)] > min_pivot);
        is_safe.then_some(Self(factor))
    }

    /// B ← A⁻¹B.
    pub(crate) fn solve(&self, b: &mut Mat<f64>) {
        self.0.solve_in_place(b.as_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{add_outer, mirror_lower, product};

    fn sample(n: usize) -> Mat<f64> {
        Mat::from_fn(n, n, |i, j| {
            ((i * 7 + j * 3) % 5) as f64 + f64::from(i == j)
        })
    }

    fn distance(a: &Mat<f64>, b: &Mat<f64>) -> f64 {
        (a - b).norm_max()
    }

    #[test]
    fn factors_multiply_back() {
        for n in [1, 2, 7, 60] {
            let a = sample(n);
            let mut gram = Mat::zeros(n, n);
            add_outer(gram.as_mut(), a.as_ref());
            let mut gram = mirror_lower(gram);
            assert!(distance(&gram, &product(a.as_ref(), a.transpose())) < 1e-9);

            let r = r_factor(&a.transpose().to_owned());
            assert!(distance(&gram, &product(r.transpose(), r.as_ref())) < 1e-9);

            let (values, vectors) = symmetric_eigen(&gram).expect("finite");
            let scaled = Mat::from_fn(n, n, |i, j| vectors[(i, j)] * values[j]);
            assert!(distance(&gram, &product(scaled.as_ref(), vectors.transpose())) < 1e-8);

            for i in 0..n {
                gram[(i, i)] += 1.0;
            }
            let mut b = gram.clone();
            Cholesky::new(&gram, 0.0).expect("definite").solve(&mut b);
            assert!(distance(&b, &Mat::identity(n, n)) < 1e-8);
        }
    }

    #[test]
    fn singular_and_non_finite_matrices_are_refused() {
        let singular = Mat::from_fn(2, 2, |_, _| 1.0);
        assert!(Cholesky::new(&singular, 1e-10).is_none());
        assert!(symmetric_eigen(&Mat::from_fn(2, 2, |_, _| f64::NAN)).is_none());
    }
}
