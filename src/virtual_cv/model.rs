//! The candidates of virtual k-fold.

use std::sync::Arc;

use crate::linear::FoldMaps;

/// Ridge regression; without a penalty ordinary least squares, which is the default.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearModel {
    /// λ of λ‖β‖².
    pub alpha: f64,
    /// Whether there is an intercept: unpenalised, estimated in every fold.
    pub fit_intercept: bool,
    /// The scaling of the columns in every fold.
    pub scaling: Option<Arc<FoldMaps>>,
    /// The rule for small singular values; `None` if rounding alone decides which of them are zero.
    pub cutoff: Option<Cutoff>,
}

impl Default for LinearModel {
    fn default() -> Self {
        Self {
            alpha: 0.0,
            fit_intercept: true,
            scaling: None,
            cutoff: None,
        }
    }
}

impl LinearModel {
    /// Whether two models differ in the penalty only, and so share a factorisation.
    pub(super) fn is_of_path(&self, other: &Self) -> bool {
        self.fit_intercept == other.fit_intercept
            && self.scaling == other.scaling
            && self.cutoff == other.cutoff
    }
}

/// A rule for singular values of the training rows (weighted, scaled, and centred if there is an
/// intercept) that are small beside the largest. It applies to models without a penalty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cutoff {
    /// The largest ratio to the largest singular value that counts as small.
    pub ratio: f64,
    /// Whether the solver sets small singular values to zero, as LAPACK's does by its `rcond`.
    /// Otherwise a fold that has any is undetermined: an iterative solver stops before it has
    /// resolved them.
    pub truncates: bool,
}

/// Kernel ridge regression without an intercept. The rows of the data set are those of the kernel
/// matrix K.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelRidge {
    /// λ of (K + λI)⁻¹y.
    pub alpha: f64,
}

impl Default for KernelRidge {
    fn default() -> Self {
        Self { alpha: 1.0 }
    }
}
