//! Dense rows: a C-contiguous matrix.

use ndarray::ArrayView2;

use super::{Layout, Row};
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

    /// `n_rows × n_features` values.
    pub(super) fn new_unchecked(values: &'a [f64], n_rows: usize, n_features: usize) -> Self {
        Self {
            values,
            n_rows,
            n_features,
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
