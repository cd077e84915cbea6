//! How closely problems are solved, and how many passes over the rows that may take.

use crate::{Error, Result};

/// How closely problems are solved, and for how long.
///
/// ```
/// use onefold::newton::Accuracy;
///
/// let accuracy = Accuracy { tolerance: 1e-8, accepted: 1e-5, passes: 100.0, ..1e-8.into() };
/// assert_eq!(accuracy.target(20.0), Some(1e-8));
/// assert_eq!(accuracy.target(150.0), Some(1e-5));
/// assert_eq!(accuracy.target(200.0), None);
/// assert_eq!(Accuracy::from(1e-8).target(1e9), Some(1e-8));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Accuracy {
    /// The relative gradient at which a problem is solved.
    pub tolerance: f64,
    /// The relative gradient that is accepted once the passes are spent.
    pub accepted: f64,
    /// Passes over the rows for one problem, as many as a refit takes: gradients, and other work in
    /// gradients. A problem that has taken twice as many is left as it is.
    pub passes: f64,
    /// The same of rows that are too wide for Hessians, if that is less.
    pub wide_passes: f64,
}

impl From<f64> for Accuracy {
    /// This tolerance, after any number of passes.
    fn from(tolerance: f64) -> Self {
        Self {
            tolerance,
            accepted: tolerance,
            passes: f64::INFINITY,
            wide_passes: f64::INFINITY,
        }
    }
}

impl Accuracy {
    /// The relative gradient that is asked for after some passes; `None` if there are no more.
    #[must_use]
    pub fn target(&self, n_passes: f64) -> Option<f64> {
        if n_passes < self.passes {
            Some(self.tolerance)
        } else if n_passes < 2.0 * self.passes {
            Some(self.accepted.max(self.tolerance))
        } else {
            None
        }
    }

    /// An error unless the tolerance is positive.
    pub(super) fn check(&self) -> Result<()> {
        for (name, value) in [("tol", self.tolerance), ("accepted", self.accepted)] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(Error::parameter(name, "positive and finite", value));
            }
        }
        Ok(())
    }

    /// That of rows that are too wide for Hessians.
    pub(super) fn of_wide_rows(self) -> Self {
        Self {
            passes: self.passes.min(self.wide_passes),
            ..self
        }
    }

    /// That of the fit to all rows, from which `n_folds` folds start: no closer than `tolerance`.
    pub(super) fn of_start(&self, tolerance: f64, n_folds: usize) -> Self {
        Self {
            tolerance: self.tolerance.max(tolerance),
            accepted: self.accepted.max(tolerance),
            passes: self.passes * (n_folds as f64 / 4.0).max(1.0),
            ..*self
        }
    }
}
