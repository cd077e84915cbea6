//! The children of a node: rows, held-out rows and sorted lists partitioned by its split.

use std::ops::Range;

use super::super::criterion::Criterion;
use super::super::order::partition;
use super::super::ranks::Width;
use super::super::split::Sample;
use super::{Choice, Grower, Member, Node, Segment, Visitor};
use crate::Result;

/// Where few features are drawn, nodes of at most this many samples are sorted rather than their lists
/// partitioned.
const MAX_SORTED_NODE: usize = 32;

impl<W: Width, C: Criterion, const WEIGHTED: bool> Grower<'_, W, C, WEIGHTED> {
    /// Splits a copy of a node, and grows it to its end; the node itself stays as it is.
    pub(super) fn split_copy(
        &mut self,
        node: &Node,
        sums: &[i64],
        choice: Choice,
        members: &mut [Member],
    ) -> Result<()> {
        let lengths = (self.rows.len(), self.held_out.len(), self.keys.len());
        let n_segments = self.segments.len();
        self.rows.extend_from_within(node.rows.clone());
        self.held_out.extend_from_within(node.held_out.clone());
        for index in node.segments.clone() {
            let Segment {
                feature,
                len,
                start,
            } = self.segments[index];
            let copy = self.keys.len();
            self.keys.extend_from_within(start..start + len as usize);
            self.segments.push(Segment {
                feature,
                len,
                start: copy,
            });
        }
        let copy = Node {
            rows: lengths.0..self.rows.len(),
            held_out: lengths.1..self.held_out.len(),
            segments: n_segments..self.segments.len(),
            ..node.clone()
        };
        let mut stack = vec![];
        self.split(&copy, sums, choice, members, &mut stack);
        self.grow_stack(stack, members)?;
        self.rows.truncate(lengths.0);
        self.held_out.truncate(lengths.1);
        self.keys.truncate(lengths.2);
        self.segments.truncate(n_segments);
        Ok(())
    }

    /// Splits a node, whose segments are the last on their stack, and puts its children on the stacks.
    pub(super) fn split(
        &mut self,
        node: &Node,
        sums: &[i64],
        choice: Choice,
        members: &mut [Member],
        stack: &mut Vec<Node>,
    ) {
        let column = &self.task.table.columns[choice.feature as usize];
        let cut = column.cut(choice.boundary.lower, choice.boundary.upper);
        let goes_left = |row: u32| W::rank(column.ranks[row as usize]) <= cut;
        let rows = &mut self.rows[node.rows.clone()];
        for &row in rows.iter() {
            self.goes_left[row.row() as usize] = goes_left(row.row()).into();
        }
        let side = |row: &Sample| usize::from(self.goes_left[row.row() as usize]);
        let middle = node.rows.start + partition(rows, &mut self.moved_rows, side);
        let halves = [node.rows.start..middle, middle..node.rows.end];

        // The sums of the smaller half; those of the other are what is left.
        let is_left_smaller = halves[0].len() <= halves[1].len();
        let smaller = &halves[usize::from(!is_left_smaller)];
        let (mut own, mut weight) = (vec![0; sums.len()], 0);
        for &row in &self.rows[smaller.clone()] {
            let (label, own_weight) = C::decode(&self.task.samples, row.code());
            C::add(&mut own, label, own_weight);
            weight += own_weight;
        }
        let rest: Vec<i64> = sums.iter().zip(&own).map(|(all, own)| all - own).collect();
        let mut sums = [own, rest];
        let mut weights = [weight, node.weight - weight];
        if !is_left_smaller {
            sums.swap(0, 1);
            weights.swap(0, 1);
        }
        let side = |side: usize| self.criterion.impurity(&sums[side], weights[side] as f64);
        let impurities = [side(0), side(1)];
        let of_node = node.weight as f64;
        let improvement = (of_node / self.total_weight)
            * (node.impurity
                - (weights[1] as f64 / of_node * impurities[1])
                - (weights[0] as f64 / of_node * impurities[0]));

        let is_leaf = |own: &Visitor| {
            let stop = &members[own.member as usize].stop;
            improvement + f64::EPSILON < stop.min_impurity_decrease
        };
        let (leaves, visitors): (Vec<_>, Vec<_>) = choice.visitors.into_iter().partition(is_leaf);
        if !leaves.is_empty() {
            let sums: Vec<i64> = sums[0].iter().zip(&sums[1]).map(|(a, b)| a + b).collect();
            self.answer(node, &sums, leaves, members);
        }
        if visitors.is_empty() {
            self.segments.truncate(node.segments.start);
            return;
        }
        let held_out = &mut self.held_out[node.held_out.clone()];
        let side = |&own: &u32| usize::from(goes_left(self.task.held_out[own as usize]));
        let held_out_middle =
            node.held_out.start + partition(held_out, &mut self.moved_held_out, side);
        let held_out = [
            node.held_out.start..held_out_middle,
            held_out_middle..node.held_out.end,
        ];
        let mut children = [0, 1].map(|side| Node {
            rows: halves[side].clone(),
            held_out: held_out[side].clone(),
            segments: 0..0,
            members: 0..0,
            has_lists: node.has_lists && self.wants_lists(halves[side].len()),
            depth: node.depth + 1,
            weight: weights[side],
            impurity: impurities[side],
        });
        for child in &mut children {
            let stops = |own: &Visitor| self.stops(child, &members[own.member as usize]);
            child.has_lists &= !visitors.iter().all(stops);
        }
        let segments = self.split_lists(node, [children[0].has_lists, children[1].has_lists]);
        // The left child is grown first, so it comes last.
        for ((mut child, segments), sums) in children.into_iter().zip(segments).zip(sums).rev() {
            child.segments = push(&mut self.segments, &segments);
            child.members = push(&mut self.visitors, &visitors);
            push(&mut self.sums, &sums);
            stack.push(child);
        }
    }

    /// Whether partitioning the lists of a node is faster than sorting its samples.
    fn wants_lists(&self, n_samples: usize) -> bool {
        let draws_all = self.task.max_features >= self.task.table.columns.len();
        draws_all || n_samples > MAX_SORTED_NODE
    }

    /// Partitions the lists of a node, and returns the segments of its children.
    #[allow(clippy::cast_possible_truncation)] // rows are numbered by u32
    fn split_lists(&mut self, node: &Node, wanted: [bool; 2]) -> [Vec<Segment>; 2] {
        let mut children = [vec![], vec![]];
        if wanted[0] || wanted[1] {
            for &Segment {
                feature,
                len,
                start,
            } in &self.segments[node.segments.clone()]
            {
                let keys = &mut self.keys[start..start + len as usize];
                let side = |key: &W::Key| usize::from(self.goes_left[W::key_row(*key)]);
                let n_left = partition(keys, &mut self.moved_keys, side) as u32;
                let halves = [(start, n_left), (start + n_left as usize, len - n_left)];
                for ((child, wanted), (start, len)) in children.iter_mut().zip(wanted).zip(halves) {
                    if wanted {
                        child.push(Segment {
                            feature,
                            len,
                            start,
                        });
                    }
                }
            }
        }
        self.segments.truncate(node.segments.start);
        children
    }
}

/// Appends items and returns where they are.
fn push<T: Copy>(stack: &mut Vec<T>, items: &[T]) -> Range<usize> {
    let start = stack.len();
    stack.extend_from_slice(items);
    start..stack.len()
}
