//! The children of a node: rows, held-out rows and sorted lists partitioned by its split.

use super::super::criterion::Criterion;
use super::super::order::partition;
use super::super::ranks::Width;
use super::super::split::Sample;
use super::{Choice, Grower, Member, Node, Segment, Visitor};
use crate::Result;

/// Where few features are drawn, nodes of at most this many samples are sorted rather than their lists
/// partitioned.
const MAX_SORTED_NODE: usize = 32;

/// The children of a node, without their lists.
pub(super) struct Halves {
    pub(super) children: [Node; 2],
    /// The decrease of impurity, weighted by the share of the node.
    pub(super) improvement: f64,
}

impl<W: Width, C: Criterion, const WEIGHTED: bool> Grower<'_, W, C, WEIGHTED> {
    /// Splits a copy of a node, and grows it to its end; the node itself stays as it is.
    pub(super) fn split_copy(
        &mut self,
        node: &Node,
        choice: Choice,
        members: &mut [Member],
    ) -> Result<()> {
        let lengths = (self.rows.len(), self.held_out.len(), self.keys.len());
        self.rows.extend_from_within(node.rows.clone());
        self.held_out.extend_from_within(node.held_out.clone());
        let mut copy = Node {
            rows: lengths.0..self.rows.len(),
            held_out: lengths.1..self.held_out.len(),
            ..node.clone()
        };
        for segment in &mut copy.segments {
            let start = self.keys.len();
            let keys = segment.start..segment.start + segment.len as usize;
            self.keys.extend_from_within(keys);
            segment.start = start;
        }
        let mut stack = vec![];
        self.split(&copy, choice, members, &mut stack);
        self.grow_stack(stack, members)?;
        self.rows.truncate(lengths.0);
        self.held_out.truncate(lengths.1);
        self.keys.truncate(lengths.2);
        Ok(())
    }

    /// Splits a node and puts its children on the stack, the left one last.
    pub(super) fn split(
        &mut self,
        node: &Node,
        choice: Choice,
        members: &mut [Member],
        stack: &mut Vec<Node>,
    ) {
        let mut halves = self.halve(node, &choice);
        let is_leaf = |visitor: &Visitor| {
            let stop = &members[visitor.member as usize].stop;
            halves.improvement + f64::EPSILON < stop.min_impurity_decrease
        };
        let (leaves, mut visitors): (Vec<_>, Vec<_>) =
            choice.visitors.iter().partition(|visitor| is_leaf(visitor));
        self.answer(node, leaves, members);
        if visitors.is_empty() {
            return;
        }
        self.record(node, &mut visitors, members);
        for child in &mut halves.children {
            child.visitors.clone_from(&visitors);
        }
        self.hand_down(node, &choice, &mut halves.children, members);
        stack.extend(halves.children.into_iter().rev());
    }

    /// Writes an inner node into the records of members.
    fn record(&mut self, node: &Node, visitors: &mut [Visitor], members: &mut [Member]) {
        let is_recorded = |visitor: &Visitor| members[visitor.member as usize].record.is_some();
        if !visitors.iter().any(is_recorded) {
            return;
        }
        let value = self.predict(node);
        for visitor in visitors {
            if let Some(record) = &mut members[visitor.member as usize].record {
                visitor.parent =
                    record.push(visitor.parent, node.weight as f64, node.impurity, value);
            }
        }
    }

    /// Partitions the rows of a node.
    pub(super) fn halve(&mut self, node: &Node, choice: &Choice) -> Halves {
        self.mark(node, choice);
        let rows = &mut self.rows[node.rows.clone()];
        let side = |row: &Sample| usize::from(self.goes_left[row.row() as usize]);
        let middle = node.rows.start + partition(rows, &mut self.moved_rows, side);
        let halves = [node.rows.start..middle, middle..node.rows.end];

        // The sums of the smaller half; those of the other are what is left.
        let is_left_smaller = halves[0].len() <= halves[1].len();
        let smaller = halves[usize::from(!is_left_smaller)].clone();
        let (sums, weight) = self.add_up(smaller);
        let rest = node.sums.iter().zip(&sums).map(|(all, sum)| all - sum);
        let mut sums = [rest.collect(), sums];
        let mut weights = [node.weight - weight, weight];
        if is_left_smaller {
            sums.swap(0, 1);
            weights.swap(0, 1);
        }
        let impurity = |side: usize| self.criterion.impurity(&sums[side], weights[side] as f64);
        let impurities = [impurity(0), impurity(1)];
        let node_weight = node.weight as f64;
        let improvement = (node_weight / self.total_weight)
            * (node.impurity
                - (weights[1] as f64 / node_weight * impurities[1])
                - (weights[0] as f64 / node_weight * impurities[0]));
        let children = [0, 1].map(|side| Node {
            rows: halves[side].clone(),
            held_out: 0..0,
            left_out: None,
            segments: vec![],
            visitors: vec![],
            sums: std::mem::take(&mut sums[side]),
            has_lists: false,
            depth: node.depth + 1,
            weight: weights[side],
            impurity: impurities[side],
        });
        Halves {
            children,
            improvement,
        }
    }

    /// Marks the rows that go left.
    pub(super) fn mark(&mut self, node: &Node, choice: &Choice) {
        let column = &self.task.table.columns[choice.feature as usize];
        let cut = column.cut(choice.boundary.lower, choice.boundary.upper);
        for row in &self.rows[node.rows.clone()] {
            let row = row.row() as usize;
            self.goes_left[row] = (W::rank(column.ranks[row]) <= cut).into();
        }
        if let (Some(missing), Some(true)) = (column.missing, choice.boundary.missing_goes_left) {
            for row in &self.rows[node.rows.clone()] {
                let row = row.row() as usize;
                self.goes_left[row] |= u8::from(W::rank(column.ranks[row]) == missing);
            }
        }
    }

    /// Gives the children of a node, whose rows are marked, their held-out rows and their lists.
    pub(super) fn hand_down(
        &mut self,
        node: &Node,
        choice: &Choice,
        children: &mut [Node; 2],
        members: &[Member],
    ) {
        let column = &self.task.table.columns[choice.feature as usize];
        let cut = column.cut(choice.boundary.lower, choice.boundary.upper);
        // A value that is missing in no sample of the node goes to the larger half.
        let is_left_larger = children[0].rows.len() > children[1].rows.len();
        let missing_goes_left = choice.boundary.missing_goes_left.unwrap_or(is_left_larger);
        let missing = column.missing.filter(|_| missing_goes_left);
        let side = |&position: &u32| {
            let row = self.task.held_out[position as usize];
            let rank = W::rank(column.ranks[row as usize]);
            usize::from(rank <= cut || Some(rank) == missing)
        };
        let held_out = &mut self.held_out[node.held_out.clone()];
        let middle = node.held_out.start + partition(held_out, &mut self.moved_held_out, side);
        children[0].held_out = node.held_out.start..middle;
        children[1].held_out = middle..node.held_out.end;
        for child in children.iter_mut() {
            let stops = |visitor: &Visitor| self.stops(child, &members[visitor.member as usize]);
            child.has_lists = node.has_lists
                && self.wants_lists(child.rows.len())
                && !child.visitors.iter().all(stops);
        }
        if children.iter().any(|child| child.has_lists) {
            self.split_lists(node, children);
        }
    }

    /// Whether partitioning the lists of a node is faster than sorting its samples.
    fn wants_lists(&self, n_samples: usize) -> bool {
        let draws_all = self.task.max_features >= self.task.table.columns.len();
        draws_all || n_samples > MAX_SORTED_NODE
    }

    /// Partitions the lists of a node.
    #[allow(clippy::cast_possible_truncation)] // rows are numbered by u32
    fn split_lists(&mut self, node: &Node, children: &mut [Node; 2]) {
        for child in children.iter_mut().filter(|child| child.has_lists) {
            child.segments.reserve_exact(node.segments.len());
        }
        for &Segment {
            feature,
            len,
            start,
        } in &node.segments
        {
            let keys = &mut self.keys[start..start + len as usize];
            let side = |key: &W::Key| usize::from(self.goes_left[W::key_row(*key)]);
            let n_left = partition(keys, &mut self.moved_keys, side) as u32;
            let halves = [(start, n_left), (start + n_left as usize, len - n_left)];
            for (child, (start, len)) in children.iter_mut().zip(halves) {
                if child.has_lists {
                    child.segments.push(Segment {
                        feature,
                        len,
                        start,
                    });
                }
            }
        }
    }
}
