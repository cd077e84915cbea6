//! Newton's method without Hessians: the softmax of several classes, and rows of many features.
//!
//! # Problem
//! As in [`newton`](super), for rows with so many features that a p × p Hessian per fold costs
//! too much; and for multinomial logistic regression, whose Hessian has pK rows for K classes:
//!
//! F(φ) = Σ w (ln Σ_c e^{z_c} − z_y) + ½ λ Σ_c ‖β_c‖².
//!
//! # Method
//! Truncated Newton steps: Hd = −g is solved by conjugate gradients, to which H is only the
//! product Hv = Uᵀ(D(Uv)) + λv. For the softmax, D is w(diag(p) − ppᵀ) in every row.
//!
//! 1. One fit to all rows, roughly: it is the start of all folds.
//! 2. All folds advance side by side. An iteration multiplies U, then Uᵀ, with one column per fold and
//!    predictor.
//! 3. The preconditioner is that of the fit to all rows: one factored p × p matrix per class if there are
//!    few features, else the diagonal with the rows of largest leverage.
//! 4. A fold is finished when its relative gradient is below the tolerance.
//!
//! Candidates go from strong to weak penalties; a fold starts from where it was, moved as the fit to all
//! rows has moved.
//!
//! # Exactness
//! The relative gradient is that of [`newton`](super). The softmax does not change if all
//! predictors of a row change by the same number; that of minimum norm has sum zero, as in scikit-learn.
//! Without a penalty, an optimum that is not finite or not unique is reported as NaN.
//!
//! # Two solvers
//! Where Hessians are small, factors of each fold and gradients that are computed from rows in the cache are
//! faster (see `benches/results/newton_solvers.md`). Both start from the same `family`.
//!
//! # Cost
//! Of one iteration of k folds with K predictors: 4·k·K operations for each stored value of X.
//! Memory: the rows transposed if they are sparse, and a few panels of n × kK values.
//!
//! | module | what it holds |
//! |---|---|
//! | `preconditioner`, `low_rank` | approximate inverses of the Hessians |
//! | `problem` | one problem: gradient, line search, conjugate gradients |
//! | `minimise` | truncated Newton steps of many problems |
//! | `solve` | the fit to all rows, then all folds, for every penalty |
//!
//! # References
//! Nash, "A survey of truncated-Newton methods" (2000); Lin, Weng and Keerthi, "Trust
//! region Newton method for logistic regression" (2008).

mod low_rank;
mod minimise;
mod preconditioner;
mod problem;
mod solve;

pub(super) use solve::run;
