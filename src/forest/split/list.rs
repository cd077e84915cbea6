//! The search of a sorted list: the samples of a node whose rank is not the common one.

use super::super::criterion::{Criterion, Target};
use super::super::ranks::Width;
use super::{ColumnSplit, NO_RANK, Passed, Scratch, Search};

/// A sorted list in two parts: before and after a sample that is left out, if there is one.
#[derive(Clone, Copy)]
pub(in super::super) struct List<'a, K>([&'a [K]; 2]);

impl<'a, K: Copy + Ord> List<'a, K> {
    pub(in super::super) fn new(keys: &'a [K]) -> Self {
        Self([keys, &[]])
    }

    /// The list without a key, which need not be in it.
    pub(in super::super) fn without(keys: &'a [K], key: K) -> Self {
        match keys.binary_search(&key) {
            Ok(place) => Self([&keys[..place], &keys[place + 1..]]),
            Err(_) => Self::new(keys),
        }
    }

    fn len(self) -> usize {
        self.0[0].len() + self.0[1].len()
    }

    fn ends(self) -> Option<(K, K)> {
        let [before, after] = self.0;
        let first = before.first().or(after.first())?;
        let last = after.last().or(before.last())?;
        Some((*first, *last))
    }

    /// The parts of the list before and after the first key for which `is_before` does not hold.
    fn split(self, is_before: impl Fn(K) -> bool) -> [Self; 2] {
        let places = self
            .0
            .map(|part| part.partition_point(|&key| is_before(key)));
        let [first, second] = self.0;
        [
            Self([&first[..places[0]], &second[..places[1]]]),
            Self([&first[places[0]..], &second[places[1]..]]),
        ]
    }
}

/// A list and the number of samples of the common rank, which it leaves out.
#[derive(Clone, Copy)]
struct LeftOut<'a, K> {
    list: List<'a, K>,
    n_common: usize,
}

impl<W: Width, C: Criterion, const WEIGHTED: bool> Search<'_, W, C, WEIGHTED> {
    /// Searches a list.
    pub(in super::super) fn list(
        mut self,
        list: List<'_, W::Key>,
        scratch: &mut Scratch,
    ) -> ColumnSplit {
        let Some((lowest, highest)) = list.ends() else {
            return ColumnSplit::Constant;
        };
        let n_common = self.node.n_samples - list.len();
        let (mut lowest, mut highest) = (W::key_rank(lowest), W::key_rank(highest));
        let common = self.column.common.filter(|_| n_common > 0);
        if let Some(rank) = common {
            (lowest, highest) = (lowest.min(rank), highest.max(rank));
        }
        if !self.column.differ(lowest, highest) {
            return ColumnSplit::Constant;
        }
        let missing = self.column.missing.filter(|&rank| rank == highest);
        let mut passed = Passed {
            missing_goes_left: missing.map(|_| false),
            ..Passed::nothing()
        };
        self.criterion.reset(self.node.sums);
        let left_out = LeftOut { list, n_common };
        self.pass_all(&mut passed, list, common, left_out, scratch);
        match missing {
            None => passed.split(),
            Some(rank) => self.pass_list_behind_missing(passed, rank, common, left_out, scratch),
        }
    }

    /// Passes the samples that have a value, with those that have none, of rank `missing`, on the left.
    ///
    /// Takes copies, so that the state of searches without missing values stays in registers.
    #[cold]
    #[inline(never)]
    fn pass_list_behind_missing(
        mut self,
        mut passed: Passed,
        missing: usize,
        common: Option<usize>,
        left_out: LeftOut<'_, W::Key>,
        scratch: &mut Scratch,
    ) -> ColumnSplit {
        let LeftOut { list, n_common } = left_out;
        let [present, absent] = list.split(|key| W::key_rank(key) < missing);
        let (n_missing, weight) = if common == Some(missing) {
            (n_common, self.sum_common(list, &mut scratch.common))
        } else {
            (absent.len(), self.sum_listed(absent, &mut scratch.common))
        };
        self.criterion.reset(self.node.sums);
        self.criterion.shift_sums(&scratch.common);
        passed.begin_with_missing(n_missing, weight);
        let common = common.filter(|&rank| rank != missing);
        self.pass_all(&mut passed, present, common, left_out, scratch);
        passed.split()
    }

    /// Passes the samples of a list, and those of the common rank in their place.
    #[inline(always)]
    fn pass_all(
        &mut self,
        passed: &mut Passed,
        list: List<'_, W::Key>,
        common: Option<usize>,
        left_out: LeftOut<'_, W::Key>,
        scratch: &mut Scratch,
    ) {
        let Some(rank) = common else {
            self.pass(passed, list);
            return;
        };
        let [before, after] = list.split(|key| W::key_rank(key) < rank);
        self.pass(passed, before);
        if passed.rank != NO_RANK {
            self.evaluate(passed, rank);
        }
        if after.len() > 0 {
            let weight = self.sum_common(left_out.list, &mut scratch.common);
            self.criterion.shift_sums(&scratch.common);
            passed.n_samples += left_out.n_common;
            passed.weight += weight;
            passed.rank = rank;
            self.pass(passed, after);
        }
    }

    /// The sums and the weight of the samples that a list leaves out.
    fn sum_common(&self, list: List<'_, W::Key>, sums: &mut Vec<i64>) -> i64 {
        let listed = self.sum_listed(list, sums);
        for (sum, &total) in sums.iter_mut().zip(self.node.sums) {
            *sum = total - *sum;
        }
        self.node.weight - listed
    }

    /// The sums and the weight of the samples of a list.
    fn sum_listed(&self, list: List<'_, W::Key>, sums: &mut Vec<i64>) -> i64 {
        sums.clear();
        sums.resize(self.node.sums.len(), 0);
        let mut total = 0;
        for &key in list.0.into_iter().flatten() {
            let row = W::key_row(key);
            let weight = self.weight(row);
            C::Target::add(sums, self.samples.labels[row], weight);
            total += weight;
        }
        total
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
    fn pass(&mut self, passed: &mut Passed, list: List<'_, W::Key>) {
        for part in list.0 {
            for &key in part {
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
    }
}
