//! The loops of linear learners: over the rows to be learnt, one model or two at a time, and over the
//! rows to be evaluated.

use super::vector::{self, Vector};
use super::{Linear, Norm, Rule, Seen, Step, Targets};
use crate::data::{Ahead, Examples, Layout, Row};
use crate::runtime::simd::{Simd, WithSimd};
use crate::tree::{Forget, Undo};

pub(super) struct Feed<'a, 'd, R, X, U> {
    pub(super) model: &'a mut Linear<R>,
    pub(super) data: &'a Examples<'d, X>,
    pub(super) targets: Targets<'a>,
    pub(super) rows: &'a [usize],
    pub(super) undo: &'a mut U,
}

impl<R: Rule, X: Layout, U: Undo> WithSimd for Feed<'_, '_, R, X, U> {
    type Output = ();

    /// Outputs have nothing in common: each learns from all rows before the next one does.
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self {
            model,
            data,
            targets,
            rows,
            undo,
        } = self;
        for output in 0..model.n_outputs {
            let chain = Chain::new(simd, model, data, targets, rows, output, undo);
            let Some(mut chain) = chain else { return };
            // No adapter of iterators, here and where rows are evaluated: it would be a call a row.
            while chain.advance() {}
        }
    }
}

/// Two models that learn in turns, row by row, so that neither has to wait for its last step.
pub(super) struct FeedBoth<'a, 'd, R, X> {
    pub(super) models: [&'a mut Linear<R>; 2],
    pub(super) data: &'a Examples<'d, X>,
    pub(super) targets: Targets<'a>,
    pub(super) rows: [&'a [usize]; 2],
}

impl<R: Rule, X: Layout> WithSimd for FeedBoth<'_, '_, R, X> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self {
            models: [first, second],
            data,
            targets,
            rows,
        } = self;
        let [one, other] = rows;
        for output in 0..first.n_outputs {
            let (a, b) = (&mut Forget, &mut Forget);
            let first = Chain::new(simd, first, data, targets, one, output, a);
            let second = Chain::new(simd, second, data, targets, other, output, b);
            let rest = match (first, second) {
                (Some(first), Some(second)) => take_turns(first, second),
                (one, other) => one.or(other),
            };
            if let Some(mut chain) = rest {
                while chain.advance() {}
            }
        }
    }
}

/// Learns until one of the two has no rows left. The other, if it has.
#[inline(always)]
fn take_turns<'a, 'd, S: Simd, R: Rule, X: Layout, U: Undo>(
    mut first: Chain<'a, 'd, S, R, X, U>,
    mut second: Chain<'a, 'd, S, R, X, U>,
) -> Option<Chain<'a, 'd, S, R, X, U>> {
    loop {
        match (first.advance(), second.advance()) {
            (true, true) => {}
            (true, false) => return Some(first),
            (false, true) => return Some(second),
            (false, false) => return None,
        }
    }
}

/// One output and the rows it has yet to learn, each of which waits for the one before.
struct Chain<'a, 'd, S, R: Rule, X: Layout, U> {
    learning: Learning<'a, S, R>,
    data: &'a Examples<'d, X>,
    targets: Targets<'a>,
    output: usize,
    n_outputs: usize,
    undo: &'a mut U,
    stored: &'a mut [f64],
    ahead: Ahead<'a, 'd, X>,
    index: usize,
    row: X::Row<'a>,
    /// ⟨v, x⟩ of that row.
    product: f64,
}

impl<'a, 'd, S: Simd, R: Rule, X: Layout, U: Undo> Chain<'a, 'd, S, R, X, U> {
    /// `None` if there are no rows.
    #[inline(always)]
    fn new(
        simd: S,
        model: &'a mut Linear<R>,
        data: &'a Examples<'d, X>,
        targets: Targets<'a>,
        rows: &'a [usize],
        output: usize,
        undo: &'a mut U,
    ) -> Option<Self> {
        let (block_len, vectors_len) = (model.block_len(), model.vectors_len());
        let (width, n_features, n_outputs) = (model.width(), model.n_features, model.n_outputs);
        let mut ahead = data.ahead(rows);
        let index = ahead.next()?;
        let start = output * block_len;
        let block = &mut model.state[start..start + block_len];
        let (vectors, stored) = block.split_at_mut(vectors_len);
        undo.save_all(start + vectors_len, stored);
        let mut numbers = model.rule.empty();
        numbers.as_mut().copy_from_slice(stored);
        let (v, c) = vectors.split_at_mut(width);
        let learning = Learning {
            simd,
            rule: model.rule,
            numbers,
            v: Vector::new(v, n_features, start),
            c: Vector::new(c, n_features.min(c.len()), start + width),
        };
        let row = data.rows().row(index);
        let product = learning.v.dot(simd, row);
        Some(Self {
            learning,
            data,
            targets,
            output,
            n_outputs,
            undo,
            stored,
            ahead,
            index,
            row,
            product,
        })
    }

    /// Whether to leave out a step of 0. Where it is cheap it is made: it changes no weight, and
    /// whether a step is 0 cannot be foreseen.
    #[inline(always)]
    fn may_skip(step: Step) -> bool {
        let is_cheap = <X::Row<'a> as Row>::STORES_ALL && !U::SAVES;
        !is_cheap && !R::AVERAGES && step.weights == 0.0
    }

    /// Learns from one row. Whether there is another.
    #[inline(always)]
    fn advance(&mut self) -> bool {
        let target = self.targets.target(self.index, self.output, self.n_outputs);
        let weight = self.data.weight(self.index);
        let step = self.learning.step(self.row, self.product, target, weight);
        let Some(next_index) = self.ahead.next() else {
            if let Some(step) = step
                && !Self::may_skip(step)
            {
                self.learning.add(step, self.row, self.undo);
            }
            self.stored.copy_from_slice(self.learning.numbers.as_ref());
            return false;
        };
        let next = self.data.rows().row(next_index);
        self.product = match step {
            Some(step) if !Self::may_skip(step) => {
                self.learning
                    .add_then_dot(step, (self.row, next), self.undo)
            }
            _ => self.learning.v.dot(self.learning.simd, next),
        };
        (self.index, self.row) = (next_index, next);
        true
    }
}

/// One output while it learns.
struct Learning<'a, S, R: Rule> {
    simd: S,
    rule: R,
    numbers: R::Numbers,
    v: Vector<'a>,
    /// Empty where nothing is averaged.
    c: Vector<'a>,
}

impl<S: Simd, R: Rule> Learning<'_, S, R> {
    #[inline(always)]
    fn step<X: Row>(&mut self, row: X, product: f64, target: f64, weight: f64) -> Option<Step> {
        let seen = Seen {
            product,
            target,
            weight,
            norm: RowNorm::new(self.simd, row, &self.rule),
        };
        self.rule.step(&mut self.numbers, seen)
    }

    #[inline(always)]
    fn add<X: Row>(&mut self, step: Step, row: X, undo: &mut impl Undo) {
        self.v.add(self.simd, step.weights, row, undo);
        self.complete(step, row, undo);
    }

    /// The same, then ⟨v, x⟩ of the next row: the most frequent pair.
    #[inline(always)]
    fn add_then_dot<X: Row>(&mut self, step: Step, rows: (X, X), undo: &mut impl Undo) -> f64 {
        let product = self.v.add_then_dot(self.simd, step.weights, rows, undo);
        if self.complete(step, rows.0, undo) {
            self.v.dot(self.simd, rows.1)
        } else {
            product
        }
    }

    /// What follows a step of v: that of c, and folding. Whether v has changed again.
    #[inline(always)]
    fn complete<X: Row>(&mut self, step: Step, row: X, undo: &mut impl Undo) -> bool {
        if R::AVERAGES {
            self.c.add(self.simd, step.sum, row, undo);
        }
        let Some((a, b)) = self.rule.fold(&mut self.numbers) else {
            return false;
        };
        if R::AVERAGES {
            self.c.add_vector(a, &self.v, undo);
        }
        self.v.scale(b, undo);
        true
    }
}

pub(super) struct RowNorm<S, X> {
    simd: S,
    row: X,
    has_constant: bool,
}

impl<S: Simd, X: Row> RowNorm<S, X> {
    #[inline(always)]
    pub(super) fn new(simd: S, row: X, rule: &impl Rule) -> Self {
        Self {
            simd,
            row,
            has_constant: rule.has_intercept(),
        }
    }
}

impl<S: Simd, X: Row> Norm for RowNorm<S, X> {
    #[inline(always)]
    fn squared(self) -> f64 {
        let constant = if self.has_constant { 1.0 } else { 0.0 };
        self.row.squared_norm(self.simd) + constant
    }
}

pub(super) struct Evaluate<'a, 'd, R, X> {
    pub(super) model: &'a Linear<R>,
    pub(super) data: &'a Examples<'d, X>,
    pub(super) rows: &'a [usize],
    pub(super) out: &'a mut [f64],
}

impl<R: Rule, X: Layout> WithSimd for Evaluate<'_, '_, R, X> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { model, data, .. } = self;
        let n_features = model.n_features;
        for output in 0..model.n_outputs {
            let (v, c, numbers) = model.block(output);
            let (a, b) = model.rule.hypothesis(&numbers);
            let mut position = output;
            for index in data.ahead(self.rows) {
                let row = data.rows().row(index);
                let mut value = a * vector::dot(simd, row, v, n_features);
                if R::AVERAGES {
                    value += b * vector::dot(simd, row, c, n_features);
                }
                self.out[position] = value;
                position += model.n_outputs;
            }
        }
    }
}
