//! Cross-validation for about the price of one fit.
//!
//! Out-of-fold predictions for every sample, whatever the estimator; scores, searches and
//! intervals are computed from them. The crate is the core of the Python package `onefold` and
//! knows nothing of Python outside `src/python/`.
//!
//! | module | what it holds |
//! |---|---|
//! | [`data`] | [`Layout`](data::Layout): dense and CSR rows behind one trait; [`Examples`](data::Examples): with targets |
//! | [`folds`] | [`Folds`], a partition of the samples, and [`Splits`], any train/test pairs |
//! | [`tree`] | TreeCV: k-fold of incremental learners for log2(2k) fits at most |
//! | [`merge`] | k-fold of models that can be merged: every row is learnt about once |
//! | [`learners`] | incremental learners, one a file |
//! | [`libsvm`] | LIBSVM files: a strict, parallel reader, a writer, a memory-mappable copy |
//! | [`svm`] | support vector machines, cross-validated by alpha seeding |
//! | [`virtual_cv`] | least squares, ridge and kernel ridge: every fold from one factorisation |
//! | [`runtime`] | progress and cancellation, exact counters of work, SIMD dispatched at run time |
//!
//! ```
//! use onefold::Folds;
//!
//! // Ten samples, three folds; any run of consecutive folds is one slice of rows.
//! let folds = Folds::contiguous(10, 3)?;
//! assert_eq!(folds.rows(0..1), [0, 1, 2, 3]);
//! assert_eq!(folds.rows(1..3), [4, 5, 6, 7, 8, 9]);
//! # Ok::<(), onefold::Error>(())
//! ```

pub mod data;
pub mod engine;
mod error;
pub mod folds;
pub mod learners;
pub mod libsvm;
mod linalg;
pub mod merge;
pub mod refit;
pub mod runtime;
pub mod svm;
pub mod tree;
pub mod virtual_cv;

#[cfg(feature = "python")]
mod python;

pub use data::Dataset;
pub use engine::{Engine, OutOfFold};
pub use error::{Error, Result};
pub use folds::{Folds, Resampling, Splits};
pub use runtime::cost::Cost;
pub use runtime::monitor::Monitor;
