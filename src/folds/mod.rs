//! Folds and splits: which samples are held out together.
//!
//! [`Folds`] is a partition: every sample is held out exactly once, and a fold trains on all the
//! others. [`Splits`] is anything else: Monte-Carlo, holdout, time series, repeated k-fold.
//!
//! | constructor | scikit-learn's name |
//! |---|---|
//! | [`Folds::contiguous`] | `KFold` |
//! | [`Folds::shuffled`] | `KFold(shuffle=True)`, with a generator of our own |
//! | [`Folds::stratified`] | `StratifiedKFold` |
//! | [`Folds::leave_one_out`] | `LeaveOneOut` |
//! | [`Folds::from_labels`] | `PredefinedSplit` |
//! | [`Splits::new`] | a list of (train, test) pairs |

mod partition;
mod splits;

use std::fmt::Debug;

pub use partition::Folds;
pub use splits::Splits;

use crate::{Error, Result};

/// What [`Folds`] and [`Splits`] have in common: a list of training sets and held-out sets.
///
/// ```
/// use onefold::{Folds, Resampling, Splits};
///
/// let folds = Folds::contiguous(4, 2)?;
/// assert_eq!(folds.partition(), Some(&folds));
/// let holdout = Splits::new(4, vec![(vec![0, 1], vec![2, 3])])?;
/// assert_eq!(holdout.partition(), None);
/// for resampling in [&folds as &dyn Resampling, &holdout] {
///     assert!(resampling.held_out(0).len() == 2);
/// }
/// # Ok::<(), onefold::Error>(())
/// ```
pub trait Resampling: Debug + Sync {
    /// Number of samples.
    fn n_samples(&self) -> usize;

    /// Number of pairs of sets.
    fn n_splits(&self) -> usize;

    /// The rows that `split` trains on, in one or two pieces.
    fn training(&self, split: usize) -> [&[usize]; 2];

    /// The rows that `split` holds out.
    fn held_out(&self, split: usize) -> &[usize];

    /// Where the held-out rows of each split begin among those of all splits, then their number.
    fn test_starts(&self) -> Vec<usize> {
        let mut starts = vec![0];
        for split in 0..self.n_splits() {
            starts.push(starts[split] + self.held_out(split).len());
        }
        starts
    }

    /// The folds, if every sample is held out exactly once and trained on otherwise.
    fn partition(&self) -> Option<&Folds> {
        None
    }

    /// The list of training sets and held-out sets, if they are stored as such.
    fn splits(&self) -> Option<&Splits> {
        None
    }
}

fn reject<T>(reason: String) -> Result<T> {
    Err(Error::Folds { reason })
}
