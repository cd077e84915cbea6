//! ATO, adjusting alpha towards the optimum: equations 7–11 of the paper.
//!
//! R leaves, T enters. In steps of length η, β_R decreases to 0 and β_T moves towards the nonzero end
//! of its box (7), while the free variables M of the training set move so that the sum stays 0 and
//! their gradients stay at b (8–10, by pseudo-inverse where singular). η ends where a variable reaches
//! a bound or a gradient crosses b (11), and that variable changes its part. Variables of T that
//! satisfy their optimality condition (5) join the training set.
//!
//! β_R is zero only after a step with η = 1, and each step before may change a single part, so there
//! may be as many steps as variables, with one linear system each. (The paper leaves this unbounded,
//! and spends more time on it than on the solver.) Here the number of steps is limited; the rest of
//! β_R is [withdrawn](super::withdraw).

use super::least_squares::{self, Operator};
use super::transition::Transition;
use super::withdraw::withdraw;
use crate::Result;

/// Maximum number of steps.
const MAX_STEPS: usize = 30;

/// Distance of a gradient from b up to which it counts as on the margin.
const MARGIN_TOLERANCE: f64 = 1e-9;

/// The part of a variable in the adjustment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Outside,
    Bound,
    Margin,
    Entering,
    Leaving,
}

pub(super) fn start(change: &Transition<'_>) -> Result<Vec<f64>> {
    let mut state = Adjustment::new(change);
    for _ in 0..MAX_STEPS {
        state.update_parts();
        if state.members(Part::Leaving).is_empty() {
            break;
        }
        state.advance()?;
    }
    withdraw(change, &state.members(Part::Leaving), &mut state.beta);
    Ok(state.beta)
}

/// The state of the adjustment.
struct Adjustment<'a> {
    change: &'a Transition<'a>,
    beta: Vec<f64>,
    gradient: Vec<f64>,
    parts: Vec<Part>,
}

impl<'a> Adjustment<'a> {
    fn new(change: &'a Transition<'a>) -> Self {
        let part = |v: usize| match (change.old_bounds.is_open(v), change.new_bounds.is_open(v)) {
            (false, false) => Part::Outside,
            (true, false) => Part::Leaving,
            (false, true) => Part::Entering,
            (true, true) if change.is_free(v) => Part::Margin,
            (true, true) => Part::Bound,
        };
        Self {
            change,
            beta: change.previous.beta.clone(),
            gradient: change.previous.gradient.clone(),
            parts: (0..change.dual.len()).map(part).collect(),
        }
    }

    fn members(&self, part: Part) -> Vec<usize> {
        let variables = 0..self.parts.len();
        variables.filter(|&v| self.parts[v] == part).collect()
    }

    /// g − b.
    fn excess(&self, v: usize) -> f64 {
        self.gradient[v] - self.change.previous.intercept
    }

    /// Returns true if a variable satisfies condition (5).
    fn is_optimal(&self, v: usize) -> bool {
        let (lower, upper) = self.change.new_bounds.range(v);
        (self.beta[v] == lower || self.excess(v) >= -MARGIN_TOLERANCE)
            && (self.beta[v] == upper || self.excess(v) <= MARGIN_TOLERANCE)
    }

    /// Optimal entering variables join the training set; leaving ones with β = 0 are done.
    fn update_parts(&mut self) {
        for v in 0..self.parts.len() {
            let (lower, upper) = self.change.new_bounds.range(v);
            match self.parts[v] {
                Part::Leaving if self.beta[v] == 0.0 => self.parts[v] = Part::Outside,
                Part::Entering if self.is_optimal(v) => {
                    let is_free = lower < self.beta[v] && self.beta[v] < upper;
                    self.parts[v] = if is_free { Part::Margin } else { Part::Bound };
                }
                _ => {}
            }
        }
    }

    /// One step of length η along the direction of equations 7 and 10.
    fn advance(&mut self) -> Result<()> {
        let Transition { dual, monitor, .. } = *self.change;
        let moving: Vec<usize> = (0..self.parts.len())
            .filter(|&v| matches!(self.parts[v], Part::Entering | Part::Leaving))
            .collect();
        let speed = |&v: &usize| match self.parts[v] {
            Part::Entering => self.nonzero_end(v) - self.beta[v],
            _ => -self.beta[v],
        };
        let speeds: Vec<f64> = moving.iter().map(speed).collect();
        let mut change = dual.combine(&moving, &speeds, monitor)?;
        let margin = self.members(Part::Margin);
        let mut target: Vec<f64> = margin.iter().map(|&v| -change[v]).collect();
        target.push(-speeds.iter().sum::<f64>());
        let system = MarginSystem {
            change: self.change,
            margin: &margin,
        };
        let solution = least_squares::solve(&system, target)?;
        let more = dual.combine(&margin, &solution, monitor)?;
        for (change, more) in change.iter_mut().zip(more) {
            *change += more;
        }
        let mut direction = vec![0.0; self.parts.len()];
        for (&v, d) in moving
            .iter()
            .chain(&margin)
            .zip(speeds.iter().chain(&solution))
        {
            direction[v] = *d;
        }
        let eta = self.step_length(&direction, &change);
        for v in 0..self.parts.len() {
            self.gradient[v] -= eta * change[v];
            self.assign(v, self.beta[v] + eta * direction[v]);
        }
        Ok(())
    }

    /// The nonzero end of a box.
    fn nonzero_end(&self, v: usize) -> f64 {
        let (lower, upper) = self.change.new_bounds.range(v);
        lower + upper
    }

    /// η: until the first variable reaches a bound or the first gradient crosses b.
    fn step_length(&self, direction: &[f64], change: &[f64]) -> f64 {
        let mut eta = 1.0;
        for v in 0..self.parts.len() {
            let (lower, upper) = self.change.new_bounds.range(v);
            let limit = match self.parts[v] {
                Part::Margin if direction[v] > 0.0 => (upper - self.beta[v]) / direction[v],
                Part::Margin if direction[v] < 0.0 => (lower - self.beta[v]) / direction[v],
                Part::Bound | Part::Entering => self.excess(v) / change[v],
                _ => continue,
            };
            // Nonpositive limits are ignored: a start need not be optimal.
            if limit > MARGIN_TOLERANCE && limit < eta {
                eta = limit;
            }
        }
        eta
    }

    /// Moves a variable, and updates its part if it reaches a bound or the margin.
    fn assign(&mut self, v: usize, value: f64) {
        let (lower, upper) = self.change.new_bounds.range(v);
        match self.parts[v] {
            Part::Margin => {
                let near = MARGIN_TOLERANCE * (upper - lower);
                if value <= lower + near {
                    (self.beta[v], self.parts[v]) = (lower, Part::Bound);
                } else if value >= upper - near {
                    (self.beta[v], self.parts[v]) = (upper, Part::Bound);
                } else {
                    self.beta[v] = value;
                }
            }
            Part::Bound if self.excess(v).abs() <= MARGIN_TOLERANCE => self.parts[v] = Part::Margin,
            Part::Bound | Part::Outside => {}
            Part::Entering => self.beta[v] = value.clamp(lower, upper),
            Part::Leaving => self.beta[v] = value,
        }
    }
}

/// The matrix of equation 10: K_MM over a row of ones.
struct MarginSystem<'a> {
    change: &'a Transition<'a>,
    margin: &'a [usize],
}

impl Operator for MarginSystem<'_> {
    fn times(&self, x: &[f64]) -> Result<Vec<f64>> {
        let Transition { dual, monitor, .. } = *self.change;
        let image = dual.combine(self.margin, x, monitor)?;
        let mut image: Vec<f64> = self.margin.iter().map(|&v| image[v]).collect();
        image.push(x.iter().sum());
        Ok(image)
    }

    fn transposed_times(&self, y: &[f64]) -> Result<Vec<f64>> {
        let Transition { dual, monitor, .. } = *self.change;
        // K_MM is symmetric.
        let (y, last) = y.split_at(self.margin.len());
        let image = dual.combine(self.margin, y, monitor)?;
        Ok(self.margin.iter().map(|&v| image[v] + last[0]).collect())
    }
}
