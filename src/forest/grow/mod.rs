//! One tree, grown depth first or best first, with the answers for the rows that it holds out.
//!
//! Rows are partitioned in place, node by node. So are, where most features are looked at, the sorted
//! lists of the columns: a node's list of a column is a range of its parent's, and nothing is sorted
//! again. Where a node draws few of the features, its samples are sorted by each of them instead.
//!
//! The rows held out go down the tree as it grows; no tree is kept, but for the [`Record`] of one that
//! is pruned.
//!
//! The trees of leave-one-out grow along with the tree of all samples.
//!
//! Several trees that differ in where they stop (see [`Stop`]) grow together as *members*. Members at
//! the same node share the search of its columns. Each replays its own draws, because a tree that
//! stopped earlier has drawn fewer numbers; where their choices differ, they go on apart.

mod best_first;
mod children;
mod choice;
mod leave_one_out;

use std::ops::Range;

use super::criterion::{Criterion, Label, Target};
use super::draws::FeatureDraws;
use super::options::{Splitter, Stop};
use super::ranks::{RankedColumns, Width};
use super::record::Record;
use super::split::{ColumnSplit, LeafLimits, Sample, Samples, Scratch};
use crate::{Monitor, Result};
use choice::{Choice, Slot};

/// What all nodes of a tree have in common.
pub(super) struct TreeTask<'a, W: Width, L> {
    pub(super) table: &'a RankedColumns<W>,
    pub(super) samples: Samples<'a, L>,
    /// The rows of the training set.
    pub(super) training: Vec<u32>,
    /// The rows held out.
    pub(super) held_out: &'a [u32],
    pub(super) splitter: Splitter,
    pub(super) max_features: usize,
    pub(super) limits: LeafLimits,
    /// Whether sorted lists are kept for all columns.
    pub(super) keeps_lists: bool,
}

/// One of the trees that grow together.
pub(super) struct Member {
    pub(super) stop: Stop,
    /// Of `stop`, as a number.
    pub(super) min_samples_split: usize,
    pub(super) draws: FeatureDraws,
    /// For every row held out, its leaf: an entry of the record, or what it predicts if there is none.
    pub(super) leaves: Vec<u32>,
    /// The tree, if it is to be pruned.
    pub(super) record: Option<Record>,
}

/// Where the samples of a node lie in the sorted list of a column.
#[derive(Clone, Copy)]
struct Segment {
    feature: u32,
    len: u32,
    start: usize,
}

/// A node to be grown.
#[derive(Clone)]
struct Node {
    rows: Range<usize>,
    held_out: Range<usize>,
    /// A row that the node does not have, though it is among `rows` and in the lists.
    left_out: Option<u32>,
    segments: Vec<Segment>,
    visitors: Vec<Visitor>,
    sums: Vec<i64>,
    has_lists: bool,
    depth: usize,
    weight: i64,
    impurity: f64,
}

impl Node {
    fn n_samples(&self) -> usize {
        self.rows.len() - usize::from(self.left_out.is_some())
    }
}

/// A member at a node.
#[derive(Clone, Copy)]
struct Visitor {
    member: u32,
    /// How many features it knows to be constant.
    n_constants: u32,
    /// The parent of the node in its record.
    parent: u32,
}

/// Trees that grow together.
pub(super) struct Grower<'a, W: Width, C: Criterion, const WEIGHTED: bool> {
    task: &'a TreeTask<'a, W, Label<C>>,
    criterion: C,
    monitor: &'a Monitor,
    total_weight: f64,
    rows: Vec<Sample>,
    held_out: Vec<u32>,
    keys: Vec<W::Key>,
    slots: Vec<Slot>,
    node_number: u64,
    goes_left: Vec<u8>,
    moved_rows: Vec<Sample>,
    moved_held_out: Vec<u32>,
    moved_keys: Vec<W::Key>,
    sorted: Vec<u64>,
    sort_buffer: Vec<u64>,
    scratch: Scratch,
    values: Vec<f64>,
    n_values: u32,
    n_unanswered: usize,
}

impl<'a, W: Width, C: Criterion, const WEIGHTED: bool> Grower<'a, W, C, WEIGHTED> {
    #[allow(clippy::cast_possible_truncation)] // rows and features are numbered by u32
    pub(super) fn new(
        task: &'a TreeTask<'a, W, Label<C>>,
        criterion: C,
        monitor: &'a Monitor,
    ) -> Self {
        let n_features = task.table.columns.len();
        let samples = &task.samples;
        let encode = |&row: &u32| {
            let weight = if WEIGHTED {
                samples.weights[row as usize]
            } else {
                1
            };
            Sample::new(row, C::Target::encode(samples, row, weight))
        };
        Self {
            task,
            criterion,
            monitor,
            total_weight: 0.0,
            rows: task.training.iter().map(encode).collect(),
            held_out: (0..task.held_out.len() as u32).collect(),
            keys: vec![],
            slots: vec![Slot::default(); n_features],
            node_number: 0,
            goes_left: vec![0; task.table.n_rows],
            moved_rows: vec![],
            moved_held_out: vec![],
            moved_keys: vec![],
            sorted: vec![],
            sort_buffer: vec![],
            scratch: Scratch::default(),
            values: vec![],
            n_values: 0,
            n_unanswered: 0,
        }
    }

    /// Grows all members, depth first.
    pub(super) fn grow(&mut self, members: &mut [Member]) -> Result<()> {
        self.n_unanswered = members.len() * self.held_out.len();
        let root = self.root(members.len());
        self.grow_stack(vec![root], members)
    }

    /// What the leaves predict.
    pub(super) fn into_values(self) -> Vec<f64> {
        self.values
    }

    #[allow(clippy::cast_possible_truncation)] // there are few members
    fn root(&mut self, n_members: usize) -> Node {
        self.keys.clear();
        let (sums, weight) = self.add_up(0..self.rows.len());
        self.total_weight = weight as f64;
        let visitor = |member| Visitor {
            member,
            n_constants: 0,
            parent: Record::NO_PARENT,
        };
        Node {
            rows: 0..self.rows.len(),
            held_out: 0..self.held_out.len(),
            left_out: None,
            segments: if self.task.keeps_lists {
                self.load_lists()
            } else {
                vec![]
            },
            visitors: (0..n_members as u32).map(visitor).collect(),
            has_lists: self.task.keeps_lists,
            depth: 0,
            weight,
            impurity: self.criterion.impurity(&sums, self.total_weight),
            sums,
        }
    }

    /// The sums and the weight of some rows.
    fn add_up(&self, rows: Range<usize>) -> (Vec<i64>, i64) {
        let (mut sums, mut total) = (vec![0; self.criterion.n_sums()], 0);
        for &row in &self.rows[rows] {
            let (label, weight) = C::Target::decode(&self.task.samples, row.code());
            C::Target::add(&mut sums, label, weight);
            total += weight;
        }
        (sums, total)
    }

    /// The sorted lists of the training set. Columns that are constant in the table have none.
    #[allow(clippy::cast_possible_truncation)] // rows are numbered by u32
    fn load_lists(&mut self) -> Vec<Segment> {
        let mut is_trained = vec![false; self.task.table.n_rows];
        for &row in &self.rows {
            is_trained[row.row() as usize] = true;
        }
        let mut segments = vec![];
        for (feature, column) in (0_u32..).zip(&self.task.table.columns) {
            if column.sorted.is_empty() {
                continue;
            }
            let start = self.keys.len();
            let trained = column
                .sorted
                .iter()
                .filter(|&&key| is_trained[W::key_row(key)]);
            self.keys.extend(trained);
            let len = (self.keys.len() - start) as u32;
            segments.push(Segment {
                feature,
                len,
                start,
            });
        }
        self.moved_keys.resize(self.rows.len(), W::Key::default());
        segments
    }

    /// Grows the subtrees below nodes, the last first.
    fn grow_stack(&mut self, mut stack: Vec<Node>, members: &mut [Member]) -> Result<()> {
        let is_recorded = members.iter().any(|member| member.record.is_some());
        while let Some(mut node) = stack.pop() {
            if self.n_unanswered == 0 && !is_recorded {
                return Ok(());
            }
            self.monitor.check()?;
            let (stopped, going): (Vec<_>, Vec<_>) = node
                .visitors
                .iter()
                .partition(|visitor| self.stops(&node, &members[visitor.member as usize]));
            self.answer(&node, stopped, members);
            if going.is_empty() {
                continue;
            }
            let mut choices = self.choose(&mut node, going, members);
            let last = choices.pop();
            for choice in choices {
                self.split_copy(&node, choice, members)?;
            }
            if let Some(choice) = last {
                self.split(&node, choice, members, &mut stack);
            }
        }
        Ok(())
    }

    /// Whether a member makes a node a leaf without a search.
    fn stops(&self, node: &Node, member: &Member) -> bool {
        let (n, limits) = (node.n_samples(), self.task.limits);
        node.depth >= member.stop.max_depth
            || n < member.min_samples_split
            || n < limits.samples.saturating_mul(2)
            || (node.weight as f64) < 2.0 * limits.weight
            || node.impurity <= f64::EPSILON
    }

    /// Makes a node a leaf of some members.
    fn answer(&mut self, node: &Node, visitors: Vec<Visitor>, members: &mut [Member]) {
        if visitors.is_empty() {
            return;
        }
        let value = self.predict(node);
        for visitor in visitors {
            let member = &mut members[visitor.member as usize];
            let leaf = match &mut member.record {
                Some(record) => {
                    record.push(visitor.parent, node.weight as f64, node.impurity, value)
                }
                None => value,
            };
            for &position in &self.held_out[node.held_out.clone()] {
                member.leaves[position as usize] = leaf;
            }
            self.n_unanswered -= node.held_out.len();
        }
    }

    /// The number of what a node predicts; that of a node without rows held out does not matter.
    fn predict(&mut self, node: &Node) -> u32 {
        if node.held_out.is_empty() {
            return u32::MAX;
        }
        C::Target::predict(&node.sums, node.weight as f64, &mut self.values);
        self.n_values += 1;
        self.n_values - 1
    }
}
