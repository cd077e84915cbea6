//! TreeCV and refits against the textbook: same bits by every strategy, order and thread count,
//! and counters that obey the theory.

use onefold::data::Samples;
use onefold::learners::{LeastSquaresOptions, LeastSquaresSgd, Pegasos, PegasosOptions};
use onefold::tree::{
    Effort, Few, Learner, Log, Model, Options, Order, Outcome, Strategy, Undo, cross_validate,
    cross_validate_examples, refit,
};
use onefold::{Folds, Monitor, Result, Splits};
use proptest::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::sets::{Random, Set};
use crate::textbook::{Textbook, refits};

const STRATEGIES: [Strategy; 3] = [Strategy::Auto, Strategy::Copy, Strategy::Revert];
const ORDERS: [Order; 2] = [Order::Fixed, Order::Random { seed: 5 }];

pub(crate) fn pegasos(n_features: usize, n_classes: usize) -> Pegasos {
    let options = PegasosOptions {
        alpha: 0.01,
        project: false,
        intercept: true,
    };
    Pegasos::new(options, n_features, n_classes).expect("valid")
}

/// No pool at all, and pools of 1, 2 and 4 threads.
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

/// A learner that claims to be so slow, or so large, that the engine forks or reverts elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct Claims<L> {
    pub(crate) learner: L,
    pub(crate) update: f64,
    pub(crate) copy: f64,
}

impl<L: Model> Model for Claims<L> {
    fn n_outputs(&self) -> usize {
        self.learner.n_outputs()
    }

    fn copy(&self) -> Result<Self> {
        Ok(Self {
            learner: self.learner.copy()?,
            ..*self
        })
    }

    fn copy_from(&mut self, source: &Self) -> Result<()> {
        self.learner.copy_from(&source.learner)
    }

    fn save(&self, log: &mut Log) {
        self.learner.save(log);
    }

    fn revert(&mut self, log: &mut Log, len: usize) {
        self.learner.revert(log, len);
    }

    fn may_be_infinite(&self) -> bool {
        self.learner.may_be_infinite()
    }
}

impl<D: Samples, L: Learner<D>> Learner<D> for Claims<L> {
    fn effort(&self, data: &D) -> Effort {
        Effort {
            update: self.update,
            copy: self.copy,
            ..self.learner.effort(data)
        }
    }

    fn learn<U: Undo>(&mut self, data: &D, rows: &[usize], undo: &mut U) -> Result<()> {
        self.learner.learn(data, rows, undo)
    }

    fn evaluate(&self, data: &D, rows: &[usize], out: &mut [f64]) -> Result<()> {
        self.learner.evaluate(data, rows, out)
    }

    fn batch(&self, data: &D) -> usize {
        self.learner.batch(data)
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
fn check(outcome: &Outcome, book: &Textbook<'_, impl Sized>, folds: &Folds, options: Options) {
    let context = format!("{options:?}, k = {}, {:?}", folds.len(), outcome.cost);
    let rows = folds.rows(0..folds.len());
    let expected: Vec<f64> = rows
        .iter()
        .flat_map(|&row| book.outputs[row].clone())
        .collect();
    assert_eq!(outcome.outputs, expected, "{context}");
    let cost = outcome.cost;
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
    match options.strategy {
        Strategy::Copy => {
            assert_eq!(cost.copies, k - 1, "{context}");
            assert_eq!(cost.undo_entries, 0, "{context}");
        }
        _ => assert!(cost.copies < k, "{context}"),
    }
}

/// Every strategy, order and thread count for one learner and one kind of data.
fn check_all<D: Samples, L: Learner<D> + Clone>(learner: &L, data: &D) {
    let pools = pools();
    let claims = |update, copy| Claims {
        learner: learner.clone(),
        update,
        copy,
    };
    let settles = settles(learner, data);
    // Fork wherever there is a thread; fork at none, and revert at the lower half of the tree.
    let (slow, large) = (claims(1e9, 1.0), claims(1.0, 1e3));
    for folds in folds_of(data.n_samples()) {
        for order in ORDERS {
            let book = Textbook::tree(learner, data, &folds, order);
            for strategy in STRATEGIES {
                let options = Options { strategy, order };
                for pool in &pools {
                    let [plain, forked, mixed] = run_in(pool.as_ref(), || {
                        let monitor = Monitor::new();
                        [
                            cross_validate(learner, data, &folds, &options, &monitor),
                            cross_validate(&slow, data, &folds, &options, &monitor),
                            cross_validate(&large, data, &folds, &options, &monitor),
                        ]
                        .map(|outcome| outcome.expect("valid"))
                    });
                    check(&plain, &book, &folds, options);
                    check(&forked, &book, &folds, options);
                    check(&mixed, &book, &folds, options);
                    if pool
                        .as_ref()
                        .is_some_and(|pool| pool.current_num_threads() > 1)
                    {
                        // The root forks, and whoever comes to a node while a thread is idle.
                        assert!((1..folds.len() as u64).contains(&forked.cost.copies));
                        continue;
                    }
                    let models = 1 + copies_on_a_branch(&plain, &folds);
                    if settles && folds.len() == data.n_samples() && plain.cost.undo_entries == 0 {
                        // The models of the last nodes are in nobody's memory.
                        assert_eq!(plain.cost.peak_models, 1 + levels_to_few(data.n_samples()));
                    } else {
                        assert_eq!(plain.cost.peak_models, models);
                    }
                }
            }
        }
    }
}

/// Whether a learner does the last nodes itself.
fn settles<D: Samples, L: Learner<D>>(learner: &L, data: &D) -> bool {
    let mut buffer = Vec::new();
    let mut few = Few::new(&[0, 1], 0, Order::Fixed, &mut buffer);
    let mut out = vec![0.0; 2 * learner.n_outputs()];
    learner.settle(data, &mut few, &mut out).expect("valid")
}

/// Levels of leave-one-out above the nodes of a few rows.
fn levels_to_few(mut n_rows: usize) -> u64 {
    let mut levels = 0;
    while n_rows > Few::MOST {
        n_rows = n_rows.div_ceil(2);
        levels += 1;
    }
    levels
}

/// On one thread every level of the tree that copies keeps one model for it.
fn copies_on_a_branch(outcome: &Outcome, folds: &Folds) -> u64 {
    match outcome.cost.copies {
        0 => 0,
        copies if copies + 1 == folds.len() as u64 => u64::from((folds.len() - 1).ilog2()) + 1,
        _ => outcome.cost.peak_models - 1,
    }
}

#[test]
fn equals_algorithm_1() {
    for n_classes in [2, 3] {
        let set = Set::new(6, 37, 5, n_classes);
        let (dense, csr) = set.classified();
        check_all(&pegasos(5, n_classes), &dense);
        check_all(&pegasos(5, n_classes), &csr);
    }
    let set = Set::new(7, 16, 3, 2);
    let (dense, csr) = set.classified();
    check_all(
        &pegasos(3, 2),
        &dense.weighted(set.weights()).expect("valid"),
    );
    check_all(&pegasos(3, 2), &csr.weighted(set.weights()).expect("valid"));
}

/// A learner with two vectors, a projection and an average.
#[test]
fn equals_algorithm_1_whatever_the_learner() {
    let set = Set::new(15, 21, 4, 2);
    let (dense, csr) = set.valued();
    let rule = LeastSquaresOptions {
        step: 0.2,
        radius: 0.01,
        intercept: true,
    };
    let learner = LeastSquaresSgd::new(rule, 4, 1).expect("valid");
    check_all(&learner, &dense);
    check_all(&learner, &csr);
}

/// Enough rows for the engine's own estimates to fork, copy and revert.
#[test]
fn forks_by_its_own_judgement() {
    let set = Set::new(8, 3000, 40, 2);
    let (dense, csr) = set.classified();
    let folds = Folds::contiguous(3000, 1000).expect("valid");
    let learner = pegasos(40, 2);
    for order in ORDERS {
        let by_dense = Textbook::tree(&learner, &dense, &folds, order);
        let by_csr = Textbook::tree(&learner, &csr, &folds, order);
        for pool in pools() {
            for strategy in STRATEGIES {
                let options = Options { strategy, order };
                let outcomes = run_in(pool.as_ref(), || {
                    let monitor = Monitor::new();
                    [
                        cross_validate(&learner, &dense, &folds, &options, &monitor),
                        cross_validate(&learner, &csr, &folds, &options, &monitor),
                    ]
                })
                .map(|outcome| outcome.expect("valid"));
                check(&outcomes[0], &by_dense, &folds, options);
                check(&outcomes[1], &by_csr, &folds, options);
            }
        }
    }
}

/// Enough rows in shuffled folds for the engine to copy them into the order of the folds.
#[test]
fn gathering_changes_no_bit() {
    let set = Set::new(16, 4000, 40, 2);
    let (dense, csr) = set.classified();
    let dense = dense.weighted(set.weights()).expect("valid");
    let learner = pegasos(40, 2);
    let labels: Vec<usize> = (0..4000).map(|row| (row * 1237) % 250).collect();
    let scattered = Folds::from_labels(&labels, 250).expect("valid");
    let contiguous = Folds::contiguous(4000, 250).expect("valid");
    for folds in [&scattered, &contiguous] {
        for order in ORDERS {
            let options = Options {
                order,
                ..Options::default()
            };
            let monitor = Monitor::new();
            let plain = cross_validate(&learner, &dense, folds, &options, &monitor);
            let gathered = cross_validate_examples(&learner, &dense, folds, &options, &monitor);
            assert_eq!(gathered.expect("valid"), plain.expect("valid"));
            let plain = cross_validate(&learner, &csr, folds, &options, &monitor);
            let gathered = cross_validate_examples(&learner, &csr, folds, &options, &monitor);
            assert_eq!(gathered.expect("valid"), plain.expect("valid"));
        }
    }
}

#[test]
fn wide_models_are_reverted_near_the_leaves_and_copied_near_the_root() {
    let set = Set::new(9, 64, 300, 2);
    let (_, csr) = set.classified();
    let folds = Folds::contiguous(64, 64).expect("valid");
    let options = Options::default();
    let learner = pegasos(300, 2);
    let undo = learner.effort(&csr).undo.expect("can log");
    let claims = Claims {
        learner,
        update: 100.0,
        copy: undo * 8.0 * 20.0,
    };
    let outcome = cross_validate(&claims, &csr, &folds, &options, &Monitor::new()).expect("valid");
    // Nodes of 64 and 32 rows copy, those of 16 and fewer revert.
    assert_eq!((outcome.cost.copies, outcome.cost.peak_models), (3, 3));
    assert!(outcome.cost.undo_entries > 0);
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
        let (dense, _) = set.classified();
        let order = if random { Order::Random { seed } } else { Order::Fixed };
        let book = Textbook::tree(&pegasos(4, 2), &dense, &folds, order);
        for strategy in STRATEGIES {
            let options = Options { strategy, order };
            let outcome = cross_validate(&pegasos(4, 2), &dense, &folds, &options, &Monitor::new());
            check(&outcome.expect("valid"), &book, &folds, options);
        }
    }
}

#[test]
fn refits_equal_the_plain_loop() {
    let set = Set::new(10, 30, 4, 3);
    let (dense, _) = set.classified();
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
        for pool in pools() {
            for folds in folds_of(30) {
                let expected = refits(&learner, &dense, &folds, order);
                let outcome = run_in(pool.as_ref(), || {
                    refit(&learner, &dense, &folds, order, &Monitor::new()).expect("valid")
                });
                assert_eq!(outcome.outputs, outputs(expected));
                let (n, k) = (30, folds.len() as u64);
                assert_eq!(outcome.cost.rows_fed, n * (k - 1));
                assert_eq!((outcome.cost.fits, outcome.cost.rows_evaluated), (k, n));
                assert_eq!((outcome.cost.copies, outcome.cost.undo_entries), (0, 0));
            }
            let outcome = run_in(pool.as_ref(), || {
                refit(&learner, &dense, &splits, order, &Monitor::new()).expect("valid")
            });
            assert_eq!(
                outcome.outputs,
                outputs(refits(&learner, &dense, &splits, order))
            );
            assert_eq!(
                (outcome.cost.rows_fed, outcome.cost.rows_evaluated),
                (23, 4)
            );
        }
    }
}

fn outputs(rows: Vec<(usize, Vec<f64>)>) -> Vec<f64> {
    rows.into_iter().flat_map(|(_, out)| out).collect()
}

/// With two folds there is no order to differ in.
#[test]
fn two_folds_are_two_refits() {
    let set = Set::new(12, 25, 4, 2);
    let (dense, _) = set.classified();
    let folds = Folds::contiguous(25, 2).expect("valid");
    let monitor = Monitor::new();
    let tree = cross_validate(
        &pegasos(4, 2),
        &dense,
        &folds,
        &Options::default(),
        &monitor,
    );
    let refit = refit(&pegasos(4, 2), &dense, &folds, Order::Fixed, &monitor);
    assert_eq!(tree.expect("valid").outputs, refit.expect("valid").outputs);
}
