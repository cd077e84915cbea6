//! Rows in their layout with scaled values: what kernel matrices are computed from.

use std::fmt::Debug;

use super::FoldScaling;
use crate::Result;
use crate::data::{Csr, Dense, Index, Layout, Row as _};
use crate::runtime::memory;

/// A layout whose stored values can be replaced.
pub(crate) trait ScaledLayout: Layout + Debug + Send {
    /// The same rows with other values.
    type View<'s>: Layout + Debug
    where
        Self: 's;

    /// The same rows with `values` in place of the stored ones.
    fn with_values<'s>(&'s self, values: &'s [f64]) -> Self::View<'s>;

    /// All stored values, scaled for a training set.
    fn scaled(&self, scaling: &FoldScaling, set: usize) -> Result<Vec<f64>> {
        let mut values = vec![];
        memory::reserve("the scaled rows of X", &mut values, self.n_stored())?;
        let scaling = scaling.of_set(set);
        for row in 0..self.n_rows() {
            let entries = self.row(row).entries();
            if scaling.shift.is_none() {
                values.extend(entries.map(|(j, value)| value * scaling.scale[j]));
            } else {
                values.extend(entries.map(|(j, value)| scaling.apply(j, value)));
            }
        }
        Ok(values)
    }
}

impl ScaledLayout for Dense<'_> {
    type View<'s>
        = Dense<'s>
    where
        Self: 's;

    fn with_values<'s>(&'s self, values: &'s [f64]) -> Dense<'s> {
        Dense::with_values(self, values)
    }
}

impl<I: Index> ScaledLayout for Csr<'_, I> {
    type View<'s>
        = Csr<'s, I>
    where
        Self: 's;

    fn with_values<'s>(&'s self, values: &'s [f64]) -> Csr<'s, I> {
        Csr::with_values(self, values)
    }
}

/// Rows that kernel values are computed from.
pub(crate) trait RowStore: Sync + Send + Debug {
    /// The rows in their layout.
    type View<'s>: Layout + Debug
    where
        Self: 's;

    /// The rows.
    fn view(&self) -> Self::View<'_>;
}

impl<R: Layout + Debug> RowStore for &R {
    type View<'s>
        = R
    where
        Self: 's;

    fn view(&self) -> R {
        **self
    }
}

/// The rows of one training set, scaled.
#[derive(Debug)]
pub(crate) struct ScaledValues<'a, R> {
    rows: &'a R,
    values: Vec<f64>,
}

impl<'a, R: ScaledLayout> ScaledValues<'a, R> {
    /// All rows, scaled for a training set: 0 for all samples, fold + 1 for that of a fold.
    pub(crate) fn new(rows: &'a R, scaling: &FoldScaling, set: usize) -> Result<Self> {
        let values = rows.scaled(scaling, set)?;
        Ok(Self { rows, values })
    }
}

impl<R: ScaledLayout> RowStore for ScaledValues<'_, R> {
    type View<'s>
        = R::View<'s>
    where
        Self: 's;

    fn view(&self) -> R::View<'_> {
        self.rows.with_values(&self.values)
    }
}
