//! The streamed top of the tree: Algorithm 1 over blocks of folds.
//!
//! # Problem
//! Every level of the tree reads all rows. Where rows come from memory, from scattered places or from
//! anything slower, reading them dominates.
//!
//! # Method
//! A *block* is a node whose rows fit a given size. Above blocks, a node forks its model; one of the
//! two learns the right half and descends to the left half. The other one, which has to learn the left
//! half, is *deferred*: it is updated with each block of the left half when the walk fetches that block
//! for its own subtree. So a block is fetched once, every deferred model that needs it is updated, and
//! plain recursion does the rest within the block.
//!
//! # Cost
//! For B blocks of n rows in all: n rows fetched as blocks, at most n/2·⌈log2 B⌉ rows read by the models
//! that descend to left halves, and ⌈log2 B⌉ + 1 models in memory. Results have the bits of plain
//! recursion, by the laws of *batching* and *interleaving*.
//!
//! Where batches cannot be learnt in parts (random orders, atomic batches) no model is deferred.

use std::ops::Range;

use super::recursion::{Child, Node, Subtree};
use crate::data::{Dataset, DatasetBuffer};
use crate::engine::Workspace;
use crate::learners::Learner;
use crate::runtime::buffers::BufferPool;
use crate::runtime::cache;
use crate::{Folds, Result};

/// Values that a gathered block holds at most: 64 MB. The larger the blocks, the fewer updates read
/// scattered rows.
const GATHER_VALUES: f64 = (1 << 23) as f64;

/// How often a block must be read for gathering to pay.
const MIN_READINGS: usize = 3;

/// Where the rows of blocks come from.
pub(super) trait BlockSource: Sync {
    /// Calls `work` with data that hold the block at `positions` in fold order, and with the row of
    /// each position in them. The block will be read `n_readings` times.
    fn with_block(
        &self,
        positions: Range<usize>,
        n_readings: usize,
        work: &mut dyn FnMut(&Dataset<'_>, &[usize]) -> Result<()>,
    ) -> Result<()>;
}

/// Rows in memory, used where they are.
struct InMemory<'a> {
    data: &'a Dataset<'a>,
    /// The row at each position in fold order.
    rows: &'a [usize],
}

impl BlockSource for InMemory<'_> {
    fn with_block(
        &self,
        positions: Range<usize>,
        _: usize,
        work: &mut dyn FnMut(&Dataset<'_>, &[usize]) -> Result<()>,
    ) -> Result<()> {
        work(self.data, &self.rows[positions])
    }
}

/// Rows scattered in memory, copied block by block into the order of the folds.
struct Gathered<'a> {
    data: &'a Dataset<'a>,
    /// The row at each position in fold order.
    rows: &'a [usize],
    /// 0, 1, 2, … up to the size of a block.
    identity: Vec<usize>,
    buffers: BufferPool<DatasetBuffer>,
}

impl BlockSource for Gathered<'_> {
    fn with_block(
        &self,
        positions: Range<usize>,
        n_readings: usize,
        work: &mut dyn FnMut(&Dataset<'_>, &[usize]) -> Result<()>,
    ) -> Result<()> {
        let rows = &self.rows[positions];
        if n_readings < MIN_READINGS || rows.len() > self.identity.len() {
            return work(self.data, rows);
        }
        let mut buffer = self.buffers.acquire().unwrap_or_default();
        let result = work(
            &self.data.gather(rows, &mut buffer),
            &self.identity[..rows.len()],
        );
        self.buffers.release(buffer);
        result
    }
}

/// Runs Algorithm 1 on all folds of `tree`, whose data are in memory.
pub(super) fn descend(
    tree: &Subtree<'_>,
    model: &mut dyn Learner,
    root: Node<'_>,
    workspace: &mut Workspace,
) -> Result<()> {
    let (data, rows) = (tree.driver.data(), tree.rows);
    let n_values = data.n_stored() as f64;
    if n_values > cache::L2_VALUES && is_random_access(rows) {
        let block_rows = block_rows(data, GATHER_VALUES, tree.folds);
        let source = Gathered {
            data,
            rows,
            identity: (0..block_rows).collect(),
            buffers: BufferPool::default(),
        };
        Blocks::new(tree, &source, block_rows).descend(model, root, &mut Vec::new(), workspace)
    } else if n_values > cache::LLC_VALUES {
        let block_rows = block_rows(data, cache::LLC_SHARE_VALUES, tree.folds);
        let source = InMemory { data, rows };
        Blocks::new(tree, &source, block_rows).descend(model, root, &mut Vec::new(), workspace)
    } else {
        tree.descend(model, root, workspace)
    }
}

/// The number of rows of a block of `n_values` stored values.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // positive, saturating
fn block_rows(data: &Dataset<'_>, n_values: f64, folds: &Folds) -> usize {
    ((n_values / data.mean_nnz().max(1.0)) as usize).min(folds.n_samples())
}

/// Algorithm 1 over blocks of folds.
struct Blocks<'a> {
    tree: &'a Subtree<'a>,
    source: &'a dyn BlockSource,
    block_rows: usize,
}

impl<'a> Blocks<'a> {
    fn new(tree: &'a Subtree<'a>, source: &'a dyn BlockSource, block_rows: usize) -> Self {
        Self {
            tree,
            source,
            block_rows,
        }
    }

    /// `model` has learnt every fold outside the node's span. Writes the outputs of the span, and
    /// updates the deferred models with its rows.
    fn descend(
        &self,
        model: &mut dyn Learner,
        node: Node<'_>,
        deferred: &mut Vec<Box<dyn Learner>>,
        workspace: &mut Workspace,
    ) -> Result<()> {
        let n_rows = self.tree.folds.range(node.span.clone()).len();
        if node.span.len() == 1 || n_rows <= self.block_rows {
            return self.block(model, node, deferred, workspace);
        }
        let is_worth_a_thread = n_rows as f64 >= self.tree.plan.thread_from;
        let children = self.tree.split(node);
        if deferred.is_empty() && is_worth_a_thread && self.tree.pool.has_idle_thread() {
            let child = |model: &mut dyn Learner, child: Child<'_>, workspace: &mut Workspace| {
                self.tree.update(model, child.learns, workspace)?;
                self.descend(model, child.node, &mut Vec::new(), workspace)
            };
            return self.tree.on_two_threads(model, children, workspace, &child);
        }
        let [left, right] = children;
        let mut twin = self.tree.duplicate(model, workspace)?;
        self.tree.update(model, left.learns, workspace)?;
        if self.tree.driver.can_defer() {
            deferred.push(twin);
            self.descend(model, left.node, deferred, workspace)?;
            let Some(updated) = deferred.pop() else {
                return Ok(()); // pushed above, and popped by nobody else
            };
            twin = updated;
        } else {
            self.tree.update(&mut *twin, right.learns, workspace)?;
            self.descend(model, left.node, deferred, workspace)?;
        }
        self.descend(&mut *twin, right.node, deferred, workspace)?;
        self.tree.discard(twin, workspace);
        Ok(())
    }

    /// Fetches a block, updates the deferred models, and descends within the block.
    fn block(
        &self,
        model: &mut dyn Learner,
        node: Node<'_>,
        deferred: &mut [Box<dyn Learner>],
        workspace: &mut Workspace,
    ) -> Result<()> {
        let span = node.span.clone();
        let positions = self.tree.folds.range(span.clone());
        let n_levels = span.len().next_power_of_two().ilog2() as usize;
        let mut node = Some(node);
        self.source.with_block(
            positions,
            n_levels + 1 + deferred.len(),
            &mut |data, rows| {
                let tree = self.tree.with_data(span.clone(), data, rows);
                tree.driver
                    .update_all(deferred, rows, &mut workspace.counters)?;
                match node.take() {
                    Some(node) => tree.descend(model, node, workspace),
                    None => Ok(()),
                }
            },
        )
    }
}

/// Distances between neighbours that are looked at.
const N_PROBES: usize = 64;

/// The largest distance between rows that the hardware prefetcher follows.
const MAX_STRIDE: usize = 2;

/// An estimate from some of the rows: whether most of them do not follow shortly after the one before.
/// Contiguous folds, and stratified folds of rows in any order, are not random access; shuffled folds
/// are.
fn is_random_access(rows: &[usize]) -> bool {
    let step = (rows.len() / N_PROBES).max(1);
    let mut probes = 0;
    let mut far = 0;
    for pair in rows.windows(2).step_by(step) {
        probes += 1;
        far += usize::from(!(pair[0]..=pair[0] + MAX_STRIDE).contains(&pair[1]));
    }
    2 * far > probes
}
