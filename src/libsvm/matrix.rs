//! The rows of a file in memory, in scipy's CSR layout.

use std::ops::Range;

use rayon::prelude::*;

use super::ValueType;
use super::column::{GrowableColumn, WHAT, reserve};
use super::features::FeatureSpace;
use super::parse::Columns;
use super::read::Sink;
use crate::Result;
use crate::runtime::memory;

/// Index arrays of scipy: 32-bit if all values fit.
#[derive(Debug, PartialEq)]
pub enum IndexArray<'a> {
    /// 32-bit indices.
    I32(GrowableColumn<'a, i32>),
    /// 64-bit indices.
    I64(GrowableColumn<'a, i64>),
}

impl IndexArray<'_> {
    /// Appends `numbers`, which must fit the type.
    fn extend(&mut self, numbers: impl ExactSizeIterator<Item = i64>) -> Result<()> {
        match self {
            #[allow(clippy::cast_possible_truncation)] // the caller widens first
            Self::I32(column) => column.extend(numbers.map(|number| number as i32)),
            Self::I64(column) => column.extend(numbers),
        }
    }

    fn widen(&mut self) -> Result<()> {
        if let Self::I32(column) = self {
            let mut wide = GrowableColumn::default();
            wide.extend(column.iter().map(|&index| index.into()))?;
            *self = Self::I64(wide);
        }
        Ok(())
    }

    fn increment(&mut self) {
        const TASK_ITEMS: usize = 1 << 16;
        match self {
            Self::I32(column) => column
                .par_chunks_mut(TASK_ITEMS)
                .for_each(|chunk| chunk.iter_mut().for_each(|index| *index += 1)),
            Self::I64(column) => column
                .par_chunks_mut(TASK_ITEMS)
                .for_each(|chunk| chunk.iter_mut().for_each(|index| *index += 1)),
        }
    }

    fn reserve(&mut self, fraction: f64) {
        match self {
            Self::I32(column) => column.reserve(fraction),
            Self::I64(column) => column.reserve(fraction),
        }
    }

    fn shrink(&mut self) {
        match self {
            Self::I32(column) => column.shrink(),
            Self::I64(column) => column.shrink(),
        }
    }
}

/// Values of either precision.
#[derive(Debug, PartialEq)]
pub enum Values<'a> {
    /// f32.
    Single(GrowableColumn<'a, f32>),
    /// f64.
    Double(GrowableColumn<'a, f64>),
}

impl Values<'_> {
    fn extend(&mut self, numbers: &[f64]) -> Result<()> {
        match self {
            #[allow(clippy::cast_possible_truncation)] // the requested precision
            Self::Single(values) => values.extend(numbers.iter().map(|&number| number as f32)),
            Self::Double(values) => values.extend(numbers.iter().copied()),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Single(values) => values.len(),
            Self::Double(values) => values.len(),
        }
    }

    fn reserve(&mut self, fraction: f64) {
        match self {
            Self::Single(values) => values.reserve(fraction),
            Self::Double(values) => values.reserve(fraction),
        }
    }

    fn shrink(&mut self) {
        match self {
            Self::Single(values) => values.shrink(),
            Self::Double(values) => values.shrink(),
        }
    }
}

/// Memory for the indices and values of a file.
#[derive(Debug)]
pub struct Buffers<'a> {
    /// For the indices, if they are 32-bit.
    pub indices: GrowableColumn<'a, i32>,
    /// For the values, of the precision in the options.
    pub values: Values<'a>,
}

impl Buffers<'_> {
    /// Owned memory, allocated as needed.
    pub fn new(precision: ValueType) -> Self {
        Self {
            indices: GrowableColumn::default(),
            values: match precision {
                ValueType::Single => Values::Single(GrowableColumn::default()),
                ValueType::Double => Values::Double(GrowableColumn::default()),
            },
        }
    }
}

/// The contents of a file.
#[derive(Debug, PartialEq)]
pub struct Matrix<'a> {
    /// Row `i` is `indptr[i]..indptr[i + 1]` of indices and values.
    pub indptr: IndexArray<'a>,
    /// The features, from 0.
    pub indices: IndexArray<'a>,
    /// The values.
    pub values: Values<'a>,
    /// One label per row; for multilabel files, the labels of all rows concatenated.
    pub labels: Vec<f64>,
    /// The end of each row's labels, for multilabel files.
    pub label_ends: Vec<i64>,
    /// The query of each row, if requested.
    pub qids: Vec<i64>,
}

impl<'a> Matrix<'a> {
    pub(super) fn new(buffers: Buffers<'a>) -> Self {
        Self {
            indptr: IndexArray::I32(vec![0].into()),
            indices: IndexArray::I32(buffers.indices),
            values: buffers.values,
            labels: Vec::new(),
            label_ends: Vec::new(),
            qids: Vec::new(),
        }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        match &self.indptr {
            IndexArray::I32(column) => column.len() - 1,
            IndexArray::I64(column) => column.len() - 1,
        }
    }

    /// Appends rows of a block; indices are taken to be one-based.
    pub(super) fn append_rows(&mut self, columns: &Columns, rows: Range<usize>) -> Result<()> {
        let entries = columns.entries_of(&rows);
        let n_entries = self.values.len() + entries.len();
        if i32::try_from(n_entries).is_err() || i32::try_from(columns.max_index).is_err() {
            self.widen()?;
        }
        self.indptr.extend(rebased(
            &columns.row_ends[rows.clone()],
            entries.start,
            self.values.len(),
        ))?;
        // Most files are one-based; `finish` corrects the others.
        let indices = &columns.indices[entries.clone()];
        self.indices.extend(indices.iter().map(|index| index - 1))?;
        self.values.extend(&columns.values[entries])?;
        let labels = columns.labels_of(&rows);
        memory::reserve(WHAT, &mut self.labels, labels.len())?;
        if !columns.label_ends.is_empty() {
            let ends = &columns.label_ends[rows.clone()];
            memory::reserve(WHAT, &mut self.label_ends, ends.len())?;
            self.label_ends
                .extend(rebased(ends, labels.start, self.labels.len()));
        }
        self.labels.extend_from_slice(&columns.labels[labels]);
        if !columns.qids.is_empty() {
            memory::reserve(WHAT, &mut self.qids, rows.len())?;
            self.qids.extend_from_slice(&columns.qids[rows]);
        }
        Ok(())
    }

    /// Corrects the base and the width of the indices, once all files have been read.
    pub(super) fn finish(&mut self, features: FeatureSpace) -> Result<()> {
        if features.needs_i64(self.n_rows()) {
            self.widen()?;
        }
        if !features.is_one_based {
            self.indices.increment();
        }
        self.indptr.shrink();
        self.indices.shrink();
        self.values.shrink();
        self.labels.shrink_to_fit();
        Ok(())
    }

    fn widen(&mut self) -> Result<()> {
        self.indptr.widen()?;
        self.indices.widen()
    }
}

impl Sink for Matrix<'_> {
    fn append(&mut self, columns: &Columns) -> Result<()> {
        self.append_rows(columns, 0..columns.row_ends.len())
    }

    fn reserve(&mut self, fraction: f64) {
        self.indptr.reserve(fraction);
        self.indices.reserve(fraction);
        self.values.reserve(fraction);
        reserve(&mut self.labels, fraction);
    }
}

/// Shifts `ends` of parts that began at `old` to parts that begin at `new`.
#[allow(clippy::cast_possible_wrap)] // lengths of vectors
pub(super) fn rebased(
    ends: &[usize],
    old: usize,
    new: usize,
) -> impl ExactSizeIterator<Item = i64> {
    ends.iter().map(move |end| (end - old + new) as i64)
}
