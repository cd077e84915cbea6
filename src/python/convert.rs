//! Borrowing numpy and scipy objects as the core's types, without copies.

use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::Result;
use crate::data::{Csr, Dense, Index};

/// Rows as the facade passes them: a C-contiguous float64 array or a scipy CSR matrix.
///
/// The borrow lasts as long as this value, also while the GIL is released.
#[derive(Debug)]
pub(super) enum RowsArg<'py> {
    Dense(PyReadonlyArray2<'py, f64>),
    Csr32(CsrArg<'py, i32>),
    Csr64(CsrArg<'py, i64>),
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
            self.indptr.as_slice()?,
            self.indices.as_slice()?,
            self.values.as_slice()?,
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

/// The core's view of a dense array.
pub(super) fn dense<'a>(array: &'a PyReadonlyArray2<'_, f64>) -> PyResult<Dense<'a>> {
    let values = array
        .as_slice()
        .map_err(|_| PyValueError::new_err("X must be C-contiguous"))?;
    Ok(Dense::new(values, array.shape()[0], array.shape()[1])?)
}

/// Evaluates `$body` with `$rows` bound to the core's view of a [`RowsArg`], whatever its layout.
macro_rules! with_rows {
    ($arg:expr, |$rows:ident| $body:expr) => {
        match $arg {
            $crate::python::convert::RowsArg::Dense(array) => {
                let $rows = $crate::python::convert::dense(array)?;
                $body
            }
            $crate::python::convert::RowsArg::Csr32(matrix) => {
                let $rows = matrix.rows()?;
                $body
            }
            $crate::python::convert::RowsArg::Csr64(matrix) => {
                let $rows = matrix.rows()?;
                $body
            }
        }
    };
}
pub(super) use with_rows;
