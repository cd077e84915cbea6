//! What the rows of a Gram matrix are made of: rows of X, values that the caller brought, or a matrix
//! of the base.

use std::fmt::Debug;
use std::ops::Range;

use super::Gram;
use super::coded::Decoded;
use crate::data::{Layout, Row as _};
use crate::runtime::simd::{self, Simd, WithSimd};
use crate::svm::kernel::{self, Kernel, Number, Panel, Partners, WIDTH};

/// What the rows of a Gram matrix are made of.
pub(super) trait Source: Sync + Send + Debug {
    /// Writes consecutive rows, one after the other, into `out`: their columns from `first` on.
    fn fill(&self, rows: Range<usize>, first: usize, out: &mut [f32]);

    /// Whether K(i, j) and K(j, i) have the same bits.
    fn is_symmetric(&self) -> bool {
        true
    }

    /// K(i, i).
    fn diagonal(&self, i: usize) -> f32;

    /// Some values of a row, if that takes no more than to look them up; false if not.
    fn pick(&self, row: usize, columns: &[u32], out: &mut [f32]) -> bool {
        let _ = (row, columns, out);
        false
    }

    /// This, if the values of the base are coded and kept: then a row takes no computing.
    fn decoded(&self) -> Option<&Decoded> {
        None
    }
}

/// A kernel of rows.
#[derive(Debug)]
pub(super) struct Computed<'a, R> {
    pub(super) rows: &'a R,
    pub(super) order: &'a [usize],
    pub(super) kernel: Kernel,
    pub(super) norms: Vec<f64>,
    pub(super) factor: f64,
}

impl<R: Layout + Debug> Computed<'_, R> {
    /// Writes up to `W` rows of a kernel as [`Source::fill`] does, each value made into what is
    /// stored.
    pub(super) fn write<T: Number, const W: usize, V>(
        &self,
        kernel: Kernel,
        (rows, from): (Range<usize>, usize),
        out: &mut [V],
        store: impl Fn(T) -> V,
    ) {
        let members = &self.order[rows.clone()];
        let panel = Panel::<T, W>::new(self.rows, members, &self.norms[rows]);
        let partners = Partners {
            rows: self.rows,
            order: &self.order[from..],
            norms: &self.norms[from..],
        };
        let n = self.order.len();
        kernel::against(kernel, &panel, partners, |first, values| {
            for (lane, row) in out.chunks_mut(n).enumerate() {
                for (slot, lanes) in row[from + first..].iter_mut().zip(values) {
                    *slot = store(lanes[lane]);
                }
            }
        });
    }
}

impl<R: Layout + Debug> Source for Computed<'_, R> {
    fn fill(&self, rows: Range<usize>, first: usize, out: &mut [f32]) {
        let store = |value: f64| to_f32(value * self.factor);
        if rows.len() == 1 {
            self.write::<_, 1, _>(self.kernel, (rows, first), out, store);
        } else {
            self.write::<_, WIDTH, _>(self.kernel, (rows, first), out, store);
        }
    }

    fn diagonal(&self, i: usize) -> f32 {
        let mut value = match self.kernel.base() {
            Kernel::SquaredDistance => [0.0],
            _ => [self.norms[i]],
        };
        self.kernel.finish(&mut value);
        to_f32(value[0])
    }
}

/// Kernel values that the caller brought.
#[derive(Debug)]
pub(super) struct Given<'a, R> {
    pub(super) rows: &'a R,
    pub(super) order: &'a [usize],
    pub(super) places: Vec<Option<usize>>,
}

impl<R: Layout + Debug> Source for Given<'_, R> {
    fn fill(&self, rows: Range<usize>, first: usize, out: &mut [f32]) {
        let n = self.order.len();
        for (row, out) in self.order[rows].iter().zip(out.chunks_mut(n)) {
            out[first..].fill(0.0);
            for (column, value) in self.rows.row(*row).entries() {
                if let Some(place) = self.places[column].filter(|&place| place >= first) {
                    out[place] = to_f32(value);
                }
            }
        }
    }

    /// Nobody promises that.
    fn is_symmetric(&self) -> bool {
        false
    }

    fn diagonal(&self, i: usize) -> f32 {
        let row = self.order[i];
        let mut entries = self.rows.row(row).entries();
        entries.find(|e| e.0 == row).map_or(0.0, |e| to_f32(e.1))
    }
}

/// A kernel of a base that is known.
#[derive(Debug)]
pub(super) struct Derived<'a> {
    pub(super) base: &'a Gram<'a>,
    pub(super) kernel: Kernel,
}

impl Source for Derived<'_> {
    fn fill(&self, rows: Range<usize>, first: usize, out: &mut [f32]) {
        for (row, out) in rows.zip(out.chunks_mut(self.base.n)) {
            let base = self.base.row(row);
            let (out, base) = (&mut out[first..], &base[first..]);
            for (out, base) in out.chunks_mut(512).zip(base.chunks(512)) {
                simd::dispatch(Finish {
                    kernel: self.kernel,
                    unit: self.base.unit,
                    base,
                    out,
                });
            }
        }
    }

    fn is_symmetric(&self) -> bool {
        self.base.source.is_symmetric()
    }

    fn diagonal(&self, i: usize) -> f32 {
        let mut value = [f64::from(self.base.diagonal[i]) * self.base.unit];
        self.kernel.finish(&mut value);
        to_f32(value[0])
    }
}

struct Finish<'a> {
    kernel: Kernel,
    unit: f64,
    base: &'a [f32],
    out: &'a mut [f32],
}

impl WithSimd for Finish<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self {
            kernel,
            unit,
            base,
            out,
        } = self;
        let mut values = [0.0; 512];
        let values = &mut values[..base.len()];
        for (value, &base) in values.iter_mut().zip(base) {
            *value = f64::from(base) * unit;
        }
        kernel.finish(values);
        for (out, &value) in out.iter_mut().zip(&*values) {
            *out = to_f32(value);
        }
    }
}

/// Rounded; numbers below the normal range become 0, because arithmetic with them is slow.
#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // rounding is the purpose
pub(super) fn to_f32(value: f64) -> f32 {
    let small = value as f32;
    if small.abs() < f32::MIN_POSITIVE {
        0.0
    } else {
        small
    }
}
