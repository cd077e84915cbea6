//! Dense rows: a C-contiguous matrix.

use ndarray::ArrayView2;

use super::{HugePageBuffer, Layout, Row, prefetch_ahead};
use crate::runtime::simd::{self, Simd};
use crate::{Error, Result};

/// `n_rows × n_features` values in row-major order.
#[derive(Clone, Copy, Debug)]
pub struct Dense<'a> {
    values: &'a [f64],
    n_rows: usize,
    n_features: usize,
}

impl<'a> Dense<'a> {
    /// The rows of a C-contiguous matrix.
    pub fn new(x: ArrayView2<'a, f64>) -> Result<Self> {
        let (n_rows, n_features) = x.dim();
        match x.to_slice() {
            Some(values) => Ok(Self {
                values,
                n_rows,
                n_features,
            }),
            None => Err(Error::Parameter {
                name: "X",
                rule: "C-contiguous",
                value: format!("strides {:?}", x.strides()),
            }),
        }
    }

    /// Rows of the same shape with other values.
    ///
    /// # Panics
    /// When the number of values differs.
    pub(crate) fn with_values<'s>(&self, values: &'s [f64]) -> Dense<'s> {
        assert_eq!(values.len(), self.values.len());
        Dense { values, ..*self }
    }

    /// Copies the rows at `order`, in that order, into `buffer`.
    ///
    /// # Panics
    /// When there is no such row.
    pub(crate) fn gather<'s>(&self, order: &[usize], buffer: &'s mut HugePageBuffer) -> Dense<'s> {
        let n_values = order.len() * self.n_features;
        if buffer.len() < n_values {
            *buffer = HugePageBuffer::new(n_values);
        }
        let targets = buffer.chunks_exact_mut(self.n_features.max(1));
        for (position, (target, &row)) in targets.zip(order).enumerate() {
            prefetch_ahead(self, order, position);
            target.copy_from_slice(self.row(row));
        }
        Dense {
            values: &buffer[..n_values],
            n_rows: order.len(),
            n_features: self.n_features,
        }
    }
}

impl Layout for Dense<'_> {
    type Row<'r>
        = &'r [f64]
    where
        Self: 'r;

    fn n_rows(&self) -> usize {
        self.n_rows
    }

    fn n_features(&self) -> usize {
        self.n_features
    }

    #[inline(always)]
    fn row(&self, index: usize) -> &[f64] {
        &self.values[index * self.n_features..][..self.n_features]
    }

    #[inline(always)]
    fn values(&self, index: usize) -> Option<&[f64]> {
        Some(self.row(index))
    }

    fn n_stored(&self) -> usize {
        self.values.len()
    }
}

impl Row for &[f64] {
    const STORES_ALL: bool = true;

    #[inline(always)]
    fn dot<S: Simd>(self, simd: S, w: &[f64]) -> f64 {
        simd::dot(simd, self, w)
    }

    #[inline(always)]
    fn axpy<S: Simd>(self, simd: S, alpha: f64, w: &mut [f64]) {
        simd::axpy(simd, alpha, self, w);
    }

    #[inline(always)]
    fn axpy_dot<S: Simd>(self, simd: S, alpha: f64, w: &mut [f64], next: Self) -> f64 {
        simd::axpy_dot(simd, alpha, self, w, next)
    }

    #[inline(always)]
    fn squared_norm<S: Simd>(self, simd: S) -> f64 {
        simd::dot(simd, self, self)
    }

    #[inline(always)]
    fn entries(self) -> impl Iterator<Item = (usize, f64)> {
        self.iter().copied().enumerate()
    }

    #[inline(always)]
    fn n_stored(self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn prefetch(self) {
        simd::prefetch(self);
    }

    #[inline(always)]
    fn prefetch_start(self) {
        simd::prefetch_start(self);
    }
}
