//! Rows of a data set: dense or CSR, borrowed from the caller, behind one trait.
//!
//! An algorithm is written once, against [`Layout`] and [`Row`], and compiled for each layout. Rows
//! are checked when they are wrapped, so the loops inside have nothing left to check.

mod csr;
mod dense;
mod examples;
mod huge_pages;

pub use csr::{Csr, CsrFeatures, CsrRow, CsrStore, Index};
pub use dense::Dense;
pub use examples::{Ahead, Examples, Gathered, Targets};
pub use huge_pages::HugePageBuffer;

use std::ops::Range;

use rayon::prelude::*;

use crate::runtime::simd::{self, Simd, WithSimd};
use crate::runtime::threads::is_parallel;
use crate::{Error, Monitor, Result};

/// Anything that has samples to hold out, numbered from 0.
pub trait Samples: Sync {
    /// How many samples.
    fn n_samples(&self) -> usize;
}

/// A data set seen row by row.
pub trait Layout: Sync {
    /// One row, borrowed.
    type Row<'a>: Row
    where
        Self: 'a;

    /// What owns a copy of rows.
    type Store: Default + Send + Sync;

    /// Rows of the same layout, borrowed from a [`Layout::Store`].
    type View<'s>: for<'t> Layout<Store = Self::Store, View<'t> = Self::View<'t>>;

    /// The features that are stored in some row.
    type Features: Send + Sync;

    /// How many rows.
    fn n_rows(&self) -> usize;

    /// How many features.
    fn n_features(&self) -> usize;

    /// The row at `index`.
    ///
    /// # Panics
    /// When there is no such row.
    fn row(&self, index: usize) -> Self::Row<'_>;

    /// The values of all features of the row at `index`, where rows store all.
    ///
    /// # Panics
    /// When there is no such row.
    #[inline(always)]
    fn values(&self, index: usize) -> Option<&[f64]> {
        let _ = index;
        None
    }

    /// How many values are stored in all.
    fn n_stored(&self) -> usize;

    /// Copies the rows at `order`, in that order, to where others may have been before.
    ///
    /// # Panics
    /// When there is no such row.
    fn gather<'s>(&self, order: &[usize], store: &'s mut Self::Store) -> Self::View<'s>;

    /// The features that are stored in some row, if they are less than half of them.
    fn stored_features(&self) -> Option<Self::Features>;

    /// The same rows, numbering only `features`, in their order; without them the rows as they are.
    fn with_features<'s>(&'s self, features: Option<&'s Self::Features>) -> Self::View<'s>;

    /// An [`Error::Value`] naming the first NaN or infinity, if there is one.
    fn check_finite(&self, monitor: &Monitor) -> Result<()>
    where
        Self: Sized,
    {
        let mut blocks = 0..self.n_rows().div_ceil(BLOCK);
        let wrong = |block: usize| {
            let rows = block * BLOCK..self.n_rows().min((block + 1) * BLOCK);
            monitor.check().and_then(|()| check_block(self, rows)).err()
        };
        let first = if is_parallel() {
            blocks.into_par_iter().find_map_first(wrong)
        } else {
            blocks.find_map(wrong)
        };
        first.map_or(Ok(()), Err)
    }
}

/// How many rows ahead of its use the beginning of a row is asked for, so that its address is
/// translated when the rest is asked for. (Layout that lie scattered are on a page of their own each;
/// asked for all at once, their lines would all wait for the translation.)
const FAR_AHEAD: usize = 32;

/// How many rows ahead of its use the whole of a row is asked for: more than the machine can wait for
/// at once, and few enough to be there still.
const AHEAD: usize = 16;

/// Rows that need not be asked for: whoever reads so few has most often just read them.
const FEW: usize = 512;

/// Stored values of all rows, of 8 bytes each, that some cache may hold: 32 MB.
const CACHED: usize = 1 << 22;

/// Stored values of so many rows that whoever reads them reads most of the rows, or has not read
/// them for a while: 4 MB.
const MANY: f64 = (1 << 19) as f64;

/// Rows that are checked between two looks at the monitor.
const BLOCK: usize = 4096;

/// An error that names the first value among `rows` that is not finite.
fn check_block(rows: &impl Layout, range: Range<usize>) -> Result<()> {
    let mut rest = range;
    while let Some(index) = simd::dispatch(FirstOverflow {
        rows,
        range: rest.clone(),
    }) {
        if let Some((feature, value)) = rows.row(index).entries().find(|e| !e.1.is_finite()) {
            return Err(Error::Value {
                place: format!("X[{index}, {feature}]"),
                value,
                rule: "every value must be finite",
            });
        }
        rest.start = index + 1;
    }
    Ok(())
}

/// Finds the first row whose ‖x‖² is not finite: NaN and infinity survive a sum of squares. So do
/// very large values, which are to be looked at again.
struct FirstOverflow<'a, R> {
    rows: &'a R,
    range: Range<usize>,
}

impl<R: Layout> WithSimd for FirstOverflow<'_, R> {
    type Output = Option<usize>;

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) -> Option<usize> {
        self.range
            .find(|&index| !self.rows.row(index).squared_norm(simd).is_finite())
    }
}

/// Asks for what is to be read soon, before the row at `order[position]` is read.
#[inline(always)]
fn ask_ahead(rows: &impl Layout, order: &[usize], position: usize) {
    if let Some(&row) = order.get(position + FAR_AHEAD) {
        rows.row(row).prefetch_start();
    }
    if let Some(&row) = order.get(position + AHEAD) {
        rows.row(row).prefetch();
    }
}

/// One row. The vector operations belong inside a [`dispatch`](crate::runtime::simd::dispatch).
pub trait Row: Copy {
    /// Whether every feature is stored, so that all weights are touched, one after the other.
    const STORES_ALL: bool;

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

    /// Asks for the row to be brought into the cache.
    fn prefetch(self);

    /// Asks for the beginning of the row only, and so for the translation of its address.
    fn prefetch_start(self);
}
