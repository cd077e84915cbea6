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
use std::sync::Arc;

use ndarray::Array2;
use rayon::prelude::*;

use super::fold_result::{CvContext, FoldResult};
use super::plan::{Anchor, Plan, Seed};
use super::start::{BinaryTask, SolvedTask};
use crate::engine::{OutOfFold, Status, UndeterminedFold};
use crate::linear::{RowStore as _, ScaledLayout, ScaledValues, TrainingSet, TrainingSets};
use crate::svm::candidate::SvmSpec;
use crate::svm::decision::{Decision, decision_values};
use crate::svm::dual::Solution;
use crate::svm::gram::Gram;
use crate::svm::problem::BinaryProblems;
use crate::svm::seeding::{self, CPathSeed, GammaSeries};
use crate::{Cost, Result};

/// A candidate with its binary problems.
#[derive(Debug)]
pub(super) struct PreparedCandidate<'a> {
    pub(super) candidate: &'a SvmSpec,
    /// Those of candidates that minimise the same errors are shared.
    pub(super) binary: Arc<BinaryProblems>,
    /// With the weights of its classes.
    pub(super) sets: TrainingSets<'a>,
}

/// A training set with its kernel matrix, and the C of every sample for each candidate of the path.
struct WeightedGram<K> {
    set: TrainingSet,
    gram: K,
    costs: Vec<Vec<f64>>,
}

/// Solutions of one binary problem on one training set, one per candidate of the path.
type PathSolutions = Vec<SolvedTask>;

/// Results of a fold, by binary problem and candidate.
type FoldResults = Vec<Vec<FoldResult>>;

/// The solved anchors, each with its solutions by binary problem.
type Anchors = Vec<(Anchor, Vec<PathSolutions>)>;

/// The solutions of an anchor, if the plan has it.
fn find(anchors: &Anchors, wanted: Anchor) -> Option<&Vec<PathSolutions>> {
    let found = anchors.iter().find(|(anchor, _)| *anchor == wanted);
    found.map(|(_, solutions)| solutions)
}

/// Solves a C path over the kernel matrices of the training sets, shared or owned.
pub(super) struct PathSolver<'a, R, G> {
    pub(super) context: &'a CvContext<'a, R>,
    pub(super) path: &'a [&'a PreparedCandidate<'a>],
    pub(super) plan: Plan,
    pub(super) grams: &'a G,
}

impl<'g, R, G, K> PathSolver<'_, R, G>
where
    R: ScaledLayout,
    G: Fn(TrainingSet) -> Result<K> + Sync,
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
            .map(|candidate_index| self.outcome(candidate_index, &folds, &anchors))
            .collect())
    }

    /// Solves the anchors one after the other; stores the results of those that are folds.
    fn solve_anchors(&self, folds: &mut [Option<FoldResults>]) -> Result<Anchors> {
        let mut anchors = vec![];
        let mut first_gram = None;
        for &(anchor, seeds) in self.plan.anchors {
            let solutions = match anchor {
                Anchor::Fold(fold) => {
                    let (weighted, solutions, results) = self.solve_fold(fold, seeds, &anchors)?;
                    folds[fold] = Some(results);
                    first_gram.get_or_insert(weighted.gram);
                    solutions
                }
                Anchor::AllSamples => {
                    let weighted = self.weighted_gram(None)?;
                    let mut solutions = self.solve_set(&weighted, seeds, &anchors)?;
                    self.add_series(&weighted.gram, None, &mut solutions)?;
                    solutions
                }
                Anchor::Merged => {
                    // That of fold 0, whose gradient is the one that changes, if folds have
                    // different ones.
                    let (set, gram) = match first_gram.take() {
                        Some(gram) => (Some(0), gram),
                        None => (None, (self.grams)(None)?),
                    };
                    let costs = self.costs(None);
                    let problems = (0..self.n_problems()).into_par_iter();
                    let merged = problems
                        .map(|problem_index| self.merge(&gram, &costs, problem_index, &anchors));
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
        set: TrainingSet,
        solutions: &mut [PathSolutions],
    ) -> Result<()> {
        let candidate = self.path[0].candidate;
        if candidate.has_one_matrix() || candidate.scaling.is_some() {
            return Ok(());
        }
        let (kernel, kernels) = (candidate.kernel(set), &candidate.kernels);
        let solutions = solutions.par_iter_mut().enumerate();
        solutions.try_for_each(|(problem_index, path)| {
            for (solved, prepared) in path.iter_mut().zip(self.path) {
                let dual = prepared.binary.problems[problem_index].dual(gram);
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
        weighted: &WeightedGram<K>,
        seeds: &[Seed],
        anchors: &Anchors,
    ) -> Result<Vec<PathSolutions>> {
        let problems = (0..self.n_problems()).into_par_iter();
        let solutions =
            problems.map(|problem_index| self.solve_path(weighted, problem_index, seeds, anchors));
        solutions.collect()
    }

    /// A fold: its training set, its solutions and its results.
    fn solve_fold(
        &self,
        fold: usize,
        seeds: &[Seed],
        anchors: &Anchors,
    ) -> Result<(WeightedGram<K>, Vec<PathSolutions>, FoldResults)> {
        let weighted = self.weighted_gram(Some(fold))?;
        let mut solutions = self.solve_set(&weighted, seeds, anchors)?;
        if self.plan.has_seed_from(Anchor::Fold(fold)) {
            self.add_series(&weighted.gram, Some(fold), &mut solutions)?;
        }
        let exact = self.exact_decision_values(&weighted, fold, &solutions)?;
        let problems = (0..self.n_problems()).into_par_iter();
        let results = problems.map(|problem_index| {
            let path = self.path.iter().zip(&solutions[problem_index]).enumerate();
            let results = path.map(|(candidate_index, (prepared, solved))| {
                let problem = &prepared.binary.problems[problem_index];
                let column = problem_index * self.path.len() + candidate_index;
                let exact = exact.as_ref().map(|values| values.column(column).to_vec());
                self.context
                    .fold_result(&weighted.gram, problem, &solved.solution, fold, exact)
            });
            results.collect()
        });
        let results = results.collect();
        Ok((weighted, solutions, results))
    }

    /// Decision values of a fold's test samples in f64, if the kernel needs them: one column per binary
    /// problem and candidate.
    fn exact_decision_values(
        &self,
        weighted: &WeightedGram<K>,
        fold: usize,
        solutions: &[PathSolutions],
    ) -> Result<Option<Array2<f64>>> {
        let candidate = self.path[0].candidate;
        let kernel = candidate.kernel(Some(fold));
        if !kernel.is_unbounded() {
            return Ok(None);
        }
        let decision =
            |prepared: &PreparedCandidate<'_>, problem_index: usize, solution: &Solution| {
                let problem = &prepared.binary.problems[problem_index];
                let (dual, scale) = (
                    problem.dual(&weighted.gram),
                    problem.decision_scale(solution),
                );
                let betas = solution.beta.iter().enumerate();
                let support = betas.filter(|(_, beta)| **beta != 0.0);
                let row = |variable| prepared.binary.row_of_sample[dual.sample(variable)];
                Decision {
                    coefficients: support
                        .map(|(variable, &beta)| (row(variable), scale * beta))
                        .collect(),
                    intercept: scale * solution.intercept,
                }
            };
        let mut decisions: Vec<Decision> = solutions
            .iter()
            .enumerate()
            .flat_map(|(problem_index, path)| {
                let path = self.path.iter().zip(path);
                path.map(move |(prepared, solved)| {
                    decision(prepared, problem_index, &solved.solution)
                })
            })
            .collect();
        // The coefficients of rows become those of positions among the support vectors of any problem.
        let all = decisions.iter().flat_map(|one| &one.coefficients);
        let mut support: Vec<usize> = all.map(|(row, _)| *row).collect();
        support.sort_unstable();
        support.dedup();
        let mut position = vec![0; self.context.examples.rows().n_rows()];
        for (place, &row) in support.iter().enumerate() {
            position[row] = place;
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
                let rows = ScaledValues::new(rows, scaling.fold(fold))?;
                let rows = rows.view();
                let (test, support) = ((&rows, test), (&rows, &support[..]));
                decision_values(kernel, test, support, &decisions, monitor)
            }
        }
        .map(Some)
    }

    /// Solves binary problem `problem_index` for one candidate after the other.
    fn solve_path(
        &self,
        weighted: &WeightedGram<K>,
        problem_index: usize,
        seeds: &[Seed],
        anchors: &Anchors,
    ) -> Result<PathSolutions> {
        let candidate = self.path[0].candidate;
        let kernel = (!candidate.has_one_matrix()).then(|| candidate.kernel(weighted.set));
        let mut path: PathSolutions = vec![];
        for candidate_index in 0..self.path.len() {
            let task = self.task(weighted, problem_index, candidate_index)?;
            let plan_seed = |seed: &Seed| {
                let from = match *seed {
                    Seed::Zero => None,
                    Seed::From(anchor, rule) => find(anchors, anchor).zip(Some(rule)),
                };
                from.map_or_else(
                    || task.cold(),
                    |(solved, rule)| {
                        task.seed(rule, &solved[problem_index][candidate_index], kernel)
                    },
                )
            };
            let previous = path.last().filter(|_| self.plan.follows_c_path());
            let previous = previous.map(|solved: &SolvedTask| {
                let seed = CPathSeed {
                    dual: &task.dual,
                    solution: &solved.solution,
                    linear: &self.path[candidate_index - 1].binary.problems[problem_index].linear,
                    old_bounds: &solved.bounds,
                    new_bounds: &task.bounds,
                    monitor: self.context.monitor,
                };
                let [old, new] = [candidate_index - 1, candidate_index]
                    .map(|index| self.path[index].candidate.size());
                (seed, new / old)
            });
            let start = task.choose(previous, || seeds.iter().map(plan_seed).collect())?;
            let solution = task.solve(start, self.plan.is_conjugate())?;
            self.context.monitor.advance(1)?;
            path.push(SolvedTask {
                solution,
                bounds: task.bounds,
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
        problem_index: usize,
        anchors: &Anchors,
    ) -> Result<PathSolutions> {
        let folds = [0, 1].map(|fold| find(anchors, Anchor::Fold(fold)));
        let [Some(first), Some(second)] = folds else {
            return Ok(vec![]);
        };
        let merged = (0..self.path.len()).map(|candidate_index| {
            let PreparedCandidate {
                candidate, binary, ..
            } = self.path[candidate_index];
            let problem = &binary.problems[problem_index];
            let dual = problem.dual(gram);
            let bounds = problem.bounds(&costs[candidate_index], candidate.nu)?;
            let [first, second] = [first, second].map(|solved| {
                let SolvedTask {
                    solution, bounds, ..
                } = &solved[problem_index][candidate_index];
                (solution, bounds)
            });
            Ok(SolvedTask {
                solution: seeding::merge((&dual, &bounds), first, second, self.context.monitor)?,
                bounds,
                series: None,
            })
        });
        merged.collect()
    }

    fn n_problems(&self) -> usize {
        self.path[0].binary.problems.len()
    }

    /// Binary problem `problem_index` of candidate `candidate_index` of the path.
    fn task<'s>(
        &'s self,
        weighted: &'s WeightedGram<K>,
        problem_index: usize,
        candidate_index: usize,
    ) -> Result<BinaryTask<'s>>
    where
        'g: 's,
    {
        let PreparedCandidate {
            candidate, binary, ..
        } = self.path[candidate_index];
        let (problem, costs) = (
            &binary.problems[problem_index],
            &weighted.costs[candidate_index],
        );
        Ok(BinaryTask {
            dual: problem.dual(&weighted.gram),
            bounds: problem.bounds(costs, candidate.nu)?,
            options: &candidate.options,
            monitor: self.context.monitor,
        })
    }

    fn weighted_gram(&self, set: TrainingSet) -> Result<WeightedGram<K>> {
        Ok(WeightedGram {
            set,
            gram: (self.grams)(set)?,
            costs: self.costs(set),
        })
    }

    /// The C of every sample in a training set, by candidate.
    fn costs(&self, set: TrainingSet) -> Vec<Vec<f64>> {
        let mut weights = vec![0.0; self.context.folds.n_samples()];
        let costs = |prepared: &&PreparedCandidate<'_>| {
            let rows = 0..weights.len();
            prepared.sets.weights(set, 0, rows, &mut weights);
            let row_of_sample = &prepared.binary.row_of_sample;
            prepared.candidate.sample_costs(&weights, row_of_sample)
        };
        self.path.iter().map(costs).collect()
    }

    /// The result of candidate `candidate_index`.
    fn outcome(
        &self,
        candidate_index: usize,
        folds: &[FoldResults],
        anchors: &Anchors,
    ) -> OutOfFold {
        let held_out = folds.iter().flat_map(|fold| {
            let n_rows = fold[0][candidate_index].decision_values.len();
            (0..n_rows).map(move |row| (fold, row))
        });
        let held_out: Vec<_> = held_out.collect();
        let shape = (held_out.len(), self.n_problems());
        let sign = self.path[candidate_index].binary.output_sign();
        let outputs = Array2::from_shape_fn(shape, |(position, problem)| {
            let (fold, row) = held_out[position];
            sign * fold[problem][candidate_index].decision_values[row]
        });
        let shape = (folds.len(), self.n_problems());
        let iterations = Array2::from_shape_fn(shape, |(fold, p)| {
            folds[fold][p][candidate_index].iterations
        });
        let gaps = Array2::from_shape_fn(shape, |(fold, p)| folds[fold][p][candidate_index].gap);
        let results = || folds.iter().flatten().map(|path| &path[candidate_index]);
        let is_determined = |fold: &FoldResults| {
            let mut problems = fold.iter();
            problems.all(|path| path[candidate_index].is_determined)
        };
        let undetermined = folds.iter().enumerate();
        let undetermined = undetermined.filter(|(_, fold)| !is_determined(fold));
        let undetermined = undetermined.map(|(fold, _)| UndeterminedFold {
            fold,
            reason: "there is no margin for this nu".into(),
        });
        // Anchors that are no fold.
        let extra = |anchor: Anchor| {
            let solutions = find(anchors, anchor).into_iter().flatten();
            solutions.map(|path| &path[candidate_index].solution)
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
                undetermined: undetermined.collect(),
                ..Status::default()
            },
            ..OutOfFold::default()
        }
    }
}
