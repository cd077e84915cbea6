//! One fold, fitted from its own training rows.
//!
//! Problem: a few folds take away what determined the model (1 − h ≈ 0), or nearly so. There the
//! downdated system has no digits left.
//!
//! Method: QR of the training rows and the singular values of its triangular factor; where these
//! do not determine the model, the solution of least norm, as scikit-learn's. The slow road, for
//! the folds that need it: O(n·p²) each.

use super::moments::{BLOCK, Frame, Packed};
use super::problem::{Model, Problem};
use super::spectrum::Spectrum;
use crate::data::{Layout, Row};
use crate::linalg::{self, Mat};
use crate::{Error, Monitor, Result};

/// A centred column no larger than this part of its mean is constant up to rounding.
pub(super) const ROUNDING: f64 = 8.0 * f64::EPSILON;

/// The coefficients of a fitted fold, in the units of the rows.
pub(super) struct Fitted {
    centre: Frame,
    /// A column a λ and output, the value at the centre last.
    coefficients: Mat<f64>,
}

impl<R: Layout> Problem<'_, R> {
    /// Fits `train` (rows may repeat), which is fold `fold`'s, for every λ.
    pub(super) fn fit(
        &self,
        model: &Model,
        train: &[usize],
        fold: usize,
        monitor: &Monitor,
    ) -> Result<Fitted> {
        let undetermined = |reason: &str| Error::Undetermined {
            fold,
            reason: reason.into(),
        };
        let weight: f64 = train.iter().map(|&i| self.root_weight(i).powi(2)).sum();
        if weight == 0.0 {
            return Err(undetermined("its training rows have no weight"));
        }
        let (p, q) = (self.rows.n_features(), self.n_outputs);
        let (centre, unit) = self
            .training_frame(model, train)
            .ok_or_else(|| undetermined("its columns differ in scale by more than 1e140"))?;
        let frame = Frame {
            scale: centre.scale.iter().map(|s| s * unit).collect(),
            shift: centre.shift.clone(),
        };
        let level = self.level(model, train, weight);
        let r = linalg::tsqr(train, p + q, monitor, &|row, out| {
            let root = self.root_weight(row);
            frame.write(self.rows.row(row), root, &mut out[..p]);
            for ((out, y), level) in out[p..].iter_mut().zip(self.target(row)).zip(&level) {
                *out = root * (y - level);
            }
        })?;
        let alphas: Vec<f64> = model.alphas.iter().map(|a| a * unit * unit).collect();
        let smallest = alphas.iter().copied().fold(f64::INFINITY, f64::min);
        let spectrum = Spectrum::of_triangle(&r, p, smallest, monitor)?.ok_or_else(|| {
            undetermined(
                "its training rows are too nearly collinear to tell which coefficients they \
                 determine; drop columns that repeat others, or penalise (Ridge)",
            )
        })?;
        let theta = spectrum.solve(&alphas);
        let beta = linalg::product(spectrum.axes.transpose(), theta.as_ref());
        let coefficients = Mat::from_fn(p + 1, beta.ncols(), |j, c| {
            if j < p {
                beta[(j, c)] * frame.scale[j]
            } else {
                level[c % q]
            }
        });
        let centre = Frame {
            scale: vec![1.0; p],
            ..centre
        };
        Ok(Fitted {
            centre,
            coefficients,
        })
    }

    /// Shift and scale of the columns as the model sees them in training, and a power of two that
    /// brings the largest value near 1, so that no square overflows.
    ///
    /// `None` where no power of two does that for all columns.
    fn training_frame(&self, model: &Model, train: &[usize]) -> Option<(Frame, f64)> {
        let p = self.rows.n_features();
        let mut frame = Frame::plain(p);
        let scaler = model.scaler.filter(|s| s.mean || s.deviation);
        if let Some(scaler) = scaler {
            let mean = self.mean(train, |_| 1.0);
            if scaler.deviation {
                let variance = self.variance(train, &mean);
                if variance.iter().any(|v| !v.is_finite()) {
                    return None;
                }
                let n = train.len() as f64;
                frame.scale = (0..p)
                    .map(|j| deviation(n, mean[j], variance[j]).recip())
                    .collect();
            }
            if scaler.mean {
                frame.shift = mean;
            }
        }
        if model.intercept {
            frame.shift = self.mean(train, |row| self.root_weight(row).powi(2));
        }
        let is_centred = model.intercept || scaler.is_some_and(|s| s.mean);
        let (unit, sizes) = self.unit(&frame, train)?;
        for (j, size) in sizes.into_iter().enumerate() {
            if is_centred && size <= ROUNDING * frame.shift[j].abs() * frame.scale[j] {
                frame.scale[j] = 0.0;
            }
        }
        Some((frame, unit))
    }

    /// A power of two that brings the largest value of `rows` near 1, or 1 where squares are
    /// harmless anyway; and the largest value of every column. `None` where another column would
    /// then vanish.
    pub(super) fn unit(&self, frame: &Frame, rows: &[usize]) -> Option<(f64, Vec<f64>)> {
        let mut values = vec![0.0; frame.shift.len()];
        let mut sizes = values.clone();
        for &row in rows {
            frame.write(self.rows.row(row), 1.0, &mut values);
            for (size, v) in sizes.iter_mut().zip(&values) {
                *size = v.abs().max(*size);
            }
        }
        let largest = sizes.iter().copied().fold(0.0, f64::max);
        let smallest = sizes
            .iter()
            .filter(|&&s| s > 0.0)
            .copied()
            .fold(largest, f64::min);
        if !largest.is_finite() || smallest < largest * 1e-140 {
            return None;
        }
        if largest == 0.0 || (smallest > 1e-100 && largest < 1e100) {
            return Some((1.0, sizes));
        }
        let unit = largest.log2().round().clamp(-1000.0, 1000.0).exp2().recip();
        Some((unit, sizes))
    }

    /// The weighted mean of the columns, corrected once.
    fn mean(&self, rows: &[usize], weight: impl Fn(usize) -> f64) -> Vec<f64> {
        let total: f64 = rows.iter().map(|&row| weight(row)).sum();
        let mut mean = vec![0.0; self.rows.n_features()];
        for round in 0..2 {
            let mut step = vec![0.0; mean.len()];
            for &row in rows {
                let part = weight(row) / total;
                if round == 1 {
                    step.iter_mut().zip(&mean).for_each(|(s, m)| *s -= m * part);
                }
                self.rows
                    .row(row)
                    .entries()
                    .for_each(|(j, v)| step[j] += v * part);
            }
            mean.iter_mut().zip(&step).for_each(|(m, s)| *m += s);
        }
        mean
    }

    fn variance(&self, rows: &[usize], mean: &[f64]) -> Vec<f64> {
        let mut frame = Frame::plain(mean.len());
        frame.shift.copy_from_slice(mean);
        let mut centred = vec![0.0; mean.len()];
        let mut variance = vec![0.0; mean.len()];
        for &row in rows {
            frame.write(self.rows.row(row), 1.0, &mut centred);
            for (sum, v) in variance.iter_mut().zip(&centred) {
                *sum += v * v / rows.len() as f64;
            }
        }
        variance
    }

    /// What the targets are measured from: their mean if there is an intercept.
    pub(super) fn level(&self, model: &Model, rows: &[usize], weight: f64) -> Vec<f64> {
        let mut level = vec![0.0; self.n_outputs];
        if model.intercept {
            for &row in rows {
                let part = self.root_weight(row).powi(2) / weight;
                level
                    .iter_mut()
                    .zip(self.target(row))
                    .for_each(|(l, y)| *l += part * y);
            }
        }
        level
    }
}

impl Fitted {
    /// The coefficients for shifted rows, and what is predicted at the shift.
    pub(super) fn new(shift: Vec<f64>, coefficients: Mat<f64>) -> Self {
        let centre = Frame {
            scale: vec![1.0; shift.len()],
            shift,
        };
        Self {
            centre,
            coefficients,
        }
    }

    /// Predictions of `rows`: a column a row.
    pub(super) fn predict<R: Layout>(&self, data: &R, rows: &[usize]) -> Mat<f64> {
        let p = data.n_features();
        let beta = self.coefficients.get(..p, ..);
        let mut out = Mat::from_fn(beta.ncols(), rows.len(), |c, _| self.coefficients[(p, c)]);
        let mut packed = Packed::new(p);
        let mut start = 0;
        for block in rows.chunks(BLOCK) {
            let x = packed.columns(block, |row, out| self.centre.write(data.row(row), 1.0, out));
            let columns = out.get_mut(.., start..start + block.len());
            linalg::add_product(columns, beta.transpose(), x);
            start += block.len();
        }
        out
    }

    /// Coefficients and intercept for rows as they are.
    pub(super) fn unshifted(&self) -> Mat<f64> {
        let mut coefficients = self.coefficients.clone();
        let p = self.centre.shift.len();
        for c in 0..coefficients.ncols() {
            for (j, shift) in self.centre.shift.iter().enumerate() {
                coefficients[(p, c)] -= shift * self.coefficients[(j, c)];
            }
        }
        coefficients
    }
}

/// What `StandardScaler` divides a column by: 1 if rounding alone explains its variance.
pub(super) fn deviation(n: f64, mean: f64, variance: f64) -> f64 {
    if is_constant(n, mean, variance) {
        1.0
    } else {
        variance.sqrt()
    }
}

/// Whether rounding alone explains the variance of `n` values with this mean.
pub(super) fn is_constant(n: f64, mean: f64, variance: f64) -> bool {
    variance <= n * f64::EPSILON * variance + (n * mean * f64::EPSILON).powi(2)
}
