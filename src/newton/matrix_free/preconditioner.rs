//! Preconditioners of conjugate gradients, shared by all folds.
//!
//! For one output, the Hessian of all rows XᵀDX + λI itself if there are few features, else its diagonal
//! with the rows of largest leverage (`low_rank`).
//! For the softmax, one such matrix per class c, with the weights D = w·p_c(1 − p_c), or one for all
//! classes with the mean of these weights. Predictors of all classes may change together without effect on
//! any probability; the blocks do not know this, so that their means over the classes are taken off, before
//! and after.

use rayon::prelude::*;

use super::super::ridge::Ridge;
use super::low_rank::LowRank;
use crate::linalg::Mat;
use crate::linear::{Design, FoldMap, ScaledCholesky};
use crate::{Monitor, Result};

/// The most features of which Hessians are factored.
const MAX_FEATURES: usize = 1024;

/// Rows with a weight below this part of the mean are left out.
const MIN_WEIGHT: f64 = 0.05;

/// A preconditioner is computed anew if the sum of some output's weights has changed by this factor.
const STALE_RATIO: f64 = 2.0;

/// Pivots of a matrix with unit diagonal that are below it, per row, are rounding errors.
const MIN_PIVOT: f64 = 1e-14;

/// Columns that are solved at a time.
const SOLVED_COLUMNS: usize = 8;

/// Columns of a training set, and their penalty.
pub(super) struct Columns<'a> {
    pub(super) design: &'a Design<'a>,
    pub(super) map: &'a FoldMap,
    pub(super) ridge: Ridge,
}

impl Columns<'_> {
    /// The Hessian of one predictor, from second derivatives of all rows.
    fn hessian(&self, weights: &[f64], monitor: &Monitor) -> Result<Mat<f64>> {
        let common = self.design.gram(weights, monitor)?;
        let mut hessian = self.map.second_moments(common.as_ref());
        self.ridge.add_hessian(&mut hessian);
        Ok(hessian)
    }
}

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
    Factor(ScaledCholesky),
    /// The inverse of the diagonal.
    Diagonal(Vec<f64>),
    LowRank(LowRank),
}

impl Preconditioner {
    /// From weights of all rows, one vector per output; classes have one block if it is shared.
    pub(super) fn new(
        columns: &Columns<'_>,
        mut weights: Vec<Vec<f64>>,
        (is_softmax, is_shared): (bool, bool),
        monitor: &Monitor,
    ) -> Result<Self> {
        let totals = totals(&weights);
        let is_small = columns.design.n_features() <= MAX_FEATURES;
        if is_softmax && is_shared {
            weights = vec![means(&weights)];
        }
        let block = |weights: &Vec<f64>| {
            if is_small {
                factor(columns, weights, monitor)
            } else {
                LowRank::new(columns, weights, monitor).map(Block::LowRank)
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
            Self::Factor(factor) => {
                let n = columns.first().map_or(0, |column| column.len());
                let mut solution = Mat::from_fn(n, columns.len(), |i, j| columns[j][i]);
                factor.solve(&mut solution);
                for (j, column) in columns.iter_mut().enumerate() {
                    column.copy_from_slice(solution.col_as_slice(j));
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

/// The weights, those that hardly count set to zero.
fn kept(weights: &[f64]) -> Vec<f64> {
    let least = MIN_WEIGHT * weights.iter().sum::<f64>() / weights.len() as f64;
    let kept = weights.iter().map(|&w| if w > least { w } else { 0.0 });
    kept.collect()
}

fn factor(columns: &Columns<'_>, weights: &[f64], monitor: &Monitor) -> Result<Block> {
    let hessian = columns.hessian(&kept(weights), monitor)?;
    let min_pivot = MIN_PIVOT * hessian.nrows() as f64;
    if let Some(factor) = ScaledCholesky::with_shift(&hessian, min_pivot, monitor)? {
        return Ok(Block::Factor(factor));
    }
    let diagonal = (0..hessian.nrows()).map(|j| hessian[(j, j)].recip());
    let or_one = |inverse: f64| if inverse.is_finite() { inverse } else { 1.0 };
    Ok(Block::Diagonal(diagonal.map(or_one).collect()))
}

/// Whether the parameters of a fold are determined by the rows with positive weight. Rows of many
/// features are taken not to determine them.
pub(super) fn has_full_rank(
    design: &Design<'_>,
    map: &FoldMap,
    weights: &[f64],
    monitor: &Monitor,
) -> Result<bool> {
    if design.n_features() > MAX_FEATURES {
        return Ok(false);
    }
    let gram = map.second_moments(design.gram(weights, monitor)?.as_ref());
    let min_pivot = MIN_PIVOT * gram.nrows() as f64;
    Ok(ScaledCholesky::new(&gram, min_pivot, monitor)?.is_some())
}
