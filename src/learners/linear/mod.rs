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

mod few;
mod passes;
mod vector;

use std::fmt::Debug;

use self::few::{LONGEST, Settle};
use self::passes::{Evaluate, Feed, FeedBoth};
use crate::data::{Examples, HugePageBuffer, Layout, Row};
use crate::runtime::simd;
use crate::tree::{Effort, Few, Flat, Learner, Undo};
use crate::{Error, Result};

/// How a linear learner answers to a row.
pub trait Rule: Copy + Debug + Send + Sync {
    /// The numbers an output keeps beside its vectors.
    type Numbers: Copy + AsRef<[f64]> + AsMut<[f64]>;

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
    state: HugePageBuffer,
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
            state: HugePageBuffer::new(0),
        };
        let numbers = rule.empty();
        model.state = HugePageBuffer::new(n_outputs * model.block_len());
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
    fn targets<'a, X: Layout>(&self, data: &Examples<'a, X>) -> Result<Targets<'a>> {
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

impl<R: Rule, X: Layout> Learner<Examples<'_, X>> for Linear<R> {
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

    fn settle(&self, data: &Examples<'_, X>, few: &mut Few<'_>, out: &mut [f64]) -> Result<bool> {
        let targets = self.targets(data)?;
        if R::AVERAGES || !<X::Row<'_> as Row>::STORES_ALL || self.n_features > LONGEST {
            return Ok(false);
        }
        Ok(simd::dispatch(Settle {
            model: self,
            data,
            targets,
            few,
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
