//! Weighted means and variances of features, with zeros that nobody stores.
//!
//! # Method
//! A [`Cell`] holds weight s, mean m and sum of squared deviations q of the values that rows
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
//! computing the sample variance*, The American Statistician 37 (1983), eq. 2.1, for two cells.

use super::logs::LogSum;
use crate::data::Row;

/// Weight, mean and sum of squared deviations of the stored values of a feature.
pub(super) type Cell = [f64; 3];

/// Takes in a value of positive weight.
#[inline(always)]
pub(super) fn add(cell: &mut Cell, value: f64, weight: f64) {
    let [stored, mean, squares] = *cell;
    let total = stored + weight;
    let deviation = value - mean;
    let step = deviation * weight / total;
    *cell = [total, mean + step, squares + stored * deviation * step];
}

/// Takes in what another cell of the same feature has seen of other rows.
#[inline(always)]
pub(super) fn merge(cell: &mut Cell, other: &Cell) {
    let [stored, mean, squares] = *cell;
    let total = stored + other[0];
    if total > 0.0 {
        let deviation = other[1] - mean;
        let step = deviation * other[0] / total;
        *cell = [
            total,
            mean + step,
            squares + other[2] + stored * deviation * step,
        ];
    }
}

/// The weight of all rows, ready to be divided by: for no weight, all quotients are 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Total {
    weight: f64,
    inverse: f64,
}

impl Total {
    pub(super) fn new(weight: f64) -> Self {
        let inverse = if weight > 0.0 { 1.0 / weight } else { 0.0 };
        Self { weight, inverse }
    }

    /// Mean and variance of a feature over all rows, zeros and all.
    #[inline(always)]
    pub(super) fn mean_variance(self, &[stored, mean, squares]: &Cell) -> (f64, f64) {
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
pub(super) struct Normals {
    /// For each feature and output: mean and 1/variance.
    parameters: Vec<[f64; 2]>,
    /// For each output: −½·Σ ln(2π·variance).
    constants: Vec<f64>,
    /// For each output: Σ mean²/variance, which a row of zeros gets.
    zeros: Vec<f64>,
}

impl Normals {
    /// From `cells` (for each feature, one an output and perhaps more), the weight of each output
    /// and what is added to each variance. `None` when a variance is 0 even so.
    pub(super) fn new(cells: &[Cell], stride: usize, totals: &[f64], extra: f64) -> Option<Self> {
        let n_outputs = totals.len();
        let n_features = cells.len() / stride;
        let mut parameters = vec![[0.0; 2]; n_features * n_outputs];
        let mut sums: Vec<(Total, LogSum, f64)> = totals
            .iter()
            .map(|&total| (Total::new(total), LogSum::EMPTY, 0.0))
            .collect();
        let by_feature = parameters.chunks_exact_mut(n_outputs);
        for (cells, parameters) in cells.chunks_exact(stride).zip(by_feature) {
            for ((total, determinant, zeros), (cell, parameter)) in
                sums.iter_mut().zip(cells.iter().zip(parameters))
            {
                let (mean, mut variance) = total.mean_variance(cell);
                variance += extra;
                if variance <= 0.0 {
                    if total.weight > 0.0 {
                        return None;
                    }
                    variance = 1.0; // of a class that was never seen: any will do
                }
                let precision = 1.0 / variance;
                *parameter = [mean, precision];
                *zeros += mean * mean * precision;
                determinant.add(variance);
            }
        }
        let unit = n_features as f64 * std::f64::consts::TAU.ln();
        Some(Self {
            parameters,
            constants: sums
                .iter()
                .map(|(_, determinant, _)| -0.5 * (unit + determinant.value()))
                .collect(),
            zeros: sums.iter().map(|(_, _, zeros)| *zeros).collect(),
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
