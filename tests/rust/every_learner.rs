//! All learners of the registry, with the options that change what they do.

use onefold::learners::Parameter::{Bool, Float, Int, Text, Vectors};
use onefold::learners::{CandidateSet, LEARNERS, Learner, LearnerSpec, Parameter};

use crate::sets::{Layouts, Set};

/// The number of classes that learners of classes are built for.
pub(crate) const N_CLASSES: usize = 3;

/// What a learner learns.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Targets {
    None,
    Classes,
    Values,
}

impl Targets {
    /// The rows of a set with these targets, in both layouts.
    pub(crate) fn of(self, set: &Set) -> Layouts<'_> {
        match self {
            Self::None => set.unlabelled(),
            Self::Classes => set.classified(),
            Self::Values => set.valued(),
        }
    }
}

type NamedParameters = Vec<(&'static str, Parameter)>;

/// A learner that has learnt nothing.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) targets: Targets,
    pub(crate) learner: Box<dyn Learner>,
}

/// Every learner for rows of counts, and several candidates as one learner.
pub(crate) fn every_learner(n_features: usize) -> Vec<Case> {
    let mut cases = learners_where(|_| true, n_features);
    let classifiers = cases
        .iter()
        .filter(|case| matches!(case.targets, Targets::Classes));
    let candidates = classifiers.map(|case| case.learner.fork().expect("forked"));
    let candidates = CandidateSet::new(candidates.collect()).expect("valid");
    cases.push(Case {
        name: "candidates",
        targets: Targets::Classes,
        learner: Box::new(candidates),
    });
    cases
}

/// The learners whose name is chosen.
pub(crate) fn learners_where(is_chosen: impl Fn(&str) -> bool, n_features: usize) -> Vec<Case> {
    let names = LEARNERS.iter().copied();
    let chosen = every_spec(n_features)
        .into_iter()
        .filter_map(|(spec, targets)| {
            let name = names
                .clone()
                .find(|name| *name == spec.name && is_chosen(name))?;
            let learner = spec.build().expect("valid");
            Some(Case {
                name,
                targets,
                learner,
            })
        });
    chosen.collect()
}

/// What every learner is built from, for rows of counts, and what it learns.
pub(crate) fn every_spec(n_features: usize) -> Vec<(LearnerSpec, Targets)> {
    let edges = vec![vec![-1.0, 0.5, 1.5, 4.0]; n_features];
    let text = |value: &str| Text(value.into());
    let options: Vec<(&str, Targets, NamedParameters)> = vec![
        ("discrete_nb", Targets::Classes, vec![]),
        (
            "discrete_nb",
            Targets::Classes,
            vec![("event_model", text("complement")), ("norm", Bool(true))],
        ),
        (
            "discrete_nb",
            Targets::Classes,
            vec![("event_model", text("bernoulli")), ("binarize", Float(1.0))],
        ),
        (
            "gaussian_density",
            Targets::None,
            vec![("reg_covar", Float(0.1))],
        ),
        (
            "gaussian_density",
            Targets::None,
            vec![("covariance", text("diagonal")), ("reg_covar", Float(0.1))],
        ),
        (
            "gaussian_nb",
            Targets::Classes,
            vec![("var_smoothing", Float(0.1))],
        ),
        (
            "histogram_density",
            Targets::None,
            vec![("edges", Vectors(edges))],
        ),
        ("least_squares_sgd", Targets::Values, vec![]),
        (
            "least_squares_sgd",
            Targets::Values,
            vec![
                ("step", Float(0.2)),
                ("radius", Float(0.05)),
                ("fit_intercept", Bool(true)),
            ],
        ),
        (
            "logistic_sgd",
            Targets::Classes,
            vec![("alpha", Float(0.01))],
        ),
        ("online_kmeans", Targets::None, vec![("n_clusters", Int(4))]),
        ("passive_aggressive", Targets::Classes, vec![]),
        (
            "passive_aggressive",
            Targets::Classes,
            vec![
                ("C", Float(0.5)),
                ("variant", text("PA-II")),
                ("fit_intercept", Bool(false)),
            ],
        ),
        (
            "pegasos",
            Targets::Classes,
            vec![("alpha", Float(0.123_456_7))],
        ),
        (
            "pegasos",
            Targets::Classes,
            vec![
                ("alpha", Float(0.1)),
                ("project", Bool(true)),
                ("fit_intercept", Bool(true)),
            ],
        ),
        ("perceptron", Targets::Classes, vec![]),
        ("recursive_least_squares", Targets::Values, vec![]),
        ("ridge_statistics", Targets::Values, vec![]),
    ];
    for name in LEARNERS {
        let is_listed = options.iter().any(|(listed, ..)| listed == name);
        assert!(is_listed, "{name} is not tested");
    }
    options
        .into_iter()
        .map(|(name, targets, parameters)| {
            let n_targets = if let Targets::Values = targets {
                1
            } else {
                N_CLASSES
            };
            let spec = LearnerSpec {
                name: name.into(),
                n_features,
                n_targets,
                parameters: parameters.into_iter().collect(),
            };
            (spec, targets)
        })
        .collect()
}
