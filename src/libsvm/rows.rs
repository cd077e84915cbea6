//! Chunks of rows, for files larger than memory.

use std::collections::VecDeque;

use super::features::FeatureSpace;
use super::matrix::{Buffers, Matrix};
use super::parse::Columns;
use super::read::{Pipeline, Sink};
use super::source::Input;
use super::{IndexBase, ReadOptions, ValueType};
use crate::{Error, Monitor, Result};

/// Collects rows into chunks of the same size.
#[derive(Debug)]
struct Chunks {
    n_rows: usize,
    precision: ValueType,
    full: VecDeque<Matrix<'static>>,
    partial: Matrix<'static>,
}

impl Chunks {
    fn finish_chunk(&mut self) {
        let full = std::mem::replace(&mut self.partial, Matrix::new(Buffers::new(self.precision)));
        self.full.push_back(full);
    }
}

impl Sink for Chunks {
    fn append(&mut self, columns: &Columns) -> Result<()> {
        let n_rows = columns.row_ends.len();
        let mut start = 0;
        while start < n_rows {
            let end = n_rows.min(start + self.n_rows - self.partial.n_rows());
            self.partial.append_rows(columns, start..end)?;
            start = end;
            if self.partial.n_rows() == self.n_rows {
                self.finish_chunk();
            }
        }
        Ok(())
    }
}

/// Reads the concatenation of files in chunks of rows.
pub struct RowReader {
    /// The files not opened yet, last one first.
    inputs: Vec<Input>,
    options: ReadOptions,
    features: FeatureSpace,
    pipeline: Option<Pipeline>,
    chunks: Chunks,
}

impl std::fmt::Debug for RowReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowReader")
            .field("inputs", &self.inputs)
            .field("features", &self.features)
            .finish_non_exhaustive()
    }
}

impl RowReader {
    /// Prepares to read chunks of `n_rows` rows.
    ///
    /// All chunks have the same features. If `options` do not determine their number and the index
    /// base, the files are read once in advance.
    pub fn new(
        mut inputs: Vec<Input>,
        n_rows: usize,
        options: &ReadOptions,
        monitor: &Monitor,
    ) -> Result<Self> {
        if n_rows == 0 {
            return Err(Error::Parameter {
                name: "rows_per_block",
                rule: "at least 1",
                value: n_rows.to_string(),
            });
        }
        let options = options.resolved()?;
        let features = match options.n_features {
            Some(n_features) if options.base != IndexBase::Auto => FeatureSpace {
                is_one_based: options.base == IndexBase::One,
                n_features,
            },
            _ => scan_features(&inputs, &options, monitor)?,
        };
        inputs.reverse();
        Ok(Self {
            inputs,
            features,
            pipeline: None,
            chunks: Chunks {
                n_rows,
                precision: options.precision,
                full: VecDeque::new(),
                partial: Matrix::new(Buffers::new(options.precision)),
            },
            options,
        })
    }

    /// Number of features of every chunk.
    pub fn n_features(&self) -> u64 {
        self.features.n_features
    }

    /// The next chunk, if it has been parsed already.
    pub fn next_parsed(&mut self) -> Result<Option<Matrix<'static>>> {
        let Some(mut matrix) = self.chunks.full.pop_front() else {
            return Ok(None);
        };
        matrix.finish(self.features)?;
        Ok(Some(matrix))
    }

    /// The next chunk, or `None` after the last.
    pub fn next(&mut self, monitor: &Monitor) -> Result<Option<Matrix<'static>>> {
        while self.chunks.full.is_empty() {
            if let Some(pipeline) = &mut self.pipeline {
                if !pipeline.step(&mut self.chunks, monitor)? {
                    self.pipeline = None;
                }
            } else if let Some(input) = self.inputs.pop() {
                self.pipeline = Some(Pipeline::open(input, &self.options, monitor)?);
            } else if self.chunks.partial.n_rows() > 0 {
                self.chunks.finish_chunk();
            } else {
                break;
            }
        }
        self.next_parsed()
    }
}

/// Reads files only to determine their features.
fn scan_features(
    inputs: &[Input],
    options: &ReadOptions,
    monitor: &Monitor,
) -> Result<FeatureSpace> {
    let mut stats = Vec::new();
    for input in inputs {
        let Input::Path(path) = input else {
            return Err(Error::Parameter {
                name: "n_features",
                rule: "given, and the base of the indices, to read an open file in blocks",
                value: format!("{:?}", options.n_features),
            });
        };
        let input = Input::Path(path.clone());
        stats.push(Pipeline::open(input, options, monitor)?.run(&mut (), monitor)?);
    }
    FeatureSpace::new(&stats, options)
}
