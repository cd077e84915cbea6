//! Virtual k-fold: cross-validation of least squares with no refit.
//!
//! **Problem.** Fit y ≈ Xβ + b by min Σ w(y − ŷ)² + λ‖β‖² on all rows but a few, for every fold
//! and every λ, and predict the rows left out.
//!
//! **Notation.** H is the hat matrix of the fit to all rows (ŷ = Hy), r = y − ŷ its residuals, D
//! the rows a fold removes, l = |D|, and r⁽⁻ᴰ⁾ the residuals of the fit without D.
//!
//! **Method.** H is never formed, nor any other n × n matrix when p < n.
//!
//! | fold | what is solved | module |
//! |---|---|---|
//! | one row | r_i / (1 − h_ii) | `eliminate` |
//! | l < p | (I − H_DD) r_D⁽⁻ᴰ⁾ = r_D | `eliminate` |
//! | l ≥ p | (XᵀX + λI − X_DᵀX_D) θ⁽⁻ᴰ⁾ = Xᵀy − X_Dᵀy_D | `downdate` |
//! | p ≥ n, or a kernel | C_DD r_D⁽⁻ᴰ⁾ = c_D, C = (K + λI)⁻¹, c = Cy | `dual` |
//! | with a scaler in front | the same sums, a decomposition a fold | `scaled` |
//! | 1 − h ≈ 0, rank lost | the training rows, by QR | `direct` |
//!
//! Coordinates in which XᵀX is diagonal (`spectrum`) serve every λ. The intercept is one more,
//! unpenalised coordinate, so that a fold re-estimates it; weights multiply rows by √w.
//!
//! **Exactness.** Predictions are those of a refit up to rounding. Where the rows of a fold do not
//! determine the model, least squares takes the solution of least norm, as scikit-learn does;
//! where rounding hides whether they do, the error names the fold.
//!
//! **Cost**, for Λ penalties and q outputs, against O(n·p²) for one fit:
//!
//! | | time | memory besides X |
//! |---|---|---|
//! | p < n | O(n·p² + Λ·n·p·(min(l, p) + q)) | O(p²) and a few blocks of rows |
//! | p ≥ n | O(n²·p + n³ + Λ·n²·l) | O(n²) |
//!
//! **References.** Alippi and Roveri, "Virtual k-fold cross validation: a computation-aware method
//! for accuracy assessment" (equations 1–8); Monari and Dreyfus, Neurocomputing 35 (2000); Rifkin
//! and Lippert, "Notes on regularized least squares" (2007), for the dual form.

#![allow(clippy::doc_markdown)] // formulas are not code

mod diagnostics;
mod direct;
mod downdate;
mod dual;
mod eliminate;
mod kernel;
mod moments;
mod primal;
mod problem;
mod scaled;
mod sink;
mod spectrum;

use std::ops::Range;

pub use diagnostics::{Diagnostics, diagnostics};
pub use kernel::KernelProblem;
pub use problem::{Cv, Model, Problem, Scaler};
pub use sink::Errors;

use crate::data::Layout;
use crate::{Monitor, Result};
use eliminate::GROUP;
use primal::Primal;
use scaled::Scaled;
use sink::{Sink, Store, Sums, walk};

/// Held-out predictions, in the order of the folds' test rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Predictions {
    /// For every test row λ after λ, and for every λ output after output.
    pub values: Vec<f64>,
    /// For every fold λ after λ and output after output: the coefficients and the intercept.
    /// Empty unless asked for.
    pub coefficients: Vec<f64>,
}

/// Something whose folds can be predicted.
trait Foldable: Sync {
    fn n_rows(&self) -> usize;
    fn n_outputs(&self) -> usize;
    fn targets(&self) -> &[f64];
    fn run<S: Sink>(&self, model: &Model, cv: Cv<'_>, sink: S, monitor: &Monitor) -> Result<S>;
}

/// Predictions of all folds for every λ.
pub fn predict<R: Layout>(
    problem: &Problem<'_, R>,
    model: &Model,
    cv: Cv<'_>,
    monitor: &Monitor,
) -> Result<Predictions> {
    store(problem, model, cv, 0, monitor)
}

/// [`predict`], with the coefficients of every fold.
pub fn predict_with_coefficients<R: Layout>(
    problem: &Problem<'_, R>,
    model: &Model,
    cv: Cv<'_>,
    monitor: &Monitor,
) -> Result<Predictions> {
    let each = model.alphas.len() * problem.n_outputs;
    let n_coefficients = (problem.rows.n_features() + 1) * each;
    store(problem, model, cv, n_coefficients, monitor)
}

/// Mean squared errors of all folds for every λ, without keeping predictions.
pub fn errors<R: Layout>(
    problem: &Problem<'_, R>,
    model: &Model,
    cv: Cv<'_>,
    monitor: &Monitor,
) -> Result<Errors> {
    sums(problem, model, cv, monitor)
}

/// Predictions of all folds of a kernel problem for every λ.
pub fn predict_kernel(
    problem: &KernelProblem<'_>,
    alphas: &[f64],
    cv: Cv<'_>,
    monitor: &Monitor,
) -> Result<Predictions> {
    store(problem, &kernel::model(alphas), cv, 0, monitor)
}

/// Mean squared errors of all folds of a kernel problem for every λ.
pub fn errors_kernel(
    problem: &KernelProblem<'_>,
    alphas: &[f64],
    cv: Cv<'_>,
    monitor: &Monitor,
) -> Result<Errors> {
    sums(problem, &kernel::model(alphas), cv, monitor)
}

fn store(
    problem: &impl Foldable,
    model: &Model,
    cv: Cv<'_>,
    n_coefficients: usize,
    monitor: &Monitor,
) -> Result<Predictions> {
    check(problem, model, cv)?;
    let width = model.alphas.len() * problem.n_outputs();
    let offsets = cv.offsets();
    let mut out = Predictions {
        values: vec![0.0; offsets[cv.n_folds()] * width],
        coefficients: vec![0.0; cv.n_folds() * n_coefficients],
    };
    let sink = Store {
        offsets: &offsets,
        width,
        n_coefficients,
        first: 0,
        predictions: &mut out.values,
        coefficients: &mut out.coefficients,
    };
    problem.run(model, cv, sink, monitor)?;
    Ok(out)
}

fn sums(problem: &impl Foldable, model: &Model, cv: Cv<'_>, monitor: &Monitor) -> Result<Errors> {
    check(problem, model, cv)?;
    let width = model.alphas.len() * problem.n_outputs();
    let sink = Sums::new(cv, problem.targets(), problem.n_outputs(), width);
    Ok(problem.run(model, cv, sink, monitor)?.errors)
}

fn check(problem: &impl Foldable, model: &Model, cv: Cv<'_>) -> Result<()> {
    model.check()?;
    cv.check(problem.n_rows())
}

impl<R: Layout> Foldable for Problem<'_, R> {
    fn n_rows(&self) -> usize {
        self.rows.n_rows()
    }

    fn n_outputs(&self) -> usize {
        self.n_outputs
    }

    fn targets(&self) -> &[f64] {
        self.targets
    }

    fn run<S: Sink>(&self, model: &Model, cv: Cv<'_>, sink: S, monitor: &Monitor) -> Result<S> {
        let k = cv.n_folds();
        monitor.expect(k as u64);
        let hard = |fold: usize, sink: &mut S| {
            let fitted = self.fit(model, &cv.train(fold), fold, monitor)?;
            self.give(&fitted, cv, fold, sink);
            Ok(())
        };
        let each =
            |mut folds: Range<usize>, sink: &mut S, one: &dyn Fn(usize, &mut S) -> Result<()>| {
                folds.try_for_each(|fold| one(fold, sink))
            };
        let (n, p) = (self.n_rows(), self.rows.n_features());
        let is_dual = p >= n && !sink.wants_coefficients();
        // Rows without weight are predicted, and may lie where the others determine nothing.
        let has_gaps = p >= n || self.has_idle_rows();
        if let Some(scaler) = model.effective_scaler(has_gaps) {
            let scaled = if is_dual {
                None
            } else {
                Scaled::new(self, scaler, model, cv, monitor)?
            };
            return walk(0..k, 1, sink, monitor, &|folds, sink| {
                each(folds, sink, &|fold, sink| {
                    let fitted = match &scaled {
                        Some(scaled) => scaled.fit(model, &cv.held(fold), fold, monitor)?,
                        None => None,
                    };
                    match fitted {
                        Some(fitted) => self.give(&fitted, cv, fold, sink),
                        None => hard(fold, sink)?,
                    }
                    Ok(())
                })
            });
        }
        if is_dual && !self.has_idle_rows() {
            return match self.dual(model, monitor)? {
                Some(dual) => eliminate_all(&dual, cv, sink, &hard, monitor),
                None => walk(0..k, 1, sink, monitor, &|folds, sink| {
                    each(folds, sink, &hard)
                }),
            };
        }
        let Some(primal) = Primal::new(self, model, cv, monitor)? else {
            return walk(0..k, 1, sink, monitor, &|folds, sink| {
                each(folds, sink, &hard)
            });
        };
        let removed = (0..k).map(|fold| cv.n_removed(fold)).max().unwrap_or(0);
        if removed < primal.n_coordinates().max(2) {
            return eliminate_all(&primal, cv, sink, &hard, monitor);
        }
        walk(0..k, 1, sink, monitor, &|folds, sink| {
            each(folds, sink, &|fold, sink| {
                if cv.n_removed(fold) < primal.n_coordinates() {
                    return eliminate::folds(&primal, cv, fold..fold + 1, sink, &hard, monitor);
                }
                let Some(found) = primal.downdate(cv, &cv.held(fold), fold, monitor)? else {
                    return hard(fold, sink);
                };
                let is_summed = sink.wants_errors_only();
                match is_summed.then(|| found.squared_errors()).flatten() {
                    Some(squares) => sink.take_squared_errors(fold, &squares),
                    None => self.give(&found.fitted, cv, fold, sink),
                }
                Ok(())
            })
        })
    }
}

impl<R: Layout> Problem<'_, R> {
    fn give<S: Sink>(&self, fitted: &direct::Fitted, cv: Cv<'_>, fold: usize, sink: &mut S) {
        sink.take(fold, fitted.predict(self.rows, cv.test(fold)).as_ref());
        if sink.wants_coefficients() {
            sink.take_coefficients(fold, &fitted.unshifted());
        }
    }
}

/// Predicts all folds by elimination, some hundred rows at a time.
fn eliminate_all<S: Sink>(
    hat: &impl eliminate::Hat,
    cv: Cv<'_>,
    sink: S,
    hard: &(impl Fn(usize, &mut S) -> Result<()> + Sync),
    monitor: &Monitor,
) -> Result<S> {
    let k = cv.n_folds();
    let removed: usize = (0..k).map(|fold| cv.n_removed(fold)).sum();
    let grain = (GROUP * k / removed.max(1)).clamp(1, GROUP);
    walk(0..k, grain, sink, monitor, &|folds, sink| {
        eliminate::folds(hat, cv, folds, sink, hard, monitor)
    })
}
