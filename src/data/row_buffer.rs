//! Rows with memory of their own, which is used again for others.

// Without rows on disk the wildcards below match one layout.
#![cfg_attr(
    not(feature = "stored"),
    allow(clippy::match_wildcard_for_single_variants)
)]

use bytemuck::Pod;

use super::csr::CsrRow;
use super::{Csr, Dense, HugePageBuffer, Index, Layout as _, Row as _, Rows, prefetch_ahead};
use crate::runtime::memory;
use crate::{Error, Result};

/// What memory errors name.
const WHAT: &str = "a block of rows";

/// A vector that is filled, cleared and filled again: old values stay until they are overwritten.
#[derive(Debug)]
pub(crate) struct RefillVec<T> {
    memory: HugePageBuffer<T>,
    len: usize,
}

impl<T: Pod> RefillVec<T> {
    fn new() -> Self {
        Self {
            memory: HugePageBuffer::default(),
            len: 0,
        }
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        &self.memory[..self.len]
    }

    /// Appends `n` values, and returns them to be overwritten.
    pub(crate) fn grow(&mut self, n: usize) -> Result<&mut [T]> {
        self.reserve(n)?;
        let start = self.len;
        self.len += n;
        Ok(&mut self.memory[start..self.len])
    }

    /// Reserves memory for `n` more values.
    fn reserve(&mut self, n: usize) -> Result<()> {
        let needed = self.len.saturating_add(n);
        if needed <= self.memory.len() {
            return Ok(());
        }
        // Repeated growth copies each value a few times at most.
        let n_values = if self.len == 0 {
            needed
        } else {
            needed.max(self.memory.len() + self.memory.len() / 2)
        };
        memory::check::<T>(WHAT, n_values as u64)?;
        let bytes = (n_values as u64).saturating_mul(size_of::<T>() as u64);
        let mut larger = HugePageBuffer::zeroed(n_values)
            .ok_or_else(|| memory::shortage(WHAT, bytes, memory::available()))?;
        larger[..self.len].copy_from_slice(self.as_slice());
        self.memory = larger;
        Ok(())
    }
}

/// Rows that are appended one after the other, in one of the layouts of [`Rows`].
#[derive(Debug)]
pub(crate) enum RowBuffer {
    Dense(DenseBuffer),
    Csr32(CsrBuffer<i32>),
    Csr64(CsrBuffer<i64>),
}

/// The values of a row-major matrix.
#[derive(Debug)]
pub(crate) struct DenseBuffer {
    values: RefillVec<f64>,
    n_rows: usize,
    n_features: usize,
}

/// The arrays of a CSR matrix.
#[derive(Debug)]
pub(crate) struct CsrBuffer<I> {
    indptr: Vec<I>,
    pub(crate) indices: RefillVec<I>,
    pub(crate) values: RefillVec<f64>,
    n_features: usize,
    n_checked: usize,
}

impl DenseBuffer {
    /// A matrix without rows.
    pub(crate) fn new(n_features: usize) -> Self {
        Self {
            values: RefillVec::new(),
            n_rows: 0,
            n_features,
        }
    }

    fn clear(&mut self) {
        self.values.len = 0;
        self.n_rows = 0;
    }

    /// Appends `n` rows, and returns their values to be overwritten.
    pub(crate) fn grow(&mut self, n: usize) -> Result<&mut [f64]> {
        self.n_rows += n;
        self.values.grow(n.saturating_mul(self.n_features))
    }

    fn append(&mut self, source: Dense<'_>, rows: &[usize]) -> Result<()> {
        let width = self.n_features.max(1);
        let targets = self.grow(rows.len())?.chunks_exact_mut(width);
        for (position, (target, &row)) in targets.zip(rows).enumerate() {
            prefetch_ahead(&source, rows, position);
            target.copy_from_slice(source.row(row));
        }
        Ok(())
    }

    pub(crate) fn view(&self) -> Dense<'_> {
        Dense::new_unchecked(self.values.as_slice(), self.n_rows, self.n_features)
    }
}

impl<I: Index> CsrBuffer<I> {
    /// A matrix without rows.
    pub(crate) fn new(n_features: usize) -> Self {
        Self {
            indptr: vec![I::from_offset(0)],
            indices: RefillVec::new(),
            values: RefillVec::new(),
            n_features,
            n_checked: 0,
        }
    }

    fn clear(&mut self) {
        self.indptr.truncate(1);
        self.indices.len = 0;
        self.values.len = 0;
        self.n_checked = 0;
    }

    fn append(&mut self, source: Csr<'_, I>, rows: &[usize]) -> Result<()> {
        let n_stored = rows.iter().map(|&row| source.row(row).n_stored()).sum();
        memory::reserve(WHAT, &mut self.indptr, rows.len())?;
        let mut end = self.values.len;
        let mut indices = self.indices.grow(n_stored)?;
        let mut values = self.values.grow(n_stored)?;
        for (position, &row) in rows.iter().enumerate() {
            prefetch_ahead(&source, rows, position);
            let row: CsrRow<'_, I> = source.row(row);
            let n = row.n_stored();
            let (row_indices, row_values);
            (row_indices, indices) = indices.split_at_mut(n);
            (row_values, values) = values.split_at_mut(n);
            row_indices.copy_from_slice(row.indices);
            row_values.copy_from_slice(row.values);
            end += n;
            self.indptr.push(I::from_offset(end));
        }
        Ok(())
    }

    pub(crate) fn view(&self) -> Csr<'_, I> {
        let (indices, values) = (self.indices.as_slice(), self.values.as_slice());
        Csr::new_unchecked(&self.indptr, indices, values, self.n_features)
    }
}

impl RowBuffer {
    /// A buffer for rows like these, if they have values in memory.
    pub(crate) fn like(rows: &Rows<'_>) -> Option<Self> {
        match rows {
            Rows::Dense(rows) => Some(Self::Dense(DenseBuffer::new(rows.n_features()))),
            Rows::Csr32(rows) => Some(Self::Csr32(CsrBuffer::new(rows.n_features()))),
            Rows::Csr64(rows) => Some(Self::Csr64(CsrBuffer::new(rows.n_features()))),
            _ => None,
        }
    }

    /// Whether rows like these can be appended.
    pub(crate) fn fits(&self, rows: &Rows<'_>) -> bool {
        match (self, rows) {
            (Self::Dense(buffer), Rows::Dense(rows)) => buffer.n_features == rows.n_features(),
            (Self::Csr32(buffer), Rows::Csr32(rows)) => buffer.n_features == rows.n_features(),
            (Self::Csr64(buffer), Rows::Csr64(rows)) => buffer.n_features == rows.n_features(),
            _ => false,
        }
    }

    /// Removes all rows and keeps the memory.
    pub(crate) fn clear(&mut self) {
        match self {
            Self::Dense(rows) => rows.clear(),
            Self::Csr32(rows) => rows.clear(),
            Self::Csr64(rows) => rows.clear(),
        }
    }

    /// Appends copies of the rows of `source` at `rows`, in their order.
    ///
    /// # Panics
    /// When there is no such row.
    pub(crate) fn append(&mut self, source: &Rows<'_>, rows: &[usize]) -> Result<()> {
        match (self, *source) {
            (Self::Dense(target), Rows::Dense(source)) => target.append(source, rows),
            (Self::Csr32(target), Rows::Csr32(source)) => target.append(source, rows),
            (Self::Csr64(target), Rows::Csr64(source)) => target.append(source, rows),
            _ => Err(Error::Csr {
                reason: "its rows have another layout".into(),
            }),
        }
    }

    /// The rows.
    pub(crate) fn view(&self) -> Rows<'_> {
        match self {
            Self::Dense(rows) => Rows::Dense(rows.view()),
            Self::Csr32(rows) => Rows::Csr32(rows.view()),
            Self::Csr64(rows) => Rows::Csr64(rows.view()),
        }
    }
}

/// Rows that are read from outside.
#[cfg(feature = "stored")]
mod reading {
    use super::super::first_not_finite;
    use super::*;

    impl DenseBuffer {
        /// The values, row after row.
        pub(crate) fn values(&self) -> &[f64] {
            self.values.as_slice()
        }
    }

    impl<I: Index> CsrBuffer<I> {
        /// The number of complete rows.
        pub(crate) fn n_rows(&self) -> usize {
            self.indptr.len() - 1
        }

        /// The number of stored values of complete rows.
        pub(crate) fn n_stored(&self) -> usize {
            self.indptr[self.n_rows()].offset()
        }

        /// Ends a row after `n_stored` more of the values.
        pub(crate) fn end_row(&mut self, n_stored: usize) {
            self.indptr.push(I::from_offset(self.n_stored() + n_stored));
        }

        /// The number of stored values of a row.
        pub(crate) fn row_length(&self, row: usize) -> usize {
            self.indptr[row + 1].offset() - self.indptr[row].offset()
        }

        /// Reserves memory for more rows and values.
        pub(crate) fn reserve(&mut self, n_rows: usize, n_stored: usize) -> Result<()> {
            memory::reserve(WHAT, &mut self.indptr, n_rows)?;
            self.indices.reserve(n_stored)?;
            self.values.reserve(n_stored)
        }

        /// Checks the rows that were appended since the last call.
        fn check(&mut self) -> Result<()> {
            if self.n_checked < self.n_rows() {
                let (indices, values) = (self.indices.as_slice(), self.values.as_slice());
                Csr::new(&self.indptr, indices, values, self.n_features)?;
                self.n_checked = self.n_rows();
            }
            Ok(())
        }
    }

    impl RowBuffer {
        /// Checks the indices of rows that were read; [`RowBuffer::view`] relies on it.
        pub(crate) fn check(&mut self) -> Result<()> {
            match self {
                Self::Dense(_) => Ok(()),
                Self::Csr32(rows) => rows.check(),
                Self::Csr64(rows) => rows.check(),
            }
        }

        /// An error that names the first value that is not finite; `row_of` gives the row of the
        /// matrix.
        pub(crate) fn check_finite(&self, row_of: impl Fn(usize) -> usize) -> Result<()> {
            let found = match self {
                Self::Dense(rows) => first_not_finite(&rows.view(), 0..rows.n_rows),
                Self::Csr32(rows) => first_not_finite(&rows.view(), 0..rows.n_rows()),
                Self::Csr64(rows) => first_not_finite(&rows.view(), 0..rows.n_rows()),
            };
            match found {
                Some((row, feature, value)) => Err(Error::not_finite(row_of(row), feature, value)),
                None => Ok(()),
            }
        }
    }
}
