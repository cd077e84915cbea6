//! Virtual k-fold of ridge: one penalty and twenty, leave-one-out, small folds and large ones.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use onefold::data::Dense;
use onefold::virtual_cv::{Cv, Model, Problem, errors};
use onefold::{Folds, Monitor};

const N_ROWS: usize = 20_000;
const N_FEATURES: usize = 54;

fn ridge(criterion: &mut Criterion) {
    let values: Vec<f64> = (0..N_ROWS * N_FEATURES)
        .map(|i| ((i * 7919) % 1009) as f64 / 500.0 - 1.0)
        .collect();
    let targets: Vec<f64> = (0..N_ROWS).map(|i| ((i * 31) % 97) as f64).collect();
    let rows =
        Dense::new(ndarray::ArrayView2::from_shape((N_ROWS, N_FEATURES), &values).expect("shape"))
            .expect("shape");
    let problem = Problem::new(&rows, &targets, 1, None).expect("shape");
    let mut group = criterion.benchmark_group("virtual_cv");
    group.throughput(Throughput::Elements(N_ROWS as u64));
    group.sample_size(10);
    // k = 2 000 means ten rows a fold: the l × l systems.
    for n_folds in [10, 2_000, N_ROWS] {
        let folds = Folds::contiguous(N_ROWS, n_folds).expect("folds");
        for n_alphas in [1_i32, 20] {
            let model = Model {
                alphas: (0..n_alphas)
                    .map(|i| 10_f64.powf(f64::from(i) / 4.0))
                    .collect(),
                intercept: true,
                scaler: None,
            };
            let id = BenchmarkId::new(
                format!("ridge/k={n_folds}"),
                format!("{n_alphas} penalties"),
            );
            group.bench_function(id, |bencher| {
                bencher.iter(|| {
                    errors(
                        black_box(&problem),
                        &model,
                        Cv::Folds(&folds),
                        &Monitor::new(),
                    )
                    .expect("determined")
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, ridge);
criterion_main!(benches);
