//! Every fold equals a fit to its training rows alone, whatever the method.

#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // codes of classes

use std::sync::Arc;

use ndarray::{Array1, Array2, Array3, Axis};
use onefold::data::{Csr, Rows};
use onefold::linear::FoldMaps;
use onefold::newton::{
    ClassWeights, GlmSpec, Intercept, Link, Loss, Method, Newton, Penalty, RowStatus,
};
use onefold::{
    Dataset, Engine, Error, Folds, Job, Keep, Monitor, OutOfFold, Resampling, Result, Splits,
};

const TOLERANCE: f64 = 1e-10;
const KEEP: Keep = Keep {
    models: false,
    coefficients: true,
    undetermined: true,
};

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

    /// Rows and weights.
    fn rows(&self) -> Dataset<'_> {
        let data = Dataset::dense(self.x.view()).expect("contiguous");
        data.with_weights(self.weights.view()).expect("valid")
    }

    fn dataset(&self) -> Dataset<'_> {
        self.rows().with_values(self.y.view()).expect("valid")
    }

    /// The linear predictors of `test` by a fit to `train` alone.
    fn refit(&self, model: &GlmSpec, train: &[usize], test: &[usize]) -> Array2<f64> {
        let x = self.x.select(Axis(0), train);
        let (y, weights) = (
            self.y.select(Axis(0), train),
            self.weights.select(Axis(0), train),
        );
        let data = Dataset::dense(x.view()).expect("contiguous");
        let data = data.with_weights(weights.view()).expect("valid");
        let data = data.with_values(y.view()).expect("valid");
        let all: Vec<usize> = (0..train.len()).collect();
        let split = Splits::new(train.len(), vec![(all, vec![0])]).expect("valid");
        let found = run(&[model], &data, &split, None).expect("valid");
        let gradients = &found[0].status.relative_gradients;
        assert!(gradients.iter().all(|gradient| *gradient <= TOLERANCE));
        let coefficients = found[0].coefficients.index_axis(Axis(0), 0);
        Array2::from_shape_fn((test.len(), 2), |(i, output)| {
            let own = coefficients.index_axis(Axis(0), output);
            let features: f64 = self
                .x
                .row(test[i])
                .iter()
                .zip(own)
                .map(|(x, b)| x * b)
                .sum();
            features + own[3]
        })
    }
}

/// Results of models to the tolerance of the tests.
fn run(
    models: &[&GlmSpec],
    data: &Dataset<'_>,
    folds: &dyn Resampling,
    method: Option<Method>,
) -> Result<Vec<OutOfFold>> {
    let newton = Newton {
        accuracy: TOLERANCE.into(),
        method,
        ..Newton::default()
    };
    let monitor = Monitor::new();
    newton.out_of_fold(models, &Job::new(data, folds, &monitor).keeping(KEEP))
}

fn outputs(model: &GlmSpec, data: &Dataset<'_>, folds: &dyn Resampling) -> Array2<f64> {
    let mut found = run(&[model], data, folds, None).expect("valid");
    found.swap_remove(0).outputs
}

fn plain(loss: Loss, intercept: Intercept, penalty: f64) -> GlmSpec {
    GlmSpec {
        link: Link::Independent(loss),
        intercept,
        penalty: Penalty::Sum(penalty),
        ..GlmSpec::default()
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
                let penalty = |c: usize, set: usize| [0.1, 5.0][c] + 0.01 * set as f64;
                let models = [0, 1].map(|c| GlmSpec {
                    penalty: Penalty::EachSet((0..=k).map(|set| penalty(c, set)).collect()),
                    ..plain(loss, intercept, 0.0)
                });
                for method in [Method::Hessians, Method::MatrixFree] {
                    let case = format!("{loss:?} {intercept:?} {method:?} {k} folds");
                    let rows = data.dataset();
                    let found = run(&models.each_ref(), &rows, &*folds, Some(method));
                    for (c, found) in found.expect("valid").iter().enumerate() {
                        let reached = &found.status.relative_gradients;
                        assert!(reached.iter().all(|r| *r <= TOLERANCE), "{case}: {reached}");
                        let mut start = 0;
                        for fold in 0..k {
                            let test = folds.held_out(fold);
                            let train = folds.training(fold).concat();
                            let alone = plain(loss, intercept, penalty(c, fold + 1));
                            let expected = data.refit(&alone, &train, test);
                            for ((i, output), expected) in expected.indexed_iter() {
                                let found = found.outputs[(start + i, output)];
                                assert!((found - expected).abs() < 1e-6, "{case} {fold}");
                            }
                            start += test.len();
                        }
                    }
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
    let model = plain(Loss::Logistic, Intercept::Free, 0.7);
    let dense = outputs(&model, &data.dataset(), &folds);
    let indptr: Vec<i64> = (0..=50).map(|i| 3 * i).collect();
    let indices: Vec<i64> = (0..150).map(|i| i % 3).collect();
    let values = data.x.as_slice().expect("contiguous");
    let csr = Csr::new(&indptr, &indices, values, 3).expect("valid");
    let sparse = Dataset::new(Rows::Csr64(csr)).expect("finite");
    let sparse = sparse.with_weights(data.weights.view()).expect("valid");
    let sparse = sparse.with_values(data.y.view()).expect("valid");
    let close = |a: &Array2<f64>, b: &Array2<f64>| (a - b).iter().all(|d| d.abs() < 1e-6);
    assert!(close(&dense, &outputs(&model, &sparse, &folds)));

    let (shift, scale) = ([0.3, 49.0, -0.1], [2.0, 0.04, 11.0]);
    let scaled = Array2::from_shape_fn((n, 3), |(i, j)| (data.x[(i, j)] - shift[j]) * scale[j]);
    let each_set = |values: [f64; 3]| Array2::from_shape_fn((4, 3), |(_, j)| values[j]);
    let scaling = FoldMaps::new(Some(each_set(shift)), each_set(scale)).expect("shape");
    let scaling = Arc::new(scaling);
    for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised(0.5)] {
        let model = plain(Loss::Logistic, intercept, 0.7);
        let before = Dataset::dense(scaled.view()).expect("contiguous");
        let before = before.with_weights(data.weights.view()).expect("valid");
        let before = before.with_values(data.y.view()).expect("valid");
        let inside = GlmSpec {
            scaling: Some(scaling.clone()),
            ..model.clone()
        };
        let expected = outputs(&model, &before, &folds);
        assert!(close(&expected, &outputs(&inside, &data.dataset(), &folds)));
    }
}

#[test]
fn class_weights_are_factors_of_weights() {
    let n = 50;
    let data = Data::new(Loss::Logistic, n);
    let folds = Folds::shuffled(n, 3, 1).expect("valid");
    let codes = data.y.column(0).mapv(|v| u32::from(v > 0.5));
    let factor = |code: usize| [0.5, 3.0][code];
    let factors = Array3::from_shape_fn((4, 1, 2), |(_, _, code)| factor(code));
    let model = plain(Loss::Logistic, Intercept::Free, 0.7);
    let by_class = GlmSpec {
        class_weights: Some(Arc::new(ClassWeights::new(factors).expect("valid"))),
        ..model.clone()
    };
    let rows = data.rows().with_classes(codes.view(), 2).expect("valid");
    let found = outputs(&by_class, &rows, &folds);
    let weighted = Array1::from_shape_fn(n, |i| data.weights[i] * factor(codes[i] as usize));
    let rows = rows.with_weights(weighted.view()).expect("valid");
    let expected = outputs(&model, &rows, &folds);
    assert!((found - expected).iter().all(|d| d.abs() < 1e-6));
}

/// Of two classes the second against the first, of three each against the rest.
#[test]
fn classes_become_outputs() {
    let n = 60;
    let data = Data::new(Loss::Logistic, n);
    let folds = Folds::shuffled(n, 3, 1).expect("valid");
    let codes = Array1::from_shape_fn(n, |i| data.y[(i, 0)] as u32 + u32::from(i % 5 == 0));
    for (loss, low) in [(Loss::Logistic, 0.0), (Loss::SquaredHinge, -1.0)] {
        let model = plain(loss, Intercept::Free, 2.0);
        for (n_classes, told) in [(2_u32, vec![1]), (3, vec![0, 1, 2])] {
            let codes = codes.mapv(|code| code.min(n_classes - 1));
            let targets = Array2::from_shape_fn((n, told.len()), |(i, output)| {
                if codes[i] == told[output] { 1.0 } else { low }
            });
            let classes = data.rows().with_classes(codes.view(), n_classes as usize);
            let values = data.rows().with_values(targets.view()).expect("valid");
            let found = outputs(&model, &classes.expect("valid"), &folds);
            assert_eq!(found, outputs(&model, &values, &folds));
        }
    }
}

/// A mean is a sum whose penalty grows with the weight of the training rows.
#[test]
fn penalties_of_means_follow_the_weights() {
    let n = 40;
    let data = Data::new(Loss::HalfSquared, n);
    for folds in all_folds(n) {
        let total = |rows: &[usize]| rows.iter().map(|&i| data.weights[i]).sum::<f64>();
        let sets = (0..folds.n_splits()).map(|fold| total(&folds.training(fold).concat()));
        let sets = std::iter::once(data.weights.sum()).chain(sets);
        let each_set = GlmSpec {
            penalty: Penalty::EachSet(sets.map(|total| 0.3 * total).collect()),
            ..plain(Loss::HalfSquared, Intercept::Free, 0.0)
        };
        let mean = GlmSpec {
            penalty: Penalty::Mean(0.3),
            ..each_set.clone()
        };
        let rows = data.dataset();
        let difference = outputs(&mean, &rows, &*folds) - outputs(&each_set, &rows, &*folds);
        assert!(difference.iter().all(|d| d.abs() < 1e-9));
    }
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let data = Data::new(Loss::Logistic, 2000);
    let folds = Folds::shuffled(2000, 7, 1).expect("valid");
    let model = plain(Loss::Logistic, Intercept::Free, 0.7);
    for method in [Method::Hessians, Method::MatrixFree] {
        let run = |n_threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads);
            let pool = pool.build().expect("threads");
            let found = pool.install(|| run(&[&model], &data.dataset(), &folds, Some(method)));
            found.expect("valid").swap_remove(0)
        };
        let (one, three) = (run(1), run(3));
        assert_eq!(one.outputs, three.outputs);
        assert_eq!(one.coefficients, three.coefficients);
        assert_eq!(one.cost, three.cost);
    }
}

/// Separable classes have no finite optimum without a penalty; equal columns no unique one.
#[test]
fn what_is_not_determined_is_said() {
    let n = 40;
    let x = Array2::from_shape_fn((n, 2), |(i, j)| (i as f64 - 19.5) * 0.1 + j as f64);
    let noise = |i: usize| ((i * 7919) as f64).sin();
    let folds = Folds::contiguous(n, 4).expect("valid");
    let run = |x: &Array2<f64>, y: &Array1<u32>, penalty: f64| {
        let data = Dataset::dense(x.view()).expect("contiguous");
        let data = data.with_classes(y.view(), 2).expect("valid");
        let model = plain(Loss::Logistic, Intercept::Free, penalty);
        let found = run(&[&model], &data, &folds, None)
            .expect("listed")
            .swap_remove(0);
        let alone = Newton::default().cross_validate(&model, &data, &folds);
        let listed = found.status.undetermined.len();
        assert_eq!(alone.is_err(), listed > 0);
        assert_eq!(found.outputs.iter().any(|z| z.is_nan()), listed > 0);
        found.status.relative_gradients
    };
    let one = x.select(Axis(1), &[0]);
    let separable = Array1::from_shape_fn(n, |i| u32::from(i >= 20));
    assert!(run(&one, &separable, 0.0).iter().all(|g| g.is_nan()));
    assert!(run(&one, &separable, 1e-6).iter().all(|g| *g <= 1e-8));
    let mixed = Array1::from_shape_fn(n, |i| u32::from(noise(i) > 0.0));
    assert!(run(&one, &mixed, 0.0).iter().all(|g| *g <= 1e-8));
    assert!(run(&x, &mixed, 0.0).iter().all(|g| g.is_nan()));
    assert!(run(&x, &mixed, 1e-3).iter().all(|g| *g <= 1e-8));
}

/// Rows that are certified are within their bounds, in the order of the folds.
#[test]
fn single_rows_are_left_out_by_certified_steps() {
    let n = 80;
    let data = Data::new(Loss::Logistic, n);
    let (codes, x) = (data.y.column(0).mapv(|v| v as u32), &data.x);
    let rows = Dataset::dense(x.view()).expect("finite");
    let rows = rows.with_classes(codes.view(), 2).expect("valid");
    let model = plain(Loss::Logistic, Intercept::Free, 5.0);
    let folds = Folds::shuffled(n, n, 3).expect("valid");
    let certified = Newton::default().cross_validate(&model, &rows, &folds);
    let certified = certified.expect("solved");
    assert_eq!(certified.status.method, "leave-one-out");
    let others = certified.leave_one_out.expect("every row");
    let exact = outputs(&model, &rows, &folds);
    let mut n_certified = 0;
    for (at, exact) in exact.indexed_iter() {
        let error = (certified.outputs[at] - exact).abs();
        if others.statuses[at] == RowStatus::Certified {
            assert!(error <= others.bounds[at] + 1e-9);
            n_certified += 1;
        } else {
            assert!(error < 1e-4 && others.bounds[at].is_nan());
        }
        assert!((0.0..1.0).contains(&others.leverages[at]));
    }
    assert!(n_certified > n / 2, "{n_certified}");
}

#[test]
fn the_method_follows_from_rows_folds_and_model() {
    let (few, many) = (Folds::contiguous(30, 3), Folds::leave_one_out(30));
    let (few, many) = (few.expect("valid"), many.expect("valid"));
    let of = |p: usize, is_dense: bool, folds: &Folds, model: &GlmSpec, keep: Keep| {
        let x = Array2::<f64>::zeros((30, p));
        let empty = Csr::new(&[0_i32; 31], &[], &[], p).expect("valid");
        let rows = if is_dense {
            Dataset::dense(x.view()).expect("finite")
        } else {
            Dataset::new(Rows::Csr32(empty)).expect("finite")
        };
        Method::choose(model, &rows, folds, keep)
    };
    let (model, keep) = (GlmSpec::default(), Keep::default());
    let multinomial = GlmSpec {
        link: Link::Multinomial,
        ..model.clone()
    };
    assert_eq!(of(256, false, &few, &model, keep), Method::Hessians);
    assert_eq!(of(257, false, &few, &model, keep), Method::MatrixFree);
    assert_eq!(of(2048, true, &few, &model, keep), Method::Hessians);
    assert_eq!(of(2049, true, &few, &model, keep), Method::MatrixFree);
    assert_eq!(of(2, true, &few, &multinomial, keep), Method::MatrixFree);
    assert_eq!(of(2, true, &many, &model, keep), Method::LeaveOneOut);
    assert_eq!(of(2, true, &many, &model, KEEP), Method::Hessians);
    assert_eq!(of(5000, true, &many, &model, keep), Method::MatrixFree);
}

#[test]
fn bad_arguments_and_cancellation_are_errors() {
    let data = Data::new(Loss::Logistic, 20);
    let folds = Folds::contiguous(20, 4).expect("valid");
    let model = plain(Loss::Logistic, Intercept::Free, 1.0);
    let message = |model: &GlmSpec, data: &Dataset<'_>| {
        let found = run(&[model], data, &folds, None);
        found.expect_err("refused").to_string()
    };
    let with = |link: Link, penalty: Penalty, intercept: Intercept| GlmSpec {
        link,
        penalty,
        intercept,
        ..GlmSpec::default()
    };
    let (link, sum) = (model.link, Penalty::Sum(1.0));
    let tweedie = Link::Independent(Loss::Tweedie { power: 2.5 });
    let svr = Link::Independent(Loss::SquaredEpsilonInsensitive { epsilon: -1.0 });
    for (model, expected) in [
        (
            with(link, Penalty::EachSet(vec![1.0; 4]), Intercept::Free),
            "expected length 5, got 4",
        ),
        (
            with(link, Penalty::Sum(-1.0), Intercept::Free),
            "penalties is -1",
        ),
        (
            with(link, Penalty::Mean(f64::NAN), Intercept::Free),
            "penalties is NaN",
        ),
        (
            with(link, sum.clone(), Intercept::Penalised(0.0)),
            "intercept must be the positive",
        ),
        (
            with(tweedie, sum.clone(), Intercept::Free),
            "power must be from 1 to 2",
        ),
        (
            with(svr, sum.clone(), Intercept::Free),
            "epsilon must be finite and not negative",
        ),
        (
            with(Link::Multinomial, sum, Intercept::Free),
            "y must be two classes or more",
        ),
    ] {
        let message = message(&model, &data.dataset());
        assert!(message.contains(expected), "{message}");
    }
    assert!(message(&model, &data.rows()).contains("y must be numbers, or two classes"));
    let other = Folds::contiguous(19, 4).expect("valid");
    let found = Newton::default().cross_validate(&model, &data.dataset(), &other);
    assert!(matches!(found, Err(Error::Shape { .. })));
    for (loss, bad) in [
        (Loss::Logistic, 1.5),
        (Loss::SquaredHinge, 0.0),
        (Loss::Tweedie { power: 1.0 }, -0.1),
        (Loss::Tweedie { power: 2.0 }, 0.0),
    ] {
        let mut own = Data::new(loss, 20);
        own.y[(7, 1)] = bad;
        let model = plain(loss, Intercept::Free, 1.0);
        assert!(message(&model, &own.dataset()).starts_with("y[7, 1] is"));
    }
    let codes = data.y.column(0).mapv(|v| v as u32);
    let classes = data.rows().with_classes(codes.view(), 2).expect("valid");
    let poisson = plain(Loss::Tweedie { power: 1.0 }, Intercept::Free, 1.0);
    assert!(message(&poisson, &classes).contains("y must be numbers"));
    for newton in [
        Newton {
            epsilon: -1.0,
            ..Newton::default()
        },
        Newton {
            accuracy: f64::NAN.into(),
            ..Newton::default()
        },
        Newton {
            method: Some(Method::LeaveOneOut),
            ..Newton::default()
        },
    ] {
        assert!(newton.cross_validate(&model, &classes, &folds).is_err());
    }
    let monitor = Monitor::new();
    monitor.cancel();
    let rows = data.dataset();
    let found = Newton::default().out_of_fold(&[&model], &Job::new(&rows, &folds, &monitor));
    assert!(matches!(found, Err(Error::Interrupted)));
}
