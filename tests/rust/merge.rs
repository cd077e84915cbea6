//! Merging against refits: for every mergeable learner, any folds, both layouts, with and without
//! weights, any cut into parts and any number of threads.

use std::fmt::Debug;

use onefold::data::{Csr, Dense, Examples, Samples};
use onefold::learners::{Covariance, GaussianNb, LeastSquaresStatistics};
use onefold::merge::{Mergeable, cross_validate};
use onefold::tree::{self, Learner, Options, Order, Outcome, Strategy, refit};
use onefold::{Cost, Error, Folds, Monitor, Result};

use crate::algebra::assert_close;
use crate::densities::{gaussian, histogram};
use crate::least_squares::{every_option, targets};
use crate::naive_bayes::{every_discrete, every_gaussian};
use crate::sets::Set;
use crate::tree::{Claims, folds_of, pools, run_in};

impl<L: Mergeable> Mergeable for Claims<L> {
    fn merge(&mut self, other: &Self) -> Result<()> {
        self.learner.merge(&other.learner)
    }
}

/// So large a model that there is room for so many parts only.
fn copy_for_parts(n_parts: u32) -> f64 {
    f64::from(1 << 21) / f64::from(n_parts)
}

/// Every claim leads to another mixture of merging, feeding and cutting.
fn every_claim<L: Clone>(learner: &L) -> Vec<Claims<L>> {
    let [five, three, two] = [5, 3, 2].map(copy_for_parts);
    // One row is worth feeding when its update is at most twice a copy.
    let claims = [
        (1e-6, 1.0),
        (0.9, 1.0),
        (1e6, 1.0),
        (1e-6 * five, five),
        (1e6 * five, five),
        (0.9 * three, three),
        (1e6 * two, two),
    ];
    claims
        .into_iter()
        .map(|(update, copy)| Claims {
            learner: learner.clone(),
            update,
            copy,
        })
        .collect()
}

/// Merging a and b gives what a and b together give, either way, and nothing changes nothing.
fn check_merging<D: Samples, L: Learner<D> + Mergeable>(empty: &L, data: &D, tolerance: f64) {
    let order: Vec<usize> = (0..data.n_samples()).collect();
    let fed = |rows: &[usize]| {
        let mut model = empty.copy().expect("copied");
        model.update(data, rows).expect("updated");
        model
    };
    let evaluate = |model: &L| {
        let mut out = vec![f64::NAN; order.len() * model.n_outputs()];
        model.evaluate(data, &order, &mut out).expect("evaluated");
        out
    };
    let (some, others) = order.split_at(order.len() / 3);
    let expected = evaluate(&fed(&order));
    for (first, second) in [
        (some, others),
        (others, some),
        (&order[..], &[]),
        (&[], &order),
    ] {
        let mut model = fed(first);
        model.merge(&fed(second)).expect("merged");
        assert_close(&evaluate(&model), &expected, tolerance, "merged");
    }
}

/// The tree feeds rows in another order than refits do, which these learners do not mind.
pub(crate) fn check_tree<D: Samples, L: Learner<D>>(
    empty: &L,
    data: &D,
    folds: &Folds,
    tolerance: f64,
) {
    let refitted = refit(empty, data, folds, Order::Fixed, &Monitor::new()).expect("refitted");
    let [auto, copy, revert] = [Strategy::Auto, Strategy::Copy, Strategy::Revert].map(|strategy| {
        let options = Options {
            strategy,
            order: Order::Random { seed: 77 },
        };
        let outcome = tree::cross_validate(empty, data, folds, &options, &Monitor::new());
        outcome.expect("valid").outputs
    });
    assert_close(&auto, &refitted.outputs, tolerance, "tree");
    assert!(auto == copy && auto == revert);
}

fn check<D: Samples, L: Learner<D> + Mergeable + Clone + Debug>(
    empty: &L,
    data: &D,
    tolerance: f64,
) {
    check_merging(empty, data, tolerance);
    let pools = pools();
    for folds in folds_of(data.n_samples()) {
        let expected = refit(empty, data, &folds, Order::Fixed, &Monitor::new()).expect("refitted");
        check_tree(empty, data, &folds, tolerance);
        for claims in every_claim(empty) {
            let context = format!("k = {}, {} {}", folds.len(), claims.update, claims.copy);
            let mut first: Option<Outcome> = None;
            for pool in &pools {
                let monitor = Monitor::new();
                let found = run_in(pool.as_ref(), || {
                    cross_validate(&claims, data, &folds, &monitor).expect("valid")
                });
                assert_close(&found.outputs, &expected.outputs, tolerance, &context);
                let (done, total) = monitor.progress();
                assert_eq!(done, total, "{context}");
                assert_eq!(done, found.cost.rows_fed + found.cost.rows_evaluated);
                // Whatever the threads: same bits, same counts.
                let first = first.get_or_insert_with(|| found.clone());
                assert_eq!(found.outputs, first.outputs, "{context}");
                let counted = |outcome: &Outcome| Cost {
                    peak_models: 0,
                    ..outcome.cost
                };
                assert_eq!(counted(&found), counted(first), "{context}");
            }
        }
    }
}

/// One set of rows in both layouts, with weights and without.
fn check_all<L>(
    empty: &L,
    (dense, csr): (Examples<'_, Dense<'_>>, Examples<'_, Csr<'_, i32>>),
    weights: &[f64],
    tolerance: f64,
) where
    L: Mergeable + Clone + Debug,
    L: for<'a> Learner<Examples<'a, Dense<'a>>>,
    L: for<'a> Learner<Examples<'a, Csr<'a, i32>>>,
{
    check(empty, &dense, tolerance);
    check(empty, &csr, tolerance);
    check(empty, &dense.weighted(weights).expect("valid"), tolerance);
    check(empty, &csr.weighted(weights).expect("valid"), tolerance);
}

#[test]
fn gaussian_naive_bayes_equals_refits() {
    let set = Set::new(71, 23, 4, 3);
    for model in every_gaussian(4) {
        check_all(&model, set.classified(), set.weights(), 1e-10);
    }
}

/// Counts are whole numbers and halves: no sum of them rounds.
#[test]
fn discrete_naive_bayes_equals_refits_bit_for_bit() {
    let set = Set::counts(72, 23, 4, 3);
    for model in every_discrete(4) {
        check_all(&model, set.classified(), set.weights(), 0.0);
    }
}

#[test]
fn densities_equal_refits() {
    let set = Set::new(73, 23, 3, 2);
    for covariance in [Covariance::Full, Covariance::Diagonal] {
        let model = gaussian(covariance, 1e-3, 3);
        check_all(&model, set.unlabelled(), set.weights(), 1e-10);
    }
    for narrow in [false, true] {
        let model = histogram(3, 0.5, narrow);
        check_all(&model, set.unlabelled(), set.weights(), 0.0);
    }
}

#[test]
fn least_squares_equal_refits() {
    let set = Set::new(74, 23, 3, 2);
    for options in every_option() {
        let y = targets(23, 2);
        let dense = Examples::valued(set.rows(), &y, 2).expect("valid");
        let csr = Examples::valued(set.csr(), &y, 2).expect("valid");
        let model = LeastSquaresStatistics::new(options, 3, 2).expect("valid");
        check_all(&model, (dense, csr), set.weights(), 1e-10);
    }
}

fn model_and_set() -> (GaussianNb, Set) {
    (every_gaussian(4).remove(0), Set::new(75, 60, 4, 3))
}

#[test]
fn counters_obey_the_theory() {
    let (model, set) = model_and_set();
    let (dense, _) = set.classified();
    let run = |update, copy, n_folds| {
        let claims = Claims {
            learner: model.clone(),
            update,
            copy,
        };
        let folds = Folds::contiguous(60, n_folds).expect("valid");
        let outcome = cross_validate(&claims, &dense, &folds, &Monitor::new()).expect("valid");
        assert_eq!(outcome.cost.rows_evaluated, 60);
        outcome.cost
    };
    for k in [2, 3, 10, 60] {
        let n_folds = usize::try_from(k).expect("small");
        // One level, all merged: Izbicki's own scheme.
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
    let (dense, _) = set.classified();
    let monitor = Monitor::new();
    let other = Folds::contiguous(61, 3).expect("valid");
    let error = cross_validate(&model, &dense, &other, &monitor).expect_err("refused");
    assert_eq!(
        error.to_string(),
        "samples of cv: expected length 60, got 61"
    );
    // Two rows, two folds: a single row has no variance.
    let two = Set::new(76, 2, 4, 3);
    let folds = Folds::contiguous(2, 2).expect("valid");
    let error = cross_validate(&model, &two.classified().0, &folds, &monitor);
    let message = error.expect_err("refused").to_string();
    assert!(message.starts_with("var_smoothing must be large enough"));
    monitor.cancel();
    for pool in pools() {
        for folds in folds_of(60) {
            let outcome = run_in(pool.as_ref(), || {
                cross_validate(&model, &dense, &folds, &monitor)
            });
            assert!(matches!(outcome, Err(Error::Interrupted)));
        }
    }
}
