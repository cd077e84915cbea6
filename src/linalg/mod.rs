//! Dense linear algebra: everything that names faer, and what faer lacks.
//!
//! | module | what it holds |
//! |---|---|
//! | `dense` | products, triangular solves, tiles of columns on all threads |
//! | `decompositions` | eigenvalues of symmetric matrices, QR, Cholesky |
//! | `background` | long calls on a thread of their own, which can be abandoned |
//! | `jacobi` | singular values to high relative accuracy |
//! | `lanczos` | extreme eigenvalues by the Lanczos method |
//! | `tsqr` | the R factor of tall matrices that are read in blocks of rows |
//! | `band_reduction` | K = QBQᵀ with a band matrix B |
//! | `band` | band matrices: LDLᵀ of B + λI, solves, quadratic forms |
//! | [`packed`] | symmetric matrices in packed storage, their updates and Cholesky factors |
//! | `start_vector` | start vectors of power and Lanczos iterations |
//!
//! faer runs on the calling thread (`Par::Seq`). Parallel code splits the work into fixed blocks and
//! adds their results in a fixed order, so that results have the same bits for any number of threads.

#![allow(clippy::doc_markdown)] // formulas are not code

mod background;
mod band;
mod band_reduction;
mod decompositions;
mod dense;
mod jacobi;
mod lanczos;
pub(crate) mod packed;
mod start_vector;
mod tsqr;

pub(crate) use band::{BandFactor, quadratic_form_diagonals};
pub(crate) use band_reduction::BandForm;
pub(crate) use decompositions::{Cholesky, symmetric_eigen, thin_qr};
pub(crate) use dense::{
    TILE_COLUMNS, add_outer, add_product, mirror_lower, par_product, par_tiles, product, row_major,
    zeros,
};
pub(crate) use faer::{Mat, MatMut, MatRef};
pub(crate) use jacobi::jacobi_svd;
pub(crate) use lanczos::extreme_eigenvalues;
pub(crate) use start_vector::start_vector;
pub(crate) use tsqr::tsqr;
