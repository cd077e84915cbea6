//! `TreeCV` with Pegasos: what the theorem counts in passes over the data.
//!
//! One group per claim. Leave-one-out should stay near log2(2n) passes (`pass` is one), whatever the
//! order and the layout, and for sparse rows whatever the number of features.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use ndarray::{Array1, Array2};
use onefold::data::{Csr, Rows};
use onefold::learners::{Learner as _, Order, Pegasos, PegasosOptions};
use onefold::tree::{Strategy, Tree};
use onefold::{Dataset, Engine as _, Folds};
use rayon::{ThreadPool, ThreadPoolBuilder};

const SEED: u64 = 1;

/// SplitMix64, as numbers of `0..1`.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // below n
    fn below(&mut self, n: usize) -> usize {
        (self.next() * n as f64) as usize
    }
}

fn pegasos(n_features: usize) -> Pegasos {
    let options = PegasosOptions {
        alpha: 1e-6,
        ..PegasosOptions::default()
    };
    Pegasos::new(options, n_features, 2).expect("valid")
}

fn pool(n_threads: usize) -> ThreadPool {
    let pool = ThreadPoolBuilder::new().num_threads(n_threads).build();
    pool.expect("threads")
}

/// One pass: what everything else is measured by.
fn pass(learner: &Pegasos, data: &Dataset<'_>, rows: &[usize]) -> Pegasos {
    let mut model = learner.clone();
    model.update(data, rows, None).expect("updated");
    model
}

fn dense(criterion: &mut Criterion) {
    let (n, d) = (20_000, 54);
    let mut random = Random(SEED);
    let x = Array2::from_shape_simple_fn((n, d), || random.next() - 0.5);
    let first = x.column(0);
    let codes = first.mapv(|value| u32::from(value + 0.3 * (random.next() - 0.5) > 0.0));
    let data = Dataset::dense(x.view()).expect("valid");
    let data = data.with_classes(codes.view(), 2).expect("valid");
    let learner = pegasos(d);
    let all: Vec<usize> = (0..n).collect();
    let mut labels = all.clone();
    for last in (1..n).rev() {
        labels.swap(last, random.below(last + 1));
    }
    let shuffled = Folds::from_labels(&labels, n).expect("valid");
    let each = Folds::leave_one_out(n).expect("valid");
    let ten = Folds::contiguous(n, 10).expect("valid");
    let fixed = Tree::in_given_order();
    let randomly = Tree {
        order: Order::Random { seed: SEED },
        ..fixed
    };
    let [share, copy, revert] = [Strategy::Share, Strategy::Copy, Strategy::Revert]
        .map(|strategy| Tree { strategy, ..fixed });

    let mut group = criterion.benchmark_group("treecv/dense/20000x54");
    group.sample_size(20);
    group.bench_function("pass", |b| b.iter(|| pass(&learner, &data, &all)));
    for (id, n_threads, folds, tree) in [
        ("k=10", 1, &ten, &fixed),
        ("k=n", 1, &each, &fixed),
        ("k=n/threads=2", 2, &each, &fixed),
        ("k=10/default", 1, &ten, &Tree::default()),
        ("k=n/default", 1, &each, &Tree::default()),
        ("k=n/random", 1, &each, &randomly),
        ("k=n/shuffled", 1, &shuffled, &fixed),
        ("k=n/share", 1, &each, &share),
        ("k=n/copy", 1, &each, &copy),
        ("k=n/revert", 1, &each, &revert),
    ] {
        let pool = pool(n_threads);
        group.bench_function(id, |b| {
            b.iter(|| pool.install(|| tree.cross_validate(&learner, &data, folds)));
        });
    }
    group.finish();
}

fn sparse(criterion: &mut Criterion) {
    let (n, stored) = (4000, 40);
    let mut group = criterion.benchmark_group("treecv/sparse/4000x40");
    group.sample_size(20);
    for spread in [1, 10] {
        let n_features = 20_000 * spread;
        let mut random = Random(SEED);
        let (mut indices, mut values, mut codes) = (vec![], vec![], vec![]);
        for _ in 0..n {
            // Squares make some features frequent and most of them rare.
            let mut features: Vec<usize> = (0..stored)
                .map(|_| random.below(100) * random.below(200) * spread)
                .collect();
            features.sort_unstable();
            features.dedup();
            while features.len() < stored {
                let last = features.last().map_or(0, |last| last + 1);
                features.push(last);
            }
            codes.push(u32::from(features[0] < 100 * spread));
            indices.extend(features.iter().map(|&j| i32::try_from(j).expect("small")));
            values.extend((0..stored).map(|_| random.next()));
        }
        let indptr: Vec<i32> = (0..=n)
            .map(|row| i32::try_from(row * stored).expect("small"))
            .collect();
        let rows = Csr::new(&indptr, &indices, &values, n_features + stored).expect("valid");
        let codes = Array1::from(codes);
        let data = Dataset::new(Rows::Csr32(rows)).expect("finite");
        let data = data.with_classes(codes.view(), 2).expect("valid");
        let learner = pegasos(n_features + stored);
        let folds = Folds::leave_one_out(n).expect("valid");
        let all: Vec<usize> = (0..n).collect();
        let pool = pool(1);
        group.bench_with_input(BenchmarkId::new("pass", n_features), &(), |b, ()| {
            b.iter(|| pass(&learner, &data, &all));
        });
        group.bench_with_input(BenchmarkId::new("k=n", n_features), &(), |b, ()| {
            let tree = Tree::in_given_order();
            b.iter(|| pool.install(|| tree.cross_validate(&learner, &data, &folds)));
        });
    }
    group.finish();
}

criterion_group!(benches, dense, sparse);
criterion_main!(benches);
