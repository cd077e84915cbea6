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

pub use pulp::{Simd, WithSimd};

/// Vectors in flight: enough to hide the latency of a fused multiply-add.
const LANES: usize = 4;

/// Runs `pass` compiled for the best instructions of this machine.
pub fn dispatch<Op: WithSimd>(pass: Op) -> Op::Output {
    pulp::Arch::new().dispatch(pass)
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
}
