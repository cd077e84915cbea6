//! Rows on demand, quantised matrices and reused buffers.

use ndarray::ArrayView2;

use super::*;
use crate::data::Dense;

const N: usize = 53;

const KERNELS: [Kernel; 4] = [
    Kernel::Linear,
    Kernel::Rbf { gamma: 0.3 },
    Kernel::Poly {
        gamma: 0.3,
        coef0: 0.5,
        degree: 3,
    },
    Kernel::SquaredDistance,
];

fn numbers(n: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * i) as f64 * 0.7).sin()).collect()
}

fn dense(values: &[f64], n_features: usize) -> Dense<'_> {
    Dense::new(ArrayView2::from_shape((N, n_features), values).expect("shape")).expect("contiguous")
}

fn budget(rows: usize) -> Budget {
    #[allow(clippy::cast_precision_loss)] // small
    let megabytes = (4 * N * rows) as f64 / 1e6;
    Budget::new(Some(megabytes + 1e-6)).expect("positive")
}

/// A budget that bytes fit and f32 do not, against a whole matrix.
#[test]
fn a_quantized_matrix_has_the_bits_of_a_whole_one() {
    let order: Vec<usize> = (0..N).rev().collect();
    let monitor = Monitor::new();
    let binary: Vec<f64> = numbers(N * 9).iter().map(|v| f64::from(*v > 0.4)).collect();
    let signs: Vec<f64> = binary.iter().map(|v| 2.0 * v - 1.0).collect();
    let halves: Vec<f64> = binary.iter().map(|v| 0.5 * v).collect();
    for kernel in KERNELS {
        let of_distance = kernel.base() == Kernel::SquaredDistance;
        for (values, expected) in [(&binary, true), (&signs, of_distance), (&halves, false)] {
            let rows = dense(values, 9);
            let make = |budget| Gram::new(&rows, &order, kernel, budget, &monitor).expect("fits");
            let (whole, small) = (make(budget(N)), make(budget(N / 2)));
            assert_eq!(small.lookup.is_some(), expected, "{kernel:?}");
            assert_eq!(small.is_full(), expected);
            assert_eq!(whole.diagonal(), small.diagonal());
            let columns = [7, 0, 52, 7];
            for i in (0..N).chain(0..N) {
                assert_eq!(*whole.row(i), *small.row(i), "{kernel:?}, row {i}");
                let (mut from_whole, mut from_small) = ([0.0; 4], [0.0; 4]);
                (&whole).gather(i, &columns, &mut from_whole);
                (&small).gather(i, &columns, &mut from_small);
                assert_eq!(from_whole, from_small);
            }
            if expected {
                assert_eq!(small.rows_computed(), N as u64);
                let other = Kernel::Rbf { gamma: 2.0 };
                if of_distance {
                    let derived = Gram::derive(&small, other, budget(N), &monitor);
                    let direct = Gram::new(&rows, &order, other, budget(N), &monitor);
                    let (derived, direct) = (derived.expect("fits"), direct.expect("fits"));
                    assert!((0..N).all(|i| *derived.row(i) == *direct.row(i)));
                }
            }
        }
    }
}

#[test]
fn a_reused_buffer_leaves_no_trace() {
    let values = numbers(N * 4);
    let rows = dense(&values, 4);
    let order: Vec<usize> = (0..N).collect();
    let monitor = Monitor::new();
    let base =
        Gram::new(&rows, &order, Kernel::SquaredDistance, budget(N), &monitor).expect("fits");
    let derive = |gamma| {
        let kernel = Kernel::Rbf { gamma };
        Gram::derive(&base, kernel, budget(N), &monitor).expect("fits")
    };
    let fresh = derive(2.0);
    drop(derive(0.1));
    let buffer = base.own_buffers.matrices.acquire();
    base.own_buffers.matrices.release(buffer.expect("released"));
    let used = derive(2.0);
    assert!(base.own_buffers.matrices.acquire().is_none());
    assert!((0..N).all(|i| *fresh.row(i) == *used.row(i)));
}

/// Inner products kept as f64, or no base if these do not fit.
#[test]
fn kernels_that_amplify_rounding_have_the_bits_of_direct_ones() {
    // Norms of some thousand, of which a cube has three times the relative error.
    let values: Vec<f64> = numbers(N * 7).iter().map(|v| 30.0 * v).collect();
    let rows = dense(&values, 7);
    let order: Vec<usize> = (0..N).rev().collect();
    let monitor = Monitor::new();
    let kernels = [
        Kernel::Linear,
        Kernel::Poly {
            gamma: 0.3,
            coef0: 0.5,
            degree: 3,
        },
        Kernel::Sigmoid {
            gamma: 0.01,
            coef0: -20.0,
        },
    ];
    for for_products in [budget(2 * N), budget(N)] {
        let budgets = (budget(N), for_products);
        let base = Base::new(&rows, &order, &kernels, budgets, &monitor).expect("fits");
        assert_eq!(base.is_some(), budgets.1.rows(N) >= 2 * N);
        let Some(base) = base else { continue };
        for kernel in kernels {
            let derived = base.derive(kernel, budget(N), &monitor).expect("fits");
            let direct = Gram::new(&rows, &order, kernel, budget(N), &monitor).expect("fits");
            assert_eq!(derived.diagonal(), direct.diagonal());
            assert!(
                (0..N).all(|i| *derived.row(i) == *direct.row(i)),
                "{kernel:?}"
            );
        }
        assert!(base.rows_computed() >= N as u64);
    }
}

/// Rows computed one at a time, then all at once, against a matrix that is computed as a whole.
#[test]
fn rows_on_demand_have_the_bits_of_a_whole_matrix() {
    const MANY: usize = ON_DEMAND_FROM + 7;
    let values = numbers(MANY * 5);
    let zeros: Vec<f64> = values
        .iter()
        .map(|v| if *v > 0.2 { *v } else { 0.0 })
        .collect();
    let order: Vec<usize> = (0..MANY).rev().collect();
    let monitor = Monitor::new();
    let megabytes = |rows: usize| Budget::new(Some((4 * MANY * rows) as f64 / 1_048_576.0 + 1e-5));
    for (values, kernel) in [&values, &zeros].into_iter().zip(KERNELS) {
        let view = ArrayView2::from_shape((MANY, 5), values).expect("shape");
        let rows = Dense::new(view).expect("contiguous");
        let make = |n_rows| {
            let budget = megabytes(n_rows).expect("positive");
            Gram::new(&rows, &order, kernel, budget, &monitor).expect("fits")
        };
        let (whole, single) = (make(MANY), make(2 * MANY));
        assert!(matches!(whole.store, Store::Full(_)));
        let Store::OnDemand(store) = &single.store else {
            panic!("rows on demand");
        };
        assert_eq!(
            (whole.rows_computed(), single.rows_computed()),
            (MANY as u64, 0)
        );
        for i in [0, 500, MANY - 1, 500] {
            assert_eq!(*whole.row(i), *single.row(i), "{kernel:?}, row {i}");
        }
        single.reserve(&[0, 1, 2], &monitor).expect("not stopped");
        assert_eq!(single.rows_computed(), 3);
        let all: Vec<usize> = (0..MANY).collect();
        single.reserve(&all, &monitor).expect("not stopped");
        assert_eq!(single.rows_computed(), MANY as u64);
        assert!((0..MANY).all(|i| *whole.row(i) == *single.row(i) && store.get(i).is_some()));
        if kernel == Kernel::SquaredDistance {
            let budget = megabytes(MANY).expect("positive");
            let rbf = Kernel::Rbf { gamma: 0.3 };
            let [from_whole, from_single] = [&whole, &single].map(|base| {
                let derived = Gram::derive(base, rbf, budget, &monitor).expect("fits");
                derived.row(77).to_vec()
            });
            assert_eq!(from_whole, from_single);
        }
    }
}
