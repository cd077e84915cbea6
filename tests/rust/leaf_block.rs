//! Leave-one-out of linear learners, which solve leaf blocks in closed form: the textbook's outputs to
//! rounding, and the same bits by every strategy and thread count.

use ndarray::{Array1, Array2};
use onefold::data::Dataset;
use onefold::learners::{
    Learner, LeastSquaresOptions, LeastSquaresSgd, LogisticOptions, LogisticSgd, PassiveAggressive,
    PassiveAggressiveOptions, Pegasos, PegasosOptions, Perceptron, PerceptronOptions, Variant,
};
use onefold::tree::Tree;
use onefold::{Engine as _, Folds, Job, Monitor};

use crate::textbook::Textbook;
use crate::tree::{ORDERS, STRATEGIES, has_closed_form, pools, run_in};

/// Every order, strategy and thread count, folds of one row and some of more.
fn check(learner: &dyn Learner, data: &Dataset<'_>, is_closed: bool) {
    let n = data.n_rows();
    assert_eq!(has_closed_form(learner, data), is_closed);
    for k in [n, n - n / 4] {
        let folds = Folds::contiguous(n, k).expect("valid");
        for order in ORDERS {
            let book = Textbook::tree(learner, data, &folds, order);
            let mut first = None;
            for strategy in STRATEGIES {
                let tree = Tree {
                    strategy,
                    order,
                    ..Tree::in_given_order()
                };
                for pool in pools() {
                    let found =
                        run_in(pool.as_ref(), || tree.cross_validate(learner, data, &folds));
                    let found = found.expect("valid");
                    assert_eq!(found.cost.rows_fed, book.rows_fed);
                    let expected = book.outputs.iter().flatten();
                    for (found, expected) in found.outputs.iter().zip(expected) {
                        let tolerance = if is_closed { 1e-9 } else { 0.0 };
                        let allowed = tolerance * expected.abs().max(1.0);
                        assert!((found - expected).abs() <= allowed, "{found}, {expected}");
                    }
                    let outputs = first.get_or_insert_with(|| found.outputs.clone());
                    assert_eq!(&found.outputs, outputs, "{tree:?}");
                }
            }
        }
    }
    let folds = Folds::leave_one_out(n).expect("valid");
    let tree = Tree::in_given_order();
    let alone = tree.cross_validate(learner, data, &folds).expect("valid");
    let both = tree.out_of_fold(
        &[learner, learner],
        &Job::new(data, &folds, &Monitor::new()),
    );
    for found in both.expect("valid") {
        assert_eq!(found.outputs, alone.outputs);
    }
}

#[test]
fn closed_forms_equal_the_textbook_to_rounding() {
    let n = 45;
    // Lengths below, at and beyond those of SIMD vectors; long rows have no closed form.
    for d in [1, 3, 4, 5, 8, 23, 1025] {
        let is_closed = d < 1025;
        let x = Array2::from_shape_fn((n, d), |(row, feature)| {
            let i = row * d + feature;
            (1.0 + (i * i) as f64).sin()
        });
        let data = Dataset::dense(x.view()).expect("valid");
        let weights = Array1::from_shape_fn(n, |row| (row % 4) as f64 / 2.0);
        for (n_classes, fit_intercept) in [(2, false), (3, true)] {
            let codes: Array1<u32> = (0..n)
                .map(|row| [0, 1, 1, 2][row * 7 / 3 % 4])
                .map(|code: u32| if n_classes == 2 { code % 2 } else { code })
                .collect();
            let mut classes = data.with_classes(codes.view(), n_classes).expect("valid");
            if fit_intercept {
                classes = classes.with_weights(weights.view()).expect("valid");
            }
            for project in [false, true] {
                let rule = PegasosOptions {
                    alpha: 0.1,
                    project,
                    fit_intercept,
                };
                let learner = Pegasos::new(rule, d, n_classes).expect("valid");
                check(&learner, &classes, is_closed);
            }
            let rule = LogisticOptions {
                alpha: 0.01,
                eta0: 0.3,
                fit_intercept,
            };
            let learner = LogisticSgd::new(rule, d, n_classes).expect("valid");
            check(&learner, &classes, is_closed);
            let rule = PerceptronOptions { fit_intercept };
            let learner = Perceptron::new(rule, d, n_classes).expect("valid");
            check(&learner, &classes, is_closed);
            let rule = PassiveAggressiveOptions {
                C: 0.5,
                variant: Variant::PaII,
                fit_intercept,
            };
            let learner = PassiveAggressive::new(rule, d, n_classes).expect("valid");
            check(&learner, &classes, is_closed);
        }
        let rule = LeastSquaresOptions {
            step: 0.2,
            radius: 0.5,
            fit_intercept: true,
        };
        let y = Array2::from_shape_fn((n, 1), |(row, _)| (1.0 + (row * row) as f64).sin());
        let values = data.with_values(y.view()).expect("valid");
        let averages = LeastSquaresSgd::new(rule, d, 1).expect("valid");
        check(&averages, &values, false);
    }
}

/// Steps that divide by an infinite ‖x‖² would be 0, and the model would have learnt nothing.
#[test]
fn products_that_overflow_have_no_closed_form_and_are_refused() {
    let x = Array2::from_shape_fn((20, 2), |(row, feature)| {
        ((2 * row + feature) % 7) as f64 * 1e160 - 3e160
    });
    let codes: Array1<u32> = (0..20).map(|row| u32::from(row % 3 == 0)).collect();
    let data = Dataset::dense(x.view()).expect("valid");
    let data = data.with_classes(codes.view(), 2).expect("valid");
    let rule = PassiveAggressiveOptions {
        variant: Variant::PaII,
        ..PassiveAggressiveOptions::default()
    };
    let learner = PassiveAggressive::new(rule, 2, 2).expect("valid");
    assert!(!has_closed_form(&learner, &data));
    let folds = Folds::leave_one_out(20).expect("valid");
    let refused = Tree::default().cross_validate(&learner, &data, &folds);
    let message = refused.expect_err("refused").to_string();
    assert!(message.contains("outputs must be finite"), "{message}");
}
