//! Solutions are compared with the gradients of the objective, by plain loops.

use ndarray::{Array1, Array2, Array3, Array4};

use super::super::{ClassWeights, Intercept, Loss, Solutions};
use super::{Model, Outputs, solve};
use crate::data::{Csr, Rows};
use crate::scaling::FoldScaling;
use crate::{Dataset, Folds, Monitor, Resampling, Splits};

const N: usize = 90;
const P: usize = 4;
const K: usize = 3;

fn x() -> Array2<f64> {
    Array2::from_shape_fn((N, P), |(i, j)| {
        let value = ((i * (j + 2)) as f64 * 1.3).sin() + 0.3 * j as f64;
        if (i + j) % 3 == 0 { 0.0 } else { value }
    })
}

/// Classes that overlap.
fn codes() -> Array2<f64> {
    let x = x();
    Array2::from_shape_fn((N, 1), |(i, _)| {
        let z = x[(i, 0)] - x[(i, 1)] + 1.2 * ((i * 7) as f64).cos();
        if z > 0.5 { 2.0 } else { f64::from(z > -0.5) }
    })
}

struct Sparse(Array1<i32>, Array1<i32>, Array1<f64>);

impl Sparse {
    fn new(x: &Array2<f64>) -> Self {
        let (mut starts, mut indices, mut values) = (vec![0], vec![], vec![]);
        for row in x.rows() {
            for (j, &v) in (0..).zip(row) {
                if v != 0.0 {
                    indices.push(j);
                    values.push(v);
                }
            }
            starts.push(i32::try_from(indices.len()).expect("small"));
        }
        Self(starts.into(), indices.into(), values.into())
    }

    fn dataset(&self) -> Dataset<'_> {
        let rows = Csr::new(self.0.view(), self.1.view(), self.2.view(), P).expect("valid");
        Dataset::new_unchecked(Rows::Csr32(rows))
    }
}

/// Derivatives of the loss of a row by its predictors.
fn first(outputs: Outputs, y: f64, z: &[f64]) -> Vec<f64> {
    match outputs {
        Outputs::Separate(_) => vec![1.0 / (1.0 + (-z[0]).exp()) - f64::from(y > 0.0)],
        Outputs::Softmax(_) => {
            let sum: f64 = z.iter().map(|z| z.exp()).sum();
            let each = z.iter().enumerate();
            each.map(|(c, z)| z.exp() / sum - f64::from(c as f64 == y))
                .collect()
        }
    }
}

/// Checks predictors and gradients of all folds and candidates.
fn check(
    found: &Solutions,
    model: &Model<'_>,
    weights: &Array1<f64>,
    factors: &Array3<f64>,
    penalties: &Array2<f64>,
    folds: &dyn Resampling,
) {
    let (x, y) = (x(), codes());
    let width = found.coefficients.dim().2;
    let mut tested = 0;
    for fold in 0..folds.n_splits() {
        let scaled = |i: usize, j: usize| {
            let value = x[(i, j)];
            model
                .scaling
                .map_or(value, |s| s.fold(fold).apply(j, value))
        };
        for candidate in 0..penalties.nrows() {
            let at = |c: usize, j: usize| found.coefficients[(fold, candidate, c, j)];
            let predictor = |i: usize, c: usize| {
                (0..P).map(|j| at(c, j) * scaled(i, j)).sum::<f64>() + at(c, P)
            };
            let mut gradient = Array2::<f64>::zeros((width, P + 1));
            for &i in folds.training(fold).into_iter().flatten() {
                let z: Vec<f64> = (0..width).map(|c| predictor(i, c)).collect();
                let w = weights[i] * factors[(fold + 1, 0, usize::from(y[(i, 0)] > 0.0))];
                for (c, own) in first(model.outputs, y[(i, 0)], &z).into_iter().enumerate() {
                    (0..P).for_each(|j| gradient[(c, j)] += w * own * scaled(i, j));
                    gradient[(c, P)] += w * own;
                }
            }
            let penalty = penalties[(candidate, fold + 1)];
            for c in 0..width {
                (0..P).for_each(|j| gradient[(c, j)] += penalty * at(c, j));
                match model.intercept {
                    Intercept::None => gradient[(c, P)] = 0.0,
                    Intercept::Free => {}
                    Intercept::Penalised(v) => gradient[(c, P)] += penalty * at(c, P) / (v * v),
                }
            }
            let largest = gradient.iter().fold(0.0_f64, |m, g| m.max(g.abs()));
            assert!(largest < 1e-7, "{model:?} {fold} {candidate}: {largest}");
            assert!(found.relative_gradients[(candidate, fold, 0)] <= 1e-10);
            for (row, &i) in folds.held_out(fold).iter().enumerate() {
                for c in 0..width {
                    let z = found.predictors[(tested + row, candidate, c)];
                    assert!((z - predictor(i, c)).abs() < 1e-10);
                }
            }
        }
        tested += folds.held_out(fold).len();
    }
}

#[test]
fn every_fold_is_at_its_optimum() {
    let (x, y) = (x(), codes());
    let binary = y.mapv(|y| f64::from(y > 0.0));
    let sparse = Sparse::new(&x);
    let dense = Dataset::dense(x.view()).expect("contiguous");
    let weights = Array1::from_shape_fn(N, |i| 0.5 + (i % 4) as f64);
    let classes: Vec<u32> = binary.iter().map(|&y| u32::from(y > 0.0)).collect();
    let partition = Folds::shuffled(N, 3, 0).expect("valid");
    let again: Vec<usize> = (0..60).chain(20..40).collect();
    let splits = vec![(again, (60..N).collect()), ((30..N).collect(), vec![3, 2])];
    let splits = Splits::new(N, splits).expect("valid");
    let all: [&dyn Resampling; 2] = [&partition, &splits];
    for folds in all {
        let sets = folds.n_splits() + 1;
        let factors = Array3::from_shape_fn((sets, 1, 2), |(s, _, c)| 1.0 + (s + 2 * c) as f64);
        let class_weights = ClassWeights::new(classes.clone(), factors.clone()).expect("valid");
        let shift = Array2::from_shape_fn((sets, P), |(s, j)| 0.1 * (s + j) as f64);
        let scale = Array2::from_shape_fn((sets, P), |(s, j)| 1.0 + 0.2 * (s + j) as f64);
        let scaling = FoldScaling::new(Some(shift), scale).expect("valid");
        let penalties =
            Array2::from_shape_fn((2, sets), |(c, s)| [0.1, 20.0][c] * (1.0 + 0.1 * s as f64));
        for outputs in [Outputs::Separate(Loss::Logistic), Outputs::Softmax(K)] {
            let targets = match outputs {
                Outputs::Separate(_) => &binary,
                Outputs::Softmax(_) => &y,
            };
            for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised(2.0)] {
                for scaling in [None, Some(&scaling)] {
                    let model = Model {
                        outputs,
                        intercept,
                        scaling,
                        class_weights: Some(&class_weights),
                    };
                    for data in [dense, sparse.dataset()] {
                        let data = data.with_weights(weights.view()).expect("valid");
                        let (targets, options) = (targets.view(), (1e-10.into(), true));
                        let monitor = Monitor::new();
                        let penalties = &penalties;
                        let found = solve(
                            &model,
                            &data,
                            targets,
                            penalties.view(),
                            folds,
                            options,
                            &monitor,
                        );
                        let found = found.expect("solved");
                        check(&found, &model, &weights, &factors, penalties, folds);
                    }
                }
            }
        }
    }
}

fn plain(outputs: Outputs) -> Model<'static> {
    Model {
        outputs,
        intercept: Intercept::Free,
        scaling: None,
        class_weights: None,
    }
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let (n, p) = (3000, 5);
    let x = Array2::from_shape_fn((n, p), |(i, j)| ((i * (j + 3)) as f64).sin());
    let y = Array2::from_shape_fn((n, 1), |(i, _)| (i % 3) as f64);
    let data = Dataset::dense(x.view()).expect("contiguous");
    let folds = Folds::shuffled(n, 4, 0).expect("valid");
    let penalties = Array2::ones((1, 5));
    let with_threads = |n_threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(n_threads)
            .build();
        pool.expect("threads").install(|| {
            let model = plain(Outputs::Softmax(3));
            let options = (1e-8.into(), true);
            let monitor = Monitor::new();
            let penalties = penalties.view();
            let found = solve(
                &model,
                &data,
                y.view(),
                penalties,
                &folds,
                options,
                &monitor,
            );
            found.expect("solved")
        })
    };
    let (one, three) = (with_threads(1), with_threads(3));
    assert!(one.predictors == three.predictors && one.coefficients == three.coefficients);
}

#[test]
fn an_optimum_that_is_not_finite_or_not_unique_is_nan() {
    let x = x();
    let data = Dataset::dense(x.view()).expect("contiguous");
    let folds = Folds::shuffled(N, 3, 0).expect("valid");
    let solve_for = |data: &Dataset<'_>, y: &Array2<f64>, outputs, penalty: f64| {
        let penalties = Array2::from_elem((1, 4), penalty);
        let (model, options) = (plain(outputs), (1e-8.into(), false));
        let monitor = Monitor::new();
        let penalties = penalties.view();
        let found = solve(&model, data, y.view(), penalties, &folds, options, &monitor);
        let found = found.expect("solved");
        assert_eq!(
            found.coefficients,
            Array4::<f64>::zeros((0, 1, found.predictors.dim().2, 5))
        );
        found.relative_gradients
    };
    let separable = Array2::from_shape_fn((N, 1), |(i, _)| f64::from(x[(i, 1)] > 0.2));
    for outputs in [Outputs::Separate(Loss::Logistic), Outputs::Softmax(2)] {
        assert!(
            solve_for(&data, &separable, outputs, 0.0)
                .iter()
                .all(|r| r.is_nan())
        );
        assert!(
            solve_for(&data, &separable, outputs, 1.0)
                .iter()
                .all(|r| *r <= 1e-8)
        );
    }
    assert!(
        solve_for(&data, &codes(), Outputs::Softmax(K), 0.0)
            .iter()
            .all(|r| *r <= 1e-8)
    );
    let mut doubled = x.clone();
    let first = x.column(0).to_owned();
    doubled.column_mut(3).assign(&first);
    let data = Dataset::dense(doubled.view()).expect("contiguous");
    assert!(
        solve_for(&data, &codes(), Outputs::Softmax(K), 0.0)
            .iter()
            .all(|r| r.is_nan())
    );
}

#[test]
fn classes_must_be_codes_and_penalties_not_negative() {
    let (x, y) = (x(), codes());
    let data = Dataset::dense(x.view()).expect("contiguous");
    let folds = Folds::shuffled(N, 3, 0).expect("valid");
    let message = |n_classes, penalty: f64, n_sets| {
        let penalties = Array2::from_elem((1, n_sets), penalty);
        let model = plain(Outputs::Softmax(n_classes));
        let (penalties, monitor) = (penalties.view(), Monitor::new());
        let found = solve(
            &model,
            &data,
            y.view(),
            penalties,
            &folds,
            (1e-8.into(), false),
            &monitor,
        );
        found.expect_err("refused").to_string()
    };
    assert!(message(2, 1.0, 4).contains("codes["));
    assert!(message(3, -1.0, 4).contains("penalties"));
    assert!(message(3, 1.0, 3).contains("training sets of penalties"));
}
