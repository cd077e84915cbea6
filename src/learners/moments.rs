//! Weighted means and variances of features, including zeros that are not stored.
//!
//! # Method
//! [`Moments`] hold weight s, mean m and sum of squared deviations q of the values that rows
//! *store* for a feature. The rows have weight W in all, so zeros have W − s, and together
//!
//! > mean = s·m/W,  variance = (q + m²·s·(W − s)/W)/W.
//!
//! Nothing large is subtracted from anything large, so a mean far from zero costs no digits, and
//! a sparse row costs what it stores.
//!
//! # References
//! D. H. D. West, *Updating mean and variance estimates: an improved method*, Communications of
//! the ACM 22 (1979), for one value; T. F. Chan, G. H. Golub, R. J. LeVeque, *Algorithms for
//! computing the sample variance*, The American Statistician 37 (1983), eq. 2.1, for two sets of rows.

use super::log_sum::LogSum;
use crate::data::Row;

/// Weight, mean and sum of squared deviations of the stored values of a feature.
pub(super) type Moments = [f64; 3];

/// Adds a value of positive weight.
#[inline(always)]
pub(super) fn add(moments: &mut Moments, value: f64, weight: f64) {
    let [stored, mean, squares] = *moments;
    let total = stored + weight;
    let deviation = value - mean;
    let step = deviation * weight / total;
    *moments = [total, mean + step, squares + stored * deviation * step];
}

/// Adds the moments of the same feature over other rows.
#[inline(always)]
pub(super) fn merge(moments: &mut Moments, other: &Moments) {
    let [stored, mean, squares] = *moments;
    let total = stored + other[0];
    if total > 0.0 {
        let deviation = other[1] - mean;
        let step = deviation * other[0] / total;
        *moments = [
            total,
            mean + step,
            squares + other[2] + stored * deviation * step,
        ];
    }
}

/// Becomes the moments of scaled values, among rows of weight `total`: (x − shift)·scale. With a shift,
/// zeros that were not stored are values like others.
#[inline(always)]
pub(super) fn rescale(moments: &mut Moments, total: f64, shift: Option<f64>, scale: f64) {
    let [mut stored, mut mean, mut squares] = *moments;
    if let Some(shift) = shift {
        let zeros = (total - stored).max(0.0);
        if zeros > 0.0 {
            let share = stored / total;
            squares += mean * mean * share * zeros;
            mean *= share;
        }
        stored = total;
        mean -= shift;
    }
    *moments = [stored, mean * scale, squares * scale * scale];
}

/// The weight of all rows and its inverse; 0 for no weight.
#[derive(Clone, Copy, Debug)]
pub(super) struct TotalWeight {
    weight: f64,
    inverse: f64,
}

impl TotalWeight {
    pub(super) fn new(weight: f64) -> Self {
        let inverse = if weight > 0.0 { 1.0 / weight } else { 0.0 };
        Self { weight, inverse }
    }

    /// Mean and variance of a feature over all rows, zeros included.
    #[inline(always)]
    pub(super) fn mean_variance(self, &[stored, mean, squares]: &Moments) -> (f64, f64) {
        let zeros = (self.weight - stored).max(0.0);
        let share = stored * self.inverse;
        (
            mean * share,
            (squares + mean * mean * share * zeros) * self.inverse,
        )
    }
}

/// Independent normal distributions of the features, one set of them for each output.
#[derive(Debug)]
pub(super) struct DiagonalGaussians {
    /// For each feature and output: mean and 1/variance.
    parameters: Vec<[f64; 2]>,
    /// For each output: −½·Σ ln(2π·variance).
    constants: Vec<f64>,
    /// For each output: Σ mean²/variance, which a row of zeros gets.
    zeros: Vec<f64>,
}

impl DiagonalGaussians {
    /// From the moments of the features of each output, the weight of each output and what is added to
    /// each variance. `None` when a variance is 0 even so.
    pub(super) fn new(moments: &[&[Moments]], totals: &[f64], extra: f64) -> Option<Self> {
        let n_outputs = totals.len();
        let n_features = moments[0].len();
        let mut parameters = vec![[0.0; 2]; n_features * n_outputs];
        let (mut constants, mut zeros) = (Vec::new(), Vec::new());
        let unit = n_features as f64 * std::f64::consts::TAU.ln();
        for (output, (moments, &weight)) in moments.iter().zip(totals).enumerate() {
            let total = TotalWeight::new(weight);
            let (mut determinant, mut squares) = (LogSum::EMPTY, 0.0);
            let by_feature = parameters[output..].iter_mut().step_by(n_outputs);
            for (moments, parameter) in moments.iter().zip(by_feature) {
                let (mean, mut variance) = total.mean_variance(moments);
                variance += extra;
                if variance <= 0.0 {
                    if weight > 0.0 {
                        return None;
                    }
                    variance = 1.0; // any value will do for a class without rows
                }
                let precision = 1.0 / variance;
                *parameter = [mean, precision];
                squares += mean * mean * precision;
                determinant.add(variance);
            }
            constants.push(-0.5 * (unit + determinant.value()));
            zeros.push(squares);
        }
        Some(Self {
            parameters,
            constants,
            zeros,
        })
    }

    /// Writes the log density of `row`, of `n_features` features, under each output.
    #[inline(always)]
    pub(super) fn log_densities<R: Row>(&self, row: R, n_features: usize, out: &mut [f64]) {
        // Zeros that are not stored have their term in `zeros`; what is stored takes it back.
        let is_full = row.n_stored() == n_features;
        let hidden = if is_full { 0.0 } else { 1.0 };
        for (out, zeros) in out.iter_mut().zip(&self.zeros) {
            *out = hidden * zeros;
        }
        for (feature, value) in row.entries() {
            let parameters = &self.parameters[feature * out.len()..][..out.len()];
            for (out, [mean, precision]) in out.iter_mut().zip(parameters) {
                let deviation = value - mean;
                *out += (deviation * deviation - hidden * mean * mean) * precision;
            }
        }
        for (out, constant) in out.iter_mut().zip(&self.constants) {
            *out = constant - 0.5 * *out;
        }
    }
}
