//! Candidates whose trees are the same, or grow together.

use super::options::{Bootstrap, Forest, Pruning, SampleCount, Splitter, Stop, TreeOptions};

/// Candidates that share trees: they differ in the number of trees, in where trees stop, and in how they
/// are pruned.
///
/// The first m trees of a forest are the forest of m trees. Trees that draw all features at every node
/// search the same columns, so they grow together (see [`grow`](super::grow)).
pub(super) struct Family<'a> {
    pub(super) tree: &'a TreeOptions,
    /// Of the candidate with most trees, as are the seeds.
    pub(super) bootstrap: Option<&'a Bootstrap>,
    pub(super) seeds: &'a [u32],
    /// Where the trees that grow together stop.
    pub(super) stops: Vec<Stop>,
    /// What is made of a tree: which of `stops`, and what is left of it.
    pub(super) variants: Vec<(usize, Pruning)>,
    pub(super) requests: Vec<Request>,
}

/// One candidate of a family.
pub(super) struct Request {
    /// Its position among all candidates.
    pub(super) candidate: usize,
    /// Its position in [`Family::variants`].
    pub(super) variant: usize,
    pub(super) n_trees: usize,
}

impl<'a> Family<'a> {
    /// Divides candidates into families, in the order of their first candidates. Where sums depend on the
    /// order of rows, which depends on all draws before, trees that stop elsewhere do not grow together.
    pub(super) fn all(
        candidates: &[&'a Forest],
        n_features: usize,
        sums_are_exact: bool,
    ) -> Vec<Self> {
        let mut families: Vec<Self> = vec![];
        for (index, candidate) in candidates.iter().enumerate() {
            let known = families
                .iter_mut()
                .find(|family| family.takes(candidate, n_features, sums_are_exact));
            if let Some(family) = known {
                family.push(index, candidate);
                continue;
            }
            let mut family = Self {
                tree: &candidate.tree,
                bootstrap: None,
                seeds: &[],
                stops: vec![],
                variants: vec![],
                requests: vec![],
            };
            family.push(index, candidate);
            families.push(family);
        }
        families
    }

    /// The largest number of leaves, if trees grow best first.
    pub(super) fn max_leaves(&self) -> Option<usize> {
        let max_leaves = |(_, pruning): &(usize, Pruning)| match pruning {
            Pruning::LeafNodes(max_leaves) => Some(*max_leaves),
            _ => None,
        };
        self.variants.iter().filter_map(max_leaves).max()
    }

    fn takes(&self, candidate: &Forest, n_features: usize, sums_are_exact: bool) -> bool {
        let (tree, other) = (self.tree, &candidate.tree);
        let grows_best_first = |tree: &TreeOptions| matches!(tree.pruning, Pruning::LeafNodes(_));
        let grow_together = sums_are_exact
            && tree.max_features >= n_features
            && tree.splitter == Splitter::Best
            && !grows_best_first(tree);
        let is_alike = TreeOptions {
            stop: tree.stop,
            pruning: tree.pruning,
            ..*other
        } == *tree;
        is_alike
            && grows_best_first(tree) == grows_best_first(other)
            && (grow_together || tree.stop == other.stop)
            && self.begins_like(candidate)
    }

    /// Whether the first trees have the same seeds and bootstrap samples.
    fn begins_like(&self, candidate: &Forest) -> bool {
        let n_common = self.seeds.len().min(candidate.seeds.len());
        let samples = match (self.bootstrap, &candidate.bootstrap) {
            (None, None) => true,
            (Some(one), Some(other)) => {
                one.n_draws == other.n_draws && one.seeds[..n_common] == other.seeds[..n_common]
            }
            _ => false,
        };
        samples && self.seeds[..n_common] == candidate.seeds[..n_common]
    }

    fn push(&mut self, index: usize, candidate: &'a Forest) {
        if candidate.seeds.len() > self.seeds.len() {
            self.seeds = &candidate.seeds;
            self.bootstrap = candidate.bootstrap.as_ref();
        }
        let stop = position_of(&mut self.stops, candidate.tree.stop);
        let variant = position_of(&mut self.variants, (stop, candidate.tree.pruning));
        self.requests.push(Request {
            candidate: index,
            variant,
            n_trees: candidate.seeds.len(),
        });
    }

    /// The samples of the smallest node that a tree splits, given those of its smallest leaf.
    pub(super) fn min_samples_split(stop: &Stop, n_samples: usize, min_leaf: usize) -> usize {
        let number = match stop.min_samples_split {
            SampleCount::Number(number) => number,
            share @ SampleCount::Share(_) => share.of(n_samples).max(2),
        };
        number.max(min_leaf.saturating_mul(2))
    }
}

/// Where an item is in a list, to which it is added unless it is there.
fn position_of<T: PartialEq>(items: &mut Vec<T>, item: T) -> usize {
    let known = items.iter().position(|other| *other == item);
    known.unwrap_or_else(|| {
        items.push(item);
        items.len() - 1
    })
}
