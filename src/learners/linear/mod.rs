//! Linear learners: one update loop for all loss rules.
//!
//! A linear learner predicts ⟨w, x⟩ and learns by adding a multiple of x to a vector v:
//!
//! > product ← ⟨v, x⟩; the [`UpdateRule`] turns it into a step δ; v ← v + δ·x.
//!
//! The weights w are a multiple of v, so that a rule can shrink w or project it on a ball by changing
//! one scalar. Rules that average their iterates have a second vector c, with the sum of all iterates
//! so far kept as α·v + c: a step that must not change that sum adds −α·δ·x to c, and the average, too,
//! costs no more than the row.
//!
//! *Intercept*: the weight of a constant feature 1, treated as every other.
//!
//! *Several classes*: one against the rest, one output per class. Two classes need one output, which
//! is positive for the second class.
//!
//! *Sharing*: an output whose vector is shared with another model is copied at the first row that makes
//! a step; until then it is only read.
//!
//! | operation | values |
//! |---|---|
//! | update or evaluate a row | stored values of the row × outputs, twice when averaging |
//! | fork | outputs |
//! | copy | (features + 1) × outputs, twice when averaging |

mod kernels;
mod leaf_block;
mod vector;

use std::fmt::Debug;

use ndarray::{Array1, Array2};

use self::kernels::{Evaluate, Update, UpdatePair};
use self::leaf_block::{LeaveOneOut, MAX_FEATURES};
use super::HyperParameters;
use super::learner::{CostModel, Fitted, LeafBlock, Learner};
use super::state::State;
use super::undo::UndoLog;
use super::{state_methods, with_undo};
use crate::data::{Dataset, Examples, Layout, Row, with_layout};
use crate::runtime::simd;
use crate::{Error, Result};

/// How a linear learner updates its weights with a row; its fields are the hyper-parameters.
pub trait UpdateRule: HyperParameters + Copy + Debug + Send + Sync + 'static {
    /// What an output keeps beside its vectors.
    type Scalars: Copy + AsRef<[f64]> + AsMut<[f64]>;

    /// Whether there is a second vector, c.
    const AVERAGES: bool = false;

    /// Whether targets are the signs of classes, and not values.
    const CLASSIFIES: bool = true;

    /// The fraction of rows that make a step, roughly.
    const STEP_RATE: f64 = 1.0;

    /// Whether there is a constant feature.
    fn has_intercept(&self) -> bool;

    /// The scalars of an output that has learnt nothing.
    fn init(&self) -> Self::Scalars;

    /// Learns from one row. A step of 0 and none are the same.
    fn step(&self, scalars: &mut Self::Scalars, row: Observation<impl LazyNorm>) -> Option<Step>;

    /// (a, b) of the weights w = a·v + b·c.
    fn combination(&self, scalars: &Self::Scalars) -> (f64, f64);

    /// Called after every step: (a, b) if c ← c + a·v, then v ← b·v is due to keep precision.
    #[inline(always)]
    fn rescale(&self, scalars: &mut Self::Scalars) -> Option<(f64, f64)> {
        let _ = scalars;
        None
    }
}

/// What a rule sees of a row.
#[derive(Clone, Copy, Debug)]
pub struct Observation<N> {
    /// ⟨v, x⟩.
    pub product: f64,
    /// ±1, or the target value.
    pub target: f64,
    /// The row's weight.
    pub weight: f64,
    /// Computes ‖x‖².
    pub norm: N,
}

/// ‖x‖², computed on demand. (Not a closure: those are not always compiled for the instructions that
/// [`dispatch`](simd::dispatch) chose.)
pub trait LazyNorm {
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

/// The factor that projects w on the ball ‖w‖² ≤ `limit`, where `norm` is ‖w‖² and becomes that of the
/// projection. NaN, which shows in every output, if one of them has overflowed or underflowed.
#[inline(always)]
pub(super) fn project(norm: &mut f64, limit: f64) -> f64 {
    const MIN_LIMIT: f64 = 1e-290;
    if *norm <= limit && limit >= MIN_LIMIT {
        return 1.0;
    }
    let squared = if norm.is_finite() && limit >= MIN_LIMIT {
        limit / *norm
    } else {
        f64::NAN
    };
    *norm = limit;
    squared.sqrt()
}

/// A linear learner.
///
/// State: one vector per output, made of v and, where the rule averages, of c; the rule's scalars,
/// output by output. A vector ends with the intercept, if there is one.
#[derive(Clone, Debug)]
pub struct Linear<R> {
    rule: R,
    n_features: usize,
    n_outputs: usize,
    state: State,
}

impl<R: UpdateRule> Linear<R> {
    /// A learner that has learnt nothing, of `n_targets` classes or, if it does not classify, of as
    /// many values per row.
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
            state: State::default(),
        };
        let len = model
            .width()
            .saturating_mul(if R::AVERAGES { 2 } else { 1 });
        let init = rule.init();
        let init = init.as_ref();
        let what = format_args!("a model of {n_outputs} outputs and X with {n_features} features");
        model.state = State::zeros(what, n_outputs, len, n_outputs.saturating_mul(init.len()))?;
        for scalars in model
            .state
            .scalars_mut()
            .chunks_exact_mut(init.len().max(1))
        {
            scalars.copy_from_slice(init);
        }
        Ok(model)
    }

    /// The weights w and the intercept of an output.
    ///
    /// # Panics
    /// When there is no such output.
    pub fn weights(&self, output: usize) -> (Array1<f64>, f64) {
        let (v, c, scalars) = self.output(output);
        let (a, b) = self.rule.combination(&scalars);
        let mut w: Vec<f64> = v.iter().map(|v| a * v).collect();
        for (w, c) in w.iter_mut().zip(c) {
            *w += b * c;
        }
        let intercept = w.drain(self.n_features..).sum();
        (w.into(), intercept)
    }

    /// The length of v.
    #[inline(always)]
    fn width(&self) -> usize {
        self.n_features + usize::from(self.rule.has_intercept())
    }

    /// v, c and the scalars of an output.
    #[inline(always)]
    fn output(&self, output: usize) -> (&[f64], &[f64], R::Scalars) {
        let (v, c) = self.state.vector(output).split_at(self.width());
        (v, c, self.scalars(output))
    }

    /// The scalars of an output.
    #[inline(always)]
    fn scalars(&self, output: usize) -> R::Scalars {
        let mut scalars = self.rule.init();
        let len = scalars.as_ref().len();
        let stored = &self.state.scalars()[output * len..][..len];
        scalars.as_mut().copy_from_slice(stored);
        scalars
    }

    /// The targets of `data`: an error unless they and the rows fit the learner.
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

impl<R: UpdateRule> Learner for Linear<R> {
    fn n_outputs(&self) -> usize {
        self.n_outputs
    }

    fn cost_model(&self, data: &Dataset<'_>) -> CostModel {
        let vectors = if R::AVERAGES { 2.0 } else { 1.0 };
        let touched = data.mean_nnz() * self.n_outputs as f64 * vectors;
        CostModel::logged(touched, touched * R::STEP_RATE, &self.state)
    }

    fn update(
        &mut self,
        data: &Dataset<'_>,
        rows: &[usize],
        undo: Option<&mut UndoLog>,
    ) -> Result<()> {
        with_layout!(data, |data| {
            let targets = self.targets(data)?;
            let model = self;
            with_undo!(undo, |undo| simd::dispatch(Update {
                model,
                data,
                targets,
                rows,
                undo,
            }));
            Ok(())
        })
    }

    fn update_pair(
        &mut self,
        other: &mut dyn Learner,
        data: &Dataset<'_>,
        rows: [&[usize]; 2],
    ) -> Result<()> {
        let other: &mut dyn std::any::Any = other;
        let Some(other) = other.downcast_mut::<Self>() else {
            return Err(Error::Parameter {
                name: "learner",
                rule: "of the same type as the other",
                value: "another".into(),
            });
        };
        with_layout!(data, |data| {
            let targets = self.targets(data)?;
            simd::dispatch(UpdatePair {
                models: [self, other],
                data,
                targets,
                rows,
            });
            Ok(())
        })
    }

    fn evaluate(&self, data: &Dataset<'_>, rows: &[usize], out: &mut [f64]) -> Result<()> {
        with_layout!(data, |data| {
            data.check_features(self.n_features)?;
            simd::dispatch(Evaluate {
                model: self,
                data,
                rows,
                out,
            });
            Ok(())
        })
    }

    fn leave_one_out_block(
        &self,
        data: &Dataset<'_>,
        block: &mut LeafBlock<'_>,
        out: &mut [f64],
    ) -> Result<bool> {
        with_layout!(data, |data| {
            let targets = self.targets(data)?;
            if R::AVERAGES || !stores_all(data) || self.n_features > MAX_FEATURES {
                return Ok(false);
            }
            Ok(simd::dispatch(LeaveOneOut {
                model: self,
                data,
                targets,
                block,
                out,
            }))
        })
    }

    state_methods!();

    fn fitted(&self) -> Result<Fitted> {
        let outputs = (0..self.n_outputs).map(|output| self.weights(output));
        Ok(linear_attributes(outputs, self.n_features))
    }
}

/// `coef_` and `intercept_` of weights and intercepts.
pub(super) fn linear_attributes(
    outputs: impl Iterator<Item = (Array1<f64>, f64)>,
    n_features: usize,
) -> Fitted {
    let (weights, intercepts): (Vec<_>, Vec<_>) = outputs.unzip();
    let mut coef = Array2::zeros((weights.len(), n_features));
    for (mut row, weights) in coef.rows_mut().into_iter().zip(&weights) {
        row.assign(weights);
    }
    vec![
        ("coef_", coef.into_dyn()),
        ("intercept_", Array1::from(intercepts).into_dyn()),
    ]
}

fn stores_all<X: Layout>(_: &Examples<'_, X>) -> bool {
    <X::Row<'_> as Row>::STORES_ALL
}

#[derive(Clone, Copy)]
enum Targets<'a> {
    Classes(&'a [u32]),
    Values(&'a [f64]),
}

impl Targets<'_> {
    /// The target of `output` of `n_outputs` for a row.
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
