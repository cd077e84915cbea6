//! Decision trees and random forests of all folds, with the predictions of scikit-learn.
//!
//! **Problem.** For every fold and every candidate, grow the trees that scikit-learn would grow on the
//! training rows (CART: binary splits, best first by impurity, depth first), and predict the rows held out.
//! A tree is greedy and breaks ties by the order in which it draws features, so nearly the same tree is
//! not the same tree: everything that decides is done as scikit-learn does it, to the bit.
//!
//! **Method.** The same trees for less work:
//!
//! | idea | module |
//! |---|---|
//! | a split depends on the order of values only: columns are coded as ranks, once for all folds, trees and candidates | `ranks` |
//! | sorted lists of the columns are partitioned in place from node to node, as in SPRINT, without their most frequent value; where few features are drawn, samples are sorted by digits of their ranks, or counted by rank | `grow`, `split` |
//! | weights, and integers as targets, have sums that are exact in any order; a bound without divisions passes over most boundaries, and those left are scored by scikit-learn's formula | `criterion` |
//! | other targets are added up in its order, by replaying its sorts and partitions | `replay` |
//! | its random numbers are replayed: xorshift and a Fisher–Yates shuffle that knows constant features, MT19937 for bootstrap samples | `draws` |
//! | trees that differ in where they stop grow together | `grow` |
//! | the trees of leave-one-out follow the tree of all rows while they split nodes as it does | `grow` |
//! | trees that differ in how they are pruned are one tree, with its nodes in the order in which they are cut or split | `record` |
//! | the first m trees of a forest are the forest of m trees | `family` |
//! | held-out rows go down a tree while it grows; no tree is kept that is not pruned | `grow` |
//!
//! **Exactness.** Predictions and probabilities are those of scikit-learn, bit for bit, with integer
//! weights. The facade grows a few small trees both ways before it uses the
//! engine, because a later scikit-learn may grow other trees.
//!
//! **Cost**, of k folds, n rows and p columns, with trees of depth d:
//!
//! | | time | memory besides X |
//! |---|---|---|
//! | ranks | O(n·p) | n·p ranks and row numbers: 6 bytes each up to 65 536 rows, 12 above; of sparse rows, their values by column too |
//! | a tree that looks at all features | O(n·p·d) | its lists, 4 or 8 bytes for each value, per thread |
//! | a tree that draws m features | O(n·m·d) | O(n) per thread |
//! | answers of trees until they are added up | | 4 bytes for each row held out and each way to prune or stop a tree, and its leaves' outputs, of up to 32 trees per thread, of fewer if memory is short |
//!
//! **Example.**
//!
//! ```
//! use ndarray::Array2;
//! use onefold::forest::{Forest, Forests, TreeOptions};
//! use onefold::{Dataset, Engine, Folds};
//!
//! let x = Array2::from_shape_fn((300, 3), |(i, j)| (i as f64 * (j + 2) as f64).sin());
//! let y = x.column(0).mapv(|v| u32::from(v > 0.3));
//! let data = Dataset::dense(x.view())?.with_classes(y.view(), 2)?;
//! let tree = Forest { tree: TreeOptions::default(), seeds: vec![0], bootstrap: None };
//! let folds = Folds::shuffled(300, 5, 0)?;
//! let shares = Forests::default().cross_validate(&tree, &data, &folds)?.by_sample(&folds);
//! let hits = shares.column(1).iter().zip(&y).filter(|(p, y)| (**p > 0.5) == (**y == 1)).count();
//! assert!(hits > 290);
//! # Ok::<(), onefold::Error>(())
//! ```
//!
//! **References.** Breiman, Friedman, Olshen and Stone, *Classification and Regression Trees* (1984);
//! Breiman, "Random forests" (2001); Shafer, Agrawal and Mehta, "SPRINT: a scalable parallel classifier
//! for data mining" (1996), for presorted lists; Blockeel and Struyf, "Efficient algorithms for decision
//! tree cross-validation" (2002), for growing the trees of several folds at once.

#![allow(clippy::doc_markdown)] // names and formulas are not code

mod columns;
mod criterion;
mod cv;
mod draws;
mod family;
mod grow;
mod heap;
mod options;
mod order;
mod ranks;
mod record;
mod replay;
mod split;

pub use options::{Bootstrap, Forest, Impurity, Pruning, SampleCount, Splitter, Stop, TreeOptions};

use crate::data::{Dataset, Rows, Targets, unreadable};
use crate::engine::{Finished, Job};
use crate::runtime::memory;
use crate::{Engine, Error, OutOfFold, Result};
use columns::{Columns, SparseColumns};
use cv::{Labels, Problem};
use ranks::{Narrow, RankedColumns, Wide, Width, is_narrow};

/// The largest sum of weights: its square is exact in float64.
const MAX_TOTAL_WEIGHT: f64 = (1 << 26) as f64;

/// The largest sum of squared targets that may be rounded.
const MAX_SUM_OF_SQUARES: f64 = 1e300;

/// The largest weight of a row.
const MAX_WEIGHT: f64 = ((1 << 24) - 1) as f64;

/// The engine of decision trees and random forests. Outputs are the shares of the classes, or means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forests {
    /// Values of a column, as float32, that differ by no more count as equal: `FEATURE_THRESHOLD` of
    /// scikit-learn, which is 1e-7, and 0 before version 1.8.
    pub min_difference: f32,
}

impl Default for Forests {
    fn default() -> Self {
        Self {
            min_difference: 1e-7,
        }
    }
}

impl Engine<Forest> for Forests {
    fn run(
        &self,
        candidates: &[&Forest],
        job: &Job<'_>,
        finished: &mut Finished<'_>,
    ) -> Result<()> {
        let data = job.data;
        data.check_samples(job.folds.n_samples())?;
        if data.n_rows() as f64 > MAX_TOTAL_WEIGHT {
            return Err(Error::parameter("X", "at most 2²⁶ rows", data.n_rows()));
        }
        for candidate in candidates {
            check(candidate, job.folds.n_splits())?;
        }
        let weights = weights(data)?;
        let targets = Codes::of(data, weights.as_deref())?;
        let table = match *data.rows() {
            Rows::Dense(rows) => self.rank(&rows, job),
            Rows::Csr32(rows) => self.rank(&SparseColumns::new(&rows, job.monitor)?, job),
            Rows::Csr64(rows) => self.rank(&SparseColumns::new(&rows, job.monitor)?, job),
            #[cfg(feature = "stored")]
            Rows::Stored(_) => Err(unreadable(data)),
            Rows::External { .. } => Err(unreadable(data)),
        };
        match table? {
            Table::Narrow(table) => run_on(table, &targets, weights, candidates, job, finished),
            Table::Wide(table) => run_on(table, &targets, weights, candidates, job, finished),
        }
    }
}

/// The ranks of a table, of either width.
enum Table {
    Narrow(RankedColumns<Narrow>),
    Wide(RankedColumns<Wide>),
}

impl Forests {
    fn rank(self, columns: &impl Columns, job: &Job<'_>) -> Result<Table> {
        let (difference, monitor) = (self.min_difference, job.monitor);
        Ok(if is_narrow(columns.n_rows()) {
            Table::Narrow(RankedColumns::new(columns, difference, monitor)?)
        } else {
            Table::Wide(RankedColumns::new(columns, difference, monitor)?)
        })
    }
}

fn run_on<W: Width>(
    table: RankedColumns<W>,
    targets: &Codes,
    weights: Option<Vec<u32>>,
    candidates: &[&Forest],
    job: &Job<'_>,
    finished: &mut Finished<'_>,
) -> Result<()> {
    let problem = Problem {
        table,
        labels: targets.labels(),
        weights,
        folds: job.folds,
        monitor: job.monitor,
    };
    problem.run(candidates, &mut |index, outputs, cost| {
        let found = OutOfFold {
            outputs,
            cost,
            ..OutOfFold::default()
        };
        finished(index, found);
    })
}

fn check(candidate: &Forest, n_splits: usize) -> Result<()> {
    let Forest {
        tree,
        seeds,
        bootstrap,
    } = candidate;
    if seeds.is_empty() {
        return Err(Error::parameter("n_estimators", "at least 1", 0));
    }
    if tree.max_features == 0 {
        return Err(Error::parameter("max_features", "at least 1", 0));
    }
    if let Pruning::LeafNodes(0 | 1) = tree.pruning {
        return Err(Error::parameter("max_leaf_nodes", "at least 2", "less"));
    }
    let Some(Bootstrap {
        seeds: sample_seeds,
        n_draws,
    }) = bootstrap
    else {
        return Ok(());
    };
    let lengths = [(n_splits, n_draws.len()), (seeds.len(), sample_seeds.len())];
    if let Some((expected, found)) = lengths.into_iter().find(|(a, b)| a != b) {
        return Err(Error::Shape {
            what: "draws of a bootstrap sample",
            expected,
            found,
        });
    }
    let is_too_many = |&n: &usize| n == 0 || n as f64 > MAX_WEIGHT;
    if let Some(bad) = n_draws.iter().find(|n| is_too_many(n)) {
        return Err(Error::parameter("max_samples", "from 1 to 2²⁴ rows", bad));
    }
    Ok(())
}

/// The weights as integers.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // checked
fn weights(data: &Dataset<'_>) -> Result<Option<Vec<u32>>> {
    let Some(weights) = data.weights() else {
        return Ok(None);
    };
    let is_bad = |weight: &&f64| weight.fract() != 0.0 || **weight > MAX_WEIGHT;
    if let Some(bad) = weights.iter().find(is_bad) {
        let rule = "whole numbers below 2²⁴, for sums that are exact";
        return Err(Error::parameter("weights", rule, bad));
    }
    let total: f64 = weights.iter().sum();
    if total > MAX_TOTAL_WEIGHT {
        return Err(Error::parameter("weights", "at most 2²⁶ in all", total));
    }
    Ok(Some(weights.iter().map(|&weight| weight as u32).collect()))
}

/// Targets: classes and integers in few bytes.
enum Codes {
    Classes(Vec<u8>, usize),
    Integers(Vec<i32>),
    Values(Vec<f64>),
}

impl Codes {
    #[allow(clippy::cast_possible_truncation)] // checked
    fn of(data: &Dataset<'_>, weights: Option<&[u32]>) -> Result<Self> {
        memory::check::<i32>("targets", data.n_rows() as u64)?;
        match data.targets() {
            Targets::Classes { n_classes, .. } if n_classes > 256 => {
                Err(Error::parameter("y", "at most 256 classes", n_classes))
            }
            Targets::Classes { codes, n_classes } => {
                let codes = codes.iter().map(|&code| code as u8).collect();
                Ok(Self::Classes(codes, n_classes))
            }
            Targets::Values {
                values,
                n_outputs: 1,
            } => {
                let weight = |row: usize| weights.map_or(1.0, |weights| f64::from(weights[row]));
                let squares = values.iter().enumerate();
                let squares: f64 = squares.map(|(row, y)| weight(row) * y * y).sum();
                if squares.is_nan() || squares > MAX_SUM_OF_SQUARES {
                    let rule = "numbers whose squares add up to at most 1e300";
                    return Err(Error::parameter("y", rule, squares));
                }
                let is_integer = |y: &f64| y.fract() == 0.0 && y.abs() <= f64::from(i32::MAX);
                // Bootstrap samples may hold a row more than once.
                let is_exact = squares <= (1_u64 << 48) as f64 && values.iter().all(is_integer);
                Ok(if is_exact {
                    Self::Integers(values.iter().map(|&y| y as i32).collect())
                } else {
                    Self::Values(values.to_vec())
                })
            }
            _ => Err(Error::parameter(
                "y",
                "classes, or numbers",
                "something else",
            )),
        }
    }

    fn labels(&self) -> Labels<'_> {
        match self {
            Self::Classes(codes, n_classes) => Labels::Classes(codes, *n_classes),
            Self::Integers(values) => Labels::Integers(values),
            Self::Values(values) => Labels::Values(values),
        }
    }
}
