//! Newton's method for all folds: logistic regression by each method, and ten penalties.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ndarray::{Array1, Array2};
use onefold::newton::{GlmSpec, Link, Method, Newton, Penalty};
use onefold::{Dataset, Engine, Folds, Job, Monitor};

const N_ROWS: usize = 20_000;
const N_FEATURES: usize = 54;

fn rows() -> Array2<f64> {
    Array2::from_shape_fn((N_ROWS, N_FEATURES), |(i, j)| {
        (((i * N_FEATURES + j) * 7919) % 1009) as f64 / 500.0 - 1.0
    })
}

fn logistic(criterion: &mut Criterion) {
    let x = rows();
    let classes = x.outer_iter().enumerate();
    let classes = classes.map(|(i, row)| u32::from(row[0] + row[1] > 0.1 * ((i % 7) as f64 - 3.0)));
    let classes: Array1<u32> = classes.collect();
    let data = Dataset::dense(x.view()).and_then(|data| data.with_classes(classes.view(), 2));
    let data = data.expect("valid");
    let logistic = |penalty| GlmSpec {
        penalty: Penalty::Sum(penalty),
        ..GlmSpec::default()
    };
    let multinomial = GlmSpec {
        link: Link::Multinomial,
        ..GlmSpec::default()
    };
    let ten = (0..10).map(|i| logistic(10_f64.powi(i - 5))).collect();
    let mut group = criterion.benchmark_group("newton");
    group.throughput(Throughput::Elements(N_ROWS as u64));
    group.sample_size(10);
    for (name, models, n_folds, method) in [
        ("hessians", vec![logistic(1.0)], 10, Method::Hessians),
        ("hessians", vec![logistic(1.0)], 100, Method::Hessians),
        ("hessians, ten penalties", ten, 10, Method::Hessians),
        ("matrix-free", vec![logistic(1.0)], 10, Method::MatrixFree),
        ("multinomial", vec![multinomial], 10, Method::MatrixFree),
        (
            "leave-one-out",
            vec![logistic(1.0)],
            N_ROWS,
            Method::LeaveOneOut,
        ),
    ] {
        let folds = Folds::contiguous(N_ROWS, n_folds).expect("folds");
        let models: Vec<&GlmSpec> = models.iter().collect();
        let engine = Newton {
            method: Some(method),
            ..Newton::default()
        };
        group.bench_function(BenchmarkId::new(name, n_folds), |bencher| {
            bencher.iter(|| {
                let monitor = Monitor::new();
                let job = Job::new(black_box(&data), &folds, &monitor);
                engine.out_of_fold(&models, &job).expect("solved")
            });
        });
    }
    group.finish();
}

criterion_group!(benches, logistic);
criterion_main!(benches);
