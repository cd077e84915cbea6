//! Alpha seeding: from a solved machine to a feasible start of a similar one.
//!
//! A rule is a function of the previous solution and of what changes: the variables that *leave*
//! (they are held out now) and those that *enter* (they were held out before). It returns a β, one
//! small file a rule. Whatever it returns is then moved into the boxes and to the sum 0, and its
//! gradient is computed: so every start is feasible, and the solver ends at the same optimum from
//! each.
//!
//! | rule | starts from | what becomes of the β that leaves |
//! |---|---|---|
//! | [`cold`] | nothing | |
//! | [`avg`] | all samples | spread evenly over the free variables |
//! | [`top`] | all samples | to the most similar free variables |
//! | [`withdraw`] | all samples | to similar variables of the same side, or nowhere |
//! | [`sir`] | the first fold | to the most similar entering variable of the same side |
//! | [`mir`] | the first fold | entering variables by least squares, all at once |
//! | [`ato`] | the first fold | step by step along the optimality conditions |
//!
//! The paper goes from fold h to fold h + 1. Any two folds differ by one pair of test sets, so here
//! every fold starts from the same solution: as near as a neighbour, and independent of the others.
//! [`merge`](merge()) makes of two folds' solutions one that is nearly that of all samples.
//!
//! # References
//! Wen, Li, Kotagiri, Chen, Chen, Zhang (2017), *Improving efficiency of SVM k-fold
//! cross-validation by alpha seeding*, AAAI. DeCoste, Wagstaff (2000), *Alpha seeding for support
//! vector machines*, KDD. Lee, Keerthi, Ong, DeCoste (2004), *An efficient method for computing
//! leave-one-out error in support vector machines with Gaussian kernels*, IEEE TNN 15.

mod along;
mod ato;
mod avg;
mod cold;
mod feasible;
mod least_squares;
mod merge;
mod mir;
mod sir;
mod top;
mod withdraw;

use std::str::FromStr;

use super::smo::{Bounds, Dual, Solution, Start};
use super::state::intercept;
use crate::{Error, Monitor, Result};
pub(super) use along::Along;
pub(super) use merge::merge;

/// How folds are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seeding {
    /// Withdrawal from two folds merged or from all samples, SIR, or cold: for every fold the one that
    /// leaves least to do; conjugate steps.
    Auto,
    /// β = 0.
    Cold,
    /// DeCoste and Wagstaff's rule.
    Avg,
    /// Lee and others' rule.
    Top,
    /// Adjusting alpha towards the optimum.
    Ato,
    /// Multiple instance replacement.
    Mir,
    /// Single instance replacement.
    Sir,
    /// Hand over to the most similar.
    Withdraw,
}

impl Seeding {
    /// Every rule with its name.
    pub const ALL: [(&'static str, Self); 8] = [
        ("auto", Self::Auto),
        ("cold", Self::Cold),
        ("avg", Self::Avg),
        ("top", Self::Top),
        ("ato", Self::Ato),
        ("mir", Self::Mir),
        ("sir", Self::Sir),
        ("withdraw", Self::Withdraw),
    ];

    /// What users call it.
    pub fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, rule)| *rule == self);
        found.map_or("auto", |(name, _)| name)
    }
}

impl FromStr for Seeding {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, rule)| *rule)
            .ok_or_else(|| Error::Parameter {
                name: "seeding",
                rule: "one of auto, cold, avg, top, ato, mir, sir, withdraw",
                value: format!("{name:?}"),
            })
    }
}

/// From this many folds on, the solution of all samples is worth its price to `auto`: folds that
/// start from it differ from it by one test set, and not by two.
const MANY_FOLDS: usize = 50;

impl Seeding {
    /// The rule for a number of folds: two training sets of two folds have nothing in common.
    pub(super) fn resolve(self, n_folds: usize) -> Self {
        match self {
            Self::Auto if n_folds <= 2 => Self::Cold,
            rule => rule,
        }
    }

    /// Whether folds start from the solution of the first.
    pub(super) fn needs_first(self) -> bool {
        matches!(self, Self::Auto | Self::Ato | Self::Mir | Self::Sir)
    }

    /// Whether they start from those of the first two together.
    pub(super) fn needs_second(self, n_folds: usize) -> bool {
        self == Self::Auto && !self.needs_whole(n_folds) && n_folds > 2
    }

    /// Whether they start from the solution of all samples.
    pub(super) fn needs_whole(self, n_folds: usize) -> bool {
        match self {
            Self::Auto => n_folds >= MANY_FOLDS,
            Self::Avg | Self::Top | Self::Withdraw => true,
            Self::Cold | Self::Ato | Self::Mir | Self::Sir => false,
        }
    }
}

/// A solved machine, and the boxes that another one has.
#[derive(Clone, Copy, Debug)]
pub struct Move<'a> {
    /// The variables of both.
    pub dual: &'a Dual<'a>,
    /// The solution of the first.
    pub previous: &'a Solution,
    /// Its boxes.
    pub before: &'a Bounds,
    /// The boxes of the second.
    pub after: &'a Bounds,
    /// Who may stop the making of a start.
    pub monitor: &'a Monitor,
}

impl Move<'_> {
    /// Variables that are held out now and were not before.
    fn leaving(&self) -> Vec<usize> {
        let variables = 0..self.dual.len();
        variables
            .filter(|&v| self.before.is_open(v) && !self.after.is_open(v))
            .collect()
    }

    /// Variables that were held out before and are not now.
    fn entering(&self) -> Vec<usize> {
        let variables = 0..self.dual.len();
        variables
            .filter(|&v| !self.before.is_open(v) && self.after.is_open(v))
            .collect()
    }

    /// Whether a variable of the previous solution is between its bounds, and stays.
    fn is_free(&self, v: usize) -> bool {
        let (lower, upper) = self.before.range(v);
        let beta = self.previous.beta[v];
        lower < beta && beta < upper && self.after.is_open(v)
    }
}

/// A start and what it took.
#[derive(Debug)]
pub struct Seed {
    /// Where the solver starts.
    pub start: Start,
    /// Kernel rows read for its gradient.
    pub rows_read: u64,
}

impl Seed {
    /// β = 0.
    pub(super) fn cold(dual: &Dual<'_>) -> Self {
        Self {
            start: Start::cold(dual),
            rows_read: 0,
        }
    }

    /// Whether this is where a fit from nothing starts.
    pub(super) fn is_cold(&self) -> bool {
        self.start.beta.iter().all(|&b| b == 0.0)
    }

    /// How many variables want to move: their gradient is off the margin, and there is room.
    pub(super) fn violators(&self, bounds: &Bounds, tolerance: f64) -> usize {
        let Start { beta, gradient } = &self.start;
        let margin = intercept(beta, gradient, bounds);
        let wants = |&v: &usize| {
            let (lower, upper) = bounds.range(v);
            let excess = gradient[v] - margin;
            (excess > tolerance && beta[v] < upper) || (excess < -tolerance && beta[v] > lower)
        };
        (0..beta.len()).filter(wants).count()
    }

    /// The dual objective.
    pub(super) fn objective(&self, dual: &Dual<'_>) -> f64 {
        dual.objective(&self.start.beta, &self.start.gradient)
    }
}

/// The start at the nearest feasible β, from the gradient of another.
fn moved(
    dual: &Dual<'_>,
    bounds: &Bounds,
    (from, mut beta): (&[f64], Vec<f64>),
    mut gradient: Vec<f64>,
    monitor: &Monitor,
) -> Result<Seed> {
    feasible::restore(&mut beta, bounds);
    let rows_read = dual.shift(from, &beta, &mut gradient, monitor)?;
    Ok(Seed {
        start: Start { beta, gradient },
        rows_read,
    })
}

/// The start of a rule, feasible and with its gradient.
pub fn seed(rule: Seeding, step: &Move<'_>) -> Result<Seed> {
    let beta = match rule {
        Seeding::Cold => cold::start(step),
        Seeding::Avg => avg::start(step),
        Seeding::Top => top::start(step),
        Seeding::Ato => ato::start(step)?,
        Seeding::Mir => mir::start(step)?,
        Seeding::Sir => sir::start(step),
        Seeding::Auto | Seeding::Withdraw => withdraw::start(step),
    };
    complete(step, beta)
}

/// Makes β feasible and computes its gradient.
fn complete(step: &Move<'_>, mut beta: Vec<f64>) -> Result<Seed> {
    feasible::restore(&mut beta, step.after);
    let previous = &step.previous.beta;
    let moved = beta
        .iter()
        .zip(previous)
        .filter(|(new, old)| new != old)
        .count();
    let kept = beta.iter().filter(|&&b| b != 0.0).count();
    let (gradient, rows_read) = if moved < kept {
        let mut gradient = step.previous.gradient.clone();
        let rows = step
            .dual
            .shift(previous, &beta, &mut gradient, step.monitor)?;
        (gradient, rows)
    } else {
        step.dual.gradient(&beta, step.monitor)?
    };
    Ok(Seed {
        start: Start { beta, gradient },
        rows_read,
    })
}
