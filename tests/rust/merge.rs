//! Merging against refits: for every mergeable learner, any folds, both layouts, with and without
//! weights, any cut into parts and any number of threads.

use onefold::data::Dataset;
use onefold::learners::{Covariance, GaussianNb, Learner, Order, RidgeStatistics};
use onefold::merge::Merge;
use onefold::refit::Refit;
use onefold::tree::Tree;
use onefold::{Cost, Engine as _, Error, Folds, Job, Monitor, OutOfFold, Splits};

use crate::algebra::assert_close;
use crate::densities::{gaussian, histogram};
use crate::every_learner::every_learner;
use crate::laws::{bits, updated};
use crate::least_squares::{every_option, targets};
use crate::naive_bayes::{every_discrete, every_gaussian};
use crate::sets::{Layouts, Set};
use crate::textbook::evaluate;
use crate::tree::{STRATEGIES, WithCost, folds_of, pegasos, pools, run_in};

/// The size of a model of which memory is limited to `n_parts` parts.
fn copy_for_parts(n_parts: u32) -> f64 {
    f64::from(1 << 21) / f64::from(n_parts)
}

/// Every cost model leads to another mixture of merging, feeding and cutting.
fn every_cost(learner: &dyn Learner) -> Vec<WithCost> {
    let [five, three, two] = [5, 3, 2].map(copy_for_parts);
    // One row is worth feeding when its update is at most twice a copy.
    let costs = [
        (1e-6, 1.0),
        (0.9, 1.0),
        (1e6, 1.0),
        (1e-6 * five, five),
        (1e6 * five, five),
        (0.9 * three, three),
        (1e6 * two, two),
    ];
    costs
        .into_iter()
        .map(|(update, copy)| WithCost::new(learner, update, copy))
        .collect()
}

/// Merging a and b gives what a and b together give, either way, and no rows change nothing. The
/// model that is merged, and other handles of both, stay as they are.
fn check_merging(empty: &dyn Learner, data: &Dataset<'_>, tolerance: f64) {
    let order: Vec<usize> = (0..data.n_rows()).collect();
    let (some, others) = order.split_at(order.len() / 3);
    let expected = evaluate(&*updated(empty, data, &order), data, &order);
    for (first, second) in [
        (some, others),
        (others, some),
        (&order[..], &[]),
        (&[], &order),
    ] {
        let mut model = updated(empty, data, first);
        let other = updated(empty, data, second);
        let handle = model.fork().expect("forked");
        let before = [bits(&*handle), bits(&*other)];
        model.merge(&*other).expect("merged");
        assert_close(
            &evaluate(&*model, data, &order),
            &expected,
            tolerance,
            "merged",
        );
        assert_eq!([bits(&*handle), bits(&*other)], before);
    }
}

/// Models of different types do not merge.
#[test]
fn another_learner_is_refused() {
    let learners = every_learner(4);
    let mergeable = || learners.iter().filter(|case| case.learner.is_mergeable());
    for (one, other) in mergeable().flat_map(|one| mergeable().map(move |other| (one, other))) {
        if one.name != other.name {
            let mut model = one.learner.fork().expect("forked");
            let before = bits(&*model);
            let merged = model.merge(&*other.learner);
            let message = merged.expect_err("refused").to_string();
            assert_eq!(
                message,
                "learner must be of the same type as the other, got another"
            );
            assert_eq!(bits(&*model), before);
        }
    }
}

/// The tree gives rows in another order than refits do, on which these learners do not depend.
pub(crate) fn check_tree(empty: &dyn Learner, data: &Dataset<'_>, folds: &Folds, tolerance: f64) {
    let refitted = Refit::default().cross_validate(empty, data, folds);
    let found = STRATEGIES.map(|strategy| {
        let tree = Tree {
            strategy,
            order: Order::Random { seed: 77 },
            ..Tree::default()
        };
        values(&tree.cross_validate(empty, data, folds).expect("valid"))
    });
    assert_close(
        &found[0],
        &values(&refitted.expect("valid")),
        tolerance,
        "tree",
    );
    assert!(found.iter().all(|outputs| *outputs == found[0]));
}

fn values(found: &OutOfFold) -> Vec<f64> {
    found.outputs.iter().copied().collect()
}

fn check(empty: &dyn Learner, data: &Dataset<'_>, tolerance: f64) {
    check_merging(empty, data, tolerance);
    let pools = pools();
    for folds in folds_of(data.n_rows()) {
        let expected = Refit::default().cross_validate(empty, data, &folds);
        let expected = values(&expected.expect("valid"));
        check_tree(empty, data, &folds, tolerance);
        for learner in every_cost(empty) {
            let context = format!("k = {}, {} {}", folds.len(), learner.update, learner.copy);
            let mut first = None;
            for pool in &pools {
                let monitor = Monitor::new();
                let found = run_in(pool.as_ref(), || {
                    let found = Merge::default()
                        .out_of_fold(&[&learner], &Job::new(data, &folds, &monitor));
                    found.expect("valid").remove(0)
                });
                assert_close(&values(&found), &expected, tolerance, &context);
                let (done, total) = monitor.progress();
                assert_eq!(done, total, "{context}");
                assert_eq!(done, found.cost.rows_fed + found.cost.rows_evaluated);
                // Whatever the threads: same bits, same counts.
                let counted = Cost {
                    peak_models: 0,
                    ..found.cost
                };
                let found = (found.outputs, counted);
                assert_eq!(
                    *first.get_or_insert_with(|| found.clone()),
                    found,
                    "{context}"
                );
            }
        }
    }
}

/// One set of rows in both layouts, with weights and without.
fn check_all(empty: &dyn Learner, set: &Set, data: Layouts<'_>, tolerance: f64) {
    for data in data {
        check(empty, &data, tolerance);
        let data = data.with_weights(set.weights()).expect("valid");
        check(empty, &data, tolerance);
    }
}

#[test]
fn gaussian_naive_bayes_equals_refits() {
    let set = Set::new(71, 23, 4, 3);
    for model in every_gaussian(4) {
        check_all(&model, &set, set.classified(), 1e-10);
    }
}

/// Counts are whole numbers and halves: no sum of them rounds.
#[test]
fn discrete_naive_bayes_equals_refits_bit_for_bit() {
    let set = Set::counts(72, 23, 4, 3);
    for model in every_discrete(4) {
        check_all(&model, &set, set.classified(), 0.0);
    }
}

#[test]
fn densities_equal_refits() {
    let set = Set::new(73, 23, 3, 2);
    for covariance in [Covariance::Full, Covariance::Diagonal] {
        let model = gaussian(covariance, 1e-3, 3);
        check_all(&model, &set, set.unlabelled(), 1e-10);
    }
    for narrow in [false, true] {
        let model = histogram(3, 0.5, narrow);
        check_all(&model, &set, set.unlabelled(), 0.0);
    }
}

#[test]
fn least_squares_equal_refits() {
    let set = Set::new(74, 23, 3, 2);
    for options in every_option() {
        let y = targets(23, 2);
        let model = RidgeStatistics::new(options, 3, 2).expect("valid");
        check_all(&model, &set, set.with_values(y.view()), 1e-10);
    }
}

fn model_and_set() -> (GaussianNb, Set) {
    (every_gaussian(4).remove(0), Set::new(75, 60, 4, 3))
}

#[test]
fn counters_obey_the_theory() {
    let (model, set) = model_and_set();
    let [dense, _] = set.classified();
    let run = |update, copy, n_folds| {
        let learner = WithCost::new(&model, update, copy);
        let folds = Folds::contiguous(60, n_folds).expect("valid");
        let found = run_in(pools()[1].as_ref(), || {
            Merge::default().cross_validate(&learner, &dense, &folds)
        });
        let found = found.expect("valid");
        assert_eq!(found.cost.rows_evaluated, 60);
        found.cost
    };
    for k in [2, 3, 10, 60] {
        let n_folds = usize::try_from(k).expect("small");
        // One level, all merged: the scheme of the paper.
        let cost = run(100.0, 1.0, n_folds);
        assert_eq!(
            (cost.fits, cost.rows_fed, cost.merges, cost.copies),
            (k, 60, 3 * k - 4, k - 1)
        );
        assert_eq!(cost.peak_models, 2 * k);
        // One level, all fed: prefixes and suffixes, without the first and the last fold.
        let cost = run(1.0, 100.0, n_folds);
        assert_eq!(
            (cost.fits, cost.rows_fed, cost.merges, cost.copies),
            (1, 2 * (60 - 60 / k), k - 1, k - 1)
        );
        assert_eq!(cost.peak_models, k + 1);
        // Room for the least number of parts: a binary tree.
        let cost = run(1e15, 1e12, n_folds);
        let levels = u64::from((k - 1).ilog2()) + 1;
        assert!(cost.rows_fed <= 60 * levels && cost.merges == 2 * (k - 1));
        assert_eq!(cost.copies, k - 1);
        assert!(cost.peak_models <= levels + 3);
    }
    // Two levels: 8 parts of 7 or 8 folds.
    let cost = run(1e15, copy_for_parts(8), 60);
    assert_eq!(cost.rows_fed, 120);
    assert_eq!(cost.merges, (3 * 8 - 4) + (3 * 60 - 8 * 4));
    assert!(cost.peak_models <= 2 * 8 + 2 * 8);
}

#[test]
fn what_cannot_be_merged_is_refused_and_cancelling_ends_the_work() {
    let (model, set) = model_and_set();
    let [dense, _] = set.classified();
    let message = |found: onefold::Result<OutOfFold>| found.expect_err("refused").to_string();
    let other = Folds::contiguous(61, 3).expect("valid");
    assert_eq!(
        message(Merge::default().cross_validate(&model, &dense, &other)),
        "samples of the folds: expected length 60, got 61"
    );
    let splits = Splits::new(60, vec![(vec![0, 1], vec![2])]).expect("valid");
    assert!(
        message(Merge::default().cross_validate(&model, &dense, &splits))
            .contains("the engine merge")
    );
    let folds = Folds::contiguous(60, 3).expect("valid");
    assert_eq!(
        message(Merge::default().cross_validate(&pegasos(4, 3), &dense, &folds)),
        "learner must be one whose models can be merged, got another"
    );
    // Two rows, two folds: a single row has no variance.
    let two = Set::new(76, 2, 4, 3);
    let folds = Folds::contiguous(2, 2).expect("valid");
    let [two, _] = two.classified();
    let found = message(Merge::default().cross_validate(&model, &two, &folds));
    assert!(found.starts_with("var_smoothing must be large enough"));
    let monitor = Monitor::new();
    monitor.cancel();
    for pool in pools() {
        for folds in folds_of(60) {
            let found = run_in(pool.as_ref(), || {
                Merge::default().out_of_fold(&[&model], &Job::new(&dense, &folds, &monitor))
            });
            assert!(matches!(found, Err(Error::Interrupted)));
        }
    }
}
