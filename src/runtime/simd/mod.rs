//! The few hot loops, dispatched at run time.
//!
//! A wheel is built for plain x86-64, so the instructions of the machine it runs on are chosen
//! when it runs. Dispatch once for a whole pass over the rows, not once a row: put the pass into
//! a [`WithSimd`] and hand it to [`dispatch`]; everything it calls must be `#[inline(always)]`, so
//! that it is compiled for the chosen instructions too.
//!
#![cfg_attr(feature = "internals", doc = "```")]
#![cfg_attr(not(feature = "internals"), doc = "```ignore")]
//! use onefold::runtime::simd::{self, Simd, WithSimd};
//!
//! struct SquaredNorms<'a>(&'a [[f64; 2]]);
//!
//! impl WithSimd for SquaredNorms<'_> {
//!     type Output = Vec<f64>;
//!
//!     #[inline(always)]
//!     fn with_simd<S: Simd>(self, simd: S) -> Vec<f64> {
//!         self.0.iter().map(|row| simd::dot(simd, row, row)).collect()
//!     }
//! }
//!
//! assert_eq!(simd::dispatch(SquaredNorms(&[[3.0, 4.0], [0.0, 1.0]])), [25.0, 1.0]);
//! ```

mod exp;
mod table;

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::_MM_HINT_T1;

use bytemuck::Pod;
#[cfg(target_arch = "x86_64")]
use pulp::core_arch::x86::Sse;
pub use pulp::{Simd, WithSimd};

pub use self::exp::exp;
pub(crate) use self::exp::exp_for_f32;
pub use self::table::ByteTable;

/// Vectors in flight: enough to hide the latency of a fused multiply-add.
const LANES: usize = 4;

/// Runs `pass` compiled for the best instructions of this machine.
pub fn dispatch<Op: WithSimd>(pass: Op) -> Op::Output {
    pulp::Arch::new().dispatch(pass)
}

/// Bytes in a cache line.
const CACHE_LINE_BYTES: usize = 64;

/// The largest number of cache lines prefetched per row; the hardware prefetcher fetches the rest.
const MAX_LINES: usize = 16;

/// Asks for `values` to be brought into the second cache, and does not wait for them. (More can be on
/// their way there than to the first.)
#[inline(always)]
pub fn prefetch<T: Pod>(values: &[T]) {
    let bytes: &[u8] = bytemuck::cast_slice(values);
    for line in bytes.chunks(CACHE_LINE_BYTES).take(MAX_LINES) {
        prefetch_start(line);
    }
    // Values need not begin where a line does.
    prefetch_start(&bytes[bytes.len().saturating_sub(1)..]);
}

/// Asks for the cache line in which `values` begin.
#[inline(always)]
pub fn prefetch_start<T: Pod>(values: &[T]) {
    #[cfg(target_arch = "x86_64")]
    if let (Some(sse), Some(first)) = (Sse::try_new(), values.first()) {
        sse._mm_prefetch::<_MM_HINT_T1>(std::ptr::from_ref(first).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}

/// ab + c, rounded once where there is an instruction for it.
#[inline(always)]
pub fn multiply_add<S: Simd>(a: f64, b: f64, c: f64) -> f64 {
    // Without the instruction, `mul_add` is a call into the C library.
    if S::IS_SCALAR {
        a * b + c
    } else {
        a.mul_add(b, c)
    }
}

/// ⟨a, b⟩.
///
/// # Panics
/// When the lengths differ.
#[inline(always)]
pub fn dot<S: Simd>(simd: S, a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    // One length for the compiler, too.
    let b = &b[..a.len()];
    let (a, a_tail) = S::as_simd_f64s(a);
    let (b, b_tail) = S::as_simd_f64s(b);
    let (a_blocks, a_rest) = a.as_chunks::<LANES>();
    let (b_blocks, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [simd.splat_f64s(0.0); LANES];
    for (a, b) in a_blocks.iter().zip(b_blocks) {
        for ((sum, &a), &b) in sums.iter_mut().zip(a).zip(b) {
            *sum = simd.mul_add_e_f64s(a, b, *sum);
        }
    }
    for ((sum, &a), &b) in sums.iter_mut().zip(a_rest).zip(b_rest) {
        *sum = simd.mul_add_e_f64s(a, b, *sum);
    }
    let [s0, s1, s2, s3] = sums;
    let sum = simd.add_f64s(simd.add_f64s(s0, s1), simd.add_f64s(s2, s3));
    let mut total = simd.reduce_sum_f64s(sum);
    for (a, b) in a_tail.iter().zip(b_tail) {
        total += a * b;
    }
    total
}

/// y ← y + αx.
///
/// # Panics
/// When the lengths differ.
#[inline(always)]
pub fn axpy<S: Simd>(simd: S, alpha: f64, x: &[f64], y: &mut [f64]) {
    assert_eq!(x.len(), y.len());
    let y = &mut y[..x.len()];
    let (x, x_tail) = S::as_simd_f64s(x);
    let (y, y_tail) = S::as_mut_simd_f64s(y);
    let factor = simd.splat_f64s(alpha);
    for (y, &x) in y.iter_mut().zip(x) {
        *y = simd.mul_add_e_f64s(factor, x, *y);
    }
    for (y, x) in y_tail.iter_mut().zip(x_tail) {
        *y += alpha * x;
    }
}

/// The plane rotation (x, y) ← (cx + sy, cy − sx).
///
/// # Panics
/// When the lengths differ.
#[inline(always)]
pub fn rotate<S: Simd>(simd: S, c: f64, s: f64, x: &mut [f64], y: &mut [f64]) {
    assert_eq!(x.len(), y.len());
    let y = &mut y[..x.len()];
    let (x, x_tail) = S::as_mut_simd_f64s(x);
    let (y, y_tail) = S::as_mut_simd_f64s(y);
    let [cosine, sine, minus_sine] = [c, s, -s].map(|value| simd.splat_f64s(value));
    for (x, y) in x.iter_mut().zip(y) {
        let turned = simd.mul_add_e_f64s(cosine, *x, simd.mul_f64s(sine, *y));
        *y = simd.mul_add_e_f64s(cosine, *y, simd.mul_f64s(minus_sine, *x));
        *x = turned;
    }
    for (x, y) in x_tail.iter_mut().zip(y_tail) {
        (*x, *y) = (c * *x + s * *y, c * *y - s * *x);
    }
}

/// y ← y + αx, then ⟨z, y⟩: the bits of [`axpy`] and [`dot`], with y loaded once.
///
/// # Panics
/// When the lengths differ.
#[inline(always)]
pub fn axpy_dot<S: Simd>(simd: S, alpha: f64, x: &[f64], y: &mut [f64], z: &[f64]) -> f64 {
    assert!(x.len() == y.len() && x.len() == z.len());
    let (y, z) = (&mut y[..x.len()], &z[..x.len()]);
    let (x, x_tail) = S::as_simd_f64s(x);
    let (y, y_tail) = S::as_mut_simd_f64s(y);
    let (z, z_tail) = S::as_simd_f64s(z);
    let (x_blocks, x_rest) = x.as_chunks::<LANES>();
    let (y_blocks, y_rest) = y.as_chunks_mut::<LANES>();
    let (z_blocks, z_rest) = z.as_chunks::<LANES>();
    let factor = simd.splat_f64s(alpha);
    let mut sums = [simd.splat_f64s(0.0); LANES];
    for ((x, y), z) in x_blocks.iter().zip(y_blocks).zip(z_blocks) {
        for (((sum, &x), y), &z) in sums.iter_mut().zip(x).zip(y).zip(z) {
            *y = simd.mul_add_e_f64s(factor, x, *y);
            *sum = simd.mul_add_e_f64s(z, *y, *sum);
        }
    }
    for (((sum, &x), y), &z) in sums.iter_mut().zip(x_rest).zip(y_rest).zip(z_rest) {
        *y = simd.mul_add_e_f64s(factor, x, *y);
        *sum = simd.mul_add_e_f64s(z, *y, *sum);
    }
    let [s0, s1, s2, s3] = sums;
    let sum = simd.add_f64s(simd.add_f64s(s0, s1), simd.add_f64s(s2, s3));
    let mut total = simd.reduce_sum_f64s(sum);
    for ((x, y), z) in x_tail.iter().zip(y_tail).zip(z_tail) {
        *y += alpha * x;
        total += z * *y;
    }
    total
}

/// The largest number of f64 lanes of a vector.
const MAX_F64_LANES: usize = 16;

/// Zeros, then ones: a slice of it masks all but the last lanes of a vector.
const TAIL_MASK: [f64; 2 * MAX_F64_LANES] = {
    let mut last = [0.0; 2 * MAX_F64_LANES];
    let mut lane = MAX_F64_LANES;
    while lane < 2 * MAX_F64_LANES {
        last[lane] = 1.0;
        lane += 1;
    }
    last
};

/// ⟨a, b⟩ for each of some a and each of some b, in one pass over all of them.
///
/// # Panics
/// When the lengths differ.
#[inline(always)]
pub fn products<S: Simd, const M: usize, const N: usize>(
    simd: S,
    a: [&[f64]; M],
    b: [&[f64]; N],
) -> [[f64; N]; M] {
    let mut totals = [[0.0; N]; M];
    let Some(length) = a.first().map(|a| a.len()) else {
        return totals;
    };
    if length < S::F64_LANES {
        for (totals, a) in totals.iter_mut().zip(a) {
            for (total, b) in totals.iter_mut().zip(b) {
                *total = dot(simd, a, b);
            }
        }
        return totals;
    }
    let n_vectors = S::as_simd_f64s(a[0]).0.len();
    let mut a_vectors = [S::as_simd_f64s(a[0]).0; M];
    let mut b_vectors = [S::as_simd_f64s(a[0]).0; N];
    // The last vector of a row overlaps the one before; the mask drops the overlap.
    let mut a_last = [simd.splat_f64s(0.0); M];
    let mut b_last = [simd.splat_f64s(0.0); N];
    let last = length - S::F64_LANES;
    let n_tail = length % S::F64_LANES;
    let mask = S::as_simd_f64s(&TAIL_MASK[MAX_F64_LANES + n_tail - S::F64_LANES..]).0[0];
    for (i, a) in a.into_iter().enumerate() {
        assert_eq!(a.len(), length);
        // One length for the compiler, too.
        a_vectors[i] = &S::as_simd_f64s(a).0[..n_vectors];
        a_last[i] = simd.mul_f64s(mask, S::as_simd_f64s(&a[last..]).0[0]);
    }
    for (j, b) in b.into_iter().enumerate() {
        assert_eq!(b.len(), length);
        b_vectors[j] = &S::as_simd_f64s(b).0[..n_vectors];
        b_last[j] = S::as_simd_f64s(&b[last..]).0[0];
    }
    let mut sums = [[simd.splat_f64s(0.0); N]; M];
    for place in 0..n_vectors {
        for (sums, a) in sums.iter_mut().zip(&a_vectors) {
            for (sum, b) in sums.iter_mut().zip(&b_vectors) {
                *sum = simd.mul_add_e_f64s(a[place], b[place], *sum);
            }
        }
    }
    for ((totals, sums), &a) in totals.iter_mut().zip(sums).zip(&a_last) {
        for ((total, sum), &b) in totals.iter_mut().zip(sums).zip(&b_last) {
            *total = simd.reduce_sum_f64s(simd.mul_add_e_f64s(a, b, sum));
        }
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Both<'a>(&'a [f64], &'a mut [f64]);

    impl WithSimd for Both<'_> {
        type Output = f64;

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> f64 {
            let product = dot(simd, self.0, self.1);
            axpy(simd, 0.5, self.0, self.1);
            product
        }
    }

    #[test]
    fn agrees_with_the_plain_loops_at_every_length() {
        for n in 0..70 {
            let x: Vec<f64> = (0..n).map(|i| f64::from(i) - 20.0).collect();
            let y: Vec<f64> = (0..n).map(|i| f64::from(i % 7)).collect();
            let product: f64 = x.iter().zip(&y).map(|(x, y)| x * y).sum();
            let sum: Vec<f64> = x.iter().zip(&y).map(|(x, y)| y + 0.5 * x).collect();
            // Small integers: every order of summation gives the same bits.
            for scalar in [false, true] {
                let mut out = y.clone();
                let pass = Both(&x, &mut out);
                let found = if scalar {
                    pass.with_simd(pulp::Scalar)
                } else {
                    dispatch(pass)
                };
                assert!(
                    found == product && out == sum,
                    "length {n}, scalar {scalar}"
                );
            }
        }
    }

    struct Fused<'a>(&'a [f64], &'a mut [f64], &'a [f64]);

    impl WithSimd for Fused<'_> {
        type Output = f64;

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> f64 {
            axpy_dot(simd, 0.3, self.0, self.1, self.2)
        }
    }

    struct Apart<'a>(&'a [f64], &'a mut [f64], &'a [f64]);

    impl WithSimd for Apart<'_> {
        type Output = f64;

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> f64 {
            axpy(simd, 0.3, self.0, self.1);
            dot(simd, self.2, self.1)
        }
    }

    struct Products<'a>([&'a [f64]; 2], [&'a [f64]; 3]);

    impl WithSimd for Products<'_> {
        type Output = [[f64; 3]; 2];

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> [[f64; 3]; 2] {
            products(simd, self.0, self.1)
        }
    }

    #[test]
    fn all_products_are_those_of_pairs() {
        for n in 0..40 {
            // Small integers again.
            let rows: Vec<Vec<f64>> = (0..5)
                .map(|row| (0..n).map(|i| f64::from((i * 7 + row) % 11 - 5)).collect())
                .collect();
            let [a, b, c, d, e] = [0, 1, 2, 3, 4].map(|row| &rows[row][..]);
            let pair = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
            let expected = [a, b].map(|x| [c, d, e].map(|y| pair(x, y)));
            for scalar in [false, true] {
                let pass = Products([a, b], [c, d, e]);
                let found = if scalar {
                    pass.with_simd(pulp::Scalar)
                } else {
                    dispatch(pass)
                };
                assert_eq!(found, expected, "length {n}, scalar {scalar}");
            }
        }
    }

    #[test]
    fn the_fused_loop_has_the_bits_of_the_two() {
        for n in 0..70 {
            let [x, y, z] =
                [1.0, 2.0, 3.0].map(|a| (0..n).map(|i| f64::from(i).sin() * a).collect::<Vec<_>>());
            let (mut fused, mut apart) = (y.clone(), y.clone());
            let product = dispatch(Fused(&x, &mut fused, &z));
            let expected = dispatch(Apart(&x, &mut apart, &z));
            assert!(product == expected && fused == apart, "length {n}");
        }
    }
}
