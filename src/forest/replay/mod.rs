//! Trees of targets that are any numbers: sums in the order in which scikit-learn adds them up.
//!
//! **Problem.** Where targets are no integers, their sums depend on the order of addition, and rounding
//! decides between splits that are equally good, of which small nodes have many. A tree is
//! scikit-learn's only if its sums have the same rounding errors.
//!
//! **Method.** The rows of a node lie in the order in which scikit-learn has them: each feature that a
//! node draws sorts them, or partitions them at a drawn threshold, and the split partitions them once
//! more. An unstable sort leaves equal values in an order of its own, so the sort is replayed too
//! (`introsort`), on keys of ranks; a column without equal values is sorted by digits. The draws, the
//! ranks and the limits are those of the other trees.
//!
//! **Cost.** O(n·m·log n) for each level of a tree that draws m features, as in scikit-learn. What is left
//! to gain is keys of eight bytes instead of pairs of arrays, and a sort of small ranges without branches.

mod introsort;
mod sums;

use std::ops::Range;

use super::draws::Xorshift;
use super::grow::{Member, TreeTask};
use super::heap::Heap;
use super::options::Splitter;
use super::order::{partition, sort_keys};
use super::ranks::{Column, Width};
use super::record::Record;
use super::split::Boundary;
use crate::{Monitor, Result};
use introsort::introsort;
use sums::{LeftSums, NodeSums, Term};

/// How far below the best score a bound must be to pass over a boundary, relative to it.
const SCORE_MARGIN: f64 = 1e-11;

/// A node to be grown.
struct Node {
    rows: Range<usize>,
    held_out: Range<usize>,
    depth: usize,
    impurity: f64,
    /// How many features are known to be constant.
    n_constants: usize,
    /// The parent in the record.
    parent: u32,
}

/// The best split of a node so far.
#[derive(Clone, Copy)]
struct Choice {
    feature: u32,
    boundary: Boundary,
    /// Whether the rows of the node are partitioned by it already.
    is_partitioned: bool,
}

/// The children of a node.
struct Halves {
    children: [Node; 2],
    /// The decrease of impurity, weighted by the share of the node.
    improvement: f64,
}

/// One tree while it grows.
pub(super) struct Replay<'a, W: Width> {
    task: &'a TreeTask<'a, W, f64>,
    monitor: &'a Monitor,
    /// What sums count, by row.
    terms: Vec<Term>,
    total_weight: f64,
    rows: Vec<u32>,
    held_out: Vec<u32>,
    moved_held_out: Vec<u32>,
    keys: Vec<u64>,
    sort_buffer: Vec<u64>,
    ranks: Vec<usize>,
    values: Vec<f64>,
    n_unanswered: usize,
}

impl<'a, W: Width> Replay<'a, W> {
    /// A tree before it grows; rows without weights count once.
    #[allow(clippy::cast_possible_truncation)] // rows are numbered by u32
    pub(super) fn new(task: &'a TreeTask<'a, W, f64>, monitor: &'a Monitor) -> Self {
        let term = |(row, &target): (usize, &f64)| {
            let weight = f64::from(task.samples.weights.get(row).copied().unwrap_or(1));
            Term {
                product: weight * target,
                weight,
                target,
            }
        };
        Self {
            task,
            monitor,
            terms: task.samples.labels.iter().enumerate().map(term).collect(),
            total_weight: 0.0,
            rows: task.training.clone(),
            held_out: (0..task.held_out.len() as u32).collect(),
            moved_held_out: vec![],
            keys: vec![],
            sort_buffer: vec![],
            ranks: vec![],
            values: vec![],
            n_unanswered: task.held_out.len(),
        }
    }

    /// What the leaves predict.
    pub(super) fn into_values(self) -> Vec<f64> {
        self.values
    }

    /// Grows a tree depth first.
    pub(super) fn grow(&mut self, member: &mut Member) -> Result<()> {
        let mut stack = vec![self.root()];
        while let Some(mut node) = stack.pop() {
            if self.n_unanswered == 0 && member.record.is_none() {
                return Ok(());
            }
            self.monitor.check()?;
            if let Some(halves) = self.split(&mut node, member) {
                stack.extend(halves.children.into_iter().rev());
            }
        }
        Ok(())
    }

    /// Grows a tree of at most `max_leaves` leaves, whose record says in which order nodes were split.
    pub(super) fn grow_best_first(&mut self, member: &mut Member, max_leaves: usize) -> Result<()> {
        let mut heap = Heap::default();
        let root = self.root();
        self.open(root, member, &mut heap);
        let mut n_splits = 0;
        while let Some((gain, halves)) = heap.pop() {
            self.monitor.check()?;
            let Some(halves) = halves else { continue };
            if n_splits + 1 >= max_leaves {
                heap.push(gain, Some(halves));
                break;
            }
            let entry = halves.children[0].parent;
            if let Some(record) = &mut member.record {
                record.split(entry, n_splits);
            }
            n_splits += 1;
            for child in halves.children {
                self.open(child, member, &mut heap);
            }
        }
        for halves in heap.into_items().flatten() {
            let [left, right] = &halves.children;
            for &position in &self.held_out[left.held_out.start..right.held_out.end] {
                member.leaves[position as usize] = left.parent;
            }
        }
        Ok(())
    }

    /// Splits a node unless it is a leaf for good, which has no gain.
    fn open(&mut self, mut node: Node, member: &mut Member, heap: &mut Heap<Option<Halves>>) {
        node.n_constants = 0; // scikit-learn looks at all features again
        let halves = self.split(&mut node, member);
        let gain = halves.as_ref().map_or(0.0, |halves| halves.improvement);
        heap.push(gain, halves);
    }

    fn root(&mut self) -> Node {
        let sums = NodeSums::of(&self.rows, &self.terms);
        self.total_weight = sums.weight;
        Node {
            rows: 0..self.rows.len(),
            held_out: 0..self.held_out.len(),
            depth: 0,
            impurity: sums.impurity(),
            n_constants: 0,
            parent: Record::NO_PARENT,
        }
    }

    /// Splits a node and writes it into the record, or makes it a leaf.
    fn split(&mut self, node: &mut Node, member: &mut Member) -> Option<Halves> {
        let sums = NodeSums::of(&self.rows[node.rows.clone()], &self.terms);
        let halves = if self.stops(node, &sums, member) {
            None
        } else {
            self.choose(node, sums, member)
                .map(|choice| self.halve(node, sums, choice))
                .filter(|halves| {
                    halves.improvement + f64::EPSILON >= member.stop.min_impurity_decrease
                })
        };
        let Some(mut halves) = halves else {
            self.answer(node, &sums, member);
            return None;
        };
        if let Some(record) = &mut member.record {
            let value = predict(&mut self.values, &sums);
            let entry = record.push(node.parent, sums.weight, node.impurity, value);
            for child in &mut halves.children {
                child.parent = entry;
            }
        }
        Some(halves)
    }

    /// Whether a node is a leaf without a search.
    fn stops(&self, node: &Node, sums: &NodeSums, member: &Member) -> bool {
        let (n, limits) = (node.rows.len(), self.task.limits);
        node.depth >= member.stop.max_depth
            || n < member.min_samples_split
            || n < limits.samples.saturating_mul(2)
            || sums.weight < 2.0 * limits.weight
            || node.impurity <= f64::EPSILON
    }

    /// Makes a node a leaf.
    fn answer(&mut self, node: &Node, sums: &NodeSums, member: &mut Member) {
        let is_recorded = member.record.is_some();
        if node.held_out.is_empty() && !is_recorded {
            return;
        }
        let value = predict(&mut self.values, sums);
        let leaf = match &mut member.record {
            Some(record) => record.push(node.parent, sums.weight, node.impurity, value),
            None => value,
        };
        for &position in &self.held_out[node.held_out.clone()] {
            member.leaves[position as usize] = leaf;
        }
        self.n_unanswered -= node.held_out.len();
    }

    /// The best split of a node, after the draws of a tree; none if there is no split.
    fn choose(&mut self, node: &mut Node, sums: NodeSums, member: &mut Member) -> Option<Choice> {
        let (mut best, mut last): (Option<Choice>, _) = (None, None);
        let max_features = self.task.max_features;
        let draws = &mut member.draws;
        node.n_constants = draws.draw(node.n_constants, max_features, |feature, random| {
            last = Some(feature);
            match self.task.splitter {
                Splitter::Best => self.search(feature, node, sums, &mut best),
                Splitter::Random => self.search_at_random(feature, node, sums, &mut best, random),
            }
        });
        let mut choice = best?;
        // Columns that were drawn later have moved the rows again.
        choice.is_partitioned &= last == Some(choice.feature);
        Some(choice)
    }

    /// Sorts the rows of a node by a column, missing values last, and looks at its boundaries. Returns
    /// whether the column is constant.
    fn search(
        &mut self,
        feature: u32,
        node: &Node,
        sums: NodeSums,
        best: &mut Option<Choice>,
    ) -> bool {
        let task = self.task;
        let column = &task.table.columns[feature as usize];
        let n_missing = self.sort_rows(column, node.rows.clone());
        let n_present = self.keys.len() - n_missing;
        if n_present == 0 {
            return true;
        }
        let [first, last] = [0, n_present - 1].map(|place| rank(self.keys[place]));
        if n_missing == 0 && !column.differ(first, last) {
            return true;
        }
        let missing_goes_left = (n_missing > 0).then_some(false);
        self.look_at_boundaries(feature, sums, 1, missing_goes_left, best);
        if n_missing > 0 {
            self.keys.rotate_right(n_missing);
            self.rows[node.rows.clone()].rotate_right(n_missing);
            self.look_at_boundaries(feature, sums, n_missing + 1, Some(true), best);
        }
        false
    }

    /// Compares the boundaries of the sorted rows with the best one, from the place `first` on.
    fn look_at_boundaries(
        &self,
        feature: u32,
        sums: NodeSums,
        first: usize,
        missing_goes_left: Option<bool>,
        best: &mut Option<Choice>,
    ) {
        let column = &self.task.table.columns[feature as usize];
        let (keys, limits) = (self.keys.as_slice(), self.task.limits);
        let n = keys.len();
        let mut left = LeftSums::new(sums);
        let mut best_score = score_of(best.as_ref());
        for place in first.max(limits.samples)..n.saturating_sub(limits.samples - 1) {
            let (lower, upper) = (rank(keys[place - 1]), rank(keys[place]));
            if lower == upper || !column.differ(lower, upper) {
                continue;
            }
            left.advance(place, n, |place| self.terms[row(keys[place]) as usize]);
            if left.weight < limits.weight || left.weight_right() < limits.weight {
                continue;
            }
            if let Some(score) = left.score_above(best_score) {
                best_score = score;
                *best = Some(Choice {
                    feature,
                    boundary: Boundary {
                        score,
                        lower,
                        upper,
                        missing_goes_left,
                    },
                    is_partitioned: false,
                });
            }
        }
    }

    /// Sorts the rows of a node, and their keys, by a column. Returns how many values are missing; they
    /// are last.
    fn sort_rows(&mut self, column: &Column<W>, rows: Range<usize>) -> usize {
        let rows = &mut self.rows[rows];
        let rank_of = |row: u32| W::rank(column.ranks[row as usize]);
        let key = |&row: &u32| (rank_of(row) as u64) << 32 | u64::from(row);
        let n_present = match column.missing {
            Some(missing) => put_missing_last(rows, |row| rank_of(row) == missing),
            None => rows.len(),
        };
        self.keys.clear();
        self.keys.extend(rows[..n_present].iter().map(key));
        let n_ranks = column.values.len();
        if n_ranks == column.ranks.len() {
            sort_keys(&mut self.keys, &mut self.sort_buffer, n_ranks);
        } else {
            introsort(&mut self.keys);
        }
        self.keys.extend(rows[n_present..].iter().map(key));
        for (place, &key) in rows.iter_mut().zip(&self.keys) {
            *place = row(key);
        }
        rows.len() - n_present
    }

    /// Partitions the rows of a node at a random threshold of a column, and compares it with the best
    /// split. Returns whether the column is constant.
    fn search_at_random(
        &mut self,
        feature: u32,
        node: &Node,
        sums: NodeSums,
        best: &mut Option<Choice>,
        random: &mut Xorshift,
    ) -> bool {
        let (task, limits) = (self.task, self.task.limits);
        let column = &task.table.columns[feature as usize];
        let rows = &mut self.rows[node.rows.clone()];
        let rank = |row: &u32| W::rank(column.ranks[*row as usize]);
        self.ranks.clear();
        self.ranks.extend(rows.iter().map(rank));
        let Some(drawn) = Boundary::at_random(column, &self.ranks, random) else {
            return true;
        };
        let n_left = swap_partition(rows, goes_left(column, &drawn));
        let n = rows.len();
        if n_left < limits.samples || n - n_left < limits.samples {
            return false;
        }
        let rows = &*rows;
        let mut left = LeftSums::new(sums);
        left.advance(n_left, n, |place| self.terms[rows[place] as usize]);
        if left.weight < limits.weight || left.weight_right() < limits.weight {
            return false;
        }
        if let Some(score) = left.score_above(score_of(best.as_ref())) {
            let boundary = Boundary { score, ..drawn };
            *best = Some(Choice {
                feature,
                boundary,
                is_partitioned: true,
            });
        }
        false
    }

    /// Partitions a node.
    fn halve(&mut self, node: &Node, sums: NodeSums, choice: Choice) -> Halves {
        let task = self.task;
        let column = &task.table.columns[choice.feature as usize];
        let is_left = goes_left(column, &choice.boundary);
        let rows = &mut self.rows[node.rows.clone()];
        let n_left = if choice.is_partitioned {
            rows.partition_point(|&row| is_left(row))
        } else {
            swap_partition(rows, &is_left)
        };
        let (rows, n) = (&*rows, rows.len());
        let mut left = LeftSums::new(sums);
        left.advance(n_left, n, |place| self.terms[rows[place] as usize]);
        let squares = NodeSums::of(&rows[..n_left], &self.terms).squares;
        let impurities = left.impurities(squares);
        let improvement = (sums.weight / self.total_weight)
            * (node.impurity
                - (left.weight_right() / sums.weight * impurities[1])
                - (left.weight / sums.weight * impurities[0]));
        // A value that is missing in no row of the node goes to the larger half.
        let missing_goes_left = choice.boundary.missing_goes_left.unwrap_or(2 * n_left > n);
        let boundary = Boundary {
            missing_goes_left: Some(missing_goes_left),
            ..choice.boundary
        };
        let is_left = goes_left(column, &boundary);
        let side = |&position: &u32| usize::from(is_left(task.held_out[position as usize]));
        let held_out = &mut self.held_out[node.held_out.clone()];
        let middle = node.held_out.start + partition(held_out, &mut self.moved_held_out, side);
        let child = |rows: Range<usize>, held_out: Range<usize>, impurity: f64| Node {
            rows,
            held_out,
            depth: node.depth + 1,
            impurity,
            n_constants: node.n_constants,
            parent: Record::NO_PARENT,
        };
        let middle_row = node.rows.start + n_left;
        let left_rows = node.rows.start..middle_row;
        let right_rows = middle_row..node.rows.end;
        Halves {
            children: [
                child(left_rows, node.held_out.start..middle, impurities[0]),
                child(right_rows, middle..node.held_out.end, impurities[1]),
            ],
            improvement,
        }
    }
}

fn score_of(choice: Option<&Choice>) -> f64 {
    choice.map_or(f64::NEG_INFINITY, |choice| choice.boundary.score)
}

fn rank(key: u64) -> usize {
    (key >> 32) as usize
}

#[allow(clippy::cast_possible_truncation)] // the lower half
fn row(key: u64) -> u32 {
    key as u32
}

/// The number of what a node predicts.
#[allow(clippy::cast_possible_truncation)] // nodes are at most twice as many as rows
fn predict(values: &mut Vec<f64>, sums: &NodeSums) -> u32 {
    values.push(sums.mean());
    values.len() as u32 - 1
}

/// Whether a row goes left at a boundary.
fn goes_left<W: Width>(column: &Column<W>, boundary: &Boundary) -> impl Fn(u32) -> bool {
    let cut = column.cut(boundary.lower, boundary.upper);
    let missing = column
        .missing
        .filter(|_| boundary.missing_goes_left == Some(true));
    move |row| {
        let rank = W::rank(column.ranks[row as usize]);
        rank <= cut || Some(rank) == missing
    }
}

/// Moves rows that go left before the others, which swaps rows from both ends. Returns how many there are.
fn swap_partition(rows: &mut [u32], is_left: impl Fn(u32) -> bool) -> usize {
    let (mut place, mut end) = (0, rows.len());
    while place < end {
        if is_left(rows[place]) {
            place += 1;
        } else {
            end -= 1;
            rows.swap(place, end);
        }
    }
    end
}

/// Swaps rows whose value is missing with rows from the end. Returns how many have one.
fn put_missing_last(rows: &mut [u32], is_missing: impl Fn(u32) -> bool) -> usize {
    let (mut place, mut end) = (0, rows.len());
    while place < end {
        if is_missing(rows[end - 1]) {
            end -= 1;
            continue;
        }
        if is_missing(rows[place]) {
            end -= 1;
            rows.swap(place, end);
        }
        place += 1;
    }
    end
}
