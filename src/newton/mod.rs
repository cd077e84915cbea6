//! Newton's method for all folds side by side: smooth convex losses of a linear predictor.
//!
//! # Problem
//! For every fold, every penalty λ and every output, minimise
//!
//! F(φ) = Σ w ℓ(y, z) + ½ λ‖β‖²,  z = ⟨β, x⟩ + b,
//!
//! over the rows that are not in the fold, and predict z of the rows that are. The losses are those of
//! [`Loss`]: logistic regression, generalised linear models, squared hinge and ε-insensitive losses.
//!
//! # Notation
//! H is the Hessian of the fit to all rows, D the rows that a fold removes, ℓ' and ℓ''
//! derivatives by z. All training sets share the rows u = (x − c, 1); the parameters of a fold, behind a
//! scaler, with or without an intercept, are linear maps of the common ones (`linear::fold_map`).
//!
//! # Method
//!
//! 1. One fit to all rows.
//! 2. At its optimum the gradient of fold D is minus the sum of ℓ'u over D, and its Hessian is
//!    H − Σ_D ℓ''uuᵀ: the first Newton steps of all folds together read every row once.
//! 3. All folds advance side by side: one pass over the rows computes the gradients of all of them,
//!    as the products UΘ and UᵀR with one column per fold. A step uses the factor that the fold has,
//!    with BFGS updates; where the gradient decreases too slowly, the Hessian is computed anew.
//! 4. A fold is finished when its relative gradient is below the tolerance, or after the passes that
//!    [`Accuracy`] grants.
//!
//! The *relative gradient* is the largest, over the parameters, of |∂F/∂φⱼ| / Sⱼ, where Sⱼ is the sum of
//! w|ℓ'||xⱼ| over all rows at the best constant predictor: it does not depend on units. Where a fold
//! holds out nearly all of that sum, it is that of the training set.
//!
//! Losses are convex, so the derivative along a step tells whether it went too far. The predictors along
//! such a step are computed once, and its length from them; values of F are never computed.
//!
//! # Cost
//! With P parameters, one Hessian is O(n·P²) and one pass over all folds O(n·P·k); some eight
//! Hessians for the fit to all rows, one for the first steps of all folds, then two to twenty passes,
//! few where the folds are alike.
//!
//! # Example
//! Ten folds of logistic regression for two penalties:
//!
//! ```
//! use ndarray::Array2;
//! use onefold::newton::{GlmSpec, Newton, Penalty};
//! use onefold::{Dataset, Engine, Folds, Job, Monitor};
//!
//! let x = Array2::from_shape_fn((300, 3), |(i, j)| (i as f64 * (j + 2) as f64).sin());
//! let y = x.column(0).mapv(|v| u32::from(v > 0.1));
//! let data = Dataset::dense(x.view())?.with_classes(y.view(), 2)?;
//! let models = [0.1, 10.0].map(|penalty| GlmSpec { penalty: Penalty::Sum(penalty), ..GlmSpec::default() });
//! let (folds, monitor) = (Folds::shuffled(300, 10, 0)?, Monitor::new());
//! let job = Job::new(&data, &folds, &monitor);
//! let found = Newton::default().out_of_fold(&models.each_ref(), &job)?;
//! assert_eq!(found[0].outputs.dim(), (300, 1));
//! assert!(found[0].status.relative_gradients.iter().all(|gradient| *gradient <= 1e-8));
//! # Ok::<(), onefold::Error>(())
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | `loss` | losses and their derivatives |
//! | `spec` | a model: loss, intercept, penalty, scaling, weights of classes |
//! | `engine` | the choice of the method, and the call of all engines |
//! | `family` | what all problems share, and the state of one |
//! | `losses` | derivatives of the losses of all rows |
//! | `samples` | targets, and the weights of each training set |
//! | `ridge` | the penalty of a training set |
//! | `passes` | gradients and Hessians of many problems in one pass over the rows |
//! | `accuracy` | when a problem is solved, and when it is left as it is |
//! | `line_search` | lengths of steps |
//! | `factor` | factors of Hessians, and of Hessians without one row |
//! | `inverse_hessian` | a factored Hessian and the updates since it was computed |
//! | `minimise` | steps of many problems side by side |
//! | `solve` | the fit to all rows, then all folds, for every penalty |
//! | `leave_one_out` | one step for each row, with a bound on its error; more where it is too large |
//! | `certificate` | bounds on the error of steps |
//! | `matrix_free` | multinomial logistic regression, and rows of many features |

#![allow(clippy::doc_markdown)] // formulas are not code

mod accuracy;
mod certificate;
mod engine;
mod factor;
mod family;
mod inverse_hessian;
mod leave_one_out;
mod line_search;
mod loss;
mod losses;
mod matrix_free;
mod minimise;
mod passes;
mod ridge;
mod samples;
mod solve;
mod spec;
mod vectors;

pub use accuracy::Accuracy;
pub use engine::{Method, Newton};
pub use leave_one_out::{LeaveOneOut, RowStatus};
pub use loss::Loss;
pub use spec::{GlmSpec, Intercept, Link, Penalty};

pub(crate) use family::Subproblem;
pub(crate) use samples::Samples;
pub(crate) use spec::penalties;
pub(crate) use vectors::{dot, weigh};

pub use crate::linear::ClassWeights;
