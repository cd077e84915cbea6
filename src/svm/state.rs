//! The state of a running solver: β, the gradient, and which variables take part.
//!
//! # Shrinking
//! A variable at a bound whose gradient says that it will stay there is put aside: one that may
//! only rise and stands below all that may fall, or the mirror image. What is left is *gathered*
//! into short arrays, where an iteration costs less. The gradients of the others are brought up to
//! date when the rest has converged, from the β that changed since; then all take part again, and
//! only a gap over all of them ends the run. So shrinking cannot change what is found.

use std::iter;
use std::ops::{Deref, Range};

use super::direction::{Direction, Pull, Stride};
use super::gram::{BLOCK, Gram, Lines};
use super::kept::Kept;
use super::passes::{Best, LEAST_CURVATURE, Partner, Step};
use super::smo::{Bounds, Dual, Solution, Start};
use crate::runtime::simd;
use crate::{Monitor, Result};

/// Iterations between two attempts to shrink, as in LIBSVM.
const PERIOD: usize = 1000;

/// What it costs to gather a kernel row, in readings of one that stands together.
const GATHERING: f64 = 1.0;

/// Two variables to move, and what is known of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    first: usize,
    second: usize,
    pub(super) gain: f64,
    pub(super) gap: f64,
}

/// What takes part: parallel arrays of all variables in their order, or of the gathered ones.
#[derive(Debug)]
struct Active {
    /// Where the pieces of a kernel row stand that belong to the arrays, one after the other.
    columns: Vec<Range<usize>>,
    gradient: Vec<f64>,
    /// 0 where β may rise, −∞ elsewhere.
    rise: Vec<f64>,
    /// 0 where β may fall, ∞ elsewhere.
    fall: Vec<f32>,
    diagonal: Vec<f32>,
    /// The next first variable.
    top: Best,
    /// Where the last step went, if steps are to be conjugate.
    direction: Option<Direction>,
}

/// The values at some places.
fn pick<T: Copy>(values: &[T], places: &[usize]) -> Vec<T> {
    places.iter().map(|&at| values[at]).collect()
}

/// Which variables are gathered, and what is needed to bring the others up to date.
#[derive(Debug)]
struct Aside<L: Lines> {
    variables: Vec<usize>,
    /// Their samples; no kernel matrix has more than fit a u32.
    samples: Vec<u32>,
    /// The arrays of all variables, and the β that their gradient belongs to.
    all: Active,
    beta: Vec<f64>,
    rows: Kept<L::Value>,
}

impl<L: Lines> Aside<L> {
    /// Of all variables, `variables` go on.
    #[allow(clippy::cast_possible_truncation)] // see `samples`
    fn new(lines: L, variables: Vec<usize>, dual: &Dual<'_>, all: Active, beta: Vec<f64>) -> Self {
        Self {
            samples: variables.iter().map(|&v| dual.sample(v) as u32).collect(),
            all,
            beta,
            rows: Kept::new(variables.len(), lines.lend()),
            variables,
        }
    }

    /// Only the variables at these places go on.
    fn narrow(self, places: &[usize]) -> Self {
        Self {
            variables: pick(&self.variables, places),
            samples: pick(&self.samples, places),
            rows: self.rows.narrow(places),
            ..self
        }
    }

    /// Gathers the kernel row of the variable at a place, unless it is kept; that of `other` stays.
    fn gather(&mut self, lines: L, at: usize, other: usize) {
        let samples = &self.samples;
        let write = |out: &mut [_]| lines.pick(samples[at] as usize, samples, out);
        self.rows.keep(at, other, write);
    }
}

/// The kernel row of the variable at a place, all of it or gathered.
enum Line<'s, L: Lines> {
    Whole(L::Line),
    Gathered(&'s [L::Value]),
}

impl<L: Lines> Deref for Line<'_, L> {
    type Target = [L::Value];

    fn deref(&self) -> &[L::Value] {
        match self {
            Self::Whole(row) => row,
            Self::Gathered(row) => row,
        }
    }
}

/// The kernel rows at some places, the first variable's first.
fn read<'s, L: Lines, const N: usize>(
    lines: L,
    dual: &Dual<'_>,
    aside: &'s mut Option<Aside<L>>,
    places: [usize; N],
) -> [Line<'s, L>; N] {
    let Some(aside) = aside else {
        return places.map(|at| Line::Whole(lines.line(dual.sample(at))));
    };
    for at in places {
        aside.gather(lines, at, places[0]);
    }
    places.map(|at| Line::Gathered(aside.rows.get(at)))
}

/// β and the gradient of a running solver.
#[derive(Debug)]
pub(super) struct State<'a, L: Lines> {
    dual: &'a Dual<'a>,
    lines: L,
    bounds: &'a Bounds,
    beta: Vec<f64>,
    active: Active,
    aside: Option<Aside<L>>,
    countdown: usize,
    rows_read: u64,
    /// Room for the choice of a partner.
    differences: Box<[f32; BLOCK]>,
}

impl Active {
    fn new(dual: &Dual<'_>, bounds: &Bounds, start: &Start, conjugate: bool) -> Self {
        let diagonal = dual.gram().diagonal();
        let mut active = Self {
            columns: dual.columns().to_vec(),
            gradient: start.gradient.clone(),
            rise: vec![0.0; dual.len()],
            fall: vec![0.0; dual.len()],
            diagonal: Vec::with_capacity(dual.len()),
            top: Best::NONE,
            direction: conjugate.then(|| Direction::new(dual.len())),
        };
        for range in dual.columns() {
            active.diagonal.extend(&diagonal[range.clone()]);
        }
        for (v, &beta) in start.beta.iter().enumerate() {
            active.mark(v, beta, bounds.range(v));
        }
        active.find_top();
        active
    }

    /// Notes which ways a variable may go.
    fn mark(&mut self, at: usize, beta: f64, (lower, upper): (f64, f64)) {
        self.rise[at] = if beta < upper { 0.0 } else { f64::NEG_INFINITY };
        self.fall[at] = if beta > lower { 0.0 } else { f32::INFINITY };
    }

    /// Moves the β of a pair, along with those of the last direction where these are kept.
    fn go(&mut self, pull: &Pull, beta: &mut [f64], bounds: &Bounds) -> Stride {
        let conjugate = self.direction.as_mut();
        let conjugate = conjugate.and_then(|last| last.stride(pull, beta, bounds));
        conjugate.unwrap_or_else(|| {
            let length = move_between(beta, bounds, pull.variables, pull.length());
            let direction = self.direction.as_mut();
            Stride {
                length,
                turn: direction.and_then(|direction| direction.begin(pull, length)),
            }
        })
    }

    fn find_top(&mut self) {
        self.top = Best::NONE;
        for (at, (g, rise)) in self.gradient.iter().zip(&self.rise).enumerate() {
            self.top.improve(g + rise, at);
        }
    }

    /// The least gradient of those that may fall.
    fn lowest(&self) -> f64 {
        let values = self.gradient.iter().zip(&self.fall);
        let values = values.map(|(g, &fall)| g + f64::from(fall));
        values.fold(f64::INFINITY, f64::min)
    }

    /// The places of the variables that may still be chosen, as far as the gradient says.
    fn unsettled(&self) -> Vec<usize> {
        let lowest = self.lowest();
        let matters = |&at: &usize| {
            let gradient = self.gradient[at];
            match (self.rise[at] == 0.0, self.fall[at] == 0.0) {
                (true, true) => true,
                (true, false) => gradient >= lowest,
                (false, true) => gradient <= self.top.value,
                (false, false) => false,
            }
        };
        (0..self.gradient.len()).filter(matters).collect()
    }

    fn gather(&self, places: &[usize]) -> Self {
        let mut gathered = Self {
            columns: iter::once(0..places.len()).collect(),
            gradient: pick(&self.gradient, places),
            rise: pick(&self.rise, places),
            fall: pick(&self.fall, places),
            diagonal: pick(&self.diagonal, places),
            top: Best::NONE,
            direction: self
                .direction
                .as_ref()
                .map(|_| Direction::new(places.len())),
        };
        gathered.find_top();
        gathered
    }
}

/// Pairs each run of places with where it stands in a kernel row.
fn pieces(columns: &[Range<usize>]) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
    let mut end = 0;
    columns.iter().map(move |column| {
        let start = end;
        end += column.len();
        (start..end, column.clone())
    })
}

impl<'a, L: Lines> State<'a, L> {
    /// `lines` are the rows of the kernel; `conjugate`: whether a step is to be conjugate to the last.
    pub(super) fn new(
        dual: &'a Dual<'a>,
        lines: L,
        bounds: &'a Bounds,
        start: Start,
        conjugate: bool,
    ) -> Self {
        Self {
            active: Active::new(dual, bounds, &start, conjugate),
            dual,
            lines,
            bounds,
            beta: start.beta,
            aside: None,
            countdown: PERIOD.min(dual.len()),
            rows_read: 0,
            differences: Box::new([0.0; BLOCK]),
        }
    }

    pub(super) fn gram(&self) -> &'a Gram<'a> {
        self.dual.gram()
    }

    /// The variable at a place of the active arrays.
    fn variable(&self, at: usize) -> usize {
        self.aside.as_ref().map_or(at, |aside| aside.variables[at])
    }

    /// Chooses the pair to move.
    pub(super) fn select(&mut self) -> Pair {
        let Best {
            value: top,
            at: first,
        } = self.active.top;
        self.rows_read += 1;
        let [row] = read(self.lines, self.dual, &mut self.aside, [first]);
        let active = &self.active;
        let (mut best, mut gap) = (Best::NONE, 0.0_f64);
        for (places, column) in pieces(&active.columns) {
            let (found, difference) = simd::dispatch(Partner {
                lines: self.lines,
                row: &row[column],
                diagonal: &active.diagonal[places.clone()],
                gradient: &active.gradient[places.clone()],
                fall: &active.fall[places.clone()],
                top,
                own: active.diagonal[first],
                differences: &mut self.differences,
            });
            best.improve(found.value, places.start + found.at);
            gap = gap.max(difference);
        }
        Pair {
            first,
            second: best.at,
            gain: best.value,
            gap,
        }
    }

    /// Moves β from the second variable of the pair to the first, as far as it is good to go.
    pub(super) fn step(&mut self, pair: Pair) {
        let (i, j) = (self.variable(pair.first), self.variable(pair.second));
        self.rows_read += 1;
        let places = [pair.first, pair.second];
        let rows = read(self.lines, self.dual, &mut self.aside, places);
        let rows = [&*rows[0], &*rows[1]];
        let active = &mut self.active;
        let value = |row: &[L::Value]| -> f64 {
            let mut pieces = pieces(&active.columns);
            let piece = pieces.find(|(places, _)| places.contains(&pair.second));
            piece.map_or(0.0, |(places, column)| {
                let at = column.start + pair.second - places.start;
                f64::from(self.lines.values(&row[at..=at], &mut L::room())[0])
            })
        };
        let diagonal =
            f64::from(active.diagonal[pair.first]) + f64::from(active.diagonal[pair.second]);
        let curvature = diagonal - 2.0 * value(rows[0]);
        let curvature = if curvature > 0.0 {
            curvature
        } else {
            f64::from(LEAST_CURVATURE)
        };
        let pull = Pull {
            places: (pair.first, pair.second),
            variables: (i, j),
            slope: active.gradient[pair.first] - active.gradient[pair.second],
            curvature,
        };
        let stride = active.go(&pull, &mut self.beta, self.bounds);
        active.mark(pair.first, self.beta[i], self.bounds.range(i));
        active.mark(pair.second, self.beta[j], self.bounds.range(j));
        let mut top = Best::NONE;
        for (places, column) in pieces(&active.columns) {
            let direction = active.direction.as_mut().zip(stride.turn);
            let found = simd::dispatch(Step {
                lines: self.lines,
                rows: rows.map(|row| &row[column.clone()]),
                length: stride.length,
                turned: direction
                    .map(|(direction, turn)| (turn, &mut direction.image[places.clone()])),
                gradient: &mut active.gradient[places.clone()],
                rise: &active.rise[places.clone()],
            });
            top.improve(found.value, places.start + found.at);
        }
        active.top = top;
    }

    /// From time to time, puts the variables aside that seem settled, if they are many.
    pub(super) fn shrink_when_due(&mut self) {
        if self.countdown > 0 {
            self.countdown -= 1;
            return;
        }
        self.countdown = PERIOD.min(self.dual.len());
        let places = self.active.unsettled();
        let (n, left) = (self.active.gradient.len() as f64, places.len() as f64);
        // A row is expected to be read as often again as it was so far, and once at least.
        let readings = (self.rows_read as f64 / n).max(1.0);
        if left * (readings + GATHERING) > n * readings {
            return;
        }
        let gathered = self.active.gather(&places);
        let active = std::mem::replace(&mut self.active, gathered);
        self.aside = Some(match self.aside.take() {
            None => Aside::new(self.lines, places, self.dual, active, self.beta.clone()),
            Some(aside) => aside.narrow(&places),
        });
    }

    /// Lets all variables take part again; false if they did already.
    pub(super) fn restore(&mut self, monitor: &Monitor) -> Result<bool> {
        let Some(aside) = self.aside.take() else {
            return Ok(false);
        };
        let gathered = std::mem::replace(&mut self.active, aside.all);
        let active = &mut self.active;
        self.rows_read +=
            self.dual
                .shift(&aside.beta, &self.beta, &mut active.gradient, monitor)?;
        for (at, &v) in aside.variables.iter().enumerate() {
            active.gradient[v] = gathered.gradient[at];
        }
        // Of those put aside as well: one that was put aside late has moved since the first.
        for (v, &beta) in self.beta.iter().enumerate() {
            active.mark(v, beta, self.bounds.range(v));
        }
        active.find_top();
        active.direction.iter_mut().for_each(Direction::forget);
        self.lines.take_back(aside.rows.into_room());
        // With every gradient exact, it is the best time to put variables aside again.
        self.countdown = 0;
        Ok(true)
    }

    /// The solution, once all variables take part.
    pub(super) fn finish(self, iterations: u64, gap: f64) -> Solution {
        let gradient = self.active.gradient;
        Solution {
            intercept: intercept(&self.beta, &gradient, self.bounds),
            objective: self.dual.objective(&self.beta, &gradient),
            beta: self.beta,
            gradient,
            iterations,
            rows_read: self.rows_read,
            gap,
        }
    }
}

/// Moves `wanted` from β_j to β_i, or as much as the boxes allow; returns how much that was.
fn move_between(beta: &mut [f64], bounds: &Bounds, (i, j): (usize, usize), wanted: f64) -> f64 {
    let (room, supply) = (bounds.upper[i] - beta[i], beta[j] - bounds.lower[j]);
    let length = wanted.min(room).min(supply);
    // Bounds are reached exactly, whatever the rounding.
    beta[i] = if length == room {
        bounds.upper[i]
    } else {
        beta[i] + length
    };
    beta[j] = if length == supply {
        bounds.lower[j]
    } else {
        beta[j] - length
    };
    length
}

/// b: the mean gradient of the free variables, or else the middle of what the bounds allow.
pub(super) fn intercept(beta: &[f64], gradient: &[f64], bounds: &Bounds) -> f64 {
    let (mut sum, mut free) = (0.0, 0_u64);
    let (mut least, mut most) = (f64::NEG_INFINITY, f64::INFINITY);
    for (v, (&beta, &g)) in beta.iter().zip(gradient).enumerate() {
        let (lower, upper) = bounds.range(v);
        match (beta < upper, beta > lower) {
            (true, true) => (sum, free) = (sum + g, free + 1),
            (true, false) => least = least.max(g),
            (false, true) => most = most.min(g),
            (false, false) => {}
        }
    }
    if free > 0 {
        sum / free as f64
    } else {
        f64::midpoint(least, most)
    }
}
