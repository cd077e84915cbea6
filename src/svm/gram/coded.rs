//! Kernel matrices of few different values, a byte each.
//!
//! # Problem
//! Samples of small whole numbers, above all of categories that were made into zeros and ones, have
//! few different distances: two rows of a9a differ in 28 of their features at most. A whole kernel
//! matrix of f32 holds each value a hundred million times, and the system may take longer to hand out
//! the memory than it takes to compute it.
//!
//! # Method
//! Where all stored values are whole numbers and no distance (or inner product) is above 255, the
//! matrix holds the distances as bytes, and a kernel is a table of 256 values. Sums of small whole
//! numbers are exact, so the values have the bits of those that are computed one by one; kernels of
//! the same base share the bytes, whatever their parameters.
//!
//! # Cost
//! n² bytes, a quarter of a matrix of f32; to read a row takes a look at the table for each value.
//! Products are summed in 16 bits, sixteen to a vector, so that both halves of the matrix are computed
//! in less time than it takes to mirror one.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::Pile;
use super::source::{Computed, Source, to_f32};
use crate::data::{HugePageBuffer, Layout, Row as _};
use crate::runtime::simd::Table;
use crate::svm::kernel::Kernel;
use crate::{Monitor, Result};

/// Rows that share a panel: four vectors of a 256-bit machine.
const WIDTH: usize = 64;

/// The largest value that a byte holds.
const LARGEST: f64 = u8::MAX as f64;

/// Values of a base between all samples.
#[derive(Debug)]
pub(super) struct Codes {
    n: usize,
    largest: u8,
    values: HugePageBuffer<u8>,
}

impl Codes {
    /// An upper bound on the values of the base of `computed`, if they are whole numbers that a byte
    /// can hold.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // whole, in 0..=255
    pub(super) fn bound<R: Layout>(computed: &Computed<'_, R>) -> Option<u8> {
        let most = computed.norms.iter().copied().fold(0.0, f64::max);
        if most > LARGEST {
            return None;
        }
        let rows = computed.order.iter();
        let mut values = rows.flat_map(|&row| computed.rows.row(row).entries());
        let mut has_negative = false;
        let are_whole = values.all(|(_, value)| {
            has_negative |= value < 0.0;
            value.fract() == 0.0
        });
        let bound = match (computed.kernel.base(), has_negative) {
            (Kernel::SquaredDistance, false) => 2.0 * most,
            (Kernel::SquaredDistance, true) => 4.0 * most,
            (_, false) => most,
            (_, true) => return None,
        };
        (are_whole && bound <= LARGEST).then_some(bound as u8)
    }

    /// The matrix of the base of `computed`, whose values are `largest` at most.
    pub(super) fn new<R: Layout + Debug>(
        computed: &Computed<'_, R>,
        largest: u8,
        monitor: &Monitor,
    ) -> Result<Self> {
        let n = computed.order.len();
        let base = computed.kernel.base();
        let mut values = HugePageBuffer::new(n * n);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // in 0..=255
        let store = |value: i16| value as u8;
        values
            .par_chunks_mut((WIDTH * n).max(1))
            .enumerate()
            .try_for_each(|(index, chunk)| {
                monitor.check()?;
                let first = index * WIDTH;
                let rows = first..first + chunk.len() / n;
                computed.write::<_, WIDTH, _>(base, (rows, 0), chunk, store);
                Ok(())
            })?;
        Ok(Self { n, largest, values })
    }

    pub(super) fn row(&self, i: usize) -> &[u8] {
        &self.values[i * self.n..][..self.n]
    }
}

/// A kernel of a base whose values are coded.
#[derive(Debug)]
pub(in crate::svm) struct Decoded {
    codes: Arc<Codes>,
    table: Table,
    gathered: Pile<u8>,
}

impl Decoded {
    pub(super) fn new(codes: Arc<Codes>, kernel: Kernel) -> Self {
        let mut values: [f64; 256] = std::array::from_fn(|code| code as f64);
        kernel.finish(&mut values);
        Self {
            table: Table::new(values.map(to_f32), codes.largest),
            codes,
            gathered: Pile::default(),
        }
    }

    pub(super) fn codes(&self) -> &Arc<Codes> {
        &self.codes
    }

    pub(super) fn gathered(&self) -> &Pile<u8> {
        &self.gathered
    }

    #[inline(always)]
    pub(super) fn table(&self) -> &Table {
        &self.table
    }
}

impl Source for Decoded {
    fn fill(&self, rows: Range<usize>, first: usize, out: &mut [f32]) {
        for (row, out) in rows.zip(out.chunks_mut(self.codes.n)) {
            let codes = &self.codes.row(row)[first..];
            self.table.look_up(codes, &mut out[first..]);
        }
    }

    fn pick(&self, row: usize, columns: &[u32], out: &mut [f32]) -> bool {
        let codes = self.codes.row(row);
        for (out, &column) in out.iter_mut().zip(columns) {
            *out = self.table.value(codes[column as usize]);
        }
        true
    }

    fn decoded(&self) -> Option<&Decoded> {
        Some(self)
    }

    fn diagonal(&self, i: usize) -> f32 {
        self.table.value(self.codes.row(i)[i])
    }
}
