//! The rows of a matrix on disk.

use std::ops::Range;

use super::array::{Element, StoredArray};
use crate::data::{OwnedCsr, OwnedRows};
use crate::runtime::memory;
use crate::{Error, Monitor, Result};

/// Rows whose lengths are read at a time.
const ROWS_PER_READ: usize = 1 << 16;

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

    /// The number of stored values of each row, if they differ.
    pub(super) fn row_lengths(&self, monitor: &Monitor) -> Result<Option<Vec<u32>>> {
        let Layout::Csr { indptr, .. } = &self.layout else {
            return Ok(None);
        };
        let mut lengths = Vec::new();
        memory::reserve("lengths of rows", &mut lengths, self.n_rows)?;
        let mut ends = Vec::new();
        while lengths.len() < self.n_rows {
            let start = lengths.len();
            let stop = self.n_rows.min(start + ROWS_PER_READ);
            ends.clear();
            indptr.read_i64(start as u64..stop as u64 + 1, &mut ends, monitor)?;
            let length =
                |pair: &[i64]| u32::try_from(pair[1].abs_diff(pair[0])).unwrap_or(u32::MAX);
            lengths.extend(ends.windows(2).map(length));
        }
        Ok(Some(lengths))
    }

    /// Bytes of the largest block in memory.
    pub(super) fn largest_block(
        &self,
        rows: &[usize],
        starts: &[usize],
        lengths: Option<&[u32]>,
    ) -> f64 {
        let Layout::Csr { indices, .. } = &self.layout else {
            let longest = starts.windows(2).map(|ends| ends[1] - ends[0]).max();
            return longest.unwrap_or(0) as f64 * self.mean_row_bytes();
        };
        let lengths = lengths.unwrap_or_default();
        let index_bytes = indices.element().size();
        let n_bytes = |ends: &[usize]| -> u64 {
            let rows = &rows[ends[0]..ends[1]];
            let n_stored: u64 = rows.iter().map(|&row| u64::from(lengths[row])).sum();
            n_stored * (8 + index_bytes) + rows.len() as u64 * index_bytes
        };
        starts.windows(2).map(n_bytes).max().unwrap_or(0) as f64
    }

    /// An empty block for rows of this matrix.
    pub(super) fn new_block(&self) -> OwnedRows {
        match &self.layout {
            Layout::Dense(_) => OwnedRows::Dense {
                values: Vec::new(),
                n_features: self.n_features,
            },
            Layout::Csr { indices, .. } if indices.element() == Element::I32 => {
                OwnedRows::Csr32(OwnedCsr::new(self.n_features))
            }
            Layout::Csr { .. } => OwnedRows::Csr64(OwnedCsr::new(self.n_features)),
        }
    }

    /// Appends a range of rows to a block.
    pub(super) fn read(
        &self,
        rows: Range<usize>,
        block: &mut OwnedRows,
        monitor: &Monitor,
    ) -> Result<()> {
        let Range { start, end } = rows;
        match (&self.layout, block) {
            (Layout::Dense(array), OwnedRows::Dense { values, .. }) => {
                let width = self.n_features as u64;
                array.read_floats(start as u64 * width..end as u64 * width, values, monitor)
            }
            (
                Layout::Csr {
                    indptr,
                    indices,
                    values,
                },
                block,
            ) => {
                let mut ends = Vec::new();
                indptr.read_i64(start as u64..end as u64 + 1, &mut ends, monitor)?;
                let entries = entries(&ends, values.len())?;
                let n_entries = entries.end - entries.start;
                let lengths = ends.windows(2).map(|pair| pair[1].abs_diff(pair[0]));
                match block {
                    OwnedRows::Csr32(block) => {
                        fits_i32(block.values.len() as u64 + n_entries)?;
                        reserve(block, ends.len(), n_entries)?;
                        indices.read_i32(entries.clone(), &mut block.indices, monitor)?;
                        values.read_floats(entries, &mut block.values, monitor)?;
                        end_rows(block, lengths);
                    }
                    OwnedRows::Csr64(block) => {
                        reserve(block, ends.len(), n_entries)?;
                        indices.read_i64(entries.clone(), &mut block.indices, monitor)?;
                        values.read_floats(entries, &mut block.values, monitor)?;
                        end_rows(block, lengths);
                    }
                    OwnedRows::Dense { .. } => return Err(invalid("it is not dense".into())),
                }
                Ok(())
            }
            (Layout::Dense(_), _) => Err(invalid("it is dense".into())),
        }
    }
}

#[allow(clippy::cast_possible_truncation)] // checked by `memory::reserve`
fn reserve<I: crate::data::Index>(
    block: &mut OwnedCsr<I>,
    n_rows: usize,
    n_entries: u64,
) -> Result<()> {
    memory::check::<[u64; 2]>("a block of rows", n_entries)?;
    block.reserve(n_rows, n_entries as usize)
}

#[allow(clippy::cast_possible_truncation)] // rows fit memory
fn end_rows<I: crate::data::Index>(block: &mut OwnedCsr<I>, lengths: impl Iterator<Item = u64>) {
    for length in lengths {
        block.end_row(length as usize);
    }
}

/// The range of entries of consecutive rows.
fn entries(ends: &[i64], n_entries: u64) -> Result<Range<u64>> {
    let is_increasing = ends.windows(2).all(|pair| pair[0] <= pair[1]);
    let (first, last) = (ends[0], ends[ends.len() - 1]);
    match (u64::try_from(first), u64::try_from(last)) {
        (Ok(first), Ok(last)) if is_increasing && last <= n_entries => Ok(first..last),
        _ => Err(invalid("indptr decreases or overruns".into())),
    }
}

fn fits_i32(n_entries: u64) -> Result<()> {
    if i32::try_from(n_entries).is_ok() {
        return Ok(());
    }
    Err(Error::parameter(
        "memory_mb",
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
