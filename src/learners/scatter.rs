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

use super::triangle;
use crate::data::Row;
use crate::runtime::simd::Simd;

/// Whether sums are taken about the means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    Means,
    Zero,
}

impl About {
    /// Takes a row into `head`, which holds W and the means, and turns it into δ. Gives the weight
    /// with which δδᵀ counts.
    #[inline(always)]
    pub(super) fn take(self, head: &mut [f64], z: &mut [f64], weight: f64) -> f64 {
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

/// W, the means and the triangle of S for `n` variables, as one slice of numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scatter {
    pub(super) n: usize,
    pub(super) about: About,
}

impl Scatter {
    /// How many numbers.
    pub(super) fn len(self) -> usize {
        1 + self.n + triangle::len(self.n)
    }

    /// The means; zeros where sums are taken about zero.
    pub(super) fn means(self, numbers: &[f64]) -> &[f64] {
        &numbers[1..=self.n]
    }

    /// The triangle of S.
    pub(super) fn triangle(self, numbers: &[f64]) -> &[f64] {
        &numbers[1 + self.n..]
    }

    /// Takes in a row, which is overwritten.
    #[inline(always)]
    pub(super) fn add<S: Simd>(self, simd: S, numbers: &mut [f64], z: &mut [f64], weight: f64) {
        let (head, triangle) = numbers.split_at_mut(1 + self.n);
        let weight = self.about.take(head, z, weight);
        triangle::rank_one(simd, triangle, weight, z);
    }

    /// Takes in what others have seen of other rows.
    #[inline(always)]
    pub(super) fn merge<S: Simd>(self, simd: S, numbers: &mut [f64], others: &[f64]) {
        // The other means, with all their weight, are a row like any other.
        let mut z = self.means(others).to_vec();
        self.add(simd, numbers, &mut z, others[0]);
        super::add(&mut numbers[1 + self.n..], self.triangle(others));
    }
}

/// Writes a row into `z`, which may be longer, zeros and all.
#[inline(always)]
pub(super) fn expand<R: Row>(row: R, z: &mut [f64]) {
    z.fill(0.0);
    for (feature, value) in row.entries() {
        z[feature] = value;
    }
}
