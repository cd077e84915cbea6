//! Virtual k-fold: cross-validation of least squares without refits.
//!
//! # Problem
//! Fit y ≈ Xβ + b by min Σ w(y − ŷ)² + λ‖β‖² to all rows except those of a fold, for
//! every fold and every λ, and predict the rows left out.
//!
//! # Notation
//! H is the hat matrix of the fit to all rows (ŷ = Hy), r = y − ŷ its residuals, D
//! the rows that a fold removes, l = |D|, and r⁽⁻ᴰ⁾ the residuals of the fit without D.
//!
//! # Method
//! Neither H nor, if p < n, any other n × n matrix is formed.
//!
//! | fold | what is solved | module |
//! |---|---|---|
//! | one row | r_i / (1 − h_ii) | `eliminate` |
//! | l < p | (I − H_DD) r_D⁽⁻ᴰ⁾ = r_D | `eliminate` |
//! | l ≥ p | (XᵀX + λI − X_DᵀX_D) θ⁽⁻ᴰ⁾ = Xᵀy − X_Dᵀy_D | `downdate` |
//! | p ≥ n, or a kernel | C_DD r_D⁽⁻ᴰ⁾ = c_D, C = (K + λI)⁻¹, c = Cy | `dual` |
//! | a scaling per fold, or one split | the moments of the training rows, one decomposition per fold | `per_fold` |
//! | a kernel, few folds and λ | the training rows, by Cholesky | `kernel` |
//! | 1 − h ≈ 0, rank lost, nearly all variation of y held out | the training rows, by QR | `refit` |
//!
//! Coordinates in which XᵀX is diagonal (`spectrum`) serve every λ. The intercept is one more,
//! unpenalised coordinate, so that every fold has its own; weights multiply rows by √w.
//!
//! # Exactness
//! Predictions are those of a refit to rounding. If the rows of a fold do not determine
//! the model, its solution is that of minimum norm, as in scikit-learn; if rounding hides whether they
//! do, an error names the fold.
//!
//! # Cost
//! For Λ penalties and q outputs, against O(n·p²) for one fit:
//!
//! | | time | memory besides X |
//! |---|---|---|
//! | p < n | O(n·p² + Λ·n·p·(min(l, p) + q)) | O(p²) and a few panels of rows |
//! | p ≥ n | O(n²·p + n³ + Λ·n²·l) | O(n²) |
//!
//! # Example
//! Penalties share one factorisation:
//!
//! ```
//! use ndarray::{Array2, Axis};
//! use onefold::virtual_cv::{LinearModel, Virtual};
//! use onefold::{Dataset, Engine, Folds, Job, Monitor};
//!
//! let x = Array2::from_shape_fn((200, 5), |(i, j)| (i as f64 * (j + 2) as f64).sin());
//! let y = x.sum_axis(Axis(1)).insert_axis(Axis(1));
//! let data = Dataset::dense(x.view())?.with_values(y.view())?;
//! let folds = Folds::leave_one_out(200)?;
//! let ridge = |alpha| LinearModel { alpha, ..Default::default() };
//! let (small, large) = (ridge(1e-3), ridge(10.0));
//! let monitor = Monitor::new();
//! let found = Virtual.out_of_fold(&[&small, &large], &Job::new(&data, &folds, &monitor))?;
//! let mse = |outputs: &Array2<f64>| (outputs - &y).powi(2).mean();
//! assert!(mse(&found[0].outputs) < mse(&found[1].outputs));
//! # Ok::<(), onefold::Error>(())
//! ```
//!
//! # References
//! Alippi and Roveri, "Virtual k-fold cross validation: a computation-aware method
//! for accuracy assessment" (equations 1–8); Monari and Dreyfus, Neurocomputing 35 (2000); Rifkin
//! and Lippert, "Notes on regularized least squares" (2007), for the dual form.

#![allow(clippy::doc_markdown)] // formulas are not code

mod collect;
mod diagnostics;
mod downdate;
mod dual;
mod eliminate;
mod kernel;
mod linear;
mod model;
mod per_fold;
mod primal;
mod refit;
mod ridge_path;
mod spectrum;

pub use collect::MeanSquaredErrors;
pub use diagnostics::Diagnostics;
pub use model::{Cutoff, KernelRidge, LinearModel};

use ndarray::{Array2, Array3};
use ridge_path::RidgePath;

use crate::data::{Dataset, with_layout};
use crate::engine::{Finished, Job, group};
use crate::linear::{LinearProblem, NormalizedTargets};
use crate::runtime::memory;
use crate::{Cost, Engine, Error, Monitor, OutOfFold, Resampling, Result};
use collect::{Collector, MseAccumulator, Place, Predictions};
use kernel::KernelProblem;

/// The engine of virtual k-fold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Virtual;

impl Engine<LinearModel> for Virtual {
    /// Candidates that differ in the penalty only share a factorisation.
    fn run(
        &self,
        candidates: &[&LinearModel],
        job: &Job<'_>,
        finished: &mut Finished<'_>,
    ) -> Result<()> {
        for members in group(candidates, |a, b| a.is_of_path(b)) {
            let models: Vec<_> = members.iter().map(|&index| candidates[index]).collect();
            let results = Penalties::linear(&models)?.predict(job)?;
            for (index, result) in members.into_iter().zip(results) {
                finished(index, result);
            }
        }
        Ok(())
    }
}

impl Engine<KernelRidge> for Virtual {
    /// Candidates share a factorisation.
    fn run(
        &self,
        candidates: &[&KernelRidge],
        job: &Job<'_>,
        finished: &mut Finished<'_>,
    ) -> Result<()> {
        if candidates.is_empty() {
            return Ok(());
        }
        let results = Penalties::kernel(candidates)?.predict(job)?;
        for (index, result) in results.into_iter().enumerate() {
            finished(index, result);
        }
        Ok(())
    }
}

/// Three things are computed without out-of-fold outputs, and so are not calls of the engine.
impl Virtual {
    /// Mean squared errors over the folds of models that differ in the penalty only; predictions are
    /// not stored.
    pub fn mean_squared_errors(
        &self,
        candidates: &[&LinearModel],
        data: &Dataset<'_>,
        folds: &dyn Resampling,
        monitor: &Monitor,
    ) -> Result<MeanSquaredErrors> {
        Penalties::linear(candidates)?.mean_squared_errors(data, folds, monitor)
    }

    /// [`Virtual::mean_squared_errors`] of kernel ridge.
    pub fn kernel_mean_squared_errors(
        &self,
        candidates: &[&KernelRidge],
        data: &Dataset<'_>,
        folds: &dyn Resampling,
        monitor: &Monitor,
    ) -> Result<MeanSquaredErrors> {
        Penalties::kernel(candidates)?.mean_squared_errors(data, folds, monitor)
    }

    /// Leverages and leave-one-out residuals of a model without a scaling.
    pub fn diagnostics(
        &self,
        model: &LinearModel,
        data: &Dataset<'_>,
        monitor: &Monitor,
    ) -> Result<Diagnostics> {
        if model.scaling.is_some() {
            return Err(Error::Parameter {
                name: "model",
                rule: "without a scaling",
                value: "one with a scaling".into(),
            });
        }
        let normalized = NormalizedTargets::new(data)?;
        let path = RidgePath {
            alphas: Penalties::linear(&[model])?.in_units(normalized.weight_unit),
            model,
        };
        let targets = normalized.view();
        let mut found = with_layout!(data, |examples| {
            let rows = *examples.rows();
            LinearProblem { rows, targets }.diagnostics(&path, monitor)
        })?;
        found.residuals *= normalized.unit;
        found.left_out *= normalized.unit;
        Ok(found)
    }
}

/// The penalties of candidates that share a factorisation.
struct Penalties<'a> {
    alphas: Vec<f64>,
    /// The first of them; `None` for kernel ridge.
    model: Option<&'a LinearModel>,
}

impl<'a> Penalties<'a> {
    fn linear(models: &[&'a LinearModel]) -> Result<Self> {
        let first = models.first().copied();
        if first.is_some_and(|first| !models.iter().all(|model| model.is_of_path(first))) {
            let value = "candidates of several families";
            return Err(Error::parameter("candidates", "of one family", value));
        }
        Self::new(models.iter().map(|model| model.alpha).collect(), first)
    }

    fn kernel(models: &[&KernelRidge]) -> Result<Self> {
        Self::new(models.iter().map(|model| model.alpha).collect(), None)
    }

    fn new(alphas: Vec<f64>, model: Option<&'a LinearModel>) -> Result<Self> {
        let bad = alphas.iter().find(|a| !(a.is_finite() && **a >= 0.0));
        if bad.is_some() || alphas.is_empty() {
            let value = bad.map_or("nothing".into(), f64::to_string);
            return Err(Error::parameter("alpha", "finite and not negative", value));
        }
        Ok(Self { alphas, model })
    }

    /// Every λ in units of the weights.
    fn in_units(&self, weight_unit: f64) -> Vec<f64> {
        let in_units = |alpha: &f64| (alpha / weight_unit).min(f64::MAX);
        self.alphas.iter().map(in_units).collect()
    }

    /// The results of all candidates.
    fn predict(&self, job: &Job<'_>) -> Result<Vec<OutOfFold>> {
        let Job { data, folds, .. } = *job;
        let targets = NormalizedTargets::new(data)?;
        let (k, q) = (folds.n_splits(), targets.view().n_outputs);
        let offsets = folds.test_starts();
        let (n_rows, width) = (offsets[k], data.n_features() + 1);
        // Kernel ridge has no coefficients of features.
        let keeps_coefficients = job.keep.coefficients && self.model.is_some();
        let n_kept = if keeps_coefficients { k } else { 0 };
        let what = format_args!("predictions of {n_rows} rows");
        memory::check_shape::<f64>(what, &[n_rows, self.alphas.len(), q])?;
        let what = format_args!("coefficients of {width} features in {n_kept} folds");
        memory::check_shape::<f64>(what, &[n_kept, self.alphas.len(), q, width])?;
        let mut found: Vec<OutOfFold> = (0..self.alphas.len())
            .map(|index| OutOfFold {
                outputs: Array2::from_elem((n_rows, q), f64::NAN),
                coefficients: Array3::zeros((n_kept, q, width)),
                cost: Cost {
                    fits: u64::from(index == 0),
                    rows_fed: if index == 0 { data.n_rows() as u64 } else { 0 },
                    rows_evaluated: n_rows as u64,
                    ..Cost::default()
                },
                ..OutOfFold::default()
            })
            .collect();
        let places = found.iter_mut().map(|one| Place {
            outputs: one.outputs.as_slice_mut().expect("standard layout"),
            coefficients: one.coefficients.as_slice_mut().expect("standard layout"),
        });
        let collector = Predictions {
            offsets: &offsets,
            n_outputs: q,
            n_coefficients: if keeps_coefficients { q * width } else { 0 },
            first: 0,
            places: places.collect(),
            undetermined: job.keep.undetermined.then(Vec::new),
            refitted: vec![],
        };
        let collected = self.run(data, &targets, folds, collector, job.monitor)?;
        let undetermined = collected.undetermined.unwrap_or_default();
        let refitted = collected.refitted;
        for one in &mut found {
            if targets.unit != 1.0 {
                one.outputs *= targets.unit;
                one.coefficients *= targets.unit;
            }
            one.status.undetermined.clone_from(&undetermined);
            one.status.refitted.clone_from(&refitted);
        }
        Ok(found)
    }

    fn mean_squared_errors(
        &self,
        data: &Dataset<'_>,
        folds: &dyn Resampling,
        monitor: &Monitor,
    ) -> Result<MeanSquaredErrors> {
        let targets = NormalizedTargets::new(data)?;
        let collector = MseAccumulator::new(folds, targets.view(), self.alphas.len());
        let mut found = self
            .run(data, &targets, folds, collector, monitor)?
            .finish();
        for errors in [&mut found.mean, &mut found.standard_error, &mut found.total] {
            errors.mapv_inplace(|error| error * targets.unit * targets.unit);
        }
        Ok(found)
    }

    /// Passes the predictions of all folds, for every λ, to `collector`.
    fn run<S: Collector>(
        &self,
        data: &Dataset<'_>,
        targets: &NormalizedTargets<'_>,
        folds: &dyn Resampling,
        collector: S,
        monitor: &Monitor,
    ) -> Result<S> {
        let alphas = self.in_units(targets.weight_unit);
        let targets = targets.view();
        data.check_samples(folds.n_samples())?;
        let Some(model) = self.model else {
            return KernelProblem::new(data, targets)?.run(&alphas, folds, collector, monitor);
        };
        if let Some(scaling) = &model.scaling {
            scaling.check(folds.n_splits(), data.n_features())?;
        }
        let path = RidgePath { alphas, model };
        with_layout!(data, |examples| {
            let rows = *examples.rows();
            LinearProblem { rows, targets }.run(&path, folds, collector, monitor)
        })
    }
}
