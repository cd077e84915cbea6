//! Cross-validation for about the price of one fit.
//!
//! Out-of-fold outputs for every sample, whatever the estimator; scores and searches are computed from
//! them. The crate is the core of the Python package `onefold` and knows nothing of Python outside
//! `src/python/`.
//!
//! All engines are called alike. They return one row of outputs per held-out row; of two classes,
//! outputs are positive for the second.
//!
//! ```
//! use ndarray::Array2;
//! use onefold::learners::{Pegasos, PegasosOptions};
//! use onefold::path::Penalty;
//! use onefold::prelude::*;
//!
//! let x = Array2::from_shape_fn((500, 2), |(i, j)| (i as f64 * (j + 2) as f64).sin());
//! let y = x.column(0).mapv(|value| 3.0 * value - 0.9);
//! let codes = y.mapv(|value| u32::from(value > 0.0));
//! let folds = Folds::shuffled(500, 10, 0)?;
//!
//! // A learner that sees one row after the other, a support vector machine, logistic regression.
//! let data = Dataset::dense(x.view())?.with_classes(codes.view(), 2)?;
//! let pegasos = Pegasos::new(PegasosOptions { fit_intercept: true, ..Default::default() }, 2, 2)?;
//! let svm = SvmSpec { kernels: vec![Kernel::Rbf { gamma: 0.5 }], ..Default::default() };
//! let pegasos = Tree::default().cross_validate(&pegasos, &data, &folds)?;
//! let svm = Seeded::default().cross_validate(&svm, &data, &folds)?;
//! let logistic = Newton::default().cross_validate(&GlmSpec::default(), &data, &folds)?;
//!
//! // Ridge regression and a lasso.
//! let data = Dataset::dense(x.view())?.with_values(y.view())?;
//! let ridge = LinearModel { alpha: 1.0, ..Default::default() };
//! let penalty = Penalty { alpha: 0.01, l1_ratio: 1.0 };
//! let lasso = ElasticNetSpec { penalty, ..Default::default() };
//! let ridge = Virtual.cross_validate(&ridge, &data, &folds)?;
//! let lasso = ElasticNet.cross_validate(&lasso, &data, &folds)?;
//!
//! for result in [pegasos, svm, logistic, ridge, lasso] {
//!     let outputs = result.by_sample(&folds);
//!     let hits = outputs.column(0).iter().zip(&y).filter(|(f, y)| (**f > 0.0) == (**y > 0.0)).count();
//!     println!("accuracy {}", hits as f64 / 500.0);
//! #     assert!(hits > 450, "{hits}");
//! }
//! # Ok::<(), onefold::Error>(())
//! ```
//!
//! All engines run on the rayon pool they are called in: `pool.install(|| engine.run(…))`; outside
//! a pool, on rayon's global one. Results have the same bits for any number of threads.
//!
//! | module | what it holds |
//! |---|---|
//! | [`data`] | [`Dataset`]: dense or CSR rows, or rows on disk, with targets and weights; checked when it is made |
//! | [`folds`] | [`Folds`], a partition of the samples, and [`Splits`], any train/test pairs |
//! | [`engine`] | [`Engine`], the one call, and [`OutOfFold`], the one result, of all engines |
//! | [`forest`] | decision trees and random forests: columns ranked once for all folds |
//! | [`tree`] | TreeCV: k-fold of incremental learners for at most log2(2k) trainings |
//! | [`linear`] | what engines of linear models share: the columns and the weights of every training set |
//! | [`merge`] | k-fold of mergeable models: every row is learnt about once |
//! | [`newton`] | logistic regression and other smooth convex losses: Newton's method for all folds side by side |
//! | [`refit`] | the standard method: one training per fold |
//! | [`path`] | lasso and elastic net: all folds from one Gram matrix |
//! | [`svm`] | support vector machines, cross-validated by alpha seeding |
//! | [`text`] | texts as counts of words, read once for all folds |
//! | [`virtual_cv`] | least squares, ridge and kernel ridge: all folds from one factorisation |
//! | [`learners`] | incremental learners, one per file, and their contract with the engines |
//! | `libsvm` | LIBSVM files (feature `libsvm`): a strict, parallel reader, a writer, a memory-mappable copy |
//! | `stored` | rows on disk (feature `stored`), larger than memory, read block by block |
//! | [`runtime`] | progress and cancellation, exact counters of work |
//! | [`prelude`] | what most programs use |
//!
//! | feature | what it adds |
//! |---|---|
//! | `registry` (default) | learners by name, with hyper-parameters from a dictionary; saved states (serde) |
//! | `stored` (default) | rows on disk (tempfile) |
//! | `libsvm` | LIBSVM files |
//! | `compression` (default) | `libsvm`, with compressed files; the only feature that compiles C |
//! | `internals` | parts of engines and the SIMD kernels, public for benches and tests; they may change with any version |

pub mod data;
pub mod engine;
mod error;
pub mod folds;
pub mod forest;
pub mod learners;
#[cfg(feature = "libsvm")]
pub mod libsvm;
mod linalg;
pub mod linear;
pub mod merge;
pub mod newton;
pub mod path;
pub mod prelude;
pub mod refit;
pub mod runtime;
#[cfg(feature = "stored")]
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
