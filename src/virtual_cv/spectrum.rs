//! Axes along which the penalised system is diagonal, and whether they can be trusted.
//!
//! With XᵀX = V·diag(d)·Vᵀ and z = Vᵀx, the fit for any λ is θ_j = (Vᵀ Xᵀy)_j / (d_j + λ): one
//! decomposition serves a whole grid. From the Gram it is cheap, but an eigenvalue comes with an
//! error of about ε·d_max, so a direction counts only if that error does not show in the
//! predictions. Otherwise the same axes come from the triangular factor of the rows, whose
//! smallest values keep their digits; there a direction either stands clear of rounding, or is
//! clearly nothing (the minimum-norm solution leaves it out, as scikit-learn's does), or it is
//! neither, and then no number is given for it.

use crate::linalg::{self, Mat};
use crate::{Monitor, Result};

/// The largest relative error that an eigenvalue of the Gram may cause in a prediction.
const GRAM_ERROR: f64 = 1e-10;
/// The same for a singular value of the triangular factor.
const TRIANGLE_ERROR: f64 = 1e-6;

/// z = Ax and the length of every coordinate over all rows.
pub(super) struct Spectrum {
    /// A, a row a direction.
    pub(super) axes: Mat<f64>,
    /// d: the sum of z_j² over the rows.
    pub(super) values: Vec<f64>,
    /// Σ z·yᵀ.
    pub(super) products: Mat<f64>,
}

impl Spectrum {
    /// From the Gram and Σ x·yᵀ; `None` when its digits do not suffice for penalty `alpha`.
    pub(super) fn of_gram(gram: &Mat<f64>, products: &Mat<f64>, alpha: f64) -> Option<Self> {
        let (values, vectors) = linalg::symmetric_eigen(gram)?;
        let largest = values.last().copied().unwrap_or(0.0);
        let noise = f64::EPSILON * values.len() as f64 * largest;
        let is_safe = |d: &f64| {
            let d = d.max(0.0);
            noise * ((d + noise) / largest).sqrt() <= GRAM_ERROR * (d + alpha)
        };
        let axes = vectors.transpose().to_owned();
        (largest == 0.0 || values.iter().all(is_safe)).then(|| Self {
            products: linalg::product(axes.as_ref(), products.as_ref()),
            values: values.into_iter().map(|d| d.max(0.0)).collect(),
            axes,
        })
    }

    /// From the triangular factor of the rows (x, y); `None` when it is not clear which
    /// directions the rows determine.
    pub(super) fn of_triangle(
        triangle: &Mat<f64>,
        n_features: usize,
        alpha: f64,
        monitor: &Monitor,
    ) -> Result<Option<Self>> {
        let n = triangle.nrows().min(n_features);
        let x = triangle.get(..n, ..n_features);
        let y = triangle.get(..n, n_features..);
        let lengths: Vec<f64> = (0..n_features).map(|j| x.col(j).norm_l2()).collect();
        // A wide factor is made square first: Jacobi's work grows with the columns.
        let is_wide = n < n_features;
        let (svd, right) = if is_wide {
            let (q, r) = linalg::thin_qr(&x.transpose().to_owned());
            let svd = linalg::jacobi_svd(&r.transpose().to_owned(), monitor)?;
            let right = linalg::product(q.as_ref(), svd.right.as_ref());
            (svd, right)
        } else {
            let mut svd = linalg::jacobi_svd(&x.to_owned(), monitor)?;
            let right = std::mem::replace(&mut svd.right, Mat::new());
            (svd, right)
        };
        let rounding = 8.0 * f64::EPSILON;
        let cutoff = rounding * n_features.max(64) as f64;
        let mut kept = vec![];
        for (j, &value) in svd.values.iter().enumerate() {
            // What rounding alone could make of this direction.
            let weighted = right.col(j).iter().zip(&lengths).map(|(v, l)| v * l);
            let graded = weighted.fold(0.0, |sum: f64, v| sum.hypot(v));
            // Made square, the factor has forgotten the lengths of its columns.
            let reference = if is_wide { svd.values[0] } else { graded };
            if value <= cutoff * reference {
                continue;
            }
            let gain = 1.0 / (1.0 + alpha / value / value);
            if rounding * reference * gain > TRIANGLE_ERROR * value {
                return Ok(None);
            }
            kept.push(j);
        }
        let left = svd.scaled_left;
        Ok(Some(Self {
            axes: Mat::from_fn(kept.len(), n_features, |i, j| right[(j, kept[i])]),
            values: kept.iter().map(|&j| svd.values[j].powi(2)).collect(),
            products: Mat::from_fn(kept.len(), y.ncols(), |i, j| {
                left.col(kept[i]).transpose() * y.col(j)
            }),
        }))
    }

    /// θ for every λ: a column a λ and output.
    pub(super) fn solve(&self, alphas: &[f64]) -> Mat<f64> {
        let q = self.products.ncols();
        Mat::from_fn(self.values.len(), alphas.len() * q, |i, c| {
            let total = self.values[i] + alphas[c / q];
            // A column of zeros without penalty: the minimum-norm coefficient is zero.
            if total == 0.0 {
                0.0
            } else {
                self.products[(i, c % q)] / total
            }
        })
    }
}
