//! TreeCV on examples whose folds lie scattered over memory.
//!
//! Every level of the tree reads all rows. Where folds are runs of rows it reads them in a row;
//! where folds were shuffled, every row of every level comes from somewhere else. Copying the rows
//! into the order of the folds costs about as much as one such level, and pays off after a few. The
//! result is the same to the last bit.

use super::feeder::{CACHE, are_scattered};
use super::learner::Learner;
use super::{Options, Outcome, recursion};
use crate::data::{Examples, Rows};
use crate::{Folds, Monitor, Result};

/// Folds from which a copy pays: three levels of the tree and an evaluation.
const MANY_FOLDS: usize = 8;

/// Stored values that are copied at most: a gigabyte.
const LARGEST: usize = 1 << 27;

/// [`cross_validate`](super::cross_validate) for examples in memory, which are copied into the order
/// of the folds first where that pays: folds are scattered, there are many of them, and the rows
/// neither fit the cache nor take more than a gigabyte.
pub fn cross_validate_examples<'e, R, L>(
    learner: &L,
    examples: &Examples<'e, R>,
    folds: &Folds,
    options: &Options,
    monitor: &Monitor,
) -> Result<Outcome>
where
    R: Rows,
    L: Learner<Examples<'e, R>> + for<'s> Learner<Examples<'s, R::View<'s>>>,
{
    super::check_samples(examples, folds)?;
    let rows = folds.rows(0..folds.len());
    let n_stored = examples.rows().n_stored();
    let pays = folds.len() >= MANY_FOLDS
        && n_stored as f64 > CACHE
        && n_stored <= LARGEST
        && are_scattered(rows);
    let gathered = if pays { examples.gather(rows) } else { None };
    let (outputs, cost) = match &gathered {
        Some(gathered) => {
            let folds = folds.in_fold_order();
            recursion::run(learner, &gathered.view(), &folds, options, monitor)?
        }
        None => recursion::run(learner, examples, folds, options, monitor)?,
    };
    Outcome::new(outputs, learner, folds, cost)
}
