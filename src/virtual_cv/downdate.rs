//! Folds larger than the model: a system of the model's own size a fold.
//!
//! In coordinates z the penalised system of all rows is diag(1/g); without the rows D it is
//! diag(1/g) − M_D, M_D = Σ_D w·zzᵀ. Divided by √g on both sides that is I − B, whose eigenvalues
//! are those of I − H_DD: the same test tells whether enough digits are left.

use super::direct::Fitted;
use super::eliminate::HARD;
use super::moments::{BLOCK, sum};
use super::primal::Primal;
use super::problem::{Cv, Held};
use crate::data::Layout;
use crate::linalg::{self, Cholesky, Mat};
use crate::{Monitor, Result};

/// The part of a sum of squared errors that must be left when all that cancels has cancelled: about
/// ten digits of it are right then.
const LEFT: f64 = 1e-5;

/// The fits of one fold, a column a λ and output.
pub(super) struct Downdated {
    pub(super) fitted: Fitted,
    theta: Mat<f64>,
    /// Σ bbᵀ over the test rows with b = (z, 1, y − level), where they are what was removed and
    /// have no weights.
    held_out: Option<Mat<f64>>,
}

impl Downdated {
    /// Squared errors of the held-out predictions, summed, from the sums alone: y − level − θᵀ(z, 1)
    /// is uᵀb with u = (−θ, 1), so its squares are uᵀ(Σ bbᵀ)u. `None` where that cannot be told, or
    /// would lose too many digits.
    pub(super) fn squared_errors(&self) -> Option<Vec<f64>> {
        let sums = self.held_out.as_ref()?;
        let n = self.theta.nrows();
        let q = sums.nrows() - n;
        let u = Mat::from_fn(n + q, self.theta.ncols(), |i, c| {
            if i < n {
                -self.theta[(i, c)]
            } else {
                f64::from(i - n == c % q)
            }
        });
        let along = linalg::product(sums.as_ref(), u.as_ref());
        (0..u.ncols())
            .map(|c| {
                let (u, along) = (u.col(c), along.col(c));
                let total: f64 = u.iter().zip(along.iter()).map(|(u, a)| u * a).sum();
                // The terms come to at most (Σ |u_i|·√M_ii)² together.
                let root: f64 = (0..n + q).map(|i| u[i].abs() * sums[(i, i)].sqrt()).sum();
                (total > LEFT * root * root).then_some(total)
            })
            .collect()
    }
}

impl<R: Layout> Primal<'_, R> {
    /// Fits one fold for every λ; `None` where it must be fitted by itself.
    pub(super) fn downdate(
        &self,
        cv: Cv<'_>,
        held: &Held<'_>,
        fold: usize,
        monitor: &Monitor,
    ) -> Result<Option<Downdated>> {
        // Sum over the removed rows or over the training rows, whichever are fewer.
        let is_removed = held.repeated.is_none() && 2 * held.removed.len() <= cv.n_samples();
        let sums = match self.sums.folds.get(fold) {
            Some(sums) if self.is_from_gram && is_removed => self.rotate(sums),
            _ if is_removed => self.fold_sums(&held.removed, monitor)?,
            _ => self.fold_sums(&cv.train(fold), monitor)?,
        };
        let n = self.n_coordinates();
        let (gains, q) = (&self.gains, self.level.len());
        let mut theta = Mat::zeros(n, self.alphas.len() * q);
        for (l, &alpha) in self.alphas.iter().enumerate() {
            let root = |i: usize| gains[(i, l)].sqrt();
            let penalty = |i: usize| {
                if i < self.spectrum.values.len() {
                    alpha
                } else {
                    0.0
                }
            };
            let system = Mat::from_fn(n, n, |i, j| {
                let inner = root(i) * sums[(i.max(j), i.min(j))] * root(j);
                let diagonal = f64::from(i == j);
                if is_removed {
                    diagonal - inner
                } else {
                    inner + diagonal * penalty(i) * gains[(i, l)]
                }
            });
            let Some(factor) = Cholesky::new(&system, HARD) else {
                return Ok(None);
            };
            let mut b = Mat::from_fn(n, q, |i, o| {
                let own = sums[(n + o, i)];
                let all = self.spectrum.products.col(o);
                let rest = if !is_removed {
                    own
                } else if i < all.nrows() {
                    all[i] - own
                } else {
                    -own
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
        let is_test = matches!(cv, Cv::Folds(_)) && self.problem.root_weights.is_none();
        Ok(Some(Downdated {
            fitted: Fitted::new(self.sums.frame.shift.clone(), self.coefficients(&theta)),
            theta,
            held_out: (is_removed && is_test).then(|| linalg::mirror_lower(sums)),
        }))
    }

    /// Σ w·bbᵀ with b = (z, 1, y), from the same sum with (x, y, 1).
    fn rotate(&self, sums: &Mat<f64>) -> Mat<f64> {
        let sums = linalg::mirror_lower(sums.clone());
        let to = self.to_coordinates();
        let half = linalg::product(to.as_ref(), sums.as_ref());
        linalg::product(half.as_ref(), to.transpose())
    }

    /// The same from the rows.
    fn fold_sums(&self, rows: &[usize], monitor: &Monitor) -> Result<Mat<f64>> {
        if self.is_from_gram {
            return Ok(self.rotate(&self.problem.moments(&self.sums.frame, rows, monitor)?));
        }
        let (n, q) = (self.n_coordinates(), self.level.len());
        sum(rows, n + q, monitor, &|rows, total| {
            for block in rows.chunks(BLOCK) {
                let z = self.coordinates(block, |row| self.problem.root_weight(row));
                let b = Mat::from_fn(n + q, block.len(), |i, c| {
                    if i < n {
                        return z[(i, c)];
                    }
                    let y = self.problem.target(block[c])[i - n] - self.level[i - n];
                    y * self.problem.root_weight(block[c])
                });
                linalg::add_outer(total.as_mut(), b.as_ref());
            }
        })
    }
}
