//! The rows of a file in memory, in scipy's CSR layout.

use std::ops::Range;

use rayon::prelude::*;

use super::Precision;
use super::column::{Column, reserve};
use super::layout::Layout;
use super::parse::Columns;
use super::read::Sink;
use crate::Result;

/// Integers, 32-bit as long as they fit.
#[derive(Debug, PartialEq)]
pub enum Ints<'a> {
    /// 32-bit.
    Narrow(Column<'a, i32>),
    /// 64-bit.
    Wide(Column<'a, i64>),
}

impl Ints<'_> {
    /// Appends `numbers`, which must fit.
    fn extend(&mut self, numbers: impl ExactSizeIterator<Item = i64>) {
        match self {
            #[allow(clippy::cast_possible_truncation)] // the caller widens before it is needed
            Self::Narrow(ints) => ints.extend(numbers.map(|number| number as i32)),
            Self::Wide(ints) => ints.extend(numbers),
        }
    }

    fn widen(&mut self) {
        if let Self::Narrow(ints) = self {
            let wide: Vec<_> = ints.iter().map(|&int| int.into()).collect();
            *self = Self::Wide(wide.into());
        }
    }

    fn increment(&mut self) {
        const PIECE: usize = 1 << 16;
        match self {
            Self::Narrow(ints) => ints
                .par_chunks_mut(PIECE)
                .for_each(|piece| piece.iter_mut().for_each(|int| *int += 1)),
            Self::Wide(ints) => ints
                .par_chunks_mut(PIECE)
                .for_each(|piece| piece.iter_mut().for_each(|int| *int += 1)),
        }
    }

    fn reserve(&mut self, share: f64) {
        match self {
            Self::Narrow(ints) => ints.reserve(share),
            Self::Wide(ints) => ints.reserve(share),
        }
    }

    fn shrink(&mut self) {
        match self {
            Self::Narrow(ints) => ints.shrink(),
            Self::Wide(ints) => ints.shrink(),
        }
    }
}

/// Values of either precision.
#[derive(Debug, PartialEq)]
pub enum Values<'a> {
    /// f32.
    Single(Column<'a, f32>),
    /// f64.
    Double(Column<'a, f64>),
}

impl Values<'_> {
    fn extend(&mut self, numbers: &[f64]) {
        match self {
            #[allow(clippy::cast_possible_truncation)] // what the user asked for
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

    fn reserve(&mut self, share: f64) {
        match self {
            Self::Single(values) => values.reserve(share),
            Self::Double(values) => values.reserve(share),
        }
    }

    fn shrink(&mut self) {
        match self {
            Self::Single(values) => values.shrink(),
            Self::Double(values) => values.shrink(),
        }
    }
}

/// Where the indices and values of a file go.
#[derive(Debug)]
pub struct Room<'a> {
    /// The indices, as long as they are narrow.
    pub indices: Column<'a, i32>,
    /// The values, of the precision that the options name.
    pub values: Values<'a>,
}

impl Room<'_> {
    /// Memory that is allocated as it is needed.
    pub fn new(precision: Precision) -> Self {
        Self {
            indices: Column::default(),
            values: match precision {
                Precision::Single => Values::Single(Column::default()),
                Precision::Double => Values::Double(Column::default()),
            },
        }
    }
}

/// What a file holds.
#[derive(Debug, PartialEq)]
pub struct Matrix<'a> {
    /// Row `i` is `indptr[i]..indptr[i + 1]` of indices and values.
    pub indptr: Ints<'a>,
    /// The features, from 0.
    pub indices: Ints<'a>,
    /// The values.
    pub values: Values<'a>,
    /// A label a row; of multilabel files the labels of all rows on end.
    pub labels: Vec<f64>,
    /// Where the labels of each row end, for multilabel files.
    pub label_ends: Vec<i64>,
    /// The query of each row, if these were asked for.
    pub qids: Vec<i64>,
}

impl<'a> Matrix<'a> {
    pub(super) fn new(room: Room<'a>) -> Self {
        Self {
            indptr: Ints::Narrow(vec![0].into()),
            indices: Ints::Narrow(room.indices),
            values: room.values,
            labels: Vec::new(),
            label_ends: Vec::new(),
            qids: Vec::new(),
        }
    }

    /// How many rows there are.
    pub fn n_rows(&self) -> usize {
        match &self.indptr {
            Ints::Narrow(ints) => ints.len() - 1,
            Ints::Wide(ints) => ints.len() - 1,
        }
    }

    /// Appends some rows of a block, with indices as if the first were 1 in the file.
    pub(super) fn append_rows(&mut self, columns: &Columns, rows: Range<usize>) {
        let stored = columns.stored(&rows);
        let n_stored = self.values.len() + stored.len();
        if i32::try_from(n_stored).is_err() || i32::try_from(columns.largest).is_err() {
            self.widen();
        }
        self.indptr.extend(rebased(
            &columns.row_ends[rows.clone()],
            stored.start,
            self.values.len(),
        ));
        // Most files are one-based. Where that proves wrong, `finish` puts it right.
        let indices = &columns.indices[stored.clone()];
        self.indices.extend(indices.iter().map(|index| index - 1));
        self.values.extend(&columns.values[stored]);
        let labels = columns.label_range(&rows);
        if !columns.label_ends.is_empty() {
            let ends = &columns.label_ends[rows.clone()];
            self.label_ends
                .extend(rebased(ends, labels.start, self.labels.len()));
        }
        self.labels.extend_from_slice(&columns.labels[labels]);
        if !columns.qids.is_empty() {
            self.qids.extend_from_slice(&columns.qids[rows]);
        }
    }

    /// Gives the indices their final form, once all files have been read.
    pub(super) fn finish(&mut self, layout: Layout) {
        if layout.is_wide(self.n_rows()) {
            self.widen();
        }
        if !layout.is_one_based {
            self.indices.increment();
        }
        self.indptr.shrink();
        self.indices.shrink();
        self.values.shrink();
        self.labels.shrink_to_fit();
    }

    fn widen(&mut self) {
        self.indptr.widen();
        self.indices.widen();
    }
}

impl Sink for Matrix<'_> {
    fn append(&mut self, columns: &Columns) -> Result<()> {
        self.append_rows(columns, 0..columns.row_ends.len());
        Ok(())
    }

    fn reserve(&mut self, share: f64) {
        self.indptr.reserve(share);
        self.indices.reserve(share);
        self.values.reserve(share);
        reserve(&mut self.labels, share);
    }
}

/// The `ends` of parts that began at `old`, where they now begin at `new`.
#[allow(clippy::cast_possible_wrap)] // lengths of vectors
pub(super) fn rebased(
    ends: &[usize],
    old: usize,
    new: usize,
) -> impl ExactSizeIterator<Item = i64> {
    ends.iter().map(move |end| (end - old + new) as i64)
}
