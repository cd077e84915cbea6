//! The direction of the last step, and the next one, which is conjugate to it.
//!
//! # Problem
//! A step that moves a pair undoes a part of what the steps before it achieved. Where few variables
//! are at their bounds, as with a large C, a solver of pairs wanders to and fro for most of its
//! time.
//!
//! # Method
//! With D the last direction, the pair's own, e = eᵢ − eⱼ, is turned to D' = e − μD with
//! μ = eᵀKD / DᵀKD, so that D'ᵀKD = 0. The last step went as far along D as the curvature allows,
//! hence gᵀD = 0 and the slope is the pair's, gᵀD' = gᵢ − gⱼ. The curvature is
//! D'ᵀKD' = eᵀKe − μ eᵀKD, never more than the pair's: the step gains no less. A step that would
//! leave the box of any variable is not made; the pair moves alone, and what was before is
//! forgotten.
//!
//! # Cost
//! KD, one number a variable that takes part, is read and written in a step. Of D only a few dozen
//! entries are left, since what a variable once had is multiplied by μ in every step.
//!
//! # References
//! Torres-Barrán, Alaíz, Dorronsoro (2021), *Faster SVM training via conjugate SMO*, Pattern
//! Recognition 111.

use super::smo::Bounds;

/// Entries that matter no more: less than this of the pair's own.
const NOTHING: f64 = 1e-13;

/// With more entries than this, it pays to look for those that are nothing.
const MANY: usize = 48;

/// Of a pair's curvature, what must be left in a conjugate direction: with less, it is rounding.
const LEAST_LEFT: f64 = 1e-6;

/// A variable and its entry in D.
#[derive(Clone, Copy, Debug)]
struct Entry {
    variable: usize,
    value: f64,
}

/// The direction of the last step, if that went all its way; no entries otherwise.
#[derive(Debug)]
pub(super) struct Direction {
    entries: Vec<Entry>,
    /// KD of the variables that take part; it has no meaning while there are no entries.
    pub(super) image: Vec<f64>,
    /// DᵀKD.
    curvature: f64,
}

/// A pair that is to move, and what drives it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pull {
    /// Where the two stand among those that take part.
    pub(super) places: (usize, usize),
    pub(super) variables: (usize, usize),
    /// gᵢ − gⱼ.
    pub(super) slope: f64,
    /// eᵀKe.
    pub(super) curvature: f64,
}

impl Pull {
    /// How far the pair would go alone, if there were no bounds.
    pub(super) fn length(&self) -> f64 {
        self.slope / self.curvature
    }
}

/// A step that was made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stride {
    pub(super) length: f64,
    /// μ, where the direction of this step is kept for the next one.
    pub(super) turn: Option<f64>,
}

impl Direction {
    /// None yet, among so many variables.
    pub(super) fn new(n_variables: usize) -> Self {
        Self {
            entries: vec![],
            image: vec![0.0; n_variables],
            curvature: 0.0,
        }
    }

    /// Moves β in the pair's direction, made conjugate to the last. Nothing moves where there is no
    /// last one, or where a bound is in the way. The [image](Self::image) is left to the caller.
    pub(super) fn stride(
        &mut self,
        pull: &Pull,
        beta: &mut [f64],
        bounds: &Bounds,
    ) -> Option<Stride> {
        if self.entries.is_empty() {
            return None;
        }
        let (first, second) = pull.places;
        let overlap = self.image[first] - self.image[second];
        let turn = overlap / self.curvature;
        let curvature = pull.curvature - turn * overlap;
        if curvature < LEAST_LEFT * pull.curvature {
            return None;
        }
        self.turn(pull.variables, turn);
        self.curvature = curvature;
        let length = pull.slope / curvature;
        self.walk(length, beta, bounds).then_some(Stride {
            length,
            turn: Some(turn),
        })
    }

    /// The pair moved alone: its direction is the last one, if it went all its way. Returns μ.
    pub(super) fn begin(&mut self, pull: &Pull, length: f64) -> Option<f64> {
        self.forget();
        let is_kept = length == pull.length();
        is_kept.then(|| {
            self.turn(pull.variables, 0.0);
            self.curvature = pull.curvature;
            0.0
        })
    }

    /// There is no last direction.
    pub(super) fn forget(&mut self) {
        self.entries.clear();
    }

    /// D ← e − μD.
    fn turn(&mut self, (first, second): (usize, usize), turn: f64) {
        if self.entries.len() > MANY {
            self.entries.retain(|entry| entry.value.abs() > NOTHING);
        }
        for entry in &mut self.entries {
            entry.value *= -turn;
        }
        self.add(first, 1.0);
        self.add(second, -1.0);
    }

    fn add(&mut self, variable: usize, value: f64) {
        let mut entries = self.entries.iter_mut();
        match entries.find(|entry| entry.variable == variable) {
            Some(entry) => entry.value += value,
            None => self.entries.push(Entry { variable, value }),
        }
    }

    /// Moves β along D; not at all, and false, if one of them would come to a bound.
    fn walk(&self, length: f64, beta: &mut [f64], bounds: &Bounds) -> bool {
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
