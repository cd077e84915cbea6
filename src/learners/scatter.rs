//! Sums of squares and products of several variables, about their means or about zero.
//!
//! # Method
//! With means, a row z of weight w changes W, the means and the scatter S = Σ w(z − z̄)(z − z̄)ᵀ by
//!
//! > δ = z − z̄,  S ← S + w·W/(W + w)·δδᵀ,  z̄ ← z̄ + w/(W + w)·δ,  W ← W + w,
//!
//! which never subtracts sums, so means far from zero cost no digits. About zero, S ← S + w·zzᵀ.
//!
//! # References
//! D. H. D. West (1979); T. F. Chan, G. H. Golub, R. J. LeVeque (1983): see `moments`.

use crate::data::Row;
use crate::linalg::packed;
use crate::runtime::simd::Simd;

/// What sums of squares are taken about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Centering {
    Means,
    Zero,
}

impl Centering {
    /// Adds a row to `head`, which holds W and the means, and turns it into δ. Returns the weight
    /// of δδᵀ.
    #[inline(always)]
    pub(super) fn absorb(self, head: &mut [f64], z: &mut [f64], weight: f64) -> f64 {
        let (total, means) = head.split_at_mut(1);
        let before = total[0];
        total[0] += weight;
        if self == Self::Zero || weight <= 0.0 {
            return weight;
        }
        let share = weight / total[0];
        for (z, mean) in z.iter_mut().zip(means) {
            *z -= *mean;
            *mean += share * *z;
        }
        before * share
    }
}

/// W, the means and the triangle of S for `n` variables, as one slice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scatter {
    pub(super) n: usize,
    pub(super) centering: Centering,
}

impl Scatter {
    /// The number of values.
    pub(super) fn len(self) -> usize {
        packed::saturating_len(self.n).saturating_add(1 + self.n)
    }

    /// The means; zeros where sums are taken about zero.
    pub(super) fn means(self, values: &[f64]) -> &[f64] {
        &values[1..=self.n]
    }

    /// The triangle of S.
    pub(super) fn triangle(self, values: &[f64]) -> &[f64] {
        &values[1 + self.n..]
    }

    /// Adds a row, which is overwritten.
    #[inline(always)]
    pub(super) fn add<S: Simd>(self, simd: S, values: &mut [f64], z: &mut [f64], weight: f64) {
        let (head, triangle) = values.split_at_mut(1 + self.n);
        let weight = self.centering.absorb(head, z, weight);
        packed::rank_one(simd, triangle, weight, z);
    }

    /// Adds the scatter of other rows.
    #[inline(always)]
    pub(super) fn merge<S: Simd>(self, simd: S, values: &mut [f64], others: &[f64]) {
        // The other means, with all their weight, are a row like any other.
        let mut z = self.means(others).to_vec();
        self.add(simd, values, &mut z, others[0]);
        super::add(&mut values[1 + self.n..], self.triangle(others));
    }
}

/// Writes a row into `z`, which may be longer, with its zeros.
#[inline(always)]
pub(super) fn densify<R: Row>(row: R, z: &mut [f64]) {
    z.fill(0.0);
    for (feature, value) in row.entries() {
        z[feature] = value;
    }
}
