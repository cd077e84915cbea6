//! What all problems of a family of models have in common, and one problem.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use ndarray::{Array2, Array3};

use super::engine::{FamilyJob, undetermined_folds};
use super::ridge::Ridge;
use super::samples::Samples;
use super::{Accuracy, Intercept, Link, Loss};
use crate::engine::Status;
use crate::linear::{Design, FoldMap, FoldMaps, TrainingSet, set_index};
use crate::runtime::memory;
use crate::{Cost, Monitor, OutOfFold, Resampling, Result};

/// Rows from which Sⱼ of a training set is estimated, and how far the estimate may be off.
const MAX_SAMPLED_ROWS: usize = 256;
const SAMPLING_MARGIN: f64 = 4.0;

/// Parts of Sⱼ of all rows that Sⱼ of a training set replaces: smaller ones are rounding, of larger ones
/// the tolerance is about the same.
const SMALLER_PARTS: Range<f64> = 1e-12..1e-2;

/// Parameters of each predictor of a problem.
pub(super) type Params = Vec<Vec<f64>>;

/// One problem: a training set and an output, or all classes of a multinomial model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Subproblem {
    pub(crate) set: TrainingSet,
    pub(crate) output: usize,
}

/// Rows, targets, training sets and their maps: what both solvers start from.
#[derive(Debug)]
pub(super) struct Family<'a> {
    pub(super) design: Design<'a>,
    pub(super) samples: Samples<'a>,
    pub(super) accuracy: Accuracy,
    maps: FoldMaps,
    intercept: Intercept,
    /// Common parameters of the constant predictors that fit all rows, for each problem of a set.
    pub(super) constants: Vec<Params>,
    /// Sⱼ of common parameters, likewise.
    magnitudes: Vec<Params>,
    /// Sⱼ of the parameters of each problem of the folds, once they are asked for; `None` where they are
    /// those of all rows.
    fold_magnitudes: Vec<OnceLock<Option<Vec<f64>>>>,
    /// Sⱼ of the parameters of all rows, for each problem of a logistic regression, once they are asked for.
    all_magnitudes: Vec<OnceLock<Vec<f64>>>,
    /// The first held-out row of every fold in test order, then their number.
    starts: Vec<usize>,
    /// Rows read for gradients, once for each problem.
    gradient_rows: AtomicU64,
    /// Rows read for Hessians, or for products with them once for each problem.
    hessian_rows: AtomicU64,
}

impl<'a> Family<'a> {
    pub(super) fn new(
        job: &FamilyJob<'a>,
        design: Design<'a>,
        samples: Samples<'a>,
        accuracy: Accuracy,
    ) -> Result<Self> {
        let folds = samples.sets.folds;
        let mut family = Self {
            maps: job.model.maps(&design, folds)?,
            intercept: job.model.intercept,
            design,
            samples,
            accuracy,
            constants: vec![],
            magnitudes: vec![],
            fold_magnitudes: vec![],
            all_magnitudes: vec![],
            starts: folds.test_starts(),
            gradient_rows: AtomicU64::new(0),
            hessian_rows: AtomicU64::new(0),
        };
        for output in 0..family.n_problems() {
            family.add_output(output, job)?;
        }
        let n_problems = folds.n_splits() * family.n_problems();
        family.fold_magnitudes = (0..n_problems).map(|_| OnceLock::new()).collect();
        family.all_magnitudes = family.constants.iter().map(|_| OnceLock::new()).collect();
        Ok(family)
    }

    /// Computes the constant predictors of an output, and the magnitudes of gradients at them.
    fn add_output(&mut self, output: usize, job: &FamilyJob<'_>) -> Result<()> {
        let width = self.design.n_columns();
        let has_intercept = self.intercept != Intercept::None;
        let constants = self
            .samples
            .constants(Subproblem { set: None, output }, has_intercept);
        let common = |&constant: &f64| {
            let mut common = vec![0.0; width];
            common[width - 1] = constant;
            common
        };
        let sizes = self.sizes_at(Subproblem { set: None, output }, &constants);
        self.constants.push(constants.iter().map(common).collect());
        let magnitudes = self
            .design
            .column_sums(&sizes, |_, u| u.abs(), job.monitor)?;
        self.magnitudes.push(magnitudes);
        Ok(())
    }

    /// w|ℓ'| of the rows of a training set at constant predictors, one vector for each.
    fn sizes_at(&self, subproblem: Subproblem, constants: &[f64]) -> Params {
        let mut sizes = self.samples.first_at(subproblem, constants);
        for first in sizes.iter_mut().flatten() {
            *first = first.abs();
        }
        sizes
    }

    /// Sⱼ of the parameters of a problem: those of all rows, unless the training set lacks the rows of
    /// which they mostly consist.
    fn magnitude(&self, subproblem: Subproblem, monitor: &Monitor) -> Result<Vec<f64>> {
        let Subproblem { set, output } = subproblem;
        let map = self.map(set);
        let of_all = || -> Vec<f64> {
            let magnitudes = self.magnitudes[output].iter();
            magnitudes.flat_map(|m| map.magnitude(m)).collect()
        };
        let Some(fold) = set else { return Ok(of_all()) };
        let known = &self.fold_magnitudes[fold * self.n_problems() + output];
        if let Some(magnitude) = known.get() {
            return Ok(magnitude.clone().unwrap_or_else(of_all));
        }
        let (mut magnitude, mut is_of_fold) = (of_all(), false);
        if map.has_sums() || self.leaves_most(fold, output, &magnitude, monitor)? {
            return Ok(magnitude);
        }
        let has_intercept = self.intercept != Intercept::None;
        let constants = self.samples.constants(subproblem, has_intercept);
        let sizes = self.sizes_at(subproblem, &constants);
        if self.may_be_smaller(&magnitude, &sizes, map)? {
            let sums = self
                .design
                .column_sums(&sizes, |j, u| map.size(j, u), monitor)?;
            let own = sums.iter().flat_map(|sums| &sums[..map.n_params()]);
            for (magnitude, own) in magnitude.iter_mut().zip(own) {
                if SMALLER_PARTS.contains(&(own / *magnitude)) {
                    *magnitude = *own;
                    is_of_fold = true;
                }
            }
        }
        known.get_or_init(|| is_of_fold.then(|| magnitude.clone()));
        Ok(magnitude)
    }

    /// Whether the few rows that a fold of a logistic regression leaves out have at most a quarter of every Sⱼ.
    ///
    /// The sum of |ℓ'| is twice that of one class, so each class keeps half of its weight, |ℓ'| of the other
    /// rows is at least half of what it is with all rows, and Sⱼ at least 3/8.
    fn leaves_most(
        &self,
        fold: usize,
        output: usize,
        of_all: &[f64],
        monitor: &Monitor,
    ) -> Result<bool> {
        let (map, link) = (self.map(Some(fold)), self.samples.link);
        let (Link::Independent(loss @ Loss::Logistic), true, false) = (
            link,
            std::ptr::eq(map, self.map(None)),
            self.design.is_transposed(),
        ) else {
            return Ok(false);
        };
        let (Some(rows), [constant]) = (self.samples.removed(fold), &self.constants[output][..])
        else {
            return Ok(false);
        };
        if rows.len() > MAX_SAMPLED_ROWS {
            return Ok(false);
        }
        let n = rows.len();
        let targets = self.samples.targets(output);
        let y: Vec<f64> = rows.iter().map(|&row| targets[row]).collect();
        let z = vec![constant[constant.len() - 1]; n];
        let (mut sizes, mut second, mut weights) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        loss.derivatives(&y, &z, &mut sizes, &mut second);
        let sets = &self.samples.sets;
        sets.weights_once(None, output, rows.iter().copied(), &mut weights);
        for (size, weight) in sizes.iter_mut().zip(&weights) {
            *size = (*size * weight).abs();
        }
        let all_sizes = self.magnitudes[output][0].last().copied().unwrap_or(0.0);
        if 4.0 * sizes.iter().sum::<f64>() > all_sizes {
            return Ok(false);
        }
        let magnitude = self.all_magnitude(output, monitor)?;
        let mut buffer = vec![];
        let u = self.design.block(rows.iter().copied(), &mut buffer)?;
        Ok(magnitude
            .iter()
            .zip(of_all)
            .enumerate()
            .all(|(j, (all, bound))| {
                let left_out: f64 = (0..n).map(|i| sizes[i] * map.size(j, u[(i, j)])).sum();
                4.0 * left_out <= *all && *all >= 4.0 * SMALLER_PARTS.end * bound
            }))
    }

    /// Sⱼ of the parameters of all rows.
    fn all_magnitude(&self, output: usize, monitor: &Monitor) -> Result<&[f64]> {
        let known = &self.all_magnitudes[output];
        if known.get().is_none() {
            let subproblem = Subproblem { set: None, output };
            let map = self.map(None);
            let constants = self
                .samples
                .constants(subproblem, self.intercept != Intercept::None);
            let sizes = self.sizes_at(subproblem, &constants);
            let sums = self
                .design
                .column_sums(&sizes, |j, u| map.size(j, u), monitor)?;
            let params = sums.iter().flat_map(|sums| &sums[..map.n_params()]);
            known.get_or_init(|| params.copied().collect());
        }
        Ok(known.get().map_or(&[], Vec::as_slice))
    }

    /// Whether some rows say that Sⱼ of a training set may be much smaller than that of all rows.
    fn may_be_smaller(&self, of_all: &[f64], sizes: &Params, map: &FoldMap) -> Result<bool> {
        if self.design.is_transposed() {
            return Ok(true); // rows are not at hand, and a pass is cheap
        }
        let (n, width) = (self.design.n_rows(), map.n_params());
        let rows: Vec<usize> = (0..n).step_by(n.div_ceil(MAX_SAMPLED_ROWS)).collect();
        let mut buffer = vec![];
        self.design.block(rows.iter().copied(), &mut buffer)?;
        let part = rows.len() as f64 / n as f64;
        let mut sums = vec![0.0; of_all.len()];
        for (sums, sizes) in sums.chunks_exact_mut(width).zip(sizes) {
            for (u, row) in buffer.chunks_exact(self.design.n_columns()).zip(&rows) {
                for (j, (sum, u)) in sums.iter_mut().zip(u).enumerate() {
                    *sum += sizes[*row] * map.size(j, *u);
                }
            }
        }
        let mut pairs = sums.iter().zip(of_all);
        Ok(pairs.any(|(sum, all)| *sum < SAMPLING_MARGIN * SMALLER_PARTS.end * part * all))
    }

    pub(super) fn folds(&self) -> &'a dyn Resampling {
        self.samples.sets.folds
    }

    /// Problems of one training set.
    pub(super) fn n_problems(&self) -> usize {
        self.samples.n_problems()
    }

    /// The problems of all folds: fold by fold, output by output.
    pub(super) fn subproblems(&self) -> Vec<Subproblem> {
        let outputs = self.n_problems();
        let folds = 0..self.folds().n_splits() * outputs;
        let subproblem = |at: usize| Subproblem {
            set: Some(at / outputs),
            output: at % outputs,
        };
        folds.map(subproblem).collect()
    }

    pub(super) fn map(&self, set: TrainingSet) -> &FoldMap {
        self.maps.of_set(set)
    }

    /// The penalty of a training set.
    pub(super) fn ridge(&self, set: TrainingSet, penalties: &[f64]) -> Ridge {
        Ridge::new(penalties[set_index(set)], self.map(set), self.intercept)
    }

    /// A problem at common parameters.
    pub(super) fn fit(
        &self,
        subproblem: Subproblem,
        penalties: &[f64],
        common: &[Vec<f64>],
        monitor: &Monitor,
    ) -> Result<Fit<'_>> {
        let set = subproblem.set;
        let map = self.map(set);
        Ok(Fit {
            subproblem,
            map,
            ridge: self.ridge(set, penalties),
            magnitude: self.magnitude(subproblem, monitor)?,
            params: common.iter().flat_map(|c| map.to_fold(c)).collect(),
            relative_gradient: f64::INFINITY,
            n_passes: 0.0,
            state: State::Active,
        })
    }

    /// Sⱼ of a constant, of the first predictor of a problem.
    pub(super) fn constant_magnitude(&self, fit: &Fit<'_>) -> f64 {
        let of_all = self.magnitudes[fit.subproblem.output][0].last();
        let of_set = fit.magnitude.get(fit.map.n_features()); // if there is an intercept
        of_set.or(of_all).copied().unwrap_or(0.0)
    }

    /// Counts rows that are read for the gradients of some problems.
    pub(super) fn count_gradients(&self, n_problems: usize) {
        let n_rows = (n_problems * self.design.n_rows()) as u64;
        self.gradient_rows.fetch_add(n_rows, Ordering::Relaxed);
    }

    /// Counts rows that are read for Hessians.
    pub(super) fn count_hessian_rows(&self, n_rows: usize) {
        self.hessian_rows
            .fetch_add(n_rows as u64, Ordering::Relaxed);
    }

    /// Rows read for gradients, once for each problem, and rows read for Hessians.
    pub(super) fn n_rows_read(&self) -> [u64; 2] {
        [&self.gradient_rows, &self.hessian_rows].map(|count| count.load(Ordering::Relaxed))
    }

    /// The result of a model, before anything is recorded.
    pub(super) fn empty_result(&self, keeps_coefficients: bool) -> Result<OutOfFold> {
        let (k, n_outputs) = (self.folds().n_splits(), self.samples.n_outputs());
        let n_test = self.starts[k];
        let shape = [n_test, n_outputs];
        memory::check_shape::<f64>(format_args!("predictions of {n_test} rows"), &shape)?;
        let n_kept = if keeps_coefficients { k } else { 0 };
        let kept = [n_kept, n_outputs, self.design.n_columns()];
        memory::check_shape::<f64>(format_args!("coefficients of {n_kept} folds"), &kept)?;
        Ok(OutOfFold {
            outputs: Array2::from_elem(shape, f64::NAN),
            coefficients: Array3::zeros(kept),
            cost: Cost {
                rows_evaluated: n_test as u64,
                ..Cost::default()
            },
            status: Status {
                relative_gradients: Array2::from_elem((k, self.n_problems()), f64::NAN),
                ..Status::default()
            },
            ..OutOfFold::default()
        })
    }

    /// Records what was found of one problem of a fold: its parameters, its relative gradient (NaN if it
    /// has no solution), and the predictors of its held-out rows, by row and predictor.
    pub(super) fn record(
        &self,
        result: &mut OutOfFold,
        (subproblem, params, relative_gradient): (Subproblem, &[f64], f64),
        predictor: impl Fn(usize, usize) -> f64,
    ) {
        let Subproblem { set, output } = subproblem;
        let (fold, width) = (set.unwrap_or(0), self.samples.n_predictors());
        let map = self.map(set);
        for (c, params) in params.chunks_exact(map.n_params()).enumerate() {
            let column = output * width + c;
            for i in 0..self.starts[fold + 1] - self.starts[fold] {
                result.outputs[(self.starts[fold] + i, column)] = predictor(i, c);
            }
            if result.coefficients.is_empty() {
                continue;
            }
            let p = map.n_features();
            for (j, param) in params.iter().take(p).enumerate() {
                result.coefficients[(fold, column, j)] = *param;
            }
            result.coefficients[(fold, column, p)] = map.intercept(params);
        }
        result.status.relative_gradients[(fold, output)] = relative_gradient;
    }

    /// Adds the rows that were read since then, and the folds without a solution.
    pub(super) fn finish(&self, mut result: OutOfFold, before: [u64; 2]) -> OutOfFold {
        let [gradient_rows, hessian_rows] = self.n_rows_read();
        result.cost.gradient_rows = gradient_rows - before[0];
        result.cost.hessian_rows = hessian_rows - before[1];
        result.status.undetermined = undetermined_folds(&result.status.relative_gradients);
        result
    }
}

/// How far a problem is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum State {
    Active,
    /// The relative gradient is below the tolerance.
    Solved,
    /// The optimum was not found.
    Unsolved,
    /// There is no penalty, and no finite or no unique optimum, or it was not found.
    Undetermined,
}

/// One problem on its way to the optimum: as many predictors as a row has for it, each with parameters.
#[derive(Clone, Debug)]
pub(super) struct Fit<'a> {
    pub(super) subproblem: Subproblem,
    pub(super) map: &'a FoldMap,
    pub(super) ridge: Ridge,
    /// Sⱼ of each parameter.
    pub(super) magnitude: Vec<f64>,
    /// φ of each predictor.
    pub(super) params: Vec<f64>,
    /// Where the last gradient was computed that led to a step or to the end.
    pub(super) relative_gradient: f64,
    /// Passes so far, in gradients of a refit.
    pub(super) n_passes: f64,
    pub(super) state: State,
}

impl Fit<'_> {
    /// Common parameters of vectors like φ.
    pub(super) fn to_common(&self, params: &[f64]) -> impl Iterator<Item = Vec<f64>> {
        let predictors = params.chunks_exact(self.map.n_params());
        predictors.map(|params| self.map.to_common(params))
    }

    /// Common parameters of each predictor.
    pub(super) fn common(&self) -> Params {
        self.to_common(&self.params).collect()
    }

    /// Derivatives by φ from those of the losses by common parameters, and those of the penalty at
    /// `params`.
    pub(super) fn gradient_at<G: AsRef<[f64]>>(&self, common: &[G], params: &[f64]) -> Vec<f64> {
        let losses = common
            .iter()
            .flat_map(|common| self.map.gradient(common.as_ref()));
        let mut gradient: Vec<f64> = losses.collect();
        self.ridge.add_gradient(params, &mut gradient);
        gradient
    }

    /// The largest part of Sⱼ that is left of a gradient; NaN if a part is.
    pub(super) fn relative(&self, gradient: &[f64]) -> f64 {
        let ratios = gradient.iter().zip(&self.magnitude);
        ratios.fold(0.0, |largest, (g, s)| {
            let ratio = if *g == 0.0 { 0.0 } else { g.abs() / s };
            if ratio > largest || ratio.is_nan() {
                ratio
            } else {
                largest
            }
        })
    }

    pub(super) fn has_penalty(&self) -> bool {
        self.ridge.lambda > 0.0
    }

    /// Ends where the problem is. With a penalty there is an optimum, but it was not found.
    pub(super) fn give_up(&mut self) {
        self.state = if self.has_penalty() {
            State::Unsolved
        } else {
            State::Undetermined
        };
    }

    /// The relative gradient that was reached; NaN if there is no solution.
    pub(super) fn reached(&self) -> f64 {
        match self.state {
            State::Unsolved if self.relative_gradient.is_nan() => f64::INFINITY,
            State::Solved | State::Unsolved => self.relative_gradient,
            State::Active | State::Undetermined => f64::NAN,
        }
    }
}
