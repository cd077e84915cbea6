//! The last nodes of a tree, where a model is what it answers.
//!
//! A model that will see no more than a few rows x₁ … xₘ needs no weights. All it is asked for are
//! its products pᵢ = ⟨v, xᵢ⟩ with them, and when it adds a multiple of one of them to v, then
//!
//! > v ← v + δ·xⱼ is pᵢ ← pᵢ + δ·⟨xⱼ, xᵢ⟩.
//!
//! So the products of the rows with each other are found once, for all models of the nodes below,
//! and with that a row costs m numbers and not twice as many as there are features. A step then waits
//! for a number, and not for the sum over a row.

use super::passes::RowNorm;
use super::vector;
use super::{Linear, Rule, Seen, Targets};
use crate::data::{Examples, Layout};
use crate::runtime::simd::{self, Simd, WithSimd};
use crate::tree::{Few, Student};

/// The most features for which it pays: from here on it is the rows that cost.
pub(super) const LONGEST: usize = 1024;

const MOST: usize = Few::MOST;

/// How many rows are multiplied with how many others at a time: as there are registers for.
const TILE: (usize, usize) = (4, 2);

pub(super) struct Settle<'a, 'd, 'f, R, X> {
    pub(super) model: &'a Linear<R>,
    pub(super) data: &'a Examples<'d, X>,
    pub(super) targets: Targets<'a>,
    pub(super) few: &'a mut Few<'f>,
    pub(super) out: &'a mut [f64],
}

impl<R: Rule, X: Layout> WithSimd for Settle<'_, '_, '_, R, X> {
    /// False if rows do not store all features, or their products are beyond all numbers. That is so
    /// for all models or for none.
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> bool {
        let Self {
            model,
            data,
            targets,
            few,
            out,
        } = self;
        let rows = few.rows();
        let mut values: [&[f64]; MOST] = [&[]; MOST];
        for (values, &row) in values.iter_mut().zip(rows) {
            let Some(found) = data.rows().values(row) else {
                return false;
            };
            *values = found;
        }
        let values = &values[..rows.len()];
        let constant = if model.rule.has_intercept() { 1.0 } else { 0.0 };
        let Some(products) = square(simd, values, constant) else {
            return false;
        };
        let mut lesson = Lesson {
            simd,
            rule: model.rule,
            values,
            products,
            targets: [0.0; MOST],
            weights: [0.0; MOST],
        };
        for output in 0..model.n_outputs {
            for (place, &row) in rows.iter().enumerate() {
                lesson.targets[place] = targets.target(row, output, model.n_outputs);
                lesson.weights[place] = data.weight(row);
            }
            let (v, _, numbers) = model.block(output);
            let pupil = Pupil {
                lesson: &lesson,
                products: line(simd, v, model.n_features, values),
                numbers,
            };
            few.walk(pupil, &mut out[output..], model.n_outputs);
        }
        true
    }
}

/// The products of a few rows with each other, though not of each with itself; of rows that have
/// `constant` as one more feature. `None` if one is not finite.
#[inline(always)]
fn square<S: Simd>(simd: S, values: &[&[f64]], constant: f64) -> Option<[[f64; MOST]; MOST]> {
    // 0 as long as all are finite.
    let mut zero = 0.0;
    let mut square = [[0.0; MOST]; MOST];
    let last = values.len() - 1;
    let mut start = 1;
    while start <= last {
        let a = places::<{ TILE.0 }>(start, last);
        let mut other = 0;
        while other < a[TILE.0 - 1] {
            let b = places::<{ TILE.1 }>(other, last);
            let tile = simd::products(simd, at(values, a), at(values, b));
            for (&i, line) in a.iter().zip(&tile) {
                for (&j, &product) in b.iter().zip(line) {
                    square[i][j] = product + constant;
                    square[j][i] = product + constant;
                    zero += 0.0 * product;
                }
            }
            other += TILE.1;
        }
        start += TILE.0;
    }
    (zero == 0.0).then_some(square)
}

/// Some places from `start` on, and the last one again and again where there are no more.
#[inline(always)]
fn places<const N: usize>(start: usize, last: usize) -> [usize; N] {
    let mut places = [0; N];
    for (offset, place) in places.iter_mut().enumerate() {
        *place = (start + offset).min(last);
    }
    places
}

/// The rows at some places.
#[inline(always)]
fn at<'a, const N: usize>(values: &[&'a [f64]], places: [usize; N]) -> [&'a [f64]; N] {
    let mut found: [&[f64]; N] = [&[]; N];
    for (found, place) in found.iter_mut().zip(places) {
        *found = values[place];
    }
    found
}

/// What there is to learn from a few rows.
struct Lesson<'a, S, R> {
    simd: S,
    rule: R,
    values: &'a [&'a [f64]],
    products: [[f64; MOST]; MOST],
    targets: [f64; MOST],
    weights: [f64; MOST],
}

/// The products of a vector with a few rows: `n_features` weights, and whatever follows as the
/// intercept.
#[inline(always)]
fn line<S: Simd>(simd: S, v: &[f64], n_features: usize, values: &[&[f64]]) -> [f64; MOST] {
    let (weights, constant) = v.split_at(n_features);
    let mut line = [0.0; MOST];
    let last = values.len() - 1;
    let mut start = 0;
    while start <= last {
        let places = places::<{ TILE.0 }>(start, last);
        let tile = simd::products(simd, at(values, places), [weights]);
        for (place, [product]) in places.into_iter().zip(tile) {
            line[place] = vector::plus_constant(product, constant);
        }
        start += TILE.0;
    }
    line
}

/// One output of a model, as the rows see it.
#[derive(Clone, Copy)]
struct Pupil<'a, S, R: Rule> {
    lesson: &'a Lesson<'a, S, R>,
    /// Its products with the rows.
    products: [f64; MOST],
    numbers: R::Numbers,
}

impl<S: Simd, R: Rule> Student for Pupil<'_, S, R> {
    #[inline(always)]
    fn learn(&mut self, place: usize) {
        let Lesson { simd, rule, .. } = *self.lesson;
        let seen = Seen {
            product: self.products[place],
            target: self.lesson.targets[place],
            weight: self.lesson.weights[place],
            norm: RowNorm::new(simd, self.lesson.values[place], &rule),
        };
        let Some(step) = rule.step(&mut self.numbers, seen) else {
            return;
        };
        let products = &self.lesson.products[place];
        simd::axpy(simd, step.weights, products, &mut self.products);
        if let Some((_, b)) = rule.fold(&mut self.numbers) {
            for product in &mut self.products {
                *product *= b;
            }
        }
    }

    #[inline(always)]
    fn answer(&self, place: usize) -> f64 {
        let (a, _) = self.lesson.rule.hypothesis(&self.numbers);
        a * self.products[place]
    }
}
