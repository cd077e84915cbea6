//! All folds, penalties and outputs of one family of models.

use ndarray::{Array2, Array3, Array4, ArrayView2};

use super::coordinates::Coordinates;
use super::design::{Design, map_all};
use super::minimise::{Problem, State, minimise};
use super::passes::{Column, Derivatives, Passes, Sum};
use super::penalties::{check_penalties, from_strong_to_weak};
use super::samples::{ClassWeights, Samples, TrainingSet};
use super::{Accuracy, Intercept, Loss};
use crate::data::Dataset;
use crate::linalg::Mat;
use crate::runtime::memory;
use crate::scaling::FoldScaling;
use crate::{Monitor, Resampling, Result};

/// The relative gradient of the fit to all rows, times the square of the number of folds: the first
/// steps of the folds have errors of that size.
const START_TOLERANCE: f64 = 1e-2;

/// What candidates that differ only in their penalty have in common.
#[derive(Clone, Copy, Debug)]
pub struct Family<'a> {
    /// The loss.
    pub loss: Loss,
    /// What the intercept is.
    pub intercept: Intercept,
    /// The scaling of the columns in every fold.
    pub scaling: Option<&'a FoldScaling>,
    /// Factors of the weights by class.
    pub class_weights: Option<&'a ClassWeights>,
}

/// What was found of all folds.
#[derive(Clone, Debug)]
pub struct Solutions {
    /// Linear predictors of held-out rows in test order: test row × candidate × output.
    pub predictors: Array3<f64>,
    /// Fold × candidate × output × feature, the intercept last, for the scaled rows of the fold.
    pub coefficients: Array4<f64>,
    /// The relative gradients that were reached, candidate × fold × output; NaN if there is no finite
    /// or no unique optimum. One that is not as small as asked for is that of an optimum that was not
    /// found.
    pub relative_gradients: Array3<f64>,
    /// Rows read for gradients, once for each problem.
    pub gradient_rows: u64,
    /// Rows read for Hessians.
    pub hessian_rows: u64,
}

/// Solves all folds for `targets` (sample × output) and `penalties` (candidate × training set: that of
/// all rows, then that of each fold).
pub fn solve(
    family: &Family<'_>,
    data: &Dataset<'_>,
    targets: ArrayView2<'_, f64>,
    penalties: ArrayView2<'_, f64>,
    folds: &dyn Resampling,
    accuracy: Accuracy,
    monitor: &Monitor,
) -> Result<Solutions> {
    check_penalties(penalties, folds)?;
    let solver = Solver::new(family, data, targets, folds, accuracy, monitor)?;
    let mut start = solver.constants();
    let mut found = Vec::new();
    found.resize_with(penalties.nrows(), Vec::new);
    monitor.add_total(penalties.len() as u64);
    for candidate in from_strong_to_weak(penalties) {
        let row = penalties.row(candidate);
        let penalties = row.to_vec();
        if folds.n_splits() > 1 {
            let full = solver.rough_fit(&penalties, &start, monitor)?;
            for (start, own) in start.iter_mut().zip(&full) {
                if !own.relative_gradient.is_nan() {
                    start.clone_from(&own.shared);
                }
            }
            found[candidate] = solver.fold_solutions(&penalties, &full, monitor)?;
        } else {
            found[candidate] = solver.single_split(&penalties, &start, monitor)?;
        }
        monitor.advance(penalties.len() as u64)?;
    }
    solver.collect(&found, monitor)
}

/// The fit to all rows of each candidate: coefficients (candidate × output × feature, the intercept
/// last) and relative gradients (candidate × output).
pub fn fit(
    family: &Family<'_>,
    data: &Dataset<'_>,
    targets: ArrayView2<'_, f64>,
    penalties: &[f64],
    accuracy: Accuracy,
    monitor: &Monitor,
) -> Result<(Array3<f64>, Array2<f64>)> {
    let all: Vec<usize> = (0..data.n_rows()).collect();
    let split = crate::Splits::new(data.n_rows(), vec![(all.clone(), all)])?;
    let lines = Array2::from_shape_fn((penalties.len(), 2), |(c, _)| penalties[c]);
    let found = solve(
        family,
        data,
        targets,
        lines.view(),
        &split,
        accuracy,
        monitor,
    )?;
    let first = ndarray::Axis(0);
    let coefficients = found.coefficients.index_axis_move(first, 0);
    let gradients = found
        .relative_gradients
        .index_axis_move(ndarray::Axis(1), 0);
    Ok((coefficients, gradients))
}

/// The solution of one problem.
#[derive(Clone, Debug)]
pub(super) struct Solution {
    /// Parameters of the training set.
    pub(super) own: Vec<f64>,
    /// Shared parameters.
    pub(super) shared: Vec<f64>,
    /// NaN if it is none.
    pub(super) relative_gradient: f64,
}

impl Solution {
    fn of(problem: &Problem<'_>) -> Self {
        Self {
            own: problem.own.clone(),
            shared: problem.shared(),
            relative_gradient: match problem.state {
                State::Unsolved { relative_gradient } if relative_gradient.is_nan() => {
                    f64::INFINITY
                }
                State::Solved { relative_gradient } | State::Unsolved { relative_gradient } => {
                    relative_gradient
                }
                State::Active | State::Undetermined => f64::NAN,
            },
        }
    }
}

pub(super) struct Solver<'a> {
    pub(super) passes: Passes<'a>,
    folds: &'a dyn Resampling,
    /// Of all rows, then of each fold; or one for all if there is no scaling.
    coordinates: Vec<Coordinates>,
    /// Sⱼ in shared parameters, for each output.
    magnitudes: Vec<Vec<f64>>,
    /// The constant predictor of each output.
    constants: Vec<f64>,
    pub(super) accuracy: Accuracy,
}

impl<'a> Solver<'a> {
    pub(super) fn new(
        family: &Family<'a>,
        data: &Dataset<'a>,
        targets: ArrayView2<'_, f64>,
        folds: &'a dyn Resampling,
        accuracy: Accuracy,
        monitor: &Monitor,
    ) -> Result<Self> {
        data.check_samples(folds.n_samples())?;
        let design = Design::new(data, monitor)?;
        let samples = Samples::new(data, targets, family.class_weights, folds)?;
        let coordinates =
            Coordinates::of_all(design.centre(), family.scaling, folds, family.intercept)?;
        let constant = |output| match family.intercept {
            Intercept::None => 0.0,
            Intercept::Free | Intercept::Penalised(_) => family.loss.constant(samples.mean(output)),
        };
        let constants: Vec<f64> = (0..samples.n_outputs()).map(constant).collect();
        let passes = Passes::new(design, samples, family.loss);
        let magnitudes = passes.magnitudes(&constants, monitor)?;
        Ok(Self {
            passes,
            folds,
            coordinates,
            magnitudes,
            constants,
            accuracy,
        })
    }

    fn n_outputs(&self) -> usize {
        self.passes.samples.n_outputs()
    }

    pub(super) fn coordinates(&self, column: Column) -> &Coordinates {
        let line = super::samples::line(column.set).min(self.coordinates.len() - 1);
        &self.coordinates[line]
    }

    /// Shared parameters of the constant predictors.
    pub(super) fn constants(&self) -> Vec<Vec<f64>> {
        let width = self.passes.design.n_columns();
        let shared = |&constant: &f64| {
            let mut shared = vec![0.0; width];
            shared[width - 1] = constant;
            shared
        };
        self.constants.iter().map(shared).collect()
    }

    pub(super) fn problem(&self, column: Column, penalties: &[f64], shared: &[f64]) -> Problem<'_> {
        Problem::new(
            column,
            self.coordinates(column),
            penalties[super::samples::line(column.set)],
            &self.magnitudes[column.output],
            shared,
        )
    }

    /// The fit to all rows, of each output.
    pub(super) fn fit(
        &self,
        penalties: &[f64],
        start: &[Vec<f64>],
        monitor: &Monitor,
    ) -> Result<Vec<Solution>> {
        self.minimise_from((None, self.accuracy), penalties, start, monitor)
    }

    /// The fit to all rows of each output, as far as folds need it to start from.
    fn rough_fit(
        &self,
        penalties: &[f64],
        start: &[Vec<f64>],
        monitor: &Monitor,
    ) -> Result<Vec<Solution>> {
        let rough = START_TOLERANCE / (self.folds.n_splits() as f64).powi(2);
        let accuracy = self.accuracy.of_start(rough, self.folds.n_splits());
        self.minimise_from((None, accuracy), penalties, start, monitor)
    }

    /// The one split there is, from shared parameters.
    fn single_split(
        &self,
        penalties: &[f64],
        start: &[Vec<f64>],
        monitor: &Monitor,
    ) -> Result<Vec<Solution>> {
        self.minimise_from((Some(0), self.accuracy), penalties, start, monitor)
    }

    fn minimise_from(
        &self,
        (set, accuracy): (TrainingSet, Accuracy),
        penalties: &[f64],
        start: &[Vec<f64>],
        monitor: &Monitor,
    ) -> Result<Vec<Solution>> {
        let column = |output| Column { set, output };
        let mut problems: Vec<Problem<'_>> = (0..self.n_outputs())
            .map(|output| self.problem(column(output), penalties, &start[output]))
            .collect();
        minimise(&self.passes, &mut problems, accuracy, monitor)?;
        Ok(problems.iter().map(Solution::of).collect())
    }

    /// The solutions of all folds from the fits to all rows: fold by fold, output by output.
    fn fold_solutions(
        &self,
        penalties: &[f64],
        full: &[Solution],
        monitor: &Monitor,
    ) -> Result<Vec<Solution>> {
        let n_outputs = self.n_outputs();
        let columns: Vec<Column> = (0..self.folds.n_splits())
            .flat_map(|fold| {
                (0..n_outputs).map(move |output| Column {
                    set: Some(fold),
                    output,
                })
            })
            .collect();
        let most = self.passes.most_hessians();
        // The folds of a partition add up to all rows.
        let is_sum = self.folds.partition().is_some() && columns.len() <= most;
        let totals = if is_sum {
            None
        } else {
            Some(self.totals(full, monitor)?)
        };
        let mut found = vec![];
        for group in columns.chunks(most) {
            let losses = self.losses(group, full, totals.as_deref(), monitor)?;
            let mut problems = vec![];
            for (&column, losses) in group.iter().zip(&losses) {
                let start = &full[column.output];
                let mut problem = self.problem(column, penalties, &start.shared);
                problem.restart(losses, self.accuracy.tolerance, monitor)?;
                problems.push(problem);
            }
            minimise(&self.passes, &mut problems, self.accuracy, monitor)?;
            found.extend(problems.iter().map(Solution::of));
        }
        Ok(found)
    }

    /// Derivatives of all losses at the fits to all rows, of each output.
    pub(super) fn totals(&self, full: &[Solution], monitor: &Monitor) -> Result<Vec<Derivatives>> {
        let sums: Vec<Sum<'_>> = full
            .iter()
            .enumerate()
            .map(|(output, own)| Sum {
                column: Column { set: None, output },
                theta: &own.shared,
                rows: None,
            })
            .collect();
        self.passes.sums(&sums, monitor)
    }

    /// Derivatives of the losses of training sets at the fits to all rows.
    fn losses(
        &self,
        columns: &[Column],
        full: &[Solution],
        totals: Option<&[Derivatives]>,
        monitor: &Monitor,
    ) -> Result<Vec<Derivatives>> {
        let removed = columns.iter().map(|column| {
            let fold = column.set?;
            self.passes.samples.removed(self.folds, fold)
        });
        let removed: Vec<_> = removed.collect();
        let sums: Vec<Sum<'_>> = columns
            .iter()
            .zip(&removed)
            .map(|(&column, rows)| Sum {
                // What is removed has the weights that it has among all rows.
                column: Column {
                    set: column.set.filter(|_| rows.is_none()),
                    ..column
                },
                theta: &full[column.output].shared,
                rows: rows.as_deref(),
            })
            .collect();
        let mut found = self.passes.sums(&sums, monitor)?;
        let added = totals.is_none().then(|| self.add_up(columns, &found));
        let totals = totals.or(added.as_deref()).unwrap_or(&[]);
        for ((column, rows), found) in columns.iter().zip(&removed).zip(&mut found) {
            if rows.is_some() {
                *found = totals[column.output].without(found);
            }
        }
        Ok(found)
    }

    /// The sums of what was found of all folds, by output.
    fn add_up(&self, columns: &[Column], found: &[Derivatives]) -> Vec<Derivatives> {
        let zero = Derivatives::zeros(self.passes.design.n_columns());
        let mut totals = vec![zero; self.n_outputs()];
        for (column, own) in columns.iter().zip(found) {
            totals[column.output].add(own);
        }
        totals
    }

    fn collect(&self, found: &[Vec<Solution>], monitor: &Monitor) -> Result<Solutions> {
        let (k, n_outputs) = (self.folds.n_splits(), self.n_outputs());
        let (n_candidates, p) = (found.len(), self.passes.design.n_columns() - 1);
        let shape = [k, n_candidates, n_outputs, p + 1];
        memory::check_shape::<f64>("coefficients of all folds", &shape)?;
        let solution = |fold: usize, c: usize, output: usize| &found[c][fold * n_outputs + output];
        let coefficients = Array4::from_shape_fn((k, n_candidates, n_outputs, p + 1), |at| {
            let (fold, c, output, j) = at;
            let own = &solution(fold, c, output).own;
            let set = Some(fold);
            if j < p {
                own[j]
            } else {
                self.coordinates(Column { set, output }).intercept(own)
            }
        });
        let relative_gradients = Array3::from_shape_fn((n_candidates, k, n_outputs), |at| {
            solution(at.1, at.0, at.2).relative_gradient
        });
        let all: Vec<usize> = (0..k).collect();
        let parts = map_all(&all, monitor, |&fold| {
            let theta = Mat::from_fn(p + 1, n_candidates * n_outputs, |j, column| {
                solution(fold, column / n_outputs, column % n_outputs).shared[j]
            });
            self.passes
                .predictors(self.folds.held_out(fold), theta.as_ref())
        })?;
        let n_test = parts.iter().map(Mat::nrows).sum();
        let shape = [n_test, n_candidates, n_outputs];
        memory::check_shape::<f64>("predictions of all candidates", &shape)?;
        let mut predictors = Array3::zeros(shape);
        let mut rows = predictors.outer_iter_mut();
        for part in &parts {
            for (i, mut row) in (0..part.nrows()).zip(&mut rows) {
                for ((c, output), value) in row.indexed_iter_mut() {
                    *value = part[(i, c * n_outputs + output)];
                }
            }
        }
        let [gradient_rows, hessian_rows] = self.passes.n_rows_read();
        Ok(Solutions {
            predictors,
            coefficients,
            relative_gradients,
            gradient_rows,
            hessian_rows,
        })
    }
}
