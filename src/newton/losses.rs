//! Derivatives of the losses of all rows, for a problem with one predictor or with one per class.

use rayon::prelude::*;

use super::Link;
use super::family::Subproblem;
use super::samples::Samples;
use super::vectors::{dot, weigh};
use crate::runtime::simd::{self, Simd, WithSimd};

/// Rows at a time.
const BLOCK_ROWS: usize = 1024;

/// Predictors and derivatives of a problem are row-major, with one column per predictor.
impl Samples<'_> {
    pub(super) fn is_softmax(&self) -> bool {
        self.link == Link::Multinomial
    }

    /// The constant predictors that fit the training set of a problem, or zero if there is no intercept.
    pub(super) fn constants(&self, subproblem: Subproblem, has_intercept: bool) -> Vec<f64> {
        let width = self.n_predictors();
        if !has_intercept {
            return vec![0.0; width];
        }
        match self.link {
            Link::Independent(loss) => vec![loss.constant(self.mean(subproblem))],
            Link::Multinomial => {
                let weights = self.weights(subproblem, 0, self.n_rows());
                let mut totals = vec![0.0; width];
                for (code, w) in self.codes().iter().zip(&weights) {
                    totals[*code as usize] += w;
                }
                let total: f64 = totals.iter().sum();
                let logs = totals.iter().map(|weight| (weight / total).max(1e-9).ln());
                let logs: Vec<f64> = logs.collect();
                let mean = logs.iter().sum::<f64>() / width as f64;
                logs.iter().map(|log| log - mean).collect()
            }
        }
    }

    /// First derivatives of all rows at constant predictors, one vector for each.
    pub(super) fn first_at(&self, subproblem: Subproblem, constants: &[f64]) -> Vec<Vec<f64>> {
        let predictors = constants.repeat(self.n_rows());
        let n = predictors.len();
        let (mut first, mut second) = (vec![0.0; n], vec![0.0; n]);
        self.differentiate(
            subproblem,
            &predictors,
            &vec![0.0; n],
            &mut first,
            &mut second,
        );
        (0..self.n_predictors())
            .map(|c| {
                first
                    .iter()
                    .skip(c)
                    .step_by(self.n_predictors())
                    .copied()
                    .collect()
            })
            .collect()
    }

    /// First derivatives of the losses of a problem by its predictors, and what [`Samples::multiply`] needs:
    /// second derivatives, or probabilities of the classes. Returns the first and the second derivative of
    /// the sum of the losses along `direction`.
    pub(super) fn differentiate(
        &self,
        subproblem: Subproblem,
        predictors: &[f64],
        direction: &[f64],
        first: &mut [f64],
        second: &mut [f64],
    ) -> [f64; 2] {
        let width = self.n_predictors();
        let length = BLOCK_ROWS * width;
        let blocks = first
            .par_chunks_mut(length)
            .zip(second.par_chunks_mut(length));
        let sums: Vec<[f64; 2]> = blocks
            .enumerate()
            .map(|(block, (first, second))| {
                let values = block * length..block * length + first.len();
                let z = &predictors[values.clone()];
                let weights = self.weights(subproblem, block * BLOCK_ROWS, first.len() / width);
                match self.link {
                    Link::Independent(loss) => {
                        let y = &self.targets(subproblem.output)[values.clone()];
                        loss.derivatives(y, z, first, second);
                        weigh(first, &weights);
                        weigh(second, &weights);
                    }
                    Link::Multinomial => {
                        second.copy_from_slice(z);
                        simd::dispatch(Softmax(second, width));
                        let codes = &self.codes()[block * BLOCK_ROWS..];
                        let rows = first
                            .chunks_exact_mut(width)
                            .zip(second.chunks_exact(width));
                        for (((first, p), code), w) in rows.zip(codes).zip(&weights) {
                            for (c, (first, p)) in first.iter_mut().zip(p).enumerate() {
                                *first = w * (p - f64::from(c == *code as usize));
                            }
                        }
                    }
                }
                let direction = &direction[values];
                let mut image = vec![0.0; direction.len()];
                self.multiply_block(&weights, second, direction, &mut image);
                [dot(first, direction), dot(&image, direction)]
            })
            .collect();
        sums.iter().fold([0.0; 2], |[a, b], [c, d]| [a + c, b + d])
    }

    /// The product of the second derivatives with a change of the predictors.
    pub(super) fn multiply(
        &self,
        subproblem: Subproblem,
        second: &[f64],
        change: &[f64],
        out: &mut [f64],
    ) {
        let width = self.n_predictors();
        let length = BLOCK_ROWS * width;
        out.par_chunks_mut(length)
            .enumerate()
            .for_each(|(block, out)| {
                let values = block * length..block * length + out.len();
                let n_rows = out.len() / width;
                let weights = match self.link {
                    Link::Independent(_) => vec![],
                    Link::Multinomial => self.weights(subproblem, block * BLOCK_ROWS, n_rows),
                };
                self.multiply_block(&weights, &second[values.clone()], &change[values], out);
            });
    }

    fn multiply_block(&self, weights: &[f64], second: &[f64], change: &[f64], out: &mut [f64]) {
        let width = self.n_predictors();
        match self.link {
            Link::Independent(_) => {
                for ((out, second), change) in out.iter_mut().zip(second).zip(change) {
                    *out = second * change;
                }
            }
            Link::Multinomial => {
                let rows = second.chunks_exact(width).zip(change.chunks_exact(width));
                let out = out.chunks_exact_mut(width).zip(weights);
                for ((out, w), (p, change)) in out.zip(rows) {
                    let mean = dot(p, change);
                    for ((out, p), change) in out.iter_mut().zip(p).zip(change) {
                        *out = w * p * (change - mean);
                    }
                }
            }
        }
    }

    /// Second derivatives by each single predictor.
    pub(super) fn diagonal(&self, subproblem: Subproblem, second: &[f64]) -> Vec<f64> {
        match self.link {
            Link::Independent(_) => second.to_vec(),
            Link::Multinomial => {
                let width = self.n_predictors();
                let weights = self.weights(subproblem, 0, self.n_rows());
                let rows = second.chunks_exact(width).zip(&weights);
                rows.flat_map(|(p, w)| p.iter().map(move |p| w * p * (1.0 - p)))
                    .collect()
            }
        }
    }

    /// Weights of consecutive rows in the training set of a problem.
    pub(super) fn weights(&self, subproblem: Subproblem, first: usize, n_rows: usize) -> Vec<f64> {
        let mut weights = vec![0.0; n_rows];
        let rows = first..first + n_rows;
        self.sets
            .weights(subproblem.set, subproblem.output, rows, &mut weights);
        weights
    }
}

/// Softmax of each row of this many values, in place.
struct Softmax<'a>(&'a mut [f64], usize);

impl WithSimd for Softmax<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self(values, width) = self;
        for row in values.chunks_exact_mut(width) {
            let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            for z in row {
                *z -= largest;
            }
        }
        for z in values.iter_mut() {
            *z = simd::exp::<S>(*z);
        }
        for row in values.chunks_exact_mut(width) {
            let inverse = row.iter().sum::<f64>().recip();
            for p in row {
                *p *= inverse;
            }
        }
    }
}
