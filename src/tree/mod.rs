//! TreeCV: k-fold cross-validation of incremental learners for at most log2(2k) trainings.
//!
//! # Problem
//! The out-of-fold outputs of a learner for every sample: fold i is answered by a model that has
//! learnt all folds but i. The standard method, [`refit`], trains k models on k − 1 folds each.
//!
//! # Method
//! Algorithm 1 of the paper. A node of a binary tree has a span of folds and a model that has
//! learnt all the others. The model learns the right half and goes on with the left half, and, once
//! more from the same state, learns the left half and goes on with the right half. A span of one
//! fold is evaluated. Rows are fed in another order than by refits: the result is the same for
//! learners that do not mind the order, and within the learner's incremental stability for others
//! (theorems 1 and 2). The theorems take samples to be exchangeable. A fold is answered by a model
//! that has learnt the folds beside it last: rows whose neighbours are alike must be shuffled.
//!
//! A node needs its model twice. [`Strategy`] says whether it copies the model or keeps a log of
//! what it overwrites; when the two halves go to two threads, as they do as long as a thread has
//! nothing to do, the first to come copies. All of them
//! and any number of threads give the same bits. The last nodes, of a few rows that are a fold each,
//! a learner may do by itself ([`Learner::settle`]), with the same result to rounding.
//!
//! # Cost
//! | | tree | refit |
//! |---|---|---|
//! | rows fed | n·log2 k for k a power of two, at most n·log2(2k) | n·(k − 1) |
//! | copies | k − 1, fewer with a log | 0 |
//! | models in memory, one thread | ⌈log2 k⌉ + 1 | 1 |
//!
//! The counters of [`Cost`] are exact: `rows_fed`, `rows_evaluated` and `copies` by [`Strategy::Copy`]
//! do not depend on threads. With a log every fork to another thread adds a copy. `peak_models` are
//! all models that the engine ever made, since it keeps them for reuse: with t threads up to t times
//! those of one, how many exactly is a matter of luck. In nodes that learners do by themselves rows
//! and copies count as in all others, but what is copied there is a few numbers, and no model.
//!
//! # Example
//! ```
//! use onefold::data::{Dense, Examples};
//! use onefold::learners::{Pegasos, PegasosOptions};
//! use onefold::tree::{self, Options};
//! use onefold::{Folds, Monitor};
//!
//! let values: Vec<f64> = (0..32).map(|i| f64::from(i) - 15.5).collect();
//! let codes: Vec<u32> = values.iter().map(|v| u32::from(*v > 0.0)).collect();
//! let examples = Examples::classified(Dense::new(&values, 32, 1)?, &codes, 2)?;
//! let options = PegasosOptions { alpha: 0.1, project: false, intercept: false };
//! let learner = Pegasos::new(options, 1, 2)?;
//! let folds = Folds::contiguous(32, 8)?;
//! let found =
//!     tree::cross_validate(&learner, &examples, &folds, &Options::default(), &Monitor::new())?;
//! assert_eq!(found.outputs.len(), 32);
//! assert_eq!(found.cost.rows_fed, 3 * 32); // n·log2 k; eight refits would feed 7 × 32
//! # Ok::<(), onefold::Error>(())
//! ```
//!
//! # References
//! P. Joulani, A. György, C. Szepesvári, *Fast cross-validation for incremental learning*, IJCAI
//! 2015.

mod feeder;
mod few;
mod learner;
mod narrow;
mod order;
mod pool;
mod recursion;
mod refit;
mod several;
mod spans;
mod undo;

pub use few::{Few, Student};
pub use learner::{Effort, Flat, Learner, Model};
pub use order::Order;
pub use recursion::cross_validate;
pub use refit::{refit, refit_examples};
pub use several::Several;
pub use spans::cross_validate_examples;
pub use undo::{Forget, Log, Undo};

// What any engine that feeds and evaluates models has a use for.
pub(crate) use feeder::Feeder;
pub(crate) use order::Phase;
pub(crate) use pool::{Pool, Workspace};

use crate::data::Samples;
use crate::{Cost, Error, Resampling, Result};

/// How a node of the tree comes back to its model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// Whatever [`Effort`] says is cheaper: copies where much is fed, a log where little is.
    #[default]
    Auto,
    /// A copy of the model.
    Copy,
    /// A log of overwritten values.
    Revert,
}

/// How the tree is walked. The strategy does not change the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// How a node comes back to its model.
    pub strategy: Strategy,
    /// The order of the rows within a training phase.
    pub order: Order,
}

/// The outputs for held-out rows, and what they cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// `n_outputs` numbers for each held-out row, fold after fold.
    pub outputs: Vec<f64>,
    /// How many numbers there are for each row.
    pub n_outputs: usize,
    /// The work done.
    pub cost: Cost,
}

impl Outcome {
    /// From outputs of `model` in the order of the held-out rows, which must be finite unless the
    /// model says otherwise.
    pub(crate) fn new<M: Model, R: Resampling>(
        outputs: Vec<f64>,
        model: &M,
        resampling: &R,
        cost: Cost,
    ) -> Result<Self> {
        let n_outputs = model.n_outputs();
        let infinite = model.may_be_infinite();
        let is_bad = |output: &f64| output.is_nan() || output.is_infinite() && !infinite;
        if let Some(bad) = outputs.iter().position(is_bad) {
            return Err(not_finite(outputs[bad], bad / n_outputs, resampling));
        }
        Ok(Self {
            outputs,
            n_outputs,
            cost,
        })
    }
}

fn not_finite<R: Resampling>(value: f64, mut position: usize, resampling: &R) -> Error {
    let mut fold = 0;
    while position >= resampling.held_out(fold).len() {
        position -= resampling.held_out(fold).len();
        fold += 1;
    }
    let row = resampling.held_out(fold)[position];
    Error::Value {
        place: format!("the learner's output for sample {row} (fold {fold})"),
        value,
        rule: "outputs must be finite; perhaps the learner diverged, or X should be scaled",
    }
}

pub(crate) fn check_samples<D: Samples + ?Sized>(
    data: &D,
    resampling: &impl Resampling,
) -> Result<()> {
    let (expected, found) = (data.n_samples(), resampling.n_samples());
    if expected == found {
        return Ok(());
    }
    Err(Error::Shape {
        what: "samples of cv",
        expected,
        found,
    })
}
