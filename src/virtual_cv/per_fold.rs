//! Folds that share no decomposition: each has a scaling of the columns of its own, or there is one.
//!
//! # Problem
//! `make_pipeline(StandardScaler(), Ridge())` penalises coefficients in units that
//! differ from fold to fold, so the folds share no coordinates.
//!
//! # Method
//! The Gram of a fold's training rows follows from the moments of all rows minus those of
//! the fold (of a single split, it is computed from the training rows), and that of its scaled rows
//! from the scaling. One eigendecomposition per fold then serves all λ, or for a few λ one Cholesky
//! factorisation each. If nearly all variation of a column is in the held-out rows, too few digits are
//! left, and the fold is refitted.
//!
//! # Cost
//! O(n·p²) for the moments, O(p³) per fold.

use super::eliminate::MIN_PIVOT;
use super::ridge_path::RidgePath;
use super::spectrum::Spectrum;
use crate::data::Layout;
use crate::linalg::{self, Mat};
use crate::linear::{
    DowndatedMoments, Fitted, FoldMaps, LinearProblem, Moments, NormalEquations, Removed,
    ScaledCholesky, is_constant, training_rows,
};
use crate::runtime::memory;
use crate::{Monitor, Resampling, Result};

/// The number of λ from which one eigendecomposition is faster than one factorisation each.
const MIN_EIGEN_ALPHAS: usize = 8;

/// Moments of all rows, or of the training rows of a single split, and the scaling of every fold.
pub(super) struct PerFold<'a, R> {
    problem: &'a LinearProblem<'a, R>,
    scaling: Option<&'a FoldMaps>,
    moments: Moments,
    /// Whether the moments are those of the training rows of the only fold.
    is_single: bool,
}

impl<'a, R: Layout> PerFold<'a, R> {
    /// `None` if the columns have no common scale.
    pub(super) fn new(
        problem: &'a LinearProblem<'a, R>,
        scaling: Option<&'a FoldMaps>,
        path: &RidgePath<'_>,
        folds: &dyn Resampling,
        monitor: &Monitor,
    ) -> Result<Option<Self>> {
        let is_centred = path.model.fit_intercept || scaling.is_some_and(FoldMaps::has_shift);
        let is_single = folds.n_splits() == 1;
        let moments = if is_single {
            problem.moments(is_centred, &training_rows(folds, Some(0)), None, monitor)?
        } else {
            problem.moments_of_all(is_centred, folds, monitor)?
        };
        Ok(moments.map(|moments| Self {
            problem,
            scaling,
            moments,
            is_single,
        }))
    }

    /// Fits one fold for every λ; `None` if it has to be refitted.
    pub(super) fn fit(
        &self,
        path: &RidgePath<'_>,
        folds: &dyn Resampling,
        fold: usize,
        monitor: &Monitor,
    ) -> Result<Option<Fitted>> {
        if self.scaling.is_some_and(|s| !s.fold(fold).is_regular()) {
            return Ok(None);
        }
        if self.is_single {
            let n_train = training_rows(folds, Some(fold)).len();
            return self.solve(path, &self.moments.all, n_train, fold, monitor);
        }
        let removed = Removed::new(folds, fold);
        if self.problem.targets.are_mostly_in(&removed.rows) {
            return Ok(None);
        }
        let width = self.problem.width();
        memory::check_shape::<f64>(format_args!("fold {fold}"), &[6, width, width])?;
        let moments = &self.moments;
        let DowndatedMoments { train, .. } = self
            .problem
            .training_moments(moments, folds, fold, monitor)?;
        let [first, second] = folds.training(fold);
        self.solve(path, &train, first.len() + second.len(), fold, monitor)
    }

    /// Fits the rows with second moments `train`.
    fn solve(
        &self,
        path: &RidgePath<'_>,
        train: &Mat<f64>,
        n_train: usize,
        fold: usize,
        monitor: &Monitor,
    ) -> Result<Option<Fitted>> {
        let (map, q) = (&self.moments.map, self.problem.targets.n_outputs);
        let scaling = self.scaling.map(|scaling| scaling.fold(fold));
        let Some(normal) = NormalEquations::new(train, map, scaling, path.model.fit_intercept)
        else {
            return Ok(None);
        };
        let (p, common) = (normal.n_features(), &normal.common);
        // A column that is constant to rounding needs no digits.
        let is_safe = |j: usize| {
            let (unit, square) = (common.scale(j), normal.square(j) / normal.weight);
            let raw_mean = normal.mean(j) / unit + common.shift(j);
            normal.has_digits(j) || is_constant(n_train as f64, raw_mean, square / unit / unit)
        };
        if !(0..p).all(is_safe) {
            return Ok(None);
        }
        let gram = Mat::from_fn(p, p, |i, j| normal.gram(i, j));
        let products = Mat::from_fn(p, q, |i, o| normal.product(i, o));
        let Some(beta) = solve_path(path, &gram, &products, monitor)? else {
            return Ok(None);
        };
        Ok(Some(Fitted::of_normal(&normal, &beta)))
    }
}

/// β for every λ and output; `None` if it has too few digits.
fn solve_path(
    path: &RidgePath<'_>,
    gram: &Mat<f64>,
    products: &Mat<f64>,
    monitor: &Monitor,
) -> Result<Option<Mat<f64>>> {
    if path.model.cutoff.is_none() && path.alphas.len() < MIN_EIGEN_ALPHAS {
        let found = solve_each(&path.alphas, gram, products, monitor)?;
        if found.is_some() {
            return Ok(found);
        }
    }
    let min_alpha = path.min_alpha();
    let spectrum = Spectrum::from_gram(gram, products, min_alpha, path.model.cutoff, monitor)?;
    Ok(spectrum.map(|spectrum| {
        let theta = spectrum.solve(&path.alphas);
        linalg::product(spectrum.vt.transpose(), theta.as_ref())
    }))
}

/// [`solve_path`] by one Cholesky factorisation per λ, of the system scaled to a unit diagonal.
fn solve_each(
    alphas: &[f64],
    gram: &Mat<f64>,
    products: &Mat<f64>,
    monitor: &Monitor,
) -> Result<Option<Mat<f64>>> {
    let (p, q) = (products.nrows(), products.ncols());
    let mut beta = Mat::zeros(p, alphas.len() * q);
    for (l, alpha) in alphas.iter().enumerate() {
        let system = Mat::from_fn(p, p, |i, j| gram[(i, j)] + f64::from(i == j) * alpha);
        let Some(factor) = ScaledCholesky::new(&system, MIN_PIVOT, monitor)? else {
            return Ok(None);
        };
        let mut solution = products.clone();
        factor.solve(&mut solution);
        beta.get_mut(.., l * q..(l + 1) * q).copy_from(&solution);
    }
    Ok(Some(beta))
}
