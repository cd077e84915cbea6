//! Features that no row stores: leaving them out changes no bit, whatever the learner.

use onefold::data::{Csr, Examples};
use onefold::learners::{
    Correction, LeastSquaresOptions, LeastSquaresSgd, LogisticOptions, LogisticSgd, OnlineKMeans,
    PassiveAggressive, PassiveAggressiveOptions, Pegasos, PegasosOptions, Perceptron,
    PerceptronOptions,
};
use onefold::tree::{
    Flat, Learner, Options, Several, cross_validate, cross_validate_examples, refit, refit_examples,
};
use onefold::{Folds, Monitor, Splits};

use crate::naive_bayes::every_discrete;
use crate::sets::Set;
use crate::tree::{pools, run_in};

const N_ROWS: usize = 30;
/// Every 4 000th feature of these is stored in some row.
const N_FEATURES: usize = 36_000;

type Wide<'a> = Examples<'a, Csr<'a, i64>>;

/// The arrays of `set`, whose features are spread.
fn spread(set: &Set) -> (Vec<i64>, Vec<i64>, Vec<f64>) {
    let (mut indptr, mut indices, mut values) = (vec![0], vec![], vec![]);
    for row in set.dense() {
        for (feature, &value) in (0..).zip(row).filter(|(_, value)| **value != 0.0) {
            indices.push(feature * 4_000 + 7);
            values.push(value);
        }
        indptr.push(i64::try_from(values.len()).expect("small"));
    }
    (indptr, indices, values)
}

/// The tree, refits of folds and refits of splits give what they give on the features as they are.
fn check<L>(learner: &L, examples: &Wide<'_>)
where
    L: Flat + for<'a> Learner<Wide<'a>>,
{
    let labels: Vec<usize> = (0..N_ROWS).map(|row| row * 17 % N_ROWS % 7).collect();
    let folds = Folds::from_labels(&labels, 7).expect("valid");
    let splits = Splits::new(N_ROWS, vec![((0..20).collect(), vec![25, 21])]).expect("valid");
    let options = Options::default();
    let several = Several::new(vec![learner.clone(), learner.clone()]).expect("valid");
    for pool in pools().iter().step_by(2) {
        run_in(pool.as_ref(), || {
            let monitor = Monitor::new();
            macro_rules! same {
                ($narrow:expr, $plain:expr) => {
                    assert_eq!(
                        $narrow.expect("valid").outputs,
                        $plain.expect("valid").outputs
                    )
                };
            }
            same!(
                cross_validate_examples::<Csr<'_, i64>, _>(
                    learner, examples, &folds, &options, &monitor
                ),
                cross_validate(learner, examples, &folds, &options, &monitor)
            );
            same!(
                cross_validate_examples(&several, examples, &folds, &options, &monitor),
                cross_validate(&several, examples, &folds, &options, &monitor)
            );
            same!(
                refit_examples::<Csr<'_, i64>, _, _>(
                    learner,
                    examples,
                    &folds,
                    options.order,
                    &monitor
                ),
                refit(learner, examples, &folds, options.order, &monitor)
            );
            same!(
                refit_examples::<Csr<'_, i64>, _, _>(
                    learner,
                    examples,
                    &splits,
                    options.order,
                    &monitor
                ),
                refit(learner, examples, &splits, options.order, &monitor)
            );
        });
    }
}

#[test]
fn linear_learners_have_the_same_bits() {
    for (n_classes, intercept) in [(2, true), (3, false)] {
        let set = Set::new(31, N_ROWS, 9, n_classes);
        let (indptr, indices, values) = spread(&set);
        let rows = Csr::new(&indptr, &indices, &values, N_FEATURES).expect("valid");
        let classes = Examples::classified(rows, set.codes(), n_classes).expect("valid");
        let numbers = Examples::valued(rows, set.values(), 1).expect("valid");
        let numbers = numbers.weighted(set.weights()).expect("valid");
        let pegasos = PegasosOptions {
            alpha: 0.1,
            project: intercept,
            intercept,
        };
        check(
            &Pegasos::new(pegasos, N_FEATURES, n_classes).expect("valid"),
            &classes,
        );
        let logistic = LogisticOptions {
            alpha: 0.01,
            eta0: 0.3,
            intercept,
        };
        check(
            &LogisticSgd::new(logistic, N_FEATURES, n_classes).expect("valid"),
            &classes,
        );
        let perceptron = PerceptronOptions { intercept };
        check(
            &Perceptron::new(perceptron, N_FEATURES, n_classes).expect("valid"),
            &classes,
        );
        let correction = [Correction::Bounded, Correction::Damped][usize::from(intercept)];
        let aggressive = PassiveAggressiveOptions {
            aggressiveness: 0.5,
            correction,
            intercept,
        };
        check(
            &PassiveAggressive::new(aggressive, N_FEATURES, n_classes).expect("valid"),
            &classes,
        );
        let squares = LeastSquaresOptions {
            step: 0.2,
            radius: 0.01,
            intercept,
        };
        check(
            &LeastSquaresSgd::new(squares, N_FEATURES, 1).expect("valid"),
            &numbers,
        );
    }
}

#[test]
fn clusters_have_the_same_bits() {
    let set = Set::new(32, N_ROWS, 9, 2);
    let (indptr, indices, values) = spread(&set);
    let rows = Csr::new(&indptr, &indices, &values, N_FEATURES).expect("valid");
    let learner = OnlineKMeans::new(3, N_FEATURES).expect("valid");
    check(&learner, &Examples::unlabelled(rows));
}

/// Smoothing counts every feature, stored or not.
#[test]
fn naive_bayes_keeps_its_features() {
    let set = Set::counts(33, N_ROWS, 9, 3);
    let (indptr, indices, values) = spread(&set);
    let rows = Csr::new(&indptr, &indices, &values, N_FEATURES).expect("valid");
    let examples = Examples::classified(rows, set.codes(), 3).expect("valid");
    for learner in every_discrete(N_FEATURES) {
        assert!(Flat::narrowed(&learner, N_FEATURES, 9).is_none());
        check(&learner, &examples);
    }
}
