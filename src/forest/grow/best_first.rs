//! A tree grown best first: the node whose split gains most is split next, up to a number of leaves.
//!
//! Which of two nodes of equal gain comes first depends on the heap, so it is that of scikit-learn: the
//! one of the C++ standard library of GCC.

use super::super::criterion::Criterion;
use super::super::ranks::Width;
use super::super::record::Record;
use super::children::Halves;
use super::{Choice, Grower, Member, Node, Visitor};
use crate::Result;

/// A node that is a leaf unless it is split.
struct Frontier {
    gain: f64,
    /// The entry of the record.
    entry: u32,
    node: Node,
    choice: Choice,
    children: [Node; 2],
}

/// A node of the frontier: a leaf for good has no gain.
struct Open(Option<Box<Frontier>>);

impl Open {
    fn gain(&self) -> f64 {
        self.0.as_ref().map_or(0.0, |frontier| frontier.gain)
    }
}

impl<W: Width, C: Criterion, const WEIGHTED: bool> Grower<'_, W, C, WEIGHTED> {
    /// Grows a tree of at most `max_leaves` leaves, whose record says in which order nodes were split.
    pub(in super::super) fn grow_best_first(
        &mut self,
        member: &mut Member,
        max_leaves: usize,
    ) -> Result<()> {
        let members = std::slice::from_mut(member);
        self.n_unanswered = usize::MAX; // all nodes matter
        let mut heap = Heap(vec![]);
        let root = self.root(1);
        heap.push(self.open(root, members));
        let mut n_splits = 0;
        while let Some(Open(best)) = heap.pop() {
            self.monitor.check()?;
            let Some(mut best) = best else { continue };
            if n_splits + 1 >= max_leaves {
                heap.0.push(Open(Some(best)));
                break;
            }
            record(members).split(best.entry, n_splits);
            n_splits += 1;
            self.mark(&best.node, &best.choice);
            for child in &mut best.children {
                child.visitors = vec![Visitor {
                    member: 0,
                    n_constants: 0,
                    parent: best.entry,
                }];
            }
            self.hand_down(&best.node, &best.choice, &mut best.children, members);
            let [left, right] = best.children.map(|child| self.open(child, members));
            heap.push(left);
            heap.push(right);
        }
        for frontier in heap.0.into_iter().filter_map(|open| open.0) {
            for &position in &self.held_out[frontier.node.held_out.clone()] {
                members[0].leaves[position as usize] = frontier.entry;
            }
        }
        Ok(())
    }

    /// Searches a node, and writes it into the record.
    fn open(&mut self, mut node: Node, members: &mut [Member]) -> Open {
        let visitors = node.visitors.clone();
        if self.stops(&node, &members[0]) {
            self.answer(&node, visitors, members);
            return Open(None);
        }
        let Some(choice) = self.choose(&mut node, visitors.clone(), members).pop() else {
            return Open(None);
        };
        let Halves {
            children,
            improvement: gain,
        } = self.halve(&node, &choice);
        if gain + f64::EPSILON < members[0].stop.min_impurity_decrease {
            self.answer(&node, visitors, members);
            return Open(None);
        }
        let (parent, value) = (visitors[0].parent, self.predict(&node));
        let entry = record(members).push(parent, node.weight, node.impurity, value);
        Open(Some(Box::new(Frontier {
            gain,
            entry,
            node,
            choice,
            children,
        })))
    }
}

fn record(members: &mut [Member]) -> &mut Record {
    members[0].record.get_or_insert_default()
}

/// `std::push_heap` and `std::pop_heap`.
struct Heap(Vec<Open>);

impl Heap {
    fn push(&mut self, open: Open) {
        self.0.push(open);
        self.rise(self.0.len() - 1);
    }

    /// Takes the last node to the bottom, always by the larger child, and from there up to its place.
    fn pop(&mut self) -> Option<Open> {
        let heap = &mut self.0;
        if heap.is_empty() {
            return None;
        }
        let largest = heap.swap_remove(0);
        let mut hole = 0;
        while 2 * hole + 2 < heap.len() {
            let right = 2 * hole + 2;
            let child = right - usize::from(heap[right].gain() < heap[right - 1].gain());
            heap.swap(hole, child);
            hole = child;
        }
        if 2 * hole + 2 == heap.len() {
            heap.swap(hole, 2 * hole + 1);
            hole = 2 * hole + 1;
        }
        self.rise(hole);
        Some(largest)
    }

    fn rise(&mut self, mut hole: usize) {
        let heap = &mut self.0;
        while hole > 0 && heap[(hole - 1) / 2].gain() < heap[hole].gain() {
            heap.swap(hole, (hole - 1) / 2);
            hole = (hole - 1) / 2;
        }
    }
}
