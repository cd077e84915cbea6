//! Affine scaling of features, different for every training set.
//!
//! A scaler that is fitted to each training set gives every fold its own rows x' = (x − shift)·scale, of
//! training and test samples alike. Kernel matrices then differ between folds; a matrix
//! [owns](ScaledRows) the scaled rows that it is computed from.

use std::fmt::Debug;

use ndarray::{Array2, Axis};

use crate::data::{Csr, Dense, Index, Layout, Row as _};
use crate::runtime::memory;
use crate::{Error, Result};

/// Shift and scale of every feature: line 0 for all samples, then one line per fold.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    shift: Option<Array2<f64>>,
    scale: Array2<f64>,
}

impl Scaling {
    /// A row x becomes (x − shift)·scale; without a shift, x·scale.
    pub fn new(shift: Option<Array2<f64>>, scale: Array2<f64>) -> Result<Self> {
        let values = scale.iter().chain(shift.iter().flatten());
        if let Some(value) = values.into_iter().find(|value| !value.is_finite()) {
            return Err(Error::parameter("scaling", "finite", value));
        }
        match &shift {
            Some(shift) if shift.dim() != scale.dim() => Err(Error::Shape {
                what: "values of a shift",
                expected: scale.len(),
                found: shift.len(),
            }),
            _ => Ok(Self {
                shift: shift.map(|own| own.as_standard_layout().into_owned()),
                scale: scale.as_standard_layout().into_owned(),
            }),
        }
    }

    /// Checks that there are lines for all samples and `n_folds` folds, with one value per feature.
    pub(super) fn check(&self, n_folds: usize, rows: &impl ScaledLayout) -> Result<()> {
        let shape = [
            ("lines of a scaling", n_folds + 1, self.scale.nrows()),
            (
                "features of a scaling",
                rows.n_features(),
                self.scale.ncols(),
            ),
        ];
        for (what, expected, found) in shape {
            if expected != found {
                return Err(Error::Shape {
                    what,
                    expected,
                    found,
                });
            }
        }
        if self.shift.is_some() && !rows.stores_all() {
            let rule = "without a shift for sparse rows";
            return Err(Error::parameter("scaling", rule, "one with a shift"));
        }
        Ok(())
    }

    /// (x − shift)·scale of one value.
    fn apply(&self, set: usize, feature: usize, value: f64) -> f64 {
        let shift = self.shift.as_ref().map_or(0.0, |own| own[(set, feature)]);
        (value - shift) * self.scale[(set, feature)]
    }
}

/// A layout whose stored values can be replaced.
pub trait ScaledLayout: Layout + Debug + Send {
    /// The same rows with other values.
    type View<'s>: Layout + Debug
    where
        Self: 's;

    /// The same rows with `values` in place of the stored ones.
    fn with_values<'s>(&'s self, values: &'s [f64]) -> Self::View<'s>;

    /// Returns true if every feature is stored.
    fn stores_all(&self) -> bool;

    /// All stored values, scaled for a training set.
    fn scaled(&self, scaling: &Scaling, set: usize) -> Result<Vec<f64>> {
        let mut values = vec![];
        memory::reserve("the scaled rows of X", &mut values, self.n_stored())?;
        let scale = scaling.scale.index_axis(Axis(0), set);
        match (&scaling.shift, scale.as_slice()) {
            (None, Some(scale)) => {
                for row in 0..self.n_rows() {
                    let entries = self.row(row).entries();
                    values.extend(entries.map(|(feature, value)| value * scale[feature]));
                }
            }
            _ => {
                for row in 0..self.n_rows() {
                    let entries = self.row(row).entries();
                    values.extend(entries.map(|(at, value)| scaling.apply(set, at, value)));
                }
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

    fn stores_all(&self) -> bool {
        true
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

    fn stores_all(&self) -> bool {
        false
    }
}

/// Rows that kernel values are computed from.
pub(super) trait RowStore: Sync + Send + Debug {
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
pub(super) struct ScaledRows<'a, R> {
    rows: &'a R,
    values: Vec<f64>,
}

impl<'a, R: ScaledLayout> ScaledRows<'a, R> {
    /// All rows, scaled for a training set: 0 for all samples, fold + 1 for that of a fold.
    pub(super) fn new(rows: &'a R, scaling: &Scaling, set: usize) -> Result<Self> {
        let values = rows.scaled(scaling, set)?;
        Ok(Self { rows, values })
    }
}

impl<R: ScaledLayout> RowStore for ScaledRows<'_, R> {
    type View<'s>
        = R::View<'s>
    where
        Self: 's;

    fn view(&self) -> R::View<'_> {
        self.rows.with_values(&self.values)
    }
}
