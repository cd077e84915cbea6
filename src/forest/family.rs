//! Candidates whose trees are the same, or grow together.

use super::options::{Forest, SampleCount, Stop, TreeOptions};

/// Candidates that share trees: they differ in the number of trees, and in where trees stop.
///
/// The first m trees of a forest are the forest of m trees. Trees that draw all features at every node
/// search the same columns, so they grow together (see [`grow`](super::grow)).
pub(super) struct Family<'a> {
    pub(super) tree: &'a TreeOptions,
    /// Rows that each tree draws from each training set.
    pub(super) n_draws: Option<&'a [usize]>,
    /// Of the candidate with most trees.
    pub(super) seeds: &'a [u32],
    /// Where the trees that grow together stop.
    pub(super) stops: Vec<Stop>,
    pub(super) requests: Vec<Request>,
}

/// One candidate of a family.
pub(super) struct Request {
    /// Its position among all candidates.
    pub(super) candidate: usize,
    /// Its position in [`Family::stops`].
    pub(super) member: usize,
    pub(super) n_trees: usize,
}

impl<'a> Family<'a> {
    /// Divides candidates into families, in the order of their first candidates.
    pub(super) fn all(candidates: &[&'a Forest], n_features: usize) -> Vec<Self> {
        let mut families: Vec<Self> = vec![];
        for (index, candidate) in candidates.iter().enumerate() {
            let known = families
                .iter_mut()
                .find(|own| own.takes(candidate, n_features));
            if let Some(family) = known {
                family.push(index, candidate);
                continue;
            }
            let mut family = Self {
                tree: &candidate.tree,
                n_draws: candidate.n_draws.as_deref(),
                seeds: &[],
                stops: vec![],
                requests: vec![],
            };
            family.push(index, candidate);
            families.push(family);
        }
        families
    }

    fn takes(&self, candidate: &Forest, n_features: usize) -> bool {
        let (own, other) = (self.tree, &candidate.tree);
        let n_common = self.seeds.len().min(candidate.seeds.len());
        let draws_all = own.max_features >= n_features;
        TreeOptions {
            stop: own.stop,
            ..*other
        } == *own
            && (draws_all || own.stop == other.stop)
            && self.n_draws == candidate.n_draws.as_deref()
            && self.seeds[..n_common] == candidate.seeds[..n_common]
    }

    fn push(&mut self, index: usize, candidate: &'a Forest) {
        if candidate.seeds.len() > self.seeds.len() {
            self.seeds = &candidate.seeds;
        }
        let stop = candidate.tree.stop;
        let known = self.stops.iter().position(|own| *own == stop);
        let member = known.unwrap_or_else(|| {
            self.stops.push(stop);
            self.stops.len() - 1
        });
        self.requests.push(Request {
            candidate: index,
            member,
            n_trees: candidate.seeds.len(),
        });
    }

    /// The samples of the smallest node that a tree splits, given those of its smallest leaf.
    pub(super) fn min_samples_split(stop: &Stop, n_samples: usize, min_leaf: usize) -> usize {
        let own = match stop.min_samples_split {
            SampleCount::Number(number) => number,
            share @ SampleCount::Share(_) => share.of(n_samples).max(2),
        };
        own.max(min_leaf.saturating_mul(2))
    }
}
