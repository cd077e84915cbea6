//! The last nodes of a tree: a few rows, each of which is a fold.
//!
//! Half of all nodes have two rows, and most have a few. What they cost is not the rows but all
//! that is done around them: copies of the model, calls, beginnings and ends of loops. A learner may
//! know a shorter form of its models for those who will see them with a few rows only, and with no
//! others: [`Learner::settle`](super::Learner::settle). Then the walk below such a node is that of
//! Algorithm 1 in its plainest form, over [`Student`]s.

use super::order::{Order, Phase};
use super::recursion::middle;

/// How many rows are a few.
const MOST: usize = 12;

/// How many nodes wait for their turn at most: one a level, but none of one row.
const DEPTH: usize = MOST.ilog2() as usize;

/// 0, 1, 2…
const PLACES: [usize; MOST] = {
    let mut places = [0; MOST];
    let mut place = 0;
    while place < MOST {
        places[place] = place;
        place += 1;
    }
    places
};

/// How many rows the models of a node learn together, by the number of its rows.
const FED: [usize; MOST + 1] = {
    let mut fed = [0; MOST + 1];
    let mut n_rows = 2;
    while n_rows <= MOST {
        fed[n_rows] = n_rows + fed[n_rows / 2] + fed[n_rows.div_ceil(2)];
        n_rows += 1;
    }
    fed
};

/// A model as a few rows see it, which are known by their places among them.
pub trait Student: Copy {
    /// Learns the row at a place.
    fn learn(&mut self, place: usize);

    /// The output for the row at a place.
    fn answer(&self, place: usize) -> f64;
}

/// A few rows, each of which is a fold, and the order in which they are learnt.
#[derive(Debug)]
pub struct Few<'a> {
    rows: &'a [usize],
    /// The first fold.
    first: usize,
    order: Order,
    buffer: &'a mut Vec<usize>,
}

impl<'a> Few<'a> {
    /// How many rows there are at most.
    pub const MOST: usize = MOST;

    /// `rows` that are the folds from the one at `first` on, to be learnt in the order of the tree's
    /// walk over them. A random one is drawn in `buffer`.
    ///
    /// # Panics
    /// When there are no rows, or more than a few.
    pub fn new(rows: &'a [usize], first: usize, order: Order, buffer: &'a mut Vec<usize>) -> Self {
        assert!((1..=MOST).contains(&rows.len()));
        Self {
            rows,
            first,
            order,
            buffer,
        }
    }

    /// The rows.
    #[inline(always)]
    pub fn rows(&self) -> &'a [usize] {
        self.rows
    }

    /// How many rows all students of the walk learn together.
    pub(super) fn n_fed(&self) -> usize {
        FED[self.rows.len()]
    }

    /// Writes the output for each row, `step` places from that for the row before, from a copy of
    /// `student` that has learnt all the others as the tree would have it.
    #[inline(always)]
    pub fn walk<S: Student>(&mut self, student: S, out: &mut [f64], step: usize) {
        // Who has to wait does so with the places that it has not learnt.
        let mut waiting = [None; DEPTH];
        let mut n_waiting = 0;
        let mut at_hand = Some((student, 0, self.rows.len()));
        while let Some((mut student, start, mut end)) = at_hand {
            while end - start > 1 {
                let middle = middle(&(start..end));
                let mut twin = student;
                if let Order::Random { seed } = self.order {
                    self.teach(&mut student, middle, end, seed);
                    self.teach(&mut twin, start, middle, seed);
                } else {
                    // In turns, so that neither has to wait for its last step.
                    let n_turns = end - middle;
                    for turn in 0..n_turns {
                        student.learn(middle + turn);
                        twin.learn(start + turn);
                    }
                    if start + n_turns < middle {
                        twin.learn(middle - 1);
                    }
                }
                if end - middle == 1 {
                    out[middle * step] = twin.answer(middle);
                } else {
                    waiting[n_waiting] = Some((twin, middle, end));
                    n_waiting += 1;
                }
                end = middle;
            }
            out[start * step] = student.answer(start);
            at_hand = None;
            if n_waiting > 0 {
                n_waiting -= 1;
                at_hand = waiting[n_waiting];
            }
        }
    }

    /// Lets a student learn the rows from `start` to `end` in a random order.
    #[inline(always)]
    fn teach<S: Student>(&mut self, student: &mut S, start: usize, end: usize, seed: u64) {
        let phase = Phase {
            rows: [&PLACES[start..end]],
            key: self.first + start..self.first + end,
        };
        for &place in phase.shuffle(seed, self.buffer) {
            student.learn(place);
        }
    }
}
