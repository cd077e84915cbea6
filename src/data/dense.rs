//! Dense rows: one C-contiguous block.

use std::convert::Infallible;

use super::{HugePageBuffer, Layout, Row, ask_ahead};
use crate::runtime::simd::{self, Simd};
use crate::{Error, Result};

/// `n_rows × n_features` values, row after row.
#[derive(Clone, Copy, Debug)]
pub struct Dense<'a> {
    values: &'a [f64],
    n_rows: usize,
    n_features: usize,
}

impl<'a> Dense<'a> {
    /// Wraps `values`, which hold `n_rows` rows of `n_features` each.
    pub fn new(values: &'a [f64], n_rows: usize, n_features: usize) -> Result<Self> {
        match n_rows.checked_mul(n_features) {
            Some(expected) if expected == values.len() => Ok(Self {
                values,
                n_rows,
                n_features,
            }),
            expected => Err(Error::Shape {
                what: "X",
                expected: expected.unwrap_or(usize::MAX),
                found: values.len(),
            }),
        }
    }
}

impl Layout for Dense<'_> {
    type Row<'r>
        = &'r [f64]
    where
        Self: 'r;

    type Store = HugePageBuffer;

    type View<'s> = Dense<'s>;

    type Features = Infallible;

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

    fn gather<'s>(&self, order: &[usize], store: &'s mut HugePageBuffer) -> Dense<'s> {
        let n_values = order.len() * self.n_features;
        if store.len() < n_values {
            *store = HugePageBuffer::new(n_values);
        }
        let places = store.chunks_exact_mut(self.n_features.max(1));
        for (position, (place, &row)) in places.zip(order).enumerate() {
            ask_ahead(self, order, position);
            place.copy_from_slice(self.row(row));
        }
        Dense {
            values: &store[..n_values],
            n_rows: order.len(),
            n_features: self.n_features,
        }
    }

    /// Dense rows store every feature.
    fn stored_features(&self) -> Option<Infallible> {
        None
    }

    fn with_features<'s>(&'s self, _: Option<&'s Infallible>) -> Dense<'s> {
        *self
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
