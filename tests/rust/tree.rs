//! TreeCV and refits against the textbook: same bits by every strategy, order and thread count,
//! and counters that obey the theory.

use std::any::Any;

use onefold::data::Dataset;
use onefold::learners::{
    CostModel, LeafBlock, Learner, LeastSquaresOptions, LeastSquaresSgd, Order, Pegasos,
    PegasosOptions, State, UndoLog,
};
use onefold::refit::Refit;
use onefold::tree::{Strategy, Tree};
use onefold::{Engine as _, Folds, OutOfFold, Result, Splits};
use proptest::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::every_learner::every_learner;
use crate::sets::{Random, Set};
use crate::textbook::{Textbook, refits};

pub(crate) const STRATEGIES: [Strategy; 4] = [
    Strategy::Auto,
    Strategy::Share,
    Strategy::Copy,
    Strategy::Revert,
];
pub(crate) const ORDERS: [Order; 2] = [Order::Fixed, Order::Random { seed: 5 }];

pub(crate) fn pegasos(n_features: usize, n_classes: usize) -> Pegasos {
    let options = PegasosOptions {
        alpha: 0.01,
        fit_intercept: true,
        ..PegasosOptions::default()
    };
    Pegasos::new(options, n_features, n_classes).expect("valid")
}

/// The number of threads of a pool, or of the global one.
fn n_threads(pool: Option<&ThreadPool>) -> usize {
    pool.map_or_else(rayon::current_num_threads, ThreadPool::current_num_threads)
}

/// The global pool, and pools of 1, 2 and 4 threads.
pub(crate) fn pools() -> Vec<Option<ThreadPool>> {
    let pool = |n| {
        ThreadPoolBuilder::new()
            .num_threads(n)
            .build()
            .expect("threads")
    };
    vec![None, Some(pool(1)), Some(pool(2)), Some(pool(4))]
}

pub(crate) fn run_in<T: Send>(pool: Option<&ThreadPool>, work: impl FnOnce() -> T + Send) -> T {
    match pool {
        Some(pool) => pool.install(work),
        None => work(),
    }
}

/// A learner with another cost model, so that the engine forks or reverts elsewhere. It has no closed
/// form for leaf blocks.
#[derive(Debug)]
pub(crate) struct WithCost {
    pub(crate) learner: Box<dyn Learner>,
    pub(crate) update: f64,
    pub(crate) copy: f64,
}

impl WithCost {
    pub(crate) fn new(learner: &dyn Learner, update: f64, copy: f64) -> Self {
        Self {
            learner: learner.fork().expect("forked"),
            update,
            copy,
        }
    }

    fn of(other: &dyn Learner) -> &Self {
        let other: &dyn Any = other;
        other.downcast_ref().expect("of the same type")
    }
}

impl Learner for WithCost {
    fn n_outputs(&self) -> usize {
        self.learner.n_outputs()
    }

    fn cost_model(&self, data: &Dataset<'_>) -> CostModel {
        CostModel {
            update: self.update,
            copy: self.copy,
            ..self.learner.cost_model(data)
        }
    }

    fn update(
        &mut self,
        data: &Dataset<'_>,
        rows: &[usize],
        undo: Option<&mut UndoLog>,
    ) -> Result<()> {
        self.learner.update(data, rows, undo)
    }

    fn evaluate(&self, data: &Dataset<'_>, rows: &[usize], out: &mut [f64]) -> Result<()> {
        self.learner.evaluate(data, rows, out)
    }

    fn fork(&self) -> Result<Box<dyn Learner>> {
        Ok(Box::new(Self {
            learner: self.learner.fork()?,
            ..*self
        }))
    }

    fn state(&self) -> &State {
        self.learner.state()
    }

    fn state_mut(&mut self) -> &mut State {
        self.learner.state_mut()
    }

    fn copy_from(&mut self, source: &dyn Learner) -> Result<()> {
        self.learner.copy_from(&*Self::of(source).learner)
    }

    fn save(&self, log: &mut UndoLog) {
        self.learner.save(log);
    }

    fn revert(&mut self, log: &mut UndoLog, mark: usize) {
        self.learner.revert(log, mark);
    }

    fn take_bytes_copied(&mut self) -> u64 {
        self.learner.take_bytes_copied()
    }

    fn depends_on_order(&self) -> bool {
        self.learner.depends_on_order()
    }

    fn min_evaluation_rows(&self, data: &Dataset<'_>) -> usize {
        self.learner.min_evaluation_rows(data)
    }

    fn outputs_may_be_infinite(&self) -> bool {
        self.learner.outputs_may_be_infinite()
    }

    fn is_mergeable(&self) -> bool {
        self.learner.is_mergeable()
    }

    fn merge(&mut self, other: &dyn Learner) -> Result<()> {
        self.learner.merge(&*Self::of(other).learner)
    }
}

/// Folds of every kind: equal, with a remainder, single rows, scattered and very unequal.
pub(crate) fn folds_of(n_samples: usize) -> Vec<Folds> {
    let mut all: Vec<Folds> = [2, 3, 4, 5, 7, 8, 13, 16, n_samples]
        .into_iter()
        .filter(|&k| k <= n_samples)
        .map(|k| Folds::contiguous(n_samples, k).expect("valid"))
        .collect();
    let mut random = Random(11);
    let labels: Vec<usize> = (0..n_samples)
        .map(|row| {
            if row < 6 {
                row
            } else {
                (row + usize::from(random.below(2) > 0.0)) % 3
            }
        })
        .collect();
    all.push(Folds::from_labels(&labels, 6).expect("valid"));
    all
}

/// Checks one run against the textbook's outputs and the theory's counts.
fn check(found: &OutOfFold, book: &Textbook<'_>, folds: &Folds, tree: Tree) {
    let context = format!("{tree:?}, k = {}, {:?}", folds.len(), found.cost);
    let rows = folds.rows(0..folds.len());
    let expected: Vec<f64> = rows
        .iter()
        .flat_map(|&row| book.outputs[row].clone())
        .collect();
    assert_eq!(found.outputs.nrows(), folds.n_samples());
    assert_eq!(
        found.outputs.as_slice().expect("contiguous"),
        expected,
        "{context}"
    );
    let cost = found.cost;
    let (n, k) = (folds.n_samples() as u64, folds.len() as u64);
    assert_eq!(cost.rows_evaluated, n);
    assert_eq!(cost.fits, 1);
    assert_eq!(cost.rows_fed, book.rows_fed, "{context}");
    assert!(
        cost.rows_fed as f64 <= n as f64 * (2.0 * k as f64).log2(),
        "{context}"
    );
    if k.is_power_of_two() {
        assert_eq!(cost.rows_fed, n * u64::from(k.ilog2()), "{context}");
    }
    match tree.strategy {
        Strategy::Copy | Strategy::Share => {
            assert_eq!(cost.copies, k - 1, "{context}");
            assert_eq!(cost.undo_entries, 0, "{context}");
        }
        Strategy::Auto | Strategy::Revert => assert!(cost.copies < k, "{context}"),
    }
}

/// Every strategy, order and thread count for one learner and one layout.
fn check_all(learner: &dyn Learner, data: &Dataset<'_>) {
    let pools = pools();
    let has_closed_form = has_closed_form(learner, data);
    // Threads wherever one is idle; no threads, and a log in the lower half of the tree.
    let slow = WithCost::new(learner, 1e9, 1.0);
    let large = WithCost::new(learner, 1.0, 1e3);
    for folds in folds_of(data.n_rows()) {
        for order in ORDERS {
            let book = Textbook::tree(learner, data, &folds, order);
            for strategy in STRATEGIES {
                let tree = Tree {
                    strategy,
                    order,
                    ..Tree::in_given_order()
                };
                for pool in &pools {
                    let run = |learner: &dyn Learner| {
                        tree.cross_validate(learner, data, &folds).expect("valid")
                    };
                    let [plain, forked, mixed] =
                        run_in(pool.as_ref(), || [run(learner), run(&slow), run(&large)]);
                    check(&plain, &book, &folds, tree);
                    check(&forked, &book, &folds, tree);
                    check(&mixed, &book, &folds, tree);
                    if n_threads(pool.as_ref()) > 1 {
                        // The root forks, and every node at which a thread is idle.
                        assert!((1..folds.len() as u64).contains(&forked.cost.copies));
                        continue;
                    }
                    let is_leave_one_out = folds.len() == data.n_rows();
                    if has_closed_form && is_leave_one_out && plain.cost.undo_entries == 0 {
                        // Leaf blocks need no models.
                        let levels = levels_to_leaf_blocks(data.n_rows());
                        assert_eq!(plain.cost.peak_models, 1 + levels);
                    } else {
                        let models = 1 + copies_on_a_branch(&plain, &folds);
                        assert_eq!(plain.cost.peak_models, models);
                    }
                }
            }
        }
    }
}

/// Whether a learner solves leaf blocks in closed form.
pub(crate) fn has_closed_form(learner: &dyn Learner, data: &Dataset<'_>) -> bool {
    let mut block = LeafBlock {
        rows: &[0, 1],
        first_fold: 0,
        order: Order::Fixed,
    };
    let mut out = vec![0.0; 2 * learner.n_outputs()];
    let found = learner.leave_one_out_block(data, &mut block, &mut out);
    found.expect("valid")
}

/// Levels of leave-one-out above the leaf blocks.
fn levels_to_leaf_blocks(mut n_rows: usize) -> u64 {
    let mut levels = 0;
    while n_rows > LeafBlock::MAX_ROWS {
        n_rows = n_rows.div_ceil(2);
        levels += 1;
    }
    levels
}

/// On one thread every level of the tree that duplicates has one model for it.
fn copies_on_a_branch(found: &OutOfFold, folds: &Folds) -> u64 {
    match found.cost.copies {
        0 => 0,
        copies if copies + 1 == folds.len() as u64 => u64::from((folds.len() - 1).ilog2()) + 1,
        _ => found.cost.peak_models - 1,
    }
}

#[test]
fn equals_algorithm_1() {
    for n_classes in [2, 3] {
        let set = Set::new(6, 37, 5, n_classes);
        for data in set.classified() {
            check_all(&pegasos(5, n_classes), &data);
        }
    }
    let set = Set::new(7, 16, 3, 2);
    for data in set.weighted(set.classified()) {
        check_all(&pegasos(3, 2), &data);
    }
}

/// A learner with two vectors, a projection and an average.
#[test]
fn equals_algorithm_1_for_averages() {
    let set = Set::new(15, 21, 4, 2);
    let rule = LeastSquaresOptions {
        step: 0.2,
        radius: 0.01,
        fit_intercept: true,
    };
    let learner = LeastSquaresSgd::new(rule, 4, 1).expect("valid");
    for data in set.valued() {
        check_all(&learner, &data);
    }
}

/// Share, copy, revert, the choice between them and any number of threads: the bits of Algorithm 1,
/// but for closed forms, which have the same bits among themselves.
#[test]
fn every_learner_has_the_same_bits_by_every_strategy() {
    let set = Set::counts(17, 26, 5, 3);
    let pools = pools();
    for case in every_learner(5) {
        for data in case.targets.of(&set) {
            let learner = &*case.learner;
            let slow = WithCost::new(learner, 1e9, 1.0);
            let large = WithCost::new(learner, 1.0, 1e3);
            for folds in [5, 8, 26].map(|k| Folds::shuffled(26, k, 1).expect("valid")) {
                for order in ORDERS {
                    // Others ignore the order.
                    let own = if learner.depends_on_order() {
                        order
                    } else {
                        Order::Fixed
                    };
                    let book = Textbook::tree(learner, &data, &folds, own);
                    let mut first = None;
                    for strategy in STRATEGIES {
                        let tree = Tree {
                            strategy,
                            order,
                            ..Tree::in_given_order()
                        };
                        for pool in &pools {
                            let run = |learner: &dyn Learner| {
                                tree.cross_validate(learner, &data, &folds).expect("valid")
                            };
                            let [plain, forked, mixed] =
                                run_in(pool.as_ref(), || [run(learner), run(&slow), run(&large)]);
                            check(&forked, &book, &folds, tree);
                            check(&mixed, &book, &folds, tree);
                            let first = first.get_or_insert_with(|| plain.outputs.clone());
                            assert_eq!(plain.outputs, *first, "{} {tree:?}", case.name);
                            for (found, expected) in plain.outputs.iter().zip(&mixed.outputs) {
                                let allowed = 1e-9 * expected.abs().max(1.0);
                                let is_close = (found - expected).abs() <= allowed;
                                assert!(found == expected || is_close, "{found}, {expected}");
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Enough rows for the engine's own estimates to fork, copy and revert.
#[test]
fn forks_by_its_own_estimates() {
    let set = Set::new(8, 3000, 40, 2);
    let folds = Folds::contiguous(3000, 1000).expect("valid");
    let learner = pegasos(40, 2);
    for data in set.classified() {
        for order in ORDERS {
            let book = Textbook::tree(&learner, &data, &folds, order);
            for pool in pools() {
                for strategy in STRATEGIES {
                    let tree = Tree {
                        strategy,
                        order,
                        ..Tree::in_given_order()
                    };
                    let found = run_in(pool.as_ref(), || {
                        tree.cross_validate(&learner, &data, &folds)
                    });
                    check(&found.expect("valid"), &book, &folds, tree);
                }
            }
        }
    }
}

/// Enough rows in shuffled folds for the engine to copy them into the order of the folds.
#[test]
fn gathering_changes_no_bit() {
    let set = Set::new(16, 4000, 40, 2);
    let learner = pegasos(40, 2);
    let [dense, _] = set.weighted(set.classified());
    let [_, csr] = set.classified();
    for folds in [Folds::shuffled(4000, 250, 3), Folds::contiguous(4000, 250)] {
        let folds = folds.expect("valid");
        for data in [&dense, &csr] {
            for order in ORDERS {
                let book = Textbook::tree(&learner, data, &folds, order);
                for strategy in STRATEGIES {
                    let tree = Tree {
                        strategy,
                        order,
                        ..Tree::in_given_order()
                    };
                    let found = tree.cross_validate(&learner, data, &folds);
                    check(&found.expect("valid"), &book, &folds, tree);
                }
            }
        }
    }
}

/// More rows than a cache holds, which are streamed block by block.
#[test]
fn streaming_changes_no_bit() {
    let set = Set::new(20, 66_000, 64, 2);
    let [dense, _] = set.classified();
    let learner = pegasos(64, 2);
    let folds = Folds::contiguous(66_000, 11).expect("valid");
    for order in ORDERS {
        let book = Textbook::tree(&learner, &dense, &folds, order);
        for strategy in [Strategy::Auto, Strategy::Share] {
            let tree = Tree {
                strategy,
                order,
                ..Tree::in_given_order()
            };
            for pool in pools().iter().step_by(2) {
                let found = run_in(pool.as_ref(), || {
                    tree.cross_validate(&learner, &dense, &folds)
                });
                check(&found.expect("valid"), &book, &folds, tree);
            }
        }
    }
}

#[test]
fn wide_models_are_reverted_near_the_leaves_and_copied_near_the_root() {
    let set = Set::new(9, 64, 300, 2);
    let [_, csr] = set.classified();
    let folds = Folds::leave_one_out(64).expect("valid");
    let learner = pegasos(300, 2);
    let undo = learner.cost_model(&csr).undo.expect("can log");
    let learner = WithCost::new(&learner, 100.0, undo * 8.0 * 20.0);
    let found = run_in(pools()[1].as_ref(), || {
        Tree::in_given_order().cross_validate(&learner, &csr, &folds)
    });
    let cost = found.expect("valid").cost;
    // Nodes of 64 and 32 rows copy, those of 16 and fewer revert.
    assert_eq!((cost.copies, cost.peak_models), (3, 3));
    assert!(cost.undo_entries > 0);
}

/// Bytes: a copy writes the whole model, a shared model what changes, a log none.
#[test]
fn sharing_copies_only_what_is_written() {
    let set = Set::counts(18, 48, 30, 3);
    let [_, csr] = set.classified();
    // Within a fold all rows are of one class, and neighboring folds are alike.
    let mut rows: Vec<usize> = (0..48).collect();
    rows.sort_by_key(|&row| set.codes()[row]);
    let mut labels = vec![0; 48];
    for (fold, &row) in rows.iter().enumerate() {
        labels[row] = fold;
    }
    let folds = Folds::from_labels(&labels, 48).expect("valid");
    for case in every_learner(30) {
        if case.name != "discrete_nb" {
            continue;
        }
        let bytes = |strategy| {
            let tree = Tree {
                strategy,
                ..Tree::in_given_order()
            };
            let found = tree.cross_validate(&*case.learner, &csr, &folds);
            found.expect("valid").cost.bytes_copied
        };
        // All nodes, and the root model, whose first writes copy: it is a fork of the learner.
        assert_eq!(bytes(Strategy::Copy), (47 + 1) * 3 * 30 * 8);
        assert!(bytes(Strategy::Share) < bytes(Strategy::Copy) / 2);
        assert_eq!(bytes(Strategy::Revert), 3 * 30 * 8);
    }
}

proptest! {
    #[test]
    fn equals_algorithm_1_on_any_folds(
        labels in prop::collection::vec(0_usize..9, 20..60),
        seed in any::<u64>(),
        random in any::<bool>(),
    ) {
        // Every label occurs: the first rows see to that.
        let labels: Vec<usize> = (0..9).chain(labels).collect();
        let folds = Folds::from_labels(&labels, 9).expect("valid");
        let set = Set::new(seed, labels.len(), 4, 2);
        let [dense, _] = set.classified();
        let order = if random { Order::Random { seed } } else { Order::Fixed };
        let book = Textbook::tree(&pegasos(4, 2), &dense, &folds, order);
        for strategy in STRATEGIES {
            let tree = Tree { strategy, order, ..Tree::in_given_order() };
            let found = tree.cross_validate(&pegasos(4, 2), &dense, &folds);
            check(&found.expect("valid"), &book, &folds, tree);
        }
    }
}

#[test]
fn refits_equal_the_plain_loop() {
    let set = Set::new(10, 30, 4, 3);
    let [dense, _] = set.classified();
    let learner = pegasos(4, 3);
    let splits = Splits::new(
        30,
        vec![
            (vec![3, 1, 2], vec![7, 7, 0]),
            ((10..30).collect(), vec![4]),
        ],
    )
    .expect("valid");
    for order in ORDERS {
        let refit = Refit { order };
        for pool in pools() {
            for folds in folds_of(30) {
                let expected = refits(&learner, &dense, &folds, order);
                let found = run_in(pool.as_ref(), || {
                    refit
                        .cross_validate(&learner, &dense, &folds)
                        .expect("valid")
                });
                assert_eq!(found.outputs.as_slice().expect("contiguous"), expected);
                let (n, k) = (30, folds.len() as u64);
                assert_eq!(found.cost.rows_fed, n * (k - 1));
                assert_eq!((found.cost.fits, found.cost.rows_evaluated), (k, n));
                assert_eq!((found.cost.copies, found.cost.undo_entries), (0, 0));
                let by_sample = found.by_sample(&folds);
                for (output, &row) in found
                    .outputs
                    .rows()
                    .into_iter()
                    .zip(folds.rows(0..folds.len()))
                {
                    assert_eq!(by_sample.row(row), output);
                }
            }
            let found = run_in(pool.as_ref(), || {
                refit
                    .cross_validate(&learner, &dense, &splits)
                    .expect("valid")
            });
            let expected = refits(&learner, &dense, &splits, order);
            assert_eq!(found.outputs.as_slice().expect("contiguous"), expected);
            assert_eq!((found.cost.rows_fed, found.cost.rows_evaluated), (23, 4));
        }
    }
}

/// With two folds there is no order to differ in.
#[test]
fn two_folds_are_two_refits() {
    let set = Set::new(12, 25, 4, 2);
    let [dense, _] = set.classified();
    let folds = Folds::contiguous(25, 2).expect("valid");
    let tree = Tree::in_given_order().cross_validate(&pegasos(4, 2), &dense, &folds);
    let refit = Refit::default().cross_validate(&pegasos(4, 2), &dense, &folds);
    assert_eq!(tree.expect("valid").outputs, refit.expect("valid").outputs);
}
