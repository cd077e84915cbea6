//! Fitted linear models of one fold.

use super::moments::{PANEL_ROWS, RowPanel, is_sparse};
use super::{FoldMap, NormalEquations};
use crate::data::{Layout, Row};
use crate::linalg::{self, Mat};

/// A centred column no larger than this fraction of its mean is constant to rounding.
pub(crate) const ROUNDING: f64 = 8.0 * f64::EPSILON;

/// The coefficients of a fitted fold, in the units of the rows.
pub(crate) struct Fitted {
    /// x − shift.
    map: FoldMap,
    /// One column per λ and output, the prediction at the shift last.
    coefficients: Mat<f64>,
}

impl Fitted {
    /// From coefficients for x − shift, and the prediction at the shift.
    pub(crate) fn new(shift: Vec<f64>, coefficients: Mat<f64>) -> Self {
        Self {
            map: FoldMap::shifted(shift),
            coefficients,
        }
    }

    /// From coefficients of the columns that `map` shifts, and the prediction at its shift.
    pub(crate) fn behind(map: &FoldMap, mut coefficients: Mat<f64>) -> Self {
        if !map.has_sums() {
            return Self::new(map.shifts(), coefficients);
        }
        let p = map.n_features();
        for c in 0..coefficients.ncols() {
            let at_zero: f64 = (0..p).map(|j| map.shift(j) * coefficients[(j, c)]).sum();
            coefficients[(p, c)] -= at_zero;
        }
        let shift = vec![0.0; map.n_common()];
        Self::new(shift, map.coefficients_of_common(coefficients))
    }

    /// From coefficients of the features of normal equations, one column per λ and output.
    pub(crate) fn of_normal(normal: &NormalEquations<'_>, beta: &Mat<f64>) -> Self {
        let (p, q) = (beta.nrows(), normal.target_mean.len());
        let common = &normal.common;
        let coefficients = Mat::from_fn(p + 1, beta.ncols(), |j, c| {
            let of_common = |j: usize| beta[(j, c)] * normal.map.scale(j);
            if j < p {
                of_common(j) * common.scale(j)
            } else {
                normal.prediction_at_origin(c % q, of_common)
            }
        });
        Self::behind(common, coefficients)
    }

    /// Number of models: one per λ and output.
    pub(crate) fn n_models(&self) -> usize {
        self.coefficients.ncols()
    }

    /// The coefficient of feature `j`, or the prediction at the shift as that of the last.
    pub(crate) fn coefficient(&self, j: usize, model: usize) -> f64 {
        self.coefficients[(j, model)]
    }

    /// Predictions of `rows`: one column per row.
    pub(crate) fn predict<R: Layout>(&self, data: &R, rows: &[usize]) -> Mat<f64> {
        let p = data.n_features();
        let beta = self.coefficients.get(..p, ..);
        let mut out = Mat::from_fn(beta.ncols(), rows.len(), |c, _| self.coefficients[(p, c)]);
        if is_sparse(data) && self.map.is_identity() {
            self.add_sparse(data, rows, &mut out);
            return out;
        }
        let mut panel = RowPanel::new(p);
        let mut start = 0;
        for rows in rows.chunks(PANEL_ROWS) {
            let x = panel.columns(rows, |row, out| self.map.write(data, row, out));
            let columns = out.get_mut(.., start..start + rows.len());
            linalg::add_product(columns, beta.transpose(), x);
            start += rows.len();
        }
        out
    }

    /// Adds xᵀβ of sparse rows, entry by entry.
    fn add_sparse<R: Layout>(&self, data: &R, rows: &[usize], out: &mut Mat<f64>) {
        let by_feature = self.coefficients.transpose().to_owned();
        for (i, &row) in rows.iter().enumerate() {
            let out = out.col_as_slice_mut(i);
            for (j, v) in data.row(row).entries() {
                let coefficients = by_feature.col_as_slice(j);
                out.iter_mut()
                    .zip(coefficients)
                    .for_each(|(out, c)| *out += v * c);
            }
        }
    }

    /// Coefficients and intercepts for the rows without a shift.
    pub(crate) fn coefficients(&self) -> Mat<f64> {
        let mut coefficients = self.coefficients.clone();
        let p = self.map.n_features();
        for c in 0..coefficients.ncols() {
            for j in 0..p {
                coefficients[(p, c)] -= self.map.shift(j) * self.coefficients[(j, c)];
            }
        }
        coefficients
    }
}

/// Returns true if the variance of `n` values with this mean may be rounding error.
pub(crate) fn is_constant(n: f64, mean: f64, variance: f64) -> bool {
    variance <= n * f64::EPSILON * variance + (n * mean * f64::EPSILON).powi(2)
}
