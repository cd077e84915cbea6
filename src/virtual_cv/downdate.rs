//! Folds larger than the model: one system of the size of the model per fold.
//!
//! In coordinates z the penalised system of all rows is diag(1/g); without the rows D it is
//! diag(1/g) − M_D, M_D = Σ_D w·zzᵀ. Scaled by √g on both sides that is I − B, which has the same
//! smallest eigenvalue as I − H_DD, so the same bound on its pivots decides whether enough digits are
//! left.

use std::ops::Range;

use super::eliminate::MIN_PIVOT;
use super::primal::Primal;
use crate::data::Layout;
use crate::linalg::{self, Cholesky, Mat};
use crate::linear::{Fitted, MATRIX_ROWS, PANEL_ROWS, Removed, par_reduce, training_rows};
use crate::runtime::memory;
use crate::{Monitor, Resampling, Result};

/// The smallest sum of squared errors relative to the terms that cancel in it: about ten of its
/// digits are right then.
const MIN_ERROR_FRACTION: f64 = 1e-5;

/// The fits of one fold: one column per λ and output.
pub(super) struct Downdated {
    pub(super) fitted: Fitted,
    theta: Mat<f64>,
    /// Σ bbᵀ over the test rows with b = (z, 1, y − ȳ), if these are the removed rows and there are
    /// no weights.
    test_moments: Option<Mat<f64>>,
}

impl Downdated {
    /// The sums of squared errors of the test rows, from their moments: y − ȳ − θᵀ(z, 1) is uᵀb with
    /// u = (−θ, 1), so the sum of its squares is uᵀ(Σ bbᵀ)u. `None` if there are no moments, or if
    /// too many digits cancel.
    pub(super) fn squared_errors(&self) -> Option<Vec<f64>> {
        let moments = self.test_moments.as_ref()?;
        let n = self.theta.nrows();
        let q = moments.nrows() - n;
        let u = Mat::from_fn(n + q, self.theta.ncols(), |i, c| {
            if i < n {
                -self.theta[(i, c)]
            } else {
                f64::from(i - n == c % q)
            }
        });
        let mu = linalg::product(moments.as_ref(), u.as_ref());
        (0..u.ncols())
            .map(|c| {
                let (u, mu) = (u.col(c), mu.col(c));
                let total: f64 = u.iter().zip(mu.iter()).map(|(u, mu)| u * mu).sum();
                // (Σ |u_i|·√M_ii)² bounds the sum of the absolute terms.
                let root: f64 = (0..n + q)
                    .map(|i| u[i].abs() * moments[(i, i)].sqrt())
                    .sum();
                (total > MIN_ERROR_FRACTION * root * root).then_some(total)
            })
            .collect()
    }
}

impl<R: Layout> Primal<'_, R> {
    /// Fits one fold for every λ; `None` if it has to be refitted.
    pub(super) fn downdate(
        &self,
        folds: &dyn Resampling,
        fold: usize,
        monitor: &Monitor,
    ) -> Result<Option<Downdated>> {
        let width = self.problem.width();
        memory::check_shape::<f64>(format_args!("fold {fold}"), &[6, width, width])?;
        let removed = Removed::new(folds, fold);
        if removed.has_repeats && self.min_eigenvalue > 0.0 {
            // Repeated rows may enlarge the largest singular value.
            return Ok(None);
        }
        if self.problem.targets.are_mostly_in(&removed.rows) {
            return Ok(None);
        }
        // The moments of the removed rows or of the training rows, whichever are fewer.
        let is_removed = removed.are_few(folds.n_samples());
        let moments = match self.moments.folds.get(fold) {
            Some(moments) if self.is_from_gram && is_removed => self.rotate(moments, monitor)?,
            _ if is_removed => self.coord_moments(&removed.rows, monitor)?,
            _ => self.coord_moments(&training_rows(folds, Some(fold)), monitor)?,
        };
        let n = self.n_coordinates();
        let (g, q) = (&self.g, self.target_mean.len());
        let mut theta = Mat::zeros(n, self.alphas.len() * q);
        for (l, &alpha) in self.alphas.iter().enumerate() {
            let root = |i: usize| g[(i, l)].sqrt();
            let penalty = |i: usize| {
                if i < self.spectrum.d.len() {
                    alpha
                } else {
                    0.0
                }
            };
            let system = Mat::from_fn(n, n, |i, j| {
                let inner = root(i) * moments[(i.max(j), i.min(j))] * root(j);
                let diagonal = f64::from(i == j);
                if is_removed {
                    diagonal - inner
                } else {
                    inner + diagonal * penalty(i) * g[(i, l)]
                }
            });
            let bounds = (MIN_PIVOT, self.min_eigenvalue);
            let Some(factor) = Cholesky::within(system, bounds, monitor)? else {
                return Ok(None);
            };
            let mut b = Mat::from_fn(n, q, |i, o| {
                let moment = moments[(n + o, i)];
                let all = self.spectrum.products.col(o);
                let rest = if !is_removed {
                    moment
                } else if i < all.nrows() {
                    all[i] - moment
                } else {
                    -moment
                };
                rest * root(i)
            });
            factor.solve(&mut b);
            for o in 0..q {
                for i in 0..n {
                    theta[(i, l * q + o)] = b[(i, o)] * root(i);
                }
            }
        }
        let is_test = folds.partition().is_some() && !self.problem.targets.is_weighted();
        Ok(Some(Downdated {
            fitted: self.to_fitted(&theta),
            theta,
            test_moments: (is_removed && is_test).then(|| linalg::mirror_lower(moments)),
        }))
    }

    /// Σ w·bbᵀ with b = (z, 1, y − ȳ), from Σ w·aaᵀ with a = (x − shift, y, 1).
    fn rotate(&self, moments: &Mat<f64>, monitor: &Monitor) -> Result<Mat<f64>> {
        let moments = linalg::mirror_lower(moments.clone());
        let map = self.coordinate_map();
        let half = linalg::par_product(map.as_ref(), moments.as_ref(), monitor)?;
        linalg::par_product(half.as_ref(), map.transpose(), monitor)
    }

    /// Σ w·bbᵀ over `rows`.
    fn coord_moments(&self, rows: &[usize], monitor: &Monitor) -> Result<Mat<f64>> {
        if self.is_from_gram {
            let map = &self.moments.map;
            let moments = self.problem.second_moments(map, rows, monitor)?;
            return self.rotate(&moments, monitor);
        }
        let (n, q) = (self.n_coordinates(), self.target_mean.len());
        let targets = &self.problem.targets;
        let part = |part: Range<usize>| {
            let mut total = linalg::zeros("second moments", n + q, n + q)?;
            for rows in rows[part].chunks(PANEL_ROWS) {
                monitor.check()?;
                let z = self.scaled_coords(rows, |row| targets.root_weight(row));
                let b = Mat::from_fn(n + q, rows.len(), |i, c| {
                    if i < n {
                        return z[(i, c)];
                    }
                    let y = targets.row(rows[c])[i - n] - self.target_mean[i - n];
                    y * targets.root_weight(rows[c])
                });
                linalg::add_outer(total.as_mut(), b.as_ref());
            }
            Ok(total)
        };
        par_reduce((rows.len(), MATRIX_ROWS), monitor, part, |total, part| {
            *total += part;
        })
    }
}
