//! The linear learners: the laws, and each rule against its textbook form.

use onefold::data::{Csr, Dense, Examples, Layout, Samples};
use onefold::learners::{
    Correction, LeastSquaresOptions, LeastSquaresSgd, Linear, LogisticOptions, LogisticSgd,
    PassiveAggressive, PassiveAggressiveOptions, Perceptron, PerceptronOptions, Rule,
};
use onefold::tree::Learner;

use crate::laws::check_laws;
use crate::sets::Set;

type Both<'a> = (Examples<'a, Dense<'a>>, Examples<'a, Csr<'a, i32>>);

/// Rows as a textbook has them: x with its constant, the target, the weight.
struct Plain {
    x: Vec<f64>,
    y: f64,
    weight: f64,
}

fn plain(set: &Set, intercept: bool, target: impl Fn(usize) -> f64) -> Vec<Plain> {
    let rows = set.rows();
    (0..rows.n_rows())
        .map(|index| {
            let mut x = rows.row(index).to_vec();
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

/// Laws with and without weights, and the hypothesis of every output against `textbook`, which
/// gets the rows with their targets for that output.
fn check<R: Rule>(
    rule: R,
    set: &Set,
    (dense, csr): Both<'_>,
    n_targets: usize,
    textbook: impl Fn(&[Plain]) -> Vec<f64>,
) {
    let n_features = dense.rows().n_features();
    let empty = Linear::new(rule, n_features, n_targets).expect("valid");
    check_laws(&empty, (&dense, &csr), 1e-9);
    let dense = dense.weighted(set.weights()).expect("valid");
    let csr = csr.weighted(set.weights()).expect("valid");
    check_laws(&empty, (&dense, &csr), 1e-9);

    let order: Vec<usize> = (0..dense.n_samples()).collect();
    let (mut by_dense, mut by_csr) = (empty.clone(), empty);
    by_dense.update(&dense, &order).expect("updated");
    by_csr.update(&csr, &order).expect("updated");
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
        for model in [&by_dense, &by_csr] {
            let (mut w, intercept) = model.hypothesis(output);
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
    for intercept in [false, true] {
        // A ball that holds every step, and one that few steps stay within.
        for (step, radius) in [(0.01, f64::INFINITY), (0.05, 0.05), (0.4, 0.001)] {
            let rule = LeastSquaresOptions {
                step,
                radius,
                intercept,
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
        radius: 1.0,
        intercept: true,
    };
    let columns = [set.values(), set.weights()];
    let both: Vec<f64> = (0..30).flat_map(|row| columns.map(|y| y[row])).collect();
    let order: Vec<usize> = (0..30).collect();
    let fed = |y: &[f64], n_outputs| {
        let examples = Examples::valued(set.rows(), y, n_outputs).expect("valid");
        let mut model = LeastSquaresSgd::new(rule, 4, n_outputs).expect("valid");
        model.update(&examples, &order).expect("updated");
        model
    };
    for (output, y) in columns.into_iter().enumerate() {
        assert_eq!(fed(&both, 2).hypothesis(output), fed(y, 1).hypothesis(0));
    }
}

#[test]
fn logistic_regression_follows_its_gradient() {
    for n_classes in [2, 3] {
        let set = Set::new(22, 60, 7, n_classes);
        for (intercept, alpha) in [(false, 0.1), (true, 0.01), (true, 0.0)] {
            let rule = LogisticOptions {
                alpha,
                eta0: 0.5,
                intercept,
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
        for intercept in [false, true] {
            let rule = PerceptronOptions { intercept };
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
        for (intercept, correction) in [
            (false, Correction::Bounded),
            (true, Correction::Bounded),
            (false, Correction::Damped),
            (true, Correction::Damped),
        ] {
            let rule = PassiveAggressiveOptions {
                aggressiveness: 0.03,
                correction,
                intercept,
            };
            check(rule, &set, set.classified(), n_classes, |rows| {
                let mut w = vec![0.0; rows[0].x.len()];
                for Plain { x, y, weight } in rows {
                    let loss = (1.0 - y * dot(&w, x)).max(0.0);
                    let c = rule.aggressiveness * weight;
                    let tau = match correction {
                        Correction::Bounded => c.min(loss / dot(x, x)),
                        Correction::Damped => loss / (dot(x, x) + 1.0 / (2.0 * c)),
                    };
                    // A row of zeros teaches nothing, whatever τ is.
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
    let (dense, _) = set.classified();
    let rule = PassiveAggressiveOptions {
        aggressiveness: 1e9,
        correction: Correction::Bounded,
        intercept: true,
    };
    let mut model = PassiveAggressive::new(rule, 6, 2).expect("valid");
    for row in 0..40 {
        model.update(&dense, &[row]).expect("updated");
        let mut out = [0.0];
        model.evaluate(&dense, &[row], &mut out).expect("evaluated");
        let y = if set.codes()[row] == 1 { 1.0 } else { -1.0 };
        assert!(y * out[0] > 1.0 - 1e-9);
    }
}

#[test]
fn parameters_out_of_their_domain_are_named() {
    let least_squares = |step, radius| {
        let rule = LeastSquaresOptions {
            step,
            radius,
            intercept: false,
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
            intercept: false,
        };
        LogisticSgd::new(rule, 2, 2).err().map(|e| e.to_string())
    };
    assert_eq!(logistic(0.0, 1.0), None);
    let found = logistic(-0.5, 1.0).expect("refused");
    assert_eq!(found, "alpha must be finite and not negative, got -0.5");
    let found = logistic(0.5, f64::NAN).expect("refused");
    assert_eq!(found, "eta0 must be positive and finite, got NaN");

    let rule = PassiveAggressiveOptions {
        aggressiveness: -2.0,
        correction: Correction::Bounded,
        intercept: false,
    };
    let found = PassiveAggressive::new(rule, 2, 2)
        .expect_err("refused")
        .to_string();
    assert_eq!(found, "C must be positive and finite, got -2");
    let one_class = Perceptron::new(PerceptronOptions { intercept: true }, 2, 1);
    let found = one_class.expect_err("refused").to_string();
    assert_eq!(found, "y must be of at least two classes, got 1 class(es)");
}
