//! Sparse rows without the features that no row stores.
//!
//! Rows of words, hashes or ids may number many more features than occur. A weight that is used then
//! has a cache line of its own, and a copy of the model is mostly zeros. For learners whose outputs do
//! not depend on absent features, the features that occur are renumbered in their order: one pass over
//! the indices, and the same outputs to the last bit.

use super::{Csr, Dataset, HugePageBuffer, Index, Rows};
use crate::runtime::memory;
use crate::runtime::simd::{self, Simd, WithSimd};

/// The renumbered indices of the rows of a data set.
#[derive(Debug)]
pub(crate) enum CompactFeatures {
    Csr32(CompactIndices<i32>),
    Csr64(CompactIndices<i64>),
}

impl CompactFeatures {
    /// `None` if rows store all features, or at least half of the features occur.
    pub(crate) fn new(data: &Dataset<'_>) -> Option<Self> {
        match data.rows() {
            Rows::Csr32(rows) => CompactIndices::new(rows).map(Self::Csr32),
            Rows::Csr64(rows) => CompactIndices::new(rows).map(Self::Csr64),
            _ => None,
        }
    }

    /// `data`, whose features were renumbered, with the new numbers.
    pub(crate) fn apply<'s>(&'s self, data: &Dataset<'s>) -> Dataset<'s> {
        data.with_rows(match (self, *data.rows()) {
            (Self::Csr32(compact), Rows::Csr32(rows)) => Rows::Csr32(compact.apply(rows)),
            (Self::Csr64(compact), Rows::Csr64(rows)) => Rows::Csr64(compact.apply(rows)),
            (_, rows) => rows,
        })
    }
}

/// Indices of CSR rows that number only the features stored in some row, in their order.
#[derive(Debug)]
pub(crate) struct CompactIndices<I> {
    indices: HugePageBuffer<I>,
    n_features: usize,
}

/// Bits in a word of a set.
const WORD: usize = u64::BITS as usize;

impl<I: Index> CompactIndices<I> {
    /// `None` unless less than half of all features occur, or if there is no memory for it.
    fn new(rows: &Csr<'_, I>) -> Option<Self> {
        let n_words = rows.n_features.div_ceil(WORD);
        memory::check_shape::<u64>("a set of features", &[2, n_words]).ok()?;
        let mut stored = vec![0_u64; n_words];
        for j in rows.indices {
            stored[j.offset() / WORD] |= 1 << (j.offset() % WORD);
        }
        let mut n_features = 0;
        let mut before = Vec::with_capacity(stored.len());
        for word in &stored {
            before.push(n_features);
            n_features += word.count_ones() as usize;
        }
        if 2 * n_features >= rows.n_features {
            return None;
        }
        let mut indices = HugePageBuffer::zeroed(rows.indices.len())?;
        simd::dispatch(Renumber {
            indices: rows.indices,
            stored: &stored,
            before: &before,
            out: &mut indices,
        });
        Some(Self {
            indices,
            n_features,
        })
    }

    /// The same rows with these indices.
    fn apply<'s>(&'s self, mut rows: Csr<'s, I>) -> Csr<'s, I> {
        rows.indices = &self.indices;
        rows.n_features = self.n_features;
        rows
    }
}

/// Numbers each index by how many features are stored before it. (Dispatched for the instruction that
/// counts bits.)
struct Renumber<'a, I> {
    indices: &'a [I],
    /// A set of features, and how many of them stand before each word.
    stored: &'a [u64],
    before: &'a [usize],
    out: &'a mut [I],
}

impl<I: Index> WithSimd for Renumber<'_, I> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for (new, j) in self.out.iter_mut().zip(self.indices) {
            let (word, bit) = (j.offset() / WORD, j.offset() % WORD);
            let earlier = self.stored[word] & ((1 << bit) - 1);
            *new = I::from_offset(self.before[word] + earlier.count_ones() as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Layout as _, Row as _};
    use super::*;

    #[test]
    fn features_that_occur_are_numbered_in_their_order() {
        let csr = Csr::new(&[0, 2, 4], &[5, 70_000, 63, 64], &[1.0; 4], 100_000).expect("valid");
        let data = Dataset::new_unchecked(Rows::Csr32(csr));
        let compact = CompactFeatures::new(&data).expect("four of many features");
        let data = compact.apply(&data);
        assert_eq!(data.n_features(), 4);
        let Rows::Csr32(rows) = *data.rows() else {
            panic!("the layout stays")
        };
        let entries = |row| rows.row(row).entries().collect::<Vec<_>>();
        assert_eq!(entries(0), [(0, 1.0), (3, 1.0)]);
        assert_eq!(entries(1), [(1, 1.0), (2, 1.0)]);
    }

    #[test]
    fn rows_that_store_most_features_are_left_alone() {
        let indices: Vec<i64> = (0..1000).step_by(2).collect();
        let ones = vec![1.0; indices.len()];
        let csr = Csr::new(&[0, 500], &indices, &ones, 1000).expect("valid");
        assert!(CompactFeatures::new(&Dataset::new_unchecked(Rows::Csr64(csr))).is_none());
        assert!(CompactFeatures::new(&Dataset::external(3)).is_none());
    }
}
