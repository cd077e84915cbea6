//! The streamed top of the tree: Algorithm 1 over blocks of folds.
//!
//! # Problem
//! Every level of the tree reads all rows. Where rows come from memory, from scattered places or from
//! anything slower, reading them dominates.
//!
//! # Method
//! A *block* is a node whose rows fit a given size. Above blocks, a node forks its model; one of the
//! two learns the right half and descends to the left half. The other one, which has to learn the left
//! half, is *deferred*: it is updated with each block of the left half when the recursion fetches
//! that block for its own subtree. So a block is fetched once, every deferred model that needs it
//! is updated, and plain recursion does the rest within the block.
//!
//! # Cost
//! For B blocks of n rows in all: n rows fetched as blocks, at most n/2·⌈log2 B⌉ rows read by the
//! models that descend to left halves, and ⌈log2 B⌉ + 1 models in memory. Results have the bits of
//! plain recursion, by the laws of *batching* and *interleaving*.
//!
//! Where batches cannot be learnt in parts (random orders, atomic batches) no model is deferred; such
//! models are not for rows on disk.

use std::ops::Range;

use super::recursion::{Child, Node, Subtree, middle};
use crate::data::{Dataset, DatasetBuffer};
use crate::engine::{RowSource, RowVisitor, Workspace};
use crate::learners::{Batch, LeafBlock, Learner};
use crate::runtime::buffers::BufferPool;
use crate::runtime::cache;
use crate::{Folds, Result};

/// Values that a gathered block holds at most: 64 MB. The larger the blocks, the fewer updates read
/// scattered rows.
const GATHER_VALUES: f64 = (1 << 23) as f64;

/// How often a block must be read for gathering to pay.
const MIN_READS: usize = 3;

/// Rows scattered in memory, copied block by block into the order of the folds.
struct Gathered<'a> {
    data: &'a Dataset<'a>,
    /// The row at each position in fold order.
    rows: &'a [usize],
    /// 0, 1, 2, … up to the size of a block.
    identity: Vec<usize>,
    buffers: BufferPool<DatasetBuffer>,
}

impl RowSource for Gathered<'_> {
    fn read(
        &self,
        positions: Range<usize>,
        n_reads: usize,
        visit: &mut RowVisitor<'_>,
    ) -> Result<()> {
        let rows = &self.rows[positions.clone()];
        if n_reads < MIN_READS || rows.len() > self.identity.len() {
            return visit(positions, self.data, rows);
        }
        let mut buffer = self.buffers.acquire().unwrap_or_default();
        let result = visit(
            positions,
            &self.data.gather(rows, &mut buffer)?,
            &self.identity[..rows.len()],
        );
        self.buffers.release(buffer);
        result
    }
}

/// Runs Algorithm 1 on all folds of `tree`. Rows on disk are read from `source` in blocks that
/// begin where [`block_starts`] says.
pub(super) fn descend(
    tree: &Subtree<'_>,
    source: &dyn RowSource,
    model: &mut dyn Learner,
    root: Node<'_>,
    workspace: &mut Workspace,
) -> Result<()> {
    if let Some(block_rows) = source.block_rows() {
        let blocks = Blocks::new(tree, source, block_rows);
        return blocks.descend(model, root, &mut Vec::new(), workspace);
    }
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
        Blocks::new(tree, source, block_rows).descend(model, root, &mut Vec::new(), workspace)
    } else {
        tree.descend(model, root, workspace)
    }
}

/// The number of rows of a block of `n_values` stored values.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // positive, saturating
fn block_rows(data: &Dataset<'_>, n_values: f64, folds: &Folds) -> usize {
    ((n_values / data.mean_nnz().max(1.0)) as usize).min(folds.n_samples())
}

/// Where the blocks of at most `block_rows` rows begin, and where the last ends: the nodes at which
/// Algorithm 1 reads rows. A fold with more rows is cut.
pub(super) fn block_starts(folds: &Folds, block_rows: usize) -> Vec<usize> {
    let block_rows = block_rows.max(LeafBlock::MAX_ROWS);
    let mut starts = Vec::new();
    let mut spans = Vec::new();
    spans.push(0..folds.len());
    while let Some(span) = spans.pop() {
        let positions = folds.range(span.clone());
        if span.len() == 1 || positions.len() <= block_rows {
            starts.extend(positions.step_by(block_rows));
            continue;
        }
        let middle = middle(&span);
        spans.push(middle..span.end);
        spans.push(span.start..middle);
    }
    starts.push(folds.n_samples());
    starts
}

/// Algorithm 1 over blocks of folds.
struct Blocks<'a> {
    tree: &'a Subtree<'a>,
    source: &'a dyn RowSource,
    block_rows: usize,
}

impl<'a> Blocks<'a> {
    /// Blocks of at most `block_rows` rows, except that no leaf block is cut: its outputs would not
    /// have the bits of its closed form.
    fn new(tree: &'a Subtree<'a>, source: &'a dyn RowSource, block_rows: usize) -> Self {
        Self {
            tree,
            source,
            block_rows: block_rows.max(LeafBlock::MAX_ROWS),
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
                self.update(model, child.learns, workspace)?;
                self.descend(model, child.node, &mut Vec::new(), workspace)
            };
            return self.tree.on_two_threads(model, children, workspace, &child);
        }
        let [left, right] = children;
        let mut twin = self.tree.duplicate(model, workspace)?;
        self.update(model, left.learns, workspace)?;
        if self.tree.driver.can_defer() {
            deferred.push(twin);
            self.descend(model, left.node, deferred, workspace)?;
            let Some(updated) = deferred.pop() else {
                return Ok(()); // it was pushed above
            };
            twin = updated;
        } else {
            self.update(&mut *twin, right.learns, workspace)?;
            self.descend(model, left.node, deferred, workspace)?;
        }
        self.descend(&mut *twin, right.node, deferred, workspace)?;
        self.tree.discard(twin, workspace);
        Ok(())
    }

    /// Updates a model with a span of folds, block by block unless they are in memory.
    fn update(
        &self,
        model: &mut dyn Learner,
        span: Range<usize>,
        workspace: &mut Workspace,
    ) -> Result<()> {
        if self.source.block_rows().is_none() {
            return self.tree.update(model, span, workspace);
        }
        let positions = self.tree.folds.range(span.clone());
        self.source.read(positions, 1, &mut |_, data, rows| {
            let batch = Batch {
                rows: [rows],
                key: span.clone(),
            };
            let driver = self.tree.driver.with_data(data);
            driver.update(model, &batch, None, &mut workspace.counters)
        })
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
        let n_reads = n_levels + 1 + deferred.len();
        let mut node = Some(node);
        self.source
            .read(positions.clone(), n_reads, &mut |piece, data, rows| {
                let tree = self.tree.with_data(span.clone(), data, rows);
                let driver = &tree.driver;
                driver.update_all(deferred, rows, &mut workspace.counters)?;
                if piece.len() == positions.len() {
                    let node = node.take();
                    return node.map_or(Ok(()), |node| tree.descend(model, node, workspace));
                }
                // A fold that is larger than a block: evaluated piece by piece.
                let Some(fold) = &mut node else { return Ok(()) };
                if let Some(models) = fold.models.take() {
                    models[0] = Some(model.fork()?);
                }
                let outputs = piece.start - positions.start..piece.end - positions.start;
                let outputs = outputs.start * tree.n_outputs..outputs.end * tree.n_outputs;
                let outputs = &mut fold.outputs[outputs];
                driver.evaluate(model, rows, outputs, &mut workspace.counters)
            })
    }
}

/// Distances between neighbors that are looked at.
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use ndarray::{Array1, Array2};
    use rayon::{ThreadPool as Threads, ThreadPoolBuilder};

    use super::*;
    use crate::data::{Csr, Rows};
    use crate::engine::{Driver, WorkspacePool, row_source};
    use crate::learners::{
        GaussianNb, GaussianNbOptions, KMeansOptions, LeastSquaresOptions, LeastSquaresSgd,
        OnlineKMeans, Order, Pegasos, PegasosOptions,
    };
    use crate::tree::recursion::Plan;
    use crate::tree::{Strategy, Tree};
    use crate::{Cost, Monitor};

    const N_ROWS: usize = 300;
    const N_FEATURES: usize = 7;
    const BLOCK_ROWS: [usize; 5] = [1, 20, 75, 151, N_ROWS];
    const STRATEGIES: [Strategy; 4] = [
        Strategy::Auto,
        Strategy::Share,
        Strategy::Copy,
        Strategy::Revert,
    ];

    fn in_memory<'a>(
        data: &'a Dataset<'a>,
        rows: &'a [usize],
        monitor: &'a Monitor,
    ) -> Box<dyn RowSource + 'a> {
        row_source(data, rows, monitor, |_| vec![]).expect("in memory")
    }

    /// A source that records which blocks are fetched.
    struct Recorded<'a> {
        source: &'a dyn RowSource,
        fetched: Mutex<Vec<Range<usize>>>,
    }

    impl RowSource for Recorded<'_> {
        fn read(
            &self,
            positions: Range<usize>,
            n_reads: usize,
            visit: &mut RowVisitor<'_>,
        ) -> Result<()> {
            let mut fetched = self.fetched.lock().expect("not poisoned");
            fetched.push(positions.clone());
            drop(fetched);
            self.source.read(positions, n_reads, visit)
        }
    }

    /// Outputs, the numbers of every fold's model, and the cost.
    type Found = (Vec<f64>, Vec<Vec<f64>>, Cost);

    /// Algorithm 1 on one problem.
    struct Problem<'a> {
        learner: &'a dyn Learner,
        data: &'a Dataset<'a>,
        folds: &'a Folds,
        tree: Tree,
        keeps_models: bool,
        /// The rows of a node that is worth another thread.
        thread_from: f64,
    }

    impl Problem<'_> {
        /// By plain recursion, or from a source in blocks of at most `n` rows.
        fn run(&self, source: Option<(&dyn RowSource, usize)>) -> Found {
            let Self { data, folds, .. } = *self;
            let monitor = Monitor::new();
            let cost_model = self.learner.cost_model(data);
            let pool = WorkspacePool::new();
            let mut plan = Plan::new(&cost_model, self.tree.strategy).expect("valid");
            plan.thread_from = self.thread_from;
            let tree = Subtree {
                folds,
                driver: Driver::new(data, &cost_model, self.tree.order, &monitor),
                pool: &pool,
                plan,
                n_outputs: self.learner.n_outputs(),
                rows: folds.rows(0..folds.len()),
                row_offset: 0,
            };
            let mut outputs = vec![f64::NAN; N_ROWS * tree.n_outputs];
            let mut models: Vec<_> = (0..folds.len()).map(|_| None).collect();
            pool.with(|workspace| {
                let mut model = workspace.fork(self.learner).expect("forked");
                let root = Node {
                    span: 0..folds.len(),
                    outputs: &mut outputs,
                    models: self.keeps_models.then_some(&mut models),
                    restore: false,
                };
                match source {
                    None => tree.descend(&mut *model, root, workspace),
                    Some((source, block_rows)) => {
                        let blocks = Blocks::new(&tree, source, block_rows);
                        blocks.descend(&mut *model, root, &mut Vec::new(), workspace)
                    }
                }
            })
            .expect("valid");
            let models = models.into_iter().flatten();
            let models = models.map(|model| model.state().to_vec()).collect();
            (
                outputs,
                models,
                pool.finish(&tree.driver).expect("finished"),
            )
        }

        /// From rows in memory and from gathered rows, in blocks of every size: the bits and the rows
        /// fed of plain recursion, and every block is fetched once.
        fn check(&self, threads: &Threads) {
            let (data, rows) = (self.data, self.folds.rows(0..self.folds.len()));
            let plain = self.run(None);
            for block_rows in BLOCK_ROWS {
                let monitor = Monitor::new();
                let in_memory = in_memory(data, rows, &monitor);
                let gathered = Gathered {
                    data,
                    rows,
                    identity: (0..block_rows).collect(),
                    buffers: BufferPool::default(),
                };
                let sources: [&dyn RowSource; 2] = [&*in_memory, &gathered];
                for source in sources {
                    let source = Recorded {
                        source,
                        fetched: Mutex::default(),
                    };
                    let found = threads.install(|| self.run(Some((&source, block_rows))));
                    let context = format!("{block_rows} of {:?}, {:?}", self.folds, self.tree);
                    assert_eq!(found.0, plain.0, "{context}");
                    assert_eq!(found.1, plain.1, "{context}");
                    assert_eq!(found.2.rows_fed, plain.2.rows_fed, "{context}");
                    assert_eq!(found.2.rows_evaluated, plain.2.rows_evaluated, "{context}");
                    self.check_blocks(source.fetched.into_inner().expect("done"), block_rows);
                    if self.tree.strategy != Strategy::Revert && threads.current_num_threads() == 1
                    {
                        // A deferred model is one of those that its node has anyway.
                        assert_eq!(found.2.copies, plain.2.copies, "{context}");
                    }
                }
                // A buffer per thread at most, used again for every block.
                let n_buffers = gathered.buffers.drain().len();
                assert!(n_buffers <= threads.current_num_threads());
                let is_gathered = block_rows > LeafBlock::MAX_ROWS && self.folds.len() > 50;
                assert!(n_buffers > 0 || !is_gathered);
            }
        }

        /// Blocks are disjoint and cover all positions; those of several folds are small enough.
        fn check_blocks(&self, mut blocks: Vec<Range<usize>>, block_rows: usize) {
            blocks.sort_by_key(|block| block.start);
            let mut end = 0;
            for block in blocks {
                assert_eq!(block.start, end);
                end = block.end;
                let is_fold = self
                    .folds
                    .starts()
                    .windows(2)
                    .any(|fold| fold == [block.start, end]);
                assert!(is_fold || block.len() <= block_rows.max(LeafBlock::MAX_ROWS));
            }
            assert_eq!(end, N_ROWS);
        }
    }

    /// Learners with their data: one with a closed form for leaf blocks, one that averages, one whose
    /// rows change one vector of several, one that merges.
    fn for_every_learner(check: impl Fn(&dyn Learner, &Dataset<'_>)) {
        let x = Array2::from_shape_fn((N_ROWS, N_FEATURES), |(row, feature)| {
            let i = row * N_FEATURES + feature;
            ((i * i) as f64).sin()
        });
        let dense = Dataset::dense(x.view()).expect("valid");
        let classes: Array1<u32> = x.column(0).mapv(|value| u32::from(value > 0.1));
        let weights: Array1<f64> = (0..N_ROWS).map(|row| (row % 4) as f64 / 2.0).collect();
        let weighted = dense.with_weights(weights.view()).expect("valid");
        let values = Array2::from_shape_fn((N_ROWS, 1), |(row, _)| (row as f64).cos());
        let n_stored = i64::try_from(x.len()).expect("small");
        let indptr: Vec<i64> = (0..=n_stored).step_by(N_FEATURES).collect();
        let indices: Vec<i64> = (0..n_stored).map(|i| i % 7).collect();
        let stored = x.as_slice().expect("contiguous");
        let csr = Csr::new(&indptr, &indices, stored, N_FEATURES).expect("valid");
        let csr = Dataset::new_unchecked(Rows::Csr64(csr));

        let options = PegasosOptions {
            alpha: 0.1,
            fit_intercept: true,
            ..PegasosOptions::default()
        };
        let learner = Pegasos::new(options, N_FEATURES, 2).expect("valid");
        check(
            &learner,
            &dense.with_classes(classes.view(), 2).expect("valid"),
        );
        let learner = LeastSquaresSgd::new(LeastSquaresOptions::default(), N_FEATURES, 1);
        let data = weighted.with_values(values.view()).expect("valid");
        check(&learner.expect("valid"), &data);
        let learner = OnlineKMeans::new(KMeansOptions { n_clusters: 3 }, N_FEATURES);
        check(&learner.expect("valid"), &csr);
        let learner = GaussianNb::new(GaussianNbOptions::default(), N_FEATURES, 2);
        let data = csr.with_classes(classes.view(), 2).expect("valid");
        check(&learner.expect("valid"), &data);
    }

    fn threads(n: usize) -> Threads {
        ThreadPoolBuilder::new()
            .num_threads(n)
            .build()
            .expect("threads")
    }

    #[test]
    fn the_size_of_blocks_changes_no_bit() {
        let threads = [1, 2, 5].map(threads);
        for_every_learner(|learner, data| {
            for n_folds in [5, 64, N_ROWS] {
                let folds = Folds::shuffled(N_ROWS, n_folds, 1).expect("valid");
                for order in [Order::Fixed, Order::Random { seed: 3 }] {
                    for strategy in STRATEGIES {
                        for threads in &threads {
                            let is_alone = threads.current_num_threads() == 1;
                            let problem = Problem {
                                learner,
                                data,
                                folds: &folds,
                                tree: Tree {
                                    strategy,
                                    order,
                                    ..Tree::in_given_order()
                                },
                                keeps_models: n_folds == 64,
                                thread_from: if is_alone { f64::INFINITY } else { 20.0 },
                            };
                            problem.check(threads);
                        }
                    }
                }
            }
        });
    }

    /// On one thread at most one model per level of blocks is deferred.
    #[test]
    fn models_in_memory_are_as_many_as_levels() {
        for_every_learner(|learner, data| {
            let folds = Folds::contiguous(N_ROWS, N_ROWS).expect("valid");
            for strategy in STRATEGIES {
                let problem = Problem {
                    learner,
                    data,
                    folds: &folds,
                    tree: Tree {
                        strategy,
                        ..Tree::in_given_order()
                    },
                    keeps_models: false,
                    thread_from: f64::INFINITY,
                };
                let rows = folds.rows(0..N_ROWS);
                let monitor = Monitor::new();
                let source = in_memory(data, rows, &monitor);
                let found = problem.run(Some((&*source, 20)));
                // 300 rows are halved nine times.
                assert!(found.2.peak_models <= 10, "{:?}", found.2);
            }
        });
    }

    #[test]
    fn shuffled_rows_are_random_access_and_stratified_ones_are_not() {
        let runs: Vec<usize> = (0..1000).collect();
        let fifth: Vec<usize> = (0..10_000).filter(|i| i * i % 10_007 < 2_000).collect();
        let two_classes: Vec<usize> = (0..500).chain(9000..9500).collect();
        let scattered: Vec<usize> = (0..1000).map(|i| i * 7919 % 10_007).collect();
        assert!(!is_random_access(&[]) && !is_random_access(&[5]));
        assert!(!is_random_access(&runs) && !is_random_access(&two_classes));
        assert!(is_random_access(&scattered) && is_random_access(&fifth));
    }
}
