//! The best boundary in one column of one node.
//!
//! The samples of a node pass from right to left in the order of their ranks. Between two ranks that
//! differ lies a boundary; the first of the best ones is chosen, as in scikit-learn.

use super::criterion::{Criterion, SideWeights};
use super::ranks::{Column, Width};

/// What is to be predicted of the rows of a table, and their weights in one tree.
pub(super) struct Samples<'a, L> {
    pub(super) labels: &'a [L],
    /// 0 for rows that are not in the training set. Looked at by weighted trees only.
    pub(super) weights: &'a [u32],
}

/// A row of the training set, and the code of its label and weight (see [`Criterion::encode`]).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample(u64);

#[allow(clippy::cast_possible_truncation)] // halves of 32 bits
impl Sample {
    pub(super) fn new(row: u32, code: u32) -> Self {
        Self(u64::from(code) << 32 | u64::from(row))
    }

    #[inline(always)]
    pub(super) fn row(self) -> u32 {
        self.0 as u32
    }

    #[inline(always)]
    pub(super) fn code(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// A key to sort by: the rank in the upper half, the code in the lower.
    #[inline(always)]
    pub(super) fn with_rank(self, rank: usize) -> u64 {
        (rank as u64) << 32 | self.0 >> 32
    }
}

/// What a split must leave on both sides.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeafLimits {
    pub(super) samples: usize,
    pub(super) weight: f64,
}

/// The samples of a node, added up.
#[derive(Clone, Copy)]
pub(super) struct NodeSums<'a> {
    pub(super) n_samples: usize,
    pub(super) weight: i64,
    pub(super) sums: &'a [i64],
}

/// What was found in a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ColumnSplit {
    /// All values count as equal.
    Constant,
    /// No boundary is allowed, or none reaches the bound.
    Nothing,
    /// The best boundary.
    Best(Boundary),
}

/// A boundary between two ranks of the node, and its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Boundary {
    pub(super) score: f64,
    pub(super) lower: usize,
    pub(super) upper: usize,
}

/// Memory for one search.
#[derive(Default)]
pub(super) struct Scratch {
    /// The sums of samples of one rank.
    common: Vec<i64>,
    /// The number and the weight of the samples by rank and class.
    counts: Vec<u64>,
}

/// A search of one column.
pub(super) struct Search<'a, W: Width, C: Criterion, const WEIGHTED: bool> {
    pub(super) column: &'a Column<W>,
    pub(super) samples: &'a Samples<'a, C::Label>,
    pub(super) node: NodeSums<'a>,
    pub(super) limits: LeafLimits,
    pub(super) criterion: &'a mut C,
    /// The bound of the best score so far, which a boundary must reach to be of interest.
    pub(super) bound: &'a mut f64,
}

/// The rank before the first.
const NO_RANK: usize = usize::MAX;

/// How far a search has come.
struct Passed {
    n_samples: usize,
    weight: i64,
    /// The rank of the last sample.
    rank: usize,
    best: Boundary,
}

impl Passed {
    fn nothing() -> Self {
        Self {
            n_samples: 0,
            weight: 0,
            rank: NO_RANK,
            best: Boundary {
                score: f64::NEG_INFINITY,
                lower: 0,
                upper: 0,
            },
        }
    }

    fn split(self) -> ColumnSplit {
        if self.best.score > f64::NEG_INFINITY {
            ColumnSplit::Best(self.best)
        } else {
            ColumnSplit::Nothing
        }
    }
}

impl<W: Width, C: Criterion, const WEIGHTED: bool> Search<'_, W, C, WEIGHTED> {
    /// Searches the sorted list of the samples of the node whose rank is not the common one.
    pub(super) fn list(mut self, list: &[W::Key], scratch: &mut Scratch) -> ColumnSplit {
        let (Some(&lowest_key), Some(&highest_key)) = (list.first(), list.last()) else {
            return ColumnSplit::Constant;
        };
        let n_common = self.node.n_samples - list.len();
        let (mut lowest, mut highest) = (W::key_rank(lowest_key), W::key_rank(highest_key));
        let common = self.column.common.filter(|_| n_common > 0);
        if let Some(rank) = common {
            (lowest, highest) = (lowest.min(rank), highest.max(rank));
        }
        if !self.column.differ(lowest, highest) {
            return ColumnSplit::Constant;
        }
        self.criterion.reset(self.node.sums);
        let mut passed = Passed::nothing();
        let Some(rank) = common else {
            self.pass(&mut passed, list);
            return passed.split();
        };
        let place = list.partition_point(|&key| W::key_rank(key) < rank);
        self.pass(&mut passed, &list[..place]);
        if passed.rank != NO_RANK {
            self.evaluate(&mut passed, rank);
        }
        if place < list.len() {
            let weight = self.sum_common(list, &mut scratch.common);
            self.criterion.shift_sums(&scratch.common);
            passed.n_samples += n_common;
            passed.weight += weight;
            passed.rank = rank;
            self.pass(&mut passed, &list[place..]);
        }
        passed.split()
    }

    /// The sums and the weight of the samples that a list leaves out.
    fn sum_common(&self, list: &[W::Key], sums: &mut Vec<i64>) -> i64 {
        sums.clear();
        sums.resize(self.node.sums.len(), 0);
        let mut listed = 0;
        for &key in list {
            let row = W::key_row(key);
            let weight = self.weight(row);
            C::add(sums, self.samples.labels[row], weight);
            listed += weight;
        }
        for (sum, &total) in sums.iter_mut().zip(self.node.sums) {
            *sum = total - *sum;
        }
        self.node.weight - listed
    }

    #[inline(always)]
    fn weight(&self, row: usize) -> i64 {
        if WEIGHTED {
            self.samples.weights[row].into()
        } else {
            1
        }
    }

    /// Passes samples in the order of their ranks.
    #[inline(always)]
    fn pass(&mut self, passed: &mut Passed, list: &[W::Key]) {
        for &key in list {
            let (rank, row) = (W::key_rank(key), W::key_row(key));
            if rank != passed.rank {
                if passed.rank != NO_RANK {
                    self.evaluate(passed, rank);
                }
                passed.rank = rank;
            }
            let weight = self.weight(row);
            self.criterion.shift(self.samples.labels[row], weight);
            passed.n_samples += 1;
            passed.weight += weight;
        }
    }

    /// Looks at the boundary between the last rank and the next.
    #[inline(always)]
    fn evaluate(&mut self, passed: &mut Passed, next: usize) {
        let (n_left, limits) = (passed.n_samples, self.limits);
        if n_left < limits.samples || self.node.n_samples - n_left < limits.samples {
            return;
        }
        let weights = SideWeights {
            left: passed.weight as f64,
            right: (self.node.weight - passed.weight) as f64,
        };
        if !self.criterion.may_reach(weights, *self.bound)
            || weights.left < limits.weight
            || weights.right < limits.weight
            || !self.column.differ(passed.rank, next)
        {
            return;
        }
        let score = self.criterion.score(weights);
        if score > passed.best.score {
            passed.best = Boundary {
                score,
                lower: passed.rank,
                upper: next,
            };
            *self.bound = self.bound.max(self.criterion.bound(weights));
        }
    }

    /// Searches all samples of the node, sorted: ranks in the upper half of a key, codes in the lower.
    #[allow(clippy::cast_possible_truncation)] // the lower half is the code
    pub(super) fn sorted(mut self, keys: &[u64]) -> ColumnSplit {
        let rank = |key: u64| (key >> 32) as usize;
        let ends = keys.first().zip(keys.last());
        if !ends.is_some_and(|(&first, &last)| self.column.differ(rank(first), rank(last))) {
            return ColumnSplit::Constant;
        }
        self.criterion.reset(self.node.sums);
        let mut passed = Passed::nothing();
        for &key in keys {
            let rank = rank(key);
            if rank != passed.rank {
                if passed.rank != NO_RANK {
                    self.evaluate(&mut passed, rank);
                }
                passed.rank = rank;
            }
            let (label, weight) = C::decode(self.samples, key as u32);
            self.criterion.shift(label, weight);
            passed.n_samples += 1;
            passed.weight += weight;
        }
        passed.split()
    }

    /// Searches a column of two distinct values, with two classes.
    #[allow(clippy::cast_possible_truncation)] // the lower half is the row, or the weight
    pub(super) fn halved(mut self, rows: &[Sample]) -> ColumnSplit {
        // Numbers in the upper half, weights in the lower: of the upper value, and of its class 1.
        let (mut upper, mut upper_ones) = (0_u64, 0_u64);
        for &row in rows {
            let number = row.row() as usize;
            let rank = self.column.bits[number / 64] >> (number % 64) & 1;
            let (label, weight) = C::decode(self.samples, row.code());
            let own = (1 << 32 | weight.cast_unsigned()) & rank.wrapping_neg();
            upper += own;
            upper_ones += own & (C::class(label) as u64).wrapping_neg();
        }
        let n_upper = (upper >> 32) as usize;
        if n_upper == 0 || n_upper == rows.len() || !self.column.differ(0, 1) {
            return ColumnSplit::Constant;
        }
        let weights = [upper, upper_ones].map(|own| i64::from(own as u32));
        self.criterion.reset(self.node.sums);
        let [zeros, ones] = [weights[0] - weights[1], weights[1]];
        let sums = self.node.sums;
        self.criterion
            .shift_sums(&[sums[0] - zeros, sums[1] - ones]);
        let mut passed = Passed {
            n_samples: rows.len() - n_upper,
            weight: self.node.weight - weights[0],
            rank: 0,
            ..Passed::nothing()
        };
        self.evaluate(&mut passed, 1);
        passed.split()
    }

    /// Searches a column of few distinct values: counts the samples of the node by rank and class.
    #[allow(clippy::cast_possible_truncation)] // the lower half is the row, or the weight
    pub(super) fn counted(mut self, rows: &[Sample], scratch: &mut Scratch) -> ColumnSplit {
        let (n_ranks, n_classes) = (self.column.values.len(), self.node.sums.len());
        let Scratch { counts, common } = scratch;
        // Two tables in turn: an addition need not wait for the one before it.
        let n_counts = n_ranks * n_classes;
        counts.clear();
        counts.resize(2 * n_counts, 0);
        let (even, odd) = counts.split_at_mut(n_counts);
        let place = |row: Sample| {
            let (label, weight) = C::decode(self.samples, row.code());
            let rank = W::rank(self.column.ranks[row.row() as usize]);
            (
                rank * n_classes + C::class(label),
                1 << 32 | weight.cast_unsigned(),
            )
        };
        for pair in rows.chunks(2) {
            let (at, count) = place(pair[0]);
            even[at] += count;
            if let Some(&row) = pair.get(1) {
                let (at, count) = place(row);
                odd[at] += count;
            }
        }
        self.criterion.reset(self.node.sums);
        let mut passed = Passed::nothing();
        let mut lowest = NO_RANK;
        common.clear();
        common.resize(n_classes, 0);
        let tables = even
            .chunks_exact(n_classes)
            .zip(odd.chunks_exact(n_classes));
        for (rank, (even, odd)) in tables.enumerate() {
            let mut held = 0;
            for ((own, even), odd) in common.iter_mut().zip(even).zip(odd) {
                held += even + odd;
                *own = i64::from((even + odd) as u32);
            }
            if held == 0 {
                continue;
            }
            if passed.rank == NO_RANK {
                lowest = rank;
            } else {
                self.evaluate(&mut passed, rank);
            }
            passed.rank = rank;
            self.criterion.shift_sums(common);
            passed.n_samples += (held >> 32) as usize;
            passed.weight += i64::from(held as u32);
        }
        if !self.column.differ(lowest, passed.rank) {
            return ColumnSplit::Constant;
        }
        passed.split()
    }
}
