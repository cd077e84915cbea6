//! Which fold is evaluated at which leaf of the tree.
//!
//! # Problem
//! A fold is evaluated by a model that has learnt the folds of neighboring leaves last. Where rows are
//! sorted by class, by time or by group, neighboring folds are alike, and a learner that depends on
//! the order of rows is evaluated on rows like those it has just learnt: the estimate flatters.
//!
//! # Method
//! Folds come to the leaves in a random order, so the samples are exchangeable, as the theorems of the
//! paper assume. Outputs and models return to the order of the folds.
//!
//! # Cost
//! One permutation of the folds and one of the outputs. Rows that were contiguous are scattered, and
//! gathered by `blocks.rs`.

use std::ops::Range;

use crate::Folds;
use crate::engine::ModelSlots;
use crate::learners::Order;
use crate::runtime::random::permutation;

/// The order in which folds are placed at the leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// As the folds are numbered: the paper's order.
    Given,
    /// At random.
    Random {
        /// Equal seeds give equal placements on every machine.
        seed: u64,
    },
}

impl Default for Placement {
    /// At random, with seed 0.
    fn default() -> Self {
        Self::Random { seed: 0 }
    }
}

impl Placement {
    /// The fold at each of `n_folds` leaves.
    pub fn leaves(self, n_folds: usize) -> Vec<usize> {
        match self {
            Self::Given => (0..n_folds).collect(),
            Self::Random { seed } => permutation(n_folds, seed),
        }
    }
}

/// Folds in the order of the leaves, and the way back.
#[derive(Debug)]
pub(super) struct PlacedFolds<'a> {
    folds: &'a Folds,
    leaves: Vec<usize>,
    placed: Folds,
}

impl<'a> PlacedFolds<'a> {
    /// Rows are shuffled within their folds by [`Order::Once`].
    pub(super) fn new(folds: &'a Folds, placement: Placement, order: Order) -> Self {
        let leaves = placement.leaves(folds.len());
        let mut placed = folds.permuted(&leaves);
        if let Order::Once { seed } = order {
            placed = placed.with_shuffled_rows(seed);
        }
        Self {
            folds,
            leaves,
            placed,
        }
    }

    /// The folds in the order of the leaves.
    pub(super) fn folds(&self) -> &Folds {
        &self.placed
    }

    /// Outputs in test order, from those in the order of the leaves.
    pub(super) fn restore_outputs(&self, outputs: &[f64], n_outputs: usize) -> Vec<f64> {
        let values = |range: Range<usize>| range.start * n_outputs..range.end * n_outputs;
        let mut restored = vec![0.0; outputs.len()];
        for (leaf, &fold) in self.leaves.iter().enumerate() {
            let to = self.folds.range(fold..fold + 1);
            let from = self.placed.range(leaf..leaf + 1);
            let (given, shuffled) = (
                self.folds.rows(fold..fold + 1),
                self.placed.rows(leaf..leaf + 1),
            );
            if given == shuffled {
                restored[values(to)].copy_from_slice(&outputs[values(from)]);
                continue;
            }
            for (to, from) in sorted_by_row(to, given).zip(sorted_by_row(from, shuffled)) {
                restored[values(to..to + 1)].copy_from_slice(&outputs[values(from..from + 1)]);
            }
        }
        restored
    }

    /// Brings the models from the order of the leaves into that of the folds.
    pub(super) fn restore_models(&self, models: &mut ModelSlots) {
        let mut at_leaves: Vec<_> = models.iter_mut().map(Option::take).collect();
        for (model, &fold) in at_leaves.iter_mut().zip(&self.leaves) {
            models[fold] = model.take();
        }
    }
}

/// Positions of rows, in increasing order of the rows.
fn sorted_by_row(positions: Range<usize>, rows: &[usize]) -> impl Iterator<Item = usize> {
    let mut pairs: Vec<_> = rows.iter().copied().zip(positions).collect();
    pairs.sort_unstable();
    pairs.into_iter().map(|(_, position)| position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_return_to_their_folds() {
        let folds = Folds::from_labels(&[1, 0, 2, 1, 1, 0, 2], 3).expect("valid");
        for seed in 0..5 {
            let order = [Order::Fixed, Order::Once { seed }][usize::from(seed > 1)];
            let placed = PlacedFolds::new(&folds, Placement::Random { seed }, order);
            // Two outputs per row that name the row.
            let rows = placed.folds().rows(0..3);
            let outputs: Vec<f64> = rows
                .iter()
                .flat_map(|&row| [row as f64, -(row as f64)])
                .collect();
            let expected: Vec<f64> = folds
                .rows(0..3)
                .iter()
                .flat_map(|&row| [row as f64, -(row as f64)])
                .collect();
            assert_eq!(placed.restore_outputs(&outputs, 2), expected);
        }
    }

    #[test]
    fn placements_are_permutations_and_depend_on_the_seed() {
        assert_eq!(Placement::Given.leaves(4), [0, 1, 2, 3]);
        let mut seen = Vec::new();
        for seed in 0..3 {
            let mut leaves = Placement::Random { seed }.leaves(20);
            assert!(!seen.contains(&leaves));
            seen.push(leaves.clone());
            leaves.sort_unstable();
            assert!(leaves.into_iter().eq(0..20));
        }
    }
}
