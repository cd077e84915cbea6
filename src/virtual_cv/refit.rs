//! One fold, fitted to its training rows.
//!
//! **Problem.** Without the rows of some folds the others determine the model badly or not at all
//! (1 − h ≈ 0); the downdated system then has no correct digits.
//!
//! **Method.** QR of the training rows and the singular values of R; if these do not determine the
//! model, the minimum-norm solution, which is also scikit-learn's.
//!
//! **Cost.** O(n·p²) per fold.

use super::ridge_path::RidgePath;
use super::spectrum::Spectrum;
use crate::data::{Layout, Row};
use crate::least_squares::{AffineFrame, Fitted, LinearProblem, ROUNDING};
use crate::linalg::{self, Mat};
use crate::{Error, Monitor, Result};

impl<R: Layout> LinearProblem<'_, R> {
    /// Fits the training rows of fold `fold`, which may repeat, for every λ.
    pub(super) fn refit(
        &self,
        path: &RidgePath,
        train: &[usize],
        fold: usize,
        monitor: &Monitor,
    ) -> Result<Fitted> {
        let undetermined = |reason: &str| Error::Undetermined {
            fold,
            reason: reason.into(),
        };
        let weight: f64 = train.iter().map(|&i| self.targets.weight(i)).sum();
        if weight == 0.0 {
            return Err(undetermined("its training rows have no weight"));
        }
        let (p, q) = (self.rows.n_features(), self.targets.n_outputs);
        let (raw_frame, unit) = self
            .training_frame(path, train, fold)
            .ok_or_else(|| undetermined("its columns differ in scale by more than 1e140"))?;
        let frame = AffineFrame {
            scale: raw_frame.scale.iter().map(|s| s * unit).collect(),
            shift: raw_frame.shift,
        };
        let target_mean = self.target_mean(path, train, weight);
        let r = linalg::tsqr(train, p + q, monitor, &|row, out| {
            let root = self.targets.root_weight(row);
            frame.write(self.rows.row(row), root, &mut out[..p]);
            let targets = self.targets.row(row).iter().zip(&target_mean);
            for (out, (y, mean)) in out[p..].iter_mut().zip(targets) {
                *out = root * (y - mean);
            }
        })?;
        let alphas: Vec<f64> = path.alphas.iter().map(|a| a * unit * unit).collect();
        let min_alpha = alphas.iter().copied().fold(f64::INFINITY, f64::min);
        let spectrum = Spectrum::from_r_factor(&r, p, min_alpha, path.cutoff, monitor)?;
        let spectrum = spectrum.ok_or_else(|| {
            undetermined(
                "its training rows are too nearly collinear to tell which coefficients they \
                 determine; drop columns that repeat others, or penalise (Ridge)",
            )
        })?;
        let theta = spectrum.solve(&alphas);
        let beta = linalg::product(spectrum.vt.transpose(), theta.as_ref());
        let coefficients = Mat::from_fn(p + 1, beta.ncols(), |j, c| {
            if j < p {
                beta[(j, c)] * frame.scale[j]
            } else {
                target_mean[c % q]
            }
        });
        Ok(Fitted::new(frame.shift, coefficients))
    }

    /// The centring and scaling of the columns in training, and the unit of [`Self::unit`]; `None` if
    /// there is no such unit.
    fn training_frame(
        &self,
        path: &RidgePath,
        train: &[usize],
        fold: usize,
    ) -> Option<(AffineFrame, f64)> {
        let p = self.rows.n_features();
        let mut frame = AffineFrame::identity(p);
        let scaling = path.scaling.as_deref().map(|scaling| scaling.fold(fold));
        if let Some(scaling) = scaling {
            if !scaling.is_regular() {
                return None;
            }
            frame.scale = scaling.scale.to_vec();
            if let Some(shift) = scaling.shift {
                frame.shift = shift.to_vec();
            }
        }
        if path.fit_intercept {
            frame.shift = self.mean(train);
        }
        let is_centred = path.fit_intercept || scaling.is_some_and(|s| s.shift.is_some());
        let (unit, sizes) = self.unit(&frame, train)?;
        for (j, size) in sizes.into_iter().enumerate() {
            if is_centred && size <= ROUNDING * frame.shift[j].abs() * frame.scale[j] {
                frame.scale[j] = 0.0;
            }
        }
        Some((frame, unit))
    }

    /// The weighted means of the columns, with one step of iterative refinement.
    fn mean(&self, rows: &[usize]) -> Vec<f64> {
        let weight = |row: usize| self.targets.weight(row);
        let total: f64 = rows.iter().map(|&row| weight(row)).sum();
        let mut mean = vec![0.0; self.rows.n_features()];
        for round in 0..2 {
            let mut step = vec![0.0; mean.len()];
            for &row in rows {
                let part = weight(row) / total;
                if round == 1 {
                    step.iter_mut().zip(&mean).for_each(|(s, m)| *s -= m * part);
                }
                self.rows
                    .row(row)
                    .entries()
                    .for_each(|(j, v)| step[j] += v * part);
            }
            mean.iter_mut().zip(&step).for_each(|(m, s)| *m += s);
        }
        mean
    }

    /// The weighted means of the targets; 0 without an intercept.
    fn target_mean(&self, path: &RidgePath, rows: &[usize], weight: f64) -> Vec<f64> {
        let mut mean = vec![0.0; self.targets.n_outputs];
        if path.fit_intercept {
            for &row in rows {
                let part = self.targets.weight(row) / weight;
                for (mean, y) in mean.iter_mut().zip(self.targets.row(row)) {
                    *mean += part * y;
                }
            }
        }
        mean
    }
}
