//! Normal equations of one training set, from its second moments.

use std::ops::Range;

use super::moments::AffineFrame;
use crate::linalg::Mat;
use crate::scaling::Scaling;

/// The smallest fraction of a sum of squares that may be left after a subtraction: more than ten
/// digits of it are right then.
pub(crate) const MIN_KEPT_FRACTION: f64 = 1e-4;

/// Returns true if too few digits are left of the second moments of some `columns` of a training set,
/// which are those of all rows minus those of the held-out rows.
pub(crate) fn has_lost_digits(train: &Mat<f64>, all: &Mat<f64>, mut columns: Range<usize>) -> bool {
    let has_digits = |j: usize| train[(j, j)] >= MIN_KEPT_FRACTION * all[(j, j)];
    !columns.all(has_digits)
}

/// Second moments of a training set, centred and scaled in closed form.
///
/// Centre and factor are in units of the frame: the feature of the model is (u − centre)·factor for
/// u = (x − shift)·scale of the frame.
pub(crate) struct NormalEquations<'a> {
    /// Moments of (u, y, 1), lower triangle.
    train: &'a Mat<f64>,
    n_features: usize,
    /// Σ w.
    pub(crate) weight: f64,
    pub(crate) centre: Vec<f64>,
    pub(crate) factor: Vec<f64>,
    /// ȳ of every output; 0 without an intercept.
    pub(crate) target_mean: Vec<f64>,
}

impl<'a> NormalEquations<'a> {
    /// `None` if the training rows have no weight.
    pub(crate) fn new(
        train: &'a Mat<f64>,
        frame: &AffineFrame,
        scaling: Option<Scaling<'_>>,
        fit_intercept: bool,
    ) -> Option<Self> {
        let (p, last) = (frame.shift.len(), train.nrows() - 1);
        let weight = train[(last, last)];
        if weight == 0.0 {
            return None;
        }
        let mean = |j: usize| train[(last, j)] / weight;
        let centre = |j: usize| {
            if fit_intercept {
                mean(j)
            } else {
                (scaling.map_or(0.0, |s| s.shift(j)) - frame.shift[j]) * frame.scale[j]
            }
        };
        let factor = |j: usize| scaling.map_or(1.0, |s| s.scale[j]) / frame.scale[j];
        let target_mean = |j: usize| f64::from(fit_intercept) * mean(j);
        Some(Self {
            train,
            n_features: p,
            weight,
            centre: (0..p).map(centre).collect(),
            factor: (0..p).map(factor).collect(),
            target_mean: (p..last).map(target_mean).collect(),
        })
    }

    /// Mean of u of column `j`.
    pub(crate) fn mean(&self, j: usize) -> f64 {
        self.sum(j) / self.weight
    }

    /// Σ w·u of column `j`, or of a target.
    fn sum(&self, j: usize) -> f64 {
        self.train[(self.train.nrows() - 1, j)]
    }

    /// Σ w·u² of column `j`.
    pub(crate) fn square(&self, j: usize) -> f64 {
        self.train[(j, j)]
    }

    /// Σ w·u² of column `j` about its centre.
    pub(crate) fn square_about_centre(&self, j: usize) -> f64 {
        self.about_centre(j, j)
    }

    fn about_centre(&self, i: usize, j: usize) -> f64 {
        let centre = &self.centre;
        self.train[(i.max(j), i.min(j))] - centre[i] * self.sum(j) - centre[j] * self.sum(i)
            + self.weight * centre[i] * centre[j]
    }

    /// Returns true if enough digits of the sum of squares of column `j` are left about its centre.
    pub(crate) fn has_digits(&self, j: usize) -> bool {
        self.about_centre(j, j) >= MIN_KEPT_FRACTION * self.square(j)
    }

    /// Σ w·zᵢzⱼ for the features z of the model.
    pub(crate) fn gram(&self, i: usize, j: usize) -> f64 {
        self.about_centre(i, j) * self.factor[i] * self.factor[j]
    }

    /// Σ w·zᵢ(y − ȳ) of an output.
    pub(crate) fn product(&self, i: usize, output: usize) -> f64 {
        let (target, p) = (self.target_mean[output], self.n_features);
        let about = self.train[(p + output, i)]
            - self.centre[i] * self.sum(p + output)
            - target * (self.sum(i) - self.weight * self.centre[i]);
        about * self.factor[i]
    }

    /// Σ w·(y − ȳ)² of an output.
    pub(crate) fn target_square(&self, output: usize) -> f64 {
        let (mean, o) = (self.target_mean[output], self.n_features + output);
        let square = self.train[(o, o)] - mean * (2.0 * self.sum(o) - self.weight * mean);
        square.max(0.0)
    }

    /// The prediction at u = 0, for coefficients of u.
    pub(crate) fn level(&self, output: usize, coefficient: impl Fn(usize) -> f64) -> f64 {
        let at_centre = |(j, centre): (usize, &f64)| centre * coefficient(j);
        self.target_mean[output] - self.centre.iter().enumerate().map(at_centre).sum::<f64>()
    }
}
