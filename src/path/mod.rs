//! Elastic nets of all folds for about the price of one Gram matrix.
//!
//! # Problem
//! For every fold and every penalty (α, ρ), with training rows of weight W = Σw,
//!
//! min (1/2W) Σ w(y − xᵀβ − b)² + αρ‖β‖₁ + ½α(1 − ρ)‖β‖²,
//!
//! perhaps with β ≥ 0, without b, or behind an affine scaler that is fitted to the training rows.
//!
//! # Method
//! Times W it is the problem of `solver` with λ₁ = Wαρ and λ₂ = Wα(1 − ρ), for rows that are
//! weighted by √w, centred and scaled. The solver needs XᵀX and Xᵀy only:
//!
//! | rows | what is computed | module |
//! |---|---|---|
//! | n ≥ p | second moments once, minus those of the fold, centred and scaled in closed form | `gram` |
//! | p > n, or wide and sparse | the columns of the training rows; residuals are updated | `columns` |
//!
//! Penalties of one ρ are solved from the largest α to the smallest, each from the solution before it;
//! with many folds, from the solution of all rows instead. The squared errors of a fold are a quadratic
//! form of the moments of its held-out rows: with u = (x, y, 1) and v = (−β, 1, −b), Σ w(uᵀv)² =
//! vᵀ(Σ w·uuᵀ)v. Where fewer than ten digits would be left, rows are predicted.
//!
//! # Exactness
//! Every problem is solved to a duality gap of `tol`·Σw(y − ȳ)²; the gaps reached are in
//! the result. Exact steps on the support usually leave rounding error only. The optimum does not depend
//! on the method; coefficients of features that repeat one another may, predictions do not.
//!
//! # Cost
//! Of k folds and Λ penalties, with supports of s features:
//!
//! | | time | memory besides X |
//! |---|---|---|
//! | n ≥ p | O(n·p² + kΛ·(s³ + sp·sweeps)) | O(p²) per thread |
//! | p > n | O(kΛ·(n·p + sn·sweeps + s³)) | the columns of a fold per thread |
//!
//! # Example
//! Errors of a path of lassos in every fold:
//!
//! ```
//! use ndarray::{Array2, Axis};
//! use onefold::path::{ElasticNet, ElasticNetSpec, PathOutputs, Penalty};
//! use onefold::{Dataset, Folds, Monitor};
//!
//! let x = Array2::from_shape_fn((200, 5), |(i, j)| (i as f64 * (j + 2) as f64).sin());
//! let y = x.column(0).mapv(|v| 3.0 * v + 1.0).insert_axis(Axis(1));
//! let data = Dataset::dense(x.view())?.with_values(y.view())?;
//! let lassos = [1.0, 0.01].map(|alpha| ElasticNetSpec {
//!     penalty: Penalty { alpha, l1_ratio: 1.0 },
//!     ..Default::default()
//! });
//! let (folds, monitor) = (Folds::shuffled(200, 5, 0)?, Monitor::new());
//! let wanted = PathOutputs { errors: true, ..Default::default() };
//! let found = ElasticNet.solve(&lassos.each_ref(), &data, &folds, wanted, &monitor)?;
//! assert!(found.errors[[0, 1, 0]] < 1e-3 && found.errors[[0, 0, 0]] > 1.0);
//! # Ok::<(), onefold::Error>(())
//! ```
//!
//! # References
//! Friedman, Hastie and Tibshirani, "Regularization paths for generalized linear models
//! via coordinate descent" (2010); Massias, Gramfort and Salmon, "Celer" (2018), for working sets;
//! Osborne, Presnell and Turlach, "A new approach to variable selection in least squares problems"
//! (2000), for exact steps on the support.

#![allow(clippy::doc_markdown)] // formulas are not code

mod columns;
mod curvature;
mod exact_steps;
mod fold;
mod fold_moments;
mod gram;
mod logistic;
mod proximal;
mod result;
mod row_products;
mod solver;
mod training;

pub use logistic::SparseLogistic;
pub use result::{AllRowsFit, PathResult};

use std::sync::Arc;

use ndarray::Array2;

use crate::data::{Dataset, Targets, with_layout};
use crate::engine::{Finished, Job, group};
use crate::linear::{self, FoldMaps, LinearProblem, NormalizedTargets};
use crate::runtime::memory;
use crate::{Engine, Error, Monitor, Resampling, Result};
use fold::FoldProblem;

/// α and ρ of one elastic net; ρ = 1 is the lasso.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Penalty {
    /// α, positive.
    pub alpha: f64,
    /// ρ, from 0 to 1.
    pub l1_ratio: f64,
}

/// One elastic net: a candidate of [`ElasticNet`].
#[derive(Clone, Debug, PartialEq)]
pub struct ElasticNetSpec {
    /// α and ρ.
    pub penalty: Penalty,
    /// Whether there is an intercept: unpenalised, estimated in every fold.
    pub fit_intercept: bool,
    /// Whether coefficients must not be negative.
    pub positive: bool,
    /// The duality gap at which the problem is solved, relative to Σw(y − ȳ)².
    pub tol: f64,
    /// The scaling of the columns in every fold.
    pub scaling: Option<Arc<FoldMaps>>,
}

impl Default for ElasticNetSpec {
    /// The lasso with α = 1.
    fn default() -> Self {
        Self {
            penalty: Penalty {
                alpha: 1.0,
                l1_ratio: 1.0,
            },
            fit_intercept: true,
            positive: false,
            tol: 1e-12,
            scaling: None,
        }
    }
}

impl ElasticNetSpec {
    /// Whether two elastic nets differ in the penalty only.
    fn is_of_path(&self, other: &Self) -> bool {
        let Self {
            fit_intercept,
            positive,
            tol,
            scaling,
            ..
        } = other;
        (self.fit_intercept, self.positive, self.tol) == (*fit_intercept, *positive, *tol)
            && self.scaling == *scaling
    }

    fn check(&self) -> Result<()> {
        let Penalty { alpha, l1_ratio } = self.penalty;
        if !(alpha > 0.0 && alpha.is_finite()) {
            return Err(Error::parameter("alpha", "positive and finite", alpha));
        }
        if !(0.0..=1.0).contains(&l1_ratio) {
            return Err(Error::parameter("l1_ratio", "from 0 to 1", l1_ratio));
        }
        if !(self.tol > 0.0 && self.tol < 1.0) {
            return Err(Error::parameter("tol", "between 0 and 1", self.tol));
        }
        Ok(())
    }
}

/// Elastic nets that differ in the penalty.
struct PenaltyPath<'a> {
    /// The first of them.
    spec: &'a ElasticNetSpec,
    /// In any order.
    penalties: Vec<Penalty>,
}

impl<'a> PenaltyPath<'a> {
    fn new(specs: &[&'a ElasticNetSpec]) -> Result<Self> {
        let Some(spec) = specs.first() else {
            return Err(Error::parameter("alpha", "one penalty or more", "none"));
        };
        specs.iter().try_for_each(|spec| spec.check())?;
        if !specs.iter().all(|other| other.is_of_path(spec)) {
            let value = "more";
            return Err(Error::parameter("penalty", "all that differs", value));
        }
        Ok(Self {
            spec,
            penalties: specs.iter().map(|spec| spec.penalty).collect(),
        })
    }

    /// Positions of the penalties in the order in which they are solved.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.penalties.len()).collect();
        order.sort_by(|&i, &j| {
            let (a, b) = (self.penalties[i], self.penalties[j]);
            a.l1_ratio
                .total_cmp(&b.l1_ratio)
                .then(b.alpha.total_cmp(&a.alpha))
        });
        order
    }
}

/// What [`ElasticNet::solve`] computes besides duality gaps.
#[allow(clippy::struct_excessive_bools)] // independent of each other
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathOutputs {
    /// Predictions of held-out rows.
    pub predictions: bool,
    /// Mean squared errors of held-out rows, by the weights of the samples.
    pub errors: bool,
    /// Coefficients of every fold.
    pub coefficients: bool,
    /// The fit to all rows, with its coefficients.
    pub all_rows: bool,
    /// Folds that do not determine a model are listed, with NaN for whatever is computed of them.
    /// Otherwise the first of them is an error.
    pub undetermined: bool,
}

/// The engine of elastic nets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ElasticNet;

impl Engine<ElasticNetSpec> for ElasticNet {
    /// Candidates that differ in the penalty only share the moments of the rows.
    fn run(
        &self,
        candidates: &[&ElasticNetSpec],
        job: &Job<'_>,
        finished: &mut Finished<'_>,
    ) -> Result<()> {
        let wanted = PathOutputs {
            predictions: true,
            coefficients: job.keep.coefficients,
            undetermined: job.keep.undetermined,
            ..PathOutputs::default()
        };
        for members in group(candidates, |a, b| a.is_of_path(b)) {
            let specs: Vec<_> = members.iter().map(|&index| candidates[index]).collect();
            let found = self.solve(&specs, job.data, job.folds, wanted, job.monitor)?;
            for (at, index) in members.into_iter().enumerate() {
                finished(index, found.of_penalty(at, job));
            }
        }
        Ok(())
    }
}

impl ElasticNet {
    /// Solves every fold for elastic nets that differ in the penalty: errors without outputs, the fit to
    /// all rows.
    pub fn solve(
        &self,
        specs: &[&ElasticNetSpec],
        data: &Dataset<'_>,
        folds: &dyn Resampling,
        wanted: PathOutputs,
        monitor: &Monitor,
    ) -> Result<PathResult> {
        let path = &PenaltyPath::new(specs)?;
        data.check_samples(folds.n_samples())?;
        if let Some(scaling) = &path.spec.scaling {
            scaling.check(folds.n_splits(), data.n_features())?;
        }
        let (centred, target_centres) = centred_targets(data, path.spec.fit_intercept)?;
        let centred = data.with_values(centred.view())?;
        let targets = NormalizedTargets::new(&centred)?;
        with_layout!(&centred, |examples| {
            let linear = LinearProblem {
                rows: *examples.rows(),
                targets: targets.view(),
            };
            let mut problem = FoldProblem {
                linear,
                path,
                order: path.order(),
                unit: targets.unit,
                target_centres,
                folds,
                wanted,
                moments: None,
            };
            problem.prepare(monitor)?;
            result::collect(&problem, monitor)
        })
    }
}

/// Targets about their medians, and the medians: zero without an intercept. Unlike the mean, the median
/// of targets of which one is far from the others is near the others, so that they keep their digits.
fn centred_targets(data: &Dataset<'_>, is_centred: bool) -> Result<(Array2<f64>, Vec<f64>)> {
    let Targets::Values { values, n_outputs } = data.targets() else {
        return Err(Error::Parameter {
            name: "y",
            rule: "numbers",
            value: "classes or nothing".into(),
        });
    };
    let shape = (data.n_rows(), n_outputs);
    memory::check_shape::<f64>("centred targets", &[2, shape.0, shape.1])?;
    let mut centred = Array2::from_shape_fn(shape, |(i, o)| values[i * n_outputs + o]);
    let mut medians = vec![0.0; n_outputs];
    if is_centred && shape.0 > 0 {
        for (median, mut column) in medians.iter_mut().zip(centred.columns_mut()) {
            *median = linear::median(column.iter().copied());
            column -= *median;
        }
    }
    Ok((centred, medians))
}
