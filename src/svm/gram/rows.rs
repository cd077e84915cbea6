//! Kernel rows in their stored form, for loops over blocks of values.
//!
//! A quantised row is decoded block by block where it is used, so that decoded values stay in the
//! first-level cache. A loop over [`KernelRows`] is compiled for f32 and for quantised rows; its
//! results are the same.

use std::fmt::Debug;
use std::ops::Deref;

use crate::runtime::buffers::BufferPool;

/// Values per block: 2 KB of f32.
pub(in crate::svm) const BLOCK: usize = 512;

/// Kernel rows in their stored form.
pub(in crate::svm) trait KernelRows: Copy + Debug {
    /// A stored kernel value.
    type Value: Copy + Default + Debug;

    /// A whole row.
    type Row: Deref<Target = [Self::Value]>;

    /// Buffer for one decoded block.
    type DecodeBuffer;

    /// Row `i`.
    fn row(self, i: usize) -> Self::Row;

    /// Copies the listed columns of row `i` to `out`.
    fn gather(self, i: usize, columns: &[u32], out: &mut [Self::Value]);

    /// A buffer for [`Self::decode`].
    fn decode_buffer() -> Self::DecodeBuffer;

    /// The kernel values of at most [`BLOCK`] stored values.
    fn decode<'r>(self, stored: &'r [Self::Value], buffer: &'r mut Self::DecodeBuffer)
    -> &'r [f32];

    /// Idle buffers for gathered rows.
    fn buffers(&self) -> &BufferPool<Vec<Self::Value>>;
}

/// Copies the listed columns of a row to `out`.
pub(super) fn gather<T: Copy>(row: &[T], columns: &[u32], out: &mut [T]) {
    for (out, &column) in out.iter_mut().zip(columns) {
        *out = row[column as usize];
    }
}
