//! Naive Bayes against its definitions, and the laws.

use std::f64::consts::PI;

use ndarray::{Array1, Array2, array};
use onefold::data::Dataset;
use onefold::learners::{
    DiscreteNaiveBayes, DiscreteNbOptions, EventModel, GaussianNb, GaussianNbOptions, Learner,
    Priors,
};

use crate::algebra::assert_close;
use crate::laws::{check_laws, updated};
use crate::sets::Set;
use crate::textbook::evaluate;

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

pub(crate) fn every_discrete(n_features: usize) -> Vec<DiscreteNaiveBayes> {
    let of = |event_model| DiscreteNbOptions {
        event_model,
        alpha: 0.5,
        ..DiscreteNbOptions::default()
    };
    [
        of(EventModel::Multinomial),
        DiscreteNbOptions {
            priors: Priors::Given([0.5, 0.25, 0.25].into()),
            ..of(EventModel::Multinomial)
        },
        of(EventModel::Complement),
        DiscreteNbOptions {
            norm: true,
            ..of(EventModel::Complement)
        },
        of(EventModel::Bernoulli),
        DiscreteNbOptions {
            binarize: 1.0,
            ..of(EventModel::Bernoulli)
        },
    ]
    .map(|options| DiscreteNaiveBayes::new(options, n_features, N_CLASSES).expect("valid"))
    .into()
}

#[test]
fn laws() {
    let set = Set::counts(31, 50, 9, N_CLASSES);
    for model in every_gaussian(9) {
        check_laws(&model, set.classified(), 1e-10);
        check_laws(&model, set.weighted(set.classified()), 1e-10);
    }
    for model in every_discrete(9) {
        check_laws(&model, set.classified(), 0.0);
        check_laws(&model, set.weighted(set.classified()), 0.0);
    }
}

/// Outputs of a model that has learnt all rows, in both layouts.
fn outputs(empty: &dyn Learner, set: &Set, weights: Option<&Array1<f64>>) -> [Vec<f64>; 2] {
    let rows: Vec<usize> = (0..set.codes().len()).collect();
    set.classified().map(|mut data| {
        if let Some(weights) = weights {
            data = data.with_weights(weights.view()).expect("valid");
        }
        evaluate(&*updated(empty, &data, &rows), &data, &rows)
    })
}

/// Without weights, and with those of the set.
fn every_weighting(set: &Set) -> [Option<Array1<f64>>; 2] {
    [None, Some(set.weights().to_owned())]
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
    for given in every_weighting(&set) {
        let weights = given.clone().unwrap_or_else(|| Array1::ones(80));
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
                of_class.iter().sum::<f64>() / weights.sum()
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
            for found in outputs(&model, &set, given.as_ref()) {
                assert_close(&found, &expected, 1e-11, "Gaussian");
            }
        }
    }
}

/// What McCallum and Nigam and Rennie et al. print, in probabilities.
fn discrete_definition(model: usize, set: &Set, weights: &Array1<f64>) -> Vec<f64> {
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
    for given in every_weighting(&set) {
        let weights = given.clone().unwrap_or_else(|| Array1::ones(60));
        for (index, model) in every_discrete(6).into_iter().enumerate() {
            let expected = discrete_definition(index, &set, &weights);
            for found in outputs(&model, &set, given.as_ref()) {
                assert_close(&found, &expected, 1e-12, &format!("model {index}"));
            }
        }
    }
}

/// A mean a million times the deviation costs no digits.
#[test]
fn gaussian_is_accurate_for_large_means() {
    let set = Set::new(34, 60, 4, N_CLASSES);
    let order: Vec<usize> = (0..60).collect();
    let model = every_gaussian(4).remove(1);
    let plain: Vec<f64> = set.dense().flatten().copied().collect();
    let plain = Array2::from_shape_vec((60, 4), plain).expect("shape");
    let [shifted, plain] = [&plain + 4e6, plain].map(|x| {
        let data = Dataset::dense(x.view()).expect("valid");
        let data = data.with_classes(set.codes(), N_CLASSES).expect("valid");
        evaluate(&*updated(&model, &data, &order), &data, &order)
    });
    assert_close(&shifted, &plain, 1e-8, "shifted");
}

#[test]
fn a_class_that_was_never_seen_is_never_predicted() {
    let set = Set::counts(35, 60, 4, N_CLASSES);
    let [dense, csr] = set.classified();
    let without: Vec<usize> = (0..60).filter(|&i| set.codes()[i] != 1).collect();
    let check = |out: Vec<f64>| {
        assert!(out[0].is_finite() && out[2].is_finite());
        assert_eq!(out[1], f64::NEG_INFINITY);
    };
    for mut model in every_gaussian(4) {
        model.update(&dense, &without, None).expect("updated");
        assert_eq!(model.class_weights()[1], 0.0);
        assert_eq!(model.moments(1), [(0.0, 0.0); 4]);
        check(evaluate(&model, &dense, &[0]));
    }
    for mut model in every_discrete(4) {
        model.update(&csr, &without, None).expect("updated");
        assert_eq!(model.class_weights()[1], 0.0);
        assert_eq!(model.feature_weights().dim(), (N_CLASSES, 4));
        check(evaluate(&model, &csr, &[0]));
    }
}

#[test]
fn what_cannot_be_learnt_is_refused() {
    let message = |error: onefold::Error| error.to_string();
    let gaussian = |var_smoothing, n_classes| {
        let options = GaussianNbOptions {
            var_smoothing,
            ..GaussianNbOptions::default()
        };
        GaussianNb::new(options, 2, n_classes)
    };
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        let expected = format!("var_smoothing must be finite and not negative, got {bad}");
        assert_eq!(message(gaussian(bad, 2).expect_err("refused")), expected);
    }
    assert!(message(gaussian(0.0, 1).expect_err("refused")).contains("at least two classes"));
    let discrete = |options| message(DiscreteNaiveBayes::new(options, 2, 2).expect_err("refused"));
    let alpha = discrete(DiscreteNbOptions {
        alpha: 0.0,
        ..DiscreteNbOptions::default()
    });
    assert_eq!(alpha, "alpha must be positive and finite, got 0");
    let binarize = discrete(DiscreteNbOptions {
        event_model: EventModel::Bernoulli,
        binarize: -1.0,
        ..DiscreteNbOptions::default()
    });
    assert_eq!(binarize, "binarize must be finite and not negative, got -1");
    let priors = discrete(DiscreteNbOptions {
        priors: Priors::Given([1.0].into()),
        ..DiscreteNbOptions::default()
    });
    assert_eq!(priors, "priors: expected length 2, got 1");

    // Negative counts, and features that are constant within the training rows.
    let x = array![[1.0, 2.0], [1.0, -2.0]];
    let classes = array![0, 1];
    let data = Dataset::dense(x.view()).expect("valid");
    let data = data.with_classes(classes.view(), 2).expect("valid");
    let mut counts = DiscreteNaiveBayes::new(DiscreteNbOptions::default(), 2, 2).expect("valid");
    let error = message(counts.update(&data, &[0, 1], None).expect_err("refused"));
    assert_eq!(
        error,
        "X[1, 1] is -2: Negative values in data are not counts"
    );
    let mut normal = gaussian(1e-9, 2).expect("valid");
    normal.update(&data, &[0], None).expect("updated");
    let error = message(
        normal
            .evaluate(&data, &[1], &mut [0.0; 2])
            .expect_err("refused"),
    );
    assert!(error.starts_with("var_smoothing must be large enough"));
}
