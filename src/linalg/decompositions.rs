//! Eigenvalues of symmetric matrices, QR and Cholesky.
//!
//! Each checks the memory that faer will allocate, and runs in the background if it takes long.

use faer::Side;
use faer::linalg::solvers::{Llt, Solve};

use super::background::in_background;
use super::dense::solve_lower;
use super::{Mat, MatRef};
use crate::runtime::memory;
use crate::{Monitor, Result};

/// Values beyond which a matrix is scaled before its eigenvalues are computed: products of four of its
/// values must neither overflow nor underflow.
const MAX_UNSCALED: f64 = 1e70;

/// The eigenvalues of a symmetric matrix in increasing order, and its eigenvectors as columns;
/// `None` if a value of either is not finite, or if the iteration does not converge.
pub(crate) fn symmetric_eigen(
    mut a: Mat<f64>,
    monitor: &Monitor,
) -> Result<Option<(Vec<f64>, Mat<f64>)>> {
    let n = a.nrows();
    // Eigenvectors, their copy, and as much again for the reduction to tridiagonal form.
    check_memory("the eigenvectors", [4, n, n])?;
    let Some(unit) = scale_to_unit(&mut a) else {
        return Ok(None);
    };
    let n_multiplications = 4.0 * (n as f64).powi(3);
    let found = in_background(n_multiplications, monitor, move || {
        a.self_adjoint_eigen(Side::Lower).ok()
    })?;
    let Some(found) = found else { return Ok(None) };
    let values = found.S().column_vector().iter().map(|d| d * unit);
    let values: Vec<f64> = values.collect();
    let all_finite = values.iter().all(|value| value.is_finite());
    Ok(all_finite.then(|| (values, found.U().to_owned())))
}

/// Divides a matrix of very large or very small values by a power of two, which is returned: the
/// iteration does not end on an overflow. `None` if a value is not finite.
fn scale_to_unit(a: &mut Mat<f64>) -> Option<f64> {
    let largest = a.norm_max();
    let all_finite = a.col_iter().all(|c| c.iter().all(|v| v.is_finite()));
    if !all_finite || largest == 0.0 || (MAX_UNSCALED.recip()..MAX_UNSCALED).contains(&largest) {
        return all_finite.then_some(1.0);
    }
    let unit = largest.log2().floor().exp2();
    for column in a.col_iter_mut() {
        column.iter_mut().for_each(|v| *v /= unit);
    }
    Some(unit)
}

fn check_memory(what: &str, shape: [usize; 3]) -> Result<()> {
    let [_, n_rows, n_columns] = shape;
    let what = format_args!("{what} of a {n_rows} × {n_columns} matrix");
    memory::check_shape::<f64>(what, &shape)
}

/// Multiplications of a QR decomposition.
fn qr_multiplications(a: &Mat<f64>) -> f64 {
    a.nrows() as f64 * (a.ncols() as f64).powi(2)
}

/// The R factor of a QR decomposition: min(m, n) × n.
pub(super) fn r_factor(a: Mat<f64>, monitor: &Monitor) -> Result<Mat<f64>> {
    check_memory("the QR decomposition", [2, a.nrows(), a.ncols()])?;
    in_background(qr_multiplications(&a), monitor, move || {
        upper_triangle(a.qr().thin_R().to_owned())
    })
}

/// Sets the values below the diagonal to zero.
fn upper_triangle(mut r: Mat<f64>) -> Mat<f64> {
    for j in 0..r.ncols() {
        for i in j + 1..r.nrows() {
            r[(i, j)] = 0.0;
        }
    }
    r
}

/// Q and R of a QR decomposition, Q with as many columns as R has rows.
pub(crate) fn thin_qr(a: Mat<f64>, monitor: &Monitor) -> Result<(Mat<f64>, Mat<f64>)> {
    check_memory("the QR decomposition", [3, a.nrows(), a.ncols()])?;
    in_background(2.0 * qr_multiplications(&a), monitor, move || {
        let qr = a.qr();
        (qr.compute_thin_Q(), upper_triangle(qr.thin_R().to_owned()))
    })
}

/// A Cholesky factorisation.
#[derive(Debug)]
pub(crate) struct Cholesky(Llt<f64>);

impl Cholesky {
    /// Factors the lower triangle of `a`; `None` unless every pivot is above `min_pivot`.
    pub(crate) fn new(a: Mat<f64>, min_pivot: f64, monitor: &Monitor) -> Result<Option<Self>> {
        let n = a.nrows();
        check_memory("the Cholesky factor", [1, n, n])?;
        in_background((n as f64).powi(3) / 6.0, monitor, move || {
            let factor = a.llt(Side::Lower).ok()?;
            let l = factor.L();
            let is_safe = (0..n).all(|i| l[(i, i)] * l[(i, i)] > min_pivot);
            is_safe.then_some(Self(factor))
        })
    }

    /// [`Cholesky::new`] of a matrix with eigenvalues of at most 1; `None` also unless all of them
    /// exceed `min_eigenvalue`.
    pub(crate) fn within(
        a: Mat<f64>,
        (min_pivot, min_eigenvalue): (f64, f64),
        monitor: &Monitor,
    ) -> Result<Option<Self>> {
        let n = a.nrows();
        let shifted = (min_eigenvalue > 0.0).then(|| {
            let diagonal = |i, j| min_eigenvalue * f64::from(i == j);
            Mat::from_fn(n, n, |i, j| a[(i, j)] - diagonal(i, j))
        });
        let Some(factor) = Self::new(a, min_pivot, monitor)? else {
            return Ok(None);
        };
        // The determinant is at most the smallest eigenvalue.
        let l = factor.0.L();
        let determinant: f64 = (0..n).map(|i| l[(i, i)] * l[(i, i)]).product();
        let exceeds = match shifted {
            Some(shifted) if determinant <= min_eigenvalue => {
                Self::new(shifted, 0.0, monitor)?.is_some()
            }
            _ => true,
        };
        Ok(exceeds.then_some(factor))
    }

    /// The factor L of A = LLᵀ; what is above its diagonal is not defined.
    pub(crate) fn lower(&self) -> MatRef<'_, f64> {
        self.0.L()
    }

    /// B ← L⁻¹B for the factor L of A = LLᵀ.
    pub(crate) fn solve_lower(&self, b: &mut Mat<f64>) {
        solve_lower(self.0.L(), b.as_mut());
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
        let monitor = Monitor::new();
        // The last runs in the background.
        for n in [1, 2, 7, 60, 400] {
            let a = sample(n);
            let mut gram = Mat::zeros(n, n);
            add_outer(gram.as_mut(), a.as_ref());
            let mut gram = mirror_lower(gram);
            assert!(distance(&gram, &product(a.as_ref(), a.transpose())) < 1e-9);

            let r = r_factor(a.transpose().to_owned(), &monitor).expect("not cancelled");
            assert!(distance(&gram, &product(r.transpose(), r.as_ref())) < 1e-9);

            let found = symmetric_eigen(gram.clone(), &monitor).expect("not cancelled");
            let (values, vectors) = found.expect("finite");
            let scaled = Mat::from_fn(n, n, |i, j| vectors[(i, j)] * values[j]);
            assert!(distance(&gram, &product(scaled.as_ref(), vectors.transpose())) < 1e-8);

            for i in 0..n {
                gram[(i, i)] += 1.0;
            }
            let mut b = gram.clone();
            let factor = Cholesky::new(gram, 0.0, &monitor).expect("not cancelled");
            factor.expect("definite").solve(&mut b);
            assert!(distance(&b, &Mat::identity(n, n)) < 1e-8);
        }
    }

    #[test]
    fn eigenvalues_are_compared_with_a_bound() {
        // Eigenvalues 0.2 (once) and 0.8.
        let n = 30;
        let a = Mat::from_fn(n, n, |i, j| 0.8 * f64::from(i == j) - 0.6 / n as f64);
        for (bound, expected) in [(0.0, true), (0.199, true), (0.201, false), (2.0, false)] {
            let found = Cholesky::within(a.clone(), (0.0, bound), &Monitor::new());
            assert_eq!(found.expect("not stopped").is_some(), expected, "{bound}");
        }
    }

    #[test]
    fn singular_and_non_finite_matrices_are_refused() {
        let monitor = Monitor::new();
        let singular = Mat::from_fn(2, 2, |_, _| 1.0);
        let factor = Cholesky::new(singular, 1e-10, &monitor).expect("not cancelled");
        assert!(factor.is_none());
        let undefined = Mat::from_fn(2, 2, |_, _| f64::NAN);
        let found = symmetric_eigen(undefined, &monitor).expect("not cancelled");
        assert!(found.is_none());
    }

    #[test]
    fn values_near_the_limits_of_the_range_do_not_overflow() {
        let eigen = |a: Mat<f64>| symmetric_eigen(a, &Monitor::new()).expect("not cancelled");
        let n = 50;
        let (expected, _) = eigen(mirror_lower(sample(n))).expect("finite");
        for scale in [1e-300, 1e305] {
            let a = mirror_lower(Mat::from_fn(n, n, |i, j| sample(n)[(i, j)] * scale));
            let (values, vectors) = eigen(a).expect("finite");
            for (value, expected) in values.iter().zip(&expected) {
                assert!(
                    (value / scale - expected).abs() < 1e-11,
                    "{value} {expected}"
                );
            }
            let squared = product(vectors.transpose(), vectors.as_ref());
            assert!(distance(&squared, &Mat::identity(n, n)) < 1e-12);
        }
        // The largest eigenvalue is beyond the range.
        assert!(eigen(Mat::from_fn(n, n, |_, _| 1e307)).is_none());
    }
}
