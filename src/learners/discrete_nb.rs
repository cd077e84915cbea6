//! Naive Bayes of counts and of presence: multinomial, complement and Bernoulli.
//!
//! # Problem
//! A class has seen rows of weight W, and in them the weight Nⱼ of feature j, T = Σⱼ Nⱼ in all;
//! all other classes together have seen Mⱼ and U = Σⱼ Mⱼ. With d features and the smoothing α, the
//! output of the class is k + Σⱼ eⱼ·tⱼ, where
//!
//! | [`Events`] | event eⱼ | term tⱼ | constant k |
//! |---|---|---|---|
//! | `Counts` | xⱼ | ln (Nⱼ + α)/(T + αd) | ln prior |
//! | `Complement` | xⱼ | −ln (Mⱼ + α)/(U + αd) | 0 |
//! | `Presence` | 1 if xⱼ > threshold | ln (Nⱼ + α)/(W − Nⱼ + α) | ln prior + Σⱼ ln (W − Nⱼ + α)/(W + 2α) |
//!
//! `Counts` and `Presence` are joint log likelihoods (multinomial, Bernoulli). `Complement` is a
//! score; with `norm` the terms of a class are divided by the sum of their absolute values.
//!
//! # Cost
//! | operation | numbers |
//! |---|---|
//! | feed a row | stored values of the row |
//! | evaluate m rows | min(m × stored values of a row, features) × classes logarithms |
//! | the same, `Presence` or `norm` | features × classes more numbers to read, about a tenth as many logarithms |
//! | copy, merge | features × classes |
//!
//! So the leaves of leave-one-out cost what their row stores with `Counts`, but all features with
//! `Presence`, because there a row also tells by what it lacks.
//!
//! Outputs: one a class; −∞ for a class of which nothing was seen.
//!
//! # References
//! A. McCallum, K. Nigam, *A comparison of event models for naive Bayes text classification*,
//! AAAI-98 workshop on learning for text categorization (1998). J. D. M. Rennie, L. Shih,
//! J. Teevan, D. R. Karger, *Tackling the poor assumptions of naive Bayes text classifiers*, ICML
//! (2003), section 3.

use super::logs::LogSum;
use super::priors::Priors;
use crate::data::{Examples, Layout, Row};
use crate::merge::Mergeable;
use crate::tree::{Effort, Flat, Learner, Undo};
use crate::{Error, Result};

/// What of a row is counted, and how counts become outputs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Events {
    /// Multinomial: a value is a number of events.
    Counts,
    /// As `Counts`, with each class told by all the others.
    Complement {
        /// Whether the terms of a class are normalised.
        norm: bool,
    },
    /// Bernoulli: a value is an event when it is above the threshold.
    Presence {
        /// The threshold, not negative: a zero is no event.
        above: f64,
    },
}

/// How naive Bayes of counts learns.
#[derive(Clone, Debug, PartialEq)]
pub struct DiscreteNbOptions {
    /// What is counted.
    pub events: Events,
    /// What is added to every count.
    pub alpha: f64,
    /// Priors of the classes; `Complement` has no use for them.
    pub priors: Priors,
}

/// Naive Bayes of counts or presence.
///
/// State: for each feature N, one a class; then T and W, one a class each.
#[derive(Clone, Debug)]
pub struct DiscreteNb {
    options: DiscreteNbOptions,
    n_features: usize,
    n_classes: usize,
    state: Vec<f64>,
}

impl DiscreteNb {
    /// A model of `n_classes` classes that has learnt nothing.
    pub fn new(options: DiscreteNbOptions, n_features: usize, n_classes: usize) -> Result<Self> {
        super::check_positive("alpha", options.alpha)?;
        if let Events::Presence { above } = options.events {
            super::check_not_negative("binarize", above)?;
        }
        options.priors.check(n_classes)?;
        Ok(Self {
            options,
            n_features,
            n_classes,
            state: vec![0.0; (n_features + 2) * n_classes],
        })
    }

    /// The weight of each class.
    pub fn class_weights(&self) -> &[f64] {
        self.parts().2
    }

    /// The weight of each feature's events: for each feature, one number a class.
    pub fn feature_weights(&self) -> &[f64] {
        self.parts().0
    }

    /// N, T and W.
    fn parts(&self) -> (&[f64], &[f64], &[f64]) {
        let (counts, tail) = self.state.split_at(self.n_features * self.n_classes);
        let (totals, weights) = tail.split_at(self.n_classes);
        (counts, totals, weights)
    }
}

impl Events {
    /// What `value` counts for.
    #[inline(always)]
    fn count(self, value: f64) -> f64 {
        match self {
            Self::Presence { above } if value > above => 1.0,
            Self::Presence { .. } => 0.0,
            Self::Counts | Self::Complement { .. } => value,
        }
    }
}

/// What turns counts into outputs.
struct Terms<'a> {
    model: &'a DiscreteNb,
    /// k, one a class.
    constants: Vec<f64>,
    /// The part of a class's terms that is the same for all features, and what they are
    /// multiplied with.
    common: Vec<[f64; 2]>,
    /// All terms, where they were worth writing down.
    table: Option<Vec<f64>>,
}

impl<'a> Terms<'a> {
    /// For rows that store `n_stored` values in all.
    fn new(model: &'a DiscreteNb, n_stored: usize) -> Self {
        let (_, totals, weights) = model.parts();
        let (d, alpha) = (model.n_features as f64, model.options.alpha);
        let common = |class: usize| match model.options.events {
            Events::Counts => [(totals[class] + alpha * d).ln(), 1.0],
            Events::Complement { .. } => [(rest(totals, class) + alpha * d).ln(), -1.0],
            Events::Presence { .. } => [0.0, 1.0],
        };
        let mut constants = model.options.priors.logs(weights);
        if let Events::Complement { .. } = model.options.events {
            // A score, not a likelihood: all that matters is who was seen.
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
        let (counts, _, weights) = self.model.parts();
        let (d, alpha) = (self.model.n_features as f64, self.model.options.alpha);
        let n_classes = self.model.n_classes;
        match self.model.options.events {
            Events::Counts | Events::Complement { norm: false } => {}
            Events::Complement { norm: true } => {
                for (class, [common, factor]) in self.common.iter_mut().enumerate() {
                    let others = counts.chunks_exact(n_classes);
                    let others = others.map(|counts| rest(counts, class) + alpha);
                    *factor = 1.0 / (others.collect::<LogSum>().value() - d * *common);
                }
            }
            Events::Presence { .. } => {
                let mut absent = vec![LogSum::EMPTY; n_classes];
                for counts in counts.chunks_exact(n_classes) {
                    for ((absent, weight), count) in absent.iter_mut().zip(weights).zip(counts) {
                        absent.add((weight - count).max(0.0) + alpha);
                    }
                }
                for ((k, absent), weight) in self.constants.iter_mut().zip(absent).zip(weights) {
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
        let (counts, _, weights) = self.model.parts();
        let counts = &counts[feature * self.model.n_classes..][..self.model.n_classes];
        let alpha = self.model.options.alpha;
        let ratio = match self.model.options.events {
            Events::Counts => counts[class] + alpha,
            Events::Complement { .. } => rest(counts, class) + alpha,
            Events::Presence { .. } => {
                let absent = (weights[class] - counts[class]).max(0.0);
                (counts[class] + alpha) / (absent + alpha)
            }
        };
        let [common, factor] = self.common[class];
        (ratio.ln() - common) * factor
    }

    fn evaluate<R: Row>(&self, row: R, out: &mut [f64]) {
        let n_classes = out.len();
        out.copy_from_slice(&self.constants);
        for (feature, value) in row.entries() {
            let events = self.model.options.events.count(value);
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

/// The weight of a feature in all classes but one.
#[inline(always)]
fn rest(counts: &[f64], class: usize) -> f64 {
    counts[..class].iter().sum::<f64>() + counts[class + 1..].iter().sum::<f64>()
}

impl Flat for DiscreteNb {
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

impl<R: Layout> Learner<Examples<'_, R>> for DiscreteNb {
    fn effort(&self, data: &Examples<'_, R>) -> Effort {
        let touched = data.stored_per_row();
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
        let (events, n_classes) = (self.options.events, self.n_classes);
        let (counts, tail) = self.state.split_at_mut(self.n_features * n_classes);
        undo.save_all(counts.len(), tail);
        for index in data.ahead(rows) {
            let (class, weight) = (codes[index] as usize, data.weight(index));
            for (feature, value) in data.rows().row(index).entries() {
                let count = weight * events.count(value);
                if count < 0.0 {
                    return Err(Error::Value {
                        place: format!("X[{index}, {feature}]"),
                        value,
                        rule: "Negative values in data are not counts",
                    });
                }
                if count > 0.0 {
                    let slot = feature * n_classes + class;
                    undo.save(slot, counts[slot]);
                    counts[slot] += count;
                    tail[class] += count;
                }
            }
            tail[n_classes + class] += weight;
        }
        Ok(())
    }

    fn evaluate(&self, data: &Examples<'_, R>, rows: &[usize], out: &mut [f64]) -> Result<()> {
        data.check_features(self.n_features)?;
        let row = |index| data.rows().row(index);
        let terms = Terms::new(self, rows.iter().map(|&index| row(index).n_stored()).sum());
        for (index, out) in data.ahead(rows).zip(out.chunks_exact_mut(self.n_classes)) {
            terms.evaluate(row(index), out);
        }
        Ok(())
    }

    fn batch(&self, data: &Examples<'_, R>) -> usize {
        super::rows_worth(self.n_features as f64, data.stored_per_row())
    }
}

impl Mergeable for DiscreteNb {
    fn merge(&mut self, other: &Self) -> Result<()> {
        super::add(&mut self.state, &other.state);
        Ok(())
    }
}
