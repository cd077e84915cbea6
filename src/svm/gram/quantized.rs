//! Kernel matrices with few distinct values, stored as one byte per value.
//!
//! # Problem
//! Samples of small integers, above all one-hot encoded categories, have few distinct distances: two
//! rows of a9a differ in at most 28 features. An f32 matrix stores each of these values millions of
//! times, and allocating it can take longer than computing it.
//!
//! # Method
//! If all stored values are integers and no distance (or inner product) exceeds 255, the matrix stores
//! the base values as bytes, and a kernel is a lookup table of 256 values. Sums of small integers are
//! exact, so decoded values have the bits of directly computed ones. Kernels of the same base share
//! the bytes, whatever their parameters.
//!
//! # Cost
//! n² bytes, a quarter of an f32 matrix; reading a row takes one table lookup per value. Products are
//! summed in 16 bits, sixteen per 256-bit vector: computing both triangles is faster than mirroring
//! one.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::rows::{BLOCK, KernelRows, gather};
use super::source::{Computed, KernelSource, to_f32};
use crate::data::{HugePageBuffer, Layout, Row as _};
use crate::linear::RowStore;
use crate::runtime::buffers::BufferPool;
use crate::runtime::memory;
use crate::runtime::simd::ByteTable;
use crate::svm::kernel::{Kernel, Precision};
use crate::{Monitor, Result};

/// Rows per panel of i16: four 256-bit vectors.
const PANEL_ROWS: usize = 64;

/// Base values between all samples, as bytes.
#[derive(Debug)]
pub(super) struct QuantizedGram {
    n: usize,
    largest: u8,
    values: HugePageBuffer<u8>,
}

impl QuantizedGram {
    /// An upper bound on the base values of `computed`, if they are integers that fit a byte.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // integer, in 0..=255
    pub(super) fn bound<S: RowStore>(computed: &Computed<'_, S>) -> Option<u8> {
        let max_byte = f64::from(u8::MAX);
        let max_norm = computed.norms.iter().copied().fold(0.0, f64::max);
        if max_norm > max_byte {
            return None;
        }
        let rows = computed.rows();
        let order = computed.row_of_sample.iter();
        let mut values = order.flat_map(|&row| rows.row(row).entries());
        let mut has_negative = false;
        let are_integers = values.all(|(_, value)| {
            has_negative |= value < 0.0;
            value.fract() == 0.0
        });
        let bound = match (computed.kernel.base(), has_negative) {
            (Kernel::SquaredDistance, false) => 2.0 * max_norm,
            (Kernel::SquaredDistance, true) => 4.0 * max_norm,
            (_, false) => max_norm,
            (_, true) => return None,
        };
        (are_integers && bound <= max_byte).then_some(bound as u8)
    }

    /// The base matrix of `computed`, with values of at most `largest`.
    pub(super) fn new<S: RowStore>(
        computed: &Computed<'_, S>,
        largest: u8,
        monitor: &Monitor,
    ) -> Result<Self> {
        let n = computed.row_of_sample.len();
        let base = computed.kernel.base();
        let what = format_args!("the kernel matrix of {n} samples");
        memory::check_shape::<u8>(what, &[n, n])?;
        let mut values = HugePageBuffer::new(n * n);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // in 0..=255
        let store = |value: i16| value as u8;
        values
            .par_chunks_mut((PANEL_ROWS * n).max(1))
            .enumerate()
            .try_for_each(|(index, chunk)| {
                monitor.check()?;
                let first = index * PANEL_ROWS;
                let rows = first..first + chunk.len() / n;
                computed.write::<_, PANEL_ROWS, _>(base, (rows, 0), chunk, store);
                Ok(())
            })?;
        Ok(Self { n, largest, values })
    }

    pub(super) fn row(&self, i: usize) -> &[u8] {
        &self.values[i * self.n..][..self.n]
    }
}

/// A kernel as a lookup table over a quantised base.
#[derive(Debug)]
pub(in crate::svm) struct LookupKernel {
    base: Arc<QuantizedGram>,
    table: ByteTable,
    gathered: BufferPool<Vec<u8>>,
}

impl LookupKernel {
    pub(super) fn new(base: Arc<QuantizedGram>, kernel: Kernel) -> Self {
        let mut values: [f64; 256] = std::array::from_fn(|code| code as f64);
        kernel.apply(Precision::Single, &mut values);
        Self {
            table: ByteTable::new(&values.map(to_f32), base.largest),
            base,
            gathered: BufferPool::default(),
        }
    }

    pub(super) fn base(&self) -> &Arc<QuantizedGram> {
        &self.base
    }

    /// Returns true if decoding takes no memory lookups.
    pub(super) fn is_fast(&self) -> bool {
        self.table.fits_registers()
    }

    /// Copies the values of the listed columns of a row to `out`.
    pub(super) fn gather_values(&self, row: usize, columns: &[u32], out: &mut [f32]) {
        let codes = self.base.row(row);
        for (out, &column) in out.iter_mut().zip(columns) {
            *out = self.table.value(codes[column as usize]);
        }
    }
}

impl KernelSource for Arc<LookupKernel> {
    fn fill(&self, rows: Range<usize>, first: usize, out: &mut [f32]) {
        for (row, out) in rows.zip(out.chunks_mut(self.base.n)) {
            let codes = &self.base.row(row)[first..];
            self.table.look_up(codes, &mut out[first..]);
        }
    }

    fn diagonal(&self, i: usize) -> f32 {
        self.table.value(self.base.row(i)[i])
    }
}

impl<'a> KernelRows for &'a LookupKernel {
    type Value = u8;
    type Row = &'a [u8];
    type DecodeBuffer = [f32; BLOCK];

    #[inline]
    fn row(self, i: usize) -> &'a [u8] {
        self.base.row(i)
    }

    fn gather(self, i: usize, columns: &[u32], out: &mut [u8]) {
        gather(self.base.row(i), columns, out);
    }

    #[inline(always)]
    fn decode_buffer() -> [f32; BLOCK] {
        [0.0; BLOCK]
    }

    #[inline(always)]
    fn decode<'r>(self, stored: &'r [u8], buffer: &'r mut [f32; BLOCK]) -> &'r [f32] {
        let values = &mut buffer[..stored.len()];
        self.table.look_up(stored, values);
        values
    }

    fn buffers(&self) -> &BufferPool<Vec<u8>> {
        &self.gathered
    }
}
