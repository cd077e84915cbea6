//! The one place where core errors become Python exceptions.

use pyo3::PyErr;
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyOSError, PyValueError};

use crate::Error;

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        match error {
            Error::Interrupted => PyKeyboardInterrupt::new_err(()),
            Error::Callback(source) => match source.downcast::<PyErr>() {
                Ok(raised) => *raised,
                Err(other) => PyValueError::new_err(other.to_string()),
            },
            // With the system's error code, Python picks the subclass: FileNotFoundError and so on.
            Error::Io { file, source } => match source.raw_os_error() {
                Some(code) => PyOSError::new_err((code, source.to_string(), file)),
                None => PyOSError::new_err(format!("{file}: {source}")),
            },
            Error::Memory { .. } => PyMemoryError::new_err(error.to_string()),
            other => PyValueError::new_err(other.to_string()),
        }
    }
}
