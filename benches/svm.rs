//! Time of an SMO iteration, per sample, against the memory bandwidth.
//!
//! An iteration reads two kernel rows of four bytes per sample. A plain sum over two rows is the bound:
//! no solver that reads both can be faster.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ndarray::Array2;
use onefold::Monitor;
use onefold::data::Dense;
use onefold::svm::dual::{Bounds, Dual, Start};
use onefold::svm::gram::Gram;
use onefold::svm::smo::solve;
use onefold::svm::{Budget, Kernel, SolverOptions};

const N_SAMPLES: usize = 8000;
const N_FEATURES: usize = 20;
const ITERATIONS: u64 = 2000;

/// Two overlapping clouds, from a generator of our own: the same on every platform.
fn clouds() -> (Array2<f64>, Vec<f64>) {
    let mut state = 1_u64;
    let mut uniform = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 40) as f64 / f64::from(1 << 24) - 0.5
    };
    let half = N_SAMPLES / 2;
    let labels: Vec<f64> = (0..N_SAMPLES)
        .map(|i| if i < half { 1.0 } else { -1.0 })
        .collect();
    let shape = (N_SAMPLES, N_FEATURES);
    let values = Array2::from_shape_fn(shape, |(i, _)| 0.1 * labels[i] + uniform());
    (values, labels)
}

fn smo(criterion: &mut Criterion) {
    let (values, labels) = clouds();
    let rows = Dense::new(values.view()).expect("contiguous");
    let order: Vec<usize> = (0..N_SAMPLES).collect();
    let monitor = Monitor::new();
    let budget = Budget::new(Some(512.0)).expect("positive");
    let kernel = Kernel::Rbf { gamma: 0.5 };
    let build = || Gram::new(&rows, &order, kernel, budget, &monitor).expect("fits");
    let gram = build();
    let half = N_SAMPLES / 2;
    let dual = Dual::new(&gram, [0..half, half..N_SAMPLES], &labels);
    let zeros = vec![0.0; half];
    let lower = [zeros.clone(), vec![-10.0; half]].concat();
    let upper = [vec![10.0; half], zeros].concat();
    let bounds = Bounds::balanced(lower, upper);
    let pairs = SolverOptions {
        tolerance: 1e-12,
        max_iterations: ITERATIONS,
        shrinking: false,
        conjugate: false,
    };
    let conjugate = SolverOptions {
        conjugate: true,
        ..pairs
    };

    let mut group = criterion.benchmark_group("svm");
    group.sample_size(10);
    // Criterion then reports time and throughput of one sample in one iteration.
    group.throughput(Throughput::Elements(N_SAMPLES as u64));
    for (name, options) in [("iteration", pairs), ("conjugate_iteration", conjugate)] {
        group.bench_function(format!("smo/{name}/{N_SAMPLES}"), |bencher| {
            bencher.iter_custom(|repeats| {
                let mut spent = Duration::ZERO;
                for _ in 0..repeats {
                    let (start, _) = Start::cold(&dual, &bounds, &monitor).expect("runs");
                    let clock = Instant::now();
                    let found = solve(&dual, &bounds, start, &options, &monitor).expect("runs");
                    spent += clock.elapsed();
                    assert_eq!(found.iterations, ITERATIONS);
                }
                spent / u32::try_from(ITERATIONS).expect("small")
            });
        });
    }
    // Rows far apart, so that they come from memory as they do in a run.
    let mut row = 0;
    group.bench_function(format!("bound/two_rows/{N_SAMPLES}"), |bencher| {
        bencher.iter(|| {
            row = (row + 4099) % N_SAMPLES;
            let (a, b) = (gram.row(row), gram.row(N_SAMPLES - 1 - row));
            let mut sums = [0.0_f32; 16];
            for (a, b) in a.as_chunks::<16>().0.iter().zip(b.as_chunks::<16>().0) {
                for lane in 0..16 {
                    sums[lane] += a[lane] + b[lane];
                }
            }
            black_box(sums)
        });
    });
    group.throughput(Throughput::Elements((N_SAMPLES * N_SAMPLES) as u64));
    group.bench_function(format!("gram/{N_SAMPLES}x{N_FEATURES}"), |bencher| {
        bencher.iter(|| black_box(build()));
    });
    group.finish();
}

criterion_group!(benches, smo);
criterion_main!(benches);
