//! The linear learners: the laws, and each rule against its textbook form.

use ndarray::Array2;
use onefold::Result;
use onefold::learners::{
    HyperParameters, LazyNorm, Learner, LeastSquaresOptions, LeastSquaresSgd, Linear,
    LogisticOptions, LogisticSgd, Observation, PassiveAggressive, PassiveAggressiveOptions,
    Perceptron, PerceptronOptions, Step, UpdateRule, Variant,
};
use serde::Deserialize;

use crate::laws::check_laws;
use crate::sets::{Layouts, Set};
use crate::textbook::evaluate;

/// Rows as a textbook has them: x with its constant, the target, the weight.
struct Plain {
    x: Vec<f64>,
    y: f64,
    weight: f64,
}

fn plain(set: &Set, intercept: bool, target: impl Fn(usize) -> f64) -> Vec<Plain> {
    set.dense()
        .enumerate()
        .map(|(index, row)| {
            let mut x = row.to_vec();
            if intercept {
                x.push(1.0);
            }
            Plain {
                x,
                y: target(index),
                weight: set.weights()[index],
            }
        })
        .collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add(w: &mut [f64], factor: f64, x: &[f64]) {
    for (w, x) in w.iter_mut().zip(x) {
        *w += factor * x;
    }
}

fn scale(w: &mut [f64], factor: f64) {
    for w in w {
        *w *= factor;
    }
}

/// Laws with and without weights, and the weights of every output against `textbook`, which gets the
/// rows with their targets for that output.
fn check<R: UpdateRule>(
    rule: R,
    set: &Set,
    data: Layouts<'_>,
    n_targets: usize,
    textbook: impl Fn(&[Plain]) -> Vec<f64>,
) {
    let empty = Linear::new(rule, data[0].n_features(), n_targets).expect("valid");
    check_laws(&empty, data, 1e-9);
    let data: Layouts<'_> = data.map(|data| data.with_weights(set.weights()).expect("valid"));
    check_laws(&empty, data, 1e-9);

    let order: Vec<usize> = (0..data[0].n_rows()).collect();
    let models = data.map(|data| {
        let mut model = empty.clone();
        model.update(&data, &order, None).expect("updated");
        model
    });
    let n_outputs = match (R::CLASSIFIES, n_targets) {
        (true, 2) => 1,
        _ => n_targets,
    };
    for output in 0..n_outputs {
        let rows = plain(set, rule.has_intercept(), |row| {
            let class = if n_outputs == 1 { 1 } else { output };
            match (R::CLASSIFIES, set.codes()[row] as usize == class) {
                (true, true) => 1.0,
                (true, false) => -1.0,
                (false, _) => set.values()[row],
            }
        });
        let expected = textbook(&rows);
        for model in &models {
            let (w, intercept) = model.weights(output);
            let mut w = w.to_vec();
            if rule.has_intercept() {
                w.push(intercept);
            }
            assert_eq!(w.len(), expected.len());
            for (found, expected) in w.iter().zip(&expected) {
                let allowed = 1e-9 * expected.abs().max(1.0);
                assert!(
                    (found - expected).abs() < allowed,
                    "{rule:?}: {found}, {expected}"
                );
            }
        }
    }
}

#[test]
fn least_squares_averages_projected_steps() {
    let set = Set::new(21, 120, 7, 2);
    for fit_intercept in [false, true] {
        // A ball that holds every step, and one that few steps stay within.
        for (step, radius) in [(0.01, f64::INFINITY), (0.05, 0.05), (0.4, 0.001)] {
            let rule = LeastSquaresOptions {
                step,
                radius,
                fit_intercept,
            };
            check(rule, &set, set.valued(), 1, |rows| {
                let mut w = vec![0.0; rows[0].x.len()];
                let (mut sum, mut total) = (w.clone(), 0.0);
                for Plain { x, y, weight } in rows {
                    add(&mut sum, *weight, &w);
                    total += weight;
                    let residual = dot(&w, x) - y;
                    add(&mut w, -step * weight * residual, x);
                    let norm = dot(&w, &w).sqrt();
                    if norm > radius {
                        scale(&mut w, radius / norm);
                    }
                }
                sum.iter().map(|sum| sum / total).collect()
            });
        }
    }
}

#[test]
fn columns_of_y_are_learnt_apart() {
    let set = Set::new(26, 30, 4, 2);
    let rule = LeastSquaresOptions {
        step: 0.1,
        fit_intercept: true,
        ..LeastSquaresOptions::default()
    };
    let columns = [set.values(), set.weights()];
    let both = Array2::from_shape_fn((30, 2), |(row, output)| columns[output][row]);
    let columns = columns.map(|y| Array2::from_shape_fn((30, 1), |(row, _)| y[row]));
    let order: Vec<usize> = (0..30).collect();
    let learnt = |y: &Array2<f64>| {
        let [data, _] = set.with_values(y.view());
        let mut model = LeastSquaresSgd::new(rule, 4, y.ncols()).expect("valid");
        model.update(&data, &order, None).expect("updated");
        model
    };
    for (output, y) in columns.iter().enumerate() {
        assert_eq!(learnt(&both).weights(output), learnt(y).weights(0));
    }
}

#[test]
fn logistic_regression_follows_its_gradient() {
    for n_classes in [2, 3] {
        let set = Set::new(22, 60, 7, n_classes);
        for (fit_intercept, alpha) in [(false, 0.1), (true, 0.01), (true, 0.0)] {
            let rule = LogisticOptions {
                alpha,
                eta0: 0.5,
                fit_intercept,
            };
            check(rule, &set, set.classified(), n_classes, |rows| {
                let mut w = vec![0.0; rows[0].x.len()];
                let mut total = 0.0;
                for Plain { x, y, weight } in rows {
                    total += weight;
                    let eta = 1.0 / (1.0 / rule.eta0 + alpha * total);
                    let slope = weight * y / (1.0 + (y * dot(&w, x)).exp());
                    scale(&mut w, 1.0 - eta * alpha * weight);
                    add(&mut w, eta * slope, x);
                }
                w
            });
        }
    }
}

#[test]
fn the_perceptron_adds_its_mistakes() {
    for n_classes in [2, 3] {
        let set = Set::new(23, 60, 7, n_classes);
        for fit_intercept in [false, true] {
            let rule = PerceptronOptions { fit_intercept };
            check(rule, &set, set.classified(), n_classes, |rows| {
                let mut w = vec![0.0; rows[0].x.len()];
                for Plain { x, y, weight } in rows {
                    if y * dot(&w, x) <= 0.0 {
                        add(&mut w, weight * y, x);
                    }
                }
                w
            });
        }
    }
}

#[test]
fn passive_aggressive_steps_are_the_published_ones() {
    for n_classes in [2, 3] {
        let set = Set::new(24, 60, 7, n_classes);
        for (fit_intercept, variant) in [
            (false, Variant::PaI),
            (true, Variant::PaI),
            (false, Variant::PaII),
            (true, Variant::PaII),
        ] {
            let rule = PassiveAggressiveOptions {
                C: 0.03,
                variant,
                fit_intercept,
            };
            check(rule, &set, set.classified(), n_classes, |rows| {
                let mut w = vec![0.0; rows[0].x.len()];
                for Plain { x, y, weight } in rows {
                    let loss = (1.0 - y * dot(&w, x)).max(0.0);
                    let c = rule.C * weight;
                    let tau = match variant {
                        Variant::PaI => c.min(loss / dot(x, x)),
                        Variant::PaII => loss / (dot(x, x) + 1.0 / (2.0 * c)),
                    };
                    // A row of zeros changes nothing, whatever τ is.
                    add(&mut w, if dot(x, x) > 0.0 { tau * y } else { 0.0 }, x);
                }
                w
            });
        }
    }
}

/// An unbounded correction reaches the margin at once.
#[test]
fn passive_aggressive_corrects_the_row_it_sees() {
    let set = Set::new(25, 40, 6, 2);
    let [dense, _] = set.classified();
    let rule = PassiveAggressiveOptions {
        C: 1e9,
        ..PassiveAggressiveOptions::default()
    };
    let mut model = PassiveAggressive::new(rule, 6, 2).expect("valid");
    for row in 0..40 {
        model.update(&dense, &[row], None).expect("updated");
        let y = if set.codes()[row] == 1 { 1.0 } else { -1.0 };
        assert!(y * evaluate(&model, &dense, &[row])[0] > 1.0 - 1e-9);
    }
}

#[test]
fn parameters_out_of_their_domain_are_named() {
    let least_squares = |step, radius| {
        let rule = LeastSquaresOptions {
            step,
            radius,
            ..LeastSquaresOptions::default()
        };
        LeastSquaresSgd::new(rule, 2, 1)
            .err()
            .map(|e| e.to_string())
    };
    assert_eq!(least_squares(0.1, f64::INFINITY), None);
    let found = least_squares(0.0, 1.0).expect("refused");
    assert_eq!(found, "step must be positive and finite, got 0");
    let found = least_squares(0.1, -1.0).expect("refused");
    assert_eq!(found, "radius must be positive, got -1");

    let logistic = |alpha, eta0| {
        let rule = LogisticOptions {
            alpha,
            eta0,
            ..LogisticOptions::default()
        };
        LogisticSgd::new(rule, 2, 2).err().map(|e| e.to_string())
    };
    assert_eq!(logistic(0.0, 1.0), None);
    let found = logistic(-0.5, 1.0).expect("refused");
    assert_eq!(found, "alpha must be finite and not negative, got -0.5");
    let found = logistic(0.5, f64::NAN).expect("refused");
    assert_eq!(found, "eta0 must be positive and finite, got NaN");

    let rule = PassiveAggressiveOptions {
        C: -2.0,
        ..PassiveAggressiveOptions::default()
    };
    let found = PassiveAggressive::new(rule, 2, 2)
        .expect_err("refused")
        .to_string();
    assert_eq!(found, "C must be positive and finite, got -2");
    let one_class = Perceptron::new(PerceptronOptions::default(), 2, 1);
    let found = one_class.expect_err("refused").to_string();
    assert_eq!(found, "y must be of at least two classes, got 1 class(es)");
}

/// A rule that the crate does not know: least mean squares (Widrow and Hoff).
#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct LeastMeanSquares {
    step: f64,
}

impl HyperParameters for LeastMeanSquares {
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

impl UpdateRule for LeastMeanSquares {
    /// The number of rows.
    type Scalars = [f64; 1];

    const CLASSIFIES: bool = false;

    fn has_intercept(&self) -> bool {
        true
    }

    fn init(&self) -> [f64; 1] {
        [0.0]
    }

    fn step(&self, [n]: &mut [f64; 1], row: Observation<impl LazyNorm>) -> Option<Step> {
        *n += row.weight;
        let error = row.target - row.product;
        (row.weight > 0.0).then(|| Step::of(self.step * row.weight * error))
    }

    fn combination(&self, _: &[f64; 1]) -> (f64, f64) {
        (1.0, 0.0)
    }
}

/// An update rule is all that a new linear learner has to add.
#[test]
fn a_rule_of_another_crate_is_a_learner() {
    let set = Set::new(27, 60, 5, 2);
    let rule = LeastMeanSquares { step: 0.01 };
    check(rule, &set, set.valued(), 1, |rows| {
        let mut w = vec![0.0; rows[0].x.len()];
        for Plain { x, y, weight } in rows {
            let error = y - dot(&w, x);
            add(&mut w, rule.step * weight * error, x);
        }
        w
    });
}
