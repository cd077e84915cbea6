//! The minimisation of many problems side by side.
//!
//! Each problem takes steps −Bg, where B is the inverse of a Hessian of some earlier point with BFGS
//! updates since then (`inverse_hessian`). The gradients of all problems are computed in one pass over
//! the rows. If that of a problem has decreased by a factor ρ per pass since its last Hessian,
//! ln(tolerance/gradient)/ln ρ more passes are expected; once they would cost more than a new Hessian
//! does, it is computed.
//!
//! Along a step, a convex function has an increasing derivative: if it is clearly positive at the end
//! of the step, the step was too long, and is shortened to where the derivative is about zero. Losses
//! with kinks need that often when there are few rows that they do not ignore.

use super::Accuracy;
use super::factor::Factor;
use super::family::{Fit, State, Subproblem};
use super::inverse_hessian::InverseHessian;
use super::passes::{DerivativeSum, Derivatives, Line};
use super::solve::Solver;
use super::vectors::dot;
use crate::linalg::Mat;
use crate::{Monitor, Result};

/// The most rounds, in each of which a problem has its gradient computed or its Hessian.
const MAX_ROUNDS: usize = 2000;

/// Nanoseconds per value of a row: to read it, which all problems share; to compute a gradient; and,
/// for each column, to compute a Hessian.
const READ_NS_PER_VALUE: f64 = 0.7;
const GRADIENT_NS_PER_VALUE: f64 = 0.2;
const HESSIAN_NS_PER_VALUE: f64 = 0.06;

/// Steps that lead nowhere before a problem is left as it is.
const MAX_FAILURES: u32 = 3;

/// Passes before a new Hessian is considered.
const MIN_PASSES: u32 = 2;

/// A step is too long if the derivative at its end exceeds this part of that at its start.
const OVERSHOOT: f64 = 0.5;

/// Without a penalty, a problem whose step at a vanishing gradient changes predictors by more than this
/// part has no finite optimum.
const MAX_STEP_AT_OPTIMUM: f64 = 1e-3;

/// One problem of one predictor, and its steps.
pub(super) struct Problem<'a> {
    pub(super) fit: Fit<'a>,
    /// Sⱼ of a constant.
    constant_magnitude: f64,
    inverse: Option<InverseHessian>,
    /// The relative gradient where the Hessian was computed, and the passes since then.
    since_hessian: (f64, u32),
    /// The last step, whose end has not been looked at. Without one, a Hessian is needed.
    step: Option<Step>,
    /// Whether the last step was too long, and its length must be found.
    is_too_long: bool,
    /// Steps that led nowhere.
    n_failures: u32,
}

/// A step that was taken, and its start.
struct Step {
    start: Vec<f64>,
    direction: Vec<f64>,
    length: f64,
    /// The derivative along the direction at the start.
    slope: f64,
    /// The gradient at the start.
    gradient: Vec<f64>,
}

impl<'a> Problem<'a> {
    pub(super) fn new(fit: Fit<'a>, constant_magnitude: f64) -> Self {
        Self {
            fit,
            constant_magnitude,
            inverse: None,
            since_hessian: (f64::NAN, 0),
            step: None,
            is_too_long: false,
            n_failures: 0,
        }
    }

    /// Common parameters.
    pub(super) fn common(&self) -> Vec<f64> {
        self.fit.map.to_common(&self.fit.params)
    }

    /// The gradient, from that of the losses by common parameters.
    pub(super) fn gradient(&self, common: &[f64]) -> Vec<f64> {
        self.fit.gradient_at(&[common], &self.fit.params)
    }

    /// Takes a step with a new Hessian, from the derivatives of the losses in common parameters at the
    /// current ones.
    pub(super) fn restart(
        &mut self,
        losses: &Derivatives,
        tolerance: f64,
        monitor: &Monitor,
    ) -> Result<()> {
        let mut hessian = self.fit.map.second_moments(losses.hessian.as_ref());
        self.fit.ridge.add_hessian(&mut hessian);
        let factor = Factor::new(&hessian, self.fit.ridge.lambda, monitor)?;
        self.start(factor, &losses.gradient, tolerance);
        Ok(())
    }

    /// Takes a step with a factored Hessian, from the gradient of the losses in common parameters at
    /// the current ones.
    pub(super) fn start(&mut self, factor: Option<Factor>, losses: &[f64], tolerance: f64) {
        self.inverse = factor.map(InverseHessian::new);
        let gradient = self.gradient(losses);
        let relative_gradient = self.fit.relative(&gradient);
        self.since_hessian = (relative_gradient, 0);
        self.fit.relative_gradient = relative_gradient;
        self.take_step(gradient);
        if relative_gradient <= tolerance && self.fit.state == State::Active {
            self.end_before_step(relative_gradient);
        }
    }

    /// Takes a step, if there is an inverse Hessian.
    fn take_step(&mut self, gradient: Vec<f64>) {
        let direction = self.inverse.as_ref().map(|inverse| inverse.step(&gradient));
        let slope = direction
            .as_ref()
            .map_or(f64::NAN, |direction| dot(&gradient, direction));
        let Some(direction) = direction.filter(|_| slope.is_finite()) else {
            self.try_again();
            return;
        };
        self.step = Some(Step {
            start: self.fit.params.clone(),
            direction,
            length: 1.0,
            slope,
            gradient,
        });
        self.move_along();
    }

    /// Goes back to the start of a step that led nowhere, for a Hessian computed there: one that is a
    /// difference or has updates may be nothing but rounding errors.
    fn try_again(&mut self) {
        if let Some(step) = self.step.take() {
            self.fit.params = step.start;
        }
        self.n_failures += 1;
        if self.n_failures > MAX_FAILURES {
            self.give_up();
        }
    }

    /// Ends where the last gradient was computed. With a penalty there is an optimum, but it was not found.
    fn give_up(&mut self) {
        if let Some(step) = self.step.take() {
            self.fit.params = step.start;
        }
        self.fit.give_up();
    }

    /// Sets the parameters to the end of the step.
    fn move_along(&mut self) {
        let Some(step) = &self.step else { return };
        let moved = step.start.iter().zip(&step.direction);
        self.fit.params = moved.map(|(start, d)| start + step.length * d).collect();
    }

    /// Ends at the start of a step whose gradient is below the tolerance. If there is no penalty, the
    /// optimum may be at infinity, where gradients vanish but steps do not.
    fn end_before_step(&mut self, relative_gradient: f64) {
        let Some(step) = self.step.take() else { return };
        let is_finite = self.is_small(&step);
        self.fit.params = step.start;
        self.fit.relative_gradient = relative_gradient;
        self.fit.state = if self.fit.has_penalty() || is_finite {
            State::Solved
        } else {
            State::Undetermined
        };
    }

    /// Whether a step changes predictors by a small part only: at a finite optimum steps vanish with the
    /// gradients.
    fn is_small(&self, step: &Step) -> bool {
        let change = |values: &[f64]| -> f64 {
            let terms = values.iter().zip(&self.fit.magnitude);
            terms.map(|(value, s)| value.abs() * s).sum()
        };
        step.length * change(&step.direction)
            <= MAX_STEP_AT_OPTIMUM * (change(&step.start) + self.constant_magnitude)
    }

    /// The last step as a line.
    fn line(&self) -> Option<Line> {
        let step = self.step.as_ref()?;
        let penalty = [&step.start, &step.direction]
            .map(|from| self.fit.ridge.product(from, &step.direction));
        Some(Line {
            subproblem: self.fit.subproblem,
            theta: [&step.start, &step.direction].map(|params| self.fit.map.to_common(params)),
            slope: step.slope,
            penalty,
        })
    }

    /// Takes the last step with another length.
    fn shorten(&mut self, length: Option<f64>) {
        self.is_too_long = false;
        match (&mut self.step, length) {
            (Some(step), Some(length)) => {
                step.length = length;
                self.move_along();
            }
            _ => self.try_again(),
        }
    }

    /// Looks at the gradient of the losses at the end of the step, and takes the next one unless it
    /// needs a new Hessian.
    pub(super) fn advance(&mut self, common: &[f64], tolerance: f64, n_free_passes: f64) {
        let Some(step) = self.step.take() else {
            return;
        };
        let gradient = self.gradient(common);
        let relative_gradient = self.fit.relative(&gradient);
        if relative_gradient <= tolerance {
            if self.fit.has_penalty() || self.is_small(&step) {
                self.fit.relative_gradient = relative_gradient;
                self.fit.state = State::Solved;
            }
            return;
        }
        let slope = dot(&gradient, &step.direction);
        let is_too_long = slope.is_nan() || slope > OVERSHOOT * step.slope.abs();
        if is_too_long {
            self.is_too_long = true;
            self.step = Some(step);
            return;
        }
        self.fit.relative_gradient = relative_gradient;
        let (first, n_passes) = self.since_hessian;
        let n_passes = n_passes + 1;
        self.since_hessian.1 = n_passes;
        let log_rate = (relative_gradient / first).ln() / f64::from(n_passes);
        let n_expected = (tolerance / relative_gradient).ln() / log_rate;
        let is_slow = log_rate >= 0.0 || n_expected > n_free_passes;
        if n_passes < MIN_PASSES || !is_slow {
            if let Some(inverse) = &mut self.inverse {
                inverse.update(&step.start, &self.fit.params, &step.gradient, &gradient);
            }
            self.take_step(gradient);
        }
    }
}

/// The passes that cost one problem among `n_problems` as much as a new Hessian does, and two more.
pub(super) fn free_passes(width: usize, n_problems: usize) -> f64 {
    2.0 + hessian_cost(width, n_problems) / gradient_cost(n_problems)
}

/// What a gradient of one problem among some costs, in gradients of a refit, which reads its rows alone.
fn gradient_cost(n_problems: usize) -> f64 {
    (READ_NS_PER_VALUE / n_problems as f64 + GRADIENT_NS_PER_VALUE)
        / (READ_NS_PER_VALUE + GRADIENT_NS_PER_VALUE)
}

/// What a Hessian costs, in the same unit.
fn hessian_cost(width: usize, n_problems: usize) -> f64 {
    (READ_NS_PER_VALUE / n_problems as f64 + HESSIAN_NS_PER_VALUE * width as f64)
        / (READ_NS_PER_VALUE + GRADIENT_NS_PER_VALUE)
}

/// Minimises all problems, as far as the passes allow.
pub(super) fn minimise(
    solver: &Solver<'_>,
    problems: &mut [Problem<'_>],
    accuracy: Accuracy,
    monitor: &Monitor,
) -> Result<()> {
    let width = solver.family.design.n_columns();
    for _ in 0..MAX_ROUNDS {
        for problem in problems.iter_mut() {
            if problem.fit.state == State::Active && accuracy.target(problem.fit.n_passes).is_none()
            {
                problem.give_up();
            }
        }
        let is_active = |problem: &&mut Problem<'_>| problem.fit.state == State::Active;
        let (mut moved, still): (Vec<_>, Vec<_>) = problems
            .iter_mut()
            .filter(is_active)
            .partition(|problem| problem.step.is_some());
        if moved.is_empty() && still.is_empty() {
            return Ok(());
        }
        restart_all(solver, still, accuracy, monitor)?;
        let subproblems: Vec<Subproblem> =
            moved.iter().map(|problem| problem.fit.subproblem).collect();
        let common: Vec<Vec<f64>> = moved.iter().map(|problem| problem.common()).collect();
        let theta = Mat::from_fn(width, common.len(), |i, j| common[j][i]);
        let gradients = solver.gradients(&subproblems, theta.as_ref(), monitor)?;
        let (cost, n_free_passes) = (gradient_cost(moved.len()), free_passes(width, moved.len()));
        for (j, problem) in moved.iter_mut().enumerate() {
            let gradient: Vec<f64> = (0..width).map(|i| gradients[(i, j)]).collect();
            problem.fit.n_passes += cost;
            let target = accuracy
                .target(problem.fit.n_passes)
                .unwrap_or(accuracy.accepted);
            problem.advance(&gradient, target, n_free_passes);
        }
        shorten_all(solver, &mut moved, monitor)?;
    }
    for problem in problems {
        if problem.fit.state == State::Active {
            problem.give_up();
        }
    }
    Ok(())
}

/// Restarts problems from their Hessians, some at a time.
fn restart_all(
    solver: &Solver<'_>,
    mut problems: Vec<&mut Problem<'_>>,
    accuracy: Accuracy,
    monitor: &Monitor,
) -> Result<()> {
    let n_rows = solver.family.design.n_rows().max(1) as f64;
    let cost = hessian_cost(solver.family.design.n_columns(), problems.len().max(1));
    for group in problems.chunks_mut(solver.max_hessians()) {
        let common: Vec<Vec<f64>> = group.iter().map(|problem| problem.common()).collect();
        let sums = group
            .iter()
            .zip(&common)
            .map(|(problem, theta)| DerivativeSum {
                subproblem: problem.fit.subproblem,
                theta,
                rows: None,
            });
        let found = solver.sums(&sums.collect::<Vec<_>>(), monitor)?;
        for (problem, losses) in group.iter_mut().zip(&found) {
            problem.fit.n_passes += 1.0 + cost * losses.n_curved as f64 / n_rows;
            let target = accuracy
                .target(problem.fit.n_passes)
                .unwrap_or(accuracy.accepted);
            problem.restart(losses, target, monitor)?;
        }
    }
    Ok(())
}

/// Shortens the steps that were too long.
fn shorten_all(
    solver: &Solver<'_>,
    problems: &mut [&mut Problem<'_>],
    monitor: &Monitor,
) -> Result<()> {
    let too_long = problems.iter_mut().filter(|problem| problem.is_too_long);
    let mut too_long: Vec<_> = too_long.collect();
    let lines: Vec<Line> = too_long
        .iter()
        .filter_map(|problem| problem.line())
        .collect();
    let lengths = solver.lengths(&lines, monitor)?;
    for (problem, length) in too_long.iter_mut().zip(lengths) {
        problem.fit.n_passes += 1.0;
        problem.shorten(length);
    }
    Ok(())
}
