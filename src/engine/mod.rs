//! What all engines have in common: one call, one result.
//!
//! An engine turns candidates, a data set and folds into out-of-fold outputs. All scores are computed
//! from these, so an engine never scores.
//!
//! | engine | candidates | equals k refits |
//! |---|---|---|
//! | [`Tree`] | learners that can be updated | exactly or nearly, see below |
//! | [`Merge`] | learners whose models can be merged | to rounding |
//! | [`Refit`] | any learner | it is k refits |
//! | [`Seeded`] | support vector machines | to the solver's tolerance |
//! | [`Forests`] | decision trees and random forests | bit for bit |
//! | [`Newton`] | logistic regression and other smooth convex losses | to a stated gradient |
//! | [`ElasticNet`] | lassos and elastic nets | to a stated duality gap |
//! | [`Virtual`] | least squares, ridge, kernel ridge | to rounding |
//!
//! TreeCV equals refits exactly if the learner does not depend on the order of rows or training
//! sets grow, else within its incremental stability. Nearest neighbors are an engine of the Python
//! package alone.
//!
//! What is computed without out-of-fold outputs is no call of an engine: `ElasticNet::solve` (errors and
//! fits of a whole path), `Virtual::mean_squared_errors`, `Virtual::kernel_mean_squared_errors` and
//! `Virtual::diagnostics`.
//!
//! [`Tree`]: crate::tree::Tree
//! [`Merge`]: crate::merge::Merge
//! [`Refit`]: crate::refit::Refit
//! [`Seeded`]: crate::svm::Seeded
//! [`Forests`]: crate::forest::Forests
//! [`Newton`]: crate::newton::Newton
//! [`ElasticNet`]: crate::path::ElasticNet
//! [`Virtual`]: crate::virtual_cv::Virtual

mod driver;
mod source;
mod workspace;

pub(crate) use driver::Driver;
pub(crate) use source::{RowSource, RowVisitor, even_starts, row_source};
pub(crate) use workspace::{Workspace, WorkspacePool};

use ndarray::{Array2, Array3, Axis, Slice};

use crate::data::Dataset;
use crate::learners::{CandidateSet, Learner};
use crate::newton::LeaveOneOut;
use crate::runtime::memory;
use crate::{Cost, Error, Folds, Monitor, Resampling, Result};

/// A way to compute out-of-fold outputs of candidates of type `C`.
pub trait Engine<C: ?Sized> {
    /// Computes the out-of-fold outputs of every candidate, and passes them to `finished` with the
    /// candidate's index, in any order. Work that candidates have in common is done once; its cost is
    /// counted for one of them.
    fn run(&self, candidates: &[&C], job: &Job<'_>, finished: &mut Finished<'_>) -> Result<()>;

    /// The out-of-fold outputs of every candidate, in the order of the candidates.
    fn out_of_fold(&self, candidates: &[&C], job: &Job<'_>) -> Result<Vec<OutOfFold>> {
        let mut found: Vec<_> = candidates.iter().map(|_| OutOfFold::default()).collect();
        self.run(candidates, job, &mut |index, outputs| {
            found[index] = outputs;
        })?;
        Ok(found)
    }

    /// The out-of-fold outputs of one candidate.
    fn cross_validate(
        &self,
        candidate: &C,
        data: &Dataset<'_>,
        folds: &dyn Resampling,
    ) -> Result<OutOfFold> {
        let monitor = Monitor::new();
        let mut found = self.out_of_fold(&[candidate], &Job::new(data, folds, &monitor))?;
        Ok(found.swap_remove(0))
    }
}

/// Receives the index and the result of every finished candidate.
pub type Finished<'a> = dyn FnMut(usize, OutOfFold) + Send + 'a;

/// What all candidates of a call have in common.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Rows, targets and weights.
    pub data: &'a Dataset<'a>,
    /// Which rows are trained on, and which are held out.
    pub folds: &'a dyn Resampling,
    /// What is kept besides outputs.
    pub keep: Keep,
    /// Progress and cancellation.
    pub monitor: &'a Monitor,
}

impl<'a> Job<'a> {
    /// A job that keeps outputs only.
    pub fn new(data: &'a Dataset<'a>, folds: &'a dyn Resampling, monitor: &'a Monitor) -> Self {
        Self {
            data,
            folds,
            keep: Keep::default(),
            monitor,
        }
    }

    /// The same job, which keeps more.
    #[must_use]
    pub fn keeping(self, keep: Keep) -> Self {
        Self { keep, ..self }
    }
}

/// What [`OutOfFold`] holds besides outputs. Engines without such things leave them empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// The fitted model of every fold: engines of learners.
    pub models: bool,
    /// The coefficients of every fold: engines of linear models.
    pub coefficients: bool,
    /// Folds that do not determine a model are listed, with outputs of NaN: engines of linear models.
    /// Otherwise the first of them is an error.
    pub undetermined: bool,
}

/// The fitted models of the folds, in their order.
pub type FoldModels = Vec<Box<dyn Learner>>;

/// Outputs for held-out rows, what they cost, and what else was to be kept.
#[derive(Debug, Default)]
pub struct OutOfFold {
    /// One row per held-out row, in test order: the held-out rows of the first fold, then those of
    /// the second, and so on. One column per output of the candidate.
    pub outputs: Array2<f64>,
    /// Exact counters of the work done.
    pub cost: Cost,
    /// How far the solver came.
    pub status: Status,
    /// The fitted model of every fold, if kept.
    pub models: FoldModels,
    /// Fold × output × feature, the intercept last, if kept.
    pub coefficients: Array3<f64>,
    /// What leaving out each row does, where an engine leaves out rows one by one.
    pub leave_one_out: Option<LeaveOneOut>,
}

/// How far a solver came. Arrays are empty where an engine does not iterate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// The rule that an engine with several has chosen.
    pub method: &'static str,
    /// Iterations: fold × output.
    pub iterations: Array2<u64>,
    /// What is left of the duality gap: fold × output.
    pub gaps: Array2<f64>,
    /// The same relative to the variance of the targets of the fold.
    pub relative_gaps: Array2<f64>,
    /// The largest gradients that are left, each relative to its size at a constant model: fold ×
    /// output, or one for all outputs that are solved jointly. NaN if there is no finite or no
    /// unique optimum.
    pub relative_gradients: Array2<f64>,
    /// Folds that do not determine a model, if kept.
    pub undetermined: Vec<UndeterminedFold>,
    /// Folds that an engine fitted to their training rows alone, because what the folds share has too
    /// few digits for them.
    pub refitted: Vec<usize>,
}

/// A fold whose training rows do not determine a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndeterminedFold {
    /// Its index.
    pub fold: usize,
    /// Why, and what helps.
    pub reason: String,
}

impl OutOfFold {
    /// The outputs in the order of the samples, for folds that are a partition.
    ///
    /// # Panics
    /// When the outputs are of other folds.
    pub fn by_sample(&self, folds: &Folds) -> Array2<f64> {
        let mut sorted = Array2::zeros(self.outputs.raw_dim());
        let rows = folds.rows(0..folds.len());
        for (output, &sample) in self.outputs.rows().into_iter().zip(rows) {
            sorted.row_mut(sample).assign(&output);
        }
        sorted
    }
}

/// The positions of equal items, in the order of the first of each kind.
pub(crate) fn group<T>(items: &[T], is_same: impl Fn(&T, &T) -> bool) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = vec![];
    for (position, item) in items.iter().enumerate() {
        match groups
            .iter_mut()
            .find(|group| is_same(&items[group[0]], item))
        {
            Some(group) => group.push(position),
            None => groups.push(vec![position]),
        }
    }
    groups
}

/// The partition that an engine needs, or an error that names the engine.
pub(crate) fn partition<'f>(folds: &'f dyn Resampling, engine: &str) -> Result<&'f Folds> {
    folds.partition().ok_or_else(|| Error::Folds {
        reason: format!("the engine {engine} needs test sets that are a partition of the samples"),
    })
}

/// Zeros for the outputs of `n_rows` held-out rows.
pub(crate) fn new_outputs(n_rows: usize, n_outputs: usize) -> Result<Vec<f64>> {
    let what = format_args!("{n_outputs} outputs for each of {n_rows} rows");
    memory::filled(what, n_rows.saturating_mul(n_outputs), 0.0)
}

/// Outputs of all candidates as one learner, in test order, and their cost.
pub(crate) type RawOutputs = (Vec<f64>, Cost);

/// Places for the fitted models of the folds, which an engine fills.
pub(crate) type ModelSlots = [Option<Box<dyn Learner>>];

/// Runs `work` on all candidates as one learner, with places for the models that are kept. Each
/// candidate gets its columns and its models; counters of shared work stay with the first.
pub(crate) fn run_together(
    candidates: &[&dyn Learner],
    job: &Job<'_>,
    finished: &mut Finished<'_>,
    work: impl FnOnce(&dyn Learner, Option<&mut ModelSlots>) -> Result<RawOutputs>,
) -> Result<()> {
    job.data.check_samples(job.folds.n_samples())?;
    let learner = CandidateSet::of(candidates)?;
    let n_models = if job.keep.models {
        job.folds.n_splits()
    } else {
        0
    };
    let mut slots: Vec<_> = (0..n_models).map(|_| None).collect();
    let (outputs, cost) = work(&*learner, job.keep.models.then_some(&mut slots[..]))?;
    let mut models: Vec<FoldModels> = candidates.iter().map(|_| Vec::new()).collect();
    for slot in slots.into_iter().flatten() {
        let split = CandidateSet::split(slot, candidates.len())?;
        for (models, model) in models.iter_mut().zip(split) {
            models.push(model);
        }
    }
    let mut outputs = checked_outputs(outputs, candidates, job.folds)?;
    if candidates.len() > 1 {
        memory::check::<f64>("outputs by candidate", outputs.len() as u64)?;
    }
    let mut start = 0;
    for (index, (candidate, models)) in candidates.iter().zip(models).enumerate() {
        let columns = start..start + candidate.n_outputs();
        start = columns.end;
        let outputs = if candidates.len() == 1 {
            std::mem::take(&mut outputs)
        } else {
            outputs.slice_axis(Axis(1), Slice::from(columns)).to_owned()
        };
        let found = OutOfFold {
            outputs,
            cost: if index == 0 { cost } else { cost.unshared() },
            models,
            ..OutOfFold::default()
        };
        finished(index, found);
    }
    Ok(())
}

/// The outputs of all candidates in test order as a matrix. They must be finite unless a candidate
/// says otherwise.
fn checked_outputs(
    outputs: Vec<f64>,
    candidates: &[&dyn Learner],
    folds: &dyn Resampling,
) -> Result<Array2<f64>> {
    let n_outputs: usize = candidates.iter().map(|learner| learner.n_outputs()).sum();
    let infinite = candidates
        .iter()
        .any(|learner| learner.outputs_may_be_infinite());
    let is_bad = |output: &f64| output.is_nan() || output.is_infinite() && !infinite;
    if let Some(bad) = outputs.iter().position(is_bad) {
        return Err(not_finite(outputs[bad], bad / n_outputs, folds));
    }
    let (n_values, n_rows) = (outputs.len(), outputs.len() / n_outputs.max(1));
    Array2::from_shape_vec((n_rows, n_outputs), outputs).map_err(|_| Error::Shape {
        what: "outputs",
        expected: n_rows * n_outputs,
        found: n_values,
    })
}

fn not_finite(value: f64, position: usize, folds: &dyn Resampling) -> Error {
    let starts = folds.test_starts();
    let fold = starts.partition_point(|start| *start <= position) - 1;
    let sample = folds.held_out(fold)[position - starts[fold]];
    Error::Value {
        place: format!("the learner's output for sample {sample} (fold {fold})"),
        value,
        rule: "outputs must be finite; perhaps the learner diverged, or X should be scaled",
    }
}
