//! k-fold cross-validation of support vector machines on one kernel matrix.
//!
//! # Method
//! Every machine (one a pair of classes) is solved once for its [origin](super::seeding): on all
//! samples, or on the first training set. Every other round starts from that solution, so rounds
//! are independent: they run in parallel, and the number of threads changes nothing. The decision
//! values of a round's test samples are read off its gradient; samples of other classes than the
//! machine's own take one pass over its support vectors.
//!
//! Where the kernel differs between rounds (scikit-learn's `gamma="scale"` depends on the training
//! set), they share distances or inner products instead of the kernel matrix itself.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::gram::Gram;
use super::kernel::Kernel;
use super::machine::{Costs, Machine, Machines};
use super::memory::Budget;
use super::seeding::{self, Move, Origin, Seeding};
use super::smo::{self, Bounds, Dual, Options, Solution, Start};
use crate::data::{Examples, Rows};
use crate::folds::Resampling;
use crate::{Cost, Error, Monitor, Result};

/// What is learned from what.
#[derive(Clone, Copy, Debug)]
pub struct Study<'a, R> {
    /// The samples.
    pub examples: &'a Examples<'a, R>,
    /// What their errors cost.
    pub costs: Costs<'a>,
    /// Errors of a regression up to this size cost nothing.
    pub epsilon: f64,
    /// One kernel, or that of all samples followed by one a round.
    pub kernels: &'a [Kernel],
}

/// How it is done.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Where folds start.
    pub seeding: Seeding,
    /// When they end.
    pub options: Options,
    /// What kernel values may take.
    pub budget: Budget,
}

/// What a cross-validation found.
#[derive(Debug)]
pub struct Outcome {
    /// For every held-out row, round after round, the decision of every machine.
    pub decisions: Vec<f64>,
    /// How many machines there are.
    pub n_machines: usize,
    /// SMO iterations of each round, over all machines.
    pub iterations: Vec<u64>,
    /// SMO iterations for the solution of all samples, where rounds start from it.
    pub whole_iterations: u64,
    /// The largest gap that was left.
    pub gap: f64,
    /// Time spent on starts, over all threads.
    pub seeding: Duration,
    /// The rule that was used.
    pub rule: Seeding,
    /// Counters.
    pub cost: Cost,
}

/// Cross-validates the machines of a study.
pub fn kfold<R: Rows + Debug>(
    study: &Study<'_, R>,
    rounds: &dyn Resampling,
    plan: &Plan,
    monitor: &Monitor,
) -> Result<Outcome> {
    let machines = Machines::new(study.examples.targets(), study.epsilon)?;
    let n = study.examples.rows().n_rows();
    if rounds.n_samples() != n {
        return Err(Error::Shape {
            what: "cv",
            expected: n,
            found: rounds.n_samples(),
        });
    }
    let rule = plan.seeding.resolve(rounds.n_splits());
    let needs_whole = matches!(rule.origin(), Origin::Whole | Origin::Better);
    let solves = machines.list.len() * (rounds.n_splits() + usize::from(needs_whole));
    monitor.expect(solves as u64);
    let is_shared = study.kernels.len() == 1;
    let (base, budget) = if is_shared {
        (study.kernels[0], plan.budget)
    } else {
        (study.kernels[0].base(), plan.budget.share(2))
    };
    let gram = Gram::new(
        study.examples.rows(),
        &machines.order,
        base,
        budget,
        monitor,
    )?;
    let places = machines.places();
    let run = Run {
        study,
        rounds,
        plan,
        machines: &machines,
        places: &places,
        rule,
        monitor,
    };
    let found = if is_shared {
        run.with(|_| Ok(Holder::Shared(&gram)))?
    } else {
        let share = plan
            .budget
            .share(2)
            .share(rayon::current_num_threads() as u64);
        run.with(|set| {
            let kernel = study.kernels[set];
            Gram::derive(&gram, kernel, share, monitor).map(|gram| Holder::Own(Box::new(gram)))
        })?
    };
    Ok(run.gather(&found, gram.rows_computed()))
}

/// A kernel matrix that rounds share, or one of their own.
enum Holder<'a> {
    Shared(&'a Gram<'a>),
    Own(Box<Gram<'a>>),
}

impl<'a> Holder<'a> {
    fn gram(&'a self) -> &'a Gram<'a> {
        match self {
            Self::Shared(gram) => gram,
            Self::Own(gram) => gram,
        }
    }
}

/// A machine solved on some training set.
#[derive(Clone, Debug)]
struct Known {
    solution: Solution,
    bounds: Bounds,
    seeding: Duration,
}

/// Where the rounds of a machine start, and what was solved to find out.
#[derive(Debug)]
struct Camp {
    /// The solution they start from and the rule that makes the starts; none for cold starts.
    origin: Option<(Known, Seeding)>,
    /// Rounds that are solved already.
    solved: Vec<(usize, Known)>,
    /// The solution of all samples, where one was needed.
    whole: Option<Known>,
}

/// One machine in one round.
#[derive(Debug)]
struct Fold {
    decisions: Vec<f64>,
    iterations: u64,
    rows_read: u64,
    gap: f64,
    seeding: Duration,
}

/// Everything that stays the same while the rounds run.
struct Run<'a, R> {
    study: &'a Study<'a, R>,
    rounds: &'a dyn Resampling,
    plan: &'a Plan,
    machines: &'a Machines,
    places: &'a [usize],
    rule: Seeding,
    monitor: &'a Monitor,
}

impl<R: Rows + Debug> Run<'_, R> {
    /// Runs all machines; `grams(set)` is the kernel matrix of all samples (0) or a round (1, …).
    fn with<'g>(&self, grams: impl Fn(usize) -> Result<Holder<'g>> + Sync) -> Result<Found> {
        let camps = self.camps(&|round, from| {
            let holder = grams(round.map_or(0, |round| round + 1))?;
            let costs = self.costs(round);
            let machines = self.machines.list.par_iter().enumerate();
            machines
                .map(|(at, machine)| {
                    let from = from.map(|(known, rule)| (&known[at], rule));
                    self.solve(&machine.dual(holder.gram()), machine.bounds(&costs), from)
                })
                .collect()
        })?;
        let rounds = (0..self.rounds.n_splits()).into_par_iter();
        let folds = rounds.map(|round| {
            let holder = grams(round + 1)?;
            let costs = self.costs(Some(round));
            let machines = self.machines.list.par_iter().zip(&camps);
            machines
                .map(|(machine, camp)| self.fold(machine, holder.gram(), round, &costs, camp))
                .collect()
        });
        Ok(Found {
            folds: folds.collect::<Result<_>>()?,
            wholes: camps.into_iter().filter_map(|camp| camp.whole).collect(),
        })
    }

    /// Finds out where every machine's rounds start. `solve(round, from)` solves all machines.
    fn camps(&self, solve: &Stage<'_>) -> Result<Vec<Camp>> {
        match self.rule.origin() {
            Origin::Nothing => Ok(self.machines.list.iter().map(|_| Camp::nowhere()).collect()),
            Origin::Whole => Ok(solve(None, None)?
                .into_iter()
                .map(|whole| Camp::at_whole(whole, self.rule))
                .collect()),
            Origin::FirstFold => Ok(solve(Some(0), None)?
                .into_iter()
                .map(|first| Camp::at_first(first, self.rule))
                .collect()),
            Origin::Better => scout(solve),
        }
    }

    /// What errors cost in a round, or with all samples.
    fn costs(&self, round: Option<usize>) -> Vec<f64> {
        let times = round.map_or_else(
            || vec![1.0; self.rounds.n_samples()],
            |round| self.times(round),
        );
        let set = round.map_or(0, |round| round + 1);
        let order = &self.machines.order;
        self.study.costs.of(self.study.examples, order, set, &times)
    }

    /// How often each row is in the training set of a round.
    fn times(&self, round: usize) -> Vec<f64> {
        let mut times = vec![0.0; self.rounds.n_samples()];
        for &row in self.rounds.training(round).into_iter().flatten() {
            times[row] += 1.0;
        }
        times
    }

    /// Solves a machine, from another solution where there is one.
    fn solve(
        &self,
        dual: &Dual<'_>,
        bounds: Bounds,
        from: Option<(&Known, Seeding)>,
    ) -> Result<Known> {
        let clock = Instant::now();
        let (start, rows_read) = self.start(dual, &bounds, from);
        let seeding = clock.elapsed();
        let mut solution = smo::solve(dual, &bounds, start, &self.plan.options, self.monitor)?;
        solution.rows_read += rows_read;
        self.monitor.advance(1)?;
        Ok(Known {
            solution,
            bounds,
            seeding,
        })
    }

    fn start(
        &self,
        dual: &Dual<'_>,
        bounds: &Bounds,
        from: Option<(&Known, Seeding)>,
    ) -> (Start, u64) {
        let Some((known, rule)) = from else {
            return (Start::cold(dual), 0);
        };
        let is_shared = self.study.kernels.len() == 1;
        let other = (!is_shared).then(|| known.solution.over(dual, &known.bounds));
        let seed = seeding::seed(
            rule,
            &Move {
                dual,
                previous: other.as_ref().unwrap_or(&known.solution),
                before: &known.bounds,
                after: bounds,
            },
        );
        (seed.start, seed.rows_read)
    }

    fn fold(
        &self,
        machine: &Machine,
        gram: &Gram<'_>,
        round: usize,
        costs: &[f64],
        camp: &Camp,
    ) -> Result<Fold> {
        let dual = machine.dual(gram);
        let solved = camp.solved.iter().find(|(solved, _)| *solved == round);
        let known = if let Some((_, known)) = solved {
            known.clone()
        } else {
            let from = camp.origin.as_ref().map(|(known, rule)| (known, *rule));
            self.solve(&dual, machine.bounds(costs), from)?
        };
        let solution = &known.solution;
        let (decisions, rows_read) = self.decisions(machine, &dual, solution, round);
        Ok(Fold {
            decisions,
            iterations: solution.iterations,
            rows_read: solution.rows_read + rows_read,
            gap: solution.gap,
            seeding: known.seeding,
        })
    }

    /// Decision values of a round's test samples, and the kernel rows read for them.
    fn decisions(
        &self,
        machine: &Machine,
        dual: &Dual<'_>,
        solution: &Solution,
        round: usize,
    ) -> (Vec<f64>, u64) {
        let test = self
            .rounds
            .held_out(round)
            .iter()
            .map(|&row| self.places[row]);
        let test: Vec<usize> = test.collect();
        let mut decisions = vec![solution.intercept; test.len()];
        let mut strangers = vec![];
        for (decision, &sample) in decisions.iter_mut().zip(&test) {
            match machine.variable(sample) {
                Some(variable) => *decision = solution.decision(dual, variable),
                None => strangers.push((decision, sample)),
            }
        }
        if strangers.is_empty() {
            return (decisions, 0);
        }
        let mut rows_read = 0;
        for (variable, &beta) in solution.beta.iter().enumerate().filter(|(_, b)| **b != 0.0) {
            let row = dual.gram().row(dual.sample(variable));
            rows_read += 1;
            for (decision, sample) in &mut strangers {
                **decision += beta * f64::from(row[*sample]);
            }
        }
        (decisions, rows_read)
    }

    /// Puts the parts together.
    fn gather(&self, found: &Found, kernel_rows: u64) -> Outcome {
        let n_machines = self.machines.list.len();
        let folds = || found.folds.iter().flatten();
        let mut decisions = vec![];
        for (round, machines) in found.folds.iter().enumerate() {
            for at in 0..self.rounds.held_out(round).len() {
                decisions.extend(machines.iter().map(|fold| fold.decisions[at]));
            }
        }
        let total = |machines: &Vec<Fold>| machines.iter().map(|fold| fold.iterations).sum();
        let iterations: Vec<u64> = found.folds.iter().map(total).collect();
        let wholes = || found.wholes.iter().map(|known| &known.solution);
        let whole_iterations = wholes().map(|solution| solution.iterations).sum();
        let rows_read = folds().map(|fold| fold.rows_read).sum::<u64>()
            + wholes().map(|solution| solution.rows_read).sum::<u64>();
        Outcome {
            cost: Cost {
                fits: (folds().count() + found.wholes.len()) as u64,
                rows_evaluated: (decisions.len() / n_machines) as u64,
                kernel_rows,
                cache_hits: rows_read.saturating_sub(kernel_rows),
                smo_iterations: whole_iterations + iterations.iter().sum::<u64>(),
                ..Cost::default()
            },
            decisions,
            n_machines,
            iterations,
            whole_iterations,
            gap: folds().map(|fold| fold.gap).fold(0.0, f64::max),
            seeding: folds().map(|fold| fold.seeding).sum(),
            rule: self.rule,
        }
    }
}

/// What the rounds of all machines came to.
#[derive(Debug)]
struct Found {
    /// Round by round, machine by machine.
    folds: Vec<Vec<Fold>>,
    /// Solutions of all samples.
    wholes: Vec<Known>,
}

/// Solves all machines on a round's training set or on all samples, from solutions of another set.
type Stage<'a> =
    dyn Fn(Option<usize>, Option<(&[Known], Seeding)>) -> Result<Vec<Known>> + Sync + 'a;

impl Camp {
    fn nowhere() -> Self {
        Self {
            origin: None,
            solved: vec![],
            whole: None,
        }
    }

    fn at_whole(whole: Known, rule: Seeding) -> Self {
        Self {
            origin: Some((whole.clone(), rule)),
            solved: vec![],
            whole: Some(whole),
        }
    }

    fn at_first(first: Known, rule: Seeding) -> Self {
        Self {
            origin: Some((first.clone(), rule)),
            solved: vec![(0, first)],
            whole: None,
        }
    }
}

/// Measures two rules on a round each, and goes on with the one that took fewer iterations.
///
/// The first round is solved from nothing. From its solution start the second round, by SIR, and
/// the solution of all samples, where nobody leaves; from that one the third round, by withdrawal.
/// The three rounds are wanted anyway: what is risked is the solution of all samples.
fn scout(solve: &Stage<'_>) -> Result<Vec<Camp>> {
    let firsts = solve(Some(0), None)?;
    let from_first = Some((&firsts[..], Seeding::Sir));
    let (seconds, wholes) = rayon::join(|| solve(Some(1), from_first), || solve(None, from_first));
    let (seconds, wholes) = (seconds?, wholes?);
    let thirds = solve(Some(2), Some((&wholes, Seeding::Withdraw)))?;
    let machines = firsts.into_iter().zip(seconds).zip(wholes).zip(thirds);
    let camp = |(((first, second), whole), third): (((Known, Known), Known), Known)| {
        let sir_won = second.solution.iterations <= third.solution.iterations;
        let origin = if sir_won {
            (first.clone(), Seeding::Sir)
        } else {
            (whole.clone(), Seeding::Withdraw)
        };
        Camp {
            origin: Some(origin),
            solved: vec![(0, first), (1, second), (2, third)],
            whole: Some(whole),
        }
    };
    Ok(machines.map(camp).collect())
}
