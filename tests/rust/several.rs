//! Learners that walk together: the laws, and the same bits as each alone, whatever the engine.

use onefold::learners::{Pegasos, PegasosOptions};
use onefold::merge;
use onefold::tree::{
    Flat, Options, Order, Outcome, Several, Strategy, cross_validate, cross_validate_examples,
    refit,
};
use onefold::{Error, Folds, Monitor, Result, Splits};

use crate::laws::check_laws;
use crate::naive_bayes::every_discrete;
use crate::sets::Set;
use crate::tree::{pools, run_in};

fn machines(n_features: usize, n_classes: usize) -> Vec<Pegasos> {
    [(0.123_456_7, false), (0.9, true), (0.01, true)]
        .map(|(alpha, intercept)| PegasosOptions {
            alpha,
            project: false,
            intercept,
        })
        .into_iter()
        .map(|options| Pegasos::new(options, n_features, n_classes).expect("valid"))
        .collect()
}

fn together<L: Flat>(learners: &[L]) -> Several<L> {
    Several::new(learners.to_vec()).expect("there are learners")
}

/// The outputs of each alone, side by side.
fn side_by_side(alone: &[Outcome]) -> Vec<f64> {
    let n_rows = alone[0].outputs.len() / alone[0].n_outputs;
    let row = |outcome: &Outcome, row: usize| {
        outcome.outputs[row * outcome.n_outputs..][..outcome.n_outputs].to_vec()
    };
    (0..n_rows)
        .flat_map(|index| alone.iter().flat_map(move |outcome| row(outcome, index)))
        .collect()
}

fn check<L: Flat>(
    learners: &[L],
    all: impl Fn(&Several<L>) -> Result<Outcome>,
    one: impl Fn(&L) -> Result<Outcome>,
) {
    let together = all(&together(learners)).expect("valid");
    let alone: Vec<Outcome> = learners
        .iter()
        .map(|learner| one(learner).expect("valid"))
        .collect();
    assert_eq!(together.outputs, side_by_side(&alone));
    let (fed, evaluated) = (alone[0].cost.rows_fed, alone[0].cost.rows_evaluated);
    assert_eq!(together.cost.rows_fed, fed);
    assert_eq!(together.cost.rows_evaluated, evaluated);
}

#[test]
fn laws() {
    for n_classes in [2, 4] {
        let set = Set::new(1, 50, 9, n_classes);
        let (dense, csr) = set.classified();
        check_laws(&together(&machines(9, n_classes)), (&dense, &csr), 0.0);
    }
}

#[test]
fn the_tree_gives_the_bits_of_each_alone() {
    // More rows than a block holds.
    let set = Set::new(2, 1000, 9, 3);
    let (dense, csr) = set.classified();
    let machines = machines(9, 3);
    for folds in [8, 50].map(|k| Folds::contiguous(1000, k).expect("valid")) {
        for order in [Order::Fixed, Order::Random { seed: 5 }] {
            for strategy in [Strategy::Auto, Strategy::Copy, Strategy::Revert] {
                let options = Options { strategy, order };
                for pool in pools().iter().step_by(2) {
                    run_in(pool.as_ref(), || {
                        let monitor = Monitor::new();
                        check(
                            &machines,
                            |all| cross_validate_examples(all, &dense, &folds, &options, &monitor),
                            |one| cross_validate(one, &dense, &folds, &options, &monitor),
                        );
                        check(
                            &machines,
                            |all| cross_validate(all, &csr, &folds, &options, &monitor),
                            |one| cross_validate(one, &csr, &folds, &options, &monitor),
                        );
                    });
                }
            }
        }
    }
}

#[test]
fn refits_and_mergers_give_the_bits_of_each_alone() {
    let set = Set::new(3, 120, 9, 3);
    let (dense, _) = set.classified();
    let folds = Folds::contiguous(120, 7).expect("valid");
    let pairs = [(vec![0, 5, 2, 9], vec![1, 3]), (vec![4, 7], vec![5, 1])];
    let splits = Splits::new(120, pairs.to_vec()).expect("valid");
    let monitor = Monitor::new();
    for order in [Order::Fixed, Order::Random { seed: 5 }] {
        check(
            &machines(9, 3),
            |all| refit(all, &dense, &folds, order, &monitor),
            |one| refit(one, &dense, &folds, order, &monitor),
        );
        check(
            &machines(9, 3),
            |all| refit(all, &dense, &splits, order, &monitor),
            |one| refit(one, &dense, &splits, order, &monitor),
        );
    }
    let set = Set::counts(4, 120, 9, 3);
    let (counts, _) = set.classified();
    check(
        &every_discrete(9),
        |all| merge::cross_validate(all, &counts, &folds, &monitor),
        |one| merge::cross_validate(one, &counts, &folds, &monitor),
    );
}

#[test]
fn none_is_not_several() {
    let none = Several::<Pegasos>::new(vec![]);
    assert!(matches!(none, Err(Error::Parameter { .. })));
}
