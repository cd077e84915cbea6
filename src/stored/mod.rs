//! Rows on disk: matrices that are larger than memory, read block by block.
//!
//! # Problem
//! TreeCV, merging and Newton's method read every row a few times. Rows that no memory holds must be read from a disk in
//! large blocks, whatever the order of the folds.
//!
//! # Method
//! Positions in fold order are cut into blocks that fit the given memory. Where the rows of a block
//! are a few runs of the file they are read from it directly; otherwise the file is copied once to
//! a temporary file in which each block is contiguous (`block_file.rs`). The last blocks that were
//! read are kept, one for each thread and one more. Targets, weights and folds stay in memory. Engines
//! of linear models sum over all rows instead, and read them in the order of the file in every pass
//! (`linear/design.rs`).
//!
//! # Cost
//! | | bytes |
//! |---|---|
//! | memory for rows | at most `memory_bytes` |
//! | memory per row | those of folds, targets, weights and outputs, and 8 for a temporary copy |
//! | temporary disk, if folds are scattered | those of the rows |
//!
//! Engines get the same rows in the same order as from memory, so their results have the same bits.

mod array;
mod block_file;
mod blocks;
mod rows;

pub use array::{Element, StoredArray};
pub use rows::StoredRows;

pub(crate) use blocks::StoredBlocks;

use std::path::PathBuf;

use crate::data::{Dataset, Rows};
use crate::engine::{RowSource as _, even_starts};
use crate::learners::Learner;
use crate::runtime::memory;
use crate::runtime::random::permutation;
use crate::{Error, Monitor, Result};

/// Rows on disk, and how they are read.
#[derive(Clone, Copy, Debug)]
pub struct Stored<'a> {
    /// The matrix.
    pub rows: &'a StoredRows,
    /// Memory, and the place of a temporary copy.
    pub streaming: &'a Streaming,
}

/// How rows on disk are read.
#[derive(Clone, Debug)]
pub struct Streaming {
    /// Memory for rows.
    pub memory_bytes: u64,
    /// Where a temporary copy goes, if one is needed.
    pub temp_dir: PathBuf,
}

impl Streaming {
    /// The largest number of rows in a block, and where blocks of that size begin by `cut`, so that the
    /// blocks in memory fit: those that are kept, and one more.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // positive, saturating
    fn cut(
        &self,
        matrix: &StoredRows,
        lengths: Option<&[u32]>,
        rows: &[usize],
        cut: impl Fn(usize) -> Vec<usize>,
    ) -> Result<(usize, Vec<usize>)> {
        let block_bytes = self.memory_bytes as f64 / (Self::cache_capacity() + 1) as f64;
        let mut n_rows = ((block_bytes / matrix.mean_row_bytes()) as usize).min(1 << 31);
        while n_rows > 0 {
            let starts = cut(n_rows);
            if matrix.largest_block(rows, &starts, lengths) <= block_bytes {
                return Ok((n_rows, starts));
            }
            // Some rows store more than others. Blocks cannot be arbitrarily small: see `cut`.
            n_rows = if n_rows == 1 { 0 } else { n_rows.div_ceil(2) };
        }
        Err(Error::parameter(
            "memory",
            "room for a few rows per thread",
            self.memory_bytes as f64 / 1e6,
        ))
    }

    /// The number of blocks that are kept in memory: one per thread, and one more.
    fn cache_capacity() -> usize {
        rayon::current_num_threads() + 1
    }
}

/// Updates a learner with all rows on disk: in the order of the matrix, or in a random one that `seed`
/// gives.
pub fn fit(
    learner: &mut dyn Learner,
    data: &Dataset<'_>,
    seed: Option<u64>,
    monitor: &Monitor,
) -> Result<()> {
    let Rows::Stored(stored) = *data.rows() else {
        return Err(Error::parameter("X", "rows on disk", "rows in memory"));
    };
    let n_rows = data.n_rows();
    memory::check::<usize>("the order of the rows", n_rows as u64)?;
    let rows = match seed {
        Some(seed) => permutation(n_rows, seed),
        None => (0..n_rows).collect(),
    };
    monitor.add_total(n_rows as u64);
    let source = StoredBlocks::new((*data, stored), &rows, monitor, |block_rows| {
        even_starts(n_rows, block_rows)
    })?;
    source.read(0..n_rows, 1, &mut |piece, data, rows| {
        learner.update(data, rows, None)?;
        monitor.advance(piece.len() as u64)
    })
}
