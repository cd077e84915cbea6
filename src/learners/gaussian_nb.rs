//! Gaussian naive Bayes.
//!
//! # Problem
//! ln prior + Σⱼ ln N(xⱼ; μⱼ, σⱼ² + ε) for each class: within a class, features are independent and
//! normal. Means, variances and (unless given) priors are those of the rows seen, by weight.
//!
//! # Method
//! One [moments cell](super::moments) a class and feature. ε is `var_smoothing` times the largest
//! variance of a feature over all rows seen. scikit-learn takes that variance without weights and
//! from the rows of `fit`; here another cell a feature keeps it for the rows seen so far, so that
//! any way of feeding the rows gives what `fit` gives for all of them at once, to rounding. Hence
//! a row of weight 0 still has a say in ε, and only there.
//!
//! # Cost
//! | operation | numbers |
//! |---|---|
//! | feed a row | 6 × stored values of the row |
//! | evaluate m rows | features × classes, plus m × stored values of a row × classes |
//! | copy, merge | 3 × features × (classes + 1) |
//!
//! Outputs: the joint log likelihood, one a class; −∞ for a class of which nothing was seen.

use super::moments::{self, Cell, Normals, Total};
use super::priors::Priors;
use crate::data::{Examples, Layout, Row};
use crate::merge::Mergeable;
use crate::tree::{Effort, Flat, Learner, Undo};
use crate::{Error, Result};

/// How Gaussian naive Bayes learns.
#[derive(Clone, Debug, PartialEq)]
pub struct GaussianNbOptions {
    /// What is added to every variance, as a share of the largest variance of a feature.
    pub var_smoothing: f64,
    /// Priors of the classes.
    pub priors: Priors,
}

/// Gaussian naive Bayes.
///
/// State: for each feature a cell a class, and one of all rows without weights; then the weight of
/// each class and the number of rows.
#[derive(Clone, Debug)]
pub struct GaussianNb {
    options: GaussianNbOptions,
    n_features: usize,
    n_classes: usize,
    state: Vec<f64>,
}

impl GaussianNb {
    /// A model of `n_classes` classes that has learnt nothing.
    pub fn new(options: GaussianNbOptions, n_features: usize, n_classes: usize) -> Result<Self> {
        super::check_not_negative("var_smoothing", options.var_smoothing)?;
        options.priors.check(n_classes)?;
        Ok(Self {
            options,
            n_features,
            n_classes,
            state: vec![0.0; (3 * n_features + 1) * (n_classes + 1)],
        })
    }

    /// The weight of each class.
    pub fn class_weights(&self) -> &[f64] {
        &self.parts().1[..self.n_classes]
    }

    /// Mean and variance of each feature of a class, without ε.
    ///
    /// # Panics
    /// When there is no such class.
    pub fn moments(&self, class: usize) -> Vec<(f64, f64)> {
        let (cells, totals) = self.parts();
        let total = Total::new(totals[class]);
        cells
            .chunks_exact(self.stride())
            .map(|cells| total.mean_variance(&cells[class]))
            .collect()
    }

    /// ε, which is added to every variance.
    pub fn epsilon(&self) -> f64 {
        let (cells, totals) = self.parts();
        let everything = cells.iter().skip(self.n_classes).step_by(self.stride());
        let total = Total::new(totals[self.n_classes]);
        let variances = everything.map(|cell| total.mean_variance(cell).1);
        self.options.var_smoothing * variances.fold(0.0, f64::max)
    }

    /// Cells a feature.
    fn stride(&self) -> usize {
        self.n_classes + 1
    }

    fn parts(&self) -> (&[Cell], &[f64]) {
        let (cells, totals) = self.state.split_at(3 * self.n_features * self.stride());
        (cells.as_chunks().0, totals)
    }
}

impl Flat for GaussianNb {
    fn n_outputs(&self) -> usize {
        self.n_classes
    }

    fn state(&self) -> &[f64] {
        &self.state
    }

    fn state_mut(&mut self) -> &mut [f64] {
        &mut self.state
    }

    fn may_be_infinite(&self) -> bool {
        true
    }
}

impl<R: Layout> Learner<Examples<'_, R>> for GaussianNb {
    fn effort(&self, data: &Examples<'_, R>) -> Effort {
        let touched = 6.0 * data.stored_per_row();
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
        let codes = data.classes(self.n_classes)?;
        let stride = self.stride();
        let (cells, totals) = self.state.split_at_mut(3 * self.n_features * stride);
        undo.save_all(cells.len(), totals);
        let cells = cells.as_chunks_mut().0;
        let mut add = |place: usize, value: f64, weight: f64| {
            let cell: &mut Cell = &mut cells[place];
            undo.save_all(3 * place, cell);
            moments::add(cell, value, weight);
        };
        for index in data.ahead(rows) {
            let (class, weight) = (codes[index] as usize, data.weight(index));
            for (feature, value) in data.rows().row(index).entries() {
                if weight > 0.0 {
                    add(feature * stride + class, value, weight);
                }
                add(feature * stride + stride - 1, value, 1.0);
            }
            totals[class] += weight;
            totals[stride - 1] += 1.0;
        }
        Ok(())
    }

    fn evaluate(&self, data: &Examples<'_, R>, rows: &[usize], out: &mut [f64]) -> Result<()> {
        data.check_features(self.n_features)?;
        let weights = self.class_weights();
        let normals = Normals::new(self.parts().0, self.stride(), weights, self.epsilon())
            .ok_or_else(|| Error::Parameter {
                name: "var_smoothing",
                rule: "large enough to make every variance of the training rows positive",
                value: self.options.var_smoothing.to_string(),
            })?;
        let priors = self.options.priors.logs(weights);
        for (index, out) in data.ahead(rows).zip(out.chunks_exact_mut(self.n_classes)) {
            normals.log_densities(data.rows().row(index), self.n_features, out);
            for (out, prior) in out.iter_mut().zip(&priors) {
                *out += prior;
            }
        }
        Ok(())
    }

    fn batch(&self, data: &Examples<'_, R>) -> usize {
        super::rows_worth(self.n_features as f64, data.stored_per_row())
    }
}

impl Mergeable for GaussianNb {
    fn merge(&mut self, other: &Self) -> Result<()> {
        let n_cells = 3 * self.n_features * self.stride();
        let (cells, totals) = self.state.split_at_mut(n_cells);
        let (other_cells, _) = other.parts();
        for (cell, other) in cells.as_chunks_mut().0.iter_mut().zip(other_cells) {
            moments::merge(cell, other);
        }
        super::add(totals, &other.state[n_cells..]);
        Ok(())
    }
}
