//! Preconditioners of conjugate gradients, shared by all folds.
//!
//! For one output, the Hessian of all rows XᵀDX + λI itself if there are few features, else its diagonal
//! with the rows of largest leverage (`low_rank`).
//! For the softmax, one such matrix per class c, with the weights D = w·p_c(1 − p_c), or one for all
//! classes with the mean of these weights. Predictors of all classes may change together without effect on
//! any probability; the blocks do not know this, so that their means over the classes are taken off, before
//! and after.

use rayon::prelude::*;

use super::super::coordinates::Coordinates;
use super::low_rank::LowRank;
use super::products::Products;
use crate::linalg::{Cholesky, Mat, MatRef, add_product, par_tiles, row_major, zeros};
use crate::{Monitor, Result};

/// The most features of which Hessians are factored.
const MOST_FEATURES: usize = 1024;

/// Rows with a weight below this part of the mean are left out.
const MIN_WEIGHT: f64 = 0.05;

/// Rows that are copied at a time.
const COPIED_ROWS: usize = 8192;

/// A preconditioner is computed anew if the sum of some output's weights has changed by this factor.
const STALE_RATIO: f64 = 2.0;

/// What is added to the diagonal, then of unit values, of a matrix that is singular to rounding.
const SHIFTS: [f64; 3] = [1e-10, 1e-7, 1e-3];

/// Pivots of a matrix with unit diagonal that are below it, per row, are rounding errors.
const MIN_PIVOT: f64 = 1e-14;

/// Columns that are solved at a time.
const SOLVED_COLUMNS: usize = 8;

/// An approximate inverse of the Hessians.
pub(super) struct Preconditioner {
    /// One for each output or class, or one for all.
    blocks: Vec<Block>,
    /// Σ D of each output or class.
    totals: Vec<f64>,
    /// Whether the outputs are the classes of a softmax.
    is_softmax: bool,
}

enum Block {
    /// Of DAD with the diagonal matrix D, of which this is the diagonal.
    Factor(Cholesky, Vec<f64>),
    /// The inverse of the diagonal.
    Diagonal(Vec<f64>),
    LowRank(LowRank),
}

impl Preconditioner {
    /// From weights of all rows, one vector per output; classes have one block if it is shared.
    pub(super) fn new(
        products: &Products<'_>,
        coordinates: &Coordinates,
        penalty: f64,
        mut weights: Vec<Vec<f64>>,
        (is_softmax, is_shared): (bool, bool),
        monitor: &Monitor,
    ) -> Result<Self> {
        let totals = totals(&weights);
        let is_small = products.n_features() <= MOST_FEATURES;
        if is_softmax && is_shared {
            weights = vec![means(&weights)];
        }
        let block = |weights: &Vec<f64>| {
            if is_small {
                factor(products, coordinates, penalty, weights, monitor)
            } else {
                LowRank::new(products, coordinates, penalty, weights, monitor).map(Block::LowRank)
            }
        };
        Ok(Self {
            blocks: weights.iter().map(block).collect::<Result<_>>()?,
            totals,
            is_softmax,
        })
    }

    /// Returns true if it no longer fits the weights.
    pub(super) fn is_stale(&self, weights: &[Vec<f64>]) -> bool {
        let pairs = totals(weights).into_iter().zip(&self.totals);
        let mut ratios = pairs.map(|(now, then)| now / then);
        ratios.any(|ratio| !(STALE_RATIO.recip()..=STALE_RATIO).contains(&ratio))
    }

    /// The products with vectors of problems, given with the number of their first output.
    pub(super) fn apply(&self, vectors: &[(usize, &[f64])], width: usize) -> Vec<Vec<f64>> {
        let mut out: Vec<Vec<f64>> = vectors.iter().map(|(_, v)| v.to_vec()).collect();
        if self.is_softmax {
            out.par_iter_mut().for_each(|v| center(v, width));
        }
        let mut columns: Vec<Vec<&mut [f64]>> = self.blocks.iter().map(|_| vec![]).collect();
        for ((output, _), out) in vectors.iter().zip(&mut out) {
            let length = out.len() / width;
            for (c, column) in out.chunks_exact_mut(length).enumerate() {
                columns[(output + c).min(self.blocks.len() - 1)].push(column);
            }
        }
        let mut work: Vec<(&Block, &mut [&mut [f64]])> = vec![];
        for (block, columns) in self.blocks.iter().zip(&mut columns) {
            work.extend(columns.chunks_mut(SOLVED_COLUMNS).map(|some| (block, some)));
        }
        work.into_par_iter()
            .for_each(|(block, columns)| block.apply(columns));
        if self.is_softmax {
            out.par_iter_mut().for_each(|v| center(v, width));
        }
        out
    }
}

impl Block {
    fn apply(&self, columns: &mut [&mut [f64]]) {
        match self {
            Self::LowRank(block) => block.apply(columns),
            Self::Diagonal(inverse) => {
                for column in columns {
                    column.iter_mut().zip(inverse).for_each(|(v, d)| *v *= d);
                }
            }
            Self::Factor(cholesky, scale) => {
                let mut solved =
                    Mat::from_fn(scale.len(), columns.len(), |i, j| columns[j][i] * scale[i]);
                cholesky.solve(&mut solved);
                for (j, column) in columns.iter_mut().enumerate() {
                    for (i, value) in column.iter_mut().enumerate() {
                        *value = solved[(i, j)] * scale[i];
                    }
                }
            }
        }
    }
}

fn totals(weights: &[Vec<f64>]) -> Vec<f64> {
    weights.iter().map(|weights| weights.iter().sum()).collect()
}

/// The mean of the columns.
fn means(weights: &[Vec<f64>]) -> Vec<f64> {
    let mut means = vec![0.0; weights[0].len()];
    for weights in weights {
        let pairs = means.iter_mut().zip(weights);
        pairs.for_each(|(mean, w)| *mean += w);
    }
    let n = weights.len() as f64;
    for mean in &mut means {
        *mean /= n;
    }
    means
}

/// Subtracts the mean of the `width` parts of a vector.
fn center(vector: &mut [f64], width: usize) {
    let length = vector.len() / width;
    for j in 0..length {
        let sum: f64 = (0..width).map(|c| vector[c * length + j]).sum();
        let mean = sum / width as f64;
        (0..width).for_each(|c| vector[c * length + j] -= mean);
    }
}

/// The rows whose weight counts.
fn kept(weights: &[f64]) -> Vec<usize> {
    let mean = weights.iter().sum::<f64>() / weights.len() as f64;
    let is_kept = |row: &usize| weights[*row] > MIN_WEIGHT * mean;
    (0..weights.len()).filter(is_kept).collect()
}

/// Σ w u uᵀ of the rows that count; the lower triangle.
fn hessian(products: &Products<'_>, weights: &[f64], monitor: &Monitor) -> Result<Mat<f64>> {
    let width = products.n_features() + 1;
    let mut sum = zeros("a Hessian", width, width)?;
    for rows in kept(weights).chunks(COPIED_ROWS) {
        monitor.check()?;
        let copied = products.weighted_rows(rows, weights)?;
        let copied: MatRef<'_, f64> = row_major(&copied, rows.len(), width);
        par_tiles(0, sum.as_mut(), &|first, tile| {
            let (n, end) = (tile.ncols(), tile.nrows());
            let own = copied.get(.., first..first + n);
            let below = copied.get(.., first..end);
            add_product(tile.get_mut(first.., ..), below.transpose(), own);
        });
    }
    Ok(sum)
}

fn factor(
    products: &Products<'_>,
    coordinates: &Coordinates,
    penalty: f64,
    weights: &[f64],
    monitor: &Monitor,
) -> Result<Block> {
    let shared = hessian(products, weights, monitor)?;
    let own = coordinates.hessian(shared.as_ref(), penalty);
    for shift in [0.0].into_iter().chain(SHIFTS) {
        if let Some((cholesky, scale)) = cholesky(&own, shift, monitor)? {
            return Ok(Block::Factor(cholesky, scale));
        }
    }
    let diagonal: Vec<f64> = (0..own.nrows()).map(|j| own[(j, j)]).collect();
    Ok(Block::Diagonal(inverse(&diagonal, |d| d)))
}

/// The factor of DAD + shift·I, and the diagonal matrix D that makes the diagonal of DAD one; `None` if
/// it is singular to rounding.
fn cholesky(a: &Mat<f64>, shift: f64, monitor: &Monitor) -> Result<Option<(Cholesky, Vec<f64>)>> {
    let n = a.nrows();
    let diagonal: Vec<f64> = (0..n).map(|j| a[(j, j)]).collect();
    let scale = inverse(&diagonal, f64::sqrt);
    let scaled = Mat::from_fn(n, n, |i, j| {
        let entry = if i < j { 0.0 } else { a[(i, j)] };
        entry * scale[i] * scale[j] + if i == j { shift } else { 0.0 }
    });
    let factor = Cholesky::new(scaled, MIN_PIVOT * n as f64, monitor)?;
    Ok(factor.map(|factor| (factor, scale)))
}

/// Whether the own parameters are determined by the rows with positive weight. Rows of many features are
/// taken not to determine them.
pub(super) fn has_full_rank(
    products: &Products<'_>,
    coordinates: &Coordinates,
    weights: &[f64],
    monitor: &Monitor,
) -> Result<bool> {
    if products.n_features() > MOST_FEATURES {
        return Ok(false);
    }
    let shared = hessian(products, weights, monitor)?;
    let own = coordinates.hessian(shared.as_ref(), 0.0);
    Ok(cholesky(&own, 0.0, monitor)?.is_some())
}

/// 1/f of each value; 1 where there is none.
fn inverse(values: &[f64], of: impl Fn(f64) -> f64) -> Vec<f64> {
    let one = |&value: &f64| {
        let inverse = of(value).recip();
        if inverse.is_finite() { inverse } else { 1.0 }
    };
    values.iter().map(one).collect()
}
