//! A tree that is kept, to be pruned: one tree serves all candidates that differ in how it is pruned.
//!
//! **Cost complexity** (Breiman et al., chapter 3): while the weakest link, the branch that costs least
//! for each leaf that it saves, costs at most `ccp_alpha`, it becomes a leaf. The links are cut in the
//! same order for all `ccp_alpha`, which say where to stop. Costs are added up in the order of
//! scikit-learn, whose nodes have the same numbers; where it looks for the weakest link among all nodes,
//! a heap has it.
//!
//! **Number of leaves**: a tree that grows best first makes the same splits in the same order whatever
//! its number of leaves, which says where to stop.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::options::Pruning;

/// A node of a tree.
struct Entry {
    parent: u32,
    weight: f64,
    impurity: f64,
    /// What it predicts.
    value: u32,
    /// How many nodes were split before it, of a tree that grows best first.
    split_at: usize,
    /// The least `ccp_alpha` that makes it a leaf.
    cut_at: f64,
}

/// The nodes of a tree, parents before children.
#[derive(Default)]
pub(super) struct Record {
    entries: Vec<Entry>,
    is_cut: bool,
}

impl Record {
    /// The parent of the root.
    pub(super) const NO_PARENT: u32 = u32::MAX;

    /// Adds a node and returns its number.
    #[allow(clippy::cast_possible_truncation)] // nodes are at most twice as many as rows
    pub(super) fn push(&mut self, parent: u32, weight: f64, impurity: f64, value: u32) -> u32 {
        self.entries.push(Entry {
            parent,
            weight,
            impurity,
            value,
            split_at: usize::MAX,
            cut_at: f64::INFINITY,
        });
        self.entries.len() as u32 - 1
    }

    /// Notes that a node is split after `n_splits` others.
    pub(super) fn split(&mut self, entry: u32, n_splits: usize) {
        self.entries[entry as usize].split_at = n_splits;
    }

    /// What the pruned tree predicts where the tree has these leaves.
    pub(super) fn pruned(&mut self, pruning: Pruning, leaves: &[u32]) -> Vec<u32> {
        if matches!(pruning, Pruning::CostComplexity(_)) && !self.is_cut {
            self.cut();
        }
        let is_leaf = |entry: &Entry| match pruning {
            Pruning::None => false,
            Pruning::CostComplexity(alpha) => entry.cut_at <= alpha,
            Pruning::LeafNodes(max_leaves) => entry.split_at + 1 >= max_leaves,
        };
        let value = |&leaf: &u32| {
            let mut kept = &self.entries[leaf as usize];
            let mut parent = kept.parent;
            while parent != Self::NO_PARENT {
                let entry = &self.entries[parent as usize];
                if is_leaf(entry) {
                    kept = entry;
                }
                parent = entry.parent;
            }
            kept.value
        };
        leaves.iter().map(value).collect()
    }

    /// Cuts the weakest links one after the other, until the root is a leaf.
    fn cut(&mut self) {
        self.is_cut = true;
        let mut links = Links::new(&self.entries);
        let mut alpha = f64::NEG_INFINITY;
        while let Some((node, weakest)) = links.weakest() {
            alpha = weakest.max(alpha);
            self.entries[node].cut_at = alpha;
            links.cut(node, &self.entries);
        }
    }
}

/// A float64 that is not NaN, in its order.
#[derive(Clone, Copy, PartialEq)]
struct Alpha(f64);

impl Eq for Alpha {}

impl PartialOrd for Alpha {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Alpha {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0 + 0.0).total_cmp(&(other.0 + 0.0)) // -0 is 0
    }
}

/// The branches of a tree while it is pruned.
struct Links {
    children: Vec<[usize; 2]>,
    /// The costs of nodes as leaves.
    nodes: Vec<f64>,
    /// The costs of the leaves below nodes.
    branches: Vec<f64>,
    n_leaves: Vec<usize>,
    /// Whether nodes are inner nodes still.
    is_inner: Vec<bool>,
    /// The links, the weakest first; those that are out of date do not have the alpha of their node.
    queue: BinaryHeap<Reverse<(Alpha, usize)>>,
}

impl Links {
    fn new(entries: &[Entry]) -> Self {
        let n = entries.len();
        let total = entries[0].weight;
        let mut links = Self {
            children: vec![[0; 2]; n],
            nodes: entries
                .iter()
                .map(|entry| entry.weight * entry.impurity / total)
                .collect(),
            branches: vec![0.0; n],
            n_leaves: vec![0; n],
            is_inner: vec![false; n],
            queue: BinaryHeap::new(),
        };
        for (node, entry) in entries.iter().enumerate().skip(1) {
            let parent = entry.parent as usize;
            let side = usize::from(links.is_inner[parent]);
            links.children[parent][side] = node;
            links.is_inner[parent] = true;
        }
        for leaf in (0..n)
            .filter(|&node| !links.is_inner[node])
            .collect::<Vec<_>>()
        {
            let cost = links.nodes[leaf];
            links.branches[leaf] = cost;
            for node in ancestors(entries, leaf) {
                links.branches[node] += cost;
                links.n_leaves[node] += 1;
            }
        }
        for node in (0..n)
            .filter(|&node| links.is_inner[node])
            .collect::<Vec<_>>()
        {
            links.queue.push(Reverse((links.alpha(node), node)));
        }
        links
    }

    fn alpha(&self, node: usize) -> Alpha {
        Alpha((self.nodes[node] - self.branches[node]) / (self.n_leaves[node] - 1) as f64)
    }

    /// The inner node that costs least for each leaf that it saves, the first of several.
    fn weakest(&mut self) -> Option<(usize, f64)> {
        while let Some(Reverse((alpha, node))) = self.queue.pop() {
            if self.is_inner[node] && alpha == self.alpha(node) {
                return Some((node, alpha.0));
            }
        }
        None
    }

    /// Makes a node a leaf.
    fn cut(&mut self, node: usize, entries: &[Entry]) {
        let mut below = vec![node];
        while let Some(node) = below.pop() {
            if std::mem::take(&mut self.is_inner[node]) {
                below.extend(self.children[node]);
            }
        }
        let n_saved = self.n_leaves[node] - 1;
        let increase = self.nodes[node] - self.branches[node];
        self.branches[node] = self.nodes[node];
        for node in ancestors(entries, node) {
            self.n_leaves[node] -= n_saved;
            self.branches[node] += increase;
            self.queue.push(Reverse((self.alpha(node), node)));
        }
    }
}

/// The ancestors of a node, its parent first.
fn ancestors(entries: &[Entry], node: usize) -> impl Iterator<Item = usize> {
    let parent = |node: &usize| {
        let parent = entries[*node].parent;
        (parent != Record::NO_PARENT).then_some(parent as usize)
    };
    std::iter::successors(parent(&node), move |node| parent(node))
}
