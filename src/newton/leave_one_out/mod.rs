//! Leave-one-out: one Newton step for each row, with a bound on its error; further steps where the bound
//! is too large.
//!
//! **Problem.** The optimum without row i, for every row.
//!
//! **Method.** With H the Hessian of all rows at their optimum φ, c = wℓ'', h_i = x_iᵀH⁻¹x_i and
//! v = ∇F_i(φ) + wℓ'_i x_i, what changes besides the row itself (nothing, unless weights or penalties
//! depend on the training set), the step is
//!
//! Δ = sH⁻¹x_i − a,  a = H⁻¹v,  s = (wℓ'_i − c_i x_iᵀa) / (1 − c_i h_i)
//!
//! and the predictor of row i becomes z_i + s·h_i − x_iᵀa. The bound is that of `certificate`. *Suspect*
//! rows are those with a bound above ε, and those whose predicted class it leaves open. Their gradients
//! at the end of the step are computed, side by side; a second step and a sharper bound follow. Those
//! that are suspect still are solved as folds are, starting with the factor of H less one row.
//!
//! **Cost.** Three passes of O(np²) for all bounds, in the place of n refits; one Hessian is O(np²) as
//! well. A suspect row is a problem of `minimise`: O(np) for each step.

mod all_rows;
mod suspects;

use ndarray::{Array3, ArrayView2};

use self::all_rows::AllRows;
use super::penalties::{check_penalties, from_strong_to_weak};
use super::solve::{Family, Solver};
use crate::data::Dataset;
use crate::newton::Accuracy;
use crate::{Error, Folds, Monitor, Result};

/// Suspect rows that are solved side by side: their parameters, and some vectors of the same length.
const MOST_PROBLEM_VALUES: usize = 1 << 24;

/// The tolerance of relative gradients, times the number of rows: a row is one among many.
const ROW_TOLERANCE: f64 = 1e-3;

/// Rows are solved to this part of the tolerance if a few passes suffice: the smaller the penalty, the
/// farther predictors may be from those of the optimum at the same relative gradient.
const CLOSER: f64 = 1e-4;
const CLOSER_PASSES: f64 = 100.0;

/// How the predictor of a row was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowStatus {
    /// By one step, whose bound is small.
    Certified,
    /// By as many steps as it took.
    Resolved,
    /// Not at all: there is no finite or no unique optimum.
    Undetermined,
}

/// What was found of all rows; arrays are row × candidate × output.
#[derive(Clone, Debug)]
pub struct LeaveOneOut {
    /// Linear predictors of each row by the model without it.
    pub predictors: Array3<f64>,
    /// How far they may be from the optimum; NaN unless the row is certified.
    pub bounds: Array3<f64>,
    /// How they were found.
    pub statuses: Array3<RowStatus>,
    /// Linear predictors by the model of all rows.
    pub fitted: Array3<f64>,
    /// c_i h_i.
    pub leverages: Array3<f64>,
    /// s√h: the length of the step that leaves out the row, in the norm of H, with the sign of the change
    /// of its predictor.
    pub moves: Array3<f64>,
    /// Rows read for gradients, once for each problem.
    pub gradient_rows: u64,
    /// Rows read for Hessians and bounds.
    pub hessian_rows: u64,
}

impl LeaveOneOut {
    fn new(shape: (usize, usize, usize)) -> Self {
        let undefined = || Array3::from_elem(shape, f64::NAN);
        Self {
            predictors: undefined(),
            bounds: undefined(),
            statuses: Array3::from_elem(shape, RowStatus::Undetermined),
            fitted: undefined(),
            leverages: undefined(),
            moves: undefined(),
            gradient_rows: 0,
            hessian_rows: 0,
        }
    }
}

/// Leaves out every row for `targets` (row × output) and `penalties` (candidate × training set: that of
/// all rows, then that without each row). Bounds up to `epsilon`, in units of the predictor or, for
/// losses of differences, of the standard deviation of the targets, are accepted.
pub fn leave_one_out(
    family: &Family<'_>,
    data: &Dataset<'_>,
    targets: ArrayView2<'_, f64>,
    penalties: ArrayView2<'_, f64>,
    (epsilon, tolerance): (f64, f64),
    monitor: &Monitor,
) -> Result<LeaveOneOut> {
    if family.scaling.is_some() {
        return Err(Error::Parameter {
            name: "scaling",
            rule: "none: a scaling of the columns changes with every row",
            value: "a scaling".into(),
        });
    }
    let n = data.n_rows();
    let folds = Folds::leave_one_out(n)?;
    check_penalties(penalties, &folds)?;
    let tolerance = tolerance.min(ROW_TOLERANCE / n as f64);
    let accuracy = Accuracy {
        tolerance: CLOSER * tolerance,
        enough: tolerance,
        passes: CLOSER_PASSES,
    };
    let solver = Solver::new(family, data, targets, &folds, accuracy, monitor)?;
    let mut found = LeaveOneOut::new((n, penalties.nrows(), targets.ncols()));
    monitor.add_total((n * penalties.nrows() * targets.ncols()) as u64);
    let mut start = solver.constants();
    for candidate in from_strong_to_weak(penalties) {
        let penalties = penalties.row(candidate).to_vec();
        let full = solver.fit(&penalties, &start, monitor)?;
        let totals = solver.totals(&full, monitor)?;
        for (output, (solution, losses)) in full.iter().zip(&totals).enumerate() {
            let all_rows = AllRows::new(&solver, output, &penalties, (solution, losses), monitor)?;
            if let Some(all_rows) = all_rows {
                let unit = if family.loss.has_unit_of_targets() {
                    solver.passes.samples.deviation(output)
                } else {
                    1.0
                };
                all_rows.leave_out(epsilon * unit, (&mut found, candidate), monitor)?;
                start[output].clone_from(&solution.shared);
            } else {
                monitor.advance(n as u64)?;
            }
        }
    }
    [found.gradient_rows, found.hessian_rows] = solver.passes.n_rows_read();
    Ok(found)
}

/// Which bounds are accepted.
#[derive(Clone, Copy)]
struct Limit {
    epsilon: f64,
    decides_by_sign: bool,
}

impl Limit {
    /// Whether a predictor is certain enough: within ε, and of a certain sign where that is a class.
    fn accepts(self, predictor: f64, bound: f64) -> bool {
        let is_open = self.decides_by_sign && predictor.abs() <= bound && bound > 0.0;
        bound <= self.epsilon && !is_open && predictor.is_finite()
    }
}

impl AllRows<'_> {
    /// Leaves out every row; a bound of up to `epsilon` is accepted.
    fn leave_out(
        &self,
        epsilon: f64,
        (found, candidate): (&mut LeaveOneOut, usize),
        monitor: &Monitor,
    ) -> Result<()> {
        let terms = self.terms(monitor)?;
        let (certificate, squares) = self.certificate(&terms, monitor)?;
        let limit = Limit {
            epsilon,
            decides_by_sign: self.passes().loss.decides_by_sign(),
        };
        let mut suspects = vec![];
        for row in 0..self.design().n_rows() {
            let step = self.step(row, &terms, &squares);
            let at = (row, candidate, self.output);
            found.fitted[at] = terms.z[row];
            found.leverages[at] = terms.second[row] * terms.h[row];
            found.moves[at] = step.length * terms.h[row].sqrt();
            let bound = if self.factor.is_exact() {
                certificate.bound(&step.bounded)
            } else {
                f64::INFINITY
            };
            if limit.accepts(step.predictor, bound) {
                found.predictors[at] = step.predictor;
                found.bounds[at] = bound;
                found.statuses[at] = RowStatus::Certified;
            } else {
                suspects.push((row, step.bounded));
            }
        }
        let n_certified = self.design().n_rows() - suspects.len();
        monitor.advance(n_certified as u64)?;
        let most = (MOST_PROBLEM_VALUES / (8 * self.design().n_columns())).max(1);
        for group in suspects.chunks(most) {
            let solved = self.resolve(group, &terms, (&certificate, limit), monitor)?;
            for ((row, _), (predictor, bound, status)) in group.iter().zip(solved) {
                let at = (*row, candidate, self.output);
                found.predictors[at] = predictor;
                found.bounds[at] = bound;
                found.statuses[at] = status;
            }
            monitor.advance(group.len() as u64)?;
        }
        Ok(())
    }
}
