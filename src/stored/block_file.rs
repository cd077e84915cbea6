//! A temporary copy of rows, sorted into blocks.
//!
//! Folds that are scattered over a file would be read row by row. Instead the file is read once from its
//! beginning to its end, and each row is appended to the block that it belongs to. Within a block rows keep
//! the order of the file. Every block has a buffer, which is written to the end of one temporary file when it
//! is full, so a block is a list of segments of that file.
//!
//! The file has no name, so the system frees it when it is closed, whatever ends the process.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use bytemuck::Pod;

use super::array::read_exact_at;
use super::rows::StoredRows;
use crate::data::{Index, OwnedCsr, OwnedRows};
use crate::runtime::memory;
use crate::{Error, Monitor, Result};

/// The largest buffer of a block.
const MAX_BUFFER_BYTES: f64 = (1 << 20) as f64;

/// Rows in blocks, in a temporary file.
#[derive(Debug)]
pub(super) struct BlockFile {
    file: File,
    directory: PathBuf,
    segments: Vec<Vec<Segment>>,
    /// The number of each row of the matrix within its block.
    number_in_block: Vec<u32>,
}

/// Consecutive bytes of the file: for CSR rows their lengths, indices and values, else values.
#[derive(Debug)]
struct Segment {
    offset: u64,
    n_rows: usize,
    n_stored: usize,
}

impl BlockFile {
    /// Copies rows to the blocks that `block_of` gives for each of them.
    pub(super) fn create(
        rows: &StoredRows,
        (block_of, n_blocks): (&[u32], usize),
        memory_bytes: f64,
        directory: &Path,
        monitor: &Monitor,
    ) -> Result<Self> {
        let failed = |source| failed(directory, source);
        let mut target = Self {
            file: tempfile::tempfile_in(directory).map_err(failed)?,
            directory: directory.to_owned(),
            segments: (0..n_blocks).map(|_| Vec::new()).collect(),
            number_in_block: memory::filled("numbers of rows", rows.n_rows(), 0)?,
        };
        let buffer_bytes = (0.5 * memory_bytes / n_blocks as f64).min(MAX_BUFFER_BYTES);
        let row_bytes = rows.mean_row_bytes();
        let buffer_rows = rows_in(buffer_bytes, row_bytes);
        let read_rows = rows_in(0.25 * memory_bytes, row_bytes);
        let mut buffers: Vec<_> = (0..n_blocks).map(|_| rows.new_block()).collect();
        let mut counts = vec![0_u32; n_blocks];
        let mut part = rows.new_block();
        let mut start = 0;
        while start < rows.n_rows() {
            let end = rows.n_rows().min(start + read_rows);
            part.clear();
            rows.read(start..end, &mut part, monitor)?;
            part.check()?;
            for (number, &block) in block_of[start..end].iter().enumerate() {
                let block = block as usize;
                copy_row(&part, number, &mut buffers[block])?;
                target.number_in_block[start + number] = counts[block];
                counts[block] += 1;
                if buffers[block].n_rows() >= buffer_rows {
                    target.flush(block, &mut buffers[block])?;
                }
            }
            start = end;
        }
        for (block, buffer) in buffers.iter_mut().enumerate() {
            target.flush(block, buffer)?;
        }
        Ok(target)
    }

    /// The number of each row of the matrix within its block.
    pub(super) fn number_in_block(&self, row: usize) -> usize {
        self.number_in_block[row] as usize
    }

    /// Appends all rows of a block to `rows`.
    pub(super) fn read(&self, block: usize, rows: &mut OwnedRows, monitor: &Monitor) -> Result<()> {
        for segment in &self.segments[block] {
            monitor.check()?;
            let read = match rows {
                OwnedRows::Dense { values, .. } => self
                    .array(segment.offset, segment.n_stored, values)
                    .map(drop),
                OwnedRows::Csr32(rows) => self.csr(segment, rows),
                OwnedRows::Csr64(rows) => self.csr(segment, rows),
            };
            read.map_err(|source| failed(&self.directory, source))?;
        }
        Ok(())
    }

    fn csr<I: Index>(&self, segment: &Segment, rows: &mut OwnedCsr<I>) -> io::Result<()> {
        let Segment {
            offset,
            n_rows,
            n_stored,
        } = *segment;
        let mut lengths: Vec<u64> = Vec::new();
        let offset = self.array(offset, n_rows, &mut lengths)?;
        let offset = self.array(offset, n_stored, &mut rows.indices)?;
        self.array(offset, n_stored, &mut rows.values)?;
        for n in lengths {
            #[allow(clippy::cast_possible_truncation)] // written from a length in memory
            rows.end_row(n as usize);
        }
        Ok(())
    }

    /// Appends `n` elements at `offset` to `values`; returns where they end.
    fn array<T: Pod>(&self, offset: u64, n: usize, values: &mut Vec<T>) -> io::Result<u64> {
        let n_old = values.len();
        let reserved = values.try_reserve(n);
        reserved.map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        values.resize(n_old + n, T::zeroed());
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut values[n_old..]);
        read_exact_at(&self.file, bytes, offset)?;
        Ok(offset + bytes.len() as u64)
    }

    fn flush(&mut self, block: usize, buffer: &mut OwnedRows) -> Result<()> {
        let n_rows = buffer.n_rows();
        if n_rows == 0 {
            return Ok(());
        }
        let written = match buffer {
            OwnedRows::Dense { values, .. } => {
                write(&mut self.file, values).map(|offset| (offset, values.len()))
            }
            OwnedRows::Csr32(rows) => write_csr(&mut self.file, rows),
            OwnedRows::Csr64(rows) => write_csr(&mut self.file, rows),
        };
        let (offset, n_stored) = written.map_err(|source| failed(&self.directory, source))?;
        self.segments[block].push(Segment {
            offset,
            n_rows,
            n_stored,
        });
        buffer.clear();
        Ok(())
    }
}

fn write_csr<I: Index>(file: &mut File, rows: &OwnedCsr<I>) -> io::Result<(u64, usize)> {
    let lengths: Vec<u64> = (0..rows.n_rows())
        .map(|row| rows.row(row).0.len() as u64)
        .collect();
    let offset = write(file, &lengths)?;
    write(file, &rows.indices)?;
    write(file, &rows.values)?;
    Ok((offset, rows.values.len()))
}

/// Appends values to the file; returns where they begin.
fn write<T: Pod>(file: &mut File, values: &[T]) -> io::Result<u64> {
    let offset = file.stream_position()?;
    file.write_all(bytemuck::cast_slice(values))?;
    Ok(offset)
}

fn copy_row(source: &OwnedRows, row: usize, target: &mut OwnedRows) -> Result<()> {
    match (source, target) {
        (OwnedRows::Dense { values, n_features }, OwnedRows::Dense { values: target, .. }) => {
            memory::reserve("the buffer of a block", target, *n_features)?;
            target.extend_from_slice(&values[row * n_features..][..*n_features]);
        }
        (OwnedRows::Csr32(source), OwnedRows::Csr32(target)) => copy_csr_row(source, row, target)?,
        (OwnedRows::Csr64(source), OwnedRows::Csr64(target)) => copy_csr_row(source, row, target)?,
        _ => unreachable!("blocks of one matrix have one layout"),
    }
    Ok(())
}

fn copy_csr_row<I: Index>(
    source: &OwnedCsr<I>,
    row: usize,
    target: &mut OwnedCsr<I>,
) -> Result<()> {
    let (indices, values) = source.row(row);
    target.reserve(1, values.len())?;
    target.indices.extend_from_slice(indices);
    target.values.extend_from_slice(values);
    target.end_row(values.len());
    Ok(())
}

/// Rows that fit `n_bytes`, at least one.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // positive, saturating
fn rows_in(n_bytes: f64, row_bytes: f64) -> usize {
    ((n_bytes / row_bytes) as usize).max(1)
}

fn failed(directory: &Path, source: io::Error) -> Error {
    Error::Io {
        file: format!("temporary file in {}", directory.display()),
        source,
    }
}
