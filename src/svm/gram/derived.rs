//! Kernels that are derived from the matrix of their base.

use std::ops::Range;

use super::Gram;
use super::rows::BLOCK;
use super::source::{KernelSource, to_f32};
use crate::runtime::simd::{self, Simd, WithSimd};
use crate::svm::kernel::{Kernel, Precision};
use crate::{Monitor, Result};

/// A kernel computed from the matrix of its base.
#[derive(Debug)]
pub(super) struct FromBase<'a> {
    pub(super) base: &'a Gram<'a>,
    pub(super) kernel: Kernel,
}

impl KernelSource for FromBase<'_> {
    fn fill(&self, rows: Range<usize>, first: usize, out: &mut [f32]) {
        for (row, out) in rows.zip(out.chunks_mut(self.base.n)) {
            let base = self.base.row(row);
            let (out, base) = (&mut out[first..], &base[first..]);
            for (out, base) in out.chunks_mut(BLOCK).zip(base.chunks(BLOCK)) {
                simd::dispatch(ApplyKernel {
                    kernel: self.kernel,
                    scale: self.base.scale,
                    base,
                    out,
                });
            }
        }
    }

    fn is_symmetric(&self) -> bool {
        self.base.source.is_symmetric()
    }

    fn max_single_rows(&self) -> usize {
        self.base.n
    }

    fn distances(&self) -> Option<&Gram<'_>> {
        (self.kernel.base() == Kernel::SquaredDistance).then_some(self.base)
    }

    fn reserve(&self, rows: &[usize], monitor: &Monitor) -> Result<()> {
        self.base.reserve(rows, monitor)
    }

    fn diagonal(&self, i: usize) -> f32 {
        let mut value = [f64::from(self.base.diagonal[i]) * self.base.scale];
        self.kernel.apply(Precision::Single, &mut value);
        to_f32(value[0])
    }
}

/// Computes kernel values from base values divided by `scale`.
pub(super) struct ApplyKernel<'a, B> {
    pub(super) kernel: Kernel,
    pub(super) scale: f64,
    pub(super) base: &'a [B],
    pub(super) out: &'a mut [f32],
}

impl<B: Copy + Into<f64>> WithSimd for ApplyKernel<'_, B> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self {
            kernel,
            scale,
            base,
            out,
        } = self;
        let mut values = [0.0; BLOCK];
        let values = &mut values[..base.len()];
        for (value, &base) in values.iter_mut().zip(base) {
            *value = base.into() * scale;
        }
        kernel.apply(Precision::Single, values);
        for (out, &value) in out.iter_mut().zip(&*values) {
            *out = to_f32(value);
        }
    }
}
