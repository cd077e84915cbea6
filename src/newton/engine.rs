//! The engine of smooth convex losses: families of models, and how each is solved.

use ndarray::{Array2, Axis, Slice};

use super::samples::Samples;
use super::spec::penalties;
use super::{Accuracy, GlmSpec, Link, leave_one_out, matrix_free, solve};
use crate::data::Dataset;
use crate::engine::{Finished, Job, Keep, UndeterminedFold, group};
use crate::{Engine, Error, Monitor, OutOfFold, Resampling, Result};

/// Features up to which the Hessians of all folds are formed, and for each fold: their cost grows with
/// the square of the features, and hardly with the folds.
const MAX_FEATURES: usize = 256;
const MAX_FEATURES_PER_FOLD: usize = 4;

/// The same for rows of which at least this part is stored: conjugate gradients gain less.
const MAX_DENSE_FEATURES: usize = 2048;
const MIN_DENSITY: f64 = 0.1;

/// Features up to which rows are left out one by one, with one Hessian of all rows.
const MAX_CERTIFIED_FEATURES: usize = 4096;

/// How the folds of a family are solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Newton's method with a factored Hessian of every fold.
    Hessians,
    /// Truncated Newton steps, for rows of many features and for multinomial models.
    MatrixFree,
    /// One step for each row, with a bound on its error; other rows as with Hessians.
    LeaveOneOut,
}

impl Method {
    /// Its name in [`Status`](crate::engine::Status).
    pub fn name(self) -> &'static str {
        match self {
            Self::Hessians => "hessians",
            Self::MatrixFree => "matrix-free",
            Self::LeaveOneOut => "leave-one-out",
        }
    }

    /// The method that takes least time.
    ///
    /// Single rows are left out by certified steps, unless the scaling changes with every row, classes are
    /// solved jointly, coefficients of every fold are kept, or one Hessian is too large. Of other folds,
    /// Hessians are formed if there are few features, absolutely or for each fold, and of rows on disk,
    /// which they need in fewer passes.
    pub fn choose(model: &GlmSpec, data: &Dataset<'_>, folds: &dyn Resampling, keep: Keep) -> Self {
        if why_not_by_rows(model, data, folds, keep).is_none() {
            return Self::LeaveOneOut;
        }
        let is_dense = data.mean_nnz() >= MIN_DENSITY * data.n_features() as f64;
        let most = if is_dense {
            MAX_DENSE_FEATURES
        } else {
            MAX_FEATURES
        };
        let most = most.max(MAX_FEATURES_PER_FOLD * folds.n_splits());
        let is_wide = data.n_features() > most && !data.is_on_disk();
        if model.link == Link::Multinomial || is_wide {
            Self::MatrixFree
        } else {
            Self::Hessians
        }
    }
}

/// Why rows are not left out by certified steps, if they are not.
fn why_not_by_rows(
    model: &GlmSpec,
    data: &Dataset<'_>,
    folds: &dyn Resampling,
    keep: Keep,
) -> Option<&'static str> {
    let is_by_row = folds.partition().is_some() && folds.n_splits() == folds.n_samples();
    let reasons = [
        (!is_by_row, "folds of more than one row"),
        (model.link == Link::Multinomial, "a multinomial model"),
        (
            model.scaling.is_some(),
            "a scaling that changes with every row",
        ),
        (
            keep.coefficients,
            "coefficients of every fold that are kept",
        ),
        (
            data.n_features() > MAX_CERTIFIED_FEATURES,
            "more than 4096 features",
        ),
    ];
    reasons
        .iter()
        .find(|(applies, _)| *applies)
        .map(|(_, reason)| *reason)
}

/// Newton's method for all folds side by side: the engine of smooth convex losses.
///
/// Outputs are linear predictors. Models that differ in the penalty only are solved together, from the
/// largest to the smallest.
#[derive(Clone, Copy, Debug)]
pub struct Newton {
    /// How closely folds are solved.
    pub accuracy: Accuracy,
    /// The bound on the error of an output, in units of the predictor or, for losses of differences, of
    /// the standard deviation of the targets, up to which one step leaves out a row.
    pub epsilon: f64,
    /// How folds are solved; `None` for the method that takes least time.
    pub method: Option<Method>,
}

impl Default for Newton {
    /// To a relative gradient of 1e-8, or an error of 0.002 of single rows.
    fn default() -> Self {
        Self {
            accuracy: 1e-8.into(),
            epsilon: 2e-3,
            method: None,
        }
    }
}

/// Receives the index in its family and the result of a model.
pub(super) type Finish<'a> = dyn FnMut(usize, OutOfFold) -> Result<()> + 'a;

/// Models that differ in the penalty only, and what they are solved for.
pub(super) struct FamilyJob<'a> {
    /// The first of them.
    pub(super) model: &'a GlmSpec,
    /// λ: model × training set, that of all samples first.
    pub(super) penalties: Array2<f64>,
    pub(super) data: &'a Dataset<'a>,
    pub(super) accuracy: Accuracy,
    pub(super) epsilon: f64,
    pub(super) keep: Keep,
    pub(super) monitor: &'a Monitor,
}

impl Engine<GlmSpec> for Newton {
    /// Candidates that differ in the penalty only start from one another.
    fn run(
        &self,
        candidates: &[&GlmSpec],
        job: &Job<'_>,
        finished: &mut Finished<'_>,
    ) -> Result<()> {
        self.accuracy.check()?;
        if self.epsilon.is_nan() || self.epsilon < 0.0 {
            return Err(Error::parameter("epsilon", "not negative", self.epsilon));
        }
        candidates
            .iter()
            .try_for_each(|candidate| candidate.check())?;
        for family in group(candidates, |a, b| a.is_of_family(b)) {
            let models: Vec<&GlmSpec> = family.iter().map(|&index| candidates[index]).collect();
            self.run_family(&models, job, &mut |member, mut found| {
                reject_undetermined(&mut found, job)?;
                finished(family[member], found);
                Ok(())
            })?;
        }
        Ok(())
    }
}

impl Newton {
    fn run_family(
        &self,
        models: &[&GlmSpec],
        job: &Job<'_>,
        finish: &mut Finish<'_>,
    ) -> Result<()> {
        let (model, data, folds) = (models[0], job.data, job.folds);
        let samples = Samples::new(model, data, folds)?;
        let method = self
            .method
            .unwrap_or_else(|| Method::choose(model, data, folds, job.keep));
        let family = FamilyJob {
            model,
            penalties: penalties(models, &samples.sets)?,
            data,
            accuracy: self.accuracy,
            epsilon: self.epsilon,
            keep: job.keep,
            monitor: job.monitor,
        };
        let mut finish = |member, mut found: OutOfFold| {
            found.status.method = method.name();
            finish(member, found)
        };
        match (method, model.link) {
            (Method::Hessians, Link::Independent(loss)) => {
                solve::run(&family, loss, samples, &mut finish)
            }
            (Method::LeaveOneOut, Link::Independent(loss)) => {
                if let Some(reason) = why_not_by_rows(model, data, folds, job.keep) {
                    let rule = "one for these models and folds";
                    return Err(Error::parameter(
                        "method",
                        rule,
                        format!("leave-one-out with {reason}"),
                    ));
                }
                leave_one_out::run(&family, loss, samples, &mut finish)
            }
            (Method::MatrixFree, _) => matrix_free::run(&family, samples, &mut finish),
            (_, Link::Multinomial) => Err(Error::parameter(
                "method",
                "matrix-free for multinomial models",
                method.name(),
            )),
        }
    }
}

/// The folds whose relative gradient is NaN for some output.
pub(super) fn undetermined_folds(relative_gradients: &Array2<f64>) -> Vec<UndeterminedFold> {
    let folds = relative_gradients.outer_iter().enumerate();
    let folds = folds.filter(|(_, gradients)| gradients.iter().any(|gradient| gradient.is_nan()));
    folds.map(|(fold, _)| undetermined(fold)).collect()
}

/// A fold without an optimum.
pub(super) fn undetermined(fold: usize) -> UndeterminedFold {
    UndeterminedFold {
        fold,
        reason: "its loss has no unique finite minimum; a penalty would help".into(),
    }
}

/// Lists undetermined folds with outputs of NaN, or returns the first as an error.
fn reject_undetermined(found: &mut OutOfFold, job: &Job<'_>) -> Result<()> {
    let Some(first) = found.status.undetermined.first() else {
        return Ok(());
    };
    if !job.keep.undetermined {
        return Err(Error::Undetermined {
            fold: first.fold,
            reason: first.reason.clone(),
        });
    }
    let starts = job.folds.test_starts();
    for UndeterminedFold { fold, .. } in &found.status.undetermined {
        let rows = Slice::from(starts[*fold]..starts[fold + 1]);
        found.outputs.slice_axis_mut(Axis(0), rows).fill(f64::NAN);
    }
    Ok(())
}
