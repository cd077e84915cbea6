//! Training sets that begin with one another: one pass has the bits of refits, for every learner.

use onefold::learners::{Learner, Order};
use onefold::refit::Refit;
use onefold::tree::Tree;
use onefold::{Engine as _, Job, Monitor, Resampling as _, Splits};

use crate::algebra::assert_close;
use crate::every_learner::every_learner;
use crate::fold_models::with_models;
use crate::laws::bits;
use crate::sets::Set;
use crate::textbook::{copy, evaluate};
use crate::tree::{pegasos, pools, run_in};

const N: usize = 24;

fn splits(pairs: Vec<(Vec<usize>, Vec<usize>)>) -> Splits {
    Splits::new(N, pairs).expect("valid")
}

fn rows(range: std::ops::Range<usize>) -> Vec<usize> {
    range.collect()
}

/// An expanding window with a gap, longest first.
fn window() -> Splits {
    let pairs = (1..5)
        .rev()
        .map(|i| (rows(0..4 * i), rows(4 * i + 2..4 * i + 4)));
    splits(pairs.collect())
}

/// Two trees, one with branches, and a training set that occurs twice; test sets overlap training sets.
fn branches() -> Splits {
    let after = |first: &[usize], more: std::ops::Range<usize>| [first, &rows(more)].concat();
    splits(vec![
        (after(&[5, 3, 8], 10..14), rows(0..3)),
        (vec![5, 3, 8], rows(20..24)),
        (after(&[5, 3, 8], 15..19), rows(0..3)),
        (rows(7..12), vec![7, 8]),
        (after(&[5, 3, 8], 10..19), rows(2..5)),
        (vec![5, 3, 8], rows(3..9)),
        (rows(7..9), vec![1]),
        (after(&[5, 3, 8], 1..3), rows(0..3)),
    ])
}

/// Training sets that contain one another, in orders of their own.
fn sets() -> Splits {
    splits(vec![
        (rows(2..20), rows(20..24)),
        (vec![4, 3, 2], rows(20..24)),
        (vec![2, 9, 3, 7, 4], rows(10..12)),
    ])
}

#[test]
fn one_pass_has_the_bits_of_refits() {
    let set = Set::counts(31, N, 5, 3);
    let pools = pools();
    for case in every_learner(5) {
        for data in set.weighted(case.targets.of(&set)) {
            for (splits, n_fed, n_trees, copies) in [(window(), 16, 1, 0), (branches(), 23, 2, 2)] {
                let refit = Refit::default().cross_validate(&*case.learner, &data, &splits);
                let refit = refit.expect("valid");
                for pool in &pools {
                    let tree = run_in(pool.as_ref(), || {
                        Tree::in_given_order().cross_validate(&*case.learner, &data, &splits)
                    });
                    let tree = tree.expect("valid");
                    assert_eq!(tree.outputs, refit.outputs, "{}", case.name);
                    let cost = tree.cost;
                    assert_eq!(cost.rows_evaluated, refit.cost.rows_evaluated);
                    let found = (cost.rows_fed, cost.fits, cost.copies);
                    assert_eq!(found, (n_fed, n_trees, copies), "{}", case.name);
                }
            }
        }
    }
}

#[test]
fn sets_are_enough_where_the_order_does_not_matter() {
    let set = Set::counts(32, N, 5, 3);
    for case in every_learner(5) {
        for data in case.targets.of(&set) {
            let found = Tree::default().cross_validate(&*case.learner, &data, &sets());
            if case.learner.depends_on_order() {
                let message = found.expect_err("refused").to_string();
                assert!(message.contains("training sets that begin with one another"));
                continue;
            }
            let found = found.expect("valid");
            let refit = Refit::default().cross_validate(&*case.learner, &data, &sets());
            let refit = refit.expect("valid");
            let [found_outputs, expected] =
                [&found, &refit].map(|own| own.outputs.as_slice().expect("contiguous"));
            assert_close(found_outputs, expected, 1e-9, case.name);
            assert_eq!((found.cost.rows_fed, found.cost.fits), (18, 1));
        }
    }
}

#[test]
fn the_models_of_all_training_sets_can_be_kept() {
    let set = Set::counts(33, N, 5, 3);
    for case in every_learner(5) {
        let [data, _] = case.targets.of(&set);
        for splits in [window(), branches()] {
            let tree = Tree::in_given_order();
            let found = with_models(&tree, &[&*case.learner], &data, &splits).remove(0);
            let mut outputs = Vec::new();
            for (split, model) in found.models.iter().enumerate() {
                let mut refitted = copy(&*case.learner);
                let rows = splits.train(split);
                refitted.update(&data, rows, None).expect("updated");
                assert_eq!(bits(&**model), bits(&*refitted), "{}", case.name);
                outputs.extend(evaluate(&**model, &data, splits.held_out(split)));
            }
            assert!(outputs.iter().eq(found.outputs.iter()), "{}", case.name);
        }
    }
}

#[test]
fn several_candidates_share_the_pass() {
    let set = Set::new(34, N, 4, 2);
    let [data, _] = set.classified();
    let learners = [pegasos(4, 2), pegasos(4, 2), pegasos(4, 2)];
    let candidates: Vec<&dyn Learner> = learners.iter().map(|own| own as &dyn Learner).collect();
    let monitor = Monitor::new();
    let tree =
        Tree::in_given_order().out_of_fold(&candidates, &Job::new(&data, &branches(), &monitor));
    let refit = Refit::default().out_of_fold(&candidates, &Job::new(&data, &branches(), &monitor));
    for (tree, refit) in tree.expect("valid").iter().zip(refit.expect("valid")) {
        assert_eq!(tree.outputs, refit.outputs);
        assert_eq!(tree.cost.rows_fed, 23);
    }
}

#[test]
fn long_chains_need_no_stack() {
    let n = 3000;
    let set = Set::new(35, n, 2, 2);
    let [data, _] = set.classified();
    let pairs = (1..n).map(|i| (rows(0..i), vec![i])).collect();
    let splits = Splits::new(n, pairs).expect("valid");
    let found = Tree::in_given_order().cross_validate(&pegasos(2, 2), &data, &splits);
    assert_eq!(found.expect("valid").cost.rows_fed, n as u64 - 1);
}

#[test]
fn a_random_order_is_refused() {
    let set = Set::new(36, N, 4, 2);
    let [data, _] = set.classified();
    let tree = Tree {
        order: Order::Random { seed: 1 },
        ..Tree::in_given_order()
    };
    let found = tree.cross_validate(&pegasos(4, 2), &data, &window());
    let message = found.expect_err("refused").to_string();
    assert!(message.starts_with("order must be fixed where training sets grow"));
}
