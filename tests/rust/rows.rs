//! Dense and CSR rows answer alike.

use onefold::Monitor;
use onefold::data::{Csr, CsrStore, Dense, HugePageBuffer, Layout, Row};
use onefold::runtime::simd::{Simd, WithSimd, dispatch};
use proptest::prelude::*;

struct Answers<'a, R>(&'a R, &'a [f64]);

impl<R: Layout> WithSimd for Answers<'_, R> {
    type Output = Vec<(f64, f64, Vec<f64>)>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
        let Self(rows, w) = self;
        (0..rows.n_rows())
            .map(|i| {
                let mut sum = w.to_vec();
                rows.row(i).axpy(simd, -2.0, &mut sum);
                (
                    rows.row(i).dot(simd, w),
                    rows.row(i).squared_norm(simd),
                    sum,
                )
            })
            .collect()
    }
}

proptest! {
    #[test]
    fn csr_equals_dense(
        n_features in 1_usize..70,
        // Small integers, mostly zero: sums are exact in any order, so answers must be equal.
        values in prop::collection::vec(prop_oneof![4 => Just(0), 1 => -9_i32..9], 1..300),
        w in prop::collection::vec(-9_i32..9, 70),
    ) {
        let n_rows = values.len() / n_features;
        let values: Vec<f64> = values[..n_rows * n_features].iter().map(|&v| v.into()).collect();
        let w: Vec<f64> = w[..n_features].iter().map(|&v| v.into()).collect();
        let (mut indptr, mut indices, mut stored) = (vec![0_i64], vec![], vec![]);
        for row in values.chunks(n_features) {
            for (j, &v) in (0_i64..).zip(row).filter(|(_, v)| **v != 0.0) {
                indices.push(j);
                stored.push(v);
            }
            indptr.push(i64::try_from(stored.len()).expect("small"));
        }
        let dense = Dense::new(&values, n_rows, n_features).expect("valid");
        let csr = Csr::new(&indptr, &indices, &stored, n_features).expect("valid");
        prop_assert_eq!(dispatch(Answers(&dense, &w)), dispatch(Answers(&csr, &w)));
        prop_assert!(dense.check_finite(&Monitor::new()).is_ok() && csr.check_finite(&Monitor::new()).is_ok());

        // A copy in another order, with a row twice.
        let order: Vec<usize> = (0..n_rows).rev().chain((0..n_rows).take(1)).collect();
        let (mut dense_store, mut csr_store) = (HugePageBuffer::new(1), CsrStore::default());
        dense_store[0] = 7.0;
        let dense_copy = dense.gather(&order, &mut dense_store);
        let csr_copy = csr.gather(&order, &mut csr_store);
        let answers = dispatch(Answers(&dense_copy, &w));
        prop_assert_eq!(&answers, &dispatch(Answers(&csr_copy, &w)));
        let all = dispatch(Answers(&dense, &w));
        let expected: Vec<_> = order.iter().map(|&row| all[row].clone()).collect();
        prop_assert_eq!(answers, expected);
    }
}

#[test]
fn the_first_value_that_is_not_finite_is_named() {
    for (bad, shown) in [
        (f64::NAN, "NaN"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
    ] {
        let values = [1.0, 1e300, 2.0, bad];
        let dense = Dense::new(&values, 2, 2).expect("valid");
        let csr = Csr::new(&[0, 2, 4], &[0, 1, 0, 1], &values, 2).expect("valid");
        let expected = format!("X[1, 1] is {shown}: every value must be finite");
        assert_eq!(
            dense
                .check_finite(&Monitor::new())
                .expect_err("not finite")
                .to_string(),
            expected
        );
        assert_eq!(
            csr.check_finite(&Monitor::new())
                .expect_err("not finite")
                .to_string(),
            expected
        );
    }
}
