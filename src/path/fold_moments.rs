//! Second moments of the training set of one fold.

use std::borrow::Cow;

use super::fold::FoldProblem;
use crate::data::{Layout, Row};
use crate::linalg::Mat;
use crate::linear::{
    DowndatedMoments, FoldMap, MIN_KEPT_FRACTION, NormalEquations, TrainingSet, training_rows,
};
use crate::{Monitor, Result};

/// Second moments of a training set behind a map in which they can be centred.
pub(super) struct FoldMoments {
    pub(super) map: FoldMap,
    pub(super) train: Mat<f64>,
    /// Those of the held-out rows, if they were subtracted.
    pub(super) held_out: Option<Mat<f64>>,
    /// Of every feature: whether it is constant on the training rows.
    pub(super) is_constant: Vec<bool>,
    /// The error of second moments about the mean, relative to the squares of the features.
    pub(super) error: f64,
}

impl<R: Layout> FoldProblem<'_, R> {
    pub(super) fn training(&self, set: TrainingSet) -> Cow<'_, [usize]> {
        training_rows(self.folds, set)
    }

    /// Moments of a training set with enough digits; `None` if columns have to be used.
    pub(super) fn moments_of(
        &self,
        set: TrainingSet,
        scaling: Option<&FoldMap>,
        monitor: &Monitor,
    ) -> Result<Option<FoldMoments>> {
        let Some(moments) = &self.moments else {
            return Ok(None);
        };
        let DowndatedMoments { train, removed } = match set {
            Some(fold) if !self.is_single() => {
                let folds = self.folds;
                self.linear
                    .training_moments(moments, folds, fold, monitor)?
            }
            _ => DowndatedMoments {
                train: moments.all.clone(),
                removed: None,
            },
        };
        let held_out = removed.filter(|_| self.folds.partition().is_some());
        // About the mean of the training rows, only constant columns lack digits.
        let is_constant = |j| self.is_single() || self.is_constant(j, scaling, &self.training(set));
        let sums = (moments.map.clone(), train, held_out);
        if let Some(checked) = self.checked(set, sums, scaling, is_constant) {
            return Ok(Some(checked));
        }
        let rows = self.training(set);
        let moments = self
            .linear
            .moments(self.is_centred(), &rows, None, monitor)?;
        let sums = moments.map(|moments| (moments.map, moments.all, None));
        Ok(sums.and_then(|sums| self.checked(set, sums, scaling, |_| true)))
    }

    /// Moments with enough digits about the mean of every feature that is not constant, and of every
    /// target; `None` if there are not.
    fn checked(
        &self,
        set: TrainingSet,
        (map, train, held_out): (FoldMap, Mat<f64>, Option<Mat<f64>>),
        scaling: Option<&FoldMap>,
        is_known_constant: impl Fn(usize) -> bool,
    ) -> Option<FoldMoments> {
        let (mut is_constant, mut error) = (vec![], f64::EPSILON);
        // Without a weight there is nothing to centre by.
        if let Some(normal) =
            NormalEquations::new(&train, &map, scaling, self.path.spec.fit_intercept)
        {
            for j in 0..normal.n_features() {
                let (about, square) = (normal.square_about_shift(j), normal.square(j));
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
                let square = train[(self.n_features() + o, self.n_features() + o)];
                normal.target_square(o) >= MIN_KEPT_FRACTION * square
                    || self.is_target_constant(o, &self.training(set))
            };
            if !(0..self.target_centres.len()).all(has_digits) {
                return None;
            }
        }
        Some(FoldMoments {
            map,
            train,
            held_out,
            is_constant,
            error,
        })
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
    fn is_constant(&self, j: usize, scaling: Option<&FoldMap>, rows: &[usize]) -> bool {
        let sums = scaling.filter(|map| map.has_sums());
        let value = |&row: &usize| {
            if let Some(map) = sums {
                let mut values = vec![0.0; map.n_features()];
                map.write(&self.linear.rows, row, &mut values);
                return values[j];
            }
            let value = self.linear.rows.values(row).map(|values| values[j]);
            let stored = || self.linear.rows.row(row).entries().find(|e| e.0 == j);
            value.unwrap_or_else(|| stored().map_or(0.0, |e| e.1))
        };
        let mut rows = rows
            .iter()
            .filter(|&&row| self.linear.targets.weight(row) > 0.0);
        let first = rows.next().map(value);
        rows.all(|row| Some(value(row)) == first)
    }
}
