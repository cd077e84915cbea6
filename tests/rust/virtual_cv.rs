//! Every fold equals a fit to its training rows, by the normal equations of small problems.

use std::sync::Arc;

use ndarray::{Array1, Array2, Array3, Axis, stack};
use onefold::data::{Csr, Layout, Rows, Targets};
use onefold::linear::{FoldMaps, training_moments};
use onefold::virtual_cv::{KernelRidge, LinearModel, MeanSquaredErrors, Virtual};
use onefold::{Dataset, Engine, Error, Folds, Job, Keep, Monitor, Resampling, Result, Splits};
use proptest::prelude::*;

use crate::algebra::solve;

struct Data {
    x: Array2<f64>,
    y: Array2<f64>,
    w: Array1<f64>,
}

impl Data {
    fn new(n: usize, p: usize, seed: u64) -> Self {
        let mut state = seed.wrapping_mul(2).wrapping_add(1);
        let mut draw = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) as f64) / f64::from(1_u32 << 31) * 2.0 - 1.0
        };
        Self {
            x: Array2::from_shape_simple_fn((n, p), || draw() + 0.5),
            y: Array2::from_shape_simple_fn((n, 1), || 3.0 * draw() + 2.0),
            w: Array1::from_shape_simple_fn(n, || draw().abs() + 0.05),
        }
    }

    fn unweighted(&self) -> Dataset<'_> {
        let data = Dataset::dense(self.x.view()).expect("contiguous");
        data.with_values(self.y.view()).expect("valid")
    }

    fn weighted(&self) -> Dataset<'_> {
        let data = self.unweighted();
        data.with_weights(self.w.view()).expect("valid")
    }

    /// Coefficients, the intercept last, by the normal equations of (x, 1).
    fn fit(&self, train: &[usize], alpha: f64, fit_intercept: bool) -> Array1<f64> {
        let p = self.x.ncols();
        let m = p + usize::from(fit_intercept);
        let mut a = vec![vec![0.0; m]; m];
        let mut b = vec![0.0; m];
        for &i in train {
            let mut row = self.x.row(i).to_vec();
            row.resize(m, 1.0);
            for j in 0..m {
                b[j] += self.w[i] * row[j] * self.y[(i, 0)];
                for k in 0..m {
                    a[j][k] += self.w[i] * row[j] * row[k];
                }
            }
        }
        for (j, row) in a.iter_mut().enumerate().take(p) {
            row[j] += alpha;
        }
        let (mut beta, _) = solve(a, b);
        beta.resize(p + 1, 0.0);
        beta.into()
    }

    fn predict(&self, beta: &Array1<f64>, i: usize) -> f64 {
        let (beta, intercept) = beta.view().split_at(Axis(0), self.x.ncols());
        self.x.row(i).dot(&beta) + intercept[0]
    }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-8 * (1.0 + b.abs())
}

fn all_close<'a>(
    a: impl IntoIterator<Item = &'a f64>,
    b: impl IntoIterator<Item = &'a f64>,
) -> bool {
    a.into_iter().zip(b).all(|(a, b)| close(*a, *b))
}

fn ridge(alpha: f64, fit_intercept: bool) -> LinearModel {
    LinearModel {
        alpha,
        fit_intercept,
        ..LinearModel::default()
    }
}

/// The scaling of scikit-learn's `StandardScaler`.
fn standard(data: &Dataset<'_>, folds: &Folds) -> Arc<FoldMaps> {
    let found = training_moments(data, folds, &Monitor::new()).expect("fits");
    let scale = found.variances.mapv(|variance| variance.sqrt().recip());
    Arc::new(FoldMaps::new(Some(found.means), scale).expect("one shape"))
}

fn predict<M>(models: &[M], data: &Dataset<'_>, folds: &dyn Resampling) -> Array3<f64>
where
    Virtual: Engine<M>,
{
    let models: Vec<_> = models.iter().collect();
    let found = Virtual.out_of_fold(&models, &Job::new(data, folds, &Monitor::new()));
    let found = found.expect("determined");
    let outputs: Vec<_> = found.iter().map(|one| one.outputs.view()).collect();
    stack(Axis(1), &outputs).expect("one shape")
}

fn errors(models: &[LinearModel], data: &Dataset<'_>, folds: &Folds) -> MeanSquaredErrors {
    let models: Vec<_> = models.iter().collect();
    let found = Virtual.mean_squared_errors(&models, data, folds, &Monitor::new());
    found.expect("determined")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn folds_of_any_size_are_refits(
        n in 20_usize..40, p in 1_usize..6, k in 2_usize..20, seed in any::<u64>(),
        fit_intercept in any::<bool>(),
    ) {
        let data = Data::new(n, p, seed);
        let labels: Array1<usize> = (0..n).map(|i| (i + i / k) % k).collect();
        let folds = Folds::from_labels(&labels, k).expect("valid");
        let models = [0.1, 2.0].map(|alpha| ridge(alpha, fit_intercept));
        let found = predict(&models, &data.weighted(), &folds);
        let mut rows = found.outer_iter();
        for fold in 0..k {
            let train: Vec<usize> = (0..n).filter(|&i| labels[i] != fold).collect();
            let fits = models.each_ref().map(|m| data.fit(&train, m.alpha, fit_intercept));
            for &row in folds.rows(fold..fold + 1) {
                let found = rows.next().expect("one row per test row");
                for (beta, found) in fits.iter().zip(found) {
                    prop_assert!(close(*found, data.predict(beta, row)));
                }
            }
        }
    }
}

/// Folds, and splits with rows that repeat or are in neither set.
fn splits() -> Splits {
    let splits = vec![
        ((2..12).collect(), vec![0, 1]),
        ((0..6).collect(), vec![5, 9]),
        (vec![1, 1, 2, 3, 4, 5, 6], vec![0, 11]),
    ];
    Splits::new(12, splits).expect("valid")
}

#[test]
fn dual_and_kernel_are_the_primal_with_a_linear_kernel() {
    let data = Data::new(12, 20, 5);
    let (splits, model) = (splits(), ridge(0.3, false));
    let found = predict(std::slice::from_ref(&model), &data.weighted(), &splits);
    let gram = data.x.dot(&data.x.t());
    let kernel = Dataset::dense(gram.view()).expect("contiguous");
    let kernel = kernel.with_values(data.y.view()).expect("valid");
    let kernel = kernel.with_weights(data.w.view()).expect("valid");
    let by_kernel = predict(&[KernelRidge { alpha: 0.3 }], &kernel, &splits);
    let (mut place, mut betas) = (0, vec![]);
    for split in 0..splits.len() {
        let beta = data.fit(splits.train(split), 0.3, false);
        for &row in splits.test(split) {
            let expected = data.predict(&beta, row);
            assert!(close(found[(place, 0, 0)], expected));
            assert!(close(by_kernel[(place, 0, 0)], expected));
            place += 1;
        }
        betas.push(beta);
    }
    // With coefficients the primal form is used; the predictions are the same.
    let keep = Keep {
        coefficients: true,
        ..Keep::default()
    };
    let (data, monitor) = (data.weighted(), Monitor::new());
    let job = Job::new(&kernel, &splits, &monitor).keeping(keep);
    let by_kernel = Virtual.out_of_fold(&[&KernelRidge { alpha: 0.3 }], &job);
    assert!(by_kernel.expect("determined")[0].coefficients.is_empty());
    let job = Job::new(&data, &splits, &monitor).keeping(keep);
    let primal = Virtual.out_of_fold(&[&model, &ridge(3.0, false)], &job);
    let primal = primal.expect("determined").swap_remove(0);
    assert!(all_close(&primal.outputs, found.index_axis(Axis(1), 0)));
    assert_eq!(primal.coefficients.dim(), (3, 1, 21));
    for (split, beta) in betas.iter().enumerate() {
        let own = primal.coefficients.index_axis(Axis(0), split);
        assert!(all_close(own, beta));
    }
}

#[test]
fn candidates_of_any_family_have_the_outputs_they_have_alone() {
    let data = Data::new(40, 3, 2);
    let folds = Folds::shuffled(40, 8, 3).expect("valid");
    let scaled = LinearModel {
        alpha: 1.0,
        scaling: Some(standard(&data.unweighted(), &folds)),
        ..LinearModel::default()
    };
    let models = [
        ridge(1.0, true),
        scaled,
        ridge(2.0, true),
        ridge(1.0, false),
    ];
    let models: Vec<_> = models.iter().collect();
    let data = data.weighted();
    let found = Virtual.out_of_fold(&models, &Job::new(&data, &folds, &Monitor::new()));
    let found = found.expect("determined");
    let fits: Vec<_> = found.iter().map(|found| found.cost.fits).collect();
    assert_eq!(fits, [1, 1, 0, 1], "one factorisation per family");
    for (model, found) in models.iter().zip(&found) {
        let alone = Virtual.cross_validate(*model, &data, &folds);
        let alone = alone.expect("determined");
        assert_eq!(found.outputs.dim(), (40, 1));
        assert!(all_close(&found.outputs, &alone.outputs));
        assert_eq!(found.cost.rows_evaluated, 40);
    }
}

#[test]
fn a_scaling_per_fold_equals_fits_to_scaled_rows() {
    let (n, p, k) = (40, 4, 5);
    let data = Data::new(n, p, 11);
    let folds = Folds::shuffled(n, k, 2).expect("valid");
    let of = |fold: usize, j: usize, phase: f64| ((fold * p + j) as f64 + phase).sin();
    let shift = Array2::from_shape_fn((k + 1, p), |(fold, j)| 2.0 * of(fold, j, 0.3));
    let scale = Array2::from_shape_fn((k + 1, p), |(fold, j)| 3.0 + 2.9 * of(fold, j, 0.7));
    let alphas: Vec<f64> = (0..9).map(|i| 0.01 * f64::from(1 << i)).collect();
    for (has_shift, fit_intercept) in [(true, true), (true, false), (false, true), (false, false)] {
        let own = has_shift.then(|| shift.clone());
        let scaling = Arc::new(FoldMaps::new(own, scale.clone()).expect("one shape"));
        let model = |&alpha: &f64| LinearModel {
            scaling: Some(scaling.clone()),
            ..ridge(alpha, fit_intercept)
        };
        let models: Vec<_> = alphas.iter().map(model).collect();
        // Few penalties are factored one by one, many share an eigendecomposition.
        let found = predict(&models, &data.weighted(), &folds);
        assert!(all_close(
            &predict(&models[..1], &data.weighted(), &folds),
            found.index_axis(Axis(1), 0)
        ));
        let mut place = 0;
        for fold in 0..k {
            let x = Array2::from_shape_fn((n, p), |(i, j)| {
                let shift = f64::from(has_shift) * shift[(fold + 1, j)];
                (data.x[(i, j)] - shift) * scale[(fold + 1, j)]
            });
            let (y, w) = (data.y.clone(), data.w.clone());
            let scaled = Data { x, y, w };
            let train = Resampling::training(&folds, fold).concat();
            for &row in folds.held_out(fold) {
                for (l, &alpha) in alphas.iter().enumerate() {
                    let beta = scaled.fit(&train, alpha, fit_intercept);
                    assert!(close(found[(place, l, 0)], scaled.predict(&beta, row)));
                }
                place += 1;
            }
        }
    }
}

#[test]
fn errors_that_moments_cannot_resolve_come_from_the_predictions() {
    let data = Data::new(40, 3, 9);
    // Errors a billion times smaller than the targets, far from zero: sums of squares cancel.
    let exact = Array2::from_shape_fn((40, 1), |(i, _)| {
        1e3 + data.x[(i, 0)] - 2.0 * data.x[(i, 1)] + 1e-7 * (i as f64).sin()
    });
    let exact = Data {
        y: exact,
        ..Data::new(40, 3, 9)
    };
    let folds = Folds::contiguous(40, 4).expect("valid");
    let models = [0.0, 1.0].map(|alpha| ridge(alpha, true));
    for data in [exact.unweighted(), data.weighted(), data.unweighted()] {
        let found = predict(&models, &data, &folds);
        let summed = errors(&models, &data, &folds);
        let Targets::Values { values, .. } = data.targets() else {
            panic!("values")
        };
        for alpha in 0..2 {
            let predictions = found.index_axis(Axis(1), alpha);
            let squares = predictions.iter().zip(values).map(|(f, y)| (y - f).powi(2));
            let total: f64 = squares.sum();
            assert!((summed.total[(alpha, 0)] / total - 1.0).abs() < 1e-9);
        }
    }
}

#[test]
fn errors_are_those_of_the_predictions() {
    let data = Data::new(40, 3, 9);
    for (k, is_scaled) in [(4, false), (40, false), (4, true), (40, true)] {
        let folds = Folds::contiguous(40, k).expect("valid");
        let scaling = is_scaled.then(|| standard(&data.unweighted(), &folds));
        let models = [0.0, 1.0].map(|alpha| LinearModel {
            scaling: scaling.clone(),
            ..ridge(alpha, true)
        });
        let found = predict(&models, &data.unweighted(), &folds);
        let summed = errors(&models, &data.unweighted(), &folds);
        for alpha in 0..2 {
            let squares = (&data.y - &found.index_axis(Axis(1), alpha)).powi(2);
            let total = squares.sum();
            assert!(close(summed.total[(alpha, 0)], total));
            assert!(close(summed.mean[(alpha, 0)], total / 40.0));
            let means = squares.axis_chunks_iter(Axis(0), 40 / k);
            let means = means.map(|fold| fold.sum() / (40 / k) as f64);
            let spread: f64 = means.map(|m| (m - total / 40.0).powi(2)).sum();
            let expected = (spread / ((k - 1) * k) as f64).sqrt();
            assert!(close(summed.standard_error[(alpha, 0)], expected));
        }
    }
}

#[test]
fn sparse_rows_are_dense_rows() {
    let mut data = Data::new(60, 30, 3);
    for (i, v) in data.x.iter_mut().enumerate() {
        if (i * 31) % 17 != 0 {
            *v = 0.0;
        }
    }
    let (mut indptr, mut indices, mut values) = (vec![0_i32], vec![], vec![]);
    for row in data.x.rows() {
        for (j, &v) in (0_i32..).zip(row).filter(|e| *e.1 != 0.0) {
            indices.push(j);
            values.push(v);
        }
        indptr.push(i32::try_from(values.len()).expect("small"));
    }
    let csr = Csr::new(&indptr, &indices, &values, 30).expect("valid");
    assert!(
        csr.n_stored() * 8 < 60 * 30,
        "sparse enough for its own arithmetic"
    );
    let sparse = Dataset::new(Rows::Csr32(csr)).expect("finite");
    let sparse = sparse.with_values(data.y.view()).expect("valid");
    for k in [3, 60] {
        let folds = Folds::contiguous(60, k).expect("valid");
        let [dense, sparse] =
            [data.unweighted(), sparse].map(|data| predict(&[ridge(0.5, true)], &data, &folds));
        assert!(all_close(&dense, &sparse));
    }
}

#[test]
fn leverages_sum_to_the_coefficients() {
    let data = Data::new(30, 4, 1);
    for (fit_intercept, freedom) in [(true, 5.0), (false, 4.0)] {
        let model = ridge(0.0, fit_intercept);
        let found = Virtual.diagnostics(&model, &data.weighted(), &Monitor::new());
        let found = found.expect("determined");
        assert!(close(found.leverages.sum(), freedom));
        let folds = Folds::leave_one_out(30).expect("valid");
        let loo = predict(&[model], &data.weighted(), &folds);
        assert!(all_close(
            &found.left_out,
            &(&data.y - &loo.index_axis(Axis(1), 0))
        ));
        let one_minus_h = 1.0 - found.leverages.insert_axis(Axis(1));
        assert!(all_close(
            &found.residuals,
            &(&found.left_out * &one_minus_h)
        ));
    }
}

#[test]
fn cancelled_work_stops() {
    let data = Data::new(30, 4, 1);
    let monitor = Monitor::new();
    monitor.cancel();
    let folds = Folds::contiguous(30, 5).expect("valid");
    let (model, data) = (ridge(1.0, true), data.unweighted());
    let stopped = Virtual.out_of_fold(&[&model], &Job::new(&data, &folds, &monitor));
    assert!(matches!(stopped, Err(Error::Interrupted)));
}

#[test]
fn what_cannot_be_computed_is_refused() {
    fn message<T>(result: Result<T>) -> String {
        result.err().map_or(String::new(), |e| e.to_string())
    }
    let (data, monitor) = (Data::new(12, 3, 1), Monitor::new());
    let folds = Folds::contiguous(12, 3).expect("valid");
    let predict = |models: &[&LinearModel], data: &Dataset<'_>, folds: &Folds| {
        message(Virtual.out_of_fold(models, &Job::new(data, folds, &monitor)))
    };
    let (model, plain) = (ridge(1.0, true), ridge(1.0, false));
    let rows = Dataset::dense(data.x.view()).expect("contiguous");
    assert!(predict(&[&model], &rows, &folds).starts_with("y must be numbers"));
    let data = data.unweighted();
    let other = Folds::contiguous(10, 2).expect("valid");
    assert!(predict(&[&model], &data, &other).contains("expected length 12, got 10"));
    for alpha in [-1.0, f64::NAN] {
        let found = predict(&[&model, &ridge(alpha, true)], &data, &folds);
        assert!(found.starts_with("alpha must be finite and not negative"));
    }
    let errors = |models: &[&LinearModel]| {
        message(Virtual.mean_squared_errors(models, &data, &folds, &monitor))
    };
    assert!(errors(&[]).ends_with("got nothing"));
    assert!(errors(&[&model, &plain]).contains("of one family"));
    let kernel = Virtual.cross_validate(&KernelRidge::default(), &data, &folds);
    assert_eq!(message(kernel), "K: expected length 144, got 36");
    let scaled = LinearModel {
        scaling: Some(standard(&data, &folds)),
        ..model
    };
    let found = Virtual.diagnostics(&scaled, &data, &monitor);
    assert!(message(found).contains("without a scaling"));
    let fewer = Folds::contiguous(12, 2).expect("valid");
    assert!(predict(&[&scaled], &data, &fewer).contains("folds of the scaling: expected length 2"));
}
