//! What is fitted, how, and who is held out.

use std::borrow::Cow;

use crate::data::Layout;
use crate::{Error, Folds, Result, Splits};

/// Rows, targets and weights of a least-squares problem.
#[derive(Debug)]
pub struct Problem<'a, R> {
    pub(super) rows: &'a R,
    pub(super) targets: &'a [f64],
    pub(super) n_outputs: usize,
    /// √w of every row, where there are weights.
    pub(super) root_weights: Option<Vec<f64>>,
}

impl<'a, R: Layout> Problem<'a, R> {
    /// `targets` holds `n_outputs` values a row, row after row; weights must not be negative.
    pub fn new(
        rows: &'a R,
        targets: &'a [f64],
        n_outputs: usize,
        weights: Option<&[f64]>,
    ) -> Result<Self> {
        check(rows.n_rows(), targets, n_outputs)?;
        Ok(Self {
            rows,
            targets,
            n_outputs,
            root_weights: weights.map(|w| roots(rows.n_rows(), w)).transpose()?,
        })
    }

    pub(super) fn n_rows(&self) -> usize {
        self.rows.n_rows()
    }

    pub(super) fn target(&self, row: usize) -> &'a [f64] {
        &self.targets[row * self.n_outputs..][..self.n_outputs]
    }

    pub(super) fn root_weight(&self, row: usize) -> f64 {
        self.root_weights.as_ref().map_or(1.0, |w| w[row])
    }

    /// Whether some row has no weight: it is predicted, but nothing is learned from it.
    pub(super) fn has_idle_rows(&self) -> bool {
        self.root_weights.as_ref().is_some_and(|w| w.contains(&0.0))
    }
}

/// Checks that there are `n_outputs` finite targets a row.
pub(super) fn check(n_rows: usize, targets: &[f64], n_outputs: usize) -> Result<()> {
    if n_outputs == 0 || targets.len() != n_rows * n_outputs {
        return Err(Error::Shape {
            what: "y",
            expected: n_rows * n_outputs.max(1),
            found: targets.len(),
        });
    }
    match targets.iter().position(|v| !v.is_finite()) {
        None => Ok(()),
        Some(at) => Err(Error::Value {
            place: format!("y[{}]", at / n_outputs),
            value: targets[at],
            rule: "every value must be finite",
        }),
    }
}

/// √w, checked.
pub(super) fn roots(n_rows: usize, weights: &[f64]) -> Result<Vec<f64>> {
    if weights.len() != n_rows {
        return Err(Error::Shape {
            what: "sample_weight",
            expected: n_rows,
            found: weights.len(),
        });
    }
    match weights.iter().position(|w| !(w.is_finite() && *w >= 0.0)) {
        None => Ok(weights.iter().map(|w| w.sqrt()).collect()),
        Some(row) => Err(Error::Value {
            place: format!("sample_weight[{row}]"),
            value: weights[row],
            rule: "weights must be finite and not negative",
        }),
    }
}

/// The penalties and what surrounds the coefficients.
#[derive(Clone, Debug)]
pub struct Model {
    /// λ of λ‖β‖², one fit each; 0 is ordinary least squares.
    pub alphas: Vec<f64>,
    /// Whether there is an intercept: it is not penalised, and every fold has its own.
    pub intercept: bool,
    /// What every fold does to the columns first, with means and deviations of its own.
    pub scaler: Option<Scaler>,
}

/// scikit-learn's `StandardScaler`, in front of the model. It sees no weights.
#[derive(Clone, Copy, Debug)]
pub struct Scaler {
    /// Subtract the mean.
    pub mean: bool,
    /// Divide by the standard deviation, unless the column is constant.
    pub deviation: bool,
}

impl Model {
    pub(super) fn check(&self) -> Result<()> {
        match self.alphas.iter().find(|a| !(a.is_finite() && **a >= 0.0)) {
            None if !self.alphas.is_empty() => Ok(()),
            found => Err(Error::Parameter {
                name: "alpha",
                rule: "finite and not negative",
                value: found.map_or("nothing".into(), f64::to_string),
            }),
        }
    }

    /// The smallest λ: the hardest system of the grid.
    pub(super) fn smallest_alpha(&self) -> f64 {
        self.alphas.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The scaler, if it changes the predictions: an intercept takes up any shift, and least
    /// squares without a penalty any scale, as long as the rows determine it.
    pub(super) fn effective_scaler(&self, has_gaps: bool) -> Option<Scaler> {
        let has_units = has_gaps || self.alphas.iter().any(|&a| a > 0.0);
        self.scaler
            .filter(|s| (s.mean && !self.intercept) || (s.deviation && has_units))
    }
}

/// Who is held out when.
#[derive(Clone, Copy, Debug)]
pub enum Cv<'a> {
    /// Every row once.
    Folds(&'a Folds),
    /// Anything else.
    Splits(&'a Splits),
}

/// One fold: what it predicts, and what it does not learn from.
pub(super) struct Held<'a> {
    pub(super) test: &'a [usize],
    /// The rows that are not in the training set.
    pub(super) removed: Cow<'a, [usize]>,
    /// The training set, where it is not simply all rows that are not removed.
    pub(super) repeated: Option<&'a [usize]>,
}

impl<'a> Cv<'a> {
    pub(super) fn n_folds(self) -> usize {
        match self {
            Self::Folds(folds) => folds.len(),
            Self::Splits(splits) => splits.len(),
        }
    }

    pub(super) fn n_samples(self) -> usize {
        match self {
            Self::Folds(folds) => folds.n_samples(),
            Self::Splits(splits) => splits.n_samples(),
        }
    }

    pub(super) fn test(self, fold: usize) -> &'a [usize] {
        match self {
            Self::Folds(folds) => folds.rows(fold..fold + 1),
            Self::Splits(splits) => splits.test(fold),
        }
    }

    /// How many rows a fold removes; fewer if its training set repeats rows.
    pub(super) fn n_removed(self, fold: usize) -> usize {
        match self {
            Self::Folds(folds) => folds.range(fold..fold + 1).len(),
            Self::Splits(splits) => splits.n_samples().saturating_sub(splits.train(fold).len()),
        }
    }

    pub(super) fn held(self, fold: usize) -> Held<'a> {
        let test = self.test(fold);
        let Self::Splits(splits) = self else {
            return Held {
                test,
                removed: Cow::Borrowed(test),
                repeated: None,
            };
        };
        let train = splits.train(fold);
        let mut is_removed = vec![true; splits.n_samples()];
        let mut has_repeats = false;
        for &row in train {
            has_repeats |= !is_removed[row];
            is_removed[row] = false;
        }
        let removed = (0..is_removed.len())
            .filter(|&row| is_removed[row])
            .collect();
        Held {
            test,
            removed: Cow::Owned(removed),
            repeated: has_repeats.then_some(train),
        }
    }

    /// The training set of a fold.
    pub(super) fn train(self, fold: usize) -> Cow<'a, [usize]> {
        match self {
            Self::Splits(splits) => Cow::Borrowed(splits.train(fold)),
            Self::Folds(folds) => {
                let (before, after) = folds.complement(fold);
                Cow::Owned([before, after].concat())
            }
        }
    }

    /// How many predictions there are before those of `fold`.
    pub(super) fn offsets(self) -> Vec<usize> {
        let mut offsets = vec![0];
        for fold in 0..self.n_folds() {
            offsets.push(offsets[fold] + self.test(fold).len());
        }
        offsets
    }

    pub(super) fn check(self, n_rows: usize) -> Result<()> {
        if self.n_samples() == n_rows {
            return Ok(());
        }
        Err(Error::Folds {
            reason: format!("{} samples for {n_rows} rows", self.n_samples()),
        })
    }
}
