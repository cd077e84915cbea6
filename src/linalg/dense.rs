//! Products, triangular solves, and tiles of columns on all threads.

use std::fmt::Display;

use faer::linalg::matmul::triangular::BlockStructure::{Rectangular, TriangularLower};
use faer::linalg::matmul::{matmul, triangular};
use faer::linalg::triangular_solve;
use faer::{Accum, Par};

use super::{Mat, MatMut, MatRef};
use crate::runtime::{cache, memory};
use crate::{Monitor, Result};

/// Columns of a tile, the unit of parallel work: a multiple of the twelve columns of a matrix
/// product's micro-kernel.
pub(crate) const TILE_COLUMNS: usize = 120;

// A square tile stays in the second-level cache.
const _: () = assert!((TILE_COLUMNS * TILE_COLUMNS) as f64 <= cache::L2_VALUES);

/// Calls `work` for each tile of `columns`, in parallel, with the index of the tile's first column.
/// Tiles are aligned in the whole matrix, in which `columns` starts at `first`.
pub(crate) fn par_tiles(
    first: usize,
    columns: MatMut<'_, f64>,
    work: &(impl Fn(usize, MatMut<'_, f64>) + Sync),
) {
    let end = first + columns.ncols();
    let n_tiles = end.div_ceil(TILE_COLUMNS) - first / TILE_COLUMNS;
    if n_tiles <= 1 || columns.ncols() == 0 {
        return work(first, columns);
    }
    let middle = (first / TILE_COLUMNS + n_tiles / 2) * TILE_COLUMNS;
    let (left, right) = columns.split_at_col_mut(middle - first);
    rayon::join(
        || par_tiles(first, left, work),
        || par_tiles(middle, right, work),
    );
}

/// A matrix of zeros; [`Error::Memory`](crate::Error::Memory) names `what` if it does not fit.
pub(crate) fn zeros(what: impl Display, n_rows: usize, n_columns: usize) -> Result<Mat<f64>> {
    let what = format_args!("{what} of {n_rows} × {n_columns} values");
    memory::check_shape::<f64>(what, &[n_rows, n_columns])?;
    Ok(Mat::zeros(n_rows, n_columns))
}

/// A view of values in row-major order.
pub(crate) fn row_major(values: &[f64], n_rows: usize, n_columns: usize) -> MatRef<'_, f64> {
    MatRef::from_row_major_slice(values, n_rows, n_columns)
}

/// AB.
pub(crate) fn product(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> Mat<f64> {
    let mut out = Mat::zeros(a.nrows(), b.ncols());
    matmul(out.as_mut(), Accum::Replace, a, b, 1.0, Par::Seq);
    out
}

/// AB on all threads, in tiles of columns.
pub(crate) fn par_product(
    a: MatRef<'_, f64>,
    b: MatRef<'_, f64>,
    monitor: &Monitor,
) -> Result<Mat<f64>> {
    let mut out = zeros("a product", a.nrows(), b.ncols())?;
    par_tiles(0, out.as_mut(), &|first, tile| {
        if monitor.check().is_ok() {
            let columns = b.get(.., first..first + tile.ncols());
            matmul(tile, Accum::Replace, a, columns, 1.0, Par::Seq);
        }
    });
    monitor.check()?;
    Ok(out)
}

/// C ← C + AB.
pub(crate) fn add_product(c: MatMut<'_, f64>, a: MatRef<'_, f64>, b: MatRef<'_, f64>) {
    matmul(c, Accum::Add, a, b, 1.0, Par::Seq);
}

/// C ← C − AB.
pub(super) fn subtract_product(c: MatMut<'_, f64>, a: MatRef<'_, f64>, b: MatRef<'_, f64>) {
    matmul(c, Accum::Add, a, b, -1.0, Par::Seq);
}

/// C ← C + AAᵀ, lower triangle only.
pub(crate) fn add_outer(c: MatMut<'_, f64>, a: MatRef<'_, f64>) {
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

/// B ← U⁻¹B for an upper triangular U.
pub(super) fn solve_upper(u: MatRef<'_, f64>, b: MatMut<'_, f64>) {
    triangular_solve::solve_upper_triangular_in_place(u, b, Par::Seq);
}

/// B ← L⁻¹B for a lower triangular L.
pub(super) fn solve_lower(l: MatRef<'_, f64>, b: MatMut<'_, f64>) {
    triangular_solve::solve_lower_triangular_in_place(l, b, Par::Seq);
}

/// A symmetric matrix from its lower triangle.
pub(crate) fn mirror_lower(mut a: Mat<f64>) -> Mat<f64> {
    for j in 0..a.ncols() {
        for i in 0..j {
            a[(i, j)] = a[(j, i)];
        }
    }
    a
}
