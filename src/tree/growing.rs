//! Training sets that grow: each model continues from that of a smaller training set.
//!
//! # Problem
//! The outputs for the held-out rows of any [`Splits`] of which some training sets begin with the rows
//! of others: time series, expanding windows, learning curves.
//!
//! # Method
//! Training sets, as sequences of rows, are the nodes of a forest: the parent of a set is the longest
//! other one that is a prefix of it. A model learns what its set adds to that of its parent, is
//! evaluated, and goes on to the children; all but the last of them get a fork. Growing windows are a
//! chain, so there is one model and no fork. Rows are learnt in the order of the training sets, so the
//! result has the same bits as refits in that order.
//!
//! For learners that do not depend on the order of rows it is enough that sets contain one another:
//! they are then learnt in a common order in which each is a prefix of the next.
//!
//! # Cost
//! Each edge of the forest is learnt once: a chain feeds as many rows as the largest training set has.
//! Finding the forest compares the training sets O(k log k) times. Trees of the forest run on all
//! threads.

use std::mem;

use crate::data::Dataset;
use crate::engine::{Driver, ModelSlots, RawOutputs, Workspace, WorkspacePool, new_outputs};
use crate::learners::{Batch, Learner, Order};
use crate::runtime::threads::is_parallel;
use crate::{Error, Monitor, Result, Splits};

/// The forest of the training sets of some splits.
#[derive(Debug)]
pub(crate) struct GrowingSets<'a> {
    splits: &'a Splits,
    /// The rows of the largest training set in an order in which all others are prefixes of it; nothing
    /// where training sets keep their own order.
    common_order: Option<Vec<usize>>,
    /// In preorder.
    nodes: Vec<Node>,
}

/// A training set.
#[derive(Clone, Copy, Debug)]
struct Node {
    split: usize,
    /// The number of its rows that its parent has learnt: 0 only for a root, since no set is empty.
    n_known: usize,
    n_children: usize,
}

impl<'a> GrowingSets<'a> {
    /// With `any_order`, rows may be learnt in another order than that of the training sets.
    pub(crate) fn new(splits: &'a Splits, any_order: bool) -> Self {
        let nodes = forest(splits);
        let mut sets = Self {
            splits,
            common_order: None,
            nodes,
        };
        let largest = (0..splits.len()).map(|split| splits.train(split).len());
        let is_chain = Some(sets.n_fed()) == largest.max();
        if any_order
            && !is_chain
            && let Some((order, nodes)) = chain(splits)
        {
            sets.nodes = nodes;
            sets.common_order = Some(order);
        }
        sets
    }

    /// The number of rows that all models learn together.
    pub(crate) fn n_fed(&self) -> usize {
        self.nodes.iter().map(|node| self.added(*node).len()).sum()
    }

    /// The number of rows that refits would learn more than once.
    pub(crate) fn n_shared(&self) -> usize {
        self.nodes.iter().map(|node| node.n_known).sum()
    }

    /// The rows that a training set adds to that of its parent.
    fn added(&self, node: Node) -> &[usize] {
        let train = self.splits.train(node.split);
        let sequence = match &self.common_order {
            Some(order) => &order[..train.len()],
            None => train,
        };
        &sequence[node.n_known..]
    }

    /// Outputs in test order, and their cost.
    pub(crate) fn run(
        &self,
        learner: &dyn Learner,
        data: &Dataset<'_>,
        models: Option<&mut ModelSlots>,
        monitor: &Monitor,
    ) -> Result<RawOutputs> {
        let n_outputs = learner.n_outputs();
        let sizes: Vec<usize> = (0..self.splits.len())
            .map(|split| self.splits.test(split).len())
            .collect();
        let n_held_out = sizes.iter().sum();
        monitor.add_total((self.n_fed() + n_held_out) as u64);
        let mut outputs = new_outputs(n_held_out, n_outputs)?;
        let growth = Growth {
            sets: self,
            learner,
            driver: Driver::new(data, &learner.cost_model(data), Order::Fixed, monitor),
            is_parallel: is_parallel(),
            pool: WorkspacePool::new(),
        };
        let mut trees = self.trees(&sizes, n_outputs, &mut outputs, models);
        growth
            .pool
            .with(|workspace| growth.trees(&mut trees, workspace))?;
        let cost = growth.pool.finish(&growth.driver)?;
        Ok((outputs, cost))
    }

    /// The trees of the forest, with the places of their results.
    fn trees<'o>(
        &self,
        sizes: &[usize],
        n_outputs: usize,
        mut outputs: &'o mut [f64],
        models: Option<&'o mut ModelSlots>,
    ) -> Vec<Vec<Visit<'o>>> {
        let mut models = models.map(<ModelSlots>::iter_mut);
        let mut places: Vec<_> = sizes
            .iter()
            .map(|size| {
                let (outputs_of_split, rest) =
                    mem::take(&mut outputs).split_at_mut(size * n_outputs);
                outputs = rest;
                (outputs_of_split, models.as_mut().and_then(Iterator::next))
            })
            .collect();
        let mut visit = |&node: &Node| {
            let (outputs, model) = mem::take(&mut places[node.split]);
            Visit {
                node,
                outputs,
                model,
            }
        };
        self.nodes
            .chunk_by(|_, next| next.n_known > 0)
            .map(|tree| tree.iter().map(&mut visit).collect())
            .collect()
    }
}

/// The forest of training sets as they are, in preorder: that of sequences in lexicographic order.
fn forest(splits: &Splits) -> Vec<Node> {
    let mut order: Vec<usize> = (0..splits.len()).collect();
    order.sort_by(|&a, &b| splits.train(a).cmp(splits.train(b)));
    let mut nodes: Vec<Node> = Vec::with_capacity(order.len());
    let mut path: Vec<usize> = Vec::new();
    for split in order {
        let is_prefix = |&node: &usize| splits.train(split).starts_with(splits.train(node));
        while path
            .pop_if(|position| !is_prefix(&nodes[*position].split))
            .is_some()
        {}
        push(&mut nodes, split, path.last().copied(), splits);
        path.push(nodes.len() - 1);
    }
    nodes
}

/// The training sets by size, and their rows in the order in which they join, if every set contains the
/// smaller ones and no row twice.
fn chain(splits: &Splits) -> Option<(Vec<usize>, Vec<Node>)> {
    let mut by_size: Vec<usize> = (0..splits.len()).collect();
    by_size.sort_by_key(|&split| splits.train(split).len());
    let mut is_known = vec![false; splits.n_samples()];
    let mut order = Vec::new();
    let mut nodes: Vec<Node> = Vec::with_capacity(by_size.len());
    for split in by_size {
        let train = splits.train(split);
        let n_known = order.len();
        for &row in train {
            if !mem::replace(&mut is_known[row], true) {
                order.push(row);
            }
        }
        // Known rows that are missing, or rows that repeat.
        if order.len() != train.len() || n_known > train.len() {
            return None;
        }
        let parent = nodes.len().checked_sub(1);
        push(&mut nodes, split, parent, splits);
    }
    Some((order, nodes))
}

fn push(nodes: &mut Vec<Node>, split: usize, parent: Option<usize>, splits: &Splits) {
    let known = parent.map(|parent| {
        nodes[parent].n_children += 1;
        splits.train(nodes[parent].split).len()
    });
    nodes.push(Node {
        split,
        n_known: known.unwrap_or(0),
        n_children: 0,
    });
}

/// A node and where its results go.
#[derive(Debug)]
struct Visit<'o> {
    node: Node,
    outputs: &'o mut [f64],
    /// Where the fitted model goes, if models are kept.
    model: Option<&'o mut Option<Box<dyn Learner>>>,
}

/// A fitted model, and how many children of its node have yet to be visited: one at least.
struct Parent {
    model: Box<dyn Learner>,
    n_left: usize,
}

struct Growth<'a> {
    sets: &'a GrowingSets<'a>,
    learner: &'a dyn Learner,
    driver: Driver<'a>,
    is_parallel: bool,
    pool: WorkspacePool,
}

impl Growth<'_> {
    fn trees(&self, trees: &mut [Vec<Visit<'_>>], workspace: &mut Workspace) -> Result<()> {
        if trees.len() == 1 || !self.is_parallel {
            return trees
                .iter_mut()
                .try_for_each(|tree| self.tree(tree, workspace));
        }
        self.driver.check()?;
        let (left, right) = trees.split_at_mut(trees.len() / 2);
        self.pool.join(
            workspace,
            |workspace| self.trees(left, workspace),
            |workspace| self.trees(right, workspace),
        )
    }

    /// Visits a tree in preorder. A loop, since chains may be long.
    fn tree(&self, tree: &mut [Visit<'_>], workspace: &mut Workspace) -> Result<()> {
        let mut path: Vec<Parent> = Vec::new();
        for Visit {
            node,
            outputs,
            model: kept,
        } in tree
        {
            let mut model = self.next_model(&mut path, workspace)?;
            let batch = Batch {
                rows: [self.sets.added(*node)],
                key: node.split..node.split + 1,
            };
            let counters = &mut workspace.counters;
            self.driver.update(&mut *model, &batch, None, counters)?;
            let held_out = self.sets.splits.test(node.split);
            self.driver.evaluate(&*model, held_out, outputs, counters)?;
            if let Some(kept) = kept {
                **kept = Some(model.fork()?);
            }
            if node.n_children > 0 {
                let n_left = node.n_children;
                path.push(Parent { model, n_left });
            } else {
                workspace.drop_fork(model);
            }
        }
        Ok(())
    }

    /// The model that the next node continues from: that of its parent, the last on the path, or a fork
    /// of it while more children follow.
    fn next_model(
        &self,
        path: &mut Vec<Parent>,
        workspace: &mut Workspace,
    ) -> Result<Box<dyn Learner>> {
        match path.pop() {
            None => {
                workspace.counters.cost.fits += 1;
                workspace.fork(self.learner)
            }
            Some(Parent { model, n_left: 1 }) => Ok(model),
            Some(Parent { model, n_left }) => {
                workspace.counters.cost.copies += 1;
                let fork = workspace.fork(&*model);
                let n_left = n_left - 1;
                path.push(Parent { model, n_left });
                fork
            }
        }
    }
}

/// Why training sets of which none begins with another are not for the tree.
pub(super) fn no_growth() -> Error {
    Error::Folds {
        reason:
            "the engine tree needs test sets that are a partition of the samples, or training sets \
                 that begin with one another"
                .into(),
    }
}

/// Why the rows of growing training sets cannot be learnt in a random order.
pub(super) fn no_random_order() -> Error {
    Error::Parameter {
        name: "order",
        rule: "fixed where training sets grow: in a random order none begins with another",
        value: "random".into(),
    }
}
