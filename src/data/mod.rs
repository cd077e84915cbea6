//! Data sets: dense or CSR rows, borrowed from the caller, with targets and weights.
//!
//! A [`Dataset`] is what engines and learners receive; it is checked when it is made. Kernels are
//! written once, against [`Layout`] and [`Row`], and compiled for each layout.

#[cfg(any(test, feature = "python"))]
mod compact;
mod csr;
mod dataset;
mod dense;
mod examples;
mod huge_pages;
mod row_buffer;

pub use csr::{Csr, CsrRow, Index, is_canonical};
#[doc(hidden)]
pub use dataset::unreadable;
pub use dataset::{Dataset, Rows, with_layout};
pub use dense::Dense;
pub use examples::{Examples, Prefetched, Targets};
pub use huge_pages::HugePageBuffer;

#[cfg(feature = "python")]
pub(crate) use compact::CompactFeatures;
pub(crate) use dataset::DatasetBuffer;
#[cfg(feature = "stored")]
pub(crate) use dataset::TargetBuffer;
pub(crate) use row_buffer::RowBuffer;
#[cfg(feature = "stored")]
pub(crate) use row_buffer::{CsrBuffer, DenseBuffer};

use std::ops::Range;

use rayon::prelude::*;

use crate::runtime::simd::{self, Simd, WithSimd};
use crate::runtime::threads::is_parallel;
use crate::{Error, Monitor, Result};

/// The values of an array that must be C-contiguous.
fn contiguous<'a, T>(values: Option<&'a [T]>, name: &'static str) -> Result<&'a [T]> {
    values.ok_or_else(|| Error::Parameter {
        name,
        rule: "C-contiguous",
        value: "an array with strides".into(),
    })
}

/// Rows in one layout: what kernels are generic over.
pub trait Layout: Copy + Sync {
    /// One row, borrowed.
    type Row<'a>: Row
    where
        Self: 'a;

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

    /// An [`Error::Value`] naming the first NaN or infinity, if there is one.
    fn check_finite(&self, monitor: &Monitor) -> Result<()>
    where
        Self: Sized,
    {
        let mut blocks = 0..self.n_rows().div_ceil(POLL_ROWS);
        let wrong = |block: usize| {
            let rows = block * POLL_ROWS..self.n_rows().min((block + 1) * POLL_ROWS);
            let check = monitor.check().map(|()| first_not_finite(self, rows));
            match check {
                Ok(found) => {
                    found.map(|(row, feature, value)| Error::not_finite(row, feature, value))
                }
                Err(interrupted) => Some(interrupted),
            }
        };
        let first = if is_parallel() {
            blocks.into_par_iter().find_map_first(wrong)
        } else {
            blocks.find_map(wrong)
        };
        first.map_or(Ok(()), Err)
    }
}

/// How many rows ahead the first cache line of a row is prefetched, so that its address is translated
/// when the rest is: scattered rows lie on a page of their own each.
const TLB_DISTANCE: usize = 32;

/// How many rows ahead a whole row is prefetched: more than the outstanding misses of a core, few
/// enough to stay in the cache until they are used.
const PREFETCH_DISTANCE: usize = 16;

/// Batches of at most this many rows are not prefetched: most of them have just been read.
const PREFETCH_MIN_ROWS: usize = 512;

/// Rows checked between two polls of the monitor.
const POLL_ROWS: usize = 4096;

/// The row and the feature of the first value among a range of rows that is not finite, and the value.
fn first_not_finite(rows: &impl Layout, range: Range<usize>) -> Option<(usize, usize, f64)> {
    let mut rest = range;
    while let Some(index) = simd::dispatch(FirstOverflow {
        rows,
        range: rest.clone(),
    }) {
        if let Some((feature, value)) = rows.row(index).entries().find(|e| !e.1.is_finite()) {
            return Some((index, feature, value));
        }
        rest.start = index + 1;
    }
    None
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

/// Prefetches what is read soon after the row at `order[position]`.
#[inline(always)]
fn prefetch_ahead(rows: &impl Layout, order: &[usize], position: usize) {
    if let Some(&row) = order.get(position + TLB_DISTANCE) {
        rows.row(row).prefetch_start();
    }
    if let Some(&row) = order.get(position + PREFETCH_DISTANCE) {
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

    /// Prefetches the row.
    fn prefetch(self);

    /// Prefetches the first cache line of the row, and with it the translation of its address.
    fn prefetch_start(self);
}
