//! What is fitted or cross-validated: kernel, penalties and solver options.

use std::sync::Arc;

use ndarray::Array2;

use super::kernel::Kernel;
use super::smo::Options;
use crate::data::{Examples, Layout, Targets};
use crate::scaling::FoldScaling;
use crate::{Error, Result};

/// The parameters of a support vector machine.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// One kernel, or that of all samples followed by one per fold.
    pub kernels: Vec<Kernel>,
    /// The scaling of the rows for each training set of a cross-validation, if they are scaled.
    /// Candidates that share it share kernel values.
    pub scaling: Option<Arc<FoldScaling>>,
    /// The penalty of an error, multiplied by the weights of the sample and of its class.
    pub c: f64,
    /// Class weights: one row for all samples, then one per fold; one column per class. Missing ones are
    /// 1.
    pub class_weights: Option<Array2<f64>>,
    /// Width of the tube of a regression: errors up to ε cost nothing.
    pub epsilon: f64,
    /// Options of the solver.
    pub options: Options,
}

impl Default for Candidate {
    /// An RBF kernel with γ = 1, C = 1, ε = 0.1, no class weights.
    fn default() -> Self {
        Self {
            kernels: vec![Kernel::default()],
            scaling: None,
            c: 1.0,
            class_weights: None,
            epsilon: 0.1,
            options: Options::default(),
        }
    }
}

impl Candidate {
    /// Checks C, the weights, the tolerance, and the number of kernels for `n_folds` folds.
    pub(super) fn check(&self, n_folds: usize) -> Result<()> {
        let is_positive = |value: f64| value > 0.0 && value.is_finite();
        if !is_positive(self.c) {
            return Err(Error::parameter("C", "positive and finite", self.c));
        }
        let tolerance = self.options.tolerance;
        if !is_positive(tolerance) {
            return Err(Error::parameter("tol", "positive and finite", tolerance));
        }
        let is_invalid = |weight: &&f64| !(weight.is_finite() && **weight >= 0.0);
        let mut weights = self.class_weights.iter().flatten();
        if let Some(weight) = weights.find(is_invalid) {
            let rule = "finite and not negative";
            return Err(Error::parameter("class_weight", rule, weight));
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

    /// The kernel of a training set: 0 for all samples, fold + 1 for that of a fold.
    pub(super) fn kernel(&self, set: usize) -> Kernel {
        match self.kernels[..] {
            [kernel] => kernel,
            ref kernels => kernels[set],
        }
    }

    /// Returns true if all training sets have the same kernel values.
    pub(super) fn has_one_matrix(&self) -> bool {
        self.kernels.len() == 1 && self.scaling.is_none()
    }

    /// The C of every sample, in a training set that contains each row `counts[row]` times. `set` is 0
    /// for all samples, and fold + 1 for the training set of a fold.
    pub(super) fn sample_costs<R: Layout>(
        &self,
        examples: &Examples<'_, R>,
        row_of_sample: &[usize],
        set: usize,
        counts: &[f64],
    ) -> Vec<f64> {
        let class_weight = |row: usize| match (examples.targets(), &self.class_weights) {
            (Targets::Classes { codes, .. }, Some(weights)) => {
                let weight = weights.get((set, codes[row] as usize));
                weight.copied().unwrap_or(1.0)
            }
            _ => 1.0,
        };
        let c = |&row: &usize| self.c * examples.weight(row) * class_weight(row) * counts[row];
        row_of_sample.iter().map(c).collect()
    }
}
