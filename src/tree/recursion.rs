//! Algorithm 1.

use std::ops::Range;

use super::feeder::{CACHE, Feeder};
use super::few::Few;
use super::learner::{Effort, Learner};
use super::order::Phase;
use super::pool::{Pool, Shared, Workspace};
use super::undo::Forget;
use super::{Options, Outcome, Strategy};
use crate::data::Samples;
use crate::runtime::threads::is_parallel;
use crate::{Cost, Error, Folds, Monitor, Result};

/// Numbers a node must read before it is worth another thread.
const GRAIN: f64 = (1 << 15) as f64;

/// What it costs to save a number and to put it back, in numbers copied within the cache.
const LOG_PRICE: f64 = 8.0;

/// What it costs to copy a number of a model that does not fit the cache, and whose copy may take
/// memory that was never used before.
const FAR_PRICE: f64 = 8.0;

/// Cross-validates `learner`, which has learnt nothing, by TreeCV: see the [module](super).
pub fn cross_validate<D: Samples + ?Sized, L: Learner<D>>(
    learner: &L,
    data: &D,
    folds: &Folds,
    options: &Options,
    monitor: &Monitor,
) -> Result<Outcome> {
    super::check_samples(data, folds)?;
    let (outputs, cost) = run(learner, data, folds, options, monitor, None)?;
    Outcome::new(outputs, learner, folds, cost)
}

/// The outputs in the order of the folds, and what they cost. Nodes that `below` is for go there.
pub(super) fn run<D: Samples + ?Sized, L: Learner<D>>(
    learner: &L,
    data: &D,
    folds: &Folds,
    options: &Options,
    monitor: &Monitor,
    below: Option<&dyn Below<D, L>>,
) -> Result<(Vec<f64>, Cost)> {
    let effort = learner.effort(data);
    let pool = Pool::new();
    let tree = Tree {
        folds,
        rows: folds.rows(0..folds.len()),
        first: 0,
        feeder: Feeder::new(data, &effort, options.order, monitor),
        limits: Limits::new(&effort, options.strategy)?,
        effort,
        n_outputs: learner.n_outputs(),
        pool: &pool,
        below,
    };
    let n_samples = folds.n_samples();
    // Each row is evaluated once and fed once a level; the branches that end a level early make up
    // for it at the end.
    let levels = usize::BITS - (folds.len() - 1).leading_zeros();
    let expected = (n_samples as u64) * u64::from(levels + 1);
    monitor.expect(expected);
    let mut outputs = vec![0.0; n_samples * tree.n_outputs];
    tree.pool.with(|workspace| {
        let mut root = workspace.lend(learner)?;
        workspace.ledger.cost.fits += 1;
        let span = 0..folds.len();
        let node = Node {
            span,
            out: &mut outputs,
            restore: false,
        };
        tree.descend(&mut root, node, workspace)
    })?;
    let cost = tree.pool.close(&tree.feeder)?;
    monitor.advance(expected - cost.rows_fed - cost.rows_evaluated)?;
    Ok((outputs, cost))
}

/// Everything that the nodes share.
pub(super) struct Tree<'a, D: ?Sized, L> {
    folds: &'a Folds,
    /// The rows of the data that stand for those of the folds, beginning with the one at `first`.
    rows: &'a [usize],
    first: usize,
    feeder: Feeder<'a, D, L>,
    limits: Limits,
    effort: Effort,
    n_outputs: usize,
    pool: &'a Pool<L>,
    below: Option<&'a dyn Below<D, L>>,
}

/// Where nodes go that are better done on other data.
pub(super) trait Below<D: ?Sized, L>: Sync {
    /// Whether it is for nodes of so many rows in so many folds, that so many models wait for.
    fn is_for(&self, n_rows: usize, n_folds: usize, n_waiting: usize) -> bool;

    /// Does the work of [`Tree::descend`].
    fn descend(
        &self,
        tree: &Tree<'_, D, L>,
        model: &mut L,
        node: Node<'_>,
        workspace: &mut Workspace<L>,
    ) -> Result<()>;
}

/// Folds that are still held out, and the room for their outputs.
pub(super) struct Node<'a> {
    pub(super) span: Range<usize>,
    out: &'a mut [f64],
    /// Whether the model must leave the node as it came.
    restore: bool,
}

/// A node below, with the folds to feed on the way there.
struct Child<'a> {
    node: Node<'a>,
    fed: Range<usize>,
}

/// How a node gets at the same model twice.
#[derive(Clone, Copy)]
enum Way {
    /// One child gets a copy.
    Copy,
    /// The children take turns, and the first puts everything back.
    Revert,
    /// The children go to two threads, if there are two, and the first to come gets a copy.
    Fork,
}

/// Which way to go, by the number of rows a node holds out: fork, then copy, then revert.
#[derive(Clone, Copy)]
struct Limits {
    fork_from: f64,
    revert_below: f64,
}

impl Limits {
    fn new(effort: &Effort, strategy: Strategy) -> Result<Self> {
        let price = if effort.copy > CACHE { FAR_PRICE } else { 1.0 };
        let copy = price * effort.copy;
        let fork_from = if is_parallel() {
            // A fork may copy where a log would do. The rows are fed once a level, for many levels,
            // so a copy that costs a few times their first feeding is worth another thread.
            GRAIN.max(copy / 4.0) / effort.update.max(1.0)
        } else {
            f64::INFINITY
        };
        let revert_below = match (strategy, effort.undo) {
            (Strategy::Copy, _) | (Strategy::Auto, None) => 0.0,
            (Strategy::Auto, Some(undo)) => copy / (LOG_PRICE * undo),
            (Strategy::Revert, Some(_)) => f64::INFINITY,
            (Strategy::Revert, None) => {
                return Err(Error::Parameter {
                    name: "strategy",
                    rule: "'auto' or 'copy' for a learner that keeps no undo log",
                    value: "'revert'".into(),
                });
            }
        };
        Ok(Self {
            fork_from,
            revert_below,
        })
    }
}

impl<D: Samples + ?Sized, L: Learner<D>> Tree<'_, D, L> {
    /// `model` has learnt every fold outside the node's span: fills in the outputs of the span.
    pub(super) fn descend(
        &self,
        model: &mut L,
        mut node: Node<'_>,
        workspace: &mut Workspace<L>,
    ) -> Result<()> {
        if node.span.len() == 1 && workspace.waiting.is_empty() {
            let rows = self.rows(node.span);
            return self
                .feeder
                .evaluate(model, rows, node.out, &mut workspace.ledger);
        }
        if let Some(below) = self.below
            && below.is_for(
                self.folds.range(node.span.clone()).len(),
                node.span.len(),
                workspace.waiting.len(),
            )
        {
            return below.descend(self, model, node, workspace);
        }
        if workspace.waiting.is_empty() && self.settle(model, &mut node, workspace)? {
            return Ok(());
        }
        let way = self.way(&node);
        let waits = self.lets_wait(way, &node);
        if !waits && !workspace.waiting.is_empty() {
            return self.teach_and_descend(model, node, workspace);
        }
        let restore = node.restore;
        let [left, right] = self.split(node);
        match way {
            Way::Copy if waits => {
                let twin = workspace.lend(model)?;
                workspace.ledger.cost.copies += 1;
                workspace.waiting.push(twin);
                self.grow(model, left, workspace)?;
                if let Some(mut twin) = workspace.waiting.pop() {
                    self.descend(&mut twin, right.node, workspace)?;
                    workspace.give_back(twin);
                }
                Ok(())
            }
            Way::Copy => {
                let mut twin = workspace.lend(model)?;
                workspace.ledger.cost.copies += 1;
                let phases = [self.phase(left.fed), self.phase(right.fed)];
                let [first, second] = &phases;
                self.feeder.feed_both(
                    [&mut twin, model],
                    [first, second],
                    &mut workspace.ledger,
                )?;
                self.descend(&mut twin, left.node, workspace)?;
                workspace.give_back(twin);
                self.descend(model, right.node, workspace)
            }
            Way::Revert => {
                self.visit(model, left, workspace)?;
                if restore {
                    self.visit(model, right, workspace)
                } else {
                    self.grow(model, right, workspace)
                }
            }
            Way::Fork => {
                self.feeder.check()?;
                let shared = Shared::new(model);
                let go = |child, workspace: &mut Workspace<L>| {
                    shared.with(workspace, |model, workspace| {
                        self.grow(model, child, workspace)
                    })
                };
                self.pool.fork(workspace, |w| go(left, w), |w| go(right, w))
            }
        }
    }

    /// Whether a node of a few rows, each of which is a fold, was done by the learner itself. That
    /// depends on the rows alone, and never on the way that would have been gone: results must not.
    fn settle(&self, model: &L, node: &mut Node<'_>, workspace: &mut Workspace<L>) -> Result<bool> {
        let span = &node.span;
        if span.len() > Few::MOST || self.folds.range(span.clone()).len() > span.len() {
            return Ok(false);
        }
        let rows = self.rows(span.clone());
        self.feeder
            .settle(model, rows, span.start, node.out, &mut workspace.ledger)
    }

    /// Whether the model of the second child learns the rows of the first child not now, but when the
    /// walk comes to them.
    fn lets_wait(&self, way: Way, node: &Node<'_>) -> bool {
        self.below.is_some()
            && self.feeder.may_wait()
            && matches!(way, Way::Copy)
            && node.span.len() > 1
            && self.folds.range(node.span.clone()).len() > Few::MOST
    }

    /// Lets all models that wait learn the rows of the node, and descends: within it nobody waits for
    /// them.
    pub(super) fn teach_and_descend(
        &self,
        model: &mut L,
        node: Node<'_>,
        workspace: &mut Workspace<L>,
    ) -> Result<()> {
        let mut waiting = std::mem::take(&mut workspace.waiting);
        let rows = self.rows(node.span.clone());
        self.feeder
            .feed_all(&mut waiting, rows, &mut workspace.ledger)?;
        self.descend(model, node, workspace)?;
        workspace.waiting = waiting;
        Ok(())
    }

    /// Feeds the folds of a span for good.
    fn learn(&self, model: &mut L, span: Range<usize>, workspace: &mut Workspace<L>) -> Result<()> {
        let ledger = &mut workspace.ledger;
        self.feeder
            .feed(model, &self.phase(span), &mut Forget, ledger)
    }

    /// Feeds a child's folds for good, and descends.
    fn grow(&self, model: &mut L, child: Child<'_>, workspace: &mut Workspace<L>) -> Result<()> {
        self.learn(model, child.fed, workspace)?;
        self.descend(model, child.node, workspace)
    }

    /// Feeds a child's folds, descends, and goes back.
    fn visit(&self, model: &mut L, child: Child<'_>, workspace: &mut Workspace<L>) -> Result<()> {
        let phase = self.phase(child.fed);
        let Workspace { log, ledger, .. } = workspace;
        let start = log.len();
        // Never save more than there is.
        if phase.len() as f64 * self.effort.undo.unwrap_or(0.0) >= self.effort.copy {
            model.save(log);
            self.feeder.feed(model, &phase, &mut Forget, ledger)?;
        } else {
            self.feeder.feed(model, &phase, log, ledger)?;
        }
        ledger.cost.undo_entries += (log.len() - start) as u64;
        let restored = Node {
            restore: true,
            ..child.node
        };
        self.descend(model, restored, workspace)?;
        model.revert(&mut workspace.log, start);
        Ok(())
    }

    fn way(&self, node: &Node<'_>) -> Way {
        let rows = self.folds.range(node.span.clone()).len() as f64;
        if node.restore {
            Way::Revert
        } else if rows >= self.limits.fork_from && self.pool.has_idle_thread() {
            Way::Fork
        } else if rows < self.limits.revert_below {
            Way::Revert
        } else {
            Way::Copy
        }
    }

    /// The two halves of a node.
    fn split<'a>(&self, node: Node<'a>) -> [Child<'a>; 2] {
        let middle = middle(&node.span);
        let Range { start, end } = node.span;
        let size = self.folds.range(start..middle).len() * self.n_outputs;
        let (left, right) = node.out.split_at_mut(size);
        let child = |span, out, fed| Child {
            node: Node {
                span,
                out,
                restore: false,
            },
            fed,
        };
        [
            child(start..middle, left, middle..end),
            child(middle..end, right, start..middle),
        ]
    }

    /// No span is fed twice, so spans key the random orders.
    fn phase(&self, fed: Range<usize>) -> Phase<'_, 1> {
        Phase {
            rows: [self.rows(fed.clone())],
            key: fed,
        }
    }

    /// The rows of a span.
    pub(super) fn rows(&self, span: Range<usize>) -> &[usize] {
        let Range { start, end } = self.folds.range(span);
        &self.rows[start - self.first..end - self.first]
    }

    /// The data.
    pub(super) fn data(&self) -> &D {
        self.feeder.data()
    }

    /// The same tree for nodes within `span`, whose rows stand at `rows` of `data`. Those that `below`
    /// is for go there.
    pub(super) fn within<'b, E: Samples>(
        &'b self,
        span: Range<usize>,
        data: &'b E,
        rows: &'b [usize],
        below: Option<&'b dyn Below<E, L>>,
    ) -> Tree<'b, E, L>
    where
        L: Learner<E>,
    {
        Tree {
            folds: self.folds,
            rows,
            first: self.folds.range(span).start,
            feeder: self.feeder.over(data),
            limits: self.limits,
            effort: self.effort,
            n_outputs: self.n_outputs,
            pool: self.pool,
            below,
        }
    }
}

/// Where a span is split into halves, the first of which is the larger: m = ⌊(s + e)/2⌋ of Algorithm
/// 1, whose spans include both ends.
#[inline(always)]
pub(super) fn middle(span: &Range<usize>) -> usize {
    span.start + span.len().div_ceil(2)
}
