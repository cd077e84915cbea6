//! Splits: any list of training and test sets.

use super::{Resampling, reject};
use crate::Result;

/// Any list of train and test sets over the same samples.
///
/// ```
/// use onefold::Splits;
///
/// // Time series: train on the past, test on what follows.
/// let pairs = (2..5).map(|now| ((0..now).collect(), vec![now])).collect();
/// let splits = Splits::new(5, pairs)?;
/// assert_eq!(splits.len(), 3);
/// assert_eq!((splits.train(1), splits.test(1)), (&[0, 1, 2][..], &[3][..]));
/// # Ok::<(), onefold::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Splits {
    n_samples: usize,
    pairs: Vec<(Vec<usize>, Vec<usize>)>,
}

impl Splits {
    /// Checks (train, test) pairs: no empty side, no row out of range. Sets may overlap, and rows
    /// may repeat.
    pub fn new(n_samples: usize, pairs: Vec<(Vec<usize>, Vec<usize>)>) -> Result<Self> {
        if pairs.is_empty() {
            return reject("there are no splits".into());
        }
        for (split, (train, test)) in pairs.iter().enumerate() {
            for (side, rows) in [("train", train), ("test", test)] {
                if rows.is_empty() {
                    return reject(format!("the {side} set of split {split} is empty"));
                }
                if let Some(row) = rows.iter().find(|&&row| row >= n_samples) {
                    return reject(format!(
                        "the {side} set of split {split} names sample {row} of {n_samples}"
                    ));
                }
            }
        }
        Ok(Self { n_samples, pairs })
    }

    /// Number of splits.
    #[allow(clippy::len_without_is_empty)] // there is always at least one
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Number of samples.
    pub fn n_samples(&self) -> usize {
        self.n_samples
    }

    /// The rows a split trains on.
    pub fn train(&self, split: usize) -> &[usize] {
        &self.pairs[split].0
    }

    /// The rows a split holds out.
    pub fn test(&self, split: usize) -> &[usize] {
        &self.pairs[split].1
    }
}

impl Resampling for Splits {
    fn n_samples(&self) -> usize {
        self.n_samples
    }

    fn n_splits(&self) -> usize {
        self.len()
    }

    fn training(&self, split: usize) -> [&[usize]; 2] {
        [self.train(split), &[]]
    }

    fn held_out(&self, split: usize) -> &[usize] {
        self.test(split)
    }

    fn splits(&self) -> Option<&Splits> {
        Some(self)
    }
}
