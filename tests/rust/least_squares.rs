//! Ridge regression by statistics and by recursion, against the normal equations, and the laws.

use ndarray::{Array1, Array2, array};
use onefold::data::{Csr, Dataset, Rows};
use onefold::learners::{Learner, RecursiveLeastSquares, RidgeOptions, RidgeStatistics};

use crate::algebra::{assert_close, solve};
use crate::laws::check_laws;
use crate::merge::check_tree;
use crate::sets::{Random, Set};
use crate::tree::folds_of;

pub(crate) fn every_option() -> impl Iterator<Item = RidgeOptions> {
    [(1e-3, false), (2.0, false), (1e-3, true), (2.0, true)]
        .into_iter()
        .map(|(alpha, fit_intercept)| RidgeOptions {
            alpha,
            fit_intercept,
        })
}

pub(crate) fn targets(n_rows: usize, n_outputs: usize) -> Array2<f64> {
    let mut random = Random(61);
    Array2::from_shape_simple_fn((n_rows, n_outputs), || random.below(100) / 10.0 - 2.0)
}

#[test]
fn laws() {
    let set = Set::new(62, 50, 6, 2);
    for n_outputs in [1, 2] {
        let y = targets(50, n_outputs);
        let data = set.with_values(y.view());
        for options in every_option() {
            // Both layouts are expanded alike before any sum is taken; only outputs round.
            let model = RecursiveLeastSquares::new(options, 6, n_outputs).expect("valid");
            check_laws(&model, data, 1e-12);
            check_laws(&model, set.weighted(data), 1e-12);
            let model = RidgeStatistics::new(options, 6, n_outputs).expect("valid");
            check_laws(&model, data, 1e-12);
            check_laws(&model, set.weighted(data), 1e-12);
        }
    }
}

/// Weights and intercept of one output: the normal equations with a constant feature that is not
/// penalised.
fn textbook(
    set: &Set,
    y: &dyn Fn(usize) -> f64,
    weights: &Array1<f64>,
    options: RidgeOptions,
) -> Vec<f64> {
    let rows: Vec<Vec<f64>> = set
        .dense()
        .map(|row| {
            let mut row = row.to_vec();
            row.extend(options.fit_intercept.then_some(1.0));
            row
        })
        .collect();
    let n = rows[0].len();
    let n_features = n - usize::from(options.fit_intercept);
    let sum = |f: &dyn Fn(usize) -> f64| (0..rows.len()).map(|i| weights[i] * f(i)).sum::<f64>();
    let gram = (0..n)
        .map(|a| {
            (0..n)
                .map(|b| {
                    let penalty = if a == b && a < n_features {
                        options.alpha
                    } else {
                        0.0
                    };
                    sum(&|i| rows[i][a] * rows[i][b]) + penalty
                })
                .collect()
        })
        .collect();
    let right = (0..n).map(|a| sum(&|i| rows[i][a] * y(i))).collect();
    let mut solution = solve(gram, right).0;
    solution.resize(n_features + 1, 0.0);
    solution
}

/// What both learners find from all rows in some order, in some layout: for each output the weights
/// and then the intercept.
fn found(
    data: &Dataset<'_>,
    options: RidgeOptions,
    n_outputs: usize,
    order: &[usize],
) -> [Vec<f64>; 2] {
    let flat = |outputs: Vec<(Array1<f64>, f64)>| {
        let with_intercept = |(weights, intercept): (Array1<f64>, f64)| {
            let weights = weights.into_iter();
            weights.chain([intercept]).collect::<Vec<f64>>()
        };
        outputs.into_iter().flat_map(with_intercept).collect()
    };
    let mut recursive = RecursiveLeastSquares::new(options, 5, n_outputs).expect("valid");
    recursive.update(data, order, None).expect("updated");
    let mut statistics = RidgeStatistics::new(options, 5, n_outputs).expect("valid");
    statistics.update(data, order, None).expect("updated");
    [
        flat(recursive.weights()),
        flat(statistics.weights().expect("regular")),
    ]
}

#[test]
fn equal_the_normal_equations_in_any_order() {
    let set = Set::new(63, 90, 5, 2);
    let mut order: Vec<usize> = (0..90).collect();
    for weights in [Array1::ones(90), set.weights().to_owned()] {
        for n_outputs in [1, 3] {
            let y = targets(90, n_outputs);
            let [dense, csr] = set
                .with_values(y.view())
                .map(|data| data.with_weights(weights.view()).expect("valid"));
            for options in every_option() {
                let expected: Vec<f64> = (0..n_outputs)
                    .flat_map(|output| textbook(&set, &|i| y[[i, output]], &weights, options))
                    .collect();
                order.rotate_left(17);
                for found in found(&dense, options, n_outputs, &order) {
                    assert_close(&found, &expected, 1e-10, &format!("{options:?}"));
                }
                order.reverse();
                for found in found(&csr, options, n_outputs, &order) {
                    assert_close(&found, &expected, 1e-10, &format!("{options:?}"));
                }
            }
        }
    }
}

#[test]
fn the_recursion_on_the_tree_equals_refits() {
    let set = Set::new(64, 23, 3, 2);
    let y = targets(23, 2);
    let [dense, _] = set.with_values(y.view());
    let [_, weighted] = set.weighted(set.with_values(y.view()));
    for options in every_option() {
        let model = RecursiveLeastSquares::new(options, 3, 2).expect("valid");
        for folds in folds_of(23) {
            check_tree(&model, &dense, &folds, 1e-9);
            check_tree(&model, &weighted, &folds, 1e-9);
        }
    }
}

#[test]
fn what_has_no_solution_is_refused() {
    let options = |alpha| RidgeOptions {
        alpha,
        ..RidgeOptions::default()
    };
    let message = |error: onefold::Error| error.to_string();
    let recursive = RecursiveLeastSquares::new(options(0.0), 2, 1).expect_err("refused");
    assert_eq!(
        message(recursive),
        "alpha must be positive and finite, got 0"
    );
    let statistics = RidgeStatistics::new(options(-1.0), 2, 1).expect_err("refused");
    assert_eq!(
        message(statistics),
        "alpha must be finite and not negative, got -1"
    );
    let recursive = RecursiveLeastSquares::new(options(1.0), 2, 0).expect_err("refused");
    assert_eq!(message(recursive), "columns of y must be at least 1, got 0");
    assert!(RidgeStatistics::new(options(1.0), 2, 0).is_err());
    // The second feature is twice the first.
    let x = array![[1.0, 2.0], [2.0, 4.0], [4.0, 8.0]];
    let y = array![[1.0], [2.0], [3.0]];
    let data = Dataset::dense(x.view()).expect("valid");
    let data = data.with_values(y.view()).expect("valid");
    let mut model = RidgeStatistics::new(options(0.0), 2, 1).expect("valid");
    model.update(&data, &[0, 1, 2], None).expect("updated");
    let error = model
        .evaluate(&data, &[0], &mut [0.0])
        .expect_err("singular");
    assert!(message(error).starts_with("alpha must be large enough"));
    let mut model = RidgeStatistics::new(options(1e-3), 2, 1).expect("valid");
    model.update(&data, &[0, 1, 2], None).expect("updated");
    assert!(model.evaluate(&data, &[0], &mut [0.0]).is_ok());
    let csr = Csr::new(&[0, 1], &[0], &[1.0], 3).expect("valid");
    let y = array![[1.0]];
    let wide = Dataset::new(Rows::Csr32(csr))
        .expect("finite")
        .with_values(y.view())
        .expect("valid");
    assert!(model.update(&wide, &[0], None).is_err());
}
