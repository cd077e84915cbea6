//! The loops of linear learners: over the rows to learn, for one model or two interleaved, and over
//! the rows to evaluate.

use super::vector::{self, Vector};
use super::{LazyNorm, Linear, Observation, Step, Targets, UpdateRule};
use crate::data::{Examples, Layout, Prefetched, Row};
use crate::learners::undo::{NoUndo, Undo};
use crate::runtime::simd::{Simd, WithSimd};

pub(super) struct Update<'a, 'd, R, X, U> {
    pub(super) model: &'a mut Linear<R>,
    pub(super) data: &'a Examples<'d, X>,
    pub(super) targets: Targets<'a>,
    pub(super) rows: &'a [usize],
    pub(super) undo: &'a mut U,
}

impl<R: UpdateRule, X: Layout, U: Undo> WithSimd for Update<'_, '_, R, X, U> {
    type Output = ();

    /// Outputs are independent: each learns all rows before the next one does.
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
            let source = Source {
                data,
                targets,
                output,
            };
            let update = UpdateLoop::new(simd, model, source, rows, undo);
            // A plain loop, here and in `Evaluate`: an iterator adapter would be a call per row.
            if let Some(mut update) = update {
                while update.advance() {}
            }
        }
    }
}

/// Two models that are updated row by row in turn, so that the steps of one hide the latency of the
/// other's.
pub(super) struct UpdatePair<'a, 'd, R, X> {
    pub(super) models: [&'a mut Linear<R>; 2],
    pub(super) data: &'a Examples<'d, X>,
    pub(super) targets: Targets<'a>,
    pub(super) rows: [&'a [usize]; 2],
}

impl<R: UpdateRule, X: Layout> WithSimd for UpdatePair<'_, '_, R, X> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self {
            models: [first, second],
            data,
            targets,
            rows: [first_rows, second_rows],
        } = self;
        for output in 0..first.n_outputs {
            let source = Source {
                data,
                targets,
                output,
            };
            let (a, b) = (&mut NoUndo, &mut NoUndo);
            let first = UpdateLoop::new(simd, first, source, first_rows, a);
            let second = UpdateLoop::new(simd, second, source, second_rows, b);
            let rest = match (first, second) {
                (Some(first), Some(second)) => interleave(first, second),
                (first, second) => first.or(second),
            };
            if let Some(mut update) = rest {
                while update.advance() {}
            }
        }
    }
}

/// Advances both loops until one of them has no rows left; returns the other, if it has.
#[inline(always)]
fn interleave<'a, 'd, S: Simd, R: UpdateRule, X: Layout, U: Undo>(
    mut first: UpdateLoop<'a, 'd, S, R, X, U>,
    mut second: UpdateLoop<'a, 'd, S, R, X, U>,
) -> Option<UpdateLoop<'a, 'd, S, R, X, U>> {
    loop {
        match (first.advance(), second.advance()) {
            (true, true) => {}
            (true, false) => return Some(first),
            (false, true) => return Some(second),
            (false, false) => return None,
        }
    }
}

/// Where an output finds its rows and targets.
struct Source<'a, 'd, X> {
    data: &'a Examples<'d, X>,
    targets: Targets<'a>,
    output: usize,
}

impl<X> Clone for Source<'_, '_, X> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<X> Copy for Source<'_, '_, X> {}

impl<'a, X: Layout> Source<'a, '_, X> {
    #[inline(always)]
    fn row(&self, index: usize) -> X::Row<'a> {
        self.data.rows().row(index)
    }

    /// What `rule` sees of the row at `index`, whose product with v is `product`.
    #[inline(always)]
    fn observe<S: Simd>(
        &self,
        simd: S,
        rule: &impl UpdateRule,
        n_outputs: usize,
        (index, row, product): (usize, X::Row<'a>, f64),
    ) -> Observation<impl LazyNorm> {
        Observation {
            product,
            target: self.targets.target(index, self.output, n_outputs),
            weight: self.data.weight(index),
            norm: RowNorm::new(simd, row, rule),
        }
    }
}

/// The number of rows, from the first on, that change the scalars of an output but not its vectors.
/// They need no copy of a shared vector.
#[inline(always)]
fn n_without_step<S: Simd, R: UpdateRule, X: Layout>(
    simd: S,
    model: &Linear<R>,
    source: Source<'_, '_, X>,
    rows: &[usize],
    scalars: &mut R::Scalars,
) -> usize {
    let (v, ..) = model.output(source.output);
    for (position, &index) in rows.iter().enumerate() {
        let row = source.row(index);
        let product = vector::dot(simd, row, v, model.n_features);
        let observed = (index, row, product);
        let observation = source.observe(simd, &model.rule, model.n_outputs, observed);
        let mut next = *scalars;
        let step = model.rule.step(&mut next, observation);
        if step.is_some_and(|step| R::AVERAGES || step.weights != 0.0) {
            return position;
        }
        *scalars = next;
    }
    rows.len()
}

/// One output and the rows it has yet to learn. Each step depends on the one before.
struct UpdateLoop<'a, 'd, S, R: UpdateRule, X: Layout, U> {
    state: OutputState<'a, S, R>,
    source: Source<'a, 'd, X>,
    n_outputs: usize,
    undo: &'a mut U,
    /// Where the scalars are written at the end.
    stored: &'a mut [f64],
    rows: Prefetched<'a, 'd, X>,
    index: usize,
    row: X::Row<'a>,
    /// ⟨v, x⟩ of that row.
    product: f64,
}

impl<'a, 'd, S: Simd, R: UpdateRule, X: Layout, U: Undo> UpdateLoop<'a, 'd, S, R, X, U> {
    /// `None` if there is nothing left to do: no rows, or none that makes a step on a shared vector.
    #[inline(always)]
    fn new(
        simd: S,
        model: &'a mut Linear<R>,
        source: Source<'a, 'd, X>,
        mut rows: &'a [usize],
        undo: &'a mut U,
    ) -> Option<Self> {
        if rows.is_empty() {
            return None;
        }
        let output = source.output;
        let (rule, width) = (model.rule, model.width());
        let (n_features, n_outputs) = (model.n_features, model.n_outputs);
        let mut scalars = model.scalars(output);
        let len = scalars.as_ref().len();
        undo.save_all(n_outputs, output * len, scalars.as_ref());
        if model.state.is_shared(output) {
            rows = &rows[n_without_step(simd, model, source, rows, &mut scalars)..];
            if rows.is_empty() {
                let stored = &mut model.state.scalars_mut()[output * len..];
                stored[..len].copy_from_slice(scalars.as_ref());
                return None;
            }
        }
        let mut rows = source.data.prefetched(rows);
        let index = rows.next()?;
        let (vector, all_scalars) = model.state.parts_mut(output);
        let (v, c) = vector.split_at_mut(width);
        let state = OutputState {
            simd,
            rule,
            scalars,
            v: Vector::new(v, n_features, (output, 0)),
            c: Vector::new(c, n_features.min(c.len()), (output, width)),
        };
        let row = source.row(index);
        let product = state.v.dot(simd, row);
        Some(Self {
            state,
            source,
            n_outputs,
            undo,
            stored: &mut all_scalars[output * len..][..len],
            rows,
            index,
            row,
            product,
        })
    }

    /// Whether a step of 0 is skipped. Where it is cheap it is made: it changes no weight, and a branch
    /// on it would be mispredicted.
    #[inline(always)]
    fn skips(step: Step) -> bool {
        let is_cheap = <X::Row<'a> as Row>::STORES_ALL && !U::SAVES;
        !is_cheap && !R::AVERAGES && step.weights == 0.0
    }

    /// Learns from one row. Returns true if there is another.
    #[inline(always)]
    fn advance(&mut self) -> bool {
        let observed = (self.index, self.row, self.product);
        let state = &mut self.state;
        let observation = self
            .source
            .observe(state.simd, &state.rule, self.n_outputs, observed);
        let step = state.rule.step(&mut state.scalars, observation);
        let step = step.filter(|&step| !Self::skips(step));
        let Some(next_index) = self.rows.next() else {
            if let Some(step) = step {
                state.add(step, self.row, self.undo);
            }
            self.stored.copy_from_slice(state.scalars.as_ref());
            return false;
        };
        let next = self.source.row(next_index);
        self.product = match step {
            Some(step) => state.add_then_dot(step, (self.row, next), self.undo),
            None => state.v.dot(state.simd, next),
        };
        (self.index, self.row) = (next_index, next);
        true
    }
}

/// One output while it is updated.
struct OutputState<'a, S, R: UpdateRule> {
    simd: S,
    rule: R,
    scalars: R::Scalars,
    v: Vector<'a>,
    /// Empty where nothing is averaged.
    c: Vector<'a>,
}

impl<S: Simd, R: UpdateRule> OutputState<'_, S, R> {
    #[inline(always)]
    fn add<X: Row>(&mut self, step: Step, row: X, undo: &mut impl Undo) {
        self.v.add(self.simd, step.weights, row, undo);
        self.complete(step, row, undo);
    }

    /// The same, then ⟨v, x⟩ of the next row, in one pass over v.
    #[inline(always)]
    fn add_then_dot<X: Row>(&mut self, step: Step, rows: (X, X), undo: &mut impl Undo) -> f64 {
        let product = self.v.add_then_dot(self.simd, step.weights, rows, undo);
        if self.complete(step, rows.0, undo) {
            self.v.dot(self.simd, rows.1)
        } else {
            product
        }
    }

    /// What follows a step of v: that of c, and rescaling. Returns true if v has changed again.
    #[inline(always)]
    fn complete<X: Row>(&mut self, step: Step, row: X, undo: &mut impl Undo) -> bool {
        if R::AVERAGES {
            self.c.add(self.simd, step.sum, row, undo);
        }
        let Some((a, b)) = self.rule.rescale(&mut self.scalars) else {
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
    pub(super) fn new(simd: S, row: X, rule: &impl UpdateRule) -> Self {
        Self {
            simd,
            row,
            has_constant: rule.has_intercept(),
        }
    }
}

impl<S: Simd, X: Row> LazyNorm for RowNorm<S, X> {
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

impl<R: UpdateRule, X: Layout> WithSimd for Evaluate<'_, '_, R, X> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { model, data, .. } = self;
        let n_features = model.n_features;
        for output in 0..model.n_outputs {
            let (v, c, scalars) = model.output(output);
            let (a, b) = model.rule.combination(&scalars);
            let mut position = output;
            for index in data.prefetched(self.rows) {
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
