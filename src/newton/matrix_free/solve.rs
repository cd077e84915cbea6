//! All folds and penalties of one model without Hessians.

use ndarray::{Array3, Array4, ArrayView2};

use super::super::coordinates::Coordinates;
use super::super::passes::Column;
use super::super::penalties::{check_penalties, from_strong_to_weak};
use super::super::samples::{ClassWeights, Samples, TrainingSet, line};
use super::super::{Accuracy, Intercept, Solutions};
use super::losses::{Losses, Outputs};
use super::minimise::Context;
use super::preconditioner::has_full_rank;
use super::problem::{Problem, State};
use super::products::{Products, Transposed};
use crate::data::Dataset;
use crate::runtime::memory;
use crate::scaling::FoldScaling;
use crate::{Monitor, Resampling, Result};

/// Values of all rows and predictors of the problems that advance side by side.
const MOST_PANEL_VALUES: usize = 1 << 24;

/// Predictors that advance side by side.
const MOST_COLUMNS: usize = 256;

/// Values of the parameters of all folds that are kept for the next penalty.
const MOST_KEPT_VALUES: usize = 1 << 26;

/// The fit to all rows ends at this part of the relative gradient of a fold at it, about 1/k: it is where
/// folds start from, nothing more.
const START_PART: f64 = 0.3;

/// A model, of which candidates differ only in their penalty.
#[derive(Clone, Copy, Debug)]
pub struct Model<'a> {
    /// The losses, and how many predictors they have.
    pub outputs: Outputs,
    /// What the intercept is.
    pub intercept: Intercept,
    /// The scaling of the columns in every fold.
    pub scaling: Option<&'a FoldScaling>,
    /// Factors of the weights by class.
    pub class_weights: Option<&'a ClassWeights>,
}

/// As [`solve`](super::super::solve), without Hessians. The targets of the softmax are one column of
/// class codes; its predictors and coefficients have one output per class, its relative gradients one
/// for all. Coefficients are those of no fold unless they are needed.
pub fn solve(
    model: &Model<'_>,
    data: &Dataset<'_>,
    targets: ArrayView2<'_, f64>,
    penalties: ArrayView2<'_, f64>,
    folds: &dyn Resampling,
    (accuracy, needs_coefficients): (Accuracy, bool),
    monitor: &Monitor,
) -> Result<Solutions> {
    check_penalties(penalties, folds)?;
    let transposed = Transposed::new(data)?;
    let transposed = transposed.as_ref();
    let solver = Solver::new(model, (data, transposed), targets, folds, accuracy, monitor)?;
    let mut found = solver.empty_solutions(penalties.nrows(), needs_coefficients)?;
    let mut path = Path::new(&solver, penalties.nrows());
    monitor.add_total(penalties.len() as u64);
    for candidate in from_strong_to_weak(penalties) {
        let own = penalties.row(candidate).to_vec();
        solver.candidate(candidate, &own, &mut path, &mut found, monitor)?;
    }
    let [gradient_rows, hessian_rows] = solver.context.n_rows_read();
    Ok(Solutions {
        gradient_rows,
        hessian_rows,
        ..found
    })
}

/// Shared parameters of the predictors of one problem.
type Shared = Vec<Vec<f64>>;

/// What is known from the penalty before.
struct Path {
    /// The fit to all rows, of each problem.
    full: Vec<Shared>,
    /// Parameters of each fold and problem minus those of the fit to all rows, where they are kept.
    offsets: Vec<Option<Shared>>,
    keeps: bool,
}

impl Path {
    fn new(solver: &Solver<'_>, n_candidates: usize) -> Self {
        let (k, q) = (solver.folds.n_splits(), solver.n_problems());
        let n_values = k * q * solver.context.losses.width() * solver.context.products.n_features();
        Self {
            full: solver.constants.clone(),
            offsets: vec![None; k * q],
            keeps: n_candidates > 1 && n_values <= MOST_KEPT_VALUES,
        }
    }

    fn start(&self, fold: usize, output: usize) -> Shared {
        let full = &self.full[output];
        match &self.offsets[fold * self.full.len() + output] {
            None => full.clone(),
            Some(offset) => combine(full, 1.0, offset),
        }
    }

    fn keep(&mut self, problem: &Problem<'_>, fold: usize) {
        if self.keeps && problem.state == State::Solved {
            let output = problem.column.output;
            let offset = combine(&problem.shared(), -1.0, &self.full[output]);
            self.offsets[fold * self.full.len() + output] = Some(offset);
        }
    }
}

/// a + fb.
fn combine(a: &Shared, factor: f64, b: &Shared) -> Shared {
    let columns = a.iter().zip(b);
    let sum = |(a, b): (&Vec<f64>, &Vec<f64>)| {
        let values = a.iter().zip(b);
        values.map(|(a, b)| a + factor * b).collect()
    };
    columns.map(sum).collect()
}

struct Solver<'a> {
    context: Context<'a>,
    folds: &'a dyn Resampling,
    /// Of all rows, then of each fold; or one for all if there is no scaling.
    coordinates: Vec<Coordinates>,
    /// Sⱼ in shared parameters, for each problem and predictor.
    magnitudes: Vec<Shared>,
    /// Constant predictors, for each problem.
    constants: Vec<Shared>,
    accuracy: Accuracy,
}

impl<'a> Solver<'a> {
    fn new(
        model: &Model<'a>,
        (data, transposed): (&Dataset<'a>, Option<&'a Transposed>),
        targets: ArrayView2<'_, f64>,
        folds: &'a dyn Resampling,
        accuracy: Accuracy,
        monitor: &Monitor,
    ) -> Result<Self> {
        data.check_samples(folds.n_samples())?;
        let products = Products::new(data, transposed, monitor)?;
        let samples = Samples::new(data, targets, model.class_weights, folds)?;
        let coordinates =
            Coordinates::of_all(products.centre(), model.scaling, folds, model.intercept)?;
        let losses = Losses::new(samples, model.outputs)?;
        let context = Context::new(products, losses);
        let mut solver = Self {
            context,
            folds,
            coordinates,
            magnitudes: vec![],
            constants: vec![],
            accuracy,
        };
        solver.set_constants(model.intercept != Intercept::None, monitor)?;
        Ok(solver)
    }

    /// Computes the constant predictors and the magnitudes of gradients at them.
    fn set_constants(&mut self, has_intercept: bool, monitor: &Monitor) -> Result<()> {
        let Context {
            products, losses, ..
        } = &self.context;
        let width = products.n_features() + 1;
        for output in 0..self.n_problems() {
            let column = Column { set: None, output };
            let constants = losses.constants(output, has_intercept);
            let shared = |&constant: &f64| {
                let mut shared = vec![0.0; width];
                shared[width - 1] = constant;
                shared
            };
            let magnitudes = losses
                .first_at(column, &constants)
                .iter()
                .map(|first| {
                    let weights: Vec<f64> = first.iter().map(|v| v.abs()).collect();
                    products.column_sums(&weights, f64::abs, monitor)
                })
                .collect::<Result<_>>()?;
            self.constants.push(constants.iter().map(shared).collect());
            self.magnitudes.push(magnitudes);
        }
        Ok(())
    }

    /// Problems of one training set.
    fn n_problems(&self) -> usize {
        self.context.losses.samples.n_outputs()
    }

    /// Solutions that are to be filled in.
    fn empty_solutions(&self, n_candidates: usize, needs_coefficients: bool) -> Result<Solutions> {
        let k = self.folds.n_splits();
        let n_outputs = self.n_problems() * self.context.losses.width();
        let n_test = (0..k).map(|fold| self.folds.held_out(fold).len()).sum();
        let shape = [n_test, n_candidates, n_outputs];
        memory::check_shape::<f64>(format_args!("predictions of {n_test} rows"), &shape)?;
        let n_kept = if needs_coefficients { k } else { 0 };
        let n_columns = self.context.products.n_features() + 1;
        let kept = [n_kept, n_candidates, n_outputs, n_columns];
        memory::check_shape::<f64>(format_args!("coefficients of {n_kept} folds"), &kept)?;
        Ok(Solutions {
            predictors: Array3::from_elem(shape, f64::NAN),
            coefficients: Array4::zeros(kept),
            relative_gradients: Array3::from_elem((n_candidates, k, self.n_problems()), f64::NAN),
            gradient_rows: 0,
            hessian_rows: 0,
        })
    }

    fn coordinates(&self, set: TrainingSet) -> &Coordinates {
        &self.coordinates[line(set).min(self.coordinates.len() - 1)]
    }

    fn problem(&self, column: Column, penalties: &[f64], start: &Shared) -> Problem<'_> {
        Problem::new(
            column,
            self.coordinates(column.set),
            penalties[line(column.set)],
            &self.magnitudes[column.output],
            start,
        )
    }

    /// All folds of one candidate.
    fn candidate(
        &self,
        candidate: usize,
        penalties: &[f64],
        path: &mut Path,
        found: &mut Solutions,
        monitor: &Monitor,
    ) -> Result<()> {
        let (k, q) = (self.folds.n_splits(), self.n_problems());
        let mut preconditioner = None;
        let set = if k > 1 { None } else { Some(0) };
        let accuracy = match set {
            None => self.accuracy.of_start(START_PART / k as f64, k),
            Some(_) => self.accuracy,
        };
        let columns = (0..q).map(|output| Column { set, output });
        let mut first: Vec<Problem<'_>> = columns
            .map(|column| self.problem(column, penalties, &path.full[column.output]))
            .collect();
        self.context
            .minimise(&mut first, &mut preconditioner, (accuracy, true), monitor)?;
        for problem in &first {
            if problem.state == State::Solved {
                path.full[problem.column.output] = problem.shared();
            }
        }
        monitor.advance(1)?;
        if set.is_some() {
            self.collect(candidate, &first, found, monitor)?;
            return monitor.advance(1);
        }
        preconditioner = Some(self.context.preconditioner(&first, monitor)?);
        drop(first);
        let width = self.context.losses.width();
        let most = (MOST_PANEL_VALUES / self.context.products.n_rows().max(1)).min(MOST_COLUMNS);
        let all: Vec<Column> = (0..k * q)
            .map(|at| Column {
                set: Some(at / q),
                output: at % q,
            })
            .collect();
        for columns in all.chunks((most / width).max(1)) {
            let start = |column: &Column| path.start(column.set.unwrap_or(0), column.output);
            let mut problems: Vec<Problem<'_>> = columns
                .iter()
                .map(|column| self.problem(*column, penalties, &start(column)))
                .collect();
            let options = (self.accuracy, false);
            self.context
                .minimise(&mut problems, &mut preconditioner, options, monitor)?;
            for problem in &problems {
                path.keep(problem, problem.column.set.unwrap_or(0));
            }
            self.collect(candidate, &problems, found, monitor)?;
        }
        monitor.advance(k as u64)
    }

    /// Takes over what was found of problems of folds.
    fn collect(
        &self,
        candidate: usize,
        problems: &[Problem<'_>],
        found: &mut Solutions,
        monitor: &Monitor,
    ) -> Result<()> {
        let width = self.context.losses.width();
        let mut starts = vec![0];
        for fold in 0..self.folds.n_splits() {
            starts.push(starts[fold] + self.folds.held_out(fold).len());
        }
        for problem in problems {
            let Column { set, output } = problem.column;
            let fold = set.unwrap_or(0);
            let coordinates = self.coordinates(set);
            for (i, &row) in self.folds.held_out(fold).iter().enumerate() {
                for c in 0..width {
                    found.predictors[(starts[fold] + i, candidate, output * width + c)] =
                        problem.predictors[row * width + c];
                }
            }
            if !found.coefficients.is_empty() {
                let n_own = coordinates.n_own();
                let p = self.context.products.n_features();
                for (c, own) in problem.own.chunks_exact(n_own).enumerate() {
                    for j in 0..=p {
                        found.coefficients[(fold, candidate, output * width + c, j)] = if j < p {
                            own[j]
                        } else {
                            coordinates.intercept(own)
                        };
                    }
                }
            }
            let at = (candidate, fold, output);
            if problem.state == State::Solved && self.is_unique(problem, monitor)? {
                found.relative_gradients[at] = problem.relative_gradient;
            } else if problem.state == State::Unsolved {
                let reached = problem.relative_gradient;
                found.relative_gradients[at] = if reached.is_nan() {
                    f64::INFINITY
                } else {
                    reached
                };
            }
        }
        Ok(())
    }

    /// Whether an optimum is the only one: without a penalty, the training rows must have full rank.
    fn is_unique(&self, problem: &Problem<'_>, monitor: &Monitor) -> Result<bool> {
        if problem.penalty > 0.0 {
            return Ok(true);
        }
        let n_rows = self.context.products.n_rows();
        let mut weights = self.context.losses.weights(problem.column, 0, n_rows);
        for w in &mut weights {
            *w = f64::from(*w > 0.0);
        }
        let coordinates = self.coordinates(problem.column.set);
        has_full_rank(&self.context.products, coordinates, &weights, monitor)
    }
}
