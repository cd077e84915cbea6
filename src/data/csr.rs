//! Sparse rows in scipy's CSR layout, with 32- or 64-bit indices.

use std::fmt::{Debug, Display};

use bytemuck::Pod;
use ndarray::ArrayView1;

use super::{Layout, Row, contiguous};
use crate::runtime::simd::{self, Simd};
use crate::{Error, Result};

/// The integer types scipy uses for indices.
pub trait Index: Pod + Ord + Send + Sync + Debug + Display + 'static {
    /// As an offset; a negative index becomes one that is out of every range.
    fn offset(self) -> usize;

    /// An offset that is known to fit.
    fn from_offset(offset: usize) -> Self;
}

impl Index for i32 {
    #[inline(always)]
    #[allow(clippy::cast_sign_loss)] // out of range on purpose: see the trait
    fn offset(self) -> usize {
        self as isize as usize
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // known to fit
    fn from_offset(offset: usize) -> Self {
        offset as i32
    }
}

impl Index for i64 {
    #[inline(always)]
    #[allow(clippy::cast_sign_loss, clippy::cast_possible_truncation)] // as for i32
    fn offset(self) -> usize {
        self as isize as usize
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // known to fit
    fn from_offset(offset: usize) -> Self {
        offset as i64
    }
}

/// Row `i` holds `values[indptr[i]..indptr[i + 1]]` at the features `indices[..]` of the same range.
#[derive(Clone, Copy, Debug)]
pub struct Csr<'a, I> {
    indptr: &'a [I],
    pub(super) indices: &'a [I],
    values: &'a [f64],
    pub(super) n_features: usize,
}

impl<'a, I: Index> Csr<'a, I> {
    /// Wraps CSR arrays whose indices increase strictly within each row.
    pub fn new(
        indptr: impl Into<ArrayView1<'a, I>>,
        indices: impl Into<ArrayView1<'a, I>>,
        values: impl Into<ArrayView1<'a, f64>>,
        n_features: usize,
    ) -> Result<Self> {
        let indptr = contiguous(indptr.into().to_slice(), "X.indptr")?;
        let indices = contiguous(indices.into().to_slice(), "X.indices")?;
        let values = contiguous(values.into().to_slice(), "X.data")?;
        if let Some((row, [a, b])) = disorder(indptr, indices, values.len(), n_features)? {
            return invalid(format!(
                "row {row} has index {b} after {a}: sort, sum duplicates"
            ));
        }
        Ok(Self {
            indptr,
            indices,
            values,
            n_features,
        })
    }

    /// Wraps arrays that [`Csr::new`] would accept.
    pub(crate) fn new_unchecked(
        indptr: &'a [I],
        indices: &'a [I],
        values: &'a [f64],
        n_features: usize,
    ) -> Self {
        Self {
            indptr,
            indices,
            values,
            n_features,
        }
    }

    /// The same rows with other stored values.
    ///
    /// # Panics
    /// When the number of values differs.
    pub(crate) fn with_values<'s>(&'s self, values: &'s [f64]) -> Csr<'s, I> {
        assert_eq!(values.len(), self.values.len());
        Csr { values, ..*self }
    }
}

/// Whether the indices of CSR arrays increase strictly within each row: an error if they are not
/// arrays of a matrix with `n_features` columns and `n_values` stored values.
pub fn is_canonical<'a, I: Index>(
    indptr: impl Into<ArrayView1<'a, I>>,
    indices: impl Into<ArrayView1<'a, I>>,
    n_values: usize,
    n_features: usize,
) -> Result<bool> {
    let indptr = contiguous(indptr.into().to_slice(), "X.indptr")?;
    let indices = contiguous(indices.into().to_slice(), "X.indices")?;
    Ok(disorder(indptr, indices, n_values, n_features)?.is_none())
}

/// The first row whose indices do not increase strictly, with two of them: an error if the arrays
/// contradict each other.
fn disorder<I: Index>(
    indptr: &[I],
    indices: &[I],
    n_values: usize,
    n_features: usize,
) -> Result<Option<(usize, [I; 2])>> {
    if indices.len() != n_values {
        return invalid(format!("{} indices for {n_values} values", indices.len()));
    }
    match (indptr.first(), indptr.last()) {
        (Some(first), Some(last)) if first.offset() == 0 && last.offset() == n_values => {}
        _ => return invalid(format!("indptr must run from 0 to {n_values}")),
    }
    let mut found = None;
    for (row, ends) in indptr.windows(2).enumerate() {
        let Some(indices) = indices.get(ends[0].offset()..ends[1].offset()) else {
            return invalid(format!("indptr decreases or overruns at row {row}"));
        };
        if let Some(bad) = indices.iter().find(|j| j.offset() >= n_features) {
            return invalid(format!(
                "row {row} has index {bad} of {n_features} features"
            ));
        }
        if found.is_none() {
            let pair = indices.windows(2).find(|pair| pair[0] >= pair[1]);
            found = pair.map(|pair| (row, [pair[0], pair[1]]));
        }
    }
    Ok(found)
}

fn invalid<T>(reason: String) -> Result<T> {
    Err(Error::Csr { reason })
}

impl<I: Index> Layout for Csr<'_, I> {
    type Row<'r>
        = CsrRow<'r, I>
    where
        Self: 'r;

    fn n_rows(&self) -> usize {
        self.indptr.len() - 1
    }

    fn n_features(&self) -> usize {
        self.n_features
    }

    #[inline(always)]
    fn row(&self, index: usize) -> CsrRow<'_, I> {
        let range = self.indptr[index].offset()..self.indptr[index + 1].offset();
        CsrRow {
            indices: &self.indices[range.clone()],
            values: &self.values[range],
        }
    }

    fn n_stored(&self) -> usize {
        self.values.len()
    }
}

/// The stored values of one row, and their features.
#[derive(Clone, Copy, Debug)]
pub struct CsrRow<'a, I> {
    pub(super) indices: &'a [I],
    pub(super) values: &'a [f64],
}

impl<I: Index> Row for CsrRow<'_, I> {
    const STORES_ALL: bool = false;

    #[inline(always)]
    fn dot<S: Simd>(self, _: S, w: &[f64]) -> f64 {
        // Two chains of additions: the loads, not the sums, then set the pace.
        let (pairs, last) = self.values.as_chunks::<2>();
        let (index_pairs, last_index) = self.indices.as_chunks::<2>();
        let mut sums = [0.0; 2];
        for (v, j) in pairs.iter().zip(index_pairs) {
            sums[0] += v[0] * w[j[0].offset()];
            sums[1] += v[1] * w[j[1].offset()];
        }
        for (v, j) in last.iter().zip(last_index) {
            sums[0] += v * w[j.offset()];
        }
        sums[0] + sums[1]
    }

    #[inline(always)]
    fn axpy<S: Simd>(self, _: S, alpha: f64, w: &mut [f64]) {
        for (j, v) in self.entries() {
            w[j] += alpha * v;
        }
    }

    #[inline(always)]
    fn squared_norm<S: Simd>(self, simd: S) -> f64 {
        simd::dot(simd, self.values, self.values)
    }

    #[inline(always)]
    fn entries(self) -> impl Iterator<Item = (usize, f64)> {
        self.indices
            .iter()
            .map(|j| j.offset())
            .zip(self.values.iter().copied())
    }

    #[inline(always)]
    fn n_stored(self) -> usize {
        self.values.len()
    }

    #[inline(always)]
    fn prefetch(self) {
        simd::prefetch(self.indices);
        simd::prefetch(self.values);
    }

    #[inline(always)]
    fn prefetch_start(self) {
        simd::prefetch_start(self.indices);
        simd::prefetch_start(self.values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason<I: Index>(indptr: &[I], indices: &[I], values: &[f64]) -> String {
        Csr::new(indptr, indices, values, 3)
            .expect_err("invalid")
            .to_string()
    }

    #[test]
    fn arrays_that_contradict_each_other_are_refused() {
        assert!(Csr::new(&[0, 2, 2], &[0, 2], &[1.0, 2.0], 3).is_ok());
        assert!(reason(&[0, 1], &[0, 1], &[1.0]).contains("2 indices for 1 values"));
        assert!(reason::<i32>(&[], &[], &[]).contains("indptr must run from 0 to 0"));
        assert!(reason(&[0, 3], &[0], &[1.0]).contains("indptr must run from 0 to 1"));
        assert!(
            reason(&[0, 2, 1, 2], &[0, 1], &[1.0; 2]).contains("decreases or overruns at row 1")
        );
        assert!(reason(&[0i64, 9, 2], &[0, 1], &[1.0; 2]).contains("overruns at row 0"));
        assert!(reason(&[0, 2], &[0, 3], &[1.0; 2]).contains("row 0 has index 3 of 3 features"));
        assert!(reason(&[0, 2], &[-1, 2], &[1.0; 2]).contains("index -1"));
        assert!(reason(&[0, 0, 2], &[1, 1], &[1.0; 2]).contains("row 1 has index 1 after 1"));
    }

    #[test]
    fn canonical_arrays_are_told_from_unsorted_repeated_and_invalid_ones() {
        let canonical = |indices: &[i32]| is_canonical(&[0, 1, 3], indices, 3, 4);
        assert!(canonical(&[3, 0, 2]).expect("valid"));
        assert!(!canonical(&[3, 2, 0]).expect("valid"));
        assert!(!canonical(&[3, 2, 2]).expect("valid"));
        assert!(canonical(&[3, 2, 4]).is_err());
        assert!(is_canonical(&[0, 2, 1, 3], &[1, 0, 2], 3, 4).is_err());
    }
}
