//! Columns of a fold that are sums of common columns.
//!
//! # Problem
//! A missing value is filled with a constant of the fold, a category is a column if the training rows
//! have it, and a scaler behind them has its own factors: v = Lx, with another L for every fold.
//!
//! # Method
//! L is sparse, and has its entries at the same places for all folds, so that a fold holds their values
//! only. They are ordered by common column. A common column that a fold does not use has zeros.

use std::sync::Arc;

use crate::data::Row;
use crate::linalg::{Mat, MatRef};
use crate::{Error, Result};

/// Where the entries of L are.
#[derive(Debug, PartialEq)]
struct Places {
    n_columns: usize,
    /// Where the entries of each common column begin, and the end.
    starts: Vec<usize>,
    /// The column of the fold that each entry adds to.
    columns: Vec<usize>,
}

/// L of one fold.
#[derive(Clone, Debug)]
pub(crate) struct Combination {
    places: Arc<Places>,
    values: Vec<f64>,
}

impl PartialEq for Combination {
    fn eq(&self, other: &Self) -> bool {
        let same_places = Arc::ptr_eq(&self.places, &other.places) || self.places == other.places;
        same_places && self.values == other.values
    }
}

impl Combination {
    /// One for each line of values: entries with the places `starts`, of each of the common columns, and
    /// `columns`, of `n_columns` columns of the fold.
    pub(super) fn of_folds<'v>(
        n_columns: usize,
        starts: Vec<usize>,
        columns: Vec<usize>,
        values: impl Iterator<Item = ndarray::ArrayView1<'v, f64>>,
    ) -> Result<Vec<Self>> {
        let n = columns.len();
        let is_ordered = starts.first() == Some(&0)
            && starts.last() == Some(&n)
            && starts.windows(2).all(|pair| pair[0] <= pair[1]);
        if !is_ordered || columns.iter().any(|&column| column >= n_columns) {
            let rule = "ordered, of columns that there are";
            return Err(Error::parameter("entries of the map", rule, "others"));
        }
        let places = Arc::new(Places {
            n_columns,
            starts,
            columns,
        });
        let of_fold = |values: ndarray::ArrayView1<'v, f64>| {
            if values.len() != n {
                return Err(Error::Shape {
                    what: "values of the map",
                    expected: n,
                    found: values.len(),
                });
            }
            Ok(Self {
                places: Arc::clone(&places),
                values: values.to_vec(),
            })
        };
        values.map(of_fold).collect()
    }

    /// The number of common columns.
    pub(super) fn n_common(&self) -> usize {
        self.places.starts.len() - 1
    }

    /// The number of columns of the fold.
    pub(super) fn n_columns(&self) -> usize {
        self.places.n_columns
    }

    pub(super) fn values(&self) -> &[f64] {
        &self.values
    }

    /// Columns and factors of what a common column is added to.
    #[inline(always)]
    fn entries(&self, common: usize) -> impl Iterator<Item = (usize, f64)> {
        let span = self.places.starts[common]..self.places.starts[common + 1];
        let columns = self.places.columns[span.clone()].iter().copied();
        columns.zip(self.values[span].iter().copied())
    }

    /// The same of common columns in other units: of u with x = u·factor.
    pub(super) fn in_units(&self, factor: impl Fn(usize) -> f64) -> Self {
        let mut scaled = self.clone();
        for i in 0..self.n_common() {
            let span = self.places.starts[i]..self.places.starts[i + 1];
            scaled.values[span].iter_mut().for_each(|l| *l *= factor(i));
        }
        scaled
    }

    /// Writes Lx of a row.
    #[inline(always)]
    pub(super) fn write<T: Row>(&self, row: T, out: &mut [f64]) {
        out.fill(0.0);
        for (i, x) in row.entries() {
            for (j, l) in self.entries(i) {
                out[j] += l * x;
            }
        }
    }

    /// Lx.
    pub(super) fn apply(&self, common: &[f64]) -> Vec<f64> {
        self.sum(common, |l| l)
    }

    /// |L|x.
    pub(super) fn apply_sizes(&self, common: &[f64]) -> Vec<f64> {
        self.sum(common, f64::abs)
    }

    /// L²x, the elements of L squared.
    pub(super) fn apply_squares(&self, common: &[f64]) -> Vec<f64> {
        self.sum(common, |l| l * l)
    }

    /// γ with Lᵀγ nearest to some θ, if no two rows of L overlap: Lθ, divided by the squares of the rows.
    pub(super) fn nearest(&self, common: &[f64]) -> Vec<f64> {
        let (mut params, ones) = (self.apply(common), vec![1.0; self.n_common()]);
        for (param, square) in params.iter_mut().zip(self.apply_squares(&ones)) {
            *param = if square > 0.0 { *param / square } else { 0.0 };
        }
        params
    }

    /// Whether each column of the fold has an entry other than zero.
    pub(super) fn are_used(&self) -> Vec<bool> {
        let mut are_used = vec![false; self.n_columns()];
        for (&column, value) in self.places.columns.iter().zip(&self.values) {
            are_used[column] |= *value != 0.0;
        }
        are_used
    }

    fn sum(&self, common: &[f64], factor: impl Fn(f64) -> f64) -> Vec<f64> {
        let mut out = vec![0.0; self.n_columns()];
        for (i, x) in common.iter().take(self.n_common()).enumerate() {
            for (j, l) in self.entries(i) {
                out[j] += factor(l) * x;
            }
        }
        out
    }

    /// Lᵀγ.
    pub(super) fn transposed(&self, params: &[f64]) -> Vec<f64> {
        let of_common = |i| self.entries(i).map(|(j, l)| l * params[j]).sum();
        (0..self.n_common()).map(of_common).collect()
    }

    /// LᵀΓ, column by column; the rows of Γ below those of the columns stay.
    pub(super) fn transposed_columns(&self, params: &Mat<f64>) -> Mat<f64> {
        let (m, p) = (self.n_common(), self.n_columns());
        let n_others = params.nrows() - p;
        let mut out = Mat::zeros(m + n_others, params.ncols());
        for c in 0..params.ncols() {
            let params = params.col_as_slice(c);
            let out = out.col_as_slice_mut(c);
            for (i, out) in out[..m].iter_mut().enumerate() {
                *out = self.entries(i).map(|(j, l)| l * params[j]).sum();
            }
            out[m..].copy_from_slice(&params[p..]);
        }
        out
    }

    /// Σ w·(v, y)(v, y)ᵀ from Σ w·(x, y)(x, y)ᵀ, for whatever y is; lower triangles.
    pub(super) fn second_moments(&self, common: MatRef<'_, f64>) -> Mat<f64> {
        let (m, p) = (self.n_common(), self.n_columns());
        let n_others = common.nrows() - m;
        // Rows (v, y), columns (x, y).
        let mut half: Mat<f64> = Mat::zeros(p + n_others, m + n_others);
        for k in 0..m + n_others {
            let half = half.col_as_slice_mut(k);
            let value = |i: usize| common[(i.max(k), i.min(k))];
            for i in 0..m {
                let s = value(i);
                for (j, l) in self.entries(i) {
                    half[j] += l * s;
                }
            }
            (0..n_others).for_each(|o| half[p + o] = value(m + o));
        }
        let mut all: Mat<f64> = Mat::zeros(p + n_others, p + n_others);
        for k in 0..m {
            for (j, l) in self.entries(k).filter(|entry| entry.1 != 0.0) {
                let column = all.col_as_slice_mut(j)[j..].iter_mut();
                for (out, half) in column.zip(&half.col_as_slice(k)[j..]) {
                    *out += l * half;
                }
            }
        }
        for o in 0..n_others {
            let column = all.col_as_slice_mut(p + o)[p + o..].iter_mut();
            for (out, half) in column.zip(&half.col_as_slice(m + o)[p + o..]) {
                *out = *half;
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::product;
    use ndarray::array;

    /// Three common columns, and three of the fold, of which the last has no entry but zero.
    fn combination() -> Combination {
        let values = array![[2.0, -1.0, 0.5, 0.0]];
        let made =
            Combination::of_folds(3, vec![0, 1, 3, 4], vec![0, 0, 1, 2], values.outer_iter());
        made.expect("ordered").swap_remove(0)
    }

    /// L of [`combination`].
    fn matrix() -> Mat<f64> {
        let l = [[2.0, -1.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 0.0]];
        Mat::from_fn(3, 3, |i, j| l[i][j])
    }

    #[test]
    fn products_are_those_of_the_matrix() {
        let (combination, l) = (combination(), matrix());
        let x = [1.0, 3.0, 7.0];
        let column = Mat::from_fn(3, 1, |i, _| x[i]);
        let applied = product(l.as_ref(), column.as_ref());
        let transposed = product(l.transpose(), column.as_ref());
        let below = Mat::from_fn(4, 1, |i, _| [1.0, 3.0, 7.0, 9.0][i]);
        let with_last = combination.transposed_columns(&below);
        for i in 0..3 {
            assert_eq!(combination.apply(&x)[i], applied[(i, 0)]);
            assert_eq!(combination.transposed(&x)[i], transposed[(i, 0)]);
            assert_eq!(with_last[(i, 0)], transposed[(i, 0)]);
        }
        assert_eq!(with_last[(3, 0)], 9.0);
        assert_eq!(combination.are_used(), [true, true, false]);
        assert_eq!(
            combination.in_units(|_| 2.0).apply(&x)[0],
            2.0 * applied[(0, 0)]
        );
    }

    #[test]
    fn moments_are_those_of_mapped_rows() {
        let (combination, l) = (combination(), matrix());
        // Of three columns and one other.
        let common = Mat::from_fn(4, 4, |i, j| 1.0 / (1.0 + (i + j) as f64));
        let whole = Mat::from_fn(4, 4, |i, j| {
            if i < 3 && j < 3 {
                l[(i, j)]
            } else {
                f64::from(i == j)
            }
        });
        let half = product(whole.as_ref(), common.as_ref());
        let expected = product(half.as_ref(), whole.transpose());
        let found = combination.second_moments(common.as_ref());
        for j in 0..4 {
            for i in j..4 {
                assert!((found[(i, j)] - expected[(i, j)]).abs() < 1e-14);
            }
        }
    }

    #[test]
    fn entries_must_be_of_columns_that_there_are() {
        let values = array![[1.0]];
        for (starts, column) in [(vec![0, 1], 1), (vec![0, 2], 0), (vec![1, 1], 0)] {
            let made = Combination::of_folds(1, starts, vec![column], values.outer_iter());
            assert!(made.is_err());
        }
    }
}
