//! What engines of the squared loss have in common: second moments of rows and targets, the rows that
//! a fold removes, and fitted coefficients.

#![allow(clippy::doc_markdown)] // formulas are not code

mod fitted;
mod held_out;
mod moments;
mod normal;
mod problem;

pub(crate) use fitted::{Fitted, ROUNDING, is_constant};
pub(crate) use held_out::{HeldOut, n_removed, training_rows};
pub(crate) use moments::{AffineFrame, Moments, PANEL_ROWS, RowPanel, is_sparse, par_sum};
pub(crate) use normal::{MIN_KEPT_FRACTION, NormalEquations, has_lost_digits};
pub(crate) use problem::{LinearProblem, NormalizedTargets, WeightedTargets};
