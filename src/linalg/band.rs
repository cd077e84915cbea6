//! Symmetric band matrices.
//!
//! # Problem
//! Solve with B + λI, and form aᵀ(B + λI)⁻¹a, for many λ and many vectors a.
//!
//! # Method
//! B + λI = LDLᵀ, where L has the bandwidth w of B. Several columns are eliminated at
//! once, one per lane of a SIMD vector.
//!
//! # Cost
//! O(nw²) for a factor, O(nw) for L⁻¹a: little beside the n³ of the reduction to B.

use super::{Mat, MatRef, product, start_vector};
use crate::runtime::simd::{self, Simd, WithSimd};

/// SIMD vectors of a panel: enough to hide the latency of a fused multiply-add.
const PANEL_VECTORS: usize = 8;
/// Rows that are transposed at a time: the values of a cache line.
const CACHE_LINE_VALUES: usize = 8;
/// Iterations of the power method: the largest eigenvalue to well within a factor of two.
const POWER_ITERATIONS: usize = 12;

/// A symmetric matrix whose (i, j) is zero for |i − j| > w.
#[derive(Clone, Debug)]
pub(crate) struct BandMatrix {
    /// w.
    width: usize,
    /// The entries i − w to i of each row; 0 for columns before the first.
    rows: Vec<f64>,
}

impl BandMatrix {
    /// From the lower triangle.
    pub(crate) fn new(n: usize, width: usize, entry: impl Fn(usize, usize) -> f64) -> Self {
        let entries = (0..n).flat_map(|i| (0..=width).map(move |k| (i, k)));
        let rows = entries.map(|(i, k)| (i + k).checked_sub(width).map_or(0.0, |j| entry(i, j)));
        Self {
            width,
            rows: rows.collect(),
        }
    }

    /// A diagonal matrix.
    pub(crate) fn diagonal(values: &[f64]) -> Self {
        Self {
            width: 0,
            rows: values.to_vec(),
        }
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.rows.len() / (self.width + 1)
    }

    fn row(&self, i: usize) -> &[f64] {
        let stored = self.width + 1;
        &self.rows[i * stored..][..stored]
    }

    pub(crate) fn trace(&self) -> f64 {
        (0..self.n_rows()).map(|i| self.row(i)[self.width]).sum()
    }

    /// The lower triangle.
    pub(crate) fn to_dense(&self) -> Mat<f64> {
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

    /// LDLᵀ = B + λI; D may have negative entries.
    pub(crate) fn factor(&self, alpha: f64) -> BandFactor {
        let (n, width) = (self.n_rows(), self.width);
        let mut rows = vec![0.0; n * width];
        let mut pivots = vec![0.0; n];
        // Row i of LD.
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
        BandFactor {
            width,
            rows,
            pivots,
        }
    }

    /// An estimate of the condition number (d_max + λ)/(d_min + λ) of B + λI, given its factor.
    pub(crate) fn condition(&self, alpha: f64, factor: &BandFactor) -> f64 {
        let n = self.n_rows();
        let norm = spectral_norm(n, |x| self.multiply(alpha, x));
        norm * spectral_norm(n, |x| factor.solve(x))
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

/// A lower bound on the largest |eigenvalue| of the matrix that `apply` multiplies by: the power
/// method.
fn spectral_norm(n: usize, apply: impl Fn(&mut [f64])) -> f64 {
    let mut x = start_vector(n);
    let mut found = 0.0;
    for iteration in 0..=POWER_ITERATIONS {
        if iteration > 0 {
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
pub(crate) struct BandFactor {
    width: usize,
    /// The entries i − w to i − 1 of each row of −L.
    rows: Vec<f64>,
    /// D.
    pivots: Vec<f64>,
}

impl BandFactor {
    /// Returns true if B + λI is positive definite.
    pub(crate) fn is_definite(&self) -> bool {
        self.pivots.iter().all(|&d| d > 0.0)
    }

    /// The first column of row `i` inside the band, and its entries before the diagonal.
    #[inline(always)]
    fn row(&self, i: usize) -> (usize, &[f64]) {
        let first = i.saturating_sub(self.width);
        let end = (i + 1) * self.width;
        (first, &self.rows[end - (i - first)..end])
    }

    /// x ← (B + λI)⁻¹x.
    pub(crate) fn solve(&self, x: &mut [f64]) {
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
    pub(crate) fn quadratic_form(&self, a: MatRef<'_, f64>) -> Mat<f64> {
        let half = simd::dispatch(SolveLower { factor: self, a });
        let scaled = Mat::from_fn(half.nrows(), half.ncols(), |i, j| {
            half[(i, j)] / self.pivots[i]
        });
        product(half.transpose(), scaled.as_ref())
    }
}

/// The diagonal of Aᵀ(B + λI)⁻¹A: one row per factor.
pub(crate) fn quadratic_form_diagonals(factors: &[BandFactor], a: MatRef<'_, f64>) -> Mat<f64> {
    simd::dispatch(Diagonals { factors, a })
}

/// One row of a panel: the columns that are eliminated at once.
type PanelRow<S> = [<S as Simd>::f64s; PANEL_VECTORS];

/// Calls `each` for every panel of columns of `a`: its first column, its width and its rows.
#[inline(always)]
fn for_panels<S: Simd>(
    simd: S,
    a: MatRef<'_, f64>,
    mut each: impl FnMut(usize, usize, &[PanelRow<S>]),
) {
    let n_lanes = PANEL_VECTORS * S::F64_LANES;
    let mut packed = vec![[simd.splat_f64s(0.0); PANEL_VECTORS]; a.nrows()];
    for first in (0..a.ncols()).step_by(n_lanes) {
        let n = n_lanes.min(a.ncols() - first);
        let lanes: &mut [f64] = bytemuck::cast_slice_mut(packed.as_flattened_mut());
        for (block, lanes) in lanes.chunks_mut(CACHE_LINE_VALUES * n_lanes).enumerate() {
            for c in 0..n {
                for (i, lanes) in lanes.chunks_exact_mut(n_lanes).enumerate() {
                    lanes[c] = a[(block * CACHE_LINE_VALUES + i, first + c)];
                }
            }
        }
        each(first, n, &packed);
    }
}

/// Calls `each` for every row of L⁻¹x; only the rows that later ones depend on are kept.
#[inline(always)]
fn solve_lower<S: Simd>(
    simd: S,
    factor: &BandFactor,
    x: &[PanelRow<S>],
    mut each: impl FnMut(usize, &PanelRow<S>),
) {
    let width = factor.width;
    let mut recent = vec![[simd.splat_f64s(0.0); PANEL_VECTORS]; 3 * width + 1];
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
struct SolveLower<'a> {
    factor: &'a BandFactor,
    a: MatRef<'a, f64>,
}

impl WithSimd for SolveLower<'_> {
    type Output = Mat<f64>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Mat<f64> {
        let mut out = Mat::zeros(self.a.nrows(), self.a.ncols());
        for_panels(simd, self.a, |first, n, x| {
            solve_lower(simd, self.factor, x, |i, row| {
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
    factors: &'a [BandFactor],
    a: MatRef<'a, f64>,
}

impl WithSimd for Diagonals<'_> {
    type Output = Mat<f64>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Mat<f64> {
        let mut out = Mat::zeros(self.factors.len(), self.a.ncols());
        for_panels(simd, self.a, |first, n, x| {
            for (l, factor) in self.factors.iter().enumerate() {
                let mut sums = [simd.splat_f64s(0.0); PANEL_VECTORS];
                solve_lower(simd, factor, x, |i, row| {
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
    use crate::Monitor;
    use crate::linalg::{Cholesky, mirror_lower, symmetric_eigen};

    fn sample(n: usize, width: usize) -> BandMatrix {
        BandMatrix::new(n, width, |i, j| {
            ((i * 7 + j * 3) % 5) as f64 - 2.0 + 20.0 * f64::from(i == j)
        })
    }

    fn shifted(band: &BandMatrix, alpha: f64) -> Mat<f64> {
        let mut dense = mirror_lower(band.to_dense());
        (0..dense.nrows()).for_each(|i| dense[(i, i)] += alpha);
        dense
    }

    #[test]
    fn results_are_those_of_the_dense_inverse() {
        for (n, width) in [(1, 0), (5, 0), (5, 9), (40, 1), (100, 8)] {
            let band = sample(n, width);
            let a = Mat::from_fn(n, 71, |i, j| ((i * 5 + j * 11) % 7) as f64 - 3.0);
            let factors = [band.factor(0.0), band.factor(3.0)];
            let diagonals = quadratic_form_diagonals(&factors, a.as_ref());
            for (l, alpha) in [0.0, 3.0].into_iter().enumerate() {
                let mut solved = a.clone();
                let dense = Cholesky::new(shifted(&band, alpha), 0.0, &Monitor::new());
                let dense = dense.expect("not cancelled").expect("definite");
                dense.solve(&mut solved);
                let expected = product(a.transpose(), solved.as_ref());
                let found = factors[l].quadratic_form(a.as_ref());
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
    fn signs_and_condition_numbers_are_found() {
        let band = BandMatrix::diagonal(&[4.0, -1.0, 2.0]);
        let factor = band.factor(0.5);
        assert!(!factor.is_definite());
        assert!((band.condition(0.5, &factor) - 9.0).abs() < 0.1);
        assert!(band.factor(1.5).is_definite());
        assert_eq!(band.trace(), 5.0);
        let ones = Mat::from_fn(3, 1, |_, _| 1.0);
        let expected = 1.0 / 4.5 - 1.0 / 0.5 + 1.0 / 2.5;
        assert!((factor.quadratic_form(ones.as_ref())[(0, 0)] - expected).abs() < 1e-14);
        let (n, width) = (60, 3);
        let band = sample(n, width);
        let found = symmetric_eigen(band.to_dense(), &Monitor::new()).expect("not cancelled");
        let (values, _) = found.expect("finite");
        let condition = (values[n - 1] + 1.0) / (values[0] + 1.0);
        let found = band.condition(1.0, &band.factor(1.0));
        assert!((0.5..=1.0).contains(&(found / condition)));
    }
}
