//! Support vector machines, cross-validated by alpha seeding.
//!
//! ```
//! use ndarray::Array2;
//! use onefold::svm::kernel::Kernel;
//! use onefold::svm::{Candidate, Seeded};
//! use onefold::{Dataset, Engine, Folds};
//!
//! let x = Array2::from_shape_fn((200, 2), |(i, j)| (i as f64 * (j + 2) as f64).sin());
//! let y = x.map_axis(ndarray::Axis(1), |row| u32::from(row.dot(&row) > 1.0));
//! let data = Dataset::dense(x.view())?.with_classes(y.view(), 2)?;
//! let kernels = vec![Kernel::Rbf { gamma: 2.0 }];
//! let candidate = Candidate { kernels, c: 10.0, ..Default::default() };
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
//! | [`kernel`] | kernel functions and blocks of kernel values |
//! | [`gram`] | the kernel matrix of all samples, computed once: whole, cached or quantised |
//! | `row_cache` | LRU cache of kernel rows |
//! | `definite` | test of a kernel matrix for negative eigenvalues |
//! | [`memory`] | the memory budget of kernel matrices |
//! | [`problem`] | binary problems: one per pair of classes, or one for a regression |
//! | [`multiclass`] | pairs of classes, and their vote |
//! | [`dual`] | the dual of a binary problem: variables, bounds, starts, solutions |
//! | [`smo`] | the solver of the dual: working set, conjugate steps, shrinking |
//! | [`seeding`] | starts from the solution of a similar problem, one file per rule |
//! | [`candidate`] | what is fitted: kernel, penalties, solver options |
//! | [`cv`] | cross-validation of candidates over shared kernel matrices, by a warm-start plan |
//! | [`model`] | fitted models, and their decision values for new rows |
//!
//! Indices: a *row* is a row of X, a *sample* a row of the kernel matrix (sorted by class), a
//! *variable* a dual variable of a binary problem, a *position* an index into the solver's active set.

#![allow(clippy::doc_markdown)] // β_T and K_XT are formulas, not code

pub mod candidate;
pub mod cv;
mod decision;
mod definite;
pub mod dual;
pub mod gram;
pub mod kernel;
pub mod memory;
pub mod model;
pub mod multiclass;
pub mod problem;
mod row_cache;
pub mod seeding;
pub mod smo;

pub use self::candidate::Candidate;
pub use self::cv::Seeded;
