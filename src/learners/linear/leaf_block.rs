//! Leave-one-out of a few rows in closed form: a model restricted to its margins on them.
//!
//! # Problem
//! Half of the nodes of leave-one-out have two rows, and most have a few. Their cost is not the
//! rows but the forks, calls and loop overhead around them.
//!
//! # Method
//! A model that will see no rows but x₁ … xₘ needs no weights, only its products pᵢ = ⟨v, xᵢ⟩:
//!
//! > v ← v + δ·xⱼ is pᵢ ← pᵢ + δ·⟨xⱼ, xᵢ⟩.
//!
//! So the Gram matrix of the rows is computed once, for all models of the nodes below, and Algorithm 1
//! runs on models of m numbers.
//!
//! # Cost
//! m² products of rows for the block, then m values per row learnt instead of twice the features. A
//! step depends on one number and not on the sum over a row.

use std::ops::Range;

use super::kernels::RowNorm;
use super::{Linear, Observation, Targets, UpdateRule, vector};
use crate::data::{Examples, Layout};
use crate::learners::batch::{Batch, Order};
use crate::learners::learner::LeafBlock;
use crate::runtime::simd::{self, Simd, WithSimd};

/// The most features for which it pays: with more, the products of the rows dominate.
pub(super) const MAX_FEATURES: usize = 1024;

const MAX_ROWS: usize = LeafBlock::MAX_ROWS;

/// The largest number of deferred nodes: one per level, but none of one row.
const MAX_DEPTH: usize = MAX_ROWS.ilog2() as usize;

/// Rows × rows multiplied at a time: as many as there are registers for.
const TILE: (usize, usize) = (4, 2);

pub(super) struct LeaveOneOut<'a, 'd, 'f, R, X> {
    pub(super) model: &'a Linear<R>,
    pub(super) data: &'a Examples<'d, X>,
    pub(super) targets: Targets<'a>,
    pub(super) block: &'a mut LeafBlock<'f>,
    pub(super) out: &'a mut [f64],
}

impl<R: UpdateRule, X: Layout> WithSimd for LeaveOneOut<'_, '_, '_, R, X> {
    /// False if rows do not store all features, or their products overflow. That depends on the rows
    /// alone, so it is the same for all models.
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> bool {
        let Self {
            model,
            data,
            targets,
            block,
            out,
        } = self;
        let rows = block.rows;
        let mut values: [&[f64]; MAX_ROWS] = [&[]; MAX_ROWS];
        for (values, &row) in values.iter_mut().zip(rows) {
            let Some(found) = data.rows().values(row) else {
                return false;
            };
            *values = found;
        }
        let values = &values[..rows.len()];
        let constant = if model.rule.has_intercept() { 1.0 } else { 0.0 };
        let Some(gram) = gram(simd, values, constant) else {
            return false;
        };
        let mut rows_of_block = BlockGram {
            simd,
            rule: model.rule,
            values,
            gram,
            targets: [0.0; MAX_ROWS],
            weights: [0.0; MAX_ROWS],
        };
        for output in 0..model.n_outputs {
            for (place, &row) in rows.iter().enumerate() {
                rows_of_block.targets[place] = targets.target(row, output, model.n_outputs);
                rows_of_block.weights[place] = data.weight(row);
            }
            let (v, _, scalars) = model.output(output);
            let margins = MarginModel {
                block: &rows_of_block,
                products: products(simd, v, model.n_features, values),
                scalars,
            };
            descend(block, margins, &mut out[output..], model.n_outputs);
        }
        true
    }
}

/// The Gram matrix of the rows without its diagonal, of rows that have `constant` as one more feature.
/// `None` if a product is not finite.
#[inline(always)]
fn gram<S: Simd>(simd: S, values: &[&[f64]], constant: f64) -> Option<[[f64; MAX_ROWS]; MAX_ROWS]> {
    // 0 as long as all are finite.
    let mut zero = 0.0;
    let mut gram = [[0.0; MAX_ROWS]; MAX_ROWS];
    let last = values.len() - 1;
    let mut start = 1;
    while start <= last {
        let a = positions::<{ TILE.0 }>(start, last);
        let mut other = 0;
        while other < a[TILE.0 - 1] {
            let b = positions::<{ TILE.1 }>(other, last);
            let tile = simd::products(simd, at(values, a), at(values, b));
            for (&i, line) in a.iter().zip(&tile) {
                for (&j, &product) in b.iter().zip(line) {
                    gram[i][j] = product + constant;
                    gram[j][i] = product + constant;
                    zero += 0.0 * product;
                }
            }
            other += TILE.1;
        }
        start += TILE.0;
    }
    (zero == 0.0).then_some(gram)
}

/// Positions from `start` on; the last one is repeated where there are no more.
#[inline(always)]
fn positions<const N: usize>(start: usize, last: usize) -> [usize; N] {
    let mut positions = [0; N];
    for (offset, position) in positions.iter_mut().enumerate() {
        *position = (start + offset).min(last);
    }
    positions
}

/// The rows at some positions.
#[inline(always)]
fn at<'a, const N: usize>(values: &[&'a [f64]], positions: [usize; N]) -> [&'a [f64]; N] {
    let mut found: [&[f64]; N] = [&[]; N];
    for (found, position) in found.iter_mut().zip(positions) {
        *found = values[position];
    }
    found
}

/// The rows of a block, with their Gram matrix, targets and weights.
struct BlockGram<'a, S, R> {
    simd: S,
    rule: R,
    values: &'a [&'a [f64]],
    gram: [[f64; MAX_ROWS]; MAX_ROWS],
    targets: [f64; MAX_ROWS],
    weights: [f64; MAX_ROWS],
}

/// The products of a vector with the rows: `n_features` weights, and whatever follows as the intercept.
#[inline(always)]
fn products<S: Simd>(simd: S, v: &[f64], n_features: usize, values: &[&[f64]]) -> [f64; MAX_ROWS] {
    let (weights, constant) = v.split_at(n_features);
    let mut products = [0.0; MAX_ROWS];
    let last = values.len() - 1;
    let mut start = 0;
    while start <= last {
        let positions = positions::<{ TILE.0 }>(start, last);
        let tile = simd::products(simd, at(values, positions), [weights]);
        for (position, [product]) in positions.into_iter().zip(tile) {
            products[position] = vector::plus_constant(product, constant);
        }
        start += TILE.0;
    }
    products
}

/// One output of a model restricted to a block of rows, addressed by position.
#[derive(Clone, Copy)]
struct MarginModel<'a, S, R: UpdateRule> {
    block: &'a BlockGram<'a, S, R>,
    /// ⟨v, x⟩ of each row.
    products: [f64; MAX_ROWS],
    scalars: R::Scalars,
}

impl<S: Simd, R: UpdateRule> MarginModel<'_, S, R> {
    #[inline(always)]
    fn update(&mut self, position: usize) {
        let BlockGram { simd, rule, .. } = *self.block;
        let observation = Observation {
            product: self.products[position],
            target: self.block.targets[position],
            weight: self.block.weights[position],
            norm: RowNorm::new(simd, self.block.values[position], &rule),
        };
        let Some(step) = rule.step(&mut self.scalars, observation) else {
            return;
        };
        let gram = &self.block.gram[position];
        simd::axpy(simd, step.weights, gram, &mut self.products);
        if let Some((_, b)) = rule.rescale(&mut self.scalars) {
            for product in &mut self.products {
                *product *= b;
            }
        }
    }

    #[inline(always)]
    fn output(&self, position: usize) -> f64 {
        let (a, _) = self.block.rule.combination(&self.scalars);
        a * self.products[position]
    }
}

/// Algorithm 1 on the positions of a block. Writes the output for each row, `stride` elements after
/// that for the row before.
#[inline(always)]
fn descend<S: Simd, R: UpdateRule>(
    block: &LeafBlock<'_>,
    model: MarginModel<'_, S, R>,
    out: &mut [f64],
    stride: usize,
) {
    let mut buffer = Vec::new();
    // Right halves that are still to be done: their models and positions.
    let mut deferred = [None; MAX_DEPTH];
    let mut n_deferred = 0;
    let mut next = Some((model, 0, block.rows.len()));
    while let Some((mut model, start, mut end)) = next {
        while end - start > 1 {
            let middle = start + (end - start).div_ceil(2);
            let mut twin = model;
            if let Order::Random { seed } = block.order {
                update_shuffled(&mut model, middle..end, block, seed, &mut buffer);
                update_shuffled(&mut twin, start..middle, block, seed, &mut buffer);
            } else {
                // In turn, so that the steps of one hide the latency of the other's.
                let n_turns = end - middle;
                for turn in 0..n_turns {
                    model.update(middle + turn);
                    twin.update(start + turn);
                }
                if start + n_turns < middle {
                    twin.update(middle - 1);
                }
            }
            if end - middle == 1 {
                out[middle * stride] = twin.output(middle);
            } else {
                deferred[n_deferred] = Some((twin, middle, end));
                n_deferred += 1;
            }
            end = middle;
        }
        out[start * stride] = model.output(start);
        next = None;
        if n_deferred > 0 {
            n_deferred -= 1;
            next = deferred[n_deferred];
        }
    }
}

/// 0, 1, 2, …
const POSITIONS: [usize; MAX_ROWS] = {
    let mut positions = [0; MAX_ROWS];
    let mut position = 0;
    while position < MAX_ROWS {
        positions[position] = position;
        position += 1;
    }
    positions
};

/// Updates a model with the rows at `positions` in random order.
#[inline(always)]
fn update_shuffled<S: Simd, R: UpdateRule>(
    model: &mut MarginModel<'_, S, R>,
    positions: Range<usize>,
    block: &LeafBlock<'_>,
    seed: u64,
    buffer: &mut Vec<usize>,
) {
    let batch = Batch {
        rows: [&POSITIONS[positions.clone()]],
        key: block.first_fold + positions.start..block.first_fold + positions.end,
    };
    for &position in batch.shuffle(seed, buffer) {
        model.update(position);
    }
}
