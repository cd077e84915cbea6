//! Searches of the samples of a node: sorted by rank, counted by rank and class, or cut at random.

use std::ops::Range;

use super::super::criterion::{Criterion, Target};
use super::super::draws::Xorshift;
use super::super::ranks::Width;
use super::{Boundary, ColumnSplit, NO_RANK, Passed, Sample, Scratch, Search};

impl<W: Width, C: Criterion, const WEIGHTED: bool> Search<'_, W, C, WEIGHTED> {
    /// Searches all samples of the node, sorted: ranks in the upper half of a key, codes in the lower.
    #[allow(clippy::cast_possible_truncation)] // the lower half is the code
    pub(in super::super) fn sorted(mut self, keys: &[u64]) -> ColumnSplit {
        let rank = |key: u64| (key >> 32) as usize;
        let ends = keys.first().zip(keys.last());
        if !ends.is_some_and(|(&first, &last)| self.column.differ(rank(first), rank(last))) {
            return ColumnSplit::Constant;
        }
        let is_missing = |&&key: &&u64| Some(rank(key)) == self.column.missing;
        let n_missing = keys.iter().rev().take_while(is_missing).count();
        let (present, absent) = keys.split_at(keys.len() - n_missing);
        self.criterion.reset(self.node.sums);
        let mut passed = Passed {
            missing_goes_left: (n_missing > 0).then_some(false),
            ..Passed::nothing()
        };
        self.pass_sorted(&mut passed, keys);
        if n_missing > 0 {
            return self.pass_sorted_behind_missing(passed, present, absent);
        }
        passed.split()
    }

    /// Passes the samples that have a value, with those that have none on the left.
    ///
    /// Takes copies, so that the state of searches without missing values stays in registers.
    #[cold]
    #[inline(never)]
    #[allow(clippy::cast_possible_truncation)] // the lower half is the code
    fn pass_sorted_behind_missing(
        mut self,
        mut passed: Passed,
        present: &[u64],
        missing: &[u64],
    ) -> ColumnSplit {
        self.criterion.reset(self.node.sums);
        let mut weight_missing = 0;
        for &key in missing {
            let (label, weight) = C::Target::decode(self.samples, key as u32);
            self.criterion.shift(label, weight);
            weight_missing += weight;
        }
        passed.begin_with_missing(missing.len(), weight_missing);
        self.pass_sorted(&mut passed, present);
        passed.split()
    }

    /// Passes samples in the order of their keys.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // the lower half is the code
    fn pass_sorted(&mut self, passed: &mut Passed, keys: &[u64]) {
        for &key in keys {
            let rank = (key >> 32) as usize;
            if rank != passed.rank {
                if passed.rank != NO_RANK {
                    self.evaluate(passed, rank);
                }
                passed.rank = rank;
            }
            let (label, weight) = C::Target::decode(self.samples, key as u32);
            self.criterion.shift(label, weight);
            passed.n_samples += 1;
            passed.weight += weight;
        }
    }

    /// Searches a column of two distinct values, with two classes.
    #[allow(clippy::cast_possible_truncation)] // the lower half is the row, or the weight
    pub(in super::super) fn halved(mut self, rows: &[Sample]) -> ColumnSplit {
        // Numbers in the upper half, weights in the lower: of the upper value, and of its class 1.
        let (mut upper, mut upper_ones) = (0_u64, 0_u64);
        for &row in rows {
            let number = row.row() as usize;
            let rank = self.column.bits[number / 64] >> (number % 64) & 1;
            let (label, weight) = C::Target::decode(self.samples, row.code());
            let own = (1 << 32 | weight.cast_unsigned()) & rank.wrapping_neg();
            upper += own;
            upper_ones += own & (C::Target::class(label) as u64).wrapping_neg();
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
            missing_goes_left: self.column.missing.map(|_| false),
            ..Passed::nothing()
        };
        self.evaluate(&mut passed, 1);
        passed.split()
    }

    /// Searches a column of few distinct values: counts the samples of the node by rank and class.
    #[allow(clippy::cast_possible_truncation)] // the lower half is the row, or the weight
    pub(in super::super) fn counted(
        mut self,
        rows: &[Sample],
        scratch: &mut Scratch,
    ) -> ColumnSplit {
        let (n_ranks, n_classes) = (self.column.values.len(), self.node.sums.len());
        let Scratch { counts, common, .. } = scratch;
        // Two tables in turn: an addition need not wait for the one before it.
        let n_counts = n_ranks * n_classes;
        counts.clear();
        counts.resize(2 * n_counts, 0);
        let (even, odd) = counts.split_at_mut(n_counts);
        let place = |row: Sample| {
            let (label, weight) = C::Target::decode(self.samples, row.code());
            let rank = W::rank(self.column.ranks[row.row() as usize]);
            (
                rank * n_classes + C::Target::class(label),
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
        common.clear();
        common.resize(n_classes, 0);
        let (even, odd) = (&*even, &*odd);
        let counts_of = move |rank: usize| {
            let range = rank * n_classes..(rank + 1) * n_classes;
            even[range.clone()]
                .iter()
                .zip(&odd[range])
                .map(|(a, b)| a + b)
        };
        let n_held = |rank: usize| counts_of(rank).sum::<u64>();
        let missing = self.column.missing.filter(|&rank| n_held(rank) > 0);
        self.criterion.reset(self.node.sums);
        let mut passed = Passed {
            missing_goes_left: missing.map(|_| false),
            ..Passed::nothing()
        };
        let lowest = self.pass_counted(&mut passed, 0..n_ranks, counts_of, common);
        if !self.column.differ(lowest, passed.rank) {
            return ColumnSplit::Constant;
        }
        if let Some(missing) = missing {
            let held = n_held(missing);
            self.criterion.reset(self.node.sums);
            for (sum, count) in common.iter_mut().zip(counts_of(missing)) {
                *sum = i64::from(count as u32);
            }
            self.criterion.shift_sums(common);
            passed.begin_with_missing((held >> 32) as usize, i64::from(held as u32));
            self.pass_counted(&mut passed, 0..missing, counts_of, common);
        }
        passed.split()
    }

    /// Passes the samples of each rank, given their counts by class. Returns the first rank that has any.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // the lower half is the weight
    fn pass_counted<I: Iterator<Item = u64>>(
        &mut self,
        passed: &mut Passed,
        ranks: Range<usize>,
        counts_of: impl Fn(usize) -> I,
        sums: &mut [i64],
    ) -> usize {
        let mut lowest = NO_RANK;
        for rank in ranks {
            let mut held = 0;
            for (sum, count) in sums.iter_mut().zip(counts_of(rank)) {
                held += count;
                *sum = i64::from(count as u32);
            }
            if held == 0 {
                continue;
            }
            if passed.rank == NO_RANK {
                lowest = rank;
            } else {
                self.evaluate(passed, rank);
            }
            passed.rank = rank;
            self.criterion.shift_sums(sums);
            passed.n_samples += (held >> 32) as usize;
            passed.weight += i64::from(held as u32);
        }
        lowest
    }

    /// Draws a boundary between the lowest and the highest value, as extremely randomised trees do.
    pub(in super::super) fn random(
        mut self,
        rows: &[Sample],
        random: &mut Xorshift,
        scratch: &mut Scratch,
    ) -> ColumnSplit {
        let Scratch { ranks, common, .. } = scratch;
        let rank = |row: &Sample| W::rank(self.column.ranks[row.row() as usize]);
        ranks.clear();
        ranks.extend(rows.iter().map(rank));
        let Some(drawn) = Boundary::at_random(self.column, ranks, random) else {
            return ColumnSplit::Constant;
        };
        let missing = self
            .column
            .missing
            .filter(|_| drawn.missing_goes_left == Some(true));
        let goes_left = |rank: usize| rank <= drawn.lower || Some(rank) == missing;
        common.clear();
        common.resize(self.node.sums.len(), 0);
        let (mut n_left, mut weight_left) = (0, 0);
        for (row, &rank) in rows.iter().zip(ranks.iter()) {
            let is_left = i64::from(goes_left(rank));
            let (label, weight) = C::Target::decode(self.samples, row.code());
            C::Target::add(common, label, weight * is_left);
            n_left += usize::from(goes_left(rank));
            weight_left += weight * is_left;
        }
        self.criterion.reset(self.node.sums);
        self.criterion.shift_sums(common);
        let mut passed = Passed {
            n_samples: n_left,
            weight: weight_left,
            rank: drawn.lower,
            missing_goes_left: drawn.missing_goes_left,
            ..Passed::nothing()
        };
        if let Some(weights) = self.allowed(&passed) {
            self.compare(&mut passed, drawn.upper, weights);
        }
        passed.split()
    }
}
