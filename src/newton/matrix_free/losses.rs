//! Derivatives of the losses of all rows, for a problem with one predictor or with one per class.

use rayon::prelude::*;

use super::super::loss::Loss;
use super::super::passes::Column;
use super::super::samples::Samples;
use crate::runtime::simd::{self, Simd, WithSimd};
use crate::{Error, Result};

/// Rows at a time.
const BLOCK_ROWS: usize = 1024;

/// What the predictors of a row are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outputs {
    /// One predictor for each output, which are separate problems.
    Separate(Loss),
    /// One predictor for each class, of which there are as many: −ln of the probability that the
    /// softmax of all predictors gives to the class of the row.
    Softmax(usize),
}

/// Losses of all rows as functions of their predictors.
///
/// Predictors and derivatives of a problem are row-major, with one column per predictor.
pub(super) struct Losses<'a> {
    pub(super) samples: Samples<'a>,
    pub(super) outputs: Outputs,
}

impl<'a> Losses<'a> {
    /// Checks that classes are codes.
    pub(super) fn new(samples: Samples<'a>, outputs: Outputs) -> Result<Self> {
        if let Outputs::Softmax(n_classes) = outputs {
            let is_code =
                |code: &f64| code.fract() == 0.0 && (0.0..n_classes as f64).contains(code);
            let codes = samples.targets(0);
            if let Some(row) = codes.iter().position(|code| !is_code(code)) {
                return Err(Error::Value {
                    place: format!("codes[{row}]"),
                    value: codes[row],
                    rule: "classes are coded from 0 to the number of classes less one",
                });
            }
        }
        Ok(Self { samples, outputs })
    }

    pub(super) fn is_softmax(&self) -> bool {
        matches!(self.outputs, Outputs::Softmax(_))
    }

    /// The constant predictors of a problem that fit all rows, or zero if there is no intercept.
    pub(super) fn constants(&self, output: usize, has_intercept: bool) -> Vec<f64> {
        if !has_intercept {
            return vec![0.0; self.width()];
        }
        match self.outputs {
            Outputs::Separate(loss) => vec![loss.constant(self.samples.mean(output))],
            Outputs::Softmax(n_classes) => {
                let column = Column { set: None, output };
                let weights = self.weights(column, 0, self.samples.n_rows());
                let mut totals = vec![0.0; n_classes];
                for (code, w) in self.samples.targets(0).iter().zip(&weights) {
                    totals[as_index(*code)] += w;
                }
                let total: f64 = totals.iter().sum();
                let logs = totals.iter().map(|own| (own / total).max(1e-9).ln());
                let logs: Vec<f64> = logs.collect();
                let mean = logs.iter().sum::<f64>() / n_classes as f64;
                logs.iter().map(|log| log - mean).collect()
            }
        }
    }

    /// First derivatives of all rows at constant predictors, one vector for each.
    pub(super) fn first_at(&self, column: Column, constants: &[f64]) -> Vec<Vec<f64>> {
        let predictors = constants.repeat(self.samples.n_rows());
        let n = predictors.len();
        let (mut first, mut second) = (vec![0.0; n], vec![0.0; n]);
        self.differentiate(column, &predictors, &vec![0.0; n], &mut first, &mut second);
        (0..self.width())
            .map(|c| {
                first
                    .iter()
                    .skip(c)
                    .step_by(self.width())
                    .copied()
                    .collect()
            })
            .collect()
    }

    /// Predictors of one problem.
    pub(super) fn width(&self) -> usize {
        match self.outputs {
            Outputs::Separate(_) => 1,
            Outputs::Softmax(n_classes) => n_classes,
        }
    }

    /// First derivatives of the losses of a problem by its predictors, and what [`Losses::multiply`] needs:
    /// second derivatives, or probabilities of the classes. Returns the first and the second derivative of
    /// the sum of the losses along `direction`.
    pub(super) fn differentiate(
        &self,
        column: Column,
        predictors: &[f64],
        direction: &[f64],
        first: &mut [f64],
        second: &mut [f64],
    ) -> [f64; 2] {
        let width = self.width();
        let length = BLOCK_ROWS * width;
        let blocks = first
            .par_chunks_mut(length)
            .zip(second.par_chunks_mut(length));
        let sums: Vec<[f64; 2]> = blocks
            .enumerate()
            .map(|(block, (first, second))| {
                let values = block * length..block * length + first.len();
                let z = &predictors[values.clone()];
                let weights = self.weights(column, block * BLOCK_ROWS, first.len() / width);
                match self.outputs {
                    Outputs::Separate(loss) => {
                        let y = &self.samples.targets(column.output)[values.clone()];
                        loss.derivatives(y, z, first, second);
                        for ((first, second), w) in first.iter_mut().zip(&mut *second).zip(&weights)
                        {
                            // Infinite derivatives of rows without weight must not count.
                            *first = if *w == 0.0 { 0.0 } else { *first * w };
                            *second = if *w == 0.0 { 0.0 } else { *second * w };
                        }
                    }
                    Outputs::Softmax(n_classes) => {
                        second.copy_from_slice(z);
                        simd::dispatch(Softmax(second, n_classes));
                        let codes = &self.samples.targets(0)[block * BLOCK_ROWS..];
                        let rows = first
                            .chunks_exact_mut(width)
                            .zip(second.chunks_exact(width));
                        for (((first, p), code), w) in rows.zip(codes).zip(&weights) {
                            for (c, (first, p)) in first.iter_mut().zip(p).enumerate() {
                                *first = w * (p - f64::from(c == as_index(*code)));
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
    pub(super) fn multiply(&self, column: Column, second: &[f64], change: &[f64], out: &mut [f64]) {
        let width = self.width();
        let length = BLOCK_ROWS * width;
        out.par_chunks_mut(length)
            .enumerate()
            .for_each(|(block, out)| {
                let values = block * length..block * length + out.len();
                let n_rows = out.len() / width;
                let weights = match self.outputs {
                    Outputs::Separate(_) => vec![],
                    Outputs::Softmax(_) => self.weights(column, block * BLOCK_ROWS, n_rows),
                };
                self.multiply_block(&weights, &second[values.clone()], &change[values], out);
            });
    }

    fn multiply_block(&self, weights: &[f64], second: &[f64], change: &[f64], out: &mut [f64]) {
        match self.outputs {
            Outputs::Separate(_) => {
                for ((out, second), change) in out.iter_mut().zip(second).zip(change) {
                    *out = second * change;
                }
            }
            Outputs::Softmax(n_classes) => {
                let rows = second
                    .chunks_exact(n_classes)
                    .zip(change.chunks_exact(n_classes));
                let out = out.chunks_exact_mut(n_classes).zip(weights);
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
    pub(super) fn diagonal(&self, column: Column, second: &[f64]) -> Vec<f64> {
        match self.outputs {
            Outputs::Separate(_) => second.to_vec(),
            Outputs::Softmax(n_classes) => {
                let weights = self.weights(column, 0, self.samples.n_rows());
                let rows = second.chunks_exact(n_classes).zip(&weights);
                rows.flat_map(|(p, w)| p.iter().map(move |p| w * p * (1.0 - p)))
                    .collect()
            }
        }
    }

    /// Weights of consecutive rows in the training set of a problem.
    pub(super) fn weights(&self, column: Column, first: usize, n_rows: usize) -> Vec<f64> {
        let mut weights = vec![0.0; n_rows];
        let rows = first..first + n_rows;
        self.samples
            .training_weights(column.set, column.output, rows, &mut weights);
        weights
    }
}

/// A class code.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // validated
fn as_index(code: f64) -> usize {
    code as usize
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
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
