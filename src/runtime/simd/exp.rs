//! The exponential function, in a form that compilers vectorise.

use super::{Simd, multiply_add};

/// Arguments are cut off here: beyond, the result would leave the normal range.
const LARGEST: f64 = 708.0;

/// Adding it to a number of moderate size rounds that number to an integer, which stands in the last
/// bits of the sum.
const ROUNDING_SHIFT: f64 = 6_755_399_441_055_744.0; // 1.5 · 2⁵²

/// The first bits of ln 2, such that their product with an exponent is exact, and the others.
const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// 1/k! for k from 13 down to 2.
const INVERSE_FACTORIALS: [f64; 12] = [
    1.605_904_383_682_161_5e-10,
    2.087_675_698_786_81e-9,
    2.505_210_838_544_172e-8,
    2.755_731_922_398_589_3e-7,
    2.755_731_922_398_589_3e-6,
    2.480_158_730_158_73e-5,
    1.984_126_984_126_984e-4,
    1.388_888_888_888_889e-3,
    8.333_333_333_333_333e-3,
    4.166_666_666_666_666_4e-2,
    1.666_666_666_666_666_6e-1,
    0.5,
];

/// The same coefficients with the least maximum of the relative error of eʳ for |r| ≤ ln(2)/2: 1.7e-14.
const MINIMAX_FOR_F32: [f64; 8] = [
    2.749_296_211_108_604_4e-6,
    2.488_080_703_624_304_2e-5,
    0.000_198_415_393_161_982_7,
    0.001_388_881_115_028_733_3,
    0.008_333_333_094_941_79,
    0.041_666_666_962_208_006,
    0.166_666_666_672_654_9,
    0.499_999_999_996_642_85,
];

/// eˣ to two units in the last place, for |x| ≤ 708; beyond, that of ±708. Inside a
/// [`dispatch`](super::dispatch), loops over it are vectorised.
#[inline(always)]
pub fn exp<S: Simd>(x: f64) -> f64 {
    exp_by::<S, 12>(x, &INVERSE_FACTORIALS)
}

/// [`exp`] to a relative error of 5e-14, for results that are rounded to f32: one in a million is
/// rounded to another f32 than the exact one.
#[inline(always)]
pub(crate) fn exp_for_f32<S: Simd>(x: f64) -> f64 {
    exp_by::<S, 8>(x, &MINIMAX_FOR_F32)
}

/// [`exp`] with the given coefficients of (eʳ − 1 − r) / r², the highest power first.
#[inline(always)]
fn exp_by<S: Simd, const N: usize>(x: f64, coefficients: &[f64; N]) -> f64 {
    let x = x.clamp(-LARGEST, LARGEST);
    // x = k·ln 2 + r with |r| ≤ ln(2)/2.
    let shifted = multiply_add::<S>(x, std::f64::consts::LOG2_E, ROUNDING_SHIFT);
    let k = shifted - ROUNDING_SHIFT;
    let r = multiply_add::<S>(-LN_2_LOW, k, multiply_add::<S>(-LN_2_HIGH, k, x));
    let mut sum = coefficients[0];
    for &coefficient in &coefficients[1..] {
        sum = multiply_add::<S>(sum, r, coefficient);
    }
    let power = multiply_add::<S>(r * r, sum, r) + 1.0;
    // 2ᵏ by its exponent, from the last bits of the rounded sum.
    let exponent = shifted.to_bits().wrapping_add(1023) << 52;
    power * f64::from_bits(exponent)
}

#[cfg(test)]
mod tests {
    use super::super::{Simd, WithSimd, dispatch};
    use super::exp;

    struct All<'a>(&'a mut [f64]);

    impl WithSimd for All<'_> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) {
            for x in self.0 {
                *x = exp::<S>(*x);
            }
        }
    }

    #[test]
    fn is_that_of_the_standard_library() {
        let arguments: Vec<f64> = (-70_800..=70_800)
            .map(|i| f64::from(i) * 0.01)
            .chain([1e-300, -1e-17, 0.346_573, -0.346_574])
            .collect();
        for scalar in [false, true] {
            let mut found = arguments.clone();
            if scalar {
                All(&mut found).with_simd(pulp::Scalar);
            } else {
                dispatch(All(&mut found));
            }
            for (x, found) in arguments.iter().zip(found) {
                let error = (found / x.exp() - 1.0).abs();
                assert!(error <= 3.0 * f64::EPSILON, "exp({x}) is {found}");
            }
        }
    }

    #[test]
    fn is_cut_off_and_keeps_nan() {
        let mut found = [1e4, f64::INFINITY, -1e4, f64::NEG_INFINITY, f64::NAN];
        dispatch(All(&mut found));
        assert!(found[0] > 1e307 && found[0].is_finite() && found[1] == found[0]);
        assert!(found[2] < 1e-307 && found[2] >= 0.0 && found[3] == found[2]);
        assert!(found[4].is_nan());
    }
}
