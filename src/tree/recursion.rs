//! Algorithm 1.

use std::ops::Range;

use super::feeder::{CACHE, Feeder};
use super::learner::{Effort, Learner};
use super::order::Phase;
use super::pool::{Pool, Shared, Workspace};
use super::undo::Forget;
use super::{Options, Outcome, Strategy};
use crate::data::Samples;
use crate::threads::has_company;
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
    let (outputs, cost) = run(learner, data, folds, options, monitor)?;
    Outcome::new(outputs, learner, folds, cost)
}

/// The outputs in the order of the folds, and what they cost.
pub(super) fn run<D: Samples + ?Sized, L: Learner<D>>(
    learner: &L,
    data: &D,
    folds: &Folds,
    options: &Options,
    monitor: &Monitor,
) -> Result<(Vec<f64>, Cost)> {
    let effort = learner.effort(data);
    let tree = Tree {
        folds,
        feeder: Feeder::new(data, &effort, options.order, monitor),
        limits: Limits::new(&effort, options.strategy)?,
        effort,
        n_outputs: learner.n_outputs(),
        pool: Pool::new(),
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
struct Tree<'a, D: ?Sized, L> {
    folds: &'a Folds,
    feeder: Feeder<'a, D, L>,
    limits: Limits,
    effort: Effort,
    n_outputs: usize,
    pool: Pool<L>,
}

/// Folds that are still held out, and the room for their outputs.
struct Node<'a> {
    span: Range<usize>,
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
struct Limits {
    fork_from: f64,
    revert_below: f64,
}

impl Limits {
    fn new(effort: &Effort, strategy: Strategy) -> Result<Self> {
        let price = if effort.copy > CACHE { FAR_PRICE } else { 1.0 };
        let copy = price * effort.copy;
        let fork_from = if has_company() {
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
    fn descend(&self, model: &mut L, node: Node<'_>, workspace: &mut Workspace<L>) -> Result<()> {
        if node.span.len() == 1 {
            let rows = self.folds.rows(node.span);
            return self
                .feeder
                .evaluate(model, rows, node.out, &mut workspace.ledger);
        }
        let way = self.way(&node);
        let restore = node.restore;
        let [left, right] = self.split(node);
        match way {
            Way::Copy => {
                let mut twin = workspace.lend(model)?;
                workspace.ledger.cost.copies += 1;
                self.grow(&mut twin, left, workspace)?;
                workspace.give_back(twin);
                self.grow(model, right, workspace)
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

    /// Feeds a child's folds for good, and descends.
    fn grow(&self, model: &mut L, child: Child<'_>, workspace: &mut Workspace<L>) -> Result<()> {
        let phase = self.phase(child.fed);
        self.feeder
            .feed(model, &phase, &mut Forget, &mut workspace.ledger)?;
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
        } else if rows >= self.limits.fork_from {
            Way::Fork
        } else if rows < self.limits.revert_below {
            Way::Revert
        } else {
            Way::Copy
        }
    }

    /// The two halves of a node, the first of which is the larger: m = ⌊(s + e)/2⌋ of Algorithm 1,
    /// whose spans include both ends.
    fn split<'a>(&self, node: Node<'a>) -> [Child<'a>; 2] {
        let Range { start, end } = node.span;
        let middle = start + (end - start).div_ceil(2);
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
            rows: [self.folds.rows(fed.clone())],
            key: fed,
        }
    }
}
