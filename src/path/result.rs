//! What is found of all folds, and how it is put together.

use ndarray::{Array, Array2, Array3, Array4, ArrayView, ArrayView1, Axis, Dimension, StrideShape};
use rayon::prelude::*;

use super::fold::{FoldFits, FoldProblem};
use crate::data::Layout;
use crate::engine::{Job, Status, UndeterminedFold};
use crate::runtime::memory;
use crate::{Cost, Error, Monitor, OutOfFold, Result};

/// What was found of all folds. Arrays that are not wanted are empty.
#[derive(Clone, Debug)]
pub struct PathResult {
    /// Test row × penalty × output.
    pub predictions: Array3<f64>,
    /// Fold × penalty × output.
    pub errors: Array3<f64>,
    /// Fold × penalty × output × feature, the intercept last.
    pub coefficients: Array4<f64>,
    /// Duality gaps of the problem divided by W: fold × penalty × output.
    pub gaps: Array3<f64>,
    /// Sweeps and exact steps: fold × penalty × output.
    pub n_iterations: Array3<u32>,
    /// Σw(y − ȳ)² / W of every training set, to which gaps are relative: fold × output.
    pub target_variances: Array2<f64>,
    /// The fit to all rows, if wanted.
    pub all_rows: Option<AllRowsFit>,
    /// Folds that do not determine a model, if wanted.
    pub undetermined: Vec<UndeterminedFold>,
}

impl PathResult {
    /// Duality gaps relative to the variances of the targets: fold × penalty × output.
    pub fn relative_gaps(&self) -> Array3<f64> {
        let variances = self.target_variances.view().insert_axis(Axis(1));
        relative(&self.gaps, &variances)
    }

    /// What was found of one penalty. The pass over the rows is counted for the first.
    pub(super) fn of_penalty(&self, penalty: usize, job: &Job<'_>) -> OutOfFold {
        let gaps = self.gaps.index_axis(Axis(1), penalty).to_owned();
        let outputs = self.predictions.index_axis(Axis(1), penalty).to_owned();
        let rows_evaluated = outputs.nrows() as u64;
        let iterations = self.n_iterations.index_axis(Axis(1), penalty);
        OutOfFold {
            cost: Cost {
                fits: (job.folds.n_splits() * outputs.ncols()) as u64,
                rows_fed: if penalty == 0 {
                    job.data.n_rows() as u64
                } else {
                    0
                },
                rows_evaluated,
                ..Cost::default()
            },
            outputs,
            status: Status {
                iterations: iterations.mapv(u64::from),
                relative_gaps: relative(&gaps, &self.target_variances.view()),
                gaps,
                undetermined: self.undetermined.clone(),
                ..Status::default()
            },
            coefficients: if job.keep.coefficients {
                self.coefficients.index_axis(Axis(1), penalty).to_owned()
            } else {
                Array3::default((0, 0, 0))
            },
            ..OutOfFold::default()
        }
    }
}

/// Gaps relative to variances: gaps themselves where there is nothing to explain.
fn relative<D: Dimension>(
    gaps: &Array<f64, D>,
    variances: &ArrayView<'_, f64, D>,
) -> Array<f64, D> {
    gaps / &variances.mapv(|variance| if variance > 0.0 { variance } else { 1.0 })
}

/// The fit to all rows.
#[derive(Clone, Debug)]
pub struct AllRowsFit {
    /// Penalty × output × feature, the intercept last.
    pub coefficients: Array3<f64>,
    /// Penalty × output.
    pub gaps: Array2<f64>,
    /// Penalty × output.
    pub n_iterations: Array2<u32>,
    /// One per output.
    pub target_variances: Vec<f64>,
}

impl AllRowsFit {
    /// Duality gaps relative to the variances of the targets: penalty × output.
    pub fn relative_gaps(&self) -> Array2<f64> {
        let variances = ArrayView1::from(&self.target_variances);
        relative(&self.gaps, &variances.insert_axis(Axis(0)))
    }
}

/// Solves all folds in parallel.
pub(super) fn collect<R: Layout>(
    problem: &FoldProblem<'_, R>,
    monitor: &Monitor,
) -> Result<PathResult> {
    let (folds, wanted) = (problem.folds, problem.wanted);
    let (k, q) = (folds.n_splits(), problem.target_centres.len());
    let (n_penalties, width) = (problem.path.penalties.len(), problem.n_features() + 1);
    let sizes: Vec<usize> = (0..k)
        .map(|fold| {
            if wanted.predictions {
                folds.held_out(fold).len()
            } else {
                0
            }
        })
        .collect();
    let predicted = [sizes.iter().sum(), n_penalties, q];
    let what = format_args!("predictions of {} rows", predicted[0]);
    memory::check_shape::<f64>(what, &predicted)?;
    if wanted.coefficients {
        let what = format_args!("coefficients of {k} folds");
        memory::check_shape::<f64>(what, &[2, k, n_penalties, q, width])?;
    }
    let mut predictions = Array3::zeros(predicted);
    monitor.add_total(k as u64);
    let all_rows = problem.all_rows(monitor)?;
    let start = all_rows.as_ref().filter(|_| problem.starts_from_all_rows());
    let start = start.map(|(beta, _)| beta);
    let mut rest = predictions.as_slice_mut().expect("standard layout");
    let mut slots = Vec::with_capacity(k);
    for size in sizes {
        let (slot, others) = rest.split_at_mut(size * n_penalties * q);
        slots.push(slot);
        rest = others;
    }
    let fits: Vec<(FoldFits, Option<UndeterminedFold>)> = slots
        .into_par_iter()
        .enumerate()
        .map(|(fold, slot)| {
            let fits = match problem.fit(fold, start, slot, monitor) {
                Err(Error::Undetermined { fold, reason }) if wanted.undetermined => {
                    slot.fill(f64::NAN);
                    let listed = UndeterminedFold { fold, reason };
                    (problem.undetermined_fits(), Some(listed))
                }
                fits => (fits?, None),
            };
            monitor.advance(1)?;
            Ok(fits)
        })
        .collect::<Result<_>>()?;
    let (fits, undetermined): (Vec<_>, Vec<_>) = fits.into_iter().unzip();
    let (n_errors, n_kept) = (
        if wanted.errors { k } else { 0 },
        if wanted.coefficients { k } else { 0 },
    );
    let all_rows = all_rows.filter(|_| wanted.all_rows);
    Ok(PathResult {
        predictions,
        errors: joined(&fits, (n_errors, n_penalties, q), |fits| &fits.errors),
        coefficients: joined(&fits, (n_kept, n_penalties, q, width), |fits| {
            &fits.coefficients
        }),
        gaps: joined(&fits, (k, n_penalties, q), |fits| &fits.gaps),
        n_iterations: joined(&fits, (k, n_penalties, q), |fits| &fits.n_iterations),
        target_variances: joined(&fits, (k, q), |fits| &fits.target_variances),
        all_rows: all_rows.map(|(_, fits)| {
            let fits = std::slice::from_ref(&fits);
            AllRowsFit {
                coefficients: joined(fits, (n_penalties, q, width), |fits| &fits.coefficients),
                gaps: joined(fits, (n_penalties, q), |fits| &fits.gaps),
                n_iterations: joined(fits, (n_penalties, q), |fits| &fits.n_iterations),
                target_variances: fits[0].target_variances.clone(),
            }
        }),
        undetermined: undetermined.into_iter().flatten().collect(),
    })
}

/// Numbers of all folds, one after the other, as one array.
fn joined<T: Copy, D: Dimension>(
    fits: &[FoldFits],
    shape: impl Into<StrideShape<D>>,
    values_of: impl Fn(&FoldFits) -> &[T],
) -> Array<T, D> {
    let values = fits.iter().flat_map(values_of).copied().collect();
    Array::from_shape_vec(shape, values).expect("one value per place")
}
