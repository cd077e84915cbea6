//! The values of columns as float32, the precision of scikit-learn's trees.

use crate::data::{Dense, Layout, Row as _};
use crate::runtime::memory;
use crate::{Monitor, Result};

/// A table whose columns can be copied.
pub(super) trait Columns: Sync {
    fn n_rows(&self) -> usize;
    fn n_features(&self) -> usize;

    /// The values of `width` columns from `start` on, one column after the other.
    fn copy(&self, start: usize, width: usize) -> Vec<f32>;
}

impl Columns for Dense<'_> {
    fn n_rows(&self) -> usize {
        Layout::n_rows(self)
    }

    fn n_features(&self) -> usize {
        Layout::n_features(self)
    }

    #[allow(clippy::cast_possible_truncation)] // to float32
    fn copy(&self, start: usize, width: usize) -> Vec<f32> {
        let n_rows = Layout::n_rows(self);
        let mut copied = vec![0.0; n_rows * width];
        for row in 0..n_rows {
            if let Some(values) = self.values(row) {
                for (column, &value) in values[start..start + width].iter().enumerate() {
                    copied[column * n_rows + row] = value as f32;
                }
            }
        }
        copied
    }
}

/// The stored values of sparse rows, column by column. No more columns are dense at a time than
/// are copied.
pub(super) struct SparseColumns {
    n_rows: usize,
    /// Where each column starts among `rows` and `values`, and at last where all end.
    starts: Vec<usize>,
    rows: Vec<u32>,
    values: Vec<f32>,
}

impl SparseColumns {
    /// Rows must be fewer than 2³².
    #[allow(clippy::cast_possible_truncation)] // to float32; rows are numbered by u32
    pub(super) fn new<X: Layout>(rows: &X, monitor: &Monitor) -> Result<Self> {
        let n_stored = rows.n_stored();
        memory::check_shape::<(u32, f32)>("the stored values of X by column", &[n_stored])?;
        let mut starts = vec![0; rows.n_features() + 1];
        for row in 0..rows.n_rows() {
            for (feature, _) in rows.row(row).entries() {
                starts[feature + 1] += 1;
            }
        }
        for feature in 0..rows.n_features() {
            starts[feature + 1] += starts[feature];
        }
        monitor.check()?;
        let mut ends = starts.clone();
        let mut columns = Self {
            n_rows: rows.n_rows(),
            starts,
            rows: vec![0; n_stored],
            values: vec![0.0; n_stored],
        };
        for row in 0..rows.n_rows() {
            for (feature, value) in rows.row(row).entries() {
                let place = ends[feature];
                (columns.rows[place], columns.values[place]) = (row as u32, value as f32);
                ends[feature] += 1;
            }
        }
        Ok(columns)
    }
}

impl Columns for SparseColumns {
    fn n_rows(&self) -> usize {
        self.n_rows
    }

    fn n_features(&self) -> usize {
        self.starts.len() - 1
    }

    fn copy(&self, start: usize, width: usize) -> Vec<f32> {
        let mut copied = vec![0.0; self.n_rows * width];
        let columns = copied.chunks_exact_mut(self.n_rows.max(1));
        for (ends, column) in self.starts[start..].windows(2).zip(columns) {
            let stored = ends[0]..ends[1];
            for (&row, &value) in self.rows[stored.clone()].iter().zip(&self.values[stored]) {
                column[row as usize] = value;
            }
        }
        copied
    }
}
