//! The choice of a node: its columns are searched in the order in which each member draws them.

use super::super::criterion::{Criterion, Target};
use super::super::options::Splitter;
use super::super::order::sort_keys;
use super::super::ranks::Width;
use super::super::split::{Boundary, List, NodeSums, Search};
use super::{ColumnSplit, Grower, Member, Node, Segment, Visitor};
use crate::forest::draws::Xorshift;

/// A table of fewer than this many counts per sample of a node is filled rather than the samples sorted.
const MIN_SAMPLES_PER_COUNT: usize = 2;

/// What is known of a column at the current node.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    /// The node that `segment` belongs to.
    listed_at: u64,
    segment: usize,
    /// The node that `split` belongs to.
    searched_at: u64,
    split: ColumnSplit,
}

impl Default for Slot {
    fn default() -> Self {
        Self {
            listed_at: 0,
            segment: 0,
            searched_at: 0,
            split: ColumnSplit::Constant,
        }
    }
}

/// The split that some members have chosen.
pub(super) struct Choice {
    pub(super) feature: u32,
    pub(super) boundary: Boundary,
    pub(super) visitors: Vec<Visitor>,
}

impl<W: Width, C: Criterion, const WEIGHTED: bool> Grower<'_, W, C, WEIGHTED> {
    /// The splits that members choose at a node, after their own draws. Members without a split make it
    /// a leaf. Lists of columns that turn out to be constant are dropped.
    #[allow(clippy::cast_possible_truncation)] // features are numbered by u32
    pub(super) fn choose(
        &mut self,
        node: &mut Node,
        visitors: Vec<Visitor>,
        members: &mut [Member],
    ) -> Vec<Choice> {
        self.find_lists(node);
        let mut bound = f64::NEG_INFINITY;
        let mut choices: Vec<Choice> = vec![];
        let mut leaves = vec![];
        for mut visitor in visitors {
            let mut best: Option<(u32, Boundary)> = None;
            let draws = &mut members[visitor.member as usize].draws;
            let n_known = visitor.n_constants as usize;
            let max_features = self.task.max_features;
            visitor.n_constants = draws.draw(n_known, max_features, |feature, random| {
                match self.column_split(feature, node, &mut bound, random) {
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
                .find(|choice| choice.feature == feature && choice.boundary == boundary);
            match same {
                Some(choice) => choice.visitors.push(visitor),
                None => choices.push(Choice {
                    feature,
                    boundary,
                    visitors: vec![visitor],
                }),
            }
        }
        self.answer(node, leaves, members);
        self.drop_constant_lists(node);
        choices
    }

    /// Begins a node: where its lists are.
    fn find_lists(&mut self, node: &Node) {
        self.node_number += 1;
        for (index, segment) in node.segments.iter().enumerate() {
            let slot = &mut self.slots[segment.feature as usize];
            (slot.listed_at, slot.segment) = (self.node_number, index);
        }
    }

    fn drop_constant_lists(&self, node: &mut Node) {
        node.segments.retain(|segment| {
            let slot = self.slots[segment.feature as usize];
            slot.searched_at != self.node_number || slot.split != ColumnSplit::Constant
        });
    }

    /// The best boundary of a column, searched once per node, or a random one, drawn every time.
    fn column_split(
        &mut self,
        feature: u32,
        node: &Node,
        bound: &mut f64,
        random: &mut Xorshift,
    ) -> ColumnSplit {
        let slot = self.slots[feature as usize];
        if slot.searched_at == self.node_number && self.task.splitter == Splitter::Best {
            return slot.split;
        }
        let column = &self.task.table.columns[feature as usize];
        let search = Search::<W, C, WEIGHTED> {
            column,
            samples: &self.task.samples,
            node: NodeSums {
                n_samples: node.n_samples(),
                weight: node.weight,
                sums: &node.sums,
            },
            limits: self.task.limits,
            criterion: &mut self.criterion,
            bound,
        };
        let rows = &self.rows[node.rows.clone()];
        let (n_ranks, n_sums) = (column.values.len(), node.sums.len());
        let split = if self.task.splitter == Splitter::Random {
            search.random(rows, random, &mut self.scratch)
        } else if node.has_lists {
            if slot.listed_at == self.node_number {
                let Segment { start, len, .. } = node.segments[slot.segment];
                let keys = &self.keys[start..start + len as usize];
                let list = match node.left_out {
                    None => List::new(keys),
                    Some(row) => List::without(keys, W::to_key(column.ranks[row as usize], row)),
                };
                search.list(list, &mut self.scratch)
            } else {
                ColumnSplit::Constant
            }
        } else if C::Target::HAS_CLASSES && n_ranks == 2 && n_sums == 2 {
            search.halved(rows)
        } else if C::Target::HAS_CLASSES && rows.len() >= MIN_SAMPLES_PER_COUNT * n_ranks * n_sums {
            search.counted(rows, &mut self.scratch)
        } else {
            let ranks = &column.ranks;
            let with_rank = |row: &super::Sample| row.with_rank(W::rank(ranks[row.row() as usize]));
            self.sorted.clear();
            self.sorted.extend(rows.iter().map(with_rank));
            sort_keys(&mut self.sorted, &mut self.sort_buffer, n_ranks);
            search.sorted(&self.sorted)
        };
        let slot = &mut self.slots[feature as usize];
        (slot.searched_at, slot.split) = (self.node_number, split);
        split
    }
}
