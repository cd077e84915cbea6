//! Rows with memory of their own, which is used again for others.

use bytemuck::Zeroable;
use ndarray::ArrayView2;

use super::{Csr, Dataset, Dense, Index, Rows};
use crate::runtime::memory;
use crate::{Error, Result};

/// A vector that is filled, cleared and filled again: old values stay until they are overwritten, so
/// growing costs no pass over the memory.
#[derive(Debug)]
pub(crate) struct ReusedVec<T> {
    values: Vec<T>,
    len: usize,
}

impl<T: Zeroable + Copy> ReusedVec<T> {
    pub(crate) fn new() -> Self {
        Self {
            values: Vec::new(),
            len: 0,
        }
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        &self.values[..self.len]
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Appends `n` values, and returns them to be overwritten.
    pub(crate) fn grow(&mut self, n: usize) -> Result<&mut [T]> {
        self.reserve(n)?;
        let start = self.len;
        self.len += n;
        if self.len > self.values.len() {
            self.values.resize(self.len, T::zeroed());
        }
        Ok(&mut self.values[start..self.len])
    }

    /// Reserves memory for `n` more values.
    fn reserve(&mut self, n: usize) -> Result<()> {
        let n_missing = self.len.saturating_add(n).saturating_sub(self.values.len());
        memory::reserve("a block of rows", &mut self.values, n_missing)
    }
}

/// Rows that are appended one after the other, in one of the layouts of [`Rows`].
#[derive(Debug)]
pub(crate) enum OwnedRows {
    /// Row-major values of `n_features` columns.
    Dense {
        values: ReusedVec<f64>,
        n_features: usize,
    },
    /// CSR with 32-bit indices.
    Csr32(OwnedCsr<i32>),
    /// CSR with 64-bit indices.
    Csr64(OwnedCsr<i64>),
}

/// The arrays of a CSR matrix.
#[derive(Debug)]
pub(crate) struct OwnedCsr<I> {
    indptr: Vec<I>,
    pub(crate) indices: ReusedVec<I>,
    pub(crate) values: ReusedVec<f64>,
    n_features: usize,
    n_checked: usize,
}

impl<I: Index> OwnedCsr<I> {
    /// A matrix without rows.
    pub(crate) fn new(n_features: usize) -> Self {
        Self {
            indptr: vec![I::from_offset(0)],
            indices: ReusedVec::new(),
            values: ReusedVec::new(),
            n_features,
            n_checked: 0,
        }
    }

    fn clear(&mut self) {
        self.indptr.truncate(1);
        self.indices.clear();
        self.values.clear();
        self.n_checked = 0;
    }

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
        memory::reserve("a block of rows", &mut self.indptr, n_rows)?;
        self.indices.reserve(n_stored)?;
        self.values.reserve(n_stored)
    }

    /// Appends rows of another matrix.
    fn append(&mut self, source: &Self, rows: &[usize]) -> Result<()> {
        let n_stored = rows.iter().map(|&row| source.row_length(row)).sum();
        self.reserve(rows.len(), n_stored)?;
        for &row in rows {
            let range = source.indptr[row].offset()..source.indptr[row + 1].offset();
            let n = range.len();
            let (indices, values) = (source.indices.as_slice(), source.values.as_slice());
            self.indices
                .grow(n)?
                .copy_from_slice(&indices[range.clone()]);
            self.values.grow(n)?.copy_from_slice(&values[range]);
            self.end_row(n);
        }
        Ok(())
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

    fn view(&self) -> Csr<'_, I> {
        let (indices, values) = (self.indices.as_slice(), self.values.as_slice());
        Csr::of_checked(&self.indptr, indices, values, self.n_features)
    }
}

impl OwnedRows {
    /// The number of rows.
    pub(crate) fn n_rows(&self) -> usize {
        match self {
            Self::Dense { values, n_features } => values.len / n_features.max(&1),
            Self::Csr32(rows) => rows.n_rows(),
            Self::Csr64(rows) => rows.n_rows(),
        }
    }

    /// The stored values of all rows.
    pub(crate) fn values(&self) -> &[f64] {
        match self {
            Self::Dense { values, .. } => values.as_slice(),
            Self::Csr32(rows) => rows.values.as_slice(),
            Self::Csr64(rows) => rows.values.as_slice(),
        }
    }

    /// Removes all rows and keeps the memory.
    pub(crate) fn clear(&mut self) {
        match self {
            Self::Dense { values, .. } => values.clear(),
            Self::Csr32(rows) => rows.clear(),
            Self::Csr64(rows) => rows.clear(),
        }
    }

    /// Appends rows of another matrix of the same layout and features.
    pub(crate) fn append(&mut self, source: &Self, rows: &[usize]) -> Result<()> {
        match (self, source) {
            (Self::Dense { values, n_features }, Self::Dense { values: source, .. }) => {
                let width = *n_features;
                let target = values.grow(rows.len() * width)?;
                for (target, &row) in target.chunks_exact_mut(width.max(1)).zip(rows) {
                    target.copy_from_slice(&source.as_slice()[row * width..][..width]);
                }
                Ok(())
            }
            (Self::Csr32(target), Self::Csr32(source)) => target.append(source, rows),
            (Self::Csr64(target), Self::Csr64(source)) => target.append(source, rows),
            _ => Err(Error::Csr {
                reason: "its rows have another layout".into(),
            }),
        }
    }

    /// Checks rows that were read from outside; [`OwnedRows::dataset`] relies on it.
    pub(crate) fn check(&mut self) -> Result<()> {
        match self {
            Self::Dense { .. } => Ok(()),
            Self::Csr32(rows) => rows.check(),
            Self::Csr64(rows) => rows.check(),
        }
    }

    /// The rows as a data set without targets.
    pub(crate) fn dataset(&self) -> Result<Dataset<'_>> {
        Ok(Dataset::new_unchecked(match self {
            Self::Dense { values, n_features } => {
                let shape = (self.n_rows(), *n_features);
                let values = values.as_slice();
                let view = ArrayView2::from_shape(shape, values).map_err(|_| Error::Shape {
                    what: "a block of rows",
                    expected: shape.0 * shape.1,
                    found: values.len(),
                })?;
                Rows::Dense(Dense::new(view)?)
            }
            Self::Csr32(rows) => Rows::Csr32(rows.view()),
            Self::Csr64(rows) => Rows::Csr64(rows.view()),
        }))
    }
}
