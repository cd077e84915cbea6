//! Virtual k-fold: cross-validation of least squares without refits.
//!
//! **Problem.** Fit y ≈ Xβ + b by min Σ w(y − ŷ)² + λ‖β‖² to all rows except those of a fold, for
//! every fold and every λ, and predict the rows left out.
//!
//! **Notation.** H is the hat matrix of the fit to all rows (ŷ = Hy), r = y − ŷ its residuals, D
//! the rows that a fold removes, l = |D|, and r⁽⁻ᴰ⁾ the residuals of the fit without D.
//!
//! **Method.** Neither H nor, if p < n, any other n × n matrix is formed.
//!
//! | fold | what is solved | module |
//! |---|---|---|
//! | one row | r_i / (1 − h_ii) | `eliminate` |
//! | l < p | (I − H_DD) r_D⁽⁻ᴰ⁾ = r_D | `eliminate` |
//! | l ≥ p | (XᵀX + λI − X_DᵀX_D) θ⁽⁻ᴰ⁾ = Xᵀy − X_Dᵀy_D | `downdate` |
//! | p ≥ n, or a kernel | C_DD r_D⁽⁻ᴰ⁾ = c_D, C = (K + λI)⁻¹, c = Cy | `dual` |
//! | with a scaler in front | the same moments, one decomposition per fold | `scaled` |
//! | 1 − h ≈ 0, rank lost | the training rows, by QR | `refit` |
//!
//! Coordinates in which XᵀX is diagonal (`spectrum`) serve every λ. The intercept is one more,
//! unpenalised coordinate, so that every fold has its own; weights multiply rows by √w.
//!
//! **Exactness.** Predictions are those of a refit to rounding. If the rows of a fold do not determine
//! the model, its solution is that of minimum norm, as in scikit-learn; if rounding hides whether they
//! do, an error names the fold.
//!
//! **Cost**, for Λ penalties and q outputs, against O(n·p²) for one fit:
//!
//! | | time | memory besides X |
//! |---|---|---|
//! | p < n | O(n·p² + Λ·n·p·(min(l, p) + q)) | O(p²) and a few panels of rows |
//! | p ≥ n | O(n²·p + n³ + Λ·n²·l) | O(n²) |
//!
//! **References.** Alippi and Roveri, "Virtual k-fold cross validation: a computation-aware method
//! for accuracy assessment" (equations 1–8); Monari and Dreyfus, Neurocomputing 35 (2000); Rifkin
//! and Lippert, "Notes on regularized least squares" (2007), for the dual form.

#![allow(clippy::doc_markdown)] // formulas are not code

mod collect;
mod diagnostics;
mod downdate;
mod dual;
mod eliminate;
mod held_out;
mod kernel;
mod linear;
mod moments;
mod primal;
mod problem;
mod refit;
mod scaled;
mod spectrum;

pub use collect::Errors;
pub use diagnostics::{Diagnostics, diagnostics};
pub use kernel::KernelProblem;
pub use problem::{Model, Problem, Scaler};

use crate::data::Layout;
use crate::{Monitor, Resampling, Result};
use collect::{MseAccumulator, Predictions};
use problem::{LooProblem, check_folds};

/// Held-out predictions, in the order of the folds' test rows.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldOutPredictions {
    /// Per test row and λ, one value per output.
    pub values: Vec<f64>,
    /// Per fold, λ and output, the coefficients and the intercept; empty if not computed.
    pub coefficients: Vec<f64>,
}

/// Predictions of all folds for every λ.
pub fn predict<R: Layout>(
    problem: &Problem<'_, R>,
    model: &Model,
    folds: &dyn Resampling,
    monitor: &Monitor,
) -> Result<HeldOutPredictions> {
    predictions(problem, model, folds, 0, monitor)
}

/// [`predict`], with the coefficients of every fold.
pub fn predict_with_coefficients<R: Layout>(
    problem: &Problem<'_, R>,
    model: &Model,
    folds: &dyn Resampling,
    monitor: &Monitor,
) -> Result<HeldOutPredictions> {
    let width = model.alphas.len() * problem.targets.n_outputs;
    let n_coefficients = (problem.rows.n_features() + 1) * width;
    predictions(problem, model, folds, n_coefficients, monitor)
}

/// Mean squared errors of all folds for every λ; predictions are not stored.
pub fn errors<R: Layout>(
    problem: &Problem<'_, R>,
    model: &Model,
    folds: &dyn Resampling,
    monitor: &Monitor,
) -> Result<Errors> {
    mean_squared_errors(problem, model, folds, monitor)
}

/// Predictions of all folds of a kernel problem for every λ.
pub fn predict_kernel(
    problem: &KernelProblem<'_>,
    alphas: &[f64],
    folds: &dyn Resampling,
    monitor: &Monitor,
) -> Result<HeldOutPredictions> {
    predictions(problem, &kernel::model(alphas), folds, 0, monitor)
}

/// Mean squared errors of all folds of a kernel problem for every λ.
pub fn errors_kernel(
    problem: &KernelProblem<'_>,
    alphas: &[f64],
    folds: &dyn Resampling,
    monitor: &Monitor,
) -> Result<Errors> {
    mean_squared_errors(problem, &kernel::model(alphas), folds, monitor)
}

fn predictions(
    problem: &impl LooProblem,
    model: &Model,
    folds: &dyn Resampling,
    n_coefficients: usize,
    monitor: &Monitor,
) -> Result<HeldOutPredictions> {
    model.check()?;
    check_folds(folds, problem.n_rows())?;
    let width = model.alphas.len() * problem.targets().n_outputs;
    let mut offsets = vec![0];
    for fold in 0..folds.n_splits() {
        offsets.push(offsets[fold] + folds.held_out(fold).len());
    }
    let mut out = HeldOutPredictions {
        values: vec![0.0; offsets[folds.n_splits()] * width],
        coefficients: vec![0.0; folds.n_splits() * n_coefficients],
    };
    let collector = Predictions {
        offsets: &offsets,
        width,
        n_coefficients,
        first: 0,
        predictions: &mut out.values,
        coefficients: &mut out.coefficients,
    };
    problem.run(model, folds, collector, monitor)?;
    Ok(out)
}

fn mean_squared_errors(
    problem: &impl LooProblem,
    model: &Model,
    folds: &dyn Resampling,
    monitor: &Monitor,
) -> Result<Errors> {
    model.check()?;
    check_folds(folds, problem.n_rows())?;
    let width = model.alphas.len() * problem.targets().n_outputs;
    let collector = MseAccumulator::new(folds, problem.targets(), width);
    Ok(problem.run(model, folds, collector, monitor)?.errors)
}
