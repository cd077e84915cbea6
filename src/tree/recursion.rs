//! Algorithm 1 of the paper, with its ways back to the model of a node.

use std::ops::Range;

use super::Strategy;
use crate::data::Dataset;
use crate::engine::{Driver, ModelSlots, Workspace, WorkspacePool};
use crate::learners::{Batch, CostModel, LeafBlock, Learner};
use crate::runtime::cache;
use crate::runtime::threads::is_parallel;
use crate::{Error, Folds, Result};

/// Values that a node must read to be worth another thread.
const MIN_THREAD_VALUES: f64 = (1 << 15) as f64;

/// Cost of saving and restoring a value, relative to copying one within the cache.
const UNDO_COST: f64 = 8.0;

/// Cost of copying a value of a model that exceeds the cache, relative to one within the cache.
const UNCACHED_COPY_COST: f64 = 8.0;

/// A subtree of TreeCV: folds, and the data that their rows are in.
#[derive(Debug)]
pub(super) struct Subtree<'a> {
    pub(super) folds: &'a Folds,
    pub(super) driver: Driver<'a>,
    pub(super) pool: &'a WorkspacePool,
    pub(super) plan: Plan,
    pub(super) n_outputs: usize,
    /// The row of the data at each position in fold order, from position `row_offset` on.
    pub(super) rows: &'a [usize],
    pub(super) row_offset: usize,
}

/// A node: consecutive folds that are still held out, and where their results go.
#[derive(Debug)]
pub(super) struct Node<'a> {
    pub(super) span: Range<usize>,
    pub(super) outputs: &'a mut [f64],
    /// Where the fitted model of each fold goes, if they are kept.
    pub(super) models: Option<&'a mut ModelSlots>,
    /// Whether the model must leave the node as it came.
    pub(super) restore: bool,
}

/// A child node, and the folds its model learns on the way there: those of its sibling.
#[derive(Debug)]
pub(super) struct Child<'a> {
    pub(super) node: Node<'a>,
    pub(super) learns: Range<usize>,
}

impl Subtree<'_> {
    /// `model` has learnt every fold outside the node's span; writes the outputs of the span.
    pub(super) fn descend(
        &self,
        model: &mut dyn Learner,
        mut node: Node<'_>,
        workspace: &mut Workspace,
    ) -> Result<()> {
        if node.span.len() == 1 {
            return self.leaf(model, node, workspace);
        }
        if self.leave_one_out_block(model, &mut node, workspace)? {
            return Ok(());
        }
        let restore = node.restore;
        let branch = self.branch(&node);
        let [left, right] = self.split(node);
        match branch {
            Branch::Duplicate => {
                let mut twin = self.duplicate(model, workspace)?;
                self.driver.update_pair(
                    [&mut *twin, model],
                    [&self.batch(left.learns), &self.batch(right.learns)],
                    &mut workspace.counters,
                )?;
                self.descend(&mut *twin, left.node, workspace)?;
                self.discard(twin, workspace);
                self.descend(model, right.node, workspace)
            }
            Branch::Revert => {
                self.descend_and_revert(model, left, workspace)?;
                if restore {
                    self.descend_and_revert(model, right, workspace)
                } else {
                    self.update_and_descend(model, right, workspace)
                }
            }
            Branch::Thread => self.on_two_threads(model, [left, right], workspace, &|m, c, w| {
                self.update_and_descend(m, c, w)
            }),
        }
    }

    fn leaf(&self, model: &dyn Learner, node: Node<'_>, workspace: &mut Workspace) -> Result<()> {
        if let Some(models) = node.models {
            models[0] = Some(model.fork()?);
        }
        let rows = self.rows(node.span);
        self.driver
            .evaluate(model, rows, node.outputs, &mut workspace.counters)
    }

    /// Leave-one-out of a few rows in closed form, if the learner has one. That depends on the node
    /// alone, never on strategies or threads: results must not.
    fn leave_one_out_block(
        &self,
        model: &dyn Learner,
        node: &mut Node<'_>,
        workspace: &mut Workspace,
    ) -> Result<bool> {
        let span = &node.span;
        let n_rows = self.folds.range(span.clone()).len();
        if span.len() > LeafBlock::MAX_ROWS || n_rows > span.len() || node.models.is_some() {
            return Ok(false);
        }
        let block = (self.rows(span.clone()), span.start);
        self.driver
            .leave_one_out_block(model, block, node.outputs, &mut workspace.counters)
    }

    /// Updates the model with the sibling of a child, and descends to the child.
    fn update_and_descend(
        &self,
        model: &mut dyn Learner,
        child: Child<'_>,
        workspace: &mut Workspace,
    ) -> Result<()> {
        self.update(model, child.learns, workspace)?;
        self.descend(model, child.node, workspace)
    }

    /// The same with a log, and reverts the update.
    fn descend_and_revert(
        &self,
        model: &mut dyn Learner,
        mut child: Child<'_>,
        workspace: &mut Workspace,
    ) -> Result<()> {
        let batch = self.batch(child.learns);
        let Workspace { log, counters, .. } = workspace;
        let mark = log.len();
        if self.plan.saves_whole_model(batch.len()) {
            self.driver.save(model, log)?;
            self.driver.update(model, &batch, None, counters)?;
        } else {
            self.driver.update(model, &batch, Some(log), counters)?;
        }
        counters.cost.undo_entries += (log.len() - mark) as u64;
        child.node.restore = true;
        self.descend(model, child.node, workspace)?;
        model.revert(&mut workspace.log, mark);
        Ok(())
    }

    /// Runs `work` for the two children on two threads, the left one on a fork of the model.
    pub(super) fn on_two_threads(
        &self,
        model: &mut dyn Learner,
        [left, right]: [Child<'_>; 2],
        workspace: &mut Workspace,
        work: &(dyn Fn(&mut dyn Learner, Child<'_>, &mut Workspace) -> Result<()> + Sync),
    ) -> Result<()> {
        self.driver.check()?;
        workspace.counters.cost.copies += 1;
        let mut twin = workspace.fork(model)?;
        self.pool.join(
            workspace,
            |workspace| {
                work(&mut *twin, left, workspace)?;
                workspace.drop_fork(twin);
                Ok(())
            },
            |workspace| work(model, right, workspace),
        )
    }

    /// Updates a model with a span of folds.
    pub(super) fn update(
        &self,
        model: &mut dyn Learner,
        span: Range<usize>,
        workspace: &mut Workspace,
    ) -> Result<()> {
        let batch = self.batch(span);
        self.driver
            .update(model, &batch, None, &mut workspace.counters)
    }

    /// A second handle of a model: a fork, or a copy in a scratch model.
    pub(super) fn duplicate(
        &self,
        model: &dyn Learner,
        workspace: &mut Workspace,
    ) -> Result<Box<dyn Learner>> {
        workspace.counters.cost.copies += 1;
        if self.plan.shares {
            workspace.fork(model)
        } else {
            workspace.copy(model)
        }
    }

    /// Drops a model that [`Subtree::duplicate`] made.
    pub(super) fn discard(&self, model: Box<dyn Learner>, workspace: &mut Workspace) {
        if self.plan.shares {
            workspace.drop_fork(model);
        } else {
            workspace.release(model);
        }
    }

    fn branch(&self, node: &Node<'_>) -> Branch {
        let n_rows = self.folds.range(node.span.clone()).len() as f64;
        if node.restore {
            Branch::Revert
        } else if n_rows >= self.plan.thread_from && self.pool.has_idle_thread() {
            Branch::Thread
        } else if n_rows < self.plan.revert_below {
            Branch::Revert
        } else {
            Branch::Duplicate
        }
    }

    /// The two halves of a node; the first is the larger: m = ⌊(s + e)/2⌋ of Algorithm 1, whose spans
    /// include both ends.
    pub(super) fn split<'n>(&self, node: Node<'n>) -> [Child<'n>; 2] {
        let Range { start, end } = node.span;
        let middle = middle(&node.span);
        let n_left = self.folds.range(start..middle).len() * self.n_outputs;
        let outputs = node.outputs.split_at_mut(n_left);
        let models = match node.models {
            None => (None, None),
            Some(models) => {
                let (left, right) = models.split_at_mut(middle - start);
                (Some(left), Some(right))
            }
        };
        let child = |span, outputs, models, learns| Child {
            node: Node {
                span,
                outputs,
                models,
                restore: false,
            },
            learns,
        };
        [
            child(start..middle, outputs.0, models.0, middle..end),
            child(middle..end, outputs.1, models.1, start..middle),
        ]
    }

    /// The training batch of a span. No span is learnt twice, so spans key the random orders.
    fn batch(&self, span: Range<usize>) -> Batch<'_, 1> {
        Batch {
            rows: [self.rows(span.clone())],
            key: span,
        }
    }

    /// The rows of a span.
    pub(super) fn rows(&self, span: Range<usize>) -> &[usize] {
        let Range { start, end } = self.folds.range(span);
        &self.rows[start - self.row_offset..end - self.row_offset]
    }

    /// The subtree of a span whose rows are at `rows` of `data`.
    pub(super) fn with_data<'b>(
        &'b self,
        span: Range<usize>,
        data: &'b Dataset<'b>,
        rows: &'b [usize],
    ) -> Subtree<'b> {
        Subtree {
            driver: self.driver.with_data(data),
            rows,
            row_offset: self.folds.range(span).start,
            ..*self
        }
    }
}

/// Where the second half of a span begins.
pub(super) fn middle(span: &Range<usize>) -> usize {
    span.start + span.len().div_ceil(2)
}

/// How a node gets at its model twice.
#[derive(Clone, Copy, Debug)]
enum Branch {
    /// One child gets a fork or a copy.
    Duplicate,
    /// The children take turns, and the first update is reverted.
    Revert,
    /// The children go to two threads, one of them with a fork.
    Thread,
}

/// Which branch nodes take, by the number of rows they hold out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) thread_from: f64,
    revert_below: f64,
    /// Whether a duplicate shares its vectors.
    shares: bool,
    copy: f64,
    undo: Option<f64>,
}

impl Plan {
    pub(super) fn new(cost_model: &CostModel, strategy: Strategy) -> Result<Self> {
        let CostModel { copy, undo, .. } = *cost_model;
        let is_cached = copy <= cache::L2_VALUES;
        let copy_cost = if is_cached {
            copy
        } else {
            UNCACHED_COPY_COST * copy
        };
        let thread_from = if is_parallel() {
            // Rows are learnt once per level, for many levels, so a copy that costs a few times their
            // first update is worth another thread.
            MIN_THREAD_VALUES.max(copy_cost / 4.0) / cost_model.update.max(1.0)
        } else {
            f64::INFINITY
        };
        let revert_below = match (strategy, undo) {
            (Strategy::Copy | Strategy::Share, _) | (Strategy::Auto, None) => 0.0,
            (Strategy::Auto, Some(undo)) => copy_cost / (UNDO_COST * undo),
            (Strategy::Revert, Some(_)) => f64::INFINITY,
            (Strategy::Revert, None) => {
                return Err(Error::Parameter {
                    name: "strategy",
                    rule: "auto, share or copy for a learner that keeps no undo log",
                    value: "revert".into(),
                });
            }
        };
        Ok(Self {
            thread_from,
            revert_below,
            shares: match strategy {
                Strategy::Share => true,
                Strategy::Copy => false,
                Strategy::Auto | Strategy::Revert => undo.is_none() || !is_cached,
            },
            copy,
            undo,
        })
    }

    /// Whether a log of `n_rows` updates would be longer than the whole model.
    fn saves_whole_model(&self, n_rows: usize) -> bool {
        n_rows as f64 * self.undo.unwrap_or(0.0) >= self.copy
    }
}
