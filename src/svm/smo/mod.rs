//! Sequential minimal optimisation of the signed [dual](super::dual).
//!
//! # Method
//! The working set is LIBSVM's. i maximises g over I_up, the variables below their upper bound; j, in
//! I_low with gⱼ < gᵢ, maximises the gain (gᵢ − gⱼ)² / (Kᵢᵢ + Kⱼⱼ − 2Kᵢⱼ). β moves from j to i until
//! the minimum along this direction or a bound. The solver stops when the *gap*, gᵢ − min g over
//! I_low, is below the tolerance. If groups of variables have sums of their own, each has its i, j is
//! of the same group, and the pair of the greatest gain moves; the gap is the largest of all groups.
//!
//! Steps may be [conjugate] to each other: the same optimum in fewer iterations if few
//! variables are at their bounds.
//!
//! A held-out variable has the box [0, 0]: it never moves, but its gradient is kept, so its decision
//! value p − g + b costs nothing. See [`shrinking`] for the active set.
//!
//! # Cost
//! Two kernel rows per iteration, each read once or twice; of the i of a group only its own columns.
//!
//! # References
//! Fan, Chen, Lin (2005), *Working set selection using second order information*, JMLR 6, with
//! section 7 for ν.

mod active_rows;
mod conjugate;
mod loops;
mod shrinking;

use self::conjugate::{ConjugateDirection, PairStep, StepTaken};
use self::loops::{ArgMax, SelectSecond, TAU, UpdateGradient};
use self::shrinking::{ActiveSet, Piece, Shrunk, active_rows};
use super::dual::{Bounds, Dual, Solution, Start, intercept_and_margin};
use super::gram::{BLOCK, KernelRows};
use crate::runtime::simd;
use crate::{Monitor, Result};

/// Iterations between two polls of the monitor.
const POLL_INTERVAL: u64 = 64;

/// Multiple of the tolerance at which all variables become active once, as in LIBSVM.
const UNSHRINK_AT: f64 = 10.0;

/// Iterations between two attempts to shrink, as in LIBSVM.
const SHRINK_INTERVAL: usize = 1000;

/// Cost of gathering a kernel row, relative to one contiguous read.
const GATHER_COST: f64 = 1.0;

/// Options of the solver.
#[derive(Clone, Copy, Debug)]
pub struct SolverOptions {
    /// The gap at which the solver stops; positive.
    pub tolerance: f64,
    /// Limit on the number of iterations.
    pub max_iterations: u64,
    /// Whether to use shrinking.
    pub shrinking: bool,
    /// Whether steps are conjugate to each other unless a bound blocks them. LIBSVM's are not.
    pub conjugate: bool,
}

impl Default for SolverOptions {
    /// LIBSVM's: a tolerance of 1e-3, no limit on iterations, shrinking.
    fn default() -> Self {
        Self {
            tolerance: 1e-3,
            max_iterations: u64::MAX,
            shrinking: true,
            conjugate: false,
        }
    }
}

/// Solves the dual from a feasible start.
pub fn solve(
    dual: &Dual<'_>,
    bounds: &Bounds,
    start: Start,
    options: &SolverOptions,
    monitor: &Monitor,
) -> Result<Solution> {
    match dual.gram().fast_lookup() {
        Some(lookup) => Solver::new(dual, lookup, bounds, start, options).run(monitor),
        None => Solver::new(dual, dual.gram(), bounds, start, options).run(monitor),
    }
}

/// LIBSVM's working set (i, j), by position in the active set.
#[derive(Clone, Copy, Debug)]
struct WorkingSet {
    i: usize,
    j: usize,
    gain: f64,
    gap: f64,
}

/// The state of a running solver.
#[derive(Debug)]
struct Solver<'a, K: KernelRows> {
    dual: &'a Dual<'a>,
    kernel: K,
    bounds: &'a Bounds,
    options: &'a SolverOptions,
    beta: Vec<f64>,
    active: ActiveSet,
    shrunk: Option<Shrunk<K>>,
    /// Iterations until the next attempt to shrink.
    countdown: usize,
    rows_read: u64,
    /// Scratch of the selection of j.
    differences: Box<[f32; BLOCK]>,
}

impl<'a, K: KernelRows> Solver<'a, K> {
    fn new(
        dual: &'a Dual<'a>,
        kernel: K,
        bounds: &'a Bounds,
        start: Start,
        options: &'a SolverOptions,
    ) -> Self {
        Self {
            active: ActiveSet::new(dual, bounds, &start, options.conjugate),
            dual,
            kernel,
            bounds,
            options,
            beta: start.beta,
            shrunk: None,
            countdown: SHRINK_INTERVAL.min(dual.len()),
            rows_read: 0,
            differences: Box::new([0.0; BLOCK]),
        }
    }

    fn run(mut self, monitor: &Monitor) -> Result<Solution> {
        let is_full = self.dual.gram().is_full();
        let tolerance = self.options.tolerance;
        let mut iterations = 0;
        let mut unshrink_at = UNSHRINK_AT * tolerance;
        let gap = loop {
            // Computing a missing row takes longer than a poll.
            if iterations % POLL_INTERVAL == 0 || !is_full {
                monitor.check()?;
                self.dual.gram().reserve(&[], monitor)?;
            }
            let pair = self.select_working_set();
            if pair.gap < unshrink_at {
                // Once, close to the end: a wrongly shrunk variable is found before the rest is solved
                // to the full tolerance.
                unshrink_at = 0.0;
                if self.unshrink(monitor)? {
                    continue;
                }
            }
            if pair.gap < tolerance || pair.gain <= 0.0 {
                if self.unshrink(monitor)? {
                    continue;
                }
                break pair.gap;
            }
            if iterations == self.options.max_iterations {
                self.unshrink(monitor)?;
                break self.select_working_set().gap;
            }
            self.update(pair);
            iterations += 1;
            // Only after a step: unshrunk variables are considered before they are shrunk again.
            if self.options.shrinking {
                self.shrink_when_due();
            }
        };
        Ok(self.into_solution(iterations, gap))
    }

    /// The variable at a position of the active set.
    fn variable(&self, at: usize) -> usize {
        let shrunk = self.shrunk.as_ref();
        shrunk.map_or(at, |shrunk| shrunk.variables[at])
    }

    fn select_working_set(&mut self) -> WorkingSet {
        let mut best = WorkingSet {
            i: 0,
            j: 0,
            gain: f64::NEG_INFINITY,
            gap: 0.0,
        };
        for group in 0..self.active.g_max.len() {
            let ArgMax {
                value: g_max,
                index: i,
            } = self.active.g_max[group];
            if g_max == f64::NEG_INFINITY {
                continue; // no variable can rise
            }
            self.rows_read += 1;
            let [row] = active_rows(self.kernel, self.dual, &mut self.shrunk, [i]);
            let active = &self.active;
            for piece in active.pieces.iter().filter(|piece| piece.group == group) {
                let positions = piece.positions.clone();
                let (second, difference) = simd::dispatch(SelectSecond {
                    kernel: self.kernel,
                    row: &row[piece.column.clone()],
                    diagonal: &active.diagonal[positions.clone()],
                    gradient: &active.gradient[positions.clone()],
                    low_mask: &active.low_mask[positions.clone()],
                    g_max,
                    k_ii: active.diagonal[i],
                    differences: &mut self.differences,
                });
                best.gap = best.gap.max(difference);
                // The last of equal ones, as in LIBSVM.
                if second.value >= best.gain {
                    (best.i, best.j) = (i, positions.start + second.index);
                    best.gain = second.value;
                }
            }
        }
        best
    }

    /// Moves β along the direction of the pair and updates the gradient.
    fn update(&mut self, pair: WorkingSet) {
        let (i, j) = (self.variable(pair.i), self.variable(pair.j));
        self.rows_read += 1;
        let rows = active_rows(self.kernel, self.dual, &mut self.shrunk, [pair.i, pair.j]);
        let rows = [&*rows[0], &*rows[1]];
        let active = &mut self.active;
        let k_ij = value_at(self.kernel, rows[0], &active.pieces, pair.j);
        let diagonal = f64::from(active.diagonal[pair.i]) + f64::from(active.diagonal[pair.j]);
        let curvature = diagonal - 2.0 * k_ij;
        let curvature = if curvature > 0.0 {
            curvature
        } else {
            f64::from(TAU)
        };
        let step = PairStep {
            positions: (pair.i, pair.j),
            variables: (i, j),
            slope: active.gradient[pair.i] - active.gradient[pair.j],
            curvature,
        };
        let taken = take_step(&mut active.direction, &step, &mut self.beta, self.bounds);
        active.update_masks(pair.i, self.beta[i], self.bounds.range(i));
        active.update_masks(pair.j, self.beta[j], self.bounds.range(j));
        active.g_max.fill(ArgMax::NONE);
        for piece in &active.pieces {
            let positions = piece.positions.clone();
            let conjugate = active.direction.as_mut().zip(taken.mu);
            let conjugate =
                conjugate.map(|(direction, mu)| (mu, &mut direction.kd[positions.clone()]));
            let largest = simd::dispatch(UpdateGradient {
                kernel: self.kernel,
                rows: rows.map(|row| &row[piece.column.clone()]),
                length: taken.length,
                conjugate,
                gradient: &mut active.gradient[positions.clone()],
                up_mask: &active.up_mask[positions.clone()],
            });
            active.g_max[piece.group].include(largest.value, positions.start + largest.index);
        }
    }

    /// Shrinks the active set every [`SHRINK_INTERVAL`] iterations, if that pays.
    fn shrink_when_due(&mut self) {
        if self.countdown > 0 {
            self.countdown -= 1;
            return;
        }
        self.countdown = SHRINK_INTERVAL.min(self.dual.len());
        let positions = self.active.unshrinkable();
        if positions.is_empty() {
            return; // the last step solved the problem, which the next selection finds
        }
        let (n, left) = (self.active.gradient.len() as f64, positions.len() as f64);
        // Each row is expected to be read as often as so far, and at least once.
        let reads_per_row = (self.rows_read as f64 / n).max(1.0);
        if left * (reads_per_row + GATHER_COST) > n * reads_per_row {
            return;
        }
        let gathered = self.active.gather(&positions);
        let active = std::mem::replace(&mut self.active, gathered);
        self.shrunk = Some(match self.shrunk.take() {
            None => {
                let beta = self.beta.clone();
                Shrunk::new(self.kernel, positions, self.dual, active, beta)
            }
            Some(shrunk) => shrunk.shrink_further(&positions),
        });
    }

    /// Reconstructs the gradient and makes all variables active; returns false if they were.
    fn unshrink(&mut self, monitor: &Monitor) -> Result<bool> {
        let Some(shrunk) = self.shrunk.take() else {
            return Ok(false);
        };
        let gathered = std::mem::replace(&mut self.active, shrunk.all);
        let active = &mut self.active;
        let (dual, gradient) = (self.dual, &mut active.gradient);
        self.rows_read += dual.shift(&shrunk.beta, &self.beta, gradient, monitor)?;
        for (at, &v) in shrunk.variables.iter().enumerate() {
            active.gradient[v] = gathered.gradient[at];
        }
        // For shrunk variables too: those shrunk later have moved since `all` was saved.
        for (v, &beta) in self.beta.iter().enumerate() {
            active.update_masks(v, beta, self.bounds.range(v));
        }
        active.find_g_max();
        let direction = active.direction.iter_mut();
        direction.for_each(ConjugateDirection::clear);
        self.kernel.buffers().release(shrunk.rows.into_buffer());
        // All gradients are exact now: the best time to shrink again.
        self.countdown = 0;
        Ok(true)
    }

    /// The solution, when all variables are active.
    fn into_solution(self, iterations: u64, gap: f64) -> Solution {
        let gradient = self.active.gradient;
        let (intercept, margin) = intercept_and_margin(&self.beta, &gradient, self.bounds);
        Solution {
            intercept,
            margin,
            objective: self.dual.objective(&self.beta, &gradient),
            beta: self.beta,
            gradient,
            iterations,
            rows_read: self.rows_read,
            gap,
        }
    }
}

/// The value of a kernel row at a position of the active set.
fn value_at<K: KernelRows>(kernel: K, row: &[K::Value], pieces: &[Piece], position: usize) -> f64 {
    let piece = pieces
        .iter()
        .find(|piece| piece.positions.contains(&position));
    piece.map_or(0.0, |piece| {
        let at = piece.column.start + position - piece.positions.start;
        f64::from(kernel.decode(&row[at..=at], &mut K::decode_buffer())[0])
    })
}

/// Moves β along the conjugate direction if there is one, otherwise along that of the pair.
fn take_step(
    direction: &mut Option<ConjugateDirection>,
    pair: &PairStep,
    beta: &mut [f64],
    bounds: &Bounds,
) -> StepTaken {
    let Some(direction) = direction else {
        let length = move_pair(beta, bounds, pair);
        return StepTaken { length, mu: None };
    };
    direction.step(pair, beta, bounds).unwrap_or_else(|| {
        let length = move_pair(beta, bounds, pair);
        let mu = direction.restart(pair, length);
        StepTaken { length, mu }
    })
}

/// Moves β from j to i as far as the boxes allow; returns the length of the step.
fn move_pair(beta: &mut [f64], bounds: &Bounds, pair: &PairStep) -> f64 {
    let (i, j) = pair.variables;
    let (max_rise, max_fall) = (bounds.upper[i] - beta[i], beta[j] - bounds.lower[j]);
    let length = pair.length().min(max_rise).min(max_fall);
    // Bounds are reached exactly, without rounding.
    beta[i] = if length == max_rise {
        bounds.upper[i]
    } else {
        beta[i] + length
    };
    beta[j] = if length == max_fall {
        bounds.lower[j]
    } else {
        beta[j] - length
    };
    length
}
