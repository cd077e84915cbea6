//! Virtual k-fold of ridge: one penalty and twenty, leave-one-out, small folds and large ones.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ndarray::Array2;
use onefold::virtual_cv::{LinearModel, Virtual};
use onefold::{Dataset, Folds, Monitor};

const N_ROWS: usize = 20_000;
const N_FEATURES: usize = 54;

fn ridge(criterion: &mut Criterion) {
    let x = Array2::from_shape_fn((N_ROWS, N_FEATURES), |(i, j)| {
        (((i * N_FEATURES + j) * 7919) % 1009) as f64 / 500.0 - 1.0
    });
    let y = Array2::from_shape_fn((N_ROWS, 1), |(i, _)| ((i * 31) % 97) as f64);
    let data = Dataset::dense(x.view()).and_then(|data| data.with_values(y.view()));
    let data = data.expect("shape");
    let mut group = criterion.benchmark_group("virtual_cv");
    group.throughput(Throughput::Elements(N_ROWS as u64));
    group.sample_size(10);
    // k = 2 000 means ten rows per fold: the l × l systems.
    for n_folds in [10, 2_000, N_ROWS] {
        let folds = Folds::contiguous(N_ROWS, n_folds).expect("folds");
        for n_alphas in [1_i32, 20] {
            let model = |i: i32| LinearModel {
                alpha: 10_f64.powf(f64::from(i) / 4.0),
                ..LinearModel::default()
            };
            let models: Vec<LinearModel> = (0..n_alphas).map(model).collect();
            let models: Vec<_> = models.iter().collect();
            let id = BenchmarkId::new(
                format!("ridge/k={n_folds}"),
                format!("{n_alphas} penalties"),
            );
            group.bench_function(id, |bencher| {
                bencher.iter(|| {
                    Virtual
                        .mean_squared_errors(&models, black_box(&data), &folds, &Monitor::new())
                        .expect("determined")
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, ridge);
criterion_main!(benches);
