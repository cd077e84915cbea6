//! Blocks of rows in fold order, read from disk when they are needed.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::block_file::BlockFile;
use super::{Stored, StoredRows, Streaming};
use crate::data::{Dataset, RowBuffer, TargetBuffer};
use crate::engine::{RowSource, RowVisitor};
use crate::runtime::memory;
use crate::{Monitor, Result};

/// Bytes of consecutive rows from which a read of their own is cheap.
const MIN_RUN_BYTES: f64 = (1 << 17) as f64;

/// Reads per block that are cheap, whatever their size.
const MAX_SHORT_RUNS: usize = 4;

/// The rows of folds in blocks.
#[derive(Debug)]
pub(crate) struct StoredBlocks<'a> {
    matrix: &'a StoredRows,
    /// Targets and weights.
    data: Dataset<'a>,
    /// The row at each position in fold order.
    rows: &'a [usize],
    /// The largest number of rows in a block.
    block_rows: usize,
    /// Where each block begins, and the end of the last.
    starts: Vec<usize>,
    /// The number of each row of the matrix within its block, unless blocks have the order of the
    /// matrix.
    numbers: Option<Vec<u32>>,
    /// The rows sorted into blocks, unless they are read from where they are.
    copy: Option<BlockFile>,
    /// Whether the values of each block are known to be finite.
    is_checked: Vec<AtomicBool>,
    monitor: &'a Monitor,
    cache: Mutex<BlockCache>,
}

/// The blocks that were read last.
#[derive(Debug, Default)]
struct BlockCache {
    blocks: VecDeque<(usize, Arc<Block>)>,
    /// Blocks that are being read.
    n_loading: usize,
}

/// A block in memory. Rows have the order of the matrix.
#[derive(Debug)]
struct Block {
    rows: RowBuffer,
    targets: TargetBuffer,
    /// The row of the block at each of its positions.
    order: Vec<usize>,
}

impl<'a> StoredBlocks<'a> {
    /// `rows` in their order. `cut` gives the positions where blocks of a number of rows begin, and the
    /// number of positions.
    pub(crate) fn new(
        (data, stored): (Dataset<'a>, Stored<'a>),
        rows: &'a [usize],
        monitor: &'a Monitor,
        cut: impl Fn(usize) -> Vec<usize>,
    ) -> Result<Self> {
        let Stored {
            rows: matrix,
            streaming,
        } = stored;
        let lengths = matrix.row_lengths(monitor)?;
        let lengths = lengths.as_deref();
        let (block_rows, starts) = streaming.cut(matrix, lengths, rows, cut)?;
        let n_blocks = starts.len() - 1;
        let mut found = Self {
            matrix,
            data,
            rows,
            block_rows,
            starts,
            numbers: None,
            copy: None,
            is_checked: (0..n_blocks).map(|_| AtomicBool::new(false)).collect(),
            monitor,
            cache: Mutex::default(),
        };
        let is_sorted = found.has_order_of_matrix();
        if is_sorted && found.has_long_runs(n_runs(rows, |a, b| a + 1 == b)) {
            return Ok(found);
        }
        let block_of = found.block_of()?;
        if !is_sorted {
            found.numbers = Some(numbers_in_blocks(&block_of, n_blocks)?);
        }
        if !found.has_long_runs(n_runs(&block_of, |a, b| a == b)) {
            found.copy = Some(BlockFile::create(
                (matrix, lengths),
                (&block_of, n_blocks),
                (streaming.memory_bytes as f64, &streaming.temp_dir),
                monitor,
            )?);
        }
        Ok(found)
    }

    /// The rows of each block in fold order.
    fn blocks(&self) -> impl Iterator<Item = &'a [usize]> {
        let rows = self.rows;
        self.starts
            .windows(2)
            .map(move |ends| &rows[ends[0]..ends[1]])
    }

    /// Whether the rows of every block increase.
    fn has_order_of_matrix(&self) -> bool {
        self.blocks().all(<[usize]>::is_sorted)
    }

    /// Whether the rows of blocks are in so few runs of the matrix that they are read from there.
    fn has_long_runs(&self, n_runs: usize) -> bool {
        let run_rows = self.rows.len() as f64 / n_runs as f64;
        let n_blocks = self.starts.len() - 1;
        run_rows * self.matrix.mean_row_bytes() >= MIN_RUN_BYTES
            || n_runs <= MAX_SHORT_RUNS * n_blocks
    }

    /// The block of each row.
    #[allow(clippy::cast_possible_truncation)] // blocks have at least one row of those in memory
    fn block_of(&self) -> Result<Vec<u32>> {
        let mut block_of = memory::filled("blocks of rows", self.rows.len(), 0_u32)?;
        for (block, rows) in self.blocks().enumerate() {
            for &row in rows {
                block_of[row] = block as u32;
            }
        }
        Ok(block_of)
    }

    /// Calls `work` with a block, from memory or from disk.
    fn with_block<T>(&self, block: usize, work: impl FnOnce(&Block) -> Result<T>) -> Result<T> {
        let (found, reusable) = self.find(block);
        let found = if let Some(found) = found {
            found
        } else {
            let loaded = Arc::new(self.load(block, reusable)?);
            let mut cache = self.cache();
            cache.n_loading -= 1;
            cache.blocks.push_back((block, Arc::clone(&loaded)));
            loaded
        };
        work(&found)
    }

    /// The block, if it is in memory; otherwise the memory of one that is not in use, to load it.
    fn find(&self, block: usize) -> (Option<Arc<Block>>, Option<Block>) {
        let mut cache = self.cache();
        let mut newest = cache.blocks.iter().rev();
        if let Some((_, found)) = newest.find(|(number, _)| *number == block) {
            return (Some(Arc::clone(found)), None);
        }
        let n_used = cache.blocks.len() + cache.n_loading;
        cache.n_loading += 1;
        if n_used < Streaming::cache_capacity() {
            return (None, None);
        }
        let is_idle = |(_, old): &(usize, Arc<Block>)| Arc::strong_count(old) == 1;
        let idle = cache.blocks.iter().position(is_idle);
        let old = idle.and_then(|idle| cache.blocks.remove(idle));
        (None, old.and_then(|(_, old)| Arc::try_unwrap(old).ok()))
    }

    fn cache(&self) -> MutexGuard<'_, BlockCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn load(&self, block: usize, reusable: Option<Block>) -> Result<Block> {
        let mut loaded = reusable.unwrap_or_else(|| Block {
            rows: self.matrix.new_block(),
            targets: TargetBuffer::default(),
            order: Vec::new(),
        });
        loaded.rows.clear();
        loaded.order.clear();
        let rows = &self.rows[self.starts[block]..self.starts[block + 1]];
        memory::reserve("a block of rows", &mut loaded.order, rows.len())?;
        let mut sorted = memory::filled("a block of rows", rows.len(), 0)?;
        if let Some(numbers) = &self.numbers {
            let numbers = rows.iter().map(|&row| numbers[row] as usize);
            loaded.order.extend(numbers);
            for (&row, &number) in rows.iter().zip(&loaded.order) {
                sorted[number] = row;
            }
        } else {
            loaded.order.extend(0..rows.len());
            sorted.copy_from_slice(rows);
        }
        if let Some(copy) = &self.copy {
            copy.read(block, &mut loaded.rows, self.monitor)?;
            loaded.rows.check()?;
        } else {
            for run in runs(&sorted) {
                self.matrix.read(run, &mut loaded.rows, self.monitor)?;
            }
            loaded.rows.check()?;
            if !self.is_checked[block].load(Ordering::Relaxed) {
                loaded.rows.check_finite(|number| sorted[number])?;
                self.is_checked[block].store(true, Ordering::Relaxed);
            }
        }
        self.data.gather_targets(&sorted, &mut loaded.targets);
        Ok(loaded)
    }
}

impl RowSource for StoredBlocks<'_> {
    fn read(&self, positions: Range<usize>, _: usize, visit: &mut RowVisitor<'_>) -> Result<()> {
        let mut start = positions.start;
        let mut block = self.starts.partition_point(|&first| first <= start) - 1;
        while start < positions.end {
            let first = self.starts[block];
            let end = positions.end.min(self.starts[block + 1]);
            self.with_block(block, |loaded| {
                let data = self.data.with_gathered(loaded.rows.view(), &loaded.targets);
                visit(start..end, &data, &loaded.order[start - first..end - first])
            })?;
            start = end;
            block += 1;
        }
        Ok(())
    }

    fn block_rows(&self) -> Option<usize> {
        Some(self.block_rows)
    }
}

/// Runs of consecutive rows.
fn runs(rows: &[usize]) -> impl Iterator<Item = Range<usize>> {
    rows.chunk_by(|a, b| a + 1 == *b)
        .map(|run| run[0]..run[0] + run.len())
}

/// The number of runs, in which each item continues the one before.
fn n_runs<T: Copy>(items: &[T], continues: impl Fn(T, T) -> bool) -> usize {
    let breaks = items.windows(2).filter(|pair| !continues(pair[0], pair[1]));
    1 + breaks.count()
}

/// The number of each row within its block, in the order of the matrix.
fn numbers_in_blocks(block_of: &[u32], n_blocks: usize) -> Result<Vec<u32>> {
    let mut n_rows = vec![0_u32; n_blocks];
    let mut numbers = memory::filled("numbers of rows", block_of.len(), 0)?;
    for (number, &block) in numbers.iter_mut().zip(block_of) {
        let n_rows = &mut n_rows[block as usize];
        *number = *n_rows;
        *n_rows += 1;
    }
    Ok(numbers)
}
