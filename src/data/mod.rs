//! Rows of a data set: dense or CSR, borrowed from the caller, behind one trait.
//!
//! An algorithm is written once, against [`Rows`] and [`Row`], and compiled for each layout. Rows
//! are checked when they are wrapped, so the loops inside have nothing left to check.

mod block;
mod csr;
mod dense;
mod examples;

pub use block::Block;
pub use csr::{Csr, CsrRow, CsrStore, Index};
pub use dense::{Dense, DenseStore};
pub use examples::{Examples, Gathered, Targets};

use crate::simd::Simd;
use crate::{Error, Monitor, Result};

/// Anything that has samples to hold out, numbered from 0.
pub trait Samples: Sync {
    /// How many samples.
    fn n_samples(&self) -> usize;

    /// Told that `rows` are next, which stand anywhere: the time to fetch them into the cache.
    fn fetch(&self, rows: &[usize]) {
        let _ = rows;
    }
}

/// A data set seen row by row.
pub trait Rows: Sync {
    /// One row, borrowed.
    type Row<'a>: Row
    where
        Self: 'a;

    /// What owns a copy of rows.
    type Store: Send + Sync;

    /// Rows of the same layout, borrowed from a [`Rows::Store`].
    type View<'s>: Rows;

    /// How many rows.
    fn n_rows(&self) -> usize;

    /// How many features.
    fn n_features(&self) -> usize;

    /// The row at `index`.
    ///
    /// # Panics
    /// When there is no such row.
    fn row(&self, index: usize) -> Self::Row<'_>;

    /// How many values are stored in all.
    fn n_stored(&self) -> usize;

    /// Copies the rows at `order`, in that order; `None` if there is not enough memory.
    ///
    /// # Panics
    /// When there is no such row.
    fn gather(&self, order: &[usize]) -> Option<Self::Store>;

    /// The rows of a store.
    fn view(store: &Self::Store) -> Self::View<'_>;

    /// An [`Error::Value`] naming the first NaN or infinity, if there is one.
    fn check_finite(&self, monitor: &Monitor) -> Result<()> {
        for index in 0..self.n_rows() {
            if index % 4096 == 0 {
                monitor.check()?;
            }
            // NaN and infinity survive a sum of squares; a sum that overflows is looked at again.
            if self
                .row(index)
                .entries()
                .map(|(_, v)| v * v)
                .sum::<f64>()
                .is_finite()
            {
                continue;
            }
            if let Some((feature, value)) = self.row(index).entries().find(|e| !e.1.is_finite()) {
                return Err(Error::Value {
                    place: format!("X[{index}, {feature}]"),
                    value,
                    rule: "every value must be finite",
                });
            }
        }
        Ok(())
    }
}

/// Values in a cache line.
const LINE: usize = 8;

/// One row. The vector operations belong inside a [`dispatch`](crate::simd::dispatch).
pub trait Row: Copy {
    /// ⟨x, w⟩.
    fn dot<S: Simd>(self, simd: S, w: &[f64]) -> f64;

    /// w ← w + αx.
    fn axpy<S: Simd>(self, simd: S, alpha: f64, w: &mut [f64]);

    /// w ← w + αx, then ⟨next, w⟩: the bits of [`Row::axpy`] and [`Row::dot`].
    #[inline(always)]
    fn axpy_dot<S: Simd>(self, simd: S, alpha: f64, w: &mut [f64], next: Self) -> f64 {
        self.axpy(simd, alpha, w);
        next.dot(simd, w)
    }

    /// ‖x‖².
    fn squared_norm<S: Simd>(self, simd: S) -> f64;

    /// The stored values with their features, in increasing order of feature.
    fn entries(self) -> impl Iterator<Item = (usize, f64)>;

    /// How many values are stored: what a pass over this row costs.
    fn n_stored(self) -> usize;

    /// Reads a value of every cache line, so that all of them come at once, and returns their sum.
    fn touch(self) -> f64;
}
