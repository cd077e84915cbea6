//! What the kernels of one family are computed from.
//!
//! # Method
//! RBF kernels need squared distances: f32 suffices, because exp(−γd²) damps their rounding errors
//! (see the parent module). Polynomials raise inner products to a power, and tanh of a difference may
//! cancel their leading digits, so inner products are kept as f64, if that matrix fits; otherwise every
//! kernel is computed from the rows. Integers that are [quantised](super::quantized) are exact.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::mirror::mirror;
use super::rows::BLOCK;
use super::source::{Computed, KernelSource, to_f32};
use super::{ApplyKernel, Buffers, Gram, check_panels};
use crate::data::{HugePageBuffer, Layout};
use crate::runtime::simd;
use crate::svm::kernel::{Kernel, PANEL_ROWS, Precision};
use crate::svm::memory::Budget;
use crate::{Monitor, Result};

/// The base of a family of kernels over some rows.
#[derive(Debug)]
pub(in crate::svm) struct Base<'a, R> {
    rows: &'a R,
    row_of_sample: &'a [usize],
    values: BaseValues<'a>,
}

#[derive(Debug)]
enum BaseValues<'a> {
    /// A matrix that all kernels of the family are derived from with all digits.
    Gram(Gram<'a>),
    /// Inner products.
    Products(Products),
    /// Nothing: kernels are computed from the rows; the number of theirs is counted when they are dropped.
    Rows(Arc<AtomicU64>),
}

impl<'a, R: Layout + Debug> Base<'a, R> {
    /// The base of `kernels`, which have the same [`Kernel::base`]. A matrix of inner products may take
    /// `for_products`, any other `budget`.
    pub(in crate::svm) fn new(
        rows: &'a R,
        row_of_sample: &'a [usize],
        kernels: &[Kernel],
        (budget, for_products): (Budget, Budget),
        monitor: &Monitor,
    ) -> Result<Self> {
        let base = kernels[0].base();
        let amplifies = kernels.iter().any(|kernel| kernel.amplifies_rounding());
        let values = if amplifies {
            check_panels(rows)?;
            let source = Computed::new(rows, row_of_sample, base)?;
            let n = row_of_sample.len();
            match Gram::try_quantized(&source, budget, monitor)? {
                Some(gram) => BaseValues::Gram(gram),
                None => match Products::allocate(n, for_products) {
                    Some(values) => BaseValues::Products(Products::new(values, &source, monitor)?),
                    None => BaseValues::Rows(Arc::default()),
                },
            }
        } else {
            BaseValues::Gram(Gram::new(rows, row_of_sample, base, budget, monitor)?)
        };
        Ok(Self {
            rows,
            row_of_sample,
            values,
        })
    }

    /// The matrix of one of the kernels.
    pub(in crate::svm) fn derive(
        &self,
        kernel: Kernel,
        budget: Budget,
        monitor: &Monitor,
    ) -> Result<Gram<'_>> {
        match &self.values {
            BaseValues::Gram(gram) => Gram::derive(gram, kernel, budget, monitor),
            BaseValues::Products(products) => {
                let kernel = kernel.check()?;
                let source = FromProducts { products, kernel };
                Gram::empty(Box::new(source), products.n, Some(&products.buffers))?
                    .filled(budget, monitor)
            }
            BaseValues::Rows(n_computed) => {
                let mut gram = Gram::new(self.rows, self.row_of_sample, kernel, budget, monitor)?;
                gram.total = Some(Arc::clone(n_computed));
                Ok(gram)
            }
        }
    }

    /// Number of rows computed so far, of the base or of all kernels.
    pub(in crate::svm) fn rows_computed(&self) -> u64 {
        match &self.values {
            BaseValues::Gram(gram) => gram.rows_computed(),
            BaseValues::Products(products) => products.n as u64,
            BaseValues::Rows(n_computed) => n_computed.load(Ordering::Relaxed),
        }
    }
}

/// Inner products between all samples.
#[derive(Debug)]
struct Products {
    n: usize,
    values: HugePageBuffer<f64>,
    buffers: Buffers,
}

impl Products {
    /// Memory for the matrix of `n` samples, if it fits.
    fn allocate(n: usize, budget: Budget) -> Option<HugePageBuffer<f64>> {
        let fits = budget.rows(n) >= 2 * n;
        fits.then(|| HugePageBuffer::zeroed(n.checked_mul(n)?))?
    }

    fn new<R: Layout + Debug>(
        mut values: HugePageBuffer<f64>,
        source: &Computed<'_, R>,
        monitor: &Monitor,
    ) -> Result<Self> {
        let n = source.row_of_sample.len();
        values
            .par_chunks_mut((PANEL_ROWS * n).max(1))
            .enumerate()
            .try_for_each(|(index, chunk)| {
                monitor.check()?;
                let first = index * PANEL_ROWS;
                let rows = first..first + chunk.len() / n;
                let identity = |value: f64| value;
                source.write::<_, PANEL_ROWS, _>(Kernel::Linear, (rows, first), chunk, identity);
                Ok(())
            })?;
        mirror::<_, PANEL_ROWS>(&mut values, 0, n, monitor)?;
        Ok(Self {
            n,
            values,
            buffers: Buffers::default(),
        })
    }
}

/// A kernel computed from inner products.
#[derive(Debug)]
struct FromProducts<'a> {
    products: &'a Products,
    kernel: Kernel,
}

impl KernelSource for FromProducts<'_> {
    fn fill(&self, rows: Range<usize>, first: usize, out: &mut [f32]) {
        let n = self.products.n;
        for (row, out) in rows.zip(out.chunks_mut(n)) {
            let base = &self.products.values[row * n..][first..n];
            for (out, base) in out[first..].chunks_mut(BLOCK).zip(base.chunks(BLOCK)) {
                simd::dispatch(ApplyKernel {
                    kernel: self.kernel,
                    scale: 1.0,
                    base,
                    out,
                });
            }
        }
    }

    fn max_single_rows(&self) -> usize {
        self.products.n
    }

    fn diagonal(&self, i: usize) -> f32 {
        let mut value = [self.products.values[i * self.products.n + i]];
        self.kernel.apply(Precision::Single, &mut value);
        to_f32(value[0])
    }
}
