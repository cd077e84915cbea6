//! All trees of all folds and candidates, on one pool of threads.

use ndarray::Array2;
use rayon::prelude::*;

use super::criterion::{BinaryGini, Criterion, Entropy, Gini, Label, SquaredError};
use super::draws::{FeatureDraws, MersenneTwister, WeightedDraws};
use super::family::Family;
use super::grow::{Grower, Member, TreeTask};
use super::options::{Forest, Impurity, Pruning, Splitter};
use super::ranks::{RankedColumns, Width};
use super::record::Record;
use super::replay::Replay;
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
    /// Any numbers.
    Values(&'a [f64]),
}

impl Labels<'_> {
    fn n_outputs(&self) -> usize {
        match self {
            Self::Classes(_, n_classes) => *n_classes,
            Self::Integers(_) | Self::Values(_) => 1,
        }
    }

    /// Whether sums are the same in any order.
    fn have_exact_sums(&self) -> bool {
        !matches!(self, Self::Values(_))
    }
}

/// Rows of one pair of training set and test set, or those of leave-one-out.
struct Fold {
    /// In scikit-learn's order, which bootstrap samples refer to.
    training: Vec<u32>,
    held_out: Vec<u32>,
    /// Whether there is a tree for each row of the training set, which misses it.
    leaves_out_one: bool,
}

impl Fold {
    fn n_trees(&self) -> usize {
        if self.leaves_out_one {
            self.held_out.len()
        } else {
            1
        }
    }

    /// The number of rows that a tree is grown from.
    fn n_train(&self) -> usize {
        self.training.len() - usize::from(self.leaves_out_one)
    }
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

/// The answers of a tree, in all variants of its family.
struct Grown {
    /// For each variant, what is predicted of every row held out.
    leaves: Vec<Vec<u32>>,
    /// What each leaf predicts.
    values: Vec<f64>,
}

/// The answers of a family, added up over trees.
struct Totals {
    /// Of each variant, held-out row × output.
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
        let families = Family::all(
            candidates,
            self.table.columns.len(),
            self.labels.have_exact_sums(),
        );
        let is_shared = |family: &Family<'_>| self.shares_trees(family);
        let (shared, others): (Vec<_>, Vec<_>) = families.into_iter().partition(is_shared);
        if !shared.is_empty() {
            self.run_families(&shared, &[self.leave_one_out()], finished)?;
        }
        if !others.is_empty() {
            self.run_families(&others, &self.folds()?, finished)?;
        }
        Ok(())
    }

    /// Whether the trees of a family that miss one row each grow along with that of all rows.
    fn shares_trees(&self, family: &Family<'_>) -> bool {
        let n_rows = self.table.n_rows;
        let is_leave_one_out = self.folds.partition().is_some() && self.folds.n_splits() == n_rows;
        let grows_fully = |&(stop, pruning): &(usize, Pruning)| {
            pruning == Pruning::None && family.stops[stop].min_impurity_decrease == 0.0
        };
        is_leave_one_out
            && self.labels.have_exact_sums()
            && self.weights.is_none()
            && !self.table.has_missing()
            && family.bootstrap.is_none()
            && family.tree.splitter == Splitter::Best
            && family.tree.max_features >= self.table.columns.len()
            && self.keeps_lists(family.tree.max_features)
            && family.variants.iter().all(grows_fully)
    }

    /// All folds of leave-one-out.
    #[allow(clippy::cast_possible_truncation)] // rows are numbered by u32
    fn leave_one_out(&self) -> Fold {
        let n_rows = self.table.n_rows;
        Fold {
            training: (0..n_rows as u32).collect(),
            held_out: (0..n_rows)
                .map(|split| self.folds.held_out(split)[0] as u32)
                .collect(),
            leaves_out_one: true,
        }
    }

    fn run_families(
        &self,
        families: &[Family<'_>],
        folds: &[Fold],
        finished: &mut dyn FnMut(usize, Array2<f64>, Cost),
    ) -> Result<()> {
        let n_trees = |family: &Family<'_>| family.seeds.len() * folds.len();
        self.monitor
            .add_total(families.iter().map(n_trees).sum::<usize>() as u64);
        let n_at_once = TREES_PER_THREAD * rayon::current_num_threads();
        let mut rest = families;
        while !rest.is_empty() {
            let mut n_units = 0;
            let fits = |family: &&Family<'_>| {
                n_units += n_trees(family);
                n_units <= n_at_once
            };
            let (batch, others) = rest.split_at(rest.iter().take_while(fits).count().max(1));
            self.run_batch(batch, folds, n_at_once, finished)?;
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
                leaves_out_one: false,
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
            let n_variants = family.variants.len();
            let what = format_args!("outputs of {n_variants} candidates");
            memory::check_shape::<f64>(what, &[n_variants, shape.0, shape.1])?;
            totals.push(Totals {
                sums: vec![Array2::zeros(shape); n_variants],
                cost: Cost::default(),
            });
        }
        let n_at_once = self.n_trees_that_fit(families, folds, n_at_once)?;
        let starts: Vec<usize> = folds
            .iter()
            .scan(0, |start, fold| {
                *start += fold.held_out.len();
                Some(*start - fold.held_out.len())
            })
            .collect();
        let n_trees = families
            .iter()
            .map(|family| family.seeds.len())
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
                let fold = &folds[unit.fold];
                totals.cost.fits += fold.n_trees() as u64;
                totals.cost.rows_fed += (fold.n_trees() * fold.n_train()) as u64;
                totals.cost.rows_evaluated += fold.held_out.len() as u64;
                if unit.fold + 1 == folds.len() {
                    totals.finish(unit.family, unit.tree + 1, finished);
                }
            }
        }
        Ok(())
    }

    /// How many trees grow before their answers are added up: fewer than `n_at_once` if the answers
    /// did not fit into memory, but at least one of each fold and family.
    fn n_trees_that_fit(
        &self,
        families: &[Family<'_>],
        folds: &[Fold],
        n_at_once: usize,
    ) -> Result<usize> {
        let n_held_out = folds.iter().map(|fold| fold.held_out.len()).max();
        let n_held_out = n_held_out.unwrap_or(0);
        let n_nodes = 2 * folds.iter().map(Fold::n_train).max().unwrap_or(0);
        let bytes = |family: &Family<'_>| {
            let is_pruned = |&(_, pruning): &(usize, Pruning)| pruning != Pruning::None;
            // A leaf without rows held out predicts nothing; of a tree that is pruned, inner nodes do too.
            let n_values = if family.variants.iter().any(is_pruned) {
                n_nodes
            } else {
                n_held_out.min(n_nodes)
            };
            let leaves = size_of::<u32>() * family.variants.len() * n_held_out;
            let values = size_of::<f64>() * self.labels.n_outputs() * n_values;
            leaves + values * family.stops.len()
        };
        let bytes = families.iter().map(bytes).max().unwrap_or(0);
        let n_least = folds.len() * families.len();
        let mut n_trees = n_at_once.max(n_least);
        loop {
            let checked = memory::check_shape::<u8>("the answers of trees", &[n_trees, bytes]);
            if checked.is_ok() || n_trees == n_least {
                return checked.map(|()| n_trees);
            }
            n_trees = (n_trees / 2).max(n_least);
        }
    }

    /// Grows one tree for all members of a family.
    fn grow(&self, unit: &Unit<'_>, fold: &Fold) -> Result<Grown> {
        let weights = match unit.family.bootstrap {
            Some(bootstrap) => {
                let (seed, n_draws) = (bootstrap.seeds[unit.tree], bootstrap.n_draws[unit.fold]);
                Some(self.bootstrap(fold, seed, n_draws))
            }
            None => self.weights.clone(),
        };
        match weights {
            Some(weights) => self.grow_by_impurity::<true>(unit, fold, &weights),
            None => self.grow_by_impurity::<false>(unit, fold, &[]),
        }
    }

    /// How often each row is drawn: `_generate_sample_indices` of scikit-learn. Weights are
    /// probabilities, and no more.
    #[allow(clippy::cast_possible_truncation)] // rows are numbered by u32
    fn bootstrap(&self, fold: &Fold, seed: u32, n_draws: usize) -> Vec<u32> {
        let (training, mut counts) = (&fold.training, vec![0; self.table.n_rows]);
        let mut random = MersenneTwister::new(seed);
        let weighted = self
            .weights
            .as_ref()
            .map(|weights| WeightedDraws::new(training.iter().map(|&row| weights[row as usize])));
        for _ in 0..n_draws {
            let drawn = match &weighted {
                Some(draws) => draws.next(&mut random),
                None => random.below(training.len() as u32) as usize,
            };
            counts[training[drawn] as usize] += 1;
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
            (Impurity::SquaredError, Labels::Values(labels)) => {
                let samples = Samples { labels, weights };
                self.replay::<WEIGHTED>(unit, fold, samples)
            }
            (impurity, _) => Err(Error::Parameter {
                name: "criterion",
                rule: "one for the targets (classes, or numbers)",
                value: format!("{impurity:?}"),
            }),
        }
    }

    fn grow_with<C: Criterion, const WEIGHTED: bool>(
        &self,
        unit: &Unit<'_>,
        fold: &Fold,
        samples: Samples<'_, Label<C>>,
        criterion: C,
    ) -> Result<Grown> {
        let family = unit.family;
        let task = self.tree_task::<_, WEIGHTED>(unit, fold, samples);
        let mut members = self.members(unit, fold, task.limits);
        let mut grower = Grower::<W, C, WEIGHTED>::new(&task, criterion, self.monitor);
        if fold.leaves_out_one {
            for member in &mut members {
                grower.grow_leave_one_out(member)?;
            }
        } else if let Some(max_leaves) = family.max_leaves() {
            grower.grow_best_first(&mut members[0], max_leaves)?;
        } else {
            grower.grow(&mut members)?;
        }
        Ok(Grown::new(family, members, grower.into_values()))
    }

    /// Grows a tree whose sums depend on the order of addition.
    fn replay<const WEIGHTED: bool>(
        &self,
        unit: &Unit<'_>,
        fold: &Fold,
        samples: Samples<'_, f64>,
    ) -> Result<Grown> {
        let task = self.tree_task::<_, WEIGHTED>(unit, fold, samples);
        let mut members = self.members(unit, fold, task.limits);
        let mut replay = Replay::new(&task, self.monitor);
        match unit.family.max_leaves() {
            Some(max_leaves) => replay.grow_best_first(&mut members[0], max_leaves)?,
            None => replay.grow(&mut members[0])?,
        }
        Ok(Grown::new(unit.family, members, replay.into_values()))
    }

    /// What all nodes of a tree have in common.
    fn tree_task<'t, L, const WEIGHTED: bool>(
        &'t self,
        unit: &Unit<'_>,
        fold: &'t Fold,
        samples: Samples<'t, L>,
    ) -> TreeTask<'t, W, L> {
        let (tree, n_samples) = (unit.family.tree, fold.n_train());
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
        TreeTask {
            keeps_lists: tree.splitter == Splitter::Best && self.keeps_lists(tree.max_features),
            table: &self.table,
            samples,
            training,
            held_out: &fold.held_out,
            splitter: tree.splitter,
            max_features: tree.max_features,
            limits,
        }
    }

    /// The trees of a family before they grow.
    fn members(&self, unit: &Unit<'_>, fold: &Fold, limits: LeafLimits) -> Vec<Member> {
        let family = unit.family;
        let draws = FeatureDraws::new(family.seeds[unit.tree], self.table.columns.len());
        let member = |(index, &stop)| {
            let is_pruned = |&(stop, pruning)| stop == index && pruning != Pruning::None;
            Member {
                stop,
                min_samples_split: Family::min_samples_split(&stop, fold.n_train(), limits.samples),
                draws: draws.clone(),
                leaves: vec![0; fold.held_out.len()],
                record: family.variants.iter().any(is_pruned).then(Record::default),
            }
        };
        family.stops.iter().enumerate().map(member).collect()
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

impl Grown {
    fn new(family: &Family<'_>, mut members: Vec<Member>, values: Vec<f64>) -> Self {
        let leaves = |&(stop, pruning): &(usize, Pruning)| {
            let member = &mut members[stop];
            match &mut member.record {
                Some(record) => record.pruned(pruning, &member.leaves),
                None => std::mem::take(&mut member.leaves),
            }
        };
        Self {
            leaves: family.variants.iter().map(leaves).collect(),
            values,
        }
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
        for request in family
            .requests
            .iter()
            .filter(|request| request.n_trees == n_trees)
        {
            let outputs = &self.sums[request.variant] / n_trees as f64;
            finished(request.candidate, outputs, std::mem::take(&mut self.cost));
        }
    }
}
