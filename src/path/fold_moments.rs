//! Second moments of the training set of one fold.

use std::borrow::Cow;

use super::fold::FoldProblem;
use crate::data::{Layout, Row};
use crate::least_squares::{
    AffineFrame, HeldOut, MIN_KEPT_FRACTION, Moments, NormalEquations, has_lost_digits,
    training_rows,
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
    /// The error of second moments about the mean, relative to the squares of the features.
    pub(super) error: f64,
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
        // About the mean of the training rows, only constant columns lack digits.
        let is_constant = |j| self.is_single() || self.is_constant(j, &self.training(fold));
        let own = (moments.frame.clone(), own, held_out);
        if let Some(found) = self.checked(fold, own, scaling, is_constant) {
            return Ok(Some(found));
        }
        let own = self
            .linear
            .moments(self.is_centred(), &self.training(fold), None, monitor)?;
        let own = own.map(|own| (own.frame, own.all, None));
        Ok(own.and_then(|own| self.checked(fold, own, scaling, |_| true)))
    }

    /// Moments with enough digits about the mean of every feature that is not constant, and of every
    /// target; `None` if there are not.
    fn checked(
        &self,
        fold: Option<usize>,
        (frame, train, held_out): (AffineFrame, Mat<f64>, Option<Mat<f64>>),
        scaling: Option<Scaling<'_>>,
        is_known_constant: impl Fn(usize) -> bool,
    ) -> Option<FoldMoments> {
        let p = self.n_features();
        let (mut is_constant, mut error) = (vec![], f64::EPSILON);
        // Without a weight there is nothing to centre by.
        if let Some(normal) = NormalEquations::new(&train, &frame, scaling, self.path.fit_intercept)
        {
            for j in 0..p {
                let (about, square) = (normal.square_about_centre(j), normal.square(j));
                let has_digits = about >= MIN_KEPT_FRACTION * square;
                if !has_digits && !is_known_constant(j) {
                    return None;
                }
                is_constant.push(!has_digits);
                if has_digits && square > 0.0 {
                    error = error.max(f64::EPSILON * square / about);
                }
            }
            let has_digits = |o: usize| {
                let square = train[(p + o, p + o)];
                normal.target_square(o) >= MIN_KEPT_FRACTION * square
                    || self.is_target_constant(o, &self.training(fold))
            };
            if !(0..self.target_centres.len()).all(has_digits) {
                return None;
            }
        }
        Some(FoldMoments {
            frame,
            train,
            held_out,
            is_constant,
            error,
        })
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
        let mut train = &moments.all - &removed;
        if has_lost_digits(&train, &moments.all, 0..train.nrows()) {
            let rows = self.training(Some(fold));
            train = self.linear.second_moments(&moments.frame, &rows, monitor)?;
        }
        Ok((train, is_partition.then_some(removed)))
    }

    /// Returns true if a target has one value on all rows with a weight.
    fn is_target_constant(&self, output: usize, rows: &[usize]) -> bool {
        let targets = self.linear.targets;
        let weighted = rows.iter().filter(|&&row| targets.weight(row) > 0.0);
        let mut values = weighted.map(|&row| targets.row(row)[output]);
        let first = values.next();
        values.all(|value| Some(value) == first)
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
