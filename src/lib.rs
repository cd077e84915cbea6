//! Cross-validation for about the price of one fit.
//!
//! Out-of-fold outputs for every sample, whatever the estimator; scores and searches are computed from
//! them. The crate is the core of the Python package `onefold` and knows nothing of Python outside
//! `src/python/`.
//!
//! ```
//! use ndarray::Array2;
//! use onefold::learners::{Pegasos, PegasosOptions};
//! use onefold::tree::Tree;
//! use onefold::{Dataset, Engine, Folds};
//!
//! let x = Array2::from_shape_fn((500, 2), |(i, j)| (i as f64 * (j + 2) as f64).sin());
//! let y = x.column(0).mapv(|v| u32::from(v > 0.3));
//! let data = Dataset::dense(x.view())?.with_classes(y.view(), 2)?;
//! let learner = Pegasos::new(PegasosOptions { fit_intercept: true, ..Default::default() }, 2, 2)?;
//! let folds = Folds::shuffled(500, 10, 0)?;
//! let found = Tree::default().cross_validate(&learner, &data, &folds)?.by_sample(&folds);
//! let hits = found.column(0).iter().zip(&y).filter(|(f, y)| (**f > 0.0) == (**y == 1)).count();
//! println!("accuracy {}", hits as f64 / 500.0);
//! # assert!(hits > 450, "{hits}");
//! # Ok::<(), onefold::Error>(())
//! ```
//!
//! All engines run on the rayon pool they are called in: `pool.install(|| engine.run(…))`; outside a pool, on
//! rayon's global one. Results have the same bits for any number of threads.
//!
//! | module | what it holds |
//! |---|---|
//! | [`data`] | [`Dataset`]: dense or CSR rows, or rows on disk, with targets and weights; checked when it is made |
//! | [`folds`] | [`Folds`], a partition of the samples, and [`Splits`], any train/test pairs |
//! | [`engine`] | [`Engine`], the one call, and [`OutOfFold`], the one result, of all engines |
//! | [`forest`] | decision trees and random forests: columns ranked once for all folds |
//! | [`tree`] | TreeCV: k-fold of incremental learners for at most log2(2k) trainings |
//! | [`merge`] | k-fold of mergeable models: every row is learnt about once |
//! | [`newton`] | logistic regression and other smooth convex losses: Newton's method for all folds side by side |
//! | [`refit`] | the standard method: one training per fold |
//! | [`path`] | lasso and elastic net: all folds from one Gram matrix |
//! | [`scaling`] | affine scalers of the columns, fitted to every training set |
//! | [`svm`] | support vector machines, cross-validated by alpha seeding |
//! | [`text`] | texts as counts of words, read once for all folds |
//! | [`virtual_cv`] | least squares, ridge and kernel ridge: all folds from one factorisation |
//! | [`learners`] | incremental learners, one per file, and their contract with the engines |
//! | `libsvm` | LIBSVM files (feature `libsvm`): a strict, parallel reader, a writer, a memory-mappable copy |
//! | [`stored`] | rows on disk, larger than memory, read block by block |
//! | [`runtime`] | progress and cancellation, exact counters of work, SIMD dispatched at run time |

pub mod data;
pub mod engine;
mod error;
pub mod folds;
pub mod forest;
pub mod learners;
mod least_squares;
#[cfg(feature = "libsvm")]
pub mod libsvm;
mod linalg;
pub mod merge;
pub mod newton;
pub mod path;
pub mod refit;
pub mod runtime;
pub mod scaling;
pub mod stored;
pub mod svm;
pub mod text;
pub mod tree;
pub mod virtual_cv;

#[cfg(feature = "python")]
mod python;

pub use data::Dataset;
pub use engine::{Engine, Job, Keep, OutOfFold};
pub use error::{Error, Result};
pub use folds::{Folds, Resampling, Splits};
pub use runtime::cost::Cost;
pub use runtime::monitor::Monitor;
