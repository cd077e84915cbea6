//! What most programs use: `use onefold::prelude::*`.

pub use crate::data::Dataset;
pub use crate::engine::{Engine, Job, Keep, OutOfFold};
pub use crate::error::{Error, Result};
pub use crate::folds::{Folds, Resampling, Splits};
pub use crate::merge::Merge;
pub use crate::newton::{GlmSpec, Newton};
pub use crate::path::{ElasticNet, ElasticNetSpec};
pub use crate::refit::Refit;
pub use crate::runtime::monitor::Monitor;
pub use crate::svm::{Kernel, Seeded, SvmSpec};
pub use crate::tree::Tree;
pub use crate::virtual_cv::{KernelRidge, LinearModel, Virtual};
