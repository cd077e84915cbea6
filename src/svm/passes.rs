//! The two loops of an SMO iteration, over contiguous arrays, without branches.
//!
//! Whether a variable may rise or fall is an addend, 0 or an infinity, so that one that may not is
//! never chosen. Of gains, every lane of a vector keeps the best of its own, and which vector that was.
//!
//! Gradients are f64, since they are sums of very many steps. Gains are only compared, and kernel
//! values have no more digits than an f32: twice as many of them are looked at at a time.

use super::gram::{BLOCK, Lines};
use crate::runtime::simd::{Simd, WithSimd, multiply_add};

/// No vector has more lanes.
const MOST_LANES: usize = 16;

/// The curvature of a pair whose kernel values say it has none, as in LIBSVM.
pub(super) const LEAST_CURVATURE: f32 = 1e-12;

/// A value and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Best {
    pub(super) value: f64,
    pub(super) at: usize,
}

impl Best {
    /// Less than anything.
    pub(super) const NONE: Self = Self {
        value: f64::NEG_INFINITY,
        at: 0,
    };

    /// Takes the better of the two; the one that came last where they are equal, as LIBSVM does.
    #[inline(always)]
    pub(super) fn improve(&mut self, value: f64, at: usize) {
        if value >= self.value {
            *self = Self { value, at };
        }
    }

    /// The best of some lanes, each with the vector that its value stands in.
    #[inline(always)]
    fn of_lanes(lanes: impl ExactSizeIterator<Item = (f64, usize)>) -> Self {
        let (mut best, n_lanes) = (Self::NONE, lanes.len());
        for (lane, (value, vector)) in lanes.enumerate() {
            let at = n_lanes * vector + lane;
            if value > best.value || (value == best.value && at > best.at) {
                best = Self { value, at };
            }
        }
        best
    }
}

/// The second variable of a pair whose first, `i`, is chosen: the one that gains most.
///
/// Over those that may fall and stand below `i`: (gᵢ − gⱼ)² / (Kᵢᵢ + Kⱼⱼ − 2Kᵢⱼ), Fan et al. 2005.
pub(super) struct Partner<'a, L: Lines> {
    pub(super) lines: L,
    pub(super) row: &'a [L::Value],
    pub(super) diagonal: &'a [f32],
    pub(super) gradient: &'a [f64],
    /// 0 where β may fall, ∞ elsewhere.
    pub(super) fall: &'a [f32],
    /// gᵢ.
    pub(super) top: f64,
    /// Kᵢᵢ.
    pub(super) own: f32,
    /// Room for a block of differences.
    pub(super) differences: &'a mut [f32; BLOCK],
}

/// What the search for a partner has seen so far, in each lane.
struct Search<S: Simd> {
    simd: S,
    own: S::f32s,
    gains: S::f32s,
    /// The vector of the best gain, and the one that comes next.
    vectors: S::u32s,
    next: S::u32s,
    /// How far below `i` the lowest stands that may fall.
    gaps: S::f32s,
}

impl<S: Simd> Search<S> {
    #[inline(always)]
    fn new(simd: S, own: f32) -> Self {
        Self {
            simd,
            own: simd.splat_f32s(own),
            gains: simd.splat_f32s(0.0),
            vectors: simd.splat_u32s(0),
            next: simd.splat_u32s(0),
            gaps: simd.splat_f32s(0.0),
        }
    }

    #[inline(always)]
    fn look(&mut self, difference: S::f32s, fall: S::f32s, row: S::f32s, diagonal: S::f32s) {
        let simd = self.simd;
        let below = simd.max_f32s(simd.splat_f32s(0.0), simd.sub_f32s(difference, fall));
        let curvature = simd.sub_f32s(simd.add_f32s(self.own, diagonal), simd.add_f32s(row, row));
        let curvature = simd.max_f32s(simd.splat_f32s(LEAST_CURVATURE), curvature);
        let gain = simd.div_f32s(simd.mul_f32s(below, below), curvature);
        let is_better = simd.greater_than_or_equal_f32s(gain, self.gains);
        self.gains = simd.max_f32s(gain, self.gains);
        self.vectors = simd.select_u32s(is_better, self.next, self.vectors);
        self.next = simd.add_u32s(self.next, simd.splat_u32s(1));
        self.gaps = simd.max_f32s(self.gaps, below);
    }

    #[inline(always)]
    fn best(self) -> (Best, f64) {
        let (mut gains, mut vectors) = ([0.0; MOST_LANES], [0; MOST_LANES]);
        S::as_mut_simd_f32s(&mut gains).0[0] = self.gains;
        S::as_mut_simd_u32s(&mut vectors).0[0] = self.vectors;
        let lanes = gains.iter().zip(&vectors).take(S::F32_LANES);
        let best = Best::of_lanes(lanes.map(|(&gain, &vector)| (f64::from(gain), vector as usize)));
        (best, f64::from(self.simd.reduce_max_f32s(self.gaps)))
    }
}

impl<L: Lines> WithSimd for Partner<'_, L> {
    /// The best gain, and the largest difference to a variable that may fall.
    type Output = (Best, f64);

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // rounding is the purpose
    fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
        let mut search = Search::new(simd, self.own);
        let mut room = L::room();
        let kernel = self.row.chunks(BLOCK).zip(self.diagonal.chunks(BLOCK));
        let gradient = self.gradient.chunks(BLOCK).zip(self.fall.chunks(BLOCK));
        for ((row, diagonal), (gradient, fall)) in kernel.zip(gradient) {
            let differences = &mut self.differences[..gradient.len()];
            for (difference, g) in differences.iter_mut().zip(gradient) {
                *difference = (self.top - g) as f32;
            }
            let (differences, last_difference) = S::as_simd_f32s(differences);
            let (falls, last_fall) = S::as_simd_f32s(fall);
            let (rows, last_row) = S::as_simd_f32s(self.lines.values(row, &mut room));
            let (diagonals, last_diagonal) = S::as_simd_f32s(diagonal);
            let lines = differences.iter().zip(falls).zip(rows).zip(diagonals);
            for (((&difference, &fall), &row), &diagonal) in lines {
                search.look(difference, fall, row, diagonal);
            }
            if !last_row.is_empty() {
                // Lanes beyond the end are 0, and gain nothing.
                search.look(
                    simd.partial_load_f32s(last_difference),
                    simd.partial_load_f32s(last_fall),
                    simd.partial_load_f32s(last_row),
                    simd.partial_load_f32s(last_diagonal),
                );
            }
        }
        search.best()
    }
}

/// The gradient after a step: g ← g − s(Kᵢ − Kⱼ); finds the next first variable on the way.
///
/// In a direction that is turned, v ← Kᵢ − Kⱼ − μv takes the place of the difference.
pub(super) struct Step<'a, L: Lines> {
    pub(super) lines: L,
    pub(super) rows: [&'a [L::Value]; 2],
    pub(super) length: f64,
    /// μ and v.
    pub(super) turned: Option<(f64, &'a mut [f64])>,
    pub(super) gradient: &'a mut [f64],
    /// 0 where β may rise, −∞ elsewhere.
    pub(super) rise: &'a [f64],
}

/// Gradients of which the greatest is kept: where it stands among them is looked up at the end.
const GROUP: usize = 64;

/// Vectors that are compared side by side: one comparison need not wait for the last.
const ABREAST: usize = 4;

/// The greatest gradient of those that may rise.
#[inline(always)]
fn top<S: Simd>(simd: S, gradient: &[f64], rise: &[f64]) -> f64 {
    let (gradients, last_gradient) = S::as_simd_f64s(gradient);
    let (rises, last_rise) = S::as_simd_f64s(rise);
    let (gradients, more_gradients) = gradients.as_chunks::<ABREAST>();
    let (rises, more_rises) = rises.as_chunks::<ABREAST>();
    let mut tops = [simd.splat_f64s(f64::NEG_INFINITY); ABREAST];
    for (gradients, rises) in gradients.iter().zip(rises) {
        for ((top, &gradient), &rise) in tops.iter_mut().zip(gradients).zip(rises) {
            *top = simd.max_f64s(simd.add_f64s(gradient, rise), *top);
        }
    }
    for ((top, &gradient), &rise) in tops.iter_mut().zip(more_gradients).zip(more_rises) {
        *top = simd.max_f64s(simd.add_f64s(gradient, rise), *top);
    }
    let [a, b, c, d] = tops;
    let most = simd.max_f64s(simd.max_f64s(a, b), simd.max_f64s(c, d));
    let last = last_gradient
        .iter()
        .zip(last_rise)
        .map(|(g, rise)| g + rise);
    last.fold(simd.reduce_max_f64s(most), f64::max)
}

impl<L: Lines> WithSimd for Step<'_, L> {
    /// The greatest gradient of those that may rise.
    type Output = Best;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Best {
        let [i, j] = self.rows.map(|row| row.chunks(BLOCK));
        let gradient = self.gradient.chunks_mut(BLOCK).zip(self.rise.chunks(BLOCK));
        let (turn, image) = self.turned.unwrap_or((0.0, &mut []));
        let mut images = image.chunks_mut(BLOCK);
        let mut best = Best::NONE;
        let (mut room_i, mut room_j) = (L::room(), L::room());
        for (block, ((i, j), (gradient, rise))) in i.zip(j).zip(gradient).enumerate() {
            let i = self.lines.values(i, &mut room_i);
            let j = self.lines.values(j, &mut room_j);
            let differences = i.iter().zip(j).map(|(&i, &j)| f64::from(i) - f64::from(j));
            if let Some(image) = images.next() {
                for ((g, v), difference) in gradient.iter_mut().zip(image).zip(differences) {
                    *v = multiply_add::<S>(-turn, *v, difference);
                    *g = multiply_add::<S>(-self.length, *v, *g);
                }
            } else {
                for (g, difference) in gradient.iter_mut().zip(differences) {
                    *g = multiply_add::<S>(-self.length, difference, *g);
                }
            }
            let groups = gradient.chunks(GROUP).zip(rise.chunks(GROUP));
            for (group, (gradient, rise)) in groups.enumerate() {
                best.improve(top(simd, gradient, rise), block * (BLOCK / GROUP) + group);
            }
        }
        let start = best.at * GROUP;
        let group = start..self.gradient.len().min(start + GROUP);
        let values = self.gradient[group.clone()].iter().zip(&self.rise[group]);
        let mut values = values.map(|(g, rise)| g + rise);
        best.at = start + values.rposition(|value| value == best.value).unwrap_or(0);
        best
    }
}

/// Rows that are subtracted together: the gradient is read and written once for all of them.
pub(super) const TOGETHER: usize = 4;

/// g ← g − Σ δK over some rows, one after the other.
pub(super) struct Subtract<'a, L: Lines> {
    pub(super) lines: L,
    pub(super) rows: [&'a [L::Value]; TOGETHER],
    pub(super) deltas: [f64; TOGETHER],
    pub(super) gradient: &'a mut [f64],
}

impl<L: Lines> WithSimd for Subtract<'_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let [a, b, c, d] = self.deltas;
        let [first, second, third, fourth] = self.rows.map(|row| row.chunks(BLOCK));
        let rows = first.zip(second).zip(third.zip(fourth));
        let mut rooms: [L::Room; TOGETHER] = std::array::from_fn(|_| L::room());
        for (gradient, ((k, l), (m, n))) in self.gradient.chunks_mut(BLOCK).zip(rows) {
            let [room_k, room_l, room_m, room_n] = &mut rooms;
            let (k, l) = (self.lines.values(k, room_k), self.lines.values(l, room_l));
            let (m, n) = (self.lines.values(m, room_m), self.lines.values(n, room_n));
            let rows = k.iter().zip(l).zip(m.iter().zip(n));
            for (g, ((&k, &l), (&m, &n))) in gradient.iter_mut().zip(rows) {
                let [k, l, m, n] = [k, l, m, n].map(f64::from);
                *g = *g - a * k - b * l - c * m - d * n;
            }
        }
    }
}
