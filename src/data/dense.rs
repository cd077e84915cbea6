//! Dense rows: one C-contiguous block.

use super::{Block, LINE, Row, Rows};
use crate::simd::{self, Simd};
use crate::threads::has_company;
use crate::{Error, Result};

/// Rows that are worth another thread to copy.
const GRAIN: usize = 4096;

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

impl Rows for Dense<'_> {
    type Row<'r>
        = &'r [f64]
    where
        Self: 'r;

    type Store = DenseStore;

    type View<'s> = Dense<'s>;

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

    fn n_stored(&self) -> usize {
        self.values.len()
    }

    fn gather(&self, order: &[usize]) -> Option<DenseStore> {
        let mut values = Block::zeroed(order.len() * self.n_features)?;
        copy_rows(self, order, &mut values);
        Some(DenseStore {
            values,
            n_rows: order.len(),
            n_features: self.n_features,
        })
    }

    fn view(store: &DenseStore) -> Dense<'_> {
        Dense {
            values: &store.values,
            n_rows: store.n_rows,
            n_features: store.n_features,
        }
    }
}

/// Copies the rows at `order` into `place`, on all threads there are.
fn copy_rows(from: &Dense<'_>, order: &[usize], place: &mut [f64]) {
    let n_features = from.n_features;
    if order.len() > GRAIN && has_company() {
        let (first, second) = order.split_at(order.len() / 2);
        let (left, right) = place.split_at_mut(first.len() * n_features);
        rayon::join(
            || copy_rows(from, first, left),
            || copy_rows(from, second, right),
        );
        return;
    }
    for (&row, place) in order.iter().zip(place.chunks_exact_mut(n_features.max(1))) {
        place.copy_from_slice(from.row(row));
    }
}

/// Owns a copy of [`Dense`] rows.
#[derive(Debug)]
pub struct DenseStore {
    values: Block,
    n_rows: usize,
    n_features: usize,
}

impl Row for &[f64] {
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

    #[inline]
    fn touch(self) -> f64 {
        self.iter().step_by(LINE).sum::<f64>() + self.last().unwrap_or(&0.0)
    }
}
