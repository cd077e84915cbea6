//! The candidates of virtual k-fold.

use std::sync::Arc;

use crate::scaling::FoldScaling;

/// Ridge regression; without a penalty ordinary least squares, which is the default.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearModel {
    /// λ of λ‖β‖².
    pub alpha: f64,
    /// Whether there is an intercept: unpenalised, estimated in every fold.
    pub fit_intercept: bool,
    /// The scaling of the columns in every fold.
    pub scaling: Option<Arc<FoldScaling>>,
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

/// What candidates that share a factorisation have in common: everything but the penalty.
#[derive(Clone, Debug, PartialEq)]
pub enum Family {
    /// Linear in the features.
    Linear {
        /// As in [`LinearModel`].
        fit_intercept: bool,
        /// As in [`LinearModel`].
        scaling: Option<Arc<FoldScaling>>,
        /// As in [`LinearModel`].
        cutoff: Option<Cutoff>,
    },
    /// Linear in the rows of a precomputed kernel matrix.
    PrecomputedKernel,
}

/// A candidate of virtual k-fold: a penalty and a family.
pub trait Model: Sync {
    /// λ.
    fn alpha(&self) -> f64;

    /// The family.
    fn family(&self) -> Family;
}

impl Model for LinearModel {
    fn alpha(&self) -> f64 {
        self.alpha
    }

    fn family(&self) -> Family {
        Family::Linear {
            fit_intercept: self.fit_intercept,
            scaling: self.scaling.clone(),
            cutoff: self.cutoff,
        }
    }
}

impl Model for KernelRidge {
    fn alpha(&self) -> f64 {
        self.alpha
    }

    fn family(&self) -> Family {
        Family::PrecomputedKernel
    }
}
