//! The hot loops of one pass of a linear learner: a dot product, then an axpy, 54 features a row.
//!
//! `make bench-simd` runs this twice, as a plain x86-64 build and as a `target-cpu=native` build:
//! the run-time dispatch must keep at least 80 % of the native speed.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ndarray::Array2;
use onefold::data::{Dense, Layout, Row};
use onefold::runtime::simd::{Simd, WithSimd, dispatch};

const N_ROWS: usize = 1000;
const N_FEATURES: usize = 54;

struct Pass<'a>(Dense<'a>, &'a mut [f64]);

impl WithSimd for Pass<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self(rows, w) = self;
        for index in 0..rows.n_rows() {
            let row = rows.row(index);
            // The sign keeps w bounded, so that no run of the loop meets infinities.
            let step = if row.dot(simd, w) > 0.0 { -1e-3 } else { 1e-3 };
            row.axpy(simd, step, w);
        }
    }
}

fn dot_axpy(criterion: &mut Criterion) {
    let values = Array2::from_shape_fn((N_ROWS, N_FEATURES), |(row, feature)| {
        ((row * N_FEATURES + feature) * 7919 % 1000) as f64 / 500.0 - 1.0
    });
    let rows = Dense::new(values.view()).expect("contiguous");
    let mut w = vec![0.0; N_FEATURES];
    let mut group = criterion.benchmark_group("simd");
    group.throughput(Throughput::Elements(N_ROWS as u64));
    group.bench_function("dot_axpy/dense/1000x54", |bencher| {
        bencher.iter(|| dispatch(Pass(black_box(rows), black_box(&mut w))));
    });
    group.finish();
}

criterion_group!(benches, dot_axpy);
criterion_main!(benches);
