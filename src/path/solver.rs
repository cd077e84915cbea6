//! Coordinate descent on a working set, with exact steps on the support.
//!
//! # Problem
//! min ½‖y − Xβ‖² + λ₁‖β‖₁ + ½λ₂‖β‖², perhaps with β ≥ 0. With g = Xᵀ(y − Xβ) and
//! h = g − λ₂β, β is optimal where hⱼ = λ₁·sign(βⱼ) for βⱼ ≠ 0 and |hⱼ| ≤ λ₁ elsewhere.
//!
//! # Method
//! The working set holds the support and the features that violate |hⱼ| ≤ λ₁ most. One
//! coordinate at a time, βⱼ ← soft(gⱼ + Sⱼⱼβⱼ, λ₁) / (Sⱼⱼ + λ₂), S = XᵀX. When a sweep changes no sign,
//! the problem is a linear system on the support A: (S_AA + λ₂I)d = h_A − λ₁·sign(β_A). The step β + d
//! is optimal on A if it changes no sign; otherwise it ends where the first coefficient becomes zero,
//! which still lowers the objective (see `exact_steps`). The system is solved as soon as the sweeps
//! have cost as much.
//!
//! **Certificate.** The dual point c·(y − Xβ), c = min(1, λ₁ / max|hⱼ|), gives the duality gap
//!
//! ½(1 − c)²(‖y − Xβ‖² + λ₂‖β‖²) + Σⱼ (λ₁|βⱼ| − c·βⱼhⱼ),
//!
//! a sum of terms that are not negative, so nothing cancels in it. With λ₂ > 0 strong convexity also
//! bounds the distance to the minimum, by ‖s‖² / 2λ₂ for the smallest subgradient s; the smaller of the
//! two counts (the first is of no use where λ₁ = 0).

use super::exact_steps::ExactSteps;
use crate::runtime::simd::{self, Simd, WithSimd};
use crate::{Monitor, Result};

/// Sweeps after which a problem is given up.
const MAX_SWEEPS: usize = 100_000;
/// Rounds in a row that may leave more than half of the duality gap.
const MAX_STALLED_ROUNDS: usize = 50;
/// The same for gaps that rounding explains.
const MAX_ROUNDING_ROUNDS: usize = 10;
/// Sweeps over one working set between two checks of all features.
const SWEEPS_PER_ROUND: usize = 20;
/// The smallest limit of the working set; otherwise it is twice the support.
const MIN_WORKING_SET: usize = 64;

/// The quadratic ½‖y − Xβ‖² of a training set, with its own copy of what depends on β.
pub(super) trait Quadratic {
    /// ‖y‖².
    fn target_square(&self) -> f64;

    /// Sⱼⱼ; zero for a constant feature.
    fn curvature(&self, j: usize) -> f64;

    /// gⱼ at the current β.
    fn correlation<S: Simd>(&self, simd: S, j: usize) -> f64;

    /// βⱼ ← βⱼ + δ.
    fn step<S: Simd>(&mut self, simd: S, j: usize, delta: f64);

    /// Sets β, writes g, and returns ‖y − Xβ‖². What is written for features that are zero and whose
    /// |gⱼ| is at most `bound` may be any such value.
    fn set<S: Simd>(&mut self, simd: S, beta: &[f64], bound: f64, g: &mut [f64]) -> f64;

    /// Writes S_AA in packed storage.
    fn block<S: Simd>(&mut self, simd: S, support: &[usize], out: &mut Vec<f64>);

    /// Multiplications of one coordinate step.
    fn step_cost(&self) -> usize;

    /// What rounding may change in a duality gap at this β.
    fn gap_error(&self, _beta: &[f64]) -> f64 {
        0.0
    }

    /// Sets whether [`Quadratic::set`] reads the rows, if it does not always; returns whether that is
    /// a change.
    fn use_rows(&mut self, _is_used: bool) -> bool {
        false
    }
}

/// λ₁, λ₂ and the sign constraint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Penalty {
    pub(super) l1: f64,
    pub(super) l2: f64,
    pub(super) positive: bool,
}

impl Penalty {
    #[inline(always)]
    fn soft(&self, value: f64) -> f64 {
        if value > self.l1 {
            value - self.l1
        } else if value < -self.l1 && !self.positive {
            value + self.l1
        } else {
            0.0
        }
    }

    /// How fast the objective falls as βⱼ, which is not zero, grows; from gⱼ.
    #[inline(always)]
    pub(super) fn slope(&self, beta: f64, g: f64) -> f64 {
        g - self.l2 * beta - self.l1 * sign(beta)
    }

    /// |h| as the constraint of the dual problem sees it.
    #[inline(always)]
    fn dual_size(&self, h: f64) -> f64 {
        if self.positive { h } else { h.abs() }
    }

    /// An upper bound on the distance of the objective at β from its minimum, given g and ‖y − Xβ‖².
    pub(super) fn gap(&self, beta: &[f64], g: &[f64], residual_square: f64) -> f64 {
        let pairs = || beta.iter().zip(g).map(|(&b, &g)| (b, g - self.l2 * b));
        let largest = pairs().map(|(_, h)| self.dual_size(h)).fold(0.0, f64::max);
        let c = if largest > self.l1 {
            self.l1 / largest
        } else {
            1.0
        };
        let norm: f64 = beta.iter().map(|b| b * b).sum();
        let slack = pairs()
            .map(|(b, h)| self.l1 * b.abs() - c * b * h)
            .sum::<f64>();
        let dual = 0.5 * (1.0 - c).powi(2) * (residual_square + self.l2 * norm) + slack.max(0.0);
        if self.l2 == 0.0 {
            return dual;
        }
        let subgradient = pairs().map(|(b, h)| {
            let violated = self.dual_size(h) - self.l1;
            if b == 0.0 {
                violated.max(0.0)
            } else {
                h - self.l1 * sign(b)
            }
        });
        let square: f64 = subgradient.map(|s| s * s).sum();
        dual.min(square / (2.0 * self.l2))
    }
}

/// How a problem was solved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Solved {
    /// The duality gap of ½‖y − Xβ‖² + …
    pub(super) gap: f64,
    /// Sweeps over working sets, and exact steps.
    pub(super) n_iterations: usize,
}

/// The current β, and buffers.
#[derive(Debug, Default)]
pub(super) struct Solver {
    pub(super) beta: Vec<f64>,
    g: Vec<f64>,
    working: Vec<usize>,
    exact: ExactSteps,
    /// β of the smallest duality gap of the problem.
    best: Vec<f64>,
}

impl Solver {
    /// A solver at β = 0.
    pub(super) fn new(n_features: usize) -> Self {
        Self {
            beta: vec![0.0; n_features],
            g: vec![0.0; n_features],
            ..Self::default()
        }
    }

    /// Improves β until the duality gap is at most `tol`·‖y‖².
    pub(super) fn solve(
        &mut self,
        quadratic: &mut impl Quadratic,
        penalty: Penalty,
        tol: f64,
        monitor: &Monitor,
    ) -> Result<Solved> {
        let target = tol * quadratic.target_square();
        let (mut n_iterations, mut work) = (0, 0);
        let (mut smallest, mut n_stalled) = (f64::INFINITY, 0);
        quadratic.use_rows(false);
        self.best.clone_from(&self.beta);
        loop {
            monitor.check()?;
            let residual_square = simd::dispatch(Set(self, quadratic, penalty.l1));
            let gap = penalty.gap(&self.beta, &self.g, residual_square);
            n_stalled = if gap < 0.5 * smallest {
                0
            } else {
                n_stalled + 1
            };
            if gap < smallest {
                smallest = gap;
                self.best.clone_from(&self.beta);
            }
            let max_stalled = if smallest <= quadratic.gap_error(&self.best) {
                MAX_ROUNDING_ROUNDS
            } else {
                MAX_STALLED_ROUNDS
            };
            let is_given_up = n_iterations >= MAX_SWEEPS || n_stalled > max_stalled || gap.is_nan();
            if smallest <= target || is_given_up {
                self.beta.clone_from(&self.best);
                let is_trusted = quadratic.gap_error(&self.best) <= target;
                if !is_trusted && quadratic.use_rows(true) {
                    (smallest, n_stalled) = (f64::INFINITY, 0);
                    continue;
                }
                return Ok(Solved {
                    gap: smallest,
                    n_iterations,
                });
            }
            self.choose_working_set(quadratic, penalty);
            let round = Round {
                solver: self,
                quadratic,
                penalty,
                target: 0.1 * target,
                work: &mut work,
            };
            n_iterations += simd::dispatch(round);
        }
    }

    /// The support, and the features that violate |hⱼ| ≤ λ₁ most.
    fn choose_working_set(&mut self, quadratic: &impl Quadratic, penalty: Penalty) {
        self.working.clear();
        let features = 0..self.beta.len();
        self.working
            .extend(features.clone().filter(|&j| self.beta[j] != 0.0));
        let limit = MIN_WORKING_SET.max(2 * self.working.len());
        let excess = |j: usize| penalty.dual_size(self.g[j]) - penalty.l1;
        let is_violated =
            |&j: &usize| self.beta[j] == 0.0 && excess(j) > 0.0 && quadratic.curvature(j) > 0.0;
        let mut violated: Vec<usize> = features.filter(is_violated).collect();
        let room = limit - self.working.len();
        if violated.len() > room {
            violated.select_nth_unstable_by(room, |&i, &j| {
                excess(j).total_cmp(&excess(i)).then(i.cmp(&j))
            });
            violated.truncate(room);
        }
        self.working.extend(violated);
        self.working.sort_unstable();
    }

    /// One pass over the working set; returns whether β changed, and whether a sign did.
    #[inline(always)]
    fn sweep<S: Simd>(
        &mut self,
        simd: S,
        quadratic: &mut impl Quadratic,
        penalty: Penalty,
    ) -> (bool, bool) {
        let (mut is_moved, mut is_flipped) = (false, false);
        for &j in &self.working {
            let (curvature, old) = (quadratic.curvature(j), self.beta[j]);
            let at_zero = quadratic.correlation(simd, j) + curvature * old;
            let new = penalty.soft(at_zero) / (curvature + penalty.l2);
            if new != old {
                quadratic.step(simd, j, new - old);
                self.beta[j] = new;
                is_moved = true;
                is_flipped |= sign(new) != sign(old);
            }
        }
        (is_moved, is_flipped)
    }
}

pub(super) fn sign(value: f64) -> f64 {
    if value == 0.0 { 0.0 } else { value.signum() }
}

/// Brings a quadratic to the solver's β and returns ‖y − Xβ‖².
struct Set<'a, Q>(&'a mut Solver, &'a mut Q, f64);

impl<Q: Quadratic> WithSimd for Set<'_, Q> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        self.1.set(simd, &self.0.beta, self.2, &mut self.0.g)
    }
}

/// Sweeps and exact steps on one working set; returns their number.
struct Round<'a, Q> {
    solver: &'a mut Solver,
    quadratic: &'a mut Q,
    penalty: Penalty,
    /// A decrease of the objective that is not worth a step.
    target: f64,
    /// Multiplications since the last exact steps.
    work: &'a mut usize,
}

impl<Q: Quadratic> WithSimd for Round<'_, Q> {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> usize {
        let Self {
            solver,
            quadratic,
            penalty,
            target,
            work,
        } = self;
        let mut n_steps = 0;
        for _ in 0..SWEEPS_PER_ROUND {
            let (is_moved, is_flipped) = solver.sweep(simd, quadratic, penalty);
            n_steps += 1;
            if !is_moved {
                break;
            }
            *work += solver.working.len() * quadratic.step_cost();
            if is_flipped {
                continue;
            }
            let Solver {
                beta,
                working,
                exact,
                ..
            } = &mut *solver;
            exact.support.clear();
            exact
                .support
                .extend(working.iter().filter(|&&j| beta[j] != 0.0));
            let m = exact.support.len();
            if *work < m * m * m / 6 {
                continue;
            }
            *work = 0;
            n_steps += exact.run(simd, quadratic, penalty, beta, target);
            break;
        }
        n_steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::columns::{ColumnQuadratic, ColumnValues, Columns};

    /// Five columns of eight rows; the last two are a copy and zeros.
    fn columns() -> Columns {
        let n = 8;
        let value = |i: usize, j: usize| match j {
            3 => (i as f64).sin(),
            4 => 0.0,
            _ => (i as f64 * (j + 1) as f64).sin(),
        };
        let values: Vec<f64> = (0..5)
            .flat_map(|j| (0..n).map(move |i| value(i, j)))
            .collect();
        let squares = values.chunks(n).map(|c| c.iter().map(|v| v * v).sum());
        Columns {
            squares: squares.collect(),
            values: ColumnValues::Dense(values),
            roots: vec![1.0; n],
            weight: n as f64,
        }
    }

    fn solve(penalty: Penalty) -> (Vec<f64>, Vec<f64>, f64) {
        let columns = columns();
        let mut quadratic = ColumnQuadratic::new(&columns);
        quadratic.set_output((0..8).map(|i| f64::from(i) - 2.0).collect());
        let mut solver = Solver::new(5);
        let end = solver.solve(&mut quadratic, penalty, 1e-14, &Monitor::new());
        let gap = end.expect("not interrupted").gap;
        (solver.beta, solver.g, gap / quadratic.target_square())
    }

    #[test]
    fn solutions_satisfy_the_optimality_conditions() {
        for (l1, l2, positive) in [
            (0.5, 0.0, false),
            (0.5, 0.7, false),
            (0.5, 0.0, true),
            (0.0, 0.7, false),
            (0.0, 0.7, true),
            (1e3, 0.0, false),
        ] {
            let penalty = Penalty { l1, l2, positive };
            let (beta, g, gap) = solve(penalty);
            assert!(gap <= 1e-14, "{penalty:?}: {gap}");
            for (b, g) in beta.iter().zip(&g) {
                let h = g - l2 * b;
                if *b == 0.0 {
                    assert!(penalty.dual_size(h) <= l1 + 1e-9, "{penalty:?}: {h}");
                } else {
                    assert!((h - l1 * b.signum()).abs() < 1e-6, "{penalty:?}: {h}");
                }
                assert!(!positive || *b >= 0.0);
            }
            assert_eq!(beta[4], 0.0);
        }
    }

    #[test]
    fn a_penalty_above_the_largest_leaves_nothing() {
        let penalty = Penalty {
            l1: 1e3,
            l2: 0.0,
            positive: false,
        };
        assert_eq!(solve(penalty).0, [0.0; 5]);
    }

    #[test]
    fn the_gap_bounds_the_distance_from_the_minimum() {
        let penalty = Penalty {
            l1: 0.5,
            l2: 0.3,
            positive: false,
        };
        let columns = columns();
        let mut quadratic = ColumnQuadratic::new(&columns);
        quadratic.set_output((0..8).map(|i| f64::from(i) - 2.0).collect());
        let mut objective = |beta: &[f64]| {
            let mut solver = Solver::new(5);
            solver.beta.copy_from_slice(beta);
            let square = simd::dispatch(Set(&mut solver, &mut quadratic, 0.0));
            let sizes: f64 = beta.iter().map(|b| b.abs()).sum();
            let norm: f64 = beta.iter().map(|b| b * b).sum();
            let value = 0.5 * square + penalty.l1 * sizes + 0.5 * penalty.l2 * norm;
            (value, penalty.gap(beta, &solver.g, square))
        };
        let (best, _, _) = solve(penalty);
        let minimum = objective(&best).0;
        for step in [0.0, 1e-3, 0.1, 1.0] {
            let beta: Vec<f64> = best.iter().map(|b| b + step).collect();
            let (value, gap) = objective(&beta);
            assert!(value - minimum <= gap + 1e-12, "{step}: {gap}");
        }
    }
}
