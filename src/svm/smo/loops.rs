//! The two loops of an SMO iteration, over contiguous arrays, without branches.
//!
//! Membership in I_up or I_low is an addend, 0 or ±∞, that excludes all other variables from a
//! maximum. Each vector lane keeps its own best gain and the index of its vector.
//!
//! Gradients are f64, because they accumulate many steps. Gains are f32, because they are only
//! compared and kernel values are f32: twice as many lanes per vector.

use crate::runtime::simd::{Simd, WithSimd, multiply_add};
use crate::svm::gram::{BLOCK, KernelRows};

/// Upper bound on f32 lanes (AVX-512: 16).
const MAX_LANES: usize = 16;

/// LIBSVM's lower bound on the curvature of a pair.
pub(super) const TAU: f32 = 1e-12;

/// The maximum of some values and its index.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArgMax {
    pub(super) value: f64,
    pub(super) index: usize,
}

impl ArgMax {
    /// The maximum of no values.
    pub(super) const NONE: Self = Self {
        value: f64::NEG_INFINITY,
        index: 0,
    };

    /// Includes another value; the last of equal ones wins, as in LIBSVM.
    #[inline(always)]
    pub(super) fn include(&mut self, value: f64, index: usize) {
        if value >= self.value {
            *self = Self { value, index };
        }
    }

    /// The maximum over lanes, each with the index of its vector.
    #[inline(always)]
    fn of_lanes(lanes: impl ExactSizeIterator<Item = (f64, usize)>) -> Self {
        let (mut best, n_lanes) = (Self::NONE, lanes.len());
        for (lane, (value, vector)) in lanes.enumerate() {
            let index = n_lanes * vector + lane;
            if value > best.value || (value == best.value && index > best.index) {
                best = Self { value, index };
            }
        }
        best
    }
}

/// Selects j for a given i: the maximum of the gain (gᵢ − gⱼ)² / (Kᵢᵢ + Kⱼⱼ − 2Kᵢⱼ) over j in I_low
/// with gⱼ < gᵢ (WSS 2 of Fan et al. 2005).
pub(super) struct SelectSecond<'a, K: KernelRows> {
    pub(super) kernel: K,
    pub(super) row: &'a [K::Value],
    pub(super) diagonal: &'a [f32],
    pub(super) gradient: &'a [f64],
    /// 0 in I_low, ∞ elsewhere.
    pub(super) low_mask: &'a [f32],
    /// gᵢ.
    pub(super) g_max: f64,
    /// Kᵢᵢ.
    pub(super) k_ii: f32,
    /// Scratch for a block of gᵢ − gⱼ.
    pub(super) differences: &'a mut [f32; BLOCK],
}

/// State of [`SelectSecond`], by lane.
struct Search<S: Simd> {
    simd: S,
    k_ii: S::f32s,
    gains: S::f32s,
    /// The vector of the best gain, and the current one.
    vectors: S::u32s,
    current: S::u32s,
    /// Maximum of gᵢ − gⱼ over I_low.
    gaps: S::f32s,
}

impl<S: Simd> Search<S> {
    #[inline(always)]
    fn new(simd: S, k_ii: f32) -> Self {
        Self {
            simd,
            k_ii: simd.splat_f32s(k_ii),
            gains: simd.splat_f32s(0.0),
            vectors: simd.splat_u32s(0),
            current: simd.splat_u32s(0),
            gaps: simd.splat_f32s(0.0),
        }
    }

    #[inline(always)]
    fn include(&mut self, difference: S::f32s, mask: S::f32s, row: S::f32s, diagonal: S::f32s) {
        let simd = self.simd;
        let below = simd.max_f32s(simd.splat_f32s(0.0), simd.sub_f32s(difference, mask));
        let curvature = simd.sub_f32s(simd.add_f32s(self.k_ii, diagonal), simd.add_f32s(row, row));
        let curvature = simd.max_f32s(simd.splat_f32s(TAU), curvature);
        let gain = simd.div_f32s(simd.mul_f32s(below, below), curvature);
        let is_better = simd.greater_than_or_equal_f32s(gain, self.gains);
        self.gains = simd.max_f32s(gain, self.gains);
        self.vectors = simd.select_u32s(is_better, self.current, self.vectors);
        self.current = simd.add_u32s(self.current, simd.splat_u32s(1));
        self.gaps = simd.max_f32s(self.gaps, below);
    }

    #[inline(always)]
    fn best(self) -> (ArgMax, f64) {
        let (mut gains, mut vectors) = ([0.0; MAX_LANES], [0; MAX_LANES]);
        S::as_mut_simd_f32s(&mut gains).0[0] = self.gains;
        S::as_mut_simd_u32s(&mut vectors).0[0] = self.vectors;
        let lanes = gains.iter().zip(&vectors).take(S::F32_LANES);
        let best =
            ArgMax::of_lanes(lanes.map(|(&gain, &vector)| (f64::from(gain), vector as usize)));
        (best, f64::from(self.simd.reduce_max_f32s(self.gaps)))
    }
}

impl<K: KernelRows> WithSimd for SelectSecond<'_, K> {
    /// The best gain, and the maximum of gᵢ − gⱼ over I_low.
    type Output = (ArgMax, f64);

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // rounding is the purpose
    fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
        let mut search = Search::new(simd, self.k_ii);
        let mut buffer = K::decode_buffer();
        let kernel = self.row.chunks(BLOCK).zip(self.diagonal.chunks(BLOCK));
        let gradient = self.gradient.chunks(BLOCK);
        let gradient = gradient.zip(self.low_mask.chunks(BLOCK));
        for ((row, diagonal), (gradient, mask)) in kernel.zip(gradient) {
            let differences = &mut self.differences[..gradient.len()];
            for (difference, g) in differences.iter_mut().zip(gradient) {
                *difference = (self.g_max - g) as f32;
            }
            let (differences, last_difference) = S::as_simd_f32s(differences);
            let (masks, last_mask) = S::as_simd_f32s(mask);
            let (rows, last_row) = S::as_simd_f32s(self.kernel.decode(row, &mut buffer));
            let (diagonals, last_diagonal) = S::as_simd_f32s(diagonal);
            let vectors = differences.iter().zip(masks).zip(rows).zip(diagonals);
            for (((&difference, &mask), &row), &diagonal) in vectors {
                search.include(difference, mask, row, diagonal);
            }
            if !last_row.is_empty() {
                // Lanes beyond the end are 0: their gain is 0.
                search.include(
                    simd.partial_load_f32s(last_difference),
                    simd.partial_load_f32s(last_mask),
                    simd.partial_load_f32s(last_row),
                    simd.partial_load_f32s(last_diagonal),
                );
            }
        }
        search.best()
    }
}

/// g ← g − s(Kᵢ − Kⱼ); finds the next i on the way.
///
/// In a conjugate direction, Kd ← Kᵢ − Kⱼ − μKd replaces the difference.
pub(super) struct UpdateGradient<'a, K: KernelRows> {
    pub(super) kernel: K,
    pub(super) rows: [&'a [K::Value]; 2],
    pub(super) length: f64,
    /// μ and Kd.
    pub(super) conjugate: Option<(f64, &'a mut [f64])>,
    pub(super) gradient: &'a mut [f64],
    /// 0 in I_up, −∞ elsewhere.
    pub(super) up_mask: &'a [f64],
}

/// Gradients per group. Only the maximum of a group is kept; its index is found at the end.
const GROUP: usize = 64;

/// Independent vector accumulators of a maximum, to hide its latency.
const ACCUMULATORS: usize = 4;

/// The maximum gradient over I_up.
#[inline(always)]
fn max_over_up<S: Simd>(simd: S, gradient: &[f64], up_mask: &[f64]) -> f64 {
    let (gradients, last_gradient) = S::as_simd_f64s(gradient);
    let (ups, last_up) = S::as_simd_f64s(up_mask);
    let (gradients, more_gradients) = gradients.as_chunks::<ACCUMULATORS>();
    let (ups, more_ups) = ups.as_chunks::<ACCUMULATORS>();
    let mut maxima = [simd.splat_f64s(f64::NEG_INFINITY); ACCUMULATORS];
    for (gradients, ups) in gradients.iter().zip(ups) {
        for ((max, &gradient), &up) in maxima.iter_mut().zip(gradients).zip(ups) {
            *max = simd.max_f64s(simd.add_f64s(gradient, up), *max);
        }
    }
    for ((max, &gradient), &up) in maxima.iter_mut().zip(more_gradients).zip(more_ups) {
        *max = simd.max_f64s(simd.add_f64s(gradient, up), *max);
    }
    let [a, b, c, d] = maxima;
    let max = simd.max_f64s(simd.max_f64s(a, b), simd.max_f64s(c, d));
    let last = last_gradient.iter().zip(last_up).map(|(g, up)| g + up);
    last.fold(simd.reduce_max_f64s(max), f64::max)
}

impl<K: KernelRows> WithSimd for UpdateGradient<'_, K> {
    /// The maximum gradient over I_up.
    type Output = ArgMax;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> ArgMax {
        let [i, j] = self.rows.map(|row| row.chunks(BLOCK));
        let gradient = self.gradient.chunks_mut(BLOCK);
        let gradient = gradient.zip(self.up_mask.chunks(BLOCK));
        let (mu, kd) = self.conjugate.unwrap_or((0.0, &mut []));
        let mut kd = kd.chunks_mut(BLOCK);
        let mut best = ArgMax::NONE;
        let (mut buffer_i, mut buffer_j) = (K::decode_buffer(), K::decode_buffer());
        for (block, ((i, j), (gradient, up_mask))) in i.zip(j).zip(gradient).enumerate() {
            let i = self.kernel.decode(i, &mut buffer_i);
            let j = self.kernel.decode(j, &mut buffer_j);
            let differences = i.iter().zip(j).map(|(&i, &j)| f64::from(i) - f64::from(j));
            if let Some(kd) = kd.next() {
                for ((g, kd), difference) in gradient.iter_mut().zip(kd).zip(differences) {
                    *kd = multiply_add::<S>(-mu, *kd, difference);
                    *g = multiply_add::<S>(-self.length, *kd, *g);
                }
            } else {
                for (g, difference) in gradient.iter_mut().zip(differences) {
                    *g = multiply_add::<S>(-self.length, difference, *g);
                }
            }
            let groups = gradient.chunks(GROUP).zip(up_mask.chunks(GROUP));
            for (group, (gradient, up_mask)) in groups.enumerate() {
                let max = max_over_up(simd, gradient, up_mask);
                best.include(max, block * (BLOCK / GROUP) + group);
            }
        }
        let start = best.index * GROUP;
        let group = start..self.gradient.len().min(start + GROUP);
        let values = self.gradient[group.clone()]
            .iter()
            .zip(&self.up_mask[group]);
        let mut values = values.map(|(g, up)| g + up);
        best.index = start + values.rposition(|value| value == best.value).unwrap_or(0);
        best
    }
}
