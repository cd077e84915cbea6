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

#[inline(always)]
fn smaller(a: f64, b: f64) -> f64 {
    if b < a { b } else { a }
}

/// The largest of the lanes.
#[inline(always)]
fn largest(lanes: [f64; LANES]) -> f64 {
    lanes.into_iter().fold(f64::NEG_INFINITY, larger)
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

/// The largest gradient in a block, each with its addend: 0 or −∞.
#[inline(always)]
fn highest(gradient: &[f64], addend: &[f32]) -> f64 {
    let mut lanes = [f64::NEG_INFINITY; LANES];
    let (gradients, last) = gradient.as_chunks::<LANES>();
    let (addends, last_addend) = addend.as_chunks::<LANES>();
    for (g, a) in gradients.iter().zip(addends) {
        for lane in 0..LANES {
            lanes[lane] = larger(lanes[lane], g[lane] + f64::from(a[lane]));
        }
    }
    for (lane, (g, &a)) in last.iter().zip(last_addend).enumerate() {
        lanes[lane] = larger(lanes[lane], g + f64::from(a));
    }
    largest(lanes)
}

/// The second variable of a pair whose first, `i`, is chosen: the one that gains most.
///
/// Over those that may fall and stand below `i`: (gᵢ − gⱼ)² / (Kᵢᵢ + Kⱼⱼ − 2Kᵢⱼ), Fan et al. 2005.
pub(super) struct Partner<'a> {
    pub(super) row: &'a [f32],
    pub(super) diagonal: &'a [f32],
    pub(super) gradient: &'a [f64],
    /// 0 where β may fall, ∞ elsewhere.
    pub(super) fall: &'a [f32],
    /// gᵢ and Kᵢᵢ.
    pub(super) first: (f64, f64),
}

impl Partner<'_> {
    #[inline(always)]
    fn gain(&self, row: f32, diagonal: f32, gradient: f64, fall: f32) -> f64 {
        let (top, own) = self.first;
        let below = larger(0.0, top - (gradient + f64::from(fall)));
        let curvature = own + f64::from(diagonal) - 2.0 * f64::from(row);
        below * below / larger(LEAST_CURVATURE, curvature)
    }

    #[inline(always)]
    fn gain_at(&self, j: usize) -> f64 {
        self.gain(
            self.row[j],
            self.diagonal[j],
            self.gradient[j],
            self.fall[j],
        )
    }

    /// The best gain of a block, and the least gradient of those that may fall.
    #[inline(always)]
    fn search(&self, block: Range<usize>) -> (f64, f64) {
        let (rows, _) = self.row[block.clone()].as_chunks::<LANES>();
        let (diagonals, _) = self.diagonal[block.clone()].as_chunks::<LANES>();
        let (gradients, _) = self.gradient[block.clone()].as_chunks::<LANES>();
        let (falls, rest) = self.fall[block.clone()].as_chunks::<LANES>();
        let (mut gains, mut lows) = ([0.0; LANES], [f64::INFINITY; LANES]);
        let lines = rows.iter().zip(diagonals).zip(gradients).zip(falls);
        for (((row, diagonal), gradient), fall) in lines {
            for lane in 0..LANES {
                let gain = self.gain(row[lane], diagonal[lane], gradient[lane], fall[lane]);
                gains[lane] = larger(gains[lane], gain);
                lows[lane] = smaller(lows[lane], gradient[lane] + f64::from(fall[lane]));
            }
        }
        for (lane, j) in (block.end - rest.len()..block.end).enumerate() {
            gains[lane] = larger(gains[lane], self.gain_at(j));
            lows[lane] = smaller(lows[lane], self.gradient[j] + f64::from(self.fall[j]));
        }
        (
            largest(gains),
            lows.into_iter().fold(f64::INFINITY, smaller),
        )
    }
}

impl WithSimd for Partner<'_> {
    /// The best gain, and the least gradient of those that may fall.
    type Output = (Best, f64);

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Self::Output {
        let n = self.row.len();
        let (mut best, mut lowest) = (Best::NONE, f64::INFINITY);
        for block in blocks(n) {
            let (gain, low) = self.search(block.clone());
            best.improve(gain, block.start);
            lowest = smaller(lowest, low);
        }
        (locate(best, n, |j| self.gain_at(j)), lowest)
    }
}

/// The gradient after a step: g ← g − s(Kᵢ − Kⱼ); finds the next first variable on the way.
pub(super) struct Step<'a> {
    pub(super) rows: [&'a [f32]; 2],
    pub(super) length: f64,
    pub(super) gradient: &'a mut [f64],
    /// 0 where β may rise, −∞ elsewhere.
    pub(super) rise: &'a [f32],
}

impl WithSimd for Step<'_> {
    /// The greatest gradient of those that may rise.
    type Output = Best;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Best {
        let Self {
            rows: [i, j],
            length,
            gradient,
            rise,
        } = self;
        let n = gradient.len();
        let mut best = Best::NONE;
        for block in blocks(n) {
            let part = &mut gradient[block.clone()];
            let rows = i[block.clone()].iter().zip(&j[block.clone()]);
            for (g, (&i, &j)) in part.iter_mut().zip(rows) {
                *g -= length * (f64::from(i) - f64::from(j));
            }
            best.improve(highest(part, &rise[block.clone()]), block.start);
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
