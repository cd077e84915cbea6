//! Folds smaller than the model: an l × l system a fold.
//!
//! With coordinates a_i = √w_i·z_i, gains G and residuals r of the fit to all rows, the residuals
//! that rows D have when D is left out are
//!
//! ```text
//! r_D⁽⁻ᴰ⁾ = (I − H_DD)⁻¹ r_D,   H_DD = A_D G A_Dᵀ
//! ```
//!
//! which is what the recursion (6)–(7) of Alippi and Roveri computes one sample at a time; for one
//! row it is r/(1 − h), their equation (2). In the dual form, with C = (K + λI)⁻¹ and c = Cy, the
//! same is C_DD⁻¹ c_D: that is E = εI − AGAᵀ and e = ε·y − Aθ with ε = 0, A = Q, G = −(B + λI)⁻¹ and
//! θ = GQᵀy. So both have one body.

use std::ops::Range;

use super::problem::{Cv, Held};
use super::sink::Sink;
use crate::linalg::{self, Cholesky, Mat, MatMut, MatRef};
use crate::{Monitor, Result};

/// Rows whose coordinates are formed at a time.
pub(super) const GROUP: usize = 512;
/// 1 − h below this, and too few digits are left: the fold is fitted by itself.
pub(super) const HARD: f64 = 1e-5;

/// The fit to all rows, as far as leaving some out needs it.
pub(super) trait Hat: Sync {
    /// ε: 1 in the primal form, 0 in the dual.
    fn identity(&self) -> f64;
    /// How many λ there are.
    fn n_alphas(&self) -> usize;
    /// θ, a column a λ and output.
    fn theta(&self) -> &Mat<f64>;
    /// What e is multiplied by to be a residual of the full fit: 1, or λ in the dual form.
    fn residual_scale(&self, alpha: usize) -> f64;
    /// a of each of `rows`, as columns.
    fn weighted(&self, rows: &[usize]) -> Mat<f64>;
    /// z of each of `rows`, as columns: a row without weight has no other coordinates.
    fn plain(&self, rows: &[usize]) -> Mat<f64>;
    /// √w.
    fn root_weight(&self, row: usize) -> f64;
    /// y.
    fn target(&self, row: usize) -> &[f64];
    /// What targets are measured from.
    fn level(&self) -> &[f64];
    /// Coefficients from θ, if there are any.
    fn coefficients(&self, theta: &Mat<f64>) -> Mat<f64>;

    /// The diagonal of E of rows with coordinates `a`: 1 − h, a column a row, a row a λ.
    fn complements(&self, a: &Mat<f64>) -> Mat<f64>;
    /// E = εI − AGAᵀ of rows with coordinates `a`, for one λ.
    fn system(&self, alpha: usize, a: MatRef<'_, f64>) -> Mat<f64>;
    /// B ← GB, for one λ.
    fn gain(&self, alpha: usize, b: MatMut<'_, f64>);

    /// ε·y − Aθ of rows with coordinates `a`: a column a row.
    fn residuals(&self, rows: &[usize], a: MatRef<'_, f64>) -> Mat<f64> {
        let (theta, level, epsilon) = (self.theta(), self.level(), self.identity());
        let mut e = linalg::product(theta.transpose(), a);
        for (c, &row) in rows.iter().enumerate() {
            let (root, target) = (epsilon * self.root_weight(row), self.target(row));
            for (i, e) in e.col_as_slice_mut(c).iter_mut().enumerate() {
                let o = i % level.len();
                *e = root * (target[o] - level[o]) - *e;
            }
        }
        e
    }

    /// The smallest pivot of E that can be trusted.
    fn floor(&self) -> f64 {
        HARD * self.identity()
    }
}

/// Predicts a run of folds; those that `hard` must fit by themselves are handed to it.
pub(super) fn folds<S: Sink>(
    hat: &impl Hat,
    cv: Cv<'_>,
    folds: Range<usize>,
    sink: &mut S,
    hard: &impl Fn(usize, &mut S) -> Result<()>,
    monitor: &Monitor,
) -> Result<()> {
    let held: Vec<Held<'_>> = folds.clone().map(|fold| cv.held(fold)).collect();
    let removed: Vec<Vec<usize>> = held
        .iter()
        .map(|h| {
            let has_weight = |row: &&usize| hat.root_weight(**row) > 0.0;
            h.removed.iter().filter(has_weight).copied().collect()
        })
        .collect();
    let rows = removed.concat();
    let a = hat.weighted(&rows);
    let mut e = hat.residuals(&rows, a.as_ref());
    let n_alphas = hat.n_alphas();
    let single = removed
        .iter()
        .all(|r| r.len() == 1)
        .then(|| hat.complements(&a));
    let mut start = 0;
    for ((fold, held), removed) in folds.zip(&held).zip(&removed) {
        let range = start..start + removed.len();
        start = range.end;
        let is_solved = held.repeated.is_none()
            && match &single {
                Some(h) => divide(h, &mut e, range.start, n_alphas, hat.floor()),
                None => eliminate(
                    hat,
                    a.get(.., range.clone()),
                    &mut e,
                    range.clone(),
                    monitor,
                )?,
            };
        if !is_solved {
            hard(fold, sink)?;
            continue;
        }
        let left = Left {
            rows: removed,
            a: a.get(.., range.clone()),
            residuals: e.get(.., range.clone()),
        };
        if sink.wants_coefficients() {
            sink.take_coefficients(fold, &hat.coefficients(&left.theta(hat)));
        }
        if held.test == removed {
            to_predictions(hat, removed, e.get_mut(.., range.clone()));
            sink.take(fold, e.get(.., range));
        } else {
            sink.take(fold, left.predict(hat, held.test).as_ref());
        }
    }
    Ok(())
}

/// y − r/√w, in place of r: the predictions of exactly the rows that were left out.
fn to_predictions(hat: &impl Hat, rows: &[usize], residuals: MatMut<'_, f64>) {
    for (&row, column) in rows.iter().zip(residuals.col_iter_mut()) {
        let (root, target) = (hat.root_weight(row), hat.target(row));
        for (r, y) in column.iter_mut().zip(target.iter().cycle()) {
            *r = y - *r / root;
        }
    }
}

/// e ← e/(1 − h) for one row; whether 1 − h is far enough from zero for every λ.
fn divide(h: &Mat<f64>, e: &mut Mat<f64>, row: usize, n_alphas: usize, floor: f64) -> bool {
    let q = e.nrows() / n_alphas;
    let h = h.col_as_slice(row);
    for (i, e) in e.col_as_slice_mut(row).iter_mut().enumerate() {
        *e /= h[i / q];
    }
    h.iter().all(|&h| h > floor)
}

/// e ← E⁻¹e for the rows in `range`; whether E can be trusted for every λ.
fn eliminate(
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
        let Some(factor) = Cholesky::new(&hat.system(alpha, a), hat.floor()) else {
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

/// Rows left out, and the residuals they then have.
struct Left<'a> {
    rows: &'a [usize],
    a: MatRef<'a, f64>,
    residuals: MatRef<'a, f64>,
}

impl Left<'_> {
    /// Predictions of `test`: a column a row.
    fn predict(&self, hat: &impl Hat, test: &[usize]) -> Mat<f64> {
        let mut out = Mat::zeros(self.residuals.nrows(), test.len());
        let mut others = vec![];
        for (c, row) in test.iter().enumerate() {
            let Ok(place) = self.rows.binary_search(row) else {
                others.push(c);
                continue;
            };
            let root = hat.root_weight(*row);
            let target = hat.target(*row);
            let r = self.residuals.col(place);
            for (i, out) in out.col_as_slice_mut(c).iter_mut().enumerate() {
                *out = target[i % target.len()] - r[i] / root;
            }
        }
        if !others.is_empty() {
            self.predict_others(hat, test, &others, &mut out);
        }
        out
    }

    /// Rows of the test set that were not left out: those the fold learns from, or learns nothing
    /// from because they have no weight.
    fn predict_others(&self, hat: &impl Hat, test: &[usize], at: &[usize], out: &mut Mat<f64>) {
        let rows: Vec<usize> = at.iter().map(|&c| test[c]).collect();
        let is_primal = hat.identity() == 1.0;
        let z = if is_primal {
            hat.plain(&rows)
        } else {
            hat.weighted(&rows)
        };
        let fitted = linalg::product(self.theta(hat).transpose(), z.as_ref());
        let level = hat.level();
        let q = level.len();
        for (j, (&c, &row)) in at.iter().zip(&rows).enumerate() {
            for i in 0..fitted.nrows() {
                out[(i, c)] = if is_primal {
                    level[i % q] + fitted[(i, j)]
                } else {
                    let scale = hat.residual_scale(i / q) / hat.root_weight(row);
                    hat.target(row)[i % q] + scale * fitted[(i, j)]
                };
            }
        }
    }

    /// θ⁽⁻ᴰ⁾ = θ − G A_Dᵀ r_D⁽⁻ᴰ⁾: equation (8).
    fn theta(&self, hat: &impl Hat) -> Mat<f64> {
        let q = self.residuals.nrows() / hat.n_alphas();
        let mut pull = linalg::product(self.a, self.residuals.transpose());
        for alpha in 0..hat.n_alphas() {
            hat.gain(alpha, pull.get_mut(.., alpha * q..(alpha + 1) * q));
        }
        hat.theta() - pull
    }
}
