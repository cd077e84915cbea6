//! Support vector machines, cross-validated by alpha seeding.
//!
//! | module | what it holds |
//! |---|---|
//! | [`kernel`] | kernel functions |
//! | [`gram`] | the kernel matrix of all samples, computed once |
//! | [`memory`] | how much of it may be kept |
//! | [`smo`] | the solver of the dual |
//! | [`seeding`] | starts of a fold from the solution of another |
//! | [`machine`] | one machine a pair of classes, or one for a regression |
//! | [`multiclass`] | pairs of classes, and their vote |
//! | [`kfold`] | cross-validation of candidates on one set of kernel values |
//! | [`model`] | fitted machines, and their decisions for new rows |

#![allow(clippy::doc_markdown)] // β_T and K_XT are formulas, not code

mod definite;
mod direction;
pub mod gram;
mod kept;
pub mod kernel;
pub mod kfold;
pub mod machine;
pub mod memory;
pub mod model;
pub mod multiclass;
mod passes;
mod regression;
mod rounds;
pub mod seeding;
pub mod smo;
mod state;
