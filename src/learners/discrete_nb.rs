//! Discrete naive Bayes: multinomial, complement and Bernoulli.
//!
//! # Problem
//! A class has seen rows of weight W, and in them the weight Nⱼ of feature j, T = Σⱼ Nⱼ in all;
//! all other classes together have seen Mⱼ and U = Σⱼ Mⱼ. With d features and the smoothing α, the
//! output of the class is k + Σⱼ eⱼ·tⱼ, where
//!
//! | [`EventModel`] | event eⱼ | term tⱼ | constant k |
//! |---|---|---|---|
//! | `Multinomial` | xⱼ | ln (Nⱼ + α)/(T + αd) | ln prior |
//! | `Complement` | xⱼ | −ln (Mⱼ + α)/(U + αd) | 0 |
//! | `Bernoulli` | 1 if xⱼ > threshold | ln (Nⱼ + α)/(W − Nⱼ + α) | ln prior + Σⱼ ln (W − Nⱼ + α)/(W + 2α) |
//!
//! `Multinomial` and `Bernoulli` are joint log likelihoods. `Complement` is a
//! score; with `norm` the terms of a class are divided by the sum of their absolute values.
//!
//! # Cost
//! | operation | values |
//! |---|---|
//! | update with a row | stored values of the row |
//! | evaluate m rows | min(m × stored values of a row, features) × classes logarithms |
//! | the same, `Bernoulli` or `norm` | features × classes more values, about a tenth as many logarithms |
//! | copy, merge | features × classes |
//!
//! So the leaves of leave-one-out cost what their row stores with `Multinomial`, but all features
//! with `Bernoulli`, where the absence of a feature is an event, too.
//!
//! Outputs: one per class; −∞ for a class without rows.
//!
//! # References
//! A. McCallum, K. Nigam, *A comparison of event models for naive Bayes text classification*,
//! AAAI-98 workshop on learning for text categorization (1998). J. D. M. Rennie, L. Shih,
//! J. Teevan, D. R. Karger, *Tackling the poor assumptions of naive Bayes text classifiers*, ICML
//! (2003), section 3.

use ndarray::{Array1, Array2};

use super::learner::{CostModel, Fitted, Learner};
use super::log_sum::LogSum;
use super::priors::Priors;
use super::state::State;
use super::undo::Undo;
use super::{HyperParameters, check_not_negative, check_positive, hyper_parameters};
use super::{state_methods, update_method};
use crate::data::{Dataset, Examples, Layout, Row, with_layout};
use crate::linear::FoldMap;
use crate::{Error, Result};

/// What of a row is counted, and how counts become outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(
    feature = "registry",
    derive(serde::Deserialize),
    serde(rename_all = "lowercase")
)]
pub enum EventModel {
    /// A value is a number of events.
    #[default]
    Multinomial,
    /// As multinomial, with the parameters of each class from all the others.
    Complement,
    /// A value is one event when it is above a threshold.
    Bernoulli,
}

hyper_parameters! {
    /// Hyper-parameters of [`DiscreteNaiveBayes`].
    #[derive(Clone, PartialEq)]
    pub struct DiscreteNbOptions {
        /// What is counted.
        event_model: EventModel = EventModel::Multinomial;
        /// What is added to every count.
        alpha: f64 = 1.0, check_positive;
        /// Priors of the classes; the complement event model does not use them.
        priors: Priors = Priors::Counted;
        /// Whether the terms of a class are normalised, by the complement event model.
        norm: bool = false;
        /// The threshold of the Bernoulli event model, not negative: a zero is no event.
        binarize: f64 = 0.0, check_not_negative;
    }
}

impl DiscreteNbOptions {
    /// The number of events of a value.
    #[inline(always)]
    fn count(&self, value: f64) -> f64 {
        match self.event_model {
            EventModel::Bernoulli if value > self.binarize => 1.0,
            EventModel::Bernoulli => 0.0,
            EventModel::Multinomial | EventModel::Complement => value,
        }
    }
}

/// Multinomial, complement or Bernoulli naive Bayes.
///
/// State: one vector per class with N of each feature; scalars: T of each class, then W of each.
#[derive(Clone, Debug)]
pub struct DiscreteNaiveBayes {
    options: DiscreteNbOptions,
    n_features: usize,
    n_classes: usize,
    state: State,
}

impl DiscreteNaiveBayes {
    /// A model of `n_classes` classes that has learnt nothing.
    pub fn new(options: DiscreteNbOptions, n_features: usize, n_classes: usize) -> Result<Self> {
        options.check()?;
        options.priors.check(n_classes)?;
        let what = format_args!("a model of {n_classes} classes and X with {n_features} features");
        let state = State::zeros(what, n_classes, n_features, 2 * n_classes)?;
        Ok(Self {
            options,
            n_features,
            n_classes,
            state,
        })
    }

    /// The weight of each class.
    pub fn class_weights(&self) -> &[f64] {
        self.totals().1
    }

    /// The weight of each feature's events in each class: one row per class.
    pub fn feature_weights(&self) -> Array2<f64> {
        Array2::from_shape_fn((self.n_classes, self.n_features), |(class, feature)| {
            self.state.vector(class)[feature]
        })
    }

    /// T and W of each class.
    fn totals(&self) -> (&[f64], &[f64]) {
        self.state.scalars().split_at(self.n_classes)
    }

    /// The weight of a feature in all classes but one.
    #[inline(always)]
    fn rest(&self, feature: usize, class: usize) -> f64 {
        let counts = (0..self.n_classes).map(|class| self.state.vector(class)[feature]);
        sum_of_others(counts, class)
    }

    fn learn<X: Layout, U: Undo>(
        &mut self,
        data: &Examples<'_, X>,
        rows: &[usize],
        undo: &mut U,
    ) -> Result<()> {
        data.check_features(self.n_features)?;
        let codes = data.classes(self.n_classes)?;
        let Self {
            options,
            n_classes,
            state,
            ..
        } = self;
        if !rows.is_empty() {
            undo.save_all(*n_classes, 0, state.scalars());
        }
        for index in data.prefetched(rows) {
            let (class, weight) = (codes[index] as usize, data.weight(index));
            if weight <= 0.0 {
                continue;
            }
            let (counts, totals) = state.parts_mut(class);
            for (feature, value) in data.rows().row(index).entries() {
                let count = weight * options.count(value);
                if count < 0.0 {
                    return Err(Error::Value {
                        place: format!("X[{index}, {feature}]"),
                        value,
                        rule: "Negative values in data are not counts",
                    });
                }
                if count > 0.0 {
                    undo.save(class, feature, counts[feature]);
                    counts[feature] += count;
                    totals[class] += count;
                }
            }
            totals[*n_classes + class] += weight;
        }
        Ok(())
    }
}

/// What turns counts into outputs.
#[derive(Debug)]
struct Terms<'a> {
    model: &'a DiscreteNaiveBayes,
    /// k of each class.
    constants: Vec<f64>,
    /// The part of a class's terms that is the same for all features, and what they are
    /// multiplied with.
    common: Vec<[f64; 2]>,
    /// All terms, where more values are evaluated than there are features.
    table: Option<Vec<f64>>,
}

impl<'a> Terms<'a> {
    /// For rows that store `n_stored` values in all.
    fn new(model: &'a DiscreteNaiveBayes, n_stored: usize) -> Self {
        let (totals, weights) = model.totals();
        let (d, alpha) = (model.n_features as f64, model.options.alpha);
        let common = |class: usize| match model.options.event_model {
            EventModel::Multinomial => [(totals[class] + alpha * d).ln(), 1.0],
            EventModel::Complement => [
                (sum_of_others(totals.iter().copied(), class) + alpha * d).ln(),
                -1.0,
            ],
            EventModel::Bernoulli => [0.0, 1.0],
        };
        let mut constants = model.options.priors.logs(weights);
        if let EventModel::Complement = model.options.event_model {
            // A score, not a likelihood: without priors.
            for (constant, weight) in constants.iter_mut().zip(weights) {
                *constant = if *weight > 0.0 {
                    0.0
                } else {
                    f64::NEG_INFINITY
                };
            }
        }
        let mut terms = Self {
            model,
            constants,
            common: (0..model.n_classes).map(common).collect(),
            table: None,
        };
        terms.sum_features();
        if n_stored > model.n_features {
            terms.table = Some(terms.tabulate());
        }
        terms
    }

    /// What needs a sum over all features.
    fn sum_features(&mut self) {
        let (_, weights) = self.model.totals();
        let (d, alpha) = (self.model.n_features as f64, self.model.options.alpha);
        match self.model.options.event_model {
            EventModel::Multinomial => {}
            EventModel::Complement if !self.model.options.norm => {}
            EventModel::Complement => {
                for (class, [common, factor]) in self.common.iter_mut().enumerate() {
                    let features = 0..self.model.n_features;
                    let others = features.map(|j| self.model.rest(j, class) + alpha);
                    *factor = 1.0 / (others.collect::<LogSum>().value() - d * *common);
                }
            }
            EventModel::Bernoulli => {
                for (class, (k, weight)) in self.constants.iter_mut().zip(weights).enumerate() {
                    let counts = self.model.state.vector(class).iter();
                    let absent = counts.map(|count| (weight - count).max(0.0) + alpha);
                    let absent = absent.collect::<LogSum>();
                    *k += absent.value() - d * (weight + 2.0 * alpha).ln();
                }
            }
        }
    }

    fn tabulate(&self) -> Vec<f64> {
        let features = 0..self.model.n_features;
        features
            .flat_map(|feature| (0..self.model.n_classes).map(move |c| self.term(feature, c)))
            .collect()
    }

    /// t of a class and feature.
    #[inline(always)]
    fn term(&self, feature: usize, class: usize) -> f64 {
        let (_, weights) = self.model.totals();
        let count = || self.model.state.vector(class)[feature];
        let alpha = self.model.options.alpha;
        let ratio = match self.model.options.event_model {
            EventModel::Multinomial => count() + alpha,
            EventModel::Complement => self.model.rest(feature, class) + alpha,
            EventModel::Bernoulli => {
                let absent = (weights[class] - count()).max(0.0);
                (count() + alpha) / (absent + alpha)
            }
        };
        let [common, factor] = self.common[class];
        (ratio.ln() - common) * factor
    }

    fn evaluate<R: Row>(&self, row: R, out: &mut [f64]) {
        let n_classes = out.len();
        out.copy_from_slice(&self.constants);
        for (feature, value) in row.entries() {
            let events = self.model.options.count(value);
            if events == 0.0 {
                continue;
            }
            if let Some(table) = &self.table {
                let terms = &table[feature * n_classes..][..n_classes];
                for (out, term) in out.iter_mut().zip(terms) {
                    *out += events * term;
                }
            } else {
                for (class, out) in out.iter_mut().enumerate() {
                    *out += events * self.term(feature, class);
                }
            }
        }
    }
}

/// The sum over all classes but one.
#[inline(always)]
fn sum_of_others(values: impl Iterator<Item = f64> + Clone, class: usize) -> f64 {
    values.clone().take(class).sum::<f64>() + values.skip(class + 1).sum::<f64>()
}

impl Learner for DiscreteNaiveBayes {
    fn n_outputs(&self) -> usize {
        self.n_classes
    }

    fn cost_model(&self, data: &Dataset<'_>) -> CostModel {
        let touched = data.mean_nnz();
        CostModel::logged(touched, touched, &self.state)
    }

    update_method!();

    fn evaluate(&self, data: &Dataset<'_>, rows: &[usize], out: &mut [f64]) -> Result<()> {
        with_layout!(data, |data| {
            data.check_features(self.n_features)?;
            let row = |index| data.rows().row(index);
            let terms = Terms::new(self, rows.iter().map(|&index| row(index).n_stored()).sum());
            let outs = out.chunks_exact_mut(self.n_classes);
            for (index, out) in data.prefetched(rows).zip(outs) {
                terms.evaluate(row(index), out);
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
        super::add_state::<Self>(&mut self.state, other)
    }

    /// Not of the Bernoulli event model: whether a value exceeds a threshold is lost in the counts.
    fn rescale(&mut self, scaling: &FoldMap) -> Result<()> {
        if self.options.event_model == EventModel::Bernoulli {
            return Err(Error::Parameter {
                name: "learner",
                rule: "one whose models can be rescaled",
                value: "Bernoulli naive Bayes".into(),
            });
        }
        let n_classes = self.n_classes;
        for class in 0..n_classes {
            let (counts, totals) = self.state.parts_mut(class);
            let weight = totals[n_classes + class];
            for (j, count) in counts.iter_mut().enumerate() {
                // Scaled counts are not negative; their sum may be, by rounding.
                let shifted = (*count - weight * scaling.shift(j)).max(0.0);
                *count = shifted * scaling.scale(j);
            }
            totals[class] = counts.iter().sum();
        }
        Ok(())
    }

    fn fitted(&self) -> Result<Fitted> {
        let weights = Array1::from(self.class_weights().to_vec());
        let priors = self.options.priors.logs(self.class_weights());
        Ok(vec![
            ("feature_count_", self.feature_weights().into_dyn()),
            ("class_count_", weights.into_dyn()),
            ("class_log_prior_", Array1::from(priors).into_dyn()),
        ])
    }
}
