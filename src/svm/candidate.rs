//! What is fitted or cross-validated: kernel, penalties and solver options.

use super::kernel::Kernel;
use super::smo::Options;
use crate::data::{Examples, Layout, Targets};
use crate::{Error, Result};

/// The parameters of a support vector machine.
#[derive(Clone, Debug)]
pub struct Candidate<'a> {
    /// One kernel, or that of all samples followed by one per fold.
    pub kernels: Vec<Kernel>,
    /// C and the class weights.
    pub penalty: Penalty<'a>,
    /// Width of the tube of a regression: errors up to ε cost nothing.
    pub epsilon: f64,
    /// Options of the solver.
    pub options: Options,
}

/// The penalty of an error: C times the weight of the sample times that of its class.
#[derive(Clone, Copy, Debug)]
pub struct Penalty<'a> {
    c: f64,
    class_weights: &'a [f64],
}

impl<'a> Penalty<'a> {
    /// Checks C and the class weights: those for the training set of all samples, then those for each
    /// fold; empty if all are 1.
    pub fn new(c: f64, class_weights: &'a [f64]) -> Result<Self> {
        let refuse = |name, rule, value: f64| {
            Err(Error::Parameter {
                name,
                rule,
                value: value.to_string(),
            })
        };
        if !(c > 0.0 && c.is_finite()) {
            return refuse("C", "positive and finite", c);
        }
        let is_valid = |w: &&f64| w.is_finite() && **w >= 0.0;
        match class_weights.iter().find(|w| !is_valid(w)) {
            Some(&weight) => refuse("class_weight", "finite and not negative", weight),
            None => Ok(Self { c, class_weights }),
        }
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
            Targets::Classes { codes, n_classes } => {
                let weight = self
                    .class_weights
                    .get(set * n_classes + codes[row] as usize);
                weight.copied().unwrap_or(1.0)
            }
            _ => 1.0,
        };
        let c = |&row: &usize| self.c * examples.weight(row) * class_weight(row) * counts[row];
        row_of_sample.iter().map(c).collect()
    }
}
