//! Online k-means against `MacQueen`'s description, and the laws.

use ndarray::{Array1, Array2, array};
use onefold::data::Dataset;
use onefold::learners::{KMeansOptions, Learner, OnlineKMeans};

use crate::algebra::assert_close;
use crate::laws::check_laws;
use crate::sets::{Random, Set};
use crate::textbook::evaluate;

fn k_means(n_clusters: usize, n_features: usize) -> OnlineKMeans {
    OnlineKMeans::new(KMeansOptions { n_clusters }, n_features).expect("valid")
}

#[test]
fn laws() {
    let set = Set::new(51, 50, 6, 2);
    for n_clusters in [1, 2, 5] {
        let model = k_means(n_clusters, 6);
        check_laws(&model, set.unlabelled(), 0.0);
        check_laws(&model, set.weighted(set.unlabelled()), 0.0);
    }
}

fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// Seeds, then running means: centre ← centre + w/W·(row − centre).
fn textbook(rows: &[&[f64]], weights: &[f64], n_clusters: usize) -> Vec<(Vec<f64>, f64)> {
    let mut centres: Vec<(Vec<f64>, f64)> = vec![];
    for (row, &weight) in rows.iter().zip(weights).filter(|(_, w)| **w > 0.0) {
        let nearest = (0..centres.len()).min_by(|&a, &b| {
            let distance = |c: usize| squared_distance(row, &centres[c].0);
            distance(a).total_cmp(&distance(b))
        });
        let is_known = centres
            .iter()
            .any(|(centre, _)| squared_distance(row, centre) < 1e-9);
        match nearest {
            Some(nearest) if centres.len() == n_clusters || is_known => {
                let (centre, total) = &mut centres[nearest];
                *total += weight;
                for (c, x) in centre.iter_mut().zip(*row) {
                    *c += weight / *total * (x - *c);
                }
            }
            _ => centres.push((row.to_vec(), weight)),
        }
    }
    centres
}

#[test]
fn equals_the_textbook() {
    // No ties: values are spread over a million places. Some rows come twice.
    let mut random = Random(52);
    let mut values: Vec<f64> = (0..120 * 4)
        .map(|_| random.below(1_000_003) / 1e5 - 5.0)
        .collect();
    values.copy_within(0..4, 4);
    values.copy_within(0..4, 12);
    let weights = Array1::from_shape_simple_fn(120, || random.below(4) / 2.0);
    let x = Array2::from_shape_vec((120, 4), values.clone()).expect("shape");
    let rows: Vec<&[f64]> = values.chunks_exact(4).collect();
    let data = Dataset::dense(x.view()).expect("valid");
    let order: Vec<usize> = (0..120).collect();
    for n_clusters in [1, 3, 10] {
        for weights in [Array1::ones(120), weights.clone()] {
            let expected = textbook(&rows, &weights.to_vec(), n_clusters);
            let data = data.with_weights(weights.view()).expect("valid");
            let mut model = k_means(n_clusters, 4);
            model.update(&data, &order, None).expect("updated");
            let found = model.centres();
            assert_eq!(found.len(), expected.len());
            for ((centre, weight), (expected, expected_weight)) in found.iter().zip(&expected) {
                assert_eq!(weight, expected_weight);
                assert_close(centre, expected, 1e-12, "centre");
            }
            let out = evaluate(&model, &data, &order);
            let distances: Vec<f64> = rows
                .iter()
                .flat_map(|row| expected.iter().map(|(c, _)| squared_distance(row, c)))
                .collect();
            assert_close(&out, &distances, 1e-11, "distances");
        }
    }
}

#[test]
fn centres_without_rows_are_infinitely_far() {
    let x = array![[0.0], [3.0], [0.0], [3.0]];
    let data = Dataset::dense(x.view()).expect("valid");
    let mut model = k_means(3, 1);
    assert_eq!(evaluate(&model, &data, &[1]), [f64::INFINITY; 3]);
    // Rows that come again make no new centre, zero or not.
    model.update(&data, &[0, 1, 2, 3], None).expect("updated");
    assert_eq!(model.centres(), [(vec![0.0], 2.0), (vec![3.0], 2.0)]);
    assert_eq!(evaluate(&model, &data, &[1]), [9.0, 0.0, f64::INFINITY]);
    let (name, centres) = model.fitted().expect("fitted").remove(0);
    assert_eq!((name, centres.shape()), ("cluster_centers_", &[3, 1][..]));
    assert_eq!((centres[[0, 0]], centres[[1, 0]]), (0.0, 3.0));
    assert!(centres[[2, 0]].is_nan());
    let none = OnlineKMeans::new(KMeansOptions { n_clusters: 0 }, 1);
    let error = none.expect_err("refused").to_string();
    assert_eq!(error, "n_clusters must be at least 1, got 0");
}
