//! A scaler in front of the model, fitted to every fold's training rows alone.
//!
//! Problem: `make_pipeline(StandardScaler(), Ridge())` penalises coefficients in units that differ
//! from fold to fold, so the folds share no coordinates.
//!
//! Method: means, deviations and the Gram of a fold's training rows are the sums over all rows
//! less those over the fold; one eigendecomposition a fold then serves the whole grid of λ.
//! Nothing of the held-out rows remains in them. A column whose variation is nearly all in the
//! held-out rows leaves too few digits; such a fold is fitted by itself.
//!
//! Cost: O(n·p²) for the sums, O(p³) a fold.

use super::direct::{Fitted, deviation, is_constant};
use super::primal::Totals;
use super::problem::{Cv, Held, Model, Problem, Scaler};
use super::spectrum::Spectrum;
use crate::data::Layout;
use crate::linalg::{self, Mat};
use crate::{Monitor, Result};

/// The part of a column's sum of squares that must be left without the fold.
const LEFT: f64 = 1e-4;

/// Sums of all rows, weighted for the model and plain for the scaler.
pub(super) struct Scaled<'a, R> {
    problem: &'a Problem<'a, R>,
    scaler: Scaler,
    weighted: Totals,
    /// Only where there are weights; the scaler sees none.
    plain: Option<(Problem<'a, R>, Mat<f64>)>,
}

impl<'a, R: Layout> Scaled<'a, R> {
    pub(super) fn new(
        problem: &'a Problem<'a, R>,
        scaler: Scaler,
        model: &Model,
        cv: Cv<'_>,
        monitor: &Monitor,
    ) -> Result<Option<Self>> {
        let is_centred = model.intercept || scaler.mean;
        let Some(weighted) = problem.totals(is_centred, cv, monitor)? else {
            return Ok(None);
        };
        let plain = if problem.root_weights.is_some() {
            let twin = Problem {
                root_weights: None,
                ..*problem
            };
            let rows: Vec<usize> = (0..problem.n_rows()).collect();
            let sums = twin.moments(&weighted.frame, &rows, monitor)?;
            Some((twin, sums))
        } else {
            None
        };
        Ok(Some(Self {
            problem,
            scaler,
            weighted,
            plain,
        }))
    }

    /// Fits one fold for every λ; `None` where it must be fitted by itself.
    pub(super) fn fit(
        &self,
        model: &Model,
        held: &Held<'_>,
        fold: usize,
        monitor: &Monitor,
    ) -> Result<Option<Fitted>> {
        let frame = &self.weighted.frame;
        if held.repeated.is_some() {
            return Ok(None);
        }
        let own = match self.weighted.folds.get(fold) {
            Some(sums) => sums.clone(),
            None => self.problem.moments(frame, &held.removed, monitor)?,
        };
        let Some(train) = subtract(&self.weighted.all, &own, self.problem.rows.n_features()) else {
            return Ok(None);
        };
        let plain = match &self.plain {
            None => train.clone(),
            Some((problem, all)) => {
                let own = problem.moments(frame, &held.removed, monitor)?;
                match subtract(all, &own, self.problem.rows.n_features()) {
                    Some(train) => train,
                    None => return Ok(None),
                }
            }
        };
        Ok(self.solve(model, &train, &plain))
    }

    fn solve(&self, model: &Model, train: &Mat<f64>, plain: &Mat<f64>) -> Option<Fitted> {
        let (p, q) = (self.problem.rows.n_features(), self.problem.n_outputs);
        let (frame, last) = (&self.weighted.frame, p + q);
        let (n, weight) = (plain[(last, last)], train[(last, last)]);
        if n == 0.0 || weight == 0.0 {
            return None;
        }
        // Both in the frame's units: x − shift, times a power of two.
        let mean = |j: usize| plain[(last, j)] / n;
        let centre: Vec<f64> = (0..p)
            .map(|j| match (model.intercept, self.scaler.mean) {
                (true, _) => train[(last, j)] / weight,
                (false, true) => mean(j),
                (false, false) => 0.0,
            })
            .collect();
        // `None` where too few digits of a variance are left; a constant column needs none.
        let scale = |j: usize| {
            let unit = frame.scale[j];
            let square = plain[(j, j)] / n;
            let variance = square - mean(j).powi(2);
            let raw_mean = mean(j) / unit + frame.shift[j];
            let is_safe =
                variance >= LEFT * square || is_constant(n, raw_mean, square / unit / unit);
            let raw = if self.scaler.deviation {
                deviation(n, raw_mean, variance / unit / unit)
            } else {
                1.0
            };
            is_safe.then_some(raw * unit)
        };
        let scale: Vec<f64> = (0..p).map(scale).collect::<Option<_>>()?;
        let level: Vec<f64> = (0..q)
            .map(|o| {
                if model.intercept {
                    train[(last, p + o)] / weight
                } else {
                    0.0
                }
            })
            .collect();
        let gram = Mat::from_fn(p, p, |i, j| {
            let about = train[(i.max(j), i.min(j))]
                - centre[i] * train[(last, j)]
                - centre[j] * train[(last, i)]
                + weight * centre[i] * centre[j];
            about / scale[i] / scale[j]
        });
        let products = Mat::from_fn(p, q, |i, o| {
            let about = train[(p + o, i)]
                - centre[i] * train[(last, p + o)]
                - level[o] * (train[(last, i)] - weight * centre[i]);
            about / scale[i]
        });
        let spectrum = Spectrum::of_gram(&gram, &products, model.smallest_alpha())?;
        let theta = spectrum.solve(&model.alphas);
        let beta = linalg::product(spectrum.axes.transpose(), theta.as_ref());
        // β for (x − shift) in the rows' own units; at the shift itself the prediction is off by
        // the way from there to the centre.
        let coefficients = Mat::from_fn(p + 1, beta.ncols(), |j, c| {
            if j < p {
                return beta[(j, c)] / scale[j] * frame.scale[j];
            }
            let way: f64 = (0..p).map(|j| centre[j] * beta[(j, c)] / scale[j]).sum();
            level[c % q] - way
        });
        Some(Fitted::new(frame.shift.clone(), coefficients))
    }
}

/// Sums without those of a fold; `None` where they cancel.
fn subtract(all: &Mat<f64>, own: &Mat<f64>, n_features: usize) -> Option<Mat<f64>> {
    let rest = all - own;
    let is_safe = |j: usize| rest[(j, j)] >= LEFT * all[(j, j)];
    (0..n_features).all(is_safe).then_some(rest)
}
