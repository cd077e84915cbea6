//! Logistic regressions with ℓ1 penalties of every fold equal proximal gradient descent on its rows.

use std::sync::Arc;

use ndarray::{Array1, Array2, Array3};
use onefold::data::{Csr, Rows};
use onefold::linear::FoldMaps;
use onefold::newton::{ClassWeights, GlmSpec, Intercept, Penalty};
use onefold::path::{ElasticNet, SparseLogistic};
use onefold::{Dataset, Engine, Folds, Job, Keep, Monitor, OutOfFold, Resampling, Splits};

/// Rows with a constant column and zeros.
fn rows(n: usize, p: usize) -> Array2<f64> {
    Array2::from_shape_fn((n, p), |(i, j)| match j {
        1 => 2.0,
        4 => (i as f64 * 2.0).sin(),
        _ if i % 3 == j % 3 => 0.0,
        _ => ((i * (j + 2)) as f64).sin(),
    })
}

fn classes(x: &Array2<f64>) -> Array1<u32> {
    let noise = |i: usize| ((i * i) as f64).cos();
    Array1::from_shape_fn(x.nrows(), |i| {
        u32::from(x[(i, 0)] - 0.5 * x[(i, 3)] + noise(i) > 0.1)
    })
}

fn spec(l1: f64, l2: f64, intercept: Intercept) -> SparseLogistic {
    SparseLogistic {
        smooth: GlmSpec {
            intercept,
            penalty: Penalty::Sum(l2),
            ..GlmSpec::default()
        },
        l1,
        tol: 1e-13,
    }
}

/// The columns of the parameters, a constant one last, and whether that has no penalty.
fn columns(x: &Array2<f64>, intercept: Intercept) -> (Array2<f64>, bool) {
    let (value, is_free) = match intercept {
        Intercept::None => (0.0, false),
        Intercept::Free => (1.0, true),
        Intercept::Penalised(value) => (value, false),
    };
    let p = x.ncols();
    let z = Array2::from_shape_fn(
        (x.nrows(), p + 1),
        |(i, j)| {
            if j < p { x[(i, j)] } else { value }
        },
    );
    (z, is_free)
}

fn ridge(spec: &SparseLogistic) -> f64 {
    match spec.smooth.penalty {
        Penalty::Sum(l2) => l2,
        _ => panic!("a sum"),
    }
}

/// The objective, from its definition; the last parameter is that of the constant column.
fn objective(x: &Array2<f64>, y: &[f64], w: &[f64], phi: &[f64], spec: &SparseLogistic) -> f64 {
    let (z, is_free) = columns(x, spec.smooth.intercept);
    let mut value = 0.0;
    for ((row, y), w) in z.outer_iter().zip(y).zip(w) {
        let z: f64 = row.iter().zip(phi).map(|(v, b)| v * b).sum();
        value += w * (z.max(0.0) + (-z.abs()).exp().ln_1p() - y * z);
    }
    let n = phi.len() - usize::from(is_free);
    for b in &phi[..n] {
        value += spec.l1 * b.abs() + 0.5 * ridge(spec) * b * b;
    }
    value
}

/// Parameters by accelerated proximal gradient steps, restarted where they point uphill.
fn descend(x: &Array2<f64>, y: &[f64], w: &[f64], spec: &SparseLogistic) -> Vec<f64> {
    let (z, is_free) = columns(x, spec.smooth.intercept);
    let p = z.ncols();
    let bound: f64 = z
        .outer_iter()
        .zip(w)
        .map(|(row, w)| 0.25 * w * row.iter().map(|v| v * v).sum::<f64>())
        .sum();
    let step = 1.0 / (bound + ridge(spec));
    let (mut phi, mut ahead, mut momentum) = (vec![0.0; p], vec![0.0; p], 1.0_f64);
    for _ in 0..20_000 {
        let mut gradient: Vec<f64> = vec![0.0; p];
        for ((row, y), w) in z.outer_iter().zip(y).zip(w) {
            let u: f64 = row.iter().zip(&ahead).map(|(v, b)| v * b).sum();
            let residual = w * (1.0 / (1.0 + (-u).exp()) - y);
            gradient
                .iter_mut()
                .zip(row)
                .for_each(|(g, v)| *g += residual * v);
        }
        let next: Vec<f64> = (0..p)
            .map(|j| {
                if is_free && j + 1 == p {
                    return ahead[j] - step * gradient[j];
                }
                let at = ahead[j] - step * (gradient[j] + ridge(spec) * ahead[j]);
                at.signum() * (at.abs() - step * spec.l1).max(0.0)
            })
            .collect();
        let turn: f64 = (0..p)
            .map(|j| (ahead[j] - next[j]) * (next[j] - phi[j]))
            .sum();
        let last = if turn > 0.0 { 1.0 } else { momentum };
        momentum = 0.5 * (1.0 + (1.0 + 4.0 * last * last).sqrt());
        for ((ahead, next), phi) in ahead.iter_mut().zip(&next).zip(&phi) {
            *ahead = next + (last - 1.0) / momentum * (next - phi);
        }
        let change = next.iter().zip(&phi).map(|(a, b)| (a - b).abs());
        let is_converged = change.fold(0.0, f64::max) < 1e-15;
        phi = next;
        if is_converged {
            break;
        }
    }
    phi
}

fn run(data: &Dataset<'_>, folds: &dyn Resampling, specs: &[SparseLogistic]) -> Vec<OutOfFold> {
    let monitor = Monitor::new();
    let keep = Keep {
        coefficients: true,
        ..Keep::default()
    };
    let job = Job::new(data, folds, &monitor).keeping(keep);
    let specs: Vec<&SparseLogistic> = specs.iter().collect();
    ElasticNet.out_of_fold(&specs, &job).expect("valid")
}

fn training(folds: &dyn Resampling, fold: usize) -> Vec<usize> {
    folds.training(fold).concat()
}

/// Compares objectives, gaps and outputs of every fold with the slow descent.
fn check(
    data: &Dataset<'_>,
    (x, w): (&Array2<f64>, &[f64]),
    folds: &dyn Resampling,
    specs: &[SparseLogistic],
) {
    let y = classes(x);
    let results = run(data, folds, specs);
    for (spec, result) in specs.iter().zip(&results) {
        for fold in 0..folds.n_splits() {
            let rows = training(folds, fold);
            let part = x.select(ndarray::Axis(0), &rows);
            let y: Vec<f64> = rows.iter().map(|&i| f64::from(y[i])).collect();
            let w: Vec<f64> = rows.iter().map(|&i| w[i]).collect();
            let slow = descend(&part, &y, &w, spec);
            let mut phi = result
                .coefficients
                .index_axis(ndarray::Axis(0), fold)
                .row(0)
                .to_vec();
            let last = phi.len() - 1;
            if let Intercept::Penalised(value) = spec.smooth.intercept {
                phi[last] /= value;
            }
            let zero = w.iter().sum::<f64>() * 2f64.ln();
            let (ours, theirs) = (
                objective(&part, &y, &w, &phi, spec),
                objective(&part, &y, &w, &slow, spec),
            );
            let gap = result.status.gaps[(fold, 0)];
            assert!(gap <= 1e-12 * zero, "{spec:?}: gap {gap}");
            assert!(
                ours - theirs <= gap + 1e-13 * zero,
                "{spec:?}: {ours} {theirs}"
            );
            let start = folds.test_starts()[fold];
            let (all, _) = columns(x, spec.smooth.intercept);
            for (place, &row) in folds.held_out(fold).iter().enumerate() {
                let at = |phi: &[f64]| {
                    all.row(row)
                        .iter()
                        .zip(phi)
                        .map(|(v, b)| v * b)
                        .sum::<f64>()
                };
                let output = result.outputs[(start + place, 0)];
                assert!((output - at(&phi)).abs() < 1e-9);
                assert!((output - at(&slow)).abs() < 2e-4, "{spec:?}: {output}");
            }
        }
    }
}

fn all_specs() -> Vec<SparseLogistic> {
    let intercepts = [Intercept::Free, Intercept::None, Intercept::Penalised(2.0)];
    let penalties = [(1e3, 0.0), (2.0, 0.0), (0.5, 1.5)];
    intercepts
        .iter()
        .flat_map(|&intercept| penalties.map(|(l1, l2)| spec(l1, l2, intercept)))
        .collect()
}

#[test]
fn every_fold_is_the_optimum() {
    let (n, p) = (60, 6);
    let x = rows(n, p);
    let y = classes(&x);
    let weights = Array1::from_shape_fn(n, |i| [1.0, 0.5, 2.0, 0.0][i % 4]);
    let pairs = vec![
        ((0..40).collect(), vec![50, 3]),
        (vec![0, 0, 5, 9, 9, 20, 31, 41, 42, 43, 44, 45], vec![7]),
    ];
    let splits = Splits::new(n, pairs).expect("valid");
    let folds = Folds::shuffled(n, 4, 0).expect("valid");
    let csr = Sparse::of(&x);
    for rows in [Dataset::dense(x.view()).expect("finite"), csr.data()] {
        let data = rows.with_classes(y.view(), 2).expect("classes");
        check(&data, (&x, &vec![1.0; n]), &folds, &all_specs());
        let data = data.with_weights(weights.view()).expect("valid");
        let w = weights.as_slice().expect("contiguous");
        check(&data, (&x, w), &folds, &all_specs()[1..3]);
        check(&data, (&x, w), &splits, &all_specs()[1..3]);
    }
}

#[test]
fn rows_of_many_features_are_solved_by_columns() {
    let (n, p) = (24, 30);
    let x = rows(n, p);
    let y = classes(&x);
    let folds = Folds::shuffled(n, 3, 0).expect("valid");
    let csr = Sparse::of(&x);
    for rows in [Dataset::dense(x.view()).expect("finite"), csr.data()] {
        let data = rows.with_classes(y.view(), 2).expect("classes");
        check(&data, (&x, &vec![1.0; n]), &folds, &all_specs());
    }
}

#[test]
fn a_gap_bounds_the_distance_from_the_optimum() {
    let x = rows(60, 6);
    let y = classes(&x);
    let data = Dataset::dense(x.view()).expect("finite");
    let data = data.with_classes(y.view(), 2).expect("classes");
    let folds = Folds::shuffled(60, 4, 0).expect("valid");
    for (l1, l2) in [(0.3, 0.0), (0.2, 0.4)] {
        let best = run(&data, &folds, &[spec(l1, l2, Intercept::Free)]);
        let rough = SparseLogistic {
            tol: 1e-3,
            ..spec(l1, l2, Intercept::Free)
        };
        let found = run(&data, &folds, std::slice::from_ref(&rough));
        for fold in 0..4 {
            let rows = training(&folds, fold);
            let part = x.select(ndarray::Axis(0), &rows);
            let y: Vec<f64> = rows.iter().map(|&i| f64::from(y[i])).collect();
            let value = |result: &OutOfFold| {
                let phi = result
                    .coefficients
                    .index_axis(ndarray::Axis(0), fold)
                    .row(0)
                    .to_vec();
                objective(&part, &y, &vec![1.0; y.len()], &phi, &rough)
            };
            let gap = found[0].status.gaps[(fold, 0)];
            assert!(value(&found[0]) - value(&best[0]) <= gap + 1e-12, "{gap}");
        }
    }
}

#[test]
fn scaling_and_class_weights_are_those_of_the_training_set() {
    let (n, p) = (60, 6);
    let x = rows(n, p);
    let y = classes(&x);
    let folds = Folds::shuffled(n, 3, 0).expect("valid");
    let shift = Array2::from_shape_fn((4, p), |(set, j)| 0.1 * (set + j) as f64);
    let scale = Array2::from_shape_fn((4, p), |(set, j)| 1.0 + 0.2 * ((set * j) % 3) as f64);
    let factors = Array3::from_shape_fn((4, 1, 2), |(set, _, class)| 1.0 + (set * class) as f64);
    let maps = FoldMaps::new(Some(shift.clone()), scale.clone()).expect("valid");
    for intercept in [Intercept::Free, Intercept::None, Intercept::Penalised(1.0)] {
        let plain = spec(1.0, 0.5, intercept);
        let mut scaled = plain.clone();
        scaled.smooth.scaling = Some(Arc::new(maps.clone()));
        let weights = ClassWeights::new(factors.clone()).expect("valid");
        scaled.smooth.class_weights = Some(Arc::new(weights));
        let data = Dataset::dense(x.view()).expect("finite");
        let data = data.with_classes(y.view(), 2).expect("classes");
        let result = run(&data, &folds, &[scaled]);
        for fold in 0..3 {
            let set = fold + 1;
            let map = |i: usize, j: usize| (x[(i, j)] - shift[(set, j)]) * scale[(set, j)];
            let mapped = Array2::from_shape_fn((n, p), |(i, j)| map(i, j));
            let weights = Array1::from_shape_fn(n, |i| factors[(set, 0, y[i] as usize)]);
            let one = vec![(training(&folds, fold), folds.held_out(fold).to_vec())];
            let split = Splits::new(n, one).expect("valid");
            let data = Dataset::dense(mapped.view()).expect("finite");
            let data = data.with_classes(y.view(), 2).expect("classes");
            let data = data.with_weights(weights.view()).expect("valid");
            let alone = run(&data, &split, std::slice::from_ref(&plain));
            let start = folds.test_starts()[fold];
            for (place, expected) in alone[0].outputs.iter().enumerate() {
                let output = result[0].outputs[(start + place, 0)];
                assert!((output - expected).abs() < 1e-5, "{output} {expected}");
            }
        }
    }
}

/// A matrix in CSR form.
struct Sparse {
    starts: Vec<i64>,
    features: Vec<i64>,
    values: Vec<f64>,
    n_features: usize,
}

impl Sparse {
    fn of(x: &Array2<f64>) -> Self {
        let (mut starts, mut features, mut values) = (vec![0], vec![], vec![]);
        for row in x.outer_iter() {
            for (j, &v) in row.iter().enumerate().filter(|e| *e.1 != 0.0) {
                features.push(i64::try_from(j).expect("small"));
                values.push(v);
            }
            starts.push(i64::try_from(values.len()).expect("small"));
        }
        Self {
            starts,
            features,
            values,
            n_features: x.ncols(),
        }
    }

    fn data(&self) -> Dataset<'_> {
        let rows = Csr::new(&self.starts, &self.features, &self.values, self.n_features);
        Dataset::new(Rows::Csr64(rows.expect("canonical"))).expect("finite")
    }
}
