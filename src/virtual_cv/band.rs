//! Symmetric band matrices: B + λI = LDLᵀ for many λ, and what follows from it.
//!
//! L has the width w of the band, so that a factor costs O(nw²) and L⁻¹a costs O(nw): beside the
//! n³ of reducing a matrix to B, a grid of λ is nearly free. A run of columns is eliminated side by
//! side, one lane of a SIMD vector each.

use super::linalg::{self, Mat, MatRef};
use crate::linalg::start_vector;
use crate::runtime::simd::{self, Simd, WithSimd};

/// SIMD vectors side by side: enough to hide the latency of a fused multiply-add.
const VECTORS: usize = 8;
/// Rows that are transposed at a time: a line of the cache.
const ROWS: usize = 8;
/// Steps of the power method: the largest eigenvalue to well within a factor of two.
const STEPS: usize = 12;

/// A symmetric matrix whose (i, j) is zero for |i − j| > w.
#[derive(Clone, Debug)]
pub(super) struct Band {
    width: usize,
    /// For every row its entries i − w to i; zeros stand for columns before the first.
    rows: Vec<f64>,
}

impl Band {
    /// From the lower triangle.
    pub(super) fn new(n: usize, width: usize, entry: impl Fn(usize, usize) -> f64) -> Self {
        let places = (0..n).flat_map(|i| (0..=width).map(move |k| (i, k)));
        let rows = places.map(|(i, k)| (i + k).checked_sub(width).map_or(0.0, |j| entry(i, j)));
        Self {
            width,
            rows: rows.collect(),
        }
    }

    /// A diagonal matrix.
    pub(super) fn diagonal(values: &[f64]) -> Self {
        Self {
            width: 0,
            rows: values.to_vec(),
        }
    }

    pub(super) fn n_rows(&self) -> usize {
        self.rows.len() / (self.width + 1)
    }

    fn row(&self, i: usize) -> &[f64] {
        let stored = self.width + 1;
        &self.rows[i * stored..][..stored]
    }

    pub(super) fn trace(&self) -> f64 {
        (0..self.n_rows()).map(|i| self.row(i)[self.width]).sum()
    }

    /// The lower triangle.
    pub(super) fn to_dense(&self) -> Mat<f64> {
        let mut out = Mat::zeros(self.n_rows(), self.n_rows());
        for i in 0..self.n_rows() {
            for (k, &v) in self.row(i).iter().enumerate() {
                if let Some(j) = (i + k).checked_sub(self.width) {
                    out[(i, j)] = v;
                }
            }
        }
        out
    }

    /// LDLᵀ = B + λI, whatever the signs in D.
    pub(super) fn factor(&self, alpha: f64) -> Factor {
        let (n, width) = (self.n_rows(), self.width);
        let mut rows = vec![0.0; n * width];
        let mut pivots = vec![0.0; n];
        // A row of LD.
        let mut scaled = vec![0.0; width];
        for i in 0..n {
            let (above, row) = rows.split_at_mut(i * width);
            let first = i.saturating_sub(width);
            let entries = self.row(i);
            let mut pivot = entries[width] + alpha;
            for j in first..i {
                let k = j + width - i;
                let known = j - first;
                let other = &above[(j + 1) * width - known..(j + 1) * width];
                let pairs = other.iter().zip(&scaled[k - known..k]);
                scaled[k] = entries[k] - pairs.map(|(l, s)| l * s).sum::<f64>();
                row[k] = scaled[k] / pivots[j];
                pivot -= scaled[k] * row[k];
            }
            pivots[i] = pivot;
        }
        for l in &mut rows {
            *l = -*l;
        }
        Factor {
            width,
            rows,
            pivots,
        }
    }

    /// (d_max + λ)/(d_min + λ), nearly, of a B + λI with this factor.
    pub(super) fn condition(&self, alpha: f64, factor: &Factor) -> f64 {
        let n = self.n_rows();
        let norm = largest(n, |x| self.multiply(alpha, x));
        norm * largest(n, |x| factor.solve(x))
    }

    /// x ← (B + λI)x.
    fn multiply(&self, alpha: f64, x: &mut [f64]) {
        let old = x.to_vec();
        for x in x.iter_mut() {
            *x *= alpha;
        }
        for i in 0..self.n_rows() {
            let first = i.saturating_sub(self.width);
            let row = &self.row(i)[first + self.width - i..];
            x[i] += row
                .iter()
                .zip(&old[first..=i])
                .map(|(b, x)| b * x)
                .sum::<f64>();
            for (x, b) in x[first..i].iter_mut().zip(row) {
                *x += b * old[i];
            }
        }
    }
}

/// The largest |eigenvalue| of what `apply` multiplies by, from below, by the power method.
fn largest(n: usize, apply: impl Fn(&mut [f64])) -> f64 {
    let mut x = start_vector(n);
    let mut found = 0.0;
    for step in 0..=STEPS {
        if step > 0 {
            apply(&mut x);
        }
        found = x.iter().map(|x| x * x).sum::<f64>().sqrt();
        for x in &mut x {
            *x /= found;
        }
    }
    found
}

/// L, unit lower triangular, and D of a band matrix.
#[derive(Debug)]
pub(super) struct Factor {
    width: usize,
    /// For every row of −L its entries i − w to i − 1.
    rows: Vec<f64>,
    pivots: Vec<f64>,
}

impl Factor {
    pub(super) fn is_definite(&self) -> bool {
        self.pivots.iter().all(|&d| d > 0.0)
    }

    /// The first column that row `i` has entries in, and those before the diagonal.
    #[inline(always)]
    fn row(&self, i: usize) -> (usize, &[f64]) {
        let first = i.saturating_sub(self.width);
        let end = (i + 1) * self.width;
        (first, &self.rows[end - (i - first)..end])
    }

    /// x ← (B + λI)⁻¹x.
    pub(super) fn solve(&self, x: &mut [f64]) {
        for i in 0..x.len() {
            let (first, row) = self.row(i);
            x[i] += row
                .iter()
                .zip(&x[first..i])
                .map(|(l, x)| l * x)
                .sum::<f64>();
        }
        for (x, d) in x.iter_mut().zip(&self.pivots) {
            *x /= d;
        }
        for i in (0..x.len()).rev() {
            let (first, row) = self.row(i);
            let (before, x) = x.split_at_mut(i);
            for (before, l) in before[first..].iter_mut().zip(row) {
                *before += l * x[0];
            }
        }
    }

    /// Aᵀ(B + λI)⁻¹A.
    pub(super) fn quadratic(&self, a: MatRef<'_, f64>) -> Mat<f64> {
        let half = simd::dispatch(Half { factor: self, a });
        let scaled = Mat::from_fn(half.nrows(), half.ncols(), |i, j| {
            half[(i, j)] / self.pivots[i]
        });
        linalg::product(half.transpose(), scaled.as_ref())
    }
}

/// The diagonals of Aᵀ(B + λI)⁻¹A: a row a factor.
pub(super) fn diagonals(factors: &[Factor], a: MatRef<'_, f64>) -> Mat<f64> {
    simd::dispatch(Diagonals { factors, a })
}

/// One row of as many columns as are eliminated side by side.
type Lanes<S> = [<S as Simd>::f64s; VECTORS];

/// Hands runs of columns of `a` to `each`: the first of them, how many, and their rows.
#[inline(always)]
fn runs<S: Simd>(simd: S, a: MatRef<'_, f64>, mut each: impl FnMut(usize, usize, &[Lanes<S>])) {
    let n_lanes = VECTORS * S::F64_LANES;
    let mut packed = vec![[simd.splat_f64s(0.0); VECTORS]; a.nrows()];
    for first in (0..a.ncols()).step_by(n_lanes) {
        let n = n_lanes.min(a.ncols() - first);
        let lanes: &mut [f64] = bytemuck::cast_slice_mut(packed.as_flattened_mut());
        for (block, lanes) in lanes.chunks_mut(ROWS * n_lanes).enumerate() {
            for c in 0..n {
                for (i, lanes) in lanes.chunks_exact_mut(n_lanes).enumerate() {
                    lanes[c] = a[(block * ROWS + i, first + c)];
                }
            }
        }
        each(first, n, &packed);
    }
}

/// L⁻¹x a row at a time, for `each` to see; no more of it is kept than the next rows need.
#[inline(always)]
fn eliminate<S: Simd>(
    simd: S,
    factor: &Factor,
    x: &[Lanes<S>],
    mut each: impl FnMut(usize, &Lanes<S>),
) {
    let width = factor.width;
    let mut recent = vec![[simd.splat_f64s(0.0); VECTORS]; 3 * width + 1];
    let mut end = 0;
    for (i, &x) in x.iter().enumerate() {
        if end == recent.len() {
            recent.copy_within(end - width.., 0);
            end = width;
        }
        let (_, row) = factor.row(i);
        let mut rest = x;
        for (l, y) in row.iter().zip(&recent[end - row.len()..end]) {
            let l = simd.splat_f64s(*l);
            for (rest, &y) in rest.iter_mut().zip(y) {
                *rest = simd.mul_add_e_f64s(l, y, *rest);
            }
        }
        recent[end] = rest;
        end += 1;
        each(i, &rest);
    }
}

/// L⁻¹A.
struct Half<'a> {
    factor: &'a Factor,
    a: MatRef<'a, f64>,
}

impl WithSimd for Half<'_> {
    type Output = Mat<f64>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Mat<f64> {
        let mut out = Mat::zeros(self.a.nrows(), self.a.ncols());
        runs(simd, self.a, |first, n, x| {
            eliminate(simd, self.factor, x, |i, row| {
                let row: &[f64] = bytemuck::cast_slice(row);
                for (c, v) in row[..n].iter().enumerate() {
                    out[(i, first + c)] = *v;
                }
            });
        });
        out
    }
}

struct Diagonals<'a> {
    factors: &'a [Factor],
    a: MatRef<'a, f64>,
}

impl WithSimd for Diagonals<'_> {
    type Output = Mat<f64>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Mat<f64> {
        let mut out = Mat::zeros(self.factors.len(), self.a.ncols());
        runs(simd, self.a, |first, n, x| {
            for (l, factor) in self.factors.iter().enumerate() {
                let mut sums = [simd.splat_f64s(0.0); VECTORS];
                eliminate(simd, factor, x, |i, row| {
                    let gain = simd.splat_f64s(factor.pivots[i].recip());
                    for (sum, &v) in sums.iter_mut().zip(row) {
                        *sum = simd.mul_add_e_f64s(simd.mul_f64s(gain, v), v, *sum);
                    }
                });
                let sums: &[f64] = bytemuck::cast_slice(&sums);
                for (c, sum) in sums[..n].iter().enumerate() {
                    out[(l, first + c)] = *sum;
                }
            }
        });
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::virtual_cv::linalg::{Cholesky, mirrored, product};

    fn sample(n: usize, width: usize) -> Band {
        Band::new(n, width, |i, j| {
            ((i * 7 + j * 3) % 5) as f64 - 2.0 + 20.0 * f64::from(i == j)
        })
    }

    fn shifted(band: &Band, alpha: f64) -> Mat<f64> {
        let mut dense = mirrored(band.to_dense());
        (0..dense.nrows()).for_each(|i| dense[(i, i)] += alpha);
        dense
    }

    #[test]
    fn everything_is_that_of_the_dense_inverse() {
        for (n, width) in [(1, 0), (5, 0), (5, 9), (40, 1), (100, 8)] {
            let band = sample(n, width);
            let a = Mat::from_fn(n, 71, |i, j| ((i * 5 + j * 11) % 7) as f64 - 3.0);
            let factors = [band.factor(0.0), band.factor(3.0)];
            let diagonals = diagonals(&factors, a.as_ref());
            for (l, alpha) in [0.0, 3.0].into_iter().enumerate() {
                let mut solved = a.clone();
                let dense = Cholesky::new(&shifted(&band, alpha), 0.0).expect("definite");
                dense.solve(&mut solved);
                let expected = product(a.transpose(), solved.as_ref());
                let found = factors[l].quadratic(a.as_ref());
                assert!((&found - &expected).norm_max() < 1e-12 * n as f64);
                for c in 0..a.ncols() {
                    assert!((diagonals[(l, c)] - expected[(c, c)]).abs() < 1e-12 * n as f64);
                    let mut x = a.col_as_slice(c).to_vec();
                    factors[l].solve(&mut x);
                    for (i, x) in x.iter().enumerate() {
                        assert!((x - solved[(i, c)]).abs() < 1e-13);
                    }
                }
            }
        }
    }

    #[test]
    fn signs_and_conditions_are_told() {
        let band = Band::diagonal(&[4.0, -1.0, 2.0]);
        let factor = band.factor(0.5);
        assert!(!factor.is_definite());
        assert!((band.condition(0.5, &factor) - 9.0).abs() < 0.1);
        assert!(band.factor(1.5).is_definite());
        assert_eq!(band.trace(), 5.0);
        let ones = Mat::from_fn(3, 1, |_, _| 1.0);
        let expected = 1.0 / 4.5 - 1.0 / 0.5 + 1.0 / 2.5;
        assert!((factor.quadratic(ones.as_ref())[(0, 0)] - expected).abs() < 1e-14);
        let (n, width) = (60, 3);
        let band = sample(n, width);
        let (values, _) = linalg::eigen(&band.to_dense()).expect("finite");
        let condition = (values[n - 1] + 1.0) / (values[0] + 1.0);
        let found = band.condition(1.0, &band.factor(1.0));
        assert!((0.5..=1.0).contains(&(found / condition)));
    }
}
