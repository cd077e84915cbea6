//! Second moments of the training set of one fold.

use std::borrow::Cow;

use super::fold::FoldProblem;
use crate::data::{Layout, Row};
use crate::least_squares::{
    AffineFrame, HeldOut, MIN_KEPT_FRACTION, Moments, NormalEquations, training_rows,
};
use crate::linalg::Mat;
use crate::scaling::Scaling;
use crate::{Monitor, Result};

/// Second moments of a training set in a frame in which they can be centred.
pub(super) struct FoldMoments {
    pub(super) frame: AffineFrame,
    pub(super) train: Mat<f64>,
    /// Those of the held-out rows, if they were subtracted.
    pub(super) held_out: Option<Mat<f64>>,
    /// Of every feature: whether it is constant on the training rows.
    pub(super) is_constant: Vec<bool>,
}

impl<R: Layout> FoldProblem<'_, R> {
    /// The training rows of a fold, or all rows.
    pub(super) fn training(&self, fold: Option<usize>) -> Cow<'_, [usize]> {
        match fold {
            Some(fold) => training_rows(self.folds, fold),
            None => (0..self.linear.n_rows()).collect(),
        }
    }

    /// Moments of a training set with enough digits; `None` if columns have to be used.
    pub(super) fn moments_of(
        &self,
        fold: Option<usize>,
        scaling: Option<Scaling<'_>>,
        monitor: &Monitor,
    ) -> Result<Option<FoldMoments>> {
        let Some(moments) = &self.moments else {
            return Ok(None);
        };
        let (own, held_out) = match fold {
            Some(fold) if !self.is_single() => self.subtracted(moments, fold, monitor)?,
            _ => (moments.all.clone(), None),
        };
        let frame = &moments.frame;
        let normal = NormalEquations::new(&own, frame, scaling, self.path.fit_intercept);
        // Without a weight there is nothing to centre by.
        let is_constant = normal.map_or_else(
            || Some(vec![]),
            |normal| {
                let has_digits = |j: usize| {
                    normal.has_digits(j) && own[(j, j)] >= MIN_KEPT_FRACTION * moments.all[(j, j)]
                };
                let is_constant = |j: usize| match (has_digits(j), self.is_single()) {
                    (true, _) => Some(false),
                    // About the mean of the training rows, only constant columns lack digits.
                    (false, true) => Some(true),
                    (false, false) => self.is_constant(j, &self.training(fold)).then_some(true),
                };
                (0..self.n_features())
                    .map(is_constant)
                    .collect::<Option<Vec<bool>>>()
            },
        );
        if let Some(is_constant) = is_constant {
            return Ok(Some(FoldMoments {
                frame: frame.clone(),
                train: own,
                held_out,
                is_constant,
            }));
        }
        let Some(own) =
            self.linear
                .moments(self.is_centred(), &self.training(fold), None, monitor)?
        else {
            return Ok(None);
        };
        let normal = NormalEquations::new(&own.all, &own.frame, scaling, self.path.fit_intercept);
        let is_constant = normal.map(|normal| {
            (0..self.n_features())
                .map(|j| !normal.has_digits(j))
                .collect()
        });
        Ok(is_constant.map(|is_constant| FoldMoments {
            frame: own.frame,
            train: own.all,
            held_out: None,
            is_constant,
        }))
    }

    /// Moments of the training rows of a fold, and of its held-out rows if these were subtracted.
    fn subtracted(
        &self,
        moments: &Moments,
        fold: usize,
        monitor: &Monitor,
    ) -> Result<(Mat<f64>, Option<Mat<f64>>)> {
        let held_out = HeldOut::new(self.folds, fold);
        if held_out.has_repeats || 2 * held_out.removed.len() > self.folds.n_samples() {
            let train = self.training(Some(fold));
            let own = self
                .linear
                .second_moments(&moments.frame, &train, monitor)?;
            return Ok((own, None));
        }
        let removed = match moments.folds.get(fold) {
            Some(removed) => removed.clone(),
            None => self
                .linear
                .second_moments(&moments.frame, &held_out.removed, monitor)?,
        };
        let is_partition = self.folds.partition().is_some();
        Ok((&moments.all - &removed, is_partition.then_some(removed)))
    }

    /// Returns true if a feature has one value on all rows with a weight.
    fn is_constant(&self, j: usize, rows: &[usize]) -> bool {
        let value = |&row: &usize| {
            let own = self.linear.rows.values(row).map(|values| values[j]);
            let stored = || self.linear.rows.row(row).entries().find(|e| e.0 == j);
            own.unwrap_or_else(|| stored().map_or(0.0, |e| e.1))
        };
        let mut rows = rows
            .iter()
            .filter(|&&row| self.linear.targets.weight(row) > 0.0);
        let first = rows.next().map(value);
        rows.all(|row| Some(value(row)) == first)
    }
}
