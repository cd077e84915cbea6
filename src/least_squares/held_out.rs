//! The rows of one fold: those that it predicts, and those that it does not learn from.

use std::borrow::Cow;

use crate::Resampling;

/// One fold.
pub(crate) struct HeldOut<'a> {
    /// The rows that are predicted.
    pub(crate) test: &'a [usize],
    /// D: the rows that are not in the training set, in increasing order.
    pub(crate) removed: Cow<'a, [usize]>,
    /// Whether some row occurs more than once in the training set.
    pub(crate) has_repeats: bool,
}

impl<'a> HeldOut<'a> {
    pub(crate) fn new(folds: &'a dyn Resampling, fold: usize) -> Self {
        let test = folds.held_out(fold);
        if folds.partition().is_some() {
            return Self {
                test,
                removed: Cow::Borrowed(test),
                has_repeats: false,
            };
        }
        let mut is_removed = vec![true; folds.n_samples()];
        let mut has_repeats = false;
        for &row in folds.training(fold).into_iter().flatten() {
            has_repeats |= !is_removed[row];
            is_removed[row] = false;
        }
        let removed = (0..is_removed.len())
            .filter(|&row| is_removed[row])
            .collect();
        Self {
            test,
            removed: Cow::Owned(removed),
            has_repeats,
        }
    }
}

/// The number of rows that a fold removes; a lower bound if its training set repeats rows.
pub(crate) fn n_removed(folds: &dyn Resampling, fold: usize) -> usize {
    let [first, second] = folds.training(fold);
    folds.n_samples().saturating_sub(first.len() + second.len())
}

/// The training set of a fold.
pub(crate) fn training_rows(folds: &dyn Resampling, fold: usize) -> Cow<'_, [usize]> {
    match folds.training(fold) {
        [rows, []] | [[], rows] => Cow::Borrowed(rows),
        both => Cow::Owned(both.concat()),
    }
}
