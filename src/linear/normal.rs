//! Normal equations of one training set, from its second moments.

use std::borrow::Cow;

use super::FoldMap;
use crate::linalg::Mat;

/// The smallest fraction of a sum of squares that may be left after a subtraction: more than ten
/// digits of it are right then.
pub(crate) const MIN_KEPT_FRACTION: f64 = 1e-4;

/// Second moments of a training set, centred and scaled in closed form.
pub(crate) struct NormalEquations<'a> {
    /// Moments of (u, y, 1), lower triangle.
    train: Cow<'a, Mat<f64>>,
    n_features: usize,
    /// Σ w.
    pub(crate) weight: f64,
    /// u as a map of rows, or of what is summed of them.
    pub(crate) common: FoldMap,
    /// The features of the model as a map of u.
    pub(crate) map: FoldMap,
    /// ȳ of every output; 0 without an intercept.
    pub(crate) target_mean: Vec<f64>,
}

impl<'a> NormalEquations<'a> {
    /// From the second moments of rows behind `common`; of a scaling that sums columns, u are these
    /// sums. `None` if the rows have no weight.
    pub(crate) fn new(
        train: &'a Mat<f64>,
        common: &FoldMap,
        scaling: Option<&FoldMap>,
        fit_intercept: bool,
    ) -> Option<Self> {
        let weight = train[(train.nrows() - 1, train.nrows() - 1)];
        if weight == 0.0 {
            return None;
        }
        let identity = FoldMap::identity(common.n_features());
        let scaling = scaling.unwrap_or(&identity);
        let p = scaling.n_features();
        let map = scaling.after(common);
        let train = map.moments_of_sums(train);
        let mut map = map.of_sums_of(&identity);
        let common = if scaling.has_sums() {
            FoldMap::shifted(scaling.sums(common.shifts())).of_sums_of(scaling)
        } else {
            common.clone()
        };
        let last = train.nrows() - 1;
        let mean = |j: usize| train[(last, j)] / weight;
        if fit_intercept {
            map = map.with_shift((0..p).map(mean).collect());
        }
        let target_mean = |j: usize| f64::from(fit_intercept) * mean(j);
        Some(Self {
            n_features: p,
            weight,
            common,
            map,
            target_mean: (p..last).map(target_mean).collect(),
            train,
        })
    }

    /// The number of features of the model.
    pub(crate) fn n_features(&self) -> usize {
        self.n_features
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

    fn about_shift(&self, i: usize, j: usize) -> f64 {
        let constant = self.train.nrows() - 1;
        let train = self.train.as_ref().as_ref();
        self.map.about_shift(train, constant, i, j)
    }

    /// Σ w·u² of column `j` about its shift.
    pub(crate) fn square_about_shift(&self, j: usize) -> f64 {
        self.about_shift(j, j)
    }

    /// Returns true if enough digits of the sum of squares of column `j` are left about its shift.
    pub(crate) fn has_digits(&self, j: usize) -> bool {
        self.about_shift(j, j) >= MIN_KEPT_FRACTION * self.square(j)
    }

    /// Σ w·zᵢzⱼ for the features z of the model.
    pub(crate) fn gram(&self, i: usize, j: usize) -> f64 {
        self.about_shift(i, j) * self.map.scale(i) * self.map.scale(j)
    }

    /// Σ w·zᵢ(y − ȳ) of an output.
    pub(crate) fn product(&self, i: usize, output: usize) -> f64 {
        let (target, p) = (self.target_mean[output], self.n_features);
        let shift = self.map.shift(i);
        let about = self.train[(p + output, i)]
            - shift * self.sum(p + output)
            - target * (self.sum(i) - self.weight * shift);
        about * self.map.scale(i)
    }

    /// Σ w·(y − ȳ)² of an output.
    pub(crate) fn target_square(&self, output: usize) -> f64 {
        let (mean, o) = (self.target_mean[output], self.n_features + output);
        let square = self.train[(o, o)] - mean * (2.0 * self.sum(o) - self.weight * mean);
        square.max(0.0)
    }

    /// The prediction at u = 0, for coefficients of u.
    pub(crate) fn prediction_at_origin(
        &self,
        output: usize,
        coefficient: impl Fn(usize) -> f64,
    ) -> f64 {
        let at_shift = (0..self.n_features).map(|j| self.map.shift(j) * coefficient(j));
        self.target_mean[output] - at_shift.sum::<f64>()
    }
}
