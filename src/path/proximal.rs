//! Proximal Newton steps of one logistic regression with an ℓ1 penalty.
//!
//! # Problem
//! min Σ w ℓ(y, z) + λ₁‖φ‖₁ + ½λ₂‖φ‖², z = ⟨φ, x⟩ + b, where b is no parameter of the penalty, or the
//! coefficient of a constant feature like any other.
//!
//! # Method
//! A step goes to the minimum of the quadratic model (see `curvature`), by the solver of elastic nets to a
//! hundredth of the duality gap, and is halved until the derivative along it is negative, or a tenth of
//! that at its start. Then b is moved to where Σ wℓ' = 0. A Hessian serves as long as every step with it
//! leaves at most a quarter of the gap: the first of a fold is that of all rows, less that of the rows it
//! holds out.
//!
//! # Certificate
//! For the logistic loss, the dual variables c·wℓ', c = min(1, λ₁ / max|hⱼ|) with h = −∇ − λ₂φ, leave of the
//! losses Σ w·KL(q‖p) ≤ (1 − c)² Σ w ℓ'²/ℓ'', as q − p = (c − 1)ℓ' and KL is at most χ². So the gap is that
//! of `solver` with ‖y − Xβ‖² = 2Σ w ℓ'²/ℓ''.
//!
//! # References
//! Lee, Sun and Saunders, "Proximal Newton-type methods for minimizing composite functions" (2014); Yuan,
//! Ho and Lin, "An improved GLMNET for l1-regularized logistic regression" (2012); Massias, Vaiter, Gramfort
//! and Salmon, "Dual extrapolation for sparse generalized linear models" (2020), for the gap.

use super::columns::ColumnQuadratic;
use super::curvature::{Hessian, weighted_columns};
use super::solver::{Penalty, Quadratic, Solver, sign};
use crate::linear::{Design, FoldMap};
use crate::newton::{Loss, Subproblem, dot, weigh};
use crate::{Monitor, Result};

/// Steps after which a problem is left as it is.
const MAX_STEPS: usize = 200;
/// Steps in a row that may leave more than half of the smallest gap.
const MAX_STALLED_STEPS: usize = 12;
/// The part of the gap that a step with an older Hessian may leave.
const MAX_LEFT: f64 = 0.25;
/// The part of the duality gap to which the quadratic model is solved.
const MODEL_GAP: f64 = 0.01;
/// The part of the slope at its start that may be left, with the other sign, where a step ends.
const SLOPE_RATIO: f64 = 0.1;
const MAX_HALVINGS: usize = 40;
/// Newton steps of the intercept at a time, and what they leave of Σ w|ℓ'|.
const MAX_INTERCEPT_STEPS: usize = 20;
const INTERCEPT_TOLERANCE: f64 = 1e-14;
/// The smallest working set of columns; otherwise it is twice the support.
const MIN_WORKING_SET: usize = 64;
/// The largest ℓ'²/ℓ'' of a row: larger ones make a gap infinite.
const MAX_RATIO: f64 = 1e200;

/// One training set, one output and one penalty, and where its parameters are.
pub(super) struct Problem<'a> {
    pub(super) subproblem: Subproblem,
    pub(super) map: &'a FoldMap,
    pub(super) penalty: Penalty,
    /// Whether the last parameter is an intercept without a penalty.
    is_free: bool,
    targets: &'a [f64],
    /// Of all rows; zero of those that are held out.
    weights: Vec<f64>,
    /// φ.
    pub(super) params: Vec<f64>,
    /// z of all rows.
    pub(super) z: Vec<f64>,
    /// wℓ' and wℓ''.
    pub(super) first: Vec<f64>,
    pub(super) second: Vec<f64>,
    /// −∇ of the losses, of the parameters with a penalty.
    g: Vec<f64>,
    pub(super) gap: f64,
    target: f64,
    smallest: f64,
    n_stalled: usize,
    pub(super) n_steps: usize,
    hessian: Option<Hessian>,
    /// Steps since the Hessian was set.
    hessian_age: usize,
    pub(super) is_finished: bool,
    /// φ at the end of the whole step.
    proposal: Vec<f64>,
    is_forming: bool,
}

impl<'a> Problem<'a> {
    /// A problem to be solved to a relative gap of `tol`.
    pub(super) fn new(
        subproblem: Subproblem,
        (map, is_free): (&'a FoldMap, bool),
        (targets, weights): (&'a [f64], Vec<f64>),
        params: Vec<f64>,
        is_forming: bool,
    ) -> Self {
        let n = targets.len();
        Self {
            subproblem,
            map,
            penalty: Penalty {
                l1: 0.0,
                l2: 0.0,
                positive: false,
            },
            is_free,
            targets,
            weights,
            proposal: params.clone(),
            params,
            z: vec![0.0; n],
            first: vec![0.0; n],
            second: vec![0.0; n],
            g: vec![],
            gap: f64::INFINITY,
            target: 0.0,
            smallest: f64::INFINITY,
            n_stalled: 0,
            n_steps: 0,
            hessian: None,
            hessian_age: 0,
            is_finished: false,
            is_forming,
        }
    }

    /// The penalty, and the relative gap at which the problem is solved.
    pub(super) fn set_penalty(&mut self, l1: f64, l2: f64, tol: f64) {
        self.penalty = Penalty {
            l1,
            l2,
            positive: false,
        };
        self.target = tol * self.loss_at_zero();
        (self.gap, self.smallest) = (f64::INFINITY, f64::INFINITY);
        (self.n_steps, self.n_stalled) = (0, 0);
        self.is_finished = false;
    }

    /// Σ w ℓ(y, 0).
    pub(super) fn loss_at_zero(&self) -> f64 {
        self.weights.iter().sum::<f64>() * std::f64::consts::LN_2
    }

    fn n_penalised(&self) -> usize {
        self.params.len() - usize::from(self.is_free)
    }

    /// Takes the predictors of all rows.
    pub(super) fn set_predictors(&mut self, z: impl Iterator<Item = f64>) {
        self.z.clear();
        self.z.extend(z);
        self.differentiate();
        self.move_intercept();
    }

    fn differentiate(&mut self) {
        Loss::Logistic.derivatives(self.targets, &self.z, &mut self.first, &mut self.second);
        weigh(&mut self.first, &self.weights);
        weigh(&mut self.second, &self.weights);
    }

    /// Moves a free intercept to its optimum. Along a step of at most 1, ℓ'' changes by a factor of at most
    /// e, so that no step is too long.
    fn move_intercept(&mut self) {
        if !self.is_free {
            return;
        }
        for _ in 0..MAX_INTERCEPT_STEPS {
            let slope: f64 = self.first.iter().sum();
            let size: f64 = self.first.iter().map(|v| v.abs()).sum();
            let curvature: f64 = self.second.iter().sum();
            let step = -slope / curvature;
            if slope.abs() <= INTERCEPT_TOLERANCE * size || !step.is_finite() {
                return;
            }
            let step = step.clamp(-1.0, 1.0);
            self.z.iter_mut().for_each(|z| *z += step);
            if let Some(intercept) = self.params.last_mut() {
                *intercept += step;
            }
            self.differentiate();
        }
    }

    /// Takes the common gradient of the losses; finishes the problem if its gap is small enough.
    pub(super) fn assess(&mut self, gradient: &[f64]) {
        self.g = self.map.gradient(gradient);
        self.g.truncate(self.n_penalised());
        self.g.iter_mut().for_each(|g| *g = -*g);
        let beta = &self.params[..self.n_penalised()];
        let gap = self
            .penalty
            .gap(beta, &self.g, 2.0 * self.residual_square());
        if gap > MAX_LEFT * self.gap {
            self.hessian = None;
        }
        self.n_stalled = if gap < 0.5 * self.smallest {
            0
        } else {
            self.n_stalled + 1
        };
        self.gap = gap;
        self.smallest = self.smallest.min(gap);
        self.is_finished = gap <= self.target
            || gap.is_nan()
            || self.n_steps >= MAX_STEPS
            || self.n_stalled > MAX_STALLED_STEPS;
    }

    /// Σ w ℓ'²/ℓ''.
    fn residual_square(&self) -> f64 {
        let pairs = self.first.iter().zip(&self.second);
        let ratios = pairs.map(|(first, second)| {
            if *first == 0.0 {
                0.0
            } else {
                (first * first / second).min(MAX_RATIO)
            }
        });
        ratios.sum()
    }

    /// Whether the next step needs a Hessian that is to be formed.
    pub(super) fn needs_hessian(&self) -> bool {
        self.is_forming && self.hessian.is_none()
    }

    /// Takes the Hessian at φ.
    pub(super) fn set_hessian(&mut self, hessian: Option<Hessian>) {
        self.hessian_age = 0;
        self.hessian = hessian;
    }

    /// Solves the quadratic model.
    pub(super) fn propose(&mut self, design: &Design<'_>, monitor: &Monitor) -> Result<()> {
        let target = MODEL_GAP * self.gap.max(self.target);
        let residual_square = self.residual_square();
        let n = self.n_penalised();
        self.proposal.clone_from(&self.params);
        if let Some(hessian) = &mut self.hessian {
            let Hessian {
                quadratic,
                intercept_slopes,
                is_constant,
            } = hessian;
            let mut solver = Solver::new(n);
            solver.beta.copy_from_slice(&self.params[..n]);
            quadratic.set_correlation(&solver.beta, &self.g, residual_square);
            for (beta, _) in solver.beta.iter_mut().zip(&*is_constant).filter(|e| *e.1) {
                *beta = 0.0;
            }
            let tol = target / quadratic.target_square().abs().max(f64::MIN_POSITIVE);
            solver.solve(quadratic, self.penalty, tol, monitor)?;
            self.proposal[..n].copy_from_slice(&solver.beta);
            if let Some(intercept) = self.proposal.get_mut(n) {
                let changes = solver.beta.iter().zip(&self.params);
                let changes = changes.map(|(new, old)| new - old);
                let slopes = changes.zip(&*intercept_slopes);
                *intercept -= slopes.map(|(change, slope)| change * slope).sum::<f64>();
            }
            return Ok(());
        }
        let working = self.working_set();
        let at = (&working[..], &self.second[..]);
        let (columns, means) = weighted_columns(design, self.map, at, self.is_free)?;
        let residuals = self.first.iter().zip(&self.second).map(|(first, second)| {
            if *second > 0.0 {
                -first / second.sqrt()
            } else {
                0.0
            }
        });
        let mut solver = Solver::new(working.len());
        for (beta, &j) in solver.beta.iter_mut().zip(&working) {
            *beta = self.params[j];
        }
        let mut quadratic = ColumnQuadratic::new(&columns);
        quadratic.set_residual(&solver.beta, residuals.collect());
        for (beta, square) in solver.beta.iter_mut().zip(&columns.squares) {
            *beta = if *square > 0.0 { *beta } else { 0.0 };
        }
        let tol = target / quadratic.target_square().abs().max(f64::MIN_POSITIVE);
        solver.solve(&mut quadratic, self.penalty, tol, monitor)?;
        for ((&j, beta), mean) in working.iter().zip(&solver.beta).zip(&means) {
            if self.is_free {
                self.proposal[n] -= mean * (beta - self.params[j]);
            }
            self.proposal[j] = *beta;
        }
        Ok(())
    }

    /// The support, and the parameters that violate |hⱼ| ≤ λ₁ most.
    fn working_set(&self) -> Vec<usize> {
        let l1 = self.penalty.l1;
        let (mut working, mut violated): (Vec<usize>, Vec<usize>) = (0..self.n_penalised())
            .filter(|&j| self.params[j] != 0.0 || self.g[j].abs() > l1)
            .partition(|&j| self.params[j] != 0.0);
        let room = MIN_WORKING_SET.max(2 * working.len()) - working.len();
        if violated.len() > room {
            violated.select_nth_unstable_by(room, |&i, &j| {
                let sizes = (self.g[i].abs(), self.g[j].abs());
                sizes.1.total_cmp(&sizes.0).then(i.cmp(&j))
            });
            violated.truncate(room);
        }
        working.extend(violated);
        working.sort_unstable();
        working
    }

    /// Common parameters of φ.
    pub(super) fn common(&self) -> Vec<f64> {
        self.map.to_common(&self.params)
    }

    /// The step in common parameters: near the optimum, differences of predictors have no digits left.
    pub(super) fn step(&self) -> Vec<f64> {
        let pairs = self.proposal.iter().zip(&self.params);
        let step: Vec<f64> = pairs.map(|(end, start)| end - start).collect();
        self.map.to_common(&step)
    }

    /// Goes along the step, which changes the predictors of all rows by as much.
    pub(super) fn advance(&mut self, change: impl Iterator<Item = f64>) {
        self.n_steps += 1;
        let change: Vec<f64> = change.collect();
        let slope = dot(&self.first, &change) + self.penalty_slope(0.0);
        let start = self.z.clone();
        if !(slope < 0.0 && slope.is_finite()) {
            if self.hessian_age == 0 {
                self.n_stalled = MAX_STALLED_STEPS;
            }
            self.hessian = None;
            return;
        }
        self.hessian_age += usize::from(self.is_forming);
        let mut length = 1.0;
        for _ in 0..MAX_HALVINGS {
            for ((z, start), change) in self.z.iter_mut().zip(&start).zip(&change) {
                *z = start + length * change;
            }
            self.differentiate();
            let end = dot(&self.first, &change) + self.penalty_slope(length);
            if end <= SLOPE_RATIO * slope.abs() {
                break;
            }
            length *= 0.5;
        }
        for (param, end) in self.params.iter_mut().zip(&self.proposal) {
            *param = if length < 1.0 {
                *param + length * (end - *param)
            } else {
                *end
            };
        }
        self.move_intercept();
    }

    /// The derivative of the penalty along the step, from before a length, or from the start.
    fn penalty_slope(&self, length: f64) -> f64 {
        let pairs = self.params.iter().zip(&self.proposal);
        let slopes = pairs.take(self.n_penalised()).map(|(start, end)| {
            let change = end - start;
            let value = if length < 1.0 {
                start + length * change
            } else {
                *end
            };
            let side = if value != 0.0 {
                sign(value)
            } else if length > 0.0 {
                -sign(change)
            } else {
                sign(change)
            };
            change * (self.penalty.l1 * side + self.penalty.l2 * value)
        });
        slopes.sum()
    }
}
