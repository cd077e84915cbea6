//! Conjugate SMO: directions that are conjugate to the previous one.
//!
//! # Problem
//! The step of a pair partly undoes the steps before it. If few variables are at their bounds, as with
//! a large C, most iterations of plain SMO oscillate.
//!
//! # Method
//! With d the previous direction, the direction of the pair, e = eᵢ − eⱼ, becomes d' = e − μd with
//! μ = eᵀKd / dᵀKd, so that d'ᵀKd = 0. The previous step minimised along d, hence gᵀd = 0 and the
//! slope is that of the pair, gᵀd' = gᵢ − gⱼ. The curvature is d'ᵀKd' = eᵀKe − μ eᵀKd, never more
//! than that of the pair: the gain is no smaller. If the step would leave the box of any variable,
//! the pair moves alone and the previous direction is discarded.
//!
//! # Cost
//! Kd, one number per active variable, is read and written in a step. d has a few dozen entries,
//! because old entries are multiplied by μ in every step.
//!
//! # References
//! Torres-Barrán, Alaíz, Dorronsoro (2021), *Faster SVM training via conjugate SMO*, Pattern
//! Recognition 111.

use crate::svm::dual::Bounds;

/// Entries of d below this are dropped.
const MIN_ENTRY: f64 = 1e-13;

/// Number of entries of d above which small ones are dropped.
const MAX_ENTRIES: usize = 48;

/// Minimum curvature of d', relative to that of the pair: less is rounding.
const MIN_CURVATURE_RATIO: f64 = 1e-6;

/// A variable and its entry in d.
#[derive(Clone, Copy, Debug)]
struct Entry {
    variable: usize,
    value: f64,
}

/// The direction d of the last step if no bound cut it short; otherwise without entries.
#[derive(Debug)]
pub(super) struct ConjugateDirection {
    entries: Vec<Entry>,
    /// Kd of the active variables; undefined while there are no entries.
    pub(super) kd: Vec<f64>,
    /// dᵀKd.
    curvature: f64,
}

/// The step of a pair without bounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct PairStep {
    /// Positions of i and j in the active arrays.
    pub(super) positions: (usize, usize),
    pub(super) variables: (usize, usize),
    /// gᵢ − gⱼ.
    pub(super) slope: f64,
    /// eᵀKe.
    pub(super) curvature: f64,
}

impl PairStep {
    /// Length of the step of the pair alone.
    pub(super) fn length(&self) -> f64 {
        self.slope / self.curvature
    }
}

/// A step that was taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepTaken {
    pub(super) length: f64,
    /// μ, if the direction is kept for the next step.
    pub(super) mu: Option<f64>,
}

impl ConjugateDirection {
    /// No direction yet, for `n_active` variables.
    pub(super) fn new(n_active: usize) -> Self {
        Self {
            entries: vec![],
            kd: vec![0.0; n_active],
            curvature: 0.0,
        }
    }

    /// Moves β along the pair's direction made conjugate to the previous one. Returns `None`, with β
    /// unchanged, if there is no previous direction or a bound blocks the step. The caller updates
    /// [`kd`](Self::kd).
    pub(super) fn step(
        &mut self,
        pair: &PairStep,
        beta: &mut [f64],
        bounds: &Bounds,
    ) -> Option<StepTaken> {
        if self.entries.is_empty() {
            return None;
        }
        let (i, j) = pair.positions;
        let overlap = self.kd[i] - self.kd[j];
        let mu = overlap / self.curvature;
        let curvature = pair.curvature - mu * overlap;
        if curvature < MIN_CURVATURE_RATIO * pair.curvature {
            return None;
        }
        self.turn(pair.variables, mu);
        self.curvature = curvature;
        let length = pair.slope / curvature;
        self.move_beta(length, beta, bounds).then_some(StepTaken {
            length,
            mu: Some(mu),
        })
    }

    /// Restarts from the direction of a pair that moved alone by `length`, unless a bound cut its step
    /// short. Returns μ = 0 then.
    pub(super) fn restart(&mut self, pair: &PairStep, length: f64) -> Option<f64> {
        self.clear();
        let is_unbounded = length == pair.length();
        is_unbounded.then(|| {
            self.turn(pair.variables, 0.0);
            self.curvature = pair.curvature;
            0.0
        })
    }

    /// Discards the direction.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    /// d ← e − μd.
    fn turn(&mut self, (i, j): (usize, usize), mu: f64) {
        if self.entries.len() > MAX_ENTRIES {
            self.entries.retain(|entry| entry.value.abs() > MIN_ENTRY);
        }
        for entry in &mut self.entries {
            entry.value *= -mu;
        }
        self.add(i, 1.0);
        self.add(j, -1.0);
    }

    fn add(&mut self, variable: usize, value: f64) {
        let mut entries = self.entries.iter_mut();
        match entries.find(|entry| entry.variable == variable) {
            Some(entry) => entry.value += value,
            None => self.entries.push(Entry { variable, value }),
        }
    }

    /// Moves β along d; returns false, with β unchanged, if a variable would reach a bound.
    fn move_beta(&self, length: f64, beta: &mut [f64], bounds: &Bounds) -> bool {
        let stays_inside = self.entries.iter().all(|entry| {
            let (lower, upper) = bounds.range(entry.variable);
            let end = beta[entry.variable] + length * entry.value;
            lower < end && end < upper
        });
        if stays_inside {
            for entry in &self.entries {
                beta[entry.variable] += length * entry.value;
            }
        }
        stays_inside
    }
}
