//! Online k-means against `MacQueen`'s description, and the laws.

use onefold::data::{Dense, Examples};
use onefold::learners::OnlineKMeans;
use onefold::tree::Learner;

use crate::algebra::assert_close;
use crate::laws::check_laws;
use crate::sets::{Random, Set};

#[test]
fn laws() {
    let set = Set::new(51, 50, 6, 2);
    let (dense, csr) = set.unlabelled();
    let weighted = (
        &dense.weighted(set.weights()).expect("valid"),
        &csr.weighted(set.weights()).expect("valid"),
    );
    for n_clusters in [1, 2, 5] {
        let model = OnlineKMeans::new(n_clusters, 6).expect("valid");
        check_laws(&model, (&dense, &csr), 0.0);
        check_laws(&model, weighted, 0.0);
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
    let weights: Vec<f64> = (0..120).map(|_| random.below(4) / 2.0).collect();
    let rows: Vec<&[f64]> = values.chunks_exact(4).collect();
    let data = Examples::unlabelled(Dense::new(&values, 120, 4).expect("shape"));
    let order: Vec<usize> = (0..120).collect();
    for n_clusters in [1, 3, 10] {
        for weights in [vec![1.0; 120], weights.clone()] {
            let expected = textbook(&rows, &weights, n_clusters);
            let data = data.weighted(&weights).expect("valid");
            let mut model = OnlineKMeans::new(n_clusters, 4).expect("valid");
            model.update(&data, &order).expect("updated");
            let found = model.centres();
            assert_eq!(found.len(), expected.len());
            for ((centre, weight), (expected, expected_weight)) in found.iter().zip(&expected) {
                assert_eq!(weight, expected_weight);
                assert_close(centre, expected, 1e-12, "centre");
            }
            let mut out = vec![0.0; 120 * n_clusters];
            model.evaluate(&data, &order, &mut out).expect("evaluated");
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
    let rows = Dense::new(&[0.0, 3.0, 0.0, 3.0], 4, 1).expect("shape");
    let data = Examples::unlabelled(rows);
    let mut model = OnlineKMeans::new(3, 1).expect("valid");
    let mut out = [0.0; 3];
    model.evaluate(&data, &[1], &mut out).expect("evaluated");
    assert_eq!(out, [f64::INFINITY; 3]);
    // Rows that come again make no new centre, zero or not.
    model.update(&data, &[0, 1, 2, 3]).expect("updated");
    assert_eq!(model.centres(), [(vec![0.0], 2.0), (vec![3.0], 2.0)]);
    model.evaluate(&data, &[1], &mut out).expect("evaluated");
    assert_eq!(out, [9.0, 0.0, f64::INFINITY]);
    let error = OnlineKMeans::new(0, 1).expect_err("refused").to_string();
    assert_eq!(error, "n_clusters must be at least 1, got 0");
}
