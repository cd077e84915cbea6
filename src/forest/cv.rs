//! All trees of all folds and candidates, on one pool of threads.

use ndarray::Array2;
use rayon::prelude::*;

use super::criterion::{BinaryGini, Criterion, Entropy, Gini, SquaredError};
use super::draws::{FeatureDraws, MersenneTwister};
use super::family::Family;
use super::grow::{Grower, Grown, Member, TreeTask};
use super::options::{Forest, Impurity};
use super::ranks::{RankedColumns, Width};
use super::split::{LeafLimits, Samples};
use crate::runtime::memory;
use crate::{Cost, Error, Monitor, Resampling, Result};

/// Trees per thread that are grown before their answers are added up.
const TREES_PER_THREAD: usize = 32;

/// Where nodes draw at least one of this many features, sorted lists of all are kept.
const MAX_FEATURES_PER_DRAW: usize = 3;

/// What is to be predicted.
#[derive(Clone, Copy)]
pub(super) enum Labels<'a> {
    /// Codes of classes, and how many classes there are.
    Classes(&'a [u8], usize),
    /// Integers.
    Integers(&'a [i32]),
}

impl Labels<'_> {
    fn n_outputs(&self) -> usize {
        match self {
            Self::Classes(_, n_classes) => *n_classes,
            Self::Integers(_) => 1,
        }
    }
}

/// Rows of one pair of training set and test set.
struct Fold {
    /// In scikit-learn's order, which bootstrap samples refer to.
    training: Vec<u32>,
    held_out: Vec<u32>,
}

/// A table to be cross-validated.
pub(super) struct Problem<'a, W: Width> {
    pub(super) table: RankedColumns<W>,
    pub(super) labels: Labels<'a>,
    /// Weights of the rows, or none if all are 1.
    pub(super) weights: Option<Vec<u32>>,
    pub(super) folds: &'a dyn Resampling,
    pub(super) monitor: &'a Monitor,
}

/// One tree of one fold, for all candidates of a family.
struct Unit<'f> {
    family: &'f Family<'f>,
    family_index: usize,
    tree: usize,
    fold: usize,
}

/// The answers of a family, added up over trees.
struct Totals {
    /// Of each member, held-out row × output.
    sums: Vec<Array2<f64>>,
    cost: Cost,
}

impl<W: Width> Problem<'_, W> {
    /// Grows the trees of all candidates, and passes on the outputs of each as soon as they are known.
    pub(super) fn run(
        &self,
        candidates: &[&Forest],
        finished: &mut dyn FnMut(usize, Array2<f64>, Cost),
    ) -> Result<()> {
        let families = Family::all(candidates, self.table.columns.len());
        let folds = self.folds()?;
        let n_trees = |family: &Family<'_>| family.seeds.len() * folds.len();
        self.monitor
            .add_total(families.iter().map(n_trees).sum::<usize>() as u64);
        let n_at_once = TREES_PER_THREAD * rayon::current_num_threads();
        let mut rest = families.as_slice();
        while !rest.is_empty() {
            let mut n_units = 0;
            let fits = |family: &&Family<'_>| {
                n_units += n_trees(family);
                n_units <= n_at_once
            };
            let (batch, others) = rest.split_at(rest.iter().take_while(fits).count().max(1));
            self.run_batch(batch, &folds, n_at_once, finished)?;
            rest = others;
        }
        Ok(())
    }

    #[allow(clippy::cast_possible_truncation)] // rows are numbered by u32
    fn folds(&self) -> Result<Vec<Fold>> {
        let narrow = |row: &usize| *row as u32;
        let n_indices = (0..self.folds.n_splits())
            .map(|split| {
                self.folds
                    .training(split)
                    .iter()
                    .map(|rows| rows.len())
                    .sum::<usize>()
            })
            .sum();
        // Of leave-one-out, training sets are as large as a matrix.
        memory::check_shape::<u32>("the training rows of all folds", &[n_indices])?;
        let fold = |split: usize| {
            let training = self.folds.training(split).into_iter().flatten();
            let mut training: Vec<u32> = training.map(narrow).collect();
            if self.folds.partition().is_some() {
                training.sort_unstable();
            }
            Fold {
                training,
                held_out: self.folds.held_out(split).iter().map(narrow).collect(),
            }
        };
        Ok((0..self.folds.n_splits()).map(fold).collect())
    }

    fn run_batch(
        &self,
        families: &[Family<'_>],
        folds: &[Fold],
        n_at_once: usize,
        finished: &mut dyn FnMut(usize, Array2<f64>, Cost),
    ) -> Result<()> {
        let n_rows = folds.iter().map(|fold| fold.held_out.len()).sum::<usize>();
        let shape = (n_rows, self.labels.n_outputs());
        let mut totals = Vec::with_capacity(families.len());
        for family in families {
            let what = format_args!("outputs of {} candidates", family.stops.len());
            memory::check_shape::<f64>(what, &[family.stops.len(), shape.0, shape.1])?;
            totals.push(Totals {
                sums: family.stops.iter().map(|_| Array2::zeros(shape)).collect(),
                cost: Cost::default(),
            });
        }
        let starts: Vec<usize> = folds
            .iter()
            .scan(0, |start, fold| {
                *start += fold.held_out.len();
                Some(*start - fold.held_out.len())
            })
            .collect();
        let n_trees = families
            .iter()
            .map(|own| own.seeds.len())
            .max()
            .unwrap_or(0);
        let block = (n_at_once / (folds.len() * families.len()).max(1)).max(1);
        for first in (0..n_trees).step_by(block) {
            let mut units = vec![];
            for tree in first..(first + block).min(n_trees) {
                for (family_index, family) in families.iter().enumerate() {
                    let folds = 0..if tree < family.seeds.len() {
                        folds.len()
                    } else {
                        0
                    };
                    units.extend(folds.map(|fold| Unit {
                        family,
                        family_index,
                        tree,
                        fold,
                    }));
                }
            }
            let grow = |unit: &Unit<'_>| {
                let grown = self.grow(unit, &folds[unit.fold])?;
                self.monitor.advance(1)?;
                Ok(grown)
            };
            let grown: Vec<Grown> = units.par_iter().map(grow).collect::<Result<_>>()?;
            for (unit, grown) in units.iter().zip(grown) {
                let totals = &mut totals[unit.family_index];
                totals.add(&grown, starts[unit.fold]);
                totals.cost.fits += 1;
                totals.cost.rows_fed += folds[unit.fold].training.len() as u64;
                totals.cost.rows_evaluated += folds[unit.fold].held_out.len() as u64;
                if unit.fold + 1 == folds.len() {
                    totals.finish(unit.family, unit.tree + 1, finished);
                }
            }
        }
        Ok(())
    }

    /// Grows one tree for all members of a family.
    fn grow(&self, unit: &Unit<'_>, fold: &Fold) -> Result<Grown> {
        let seed = unit.family.seeds[unit.tree];
        let weights = match unit.family.n_draws {
            Some(n_draws) => Some(self.bootstrap(fold, seed, n_draws[unit.fold])),
            None => self.weights.clone(),
        };
        match weights {
            Some(weights) => self.grow_by_impurity::<true>(unit, fold, &weights),
            None => self.grow_by_impurity::<false>(unit, fold, &[]),
        }
    }

    /// How often each row is drawn: `_generate_sample_indices` of scikit-learn.
    #[allow(clippy::cast_possible_truncation)] // rows are numbered by u32
    fn bootstrap(&self, fold: &Fold, seed: u32, n_draws: usize) -> Vec<u32> {
        let mut counts = vec![0; self.table.n_rows];
        let mut random = MersenneTwister::new(seed);
        for _ in 0..n_draws {
            let row = fold.training[random.below(fold.training.len() as u32) as usize];
            counts[row as usize] += 1;
        }
        counts
    }

    fn grow_by_impurity<const WEIGHTED: bool>(
        &self,
        unit: &Unit<'_>,
        fold: &Fold,
        weights: &[u32],
    ) -> Result<Grown> {
        match (unit.family.tree.impurity, self.labels) {
            (Impurity::Gini, Labels::Classes(labels, 2)) => {
                let samples = Samples { labels, weights };
                self.grow_with::<_, WEIGHTED>(unit, fold, samples, BinaryGini::default())
            }
            (Impurity::Gini, Labels::Classes(labels, n_classes)) => {
                let samples = Samples { labels, weights };
                self.grow_with::<_, WEIGHTED>(unit, fold, samples, Gini::new(n_classes))
            }
            (Impurity::Entropy, Labels::Classes(labels, n_classes)) => {
                let samples = Samples { labels, weights };
                let total = if WEIGHTED {
                    fold.training
                        .iter()
                        .map(|&row| weights[row as usize] as usize)
                        .sum()
                } else {
                    fold.training.len()
                };
                let criterion = Entropy::new(n_classes, total);
                self.grow_with::<_, WEIGHTED>(unit, fold, samples, criterion)
            }
            (Impurity::SquaredError, Labels::Integers(labels)) => {
                let samples = Samples { labels, weights };
                self.grow_with::<_, WEIGHTED>(unit, fold, samples, SquaredError::default())
            }
            (impurity, _) => Err(Error::Parameter {
                name: "criterion",
                rule: "one for the targets (classes, or integers)",
                value: format!("{impurity:?}"),
            }),
        }
    }

    fn grow_with<C: Criterion, const WEIGHTED: bool>(
        &self,
        unit: &Unit<'_>,
        fold: &Fold,
        samples: Samples<'_, C::Label>,
        criterion: C,
    ) -> Result<Grown> {
        let (family, tree) = (unit.family, unit.family.tree);
        let n_samples = fold.training.len();
        let training: Vec<u32> = if WEIGHTED {
            let is_in = |row: &&u32| samples.weights[**row as usize] > 0;
            fold.training.iter().filter(is_in).copied().collect()
        } else {
            fold.training.clone()
        };
        let weight = if WEIGHTED {
            training
                .iter()
                .map(|&row| f64::from(samples.weights[row as usize]))
                .sum()
        } else {
            n_samples as f64
        };
        let limits = LeafLimits {
            samples: tree.min_samples_leaf.of(n_samples),
            weight: tree.min_weight_fraction_leaf * weight,
        };
        let n_features = self.table.columns.len();
        let seed = family.seeds[unit.tree];
        let member = |stop| Member {
            stop,
            min_samples_split: Family::min_samples_split(&stop, n_samples, limits.samples),
            draws: FeatureDraws::new(seed, n_features),
            leaves: vec![0; fold.held_out.len()],
        };
        let mut members: Vec<Member> = family.stops.iter().copied().map(member).collect();
        let task = TreeTask {
            keeps_lists: self.keeps_lists(tree.max_features),
            table: &self.table,
            samples,
            training,
            held_out: &fold.held_out,
            max_features: tree.max_features,
            limits,
        };
        Grower::<W, C, WEIGHTED>::new(&task, criterion, self.monitor).grow(&mut members)
    }

    /// Whether sorted lists of all columns, partitioned at every node, take less time than sorting the
    /// samples of a node by the features that it draws, and there is memory for them.
    fn keeps_lists(&self, max_features: usize) -> bool {
        let n_threads = rayon::current_num_threads();
        max_features.saturating_mul(MAX_FEATURES_PER_DRAW) >= self.table.columns.len()
            && memory::check_shape::<W::Key>("sorted lists", &[n_threads, self.table.n_listed()])
                .is_ok()
    }
}

impl Totals {
    /// Adds the answers of the trees of one fold, whose rows begin at `start`.
    fn add(&mut self, grown: &Grown, start: usize) {
        for (sums, leaves) in self.sums.iter_mut().zip(&grown.leaves) {
            let n_outputs = sums.ncols();
            let sums = sums.as_slice_mut().expect("standard layout");
            let rows = sums[start * n_outputs..].chunks_exact_mut(n_outputs);
            for (sums, &leaf) in rows.zip(leaves) {
                let values = &grown.values[leaf as usize * n_outputs..][..n_outputs];
                for (sum, value) in sums.iter_mut().zip(values) {
                    *sum += value;
                }
            }
        }
    }

    /// Passes on the outputs of the candidates of this many trees. Work that candidates share is counted
    /// for the first that is finished.
    fn finish(
        &mut self,
        family: &Family<'_>,
        n_trees: usize,
        finished: &mut dyn FnMut(usize, Array2<f64>, Cost),
    ) {
        for request in family.requests.iter().filter(|own| own.n_trees == n_trees) {
            let outputs = &self.sums[request.member] / n_trees as f64;
            finished(request.candidate, outputs, std::mem::take(&mut self.cost));
        }
    }
}
