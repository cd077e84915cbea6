//! Columns as ranks: what all folds, trees and candidates have in common.
//!
//! A split depends on the order of a column's values only, and values enter thresholds and the test for
//! neighbors that count as equal. So each column is sorted once: rows hold the rank of their value among
//! the distinct ones, as float32, the precision of scikit-learn's trees.

use rayon::prelude::*;

use super::columns::Columns;
use super::draws::Xorshift;
use super::order::sort_by_upper_half;
use crate::runtime::memory;
use crate::{Monitor, Result};

/// Columns that are copied from the rows in one pass.
const BLOCK_COLUMNS: usize = 16;

/// Integers that hold ranks and rows.
pub(super) trait Width: Copy + Send + Sync + 'static {
    /// Holds a rank.
    type Rank: Copy + Send + Sync + Default;
    /// Holds a rank and a row; ordered by rank.
    type Key: Copy + Send + Sync + Default + Ord;

    fn to_rank(rank: usize) -> Self::Rank;
    fn rank(rank: Self::Rank) -> usize;
    fn to_key(rank: Self::Rank, row: u32) -> Self::Key;
    fn key_rank(key: Self::Key) -> usize;
    fn key_row(key: Self::Key) -> usize;
}

/// At most 65 536 rows.
#[derive(Clone, Copy)]
pub(super) struct Narrow;

/// Any number of rows below 2³².
#[derive(Clone, Copy)]
pub(super) struct Wide;

#[allow(clippy::cast_possible_truncation)] // ranks and rows fit, by the choice of the width
impl Width for Narrow {
    type Rank = u16;
    type Key = u32;

    fn to_rank(rank: usize) -> u16 {
        rank as u16
    }
    fn rank(rank: u16) -> usize {
        rank.into()
    }
    fn to_key(rank: u16, row: u32) -> u32 {
        u32::from(rank) << 16 | row
    }
    fn key_rank(key: u32) -> usize {
        (key >> 16) as usize
    }
    fn key_row(key: u32) -> usize {
        (key & 0xffff) as usize
    }
}

#[allow(clippy::cast_possible_truncation)] // as above
impl Width for Wide {
    type Rank = u32;
    type Key = u64;

    fn to_rank(rank: usize) -> u32 {
        rank as u32
    }
    fn rank(rank: u32) -> usize {
        rank as usize
    }
    fn to_key(rank: u32, row: u32) -> u64 {
        u64::from(rank) << 32 | u64::from(row)
    }
    fn key_rank(key: u64) -> usize {
        (key >> 32) as usize
    }
    fn key_row(key: u64) -> usize {
        (key & 0xffff_ffff) as usize
    }
}

/// Whether the ranks and numbers of this many rows are [`Narrow`].
pub(super) fn is_narrow(n_rows: usize) -> bool {
    n_rows <= 1 << 16
}

/// One feature of all rows.
pub(super) struct Column<W: Width> {
    /// The rank of each row.
    pub(super) ranks: Vec<W::Rank>,
    /// The distinct values, in increasing order; NaN, a missing value, is the last.
    pub(super) values: Vec<f32>,
    /// The rank of missing values, if the column has any.
    pub(super) missing: Option<usize>,
    /// Rank and row of every row whose rank is not `common`, in increasing order.
    pub(super) sorted: Vec<W::Key>,
    /// The rank of the most frequent value, if lists of rows are much shorter without it.
    pub(super) common: Option<usize>,
    /// Of a column of two distinct values, the ranks as bits, which the fastest cache holds. Otherwise empty.
    pub(super) bits: Vec<u64>,
    /// Values that differ by no more count as equal.
    pub(super) min_difference: f32,
}

impl<W: Width> Column<W> {
    /// Whether the values of two ranks count as different: a missing value from all others. The sum is
    /// in single precision.
    pub(super) fn differ(&self, lower: usize, upper: usize) -> bool {
        self.values[upper] > self.values[lower] + self.min_difference
            || (self.missing == Some(upper) && lower != upper)
    }

    /// The threshold between two ranks, as the largest rank of the table that is not above it. Between
    /// values and missing ones it is infinity.
    pub(super) fn cut(&self, lower: usize, upper: usize) -> usize {
        if self.missing == Some(upper) {
            return upper - 1;
        }
        let threshold = f64::from(self.values[lower]) / 2.0 + f64::from(self.values[upper]) / 2.0;
        let between = &self.values[lower..upper];
        lower + between.partition_point(|&value| f64::from(value) <= threshold) - 1
    }

    /// A threshold drawn between two ranks, as the largest rank of the table that is not above it.
    pub(super) fn cut_at_random(&self, lower: usize, upper: usize, random: &mut Xorshift) -> usize {
        let [low, high] = [lower, upper].map(|rank| f64::from(self.values[rank]));
        let drawn = random.uniform(low, high);
        let threshold = if drawn == high { low } else { drawn };
        let between = &self.values[lower..=upper];
        lower + between.partition_point(|&value| f64::from(value) <= threshold) - 1
    }

    /// Sorts a column. `keys` holds the order-preserving bits of the values, then the row.
    #[allow(clippy::cast_possible_truncation)] // the lower half is the row
    fn new(
        values: &[f32],
        min_difference: f32,
        keys: &mut Vec<u64>,
        buffer: &mut Vec<u64>,
    ) -> Self {
        keys.clear();
        keys.extend((0_u64..).zip(values).map(|(row, &value)| {
            let bits = if value.is_nan() {
                f32::NAN.to_bits() // above infinity
            } else {
                (value + 0.0).to_bits() // -0 is 0
            };
            let ordered = if bits >> 31 == 1 {
                !bits
            } else {
                bits | 1 << 31
            };
            u64::from(ordered) << 32 | row
        }));
        sort_by_upper_half(keys, buffer);
        let (mut ranks, mut distinct) = (vec![W::Rank::default(); values.len()], Vec::new());
        let (mut common, mut most) = (0, 0);
        for (rank, run) in keys.chunk_by(|a, b| a >> 32 == b >> 32).enumerate() {
            distinct.push(values[run[0] as u32 as usize] + 0.0);
            for &key in run {
                ranks[key as u32 as usize] = W::to_rank(rank);
            }
            if run.len() > most {
                (common, most) = (rank, run.len());
            }
        }
        let common = (most >= values.len() / 4).then_some(common);
        let listed = |key: &u64| {
            let row = *key as u32;
            let rank = ranks[row as usize];
            (Some(W::rank(rank)) != common).then(|| W::to_key(rank, row))
        };
        let sorted = keys.iter().filter_map(listed).collect();
        let missing = distinct.iter().rposition(|value: &f32| value.is_nan());
        let mut bits = vec![];
        if distinct.len() == 2 {
            bits.resize(values.len().div_ceil(64), 0);
            for (row, &rank) in ranks.iter().enumerate() {
                bits[row / 64] |= (W::rank(rank) as u64) << (row % 64);
            }
        }
        Self {
            ranks,
            values: distinct,
            missing,
            sorted,
            common,
            bits,
            min_difference,
        }
    }
}

/// All columns of a table.
pub(super) struct RankedColumns<W: Width> {
    pub(super) n_rows: usize,
    pub(super) columns: Vec<Column<W>>,
}

impl<W: Width> RankedColumns<W> {
    /// Ranks every column, on all threads of the pool. Values must be finite as float32, or missing.
    pub(super) fn new(rows: &impl Columns, min_difference: f32, monitor: &Monitor) -> Result<Self> {
        let (n_rows, n_features) = (rows.n_rows(), rows.n_features());
        let bytes = size_of::<W::Rank>() + size_of::<W::Key>();
        memory::check_shape::<u8>(
            format_args!("ranks of {n_rows} rows and {n_features} columns"),
            &[n_rows, n_features, bytes],
        )?;
        let starts: Vec<usize> = (0..n_features).step_by(BLOCK_COLUMNS).collect();
        let blocks: Vec<Vec<Column<W>>> = starts
            .into_par_iter()
            .map(|start| {
                let width = BLOCK_COLUMNS.min(n_features - start);
                let values = rows.copy(start, width);
                let (mut keys, mut buffer) = (Vec::with_capacity(n_rows), Vec::new());
                let mut block = Vec::with_capacity(width);
                for column in values.chunks_exact(n_rows.max(1)) {
                    monitor.check()?;
                    block.push(Column::new(column, min_difference, &mut keys, &mut buffer));
                }
                Ok(block)
            })
            .collect::<Result<_>>()?;
        let columns = blocks.into_iter().flatten().collect();
        Ok(Self { n_rows, columns })
    }

    /// Whether some value is missing.
    pub(super) fn has_missing(&self) -> bool {
        self.columns.iter().any(|column| column.missing.is_some())
    }

    /// The length of the sorted lists of all columns.
    pub(super) fn n_listed(&self) -> usize {
        self.columns.iter().map(|column| column.sorted.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_ranked_and_lists_leave_out_the_common_value() {
        let values = [0.5, -0.0, 2.0, 0.0, -1.0, 0.0];
        let column = Column::<Narrow>::new(&values, 1e-7, &mut vec![], &mut vec![]);
        assert_eq!(column.values, [-1.0, 0.0, 0.5, 2.0]);
        assert_eq!(column.ranks, [2, 1, 3, 1, 0, 1]);
        assert_eq!(column.common, Some(1));
        let rows: Vec<usize> = column
            .sorted
            .iter()
            .map(|&key| Narrow::key_row(key))
            .collect();
        assert_eq!(rows, [4, 0, 2]);
        assert_eq!((column.cut(0, 3), column.cut(2, 3)), (2, 2));
    }

    #[test]
    fn missing_values_have_the_last_rank_and_differ_from_all_others() {
        let values = [f32::NAN, 1.0, -f32::NAN, f32::MAX];
        let column = Column::<Narrow>::new(&values, 1e-7, &mut vec![], &mut vec![]);
        assert_eq!(
            (&*column.ranks, column.missing),
            (&[2, 0, 2, 1][..], Some(2))
        );
        assert!(column.differ(1, 2) && column.differ(0, 2) && !column.differ(2, 2));
        assert_eq!((column.cut(0, 1), column.cut(0, 2)), (0, 1));
    }
}
