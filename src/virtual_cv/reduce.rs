//! K = QBQᵀ with a band matrix B: the part of an eigendecomposition that is all matrix products.
//!
//! **Method.** Reflectors H = I − VT⁻¹Vᵀ, some dozens at a time, make a panel of columns zero below
//! the band, and the matrix behind it becomes HᵀAH = A − VWᵀ − WVᵀ. T is the upper triangle of VᵀV
//! with half its diagonal, Y = AVT⁻¹ and W = Y − ½VT⁻ᵀVᵀY. Only the lower triangle is kept, but for
//! tiles on the diagonal, which are whole. While a panel's rank-2w update goes on, the next panel,
//! updated first, is factored.
//!
//! **Cost.** 4/3·n³ operations for B and as many for Q, both on all threads, in tiles that do not
//! depend on their number. Going on to a diagonal would take another 4/3·n³ or more in vectors
//! that are read from memory for every operation; a band is as good for any λ (`band`).
//!
//! **References.** Schreiber and Van Loan, SIAM J. Sci. Stat. Comput. 10 (1989), for VT⁻¹Vᵀ;
//! Dongarra, Hammarling and Sorensen, J. Comput. Appl. Math. 27 (1989), for the two-sided update;
//! Bischof, Lang and Sun, ACM Trans. Math. Softw. 26 (2000), for stopping at a band.

use super::band::Band;
use super::linalg::{self, Mat, MatMut, MatRef, TILE, tiles};
use crate::runtime::simd::{self, Simd, WithSimd};
use crate::{Monitor, Result};

/// Columns of a panel, and so the width of the band: two of the twelve that a matrix product takes
/// at a time.
const WIDTH: usize = 24;

/// B and Qᵀ.
pub(super) struct Reduced {
    pub(super) band: Band,
    /// Qᵀ: a column a row of K.
    pub(super) vectors: Mat<f64>,
}

impl Reduced {
    /// From the lower triangle of K. With an `axis`, Q spans what is at right angles to it, and B
    /// is what K is there.
    pub(super) fn new(mut k: Mat<f64>, axis: Option<Mat<f64>>, monitor: &Monitor) -> Result<Self> {
        let n = k.nrows();
        complete_tiles(&mut k);
        let mut blocks = vec![];
        if let Some(mut axis) = axis {
            let block = Block::new(0, axis.as_mut());
            let sides = Sides::new(k.as_ref(), &block);
            sides.subtract(0, k.as_mut());
            blocks.push(block);
        }
        let first = blocks.len();
        let mut next = None;
        for top in (first + WIDTH..n).step_by(WIDTH) {
            monitor.check()?;
            let block = next
                .take()
                .unwrap_or_else(|| Block::new(top, k.get_mut(top.., top - WIDTH..top)));
            let sides = Sides::new(k.get(top.., top..), &block);
            let behind = top + WIDTH.min(n - top);
            let trailing = k.get_mut(top.., top..);
            let (mut panel, rest) = trailing.split_at_col_mut(behind - top);
            let update_and_factor = || {
                sides.subtract(top, panel.as_mut());
                (behind < n).then(|| Block::new(behind, panel.get_mut(WIDTH.., ..)))
            };
            (next, ()) = rayon::join(update_and_factor, || sides.subtract(behind, rest));
            blocks.push(block);
        }
        let band = Band::new(n - first, WIDTH, |i, j| k[(first + i, first + j)]);
        Ok(Self {
            band,
            vectors: multiply_out(&blocks, first, n, monitor)?,
        })
    }

    /// The same with a diagonal B: the eigenvalues. `None` when they are not found.
    pub(super) fn diagonal(&self) -> Option<(Vec<f64>, Self)> {
        let (values, vectors) = linalg::eigen(&self.band.to_dense())?;
        let reduced = Self {
            band: Band::diagonal(&values),
            vectors: linalg::product(vectors.transpose(), self.vectors.as_ref()),
        };
        Some((values, reduced))
    }
}

/// Copies the lower triangle of the tiles on the diagonal to the upper one.
fn complete_tiles(k: &mut Mat<f64>) {
    for j in 0..k.ncols() {
        for i in j / TILE * TILE..j {
            k[(i, j)] = k[(j, i)];
        }
    }
}

/// Some reflectors, I − VT⁻¹Vᵀ, that leave the rows before `first` alone.
struct Block {
    first: usize,
    v: Mat<f64>,
    t: Mat<f64>,
}

impl Block {
    /// Those that make `panel` upper triangular. Its upper triangle becomes what they make of it.
    fn new(first: usize, mut panel: MatMut<'_, f64>) -> Self {
        let mut reflected = panel.as_ref().to_owned();
        simd::dispatch(Reflect(&mut reflected));
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
        let mut t = linalg::product(v.transpose(), v.as_ref());
        for j in 0..width {
            t[(j, j)] /= 2.0;
        }
        Self { first, v, t }
    }

    /// A ← (I − VT⁻¹Vᵀ)A.
    fn apply(&self, a: MatMut<'_, f64>) {
        let mut s = linalg::product(self.v.transpose(), a.as_ref());
        linalg::solve_upper(self.t.as_ref(), s.as_mut());
        linalg::subtract_product(a, self.v.as_ref(), s.as_ref());
    }
}

/// Householder's reduction of a few columns to R, with every v (but its leading one) below it.
struct Reflect<'a>(&'a mut Mat<f64>);

impl WithSimd for Reflect<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self(a) = self;
        for j in 0..a.ncols().min(a.nrows()) {
            let mut v = a.col_as_slice(j)[j..].to_vec();
            let norm = simd::dot(simd, &v, &v).sqrt();
            // Away from v[0]: their difference does not cancel.
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

/// What HᵀAH takes from A: VWᵀ + WVᵀ.
struct Sides {
    first: usize,
    /// Wᵀ, Vᵀ and Wᵀ again, one below the other: the upper two times the lower two.
    stack: Mat<f64>,
    width: usize,
}

impl Sides {
    /// For the matrix A behind `block`, of which the tiles on and below the diagonal are read.
    fn new(a: MatRef<'_, f64>, block: &Block) -> Self {
        let Block { first, v, t } = block;
        let (n, width) = (v.nrows(), v.ncols());
        let mut stack = Mat::zeros(3 * width, n);
        let y = stack.get_mut(..width, ..);
        tiles(*first, y, &|at, mut y| {
            let (i, end) = (at - first, at - first + y.ncols());
            let above = v.get(..i, ..).transpose();
            linalg::add_product(y.as_mut(), above, a.get(i..end, ..i).transpose());
            let below = v.get(i.., ..).transpose();
            linalg::add_product(y.as_mut(), below, a.get(i.., i..end));
            linalg::solve_lower(t.transpose(), y);
        });
        let mut inner = linalg::product(v.transpose(), stack.get(..width, ..).transpose());
        linalg::solve_lower(t.transpose(), inner.as_mut());
        inner
            .as_mut()
            .col_iter_mut()
            .for_each(|c| c.iter_mut().for_each(|x| *x /= 2.0));
        tiles(*first, stack.as_mut(), &|at, columns| {
            let i = at - first;
            let v = v.get(i..i + columns.ncols(), ..).transpose();
            let (mut w, rest) = columns.split_at_row_mut(width);
            let (mut middle, mut last) = rest.split_at_row_mut(width);
            linalg::subtract_product(w.as_mut(), inner.as_ref(), v);
            middle.copy_from(v);
            last.copy_from(w);
        });
        Self {
            first: *first,
            stack,
            width,
        }
    }

    /// Updates `columns`, those of the whole from `at` on, on and below the tiles of the diagonal.
    fn subtract(&self, at: usize, columns: MatMut<'_, f64>) {
        let upper = self.stack.get(..2 * self.width, ..);
        let lower = self.stack.get(self.width.., ..).transpose();
        tiles(at, columns, &|at, columns| {
            let i = at - self.first;
            let top = (at / TILE * TILE).max(self.first) - self.first;
            let upper = upper.get(.., i..i + columns.ncols());
            linalg::subtract_product(columns.get_mut(top.., ..), lower.get(top.., ..), upper);
        });
    }
}

/// The product of all blocks without its first columns, transposed.
fn multiply_out(blocks: &[Block], first: usize, n: usize, monitor: &Monitor) -> Result<Mat<f64>> {
    let mut out = Mat::from_fn(n - first, n, |i, j| f64::from(first + i == j));
    tiles(first, out.as_mut().transpose_mut(), &|at, mut columns| {
        let end = at + columns.ncols();
        // Later blocks leave the axes before them alone.
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
    use crate::virtual_cv::linalg::{mirrored, product};

    /// Symmetric, indefinite, and of full rank unless `rank` says otherwise.
    fn sample(n: usize, rank: usize) -> Mat<f64> {
        let a = Mat::from_fn(n, rank, |i, j| (((i + 1) * (j + 2) * 31) % 17) as f64 - 8.0);
        let signed = Mat::from_fn(n, rank, |i, j| a[(i, j)] * (j as f64 - 1.5).signum());
        product(a.as_ref(), signed.transpose())
    }

    fn is_near(a: &Mat<f64>, b: &Mat<f64>) -> bool {
        (a - b).norm_max() <= 1e-13 * (1.0 + b.norm_max()) * b.nrows() as f64
    }

    fn multiplied_back(reduced: &Reduced) -> Mat<f64> {
        let band = mirrored(reduced.band.to_dense());
        let right = product(band.as_ref(), reduced.vectors.as_ref());
        product(reduced.vectors.transpose(), right.as_ref())
    }

    #[test]
    fn factors_multiply_back_for_any_size_and_rank() {
        for n in [1, 2, 23, 24, 25, 26, 48, 49, 119, 122, 200] {
            for rank in [n, 3.min(n), 0] {
                let k = sample(n, rank);
                let found = Reduced::new(k.clone(), None, &Monitor::new()).expect("not cancelled");
                assert!(is_near(&multiplied_back(&found), &k), "{n} {rank}");
                let squared = product(found.vectors.as_ref(), found.vectors.transpose());
                assert!(is_near(&squared, &Mat::identity(n, n)), "{n} {rank}");
                let (_, diagonal) = found.diagonal().expect("finite");
                assert!(is_near(&multiplied_back(&diagonal), &k), "{n} {rank}");
            }
        }
    }

    #[test]
    fn an_axis_is_left_out() {
        for n in [1, 2, 25, 26, 200] {
            let k = sample(n, n);
            let axis = Mat::from_fn(n, 1, |i, _| 1.0 + (i % 3) as f64);
            let found = Reduced::new(k.clone(), Some(axis.clone()), &Monitor::new())
                .expect("not cancelled");
            assert_eq!(found.vectors.nrows(), n - 1);
            let along = product(found.vectors.as_ref(), axis.as_ref());
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
            pool.install(|| Reduced::new(sample(200, 200), None, &Monitor::new()))
        };
        let (one, two) = (run(1).expect("done"), run(2).expect("done"));
        assert_eq!(one.vectors, two.vectors);
        assert_eq!(one.band.to_dense(), two.band.to_dense());
    }
}
