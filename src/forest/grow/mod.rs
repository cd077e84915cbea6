//! One tree, grown depth first, with the answers for the rows that it holds out.
//!
//! Rows are partitioned in place, node by node. So are, where most features are looked at, the sorted
//! lists of the columns: a node's list of a column is a range of its parent's, and nothing is sorted
//! again. Where a node draws few of the features, its samples are sorted by each of them instead.
//!
//! The rows held out go down the tree as it grows; no tree is kept.
//!
//! Several trees that differ in where they stop (see [`Stop`]) grow together as *members*. Members at
//! the same node share the search of its columns. Each replays its own draws, because a tree that
//! stopped earlier has drawn fewer numbers; where their choices differ, they go on apart.

mod children;

use std::ops::Range;

use super::criterion::Criterion;
use super::draws::FeatureDraws;
use super::options::Stop;
use super::order::sort_keys;
use super::ranks::{RankedColumns, Width};
use super::split::{Boundary, ColumnSplit, LeafLimits, NodeSums, Sample, Samples, Scratch, Search};
use crate::{Monitor, Result};

/// A table of fewer than this many counts per sample of a node is filled rather than the samples sorted.
const MIN_SAMPLES_PER_COUNT: usize = 2;

/// What all nodes of a tree have in common.
pub(super) struct TreeTask<'a, W: Width, L> {
    pub(super) table: &'a RankedColumns<W>,
    pub(super) samples: Samples<'a, L>,
    /// The rows of the training set.
    pub(super) training: Vec<u32>,
    /// The rows held out.
    pub(super) held_out: &'a [u32],
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
    /// The leaf of every row held out.
    pub(super) leaves: Vec<u32>,
}

/// The answers of trees that grew together.
pub(super) struct Grown {
    /// For each tree, the leaf of every row held out.
    pub(super) leaves: Vec<Vec<u32>>,
    /// What each leaf predicts.
    pub(super) values: Vec<f64>,
}

/// Where the samples of a node lie in the sorted list of a column.
#[derive(Clone, Copy)]
struct Segment {
    feature: u32,
    len: u32,
    start: usize,
}

/// A node to be grown. Its segments, members and sums are the last on their stacks.
#[derive(Clone)]
struct Node {
    rows: Range<usize>,
    held_out: Range<usize>,
    segments: Range<usize>,
    members: Range<usize>,
    has_lists: bool,
    depth: usize,
    weight: i64,
    impurity: f64,
}

/// A member at a node, and how many features it knows to be constant there.
#[derive(Clone, Copy)]
struct Visitor {
    member: u32,
    n_constants: u32,
}

/// What is known of a column at the current node.
#[derive(Clone, Copy)]
struct Slot {
    /// The node that `segment` belongs to.
    listed_at: u64,
    segment: usize,
    /// The node that `split` belongs to.
    searched_at: u64,
    split: ColumnSplit,
}

/// The split that some members have chosen.
struct Choice {
    feature: u32,
    boundary: Boundary,
    visitors: Vec<Visitor>,
}

/// Trees that grow together.
pub(super) struct Grower<'a, W: Width, C: Criterion, const WEIGHTED: bool> {
    task: &'a TreeTask<'a, W, C::Label>,
    criterion: C,
    monitor: &'a Monitor,
    total_weight: f64,
    rows: Vec<Sample>,
    held_out: Vec<u32>,
    keys: Vec<W::Key>,
    segments: Vec<Segment>,
    visitors: Vec<Visitor>,
    sums: Vec<i64>,
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
    n_unanswered: usize,
}

impl<'a, W: Width, C: Criterion, const WEIGHTED: bool> Grower<'a, W, C, WEIGHTED> {
    #[allow(clippy::cast_possible_truncation)] // rows and features are numbered by u32
    pub(super) fn new(
        task: &'a TreeTask<'a, W, C::Label>,
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
            Sample::new(row, C::encode(samples, row, weight))
        };
        let slot = Slot {
            listed_at: 0,
            segment: 0,
            searched_at: 0,
            split: ColumnSplit::Constant,
        };
        Self {
            task,
            criterion,
            monitor,
            total_weight: 0.0,
            rows: task.training.iter().map(encode).collect(),
            held_out: (0..task.held_out.len() as u32).collect(),
            keys: vec![],
            segments: vec![],
            visitors: vec![],
            sums: vec![],
            slots: vec![slot; n_features],
            node_number: 0,
            goes_left: vec![0; task.table.n_rows],
            moved_rows: vec![],
            moved_held_out: vec![],
            moved_keys: vec![],
            sorted: vec![],
            sort_buffer: vec![],
            scratch: Scratch::default(),
            values: vec![],
            n_unanswered: 0,
        }
    }

    /// Grows all members.
    #[allow(clippy::cast_possible_truncation)] // there are few members
    pub(super) fn grow(mut self, members: &mut [Member]) -> Result<Grown> {
        let n_sums = self.criterion.n_sums();
        self.sums.resize(n_sums, 0);
        let mut weight = 0;
        for &row in &self.rows {
            let (label, own) = C::decode(&self.task.samples, row.code());
            C::add(&mut self.sums, label, own);
            weight += own;
        }
        self.total_weight = weight as f64;
        self.n_unanswered = members.len() * self.held_out.len();
        if self.task.keeps_lists {
            self.load_lists();
        }
        self.visitors = (0..members.len() as u32)
            .map(|member| Visitor {
                member,
                n_constants: 0,
            })
            .collect();
        let root = Node {
            rows: 0..self.rows.len(),
            held_out: 0..self.held_out.len(),
            segments: 0..self.segments.len(),
            members: 0..self.visitors.len(),
            has_lists: self.task.keeps_lists,
            depth: 0,
            weight,
            impurity: self.criterion.impurity(&self.sums, self.total_weight),
        };
        self.grow_stack(vec![root], members)?;
        Ok(Grown {
            leaves: members
                .iter_mut()
                .map(|own| std::mem::take(&mut own.leaves))
                .collect(),
            values: self.values,
        })
    }

    /// The sorted lists of the training set. Columns that are constant in the table have none.
    #[allow(clippy::cast_possible_truncation)] // rows are numbered by u32
    fn load_lists(&mut self) {
        let mut is_trained = vec![false; self.task.table.n_rows];
        for &row in &self.rows {
            is_trained[row.row() as usize] = true;
        }
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
            self.segments.push(Segment {
                feature,
                len,
                start,
            });
        }
        self.moved_keys.resize(self.rows.len(), W::Key::default());
    }

    /// Grows the subtrees below nodes, the last first.
    fn grow_stack(&mut self, mut stack: Vec<Node>, members: &mut [Member]) -> Result<()> {
        while let Some(mut node) = stack.pop() {
            if self.n_unanswered == 0 {
                return Ok(());
            }
            self.monitor.check()?;
            let n_sums = self.criterion.n_sums();
            let visitors = self.visitors[node.members.clone()].to_vec();
            self.visitors.truncate(node.members.start);
            self.segments.truncate(node.segments.end);
            let sums = self.sums.split_off(self.sums.len() - n_sums);
            let (stopped, going): (Vec<_>, Vec<_>) = visitors
                .into_iter()
                .partition(|own| self.stops(&node, &members[own.member as usize]));
            self.answer(&node, &sums, stopped, members);
            if going.is_empty() {
                self.segments.truncate(node.segments.start);
                continue;
            }
            let mut choices = self.choose(&mut node, &sums, going, members);
            let last = choices.pop();
            for choice in choices {
                self.split_copy(&node, &sums, choice, members)?;
            }
            match last {
                Some(choice) => self.split(&node, &sums, choice, members, &mut stack),
                None => self.segments.truncate(node.segments.start),
            }
        }
        Ok(())
    }

    /// Whether a member makes a node a leaf without a search.
    fn stops(&self, node: &Node, member: &Member) -> bool {
        let (n, limits) = (node.rows.len(), self.task.limits);
        node.depth >= member.stop.max_depth
            || n < member.min_samples_split
            || n < limits.samples.saturating_mul(2)
            || (node.weight as f64) < 2.0 * limits.weight
            || node.impurity <= f64::EPSILON
    }

    /// Makes a node a leaf of some members.
    #[allow(clippy::cast_possible_truncation)] // leaves are at most as many as rows
    fn answer(
        &mut self,
        node: &Node,
        sums: &[i64],
        visitors: Vec<Visitor>,
        members: &mut [Member],
    ) {
        if visitors.is_empty() || node.held_out.is_empty() {
            return;
        }
        let leaf = (self.values.len() / self.criterion.n_outputs()) as u32;
        self.criterion
            .predict(sums, node.weight as f64, &mut self.values);
        for visitor in visitors {
            let leaves = &mut members[visitor.member as usize].leaves;
            for &position in &self.held_out[node.held_out.clone()] {
                leaves[position as usize] = leaf;
            }
            self.n_unanswered -= node.held_out.len();
        }
    }

    /// The splits that members choose at a node, after their own draws. Members without a split make it
    /// a leaf. Lists of columns that turn out to be constant are dropped.
    #[allow(clippy::cast_possible_truncation)] // features are numbered by u32
    fn choose(
        &mut self,
        node: &mut Node,
        sums: &[i64],
        visitors: Vec<Visitor>,
        members: &mut [Member],
    ) -> Vec<Choice> {
        self.node_number += 1;
        if node.has_lists {
            for index in node.segments.clone() {
                let slot = &mut self.slots[self.segments[index].feature as usize];
                (slot.listed_at, slot.segment) = (self.node_number, index);
            }
        }
        let node_sums = NodeSums {
            n_samples: node.rows.len(),
            weight: node.weight,
            sums,
        };
        let max_features = self.task.max_features;
        let mut bound = f64::NEG_INFINITY;
        let mut choices: Vec<Choice> = vec![];
        let mut leaves = vec![];
        for mut visitor in visitors {
            let mut best: Option<(u32, Boundary)> = None;
            let draws = &mut members[visitor.member as usize].draws;
            let n_known = visitor.n_constants as usize;
            visitor.n_constants = draws.draw(n_known, max_features, |feature| {
                match self.column_split(feature, node, node_sums, &mut bound) {
                    ColumnSplit::Constant => return true,
                    ColumnSplit::Nothing => {}
                    ColumnSplit::Best(boundary) => {
                        if best.is_none_or(|(_, known)| boundary.score > known.score) {
                            best = Some((feature, boundary));
                        }
                    }
                }
                false
            }) as u32;
            let Some((feature, boundary)) = best else {
                leaves.push(visitor);
                continue;
            };
            let same = choices
                .iter_mut()
                .find(|own| own.feature == feature && own.boundary == boundary);
            match same {
                Some(choice) => choice.visitors.push(visitor),
                None => choices.push(Choice {
                    feature,
                    boundary,
                    visitors: vec![visitor],
                }),
            }
        }
        self.answer(node, sums, leaves, members);
        if node.has_lists {
            let mut end = node.segments.start;
            for index in node.segments.clone() {
                let slot = self.slots[self.segments[index].feature as usize];
                let is_searched = slot.searched_at == self.node_number;
                if !(is_searched && slot.split == ColumnSplit::Constant) {
                    self.segments[end] = self.segments[index];
                    end += 1;
                }
            }
            self.segments.truncate(end);
            node.segments.end = end;
        }
        choices
    }

    /// The best boundary of a column, searched once per node.
    fn column_split(
        &mut self,
        feature: u32,
        node: &Node,
        sums: NodeSums<'_>,
        bound: &mut f64,
    ) -> ColumnSplit {
        let slot = self.slots[feature as usize];
        if slot.searched_at == self.node_number {
            return slot.split;
        }
        let column = &self.task.table.columns[feature as usize];
        let search = Search::<W, C, WEIGHTED> {
            column,
            samples: &self.task.samples,
            node: sums,
            limits: self.task.limits,
            criterion: &mut self.criterion,
            bound,
        };
        let split = if node.has_lists {
            if slot.listed_at == self.node_number {
                let Segment { start, len, .. } = self.segments[slot.segment];
                search.list(&self.keys[start..start + len as usize], &mut self.scratch)
            } else {
                ColumnSplit::Constant
            }
        } else {
            let rows = &self.rows[node.rows.clone()];
            let n_counts = column.values.len() * sums.sums.len();
            if C::HAS_CLASSES && column.values.len() == 2 && sums.sums.len() == 2 {
                search.halved(rows)
            } else if C::HAS_CLASSES && rows.len() >= MIN_SAMPLES_PER_COUNT * n_counts {
                search.counted(rows, &mut self.scratch)
            } else {
                self.sorted.clear();
                let ranks = &column.ranks;
                self.sorted.extend(
                    rows.iter()
                        .map(|&row| row.with_rank(W::rank(ranks[row.row() as usize]))),
                );
                sort_keys(&mut self.sorted, &mut self.sort_buffer, column.values.len());
                search.sorted(&self.sorted)
            }
        };
        let slot = &mut self.slots[feature as usize];
        (slot.searched_at, slot.split) = (self.node_number, split);
        split
    }
}
