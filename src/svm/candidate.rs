//! What is fitted or cross-validated: kernel, penalties and solver options.

use std::sync::Arc;

use super::kernel::Kernel;
use super::problem::Errors;
use super::smo::SolverOptions;
use crate::linear::{ClassWeights, FoldMaps, TrainingSet, set_index};
use crate::{Error, Result};

/// The parameters of a support vector machine.
#[derive(Clone, Debug)]
pub struct SvmSpec {
    /// One kernel, or that of all samples followed by one per fold.
    pub kernels: Vec<Kernel>,
    /// The scaling of the rows for each training set of a cross-validation, if they are scaled.
    /// Candidates that share it share kernel values.
    pub scaling: Option<Arc<FoldMaps>>,
    /// The penalty of an error, multiplied by the weights of the sample and of its class.
    pub c: f64,
    /// Weights of the classes, which all binary problems share: training set × 1 × class.
    pub class_weights: Option<Arc<ClassWeights>>,
    /// Width of the tube of a regression: errors up to ε cost nothing.
    pub epsilon: f64,
    /// ν of a regression in place of ε, of classes in place of C, or of one class: a bound on the share of
    /// rows that are errors, and on that of support vectors.
    pub nu: Option<f64>,
    /// Options of the solver.
    pub options: SolverOptions,
}

impl Default for SvmSpec {
    /// An RBF kernel with γ = 1, C = 1, ε = 0.1, no class weights.
    fn default() -> Self {
        Self {
            kernels: vec![Kernel::default()],
            scaling: None,
            c: 1.0,
            class_weights: None,
            epsilon: 0.1,
            nu: None,
            options: SolverOptions::default(),
        }
    }
}

impl SvmSpec {
    /// Checks C, the tolerance, and the number of kernels for `n_folds` folds.
    pub(super) fn check(&self, n_folds: usize) -> Result<()> {
        let is_positive = |value: f64| value > 0.0 && value.is_finite();
        if !is_positive(self.c) {
            return Err(Error::parameter("C", "positive and finite", self.c));
        }
        let tolerance = self.options.tolerance;
        if !is_positive(tolerance) {
            return Err(Error::parameter("tol", "positive and finite", tolerance));
        }
        if let Some(nu) = self.nu.filter(|nu| !(*nu > 0.0 && *nu <= 1.0)) {
            return Err(Error::parameter("nu", "above 0 and at most 1", nu));
        }
        let (expected, found) = (n_folds + 1, self.kernels.len());
        if found == 1 || found == expected {
            return Ok(());
        }
        Err(Error::Shape {
            what: "kernels",
            expected,
            found,
        })
    }

    /// The kernel of a training set.
    pub(super) fn kernel(&self, set: TrainingSet) -> Kernel {
        match self.kernels[..] {
            [kernel] => kernel,
            ref kernels => kernels[set_index(set)],
        }
    }

    /// Returns true if all training sets have the same kernel values.
    pub(super) fn has_one_matrix(&self) -> bool {
        self.kernels.len() == 1 && self.scaling.is_none()
    }

    /// What it minimises besides the norm.
    pub(super) fn errors(&self) -> Errors {
        match self.nu {
            None => Errors::Above(self.epsilon),
            Some(_) => Errors::AboveWidth,
        }
    }

    /// C times ν: β grows with it.
    pub(super) fn size(&self) -> f64 {
        self.c * self.nu.unwrap_or(1.0)
    }

    /// The C of every sample, from the weights of the rows in a training set.
    pub(super) fn sample_costs(&self, weights: &[f64], row_of_sample: &[usize]) -> Vec<f64> {
        let rows = row_of_sample.iter();
        rows.map(|&row| self.c * weights[row]).collect()
    }
}
