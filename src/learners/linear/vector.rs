//! The vectors of linear learners: weights of the features, and of the constant, if there is one.

use crate::data::Row;
use crate::learners::undo::Undo;
use crate::runtime::simd::Simd;

/// A vector that is updated.
pub(super) struct Vector<'a> {
    weights: &'a mut [f64],
    /// The intercept, or nothing.
    constant: &'a mut [f64],
    /// Where the undo log finds the first weight: vector and index.
    slot: (usize, usize),
}

impl<'a> Vector<'a> {
    /// `n_features` weights, and whatever follows as the intercept, at `slot` of the state.
    #[inline(always)]
    pub(super) fn new(values: &'a mut [f64], n_features: usize, slot: (usize, usize)) -> Self {
        let (weights, constant) = values.split_at_mut(n_features);
        Self {
            weights,
            constant,
            slot,
        }
    }

    /// ⟨v, x⟩.
    #[inline(always)]
    pub(super) fn dot<S: Simd, X: Row>(&self, simd: S, row: X) -> f64 {
        plus_constant(row.dot(simd, self.weights), self.constant)
    }

    /// v ← v + δx.
    #[inline(always)]
    pub(super) fn add<S: Simd, X: Row>(
        &mut self,
        simd: S,
        delta: f64,
        row: X,
        undo: &mut impl Undo,
    ) {
        undo.save_row(row, self.slot.0, self.slot.1, self.weights);
        row.axpy(simd, delta, self.weights);
        self.add_to_constant(delta, undo);
    }

    /// [`Vector::add`] for one row and [`Vector::dot`] for the next, in one pass over v.
    #[inline(always)]
    pub(super) fn add_then_dot<S: Simd, X: Row>(
        &mut self,
        simd: S,
        delta: f64,
        (row, next): (X, X),
        undo: &mut impl Undo,
    ) -> f64 {
        undo.save_row(row, self.slot.0, self.slot.1, self.weights);
        let product = row.axpy_dot(simd, delta, self.weights, next);
        self.add_to_constant(delta, undo);
        plus_constant(product, self.constant)
    }

    #[inline(always)]
    fn add_to_constant(&mut self, delta: f64, undo: &mut impl Undo) {
        if let [constant] = self.constant {
            undo.save(self.slot.0, self.slot.1 + self.weights.len(), *constant);
            *constant += delta;
        }
    }

    /// v ← v + a·other, in one pass over all features.
    pub(super) fn add_vector(&mut self, a: f64, other: &Vector<'_>, undo: &mut impl Undo) {
        self.save_all(undo);
        let others = other.weights.iter().chain(&*other.constant);
        for (v, other) in self
            .weights
            .iter_mut()
            .chain(&mut *self.constant)
            .zip(others)
        {
            *v += a * other;
        }
    }

    /// v ← b·v, in one pass over all features.
    pub(super) fn scale(&mut self, b: f64, undo: &mut impl Undo) {
        self.save_all(undo);
        for v in self.weights.iter_mut().chain(&mut *self.constant) {
            *v *= b;
        }
    }

    fn save_all(&self, undo: &mut impl Undo) {
        let (vector, start) = self.slot;
        undo.save_all(vector, start, self.weights);
        undo.save_all(vector, start + self.weights.len(), self.constant);
    }
}

/// ⟨v, x⟩: `n_features` weights, and whatever follows as the intercept.
#[inline(always)]
pub(super) fn dot<S: Simd, X: Row>(simd: S, row: X, v: &[f64], n_features: usize) -> f64 {
    let (weights, constant) = v.split_at(n_features);
    plus_constant(row.dot(simd, weights), constant)
}

/// A product, and the intercept if there is one.
#[inline(always)]
pub(super) fn plus_constant(product: f64, constant: &[f64]) -> f64 {
    match constant {
        [constant] => product + constant,
        _ => product,
    }
}
