//! A tree grown best first: the node whose split gains most is split next, up to a number of leaves.

use super::super::criterion::Criterion;
use super::super::heap::Heap;
use super::super::ranks::Width;
use super::super::record::Record;
use super::children::Halves;
use super::{Choice, Grower, Member, Node, Visitor};
use crate::Result;

/// A node that is a leaf unless it is split.
struct Frontier {
    /// The entry of the record.
    entry: u32,
    node: Node,
    choice: Choice,
    children: [Node; 2],
}

/// A node, unless it is a leaf for good.
type Open = Option<Box<Frontier>>;

impl<W: Width, C: Criterion, const WEIGHTED: bool> Grower<'_, W, C, WEIGHTED> {
    /// Grows a tree of at most `max_leaves` leaves, whose record says in which order nodes were split.
    pub(in super::super) fn grow_best_first(
        &mut self,
        member: &mut Member,
        max_leaves: usize,
    ) -> Result<()> {
        let members = std::slice::from_mut(member);
        self.n_unanswered = usize::MAX; // all nodes matter
        let mut heap = Heap::default();
        let root = self.root(1);
        self.open(root, members, &mut heap);
        let mut n_splits = 0;
        while let Some((gain, best)) = heap.pop() {
            self.monitor.check()?;
            let Some(mut best) = best else { continue };
            if n_splits + 1 >= max_leaves {
                heap.push(gain, Some(best));
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
            for child in best.children {
                self.open(child, members, &mut heap);
            }
        }
        for frontier in heap.into_items().flatten() {
            for &position in &self.held_out[frontier.node.held_out.clone()] {
                members[0].leaves[position as usize] = frontier.entry;
            }
        }
        Ok(())
    }

    /// Searches a node, and writes it into the record. A leaf for good has no gain.
    fn open(&mut self, mut node: Node, members: &mut [Member], heap: &mut Heap<Open>) {
        let visitors = node.visitors.clone();
        if self.stops(&node, &members[0]) {
            self.answer(&node, visitors, members);
            heap.push(0.0, None);
            return;
        }
        let Some(choice) = self.choose(&mut node, visitors.clone(), members).pop() else {
            heap.push(0.0, None);
            return;
        };
        let Halves {
            children,
            improvement: gain,
        } = self.halve(&node, &choice);
        if gain + f64::EPSILON < members[0].stop.min_impurity_decrease {
            self.answer(&node, visitors, members);
            heap.push(0.0, None);
            return;
        }
        let (parent, value) = (visitors[0].parent, self.predict(&node));
        let entry = record(members).push(parent, node.weight as f64, node.impurity, value);
        let frontier = Frontier {
            entry,
            node,
            choice,
            children,
        };
        heap.push(gain, Some(Box::new(frontier)));
    }
}

fn record(members: &mut [Member]) -> &mut Record {
    members[0].record.get_or_insert_default()
}
