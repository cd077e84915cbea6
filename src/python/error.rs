//! The one place where core errors become Python exceptions.

use pyo3::PyErr;
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyOSError, PyValueError};

use crate::Error;

pyo3::import_exception!(numpy.linalg, LinAlgError);

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        match in_python_words(error) {
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
            // A `ValueError`, too, as all others below.
            error @ Error::Undetermined { .. } => LinAlgError::new_err(error.to_string()),
            error @ Error::Memory { .. } => PyMemoryError::new_err(error.to_string()),
            Error::Folds { reason } => PyValueError::new_err(format!("cv: {reason}")),
            other => PyValueError::new_err(other.to_string()),
        }
    }
}

/// The error with the names of the facade's arguments.
fn in_python_words(error: Error) -> Error {
    match error {
        Error::Parameter { name, rule, value } => Error::Parameter {
            name: python_name(name),
            rule: python_rule(rule),
            value,
        },
        Error::Shape {
            what,
            expected,
            found,
        } => Error::Shape {
            what: python_name(what),
            expected,
            found,
        },
        Error::Value { place, value, rule } => Error::Value {
            place: if place.starts_with("weights") || place == "the sum of weights" {
                place.replacen("weights", "sample_weight", 1)
            } else {
                place
            },
            value,
            rule,
        },
        other => other,
    }
}

fn python_rule(rule: &'static str) -> &'static str {
    match rule {
        "given, and the base of the indices, to read an open file in blocks" => {
            "given, and zero_based True or False, to read an open file in blocks"
        }
        _ => rule,
    }
}

fn python_name(name: &'static str) -> &'static str {
    match name {
        "class_weights" => "class_weight",
        "kernel memory" => "kernel_mb",
        "memory" => "memory_mb",
        "samples of the folds" => "samples of cv",
        "weights" => "sample_weight",
        _ => name,
    }
}
