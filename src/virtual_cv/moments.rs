//! Sums over rows: one symmetric matrix holds them all.
//!
//! With a = (x − s, y, 1), Σ w·aaᵀ holds the Gram, the products with the targets, the sums and the
//! total weight. The shift s is near the mean of the columns, so that centring afterwards loses no
//! digits. Rows are packed into dense blocks and multiplied at the speed of a matrix product, or,
//! where few values are stored, added up entry by entry.

use super::problem::Problem;
use crate::data::{Layout, Row};
use crate::linalg::{self, Mat, MatRef};
use crate::{Monitor, Result};

/// Rows that are packed and multiplied at a time.
pub(super) const BLOCK: usize = 256;
/// Rows below which work is not split between threads. Fixed, so that sums have one order.
const LEAF: usize = 16 * BLOCK;
/// A row with fewer stored values than this part of the features is worth sparse arithmetic.
const SPARSE: usize = 8;
/// Rows that are looked at for a first guess of the mean.
const LOOK: usize = 1024;

/// The shift and scale of the columns: x becomes (x − shift)·scale.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) shift: Vec<f64>,
    pub(super) scale: Vec<f64>,
}

impl Frame {
    /// The columns as they are.
    pub(super) fn plain(n_features: usize) -> Self {
        Self {
            shift: vec![0.0; n_features],
            scale: vec![1.0; n_features],
        }
    }

    /// A shift near the mean, from rows spread over all the data. Sparse rows keep their zeros.
    pub(super) fn near_mean<R: Layout>(rows: &R) -> Self {
        let mut frame = Self::plain(rows.n_features());
        if is_sparse(rows) {
            return frame;
        }
        let n = rows.n_rows().min(LOOK);
        let part = (n as f64).recip();
        for i in 0..n {
            for (j, v) in rows.row(i * rows.n_rows() / n).entries() {
                frame.shift[j] += v * part;
            }
        }
        frame
    }

    pub(super) fn is_plain(&self) -> bool {
        self.shift.iter().all(|&s| s == 0.0) && self.scale.iter().all(|&s| s == 1.0)
    }

    /// Writes some features of (x − shift)·scale, `first` and those after it.
    pub(super) fn write_from<T: Row>(&self, first: usize, row: T, out: &mut [f64]) {
        let columns = self.shift[first..].iter().zip(&self.scale[first..]);
        if row.n_stored() == self.shift.len() {
            let entries = row.entries().skip(first);
            for (((_, v), (shift, scale)), out) in entries.zip(columns).zip(out) {
                *out = (v - shift) * scale;
            }
            return;
        }
        for (out, (shift, scale)) in out.iter_mut().zip(columns) {
            *out = -shift * scale;
        }
        let features = first..first + out.len();
        for (j, v) in row.entries().filter(|e| features.contains(&e.0)) {
            out[j - first] = (v - self.shift[j]) * self.scale[j];
        }
    }

    /// Writes (x − shift)·scale·factor to the front of `out`.
    pub(super) fn write<T: Row>(&self, row: T, factor: f64, out: &mut [f64]) {
        let columns = self.shift.iter().zip(&self.scale);
        if row.n_stored() == out.len() {
            for (((_, v), (shift, scale)), out) in row.entries().zip(columns).zip(out) {
                *out = (v - shift) * scale * factor;
            }
        } else {
            for (out, (shift, scale)) in out.iter_mut().zip(columns) {
                *out = -shift * scale * factor;
            }
            for (j, v) in row.entries() {
                out[j] = (v - self.shift[j]) * self.scale[j] * factor;
            }
        }
    }
}

/// Whether arithmetic on the stored values alone beats packed blocks.
pub(super) fn is_sparse<R: Layout>(rows: &R) -> bool {
    rows.n_stored() * SPARSE < rows.n_rows() * rows.n_features()
}

/// A packed block, a row of it a row of the data.
pub(super) struct Packed {
    values: Vec<f64>,
    width: usize,
}

impl Packed {
    pub(super) fn new(width: usize) -> Self {
        Self {
            values: vec![0.0; width * BLOCK],
            width,
        }
    }

    /// Fills one row for each of `rows` and shows them as columns: width × |rows|.
    pub(super) fn columns(
        &mut self,
        rows: &[usize],
        mut write: impl FnMut(usize, &mut [f64]),
    ) -> MatRef<'_, f64> {
        let used = &mut self.values[..rows.len() * self.width];
        for (out, &row) in used.chunks_exact_mut(self.width).zip(rows) {
            write(row, out);
        }
        linalg::row_major(used, rows.len(), self.width).transpose()
    }
}

impl<R: Layout> Problem<'_, R> {
    /// p + q + 1: the length of a.
    pub(super) fn width(&self) -> usize {
        self.rows.n_features() + self.n_outputs + 1
    }

    /// √w·a.
    fn write(&self, frame: &Frame, row: usize, out: &mut [f64]) {
        let (x, rest) = out.split_at_mut(self.rows.n_features());
        let weight = self.root_weight(row);
        frame.write(self.rows.row(row), weight, x);
        for (out, y) in rest.iter_mut().zip(self.target(row)) {
            *out = y * weight;
        }
        rest[self.n_outputs] = weight;
    }

    /// Σ w·aaᵀ over `rows`, lower triangle.
    pub(super) fn moments(
        &self,
        frame: &Frame,
        rows: &[usize],
        monitor: &Monitor,
    ) -> Result<Mat<f64>> {
        sum(rows, self.width(), monitor, &|rows, total| {
            if frame.is_plain() && is_sparse(self.rows) {
                for &row in rows {
                    self.add_sparse(row, total);
                }
                return;
            }
            let mut packed = Packed::new(self.width());
            for block in rows.chunks(BLOCK) {
                let a = packed.columns(block, |row, out| self.write(frame, row, out));
                linalg::add_outer(total.as_mut(), a);
            }
        })
    }

    fn add_sparse(&self, row: usize, total: &mut Mat<f64>) {
        let (p, w) = (self.rows.n_features(), self.root_weight(row).powi(2));
        let rest = self.target(row).iter().copied().chain([1.0]);
        let x = self.rows.row(row);
        for (k, u) in x.entries() {
            for (j, v) in x.entries().skip_while(|e| e.0 < k) {
                total[(j, k)] += w * u * v;
            }
            for (j, v) in rest.clone().enumerate() {
                total[(p + j, k)] += w * u * v;
            }
        }
        for (k, u) in rest.clone().enumerate() {
            for (j, v) in rest.clone().enumerate().skip(k) {
                total[(p + j, p + k)] += w * u * v;
            }
        }
    }
}

/// Adds up what `leaf` adds for `rows`, in an order that does not depend on the threads.
pub(super) fn sum(
    rows: &[usize],
    width: usize,
    monitor: &Monitor,
    leaf: &(impl Fn(&[usize], &mut Mat<f64>) + Sync),
) -> Result<Mat<f64>> {
    if rows.len() <= LEAF {
        let mut total = Mat::zeros(width, width);
        leaf(rows, &mut total);
        monitor.check()?;
        return Ok(total);
    }
    let middle = (rows.len() / 2).next_multiple_of(BLOCK);
    let (left, right) = rows.split_at(middle);
    let (left, right) = rayon::join(
        || sum(left, width, monitor, leaf),
        || sum(right, width, monitor, leaf),
    );
    let mut total = left?;
    total += right?;
    Ok(total)
}
