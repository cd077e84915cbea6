//! Features that no row stores: for learners that ignore them, leaving them out changes no bit.

use onefold::data::{Csr, Dataset, Rows};
use onefold::learners::{LEARNERS, Learner, ignores_absent_features};
use onefold::refit::Refit;
use onefold::tree::Tree;
use onefold::{Engine, Folds, Resampling, Splits};

use crate::every_learner::{Targets, learners_where};
use crate::sets::Set;
use crate::tree::{ORDERS, STRATEGIES, pools, run_in};

const N_ROWS: usize = 30;
/// The number of features that occur.
const N_COMPACT: usize = 9;
/// Every 4 000th feature of these occurs in some row.
const N_FEATURES: usize = 36_000;

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

/// The tree, refits of folds and refits of splits give the same outputs for many features as for those
/// that occur, exactly for the learners that the registry names.
#[test]
fn the_registry_names_the_learners_that_ignore_absent_features() {
    let set = Set::counts(31, N_ROWS, N_COMPACT, 3);
    let (indptr, indices, values) = spread(&set);
    let rows = Csr::new(&indptr, &indices, &values, N_FEATURES).expect("valid");
    let wide = Dataset::new(Rows::Csr64(rows)).expect("finite");
    let labels: Vec<usize> = (0..N_ROWS).map(|row| row * 17 % N_ROWS % 7).collect();
    let folds = Folds::from_labels(&labels, 7).expect("valid");
    let splits = Splits::new(N_ROWS, vec![((0..20).collect(), vec![25, 21])]).expect("valid");
    // The covariances of so many features exceed memory.
    let quadratic = [
        "gaussian_density",
        "recursive_least_squares",
        "ridge_statistics",
    ];
    let cases = |n_features| learners_where(|name| !quadratic.contains(&name), n_features);
    for (compact_case, wide_case) in cases(N_COMPACT).iter().zip(cases(N_FEATURES)) {
        let ignores = ignores_absent_features(compact_case.name);
        let [_, compact] = set.weighted(compact_case.targets.of(&set));
        let wide = wide.with_weights(set.weights()).expect("valid");
        let wide = match compact_case.targets {
            Targets::None => wide,
            Targets::Classes => wide.with_classes(set.codes(), 3).expect("valid"),
            Targets::Values => {
                let values = set.values().insert_axis(ndarray::Axis(1));
                wide.with_values(values).expect("valid")
            }
        };
        for pool in pools().iter().step_by(2) {
            run_in(pool.as_ref(), || {
                for order in ORDERS {
                    let check = |engine: &dyn Engine<dyn Learner>, folds: &dyn Resampling| {
                        let a = engine.cross_validate(&*compact_case.learner, &compact, folds);
                        let b = engine.cross_validate(&*wide_case.learner, &wide, folds);
                        let [a, b] = [a, b].map(|found| found.expect("valid").outputs);
                        assert_eq!(a == b, ignores, "{}", compact_case.name);
                    };
                    for strategy in STRATEGIES {
                        check(
                            &Tree {
                                strategy,
                                order,
                                ..Tree::in_given_order()
                            },
                            &folds,
                        );
                    }
                    check(&Refit { order }, &folds);
                    check(&Refit { order }, &splits);
                }
            });
        }
    }
    assert!(LEARNERS.iter().any(|name| ignores_absent_features(name)));
    assert!(!ignores_absent_features("no learner"));
}
