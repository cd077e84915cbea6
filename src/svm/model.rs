//! Fitted machines, and their decisions for new rows.

use std::fmt::Debug;
use std::ops::Range;

use rayon::prelude::*;

use super::gram::Gram;
use super::kernel::{self, Kernel, Panel, Partners, WIDTH};
use super::kfold::Candidate;
use super::machine::Machines;
use super::memory::Budget;
use super::multiclass::pairs;
use super::smo::{self, Solution, Start};
use crate::data::{Examples, Layout};
use crate::{Error, Monitor, Result};

/// Support vectors and their coefficients, laid out as LIBSVM does.
#[derive(Debug)]
pub struct Model {
    /// The rows that are support vectors of any machine, class after class.
    pub support: Vec<usize>,
    /// Where each class starts among them, and at last where all end.
    pub starts: Vec<usize>,
    /// β of the support vectors: n_classes − 1 rows, one for each machine a vector has part in.
    pub coefficients: Vec<f64>,
    /// b of each machine.
    pub intercepts: Vec<f64>,
    /// SMO iterations of each machine.
    pub iterations: Vec<u64>,
    /// Dual objective of each machine.
    pub objectives: Vec<f64>,
    /// The largest gap that was left.
    pub gap: f64,
}

/// Fits the machines of a candidate to all samples.
pub fn fit<R: Layout + Debug>(
    examples: &Examples<'_, R>,
    candidate: &Candidate<'_>,
    budget: Budget,
    monitor: &Monitor,
) -> Result<Model> {
    let machines = Machines::new(examples.targets(), candidate.epsilon)?;
    monitor.expect(machines.list.len() as u64);
    let (rows, order) = (examples.rows(), &machines.order);
    let gram = Gram::new(rows, order, candidate.kernels[0], budget, monitor)?;
    let once = vec![1.0; rows.n_rows()];
    let costs = candidate.costs.of(examples, order, 0, &once);
    let solutions: Vec<Solution> = machines
        .list
        .par_iter()
        .map(|machine| {
            let dual = machine.dual(&gram);
            let bounds = machine.bounds(&costs);
            let start = Start::cold(&dual);
            let solution = smo::solve(&dual, &bounds, start, &candidate.options, monitor)?;
            monitor.advance(1)?;
            Ok(solution)
        })
        .collect::<Result<_>>()?;
    Ok(Model::new(&machines, &solutions))
}

impl Model {
    fn new(machines: &Machines, solutions: &[Solution]) -> Self {
        let n = machines.order.len();
        let n_rows = machines.starts.len().saturating_sub(2).max(1);
        // β of every sample, in the row of LIBSVM's table where it belongs.
        let mut table = vec![vec![0.0; n]; n_rows];
        let rows = (0..).zip(lines(machines.starts.len() - 1));
        for (solution, (m, lines)) in solutions.iter().zip(rows) {
            let ranges = &machines.list[m].ranges;
            let mut betas = solution.beta.iter();
            for (range, line) in ranges.iter().zip(lines) {
                for (sample, beta) in range.clone().zip(&mut betas) {
                    table[line][sample] += beta;
                }
            }
        }
        let is_support = |&sample: &usize| table.iter().any(|line| line[sample] != 0.0);
        let support: Vec<usize> = (0..n).filter(is_support).collect();
        let starts = machines
            .starts
            .iter()
            .map(|start| support.partition_point(|s| s < start));
        Self {
            starts: starts.collect(),
            coefficients: table
                .iter()
                .flat_map(|line| support.iter().map(|&s| line[s]))
                .collect(),
            support: support
                .iter()
                .map(|&sample| machines.order[sample])
                .collect(),
            intercepts: solutions.iter().map(|s| s.intercept).collect(),
            iterations: solutions.iter().map(|s| s.iterations).collect(),
            objectives: solutions.iter().map(|s| s.objective).collect(),
            gap: solutions.iter().map(|s| s.gap).fold(0.0, f64::max),
        }
    }
}

/// For each machine, the lines of the coefficient table of its first and its second class.
fn lines(n_classes: usize) -> Vec<[usize; 2]> {
    if n_classes < 2 {
        return vec![[0, 0]];
    }
    pairs(n_classes).map(|(a, b)| [b - 1, a]).collect()
}

/// What decisions for new rows are made of.
#[derive(Clone, Copy, Debug)]
pub struct Decider<'a, R> {
    /// The support vectors; of no use to a precomputed kernel.
    pub support: &'a R,
    /// As in [`Model`].
    pub starts: &'a [usize],
    /// As in [`Model`].
    pub coefficients: &'a [f64],
    /// As in [`Model`].
    pub intercepts: &'a [f64],
    /// The kernel.
    pub kernel: Kernel,
}

/// The decision of every machine for every row: `n_rows × n_machines` values. With a precomputed
/// kernel, rows hold the kernel values to the support vectors, in order.
pub fn decide<R: Layout>(
    decider: &Decider<'_, R>,
    rows: &R,
    monitor: &Monitor,
) -> Result<Vec<f64>> {
    let n_support = decider.starts.last().copied().unwrap_or(0);
    if !decider.coefficients.len().is_multiple_of(n_support.max(1)) {
        return Err(Error::Shape {
            what: "coefficients",
            expected: n_support,
            found: decider.coefficients.len(),
        });
    }
    let n_machines = decider.intercepts.len();
    let order: Vec<usize> = (0..n_support).collect();
    let is_given = decider.kernel == Kernel::Precomputed;
    let norms = if is_given {
        vec![]
    } else {
        kernel::squared_norms(decider.support, &order)
    };
    let machines = decider.machines(n_support);
    let mut decisions = vec![0.0; rows.n_rows() * n_machines];
    decisions
        .par_chunks_mut((WIDTH * n_machines).max(1))
        .enumerate()
        .try_for_each(|(block, out)| {
            monitor.check()?;
            let first = block * WIDTH;
            let members: Vec<usize> = (first..first + out.len() / n_machines).collect();
            let member_norms = kernel::squared_norms(rows, &members);
            let panel = Panel::<f64, WIDTH>::new(rows, &members, &member_norms);
            let values = if is_given {
                panel.values
            } else {
                let mut values = Vec::with_capacity(n_support);
                let partners = Partners {
                    rows: decider.support,
                    order: &order,
                    norms: &norms,
                };
                kernel::against(decider.kernel, &panel, partners, |_, tile| {
                    values.extend(tile);
                });
                values
            };
            for (machine, parts) in machines.iter().enumerate() {
                let mut sums = [decider.intercepts[machine]; WIDTH];
                for (range, coefficients) in parts {
                    for (lanes, beta) in values[range.clone()].iter().zip(*coefficients) {
                        for lane in 0..WIDTH {
                            sums[lane] += beta * lanes[lane];
                        }
                    }
                }
                for (row, sum) in out.chunks_mut(n_machines).zip(sums) {
                    row[machine] = sum;
                }
            }
            Ok(())
        })?;
    Ok(decisions)
}

/// A run of support vectors and their coefficients in one machine.
type Part<'a> = (Range<usize>, &'a [f64]);

impl<'a, R> Decider<'a, R> {
    /// The support vectors of each machine, with their coefficients.
    fn machines(&self, n_support: usize) -> Vec<Vec<Part<'a>>> {
        let part = |class: usize, line: usize| -> Part<'a> {
            let range = self.starts[class]..self.starts[class + 1];
            let line = &self.coefficients[line * n_support..][..n_support];
            (range.clone(), &line[range])
        };
        let n_classes = self.starts.len() - 1;
        if n_classes < 2 {
            return vec![vec![part(0, 0)]];
        }
        pairs(n_classes)
            .map(|(a, b)| vec![part(a, b - 1), part(b, a)])
            .collect()
    }
}
