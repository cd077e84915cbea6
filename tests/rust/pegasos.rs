//! Pegasos against its textbook form, and the laws.

use ndarray::Array1;
use onefold::data::Dataset;
use onefold::learners::{Learner, Pegasos, PegasosOptions, Perceptron, PerceptronOptions};

use crate::laws::check_laws;
use crate::sets::Set;
use crate::textbook::evaluate;

// Integer rows meet no margin of exactly 1 with this λ, where rounding would decide.
const ALPHA: f64 = 0.123_456_7;

fn every_option() -> impl Iterator<Item = PegasosOptions> {
    [(false, false), (false, true), (true, false), (true, true)]
        .into_iter()
        .map(|(project, fit_intercept)| PegasosOptions {
            alpha: ALPHA,
            project,
            fit_intercept,
        })
}

#[test]
fn laws() {
    for n_classes in [2, 4] {
        let set = Set::new(1, 50, 9, n_classes);
        for options in every_option() {
            let empty = Pegasos::new(options, 9, n_classes).expect("valid");
            // A projection scales by square roots, which rounds.
            let tolerance = if options.project { 1e-9 } else { 0.0 };
            check_laws(&empty, set.classified(), tolerance);
            check_laws(&empty, set.weighted(set.classified()), tolerance);
        }
    }
}

/// Figure 1 of the paper with a mini-batch of one: w ← (1 − 1/t)w + y·x/(λt), then the projection.
fn textbook(examples: &Set, options: PegasosOptions, positive: u32) -> (Vec<f64>, f64) {
    let n_features = examples.dense().next().expect("rows").len();
    let mut w = vec![0.0; n_features + 1];
    for (index, row) in examples.dense().enumerate() {
        let constant = if options.fit_intercept { 1.0 } else { 0.0 };
        let x = [row, &[constant]].concat();
        let t = (index + 1) as f64;
        let y = if examples.codes()[index] == positive {
            1.0
        } else {
            -1.0
        };
        let margin: f64 = w.iter().zip(&x).map(|(w, x)| y * w * x).sum();
        let step = if margin < 1.0 {
            y / (options.alpha * t)
        } else {
            0.0
        };
        for (w, x) in w.iter_mut().zip(&x) {
            *w = (1.0 - 1.0 / t) * *w + step * x;
        }
        let norm = w.iter().map(|w| w * w).sum::<f64>().sqrt();
        let radius = 1.0 / options.alpha.sqrt();
        if options.project && norm > radius {
            for w in &mut w {
                *w *= radius / norm;
            }
        }
    }
    let intercept = w.pop().expect("intercept");
    (w, intercept)
}

#[test]
fn equals_the_textbook() {
    for n_classes in [2, 3] {
        let set = Set::new(2, 400, 6, n_classes);
        let order: Vec<usize> = (0..400).collect();
        for options in every_option() {
            let empty = Pegasos::new(options, 6, n_classes).expect("valid");
            let models = set.classified().map(|data| {
                let mut model = empty.clone();
                model.update(&data, &order, None).expect("updated");
                model
            });
            for (output, positive) in outputs(n_classes) {
                let (w, b) = textbook(&set, options, positive);
                for model in &models {
                    let (weights, intercept) = model.weights(output);
                    assert!((intercept - b).abs() < 1e-9, "{options:?}");
                    for (a, b) in weights.iter().zip(&w) {
                        assert!((a - b).abs() < 1e-9, "{options:?}: {a} against {b}");
                    }
                }
            }
        }
    }
}

/// Each output with the class it stands for.
fn outputs(n_classes: usize) -> Vec<(usize, u32)> {
    if n_classes == 2 {
        vec![(0, 1)]
    } else {
        (0..n_classes).zip(0..).collect()
    }
}

/// λ far too small for the rows: nearly every step projects, and the scale would leave the range
/// of numbers without the rescue.
#[test]
fn many_projections_do_not_underflow() {
    let set = Set::new(3, 400, 6, 2);
    let options = PegasosOptions {
        alpha: 1e-9,
        project: true,
        fit_intercept: false,
    };
    let empty = Pegasos::new(options, 6, 2).expect("valid");
    check_laws(&empty, set.classified(), 1e-6);
    let order: Vec<usize> = (0..400).collect();
    let [dense, _] = set.classified();
    let mut model = empty;
    model.update(&dense, &order, None).expect("updated");
    let (w, _) = model.weights(0);
    let (expected, _) = textbook(&set, options, 1);
    for (a, b) in w.iter().zip(&expected) {
        assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} against {b}");
    }
}

/// A weight of 0 is an absent row, and the scale of the weights does not matter.
#[test]
fn weights_are_shares() {
    let set = Set::new(4, 60, 5, 2);
    let [dense, _] = set.classified();
    let order: Vec<usize> = (0..60).collect();
    let kept: Vec<usize> = order
        .iter()
        .copied()
        .filter(|i| set.weights()[*i] > 0.0)
        .collect();
    let weights = set.weights().to_owned();
    for options in every_option() {
        let learnt = |weights: &Array1<f64>, rows: &[usize]| {
            let data = dense.with_weights(weights.view()).expect("valid");
            let mut model = Pegasos::new(options, 5, 2).expect("valid");
            model.update(&data, rows, None).expect("updated");
            model.weights(0)
        };
        let expected = learnt(&weights, &order);
        assert_eq!(learnt(&weights, &kept), expected);
        assert_eq!(learnt(&(4.0 * &weights), &order), expected);
        let mut plain = Pegasos::new(options, 5, 2).expect("valid");
        plain.update(&dense, &order, None).expect("updated");
        assert_eq!(learnt(&Array1::ones(60), &order), plain.weights(0));
    }
}

fn message_of<T: std::fmt::Debug>(result: onefold::Result<T>) -> String {
    result.expect_err("refused").to_string()
}

#[test]
fn what_cannot_be_learnt_is_refused() {
    let options = |alpha| PegasosOptions {
        alpha,
        ..PegasosOptions::default()
    };
    for alpha in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let found = message_of(Pegasos::new(options(alpha), 3, 2));
        assert_eq!(
            found,
            format!("alpha must be positive and finite, got {alpha}")
        );
    }
    assert!(message_of(Pegasos::new(options(1.0), 3, 1)).contains("at least two classes"));
    let set = Set::new(5, 4, 5, 3);
    let [classified, _] = set.classified();
    let [valued, _] = set.valued();
    let [unlabelled, _] = set.unlabelled();
    let machine = || Pegasos::new(options(1.0), 5, 3).expect("valid");
    assert!(machine().update(&valued, &[0], None).is_err());
    assert!(machine().update(&unlabelled, &[0], None).is_err());
    assert_eq!(evaluate(&machine(), &unlabelled, &[0]), [0.0; 3]);
    let external = Dataset::external(4);
    let message = message_of(machine().update(&external, &[0], None));
    assert!(message.starts_with("X must be a dense or CSR matrix"));
    let mut narrow = Pegasos::new(options(1.0), 4, 3).expect("valid");
    assert!(narrow.update(&classified, &[0], None).is_err());
    let mut binary = Pegasos::new(options(1.0), 5, 2).expect("valid");
    assert!(binary.update(&classified, &[0], None).is_err());
    // Another learner is no partner.
    let mut other = Perceptron::new(PerceptronOptions::default(), 5, 3).expect("valid");
    let paired = machine().update_pair(&mut other, &classified, [&[0], &[1]]);
    assert!(message_of(paired).contains("of the same type"));
    let copied = machine().merge(&other);
    assert!(message_of(copied).contains("one whose models can be merged"));
}
