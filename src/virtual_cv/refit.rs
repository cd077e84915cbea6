//! One fold, fitted to its training rows.
//!
//! # Problem
//! Without the rows of some folds the others determine the model badly or not at all
//! (1 − h ≈ 0); the downdated system then has no correct digits.
//!
//! # Method
//! QR of the training rows and the singular values of R; if these do not determine the
//! model, the minimum-norm solution, which is also scikit-learn's.
//!
//! # Cost
//! O(n·p²) per fold.

use super::primal::r_factor;
use super::ridge_path::RidgePath;
use super::spectrum::Spectrum;
use crate::data::{Layout, Row};
use crate::linalg::{self, Mat};
use crate::linear::{Fitted, FoldMap, LinearProblem, ROUNDING};
use crate::{Error, Monitor, Result};

impl<R: Layout> LinearProblem<'_, R> {
    /// Fits the training rows of fold `fold`, which may repeat, for every λ.
    pub(super) fn refit(
        &self,
        path: &RidgePath<'_>,
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
        let (map, unit) = self
            .training_map(path, train, fold)
            .ok_or_else(|| undetermined("its columns differ in scale by more than 1e140"))?;
        let (p, q) = (map.n_features(), self.targets.n_outputs);
        let scale = map.scales().iter().map(|s| s * unit).collect();
        let map = map.with_scale(scale);
        let fit_intercept = path.model.fit_intercept;
        let target_mean = self.targets.means(train.iter().copied(), fit_intercept);
        let centres = (&vec![0.0; p][..], &target_mean[..]);
        let r = r_factor(self, train, &map, centres, monitor)?;
        let alphas: Vec<f64> = path.alphas.iter().map(|a| a * unit * unit).collect();
        let min_alpha = alphas.iter().copied().fold(f64::INFINITY, f64::min);
        let spectrum = Spectrum::from_r_factor(&r, p, min_alpha, path.model.cutoff, monitor)?;
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
                beta[(j, c)] * map.scale(j)
            } else {
                target_mean[c % q]
            }
        });
        Ok(Fitted::behind(&map, coefficients))
    }

    /// The centring and scaling of the columns in training, and the unit of [`Self::unit`]; `None` if
    /// there is no such unit.
    fn training_map(
        &self,
        path: &RidgePath<'_>,
        train: &[usize],
        fold: usize,
    ) -> Option<(FoldMap, f64)> {
        let scaling = path
            .model
            .scaling
            .as_deref()
            .map(|scaling| scaling.fold(fold));
        if scaling.is_some_and(|map| !map.is_regular()) {
            return None;
        }
        let identity = || FoldMap::identity(self.rows.n_features());
        let mut map = scaling.cloned().unwrap_or_else(identity);
        let is_centred = path.model.fit_intercept || map.has_shift();
        if path.model.fit_intercept {
            let mean = map.sums(self.mean(train));
            map = map.with_shift(mean);
        }
        let (unit, sizes) = self.unit(&map, train)?;
        let mut scale = map.scales();
        for (j, size) in sizes.into_iter().enumerate() {
            if is_centred && size <= ROUNDING * map.shift(j).abs() * map.scale(j) {
                scale[j] = 0.0;
            }
        }
        Some((map.with_scale(scale), unit))
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
}
