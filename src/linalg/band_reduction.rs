//! Band reduction K = QBQᵀ: the part of an eigendecomposition that consists of matrix products.
//!
//! # Problem
//! (K + λI)⁻¹ for many λ, without eigenvectors of K.
//!
//! # Method
//! Householder blocks H = I − VT⁻¹Vᵀ eliminate one panel of columns each below the band,
//! and the trailing matrix becomes HᵀAH = A − VWᵀ − WVᵀ. T is the upper triangle of VᵀV with half
//! its diagonal, Y = AVT⁻¹ and W = Y − ½VT⁻ᵀVᵀY. Only the lower triangle is kept, except for the
//! tiles on the diagonal, which are full. The next panel is updated first and factored while the
//! rest of the rank-2w update runs.
//!
//! # Cost
//! 4/3·n³ operations for B and as many for Q, both on all threads, in tiles that do not
//! depend on their number. A reduction to tridiagonal form would take another 4/3·n³ or more, in
//! matrix-vector products that are bound by memory; a band serves any λ as well (`band`).
//!
//! # References
//! Schreiber and Van Loan, SIAM J. Sci. Stat. Comput. 10 (1989), for VT⁻¹Vᵀ;
//! Dongarra, Hammarling and Sorensen, J. Comput. Appl. Math. 27 (1989), for the two-sided update;
//! Bischof, Lang and Sun, ACM Trans. Math. Softw. 26 (2000), for stopping at a band.

use super::band::BandMatrix;
use super::dense::{solve_lower, solve_upper, subtract_product};
use super::{
    Mat, MatMut, MatRef, TILE_COLUMNS, add_product, par_product, par_tiles, product,
    symmetric_eigen,
};
use crate::runtime::simd::{self, Simd, WithSimd};
use crate::{Monitor, Result};

/// Columns of a panel and bandwidth of B: twice the twelve columns of a matrix product's micro-kernel.
const BANDWIDTH: usize = 24;

/// B and Qᵀ.
pub(crate) struct BandForm {
    pub(crate) band: BandMatrix,
    /// Qᵀ: one column per row of K.
    pub(crate) q_transposed: Mat<f64>,
}

impl BandForm {
    /// From the lower triangle of K. With an `axis`, Q spans its orthogonal complement, and
    /// B = QᵀKQ is the restriction of K to it.
    pub(crate) fn new(mut k: Mat<f64>, axis: Option<Mat<f64>>, monitor: &Monitor) -> Result<Self> {
        let n = k.nrows();
        complete_tiles(&mut k);
        let mut blocks = vec![];
        if let Some(mut axis) = axis {
            let block = HouseholderBlock::new(0, axis.as_mut());
            let update = TwoSidedUpdate::new(k.as_ref(), &block);
            update.subtract_from(0, k.as_mut());
            blocks.push(block);
        }
        let first = blocks.len();
        let mut next = None;
        for top in (first + BANDWIDTH..n).step_by(BANDWIDTH) {
            monitor.check()?;
            let block = next.take().unwrap_or_else(|| {
                HouseholderBlock::new(top, k.get_mut(top.., top - BANDWIDTH..top))
            });
            let update = TwoSidedUpdate::new(k.get(top.., top..), &block);
            let behind = top + BANDWIDTH.min(n - top);
            let trailing = k.get_mut(top.., top..);
            let (mut panel, rest) = trailing.split_at_col_mut(behind - top);
            let update_and_factor = || {
                update.subtract_from(top, panel.as_mut());
                (behind < n).then(|| HouseholderBlock::new(behind, panel.get_mut(BANDWIDTH.., ..)))
            };
            (next, ()) = rayon::join(update_and_factor, || update.subtract_from(behind, rest));
            blocks.push(block);
        }
        let band = BandMatrix::new(n - first, BANDWIDTH, |i, j| k[(first + i, first + j)]);
        Ok(Self {
            band,
            q_transposed: accumulate_q(&blocks, first, n, monitor)?,
        })
    }

    /// The eigenvalues, and the same with B diagonal; `None` if the iteration does not converge.
    pub(crate) fn diagonalize(&self, monitor: &Monitor) -> Result<Option<(Vec<f64>, Self)>> {
        let Some((values, vectors)) = symmetric_eigen(self.band.to_dense(), monitor)? else {
            return Ok(None);
        };
        let diagonal = Self {
            band: BandMatrix::diagonal(&values),
            q_transposed: par_product(vectors.transpose(), self.q_transposed.as_ref(), monitor)?,
        };
        Ok(Some((values, diagonal)))
    }
}

/// Copies the lower triangle of the tiles on the diagonal to the upper one.
fn complete_tiles(k: &mut Mat<f64>) {
    for j in 0..k.ncols() {
        for i in j / TILE_COLUMNS * TILE_COLUMNS..j {
            k[(i, j)] = k[(j, i)];
        }
    }
}

/// A product of reflectors, I − VT⁻¹Vᵀ, of the rows from `first` on.
struct HouseholderBlock {
    first: usize,
    v: Mat<f64>,
    t: Mat<f64>,
}

impl HouseholderBlock {
    /// The reflectors that make `panel` upper triangular; its upper triangle becomes R.
    fn new(first: usize, mut panel: MatMut<'_, f64>) -> Self {
        let mut reflected = panel.as_ref().to_owned();
        simd::dispatch(HouseholderQr(&mut reflected));
        for j in 0..panel.ncols() {
            for i in 0..panel.nrows().min(j + 1) {
                panel[(i, j)] = reflected[(i, j)];
            }
        }
        let width = panel.ncols().min(panel.nrows());
        let v = Mat::from_fn(panel.nrows(), width, |i, j| match i.cmp(&j) {
            std::cmp::Ordering::Less => 0.0,
            std::cmp::Ordering::Equal => 1.0,
            std::cmp::Ordering::Greater => reflected[(i, j)],
        });
        let mut t = product(v.transpose(), v.as_ref());
        for j in 0..width {
            t[(j, j)] /= 2.0;
        }
        Self { first, v, t }
    }

    /// A ← (I − VT⁻¹Vᵀ)A.
    fn apply(&self, a: MatMut<'_, f64>) {
        let mut s = product(self.v.transpose(), a.as_ref());
        solve_upper(self.t.as_ref(), s.as_mut());
        subtract_product(a, self.v.as_ref(), s.as_ref());
    }
}

/// Reduces a few columns to R, with every v (except its leading one) below the diagonal.
struct HouseholderQr<'a>(&'a mut Mat<f64>);

impl WithSimd for HouseholderQr<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self(a) = self;
        for j in 0..a.ncols().min(a.nrows()) {
            let mut v = a.col_as_slice(j)[j..].to_vec();
            let norm = simd::dot(simd, &v, &v).sqrt();
            // The sign opposite to v[0]: their difference does not cancel.
            let image = if v[0] > 0.0 { -norm } else { norm };
            let lead = v[0] - image;
            if norm > 0.0 {
                for v in &mut v {
                    *v /= lead;
                }
            }
            v[0] = 1.0;
            let twice = 2.0 / simd::dot(simd, &v, &v);
            for k in j + 1..a.ncols() {
                let x = &mut a.col_as_slice_mut(k)[j..];
                let along = simd::dot(simd, &v, x);
                simd::axpy(simd, -twice * along, &v, x);
            }
            v[0] = image;
            a.col_as_slice_mut(j)[j..].copy_from_slice(&v);
        }
    }
}

/// The two-sided update A − HᵀAH = VWᵀ + WVᵀ.
struct TwoSidedUpdate {
    first: usize,
    /// Wᵀ, Vᵀ and Wᵀ stacked: (Vᵀ, Wᵀ)ᵀ times (Wᵀ, Vᵀ) is VWᵀ + WVᵀ.
    stack: Mat<f64>,
    width: usize,
}

impl TwoSidedUpdate {
    /// For the trailing matrix A; only its tiles on and below the diagonal are read.
    fn new(a: MatRef<'_, f64>, block: &HouseholderBlock) -> Self {
        let HouseholderBlock { first, v, t } = block;
        let (n, width) = (v.nrows(), v.ncols());
        let mut stack = Mat::zeros(3 * width, n);
        let y = stack.get_mut(..width, ..);
        par_tiles(*first, y, &|at, mut y| {
            let (i, end) = (at - first, at - first + y.ncols());
            let above = v.get(..i, ..).transpose();
            add_product(y.as_mut(), above, a.get(i..end, ..i).transpose());
            let below = v.get(i.., ..).transpose();
            add_product(y.as_mut(), below, a.get(i.., i..end));
            solve_lower(t.transpose(), y);
        });
        let mut inner = product(v.transpose(), stack.get(..width, ..).transpose());
        solve_lower(t.transpose(), inner.as_mut());
        inner
            .as_mut()
            .col_iter_mut()
            .for_each(|c| c.iter_mut().for_each(|x| *x /= 2.0));
        par_tiles(*first, stack.as_mut(), &|at, columns| {
            let i = at - first;
            let v = v.get(i..i + columns.ncols(), ..).transpose();
            let (mut w, rest) = columns.split_at_row_mut(width);
            let (mut middle, mut last) = rest.split_at_row_mut(width);
            subtract_product(w.as_mut(), inner.as_ref(), v);
            middle.copy_from(v);
            last.copy_from(w);
        });
        Self {
            first: *first,
            stack,
            width,
        }
    }

    /// Updates `columns`, which start at `at` in K, on and below the tiles of the diagonal.
    fn subtract_from(&self, at: usize, columns: MatMut<'_, f64>) {
        let upper = self.stack.get(..2 * self.width, ..);
        let lower = self.stack.get(self.width.., ..).transpose();
        par_tiles(at, columns, &|at, columns| {
            let i = at - self.first;
            let top = (at / TILE_COLUMNS * TILE_COLUMNS).max(self.first) - self.first;
            let upper = upper.get(.., i..i + columns.ncols());
            subtract_product(columns.get_mut(top.., ..), lower.get(top.., ..), upper);
        });
    }
}

/// Qᵀ: the transposed product of all blocks, without its `first` first rows.
fn accumulate_q(
    blocks: &[HouseholderBlock],
    first: usize,
    n: usize,
    monitor: &Monitor,
) -> Result<Mat<f64>> {
    let mut out = Mat::from_fn(n - first, n, |i, j| f64::from(first + i == j));
    par_tiles(first, out.as_mut().transpose_mut(), &|at, mut columns| {
        let end = at + columns.ncols();
        // Blocks that start after these columns leave them unchanged.
        for block in blocks.iter().rev().skip_while(|b| b.first >= end) {
            if monitor.check().is_err() {
                return;
            }
            block.apply(columns.as_mut().get_mut(block.first.., ..));
        }
    });
    monitor.check()?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::mirror_lower;

    /// Symmetric, indefinite, and of full rank unless `rank` says otherwise.
    fn sample(n: usize, rank: usize) -> Mat<f64> {
        let a = Mat::from_fn(n, rank, |i, j| (((i + 1) * (j + 2) * 31) % 17) as f64 - 8.0);
        let signed = Mat::from_fn(n, rank, |i, j| a[(i, j)] * (j as f64 - 1.5).signum());
        product(a.as_ref(), signed.transpose())
    }

    fn is_near(a: &Mat<f64>, b: &Mat<f64>) -> bool {
        (a - b).norm_max() <= 1e-13 * (1.0 + b.norm_max()) * b.nrows() as f64
    }

    fn multiplied_back(form: &BandForm) -> Mat<f64> {
        let band = mirror_lower(form.band.to_dense());
        let right = product(band.as_ref(), form.q_transposed.as_ref());
        product(form.q_transposed.transpose(), right.as_ref())
    }

    #[test]
    fn factors_multiply_back_for_any_size_and_rank() {
        for n in [1, 2, 23, 24, 25, 26, 48, 49, 119, 122, 200] {
            for rank in [n, 3.min(n), 0] {
                let k = sample(n, rank);
                let found = BandForm::new(k.clone(), None, &Monitor::new()).expect("not cancelled");
                assert!(is_near(&multiplied_back(&found), &k), "{n} {rank}");
                let squared = product(found.q_transposed.as_ref(), found.q_transposed.transpose());
                assert!(is_near(&squared, &Mat::identity(n, n)), "{n} {rank}");
                let diagonal = found.diagonalize(&Monitor::new()).expect("not cancelled");
                let (_, diagonal) = diagonal.expect("finite");
                assert!(is_near(&multiplied_back(&diagonal), &k), "{n} {rank}");
            }
        }
    }

    #[test]
    fn an_axis_is_left_out() {
        for n in [1, 2, 25, 26, 200] {
            let k = sample(n, n);
            let axis = Mat::from_fn(n, 1, |i, _| 1.0 + (i % 3) as f64);
            let found = BandForm::new(k.clone(), Some(axis.clone()), &Monitor::new())
                .expect("not cancelled");
            assert_eq!(found.q_transposed.nrows(), n - 1);
            let along = product(found.q_transposed.as_ref(), axis.as_ref());
            assert!(along.norm_max() < 1e-12);
            let length = axis.norm_l2();
            let projector = Mat::from_fn(n, n, |i, j| {
                f64::from(i == j) - axis[(i, 0)] * axis[(j, 0)] / (length * length)
            });
            let right = product(k.as_ref(), projector.as_ref());
            let expected = product(projector.as_ref(), right.as_ref());
            assert!((multiplied_back(&found) - &expected).norm_max() < 1e-12 * k.norm_max());
        }
    }

    #[test]
    fn bits_do_not_depend_on_the_threads() {
        let run = |n_threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads);
            let pool = pool.build().expect("threads");
            pool.install(|| BandForm::new(sample(200, 200), None, &Monitor::new()))
        };
        let (one, two) = (run(1).expect("done"), run(2).expect("done"));
        assert_eq!(one.q_transposed, two.q_transposed);
        assert_eq!(one.band.to_dense(), two.band.to_dense());
    }
}
