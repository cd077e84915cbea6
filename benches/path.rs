//! Elastic nets of all folds: tall rows by their Gram matrix, wide ones by their columns.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use ndarray::{Array2, Axis};
use onefold::path::{ElasticNet, ElasticNetSpec, Penalty};
use onefold::{Dataset, Engine, Folds, Job, Monitor};

fn lassos(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("path");
    group.sample_size(10);
    for (n_rows, n_features) in [(20_000, 54), (200, 2_000)] {
        let x = Array2::from_shape_fn((n_rows, n_features), |(i, j)| {
            (((i * n_features + j) * 7919) % 1009) as f64 / 500.0 - 1.0
        });
        let signal = &x.column(0) * 3.0 - x.column(1) + &x.column(2) * 0.1;
        let y = signal.insert_axis(Axis(1));
        let data = Dataset::dense(x.view()).and_then(|data| data.with_values(y.view()));
        let data = data.expect("valid");
        let folds = Folds::contiguous(n_rows, 10).expect("folds");
        let lasso = |i: i32| ElasticNetSpec {
            penalty: Penalty {
                alpha: 10_f64.powf(-f64::from(i) / 5.0),
                l1_ratio: 1.0,
            },
            ..ElasticNetSpec::default()
        };
        let candidates: Vec<ElasticNetSpec> = (0..20).map(lasso).collect();
        let candidates: Vec<_> = candidates.iter().collect();
        let id = BenchmarkId::new("20 lassos, 10 folds", format!("{n_rows} × {n_features}"));
        group.bench_function(id, |bencher| {
            bencher.iter(|| {
                let monitor = Monitor::new();
                let job = Job::new(black_box(&data), &folds, &monitor);
                ElasticNet.out_of_fold(&candidates, &job).expect("solved")
            });
        });
    }
    group.finish();
}

criterion_group!(benches, lassos);
criterion_main!(benches);
