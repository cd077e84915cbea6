//! Every fold equals a fit to its training rows alone.

use ndarray::{Array1, Array2, Array3, Axis, array};
use onefold::data::{Csr, Rows};
use onefold::newton::{ClassWeights, Family, Intercept, Loss, fit, solve};
use onefold::scaling::FoldScaling;
use onefold::{Dataset, Error, Folds, Monitor, Resampling, Splits};

const TOLERANCE: f64 = 1e-10;

/// Rows with unlike units, and targets for a loss.
struct Data {
    x: Array2<f64>,
    y: Array2<f64>,
    weights: Array1<f64>,
}

impl Data {
    fn new(loss: Loss, n: usize) -> Self {
        let noise = |i: usize, j: usize| ((i * 37 + j * 101) as f64 * 0.713).sin();
        let x = Array2::from_shape_fn((n, 3), |(i, j)| {
            [1.0, 20.0, 0.1][j] * noise(i, j) + [0.0, 50.0, 0.0][j]
        });
        let y = Array2::from_shape_fn((n, 2), |(i, output)| {
            let z = 1.5 * noise(i, 0) - noise(i, 1) + 2.0 * noise(i, 7 + output);
            match loss {
                Loss::Logistic => f64::from(z > 0.2),
                Loss::SquaredHinge => f64::from(z > 0.2) * 2.0 - 1.0,
                Loss::Tweedie { .. } => (0.5 * z).exp() + 0.1,
                Loss::HalfSquared | Loss::SquaredEpsilonInsensitive { .. } => z,
            }
        });
        let weights = Array1::from_shape_fn(n, |i| {
            if i % 9 == 0 {
                0.0
            } else {
                0.5 + (i % 4) as f64
            }
        });
        Self { x, y, weights }
    }

    fn dataset(&self) -> Dataset<'_> {
        let data = Dataset::dense(self.x.view()).expect("contiguous");
        data.with_weights(self.weights.view()).expect("valid")
    }

    /// The linear predictors of `test` by a fit to `train` alone.
    fn refit(
        &self,
        loss: Loss,
        intercept: Intercept,
        penalty: f64,
        train: &[usize],
        test: &[usize],
    ) -> Array2<f64> {
        let x = self.x.select(Axis(0), train);
        let (y, weights) = (
            self.y.select(Axis(0), train),
            self.weights.select(Axis(0), train),
        );
        let data = Dataset::dense(x.view()).expect("contiguous");
        let data = data.with_weights(weights.view()).expect("valid");
        let family = plain(loss, intercept);
        let found = fit(
            &family,
            &data,
            y.view(),
            &[penalty],
            TOLERANCE.into(),
            &Monitor::new(),
        );
        let (coefficients, gradients) = found.expect("valid");
        assert!(gradients.iter().all(|gradient| *gradient <= TOLERANCE));
        Array2::from_shape_fn((test.len(), 2), |(i, output)| {
            let row = self.x.row(test[i]);
            let own = coefficients.index_axis(Axis(0), 0);
            let own = own.index_axis(Axis(0), output);
            let features: f64 = row.iter().zip(own).map(|(x, b)| x * b).sum();
            features + own[3]
        })
    }
}

fn plain(loss: Loss, intercept: Intercept) -> Family<'static> {
    Family {
        loss,
        intercept,
        scaling: None,
        class_weights: None,
    }
}

const LOSSES: [Loss; 7] = [
    Loss::Logistic,
    Loss::Tweedie { power: 1.0 },
    Loss::Tweedie { power: 1.4 },
    Loss::Tweedie { power: 2.0 },
    Loss::HalfSquared,
    Loss::SquaredHinge,
    Loss::SquaredEpsilonInsensitive { epsilon: 0.3 },
];

fn all_folds(n: usize) -> Vec<Box<dyn Resampling>> {
    let repeated = (0..n).chain(0..n / 4).filter(|i| i % 3 != 0).collect();
    let most = (0..n).filter(|i| i % 7 != 0).collect();
    let few = (0..n / 3).collect();
    let pairs = vec![
        (repeated, vec![0, 3, 3]),
        (most, vec![7, 14]),
        (few, vec![n - 1]),
    ];
    vec![
        Box::new(Folds::shuffled(n, 4, 0).expect("valid")),
        Box::new(Folds::contiguous(n, 2).expect("valid")),
        Box::new(Folds::leave_one_out(n).expect("valid")),
        Box::new(Splits::new(n, pairs.clone()).expect("valid")),
        Box::new(Splits::new(n, pairs[..1].to_vec()).expect("valid")),
    ]
}

#[test]
fn every_fold_is_that_of_a_refit() {
    let n = 36;
    for loss in LOSSES {
        let data = Data::new(loss, n);
        for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised(2.0)] {
            for folds in all_folds(n) {
                let k = folds.n_splits();
                let penalties = Array2::from_shape_fn((2, k + 1), |(c, line)| {
                    [0.1, 5.0][c] + 0.01 * line as f64
                });
                let found = solve(
                    &plain(loss, intercept),
                    &data.dataset(),
                    data.y.view(),
                    penalties.view(),
                    &*folds,
                    TOLERANCE.into(),
                    &Monitor::new(),
                )
                .expect("valid");
                let reached = &found.relative_gradients;
                assert!(
                    reached.iter().all(|gradient| *gradient <= TOLERANCE),
                    "{loss:?} {intercept:?} {k} folds: {reached}"
                );
                let mut start = 0;
                for fold in 0..k {
                    let test = folds.held_out(fold);
                    let train = folds.training(fold).concat();
                    for candidate in 0..2 {
                        let penalty = penalties[(candidate, fold + 1)];
                        let expected = data.refit(loss, intercept, penalty, &train, test);
                        for ((i, output), expected) in expected.indexed_iter() {
                            let found = found.predictors[(start + i, candidate, output)];
                            assert!(
                                (found - expected).abs() < 1e-6,
                                "{loss:?} {intercept:?} fold {fold} of {k}: {found} {expected}"
                            );
                        }
                    }
                    start += test.len();
                }
            }
        }
    }
}

/// Sparse rows, and rows that are scaled before instead of inside.
#[test]
fn layouts_and_scalings_agree() {
    let n = 50;
    let data = Data::new(Loss::Logistic, n);
    let folds = Folds::shuffled(n, 3, 1).expect("valid");
    let penalties = Array2::from_elem((1, 4), 0.7);
    let run = |family: &Family<'_>, data: &Dataset<'_>, y: &Array2<f64>| {
        let monitor = Monitor::new();
        let found = solve(
            family,
            data,
            y.view(),
            penalties.view(),
            &folds,
            TOLERANCE.into(),
            &monitor,
        );
        found.expect("valid").predictors
    };
    let family = plain(Loss::Logistic, Intercept::Free);
    let dense = run(&family, &data.dataset(), &data.y);
    let indptr: Vec<i64> = (0..=50).map(|i| 3 * i).collect();
    let indices: Vec<i64> = (0..150).map(|i| i % 3).collect();
    let values = data.x.as_slice().expect("contiguous");
    let csr = Csr::new(&indptr, &indices, values, 3).expect("valid");
    let sparse = Dataset::new(Rows::Csr64(csr)).expect("finite");
    let sparse = sparse.with_weights(data.weights.view()).expect("valid");
    let close = |a: &Array3<f64>, b: &Array3<f64>| (a - b).iter().all(|d| d.abs() < 1e-6);
    assert!(close(&dense, &run(&family, &sparse, &data.y)));

    let (shift, scale) = ([0.3, 49.0, -0.1], [2.0, 0.04, 11.0]);
    let scaled = Array2::from_shape_fn((n, 3), |(i, j)| (data.x[(i, j)] - shift[j]) * scale[j]);
    let line = |values: [f64; 3]| Array2::from_shape_fn((4, 3), |(_, j)| values[j]);
    let scaling = FoldScaling::new(Some(line(shift)), line(scale)).expect("shape");
    for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised(0.5)] {
        let family = plain(Loss::Logistic, intercept);
        let before = Dataset::dense(scaled.view()).expect("contiguous");
        let before = before.with_weights(data.weights.view()).expect("valid");
        let inside = Family {
            scaling: Some(&scaling),
            ..family
        };
        let expected = run(&family, &before, &data.y);
        assert!(close(&expected, &run(&inside, &data.dataset(), &data.y)));
    }
}

#[test]
fn class_weights_are_factors_of_weights() {
    let n = 50;
    let data = Data::new(Loss::Logistic, n);
    let folds = Folds::shuffled(n, 3, 1).expect("valid");
    let penalties = Array2::from_elem((1, 4), 0.7);
    let y = data.y.column(0).to_owned().insert_axis(Axis(1));
    let codes: Vec<u32> = y.iter().map(|v| u32::from(*v > 0.5)).collect();
    let factor = |code: usize| [0.5, 3.0][code];
    let factors = Array3::from_shape_fn((4, 1, 2), |(_, _, code)| factor(code));
    let classes = ClassWeights::new(codes.clone(), factors).expect("valid");
    let weighted = Array1::from_shape_fn(n, |i| data.weights[i] * factor(codes[i] as usize));
    let family = plain(Loss::Logistic, Intercept::Free);
    let run = |family: &Family<'_>, data: &Dataset<'_>| {
        let monitor = Monitor::new();
        let found = solve(
            family,
            data,
            y.view(),
            penalties.view(),
            &folds,
            TOLERANCE.into(),
            &monitor,
        );
        found.expect("valid").predictors
    };
    let by_class = Family {
        class_weights: Some(&classes),
        ..family
    };
    let found = run(&by_class, &data.dataset());
    let dense = Dataset::dense(data.x.view()).expect("contiguous");
    let expected = run(
        &family,
        &dense.with_weights(weighted.view()).expect("valid"),
    );
    assert!((found - expected).iter().all(|d| d.abs() < 1e-6));
    assert!(ClassWeights::new(vec![2], Array3::ones((1, 1, 2))).is_err());
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let data = Data::new(Loss::Logistic, 2000);
    let folds = Folds::shuffled(2000, 7, 1).expect("valid");
    let penalties = Array2::from_elem((1, 8), 0.7);
    let run = |n_threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads);
        pool.build().expect("threads").install(|| {
            let family = plain(Loss::Logistic, Intercept::Free);
            let (data, y) = (data.dataset(), data.y.view());
            let monitor = Monitor::new();
            solve(
                &family,
                &data,
                y,
                penalties.view(),
                &folds,
                1e-8.into(),
                &monitor,
            )
            .expect("valid")
        })
    };
    let (one, three) = (run(1), run(3));
    assert_eq!(one.predictors, three.predictors);
    assert_eq!(one.coefficients, three.coefficients);
}

/// Separable classes have no finite optimum without a penalty; equal columns no unique one.
#[test]
fn what_is_not_determined_is_said() {
    let n = 40;
    let x = Array2::from_shape_fn((n, 2), |(i, j)| (i as f64 - 19.5) * 0.1 + j as f64);
    let noise = |i: usize| ((i * 7919) as f64).sin();
    let folds = Folds::contiguous(n, 4).expect("valid");
    let run = |x: &Array2<f64>, y: &Array2<f64>, penalty: f64| {
        let data = Dataset::dense(x.view()).expect("contiguous");
        let family = plain(Loss::Logistic, Intercept::Free);
        let penalties = Array2::from_elem((1, 5), penalty);
        let monitor = Monitor::new();
        let found = solve(
            &family,
            &data,
            y.view(),
            penalties.view(),
            &folds,
            1e-8.into(),
            &monitor,
        );
        found.expect("valid").relative_gradients
    };
    let one = x.select(Axis(1), &[0]);
    let separable = Array2::from_shape_fn((n, 1), |(i, _)| f64::from(i >= 20));
    assert!(run(&one, &separable, 0.0).iter().all(|g| g.is_nan()));
    assert!(run(&one, &separable, 1e-6).iter().all(|g| *g <= 1e-8));
    let mixed = Array2::from_shape_fn((n, 1), |(i, _)| f64::from(noise(i) > 0.0));
    assert!(run(&one, &mixed, 0.0).iter().all(|g| *g <= 1e-8));
    assert!(run(&x, &mixed, 0.0).iter().all(|g| g.is_nan()));
    assert!(run(&x, &mixed, 1e-3).iter().all(|g| *g <= 1e-8));
}

#[test]
fn bad_arguments_and_cancellation_are_errors() {
    let data = Data::new(Loss::Logistic, 20);
    let folds = Folds::contiguous(20, 4).expect("valid");
    let family = plain(Loss::Logistic, Intercept::Free);
    let run = |penalties: &Array2<f64>, monitor: &Monitor| {
        let (rows, y) = (data.dataset(), data.y.view());
        solve(
            &family,
            &rows,
            y,
            penalties.view(),
            &folds,
            1e-8.into(),
            monitor,
        )
        .map(|_| ())
    };
    let monitor = Monitor::new();
    assert!(matches!(
        run(&Array2::ones((1, 4)), &monitor),
        Err(Error::Shape { .. })
    ));
    let mut negative = Array2::ones((1, 5));
    negative[(0, 2)] = -1.0;
    assert!(matches!(run(&negative, &monitor), Err(Error::Value { .. })));
    monitor.cancel();
    assert!(matches!(
        run(&Array2::ones((1, 5)), &monitor),
        Err(Error::Interrupted)
    ));
    let infinite = array![[f64::INFINITY], [0.0]];
    let found = Dataset::dense(infinite.view());
    assert!(matches!(found, Err(Error::Value { .. })));
}
