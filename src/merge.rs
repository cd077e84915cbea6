//! Merging: k-fold cross-validation of models that can be merged.
//!
//! # Problem
//! The out-of-fold outputs of a learner for every sample, where the models of two sets of rows can
//! be merged into the model of both: fold i is predicted by the merge of all folds but i.
//!
//! # Method
//! Every fold is learnt once, by a model of its own. Merges from the left (prefixes) and from the
//! right (suffixes) then give all complements: complement i = prefix i − 1 ⊕ suffix i + 1.
//!
//! Twice k models are too many when k is the number of samples. So the folds are split into *parts*, as
//! many as there is memory for, and parts are learnt and complemented; a part of several folds is split
//! in its turn, with the complement of the part before its prefixes. A part whose rows are
//! cheaper to learn than a model is to merge has no model of its own: prefix and suffix learn its
//! rows.
//!
//! # Cost
//! With p parts per level, and so log k / log p levels:
//!
//! | | numbers |
//! |---|---|
//! | rows fed | n per level; up to 2n where rows are learnt instead of merged |
//! | merges | at most 3k − 4, reached with one level if all parts are merged |
//! | models in memory | 2p, and for each thread as many on each level below |
//!
//! Parts are limited to 32 MB of models per level, but are at least two: at worst the levels are
//! those of a binary tree. Leave-one-out of 581 012 samples with 800 numbers per model has two levels.
//!
//! The result does not depend on the number of threads. It equals refits to rounding, and exactly
//! where the models' sums are exact, as counts are.
//!
//! # Example
//! ```
//! use ndarray::Array2;
//! use onefold::learners::{HistogramDensity, HistogramOptions};
//! use onefold::merge::Merge;
//! use onefold::{Dataset, Engine, Folds};
//!
//! let x = Array2::from_shape_fn((32, 1), |(i, _)| i as f64);
//! let density = HistogramDensity::new(&HistogramOptions {
//!     edges: vec![vec![0.0, 16.0, 32.0]],
//!     smoothing: 1.0,
//! })?;
//! let folds = Folds::contiguous(32, 8)?;
//! let found = Merge::default().cross_validate(&density, &Dataset::dense(x.view())?, &folds)?;
//! // A bin holds 12 of the 28 rows outside the fold: (12 + 1) / ((28 + 2) × 16).
//! assert!((found.outputs[[0, 0]] - (13.0 / 480.0_f64).ln()).abs() < 1e-12);
//! # Ok::<(), onefold::Error>(())
//! ```
//!
//! # References
//! M. Izbicki, *Algebraic classifiers: a generic approach to fast cross-validation, online training,
//! and parallel training*, ICML 2013, section 3.

use std::ops::Range;
use std::sync::Arc;

use crate::data::Dataset;
use crate::engine::{
    Driver, Engine, Finished, Job, ModelSlots, RawOutputs, RowSource, Workspace, WorkspacePool,
    even_starts, new_outputs, partition, row_source, run_together,
};
use crate::learners::{Batch, CostModel, Learner, Order};
use crate::linear::{FoldMaps, ScaledRows};
use crate::runtime::cache;
use crate::runtime::threads::is_parallel;
use crate::{Error, Folds, Monitor, Result};

/// Values that the models of one level may hold.
const LEVEL_VALUES: f64 = cache::LLC_VALUES;

/// Values that a part must read to be worth another thread.
const MIN_THREAD_VALUES: f64 = (1 << 15) as f64;

/// The engine of mergeable models.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Merge {
    /// The scaling of the columns in every fold. Models are merged from rows as they are, and rescaled
    /// before they are evaluated.
    pub scaling: Option<Arc<FoldMaps>>,
}

impl Engine<dyn Learner> for Merge {
    fn run(
        &self,
        candidates: &[&dyn Learner],
        job: &Job<'_>,
        finished: &mut Finished<'_>,
    ) -> Result<()> {
        let (data, folds, monitor) = (job.data, partition(job.folds, "merge")?, job.monitor);
        if let Some(scaling) = &self.scaling {
            scaling.check(folds.len(), data.n_features())?;
        }
        run_together(candidates, job, finished, |learner, models| {
            let rows = folds.rows(0..folds.len());
            let starts = |block_rows| even_starts(rows.len(), block_rows);
            let source = row_source(data, rows, monitor, starts)?;
            self.merge(learner, &*source, (data, folds), models, monitor)
        })
    }
}

impl Merge {
    /// Outputs in test order, and their cost.
    fn merge(
        &self,
        learner: &dyn Learner,
        source: &dyn RowSource,
        (data, folds): (&Dataset<'_>, &Folds),
        models: Option<&mut ModelSlots>,
        monitor: &Monitor,
    ) -> Result<RawOutputs> {
        if !learner.is_mergeable() {
            return Err(Error::Parameter {
                name: "learner",
                rule: "one whose models can be merged",
                value: "another".into(),
            });
        }
        let cost_model = source.cost_model(learner)?;
        let merging = Merging {
            learner,
            folds,
            source,
            scaling: self.scaling.as_deref(),
            driver: Driver::new(data, &cost_model, Order::Fixed, monitor),
            monitor,
            max_parts: max_parts(&cost_model),
            cost_model,
            is_parallel: is_parallel(),
            pool: WorkspacePool::new(),
        };
        let span = 0..folds.len();
        monitor.add_total(merging.rows_to_feed(span.clone()) + folds.n_samples() as u64);
        let mut outputs = new_outputs(folds.n_samples(), learner.n_outputs())?;
        let mut workspace = merging.pool.acquire();
        let nothing = workspace.copy(learner)?;
        let held_out = HeldOut {
            span,
            outputs: &mut outputs,
            models,
        };
        merging.solve(nothing, held_out, &mut workspace)?;
        merging.pool.release(workspace);
        let cost = merging.pool.finish(&merging.driver)?;
        Ok((outputs, cost))
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // at least 2, and saturating
fn max_parts(cost_model: &CostModel) -> usize {
    (LEVEL_VALUES / (2.0 * cost_model.copy.max(1.0))).max(2.0) as usize
}

struct Merging<'a> {
    learner: &'a dyn Learner,
    folds: &'a Folds,
    source: &'a dyn RowSource,
    scaling: Option<&'a FoldMaps>,
    driver: Driver<'a>,
    monitor: &'a Monitor,
    max_parts: usize,
    cost_model: CostModel,
    is_parallel: bool,
    pool: WorkspacePool,
}

/// Consecutive folds, and where their results go.
struct HeldOut<'a> {
    span: Range<usize>,
    outputs: &'a mut [f64],
    /// Where the fitted model of each fold goes, if they are kept.
    models: Option<&'a mut ModelSlots>,
}

/// One of the parts that a span is cut into.
struct Part<'a> {
    held_out: HeldOut<'a>,
    /// A model of its rows, unless learning them is cheaper than merging.
    model: Option<Box<dyn Learner>>,
    /// A model of all rows but its own.
    complement: Option<Box<dyn Learner>>,
}

impl Merging<'_> {
    /// `complement` has learnt every fold outside the span; writes the outputs of the span.
    fn solve(
        &self,
        mut complement: Box<dyn Learner>,
        held_out: HeldOut<'_>,
        workspace: &mut Workspace,
    ) -> Result<()> {
        if held_out.span.len() == 1 {
            let fold = held_out.span.start;
            self.evaluate(&mut *complement, fold, held_out.outputs, workspace)?;
            match held_out.models {
                Some(models) => {
                    workspace.counters.cost.bytes_copied += complement.take_bytes_copied();
                    models[0] = Some(complement);
                }
                None => workspace.release(complement),
            }
            return Ok(());
        }
        let mut parts = self.split(held_out);
        self.for_each_part(&mut parts, workspace, &|part, workspace| {
            part.model = self.learn(part.held_out.span.clone(), workspace)?;
            Ok(())
        })?;
        self.complement_parts(complement, &mut parts, workspace)?;
        self.for_each_part(&mut parts, workspace, &|part, workspace| {
            let Some(complement) = part.complement.take() else {
                return Ok(());
            };
            let HeldOut {
                span,
                outputs,
                models,
            } = &mut part.held_out;
            let held_out = HeldOut {
                span: span.clone(),
                outputs,
                models: models.as_deref_mut(),
            };
            self.solve(complement, held_out, workspace)
        })
    }

    /// Writes the outputs of a fold; rescales the model, if rows are scaled.
    fn evaluate(
        &self,
        model: &mut dyn Learner,
        fold: usize,
        out: &mut [f64],
        workspace: &mut Workspace,
    ) -> Result<()> {
        let scaling = self.scaling.map(|scaling| scaling.fold(fold));
        if let Some(scaling) = scaling {
            model.rescale(scaling)?;
        }
        let (positions, n_outputs) = (self.folds.range(fold..fold + 1), model.n_outputs());
        let first = positions.start;
        self.source.read(positions, 1, &mut |piece, data, rows| {
            let out = &mut out[(piece.start - first) * n_outputs..(piece.end - first) * n_outputs];
            let counters = &mut workspace.counters;
            let Some(scaling) = scaling else {
                let driver = self.driver.with_data(data);
                return driver.evaluate(model, rows, out, counters);
            };
            let scaled = ScaledRows::new(data, rows, scaling)?;
            let data = scaled.dataset()?;
            let rows: Vec<usize> = (0..rows.len()).collect();
            let driver = self.driver.with_data(&data);
            driver.evaluate(model, &rows, out, counters)
        })
    }

    /// A model of the rows of a part, where one is of use.
    fn learn(
        &self,
        span: Range<usize>,
        workspace: &mut Workspace,
    ) -> Result<Option<Box<dyn Learner>>> {
        if self.is_learnt_twice(span.clone()) {
            return Ok(None);
        }
        let mut model = workspace.copy(self.learner)?;
        workspace.counters.cost.fits += 1;
        self.update(&mut *model, span, workspace)?;
        Ok(Some(model))
    }

    /// Gives every part its complement, the model of all rows but its own: those outside of all parts,
    /// those of the parts after it, and those of the parts before it.
    fn complement_parts(
        &self,
        outside: Box<dyn Learner>,
        parts: &mut [Part<'_>],
        workspace: &mut Workspace,
    ) -> Result<()> {
        let mut after = outside;
        for part in parts[1..].iter_mut().rev() {
            part.complement = Some(workspace.copy(&*after)?);
            workspace.counters.cost.copies += 1;
            self.absorb(&mut *after, part, workspace)?;
        }
        parts[0].complement = Some(after);

        let mut before = if let Some(model) = parts[0].model.take() {
            model
        } else {
            let mut model = workspace.copy(self.learner)?;
            workspace.counters.cost.fits += 1;
            self.absorb(&mut *model, &parts[0], workspace)?;
            model
        };
        let last = parts.len() - 1;
        for (index, part) in parts.iter_mut().enumerate().skip(1) {
            if let Some(complement) = &mut part.complement {
                self.merge(&mut **complement, &*before, workspace)?;
            }
            if index < last {
                self.absorb(&mut *before, part, workspace)?;
            }
            if let Some(model) = part.model.take() {
                workspace.release(model);
            }
        }
        workspace.release(before);
        Ok(())
    }

    /// Adds the rows of a part to `model`.
    fn absorb(
        &self,
        model: &mut dyn Learner,
        part: &Part<'_>,
        workspace: &mut Workspace,
    ) -> Result<()> {
        match &part.model {
            Some(learnt) => self.merge(model, &**learnt, workspace),
            None => self.update(model, part.held_out.span.clone(), workspace),
        }
    }

    fn merge(
        &self,
        model: &mut dyn Learner,
        other: &dyn Learner,
        workspace: &mut Workspace,
    ) -> Result<()> {
        workspace.counters.cost.merges += 1;
        model.merge(other)?;
        // Rows are reported where they are learnt and evaluated; many merges may lie between them.
        self.monitor.check()
    }

    fn update(
        &self,
        model: &mut dyn Learner,
        span: Range<usize>,
        workspace: &mut Workspace,
    ) -> Result<()> {
        let positions = self.folds.range(span.clone());
        self.source.read(positions, 1, &mut |_, data, rows| {
            let batch = Batch {
                rows: [rows],
                key: span.clone(),
            };
            let driver = self.driver.with_data(data);
            driver.update(model, &batch, None, &mut workspace.counters)
        })
    }

    /// Does `work` for each part, on several threads where that is worth it.
    fn for_each_part(
        &self,
        parts: &mut [Part<'_>],
        workspace: &mut Workspace,
        work: &(impl Fn(&mut Part<'_>, &mut Workspace) -> Result<()> + Sync),
    ) -> Result<()> {
        if parts.len() == 1 || !self.is_worth_a_thread(parts) {
            return parts.iter_mut().try_for_each(|part| work(part, workspace));
        }
        // What has not begun when the caller cancels must not begin.
        self.monitor.check()?;
        let (left, right) = parts.split_at_mut(parts.len() / 2);
        self.pool.join(
            workspace,
            |workspace| self.for_each_part(left, workspace, work),
            |workspace| self.for_each_part(right, workspace, work),
        )
    }

    fn is_worth_a_thread(&self, parts: &[Part<'_>]) -> bool {
        let last = &parts[parts.len() - 1].held_out.span;
        let span = parts[0].held_out.span.start..last.end;
        let merged = span.len() as f64 * self.cost_model.copy;
        self.is_parallel && self.n_rows(span) * self.cost_model.update + merged >= MIN_THREAD_VALUES
    }

    /// Whether learning the rows of a part twice is cheaper than a model and two merges.
    fn is_learnt_twice(&self, span: Range<usize>) -> bool {
        self.n_rows(span) * self.cost_model.update <= 2.0 * self.cost_model.copy
    }

    fn n_rows(&self, span: Range<usize>) -> f64 {
        self.folds.range(span).len() as f64
    }

    fn split<'h>(&self, held_out: HeldOut<'h>) -> Vec<Part<'h>> {
        let HeldOut {
            span,
            mut outputs,
            mut models,
        } = held_out;
        let part = |span: Range<usize>| {
            let n_outputs = self.folds.range(span.clone()).len() * self.learner.n_outputs();
            let here;
            (here, outputs) = std::mem::take(&mut outputs).split_at_mut(n_outputs);
            let part_models = models.take().map(|all| {
                let (part, rest) = all.split_at_mut(span.len());
                models = Some(rest);
                part
            });
            Part {
                held_out: HeldOut {
                    span,
                    outputs: here,
                    models: part_models,
                },
                model: None,
                complement: None,
            }
        };
        self.spans(span).map(part).collect()
    }

    /// The parts of a span, which has more than one fold.
    fn spans(&self, span: Range<usize>) -> impl ExactSizeIterator<Item = Range<usize>> + use<> {
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
            // Parts without a model are learnt by the suffixes before them and by the prefixes
            // after them.
            let twice = self.is_learnt_twice(part.clone()) && index > 0 && index < last;
            n_rows * (1 + u64::from(twice)) + self.rows_to_feed(part)
        };
        parts.enumerate().map(rows).sum()
    }
}
