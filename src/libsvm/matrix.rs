//! The rows of a file in memory, in scipy's CSR layout.

use std::ops::Range;

use rayon::prelude::*;

use super::Precision;
use super::layout::Layout;
use super::parse::Columns;
use super::read::Sink;
use crate::Result;

/// Integers, 32-bit as long as they fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ints {
    /// 32-bit.
    Narrow(Vec<i32>),
    /// 64-bit.
    Wide(Vec<i64>),
}

impl Ints {
    /// Appends `numbers`, which must fit.
    fn extend(&mut self, numbers: impl Iterator<Item = i64>) {
        match self {
            #[allow(clippy::cast_possible_truncation)] // the caller widens before it is needed
            Self::Narrow(ints) => ints.extend(numbers.map(|number| number as i32)),
            Self::Wide(ints) => ints.extend(numbers),
        }
    }

    fn widen(&mut self) {
        if let Self::Narrow(ints) = self {
            *self = Self::Wide(ints.iter().map(|&int| int.into()).collect());
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
            Self::Narrow(ints) => reserve(ints, share),
            Self::Wide(ints) => reserve(ints, share),
        }
    }

    fn shrink(&mut self) {
        match self {
            Self::Narrow(ints) => ints.shrink_to_fit(),
            Self::Wide(ints) => ints.shrink_to_fit(),
        }
    }
}

/// Values of either precision.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// f32.
    Single(Vec<f32>),
    /// f64.
    Double(Vec<f64>),
}

impl Values {
    fn extend(&mut self, numbers: &[f64]) {
        match self {
            #[allow(clippy::cast_possible_truncation)] // what the user asked for
            Self::Single(values) => values.extend(numbers.iter().map(|&number| number as f32)),
            Self::Double(values) => values.extend_from_slice(numbers),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Single(values) => values.len(),
            Self::Double(values) => values.len(),
        }
    }

    fn shrink(&mut self) {
        match self {
            Self::Single(values) => values.shrink_to_fit(),
            Self::Double(values) => values.shrink_to_fit(),
        }
    }
}

/// What a file holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// Row `i` is `indptr[i]..indptr[i + 1]` of indices and values.
    pub indptr: Ints,
    /// The features, from 0.
    pub indices: Ints,
    /// The values.
    pub values: Values,
    /// A label a row; of multilabel files the labels of all rows on end.
    pub labels: Vec<f64>,
    /// Where the labels of each row end, for multilabel files.
    pub label_ends: Vec<i64>,
    /// The query of each row, if these were asked for.
    pub qids: Vec<i64>,
}

impl Matrix {
    pub(super) fn new(precision: Precision) -> Self {
        Self {
            indptr: Ints::Narrow(vec![0]),
            indices: Ints::Narrow(Vec::new()),
            values: match precision {
                Precision::Single => Values::Single(Vec::new()),
                Precision::Double => Values::Double(Vec::new()),
            },
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

impl Sink for Matrix {
    fn append(&mut self, columns: &Columns) -> Result<()> {
        self.append_rows(columns, 0..columns.row_ends.len());
        Ok(())
    }

    fn reserve(&mut self, share: f64) {
        // Vectors that grow step by step are copied again and again, and memory is touched twice.
        self.indptr.reserve(share);
        self.indices.reserve(share);
        match &mut self.values {
            Values::Single(values) => reserve(values, share),
            Values::Double(values) => reserve(values, share),
        }
        reserve(&mut self.labels, share);
    }
}

/// Room for all, when what is there is about this `share`. It is only a guess: too little or none
/// costs time, too much is given back.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn reserve<T>(items: &mut Vec<T>, share: f64) {
    let all = (1.02 * items.len() as f64 / share) as usize;
    // Without the room, the vector grows as it must.
    let _ = items.try_reserve_exact(all.saturating_sub(items.len()));
}

/// The `ends` of parts that began at `old`, where they now begin at `new`.
#[allow(clippy::cast_possible_wrap)] // lengths of vectors
pub(super) fn rebased(ends: &[usize], old: usize, new: usize) -> impl Iterator<Item = i64> {
    ends.iter().map(move |end| (end - old + new) as i64)
}
