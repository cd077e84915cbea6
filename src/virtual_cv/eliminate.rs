//! Folds smaller than the model: one l × l system per fold.
//!
//! With coordinates a_i = √w_i·z_i, a diagonal or band G and residuals r of the fit to all rows, the
//! residuals of the rows D in the fit without D are
//!
//! ```text
//! r_D⁽⁻ᴰ⁾ = (I − H_DD)⁻¹ r_D,   H_DD = A_D G A_Dᵀ
//! ```
//!
//! which the recursion (6)–(7) of Alippi and Roveri computes one sample at a time; for one row it is
//! r/(1 − h), their equation (2). In the dual form, with C = (K + λI)⁻¹ and c = Cy, the same is
//! C_DD⁻¹ c_D: that is E = εI − AGAᵀ and e = ε·y − Aθ with ε = 0, A = Q, G = −(B + λI)⁻¹ and
//! θ = GQᵀy. So one implementation serves both.

use std::ops::Range;

use super::collect::{Collector, par_folds};
use crate::linalg::{self, Cholesky, Mat, MatMut, MatRef};
use crate::linear::{Removed, WeightedTargets};
use crate::{Monitor, Resampling, Result};

/// Rows whose coordinates are formed at a time.
pub(super) const GROUP_ROWS: usize = 512;
/// The smallest 1 − h, or pivot of I − H_DD, that leaves enough digits; below it a fold is refitted.
pub(super) const MIN_PIVOT: f64 = 1e-5;

/// The fit to all rows, as far as leaving out rows requires it.
pub(super) trait Hat: Sync {
    /// ε: 1 in the primal form, 0 in the dual.
    fn epsilon(&self) -> f64;
    /// θ: one column per λ and output.
    fn theta(&self) -> &Mat<f64>;
    /// The factor that turns e into a residual of the full fit: 1, or λ in the dual form.
    fn residual_scale(&self, alpha: usize) -> f64;
    /// a of each of `rows`, as columns.
    fn weighted_coords(&self, rows: &[usize]) -> Mat<f64>;
    /// y and √w.
    fn targets(&self) -> WeightedTargets<'_>;
    /// ȳ, which is subtracted from the targets; 0 without an intercept.
    fn target_mean(&self) -> &[f64];

    /// The diagonal of E for rows with coordinates `a`: 1 − h, one column per row, one row per λ.
    fn one_minus_h(&self, a: &Mat<f64>) -> Mat<f64>;
    /// E = εI − AGAᵀ for rows with coordinates `a` and one λ.
    fn system(&self, alpha: usize, a: MatRef<'_, f64>, monitor: &Monitor) -> Result<Mat<f64>>;
    /// B ← GB, for one λ.
    fn apply_g(&self, alpha: usize, b: MatMut<'_, f64>);

    /// z of each of `rows`, as columns; in the dual form a, as all weights are positive there.
    fn coords(&self, rows: &[usize]) -> Mat<f64> {
        self.weighted_coords(rows)
    }

    /// Coefficients from θ; empty in the dual form.
    fn coefficients(&self, _theta: &Mat<f64>) -> Mat<f64> {
        Mat::new()
    }

    /// The number of λ.
    fn n_alphas(&self) -> usize {
        self.theta().ncols() / self.targets().n_outputs
    }

    /// e = ε·y − Aθ for rows with coordinates `a`: one column per row.
    fn residuals(&self, rows: &[usize], a: MatRef<'_, f64>) -> Mat<f64> {
        let (theta, mean, epsilon) = (self.theta(), self.target_mean(), self.epsilon());
        let mut e = linalg::product(theta.transpose(), a);
        for (c, &row) in rows.iter().enumerate() {
            let root = epsilon * self.targets().root_weight(row);
            let target = self.targets().row(row);
            for (i, e) in e.col_as_slice_mut(c).iter_mut().enumerate() {
                let o = i % mean.len();
                *e = root * (target[o] - mean[o]) - *e;
            }
        }
        e
    }

    /// The smallest eigenvalue of E that keeps all singular values of a fold above the cut-off; 0 if
    /// there is none, or if no fold can fall below it.
    fn min_eigenvalue(&self) -> f64 {
        0.0
    }

    /// The smallest pivot of E that leaves enough digits.
    fn min_pivot(&self) -> f64 {
        MIN_PIVOT * self.epsilon()
    }
}

/// Predicts all folds by elimination, some hundred rows at a time. `refit_fold` predicts those that
/// are too badly conditioned.
pub(super) fn eliminate_all<S: Collector>(
    hat: &impl Hat,
    folds: &dyn Resampling,
    collector: S,
    refit_fold: &(impl Fn(usize, &mut S) -> Result<()> + Sync),
    monitor: &Monitor,
) -> Result<S> {
    let k = folds.n_splits();
    let n_removed: usize = (0..k).map(|fold| Removed::count(folds, fold)).sum();
    let grain = (GROUP_ROWS * k / n_removed.max(1)).clamp(1, GROUP_ROWS);
    par_folds(0..k, grain, collector, monitor, &|span, collector| {
        eliminate(hat, folds, span, collector, refit_fold, monitor)
    })
}

/// Predicts a span of folds by elimination.
pub(super) fn eliminate<S: Collector>(
    hat: &impl Hat,
    folds: &dyn Resampling,
    span: Range<usize>,
    collector: &mut S,
    refit_fold: &impl Fn(usize, &mut S) -> Result<()>,
    monitor: &Monitor,
) -> Result<()> {
    let all_removed: Vec<_> = span.clone().map(|fold| Removed::new(folds, fold)).collect();
    let has_weight = |row: &&usize| hat.targets().root_weight(**row) > 0.0;
    let removed: Vec<Vec<usize>> = all_removed
        .iter()
        .map(|removed| removed.rows.iter().filter(has_weight).copied().collect())
        .collect();
    let rows = removed.concat();
    let a = hat.weighted_coords(&rows);
    let mut e = hat.residuals(&rows, a.as_ref());
    let n_alphas = hat.n_alphas();
    let is_leave_one_out = removed.iter().all(|r| r.len() == 1);
    let one_minus_h = is_leave_one_out.then(|| hat.one_minus_h(&a));
    let mut start = 0;
    for ((fold, Removed { has_repeats, .. }), removed) in span.zip(&all_removed).zip(&removed) {
        let test = folds.held_out(fold);
        let range = start..start + removed.len();
        start = range.end;
        let coordinates = a.get(.., range.clone());
        let is_solved = !has_repeats
            && !hat.targets().are_mostly_in(removed)
            && match &one_minus_h {
                Some(h) => {
                    let smallest = hat.min_pivot().max(hat.min_eigenvalue());
                    divide(h, &mut e, range.start, n_alphas, smallest)
                }
                None => solve(hat, coordinates, &mut e, range.clone(), monitor)?,
            };
        if !is_solved {
            refit_fold(fold, collector)?;
            continue;
        }
        let left_out = LeftOut {
            rows: removed,
            a: coordinates,
            residuals: e.get(.., range.clone()),
        };
        if collector.needs_coefficients() {
            collector.add_coefficients(fold, &hat.coefficients(&left_out.theta(hat)));
        }
        if test == removed {
            to_predictions(hat.targets(), removed, e.get_mut(.., range.clone()));
            collector.add(fold, e.get(.., range))?;
        } else {
            collector.add(fold, left_out.predict(hat, test).as_ref())?;
        }
    }
    Ok(())
}

/// r ← y − r/√w: the predictions of the rows that were left out.
fn to_predictions(targets: WeightedTargets<'_>, rows: &[usize], residuals: MatMut<'_, f64>) {
    for (&row, column) in rows.iter().zip(residuals.col_iter_mut()) {
        let root = targets.root_weight(row);
        for (r, y) in column.iter_mut().zip(targets.row(row).iter().cycle()) {
            *r = y - *r / root;
        }
    }
}

/// e ← e/(1 − h) for one row; returns false if 1 − h is not above `smallest` for some λ.
fn divide(h: &Mat<f64>, e: &mut Mat<f64>, row: usize, n_alphas: usize, smallest: f64) -> bool {
    let q = e.nrows() / n_alphas;
    let h = h.col_as_slice(row);
    for (i, e) in e.col_as_slice_mut(row).iter_mut().enumerate() {
        *e /= h[i / q];
    }
    h.iter().all(|&h| h > smallest)
}

/// e ← E⁻¹e for the rows in `range`; returns false if E is too badly conditioned for some λ.
fn solve(
    hat: &impl Hat,
    a: MatRef<'_, f64>,
    e: &mut Mat<f64>,
    range: Range<usize>,
    monitor: &Monitor,
) -> Result<bool> {
    let n_alphas = hat.n_alphas();
    let q = e.nrows() / n_alphas;
    let l = range.len();
    if l == 0 {
        return Ok(true);
    }
    for alpha in 0..n_alphas {
        monitor.check()?;
        let system = hat.system(alpha, a, monitor)?;
        let bounds = (hat.min_pivot(), hat.min_eigenvalue());
        let Some(factor) = Cholesky::within(system, bounds, monitor)? else {
            return Ok(false);
        };
        let mut b = Mat::from_fn(l, q, |i, o| e[(alpha * q + o, range.start + i)]);
        factor.solve(&mut b);
        for i in 0..l {
            for o in 0..q {
                e[(alpha * q + o, range.start + i)] = b[(i, o)];
            }
        }
    }
    Ok(true)
}

/// The rows D, and their residuals in the fit without D.
struct LeftOut<'a> {
    rows: &'a [usize],
    a: MatRef<'a, f64>,
    residuals: MatRef<'a, f64>,
}

impl LeftOut<'_> {
    /// Predictions of `test`: one column per row.
    fn predict(&self, hat: &impl Hat, test: &[usize]) -> Mat<f64> {
        let mut out = Mat::zeros(self.residuals.nrows(), test.len());
        let mut others = vec![];
        for (c, row) in test.iter().enumerate() {
            let Ok(position) = self.rows.binary_search(row) else {
                others.push(c);
                continue;
            };
            let root = hat.targets().root_weight(*row);
            let target = hat.targets().row(*row);
            let r = self.residuals.col(position);
            for (i, out) in out.col_as_slice_mut(c).iter_mut().enumerate() {
                *out = target[i % target.len()] - r[i] / root;
            }
        }
        if !others.is_empty() {
            self.predict_others(hat, test, &others, &mut out);
        }
        out
    }

    /// Predicts the test rows at `columns`, which are not in D: training rows, or rows of zero weight.
    fn predict_others(
        &self,
        hat: &impl Hat,
        test: &[usize],
        columns: &[usize],
        out: &mut Mat<f64>,
    ) {
        let rows: Vec<usize> = columns.iter().map(|&c| test[c]).collect();
        let z = hat.coords(&rows);
        let fitted = linalg::product(self.theta(hat).transpose(), z.as_ref());
        let (targets, mean) = (hat.targets(), hat.target_mean());
        let q = mean.len();
        for (j, (&c, &row)) in columns.iter().zip(&rows).enumerate() {
            for i in 0..fitted.nrows() {
                out[(i, c)] = if hat.epsilon() == 1.0 {
                    mean[i % q] + fitted[(i, j)]
                } else {
                    let scale = hat.residual_scale(i / q) / targets.root_weight(row);
                    targets.row(row)[i % q] + scale * fitted[(i, j)]
                };
            }
        }
    }

    /// θ⁽⁻ᴰ⁾ = θ − G A_Dᵀ r_D⁽⁻ᴰ⁾: equation (8).
    fn theta(&self, hat: &impl Hat) -> Mat<f64> {
        let q = self.residuals.nrows() / hat.n_alphas();
        let mut change = linalg::product(self.a, self.residuals.transpose());
        for alpha in 0..hat.n_alphas() {
            hat.apply_g(alpha, change.get_mut(.., alpha * q..(alpha + 1) * q));
        }
        hat.theta() - change
    }
}
