//! The trees of leave-one-out, grown along with the tree of all samples.
//!
//! A tree that misses one sample is nearly that of all samples, the *carrier*. While the two split a node
//! alike, the half without the missing sample is the same node with the same draws, so it has the same
//! subtree, and draws go on from the same state behind it. So of each tree only the nodes above the
//! missing sample are searched, in the lists of the carrier without that sample: the sample *follows* the
//! carrier. Where its tree splits a node otherwise, or has drawn otherwise, it is grown alone from there.
//!
//! **Cost** of n samples and p features, of trees of depth d: O(n²·p) for the searches at the root, and as
//! much or less at each further level; n trees that share nothing take O(n²·p·d) with partitions.
//!
//! **Reference.** Blockeel and Struyf, "Efficient algorithms for decision tree cross-validation" (2002).

use super::super::criterion::{Criterion, Target};
use super::super::draws::FeatureDraws;
use super::super::ranks::Width;
use super::super::split::{Boundary, Sample};
use super::{Choice, Grower, Member, Node};
use crate::Result;

/// A node of the carrier, and its tree before and after the search.
struct Carrier<'a> {
    node: &'a Node,
    choice: Option<&'a Choice>,
    before: &'a FeatureDraws,
    after: &'a FeatureDraws,
}

impl<W: Width, C: Criterion, const WEIGHTED: bool> Grower<'_, W, C, WEIGHTED> {
    /// Grows the carrier and, for each sample, the tree that misses it. The rows held out are the
    /// training set.
    pub(in super::super) fn grow_leave_one_out(&mut self, carrier: &mut Member) -> Result<()> {
        let mut root = self.root(1);
        root.held_out = 0..0; // the carrier answers for no one
        self.n_unanswered = self.held_out.len();
        let mut positions = vec![0; self.task.table.n_rows];
        for (position, &row) in self.task.held_out.iter().enumerate() {
            positions[row as usize] = position;
        }
        let mut follows = vec![true; self.task.table.n_rows];
        let mut stack = vec![root];
        while let Some(mut node) = stack.pop() {
            if self.n_unanswered == 0 {
                return Ok(());
            }
            let is_following = |sample: &Sample| follows[sample.row() as usize];
            let rows = self.rows[node.rows.clone()].iter().copied();
            let followers: Vec<Sample> = rows.filter(is_following).collect();
            let before = carrier.draws.clone();
            let visitors = node.visitors.clone();
            let members = std::slice::from_mut(carrier);
            let choice = if self.stops(&node, &members[0]) {
                None
            } else {
                self.choose(&mut node, visitors, members).pop()
            };
            let after = carrier.draws.clone();
            let seen = Carrier {
                node: &node,
                choice: choice.as_ref(),
                before: &before,
                after: &after,
            };
            for sample in followers {
                self.monitor.check()?;
                let position = positions[sample.row() as usize];
                follows[sample.row() as usize] = self.follow(sample, position, &seen, carrier)?;
            }
            if let Some(choice) = choice {
                let members = std::slice::from_mut(carrier);
                self.split(&node, choice, members, &mut stack);
            }
        }
        Ok(())
    }

    /// Searches a node without a sample. Returns whether its tree still follows the carrier.
    fn follow(
        &mut self,
        sample: Sample,
        position: usize,
        carrier: &Carrier<'_>,
        member: &mut Member,
    ) -> Result<bool> {
        let mut node = self.without(sample, position, carrier.node);
        let mut tree = Member {
            stop: member.stop,
            min_samples_split: member.min_samples_split,
            draws: carrier.before.clone(),
            leaves: std::mem::take(&mut member.leaves),
            record: None,
        };
        let members = std::slice::from_mut(&mut tree);
        let visitors = node.visitors.clone();
        let mut follows = false;
        if self.stops(&node, &members[0]) {
            self.answer(&node, visitors, members);
        } else if !node.has_lists {
            self.grow_alone(node, members)?;
        } else if let Some(choice) = self.choose(&mut node, visitors, members).pop() {
            follows = carrier.choice.is_some_and(|other| {
                self.splits_alike(sample, &choice, other) && members[0].draws == *carrier.after
            });
            if !follows {
                members[0].draws.clone_from(carrier.before);
                self.grow_alone(node, members)?;
            }
        }
        member.leaves = tree.leaves;
        Ok(follows)
    }

    /// A node of the carrier without one of its samples, which is held out.
    fn without(&self, sample: Sample, position: usize, node: &Node) -> Node {
        let (label, weight) = C::Target::decode(&self.task.samples, sample.code());
        let mut sums = node.sums.clone();
        C::Target::add(&mut sums, label, -weight);
        let weight = node.weight - weight;
        Node {
            held_out: position..position + 1,
            impurity: self.criterion.impurity(&sums, weight as f64),
            left_out: Some(sample.row()),
            weight,
            sums,
            ..node.clone()
        }
    }

    /// Whether a choice without a sample is that of all samples, and sends the sample to the same side.
    ///
    /// Of two boundaries with an end in common, no sample but the one left out lies between the others.
    fn splits_alike(&self, sample: Sample, choice: &Choice, other: &Choice) -> bool {
        if choice.feature != other.feature
            || choice.visitors[0].n_constants != other.visitors[0].n_constants
        {
            return false;
        }
        let column = &self.task.table.columns[choice.feature as usize];
        let (one, two) = (choice.boundary, other.boundary);
        let rank = W::rank(column.ranks[sample.row() as usize]);
        let goes_left = |boundary: Boundary| rank <= column.cut(boundary.lower, boundary.upper);
        (one.lower == two.lower || one.upper == two.upper) && goes_left(one) == goes_left(two)
    }

    /// Grows the rest of a tree without a sample from copies of the rows and the lists of a node.
    #[allow(clippy::cast_possible_truncation)] // rows are numbered by u32
    fn grow_alone(&mut self, mut node: Node, members: &mut [Member]) -> Result<()> {
        let lengths = (self.rows.len(), self.keys.len());
        let left_out = node.left_out.take();
        for index in node.rows.clone() {
            let sample = self.rows[index];
            if Some(sample.row()) != left_out {
                self.rows.push(sample);
            }
        }
        node.rows = lengths.0..self.rows.len();
        for segment in &mut node.segments {
            let start = self.keys.len();
            for index in segment.start..segment.start + segment.len as usize {
                let key = self.keys[index];
                if Some(W::key_row(key) as u32) != left_out {
                    self.keys.push(key);
                }
            }
            (segment.start, segment.len) = (start, (self.keys.len() - start) as u32);
        }
        let n_others = std::mem::replace(&mut self.n_unanswered, 1) - 1;
        self.grow_stack(vec![node], members)?;
        self.n_unanswered = n_others;
        self.rows.truncate(lengths.0);
        self.keys.truncate(lengths.1);
        Ok(())
    }
}
