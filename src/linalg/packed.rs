//! Symmetric matrices in packed storage (the lower triangle, row by row) and their Cholesky factors.
//!
//! Row i starts at i(i + 1)/2 and has i + 1 values, so that all inner loops are contiguous.

use std::ops::Range;

use ndarray::Array2;

use crate::runtime::simd::{self, Simd};

/// Number of stored values of a matrix with `n` rows.
pub(crate) fn len(n: usize) -> usize {
    n * (n + 1) / 2
}

/// [`len`] that does not overflow.
pub(crate) fn saturating_len(n: usize) -> usize {
    let n = n as u128;
    usize::try_from(n * (n + 1) / 2).unwrap_or(usize::MAX)
}

/// The range of row `i`.
#[inline(always)]
fn row(i: usize) -> Range<usize> {
    len(i)..len(i + 1)
}

/// The matrix in full storage.
pub(crate) fn to_square(a: &[f64], n: usize) -> Array2<f64> {
    Array2::from_shape_fn((n, n), |(i, j)| a[len(i.max(j)) + i.min(j)])
}

/// A ← A + c·vvᵀ, at a cost of nnz(v) × n / 2.
#[inline(always)]
pub(crate) fn rank_one<S: Simd>(simd: S, a: &mut [f64], c: f64, v: &[f64]) {
    for (i, &value) in v.iter().enumerate() {
        if value != 0.0 {
            simd::axpy(simd, c * value, &v[..=i], &mut a[row(i)]);
        }
    }
}

/// Replaces A by L with A = LLᵀ; `None` if A is not positive definite to rounding.
///
/// A may have more rows than the `n` columns of L. Rows after the n-th are right-hand sides b: they
/// become L⁻¹b, which [`solve_lower_transposed`] completes to A⁻¹b.
#[inline(always)]
pub(crate) fn cholesky<S: Simd>(simd: S, a: &mut [f64], n: usize) -> Option<()> {
    let mut i = 0;
    while len(i) < a.len() {
        let (above, rest) = a.split_at_mut(len(i));
        let current = &mut rest[..=i];
        for j in 0..i.min(n) {
            let l = &above[row(j)];
            let sum = simd::dot(simd, &current[..j], &l[..j]);
            current[j] = (current[j] - sum) / l[j];
        }
        if i < n {
            let sum = simd::dot(simd, &current[..i], &current[..i]);
            let pivot = current[i] - sum;
            // A pivot at rounding level counts as zero.
            if pivot.is_nan() || pivot <= n as f64 * f64::EPSILON * current[i] {
                return None;
            }
            current[i] = pivot.sqrt();
        }
        i += 1;
    }
    Some(())
}

/// v ← L⁻¹v, for the `v.len()` first rows of L.
#[inline(always)]
pub(crate) fn solve_lower<S: Simd>(simd: S, l: &[f64], v: &mut [f64]) {
    for i in 0..v.len() {
        let l = &l[row(i)];
        let sum = simd::dot(simd, &l[..i], &v[..i]);
        v[i] = (v[i] - sum) / l[i];
    }
}

/// v ← L⁻ᵀv, for the `v.len()` first rows of L.
#[inline(always)]
pub(crate) fn solve_lower_transposed<S: Simd>(simd: S, l: &[f64], v: &mut [f64]) {
    for i in (0..v.len()).rev() {
        let l = &l[row(i)];
        v[i] /= l[i];
        let value = v[i];
        simd::axpy(simd, -value, &l[..i], &mut v[..i]);
    }
}

/// Replaces L, of which LᵀL = A, by the factor of A + xxᵀ, by plane rotations from the last feature to
/// the first. What is rotated along with row i of L (`right`, of `y.len()` values for each) is rotated
/// with y. Overwrites x and y by what is left of them.
#[inline(always)]
pub(crate) fn rotate_in<S: Simd>(
    simd: S,
    l: &mut [f64],
    right: &mut [f64],
    x: &mut [f64],
    y: &mut [f64],
) {
    for i in (0..x.len()).rev() {
        if x[i] == 0.0 {
            continue;
        }
        let l = &mut l[row(i)];
        let length = length(l[i], x[i]);
        let inverse = length.recip();
        let (c, s) = (l[i] * inverse, x[i] * inverse);
        simd::rotate(simd, c, s, &mut l[..i], &mut x[..i]);
        l[i] = length;
        simd::rotate(simd, c, s, &mut right[i * y.len()..][..y.len()], y);
    }
}

/// Replaces L, the factor of A with `n` rows, by that of A without row and column `k`, by plane
/// rotations of neighboring columns.
pub(crate) fn remove_row(l: &mut Vec<f64>, n: usize, k: usize) {
    let mut rotations: Vec<(f64, f64)> = Vec::with_capacity(n - k);
    for i in k + 1..n {
        // The values of row i replace those of row i − 1, before which nothing is read any more.
        let (from, to) = (len(i), len(i - 1));
        l.copy_within(from..from + k, to);
        let mut value = l[from + k];
        for (j, &(c, s)) in (k..).zip(&rotations) {
            let next = l[from + j + 1];
            l[to + j] = c * value + s * next;
            value = c * next - s * value;
        }
        let last = l[from + i];
        let length = length(value, last);
        rotations.push((value / length, last / length));
        l[to + i - 1] = length;
    }
    l.truncate(len(n - 1));
}

/// √(a² + b²), without overflow or underflow.
#[inline(always)]
fn length(a: f64, b: f64) -> f64 {
    let square = a * a + b * b;
    if (1e-280..1e280).contains(&square) {
        square.sqrt()
    } else {
        a.hypot(b)
    }
}

/// The diagonal of the first `n` rows.
pub(crate) fn diagonal(a: &[f64], n: usize) -> impl Iterator<Item = f64> {
    (0..n).map(|i| a[len(i) + i])
}

/// A ← A + c·I, for the first `n` rows.
pub(crate) fn add_diagonal(a: &mut [f64], n: usize, c: f64) {
    for i in 0..n {
        a[len(i) + i] += c;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::simd::{WithSimd, dispatch};

    struct Solve<'a>(&'a mut [f64], &'a mut [f64]);

    impl WithSimd for Solve<'_> {
        type Output = Option<()>;

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> Option<()> {
            let Self(a, v) = self;
            cholesky(simd, a, v.len())?;
            solve_lower(simd, a, v);
            solve_lower_transposed(simd, a, v);
            Some(())
        }
    }

    /// A = I + Σ vvᵀ in full, by plain loops.
    fn full(n: usize) -> (Vec<f64>, Vec<Vec<f64>>) {
        let mut a = vec![0.0; len(n)];
        let mut dense = vec![vec![0.0; n]; n];
        add_diagonal(&mut a, n, 1.0);
        (0..n).for_each(|i| dense[i][i] = 1.0);
        for k in 0..n {
            let v: Vec<f64> = (0..n).map(|i| ((i * 7 + k * 3) % 5) as f64 - 2.0).collect();
            rank_one(pulp::Scalar, &mut a, 0.5, &v);
            for i in 0..n {
                (0..n).for_each(|j| dense[i][j] += 0.5 * v[i] * v[j]);
            }
        }
        (a, dense)
    }

    #[test]
    fn solves_what_is_multiplied() {
        for n in 1..24 {
            let (mut a, dense) = full(n);
            let v: Vec<f64> = (0..n).map(|i| (i % 4) as f64 - 1.0).collect();
            let mut solution = v.clone();
            dispatch(Solve(&mut a, &mut solution)).expect("positive definite");
            for (i, row) in dense.iter().enumerate() {
                let back: f64 = row.iter().zip(&solution).map(|(a, x)| a * x).sum();
                assert!((back - v[i]).abs() < 1e-12, "{back} against {}", v[i]);
            }
        }
    }

    struct RotateIn<'a>(&'a mut [f64], &'a mut [f64], &'a [f64]);

    impl WithSimd for RotateIn<'_> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let Self(l, right, x) = self;
            // The target is the sum of the features.
            let (mut y, mut x) = ([x.iter().sum()], x.to_vec());
            rotate_in(simd, l, right, &mut x, &mut y);
        }
    }

    struct SolveLower<'a>(&'a [f64], &'a mut [f64]);

    impl WithSimd for SolveLower<'_> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            solve_lower(simd, self.0, self.1);
        }
    }

    #[test]
    fn a_rotated_factor_multiplies_back_and_solves_at_every_scale() {
        for scale in [1.0, 1e-170, 1e170] {
            for n in [1, 2, 5, 23] {
                let (mut l, mut right) = (vec![0.0; len(n)], vec![0.0; n]);
                let mut dense = vec![vec![0.0; n]; n];
                for k in 0..2 * n {
                    let row: Vec<f64> =
                        (0..n).map(|i| (((i + 1) * (k + 2)) as f64).sin()).collect();
                    let scaled: Vec<f64> = row.iter().map(|v| scale * v).collect();
                    dispatch(RotateIn(&mut l, &mut right, &scaled));
                    for (i, j) in (0..n * n).map(|at| (at / n, at % n)) {
                        dense[i][j] += row[i] * row[j];
                    }
                }
                for (i, j) in (0..n * n).map(|at| (at / n, at % n)) {
                    let rows = i.max(j)..n;
                    let product: f64 = rows
                        .map(|k| (l[len(k) + i] / scale) * (l[len(k) + j] / scale))
                        .sum();
                    assert!((product - dense[i][j]).abs() < 1e-12, "{scale}, {i}, {j}");
                }
                dispatch(SolveLower(&l, &mut right));
                assert!(right.iter().all(|b| (b - 1.0).abs() < 1e-11), "{right:?}");
            }
        }
    }

    #[test]
    fn a_factor_loses_a_row() {
        for (n, k) in [(1, 0), (2, 0), (2, 1), (7, 0), (7, 3), (7, 6)] {
            let (mut l, dense) = full(n);
            cholesky(pulp::Scalar, &mut l, n).expect("positive definite");
            remove_row(&mut l, n, k);
            assert_eq!(l.len(), len(n - 1));
            let places: Vec<usize> = (0..n).filter(|&i| i != k).collect();
            for (i, j) in (0..n - 1).flat_map(|i| (0..=i).map(move |j| (i, j))) {
                let product: f64 = (0..=j).map(|c| l[len(i) + c] * l[len(j) + c]).sum();
                assert!((product - dense[places[i]][places[j]]).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn a_matrix_without_an_inverse_has_no_factor() {
        for mut a in [vec![0.0], vec![-1.0], vec![f64::NAN], vec![1.0, 1.0, 1.0]] {
            let n = if a.len() == 1 { 1 } else { 2 };
            assert!(cholesky(pulp::Scalar, &mut a, n).is_none());
        }
    }
}
