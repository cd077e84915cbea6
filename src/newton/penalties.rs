//! The penalties of all candidates and training sets.

use ndarray::ArrayView2;

use crate::{Error, Resampling, Result};

/// An error unless there is a penalty, finite and not negative, for all rows and for each fold: candidate
/// × training set.
pub(super) fn check_penalties(
    penalties: ArrayView2<'_, f64>,
    folds: &dyn Resampling,
) -> Result<()> {
    let (expected, found) = (folds.n_splits() + 1, penalties.ncols());
    if expected != found {
        return Err(Error::Shape {
            what: "training sets of penalties",
            expected,
            found,
        });
    }
    match penalties.iter().find(|v| !(v.is_finite() && **v >= 0.0)) {
        None => Ok(()),
        Some(&value) => Err(Error::Value {
            place: "penalties".into(),
            value,
            rule: "every penalty must be finite and not negative",
        }),
    }
}

/// Candidates in the order in which each fit to all rows starts from the one before.
pub(super) fn from_strong_to_weak(penalties: ArrayView2<'_, f64>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..penalties.nrows()).collect();
    order.sort_by(|&a, &b| penalties[(b, 0)].total_cmp(&penalties[(a, 0)]));
    order
}
