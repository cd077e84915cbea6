//! Support vector machines, cross-validated by alpha seeding.
//!
//! ```
//! use ndarray::Array2;
//! use onefold::svm::{SvmSpec, Kernel, Seeded};
//! use onefold::{Dataset, Engine, Folds};
//!
//! let x = Array2::from_shape_fn((200, 2), |(i, j)| (i as f64 * (j + 2) as f64).sin());
//! let y = x.map_axis(ndarray::Axis(1), |row| u32::from(row.dot(&row) > 1.0));
//! let data = Dataset::dense(x.view())?.with_classes(y.view(), 2)?;
//! let kernels = vec![Kernel::Rbf { gamma: 2.0 }];
//! let candidate = SvmSpec { kernels, c: 10.0, ..Default::default() };
//! let folds = Folds::shuffled(200, 10, 0)?;
//! let found = Seeded::default().cross_validate(&candidate, &data, &folds)?.by_sample(&folds);
//! // Positive for the second class of the pair.
//! let hits = found.column(0).iter().zip(&y).filter(|(f, y)| (**f > 0.0) == (**y == 1)).count();
//! println!("accuracy {}", hits as f64 / 200.0);
//! # assert!(hits > 180, "{hits}");
//! # Ok::<(), onefold::Error>(())
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `kernel` | kernel functions and blocks of kernel values |
//! | `gram` | the kernel matrix of all samples, computed once: whole, cached or quantised |
//! | `row_cache` | LRU cache of kernel rows |
//! | `definite` | test of a kernel matrix for negative eigenvalues |
//! | `memory` | the memory budget of kernel matrices |
//! | `problem` | binary problems: one per pair of classes, or one for a regression |
//! | `multiclass` | pairs of classes, and their vote |
//! | `dual` | the dual of a binary problem: variables, bounds, starts, solutions |
//! | `smo` | the solver of the dual: working set, conjugate steps, shrinking |
//! | `seeding` | starts from the solution of a similar problem, one file per rule |
//! | `candidate` | what is fitted: kernel, penalties, solver options |
//! | `cv` | cross-validation of candidates over shared kernel matrices, by a warm-start plan |
//! | `model` | fitted models, and their decision values for new rows |
//!
//! `dual`, `gram`, `seeding` and `smo` are public with the feature `internals`, for benches and tests.
//!
//! Indices: a *row* is a row of X, a *sample* a row of the kernel matrix (sorted by class), a
//! *variable* a dual variable of a binary problem, a *position* an index into the solver's active set.

#![allow(clippy::doc_markdown)] // β_T and K_XT are formulas, not code

mod candidate;
mod cv;
mod decision;
mod definite;
#[cfg(feature = "internals")]
pub mod dual;
#[cfg(not(feature = "internals"))]
#[allow(dead_code, unreachable_pub)]
mod dual;
#[cfg(feature = "internals")]
pub mod gram;
#[cfg(not(feature = "internals"))]
#[allow(dead_code, unreachable_pub)]
mod gram;
mod kernel;
mod memory;
mod model;
mod multiclass;
mod problem;
mod row_cache;
#[cfg(feature = "internals")]
pub mod seeding;
#[cfg(not(feature = "internals"))]
#[allow(dead_code, unreachable_pub)]
mod seeding;
#[cfg(feature = "internals")]
pub mod smo;
#[cfg(not(feature = "internals"))]
#[allow(dead_code, unreachable_pub)]
mod smo;

pub use self::candidate::SvmSpec;
pub use self::cv::Seeded;
pub use self::kernel::Kernel;
pub use self::memory::Budget;
pub use self::model::{Model, Predictor, fit};
pub use self::multiclass::vote;
pub use self::seeding::Seeding;
pub use self::smo::SolverOptions;
pub use crate::linear::ClassWeights;
