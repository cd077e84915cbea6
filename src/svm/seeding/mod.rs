//! Alpha seeding: a feasible start of a problem from the solution of a similar one.
//!
//! A rule is a function of the previous solution and of the transition between two training sets: the
//! variables that *leave* (held out now, but not before) and those that *enter* (held out before). It
//! returns a β; there is one small file per rule. The β is then made feasible (boxes and sums) and
//! its gradient is computed, so the solver reaches the same optimum from every start.
//!
//! | rule | starts from | what becomes of the β that leaves |
//! |---|---|---|
//! | `cold` | nothing | |
//! | [`avg`] | all samples | distributed evenly over the free variables |
//! | [`top`] | all samples | to the most similar free variables |
//! | [`withdraw`] | all samples | to similar variables of the same side, or dropped |
//! | [`sir`] | the first fold | to the most similar entering variable of the same side |
//! | [`mir`] | the first fold | entering variables by least squares, all at once |
//! | [`ato`] | the first fold | step by step along the optimality conditions |
//!
//! The paper goes from fold h to fold h + 1. Any two folds differ by their two test sets, so here every
//! fold starts from the same solution: as similar as a neighbor's, and folds are independent.
//! [`merge`](merge()) makes an approximate solution of all samples from those of two folds.
//!
//! # References
//! Wen, Li, Kotagiri, Chen, Chen, Zhang (2017), *Improving efficiency of SVM k-fold
//! cross-validation by alpha seeding*, AAAI. DeCoste, Wagstaff (2000), *Alpha seeding for support
//! vector machines*, KDD. Lee, Keerthi, Ong, DeCoste (2004), *An efficient method for computing
//! leave-one-out error in support vector machines with Gaussian kernels*, IEEE TNN 15.

mod ato;
mod avg;
mod c_path;
mod feasible;
mod gamma_series;
mod least_squares;
mod merge;
mod mir;
mod sir;
mod top;
mod transition;
mod withdraw;

use std::str::FromStr;

pub(super) use self::c_path::CPathSeed;
pub(super) use self::gamma_series::GammaSeries;
pub(super) use self::merge::merge;
pub use self::transition::{SeededStart, Transition};
use crate::{Error, Result};

/// How the starts of folds are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Seeding {
    /// For every fold the best of several starts: withdrawal from two merged folds or from all samples,
    /// SIR, cold. Steps are conjugate.
    #[default]
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
    /// To the most similar variables of the same side.
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

    /// The name of the rule.
    pub fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, rule)| *rule == self);
        found.map_or("auto", |(name, _)| name)
    }
}

impl FromStr for Seeding {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, rule)| *rule).ok_or_else(|| {
            let rules = "one of auto, cold, avg, top, ato, mir, sir, withdraw";
            Error::parameter("seeding", rules, format!("{name:?}"))
        })
    }
}

/// The start of a rule, feasible and with its gradient.
pub fn seed(rule: Seeding, change: &Transition<'_>) -> Result<SeededStart> {
    let mut beta = match rule {
        Seeding::Cold => change.new_bounds.first_point(),
        Seeding::Avg => avg::start(change),
        Seeding::Top => top::start(change),
        Seeding::Ato => ato::start(change)?,
        Seeding::Mir => mir::start(change)?,
        Seeding::Sir => sir::start(change),
        Seeding::Auto | Seeding::Withdraw => withdraw::start(change),
    };
    feasible::make_feasible(&mut beta, change.new_bounds);
    let Transition { dual, monitor, .. } = *change;
    let previous = &change.previous.beta;
    let n_changed = beta.iter().zip(previous).filter(|(new, old)| new != old);
    let n_support = beta.iter().filter(|&&b| b != 0.0);
    let (gradient, rows_read) = if n_changed.count() < n_support.count() {
        let mut gradient = change.previous.gradient.clone();
        let rows_read = dual.shift(previous, &beta, &mut gradient, monitor)?;
        (gradient, rows_read)
    } else {
        dual.gradient(&beta, monitor)?
    };
    Ok(SeededStart::new(beta, gradient, rows_read))
}
