//! Rows with memory of their own, which grow row by row.

use ndarray::ArrayView2;

use super::{Csr, Dataset, Dense, Index, Rows};
use crate::runtime::memory;
use crate::{Error, Result};

/// Rows that are appended one after the other, in one of the layouts of [`Rows`].
#[derive(Debug)]
pub(crate) enum OwnedRows {
    /// Row-major values of `n_features` columns.
    Dense { values: Vec<f64>, n_features: usize },
    /// CSR with 32-bit indices.
    Csr32(OwnedCsr<i32>),
    /// CSR with 64-bit indices.
    Csr64(OwnedCsr<i64>),
}

/// The arrays of a CSR matrix.
#[derive(Debug)]
pub(crate) struct OwnedCsr<I> {
    indptr: Vec<I>,
    pub(crate) indices: Vec<I>,
    pub(crate) values: Vec<f64>,
    n_features: usize,
    n_checked: usize,
}

impl<I: Index> OwnedCsr<I> {
    /// A matrix without rows.
    pub(crate) fn new(n_features: usize) -> Self {
        Self {
            indptr: vec![I::from_offset(0)],
            indices: Vec::new(),
            values: Vec::new(),
            n_features,
            n_checked: 0,
        }
    }

    /// Removes all rows and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.indptr.truncate(1);
        self.indices.clear();
        self.values.clear();
        self.n_checked = 0;
    }

    /// The number of complete rows.
    pub(crate) fn n_rows(&self) -> usize {
        self.indptr.len() - 1
    }

    /// Ends a row after `n_stored` more of the values.
    pub(crate) fn end_row(&mut self, n_stored: usize) {
        let start = self.indptr[self.n_rows()].offset();
        self.indptr.push(I::from_offset(start + n_stored));
    }

    /// The stored part of a row.
    pub(crate) fn row(&self, row: usize) -> (&[I], &[f64]) {
        let range = self.indptr[row].offset()..self.indptr[row + 1].offset();
        (&self.indices[range.clone()], &self.values[range])
    }

    /// Reserves memory for more rows and values.
    pub(crate) fn reserve(&mut self, n_rows: usize, n_stored: usize) -> Result<()> {
        memory::reserve("a block of rows", &mut self.indptr, n_rows)?;
        memory::reserve("a block of rows", &mut self.indices, n_stored)?;
        memory::reserve("a block of rows", &mut self.values, n_stored)
    }

    /// Checks the rows that were appended since the last call.
    pub(crate) fn check(&mut self) -> Result<()> {
        if self.n_checked < self.n_rows() {
            Csr::new(&self.indptr, &self.indices, &self.values, self.n_features)?;
            self.n_checked = self.n_rows();
        }
        Ok(())
    }

    fn view(&self) -> Csr<'_, I> {
        Csr::of_checked(&self.indptr, &self.indices, &self.values, self.n_features)
    }
}

impl OwnedRows {
    /// The number of rows.
    pub(crate) fn n_rows(&self) -> usize {
        match self {
            Self::Dense { values, n_features } => values.len() / n_features.max(&1),
            Self::Csr32(rows) => rows.n_rows(),
            Self::Csr64(rows) => rows.n_rows(),
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
        Ok(Dataset::new(match self {
            Self::Dense { values, n_features } => {
                let shape = (self.n_rows(), *n_features);
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
