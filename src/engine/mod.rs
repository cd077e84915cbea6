//! What all engines have in common: one call, one result.
//!
//! An engine turns candidates, a data set and folds into out-of-fold outputs. All scores are computed
//! from these, so an engine never scores.
//!
//! | engine | candidates | equals k refits |
//! |---|---|---|
//! | [`Tree`](crate::tree::Tree) | learners that can be updated | exactly if the order of rows does not matter or training sets grow, else within the learner's incremental stability |
//! | [`Merge`](crate::merge::Merge) | learners whose models can be merged | to rounding |
//! | [`Refit`](crate::refit::Refit) | any learner | it is k refits |
//! | [`Seeded`](crate::svm::Seeded) | support vector machines | to the solver's tolerance |
//! | [`Path`](crate::path::Path) | lasso, elastic net | to a stated duality gap |
//! | [`Virtual`](crate::virtual_cv::Virtual) | least squares, ridge, kernel ridge | to rounding |

mod driver;
mod source;
mod workspace;

pub(crate) use driver::Driver;
pub(crate) use source::{InMemory, PieceWork, RowSource};
pub(crate) use workspace::{ThreadPool, Workspace};

use ndarray::{Array2, Axis, Slice};

use crate::data::Dataset;
use crate::learners::{CandidateSet, Learner};
use crate::runtime::memory;
use crate::{Cost, Error, Folds, Monitor, Resampling, Result};

/// A way to compute out-of-fold outputs of candidates of type `C`.
pub trait Engine<C: ?Sized> {
    /// The out-of-fold outputs of every candidate, in their order. Work that candidates have in
    /// common is done once; its cost is counted for the first of them.
    fn out_of_fold(
        &self,
        candidates: &[&C],
        data: &Dataset<'_>,
        folds: &dyn Resampling,
        monitor: &Monitor,
    ) -> Result<Vec<OutOfFold>>;

    /// The out-of-fold outputs of one candidate.
    fn cross_validate(
        &self,
        candidate: &C,
        data: &Dataset<'_>,
        folds: &dyn Resampling,
    ) -> Result<OutOfFold> {
        let mut found = self.out_of_fold(&[candidate], data, folds, &Monitor::new())?;
        Ok(found.swap_remove(0))
    }
}

/// Outputs for held-out rows, what they cost, and what their reader should know.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutOfFold {
    /// One row per held-out row, in test order: the held-out rows of the first fold, then those of
    /// the second, and so on. One column per output of the candidate.
    pub outputs: Array2<f64>,
    /// Exact counters of the work done.
    pub cost: Cost,
    /// Anything that limits what the outputs can be used for.
    pub notes: Vec<String>,
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

/// The partition that an engine needs, or an error that names the engine.
pub(crate) fn partition<'f>(folds: &'f dyn Resampling, engine: &str) -> Result<&'f Folds> {
    folds.partition().ok_or_else(|| Error::Folds {
        reason: format!("engine '{engine}' needs test sets that are a partition of the samples"),
    })
}

/// Zeros for the outputs of `n_rows` held-out rows.
pub(crate) fn new_outputs(n_rows: usize, n_outputs: usize) -> Result<Vec<f64>> {
    let what = format_args!("{n_outputs} outputs for each of {n_rows} rows");
    memory::filled(what, n_rows.saturating_mul(n_outputs), 0.0)
}

/// What was found of all candidates as one learner: outputs in test order, and their cost.
pub(crate) type Found = (Vec<f64>, Cost);

/// Gives each candidate its columns of what was found of [`CandidateSet::of`] all of them. Counters of
/// work that candidates share stay with the first.
pub(crate) fn split_found(
    (outputs, cost): Found,
    candidates: &[&dyn Learner],
    folds: &dyn Resampling,
) -> Result<Vec<OutOfFold>> {
    let outputs = checked_outputs(outputs, candidates, folds)?;
    if candidates.len() == 1 {
        let notes = Vec::new();
        return Ok(vec![OutOfFold {
            outputs,
            cost,
            notes,
        }]);
    }
    memory::check::<f64>("outputs by candidate", outputs.len() as u64)?;
    let mut start = 0;
    let own = |(number, candidate): (usize, &&dyn Learner)| {
        let columns = start..start + candidate.n_outputs();
        start = columns.end;
        OutOfFold {
            outputs: outputs.slice_axis(Axis(1), Slice::from(columns)).to_owned(),
            cost: if number == 0 { cost } else { cost.unshared() },
            notes: Vec::new(),
        }
    };
    Ok(candidates.iter().enumerate().map(own).collect())
}

/// The fitted models of the folds, in their order.
pub type FoldModels = Vec<Box<dyn Learner>>;

/// Places for the fitted models of the folds, which an engine fills.
pub(crate) type ModelSlots = [Option<Box<dyn Learner>>];

/// [`split_found`] with the fitted model of every fold.
pub(crate) fn split_found_with_models(
    found: Found,
    models: Vec<Option<Box<dyn Learner>>>,
    candidates: &[&dyn Learner],
    folds: &dyn Resampling,
) -> Result<Vec<(OutOfFold, FoldModels)>> {
    let found = split_found(found, candidates, folds)?;
    let mut own: Vec<FoldModels> = found.iter().map(|_| Vec::new()).collect();
    for model in models.into_iter().flatten() {
        let split = CandidateSet::split(model, found.len())?;
        for (own, model) in own.iter_mut().zip(split) {
            own.push(model);
        }
    }
    Ok(found.into_iter().zip(own).collect())
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

fn not_finite(value: f64, mut position: usize, folds: &dyn Resampling) -> Error {
    let mut fold = 0;
    while position >= folds.held_out(fold).len() {
        position -= folds.held_out(fold).len();
        fold += 1;
    }
    let sample = folds.held_out(fold)[position];
    Error::Value {
        place: format!("the learner's output for sample {sample} (fold {fold})"),
        value,
        rule: "outputs must be finite; perhaps the learner diverged, or X should be scaled",
    }
}
