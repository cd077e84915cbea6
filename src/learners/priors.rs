//! How probable the classes are before a row is looked at.

use std::sync::Arc;

use crate::{Error, Result};

/// The prior probabilities of the classes.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(
    feature = "registry",
    derive(serde::Deserialize),
    serde(from = "Option<Vec<f64>>")
)]
pub enum Priors {
    /// The fraction of the weight of each class.
    #[default]
    Counted,
    /// Given priors, one per class; none at all for equal priors.
    Given(Arc<[f64]>),
}

impl From<Option<Vec<f64>>> for Priors {
    fn from(priors: Option<Vec<f64>>) -> Self {
        priors.map_or(Self::Counted, |priors| Self::Given(priors.into()))
    }
}

impl Priors {
    /// Whether there are classes to choose from and these are their priors.
    pub(super) fn check(&self, n_classes: usize) -> Result<()> {
        if n_classes < 2 {
            return Err(Error::Parameter {
                name: "y",
                rule: "of at least two classes",
                value: format!("{n_classes} class(es)"),
            });
        }
        let Self::Given(priors) = self else {
            return Ok(());
        };
        if priors.is_empty() {
            return Ok(());
        }
        if priors.len() != n_classes {
            return Err(Error::Shape {
                what: "priors",
                expected: n_classes,
                found: priors.len(),
            });
        }
        let sum: f64 = priors.iter().sum();
        if priors.iter().any(|p| p.is_nan() || *p < 0.0) || (sum - 1.0).abs() > 1e-8 {
            return Err(Error::Parameter {
                name: "priors",
                rule: "not negative and of sum 1",
                value: format!("{priors:?}"),
            });
        }
        Ok(())
    }

    /// The logarithm of each class's prior, where the classes were seen with these weights.
    ///
    /// A class without weight has −∞, given priors or not: what was never seen is never
    /// predicted, as by a model that was fitted without that class.
    pub(super) fn logs(&self, weights: &[f64]) -> Vec<f64> {
        let total: f64 = weights.iter().sum();
        let log = |(class, &weight): (usize, &f64)| match self {
            _ if weight <= 0.0 => f64::NEG_INFINITY,
            Self::Counted => weight.ln() - total.ln(),
            Self::Given(priors) if priors.is_empty() => -(weights.len() as f64).ln(),
            Self::Given(priors) => priors[class].ln(),
        };
        weights.iter().enumerate().map(log).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priors_are_shares_or_what_was_given() {
        let counted = Priors::Counted;
        assert!(counted.check(7).is_ok());
        let logs = counted.logs(&[1.0, 0.0, 3.0]);
        assert!((logs[0] - 0.25_f64.ln()).abs() < 1e-15);
        assert_eq!(logs[1], f64::NEG_INFINITY);
        let given = Priors::Given([0.5, 0.25, 0.25].into());
        assert!(given.check(3).is_ok());
        let expected = [0.5_f64.ln(), f64::NEG_INFINITY, 0.25_f64.ln()];
        assert_eq!(given.logs(&[1.0, 0.0, 3.0]), expected);
    }

    #[test]
    fn what_is_no_distribution_is_refused() {
        let refused = |priors: &[f64]| {
            let error = Priors::Given(priors.into()).check(2);
            error.expect_err("refused").to_string()
        };
        assert_eq!(refused(&[1.0]), "priors: expected length 2, got 1");
        for bad in [[-0.5, 1.5], [0.5, 0.6], [f64::NAN, 1.0]] {
            assert!(refused(&bad).starts_with("priors must be not negative and of sum 1"));
        }
    }
}
