//! Gaussian density: one normal distribution.
//!
//! # Problem
//! ln N(x; μ, Σ + εI), with mean μ and covariance Σ (by maximum likelihood, so divided by the
//! weight) of the rows seen, and ε = `reg_covar`.
//!
//! # Method
//! *Diagonal*: the [moments](super::moments) of each feature. *Full*: the [scatter](super::scatter)
//! of the features, and a Cholesky factor computed at each evaluation, so that no error accumulates
//! from fold to fold.
//!
//! # Cost
//! For p features:
//!
//! | operation | diagonal | full |
//! |---|---|---|
//! | update with a row | 3 × stored values of the row | p²/2 |
//! | evaluate m rows | p + m × stored values of a row | p³/6 + m·p²/2 multiplications |
//! | copy, merge | 3p | p²/2 |
//!
//! A sparse row costs p²/2 as well in the full form: sums of its products alone would cost less,
//! but would lose the digits that a mean far from zero takes.
//!
//! Outputs: one, the log density.

use ndarray::{Array1, Axis};

use super::learner::{CostModel, Fitted, Learner, same_type};
use super::moments::{self, DiagonalGaussians, Moments, TotalWeight};
use super::scatter::{Centering, Scatter, densify};
use super::state::State;
use super::undo::Undo;
use super::{HyperParameters, check_not_negative, hyper_parameters};
use super::{state_methods, update_method};
use crate::data::{Dataset, Examples, Layout, Row, with_layout};
use crate::linalg::packed;
use crate::runtime::simd::{self, Simd, WithSimd};
use crate::{Error, Result};

/// The shape of the covariance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "registry",
    derive(serde::Deserialize),
    serde(rename_all = "lowercase")
)]
pub enum Covariance {
    /// Any covariance.
    #[default]
    Full,
    /// Independent features.
    Diagonal,
}

hyper_parameters! {
    /// Hyper-parameters of [`GaussianDensity`].
    #[derive(Clone, Copy, PartialEq)]
    pub struct GaussianDensityOptions {
        /// The shape of the covariance.
        covariance: Covariance = Covariance::Full;
        /// What is added to every variance.
        reg_covar: f64 = 1e-6, check_not_negative;
    }
}

/// A normal distribution.
///
/// State: one vector with the moments of each feature and one scalar, the weight of all rows
/// (diagonal), or one vector with a scatter (full).
#[derive(Clone, Debug)]
pub struct GaussianDensity {
    options: GaussianDensityOptions,
    n_features: usize,
    state: State,
}

impl GaussianDensity {
    /// A density without rows.
    pub fn new(options: GaussianDensityOptions, n_features: usize) -> Result<Self> {
        options.check()?;
        let mut density = Self {
            options,
            n_features,
            state: State::default(),
        };
        let what = format_args!("a density of X with {n_features} features");
        density.state = match options.covariance {
            Covariance::Full => State::zeros(what, 1, density.scatter().len(), 0)?,
            Covariance::Diagonal => State::zeros(what, 1, n_features.saturating_mul(3), 1)?,
        };
        Ok(density)
    }

    /// The mean.
    pub fn mean(&self) -> Array1<f64> {
        match self.options.covariance {
            Covariance::Full => self.scatter().means(self.state.vector(0)).to_vec().into(),
            Covariance::Diagonal => self.moments().map(|(mean, _)| mean).collect(),
        }
    }

    /// The covariance, without ε: its diagonal, or its lower triangle row after row.
    pub fn covariance(&self) -> Vec<f64> {
        match self.options.covariance {
            Covariance::Full => {
                let weight = self.state.vector(0)[0];
                let sums = self.scatter().triangle(self.state.vector(0)).iter();
                sums.map(|s| if weight > 0.0 { s / weight } else { 0.0 })
                    .collect()
            }
            Covariance::Diagonal => self.moments().map(|(_, variance)| variance).collect(),
        }
    }

    fn scatter(&self) -> Scatter {
        Scatter {
            n: self.n_features,
            centering: Centering::Means,
        }
    }

    /// The moments of the features and the weight of the diagonal form.
    fn diagonal(&self) -> (&[Moments], f64) {
        (self.state.vector(0).as_chunks().0, self.state.scalars()[0])
    }

    /// Means and variances of the diagonal form.
    fn moments(&self) -> impl Iterator<Item = (f64, f64)> {
        let (moments, weight) = self.diagonal();
        let total = TotalWeight::new(weight);
        moments.iter().map(move |m| total.mean_variance(m))
    }

    fn singular(&self) -> Error {
        Error::Parameter {
            name: "reg_covar",
            rule: "large enough to make the covariance of the training rows positive definite",
            value: self.options.reg_covar.to_string(),
        }
    }
}

impl GaussianDensity {
    fn learn<X: Layout, U: Undo>(
        &mut self,
        data: &Examples<'_, X>,
        rows: &[usize],
        undo: &mut U,
    ) -> Result<()> {
        data.check_features(self.n_features)?;
        if rows.is_empty() {
            return Ok(());
        }
        let scatter = self.scatter();
        let (vector, total) = self.state.parts_mut(0);
        match self.options.covariance {
            Covariance::Full => {
                undo.save_all(0, 0, vector);
                simd::dispatch(Update {
                    scatter,
                    vector,
                    data,
                    rows,
                });
            }
            Covariance::Diagonal => {
                undo.save_all(1, 0, total);
                let moments: &mut [Moments] = vector.as_chunks_mut().0;
                for index in data.prefetched(rows) {
                    let weight = data.weight(index);
                    if weight > 0.0 {
                        for (feature, value) in data.rows().row(index).entries() {
                            undo.save_all(0, 3 * feature, &moments[feature]);
                            moments::add(&mut moments[feature], value, weight);
                        }
                        total[0] += weight;
                    }
                }
            }
        }
        Ok(())
    }
}

impl Learner for GaussianDensity {
    fn n_outputs(&self) -> usize {
        1
    }

    fn cost_model(&self, data: &Dataset<'_>) -> CostModel {
        let touched = match self.options.covariance {
            Covariance::Full => self.state.len() as f64,
            Covariance::Diagonal => 3.0 * data.mean_nnz(),
        };
        CostModel::logged(touched, touched, &self.state)
    }

    update_method!();

    fn evaluate(&self, data: &Dataset<'_>, rows: &[usize], out: &mut [f64]) -> Result<()> {
        with_layout!(data, |data| {
            data.check_features(self.n_features)?;
            let defined = match self.options.covariance {
                Covariance::Full => simd::dispatch(Evaluate {
                    model: self,
                    data,
                    rows,
                    out,
                }),
                Covariance::Diagonal => {
                    let (moments, total) = self.diagonal();
                    let gaussians =
                        DiagonalGaussians::new(&[moments], &[total], self.options.reg_covar);
                    gaussians.map(|gaussians| {
                        for (index, out) in data.prefetched(rows).zip(out.chunks_exact_mut(1)) {
                            gaussians.log_densities(data.rows().row(index), self.n_features, out);
                        }
                    })
                }
            };
            defined.ok_or_else(|| self.singular())
        })
    }

    fn min_evaluation_rows(&self, data: &Dataset<'_>) -> usize {
        let p = self.n_features as f64;
        match self.options.covariance {
            Covariance::Full => super::rows_worth(p, 3.0),
            Covariance::Diagonal => super::rows_worth(p, data.mean_nnz()),
        }
    }

    state_methods!();

    fn is_mergeable(&self) -> bool {
        true
    }

    fn merge(&mut self, other: &dyn Learner) -> Result<()> {
        let other: &Self = same_type(other)?;
        let scatter = self.scatter();
        let (vector, total) = self.state.parts_mut(0);
        match self.options.covariance {
            Covariance::Full => simd::dispatch(Merge {
                scatter,
                vector,
                other: other.state.vector(0),
            }),
            Covariance::Diagonal => {
                let (others, other_total) = other.diagonal();
                for (moments, other) in vector.as_chunks_mut().0.iter_mut().zip(others) {
                    moments::merge(moments, other);
                }
                total[0] += other_total;
            }
        }
        Ok(())
    }

    /// As scikit-learn's `GaussianMixture` of one component.
    fn fitted(&self) -> Result<Fitted> {
        let (n, epsilon) = (self.n_features, self.options.reg_covar);
        let mut covariance = self.covariance();
        let covariance = match self.options.covariance {
            Covariance::Full => {
                packed::add_diagonal(&mut covariance, n, epsilon);
                let square = packed::to_square(&covariance, n);
                square.insert_axis(Axis(0)).into_dyn()
            }
            Covariance::Diagonal => {
                let variances = Array1::from(covariance) + epsilon;
                variances.insert_axis(Axis(0)).into_dyn()
            }
        };
        let means = self.mean().insert_axis(Axis(0));
        Ok(vec![
            ("means_", means.into_dyn()),
            ("covariances_", covariance),
        ])
    }
}

struct Update<'a, 'd, X> {
    scatter: Scatter,
    vector: &'a mut [f64],
    data: &'a Examples<'d, X>,
    rows: &'a [usize],
}

impl<X: Layout> WithSimd for Update<'_, '_, X> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { scatter, data, .. } = self;
        let mut z = vec![0.0; scatter.n];
        for index in data.prefetched(self.rows) {
            densify(data.rows().row(index), &mut z);
            scatter.add(simd, self.vector, &mut z, data.weight(index));
        }
    }
}

struct Evaluate<'a, 'd, R> {
    model: &'a GaussianDensity,
    data: &'a Examples<'d, R>,
    rows: &'a [usize],
    out: &'a mut [f64],
}

impl<R: Layout> WithSimd for Evaluate<'_, '_, R> {
    type Output = Option<()>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Option<()> {
        let Self { model, data, .. } = self;
        let n = model.n_features;
        let mut l = model.covariance();
        packed::add_diagonal(&mut l, n, model.options.reg_covar);
        packed::cholesky(simd, &mut l, n)?;
        let logs: f64 = packed::diagonal(&l, n).map(f64::ln).sum();
        let constant = -0.5 * n as f64 * std::f64::consts::TAU.ln() - logs;
        let means = model.scatter().means(model.state.vector(0));
        let mut z = vec![0.0; n];
        for (index, out) in data.prefetched(self.rows).zip(self.out) {
            densify(data.rows().row(index), &mut z);
            simd::axpy(simd, -1.0, means, &mut z);
            packed::solve_lower(simd, &l, &mut z);
            *out = constant - 0.5 * simd::dot(simd, &z, &z);
        }
        Some(())
    }
}

struct Merge<'a> {
    scatter: Scatter,
    vector: &'a mut [f64],
    other: &'a [f64],
}

impl WithSimd for Merge<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        self.scatter.merge(simd, self.vector, self.other);
    }
}
