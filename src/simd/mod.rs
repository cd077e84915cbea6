//! The few hot loops, dispatched at run time.
//!
//! A wheel is built for plain x86-64, so the instructions of the machine it runs on are chosen
//! when it runs. Dispatch once for a whole pass over the rows, not once a row: put the pass into
//! a [`WithSimd`] and hand it to [`dispatch`]; everything it calls must be `#[inline(always)]`, so
//! that it is compiled for the chosen instructions too.
//!
//! ```
//! use onefold::simd::{self, Simd, WithSimd};
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

mod table;

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::_MM_HINT_T1;

use bytemuck::Pod;
#[cfg(target_arch = "x86_64")]
use pulp::core_arch::x86::Sse;
pub use pulp::{Simd, WithSimd};

pub use self::table::Table;

/// Vectors in flight: enough to hide the latency of a fused multiply-add.
const LANES: usize = 4;

/// Runs `pass` compiled for the best instructions of this machine.
pub fn dispatch<Op: WithSimd>(pass: Op) -> Op::Output {
    pulp::Arch::new().dispatch(pass)
}

/// Bytes in a cache line.
const LINE: usize = 64;

/// Cache lines that are asked for at most; what follows them the machine fetches on its own.
const MOST_LINES: usize = 16;

/// Asks for `values` to be brought into the second cache, and does not wait for them. (More can be on
/// their way there than to the first.)
#[inline(always)]
pub fn prefetch<T: Pod>(values: &[T]) {
    let bytes: &[u8] = bytemuck::cast_slice(values);
    for line in bytes.chunks(LINE).take(MOST_LINES) {
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

/// ⟨z, y + αx⟩: the bits of [`axpy_dot`], and y stays as it is.
///
/// # Panics
/// When the lengths differ.
#[inline(always)]
pub fn dot_of_sum<S: Simd>(simd: S, alpha: f64, x: &[f64], y: &[f64], z: &[f64]) -> f64 {
    assert!(x.len() == y.len() && x.len() == z.len());
    let (y, z) = (&y[..x.len()], &z[..x.len()]);
    let (x, x_tail) = S::as_simd_f64s(x);
    let (y, y_tail) = S::as_simd_f64s(y);
    let (z, z_tail) = S::as_simd_f64s(z);
    let factor = simd.splat_f64s(alpha);
    let mut sums = [simd.splat_f64s(0.0); LANES];
    // The last vectors may be fewer than there are sums.
    for ((x, y), z) in x.chunks(LANES).zip(y.chunks(LANES)).zip(z.chunks(LANES)) {
        for (((sum, &x), &y), &z) in sums.iter_mut().zip(x).zip(y).zip(z) {
            *sum = simd.mul_add_e_f64s(z, simd.mul_add_e_f64s(factor, x, y), *sum);
        }
    }
    let [s0, s1, s2, s3] = sums;
    let sum = simd.add_f64s(simd.add_f64s(s0, s1), simd.add_f64s(s2, s3));
    let mut total = simd.reduce_sum_f64s(sum);
    for ((x, y), z) in x_tail.iter().zip(y_tail).zip(z_tail) {
        total += z * (y + alpha * x);
    }
    total
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

    struct Unstored<'a>(&'a [f64], &'a [f64], &'a [f64]);

    impl WithSimd for Unstored<'_> {
        type Output = f64;

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> f64 {
            dot_of_sum(simd, 0.3, self.0, self.1, self.2)
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
            assert_eq!(dispatch(Unstored(&x, &y, &z)), expected, "length {n}");
        }
    }
}
