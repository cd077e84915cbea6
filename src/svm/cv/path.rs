//! Executes a [plan](super::plan): all folds of a *C path*, candidates of one kernel by increasing C.
//!
//! Anchors are solved one after the other, then the rest in parallel; the binary problems of a
//! training set run in parallel too. On each training set a problem is solved for one C after the
//! other.
//!
//! The decision values of a fold's test samples are p − g + b; samples of classes that are not part of
//! a binary problem take one pass over its support vectors.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use ndarray::{Array1, Array2};
use rayon::prelude::*;

use super::plan::{Anchor, Plan, Seed};
use super::start::{PreviousC, Solved, Unsolved};
use crate::data::{Examples, Layout};
use crate::engine::OutOfFold;
use crate::folds::Resampling;
use crate::svm::candidate::Candidate;
use crate::svm::dual::{Bounds, Dual, Solution, Start, rounding_error};
use crate::svm::gram::Gram;
use crate::svm::problem::{BinaryProblem, BinaryProblems};
use crate::svm::seeding::{self, SeededStart, Seeding};
use crate::svm::smo::{self, Options};
use crate::{Cost, Monitor, Result};

/// The result of one candidate, with diagnostics of the solver.
#[derive(Debug)]
pub struct Outcome {
    /// Decision values, one column per binary problem. Kernel rows are counted for the first candidate
    /// that needed them.
    pub out_of_fold: OutOfFold,
    /// SMO iterations of each fold, over all binary problems.
    pub iterations: Array1<u64>,
    /// SMO iterations for the solution of all samples, if folds start from it.
    pub all_samples_iterations: u64,
    /// The largest remaining gap.
    pub gap: f64,
    /// Time spent on starts, over all threads.
    pub seeding_time: Duration,
    /// The rule, resolved for the folds and the kernel.
    pub rule: Seeding,
}

/// A candidate with its binary problems.
#[derive(Debug)]
pub(super) struct Prepared<'a> {
    pub(super) candidate: &'a Candidate,
    pub(super) binary: BinaryProblems,
}

/// A kernel matrix, shared by training sets or owned by one.
pub(super) enum GramRef<'a> {
    Shared(&'a Gram<'a>),
    Owned(Box<Gram<'a>>),
}

impl<'a> GramRef<'a> {
    pub(super) fn gram(&'a self) -> &'a Gram<'a> {
        match self {
            Self::Shared(gram) => gram,
            Self::Owned(gram) => gram,
        }
    }
}

/// What all candidates have in common.
pub(super) struct CvContext<'a, R> {
    pub(super) examples: &'a Examples<'a, R>,
    pub(super) folds: &'a dyn Resampling,
    pub(super) sample_of_row: &'a [usize],
    pub(super) monitor: &'a Monitor,
}

/// A training set: its kernel matrix, and the C of every sample for each candidate of the path.
struct TrainingSet<'g> {
    gram: GramRef<'g>,
    costs: Vec<Vec<f64>>,
}

/// Solutions of one binary problem on one training set, one per candidate of the path.
type PathSolutions = Vec<Solved>;

/// The solved anchors, each with its solutions by binary problem.
type Anchors = Vec<(Anchor, Vec<PathSolutions>)>;

fn find(anchors: &Anchors, wanted: Anchor) -> Option<&Vec<PathSolutions>> {
    let found = anchors.iter().find(|(anchor, _)| *anchor == wanted);
    found.map(|(_, solutions)| solutions)
}

/// One binary problem of one candidate in one fold.
#[derive(Debug)]
struct FoldResult {
    decision_values: Vec<f64>,
    iterations: u64,
    rows_read: u64,
    gap: f64,
    seeding_time: Duration,
}

/// Solves a C path. `grams(set)` is the kernel matrix of all samples (0) or of a fold (fold + 1).
pub(super) struct PathSolver<'a, R, G> {
    pub(super) context: &'a CvContext<'a, R>,
    pub(super) path: &'a [&'a Prepared<'a>],
    pub(super) plan: Plan,
    pub(super) grams: &'a G,
}

impl<'g, R, G> PathSolver<'_, R, G>
where
    R: Layout + Debug,
    G: Fn(usize) -> Result<GramRef<'g>> + Sync,
{
    /// Solves the anchors, then all folds; returns one outcome per candidate of the path.
    pub(super) fn run(&self) -> Result<Vec<Outcome>> {
        let mut anchors = vec![];
        for &(anchor, seeds) in self.plan.anchors {
            let solutions = self.solve_anchor(anchor, seeds, &anchors)?;
            anchors.push((anchor, solutions));
        }
        let folds = (0..self.context.folds.n_splits()).into_par_iter();
        let folds = folds.map(|fold| self.fold(fold, &anchors));
        let folds = folds.collect::<Result<Vec<_>>>()?;
        Ok((0..self.path.len())
            .map(|at| self.outcome(at, &folds, &anchors))
            .collect())
    }

    fn solve_anchor(
        &self,
        anchor: Anchor,
        seeds: &[Seed],
        anchors: &Anchors,
    ) -> Result<Vec<PathSolutions>> {
        let set = self.training_set(match anchor {
            Anchor::Fold(fold) => Some(fold),
            Anchor::AllSamples | Anchor::Merged => None,
        })?;
        let problems = (0..self.n_problems()).into_par_iter();
        let solutions = problems.map(|problem| match anchor {
            Anchor::Merged => self.merge(&set, problem, anchors),
            _ => self.solve_path(&set, problem, seeds, anchors),
        });
        solutions.collect()
    }

    /// All binary problems of a fold, by problem and candidate.
    fn fold(&self, fold: usize, anchors: &Anchors) -> Result<Vec<Vec<FoldResult>>> {
        let set = self.training_set(Some(fold))?;
        let results = |problem: usize, solutions: &PathSolutions| -> Vec<FoldResult> {
            let solutions = self.path.iter().zip(solutions);
            let results = solutions.map(|(prepared, solved)| {
                let problem = &prepared.binary.problems[problem];
                self.fold_result(&set, problem, solved, fold)
            });
            results.collect()
        };
        let anchor = find(anchors, Anchor::Fold(fold));
        let problems = (0..self.n_problems()).into_par_iter();
        let problems = problems.map(|problem| {
            if let Some(solutions) = anchor {
                return Ok(results(problem, &solutions[problem]));
            }
            let solutions = self.solve_path(&set, problem, self.plan.seeds, anchors)?;
            Ok(results(problem, &solutions))
        });
        problems.collect()
    }

    /// Solves one binary problem for one candidate after the other.
    fn solve_path(
        &self,
        set: &TrainingSet<'_>,
        at: usize,
        seeds: &[Seed],
        anchors: &Anchors,
    ) -> Result<PathSolutions> {
        let monitor = self.context.monitor;
        let has_same_kernel = self.path[0].candidate.kernels.len() == 1;
        let mut path: PathSolutions = vec![];
        for (step, prepared) in self.path.iter().enumerate() {
            let problem = &prepared.binary.problems[at];
            let options = &prepared.candidate.options;
            let dual = problem.dual(set.gram.gram());
            let bounds = problem.bounds(&set.costs[step]);
            let clock = Instant::now();
            let unsolved = Unsolved {
                dual: &dual,
                bounds: &bounds,
                tolerance: options.tolerance,
                monitor,
            };
            let plan_seed = |seed: &Seed| match *seed {
                Seed::Zero => Ok(SeededStart::cold(&dual)),
                Seed::From(anchor, rule) => match find(anchors, anchor) {
                    Some(solved) => unsolved.seed(rule, &solved[at][step], has_same_kernel),
                    None => Ok(SeededStart::cold(&dual)),
                },
            };
            let previous = path.last().filter(|_| self.plan.follows_c_path());
            let previous = previous.map(|solved| PreviousC {
                solved,
                linear: &self.path[step - 1].binary.problems[at].linear,
                ratio: self.c(step) / self.c(step - 1),
            });
            let start = unsolved.choose(previous, || seeds.iter().map(plan_seed).collect())?;
            let seeding_time = clock.elapsed();
            let solution = self.solve(&dual, &bounds, start, options)?;
            monitor.advance(1)?;
            path.push(Solved {
                solution,
                bounds,
                seeding_time,
            });
        }
        Ok(path)
    }

    /// Solves a binary problem from a start. If its intercept is not unique, the problem is solved again
    /// as a fit would solve it, because the intercept then depends on the path of the solver.
    fn solve(
        &self,
        dual: &Dual<'_>,
        bounds: &Bounds,
        seed: SeededStart,
        fit_options: &Options,
    ) -> Result<Solution> {
        let monitor = self.context.monitor;
        let options = Options {
            conjugate: self.plan.is_conjugate(),
            ..*fit_options
        };
        let is_fit = seed.is_cold() && !options.conjugate;
        let start_error = rounding_error(&seed.start.beta);
        let mut solution = smo::solve(dual, bounds, seed.start, &options, monitor)?;
        solution.rows_read += seed.rows_read;
        if is_fit || solution.intercept_slack(bounds, start_error) <= options.tolerance {
            return Ok(solution);
        }
        let fit = smo::solve(dual, bounds, Start::cold(dual), fit_options, monitor)?;
        Ok(Solution {
            iterations: solution.iterations + fit.iterations,
            rows_read: solution.rows_read + fit.rows_read,
            ..fit
        })
    }

    /// Approximates the solutions of all samples by those of folds 0 and 1.
    fn merge(&self, set: &TrainingSet<'_>, at: usize, anchors: &Anchors) -> Result<PathSolutions> {
        let folds = [0, 1].map(|fold| find(anchors, Anchor::Fold(fold)));
        let [Some(first), Some(second)] = folds else {
            return Ok(vec![]);
        };
        let pairs = first[at].iter().zip(&second[at]);
        let merged = self.path.iter().zip(&set.costs).zip(pairs);
        let merged = merged.map(|((prepared, costs), (first, second))| {
            let clock = Instant::now();
            let problem = &prepared.binary.problems[at];
            let dual = problem.dual(set.gram.gram());
            let [first, second] = [first, second].map(|solved| (&solved.solution, &solved.bounds));
            let solution = seeding::merge(&dual, first, second, self.context.monitor)?;
            Ok(Solved {
                solution,
                bounds: problem.bounds(costs),
                seeding_time: clock.elapsed(),
            })
        });
        merged.collect()
    }

    fn n_problems(&self) -> usize {
        self.path[0].binary.problems.len()
    }

    fn c(&self, step: usize) -> f64 {
        self.path[step].candidate.penalty.c()
    }

    /// The training set of a fold, or all samples.
    fn training_set(&self, fold: Option<usize>) -> Result<TrainingSet<'g>> {
        let set = fold.map_or(0, |fold| fold + 1);
        let counts = self.context.row_counts(fold);
        let costs = |prepared: &&Prepared<'_>| {
            let Prepared { candidate, binary } = prepared;
            let row_of_sample = &binary.row_of_sample;
            let penalty = &candidate.penalty;
            penalty.per_sample(self.context.examples, row_of_sample, set, &counts)
        };
        Ok(TrainingSet {
            gram: (self.grams)(set)?,
            costs: self.path.iter().map(costs).collect(),
        })
    }

    fn fold_result(
        &self,
        set: &TrainingSet<'_>,
        problem: &BinaryProblem,
        solved: &Solved,
        fold: usize,
    ) -> FoldResult {
        let dual = problem.dual(set.gram.gram());
        let solution = &solved.solution;
        let (decision_values, rows_read) =
            (self.context).decision_values(problem, &dual, solution, fold);
        FoldResult {
            decision_values,
            iterations: solution.iterations,
            rows_read: solution.rows_read + rows_read,
            gap: solution.gap,
            seeding_time: solved.seeding_time,
        }
    }

    /// The outcome of candidate `at`; `folds` are by fold, binary problem and candidate.
    fn outcome(&self, at: usize, folds: &[Vec<Vec<FoldResult>>], anchors: &Anchors) -> Outcome {
        let context = self.context;
        let held_out = (0..folds.len()).flat_map(|fold| {
            let n_rows = context.folds.held_out(fold).len();
            (0..n_rows).map(move |row| (fold, row))
        });
        let held_out: Vec<(usize, usize)> = held_out.collect();
        let shape = (held_out.len(), self.n_problems());
        let outputs = Array2::from_shape_fn(shape, |(at_row, problem)| {
            let (fold, row) = held_out[at_row];
            folds[fold][problem][at].decision_values[row]
        });
        let total = |fold: &Vec<Vec<FoldResult>>| fold.iter().map(|p| p[at].iterations).sum();
        let iterations: Array1<u64> = folds.iter().map(total).collect();
        let results = || folds.iter().flatten().map(|path| &path[at]);
        // Anchors that are no fold.
        let extra = |anchor: Anchor| {
            let solutions = find(anchors, anchor).into_iter().flatten();
            solutions.map(|path| &path[at])
        };
        let all_samples = || extra(Anchor::AllSamples);
        let extras = || all_samples().chain(extra(Anchor::Merged));
        let all_samples_iterations = all_samples().map(|s| s.solution.iterations).sum();
        let cost = Cost {
            fits: (results().count() + all_samples().count()) as u64,
            rows_evaluated: held_out.len() as u64,
            cache_hits: results().map(|result| result.rows_read).sum::<u64>()
                + extras().map(|s| s.solution.rows_read).sum::<u64>(),
            smo_iterations: all_samples_iterations + iterations.sum(),
            ..Cost::default()
        };
        let gap = results().map(|result| result.gap).fold(0.0, f64::max);
        let tolerance = self.path[at].candidate.options.tolerance;
        let note = || format!("not converged: the gap is {gap:.2e}, above tol={tolerance}");
        Outcome {
            out_of_fold: OutOfFold {
                outputs,
                cost,
                notes: (gap >= tolerance).then(note).into_iter().collect(),
            },
            iterations,
            all_samples_iterations,
            gap,
            seeding_time: results().map(|r| r.seeding_time).sum::<Duration>()
                + extras().map(|s| s.seeding_time).sum::<Duration>(),
            rule: self.plan.rule,
        }
    }
}

impl<R: Layout + Debug> CvContext<'_, R> {
    /// How often each row occurs in a training set.
    fn row_counts(&self, fold: Option<usize>) -> Vec<f64> {
        let Some(fold) = fold else {
            return vec![1.0; self.folds.n_samples()];
        };
        let mut counts = vec![0.0; self.folds.n_samples()];
        for &row in self.folds.training(fold).into_iter().flatten() {
            counts[row] += 1.0;
        }
        counts
    }

    /// Decision values of a fold's test samples, and the number of kernel rows read for them.
    fn decision_values(
        &self,
        problem: &BinaryProblem,
        dual: &Dual<'_>,
        solution: &Solution,
        fold: usize,
    ) -> (Vec<f64>, u64) {
        let held_out = self.folds.held_out(fold);
        let mut values = vec![solution.intercept; held_out.len()];
        let mut other_classes = vec![];
        for (value, &row) in values.iter_mut().zip(held_out) {
            let sample = self.sample_of_row[row];
            match problem.variable(sample) {
                Some(variable) => *value = solution.decision_value(dual, variable),
                None => other_classes.push((value, sample)),
            }
        }
        if other_classes.is_empty() {
            return (values, 0);
        }
        let mut rows_read = 0;
        let support = solution.beta.iter().enumerate().filter(|(_, b)| **b != 0.0);
        for (variable, &beta) in support {
            let row = dual.gram().row(dual.sample(variable));
            rows_read += 1;
            for (value, sample) in &mut other_classes {
                **value += beta * f64::from(row[*sample]);
            }
        }
        (values, rows_read)
    }
}
