//! What linear learners have in common: one pass over the rows, whatever the rule.
//!
//! A linear learner answers ⟨w, x⟩ and learns by adding a multiple of x to a vector v:
//!
//! > product ← ⟨v, x⟩; the [`Rule`] turns it into a step δ; v ← v + δ·x.
//!
//! The hypothesis w is a multiple of v, so that a rule can shrink w or project it on a ball by
//! touching one number. Rules that average their steps have a second vector c, with the sum of all
//! hypotheses so far kept as α·v + c: a step that must not change that sum adds −α·δ·x to c, and
//! the average, too, costs no more than the row.
//!
//! *Intercept*: the weight of a constant feature 1, treated as every other.
//!
//! *Several classes*: one against the rest, an output a class. Two classes need one output, which
//! is positive for the second class.
//!
//! | operation | numbers |
//! |---|---|
//! | feed or evaluate a row | stored values of the row × outputs, twice when averaging |
//! | copy | (features + 1) × outputs, twice when averaging |

use std::fmt::Debug;

use super::vector::{self, Vector};
use crate::data::{Ahead, Block, Examples, Row, Rows};
use crate::simd::{self, Simd, WithSimd};
use crate::tree::{Effort, Flat, Forget, Learner, Undo};
use crate::{Error, Result};

/// How a linear learner answers to a row.
pub trait Rule: Copy + Debug + Send + Sync {
    /// The numbers an output keeps beside its vectors.
    type Numbers: AsRef<[f64]> + AsMut<[f64]>;

    /// Whether there is a second vector.
    const AVERAGES: bool = false;

    /// Whether the target is the sign of a class, and not a number.
    const CLASSIFIES: bool = true;

    /// The share of rows that make it step, roughly.
    const ACTIVITY: f64 = 1.0;

    /// An error if a parameter is out of its domain.
    fn check(&self) -> Result<()>;

    /// Whether there is a constant feature.
    fn has_intercept(&self) -> bool;

    /// The numbers of an output that has learnt nothing.
    fn empty(&self) -> Self::Numbers;

    /// Learns from one row. A step of 0 and none are the same.
    fn step(&self, numbers: &mut Self::Numbers, row: Seen<impl Norm>) -> Option<Step>;

    /// (a, b) of the hypothesis w = a·v + b·c.
    fn hypothesis(&self, numbers: &Self::Numbers) -> (f64, f64);

    /// Asked after every step: (a, b) if c ← c + a·v, then v ← b·v is due, for the sake of
    /// precision.
    #[inline(always)]
    fn fold(&self, numbers: &mut Self::Numbers) -> Option<(f64, f64)> {
        let _ = numbers;
        None
    }
}

/// What a rule sees of a row.
#[derive(Clone, Copy, Debug)]
pub struct Seen<N> {
    /// ⟨v, x⟩.
    pub product: f64,
    /// ±1, or the number to be learnt.
    pub target: f64,
    /// The row's weight.
    pub weight: f64,
    /// Tells ‖x‖².
    pub norm: N,
}

/// Tells ‖x‖², if it is asked. (Not a closure: those are not always compiled for the instructions
/// that [`dispatch`](simd::dispatch) chose.)
pub trait Norm {
    /// ‖x‖², with the constant feature.
    fn squared(self) -> f64;
}

/// The multiples of x to be added to v and to c.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// δ.
    pub weights: f64,
    /// −α·δ; without meaning where nothing is averaged.
    pub sum: f64,
}

impl Step {
    /// A step of a rule that averages nothing.
    #[inline(always)]
    pub fn of(weights: f64) -> Self {
        Self { weights, sum: 0.0 }
    }
}

/// A linear learner.
///
/// State: a block for each output, made of v, of c where the rule averages, and of the rule's
/// numbers. A vector ends with the intercept, if there is one.
#[derive(Clone, Debug)]
pub struct Linear<R> {
    rule: R,
    n_features: usize,
    n_outputs: usize,
    state: Block,
}

impl<R: Rule> Linear<R> {
    /// A learner that has learnt nothing, of `n_targets` classes or, if it does not classify, of as
    /// many numbers a row.
    pub fn new(rule: R, n_features: usize, n_targets: usize) -> Result<Self> {
        rule.check()?;
        let n_outputs = match n_targets {
            2 if R::CLASSIFIES => 1,
            0 | 1 if R::CLASSIFIES => {
                return Err(Error::Parameter {
                    name: "y",
                    rule: "of at least two classes",
                    value: format!("{n_targets} class(es)"),
                });
            }
            n => n,
        };
        let mut model = Self {
            rule,
            n_features,
            n_outputs,
            state: Block::new(0),
        };
        let numbers = rule.empty();
        model.state = Block::new(n_outputs * model.block_len());
        for output in 0..n_outputs {
            let end = (output + 1) * model.block_len();
            let start = end - numbers.as_ref().len();
            model.state[start..end].copy_from_slice(numbers.as_ref());
        }
        Ok(model)
    }

    /// The weights w and the intercept of an output.
    ///
    /// # Panics
    /// When there is no such output.
    pub fn hypothesis(&self, output: usize) -> (Vec<f64>, f64) {
        let (v, c, numbers) = self.block(output);
        let (a, b) = self.rule.hypothesis(&numbers);
        let mut w: Vec<f64> = v.iter().map(|v| a * v).collect();
        for (w, c) in w.iter_mut().zip(c) {
            *w += b * c;
        }
        let intercept = w.drain(self.n_features..).sum();
        (w, intercept)
    }

    /// Numbers in a vector.
    #[inline(always)]
    fn width(&self) -> usize {
        self.n_features + usize::from(self.rule.has_intercept())
    }

    /// Numbers in the vectors of one output.
    #[inline(always)]
    fn vectors_len(&self) -> usize {
        self.width() * if R::AVERAGES { 2 } else { 1 }
    }

    /// Numbers in the block of one output.
    #[inline(always)]
    fn block_len(&self) -> usize {
        self.vectors_len() + self.rule.empty().as_ref().len()
    }

    /// v, c and the numbers of an output.
    #[inline(always)]
    fn block(&self, output: usize) -> (&[f64], &[f64], R::Numbers) {
        let block = &self.state[output * self.block_len()..][..self.block_len()];
        let (vectors, stored) = block.split_at(self.vectors_len());
        let (v, c) = vectors.split_at(self.width());
        let mut numbers = self.rule.empty();
        numbers.as_mut().copy_from_slice(stored);
        (v, c, numbers)
    }

    /// What `rows` of `data` have to be: an error unless they fit.
    #[inline]
    fn targets<'a, X: Rows>(&self, data: &Examples<'a, X>) -> Result<Targets<'a>> {
        data.check_features(self.n_features)?;
        Ok(if R::CLASSIFIES {
            Targets::Classes(data.classes(self.n_outputs.max(2))?)
        } else {
            Targets::Values(data.values(self.n_outputs)?)
        })
    }
}

impl<R: Rule> Flat for Linear<R> {
    fn n_outputs(&self) -> usize {
        self.n_outputs
    }

    fn state(&self) -> &[f64] {
        &self.state
    }

    fn state_mut(&mut self) -> &mut [f64] {
        &mut self.state
    }

    fn narrowed(&self, from: usize, to: usize) -> Option<Self> {
        let n_targets = match self.n_outputs {
            1 if R::CLASSIFIES => 2,
            n => n,
        };
        (from == self.n_features).then(|| Self::new(self.rule, to, n_targets).ok())?
    }
}

impl<R: Rule, X: Rows> Learner<Examples<'_, X>> for Linear<R> {
    fn effort(&self, data: &Examples<'_, X>) -> Effort {
        let vectors = if R::AVERAGES { 2.0 } else { 1.0 };
        let touched = data.stored_per_row() * self.n_outputs as f64 * vectors;
        Effort {
            update: touched,
            copy: self.state.len() as f64,
            undo: Some(touched * R::ACTIVITY),
            indivisible: false,
        }
    }

    fn learn<U: Undo>(
        &mut self,
        data: &Examples<'_, X>,
        rows: &[usize],
        undo: &mut U,
    ) -> Result<()> {
        let targets = self.targets(data)?;
        simd::dispatch(Feed {
            model: self,
            data,
            targets,
            rows,
            undo,
        });
        Ok(())
    }

    fn learn_both(
        models: [&mut Self; 2],
        data: &Examples<'_, X>,
        rows: [&[usize]; 2],
    ) -> Result<()> {
        let targets = models[0].targets(data)?;
        simd::dispatch(FeedBoth {
            models,
            data,
            targets,
            rows,
        });
        Ok(())
    }

    fn exchange(&self, data: &Examples<'_, X>, rows: [usize; 2], out: &mut [f64]) -> Result<bool> {
        let targets = self.targets(data)?;
        let can = <X::Row<'_> as Row>::STORES_ALL && !R::AVERAGES;
        Ok(can
            && simd::dispatch(Exchange {
                model: self,
                data,
                targets,
                rows,
                out,
            }))
    }

    fn evaluate(&self, data: &Examples<'_, X>, rows: &[usize], out: &mut [f64]) -> Result<()> {
        data.check_features(self.n_features)?;
        simd::dispatch(Evaluate {
            model: self,
            data,
            rows,
            out,
        });
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Targets<'a> {
    Classes(&'a [u32]),
    Values(&'a [f64]),
}

impl Targets<'_> {
    /// What `output` of `n_outputs` has to learn of a row.
    #[inline(always)]
    fn target(&self, row: usize, output: usize, n_outputs: usize) -> f64 {
        match self {
            Self::Classes(codes) => {
                let class = if n_outputs == 1 { 1 } else { output };
                if codes[row] as usize == class {
                    1.0
                } else {
                    -1.0
                }
            }
            Self::Values(values) => values[row * n_outputs + output],
        }
    }
}

struct Feed<'a, 'd, R, X, U> {
    model: &'a mut Linear<R>,
    data: &'a Examples<'d, X>,
    targets: Targets<'a>,
    rows: &'a [usize],
    undo: &'a mut U,
}

impl<R: Rule, X: Rows, U: Undo> WithSimd for Feed<'_, '_, R, X, U> {
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
struct FeedBoth<'a, 'd, R, X> {
    models: [&'a mut Linear<R>; 2],
    data: &'a Examples<'d, X>,
    targets: Targets<'a>,
    rows: [&'a [usize]; 2],
}

impl<R: Rule, X: Rows> WithSimd for FeedBoth<'_, '_, R, X> {
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
fn take_turns<'a, 'd, S: Simd, R: Rule, X: Rows, U: Undo>(
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
struct Chain<'a, 'd, S, R: Rule, X: Rows, U> {
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

impl<'a, 'd, S: Simd, R: Rule, X: Rows, U: Undo> Chain<'a, 'd, S, R, X, U> {
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
        let norm = RowNorm {
            simd: self.simd,
            row,
            has_constant: self.rule.has_intercept(),
        };
        let seen = Seen {
            product,
            target,
            weight,
            norm,
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

struct RowNorm<S, X> {
    simd: S,
    row: X,
    has_constant: bool,
}

impl<S: Simd, X: Row> Norm for RowNorm<S, X> {
    #[inline(always)]
    fn squared(self) -> f64 {
        let constant = if self.has_constant { 1.0 } else { 0.0 };
        self.row.squared_norm(self.simd) + constant
    }
}

/// Two rows that learn from each other: no weight is written.
struct Exchange<'a, 'd, R, X> {
    model: &'a Linear<R>,
    data: &'a Examples<'d, X>,
    targets: Targets<'a>,
    rows: [usize; 2],
    out: &'a mut [f64],
}

impl<R: Rule, X: Rows> WithSimd for Exchange<'_, '_, R, X> {
    /// False where a vector must be written.
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> bool {
        let Self { model, data, .. } = self;
        let (n_features, n_outputs) = (model.n_features, model.n_outputs);
        let rows = self.rows.map(|index| data.rows().row(index));
        for output in 0..n_outputs {
            for (asked, learnt) in [(0, 1), (1, 0)] {
                let (v, _, mut numbers) = model.block(output);
                let index = self.rows[learnt];
                let seen = Seen {
                    product: vector::dot(simd, rows[learnt], v, n_features),
                    target: self.targets.target(index, output, n_outputs),
                    weight: data.weight(index),
                    norm: RowNorm {
                        simd,
                        row: rows[learnt],
                        has_constant: model.rule.has_intercept(),
                    },
                };
                let product = match model.rule.step(&mut numbers, seen) {
                    None => Some(vector::dot(simd, rows[asked], v, n_features)),
                    Some(step) => {
                        let pair = (rows[learnt], rows[asked]);
                        vector::dot_after(simd, step.weights, pair, v, n_features)
                            .filter(|_| model.rule.fold(&mut numbers).is_none())
                    }
                };
                let Some(product) = product else {
                    return false;
                };
                let (a, _) = model.rule.hypothesis(&numbers);
                self.out[asked * n_outputs + output] = a * product;
            }
        }
        true
    }
}

struct Evaluate<'a, 'd, R, X> {
    model: &'a Linear<R>,
    data: &'a Examples<'d, X>,
    rows: &'a [usize],
    out: &'a mut [f64],
}

impl<R: Rule, X: Rows> WithSimd for Evaluate<'_, '_, R, X> {
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
