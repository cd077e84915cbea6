//! Merging against the tree and against one fit: Gaussian naive Bayes, 10 folds and leave-one-out.
//!
//! One fit and one evaluation of all rows is what k-fold costs at the least.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ndarray::{Array1, Array2};
use onefold::learners::{GaussianNb, GaussianNbOptions, Learner as _};
use onefold::merge::Merge;
use onefold::tree::Tree;
use onefold::{Dataset, Engine as _, Folds};

const N_ROWS: usize = 20_000;
const N_FEATURES: usize = 20;
const N_CLASSES: usize = 3;

fn gaussian_nb(criterion: &mut Criterion) {
    let x = Array2::from_shape_fn((N_ROWS, N_FEATURES), |(row, feature)| {
        ((row * N_FEATURES + feature) * 7919 % 1000) as f64 / 500.0 - 1.0
    });
    let codes: Array1<u32> = (0..3).cycle().take(N_ROWS).collect();
    let data = Dataset::dense(x.view()).expect("valid");
    let data = data.with_classes(codes.view(), N_CLASSES).expect("valid");
    let options = GaussianNbOptions::default();
    let empty = GaussianNb::new(options, N_FEATURES, N_CLASSES).expect("valid");
    let order: Vec<usize> = (0..N_ROWS).collect();

    let mut group = criterion.benchmark_group("merge/gaussian_nb/20000x20");
    group.throughput(Throughput::Elements(N_ROWS as u64));
    group.sample_size(10);
    group.bench_function("one fit", |bencher| {
        let mut out = vec![0.0; N_ROWS * N_CLASSES];
        bencher.iter(|| {
            let mut model = empty.clone();
            model
                .update(black_box(&data), &order, None)
                .expect("updated");
            model.evaluate(&data, &order, &mut out).expect("evaluated");
        });
    });
    for n_folds in [10, 100, N_ROWS] {
        let folds = Folds::contiguous(N_ROWS, n_folds).expect("valid");
        group.bench_function(format!("merge/k={n_folds}"), |bencher| {
            bencher.iter(|| Merge::default().cross_validate(&empty, &data, &folds));
        });
        group.bench_function(format!("tree/k={n_folds}"), |bencher| {
            bencher.iter(|| Tree::default().cross_validate(&empty, &data, &folds));
        });
    }
    group.finish();
}

criterion_group!(benches, gaussian_nb);
criterion_main!(benches);
