//! Open files of Python as Rust streams.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::run::on_calling_thread;
use crate::libsvm::StreamError;

/// An open binary file of Python. Its methods are called on the thread that called us, where Ctrl-C
/// interrupts those that wait for data.
#[derive(Debug)]
pub(super) struct PyFile(Arc<Py<PyAny>>);

impl PyFile {
    /// Calls a method; an exception passes through the core to the caller.
    fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T> + Send + 'static,
    ) -> io::Result<T> {
        let file = Arc::clone(&self.0);
        on_calling_thread(move |py| call(file.bind(py)))
            .map_err(|raised| io::Error::other(StreamError(Box::new(raised))))
    }
}

impl Read for PyFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n_bytes = buffer.len();
        let bytes = self.call(move |file| {
            let answer = file.call_method1("read", (n_bytes,))?;
            match answer.cast::<PyBytes>().map(PyBytesMethods::as_bytes) {
                Ok(bytes) if bytes.len() <= n_bytes => Ok(bytes.to_vec()),
                Ok(bytes) => Err(PyTypeError::new_err(format!(
                    "read({n_bytes}) returned {} bytes",
                    bytes.len()
                ))),
                Err(_) => Err(PyTypeError::new_err(format!(
                    "read() must return bytes, got {}: open the file in binary mode",
                    answer.get_type().name()?
                ))),
            }
        })?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }
}

impl Seek for PyFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let (offset, whence) = match to {
            SeekFrom::Start(offset) => (i128::from(offset), 0),
            SeekFrom::Current(offset) => (offset.into(), 1),
            SeekFrom::End(offset) => (offset.into(), 2),
        };
        self.call(move |file| file.call_method1("seek", (offset, whence))?.extract())
    }
}

impl Write for PyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = bytes.to_vec();
        self.call(move |file| {
            let answer = file.call_method1("write", (PyBytes::new(file.py(), &bytes),))?;
            // Unbuffered files may write less; a method that returns None has written all.
            Ok(answer.extract().unwrap_or(bytes.len()))
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A path, or an object with a `read` or `write` method.
#[derive(Debug)]
pub(super) enum FileArg {
    Path(PathBuf),
    Open(String, PyFile),
}

impl<'py> FromPyObject<'_, 'py> for FileArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if !object.hasattr("read")? && !object.hasattr("write")? {
            return object.extract().map(Self::Path);
        }
        let name = object.getattr("name").and_then(|name| name.extract());
        let name = name.unwrap_or_else(|_| "<stream>".to_owned());
        Ok(Self::Open(
            name,
            PyFile(Arc::new(object.to_owned().unbind())),
        ))
    }
}
