//! Coordinates in which the penalised system is diagonal, and whether they are accurate enough.
//!
//! # Problem
//! With XᵀX = V·diag(d)·Vᵀ and z = Vᵀx, the fit for any λ is
//! θ_j = (Vᵀ Xᵀy)_j / (d_j + λ): one decomposition serves all λ.
//!
//! # Method
//! The eigenvalues of the Gram are cheap, but their error is about ε·d_max; they are used
//! if that error does not affect the predictions. Otherwise V comes from the singular values of the R
//! factor of the rows, the smallest of which are accurate. There a direction is either well above
//! rounding, or zero to rounding (the minimum-norm solution, which is also scikit-learn's, leaves it
//! out), or neither: then there is no result. A [`Cutoff`] draws the line higher.

use super::model::Cutoff;
use crate::linalg::{self, Mat};
use crate::{Monitor, Result};

/// The largest relative error that an eigenvalue of the Gram may cause in a prediction.
const MAX_GRAM_ERROR: f64 = 1e-10;
/// The same for a singular value of the R factor.
const MAX_R_ERROR: f64 = 1e-6;
/// The relative distance from a cut-off within which another solver may decide otherwise.
const CUTOFF_MARGIN: f64 = 1e-6;
/// The relative rounding error of a QR decomposition.
const QR_ROUNDING: f64 = 8.0 * f64::EPSILON;

/// z = Vᵀx and the sums of its squares and products over all rows.
pub(super) struct Spectrum {
    /// Vᵀ: one row per direction.
    pub(super) vt: Mat<f64>,
    /// d: the sum of z_j² over the rows.
    pub(super) d: Vec<f64>,
    /// Σ z·yᵀ.
    pub(super) products: Mat<f64>,
    /// Whether the cut-off has set directions to zero that rounding alone would have kept.
    pub(super) is_truncated: bool,
}

/// What becomes of a direction of the R factor.
enum Direction {
    Kept,
    /// Set to zero by the cut-off.
    Truncated,
    /// Rounding hides which.
    Unclear,
}

impl Spectrum {
    /// From the Gram and Σ x·yᵀ; `None` if the eigenvalues are too inaccurate for penalty `alpha`, or
    /// the smallest is near the cut-off or below.
    pub(super) fn from_gram(
        gram: &Mat<f64>,
        products: &Mat<f64>,
        alpha: f64,
        cutoff: Option<Cutoff>,
        monitor: &Monitor,
    ) -> Result<Option<Self>> {
        let Some((values, vectors)) = linalg::symmetric_eigen(gram.clone(), monitor)? else {
            return Ok(None);
        };
        let largest = values.last().copied().unwrap_or(0.0);
        let noise = f64::EPSILON * values.len() as f64 * largest;
        let min_kept = cutoff.map_or(0.0, |c| 4.0 * c.ratio * c.ratio * largest);
        let is_safe = |d: &f64| {
            let d = d.max(0.0);
            noise * ((d + noise) / largest).sqrt() <= MAX_GRAM_ERROR * (d + alpha) && d >= min_kept
        };
        let vt = vectors.transpose().to_owned();
        let is_accurate = largest == 0.0 || values.iter().all(is_safe);
        Ok(is_accurate.then(|| Self {
            products: linalg::product(vt.as_ref(), products.as_ref()),
            d: values.into_iter().map(|d| d.max(0.0)).collect(),
            vt,
            is_truncated: false,
        }))
    }

    /// From the R factor of the rows (x, y); `None` if rounding hides which directions the rows
    /// determine, or which are below the cut-off.
    pub(super) fn from_r_factor(
        r: &Mat<f64>,
        n_features: usize,
        alpha: f64,
        cutoff: Option<Cutoff>,
        monitor: &Monitor,
    ) -> Result<Option<Self>> {
        let n = r.nrows().min(n_features);
        let x = r.get(..n, ..n_features);
        let y = r.get(..n, n_features..);
        let norms: Vec<f64> = (0..n_features).map(|j| x.col(j).norm_l2()).collect();
        // A wide factor is reduced to a square one first: the cost of Jacobi grows with the columns.
        let is_wide = n < n_features;
        let (svd, right) = if is_wide {
            let (q, l) = linalg::thin_qr(x.transpose().to_owned(), monitor)?;
            let svd = linalg::jacobi_svd(&l.transpose().to_owned(), monitor)?;
            let right = linalg::par_product(q.as_ref(), svd.right.as_ref(), monitor)?;
            (svd, right)
        } else {
            let mut svd = linalg::jacobi_svd(&x.to_owned(), monitor)?;
            let right = std::mem::replace(&mut svd.right, Mat::new());
            (svd, right)
        };
        let largest = svd.values.first().copied().unwrap_or(0.0);
        let zero = QR_ROUNDING * n_features.max(64) as f64;
        let mut is_truncated = false;
        let mut kept = vec![];
        for (j, &value) in svd.values.iter().enumerate() {
            // Proportional to the rounding error in this direction.
            let weighted = right.col(j).iter().zip(&norms).map(|(v, l)| v * l);
            let graded = weighted.fold(0.0, |sum: f64, v| sum.hypot(v));
            // The reduction to a square factor mixes the columns, whose norms then do not bound it.
            let reference = if is_wide { largest } else { graded };
            let shrinkage = 1.0 / (1.0 + alpha / value / value);
            let by_cutoff = cutoff.map_or(Direction::Kept, |c| c.direction(value, largest));
            match by_cutoff {
                _ if value <= zero * reference => {}
                Direction::Kept if QR_ROUNDING * reference * shrinkage <= MAX_R_ERROR * value => {
                    kept.push(j);
                }
                Direction::Truncated => is_truncated = true,
                _ => return Ok(None),
            }
        }
        let left = svd.scaled_left;
        Ok(Some(Self {
            vt: Mat::from_fn(kept.len(), n_features, |i, j| right[(j, kept[i])]),
            d: kept.iter().map(|&j| svd.values[j].powi(2)).collect(),
            products: Mat::from_fn(kept.len(), y.ncols(), |i, j| {
                left.col(kept[i]).transpose() * y.col(j)
            }),
            is_truncated,
        }))
    }

    /// The smallest eigenvalue of I − H_DD that keeps all singular values of a fold above the cut-off,
    /// without a scaler; infinite if one of all rows is not. (Without D the largest singular value can
    /// only fall, and the squares of the others are at least the eigenvalue times those of all rows.)
    pub(super) fn min_eigenvalue(&self, cutoff: Option<Cutoff>) -> f64 {
        let Some(cutoff) = cutoff else {
            return 0.0;
        };
        if self.is_truncated {
            return f64::INFINITY;
        }
        let largest = self.d.iter().copied().fold(0.0, f64::max);
        let smallest = self.d.iter().copied().fold(largest, f64::min);
        if largest == 0.0 {
            return 0.0;
        }
        (1.0 + CUTOFF_MARGIN) * cutoff.ratio.powi(2) * (largest / smallest)
    }

    /// θ for every λ: one column per λ and output.
    pub(super) fn solve(&self, alphas: &[f64]) -> Mat<f64> {
        let q = self.products.ncols();
        Mat::from_fn(self.d.len(), alphas.len() * q, |i, c| {
            let total = self.d[i] + alphas[c / q];
            // A zero column without penalty: the minimum-norm coefficient is zero.
            if total == 0.0 {
                0.0
            } else {
                self.products[(i, c % q)] / total
            }
        })
    }
}

impl Cutoff {
    /// What becomes of a singular value, given the largest.
    fn direction(self, value: f64, largest: f64) -> Direction {
        let limit = self.ratio * largest;
        // The singular values of another solver differ by the rounding of the largest.
        let margin = CUTOFF_MARGIN * limit + QR_ROUNDING * largest;
        if value > limit + margin {
            Direction::Kept
        } else if value < limit - margin && self.truncates {
            Direction::Truncated
        } else {
            Direction::Unclear
        }
    }
}
