//! Gaussian naive Bayes.
//!
//! # Problem
//! ln prior + Σⱼ ln N(xⱼ; μⱼ, σⱼ² + ε) for each class: within a class, features are independent and
//! normal. Means, variances and (unless given) priors are those of the rows seen, by weight.
//!
//! # Method
//! One cell of [moments](super::moments) per class and feature. ε is `var_smoothing` times the largest
//! variance of a feature over all rows seen. scikit-learn takes that variance without weights and
//! from the rows of `fit`; here one more cell per feature keeps it for the rows seen so far, so that
//! any sequence of updates gives what `fit` gives for all of them at once, to rounding. Hence
//! a row of weight 0 counts in ε, and only there.
//!
//! # Cost
//! | operation | values |
//! |---|---|
//! | update with a row | 6 × stored values of the row |
//! | evaluate m rows | features × classes, plus m × stored values of a row × classes |
//! | copy, merge | 3 × features × (classes + 1); a fork and an update copy those of the classes updated |
//!
//! Outputs: one per class, its joint log likelihood; −∞ for a class without rows.

use ndarray::{Array1, Array2};

use super::learner::{CostModel, Fitted, Learner, same_type};
use super::moments::{self, DiagonalGaussians, Moments, TotalWeight};
use super::priors::Priors;
use super::state::State;
use super::undo::Undo;
use super::{HyperParameters, check_not_negative, hyper_parameters};
use super::{state_methods, update_method};
use crate::data::{Dataset, Examples, Layout, Row, with_layout};
use crate::linear::FoldMap;
use crate::{Error, Result};

hyper_parameters! {
    /// Hyper-parameters of [`GaussianNb`].
    #[derive(Clone, PartialEq)]
    pub struct GaussianNbOptions {
        /// What is added to every variance, as a fraction of the largest variance of a feature.
        var_smoothing: f64 = 1e-9, check_not_negative;
        /// Priors of the classes.
        priors: Priors = Priors::Counted;
    }
}

/// Gaussian naive Bayes.
///
/// State: one vector per class with the moments of each feature, and one of all rows without weights;
/// scalars: the weight of each class and the number of rows.
#[derive(Clone, Debug)]
pub struct GaussianNb {
    options: GaussianNbOptions,
    n_features: usize,
    n_classes: usize,
    state: State,
}

impl GaussianNb {
    /// A model of `n_classes` classes that has learnt nothing.
    pub fn new(options: GaussianNbOptions, n_features: usize, n_classes: usize) -> Result<Self> {
        options.check()?;
        options.priors.check(n_classes)?;
        let what = format_args!("a model of {n_classes} classes and X with {n_features} features");
        let state = State::zeros(
            what,
            n_classes + 1,
            n_features.saturating_mul(3),
            n_classes + 1,
        )?;
        Ok(Self {
            options,
            n_features,
            n_classes,
            state,
        })
    }

    /// The weight of each class.
    pub fn class_weights(&self) -> &[f64] {
        &self.state.scalars()[..self.n_classes]
    }

    /// Mean and variance of each feature of a class, without ε.
    ///
    /// # Panics
    /// When there is no such class.
    pub fn moments(&self, class: usize) -> Vec<(f64, f64)> {
        let total = TotalWeight::new(self.state.scalars()[class]);
        let moments = self.vector(class).iter();
        moments.map(|m| total.mean_variance(m)).collect()
    }

    /// ε, which is added to every variance.
    pub fn epsilon(&self) -> f64 {
        let variances = self.moments(self.n_classes).into_iter();
        let largest = variances.map(|(_, variance)| variance).fold(0.0, f64::max);
        self.options.var_smoothing * largest
    }

    /// The moments of each feature of a class, or of all rows.
    fn vector(&self, class: usize) -> &[Moments] {
        self.state.vector(class).as_chunks().0
    }

    fn learn<X: Layout, U: Undo>(
        &mut self,
        data: &Examples<'_, X>,
        rows: &[usize],
        undo: &mut U,
    ) -> Result<()> {
        data.check_features(self.n_features)?;
        let codes = data.classes(self.n_classes)?;
        let n_classes = self.n_classes;
        if !rows.is_empty() {
            undo.save_all(n_classes + 1, 0, self.state.scalars());
        }
        for index in data.prefetched(rows) {
            let (class, weight) = (codes[index] as usize, data.weight(index));
            for (vector, weight) in [(class, weight), (n_classes, 1.0)] {
                if weight <= 0.0 {
                    continue;
                }
                let (values, totals) = self.state.parts_mut(vector);
                totals[vector] += weight;
                let moments: &mut [Moments] = values.as_chunks_mut().0;
                for (feature, value) in data.rows().row(index).entries() {
                    undo.save_all(vector, 3 * feature, &moments[feature]);
                    moments::add(&mut moments[feature], value, weight);
                }
            }
        }
        Ok(())
    }
}

impl Learner for GaussianNb {
    fn n_outputs(&self) -> usize {
        self.n_classes
    }

    fn cost_model(&self, data: &Dataset<'_>) -> CostModel {
        let touched = 6.0 * data.mean_nnz();
        CostModel::logged(touched, touched, &self.state)
    }

    update_method!();

    fn evaluate(&self, data: &Dataset<'_>, rows: &[usize], out: &mut [f64]) -> Result<()> {
        with_layout!(data, |data| {
            data.check_features(self.n_features)?;
            let weights = self.class_weights();
            let moments: Vec<_> = (0..self.n_classes)
                .map(|class| self.vector(class))
                .collect();
            let gaussians =
                DiagonalGaussians::new(&moments, weights, self.epsilon()).ok_or_else(|| {
                    Error::Parameter {
                        name: "var_smoothing",
                        rule: "large enough to make every variance of the training rows positive",
                        value: self.options.var_smoothing.to_string(),
                    }
                })?;
            let priors = self.options.priors.logs(weights);
            let outs = out.chunks_exact_mut(self.n_classes);
            for (index, out) in data.prefetched(rows).zip(outs) {
                gaussians.log_densities(data.rows().row(index), self.n_features, out);
                for (out, prior) in out.iter_mut().zip(&priors) {
                    *out += prior;
                }
            }
            Ok(())
        })
    }

    fn min_evaluation_rows(&self, data: &Dataset<'_>) -> usize {
        super::rows_worth(self.n_features as f64, data.mean_nnz())
    }

    fn outputs_may_be_infinite(&self) -> bool {
        true
    }

    state_methods!();

    fn is_mergeable(&self) -> bool {
        true
    }

    fn merge(&mut self, other: &dyn Learner) -> Result<()> {
        let other: &Self = same_type(other)?;
        for class in 0..=self.n_classes {
            let moments = self.state.vector_mut(class).as_chunks_mut().0;
            for (moments, other) in moments.iter_mut().zip(other.vector(class)) {
                moments::merge(moments, other);
            }
        }
        super::add(self.state.scalars_mut(), other.state.scalars());
        Ok(())
    }

    fn rescale(&mut self, scaling: &FoldMap) -> Result<()> {
        for class in 0..=self.n_classes {
            let (values, totals) = self.state.parts_mut(class);
            let moments: &mut [Moments] = values.as_chunks_mut().0;
            for (j, moments) in moments.iter_mut().enumerate() {
                let shift = scaling.has_shift().then(|| scaling.shift(j));
                moments::rescale(moments, totals[class], shift, scaling.scale(j));
            }
        }
        Ok(())
    }

    fn fitted(&self) -> Result<Fitted> {
        let shape = (self.n_classes, self.n_features);
        let (mut means, mut variances) = (Array2::zeros(shape), Array2::zeros(shape));
        let epsilon = self.epsilon();
        for class in 0..self.n_classes {
            for (feature, (mean, variance)) in self.moments(class).into_iter().enumerate() {
                means[[class, feature]] = mean;
                variances[[class, feature]] = variance + epsilon;
            }
        }
        let weights = self.class_weights();
        let priors = self.options.priors.logs(weights).into_iter().map(f64::exp);
        Ok(vec![
            ("theta_", means.into_dyn()),
            ("var_", variances.into_dyn()),
            ("epsilon_", Array1::from(vec![epsilon]).into_dyn()),
            ("class_count_", Array1::from(weights.to_vec()).into_dyn()),
            ("class_prior_", priors.collect::<Array1<f64>>().into_dyn()),
        ])
    }
}
