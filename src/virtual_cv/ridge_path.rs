//! Ridge regressions that share a decomposition.

use super::model::LinearModel;
use crate::linear::FoldMaps;

/// Linear models that differ in the penalty.
#[derive(Clone, Debug)]
pub(super) struct RidgePath<'a> {
    /// Every λ, in units of the weights.
    pub(super) alphas: Vec<f64>,
    /// The first of them.
    pub(super) model: &'a LinearModel,
}

impl RidgePath<'_> {
    /// The smallest λ, that of the worst conditioned system.
    pub(super) fn min_alpha(&self) -> f64 {
        self.alphas.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The scaling, if it changes the predictions: an intercept absorbs any shift, and unpenalised
    /// least squares any scale, unless the rows are `rank_deficient`. (A cut-off depends on the scale,
    /// but only in folds with singular values near it, which are refitted.)
    pub(super) fn effective_scaling(&self, rank_deficient: bool) -> Option<&FoldMaps> {
        let depends_on_scale = rank_deficient || self.alphas.iter().any(|&a| a > 0.0);
        self.model.scaling.as_deref().filter(|s| {
            s.has_sums()
                || (s.has_shift() && !self.model.fit_intercept)
                || (depends_on_scale && s.has_scale())
        })
    }
}
