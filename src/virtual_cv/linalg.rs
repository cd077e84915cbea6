//! Dense linear algebra: the only file that names faer.
//!
//! Everything runs on the calling thread (`Par::Seq`): who wants two threads splits the rows into
//! fixed blocks and adds the blocks up in a fixed order, so that results have the same bits for
//! any number of threads.

pub(super) use faer::{Mat, MatMut, MatRef};

use faer::linalg::matmul::triangular::BlockStructure::{Rectangular, TriangularLower};
use faer::linalg::matmul::{matmul, triangular};
use faer::linalg::solvers::{Llt, Solve};
use faer::linalg::triangular_solve;
use faer::{Accum, Par, Side};

/// Columns that one thread works on at a time: a square of them fits its cache. A multiple of the
/// twelve that a matrix product takes at a time.
pub(super) const TILE: usize = 120;

/// Hands the columns, those of the whole from `first` on, to `work` tile by tile.
pub(super) fn tiles(
    first: usize,
    columns: MatMut<'_, f64>,
    work: &(impl Fn(usize, MatMut<'_, f64>) + Sync),
) {
    let end = first + columns.ncols();
    let n_tiles = end.div_ceil(TILE) - first / TILE;
    if n_tiles <= 1 || columns.ncols() == 0 {
        return work(first, columns);
    }
    let middle = (first / TILE + n_tiles / 2) * TILE;
    let (left, right) = columns.split_at_col_mut(middle - first);
    rayon::join(|| tiles(first, left, work), || tiles(middle, right, work));
}

/// A view of values that are stored row after row.
pub(super) fn row_major(values: &[f64], n_rows: usize, n_columns: usize) -> MatRef<'_, f64> {
    MatRef::from_row_major_slice(values, n_rows, n_columns)
}

/// AB.
pub(super) fn product(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> Mat<f64> {
    let mut out = Mat::zeros(a.nrows(), b.ncols());
    matmul(out.as_mut(), Accum::Replace, a, b, 1.0, Par::Seq);
    out
}

/// C ← C + AB.
pub(super) fn add_product(c: MatMut<'_, f64>, a: MatRef<'_, f64>, b: MatRef<'_, f64>) {
    matmul(c, Accum::Add, a, b, 1.0, Par::Seq);
}

/// C ← C − AB.
pub(super) fn subtract_product(c: MatMut<'_, f64>, a: MatRef<'_, f64>, b: MatRef<'_, f64>) {
    matmul(c, Accum::Add, a, b, -1.0, Par::Seq);
}

/// B ← U⁻¹B for an upper triangle U.
pub(super) fn solve_upper(u: MatRef<'_, f64>, b: MatMut<'_, f64>) {
    triangular_solve::solve_upper_triangular_in_place(u, b, Par::Seq);
}

/// B ← L⁻¹B for a lower triangle L.
pub(super) fn solve_lower(l: MatRef<'_, f64>, b: MatMut<'_, f64>) {
    triangular_solve::solve_lower_triangular_in_place(l, b, Par::Seq);
}

/// C ← C + AAᵀ, lower triangle only.
pub(super) fn add_outer(c: MatMut<'_, f64>, a: MatRef<'_, f64>) {
    triangular::matmul(
        c,
        TriangularLower,
        Accum::Add,
        a,
        Rectangular,
        a.transpose(),
        Rectangular,
        1.0,
        Par::Seq,
    );
}

/// Copies the lower triangle into the upper one.
pub(super) fn mirror(a: &mut Mat<f64>) {
    for j in 0..a.ncols() {
        for i in 0..j {
            a[(i, j)] = a[(j, i)];
        }
    }
}

/// A symmetric matrix from its lower triangle.
pub(super) fn mirrored(mut a: Mat<f64>) -> Mat<f64> {
    mirror(&mut a);
    a
}

/// The eigenvalues of a symmetric matrix in increasing order, and its eigenvectors as columns;
/// `None` when the iteration does not converge, which takes a value that is not finite.
pub(super) fn eigen(a: &Mat<f64>) -> Option<(Vec<f64>, Mat<f64>)> {
    let all_finite = a.col_iter().all(|c| c.iter().all(|v| v.is_finite()));
    let found = all_finite.then(|| a.self_adjoint_eigen(Side::Lower).ok())??;
    let values = found.S().column_vector().iter().copied().collect();
    Some((values, found.U().to_owned()))
}

/// The triangular factor R of a QR decomposition: min(m, n) × n.
pub(super) fn triangle(a: &Mat<f64>) -> Mat<f64> {
    let mut r = a.qr().thin_R().to_owned();
    for j in 0..r.ncols() {
        for i in j + 1..r.nrows() {
            r[(i, j)] = 0.0;
        }
    }
    r
}

/// Q and R of a QR decomposition, Q with as many columns as R has rows.
pub(super) fn thin_qr(a: &Mat<f64>) -> (Mat<f64>, Mat<f64>) {
    (a.qr().compute_thin_Q(), triangle(a))
}

/// A Cholesky factorisation.
pub(super) struct Cholesky(Llt<f64>);

impl Cholesky {
    /// Factors the lower triangle of `a`; `None` when a pivot is not above `smallest`.
    pub(super) fn new(a: &Mat<f64>, smallest: f64) -> Option<Self> {
        let factor = a.llt(Side::Lower).ok()?;
        let l = factor.L();
        let is_safe = (0..a.nrows()).all(|i| l[(i, i)] * l[(i, i)] > smallest);
        is_safe.then_some(Self(factor))
    }

    /// B ← A⁻¹B.
    pub(super) fn solve(&self, b: &mut Mat<f64>) {
        self.0.solve_in_place(b.as_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(n: usize) -> Mat<f64> {
        Mat::from_fn(n, n, |i, j| {
            ((i * 7 + j * 3) % 5) as f64 + f64::from(i == j)
        })
    }

    fn distance(a: &Mat<f64>, b: &Mat<f64>) -> f64 {
        (a - b).norm_max()
    }

    #[test]
    fn factors_multiply_back() {
        for n in [1, 2, 7, 60] {
            let a = sample(n);
            let mut gram = Mat::zeros(n, n);
            add_outer(gram.as_mut(), a.as_ref());
            mirror(&mut gram);
            assert!(distance(&gram, &product(a.as_ref(), a.transpose())) < 1e-9);

            let r = triangle(&a.transpose().to_owned());
            assert!(distance(&gram, &product(r.transpose(), r.as_ref())) < 1e-9);

            let (values, vectors) = eigen(&gram).expect("finite");
            let scaled = Mat::from_fn(n, n, |i, j| vectors[(i, j)] * values[j]);
            assert!(distance(&gram, &product(scaled.as_ref(), vectors.transpose())) < 1e-8);

            for i in 0..n {
                gram[(i, i)] += 1.0;
            }
            let mut b = gram.clone();
            Cholesky::new(&gram, 0.0).expect("definite").solve(&mut b);
            assert!(distance(&b, &Mat::identity(n, n)) < 1e-8);
        }
    }

    #[test]
    fn what_cannot_be_factored_is_nothing() {
        let singular = Mat::from_fn(2, 2, |_, _| 1.0);
        assert!(Cholesky::new(&singular, 1e-10).is_none());
        assert!(eigen(&Mat::from_fn(2, 2, |_, _| f64::NAN)).is_none());
    }
}
