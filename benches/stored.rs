//! Rows on disk against rows in memory: `TreeCV` with Pegasos, folds in the order of the file and
//! shuffled.
//!
//! In the order of the file, blocks are read where they are; shuffled folds take a temporary copy
//! first.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ndarray::{Array1, Array2};
use onefold::learners::{Order, Pegasos, PegasosOptions};
use onefold::stored::{Element, StoredArray, StoredRows, Streaming};
use onefold::tree::{Placement, Tree};
use onefold::{Dataset, Engine as _, Folds};

const N_ROWS: usize = 100_000;
const N_FEATURES: usize = 20;
const N_FOLDS: usize = 10;
/// A tenth of the rows.
const MEMORY_BYTES: u64 = (N_ROWS * N_FEATURES * 8 / 10) as u64;

fn pegasos(criterion: &mut Criterion) {
    let x = Array2::from_shape_fn((N_ROWS, N_FEATURES), |(row, feature)| {
        ((row * N_FEATURES + feature) * 7919 % 1000) as f64 / 500.0 - 1.0
    });
    let codes: Array1<u32> = x.column(0).mapv(|value| u32::from(value > 0.0));
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("values");
    let bytes: Vec<u8> = x.iter().flat_map(|value| value.to_ne_bytes()).collect();
    std::fs::write(&path, bytes).expect("written");
    let n_values = (N_ROWS * N_FEATURES) as u64;
    let array = StoredArray::open(&path, 0, Element::F64, n_values).expect("valid");
    let rows = StoredRows::dense(array, N_ROWS, N_FEATURES).expect("valid");
    let streaming = Streaming {
        memory_bytes: MEMORY_BYTES,
        temp_dir: directory.path().to_owned(),
    };
    let in_memory = Dataset::dense(x.view()).expect("finite");
    let learner = Pegasos::new(PegasosOptions::default(), N_FEATURES, 2).expect("valid");
    let tree = Tree {
        placement: Placement::Given,
        order: Order::Fixed,
        ..Tree::default()
    };

    let mut group = criterion.benchmark_group(format!("stored/pegasos/{N_ROWS}x{N_FEATURES}"));
    group.throughput(Throughput::Elements(N_ROWS as u64));
    group.sample_size(10);
    let folds = [
        ("in_order", Folds::contiguous(N_ROWS, N_FOLDS)),
        ("shuffled", Folds::shuffled(N_ROWS, N_FOLDS, 0)),
    ];
    for (name, folds) in folds {
        let folds = folds.expect("valid");
        let data = [
            ("memory", in_memory),
            ("disk", Dataset::stored(&rows, &streaming)),
        ];
        for (place, data) in data {
            let data = data.with_classes(codes.view(), 2).expect("valid");
            group.bench_function(format!("{name}/{place}"), |bencher| {
                bencher.iter(|| tree.cross_validate(&learner, &data, &folds).expect("runs"));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, pegasos);
criterion_main!(benches);
