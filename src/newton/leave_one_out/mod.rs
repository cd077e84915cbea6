//! Leave-one-out: one Newton step for each row, with a bound on its error; further steps where the bound
//! is too large.
//!
//! # Problem
//! The optimum without row i, for every row.
//!
//! # Method
//! With H the Hessian of all rows at their optimum φ, c = wℓ'', h_i = x_iᵀH⁻¹x_i and
//! v = ∇F_i(φ) + wℓ'_i x_i, what changes besides the row itself (nothing, unless weights or penalties
//! depend on the training set), the step is
//!
//! Δ = sH⁻¹x_i − a,  a = H⁻¹v,  s = (wℓ'_i − c_i x_iᵀa) / (1 − c_i h_i)
//!
//! and the predictor of row i becomes z_i + s·h_i − x_iᵀa. The bound is that of `certificate`. *Uncertified*
//! rows are those with a bound above ε, and those whose predicted class it leaves open. Their gradients
//! at the end of the step are computed, side by side; a second step and a sharper bound follow. Those
//! that are uncertified still are solved as folds are, starting with the factor of H less one row.
//!
//! # Cost
//! Three passes of O(np²) for all bounds, in the place of n refits; one Hessian is O(np²) as
//! well. An uncertified row is a problem of `minimise`: O(np) for each step.

mod far_rows;
mod full_fit;
mod uncertified;

use ndarray::Array2;

use self::full_fit::FullFit;
use super::engine::{FamilyJob, Finish, undetermined};
use super::samples::Samples;
use super::solve::Solver;
use super::spec::from_strong_to_weak;
use crate::engine::Status;
use crate::linear::set_index;
use crate::newton::{Accuracy, Loss};
use crate::runtime::memory;
use crate::{Cost, Monitor, OutOfFold, Result};

/// Uncertified rows that are solved side by side: their parameters, and some vectors of the same length.
const MAX_PROBLEM_VALUES: usize = 1 << 24;

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

/// What leaving out each row does, in test order: row × output.
#[derive(Clone, Debug)]
pub struct LeaveOneOut {
    /// How far outputs may be from the optimum; NaN unless the row is certified.
    pub bounds: Array2<f64>,
    /// How outputs were found.
    pub statuses: Array2<RowStatus>,
    /// Linear predictors by the model of all rows.
    pub fitted: Array2<f64>,
    /// c_i h_i.
    pub leverages: Array2<f64>,
    /// s√h: the length of the step that leaves out the row, in the norm of H, with the sign of the change
    /// of its predictor.
    pub influence: Array2<f64>,
}

/// The rows of one model.
struct Rows {
    /// Linear predictors of each row by the model without it.
    outputs: Array2<f64>,
    others: LeaveOneOut,
}

impl Rows {
    fn new(shape: (usize, usize)) -> Result<Self> {
        let what = format_args!("outputs, bounds and leverages of {} rows", shape.0);
        memory::check_shape::<f64>(what, &[6, shape.0, shape.1])?;
        let undefined = || Array2::from_elem(shape, f64::NAN);
        Ok(Self {
            outputs: undefined(),
            others: LeaveOneOut {
                bounds: undefined(),
                statuses: Array2::from_elem(shape, RowStatus::Undetermined),
                fitted: undefined(),
                leverages: undefined(),
                influence: undefined(),
            },
        })
    }

    fn set(&mut self, at: (usize, usize), predictor: f64, bound: f64, status: RowStatus) {
        self.outputs[at] = predictor;
        self.others.bounds[at] = bound;
        self.others.statuses[at] = status;
    }

    fn out_of_fold(self, [gradient_rows, hessian_rows]: [u64; 2]) -> OutOfFold {
        let is_undetermined = |status: &RowStatus| *status == RowStatus::Undetermined;
        let rows = self.others.statuses.outer_iter().enumerate();
        let bad = rows.filter(|(_, statuses)| statuses.iter().any(is_undetermined));
        OutOfFold {
            cost: Cost {
                rows_evaluated: self.outputs.nrows() as u64,
                gradient_rows,
                hessian_rows,
                ..Cost::default()
            },
            status: Status {
                undetermined: bad.map(|(fold, _)| undetermined(fold)).collect(),
                ..Status::default()
            },
            outputs: self.outputs,
            leave_one_out: Some(self.others),
            ..OutOfFold::default()
        }
    }
}

/// Leaves out every row for every penalty, the largest first. Folds are single rows.
pub(super) fn run(
    family: &FamilyJob<'_>,
    loss: Loss,
    samples: Samples<'_>,
    finish: &mut Finish<'_>,
) -> Result<()> {
    let monitor = family.monitor;
    let shape = (samples.n_rows(), samples.n_problems());
    let tolerance = family
        .accuracy
        .tolerance
        .min(ROW_TOLERANCE / shape.0 as f64);
    let accuracy = Accuracy {
        tolerance: CLOSER * tolerance,
        accepted: tolerance,
        passes: CLOSER_PASSES,
        ..tolerance.into()
    };
    let solver = Solver::new(family, loss, samples, accuracy)?;
    monitor.add_total((shape.0 * shape.1 * family.penalties.nrows()) as u64);
    let mut start = solver.family.constants.clone();
    for candidate in from_strong_to_weak(&family.penalties) {
        let before = solver.family.n_rows_read();
        let penalties = family.penalties.row(candidate).to_vec();
        let full = solver.fit(&penalties, &start, monitor)?;
        let totals = solver.totals(&full, monitor)?;
        let mut rows = Rows::new(shape)?;
        for (output, (solution, losses)) in full.iter().zip(&totals).enumerate() {
            let full_fit = FullFit::new(&solver, output, &penalties, (solution, losses), monitor)?;
            if let Some(full_fit) = full_fit {
                let unit = if loss.has_unit_of_targets() {
                    solver.family.samples.deviation(output)
                } else {
                    1.0
                };
                full_fit.leave_out(family.epsilon * unit, &mut rows, monitor)?;
                start[output][0].clone_from(&solution.common);
            } else {
                monitor.advance(shape.0 as u64)?;
            }
        }
        let after = solver.family.n_rows_read();
        finish(
            candidate,
            rows.out_of_fold([after[0] - before[0], after[1] - before[1]]),
        )?;
    }
    Ok(())
}

/// Which bounds are accepted.
#[derive(Clone, Copy)]
struct Acceptance {
    epsilon: f64,
    decides_by_sign: bool,
}

impl Acceptance {
    /// Whether a predictor is certain accepted: within ε, and of a certain sign where that is a class.
    fn accepts(self, predictor: f64, bound: f64) -> bool {
        let is_open = self.decides_by_sign && predictor.abs() <= bound && bound > 0.0;
        bound <= self.epsilon && !is_open && predictor.is_finite()
    }
}

impl FullFit<'_> {
    /// Leaves out every row; a bound of up to `epsilon` is accepted.
    fn leave_out(&self, epsilon: f64, rows: &mut Rows, monitor: &Monitor) -> Result<()> {
        let derivatives = self.derivatives(monitor)?;
        let (certificate, parts) = self.certificate(&derivatives, monitor)?;
        let acceptance = Acceptance {
            epsilon,
            decides_by_sign: self.solver.loss.decides_by_sign(),
        };
        let mut uncertified = vec![];
        for row in 0..self.design().n_rows() {
            let step = self.step(row, &derivatives, &parts);
            let at = (set_index(self.without(row)) - 1, self.output);
            rows.others.fitted[at] = derivatives.z[row];
            rows.others.leverages[at] = derivatives.second[row] * derivatives.h[row];
            rows.others.influence[at] = step.length * derivatives.h[row].sqrt();
            let bound = if self.factor.is_exact() {
                certificate.bound(&step.bounded)
            } else {
                f64::INFINITY
            };
            if acceptance.accepts(step.predictor, bound) {
                rows.set(at, step.predictor, bound, RowStatus::Certified);
            } else {
                uncertified.push((row, step.bounded));
            }
        }
        let n_certified = self.design().n_rows() - uncertified.len();
        monitor.advance(n_certified as u64)?;
        let most = (MAX_PROBLEM_VALUES / (8 * self.design().n_columns())).max(1);
        for group in uncertified.chunks(most) {
            let solved = self.resolve(group, &derivatives, (&certificate, acceptance), monitor)?;
            for ((row, _), (predictor, bound, status)) in group.iter().zip(solved) {
                let at = (set_index(self.without(*row)) - 1, self.output);
                rows.set(at, predictor, bound, status);
            }
            monitor.advance(group.len() as u64)?;
        }
        Ok(())
    }
}
