//! Pegasos against its textbook form, and the laws.

use onefold::data::{Layout, Row, Samples};
use onefold::learners::{Pegasos, PegasosOptions};
use onefold::tree::Learner;

use crate::laws::check_laws;
use crate::sets::Set;

// Integer rows meet no margin of exactly 1 with this λ, where rounding would decide.
const ALPHA: f64 = 0.123_456_7;

fn every_option() -> impl Iterator<Item = PegasosOptions> {
    [(false, false), (false, true), (true, false), (true, true)]
        .into_iter()
        .map(|(project, intercept)| PegasosOptions {
            alpha: ALPHA,
            project,
            intercept,
        })
}

#[test]
fn laws() {
    for n_classes in [2, 4] {
        let set = Set::new(1, 50, 9, n_classes);
        let (dense, csr) = set.classified();
        for options in every_option() {
            let empty = Pegasos::new(options, 9, n_classes).expect("valid");
            // A projection scales by square roots, which rounds.
            let tolerance = if options.project { 1e-9 } else { 0.0 };
            check_laws(&empty, (&dense, &csr), tolerance);
            check_laws(
                &empty,
                (
                    &dense.weighted(set.weights()).expect("valid"),
                    &csr.weighted(set.weights()).expect("valid"),
                ),
                tolerance,
            );
        }
    }
}

/// Figure 1 of the paper with a mini-batch of one: w ← (1 − 1/t)w + y·x/(λt), then the projection.
fn textbook(examples: &Set, options: PegasosOptions, positive: u32) -> (Vec<f64>, f64) {
    let rows = examples.rows();
    let mut w = vec![0.0; rows.n_features() + 1];
    for index in 0..rows.n_rows() {
        let mut x = vec![0.0; w.len()];
        rows.row(index).entries().for_each(|(j, v)| x[j] = v);
        x[rows.n_features()] = if options.intercept { 1.0 } else { 0.0 };
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
        let (dense, csr) = set.classified();
        let order: Vec<usize> = (0..dense.n_samples()).collect();
        for options in every_option() {
            let empty = Pegasos::new(options, 6, n_classes).expect("valid");
            let (mut by_dense, mut by_csr) = (empty.clone(), empty);
            by_dense.update(&dense, &order).expect("updated");
            by_csr.update(&csr, &order).expect("updated");
            for (output, positive) in outputs(n_classes) {
                let (w, b) = textbook(&set, options, positive);
                for model in [&by_dense, &by_csr] {
                    let (weights, intercept) = model.hypothesis(output);
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
    let (dense, csr) = set.classified();
    let options = PegasosOptions {
        alpha: 1e-9,
        project: true,
        intercept: false,
    };
    let empty = Pegasos::new(options, 6, 2).expect("valid");
    check_laws(&empty, (&dense, &csr), 1e-6);
    let order: Vec<usize> = (0..400).collect();
    let mut model = empty;
    model.update(&dense, &order).expect("updated");
    let (w, _) = model.hypothesis(0);
    let (expected, _) = textbook(&set, options, 1);
    for (a, b) in w.iter().zip(&expected) {
        assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} against {b}");
    }
}

/// A weight of 0 is an absent row, and the scale of the weights does not matter.
#[test]
fn weights_are_shares() {
    let set = Set::new(4, 60, 5, 2);
    let (dense, _) = set.classified();
    let order: Vec<usize> = (0..60).collect();
    let kept: Vec<usize> = order
        .iter()
        .copied()
        .filter(|i| set.weights()[*i] > 0.0)
        .collect();
    let quadrupled: Vec<f64> = set.weights().iter().map(|w| 4.0 * w).collect();
    for options in every_option() {
        let fed = |weights: &[f64], rows: &[usize]| {
            let mut model = Pegasos::new(options, 5, 2).expect("valid");
            model
                .update(&dense.weighted(weights).expect("valid"), rows)
                .expect("updated");
            model.hypothesis(0)
        };
        let expected = fed(set.weights(), &order);
        assert_eq!(fed(set.weights(), &kept), expected);
        assert_eq!(fed(&quadrupled, &order), expected);
        let ones = vec![1.0; 60];
        let mut plain = Pegasos::new(options, 5, 2).expect("valid");
        plain.update(&dense, &order).expect("updated");
        assert_eq!(fed(&ones, &order), plain.hypothesis(0));
    }
}

#[test]
fn what_cannot_be_learnt_is_refused() {
    let options = |alpha| PegasosOptions {
        alpha,
        project: false,
        intercept: false,
    };
    let message = |result: onefold::Result<Pegasos>| result.expect_err("refused").to_string();
    for alpha in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let found = message(Pegasos::new(options(alpha), 3, 2));
        assert_eq!(
            found,
            format!("alpha must be positive and finite, got {alpha}")
        );
    }
    assert!(message(Pegasos::new(options(1.0), 3, 1)).contains("at least two classes"));
    let set = Set::new(5, 4, 5, 3);
    let (classified, _) = set.classified();
    let (valued, _) = set.valued();
    let (unlabelled, _) = set.unlabelled();
    let machine = || Pegasos::new(options(1.0), 5, 3).expect("valid");
    assert!(machine().update(&valued, &[0]).is_err());
    assert!(machine().update(&unlabelled, &[0]).is_err());
    assert!(machine().evaluate(&unlabelled, &[0], &mut [0.0; 3]).is_ok());
    let mut narrow = Pegasos::new(options(1.0), 4, 3).expect("valid");
    assert!(narrow.update(&classified, &[0]).is_err());
    let mut binary = Pegasos::new(options(1.0), 5, 2).expect("valid");
    assert!(binary.update(&classified, &[0]).is_err());
}
