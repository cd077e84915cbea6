//! Densities against their definitions, and the laws.

use std::f64::consts::PI;

use ndarray::{Array1, array};
use onefold::Result;
use onefold::data::Dataset;
use onefold::learners::{
    Covariance, GaussianDensity, GaussianDensityOptions, HistogramDensity, HistogramOptions,
    Learner,
};

use crate::algebra::{assert_close, solve};
use crate::laws::{check_laws, updated};
use crate::sets::Set;
use crate::textbook::evaluate;

pub(crate) fn gaussian(
    covariance: Covariance,
    reg_covar: f64,
    n_features: usize,
) -> GaussianDensity {
    let options = GaussianDensityOptions {
        covariance,
        reg_covar,
    };
    GaussianDensity::new(options, n_features).expect("valid")
}

/// Edges that differ between features; the last feature has one bin too few for its values where
/// `narrow`.
pub(crate) fn histogram(n_features: usize, smoothing: f64, narrow: bool) -> HistogramDensity {
    let mut edges: Vec<Vec<f64>> = (0..n_features)
        .map(|feature| match feature % 3 {
            0 => vec![-3.0, -0.5, 0.5, 3.0],
            1 => vec![-4.0, 0.0, 1.0, 2.0, 5.5],
            _ => vec![-10.0, 10.0],
        })
        .collect();
    if narrow {
        edges[n_features - 1] = vec![-2.0, -1.0, 3.0];
    }
    density(edges, smoothing).expect("valid")
}

fn density(edges: Vec<Vec<f64>>, smoothing: f64) -> Result<HistogramDensity> {
    HistogramDensity::new(&HistogramOptions { edges, smoothing })
}

#[test]
fn laws() {
    let set = Set::new(41, 50, 6, 2);
    for covariance in [Covariance::Full, Covariance::Diagonal] {
        for reg_covar in [0.0, 0.5] {
            let model = gaussian(covariance, reg_covar, 6);
            check_laws(&model, set.unlabelled(), 1e-10);
            check_laws(&model, set.weighted(set.unlabelled()), 1e-10);
        }
    }
    let model = histogram(6, 0.5, false);
    check_laws(&model, set.unlabelled(), 1e-12);
    check_laws(&model, set.weighted(set.unlabelled()), 1e-12);
}

/// Log densities of all rows by a model that has learnt all rows, in both layouts.
fn outputs(empty: &dyn Learner, set: &Set, weights: &Array1<f64>) -> [Vec<f64>; 2] {
    let rows: Vec<usize> = (0..weights.len()).collect();
    set.unlabelled().map(|data| {
        let data = data.with_weights(weights.view()).expect("valid");
        evaluate(&*updated(empty, &data, &rows), &data, &rows)
    })
}

#[test]
fn gaussian_equals_its_definition() {
    let set = Set::new(42, 70, 5, 2);
    let rows: Vec<&[f64]> = set.dense().collect();
    for weights in [Array1::ones(70), set.weights().to_owned()] {
        let total = weights.sum();
        let average = |f: &dyn Fn(&[f64]) -> f64| -> f64 {
            rows.iter()
                .zip(&weights)
                .map(|(row, w)| w * f(row))
                .sum::<f64>()
                / total
        };
        let mean: Vec<f64> = (0..5).map(|j| average(&|row| row[j])).collect();
        for covariance in [Covariance::Full, Covariance::Diagonal] {
            for reg_covar in [0.0, 0.5] {
                let entry = |i: usize, j: usize| {
                    let plain = average(&|row| (row[i] - mean[i]) * (row[j] - mean[j]));
                    match covariance {
                        _ if i == j => plain + reg_covar,
                        Covariance::Full => plain,
                        Covariance::Diagonal => 0.0,
                    }
                };
                let matrix: Vec<Vec<f64>> = (0..5)
                    .map(|i| (0..5).map(|j| entry(i, j)).collect())
                    .collect();
                let expected: Vec<f64> = rows
                    .iter()
                    .map(|row| {
                        let deviation: Vec<f64> =
                            row.iter().zip(&mean).map(|(x, m)| x - m).collect();
                        let (solution, log_det) = solve(matrix.clone(), deviation.clone());
                        let square: f64 = deviation.iter().zip(&solution).map(|(a, b)| a * b).sum();
                        -0.5 * (5.0 * (2.0 * PI).ln() + log_det + square)
                    })
                    .collect();
                let model = gaussian(covariance, reg_covar, 5);
                for found in outputs(&model, &set, &weights) {
                    assert_close(&found, &expected, 1e-11, &format!("{covariance:?}"));
                }
            }
        }
    }
}

#[test]
fn gaussian_has_mean_and_covariance() {
    let x = array![[1.0, 2.0], [3.0, 8.0]];
    let data = Dataset::dense(x.view()).expect("valid");
    for (covariance, expected) in [
        (Covariance::Full, vec![1.0, 3.0, 9.0]),
        (Covariance::Diagonal, vec![1.0, 9.0]),
    ] {
        let mut model = gaussian(covariance, 0.0, 2);
        assert_eq!(model.covariance(), vec![0.0; expected.len()]);
        model.update(&data, &[0, 1], None).expect("updated");
        assert_eq!(model.mean().to_vec(), [2.0, 5.0]);
        assert_eq!(model.covariance(), expected);
    }
}

#[test]
fn gaussian_without_a_density_is_an_error() {
    let x = array![[1.0, 2.0], [3.0, 4.0]];
    let data = Dataset::dense(x.view()).expect("valid");
    for covariance in [Covariance::Full, Covariance::Diagonal] {
        let mut model = gaussian(covariance, 0.0, 2);
        model.update(&data, &[0], None).expect("updated");
        let error = model.evaluate(&data, &[1], &mut [0.0]).expect_err("flat");
        assert!(error.to_string().starts_with("reg_covar must be large"));
        let mut model = gaussian(covariance, 1e-6, 2);
        model.update(&data, &[0], None).expect("updated");
        assert!(model.evaluate(&data, &[1], &mut [0.0]).is_ok());
    }
    // Two features on a line: variances alone do not tell.
    let mut model = gaussian(Covariance::Full, 0.0, 2);
    model.update(&data, &[0, 1], None).expect("updated");
    assert!(model.evaluate(&data, &[1], &mut [0.0]).is_err());
    let options = GaussianDensityOptions {
        covariance: Covariance::Full,
        reg_covar: -1.0,
    };
    assert!(GaussianDensity::new(options, 2).is_err());
}

#[test]
fn histogram_equals_its_definition() {
    let set = Set::new(43, 40, 4, 2);
    let rows: Vec<&[f64]> = set.dense().collect();
    for weights in [Array1::ones(40), set.weights().to_owned()] {
        for (smoothing, narrow) in [(0.0, false), (0.5, false), (0.0, true), (0.5, true)] {
            let edges = |feature: usize| match feature {
                3 if narrow => vec![-2.0, -1.0, 3.0],
                0 | 3 => vec![-3.0, -0.5, 0.5, 3.0],
                1 => vec![-4.0, 0.0, 1.0, 2.0, 5.5],
                _ => vec![-10.0, 10.0],
            };
            let total = weights.sum();
            let density = |feature: usize, value: f64| {
                let edges = edges(feature);
                let last = edges.len() - 2;
                let holds = |bin: usize, v: f64| {
                    edges[bin] <= v && (v < edges[bin + 1] || bin == last && v == edges[bin + 1])
                };
                let Some(bin) = (0..=last).find(|&bin| holds(bin, value)) else {
                    return 0.0;
                };
                let inside: f64 = (0..rows.len())
                    .filter(|&i| holds(bin, rows[i][feature]))
                    .map(|i| weights[i])
                    .sum();
                let n_bins = (last + 1) as f64;
                (inside + smoothing)
                    / ((total + smoothing * n_bins) * (edges[bin + 1] - edges[bin]))
            };
            let expected: Vec<f64> = rows
                .iter()
                .map(|row| (0..4).map(|j| density(j, row[j]).ln()).sum())
                .collect();
            assert_eq!(expected.contains(&f64::NEG_INFINITY), narrow);
            for found in outputs(&histogram(4, smoothing, narrow), &set, &weights) {
                assert_close(&found, &expected, 1e-12, "histogram");
            }
        }
    }
}

#[test]
fn histogram_has_mass_one_where_nothing_lies_outside() {
    let set = Set::new(44, 30, 3, 2);
    let [_, csr] = set.unlabelled();
    let mut model = histogram(3, 0.25, false);
    let rows: Vec<usize> = (0..30).collect();
    model.update(&csr, &rows, None).expect("updated");
    assert_eq!(model.weight(), 30.0);
    let widths = [vec![2.5, 1.0, 2.5], vec![4.0, 1.0, 1.0, 3.5], vec![20.0]];
    for (feature, widths) in widths.iter().enumerate() {
        let densities = model.densities(feature);
        let mass: f64 = densities.iter().zip(widths).map(|(p, w)| p * w).sum();
        assert!((mass - 1.0).abs() < 1e-12);
    }
}

#[test]
fn edges_that_are_no_edges_are_refused() {
    for bad in [
        vec![0.0],
        vec![1.0, 1.0],
        vec![0.0, f64::NAN],
        vec![0.0, f64::INFINITY],
    ] {
        let error = density(vec![vec![0.0, 1.0], bad], 1.0).expect_err("refused");
        let message = error.to_string();
        assert!(message.starts_with("bins must be") && message.ends_with("for feature 1"));
    }
    assert!(density(vec![vec![0.0, 1.0]], -1.0).is_err());
}
