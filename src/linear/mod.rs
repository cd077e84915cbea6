//! What the engines of linear models share.
//!
//! | module | what it holds |
//! |---|---|
//! | `training_sets` | the rows of every training set, with their weights |
//! | `fold_map` | the columns of every fold as maps of common columns |
//! | `combination` | columns that are sums of common columns |
//! | `design` | rows behind a map: products with parameters and residuals, Gram matrices |
//! | `problem` | rows and targets of the squared loss, in units that neither overflow nor underflow |
//! | `moments` | sums of products of rows and targets: of all rows, and of training sets by subtraction |
//! | `normal` | these sums behind the map of a fold: its normal equations |
//! | `fitted` | fitted coefficients, and their predictions |
//! | `training_moments` | means and variances of the columns of every training set |
//! | `scaled_rows` | copies of rows behind a map |
//! | `cholesky` | factors of matrices with a unit diagonal |
//! | `reduce` | sums on all threads that do not depend on their number |

#![allow(clippy::doc_markdown)] // formulas are not code

mod cholesky;
mod combination;
mod design;
mod fitted;
mod fold_map;
mod moments;
mod normal;
mod problem;
mod reduce;
mod scaled_rows;
mod training_moments;
mod training_sets;

pub(crate) use cholesky::ScaledCholesky;
pub(crate) use design::Design;
pub(crate) use fitted::{Fitted, ROUNDING, is_constant};
pub use fold_map::{FoldMap, FoldMaps};
pub(crate) use moments::{DowndatedMoments, Moments, PANEL_ROWS, RowPanel, is_sparse, near_mean};
pub(crate) use normal::{MIN_KEPT_FRACTION, NormalEquations};
pub(crate) use problem::{LinearProblem, NormalizedTargets, WeightedTargets, median};
pub(crate) use reduce::{MATRIX_ROWS, blocks, par_map, par_reduce};
pub(crate) use scaled_rows::{RowStore, ScaledLayout, ScaledRows, ScaledValues};
pub use training_moments::{TrainingMoments, training_moments};
pub use training_sets::ClassWeights;
pub(crate) use training_sets::{
    Removed, RowWeights, TrainingSet, TrainingSets, set_index, training_rows,
};
