//! Executes a [plan](super::plan): all folds of a *C path*, candidates of one kernel by increasing C.
//!
//! Anchors are solved one after the other, then the rest in parallel; the binary problems of a
//! training set run in parallel too. On each training set a problem is solved for one C after the
//! other.
//!
//! The decision values of a fold's test samples are p − g + b; samples of classes that are not part of
//! a binary problem take one pass over its support vectors. Kernels that are not bounded have theirs
//! [in f64](crate::svm::decision).

use std::fmt::Debug;
use std::ops::Deref;

use ndarray::Array2;
use rayon::prelude::*;

use super::fold_result::{CvContext, FoldResult};
use super::plan::{Anchor, Plan, Seed};
use super::start::{Solved, Unsolved};
use crate::engine::{OutOfFold, Status};
use crate::scaling::{RowStore as _, ScaledLayout, ScaledValues};
use crate::svm::candidate::Candidate;
use crate::svm::decision::{Decision, decision_values};
use crate::svm::dual::Solution;
use crate::svm::gram::Gram;
use crate::svm::problem::BinaryProblems;
use crate::svm::seeding::{self, CPathSeed, GammaSeries, SeededStart};
use crate::{Cost, Result};

/// A candidate with its binary problems.
#[derive(Debug)]
pub(super) struct Prepared<'a> {
    pub(super) candidate: &'a Candidate,
    pub(super) binary: BinaryProblems,
}

/// A training set: its kernel matrix, and the C of every sample for each candidate of the path.
struct TrainingSet<K> {
    /// 0 for all samples, fold + 1 for that of a fold.
    number: usize,
    gram: K,
    costs: Vec<Vec<f64>>,
}

/// Solutions of one binary problem on one training set, one per candidate of the path.
type PathSolutions = Vec<Solved>;

/// Results of a fold, by binary problem and candidate.
type FoldResults = Vec<Vec<FoldResult>>;

/// The number of a training set: 0 for all samples, fold + 1 for that of a fold.
fn set_number(fold: Option<usize>) -> usize {
    fold.map_or(0, |fold| fold + 1)
}

/// The solved anchors, each with its solutions by binary problem.
type Anchors = Vec<(Anchor, Vec<PathSolutions>)>;

/// The solutions of an anchor, if the plan has it.
fn find(anchors: &Anchors, wanted: Anchor) -> Option<&Vec<PathSolutions>> {
    let found = anchors.iter().find(|(anchor, _)| *anchor == wanted);
    found.map(|(_, solutions)| solutions)
}

/// Solves a C path. `grams(set)` is the kernel matrix of all samples (0) or of a fold (fold + 1), shared
/// or owned.
pub(super) struct PathSolver<'a, R, G> {
    pub(super) context: &'a CvContext<'a, R>,
    pub(super) path: &'a [&'a Prepared<'a>],
    pub(super) plan: Plan,
    pub(super) grams: &'a G,
}

impl<'g, R, G, K> PathSolver<'_, R, G>
where
    R: ScaledLayout,
    G: Fn(usize) -> Result<K> + Sync,
    K: Deref<Target = Gram<'g>> + Sync,
{
    /// Solves the anchors, then all other folds; returns one outcome per candidate of the path.
    pub(super) fn run(&self) -> Result<Vec<OutOfFold>> {
        let n_folds = self.context.folds.n_splits();
        let mut folds: Vec<Option<FoldResults>> = (0..n_folds).map(|_| None).collect();
        let anchors = self.solve_anchors(&mut folds)?;
        let rest = folds.into_par_iter().enumerate();
        let folds = rest.map(|(fold, known)| match known {
            Some(results) => Ok(results),
            None => self
                .solve_fold(fold, self.plan.seeds, &anchors)
                .map(|f| f.2),
        });
        let folds = folds.collect::<Result<Vec<_>>>()?;
        let candidates = 0..self.path.len();
        Ok(candidates
            .map(|at| self.outcome(at, &folds, &anchors))
            .collect())
    }

    /// Solves the anchors one after the other; stores the results of those that are folds.
    fn solve_anchors(&self, folds: &mut [Option<FoldResults>]) -> Result<Anchors> {
        let mut anchors = vec![];
        let mut first_gram = None;
        for &(anchor, seeds) in self.plan.anchors {
            let solutions = match anchor {
                Anchor::Fold(fold) => {
                    let (set, solutions, results) = self.solve_fold(fold, seeds, &anchors)?;
                    folds[fold] = Some(results);
                    first_gram.get_or_insert(set.gram);
                    solutions
                }
                Anchor::AllSamples => {
                    let set = self.training_set(None)?;
                    let mut solutions = self.solve_set(&set, seeds, &anchors)?;
                    self.add_series(&set.gram, 0, &mut solutions)?;
                    solutions
                }
                Anchor::Merged => {
                    // That of fold 0, whose gradient is the one that changes, if folds have different ones.
                    let (set, gram) = match first_gram.take() {
                        Some(gram) => (1, gram),
                        None => (0, (self.grams)(0)?),
                    };
                    let costs = self.costs(None);
                    let problems = (0..self.n_problems()).into_par_iter();
                    let merged = problems.map(|at| self.merge(&gram, &costs, at, &anchors));
                    let mut merged = merged.collect::<Result<Vec<_>>>()?;
                    self.add_series(&gram, set, &mut merged)?;
                    merged
                }
            };
            anchors.push((anchor, solutions));
        }
        Ok(anchors)
    }

    /// Prepares solutions for starts of training sets whose kernel has nearly the same γ. `set` is the
    /// training set of `gram`.
    fn add_series(
        &self,
        gram: &Gram<'g>,
        set: usize,
        solutions: &mut [PathSolutions],
    ) -> Result<()> {
        let candidate = self.path[0].candidate;
        if candidate.has_one_matrix() || candidate.scaling.is_some() {
            return Ok(());
        }
        let (kernel, kernels) = (candidate.kernel(set), &candidate.kernels);
        let solutions = solutions.par_iter_mut().enumerate();
        solutions.try_for_each(|(at, path)| {
            for (solved, prepared) in path.iter_mut().zip(self.path) {
                let dual = prepared.binary.problems[at].dual(gram);
                let (beta, monitor) = (&solved.solution.beta, self.context.monitor);
                let found = GammaSeries::new(&dual, beta, kernel, kernels, monitor)?;
                if let Some((series, n_read)) = found {
                    solved.series = Some(series);
                    solved.solution.rows_read += n_read;
                }
            }
            Ok(())
        })
    }

    /// All binary problems of a training set.
    fn solve_set(
        &self,
        set: &TrainingSet<K>,
        seeds: &[Seed],
        anchors: &Anchors,
    ) -> Result<Vec<PathSolutions>> {
        let problems = (0..self.n_problems()).into_par_iter();
        let solutions = problems.map(|at| self.solve_path(set, at, seeds, anchors));
        solutions.collect()
    }

    /// A fold: its training set, its solutions and its results.
    fn solve_fold(
        &self,
        fold: usize,
        seeds: &[Seed],
        anchors: &Anchors,
    ) -> Result<(TrainingSet<K>, Vec<PathSolutions>, FoldResults)> {
        let set = self.training_set(Some(fold))?;
        let mut solutions = self.solve_set(&set, seeds, anchors)?;
        if self.plan.has_seed_from(Anchor::Fold(fold)) {
            self.add_series(&set.gram, fold + 1, &mut solutions)?;
        }
        let exact = self.exact_decision_values(&set, fold, &solutions)?;
        let problems = (0..self.n_problems()).into_par_iter();
        let results = problems.map(|at| {
            let path = self.path.iter().zip(&solutions[at]).enumerate();
            let results = path.map(|(step, (prepared, solved))| {
                let problem = &prepared.binary.problems[at];
                let column = at * self.path.len() + step;
                let exact = exact.as_ref().map(|values| values.column(column).to_vec());
                self.context
                    .fold_result(&set.gram, problem, &solved.solution, fold, exact)
            });
            results.collect()
        });
        let results = results.collect();
        Ok((set, solutions, results))
    }

    /// Decision values of a fold's test samples in f64, if the kernel needs them: one column per binary
    /// problem and candidate.
    fn exact_decision_values(
        &self,
        set: &TrainingSet<K>,
        fold: usize,
        solutions: &[PathSolutions],
    ) -> Result<Option<Array2<f64>>> {
        let candidate = self.path[0].candidate;
        let kernel = candidate.kernel(fold + 1);
        if !kernel.is_unbounded() {
            return Ok(None);
        }
        let decision = |prepared: &Prepared<'_>, at: usize, solution: &Solution| {
            let dual = prepared.binary.problems[at].dual(&set.gram);
            let betas = solution.beta.iter().enumerate();
            let support = betas.filter(|(_, beta)| **beta != 0.0);
            let row = |variable| prepared.binary.row_of_sample[dual.sample(variable)];
            Decision {
                coefficients: support.map(|(at, &beta)| (row(at), beta)).collect(),
                intercept: solution.intercept,
            }
        };
        let mut decisions: Vec<Decision> = solutions
            .iter()
            .enumerate()
            .flat_map(|(at, path)| {
                let path = self.path.iter().zip(path);
                path.map(move |(prepared, solved)| decision(prepared, at, &solved.solution))
            })
            .collect();
        // The coefficients of rows become those of positions among the support vectors of any problem.
        let all = decisions.iter().flat_map(|one| &one.coefficients);
        let mut support: Vec<usize> = all.map(|(row, _)| *row).collect();
        support.sort_unstable();
        support.dedup();
        let mut position = vec![0; self.context.examples.rows().n_rows()];
        for (at, &row) in support.iter().enumerate() {
            position[row] = at;
        }
        for (row, _) in decisions.iter_mut().flat_map(|one| &mut one.coefficients) {
            *row = position[*row];
        }
        let (rows, test) = (
            self.context.examples.rows(),
            self.context.folds.held_out(fold),
        );
        let monitor = self.context.monitor;
        match &candidate.scaling {
            None => {
                let (test, support) = ((rows, test), (rows, &support[..]));
                decision_values(kernel, test, support, &decisions, monitor)
            }
            Some(scaling) => {
                let rows = ScaledValues::new(rows, scaling, fold + 1)?;
                let rows = rows.view();
                let (test, support) = ((&rows, test), (&rows, &support[..]));
                decision_values(kernel, test, support, &decisions, monitor)
            }
        }
        .map(Some)
    }

    /// Solves binary problem `at` for one candidate after the other.
    fn solve_path(
        &self,
        set: &TrainingSet<K>,
        at: usize,
        seeds: &[Seed],
        anchors: &Anchors,
    ) -> Result<PathSolutions> {
        let candidate = self.path[0].candidate;
        let kernel = (!candidate.has_one_matrix()).then(|| candidate.kernel(set.number));
        let mut path: PathSolutions = vec![];
        for step in 0..self.path.len() {
            let unsolved = self.unsolved(set, at, step);
            let plan_seed = |seed: &Seed| {
                let from = match *seed {
                    Seed::Zero => None,
                    Seed::From(anchor, rule) => find(anchors, anchor).zip(Some(rule)),
                };
                from.map_or_else(
                    || Ok(SeededStart::cold(&unsolved.dual)),
                    |(solved, rule)| unsolved.seed(rule, &solved[at][step], kernel),
                )
            };
            let previous = path.last().filter(|_| self.plan.follows_c_path());
            let previous = previous.map(|solved: &Solved| {
                let seed = CPathSeed {
                    dual: &unsolved.dual,
                    solution: &solved.solution,
                    linear: &self.path[step - 1].binary.problems[at].linear,
                    old_bounds: &solved.bounds,
                    new_bounds: &unsolved.bounds,
                    monitor: self.context.monitor,
                };
                let [old_c, new_c] = [step - 1, step].map(|at| self.path[at].candidate.c);
                (seed, new_c / old_c)
            });
            let start = unsolved.choose(previous, || seeds.iter().map(plan_seed).collect())?;
            let solution = unsolved.solve(start, self.plan.is_conjugate())?;
            self.context.monitor.advance(1)?;
            path.push(Solved {
                solution,
                bounds: unsolved.bounds,
                series: None,
            });
        }
        Ok(path)
    }

    /// Approximates the solutions of all samples by those of folds 0 and 1.
    fn merge(
        &self,
        gram: &Gram<'g>,
        costs: &[Vec<f64>],
        at: usize,
        anchors: &Anchors,
    ) -> Result<PathSolutions> {
        let folds = [0, 1].map(|fold| find(anchors, Anchor::Fold(fold)));
        let [Some(first), Some(second)] = folds else {
            return Ok(vec![]);
        };
        let merged = (0..self.path.len()).map(|step| {
            let problem = &self.path[step].binary.problems[at];
            let (dual, bounds) = (problem.dual(gram), problem.bounds(&costs[step]));
            let [first, second] = [first, second].map(|solved| {
                let Solved {
                    solution, bounds, ..
                } = &solved[at][step];
                (solution, bounds)
            });
            Ok(Solved {
                solution: seeding::merge(&dual, first, second, self.context.monitor)?,
                bounds,
                series: None,
            })
        });
        merged.collect()
    }

    fn n_problems(&self) -> usize {
        self.path[0].binary.problems.len()
    }

    /// Binary problem `at` of candidate `step` of the path.
    fn unsolved<'s>(&'s self, set: &'s TrainingSet<K>, at: usize, step: usize) -> Unsolved<'s>
    where
        'g: 's,
    {
        let Prepared { candidate, binary } = self.path[step];
        Unsolved {
            dual: binary.problems[at].dual(&set.gram),
            bounds: binary.problems[at].bounds(&set.costs[step]),
            options: &candidate.options,
            monitor: self.context.monitor,
        }
    }

    /// The training set of a fold, or all samples.
    fn training_set(&self, fold: Option<usize>) -> Result<TrainingSet<K>> {
        Ok(TrainingSet {
            number: set_number(fold),
            gram: (self.grams)(set_number(fold))?,
            costs: self.costs(fold),
        })
    }

    /// The C of every sample in the training set of a fold, or in all samples, by candidate.
    fn costs(&self, fold: Option<usize>) -> Vec<Vec<f64>> {
        let (set, counts) = (set_number(fold), self.context.row_counts(fold));
        let costs = |Prepared { candidate, binary }: &&Prepared<'_>| {
            let (examples, row_of_sample) = (self.context.examples, &binary.row_of_sample);
            candidate.sample_costs(examples, row_of_sample, set, &counts)
        };
        self.path.iter().map(costs).collect()
    }

    /// The result of candidate `at`.
    fn outcome(&self, at: usize, folds: &[FoldResults], anchors: &Anchors) -> OutOfFold {
        let held_out = folds.iter().flat_map(|fold| {
            let n_rows = fold[0][at].decision_values.len();
            (0..n_rows).map(move |row| (fold, row))
        });
        let held_out: Vec<_> = held_out.collect();
        let shape = (held_out.len(), self.n_problems());
        let sign = self.path[at].binary.output_sign();
        let outputs = Array2::from_shape_fn(shape, |(position, problem)| {
            let (fold, row) = held_out[position];
            sign * fold[problem][at].decision_values[row]
        });
        let shape = (folds.len(), self.n_problems());
        let iterations = Array2::from_shape_fn(shape, |(fold, p)| folds[fold][p][at].iterations);
        let gaps = Array2::from_shape_fn(shape, |(fold, p)| folds[fold][p][at].gap);
        let results = || folds.iter().flatten().map(|path| &path[at]);
        // Anchors that are no fold.
        let extra = |anchor: Anchor| {
            let solutions = find(anchors, anchor).into_iter().flatten();
            solutions.map(|path| &path[at].solution)
        };
        let all_samples = || extra(Anchor::AllSamples);
        let extras = || all_samples().chain(extra(Anchor::Merged));
        let cost = Cost {
            fits: (results().count() + all_samples().count()) as u64,
            rows_evaluated: held_out.len() as u64,
            cache_hits: results().map(|result| result.rows_read).sum::<u64>()
                + extras().map(|solution| solution.rows_read).sum::<u64>(),
            smo_iterations: iterations.sum() + all_samples().map(|s| s.iterations).sum::<u64>(),
            ..Cost::default()
        };
        OutOfFold {
            outputs,
            cost,
            status: Status {
                method: self.plan.rule.name(),
                iterations,
                gaps,
                ..Status::default()
            },
            ..OutOfFold::default()
        }
    }
}
