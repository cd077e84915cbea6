//! The fitted models of the folds: they are those of the textbook, they give the outputs bit for bit,
//! and they share memory where they have vectors in common.

use onefold::data::Dataset;
use onefold::learners::{Learner, Order};
use onefold::merge::Merge;
use onefold::refit::Refit;
use onefold::tree::{Strategy, Tree};
use onefold::{Cost, Engine, Folds, Job, Keep, Monitor, OutOfFold, Resampling};

use crate::algebra::assert_close;
use crate::every_learner::{Case, Targets, every_learner, learners_where};
use crate::laws::{bits, shared, states, updated};
use crate::sets::Set;
use crate::textbook::{Textbook, evaluate};
use crate::tree::{ORDERS, STRATEGIES, WithCost, pools, run_in};

/// The results of all learners, with the fitted models of the folds.
pub(crate) fn with_models(
    engine: &dyn Engine<dyn Learner>,
    learners: &[&dyn Learner],
    data: &Dataset<'_>,
    folds: &dyn Resampling,
) -> Vec<OutOfFold> {
    let (monitor, keep) = (
        Monitor::new(),
        Keep {
            models: true,
            ..Keep::default()
        },
    );
    let job = Job::new(data, folds, &monitor).keeping(keep);
    engine.out_of_fold(learners, &job).expect("valid")
}

/// The outputs are those of the models for the held-out rows of their folds, bit for bit.
fn check_outputs(found: &OutOfFold, data: &Dataset<'_>, folds: &Folds) {
    assert_eq!(found.models.len(), folds.len());
    let outputs = found.models.iter().enumerate().flat_map(|(fold, model)| {
        model.fitted().expect("fitted");
        evaluate(&**model, data, folds.rows(fold..fold + 1))
    });
    assert!(outputs.eq(found.outputs.iter().copied()));
}

/// Updating one model changes no other.
fn check_independence(models: &mut [Box<dyn Learner>], data: &Dataset<'_>, folds: &Folds) {
    let before: Vec<_> = models.iter().map(|model| bits(&**model)).collect();
    let fold = models.len() / 2;
    let rows = folds.rows(0..folds.len());
    models[fold].update(data, rows, None).expect("updated");
    for (index, (model, before)) in models.iter().zip(&before).enumerate() {
        assert_eq!(bits(&**model) == *before, index != fold);
    }
}

/// Folds of one row, of several rows, and of unequal numbers.
fn every_folds(n: usize) -> [Folds; 3] {
    [
        Folds::leave_one_out(n).expect("valid"),
        Folds::shuffled(n, 5, 3).expect("valid"),
        Folds::contiguous(n, 9).expect("valid"),
    ]
}

#[test]
fn models_of_the_tree_are_those_of_the_textbook() {
    let set = Set::counts(81, 22, 5, 3);
    let pools = pools();
    for Case {
        targets, learner, ..
    } in every_learner(5)
    {
        let costs = [(1e9, 1.0), (1.0, 1e3)];
        let with_costs = costs.map(|(update, copy)| WithCost::new(&*learner, update, copy));
        let learners: [&dyn Learner; 3] = [&*learner, &with_costs[0], &with_costs[1]];
        for data in set.weighted(targets.of(&set)) {
            for folds in every_folds(22) {
                for order in ORDERS {
                    // Others ignore the order.
                    let own = if learner.depends_on_order() {
                        order
                    } else {
                        Order::Fixed
                    };
                    let book = Textbook::tree(&*learner, &data, &folds, own);
                    let expected: Vec<_> = book.models.iter().map(|model| bits(&**model)).collect();
                    for (strategy, learner) in STRATEGIES
                        .into_iter()
                        .flat_map(|strategy| learners.map(|learner| (strategy, learner)))
                    {
                        let tree = Tree {
                            strategy,
                            order,
                            ..Tree::in_given_order()
                        };
                        for pool in pools.iter().step_by(2) {
                            let mut found = run_in(pool.as_ref(), || {
                                with_models(&tree, &[learner], &data, &folds).remove(0)
                            });
                            assert_eq!(found.cost.rows_fed, book.rows_fed);
                            let models = found.models.iter().map(|model| bits(&**model));
                            assert!(models.eq(expected.iter().cloned()), "{tree:?}");
                            check_outputs(&found, &data, &folds);
                            check_independence(&mut found.models, &data, &folds);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn models_of_mergers_are_those_of_refits() {
    let set = Set::counts(82, 22, 5, 3);
    let pools = pools();
    for case in every_learner(5) {
        if !case.learner.is_mergeable() {
            continue;
        }
        // Merged, learnt twice, and in parts of two levels.
        let costs = [(1e6, 1.0), (1e-6, 1.0), (1e12, f64::from(1 << 20))];
        for data in case.targets.of(&set) {
            for folds in every_folds(22) {
                for (update, copy) in costs {
                    let learner = WithCost::new(&*case.learner, update, copy);
                    check_merged(&learner, &data, &folds, &pools);
                }
                check_merged(&*case.learner, &data, &folds, &pools);
            }
        }
    }
}

fn check_merged(
    learner: &dyn Learner,
    data: &Dataset<'_>,
    folds: &Folds,
    pools: &[Option<rayon::ThreadPool>],
) {
    let plain = Merge::default()
        .cross_validate(learner, data, folds)
        .expect("valid");
    let all: Vec<usize> = (0..data.n_rows()).collect();
    let expected: Vec<_> = (0..folds.len())
        .map(|fold| {
            let (before, after) = folds.complement(fold);
            let model = updated(learner, data, &[before, after].concat());
            evaluate(&*model, data, &all)
        })
        .collect();
    for pool in pools.iter().step_by(2) {
        let mut found = run_in(pool.as_ref(), || {
            with_models(&Merge::default(), &[learner], data, folds).remove(0)
        });
        assert_eq!(found.outputs, plain.outputs);
        let counted = |cost: Cost| Cost {
            peak_models: 0,
            ..cost
        };
        assert_eq!(counted(found.cost), counted(plain.cost));
        check_outputs(&found, data, folds);
        for (model, expected) in found.models.iter().zip(&expected) {
            assert_close(&evaluate(&**model, data, &all), expected, 1e-9, "merged");
        }
        check_independence(&mut found.models, data, folds);
    }
}

/// Each candidate has the models that it has alone.
#[test]
fn candidates_have_their_own_models() {
    let set = Set::counts(83, 22, 5, 3);
    let cases = learners_where(|_| true, 5);
    let classifiers = cases
        .iter()
        .filter(|case| matches!(case.targets, Targets::Classes));
    let learners: Vec<&dyn Learner> = classifiers.map(|case| &*case.learner).collect();
    let mergeable: Vec<&dyn Learner> = learners
        .iter()
        .copied()
        .filter(|l| l.is_mergeable())
        .collect();
    assert!(learners.len() > mergeable.len() && mergeable.len() > 1);
    for data in set.classified() {
        for folds in every_folds(22) {
            for strategy in STRATEGIES {
                let tree = Tree {
                    strategy,
                    ..Tree::in_given_order()
                };
                let run = |learners: &[&dyn Learner]| with_models(&tree, learners, &data, &folds);
                let alone = learners.iter().flat_map(|learner| run(&[*learner]));
                for (mut together, alone) in run(&learners).into_iter().zip(alone) {
                    assert_eq!(together.outputs, alone.outputs);
                    let models = together.models.iter().map(|model| bits(&**model));
                    assert!(models.eq(alone.models.iter().map(|model| bits(&**model))));
                    check_outputs(&together, &data, &folds);
                    check_independence(&mut together.models, &data, &folds);
                }
            }
            // What is merged depends on the cost of all candidates: the same to rounding.
            let together = with_models(&Merge::default(), &mergeable, &data, &folds);
            assert_eq!(together.len(), mergeable.len());
            for (mut together, learner) in together.into_iter().zip(&mergeable) {
                check_outputs(&together, &data, &folds);
                let alone = Merge::default().cross_validate(*learner, &data, &folds);
                let [found, alone] = [&together, &alone.expect("valid")]
                    .map(|found| found.outputs.iter().copied().collect::<Vec<_>>());
                assert_close(&found, &alone, 1e-9, "merged");
                check_independence(&mut together.models, &data, &folds);
            }
        }
    }
}

/// With two folds a model has learnt one fold: that of a refit.
#[test]
fn models_of_two_folds_are_refits() {
    let set = Set::counts(84, 30, 5, 3);
    let folds = Folds::contiguous(30, 2).expect("valid");
    for case in every_learner(5) {
        for data in case.targets.of(&set) {
            let refit = Refit::default().cross_validate(&*case.learner, &data, &folds);
            let refit = refit.expect("valid").outputs;
            let engines: [&dyn Engine<dyn Learner>; 2] =
                [&Tree::in_given_order(), &Refit::default()];
            for engine in engines {
                let found = with_models(engine, &[&*case.learner], &data, &folds).remove(0);
                assert_eq!(found.outputs, refit);
                for (fold, model) in found.models.iter().enumerate() {
                    let (before, after) = folds.complement(fold);
                    let expected = updated(&*case.learner, &data, &[before, after].concat());
                    assert_eq!(bits(&**model), bits(&*expected));
                }
            }
        }
    }
}

/// Leave-one-out of rows that are sorted by class: within a subtree of one class, the vectors of the
/// other classes are the same in memory.
#[test]
fn models_share_the_vectors_that_they_have_in_common() {
    let set = Set::counts(85, 48, 6, 3);
    let mut rows: Vec<usize> = (0..48).collect();
    rows.sort_by_key(|&row| set.codes()[row]);
    let mut labels = vec![0; 48];
    for (fold, &row) in rows.iter().enumerate() {
        labels[row] = fold;
    }
    let folds = Folds::from_labels(&labels, 48).expect("valid");
    let is_bayes = |name: &str| matches!(name, "discrete_nb" | "gaussian_nb");
    for case in learners_where(is_bayes, 6) {
        for data in set.classified() {
            for strategy in [Strategy::Auto, Strategy::Share, Strategy::Revert] {
                let tree = Tree {
                    strategy,
                    ..Tree::in_given_order()
                };
                let learner: &dyn Learner = &*case.learner;
                for found in with_models(&tree, &[learner, learner], &data, &folds) {
                    let states: Vec<_> =
                        found.models.iter().map(|model| states(&**model)).collect();
                    let mut n_pairs = 0;
                    // Leaves 3i and 3i + 1 are siblings: 48 folds, halved four times, are 3.
                    for first in (0..48).step_by(3) {
                        let [a, b] = [0, 1].map(|i| set.codes()[rows[first + i]]);
                        if a == b {
                            let common = shared(&states[first], &states[first + 1]);
                            let others = (0..3).filter(|&class| class != a as usize);
                            assert!(common.iter().copied().eq(others.map(|class| (0, class))));
                            n_pairs += 1;
                        }
                    }
                    assert!(n_pairs > 10);
                    let n_vectors = distinct(&states);
                    assert!(n_vectors < 48 * 2, "{n_vectors} class vectors");
                }
            }
        }
    }
}

/// The number of class vectors in memory.
fn distinct(models: &[Vec<onefold::learners::State>]) -> usize {
    let mut n_distinct = 0;
    for (index, model) in models.iter().enumerate() {
        let is_new = |&class: &usize| {
            let is_shared = |other: &Vec<_>| shared(model, other).contains(&(0, class));
            !models[..index].iter().any(is_shared)
        };
        n_distinct += (0..3).filter(is_new).count();
    }
    n_distinct
}
