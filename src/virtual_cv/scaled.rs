//! A scaler in front of the model, fitted to the training rows of every fold.
//!
//! **Problem.** `make_pipeline(StandardScaler(), Ridge())` penalises coefficients in units that
//! differ from fold to fold, so the folds share no coordinates.
//!
//! **Method.** Means, standard deviations and the Gram of a fold's training rows follow from the
//! moments of all rows minus those of the fold; one eigendecomposition per fold then serves all λ.
//! If nearly all variation of a column is in the held-out rows, too few digits are left, and the fold
//! is refitted.
//!
//! **Cost.** O(n·p²) for the moments, O(p³) per fold.

use super::held_out::HeldOut;
use super::model::Scaler;
use super::moments::Moments;
use super::problem::{LinearProblem, RidgePath};
use super::refit::{Fitted, is_constant, standard_deviation};
use super::spectrum::Spectrum;
use crate::data::Layout;
use crate::linalg::{self, Mat};
use crate::runtime::memory;
use crate::{Monitor, Resampling, Result};

/// The smallest fraction of a column's sum of squares that may be left without the fold.
const MIN_KEPT_FRACTION: f64 = 1e-4;

/// Moments of all rows, weighted for the model and unweighted for the scaler.
pub(super) struct Scaled<'a, R> {
    problem: &'a LinearProblem<'a, R>,
    scaler: Scaler,
    weighted: Moments,
    /// Only if there are weights: the scaler ignores them.
    unweighted: Option<(LinearProblem<'a, R>, Mat<f64>)>,
}

impl<'a, R: Layout> Scaled<'a, R> {
    pub(super) fn new(
        problem: &'a LinearProblem<'a, R>,
        scaler: Scaler,
        path: &RidgePath,
        folds: &dyn Resampling,
        monitor: &Monitor,
    ) -> Result<Option<Self>> {
        let is_centred = path.fit_intercept || scaler.with_mean;
        let Some(weighted) = problem.moments(is_centred, folds, monitor)? else {
            return Ok(None);
        };
        let unweighted = if problem.targets.is_weighted() {
            let problem = LinearProblem {
                rows: problem.rows,
                targets: problem.targets.unweighted(),
            };
            let rows: Vec<usize> = (0..problem.n_rows()).collect();
            let moments = problem.second_moments(&weighted.frame, &rows, monitor)?;
            Some((problem, moments))
        } else {
            None
        };
        Ok(Some(Self {
            problem,
            scaler,
            weighted,
            unweighted,
        }))
    }

    /// Fits one fold for every λ; `None` if it has to be refitted.
    pub(super) fn fit(
        &self,
        path: &RidgePath,
        folds: &dyn Resampling,
        fold: usize,
        monitor: &Monitor,
    ) -> Result<Option<Fitted>> {
        let (frame, held_out) = (&self.weighted.frame, HeldOut::new(folds, fold));
        if held_out.has_repeats {
            return Ok(None);
        }
        let width = self.problem.width();
        memory::check_shape::<f64>(format_args!("fold {fold}"), &[6, width, width])?;
        let own = match self.weighted.folds.get(fold) {
            Some(moments) => moments.clone(),
            None => self
                .problem
                .second_moments(frame, &held_out.removed, monitor)?,
        };
        let Some(train) = subtract(&self.weighted.all, &own, self.problem.rows.n_features()) else {
            return Ok(None);
        };
        let unweighted = match &self.unweighted {
            None => train.clone(),
            Some((problem, all)) => {
                let own = problem.second_moments(frame, &held_out.removed, monitor)?;
                match subtract(all, &own, self.problem.rows.n_features()) {
                    Some(train) => train,
                    None => return Ok(None),
                }
            }
        };
        self.solve(path, &train, &unweighted, monitor)
    }

    fn solve(
        &self,
        path: &RidgePath,
        train: &Mat<f64>,
        unweighted: &Mat<f64>,
        monitor: &Monitor,
    ) -> Result<Option<Fitted>> {
        let (p, q) = (
            self.problem.rows.n_features(),
            self.problem.targets.n_outputs,
        );
        let (frame, last) = (&self.weighted.frame, p + q);
        let (n, weight) = (unweighted[(last, last)], train[(last, last)]);
        if n == 0.0 || weight == 0.0 {
            return Ok(None);
        }
        // Means and centre are in the frame's units: x − shift, times a power of two.
        let mean = |j: usize| unweighted[(last, j)] / n;
        let centre: Vec<f64> = (0..p)
            .map(|j| match (path.fit_intercept, self.scaler.with_mean) {
                (true, _) => train[(last, j)] / weight,
                (false, true) => mean(j),
                (false, false) => 0.0,
            })
            .collect();
        // `None` if too few digits of a variance are left; a constant column needs none.
        let scale = |j: usize| {
            let unit = frame.scale[j];
            let square = unweighted[(j, j)] / n;
            let variance = square - mean(j).powi(2);
            let raw_mean = mean(j) / unit + frame.shift[j];
            let is_safe = variance >= MIN_KEPT_FRACTION * square
                || is_constant(n, raw_mean, square / unit / unit);
            let raw = if self.scaler.with_std {
                standard_deviation(n, raw_mean, variance / unit / unit)
            } else {
                1.0
            };
            is_safe.then_some(raw * unit)
        };
        let Some(scale) = (0..p).map(scale).collect::<Option<Vec<f64>>>() else {
            return Ok(None);
        };
        let target_mean: Vec<f64> = (0..q)
            .map(|o| {
                if path.fit_intercept {
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
                - target_mean[o] * (train[(last, i)] - weight * centre[i]);
            about / scale[i]
        });
        let min_alpha = path.min_alpha();
        let found = Spectrum::from_gram(&gram, &products, min_alpha, path.cutoff, monitor)?;
        let Some(spectrum) = found else {
            return Ok(None);
        };
        let theta = spectrum.solve(&path.alphas);
        let beta = linalg::product(spectrum.vt.transpose(), theta.as_ref());
        // β for x − shift in the units of the rows; the last is the prediction at the shift.
        let coefficients = Mat::from_fn(p + 1, beta.ncols(), |j, c| {
            if j < p {
                return beta[(j, c)] / scale[j] * frame.scale[j];
            }
            let at_centre: f64 = (0..p).map(|j| centre[j] * beta[(j, c)] / scale[j]).sum();
            target_mean[c % q] - at_centre
        });
        Ok(Some(Fitted::new(frame.shift.clone(), coefficients)))
    }
}

/// Moments without those of a fold; `None` if too many digits cancel.
fn subtract(all: &Mat<f64>, own: &Mat<f64>, n_features: usize) -> Option<Mat<f64>> {
    let rest = all - own;
    let is_safe = |j: usize| rest[(j, j)] >= MIN_KEPT_FRACTION * all[(j, j)];
    (0..n_features).all(is_safe).then_some(rest)
}
