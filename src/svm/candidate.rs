//! What is fitted or cross-validated: kernel, penalties and solver options.

use ndarray::{Array2, ArrayView2};

use super::kernel::Kernel;
use super::smo::Options;
use crate::data::{Examples, Layout, Targets};
use crate::{Error, Result};

/// The parameters of a support vector machine.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// One kernel, or that of all samples followed by one per fold.
    pub kernels: Vec<Kernel>,
    /// C and the class weights.
    pub penalty: Penalty,
    /// Width of the tube of a regression: errors up to ε cost nothing.
    pub epsilon: f64,
    /// Options of the solver.
    pub options: Options,
}

impl Default for Candidate {
    /// An RBF kernel with γ = 1, C = 1, ε = 0.1.
    fn default() -> Self {
        Self {
            kernels: vec![Kernel::default()],
            penalty: Penalty::default(),
            epsilon: 0.1,
            options: Options::default(),
        }
    }
}

/// The penalty of an error: C times the weight of the sample times that of its class.
#[derive(Clone, Debug)]
pub struct Penalty {
    c: f64,
    class_weights: Array2<f64>,
}

impl Default for Penalty {
    /// C = 1, without class weights.
    fn default() -> Self {
        Self {
            c: 1.0,
            class_weights: Array2::default((0, 0)),
        }
    }
}

impl Penalty {
    /// Checks C.
    pub fn new(c: f64) -> Result<Self> {
        if !(c > 0.0 && c.is_finite()) {
            return Err(refused("C", "positive and finite", c));
        }
        Ok(Self {
            c,
            ..Self::default()
        })
    }

    /// Adds class weights: one row for the training set of all samples, then one per fold; one column
    /// per class.
    pub fn with_class_weights(self, class_weights: ArrayView2<'_, f64>) -> Result<Self> {
        let is_invalid = |w: &&f64| !(w.is_finite() && **w >= 0.0);
        if let Some(&weight) = class_weights.iter().find(is_invalid) {
            return Err(refused("class_weight", "finite and not negative", weight));
        }
        let class_weights = class_weights.to_owned();
        Ok(Self {
            class_weights,
            ..self
        })
    }

    /// C.
    pub(super) fn c(&self) -> f64 {
        self.c
    }

    /// The C of every sample, in a training set that contains each row `counts[row]` times. `set` is 0
    /// for all samples, and fold + 1 for the training set of a fold.
    pub(super) fn per_sample<R: Layout>(
        &self,
        examples: &Examples<'_, R>,
        row_of_sample: &[usize],
        set: usize,
        counts: &[f64],
    ) -> Vec<f64> {
        let class_weight = |row: usize| match examples.targets() {
            Targets::Classes { codes, .. } => {
                let weight = self.class_weights.get((set, codes[row] as usize));
                weight.copied().unwrap_or(1.0)
            }
            _ => 1.0,
        };
        let c = |&row: &usize| self.c * examples.weight(row) * class_weight(row) * counts[row];
        row_of_sample.iter().map(c).collect()
    }
}

fn refused(name: &'static str, rule: &'static str, value: f64) -> Error {
    let value = value.to_string();
    Error::Parameter { name, rule, value }
}
