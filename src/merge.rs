//! Merging: k-fold cross-validation of models that can be merged.
//!
//! # Problem
//! The out-of-fold outputs of a learner for every sample, where the models of two sets of rows can
//! be merged into the model of both: fold i is to be answered by the merger of all folds but i.
//!
//! # Method
//! Every fold is learnt once, by a model of its own. Mergers from the left (prefixes) and from the
//! right (suffixes) then give all complements: complement i = prefix i − 1 ⊕ suffix i + 1.
//!
//! Twice k models are too many when k is the number of samples. So the folds are cut into parts, as
//! many as there is room for, and *parts* are learnt and complemented; a part of several folds is cut
//! in its turn, with the complement of the part in front of its prefixes. A part whose rows are
//! cheaper to feed than a model is to merge has no model of its own: prefix and suffix are fed its
//! rows.
//!
//! # Cost
//! With p parts a level, and so log k / log p levels:
//!
//! | | numbers |
//! |---|---|
//! | rows fed | n a level; up to 2n where rows are fed and not merged |
//! | merges | at most 3k − 4, which it is when there is one level and nothing is fed |
//! | models in memory | 2p, and for each thread as many on each level below |
//!
//! Parts are limited to 32 MB of models a level, but are at least two: at the worst the levels are
//! those of a binary tree. Leave-one-out of 581 012 samples with 800 numbers a model has two levels.
//!
//! The result does not depend on the number of threads. It equals refits to rounding, and exactly
//! where the models' sums are exact, as counts are.
//!
//! # Example
//! ```
//! use onefold::data::{Dense, Examples};
//! use onefold::learners::HistogramDensity;
//! use onefold::{Folds, Monitor, merge};
//!
//! let values: Vec<f64> = (0..32).map(f64::from).collect();
//! let data = Examples::unlabelled(Dense::new(&values, 32, 1)?);
//! let density = HistogramDensity::new(&[vec![0.0, 16.0, 32.0]], 1.0)?;
//! let folds = Folds::contiguous(32, 8)?;
//! let found = merge::cross_validate(&density, &data, &folds, &Monitor::new())?;
//! // A bin holds 12 of the 28 rows outside the fold: (12 + 1) / ((28 + 2) × 16).
//! assert!((found.outputs[0] - (13.0 / 480.0_f64).ln()).abs() < 1e-12);
//! # Ok::<(), onefold::Error>(())
//! ```
//!
//! # References
//! M. Izbicki, *Algebraic classifiers: a generic approach to fast cross-validation, online training,
//! and parallel training*, ICML 2013, section 3.

use std::ops::Range;

use crate::data::Samples;
use crate::runtime::threads::is_parallel;
use crate::tree::{
    Effort, Feeder, Forget, Learner, Model, Order, Outcome, Phase, Pool, Workspace, check_samples,
};
use crate::{Folds, Monitor, Result};

/// Numbers that the models of one level may have: 32 MB.
const ROOM: f64 = (1 << 22) as f64;

/// Numbers that must be read before it is worth another thread.
const GRAIN: f64 = (1 << 15) as f64;

/// A model that can learn from another model what that has learnt from rows.
///
/// # Laws
/// Up to rounding, merging a model of some rows into a model of others gives the model of all of
/// them, whichever is merged into which; a model that has learnt nothing changes nothing.
pub trait Mergeable: Model {
    /// Learns what `other`, a model of the same origin, has learnt of other rows.
    fn merge(&mut self, other: &Self) -> Result<()>;
}

/// Cross-validates `learner`, which has learnt nothing, by merging: see the [module](self).
pub fn cross_validate<D: Samples + ?Sized, L: Learner<D> + Mergeable>(
    learner: &L,
    data: &D,
    folds: &Folds,
    monitor: &Monitor,
) -> Result<Outcome> {
    check_samples(data, folds)?;
    let effort = learner.effort(data);
    let engine = Engine {
        learner,
        folds,
        feeder: Feeder::new(data, &effort, Order::Fixed, monitor),
        monitor,
        max_parts: max_parts(&effort),
        effort,
        is_parallel: is_parallel(),
        pool: Pool::new(),
    };
    let span = 0..folds.len();
    monitor.expect(engine.rows_to_feed(span.clone()) + folds.n_samples() as u64);
    let mut outputs = vec![0.0; folds.n_samples() * learner.n_outputs()];
    engine.pool.with(|workspace| {
        let nothing = workspace.lend(learner)?;
        engine.solve(nothing, span, &mut outputs, workspace)
    })?;
    let cost = engine.pool.close(&engine.feeder)?;
    Outcome::new(outputs, learner, folds, cost)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // at least 2, and saturating
fn max_parts(effort: &Effort) -> usize {
    (ROOM / (2.0 * effort.copy.max(1.0))).max(2.0) as usize
}

struct Engine<'a, D: ?Sized, L> {
    learner: &'a L,
    folds: &'a Folds,
    feeder: Feeder<'a, D, L>,
    monitor: &'a Monitor,
    max_parts: usize,
    effort: Effort,
    is_parallel: bool,
    pool: Pool<L>,
}

/// A run of folds, one of several.
struct Part<'a, L> {
    span: Range<usize>,
    /// Room for the outputs of its rows.
    out: &'a mut [f64],
    /// A model of its rows, unless it is cheaper to feed them.
    own: Option<L>,
    /// A model of all rows but its own.
    others: Option<L>,
}

impl<D: Samples + ?Sized, L: Learner<D> + Mergeable> Engine<'_, D, L> {
    /// `others` has learnt every fold outside `span`: fills in the outputs of the span.
    fn solve(
        &self,
        others: L,
        span: Range<usize>,
        out: &mut [f64],
        workspace: &mut Workspace<L>,
    ) -> Result<()> {
        if span.len() == 1 {
            let rows = self.folds.rows(span);
            self.feeder
                .evaluate(&others, rows, out, &mut workspace.ledger)?;
            workspace.give_back(others);
            return Ok(());
        }
        let mut parts = self.cut(span, out);
        self.each(&mut parts, workspace, &|part, workspace| {
            part.own = self.learn(part.span.clone(), workspace)?;
            Ok(())
        })?;
        self.complement(others, &mut parts, workspace)?;
        self.each(
            &mut parts,
            workspace,
            &|part, workspace| match part.others.take() {
                Some(others) => self.solve(others, part.span.clone(), part.out, workspace),
                None => Ok(()),
            },
        )
    }

    /// A model of the rows of a part, where one is of use.
    fn learn(&self, span: Range<usize>, workspace: &mut Workspace<L>) -> Result<Option<L>> {
        if self.is_fed(span.clone()) {
            return Ok(None);
        }
        let mut model = workspace.lend(self.learner)?;
        workspace.ledger.cost.fits += 1;
        self.feed(&mut model, span, workspace)?;
        Ok(Some(model))
    }

    /// Gives every part the model of all others: what is outside of all parts, the parts after it
    /// and the parts before it.
    fn complement(
        &self,
        outside: L,
        parts: &mut [Part<'_, L>],
        workspace: &mut Workspace<L>,
    ) -> Result<()> {
        let mut after = outside;
        for part in parts[1..].iter_mut().rev() {
            part.others = Some(workspace.lend(&after)?);
            workspace.ledger.cost.copies += 1;
            self.absorb(&mut after, part, workspace)?;
        }
        parts[0].others = Some(after);

        let mut before = if let Some(own) = parts[0].own.take() {
            own
        } else {
            let mut model = workspace.lend(self.learner)?;
            workspace.ledger.cost.fits += 1;
            self.absorb(&mut model, &parts[0], workspace)?;
            model
        };
        let last = parts.len() - 1;
        for (index, part) in parts.iter_mut().enumerate().skip(1) {
            if let Some(others) = &mut part.others {
                self.merge(others, &before, workspace)?;
            }
            if index < last {
                self.absorb(&mut before, part, workspace)?;
            }
            if let Some(own) = part.own.take() {
                workspace.give_back(own);
            }
        }
        workspace.give_back(before);
        Ok(())
    }

    /// Teaches `model` the rows of a part.
    fn absorb(
        &self,
        model: &mut L,
        part: &Part<'_, L>,
        workspace: &mut Workspace<L>,
    ) -> Result<()> {
        match &part.own {
            Some(own) => self.merge(model, own, workspace),
            None => self.feed(model, part.span.clone(), workspace),
        }
    }

    fn merge(&self, model: &mut L, other: &L, workspace: &mut Workspace<L>) -> Result<()> {
        workspace.ledger.cost.merges += 1;
        model.merge(other)?;
        // Rows are reported where they are fed and evaluated; between them there may be many mergers.
        self.monitor.check()
    }

    fn feed(&self, model: &mut L, span: Range<usize>, workspace: &mut Workspace<L>) -> Result<()> {
        let phase = Phase {
            rows: [self.folds.rows(span.clone())],
            key: span,
        };
        self.feeder
            .feed(model, &phase, &mut Forget, &mut workspace.ledger)
    }

    /// Does `work` for each part, on several threads where that is worth it.
    fn each(
        &self,
        parts: &mut [Part<'_, L>],
        workspace: &mut Workspace<L>,
        work: &(impl Fn(&mut Part<'_, L>, &mut Workspace<L>) -> Result<()> + Sync),
    ) -> Result<()> {
        if parts.len() == 1 || !self.is_worth_a_thread(parts) {
            return parts.iter_mut().try_for_each(|part| work(part, workspace));
        }
        // What has not begun when the caller cancels must not begin.
        self.monitor.check()?;
        let (left, right) = parts.split_at_mut(parts.len() / 2);
        self.pool.fork(
            workspace,
            |workspace| self.each(left, workspace, work),
            |workspace| self.each(right, workspace, work),
        )
    }

    fn is_worth_a_thread(&self, parts: &[Part<'_, L>]) -> bool {
        let span = parts[0].span.start..parts[parts.len() - 1].span.end;
        let merged = span.len() as f64 * self.effort.copy;
        self.is_parallel && self.n_rows(span) * self.effort.update + merged >= GRAIN
    }

    /// Whether feeding the rows of a part twice is cheaper than a model and two mergers.
    fn is_fed(&self, span: Range<usize>) -> bool {
        self.n_rows(span) * self.effort.update <= 2.0 * self.effort.copy
    }

    fn n_rows(&self, span: Range<usize>) -> f64 {
        self.folds.range(span).len() as f64
    }

    fn cut<'a>(&self, span: Range<usize>, mut out: &'a mut [f64]) -> Vec<Part<'a, L>> {
        let part = |span: Range<usize>| {
            let size = self.folds.range(span.clone()).len() * self.learner.n_outputs();
            let here;
            (here, out) = std::mem::take(&mut out).split_at_mut(size);
            Part {
                span,
                out: here,
                own: None,
                others: None,
            }
        };
        self.spans(span).map(part).collect()
    }

    /// The parts of a span, which has more than one fold.
    fn spans(&self, span: Range<usize>) -> impl ExactSizeIterator<Item = Range<usize>> + use<D, L> {
        let n_parts = span.len().min(self.max_parts);
        (0..n_parts).map(move |part| {
            let at = |part| span.start + part * span.len() / n_parts;
            at(part)..at(part + 1)
        })
    }

    /// How many rows it will take to solve a span.
    fn rows_to_feed(&self, span: Range<usize>) -> u64 {
        if span.len() == 1 {
            return 0;
        }
        let parts = self.spans(span);
        let last = parts.len() - 1;
        let rows = |(index, part): (usize, Range<usize>)| {
            let n_rows = self.folds.range(part.clone()).len() as u64;
            // Fed parts are fed to the suffixes before them and to the prefixes after them.
            let twice = self.is_fed(part.clone()) && index > 0 && index < last;
            n_rows * (1 + u64::from(twice)) + self.rows_to_feed(part)
        };
        parts.enumerate().map(rows).sum()
    }
}
