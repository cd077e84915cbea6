//! Training batches, and the order in which their rows are learnt.

use std::ops::Range;

use crate::runtime::random::SplitMix;

/// The order of the rows within each training batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As the folds list them.
    #[default]
    Fixed,
    /// At random, each batch on its own: section 5 of the TreeCV paper.
    Random {
        /// The seed. Every batch has a generator of its own, keyed by the seed and by the batch, so
        /// the order does not depend on threads.
        seed: u64,
    },
    /// At random within each fold, once for all batches: a batch lists its folds one after the
    /// other. So batches can be learnt in parts, which those of [`Order::Random`] cannot, and rows
    /// can be on disk.
    Once {
        /// The seed.
        seed: u64,
    },
}

/// The rows of one training batch, in `N` pieces, and the key of its random order.
#[derive(Clone, Debug)]
pub(crate) struct Batch<'a, const N: usize> {
    pub(crate) rows: [&'a [usize]; N],
    pub(crate) key: Range<usize>,
}

impl<const N: usize> Batch<'_, N> {
    /// The number of rows.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.rows.iter().map(|rows| rows.len()).sum()
    }

    /// The rows in random order.
    pub(crate) fn shuffle<'b>(&self, seed: u64, buffer: &'b mut Vec<usize>) -> &'b [usize] {
        buffer.clear();
        buffer.extend(self.rows.iter().copied().flatten());
        SplitMix::keyed(seed, &self.key).shuffle(buffer);
        buffer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_orders_are_permutations_of_their_own() {
        let fixed = vec![4, 5, 6, 7, 8, 9];
        let mut seen = vec![fixed.clone()];
        let mut buffer = vec![1, 2, 3];
        for (seed, key) in [(0, 0..6), (1, 0..6), (0, 0..7), (0, 1..6)] {
            let rows = [&fixed[..4], &fixed[4..]];
            let batch = Batch { rows, key };
            assert_eq!(batch.len(), 6);
            let order = batch.shuffle(seed, &mut buffer).to_vec();
            assert_eq!(batch.shuffle(seed, &mut buffer), order);
            assert!(!seen.contains(&order));
            seen.push(order);
        }
        for mut order in seen {
            order.sort_unstable();
            assert_eq!(order, fixed);
        }
    }
}
