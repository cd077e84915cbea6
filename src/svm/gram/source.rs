//! Sources of kernel rows: rows of X, or values that the caller computed.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::OnceLock;

use super::Gram;
use crate::data::{Layout, Row as _};
use crate::linear::RowStore;
use crate::svm::kernel::{self, Accumulator, Columns, Kernel, PANEL_ROWS, Panel, Precision};
use crate::{Error, Monitor, Result};

/// Size up to which all rows of X are kept as panels.
const MAX_PANELS_BYTES: usize = 64 << 20;

/// Bytes of panels of all rows that a core's cache holds.
const CACHED_PANELS_BYTES: usize = 1 << 20;

/// Rows that are not in panels cost as many times more alone than as part of the whole matrix.
const SINGLE_ROW_COST: usize = 64;

/// The source of the rows of a Gram matrix.
pub(super) trait KernelSource: Sync + Send + Debug {
    /// Writes columns `first..` of consecutive rows to the same columns of `out`.
    fn fill(&self, rows: Range<usize>, first: usize, out: &mut [f32]);

    /// Returns true if K(i, j) and K(j, i) have the same bits.
    fn is_symmetric(&self) -> bool {
        true
    }

    /// Number of rows that may be computed one at a time before it is better to compute all; 0 if it is
    /// better from the start.
    fn max_single_rows(&self) -> usize {
        0
    }

    /// Announces that the listed rows are read soon.
    fn reserve(&self, rows: &[usize], monitor: &Monitor) -> Result<()> {
        let _ = (rows, monitor);
        Ok(())
    }

    /// The matrix of squared distances that the kernel is derived from, if there is one.
    fn distances(&self) -> Option<&Gram<'_>> {
        None
    }

    /// K(i, i).
    fn diagonal(&self, i: usize) -> f32;
}

/// A kernel computed from rows of X.
#[derive(Debug)]
pub(super) struct Computed<'a, S> {
    store: S,
    pub(super) row_of_sample: &'a [usize],
    pub(super) kernel: Kernel,
    pub(super) norms: Vec<f64>,
    pub(super) factor: f64,
    /// All samples, for single kernel rows.
    panels: OnceLock<Vec<Panel<f64, PANEL_ROWS>>>,
}

impl<'a, S: RowStore> Computed<'a, S> {
    /// A kernel that is not precomputed; an error if norms overflow.
    pub(super) fn new(store: S, row_of_sample: &'a [usize], kernel: Kernel) -> Result<Self> {
        let norms = kernel::squared_norms(&store.view(), row_of_sample);
        let largest = norms.iter().copied().fold(0.0, f64::max);
        // Twice a norm is added to another.
        if !(4.0 * largest).is_finite() {
            return Err(too_large("a row of X", largest));
        }
        let scale = match kernel {
            Kernel::SquaredDistance => scale(largest),
            _ => 1.0,
        };
        Ok(Self {
            store,
            row_of_sample,
            kernel,
            norms,
            factor: scale.recip(),
            panels: OnceLock::new(),
        })
    }

    /// The rows in their layout.
    pub(super) fn rows(&self) -> S::View<'_> {
        self.store.view()
    }

    /// Returns true if panels of all samples are small.
    fn has_panels(&self) -> bool {
        let n_features = self.rows().n_features();
        let n_values = self.row_of_sample.len().checked_mul(n_features);
        n_values.is_some_and(|n| n <= MAX_PANELS_BYTES / size_of::<f64>())
    }

    fn panels(&self) -> &[Panel<f64, PANEL_ROWS>] {
        self.panels.get_or_init(|| {
            let rows = self.rows();
            let members = self.row_of_sample.chunks(PANEL_ROWS);
            let panels = members.zip(self.norms.chunks(PANEL_ROWS));
            let panels = panels.map(|(members, norms)| Panel::new(&rows, members, norms));
            panels.collect()
        })
    }

    /// [`KernelSource::fill`] for up to `W` rows of a kernel, with each value mapped by `store`.
    pub(super) fn write<T: Accumulator, const W: usize, V>(
        &self,
        kernel: Kernel,
        (rows, from): (Range<usize>, usize),
        out: &mut [V],
        store: impl Fn(T) -> V,
    ) {
        let members = &self.row_of_sample[rows.clone()];
        let view = self.rows();
        let panel = Panel::<T, W>::new(&view, members, &self.norms[rows]);
        let columns = Columns {
            rows: &view,
            members: &self.row_of_sample[from..],
            norms: &self.norms[from..],
        };
        let n = self.row_of_sample.len();
        kernel::kernel_block(
            (kernel, Precision::Single),
            &panel,
            columns,
            |first, values| {
                for (lane, row) in out.chunks_mut(n).enumerate() {
                    for (slot, lanes) in row[from + first..].iter_mut().zip(values) {
                        *slot = store(lanes[lane]);
                    }
                }
            },
        );
    }
}

impl<S: RowStore> KernelSource for Computed<'_, S> {
    fn fill(&self, rows: Range<usize>, first: usize, out: &mut [f32]) {
        let store = |value: f64| to_f32(value * self.factor);
        if rows.len() == 1 && first == 0 && self.has_panels() {
            let (row, norm) = (self.row_of_sample[rows.start], self.norms[rows.start]);
            kernel::kernel_row(
                self.kernel,
                self.panels(),
                (&self.rows(), row, norm),
                |first, values| {
                    for (slot, &value) in out[first..].iter_mut().zip(values) {
                        *slot = store(value);
                    }
                },
            );
        } else if rows.len() == 1 {
            self.write::<_, 1, _>(self.kernel, (rows, first), out, store);
        } else {
            self.write::<_, PANEL_ROWS, _>(self.kernel, (rows, first), out, store);
        }
    }

    /// As many as cost what the whole matrix costs two threads, in cycles per value.
    fn max_single_rows(&self) -> usize {
        let n = self.row_of_sample.len();
        if !self.has_panels() {
            return n / SINGLE_ROW_COST;
        }
        let rows = self.rows();
        let n_per_row = (rows.n_stored() as f64 / rows.n_rows().max(1) as f64).max(1.0);
        let n_bytes = n * rows.n_features() * size_of::<f64>();
        let is_cached = n_bytes <= CACHED_PANELS_BYTES;
        // Of one triangle and of its mirror image; of multiplications and of storing the result.
        let whole = n_per_row / 16.0 + 1.0;
        let single = n_per_row * if is_cached { 0.25 } else { 0.8 } + 2.0;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // between 0 and n
        let limit = (n as f64 * (whole / single).min(1.0)) as usize;
        limit
    }

    fn diagonal(&self, i: usize) -> f32 {
        let mut value = match self.kernel.base() {
            Kernel::SquaredDistance => [0.0],
            _ => [self.norms[i]],
        };
        self.kernel.apply(Precision::Single, &mut value);
        to_f32(value[0])
    }
}

/// 1 for squared norms far from the limits of f32, otherwise a power of two of their magnitude:
/// dividing by it is exact.
fn scale(largest: f64) -> f64 {
    let exponent = largest.log2().floor();
    if largest == 0.0 || exponent.abs() <= 64.0 {
        1.0
    } else {
        exponent.exp2()
    }
}

/// The error for kernel values that overflow.
pub(super) fn too_large(what: &str, value: f64) -> Error {
    let rule = "small enough for finite kernel values; scale the features";
    Error::parameter("X", rule, format!("{value:e} in {what}"))
}

/// Kernel values passed by the caller.
#[derive(Debug)]
pub(super) struct Precomputed<'a, R> {
    pub(super) rows: &'a R,
    pub(super) row_of_sample: &'a [usize],
    pub(super) sample_of_row: Vec<Option<usize>>,
}

impl<R: Layout + Debug> KernelSource for Precomputed<'_, R> {
    fn fill(&self, rows: Range<usize>, first: usize, out: &mut [f32]) {
        let n = self.row_of_sample.len();
        for (row, out) in self.row_of_sample[rows].iter().zip(out.chunks_mut(n)) {
            out[first..].fill(0.0);
            for (column, value) in self.rows.row(*row).entries() {
                if let Some(sample) = self.sample_of_row[column].filter(|&s| s >= first) {
                    out[sample] = to_f32(value);
                }
            }
        }
    }

    /// The caller's matrix is used as it is.
    fn is_symmetric(&self) -> bool {
        false
    }

    fn diagonal(&self, i: usize) -> f32 {
        let row = self.row_of_sample[i];
        let mut entries = self.rows.row(row).entries();
        entries.find(|e| e.0 == row).map_or(0.0, |e| to_f32(e.1))
    }
}

/// Rounds to f32. Subnormal numbers become 0, because arithmetic with them is slow.
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
