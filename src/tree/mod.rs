//! TreeCV: cross-validation of incremental learners.

mod learner;
mod undo;

pub use learner::{Effort, Flat, Learner, Model};
pub use undo::{Forget, Log, Undo};
