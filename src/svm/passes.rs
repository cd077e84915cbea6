//! The two loops of an SMO iteration, over contiguous arrays, without branches.
//!
//! Whether a variable may rise or fall is an addend, 0 or an infinity, so that one that may not is
//! never chosen. A block's best value is found with vectors, its place afterwards with a search in
//! the best block alone.

use std::ops::Range;

use crate::simd::{Simd, WithSimd};

/// Variables whose best is found before the next are looked at.
const BLOCK: usize = 256;

/// Values that are compared side by side.
const LANES: usize = 8;

/// The curvature of a pair whose kernel values say it has none, as in LIBSVM.
pub(super) const LEAST_CURVATURE: f64 = 1e-12;

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
}

#[inline(always)]
fn larger(a: f64, b: f64) -> f64 {
    if b > a { b } else { a }
}

/// The largest `value(at)` of a block.
#[inline(always)]
fn maximum(block: Range<usize>, value: impl Fn(usize) -> f64) -> f64 {
    let mut lanes = [f64::NEG_INFINITY; LANES];
    let mut at = block.start;
    while at + LANES <= block.end {
        for (lane, most) in lanes.iter_mut().enumerate() {
            *most = larger(*most, value(at + lane));
        }
        at += LANES;
    }
    let tail = (at..block.end).map(value);
    lanes
        .into_iter()
        .chain(tail)
        .fold(f64::NEG_INFINITY, larger)
}

/// The blocks that `n` variables make.
#[inline(always)]
fn blocks(n: usize) -> impl Iterator<Item = Range<usize>> {
    (0..n)
        .step_by(BLOCK)
        .map(move |start| start..(start + BLOCK).min(n))
}

/// Where in its block the best value stands, once the best block is known.
#[inline(always)]
fn locate(best: Best, n: usize, value: impl Fn(usize) -> f64) -> Best {
    let block = best.at..(best.at + BLOCK).min(n);
    let at = block.clone().rfind(|&at| value(at) == best.value);
    Best {
        at: at.unwrap_or(block.start),
        ..best
    }
}

/// The second variable of a pair whose first, `i`, is chosen: the one that gains most.
///
/// Over those that may fall and stand below `i`: (gᵢ − gⱼ)² / (Kᵢᵢ + Kⱼⱼ − 2Kᵢⱼ), Fan et al. 2005.
pub(super) struct Partner<'a> {
    pub(super) row: &'a [f32],
    pub(super) diagonal: &'a [f32],
    pub(super) gradient: &'a [f64],
    pub(super) fall: &'a [f32],
    /// gᵢ and Kᵢᵢ.
    pub(super) first: (f64, f64),
}

impl WithSimd for Partner<'_> {
    /// The best gain, and the least gradient of those that may fall.
    type Output = (Best, f64);

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Self::Output {
        let n = self.row.len();
        let (top, own) = self.first;
        let (row, diagonal) = (&self.row[..n], &self.diagonal[..n]);
        let (gradient, fall) = (&self.gradient[..n], &self.fall[..n]);
        let gain = |j: usize| {
            let below = top - (gradient[j] + f64::from(fall[j]));
            let below = if below > 0.0 { below } else { 0.0 };
            let curvature = own + f64::from(diagonal[j]) - 2.0 * f64::from(row[j]);
            let curvature = larger(curvature, LEAST_CURVATURE);
            below * below / curvature
        };
        let mut best = Best::NONE;
        let mut lowest = f64::INFINITY;
        for block in blocks(n) {
            let low = maximum(block.clone(), |j| -(gradient[j] + f64::from(fall[j])));
            lowest = -larger(-lowest, low);
            // Nobody in this block stands below `i`: the divisions would be in vain.
            if -low < top {
                best.improve(maximum(block.clone(), gain), block.start);
            }
        }
        (locate(best, n, gain), lowest)
    }
}

/// The gradient after a step: g ← g − s(Kᵢ − Kⱼ); finds the next first variable on the way.
pub(super) struct Step<'a> {
    pub(super) rows: [&'a [f32]; 2],
    pub(super) length: f64,
    pub(super) gradient: &'a mut [f64],
    pub(super) rise: &'a [f32],
}

impl WithSimd for Step<'_> {
    /// The greatest gradient of those that may rise.
    type Output = Best;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Best {
        let n = self.gradient.len();
        let [i, j] = self.rows.map(|row| &row[..n]);
        let rise = &self.rise[..n];
        let gradient = self.gradient;
        let mut best = Best::NONE;
        for block in blocks(n) {
            let rows = i[block.clone()].iter().zip(&j[block.clone()]);
            for (g, (&i, &j)) in gradient[block.clone()].iter_mut().zip(rows) {
                *g -= self.length * (f64::from(i) - f64::from(j));
            }
            let highest = maximum(block.clone(), |at| gradient[at] + f64::from(rise[at]));
            best.improve(highest, block.start);
        }
        locate(best, n, |at| gradient[at] + f64::from(rise[at]))
    }
}

/// g ← g − δK over one row.
pub(super) struct Subtract<'a> {
    pub(super) row: &'a [f32],
    pub(super) delta: f64,
    pub(super) gradient: &'a mut [f64],
}

impl WithSimd for Subtract<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for (g, &k) in self.gradient.iter_mut().zip(self.row) {
            *g -= self.delta * f64::from(k);
        }
    }
}
