//! Dense and CSR rows have the same products.

use ndarray::{Array2, array};
use onefold::Monitor;
use onefold::data::{Csr, Dense, Layout, Row};
use onefold::runtime::simd::{Simd, WithSimd, dispatch};
use proptest::prelude::*;

struct Products<'a, R>(&'a R, &'a [f64]);

impl<R: Layout> WithSimd for Products<'_, R> {
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
        // Small integers, mostly zero: sums are exact in any order, so products must be equal.
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
        let x = Array2::from_shape_vec((n_rows, n_features), values).expect("shape");
        let dense = Dense::new(x.view()).expect("valid");
        let csr = Csr::new(&indptr, &indices, &stored, n_features).expect("valid");
        prop_assert_eq!(dispatch(Products(&dense, &w)), dispatch(Products(&csr, &w)));
        prop_assert!(dense.check_finite(&Monitor::new()).is_ok() && csr.check_finite(&Monitor::new()).is_ok());
    }
}

#[test]
fn the_first_value_that_is_not_finite_is_named() {
    for (bad, shown) in [
        (f64::NAN, "NaN"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
    ] {
        let x = array![[1.0, 1e300], [2.0, bad]];
        let dense = Dense::new(x.view()).expect("valid");
        let values = x.as_slice().expect("contiguous");
        let csr = Csr::new(&[0, 2, 4], &[0, 1, 0, 1], values, 2).expect("valid");
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
