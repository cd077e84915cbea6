//! What the kernels of one family are computed from.
//!
//! # Method
//! RBF kernels need squared distances: f32 suffices, because exp(−γd²) damps their rounding errors
//! (see the parent module). Polynomials raise inner products to a power, and tanh of a difference may
//! cancel their leading digits, so inner products are kept as f64, if that matrix fits; otherwise every
//! kernel is computed from the rows. Integers that are [quantised](super::quantized) are exact.

use std::ops::Range;

use rayon::prelude::*;

use super::derived::ApplyKernel;
use super::mirror::mirror;
use super::rows::BLOCK;
use super::source::{Computed, KernelSource, to_f32};
use super::{Buffers, Gram, check_panels};
use crate::data::HugePageBuffer;
use crate::linear::RowStore;
use crate::runtime::simd;
use crate::svm::kernel::{Kernel, PANEL_ROWS, Precision};
use crate::svm::memory::Budget;
use crate::{Monitor, Result};

/// The base of a family of kernels over some rows.
#[derive(Debug)]
pub(in crate::svm) struct Base<'a> {
    values: BaseValues<'a>,
}

#[derive(Debug)]
enum BaseValues<'a> {
    /// A matrix that all kernels of the family are derived from with all digits.
    Gram(Gram<'a>),
    /// Inner products.
    Products(Products),
}

impl<'a> Base<'a> {
    /// The base of `kernels`, which have the same [`Kernel::base`]. A matrix of inner products may take
    /// `for_products`, any other `budget`. `None` if inner products do not fit into it, or
    /// distances not into f32: every kernel is then computed from the rows.
    pub(in crate::svm) fn new<S: RowStore + 'a>(
        store: S,
        row_of_sample: &'a [usize],
        kernels: &[Kernel],
        (budget, for_products): (Budget, Budget),
        monitor: &Monitor,
    ) -> Result<Option<Self>> {
        let base = kernels[0].base();
        if !kernels.iter().any(|kernel| kernel.amplifies_rounding()) {
            let gram = Gram::of_rows(store, row_of_sample, base, budget, monitor)?;
            let is_exact = kernels.iter().all(|&kernel| holds(gram.scale, kernel));
            let values = BaseValues::Gram(gram);
            return Ok(is_exact.then_some(Self { values }));
        }
        check_panels(&store.view())?;
        let source = Computed::new(store, row_of_sample, base)?;
        if let Some(gram) = Gram::try_quantized(&source, budget, monitor)? {
            let values = BaseValues::Gram(gram);
            return Ok(Some(Self { values }));
        }
        let values = Products::allocate(row_of_sample.len(), for_products);
        let products = values.map(|values| Products::new(values, &source, monitor));
        Ok(products.transpose()?.map(|products| Self {
            values: BaseValues::Products(products),
        }))
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
        }
    }

    /// Number of rows computed so far.
    pub(in crate::svm) fn rows_computed(&self) -> u64 {
        match &self.values {
            BaseValues::Gram(gram) => gram.rows_computed(),
            BaseValues::Products(products) => products.n as u64,
        }
    }
}

/// Returns true if distances divided by `scale` that are too small for f32 leave the kernel at 1.
/// They do not where one row is so far away that f32 cannot hold both its distances and those of
/// the others.
fn holds(scale: f64, kernel: Kernel) -> bool {
    match kernel {
        Kernel::Rbf { gamma } => {
            gamma * scale * f64::from(f32::MIN_POSITIVE) < f64::from(f32::EPSILON)
        }
        _ => true,
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

    fn new<S: RowStore>(
        mut values: HugePageBuffer<f64>,
        source: &Computed<'_, S>,
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
        mirror::<_, PANEL_ROWS>(&mut values, 0, n, false, monitor)?;
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
