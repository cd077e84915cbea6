//! ATO, adjusting alpha towards the optimum: equations 7–11 of the paper.
//!
//! R leaves, T enters. In steps of length η, β_R shrinks to 0 and β_T grows towards the far end of
//! its box (7), while the free variables M of the training set move so that the sum stays 0 and
//! their gradients stay at b (8–10, by pseudo-inverse where singular). η is as long as no variable
//! meets a bound and no gradient crosses b (11); what meets one changes its part. Variables of T
//! that satisfy their condition (5) join the training set.
//!
//! β_R is zero only when some η is 1, and each step before that may change a single part: there may
//! be as many as variables, with a system of equations each. (The paper calls that unbounded, and
//! spends more time on it than on the solver.) So the number of steps is limited; after the last
//! one, what is left of β_R goes where [`withdraw`](super::withdraw) sends it.

use super::Move;
use super::least_squares::{self, Operator};
use super::withdraw::withdraw;
use crate::Result;

/// Steps before the rest is left to the solver.
const STEPS: usize = 30;

/// A gradient this close to b lies on the margin.
const ON_MARGIN: f64 = 1e-9;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Outside,
    Bound,
    Margin,
    Entering,
    Leaving,
}

pub(super) fn start(step: &Move<'_>) -> Result<Vec<f64>> {
    let mut path = Path::new(step);
    for _ in 0..STEPS {
        path.settle();
        if path.members(Part::Leaving).is_empty() {
            break;
        }
        path.advance()?;
    }
    withdraw(step, &path.members(Part::Leaving), &mut path.beta);
    Ok(path.beta)
}

/// Where the adjustment has come to.
struct Path<'a> {
    step: &'a Move<'a>,
    beta: Vec<f64>,
    gradient: Vec<f64>,
    parts: Vec<Part>,
}

impl<'a> Path<'a> {
    fn new(step: &'a Move<'a>) -> Self {
        let part = |v: usize| match (step.before.is_open(v), step.after.is_open(v)) {
            (false, false) => Part::Outside,
            (true, false) => Part::Leaving,
            (false, true) => Part::Entering,
            (true, true) if step.is_free(v) => Part::Margin,
            (true, true) => Part::Bound,
        };
        Self {
            step,
            beta: step.previous.beta.clone(),
            gradient: step.previous.gradient.clone(),
            parts: (0..step.dual.len()).map(part).collect(),
        }
    }

    fn members(&self, part: Part) -> Vec<usize> {
        let variables = 0..self.parts.len();
        variables.filter(|&v| self.parts[v] == part).collect()
    }

    /// How far the gradient stands above b.
    fn excess(&self, v: usize) -> f64 {
        self.gradient[v] - self.step.previous.intercept
    }

    /// Whether condition (5) holds where the variable is.
    fn is_optimal(&self, v: usize) -> bool {
        let (lower, upper) = self.step.after.range(v);
        (self.beta[v] == lower || self.excess(v) >= -ON_MARGIN)
            && (self.beta[v] == upper || self.excess(v) <= ON_MARGIN)
    }

    /// Entering variables that are optimal join the others; leaving ones without β are done.
    fn settle(&mut self) {
        for v in 0..self.parts.len() {
            let (lower, upper) = self.step.after.range(v);
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
        let Move { dual, monitor, .. } = *self.step;
        let moving: Vec<usize> = (0..self.parts.len())
            .filter(|&v| matches!(self.parts[v], Part::Entering | Part::Leaving))
            .collect();
        let pull = |&v: &usize| match self.parts[v] {
            Part::Entering => self.far_end(v) - self.beta[v],
            _ => -self.beta[v],
        };
        let pulls: Vec<f64> = moving.iter().map(pull).collect();
        let mut change = dual.combine(&moving, &pulls, monitor)?;
        let margin = self.members(Part::Margin);
        let mut wanted: Vec<f64> = margin.iter().map(|&v| -change[v]).collect();
        wanted.push(-pulls.iter().sum::<f64>());
        let system = OnMargin {
            step: self.step,
            margin: &margin,
        };
        let answer = least_squares::solve(&system, wanted)?;
        let more = dual.combine(&margin, &answer, monitor)?;
        for (change, more) in change.iter_mut().zip(more) {
            *change += more;
        }
        let mut direction = vec![0.0; self.parts.len()];
        for (&v, d) in moving
            .iter()
            .chain(&margin)
            .zip(pulls.iter().chain(&answer))
        {
            direction[v] = *d;
        }
        let eta = self.longest(&direction, &change);
        for v in 0..self.parts.len() {
            self.gradient[v] -= eta * change[v];
            self.put(v, self.beta[v] + eta * direction[v]);
        }
        Ok(())
    }

    /// The end of a box that is not 0.
    fn far_end(&self, v: usize) -> f64 {
        let (lower, upper) = self.step.after.range(v);
        lower + upper
    }

    /// η: the first variable that meets a bound, or gradient that crosses b, ends the step.
    fn longest(&self, direction: &[f64], change: &[f64]) -> f64 {
        let mut eta = 1.0;
        for v in 0..self.parts.len() {
            let (lower, upper) = self.step.after.range(v);
            let limit = match self.parts[v] {
                Part::Margin if direction[v] > 0.0 => (upper - self.beta[v]) / direction[v],
                Part::Margin if direction[v] < 0.0 => (lower - self.beta[v]) / direction[v],
                Part::Bound | Part::Entering => self.excess(v) / change[v],
                _ => continue,
            };
            // Behind us, or violated already: a start need not be optimal.
            if limit > ON_MARGIN && limit < eta {
                eta = limit;
            }
        }
        eta
    }

    /// Moves a variable, and notes if it meets a bound or the margin.
    fn put(&mut self, v: usize, value: f64) {
        let (lower, upper) = self.step.after.range(v);
        match self.parts[v] {
            Part::Margin => {
                let near = ON_MARGIN * (upper - lower);
                if value <= lower + near {
                    (self.beta[v], self.parts[v]) = (lower, Part::Bound);
                } else if value >= upper - near {
                    (self.beta[v], self.parts[v]) = (upper, Part::Bound);
                } else {
                    self.beta[v] = value;
                }
            }
            Part::Bound if self.excess(v).abs() <= ON_MARGIN => self.parts[v] = Part::Margin,
            Part::Bound | Part::Outside => {}
            Part::Entering => self.beta[v] = value.clamp(lower, upper),
            Part::Leaving => self.beta[v] = value,
        }
    }
}

/// The matrix of equation 10: K_MM over a row of ones.
struct OnMargin<'a> {
    step: &'a Move<'a>,
    margin: &'a [usize],
}

impl Operator for OnMargin<'_> {
    fn times(&self, x: &[f64]) -> Result<Vec<f64>> {
        let Move { dual, monitor, .. } = *self.step;
        let image = dual.combine(self.margin, x, monitor)?;
        let mut image: Vec<f64> = self.margin.iter().map(|&v| image[v]).collect();
        image.push(x.iter().sum());
        Ok(image)
    }

    fn transposed_times(&self, y: &[f64]) -> Result<Vec<f64>> {
        let Move { dual, monitor, .. } = *self.step;
        // K_MM is symmetric.
        let (y, last) = y.split_at(self.margin.len());
        let image = dual.combine(self.margin, y, monitor)?;
        Ok(self.margin.iter().map(|&v| image[v] + last[0]).collect())
    }
}
