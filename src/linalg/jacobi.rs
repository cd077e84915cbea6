//! One-sided Jacobi: singular values to high relative accuracy.
//!
//! # Problem
//! The singular values of a badly *scaled* matrix (columns in metres and millimetres),
//! small ones as precisely as large ones.
//!
//! # Method
//! Pairs of columns of A are rotated until all are orthogonal: AV = W, σ_j = ‖w_j‖. The
//! error depends on the condition number of A with its columns scaled to equal length.
//!
//! # Cost
//! O(m·n²) per sweep, some eight sweeps.
//!
//! # References
//! Demmel and Veselić, "Jacobi's method is more accurate than QR", SIAM J. Matrix
//! Anal. Appl. 13 (1992).

use super::Mat;
use crate::runtime::memory;
use crate::{Monitor, Result};

/// Upper bound on the sweeps; about eight suffice.
const MAX_SWEEPS: usize = 60;

/// AV = W with orthogonal columns W, longest first.
pub(crate) struct Svd {
    /// σ.
    pub(crate) values: Vec<f64>,
    /// V: one column per singular value.
    pub(crate) right: Mat<f64>,
    /// W = UΣ.
    pub(crate) scaled_left: Mat<f64>,
}

/// The singular value decomposition of `a`.
pub(crate) fn jacobi_svd(a: &Mat<f64>, monitor: &Monitor) -> Result<Svd> {
    let n = a.ncols();
    let what = format_args!("the singular values of a {} × {n} matrix", a.nrows());
    memory::check_shape::<f64>(what, &[4, a.nrows().max(n), n])?;
    let mut w = a.clone();
    let mut v = Mat::identity(n, n);
    for _ in 0..MAX_SWEEPS {
        if !sweep(&mut w, &mut v, monitor)? {
            break;
        }
    }
    let norms: Vec<f64> = (0..n).map(|j| w.col(j).norm_l2()).collect();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| norms[j].total_cmp(&norms[i]));
    Ok(Svd {
        values: order.iter().map(|&j| norms[j]).collect(),
        right: Mat::from_fn(n, n, |i, j| v[(i, order[j])]),
        scaled_left: Mat::from_fn(a.nrows(), n, |i, j| w[(i, order[j])]),
    })
}

/// Rotates every pair of columns once; returns false if all were orthogonal already.
fn sweep(w: &mut Mat<f64>, v: &mut Mat<f64>, monitor: &Monitor) -> Result<bool> {
    let tolerance = f64::EPSILON * (w.nrows() as f64).sqrt();
    let mut has_rotated = false;
    for i in 0..w.ncols() {
        monitor.check()?;
        for j in i + 1..w.ncols() {
            let (a, b) = (w.col(i).norm_l2(), w.col(j).norm_l2());
            if a == 0.0 || b == 0.0 {
                continue;
            }
            let cosine = w.col(i).transpose() * w.col(j) / a / b;
            if cosine.abs() <= tolerance {
                continue;
            }
            has_rotated = true;
            let zeta = (b / a - a / b) / (2.0 * cosine);
            let t = zeta.signum() / (zeta.abs() + zeta.hypot(1.0));
            let c = 1.0 / t.hypot(1.0);
            rotate(w, (i, j), (c, c * t));
            rotate(v, (i, j), (c, c * t));
        }
    }
    Ok(has_rotated)
}

/// (x_i, x_j) ← (c·x_i − s·x_j, s·x_i + c·x_j).
fn rotate(x: &mut Mat<f64>, (i, j): (usize, usize), (c, s): (f64, f64)) {
    let (left, right) = x.as_mut().split_at_col_mut(j);
    let pairs = left.col_mut(i).iter_mut().zip(right.col_mut(0).iter_mut());
    for (a, b) in pairs {
        (*a, *b) = (c * *a - s * *b, s * *a + c * *b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::product;

    #[test]
    fn small_values_of_a_graded_matrix_keep_their_digits() {
        // Columns of lengths 1, 1e-8, …, 1e-56, far from orthogonal.
        let n = 8;
        let scale = |j: usize| 1e-8_f64.powi(i32::try_from(j).expect("small"));
        let well = Mat::from_fn(n, n, |i, j| {
            1.0 / (1.0 + (i + 2 * j) as f64) + f64::from(i == j)
        });
        let graded = Mat::from_fn(n, n, |i, j| well[(i, j)] * scale(j));
        let found = jacobi_svd(&graded, &Monitor::new()).expect("not cancelled");
        // |det| is the product of the singular values: relative accuracy of all of them.
        let product_of_values: f64 = (0..n).map(|j| found.values[j] / scale(j)).product();
        assert!((product_of_values / well.determinant().abs() - 1.0).abs() < 1e-12);
        let back = product(found.scaled_left.as_ref(), found.right.transpose());
        for j in 0..n {
            for i in 0..n {
                assert!((back[(i, j)] - graded[(i, j)]).abs() < 1e-13);
            }
        }
    }

    #[test]
    fn zero_columns_stay_zero() {
        let a = Mat::from_fn(3, 3, |i, j| if j == 1 { 0.0 } else { (i + j) as f64 });
        let found = jacobi_svd(&a, &Monitor::new()).expect("not cancelled");
        assert_eq!(found.values[2], 0.0);
    }
}
