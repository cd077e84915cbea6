//! Newton's method for all folds side by side: smooth convex losses of a linear predictor.
//!
//! **Problem.** For every fold, every penalty λ and every output, minimise
//!
//! F(φ) = Σ w ℓ(y, z) + ½ λ‖β‖²,  z = ⟨β, x⟩ + b,
//!
//! over the rows that are not in the fold, and predict z of the rows that are. The losses are those of
//! [`Loss`]: logistic regression, generalised linear models, squared hinge and ε-insensitive losses.
//!
//! **Notation.** H is the Hessian of the fit to all rows, D the rows that a fold removes, ℓ' and ℓ''
//! derivatives by z. All training sets share the rows u = (x − c, 1); their own parameters, behind a
//! scaler, with or without an intercept, are linear maps of the shared ones (`coordinates`).
//!
//! **Method.**
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
//! w|ℓ'||xⱼ| over all rows at the best constant predictor: it does not depend on units.
//!
//! Losses are convex, so the derivative along a step tells whether it went too far. The predictors along
//! such a step are computed once, and its length from them; values of F are never computed.
//!
//! **Cost.** With P parameters, one Hessian is O(n·P²) and one pass over all folds O(n·P·k); some eight
//! Hessians for the fit to all rows, one for the first steps of all folds, then two to twenty passes,
//! few where the folds are alike.
//!
//! **Example.** Ten folds of logistic regression for two penalties:
//!
//! ```
//! use ndarray::{Array2, Axis};
//! use onefold::newton::{Family, Intercept, Loss, solve};
//! use onefold::{Dataset, Folds, Monitor};
//!
//! let x = Array2::from_shape_fn((300, 3), |(i, j)| (i as f64 * (j + 2) as f64).sin());
//! let y = x.column(0).mapv(|v| f64::from(v > 0.1)).insert_axis(Axis(1));
//! let family = Family {
//!     loss: Loss::Logistic,
//!     intercept: Intercept::Free,
//!     scaling: None,
//!     class_weights: None,
//! };
//! let folds = Folds::shuffled(300, 10, 0)?;
//! let penalties = Array2::from_shape_fn((2, 11), |(candidate, _)| [0.1, 10.0][candidate]);
//! let data = Dataset::dense(x.view())?;
//! let monitor = Monitor::new();
//! let found = solve(&family, &data, y.view(), penalties.view(), &folds, 1e-8.into(), &monitor)?;
//! assert_eq!(found.predictors.dim(), (300, 2, 1));
//! assert!(found.relative_gradients.iter().all(|gradient| *gradient <= 1e-8));
//! # Ok::<(), onefold::Error>(())
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | `loss` | losses and their derivatives |
//! | `samples` | targets and weights of each training set |
//! | `coordinates` | parameters of a training set and shared parameters |
//! | `penalties` | penalties of all candidates and training sets |
//! | `design` | rows in blocks, centred, with a constant column |
//! | `passes` | gradients and Hessians of many problems in one pass over the rows |
//! | `accuracy` | when a problem is solved, and when it is left as it is |
//! | `line_search` | lengths of steps |
//! | `factor` | factors of Hessians, and of Hessians without one row |
//! | `inverse_hessian` | a factored Hessian and the updates since it was computed |
//! | `minimise` | steps of many problems side by side |
//! | `solve` | the fit to all rows, then all folds, for every penalty |
//! | `leave_one_out` | one step for each row, with a bound on its error; more where it is too large |
//! | `certificate` | bounds on the error of steps |
//! | [`matrix_free`] | multinomial logistic regression, and rows of many features |

#![allow(clippy::doc_markdown)] // formulas are not code

mod accuracy;
mod certificate;
mod coordinates;
mod design;
mod factor;
mod inverse_hessian;
mod leave_one_out;
mod line_search;
mod loss;
pub mod matrix_free;
mod minimise;
mod passes;
mod penalties;
mod samples;
mod solve;

pub use accuracy::Accuracy;
pub use coordinates::Intercept;
pub use leave_one_out::{LeaveOneOut, RowStatus, leave_one_out};
pub use loss::Loss;
pub use samples::ClassWeights;
pub use solve::{Family, Solutions, fit, solve};
