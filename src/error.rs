//! One error type for the whole core.
//!
//! Messages are lower-case, name the argument and the value, and end without a full stop: the
//! Python side shows them as they are.

/// What can go wrong in the core.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Two arguments that must agree in length do not.
    #[error("{what}: expected length {expected}, got {found}")]
    Shape {
        /// The argument.
        what: &'static str,
        /// The length the other arguments imply.
        expected: usize,
        /// The length it has.
        found: usize,
    },
    /// An argument has a value outside its domain.
    #[error("{name} must be {rule}, got {value}")]
    Parameter {
        /// The argument.
        name: &'static str,
        /// Its domain, in words.
        rule: &'static str,
        /// What was given.
        value: String,
    },
    /// Named hyper-parameters that a learner does not have, or of the wrong type.
    #[error("{reason}")]
    Parameters {
        /// Which parameter, and what is wrong with it.
        reason: String,
    },
    /// A value that cannot be part of a data set, and its place.
    #[error("{place} is {}: {rule}", number(*value))]
    Value {
        /// Argument and position, such as `X[3, 7]`.
        place: String,
        /// The value.
        value: f64,
        /// What values are valid.
        rule: &'static str,
    },
    /// Sparse rows whose arrays contradict each other.
    #[error("X is not a valid CSR matrix: {reason}")]
    Csr {
        /// What is wrong, and in which row.
        reason: String,
    },
    /// Folds that are not folds of the samples.
    #[error("folds: {reason}")]
    Folds {
        /// What is wrong.
        reason: String,
    },
    /// A fold whose training rows do not determine its model.
    #[error("fold {fold} cannot be predicted: {reason}")]
    Undetermined {
        /// The fold, from 0.
        fold: usize,
        /// What is missing, and what would help.
        reason: String,
    },
    /// Text that is not LIBSVM format.
    #[error("{file}, line {line}: {reason}: {text:?}")]
    Parse {
        /// The file's name, or `<stream>`.
        file: String,
        /// Line number, from 1.
        line: u64,
        /// What is wrong.
        reason: String,
        /// The offending token.
        text: String,
    },
    /// A file that cannot be read or written.
    #[error("{file}: {source}")]
    Io {
        /// The file's name, or `<stream>`.
        file: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// More memory than there is.
    #[error("{what} needs {bytes} bytes ({}), but {}", in_units(*bytes), shortage(*bytes, *available))]
    Memory {
        /// What is to be stored, with the argument that its size follows from.
        what: String,
        /// Its size.
        bytes: u64,
        /// What the system and the limits of the process leave for it.
        available: u64,
    },
    /// An error of a caller's own callback (a Python object, say), passed through unchanged.
    #[error(transparent)]
    Callback(Box<dyn std::error::Error + Send + Sync>),
    /// The caller cancelled the work.
    #[error("interrupted")]
    Interrupted,
}

/// Why memory that is there does not suffice: it is too little, or the system does not map it.
fn shortage(bytes: u64, available: u64) -> String {
    let available_units = in_units(available);
    if available < bytes {
        format!("only {available_units} of memory are available")
    } else {
        format!("the system grants no piece of this size, of {available_units} that are available")
    }
}

/// Bytes in binary units, with one decimal.
fn in_units(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut size = bytes as f64 / 1024.0;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < units.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.1} {}", units[unit])
}

impl Error {
    /// [`Error::Parameter`] with a value that can be displayed.
    pub(crate) fn parameter(name: &'static str, rule: &'static str, value: impl ToString) -> Self {
        let value = value.to_string();
        Self::Parameter { name, rule, value }
    }

    /// [`Error::Value`] of a value of X.
    pub(crate) fn not_finite(row: usize, feature: usize, value: f64) -> Self {
        Self::Value {
            place: format!("X[{row}, {feature}]"),
            value,
            rule: "every value must be finite",
        }
    }
}

/// A number as text, with an exponent if it would be long without.
fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() || (1e-5..1e16).contains(&value.abs()) {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}

/// The result of everything in the core that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_says_what_is_there() {
        let message = |bytes, available| {
            let what = "y".into();
            let error = Error::Memory {
                what,
                bytes,
                available,
            };
            error.to_string()
        };
        let mib = |n: u64| n << 20;
        assert_eq!(
            message(mib(40), mib(65) / 2),
            "y needs 41943040 bytes (40.0 MiB), but only 32.5 MiB of memory are available"
        );
        assert_eq!(
            message(mib(2), mib(65) / 2),
            "y needs 2097152 bytes (2.0 MiB), but the system grants no piece of this size, of 32.5 MiB that \
             are available"
        );
        assert_eq!(in_units(1), "0.0 KiB");
        assert_eq!(in_units(u64::MAX), "16.0 EiB");
    }
}
