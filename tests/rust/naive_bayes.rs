//! Naive Bayes against its definitions, and the laws.

use std::f64::consts::PI;

use onefold::data::{Dense, Examples};
use onefold::learners::{
    DiscreteNb, DiscreteNbOptions, Events, GaussianNb, GaussianNbOptions, Priors,
};
use onefold::tree::Learner;

use crate::algebra::assert_close;
use crate::laws::check_laws;
use crate::sets::Set;

const N_CLASSES: usize = 3;

pub(crate) fn every_gaussian(n_features: usize) -> Vec<GaussianNb> {
    let model = |var_smoothing, priors| {
        let options = GaussianNbOptions {
            var_smoothing,
            priors,
        };
        GaussianNb::new(options, n_features, N_CLASSES).expect("valid")
    };
    vec![
        model(1e-9, Priors::Counted),
        model(0.1, Priors::Given([0.5, 0.25, 0.25].into())),
    ]
}

pub(crate) fn every_discrete(n_features: usize) -> Vec<DiscreteNb> {
    [
        (Events::Counts, Priors::Counted),
        (Events::Counts, Priors::Given([0.5, 0.25, 0.25].into())),
        (Events::Complement { norm: false }, Priors::Counted),
        (Events::Complement { norm: true }, Priors::Counted),
        (Events::Presence { above: 0.0 }, Priors::Counted),
        (Events::Presence { above: 1.0 }, Priors::Counted),
    ]
    .into_iter()
    .map(|(events, priors)| {
        let options = DiscreteNbOptions {
            events,
            alpha: 0.5,
            priors,
        };
        DiscreteNb::new(options, n_features, N_CLASSES).expect("valid")
    })
    .collect()
}

#[test]
fn laws() {
    let set = Set::counts(31, 50, 9, N_CLASSES);
    let (dense, csr) = set.classified();
    let weighted = (
        &dense.weighted(set.weights()).expect("valid"),
        &csr.weighted(set.weights()).expect("valid"),
    );
    for model in every_gaussian(9) {
        check_laws(&model, (&dense, &csr), 1e-10);
        check_laws(&model, weighted, 1e-10);
    }
    for model in every_discrete(9) {
        check_laws(&model, (&dense, &csr), 0.0);
        check_laws(&model, weighted, 0.0);
    }
}

/// Outputs of a model that was fed all rows, in both layouts.
fn outputs<L>(empty: &L, set: &Set, weights: Option<&[f64]>) -> [Vec<f64>; 2]
where
    L: for<'a> Learner<Examples<'a, Dense<'a>>> + Clone,
    L: for<'a> Learner<Examples<'a, onefold::data::Csr<'a, i32>>>,
{
    let (mut dense, mut csr) = set.classified();
    if let Some(weights) = weights {
        dense = dense.weighted(weights).expect("valid");
        csr = csr.weighted(weights).expect("valid");
    }
    let order: Vec<usize> = (0..set.codes().len()).collect();
    let mut found = [(); 2].map(|()| vec![f64::NAN; order.len() * N_CLASSES]);
    let (mut by_dense, mut by_csr) = (empty.clone(), empty.clone());
    by_dense.update(&dense, &order).expect("updated");
    by_csr.update(&csr, &order).expect("updated");
    let [dense_out, csr_out] = &mut found;
    by_dense
        .evaluate(&dense, &order, dense_out)
        .expect("evaluated");
    by_csr.evaluate(&csr, &order, csr_out).expect("evaluated");
    found
}

fn every_weighting(set: &Set) -> [(Option<&[f64]>, Vec<f64>); 2] {
    [
        (None, vec![1.0; set.codes().len()]),
        (Some(set.weights()), set.weights().to_vec()),
    ]
}

/// Mean and variance of weighted numbers, in two passes.
fn moments(values: &[f64], weights: &[f64]) -> (f64, f64) {
    let total: f64 = weights.iter().sum();
    let average = |f: &dyn Fn(f64) -> f64| {
        let sum: f64 = values.iter().zip(weights).map(|(v, w)| w * f(*v)).sum();
        sum / total
    };
    let mean = average(&|v| v);
    (mean, average(&|v| (v - mean) * (v - mean)))
}

#[test]
fn gaussian_equals_its_definition() {
    let set = Set::new(32, 80, 5, N_CLASSES);
    let rows: Vec<&[f64]> = set.dense().collect();
    for (given, weights) in every_weighting(&set) {
        let column = |feature: usize, class: Option<u32>| {
            let chosen = (0..rows.len()).filter(|i| class.is_none_or(|c| set.codes()[*i] == c));
            let values: Vec<f64> = chosen.clone().map(|i| rows[i][feature]).collect();
            let weights: Vec<f64> = chosen.map(|i| weights[i]).collect();
            (values, weights)
        };
        let shares: Vec<f64> = (0..)
            .take(N_CLASSES)
            .map(|class| {
                let (_, of_class) = column(0, Some(class));
                of_class.iter().sum::<f64>() / weights.iter().sum::<f64>()
            })
            .collect();
        // As scikit-learn has it: ε knows no weights.
        let largest = (0..5)
            .map(|feature| moments(&column(feature, None).0, &[1.0; 80]).1)
            .fold(0.0, f64::max);
        for (model, var_smoothing, priors) in every_gaussian(5)
            .into_iter()
            .zip([(1e-9, shares), (0.1, vec![0.5, 0.25, 0.25])])
            .map(|(model, (smoothing, priors))| (model, smoothing, priors))
        {
            let mut expected = vec![];
            for row in &rows {
                for (class, prior) in (0..).zip(&priors) {
                    let mut sum = prior.ln();
                    for (feature, value) in row.iter().enumerate() {
                        let (values, weights) = column(feature, Some(class));
                        let (mean, mut variance) = moments(&values, &weights);
                        variance += var_smoothing * largest;
                        sum -= 0.5 * (2.0 * PI * variance).ln();
                        sum -= (value - mean) * (value - mean) / (2.0 * variance);
                    }
                    expected.push(sum);
                }
            }
            for found in outputs(&model, &set, given) {
                assert_close(&found, &expected, 1e-11, "Gaussian");
            }
        }
    }
}

/// What McCallum and Nigam and Rennie et al. print, in probabilities.
fn discrete_definition(model: usize, set: &Set, weights: &[f64]) -> Vec<f64> {
    let above = if model == 5 { 1.0 } else { 0.0 };
    let is_presence = model >= 4;
    let events: Vec<Vec<f64>> = set
        .dense()
        .map(|row| {
            let event = |v: &f64| match is_presence {
                true if *v > above => 1.0,
                true => 0.0,
                false => *v,
            };
            row.iter().map(event).collect()
        })
        .collect();
    let (d, alpha) = (events[0].len(), 0.5);
    let sum = |class: &dyn Fn(u32) -> bool, value: &dyn Fn(&[f64]) -> f64| -> f64 {
        (0..events.len())
            .filter(|i| class(set.codes()[*i]))
            .map(|i| weights[i] * value(&events[i]))
            .sum()
    };
    let mut expected = vec![];
    for row in &events {
        for c in (0..).take(N_CLASSES) {
            let own = |code| code == c;
            let all = |_| true;
            let weight = sum(&own, &|_| 1.0);
            let prior = match model {
                1 => [0.5, 0.25, 0.25][c as usize],
                _ => weight / sum(&all, &|_| 1.0),
            };
            let class: &dyn Fn(u32) -> bool = match model {
                2 | 3 => &|code| code != c,
                _ => &own,
            };
            let size = sum(class, &|row| row.iter().sum());
            let share = |j: usize| (sum(class, &|row| row[j]) + alpha) / (size + alpha * d as f64);
            let logs = |j: usize| share(j).ln();
            let present = |j: usize| (sum(&own, &|row| row[j]) + alpha) / (weight + 2.0 * alpha);
            let of_row = |f: &dyn Fn(usize) -> f64| (0..d).map(f).sum::<f64>();
            expected.push(match model {
                0 | 1 => prior.ln() + of_row(&|j| row[j] * logs(j)),
                2 => -of_row(&|j| row[j] * logs(j)),
                3 => of_row(&|j| row[j] * logs(j)) / of_row(&logs),
                _ => {
                    let bit = |j| row[j] * present(j) + (1.0 - row[j]) * (1.0 - present(j));
                    prior.ln() + of_row(&|j| bit(j).ln())
                }
            });
        }
    }
    expected
}

#[test]
fn discrete_equals_its_definition() {
    let set = Set::counts(33, 60, 6, N_CLASSES);
    for (given, weights) in every_weighting(&set) {
        for (index, model) in every_discrete(6).into_iter().enumerate() {
            let expected = discrete_definition(index, &set, &weights);
            for found in outputs(&model, &set, given) {
                assert_close(&found, &expected, 1e-12, &format!("model {index}"));
            }
        }
    }
}

/// A mean a million times the deviation costs no digits.
#[test]
fn gaussian_does_not_mind_large_means() {
    let set = Set::new(34, 60, 4, N_CLASSES);
    let shifted: Vec<f64> = set.dense().flatten().map(|v| v + 4e6).collect();
    let order: Vec<usize> = (0..60).collect();
    let model = every_gaussian(4).remove(1);
    let evaluate = |values: &[f64]| {
        let rows = Dense::new(values, 60, 4).expect("valid");
        let data = Examples::classified(rows, set.codes(), N_CLASSES).expect("valid");
        let mut model = model.clone();
        model.update(&data, &order).expect("updated");
        let mut out = vec![0.0; 60 * N_CLASSES];
        model.evaluate(&data, &order, &mut out).expect("evaluated");
        out
    };
    let plain: Vec<f64> = set.dense().flatten().copied().collect();
    assert_close(&evaluate(&shifted), &evaluate(&plain), 1e-8, "shifted");
}

#[test]
fn a_class_that_was_never_seen_is_never_predicted() {
    let set = Set::counts(35, 60, 4, N_CLASSES);
    let (dense, csr) = set.classified();
    let without: Vec<usize> = (0..60).filter(|&i| set.codes()[i] != 1).collect();
    let check = |out: [f64; N_CLASSES]| {
        assert!(out[0].is_finite() && out[2].is_finite());
        assert_eq!(out[1], f64::NEG_INFINITY);
    };
    for mut model in every_gaussian(4) {
        let mut out = [f64::NAN; N_CLASSES];
        model.update(&dense, &without).expect("updated");
        assert_eq!(model.class_weights()[1], 0.0);
        assert_eq!(model.moments(1), [(0.0, 0.0); 4]);
        model.evaluate(&dense, &[0], &mut out).expect("evaluated");
        check(out);
    }
    for mut model in every_discrete(4) {
        let mut out = [f64::NAN; N_CLASSES];
        model.update(&csr, &without).expect("updated");
        assert_eq!(model.class_weights()[1], 0.0);
        assert_eq!(model.feature_weights().len(), 4 * N_CLASSES);
        model.evaluate(&csr, &[0], &mut out).expect("evaluated");
        check(out);
    }
}

#[test]
fn what_cannot_be_learnt_is_refused() {
    let message = |error: onefold::Error| error.to_string();
    let gaussian = |var_smoothing, n_classes| {
        let options = GaussianNbOptions {
            var_smoothing,
            priors: Priors::Counted,
        };
        GaussianNb::new(options, 2, n_classes)
    };
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        let expected = format!("var_smoothing must be finite and not negative, got {bad}");
        assert_eq!(message(gaussian(bad, 2).expect_err("refused")), expected);
    }
    assert!(message(gaussian(0.0, 1).expect_err("refused")).contains("at least two classes"));
    let discrete = |events, alpha, priors: Priors| {
        let options = DiscreteNbOptions {
            events,
            alpha,
            priors,
        };
        DiscreteNb::new(options, 2, 2).map(|_| ()).map_err(message)
    };
    let refused = |result: Result<(), String>| result.expect_err("refused");
    let alpha = refused(discrete(Events::Counts, 0.0, Priors::Counted));
    assert_eq!(alpha, "alpha must be positive and finite, got 0");
    let below = Events::Presence { above: -1.0 };
    let binarize = refused(discrete(below, 1.0, Priors::Counted));
    assert_eq!(binarize, "binarize must be finite and not negative, got -1");
    let priors = refused(discrete(Events::Counts, 1.0, Priors::Given([1.0].into())));
    assert_eq!(priors, "priors: expected length 2, got 1");

    // Negative counts, and features that are constant within the training rows.
    let rows = Dense::new(&[1.0, 2.0, 1.0, -2.0], 2, 2).expect("shape");
    let data = Examples::classified(rows, &[0, 1], 2).expect("valid");
    let options = DiscreteNbOptions {
        events: Events::Counts,
        alpha: 1.0,
        priors: Priors::Counted,
    };
    let mut counts = DiscreteNb::new(options, 2, 2).expect("valid");
    let error = message(counts.update(&data, &[0, 1]).expect_err("refused"));
    assert_eq!(
        error,
        "X[1, 1] is -2: Negative values in data are not counts"
    );
    let mut normal = gaussian(1e-9, 2).expect("valid");
    normal.update(&data, &[0]).expect("updated");
    let error = message(
        normal
            .evaluate(&data, &[1], &mut [0.0; 2])
            .expect_err("refused"),
    );
    assert!(error.starts_with("var_smoothing must be large enough"));
}
