//! Random placement is the given placement of renumbered folds, and changes nothing for learners
//! that do not depend on the order of rows.

use onefold::data::Dataset;
use onefold::learners::{Learner, Order};
use onefold::tree::{Placement, Tree};
use onefold::{Engine as _, Folds};

use crate::every_learner::every_learner;
use crate::fold_models::with_models;
use crate::laws::bits;
use crate::sets::Set;
use crate::tree::{ORDERS, STRATEGIES, pegasos, pools, run_in};

const SEED: u64 = 11;

/// The outputs in the order of the samples, as bits.
fn outputs(tree: Tree, learner: &dyn Learner, data: &Dataset<'_>, folds: &Folds) -> Vec<u64> {
    let found = tree.cross_validate(learner, data, folds).expect("valid");
    let found = found.by_sample(folds);
    found.iter().map(|output| output.to_bits()).collect()
}

/// The leaf of every fold, and the folds numbered by their leaves.
fn renumbered(folds: &Folds) -> (Vec<usize>, Folds) {
    let leaves = Placement::Random { seed: SEED }.leaves(folds.len());
    let mut leaf_of = vec![0; folds.len()];
    for (leaf, &fold) in leaves.iter().enumerate() {
        leaf_of[fold] = leaf;
    }
    let labels = folds.labels().mapv(|fold| leaf_of[fold]);
    let folds = Folds::from_labels(&labels, folds.len()).expect("valid");
    (leaf_of, folds)
}

#[test]
fn random_placement_renumbers_the_folds() {
    let set = Set::counts(17, 26, 5, 3);
    let pools = pools();
    for case in every_learner(5) {
        for data in case.targets.of(&set) {
            for folds in [3, 9, 26].map(|k| Folds::contiguous(26, k).expect("valid")) {
                let (_, placed) = renumbered(&folds);
                let is_leave_one_out = folds.len() == 26;
                for (order, strategy) in ORDERS.iter().zip(STRATEGIES) {
                    let given = Tree {
                        strategy,
                        // Folds of one row at random leaves are in a random order already.
                        order: if is_leave_one_out {
                            Order::Fixed
                        } else {
                            *order
                        },
                        placement: Placement::Given,
                    };
                    let random = Tree {
                        strategy,
                        order: *order,
                        placement: Placement::Random { seed: SEED },
                    };
                    let expected = if case.learner.depends_on_order() {
                        outputs(given, &*case.learner, &data, &placed)
                    } else {
                        outputs(
                            Tree {
                                order: Order::Fixed,
                                ..given
                            },
                            &*case.learner,
                            &data,
                            &folds,
                        )
                    };
                    for pool in &pools {
                        let found = run_in(pool.as_ref(), || {
                            outputs(random, &*case.learner, &data, &folds)
                        });
                        assert_eq!(found, expected, "{} {random:?}", case.name);
                    }
                }
            }
        }
    }
}

#[test]
fn models_return_to_their_folds() {
    let set = Set::new(3, 20, 4, 2);
    let [dense, _] = set.classified();
    let learner = pegasos(4, 2);
    let candidates: [&dyn Learner; 1] = [&learner];
    let folds = Folds::shuffled(20, 6, 1).expect("valid");
    let (leaf_of, placed) = renumbered(&folds);
    let models = |tree: Tree, folds: &Folds| {
        with_models(&tree, &candidates, &dense, folds)
            .swap_remove(0)
            .models
    };
    let random = Tree {
        placement: Placement::Random { seed: SEED },
        ..Tree::in_given_order()
    };
    let found = models(random, &folds);
    let expected = models(Tree::in_given_order(), &placed);
    for (fold, &leaf) in leaf_of.iter().enumerate() {
        assert_eq!(bits(&*found[fold]), bits(&*expected[leaf]));
    }
}

/// Labels without information, sorted by class: the given order scores them almost perfectly.
#[test]
fn noise_in_class_order_is_not_predictable() {
    let n = 400;
    let set = Set::new(29, n, 6, 2);
    let noise = ndarray::Array1::from_shape_fn(n, |row| u32::from(row >= n / 2));
    let [dense, _] = set.unlabelled();
    let data = dense.with_classes(noise.view(), 2).expect("valid");
    let folds = Folds::leave_one_out(n).expect("valid");
    let accuracy = |tree: Tree| {
        let found = tree.cross_validate(&pegasos(6, 2), &data, &folds);
        let found = found.expect("valid").by_sample(&folds);
        let is_right = found
            .iter()
            .zip(&noise)
            .filter(|&(&value, &class)| (value > 0.0) == (class == 1));
        is_right.count() as f64 / n as f64
    };
    assert!(accuracy(Tree::in_given_order()) > 0.9);
    let three_standard_errors = 3.0 * 0.5 / (n as f64).sqrt();
    assert!((accuracy(Tree::default()) - 0.5).abs() < three_standard_errors);
}
