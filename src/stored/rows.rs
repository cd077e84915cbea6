//! The rows of a matrix on disk.

use std::ops::Range;

use super::array::{Element, StoredArray};
use crate::data::{CsrBuffer, DenseBuffer, Index, RowBuffer};
use crate::runtime::memory;
use crate::{Error, Monitor, Result};

/// Rows whose lengths are read at a time.
const ROWS_PER_READ: usize = 1 << 16;

/// Gaps between rows that are read with the rows: a disk reads whole pages.
const PAGE_BYTES: f64 = 4096.0;

/// A dense or CSR matrix on disk, read in ranges of rows.
#[derive(Debug)]
pub struct StoredRows {
    layout: Layout,
    n_rows: usize,
    n_features: usize,
}

#[derive(Debug)]
enum Layout {
    Dense(StoredArray),
    Csr {
        indptr: StoredArray,
        indices: StoredArray,
        values: StoredArray,
    },
}

impl StoredRows {
    /// A row-major matrix of floating-point numbers.
    pub fn dense(values: StoredArray, n_rows: usize, n_features: usize) -> Result<Self> {
        check_length("X", n_rows as u64 * n_features as u64, values.len())?;
        Ok(Self {
            layout: Layout::Dense(values),
            n_rows,
            n_features,
        })
    }

    /// A CSR matrix: row `i` has the entries `indptr[i]..indptr[i + 1]`.
    pub fn csr(
        [indptr, indices, values]: [StoredArray; 3],
        n_rows: usize,
        n_features: usize,
    ) -> Result<Self> {
        check_length("X.indptr", n_rows as u64 + 1, indptr.len())?;
        check_length("X.indices", values.len(), indices.len())?;
        for (row, expected) in [(0, 0), (n_rows as u64, values.len())] {
            let mut end = [0];
            indptr.read_i64(row, &mut end, &Monitor::new())?;
            if u64::try_from(end[0]) != Ok(expected) {
                return Err(invalid(format!(
                    "indptr must run from 0 to {}",
                    values.len()
                )));
            }
        }
        Ok(Self {
            layout: Layout::Csr {
                indptr,
                indices,
                values,
            },
            n_rows,
            n_features,
        })
    }

    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// The number of features.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// Bytes that a row takes in memory, on average.
    pub(super) fn mean_row_bytes(&self) -> f64 {
        match &self.layout {
            Layout::Dense(_) => 8.0 * self.n_features as f64,
            Layout::Csr {
                indices, values, ..
            } => {
                let entry = (8 + indices.element().size()) as f64;
                let n_entries = values.len() as f64 / self.n_rows.max(1) as f64;
                entry * n_entries + indices.element().size() as f64
            }
        }
        .max(1.0)
    }

    /// Whether every value is stored.
    pub(crate) fn is_dense(&self) -> bool {
        matches!(self.layout, Layout::Dense(_))
    }

    /// The number of stored values of each row, if they differ.
    pub(super) fn row_lengths(&self, monitor: &Monitor) -> Result<Option<Vec<u32>>> {
        let Layout::Csr { indptr, .. } = &self.layout else {
            return Ok(None);
        };
        let mut lengths = Vec::new();
        memory::reserve("lengths of rows", &mut lengths, self.n_rows)?;
        let mut ends = vec![0; self.n_rows.min(ROWS_PER_READ) + 1];
        while lengths.len() < self.n_rows {
            let start = lengths.len();
            let ends = &mut ends[..=ROWS_PER_READ.min(self.n_rows - start)];
            indptr.read_i64(start as u64, ends, monitor)?;
            let length =
                |pair: &[i64]| u32::try_from(pair[1].abs_diff(pair[0])).unwrap_or(u32::MAX);
            lengths.extend(ends.windows(2).map(length));
        }
        Ok(Some(lengths))
    }

    /// Bytes of rows in memory; `lengths` are those of all rows, if they differ.
    fn n_bytes(&self, rows: impl ExactSizeIterator<Item = usize>, lengths: Option<&[u32]>) -> f64 {
        let n_rows = rows.len() as f64;
        let (Layout::Csr { indices, .. }, Some(lengths)) = (&self.layout, lengths) else {
            return n_rows * self.mean_row_bytes();
        };
        let index_bytes = indices.element().size() as f64;
        let n_stored: u64 = rows.map(|row| u64::from(lengths[row])).sum();
        n_stored as f64 * (8.0 + index_bytes) + n_rows * index_bytes
    }

    /// Bytes of the largest block in memory.
    pub(super) fn largest_block(
        &self,
        rows: &[usize],
        starts: &[usize],
        lengths: Option<&[u32]>,
    ) -> f64 {
        let n_bytes = |ends: &[usize]| {
            let rows = &rows[ends[0]..ends[1]];
            self.n_bytes(rows.iter().copied(), lengths)
        };
        starts.windows(2).map(n_bytes).fold(0.0, f64::max)
    }

    /// All rows in consecutive ranges of at most `n_bytes` in memory, or of one row.
    pub(super) fn parts(&self, n_bytes: f64, lengths: Option<&[u32]>) -> Vec<Range<usize>> {
        let mut parts = Vec::new();
        let (mut start, mut n_used) = (0, 0.0);
        for row in 0..self.n_rows {
            let row_bytes = self.n_bytes(std::iter::once(row), lengths);
            if row > start && n_used + row_bytes > n_bytes {
                parts.push(start..row);
                (start, n_used) = (row, 0.0);
            }
            n_used += row_bytes;
        }
        parts.push(start..self.n_rows);
        parts
    }

    /// An empty block for rows of this matrix.
    pub(crate) fn new_block(&self) -> RowBuffer {
        match &self.layout {
            Layout::Dense(_) => RowBuffer::Dense(DenseBuffer::new(self.n_features)),
            Layout::Csr { indices, .. } if indices.element() == Element::I32 => {
                RowBuffer::Csr32(CsrBuffer::new(self.n_features))
            }
            Layout::Csr { .. } => RowBuffer::Csr64(CsrBuffer::new(self.n_features)),
        }
    }

    /// Reads rows into a block, in place of what is there, and returns their positions in it.
    ///
    /// Rows that increase are read together with the rows of short gaps between them.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // at most 4096
    pub(crate) fn gather(&self, rows: &[usize], block: &mut RowBuffer) -> Result<Vec<usize>> {
        let monitor = Monitor::new(); // blocks are short, and passes are polled
        let longest_gap = (PAGE_BYTES / self.mean_row_bytes()) as usize;
        block.clear();
        let (mut positions, mut numbers) = (Vec::with_capacity(rows.len()), vec![]);
        for run in rows.chunk_by(|row, next| (row + 1..=row + 1 + longest_gap).contains(next)) {
            let (first, end) = (run[0], run[run.len() - 1] + 1);
            positions.extend(run.iter().map(|row| numbers.len() + row - first));
            numbers.extend(first..end);
            self.read(first..end, block, &monitor)?;
        }
        block.check()?;
        block.check_finite(|position| numbers[position])?;
        Ok(positions)
    }

    /// Appends a range of rows to a block.
    pub(super) fn read(
        &self,
        rows: Range<usize>,
        block: &mut RowBuffer,
        monitor: &Monitor,
    ) -> Result<()> {
        let Range { start, end } = rows;
        match (&self.layout, block) {
            (Layout::Dense(array), RowBuffer::Dense(rows)) => {
                let first = (start * self.n_features) as u64;
                array.read_floats(first, rows.grow(end - start)?, monitor)
            }
            (
                Layout::Csr {
                    indptr,
                    indices,
                    values,
                },
                block,
            ) => {
                let mut ends = memory::filled("a block of rows", end - start + 1, 0)?;
                indptr.read_i64(start as u64, &mut ends, monitor)?;
                let (first, n_entries) = entries(&ends, values.len())?;
                match block {
                    RowBuffer::Csr32(block) => {
                        fits_i32(block.n_stored() + n_entries)?;
                        block.reserve(ends.len(), n_entries)?;
                        let target = block.indices.grow(n_entries)?;
                        indices.read_i32(first, target, monitor)?;
                        values.read_floats(first, block.values.grow(n_entries)?, monitor)?;
                        end_rows(block, &ends);
                    }
                    RowBuffer::Csr64(block) => {
                        block.reserve(ends.len(), n_entries)?;
                        let target = block.indices.grow(n_entries)?;
                        indices.read_i64(first, target, monitor)?;
                        values.read_floats(first, block.values.grow(n_entries)?, monitor)?;
                        end_rows(block, &ends);
                    }
                    RowBuffer::Dense(_) => return Err(invalid("it is not dense".into())),
                }
                Ok(())
            }
            (Layout::Dense(_), _) => Err(invalid("it is dense".into())),
        }
    }
}

#[allow(clippy::cast_possible_truncation)] // rows fit memory
fn end_rows<I: Index>(block: &mut CsrBuffer<I>, ends: &[i64]) {
    for pair in ends.windows(2) {
        block.end_row(pair[1].abs_diff(pair[0]) as usize);
    }
}

/// The first entry of consecutive rows, and the number of their entries.
fn entries(ends: &[i64], n_entries: u64) -> Result<(u64, usize)> {
    let is_increasing = ends.windows(2).all(|pair| pair[0] <= pair[1]);
    let (first, last) = (ends[0], ends[ends.len() - 1]);
    match (u64::try_from(first), usize::try_from(last.abs_diff(first))) {
        (Ok(first), Ok(n)) if is_increasing && first + n as u64 <= n_entries => Ok((first, n)),
        _ => Err(invalid("indptr decreases or overruns".into())),
    }
}

fn fits_i32(n_entries: usize) -> Result<()> {
    if i32::try_from(n_entries).is_ok() {
        return Ok(());
    }
    Err(Error::parameter(
        "memory",
        "small enough for blocks of at most 2³¹ entries",
        format!("room for {n_entries}"),
    ))
}

fn invalid(reason: String) -> Error {
    Error::Csr { reason }
}

#[allow(clippy::cast_possible_truncation)] // for a message
fn check_length(what: &'static str, expected: u64, found: u64) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(Error::Shape {
        what,
        expected: expected as usize,
        found: found as usize,
    })
}
