//! Elastic nets of every fold equal plain coordinate descent on its training rows.

use std::sync::Arc;

use ndarray::{Array1, Array2, Axis};
use onefold::data::{Csr, Rows};
use onefold::linear::FoldMaps;
use onefold::path::{ElasticNet, ElasticNetSpec, PathOutputs, Penalty};
use onefold::{Dataset, Engine, Folds, Job, Keep, Monitor, Resampling, Splits};

/// Rows with a constant column and one far from zero.
fn rows(n: usize, p: usize) -> Array2<f64> {
    Array2::from_shape_fn((n, p), |(i, j)| match j {
        1 => 2.0,
        2 => 5.0 + ((i * 5) as f64).sin(),
        _ if i % 3 == j % 3 => 0.0,
        _ => ((i * (j + 2)) as f64).sin(),
    })
}

fn targets(x: &Array2<f64>) -> Array2<f64> {
    let noise = |i: usize| 0.3 * ((i * i) as f64).cos();
    Array2::from_shape_fn((x.nrows(), 1), |(i, _)| {
        10.0 + 2.0 * x[(i, 0)] - x[(i, 3)] + noise(i)
    })
}

/// Coefficients, the intercept last: sweeps of soft thresholds until nothing changes.
fn descend(x: &Array2<f64>, y: &[f64], w: &[f64], spec: &ElasticNetSpec) -> Vec<f64> {
    let total: f64 = w.iter().sum();
    let mean = |values: &mut dyn Iterator<Item = f64>| {
        let sum: f64 = values.zip(w).map(|(v, w)| v * w).sum();
        f64::from(u8::from(spec.fit_intercept)) * sum / total
    };
    let means: Vec<f64> = x
        .columns()
        .into_iter()
        .map(|c| mean(&mut c.iter().copied()))
        .collect();
    let y_mean = mean(&mut y.iter().copied());
    let z = Array2::from_shape_fn(x.dim(), |(i, j)| x[(i, j)] - means[j]);
    let mut residuals: Vec<f64> = y.iter().map(|y| y - y_mean).collect();
    let mut beta = vec![0.0; x.ncols()];
    let (l1, l2) = (spec.penalty.l1_ratio, 1.0 - spec.penalty.l1_ratio);
    let (l1, l2) = (l1 * spec.penalty.alpha, l2 * spec.penalty.alpha);
    for _ in 0..5_000 {
        let mut change = 0.0_f64;
        for (j, column) in z.columns().into_iter().enumerate() {
            let square = column.iter().zip(w).map(|(z, w)| w * z * z).sum::<f64>() / total;
            if square < 1e-20 {
                continue;
            }
            let terms = column.iter().zip(&residuals).zip(w);
            let g = terms.map(|((z, r), w)| w * z * r).sum::<f64>() / total + square * beta[j];
            let shrunk = g.signum() * (g.abs() - l1).max(0.0) / (square + l2);
            let next = if spec.positive {
                shrunk.max(0.0)
            } else {
                shrunk
            };
            for (r, z) in residuals.iter_mut().zip(column) {
                *r -= (next - beta[j]) * z;
            }
            change = change.max((next - beta[j]).abs());
            beta[j] = next;
        }
        if change < 1e-10 {
            break;
        }
    }
    let shifted: f64 = beta.iter().zip(&means).map(|(b, m)| b * m).sum();
    beta.push(y_mean - shifted);
    beta
}

/// Compares outputs, errors and coefficients of every fold with plain fits.
fn check(data: &Dataset<'_>, x: &Array2<f64>, folds: &dyn Resampling, specs: &[ElasticNetSpec]) {
    let y = targets(x);
    let monitor = Monitor::new();
    let keep = Keep {
        coefficients: true,
        ..Keep::default()
    };
    let job = Job::new(data, folds, &monitor).keeping(keep);
    let candidates: Vec<_> = specs.iter().collect();
    let results = ElasticNet.out_of_fold(&candidates, &job).expect("solved");
    for (spec, result) in specs.iter().zip(&results) {
        let mut row = 0;
        for fold in 0..folds.n_splits() {
            let train = folds.training(fold).concat();
            let scaled = |i: usize, j: usize| {
                let map = spec.scaling.as_ref().map(|maps| maps.fold(fold));
                map.map_or(x[(i, j)], |map| map.apply(j, x[(i, j)]))
            };
            let of_train =
                Array2::from_shape_fn((train.len(), x.ncols()), |(i, j)| scaled(train[i], j));
            let of_rows: Vec<f64> = train.iter().map(|&i| y[(i, 0)]).collect();
            let weights: Vec<f64> = train
                .iter()
                .map(|&i| data.weights().map_or(1.0, |w| w[i]))
                .collect();
            let expected = descend(&of_train, &of_rows, &weights, spec);
            let intercept = expected[x.ncols()];
            for &test in folds.held_out(fold) {
                let terms = (0..x.ncols()).map(|j| scaled(test, j) * expected[j]);
                let prediction = terms.sum::<f64>() + intercept;
                let error = (result.outputs[(row, 0)] - prediction).abs();
                assert!(error < 1e-5, "{spec:?}, fold {fold}: {error}");
                row += 1;
            }
        }
        assert!(result.status.gaps.iter().all(|gap| *gap >= 0.0));
        assert_eq!(
            result.coefficients.dim(),
            (folds.n_splits(), 1, x.ncols() + 1)
        );
    }
}

/// Penalties with and without an intercept and a sign.
fn specs() -> Vec<ElasticNetSpec> {
    let mut specs = vec![];
    for fit_intercept in [true, false] {
        for positive in [false, true] {
            for (alpha, l1_ratio) in [(0.3, 1.0), (0.02, 0.5), (0.1, 0.0)] {
                specs.push(ElasticNetSpec {
                    penalty: Penalty { alpha, l1_ratio },
                    fit_intercept,
                    positive,
                    ..ElasticNetSpec::default()
                });
            }
        }
    }
    specs
}

#[test]
fn folds_and_splits_are_fits_to_their_training_rows() {
    // More rows than features, and fewer.
    for (n, p) in [(60, 6), (24, 30)] {
        let x = rows(n, p);
        let y = targets(&x);
        let data = Dataset::dense(x.view()).and_then(|data| data.with_values(y.view()));
        let data = data.expect("valid");
        check(
            &data,
            &x,
            &Folds::shuffled(n, 5, 0).expect("folds"),
            &specs(),
        );
        // A row twice, a few rows, nearly all rows.
        let pairs = vec![
            ((0..n).chain([3]).collect(), vec![1, 2]),
            ((0..n / 3).collect(), (n / 3..n).collect()),
            ((1..n).collect(), vec![0]),
        ];
        check(&data, &x, &Splits::new(n, pairs).expect("splits"), &specs());
        let weights: Array1<f64> = (0..n).map(|i| (i % 4) as f64).collect();
        let data = data.with_weights(weights.view()).expect("valid");
        check(
            &data,
            &x,
            &Folds::contiguous(n, 4).expect("folds"),
            &specs(),
        );
    }
}

#[test]
fn sparse_rows_and_scaled_columns_have_the_same_optimum() {
    let (n, p, k) = (60, 6, 4);
    let x = rows(n, p);
    let y = targets(&x);
    let (mut indptr, mut indices, mut values) = (vec![0], vec![], vec![]);
    for row in x.rows() {
        for (j, value) in row.iter().enumerate().filter(|entry| *entry.1 != 0.0) {
            indices.push(i64::try_from(j).expect("small"));
            values.push(*value);
        }
        indptr.push(i64::try_from(values.len()).expect("small"));
    }
    let rows = Csr::new(&indptr, &indices, &values, p).expect("valid");
    let sparse = Dataset::new(Rows::Csr64(rows)).and_then(|data| data.with_values(y.view()));
    let folds = Folds::shuffled(n, k, 1).expect("folds");
    check(&sparse.expect("valid"), &x, &folds, &specs());
    let each =
        |start: f64| Array2::from_shape_fn((k + 1, p), |(i, j)| start + (i + 2 * j) as f64 / 9.0);
    let dense = Dataset::dense(x.view()).and_then(|data| data.with_values(y.view()));
    let dense = dense.expect("valid");
    for shift in [None, Some(each(-0.5))] {
        let maps = Arc::new(FoldMaps::new(shift, each(0.5)).expect("one shape"));
        let mut scaled = specs();
        for spec in &mut scaled {
            spec.scaling = Some(maps.clone());
        }
        check(&dense, &x, &folds, &scaled);
    }
}

#[test]
fn errors_and_the_fit_to_all_rows_are_those_of_the_outputs() {
    let (n, p) = (60, 6);
    let x = rows(n, p);
    let y = targets(&x);
    let data = Dataset::dense(x.view()).and_then(|data| data.with_values(y.view()));
    let data = data.expect("valid");
    let folds = Folds::contiguous(n, 5).expect("folds");
    let spec = ElasticNetSpec {
        penalty: Penalty {
            alpha: 0.1,
            l1_ratio: 0.7,
        },
        ..ElasticNetSpec::default()
    };
    let wanted = PathOutputs {
        predictions: true,
        errors: true,
        all_rows: true,
        ..PathOutputs::default()
    };
    let found = ElasticNet.solve(&[&spec], &data, &folds, wanted, &Monitor::new());
    let found = found.expect("solved");
    for fold in 0..5 {
        let rows = fold * 12..(fold + 1) * 12;
        let errors = rows.map(|i| (found.predictions[(i, 0, 0)] - y[(i, 0)]).powi(2));
        let mean = errors.sum::<f64>() / 12.0;
        assert!((found.errors[(fold, 0, 0)] / mean - 1.0).abs() < 1e-9);
    }
    let weights = vec![1.0; n];
    let expected = descend(&x, &y.index_axis(Axis(1), 0).to_vec(), &weights, &spec);
    let all_rows = found.all_rows.expect("wanted");
    for (j, expected) in expected.iter().enumerate() {
        let error = (all_rows.coefficients[(0, 0, j)] - expected).abs();
        assert!(error < 1e-6 * expected.abs().max(1.0), "{j}: {error}");
    }
}
