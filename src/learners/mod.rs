//! Incremental learners, one a file, each a [`Learner`](crate::tree::Learner).

mod pegasos;

pub use pegasos::{Pegasos, PegasosOptions};

use crate::{Error, Result};

/// Outputs of a linear classifier: one for two classes, else one a class.
fn n_decisions(n_classes: usize) -> Result<usize> {
    match n_classes {
        0 | 1 => Err(Error::Parameter {
            name: "y",
            rule: "of at least two classes",
            value: format!("{n_classes} class(es)"),
        }),
        2 => Ok(1),
        n => Ok(n),
    }
}

/// ±1: whether `code` is the class that `output` stands for.
#[inline(always)]
fn sign(code: u32, output: usize, n_outputs: usize) -> f64 {
    let class = if n_outputs == 1 { 1 } else { output };
    if code as usize == class { 1.0 } else { -1.0 }
}
