//! A temporary copy of rows, sorted into blocks.
//!
//! Blocks whose rows are scattered over a file would be read row by row. Instead the file is read
//! once from its beginning to its end, in parts that fit the memory. The rows of each part are
//! sorted by their blocks and appended to one temporary file, so a block is a list of segments of
//! that file, one per part. Within a block rows keep the order of the matrix. While one part is
//! written, the next one is read and sorted.
//!
//! The file has no name, so the system frees it when it is closed, whatever ends the process.

use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use bytemuck::Pod;

use super::array::read_exact_at;
use super::rows::StoredRows;
use crate::data::{CsrBuffer, Index, Layout as _, RowBuffer};
use crate::{Error, Monitor, Result};

/// The share of the memory that each of three parts takes: one as it is read, and two that are sorted.
const PART_SHARE: f64 = 0.25;

/// Rows in blocks, in a temporary file.
#[derive(Debug)]
pub(super) struct BlockFile {
    file: File,
    n_bytes: u64,
    directory: PathBuf,
    segments: Vec<Vec<Segment>>,
}

/// Consecutive rows of the file.
#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    n_rows: usize,
    n_stored: usize,
    /// Where the values begin.
    values: u64,
    /// Where the lengths and the indices of CSR rows begin.
    lengths: u64,
    indices: u64,
}

/// A part of the matrix, sorted by blocks.
struct SortedPart {
    rows: RowBuffer,
    /// The blocks that occur, in their order, and where their rows are.
    blocks: Vec<(usize, Range<usize>)>,
}

impl BlockFile {
    /// Copies rows to the blocks that `block_of` gives for each of them.
    pub(super) fn create(
        (rows, lengths): (&StoredRows, Option<&[u32]>),
        (block_of, n_blocks): (&[u32], usize),
        (memory_bytes, directory): (f64, &Path),
        monitor: &Monitor,
    ) -> Result<Self> {
        let file = tempfile::tempfile_in(directory).map_err(|source| failed(directory, source))?;
        let mut target = Self {
            file,
            n_bytes: 0,
            directory: directory.to_owned(),
            segments: vec![Vec::new(); n_blocks],
        };
        let mut unsorted = rows.new_block();
        let [mut next, mut last] = [(); 2].map(|()| SortedPart {
            rows: rows.new_block(),
            blocks: Vec::new(),
        });
        for part in rows.parts(PART_SHARE * memory_bytes, lengths) {
            let (read, written) = rayon::join(
                || {
                    unsorted.clear();
                    rows.read(part.clone(), &mut unsorted, monitor)?;
                    unsorted.check()?;
                    unsorted.check_finite(|number| part.start + number)?;
                    next.sort(&unsorted, &block_of[part.clone()], n_blocks)
                },
                || target.write(&last),
            );
            written.map_err(|source| failed(directory, source))?;
            read?;
            (next, last) = (last, next);
        }
        let written = target.write(&last);
        written.map_err(|source| failed(directory, source))?;
        Ok(target)
    }

    /// Appends all rows of a block to `rows`.
    pub(super) fn read(&self, block: usize, rows: &mut RowBuffer, monitor: &Monitor) -> Result<()> {
        let segments = &self.segments[block];
        match rows {
            RowBuffer::Dense(rows) => {
                let n_rows = segments.iter().map(|segment| segment.n_rows).sum();
                let mut values = rows.grow(n_rows)?;
                for segment in segments {
                    monitor.check()?;
                    let here;
                    (here, values) = values.split_at_mut(segment.n_stored);
                    self.array(segment.values, here)?;
                }
                Ok(())
            }
            RowBuffer::Csr32(rows) => self.read_csr(segments, rows, monitor),
            RowBuffer::Csr64(rows) => self.read_csr(segments, rows, monitor),
        }
    }

    fn read_csr<I: Index>(
        &self,
        segments: &[Segment],
        rows: &mut CsrBuffer<I>,
        monitor: &Monitor,
    ) -> Result<()> {
        let n_rows = segments.iter().map(|segment| segment.n_rows).sum();
        let n_stored = segments.iter().map(|segment| segment.n_stored).sum();
        rows.reserve(n_rows, n_stored)?;
        let mut lengths: Vec<u64> = Vec::new();
        for segment in segments {
            monitor.check()?;
            lengths.resize(segment.n_rows, 0);
            self.array(segment.lengths, &mut lengths)?;
            self.array(segment.indices, rows.indices.grow(segment.n_stored)?)?;
            self.array(segment.values, rows.values.grow(segment.n_stored)?)?;
            for &n in &lengths {
                #[allow(clippy::cast_possible_truncation)] // written from a length in memory
                rows.end_row(n as usize);
            }
        }
        Ok(())
    }

    /// Reads the values at `offset`.
    fn array<T: Pod>(&self, offset: u64, values: &mut [T]) -> Result<()> {
        read_exact_at(&self.file, bytemuck::cast_slice_mut(values), offset)
            .map_err(|source| failed(&self.directory, source))
    }

    /// Appends a part to the file.
    fn write(&mut self, part: &SortedPart) -> io::Result<()> {
        match &part.rows {
            RowBuffer::Dense(rows) => {
                let (offset, n_features) = (self.append(rows.values())?, rows.view().n_features());
                for (block, rows) in &part.blocks {
                    self.segments[*block].push(Segment {
                        n_rows: rows.len(),
                        n_stored: rows.len() * n_features,
                        values: offset + (rows.start * n_features * size_of::<f64>()) as u64,
                        ..Segment::default()
                    });
                }
                Ok(())
            }
            RowBuffer::Csr32(rows) => self.write_csr(rows, &part.blocks),
            RowBuffer::Csr64(rows) => self.write_csr(rows, &part.blocks),
        }
    }

    fn write_csr<I: Index>(
        &mut self,
        rows: &CsrBuffer<I>,
        blocks: &[(usize, Range<usize>)],
    ) -> io::Result<()> {
        let lengths: Vec<u64> = (0..rows.n_rows())
            .map(|row| rows.row_length(row) as u64)
            .collect();
        // Values first: they are aligned, whatever the number of indices.
        let mut at = Segment {
            values: self.append(rows.values.as_slice())?,
            lengths: self.append(&lengths)?,
            indices: self.append(rows.indices.as_slice())?,
            ..Segment::default()
        };
        for (block, rows) in blocks {
            at.n_rows = rows.len();
            #[allow(clippy::cast_possible_truncation)] // lengths in memory
            let n_stored = lengths[rows.clone()].iter().sum::<u64>() as usize;
            at.n_stored = n_stored;
            self.segments[*block].push(at);
            at.values += (n_stored * size_of::<f64>()) as u64;
            at.lengths += (rows.len() * size_of::<u64>()) as u64;
            at.indices += (n_stored * size_of::<I>()) as u64;
        }
        Ok(())
    }

    /// Appends values to the file; returns where they begin.
    fn append<T: Pod>(&mut self, values: &[T]) -> io::Result<u64> {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        self.file.write_all(bytes)?;
        let offset = self.n_bytes;
        self.n_bytes += bytes.len() as u64;
        Ok(offset)
    }
}

impl SortedPart {
    /// Sorts rows by their blocks.
    fn sort(&mut self, rows: &RowBuffer, block_of: &[u32], n_blocks: usize) -> Result<()> {
        // Counting sort.
        let mut ends = vec![0; n_blocks + 1];
        for &block in block_of {
            ends[block as usize + 1] += 1;
        }
        for block in 0..n_blocks {
            ends[block + 1] += ends[block];
        }
        self.blocks.clear();
        self.blocks.extend(
            (0..n_blocks)
                .map(|block| (block, ends[block]..ends[block + 1]))
                .filter(|(_, rows)| !rows.is_empty()),
        );
        let mut order = vec![0; block_of.len()];
        for (row, &block) in block_of.iter().enumerate() {
            let end = &mut ends[block as usize];
            order[*end] = row;
            *end += 1;
        }
        self.rows.clear();
        self.rows.append(&rows.view(), &order)
    }
}

fn failed(directory: &Path, source: io::Error) -> Error {
    Error::Io {
        file: format!("temporary file in {}", directory.display()),
        source,
    }
}
