//! Text to rows and back: MB/s of short integers, as in covtype, and of long decimals, with one
//! and two threads.

use std::fmt::Write;
use std::hint::black_box;
use std::io::Cursor;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ndarray::ArrayView2;
use onefold::Monitor;
use onefold::data::Dense;
use onefold::libsvm::{Document, Input, Labels, ReadOptions, load};
use rayon::ThreadPoolBuilder;

const N_ROWS: usize = 50_000;
const N_FEATURES: usize = 12;

/// A number that looks random and is always the same.
fn scrambled(i: usize) -> usize {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}

fn text(value: impl Fn(usize) -> String) -> Vec<u8> {
    let mut text = String::new();
    for row in 0..N_ROWS {
        let _ = write!(text, "{}", 1 + row % 7);
        for feature in 1..=N_FEATURES {
            let i = row * N_FEATURES + feature;
            let _ = write!(text, " {}:{}", feature + scrambled(i) % 2, value(i));
        }
        text.push('\n');
    }
    text.into_bytes()
}

fn read(criterion: &mut Criterion) {
    let integers = text(|i| (scrambled(i) % [10, 100, 1000, 10_000][i % 4]).to_string());
    let decimals = text(|i| (scrambled(i) as f64 / 7e7).to_string());
    for (name, text) in [("integers", integers), ("decimals", decimals)] {
        let mut group = criterion.benchmark_group("libsvm");
        group.sample_size(20);
        group.throughput(Throughput::Bytes(text.len() as u64));
        for n_threads in [1, 2] {
            let pool = ThreadPoolBuilder::new().num_threads(n_threads).build();
            let pool = pool.expect("threads");
            let id = format!("load/{name}/{N_ROWS}x{N_FEATURES}/threads={n_threads}");
            group.bench_function(id, |bencher| {
                bencher.iter(|| {
                    let input = Input::stream("text", Cursor::new(text.clone()));
                    let (options, monitor) = (ReadOptions::default(), Monitor::new());
                    black_box(pool.install(|| load(vec![input], &options, &monitor)))
                });
            });
        }
        group.finish();
    }
}

fn write(criterion: &mut Criterion) {
    let n_values = N_ROWS * N_FEATURES;
    let values: Vec<f64> = (1..=n_values).map(|i| scrambled(i) as f64 / 7e7).collect();
    let labels = vec![1.0; N_ROWS];
    let rows = ArrayView2::from_shape((N_ROWS, N_FEATURES), &values).expect("shape");
    let rows = Dense::new(rows).expect("shape");
    let document = Document {
        rows: &rows,
        labels: Labels::Single(&labels),
        qids: None,
        is_one_based: false,
        writes_zeros: false,
        header: b"",
    };
    let pool = ThreadPoolBuilder::new().num_threads(1).build();
    let pool = pool.expect("threads");
    let mut group = criterion.benchmark_group("libsvm");
    group.sample_size(20);
    group.throughput(Throughput::Elements(n_values as u64));
    group.bench_function(format!("dump/decimals/{N_ROWS}x{N_FEATURES}"), |bencher| {
        bencher.iter(|| {
            let mut text = Vec::new();
            let written = pool.install(|| document.write(&mut text, "text", &Monitor::new()));
            black_box((written, text))
        });
    });
    group.finish();
}

criterion_group!(benches, read, write);
criterion_main!(benches);
