//! Blocks of rows in fold order, read from disk when they are needed.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::block_file::BlockFile;
use super::{StoredDataset, Streaming, n_kept};
use crate::data::{DatasetBuffer, Layout as _, OwnedRows, Row, Rows};
use crate::engine::{PieceWork, RowSource};
use crate::learners::{CostModel, Learner};
use crate::runtime::memory;
use crate::{Error, Monitor, Result};

/// Bytes of consecutive rows from which a read of their own is cheap.
const MIN_RUN_BYTES: f64 = (1 << 17) as f64;

/// The rows of folds in blocks.
#[derive(Debug)]
pub(crate) struct StoredBlocks<'a> {
    data: StoredDataset<'a>,
    /// The row at each position in fold order.
    rows: &'a [usize],
    /// Where each block begins, and the end of the last.
    starts: Vec<usize>,
    /// The rows sorted into blocks, unless they are read from where they are.
    copy: Option<BlockFile>,
    monitor: &'a Monitor,
    /// The blocks that were read last.
    kept: Mutex<VecDeque<(usize, Arc<Block>)>>,
}

/// A block in memory.
#[derive(Debug)]
struct Block {
    rows: OwnedRows,
    targets: DatasetBuffer,
    /// The row of the block at each of its positions.
    order: Vec<usize>,
}

impl<'a> StoredBlocks<'a> {
    /// `rows` in their order, in blocks that begin at the positions `starts`, whose last element is the
    /// number of positions.
    pub(crate) fn new(
        data: StoredDataset<'a>,
        rows: &'a [usize],
        starts: Vec<usize>,
        streaming: &Streaming,
        monitor: &'a Monitor,
    ) -> Result<Self> {
        let run_bytes = rows.len() as f64 / n_runs(rows) as f64 * data.rows.mean_row_bytes();
        let copy = if run_bytes >= MIN_RUN_BYTES || n_runs(rows) < starts.len() {
            None
        } else {
            let block_of = block_of(rows, &starts)?;
            let blocks = (&block_of[..], starts.len() - 1);
            let memory_bytes = streaming.memory_bytes as f64;
            let directory = &streaming.temp_dir;
            Some(BlockFile::create(
                data.rows,
                blocks,
                memory_bytes,
                directory,
                monitor,
            )?)
        };
        Ok(Self {
            data,
            rows,
            starts,
            copy,
            monitor,
            kept: Mutex::default(),
        })
    }

    /// Where blocks of `block_rows` positions begin, whatever the folds, and where the last ends.
    pub(crate) fn even_starts(n_positions: usize, block_rows: usize) -> Vec<usize> {
        let mut starts: Vec<_> = (0..n_positions).step_by(block_rows).collect();
        starts.push(n_positions);
        starts
    }

    /// What a learner's operations cost on these rows, estimated from the first block.
    pub(crate) fn cost_model(&self, learner: &dyn Learner) -> Result<CostModel> {
        let mut found = None;
        self.read(0..1, 1, &mut |_, data, _| {
            found = Some(learner.cost_model(data));
            Ok(())
        })?;
        found.ok_or_else(|| Error::parameter("X", "rows", "none"))
    }

    /// Calls `work` with a block, from memory or from disk.
    fn with_block<T>(&self, block: usize, work: impl FnOnce(&Block) -> Result<T>) -> Result<T> {
        let (found, reusable) = self.find(block);
        let found = if let Some(found) = found {
            found
        } else {
            let loaded = Arc::new(self.load(block, reusable)?);
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push_back((block, Arc::clone(&loaded)));
            loaded
        };
        work(&found)
    }

    /// The block, if it is in memory; otherwise the memory of one that is not in use.
    fn find(&self, block: usize) -> (Option<Arc<Block>>, Option<Block>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = kept.iter().rev().find(|(number, _)| *number == block) {
            return (Some(Arc::clone(found)), None);
        }
        if kept.len() < n_kept() {
            return (None, None);
        }
        let idle = kept.iter().position(|(_, old)| Arc::strong_count(old) == 1);
        let old = idle.and_then(|idle| kept.remove(idle));
        (None, old.and_then(|(_, old)| Arc::try_unwrap(old).ok()))
    }

    fn load(&self, block: usize, reusable: Option<Block>) -> Result<Block> {
        let positions = self.starts[block]..self.starts[block + 1];
        let mut loaded = reusable.unwrap_or_else(|| Block {
            rows: self.data.rows.new_block(),
            targets: DatasetBuffer::default(),
            order: Vec::new(),
        });
        loaded.rows.clear();
        loaded.order.clear();
        let rows = &self.rows[positions.clone()];
        memory::reserve("a block of rows", &mut loaded.order, rows.len())?;
        let mut stored = memory::filled("a block of rows", rows.len(), 0)?;
        if let Some(copy) = &self.copy {
            copy.read(block, &mut loaded.rows, self.monitor)?;
            let order = rows.iter().map(|&row| copy.number_in_block(row));
            loaded.order.extend(order);
            for (&row, &number) in rows.iter().zip(&loaded.order) {
                stored[number] = row;
            }
        } else {
            for run in runs(rows) {
                self.data.rows.read(run, &mut loaded.rows, self.monitor)?;
            }
            loaded.order.extend(0..rows.len());
            stored.copy_from_slice(rows);
        }
        loaded.rows.check()?;
        check_finite(&loaded.rows, &stored)?;
        self.data
            .targets
            .gather_targets(&stored, &mut loaded.targets);
        Ok(loaded)
    }
}

impl RowSource for StoredBlocks<'_> {
    fn read(&self, positions: Range<usize>, _: usize, work: &mut PieceWork<'_>) -> Result<()> {
        let mut start = positions.start;
        let mut block = self.starts.partition_point(|&first| first <= start) - 1;
        while start < positions.end {
            let first = self.starts[block];
            let end = positions.end.min(self.starts[block + 1]);
            self.with_block(block, |loaded| {
                let rows = loaded.rows.dataset()?;
                let targets = &self.data.targets;
                let data = targets.with_gathered(*rows.rows(), &loaded.targets);
                work(start..end, &data, &loaded.order[start - first..end - first])
            })?;
            start = end;
            block += 1;
        }
        Ok(())
    }

    fn is_in_memory(&self) -> bool {
        false
    }
}

/// Runs of consecutive rows.
fn runs(rows: &[usize]) -> impl Iterator<Item = Range<usize>> {
    rows.chunk_by(|a, b| a + 1 == *b)
        .map(|run| run[0]..run[0] + run.len())
}

fn n_runs(rows: &[usize]) -> usize {
    1 + rows
        .windows(2)
        .filter(|pair| pair[0] + 1 != pair[1])
        .count()
}

/// The block of each row.
#[allow(clippy::cast_possible_truncation)] // blocks have at least one row of those in memory
fn block_of(rows: &[usize], starts: &[usize]) -> Result<Vec<u32>> {
    let mut block_of = memory::filled("blocks of rows", rows.len(), 0_u32)?;
    for (block, ends) in starts.windows(2).enumerate() {
        for &row in &rows[ends[0]..ends[1]] {
            block_of[row] = block as u32;
        }
    }
    Ok(block_of)
}

/// An error that names the first value that is not finite; `stored` are the rows of the matrix.
fn check_finite(rows: &OwnedRows, stored: &[usize]) -> Result<()> {
    let values = match rows {
        OwnedRows::Dense { values, .. } => values,
        OwnedRows::Csr32(rows) => &rows.values,
        OwnedRows::Csr64(rows) => &rows.values,
    };
    if values.iter().all(|value| value.is_finite()) {
        return Ok(());
    }
    let data = rows.dataset()?;
    for (number, &row) in stored.iter().enumerate() {
        let bad = match data.rows() {
            Rows::Dense(rows) => first_bad(rows.row(number)),
            Rows::Csr32(rows) => first_bad(rows.row(number)),
            Rows::Csr64(rows) => first_bad(rows.row(number)),
            Rows::External { .. } => None,
        };
        if let Some((column, value)) = bad {
            return Err(Error::Value {
                place: format!("X[{row}, {column}]"),
                value,
                rule: "every value must be finite",
            });
        }
    }
    Ok(())
}

fn first_bad<R: Row>(row: R) -> Option<(usize, f64)> {
    row.entries().find(|(_, value)| !value.is_finite())
}
