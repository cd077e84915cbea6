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
use super::coordinates::Coordinates;
use super::factor::{Factor, dot};
use super::inverse_hessian::InverseHessian;
use super::passes::{Column, Derivatives, Line, Passes, Sum};
use crate::linalg::Mat;
use crate::{Monitor, Result};

/// The most rounds, in each of which a problem has its gradient computed or its Hessian.
const MOST_ROUNDS: usize = 2000;

/// Nanoseconds per value of a row: to read it, which all problems share; to compute a gradient; and,
/// for each column, to compute a Hessian.
const READING: f64 = 0.7;
const GRADIENT: f64 = 0.2;
const HESSIAN: f64 = 0.06;

/// Steps that lead nowhere before a problem is left as it is.
const MOST_FAILURES: u32 = 3;

/// Passes before a new Hessian is considered.
const MIN_PASSES: u32 = 2;

/// A step is too long if the derivative at its end exceeds this part of that at its start.
const OVERSHOOT: f64 = 0.5;

/// Without a penalty, a problem whose step at a vanishing gradient changes predictors by more than this
/// part has no finite optimum.
const FINITE_STEP: f64 = 1e-3;

/// One problem and how far it is.
pub(super) struct Problem<'a> {
    pub(super) column: Column,
    coordinates: &'a Coordinates,
    /// λ.
    penalty: f64,
    /// Sⱼ of each parameter, and of a constant.
    magnitude: (Vec<f64>, f64),
    /// φ.
    pub(super) own: Vec<f64>,
    inverse: Option<InverseHessian>,
    /// The relative gradient where the Hessian was computed, and the passes since then.
    since_hessian: (f64, u32),
    /// The last step, whose end has not been looked at. Without one, a Hessian is needed.
    step: Option<Step>,
    /// Whether the last step was too long, and its length must be found.
    is_too_long: bool,
    /// At the start of the last step.
    relative_gradient: f64,
    /// Passes so far, in gradients of a refit.
    n_passes: f64,
    /// Steps that led nowhere.
    n_failures: u32,
    pub(super) state: State,
}

/// How far a problem is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum State {
    Active,
    /// The relative gradient is below the tolerance.
    Solved {
        relative_gradient: f64,
    },
    /// The optimum was not found: this is how near the parameters are.
    Unsolved {
        relative_gradient: f64,
    },
    /// There is no penalty, and no finite or no unique optimum, or it was not found.
    Undetermined,
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
    /// A problem at the start `shared`, whose magnitudes of shared parameters are given.
    pub(super) fn new(
        column: Column,
        coordinates: &'a Coordinates,
        penalty: f64,
        magnitude: &[f64],
        shared: &[f64],
    ) -> Self {
        let unit = magnitude.last().copied().unwrap_or(0.0);
        Self {
            column,
            coordinates,
            penalty,
            magnitude: (coordinates.magnitude(magnitude), unit),
            own: coordinates.to_own(shared),
            inverse: None,
            since_hessian: (f64::NAN, 0),
            step: None,
            is_too_long: false,
            relative_gradient: f64::INFINITY,
            n_passes: 0.0,
            n_failures: 0,
            state: State::Active,
        }
    }

    /// Shared parameters.
    pub(super) fn shared(&self) -> Vec<f64> {
        self.coordinates.to_shared(&self.own)
    }

    /// The gradient, from that of the losses in shared parameters.
    pub(super) fn gradient(&self, shared: &[f64]) -> Vec<f64> {
        let mut gradient = self.coordinates.gradient(shared);
        for (j, (gradient, own)) in gradient.iter_mut().zip(&self.own).enumerate() {
            if self.coordinates.is_penalised(j) {
                *gradient += self.penalty * own;
            }
        }
        gradient
    }

    fn relative_gradient(&self, gradient: &[f64]) -> f64 {
        let ratios = gradient.iter().zip(&self.magnitude.0);
        ratios.fold(0.0, |largest, (g, s)| {
            let ratio = if *g == 0.0 { 0.0 } else { g.abs() / s };
            if ratio > largest || ratio.is_nan() {
                ratio
            } else {
                largest
            }
        })
    }

    /// Takes a step with a new Hessian, from the derivatives of the losses in shared parameters at the
    /// current ones.
    pub(super) fn restart(
        &mut self,
        losses: &Derivatives,
        tolerance: f64,
        monitor: &Monitor,
    ) -> Result<()> {
        let hessian = self
            .coordinates
            .hessian(losses.hessian.as_ref(), self.penalty);
        let factor = Factor::new(&hessian, self.penalty, monitor)?;
        self.start(factor, &losses.gradient, tolerance);
        Ok(())
    }

    /// Takes a step with a factored Hessian, from the gradient of the losses in shared parameters at
    /// the current ones.
    pub(super) fn start(&mut self, factor: Option<Factor>, losses: &[f64], tolerance: f64) {
        self.inverse = factor.map(InverseHessian::new);
        let gradient = self.gradient(losses);
        let relative_gradient = self.relative_gradient(&gradient);
        self.since_hessian = (relative_gradient, 0);
        self.relative_gradient = relative_gradient;
        self.take_step(gradient);
        if relative_gradient <= tolerance && self.state == State::Active {
            self.end_before_step(relative_gradient);
        }
    }

    /// Takes a step, if there is an inverse Hessian.
    fn take_step(&mut self, gradient: Vec<f64>) {
        let direction = self.inverse.as_ref().map(|own| own.step(&gradient));
        let slope = direction
            .as_ref()
            .map_or(f64::NAN, |own| dot(&gradient, own));
        let Some(direction) = direction.filter(|_| slope.is_finite()) else {
            self.try_again();
            return;
        };
        self.step = Some(Step {
            start: self.own.clone(),
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
            self.own = step.start;
        }
        self.n_failures += 1;
        if self.n_failures > MOST_FAILURES {
            self.give_up();
        }
    }

    /// Ends where the last gradient was computed. With a penalty there is an optimum, but it was not found.
    fn give_up(&mut self) {
        if let Some(step) = self.step.take() {
            self.own = step.start;
        }
        self.state = if self.penalty > 0.0 {
            State::Unsolved {
                relative_gradient: self.relative_gradient,
            }
        } else {
            State::Undetermined
        };
    }

    /// Sets the parameters to the end of the step.
    fn move_along(&mut self) {
        let Some(step) = &self.step else { return };
        let moved = step.start.iter().zip(&step.direction);
        self.own = moved.map(|(start, d)| start + step.length * d).collect();
    }

    /// Ends at the start of a step whose gradient is below the tolerance. If there is no penalty, the
    /// optimum may be at infinity, where gradients vanish but steps do not.
    fn end_before_step(&mut self, relative_gradient: f64) {
        let Some(step) = self.step.take() else { return };
        let is_finite = self.is_small(&step);
        self.own = step.start;
        self.state = if self.penalty > 0.0 || is_finite {
            State::Solved { relative_gradient }
        } else {
            State::Undetermined
        };
    }

    /// Whether a step changes predictors by a small part only: at a finite optimum steps vanish with the
    /// gradients.
    fn is_small(&self, step: &Step) -> bool {
        let (magnitude, unit) = &self.magnitude;
        let change = |values: &[f64]| -> f64 {
            let terms = values.iter().zip(magnitude);
            terms.map(|(value, s)| value.abs() * s).sum()
        };
        step.length * change(&step.direction) <= FINITE_STEP * (change(&step.start) + unit)
    }

    /// The last step as a line.
    fn line(&self) -> Option<Line> {
        let step = self.step.as_ref()?;
        let penalty = [&step.start, &step.direction].map(|from| {
            let pairs = from.iter().zip(&step.direction).enumerate();
            let penalised = pairs.filter(|(j, _)| self.coordinates.is_penalised(*j));
            self.penalty * penalised.map(|(_, (a, b))| a * b).sum::<f64>()
        });
        Some(Line {
            column: self.column,
            theta: [&step.start, &step.direction].map(|own| self.coordinates.to_shared(own)),
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
    pub(super) fn advance(&mut self, shared: &[f64], tolerance: f64, n_free_passes: f64) {
        let Some(step) = self.step.take() else {
            return;
        };
        let gradient = self.gradient(shared);
        let relative_gradient = self.relative_gradient(&gradient);
        if relative_gradient <= tolerance {
            if self.penalty > 0.0 || self.is_small(&step) {
                self.state = State::Solved { relative_gradient };
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
        self.relative_gradient = relative_gradient;
        let (first, n_passes) = self.since_hessian;
        let n_passes = n_passes + 1;
        self.since_hessian.1 = n_passes;
        let log_rate = (relative_gradient / first).ln() / f64::from(n_passes);
        let n_expected = (tolerance / relative_gradient).ln() / log_rate;
        let is_slow = log_rate >= 0.0 || n_expected > n_free_passes;
        if n_passes < MIN_PASSES || !is_slow {
            if let Some(inverse) = &mut self.inverse {
                inverse.update(&step.start, &self.own, &step.gradient, &gradient);
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
    (READING / n_problems as f64 + GRADIENT) / (READING + GRADIENT)
}

/// What a Hessian costs, in the same unit.
fn hessian_cost(width: usize, n_problems: usize) -> f64 {
    (READING / n_problems as f64 + HESSIAN * width as f64) / (READING + GRADIENT)
}

/// Minimises all problems, as far as the passes allow.
pub(super) fn minimise(
    passes: &Passes<'_>,
    problems: &mut [Problem<'_>],
    accuracy: Accuracy,
    monitor: &Monitor,
) -> Result<()> {
    let width = passes.design.n_columns();
    for _ in 0..MOST_ROUNDS {
        for problem in problems.iter_mut() {
            if problem.state == State::Active && accuracy.target(problem.n_passes).is_none() {
                problem.give_up();
            }
        }
        let is_active = |problem: &&mut Problem<'_>| problem.state == State::Active;
        let (mut moved, still): (Vec<_>, Vec<_>) = problems
            .iter_mut()
            .filter(is_active)
            .partition(|problem| problem.step.is_some());
        if moved.is_empty() && still.is_empty() {
            return Ok(());
        }
        restart_all(passes, still, accuracy, monitor)?;
        let columns: Vec<Column> = moved.iter().map(|problem| problem.column).collect();
        let shared: Vec<Vec<f64>> = moved.iter().map(|problem| problem.shared()).collect();
        let theta = Mat::from_fn(width, shared.len(), |i, j| shared[j][i]);
        let gradients = passes.gradients(&columns, theta.as_ref(), monitor)?;
        let (cost, n_free_passes) = (gradient_cost(moved.len()), free_passes(width, moved.len()));
        for (j, problem) in moved.iter_mut().enumerate() {
            let gradient: Vec<f64> = (0..width).map(|i| gradients[(i, j)]).collect();
            problem.n_passes += cost;
            let target = accuracy.target(problem.n_passes).unwrap_or(accuracy.enough);
            problem.advance(&gradient, target, n_free_passes);
        }
        shorten_all(passes, &mut moved, monitor)?;
    }
    for problem in problems {
        if problem.state == State::Active {
            problem.give_up();
        }
    }
    Ok(())
}

/// Restarts problems from their Hessians, some at a time.
fn restart_all(
    passes: &Passes<'_>,
    mut problems: Vec<&mut Problem<'_>>,
    accuracy: Accuracy,
    monitor: &Monitor,
) -> Result<()> {
    let n_rows = passes.design.n_rows().max(1) as f64;
    let cost = hessian_cost(passes.design.n_columns(), problems.len().max(1));
    for group in problems.chunks_mut(passes.most_hessians()) {
        let shared: Vec<Vec<f64>> = group.iter().map(|problem| problem.shared()).collect();
        let sums = group.iter().zip(&shared).map(|(problem, theta)| Sum {
            column: problem.column,
            theta,
            rows: None,
        });
        let found = passes.sums(&sums.collect::<Vec<_>>(), monitor)?;
        for (problem, losses) in group.iter_mut().zip(&found) {
            problem.n_passes += 1.0 + cost * losses.n_curved as f64 / n_rows;
            let target = accuracy.target(problem.n_passes).unwrap_or(accuracy.enough);
            problem.restart(losses, target, monitor)?;
        }
    }
    Ok(())
}

/// Shortens the steps that were too long.
fn shorten_all(
    passes: &Passes<'_>,
    problems: &mut [&mut Problem<'_>],
    monitor: &Monitor,
) -> Result<()> {
    let too_long = problems.iter_mut().filter(|problem| problem.is_too_long);
    let mut too_long: Vec<_> = too_long.collect();
    let lines: Vec<Line> = too_long.iter().filter_map(|own| own.line()).collect();
    let lengths = passes.lengths(&lines, monitor)?;
    for (problem, length) in too_long.iter_mut().zip(lengths) {
        problem.n_passes += 1.0;
        problem.shorten(length);
    }
    Ok(())
}
