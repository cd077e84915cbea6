//! Every fold equals a fit to its training rows, by the normal equations of small problems.

use onefold::data::{Csr, Dense, Layout};
use onefold::virtual_cv::{
    Cv, KernelProblem, Model, Problem, Scaler, diagnostics, errors, predict, predict_kernel,
    predict_with_coefficients,
};
use onefold::{Folds, Monitor, Splits};
use proptest::prelude::*;

/// Solves Ax = b by elimination with row exchanges.
fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for k in 0..n {
        let pivot = (k..n)
            .max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs()))
            .expect("not empty");
        a.swap(k, pivot);
        b.swap(k, pivot);
        for i in k + 1..n {
            let (above, below) = a.split_at_mut(i);
            let factor = below[0][k] / above[k][k];
            for (x, y) in below[0].iter_mut().zip(&above[k]) {
                *x -= factor * y;
            }
            b[i] -= factor * b[k];
        }
    }
    for k in (0..n).rev() {
        for i in k + 1..n {
            b[k] -= a[k][i] * b[i];
        }
        b[k] /= a[k][k];
    }
    b
}

struct Data {
    x: Vec<f64>,
    y: Vec<f64>,
    w: Vec<f64>,
    n: usize,
    p: usize,
}

impl Data {
    fn row(&self, i: usize) -> &[f64] {
        &self.x[i * self.p..][..self.p]
    }

    /// Coefficients, the intercept last, by the normal equations of (x, 1).
    fn fit(&self, train: &[usize], alpha: f64, intercept: bool) -> Vec<f64> {
        let m = self.p + usize::from(intercept);
        let mut a = vec![vec![0.0; m]; m];
        let mut b = vec![0.0; m];
        for &i in train {
            let mut row = self.row(i).to_vec();
            row.resize(m, 1.0);
            for j in 0..m {
                b[j] += self.w[i] * row[j] * self.y[i];
                for k in 0..m {
                    a[j][k] += self.w[i] * row[j] * row[k];
                }
            }
        }
        for (j, row) in a.iter_mut().enumerate().take(self.p) {
            row[j] += alpha;
        }
        let mut beta = solve(a, b);
        beta.resize(self.p + 1, 0.0);
        beta
    }

    fn predict(&self, beta: &[f64], i: usize) -> f64 {
        let inner: f64 = self.row(i).iter().zip(beta).map(|(x, b)| x * b).sum();
        inner + beta[self.p]
    }
}

fn data(n: usize, p: usize, seed: u64) -> Data {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut draw = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as f64) / f64::from(1_u32 << 31) * 2.0 - 1.0
    };
    Data {
        x: (0..n * p).map(|_| draw() + 0.5).collect(),
        y: (0..n).map(|_| 3.0 * draw() + 2.0).collect(),
        w: (0..n).map(|_| draw().abs() + 0.05).collect(),
        n,
        p,
    }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-8 * (1.0 + b.abs())
}

fn ridge(alphas: &[f64], intercept: bool) -> Model {
    Model {
        alphas: alphas.to_vec(),
        intercept,
        scaler: None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn folds_of_any_size_are_refits(
        n in 20_usize..40, p in 1_usize..6, k in 2_usize..20, seed in any::<u64>(),
        intercept in any::<bool>(),
    ) {
        let data = data(n, p, seed);
        let labels: Vec<usize> = (0..n).map(|i| (i + i / k) % k).collect();
        let folds = Folds::from_labels(&labels, k).expect("valid");
        let alphas = [0.1, 2.0];
        let rows = Dense::new(ndarray::ArrayView2::from_shape((n, p), &data.x).expect("shape")).expect("valid");
        let problem = Problem::new(&rows, &data.y, 1, Some(&data.w)).expect("valid");
        let found = predict(&problem, &ridge(&alphas, intercept), Cv::Folds(&folds), &Monitor::new())
            .expect("determined");
        let mut place = found.values.iter();
        for fold in 0..k {
            let train: Vec<usize> = (0..n).filter(|&i| labels[i] != fold).collect();
            let fits = alphas.map(|a| data.fit(&train, a, intercept));
            for &row in folds.rows(fold..fold + 1) {
                for beta in &fits {
                    let found = *place.next().expect("a value a row and λ");
                    prop_assert!(close(found, data.predict(beta, row)));
                }
            }
        }
    }
}

#[test]
fn dual_and_kernel_are_the_primal_with_a_linear_kernel() {
    let data = data(12, 20, 5);
    let rows = Dense::new(ndarray::ArrayView2::from_shape((12, 20), &data.x).expect("shape"))
        .expect("valid");
    let problem = Problem::new(&rows, &data.y, 1, Some(&data.w)).expect("valid");
    let splits = vec![
        ((2..12).collect(), vec![0, 1]),
        ((0..6).collect(), vec![5, 9]),
        (vec![1, 1, 2, 3, 4, 5, 6], vec![0, 11]),
    ];
    let splits = Splits::new(12, splits).expect("valid");
    let cv = Cv::Splits(&splits);
    let model = ridge(&[0.3], false);
    let found = predict(&problem, &model, cv, &Monitor::new()).expect("determined");
    let mut gram = vec![];
    for i in 0..12 {
        for j in 0..12 {
            gram.push(
                data.row(i)
                    .iter()
                    .zip(data.row(j))
                    .map(|(a, b)| a * b)
                    .sum(),
            );
        }
    }
    let kernel = KernelProblem::new(&gram, &data.y, 1, Some(&data.w)).expect("valid");
    let twin = predict_kernel(&kernel, &[0.3], cv, &Monitor::new()).expect("determined");
    let mut place = 0;
    for split in 0..splits.len() {
        let beta = data.fit(splits.train(split), 0.3, false);
        for &row in splits.test(split) {
            assert!(close(found.values[place], data.predict(&beta, row)));
            assert!(close(twin.values[place], data.predict(&beta, row)));
            place += 1;
        }
    }
    // Asked for coefficients, the primal answers, and says the same.
    let primal = predict_with_coefficients(&problem, &model, cv, &Monitor::new()).expect("valid");
    for (a, b) in primal.values.iter().zip(&found.values) {
        assert!(close(*a, *b));
    }
    assert_eq!(primal.coefficients.len(), 3 * 21);
}

#[test]
fn errors_that_sums_cannot_tell_come_from_the_predictions() {
    let data = data(40, 3, 9);
    let rows = Dense::new(ndarray::ArrayView2::from_shape((40, 3), &data.x).expect("shape"))
        .expect("valid");
    // Errors a billion times smaller than the targets, far from zero: sums of squares cancel.
    let noise = |i: usize| 1e-7 * (i as f64).sin();
    let y: Vec<f64> = (0..40)
        .map(|i| 1e3 + data.x[3 * i] - 2.0 * data.x[3 * i + 1] + noise(i))
        .collect();
    let weights: Vec<f64> = (0..40).map(|i| 1.0 + f64::from(i % 3)).collect();
    let folds = Folds::contiguous(40, 4).expect("valid");
    let (cv, monitor) = (Cv::Folds(&folds), Monitor::new());
    for (targets, weights) in [(&y, None), (&data.y, Some(&weights[..])), (&data.y, None)] {
        let problem = Problem::new(&rows, targets, 1, weights).expect("valid");
        let model = ridge(&[0.0, 1.0], true);
        let found = predict(&problem, &model, cv, &monitor).expect("determined");
        let summed = errors(&problem, &model, cv, &monitor).expect("determined");
        for alpha in 0..2 {
            let square = |i: usize| (targets[i] - found.values[2 * i + alpha]).powi(2);
            let total: f64 = (0..40).map(square).sum();
            assert!((summed.total[alpha] / total - 1.0).abs() < 1e-9);
        }
    }
}

#[test]
fn errors_are_those_of_the_predictions() {
    let data = data(40, 3, 9);
    let rows = Dense::new(ndarray::ArrayView2::from_shape((40, 3), &data.x).expect("shape"))
        .expect("valid");
    let problem = Problem::new(&rows, &data.y, 2, None);
    assert!(problem.is_err(), "40 values are not two outputs of 40 rows");
    let problem = Problem::new(&rows, &data.y, 1, None).expect("valid");
    for scaler in [
        None,
        Some(Scaler {
            mean: true,
            deviation: true,
        }),
    ] {
        let model = Model {
            scaler,
            ..ridge(&[0.0, 1.0], true)
        };
        for k in [4, 40] {
            let folds = Folds::contiguous(40, k).expect("valid");
            let monitor = Monitor::new();
            let cv = Cv::Folds(&folds);
            let found = predict(&problem, &model, cv, &monitor).expect("determined");
            let summed = errors(&problem, &model, cv, &monitor).expect("determined");
            let size = (40 / k) as f64;
            for alpha in 0..2 {
                let squares: Vec<f64> = (0..40)
                    .map(|i| (data.y[i] - found.values[2 * i + alpha]).powi(2))
                    .collect();
                let total: f64 = squares.iter().sum();
                assert!(close(summed.total[alpha], total));
                assert!(close(summed.mean[alpha], total / 40.0));
                let means = squares.chunks(40 / k).map(|c| c.iter().sum::<f64>() / size);
                let spread: f64 = means.map(|m| (m - total / 40.0).powi(2)).sum();
                let expected = (spread / ((k - 1) * k) as f64).sqrt();
                assert!(close(summed.standard_error()[alpha], expected));
            }
        }
    }
}

#[test]
fn sparse_rows_are_dense_rows() {
    let mut data = data(60, 30, 3);
    for (i, v) in data.x.iter_mut().enumerate() {
        if (i * 31) % 17 != 0 {
            *v = 0.0;
        }
    }
    let (mut indptr, mut indices, mut values) = (vec![0_i32], vec![], vec![]);
    for i in 0..data.n {
        for (j, &v) in (0_i32..).zip(data.row(i)).filter(|e| *e.1 != 0.0) {
            indices.push(j);
            values.push(v);
        }
        indptr.push(i32::try_from(values.len()).expect("small"));
    }
    let dense = Dense::new(ndarray::ArrayView2::from_shape((60, 30), &data.x).expect("shape"))
        .expect("valid");
    let csr = Csr::new(&indptr, &indices, &values, 30).expect("valid");
    assert!(
        csr.n_stored() * 8 < 60 * 30,
        "sparse enough for its own arithmetic"
    );
    let model = ridge(&[0.5], true);
    for k in [3, 60] {
        let folds = Folds::contiguous(60, k).expect("valid");
        let monitor = Monitor::new();
        let one = Problem::new(&dense, &data.y, 1, None).expect("valid");
        let other = Problem::new(&csr, &data.y, 1, None).expect("valid");
        let one = predict(&one, &model, Cv::Folds(&folds), &monitor).expect("determined");
        let other = predict(&other, &model, Cv::Folds(&folds), &monitor).expect("determined");
        for (a, b) in one.values.iter().zip(&other.values) {
            assert!(close(*a, *b));
        }
    }
}

#[test]
fn leverages_sum_to_the_coefficients() {
    let data = data(30, 4, 1);
    let rows = Dense::new(ndarray::ArrayView2::from_shape((30, 4), &data.x).expect("shape"))
        .expect("valid");
    let problem = Problem::new(&rows, &data.y, 1, Some(&data.w)).expect("valid");
    for (intercept, freedom) in [(true, 5.0), (false, 4.0)] {
        let model = ridge(&[0.0], intercept);
        let found = diagnostics(&problem, &model, &Monitor::new()).expect("determined");
        assert!(close(found.leverages.iter().sum(), freedom));
        let folds = Folds::contiguous(30, 30).expect("valid");
        let loo = predict(&problem, &model, Cv::Folds(&folds), &Monitor::new()).expect("valid");
        for i in 0..30 {
            assert!(close(found.left_out[i], data.y[i] - loo.values[i]));
            assert!(close(
                found.residuals[i],
                found.left_out[i] * (1.0 - found.leverages[i])
            ));
        }
    }
}

#[test]
fn cancelled_work_stops() {
    let data = data(30, 4, 1);
    let rows = Dense::new(ndarray::ArrayView2::from_shape((30, 4), &data.x).expect("shape"))
        .expect("valid");
    let problem = Problem::new(&rows, &data.y, 1, None).expect("valid");
    let monitor = Monitor::new();
    monitor.cancel();
    let folds = Folds::contiguous(30, 5).expect("valid");
    let stopped = predict(&problem, &ridge(&[1.0], true), Cv::Folds(&folds), &monitor);
    assert!(matches!(stopped, Err(onefold::Error::Interrupted)));
}
