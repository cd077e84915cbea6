//! Gaussian density: one normal distribution.
//!
//! # Problem
//! ln N(x; μ, Σ + εI), with mean μ and covariance Σ (by maximum likelihood, so divided by the
//! weight) of the rows seen, and ε = `reg_covar`.
//!
//! # Method
//! *Diagonal*: a [moments cell](super::moments) a feature. *Full*: the [scatter](super::scatter)
//! of the features, and a Cholesky factor made anew at each evaluation, so that no error builds up
//! from one fold to the next.
//!
//! # Cost
//! For p features:
//!
//! | operation | diagonal | full |
//! |---|---|---|
//! | feed a row | 3 × stored values of the row | p²/2 |
//! | evaluate m rows | p + m × stored values of a row | p³/6 + m·p²/2 multiplications |
//! | copy, merge | 3p | p²/2 |
//!
//! A sparse row costs p²/2 as well in the full form: sums of its products alone would cost less,
//! but would lose the digits that a mean far from zero takes.
//!
//! Outputs: one, the log density.

use super::moments::{self, Cell, Normals, Total};
use super::scatter::{About, Scatter, expand};
use super::triangle;
use crate::data::{Examples, Layout, Row};
use crate::merge::Mergeable;
use crate::runtime::simd::{self, Simd, WithSimd};
use crate::tree::{Effort, Flat, Learner, Undo};
use crate::{Error, Result};

/// What is known of how features vary together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Covariance {
    /// Everything.
    Full,
    /// Nothing: features are independent.
    Diagonal,
}

/// How a Gaussian density learns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GaussianDensityOptions {
    /// The shape of the covariance.
    pub covariance: Covariance,
    /// What is added to every variance.
    pub reg_covar: f64,
}

/// A normal distribution.
///
/// State: a cell a feature and the weight of all rows (diagonal), or a scatter (full).
#[derive(Clone, Debug)]
pub struct GaussianDensity {
    options: GaussianDensityOptions,
    n_features: usize,
    state: Vec<f64>,
}

impl GaussianDensity {
    /// A density that has seen nothing.
    pub fn new(options: GaussianDensityOptions, n_features: usize) -> Result<Self> {
        super::check_not_negative("reg_covar", options.reg_covar)?;
        let mut density = Self {
            options,
            n_features,
            state: vec![],
        };
        density.state = match options.covariance {
            Covariance::Full => vec![0.0; density.scatter().len()],
            Covariance::Diagonal => vec![0.0; 3 * n_features + 1],
        };
        Ok(density)
    }

    /// The mean.
    pub fn mean(&self) -> Vec<f64> {
        match self.options.covariance {
            Covariance::Full => self.scatter().means(&self.state).to_vec(),
            Covariance::Diagonal => self.moments().map(|(mean, _)| mean).collect(),
        }
    }

    /// The covariance, without ε: its diagonal, or its lower triangle row after row.
    pub fn covariance(&self) -> Vec<f64> {
        match self.options.covariance {
            Covariance::Full => {
                let weight = self.state[0];
                let sums = self.scatter().triangle(&self.state).iter();
                sums.map(|s| if weight > 0.0 { s / weight } else { 0.0 })
                    .collect()
            }
            Covariance::Diagonal => self.moments().map(|(_, variance)| variance).collect(),
        }
    }

    fn scatter(&self) -> Scatter {
        Scatter {
            n: self.n_features,
            about: About::Means,
        }
    }

    /// The cells and the weight of the diagonal form.
    fn cells(&self) -> (&[Cell], f64) {
        let (cells, total) = self.state.split_at(3 * self.n_features);
        (cells.as_chunks().0, total[0])
    }

    fn moments(&self) -> impl Iterator<Item = (f64, f64)> {
        let (cells, weight) = self.cells();
        let total = Total::new(weight);
        cells.iter().map(move |cell| total.mean_variance(cell))
    }

    fn singular(&self) -> Error {
        Error::Parameter {
            name: "reg_covar",
            rule: "large enough to make the covariance of the training rows positive definite",
            value: self.options.reg_covar.to_string(),
        }
    }
}

impl Flat for GaussianDensity {
    fn n_outputs(&self) -> usize {
        1
    }

    fn state(&self) -> &[f64] {
        &self.state
    }

    fn state_mut(&mut self) -> &mut [f64] {
        &mut self.state
    }
}

impl<R: Layout> Learner<Examples<'_, R>> for GaussianDensity {
    fn effort(&self, data: &Examples<'_, R>) -> Effort {
        let touched = match self.options.covariance {
            Covariance::Full => self.state.len() as f64,
            Covariance::Diagonal => 3.0 * data.stored_per_row(),
        };
        Effort {
            update: touched,
            copy: self.state.len() as f64,
            undo: Some(touched),
            indivisible: false,
        }
    }

    fn learn<U: Undo>(
        &mut self,
        data: &Examples<'_, R>,
        rows: &[usize],
        undo: &mut U,
    ) -> Result<()> {
        data.check_features(self.n_features)?;
        if rows.is_empty() {
            return Ok(());
        }
        match self.options.covariance {
            Covariance::Full => {
                undo.save_all(0, &self.state);
                simd::dispatch(Feed {
                    model: self,
                    data,
                    rows,
                });
            }
            Covariance::Diagonal => {
                let (cells, total) = self.state.split_at_mut(3 * self.n_features);
                undo.save_all(cells.len(), total);
                let cells = cells.as_chunks_mut().0;
                for index in data.ahead(rows) {
                    let weight = data.weight(index);
                    if weight > 0.0 {
                        for (feature, value) in data.rows().row(index).entries() {
                            undo.save_all(3 * feature, &cells[feature]);
                            moments::add(&mut cells[feature], value, weight);
                        }
                        total[0] += weight;
                    }
                }
            }
        }
        Ok(())
    }

    fn evaluate(&self, data: &Examples<'_, R>, rows: &[usize], out: &mut [f64]) -> Result<()> {
        data.check_features(self.n_features)?;
        let defined = match self.options.covariance {
            Covariance::Full => simd::dispatch(Evaluate {
                model: self,
                data,
                rows,
                out,
            }),
            Covariance::Diagonal => {
                let (cells, total) = self.cells();
                Normals::new(cells, 1, &[total], self.options.reg_covar).map(|normals| {
                    for (index, out) in data.ahead(rows).zip(out.chunks_exact_mut(1)) {
                        normals.log_densities(data.rows().row(index), self.n_features, out);
                    }
                })
            }
        };
        defined.ok_or_else(|| self.singular())
    }

    fn batch(&self, data: &Examples<'_, R>) -> usize {
        let p = self.n_features as f64;
        match self.options.covariance {
            Covariance::Full => super::rows_worth(p, 3.0),
            Covariance::Diagonal => super::rows_worth(p, data.stored_per_row()),
        }
    }
}

struct Feed<'a, 'd, R> {
    model: &'a mut GaussianDensity,
    data: &'a Examples<'d, R>,
    rows: &'a [usize],
}

impl<R: Layout> WithSimd for Feed<'_, '_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let scatter = self.model.scatter();
        let mut z = vec![0.0; scatter.n];
        for index in self.data.ahead(self.rows) {
            expand(self.data.rows().row(index), &mut z);
            scatter.add(simd, &mut self.model.state, &mut z, self.data.weight(index));
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
        triangle::add_diagonal(&mut l, n, model.options.reg_covar);
        triangle::factor(simd, &mut l, n)?;
        let logs: f64 = triangle::diagonal(&l, n).map(f64::ln).sum();
        let constant = -0.5 * n as f64 * std::f64::consts::TAU.ln() - logs;
        let means = model.scatter().means(&model.state);
        let mut z = vec![0.0; n];
        for (index, out) in data.ahead(self.rows).zip(self.out) {
            expand(data.rows().row(index), &mut z);
            simd::axpy(simd, -1.0, means, &mut z);
            triangle::forward(simd, &l, &mut z);
            *out = constant - 0.5 * simd::dot(simd, &z, &z);
        }
        Some(())
    }
}

struct Merge<'a>(&'a mut GaussianDensity, &'a GaussianDensity);

impl WithSimd for Merge<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self(model, other) = self;
        let scatter = model.scatter();
        scatter.merge(simd, &mut model.state, &other.state);
    }
}

impl Mergeable for GaussianDensity {
    fn merge(&mut self, other: &Self) -> Result<()> {
        match self.options.covariance {
            Covariance::Full => simd::dispatch(Merge(self, other)),
            Covariance::Diagonal => {
                let (cells, total) = self.state.split_at_mut(3 * self.n_features);
                let (other_cells, other_total) = other.cells();
                for (cell, other) in cells.as_chunks_mut().0.iter_mut().zip(other_cells) {
                    moments::merge(cell, other);
                }
                total[0] += other_total;
            }
        }
        Ok(())
    }
}
