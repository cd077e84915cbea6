//! Affine scaling of the columns, fitted to the training set of every fold.
//!
//! A scaler such as scikit-learn's `StandardScaler` maps x to (x − shift)·scale, with shift and scale
//! from the training rows alone: they differ from fold to fold. Engines that know how their model
//! changes under such a map need only these numbers, not scaled copies of the rows.

mod layout;
mod rows;
mod training_moments;

pub(crate) use layout::{RowStore, ScaledLayout, ScaledValues};
pub(crate) use rows::ScaledRows;
pub use training_moments::{TrainingMoments, training_moments};

use ndarray::Array2;

use crate::{Error, Result};

/// The scaling of all rows and of every fold.
#[derive(Clone, Debug)]
pub struct FoldScaling {
    shift: Option<Array2<f64>>,
    scale: Array2<f64>,
}

impl PartialEq for FoldScaling {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || (self.shift == other.shift && self.scale == other.scale)
    }
}

impl FoldScaling {
    /// One row per training set, of as many columns as there are features: that of all samples, then
    /// that of each fold. Without a shift, zeros stay zeros.
    pub fn new(shift: Option<Array2<f64>>, scale: Array2<f64>) -> Result<Self> {
        let scale = scale.as_standard_layout().into_owned();
        let shift = shift.map(|shift| shift.as_standard_layout().into_owned());
        match &shift {
            Some(shift) if shift.dim() != scale.dim() => Err(Error::Shape {
                what: "shift",
                expected: scale.len(),
                found: shift.len(),
            }),
            _ => Ok(Self { shift, scale }),
        }
    }

    /// [`Error::Shape`] unless there is a scaling of `n_features` features for each of `n_folds` folds.
    pub(crate) fn check(&self, n_folds: usize, n_features: usize) -> Result<()> {
        let (n_rows, n_columns) = self.scale.dim();
        for (what, expected, found) in [
            ("folds of the scaling", n_folds, n_rows.saturating_sub(1)),
            ("features of the scaling", n_features, n_columns),
        ] {
            if expected != found {
                return Err(Error::Shape {
                    what,
                    expected,
                    found,
                });
            }
        }
        Ok(())
    }

    /// An [`Error::Parameter`] unless all values are finite.
    pub(crate) fn check_finite(&self) -> Result<()> {
        let mut values = self.scale.iter().chain(self.shift.iter().flatten());
        match values.find(|value| !value.is_finite()) {
            None => Ok(()),
            Some(value) => Err(Error::parameter("scaling", "finite", value)),
        }
    }

    /// Whether there is a shift.
    pub fn has_shift(&self) -> bool {
        self.shift.is_some()
    }

    /// Whether some scale is not 1.
    pub fn has_scale(&self) -> bool {
        self.scale.iter().any(|&scale| scale != 1.0)
    }

    /// The scaling of all rows.
    ///
    /// # Panics
    /// When there is none.
    pub fn all_rows(&self) -> Scaling<'_> {
        self.of_set(0)
    }

    /// The scaling of a fold.
    ///
    /// # Panics
    /// When there is no such fold.
    pub fn fold(&self, fold: usize) -> Scaling<'_> {
        self.of_set(fold + 1)
    }

    /// The scaling of a training set: 0 for all rows, fold + 1 for that of a fold.
    pub(crate) fn of_set(&self, set: usize) -> Scaling<'_> {
        let shift = self.shift.as_ref().map(|shift| shift.row(set));
        let scale = self.scale.row(set).to_slice();
        Scaling {
            shift: shift.and_then(|shift| shift.to_slice()),
            scale: scale.expect("standard layout"),
        }
    }
}

/// x becomes (x − shift)·scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaling<'a> {
    /// Zero if there is none.
    pub shift: Option<&'a [f64]>,
    /// One value per feature.
    pub scale: &'a [f64],
}

impl Scaling<'_> {
    /// The shift of a feature.
    pub fn shift(&self, feature: usize) -> f64 {
        self.shift.map_or(0.0, |shift| shift[feature])
    }

    /// The scaled value of a feature.
    #[inline(always)]
    pub fn apply(&self, feature: usize, value: f64) -> f64 {
        (value - self.shift(feature)) * self.scale[feature]
    }

    /// Whether the map is finite and can be inverted.
    pub fn is_regular(&self) -> bool {
        let is_finite = |values: &[f64]| values.iter().all(|v| v.is_finite());
        is_finite(self.scale) && self.shift.is_none_or(is_finite) && !self.scale.contains(&0.0)
    }
}
