//! Solutions of multinomial models are compared with the gradients of the objective, by plain loops.

use std::sync::Arc;

use ndarray::{Array1, Array2, Array3};
use onefold::data::{Csr, Rows};
use onefold::linear::FoldMaps;
use onefold::newton::{ClassWeights, GlmSpec, Intercept, Link, Newton, Penalty};
use onefold::{Dataset, Engine, Folds, Job, Keep, Monitor, OutOfFold, Resampling, Splits};

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
fn codes() -> Array1<u32> {
    let x = x();
    Array1::from_shape_fn(N, |i| {
        let z = x[(i, 0)] - x[(i, 1)] + 1.2 * ((i * 7) as f64).cos();
        if z > 0.5 { 2 } else { u32::from(z > -0.5) }
    })
}

struct Sparse(Vec<i32>, Vec<i32>, Vec<f64>);

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
        Self(starts, indices, values)
    }

    fn dataset(&self) -> Dataset<'_> {
        let rows = Csr::new(&self.0, &self.1, &self.2, P).expect("valid");
        Dataset::new(Rows::Csr32(rows)).expect("finite")
    }
}

fn solve(models: &[&GlmSpec], data: &Dataset<'_>, folds: &dyn Resampling) -> Vec<OutOfFold> {
    let newton = Newton {
        accuracy: 1e-10.into(),
        ..Newton::default()
    };
    let keep = Keep {
        coefficients: true,
        undetermined: true,
        ..Keep::default()
    };
    let monitor = Monitor::new();
    let found = newton.out_of_fold(models, &Job::new(data, folds, &monitor).keeping(keep));
    found.expect("solved")
}

/// Checks outputs and gradients of all folds of a model.
fn check(
    found: &OutOfFold,
    model: &GlmSpec,
    weights: &Array1<f64>,
    factors: &Array3<f64>,
    folds: &dyn Resampling,
) {
    let (x, y) = (x(), codes());
    let Penalty::EachSet(penalties) = &model.penalty else {
        panic!("one penalty for each set")
    };
    let mut tested = 0;
    for (fold, &penalty) in penalties[1..].iter().enumerate() {
        let scaling = model.scaling.as_ref();
        let scaled = |i: usize, j: usize| {
            scaling.map_or(x[(i, j)], |own| own.fold(fold).apply(j, x[(i, j)]))
        };
        let at = |c: usize, j: usize| found.coefficients[(fold, c, j)];
        let predictor =
            |i: usize, c: usize| (0..P).map(|j| at(c, j) * scaled(i, j)).sum::<f64>() + at(c, P);
        let mut gradient = Array2::<f64>::zeros((K, P + 1));
        for &i in folds.training(fold).into_iter().flatten() {
            let exps: Vec<f64> = (0..K).map(|c| predictor(i, c).exp()).collect();
            let w = weights[i] * factors[(fold + 1, 0, y[i] as usize)];
            for (c, exp) in exps.iter().enumerate() {
                let first = exp / exps.iter().sum::<f64>() - f64::from(c == y[i] as usize);
                (0..P).for_each(|j| gradient[(c, j)] += w * first * scaled(i, j));
                gradient[(c, P)] += w * first;
            }
        }
        for c in 0..K {
            (0..P).for_each(|j| gradient[(c, j)] += penalty * at(c, j));
            match model.intercept {
                Intercept::None => gradient[(c, P)] = 0.0,
                Intercept::Free => {}
                Intercept::Penalised(v) => gradient[(c, P)] += penalty * at(c, P) / (v * v),
            }
        }
        let largest = gradient.iter().fold(0.0_f64, |m, g| m.max(g.abs()));
        assert!(largest < 1e-7, "{model:?} {fold}: {largest}");
        assert!(found.status.relative_gradients[(fold, 0)] <= 1e-10);
        for (row, &i) in folds.held_out(fold).iter().enumerate() {
            for c in 0..K {
                let z = found.outputs[(tested + row, c)];
                assert!((z - predictor(i, c)).abs() < 1e-10);
            }
        }
        tested += folds.held_out(fold).len();
    }
}

#[test]
fn every_fold_is_at_its_optimum() {
    let (x, y) = (x(), codes());
    let sparse = Sparse::new(&x);
    let dense = Dataset::dense(x.view()).expect("contiguous");
    let weights = Array1::from_shape_fn(N, |i| 0.5 + (i % 4) as f64);
    let partition = Folds::shuffled(N, 3, 0).expect("valid");
    let again: Vec<usize> = (0..60).chain(20..40).collect();
    let splits = vec![(again, (60..N).collect()), ((30..N).collect(), vec![3, 2])];
    let splits = Splits::new(N, splits).expect("valid");
    let all: [&dyn Resampling; 2] = [&partition, &splits];
    for folds in all {
        let sets = folds.n_splits() + 1;
        let factors = Array3::from_shape_fn((sets, 1, K), |(s, _, c)| 1.0 + (s + 2 * c) as f64);
        let class_weights = Arc::new(ClassWeights::new(factors.clone()).expect("valid"));
        let shift = Array2::from_shape_fn((sets, P), |(s, j)| 0.1 * (s + j) as f64);
        let scale = Array2::from_shape_fn((sets, P), |(s, j)| 1.0 + 0.2 * (s + j) as f64);
        let scaling = Arc::new(FoldMaps::new(Some(shift), scale).expect("valid"));
        for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised(2.0)] {
            for scaling in [None, Some(&scaling)] {
                let models = [0.1, 20.0].map(|penalty| GlmSpec {
                    link: Link::Multinomial,
                    intercept,
                    penalty: Penalty::EachSet(
                        (0..sets)
                            .map(|s| penalty * (1.0 + 0.1 * s as f64))
                            .collect(),
                    ),
                    scaling: scaling.cloned(),
                    class_weights: Some(class_weights.clone()),
                });
                for data in [dense, sparse.dataset()] {
                    let data = data.with_weights(weights.view()).expect("valid");
                    let data = data.with_classes(y.view(), K).expect("valid");
                    let found = solve(&models.each_ref(), &data, folds);
                    for (found, model) in found.iter().zip(&models) {
                        check(found, model, &weights, &factors, folds);
                    }
                }
            }
        }
    }
}

#[test]
fn an_optimum_that_is_not_finite_or_not_unique_is_nan() {
    let (x, y) = (x(), codes());
    let data = Dataset::dense(x.view()).expect("contiguous");
    let folds = Folds::shuffled(N, 3, 0).expect("valid");
    let solve_for = |data: &Dataset<'_>, y: &Array1<u32>, n_classes, penalty: f64| {
        let data = data.with_classes(y.view(), n_classes).expect("valid");
        let model = GlmSpec {
            link: Link::Multinomial,
            penalty: Penalty::Sum(penalty),
            ..GlmSpec::default()
        };
        solve(&[&model], &data, &folds)
            .swap_remove(0)
            .status
            .relative_gradients
    };
    let separable = Array1::from_shape_fn(N, |i| u32::from(x[(i, 1)] > 0.2));
    assert!(
        solve_for(&data, &separable, 2, 0.0)
            .iter()
            .all(|r| r.is_nan())
    );
    assert!(
        solve_for(&data, &separable, 2, 1.0)
            .iter()
            .all(|r| *r <= 1e-8)
    );
    assert!(solve_for(&data, &y, K, 0.0).iter().all(|r| *r <= 1e-8));
    let mut doubled = x.clone();
    let first = x.column(0).to_owned();
    doubled.column_mut(3).assign(&first);
    let data = Dataset::dense(doubled.view()).expect("contiguous");
    assert!(solve_for(&data, &y, K, 0.0).iter().all(|r| r.is_nan()));
}
