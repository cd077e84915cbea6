//! Several candidates at once: the laws, and the same bits as each alone, whatever the engine.

use onefold::data::Dataset;
use onefold::learners::{CandidateSet, Learner, Order, Pegasos, PegasosOptions};
use onefold::merge::Merge;
use onefold::refit::Refit;
use onefold::tree::Tree;
use onefold::{Engine, Error, Folds, Job, Monitor, Resampling, Splits};

use crate::algebra::assert_close;
use crate::every_learner::{Targets, every_learner, learners_where};
use crate::laws::check_laws;
use crate::naive_bayes::every_discrete;
use crate::sets::Set;
use crate::tree::{ORDERS, STRATEGIES, pools, run_in};

fn machines(n_features: usize, n_classes: usize) -> Vec<Box<dyn Learner>> {
    [(0.123_456_7, false), (0.9, true), (0.01, true)]
        .map(|(alpha, fit_intercept)| PegasosOptions {
            alpha,
            fit_intercept,
            ..PegasosOptions::default()
        })
        .map(|options| Pegasos::new(options, n_features, n_classes).expect("valid"))
        .map(|learner| Box::new(learner) as Box<dyn Learner>)
        .into()
}

fn check(
    engine: &dyn Engine<dyn Learner>,
    candidates: &[Box<dyn Learner>],
    data: &Dataset<'_>,
    folds: &dyn Resampling,
) {
    let candidates: Vec<&dyn Learner> = candidates.iter().map(|learner| &**learner).collect();
    let together = engine.out_of_fold(&candidates, &Job::new(data, folds, &Monitor::new()));
    let together = together.expect("valid");
    assert_eq!(together.len(), candidates.len());
    for (together, candidate) in together.iter().zip(candidates) {
        let alone = engine
            .cross_validate(candidate, data, folds)
            .expect("valid");
        assert_eq!(together.outputs, alone.outputs, "{candidate:?}");
        assert_eq!(together.cost.rows_fed, alone.cost.rows_fed);
        assert_eq!(together.cost.rows_evaluated, alone.cost.rows_evaluated);
    }
}

#[test]
fn laws() {
    for n_classes in [2, 4] {
        let set = Set::new(1, 50, 9, n_classes);
        let together = CandidateSet::new(machines(9, n_classes)).expect("valid");
        check_laws(&together, set.classified(), 0.0);
    }
}

#[test]
fn the_tree_gives_the_bits_of_each_alone() {
    // More rows than a block holds.
    let set = Set::new(2, 1000, 9, 3);
    let machines = machines(9, 3);
    for folds in [8, 50].map(|k| Folds::contiguous(1000, k).expect("valid")) {
        for order in ORDERS {
            for strategy in STRATEGIES {
                let tree = Tree {
                    strategy,
                    order,
                    ..Tree::in_given_order()
                };
                for pool in pools().iter().step_by(2) {
                    run_in(pool.as_ref(), || {
                        for data in set.classified() {
                            check(&tree, &machines, &data, &folds);
                        }
                    });
                }
            }
        }
    }
}

/// Candidates may be learners of different types. Those that depend on the order of rows are not mixed
/// with others here: these would be given a random order that they ignore when they are alone.
#[test]
fn different_learners_run_together() {
    let set = Set::counts(5, 60, 9, 3);
    let cases = learners_where(|_| true, 9).into_iter();
    let (dependent, mut learners): (Vec<_>, Vec<_>) = cases
        .filter(|case| matches!(case.targets, Targets::Classes))
        .map(|case| case.learner)
        .partition(|learner| learner.depends_on_order());
    let folds = Folds::shuffled(60, 13, 2).expect("valid");
    for data in set.classified() {
        for learners in [&dependent, &learners] {
            assert!(learners.len() > 2);
            for order in ORDERS {
                check(&Refit { order }, learners, &data, &folds);
                for strategy in STRATEGIES {
                    let tree = Tree {
                        strategy,
                        order,
                        ..Tree::default()
                    };
                    check(&tree, learners, &data, &folds);
                }
            }
        }
    }
    // What is merged depends on the cost of all candidates, so results are the same to rounding.
    learners.retain(|learner| learner.is_mergeable());
    let candidates: Vec<&dyn Learner> = learners.iter().map(|learner| &**learner).collect();
    assert!(candidates.len() > 3);
    for data in set.classified() {
        let together =
            Merge::default().out_of_fold(&candidates, &Job::new(&data, &folds, &Monitor::new()));
        for (together, candidate) in together.expect("valid").iter().zip(&candidates) {
            let alone = Merge::default().cross_validate(*candidate, &data, &folds);
            let [together, alone] = [together, &alone.expect("valid")]
                .map(|found| found.outputs.iter().copied().collect::<Vec<_>>());
            assert_close(&together, &alone, 1e-9, "merged");
        }
    }
}

#[test]
fn refits_and_mergers_give_the_bits_of_each_alone() {
    let set = Set::new(3, 120, 9, 3);
    let [dense, _] = set.classified();
    let folds = Folds::contiguous(120, 7).expect("valid");
    let pairs = [(vec![0, 5, 2, 9], vec![1, 3]), (vec![4, 7], vec![5, 1])];
    let splits = Splits::new(120, pairs.to_vec()).expect("valid");
    for order in [Order::Fixed, Order::Random { seed: 5 }] {
        check(&Refit { order }, &machines(9, 3), &dense, &folds);
        check(&Refit { order }, &machines(9, 3), &dense, &splits);
    }
    let set = Set::counts(4, 120, 9, 3);
    let [counts, _] = set.classified();
    let learners = every_discrete(9).into_iter();
    let learners: Vec<_> = learners.map(|learner| Box::new(learner) as _).collect();
    check(&Merge::default(), &learners, &counts, &folds);
}

#[test]
fn no_candidates_are_refused() {
    let none = CandidateSet::new(vec![]);
    assert!(matches!(none, Err(Error::Parameter { .. })));
    let set = Set::new(6, 10, 3, 2);
    let folds = Folds::contiguous(10, 2).expect("valid");
    let found = Tree::default().out_of_fold(
        &[],
        &Job::new(&set.classified()[0], &folds, &Monitor::new()),
    );
    assert!(matches!(found, Err(Error::Parameter { .. })));
}

/// A set of candidates is no candidate of another set.
#[test]
fn sets_of_sets_are_refused() {
    let set = every_learner(9)
        .pop()
        .expect("the set of candidates")
        .learner;
    let found = CandidateSet::new(vec![set]);
    let message = found.expect_err("refused").to_string();
    assert_eq!(
        message,
        "learners must be single candidates, got a set of candidates"
    );
}
