//! Borrowing numpy and scipy objects as the core's types, without copies.

use numpy::{IntoPyArray, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::stored::PyStoredRows;
use crate::Result;
use crate::data::{Csr, Dataset, Dense, Index, Rows};
use crate::stored::{Stored, Streaming};

/// Rows as the facade passes them: a C-contiguous float64 array, a scipy CSR matrix, or a tuple of
/// rows on disk, the memory in bytes that they are read into, and a directory for temporary files.
///
/// The borrow lasts as long as this value, also while the GIL is released.
#[derive(Debug)]
pub(super) enum RowsArg<'py> {
    Dense(PyReadonlyArray2<'py, f64>),
    Csr32(CsrArg<'py, i32>),
    Csr64(CsrArg<'py, i64>),
    Stored(PyRef<'py, PyStoredRows>, Streaming),
}

/// The arrays of a scipy CSR matrix.
#[derive(Debug)]
pub(super) struct CsrArg<'py, I: numpy::Element> {
    indptr: PyReadonlyArray1<'py, I>,
    indices: PyReadonlyArray1<'py, I>,
    values: PyReadonlyArray1<'py, f64>,
    n_features: usize,
}

impl<'py, I: numpy::Element + Index> CsrArg<'py, I> {
    fn extract(matrix: &Bound<'py, PyAny>) -> PyResult<Self> {
        Ok(Self {
            indptr: matrix.getattr("indptr")?.extract()?,
            indices: matrix.getattr("indices")?.extract()?,
            values: matrix.getattr("data")?.extract()?,
            n_features: matrix.getattr("shape")?.extract::<(usize, usize)>()?.1,
        })
    }

    /// The core's view of the matrix.
    pub(super) fn rows(&self) -> Result<Csr<'_, I>, PyErr> {
        let view = Csr::new(
            self.indptr.as_array(),
            self.indices.as_array(),
            self.values.as_array(),
            self.n_features,
        )?;
        Ok(view)
    }
}

impl<'py> FromPyObject<'_, 'py> for RowsArg<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(array) = object.extract::<PyReadonlyArray2<'py, f64>>() {
            return Ok(Self::Dense(array));
        }
        if let Ok((rows, memory_bytes, temp_dir)) = object.extract() {
            let streaming = Streaming {
                memory_bytes,
                temp_dir,
            };
            return Ok(Self::Stored(rows, streaming));
        }
        if !object.hasattr("indptr")? {
            return Err(PyTypeError::new_err(
                "X must be a 2-D float64 array or a CSR matrix",
            ));
        }
        CsrArg::extract(&object)
            .map(Self::Csr32)
            .or_else(|_| CsrArg::extract(&object).map(Self::Csr64))
            .map_err(|_| {
                PyTypeError::new_err("X must have float64 data and int32 or int64 indices")
            })
    }
}

impl RowsArg<'_> {
    /// The core's view of these rows.
    pub(super) fn rows(&self) -> PyResult<Rows<'_>> {
        Ok(match self {
            Self::Dense(array) => Rows::Dense(dense(array)?),
            Self::Csr32(matrix) => Rows::Csr32(matrix.rows()?),
            Self::Csr64(matrix) => Rows::Csr64(matrix.rows()?),
            Self::Stored(rows, streaming) => Rows::Stored(Stored {
                rows: &rows.0,
                streaming,
            }),
        })
    }
}

/// The core's view of a dense array.
pub(super) fn dense<'a>(array: &'a PyReadonlyArray2<'_, f64>) -> PyResult<Dense<'a>> {
    Ok(Dense::new(array.as_array())?)
}

/// What is to be learnt of each row, as the facade passes it.
#[derive(Debug)]
enum TargetsArg<'py> {
    None,
    /// Codes of classes.
    Classes(PyReadonlyArray1<'py, u32>),
    /// Numbers, a column an output.
    Values(PyReadonlyArray2<'py, f64>),
}

impl<'py> TargetsArg<'py> {
    fn extract(y: &Bound<'py, PyAny>) -> PyResult<Self> {
        if y.is_none() {
            Ok(Self::None)
        } else if let Ok(codes) = y.extract() {
            Ok(Self::Classes(codes))
        } else {
            Ok(Self::Values(y.extract()?))
        }
    }
}

/// Examples as the facade passes them: a tuple of rows, targets (codes of classes, a matrix of
/// numbers, or nothing), the number of classes, and weights or nothing.
#[derive(Debug)]
pub(super) struct ExamplesArg<'py> {
    pub(super) rows: RowsArg<'py>,
    targets: TargetsArg<'py>,
    n_classes: usize,
    weights: Option<PyReadonlyArray1<'py, f64>>,
}

impl<'py> FromPyObject<'_, 'py> for ExamplesArg<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (rows, y, n_classes, weights) =
            object.extract::<(RowsArg<'py>, Bound<'py, PyAny>, usize, _)>()?;
        Ok(Self {
            rows,
            targets: TargetsArg::extract(&y)?,
            n_classes,
            weights,
        })
    }
}

impl ExamplesArg<'_> {
    /// The core's view of these examples.
    pub(super) fn dataset(&self) -> PyResult<Dataset<'_>> {
        let data = Dataset::new_unchecked(self.rows.rows()?);
        let data = match &self.targets {
            TargetsArg::None => data,
            TargetsArg::Classes(codes) => data.with_classes(codes.as_array(), self.n_classes)?,
            TargetsArg::Values(values) => data.with_values(values.as_array())?,
        };
        match &self.weights {
            None => Ok(data),
            Some(weights) => Ok(data.with_weights(weights.as_array())?),
        }
    }
}

/// A numpy matrix of `n_columns` columns over `values`, without a copy.
pub(super) fn to_matrix(
    py: Python<'_>,
    values: Vec<f64>,
    n_columns: usize,
) -> PyResult<Bound<'_, PyArray2<f64>>> {
    let n_rows = values.len() / n_columns.max(1);
    values.into_pyarray(py).reshape([n_rows, n_columns])
}
