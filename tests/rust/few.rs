//! Leave-one-out of linear learners, which do the last nodes by products of rows: the textbook's
//! outputs to rounding, and the same bits by every strategy and thread count.

use onefold::data::{Dense, Examples, Samples};
use onefold::learners::{
    Correction, LeastSquaresOptions, LeastSquaresSgd, LogisticOptions, LogisticSgd,
    PassiveAggressive, PassiveAggressiveOptions, Pegasos, PegasosOptions, Perceptron,
    PerceptronOptions,
};
use onefold::tree::{Few, Flat, Learner, Options, Order, Several, Strategy, cross_validate};
use onefold::{Folds, Monitor};

use crate::textbook::Textbook;
use crate::tree::{pools, run_in};

type Layout<'a> = Examples<'a, Dense<'a>>;

/// Every order, strategy and thread count, folds of one row and some of more.
fn check<L>(learner: &L, examples: &Layout<'_>, settles: bool)
where
    L: Flat + for<'a> Learner<Layout<'a>>,
{
    let n = examples.n_samples();
    let mut buffer = Vec::new();
    let mut few = Few::new(&[0, 1], 0, Order::Fixed, &mut buffer);
    let mut out = vec![0.0; 2 * Flat::n_outputs(learner)];
    let settled = learner.settle(examples, &mut few, &mut out).expect("valid");
    assert_eq!(settled, settles);
    for k in [n, n - n / 4] {
        let folds = Folds::contiguous(n, k).expect("valid");
        for order in [Order::Fixed, Order::Random { seed: 9 }] {
            let book = Textbook::tree(learner, examples, &folds, order);
            let mut first = None;
            for strategy in [Strategy::Copy, Strategy::Revert, Strategy::Auto] {
                let options = Options { strategy, order };
                for pool in pools() {
                    let monitor = Monitor::new();
                    let found = run_in(pool.as_ref(), || {
                        cross_validate(learner, examples, &folds, &options, &monitor)
                    });
                    let found = found.expect("valid");
                    assert_eq!(found.cost.rows_fed, book.rows_fed);
                    let expected = book.outputs.iter().flatten();
                    for (found, expected) in found.outputs.iter().zip(expected) {
                        let allowed = if settles { 1e-9 } else { 0.0 } * expected.abs().max(1.0);
                        assert!((found - expected).abs() <= allowed, "{found}, {expected}");
                    }
                    let outputs = first.get_or_insert_with(|| found.outputs.clone());
                    assert_eq!(&found.outputs, outputs, "{options:?}");
                }
            }
        }
    }
    together(learner, examples);
}

/// Learners have the same bits together and alone.
fn together<L>(learner: &L, examples: &Layout<'_>)
where
    L: Flat + for<'a> Learner<Layout<'a>>,
{
    let n = examples.n_samples();
    let folds = Folds::contiguous(n, n).expect("valid");
    let options = Options::default();
    let alone = cross_validate(learner, examples, &folds, &options, &Monitor::new());
    let both = Several::new(vec![learner.clone(), learner.clone()]).expect("valid");
    let both = cross_validate(&both, examples, &folds, &options, &Monitor::new());
    let width = Flat::n_outputs(learner);
    let twice: Vec<f64> = alone
        .expect("valid")
        .outputs
        .chunks_exact(width)
        .flat_map(|row| [row, row].concat())
        .collect();
    assert_eq!(both.expect("valid").outputs, twice);
}

#[test]
fn last_nodes_equal_the_textbook_to_rounding() {
    let n = 45;
    // Lengths below, at and beyond those of vectors; long rows are not settled.
    for d in [1, 3, 4, 5, 8, 23, 1025] {
        let settles = d < 1025;
        let values: Vec<f64> = (0..n * d).map(|i| (1.0 + (i * i) as f64).sin()).collect();
        let rows = Dense::new(&values, n, d).expect("shape");
        let weights: Vec<f64> = (0..n).map(|row| (row % 4) as f64 / 2.0).collect();
        for (n_classes, intercept) in [(2, false), (3, true)] {
            let codes: Vec<u32> = (0..n)
                .map(|row| [0, 1, 1, 2][row * 7 / 3 % 4])
                .map(|code: u32| if n_classes == 2 { code % 2 } else { code })
                .collect();
            let classes = Examples::classified(rows, &codes, n_classes).expect("valid");
            let classes = if intercept {
                classes.weighted(&weights).expect("valid")
            } else {
                classes
            };
            for project in [false, true] {
                let rule = PegasosOptions {
                    alpha: 0.1,
                    project,
                    intercept,
                };
                let learner = Pegasos::new(rule, d, n_classes).expect("valid");
                check(&learner, &classes, settles);
            }
            let rule = LogisticOptions {
                alpha: 0.01,
                eta0: 0.3,
                intercept,
            };
            let learner = LogisticSgd::new(rule, d, n_classes).expect("valid");
            check(&learner, &classes, settles);
            let rule = PerceptronOptions { intercept };
            let learner = Perceptron::new(rule, d, n_classes).expect("valid");
            check(&learner, &classes, settles);
            let rule = PassiveAggressiveOptions {
                aggressiveness: 0.5,
                correction: Correction::Damped,
                intercept,
            };
            let learner = PassiveAggressive::new(rule, d, n_classes).expect("valid");
            check(&learner, &classes, settles);
        }
        let rule = LeastSquaresOptions {
            step: 0.2,
            radius: 0.5,
            intercept: true,
        };
        let numbers = Examples::valued(rows, &values[..n], 1).expect("valid");
        let averages = LeastSquaresSgd::new(rule, d, 1).expect("valid");
        check(&averages, &numbers, false);
    }
}

/// Rows so long that their products are no numbers, though the learner's outputs are.
#[test]
fn products_beyond_all_numbers_are_left_alone() {
    let values: Vec<f64> = (0..40).map(|i| f64::from(i % 7 - 3) * 1e160).collect();
    let rows = Dense::new(&values, 20, 2).expect("shape");
    let codes: Vec<u32> = (0..20).map(|row| u32::from(row % 3 == 0)).collect();
    let examples = Examples::classified(rows, &codes, 2).expect("valid");
    let rule = PassiveAggressiveOptions {
        aggressiveness: 1.0,
        correction: Correction::Damped,
        intercept: true,
    };
    let learner = PassiveAggressive::new(rule, 2, 2).expect("valid");
    check(&learner, &examples, false);
}
