//! The laws of learners (see [`Learner`]), checked for each of them.

use std::thread;

use ndarray::{Array1, Array2, Axis, array, concatenate};
use onefold::data::{Dataset, Layout as _, Row, Rows};
use onefold::learners::{
    CandidateSet, KMeansOptions, LeafBlock, Learner, OnlineKMeans, Order, PassiveAggressive,
    PassiveAggressiveOptions, Pegasos, PegasosOptions, Perceptron, PerceptronOptions, State,
    UndoLog,
};

use crate::every_learner::every_learner;
use crate::sets::{Layouts, Set};
use crate::textbook::{copy, evaluate};

/// Checks every law for a learner that has learnt nothing, on the same rows in both layouts.
///
/// CSR and dense outputs may differ by `tolerance` × the larger of 1 and the output: 0 for learners
/// whose sums are exact on the small integers of the test data.
pub(crate) fn check_laws(empty: &dyn Learner, data: Layouts<'_>, tolerance: f64) {
    let [by_dense, by_csr] = data.map(|data| {
        check_on(empty, &data);
        let rows = order(data.n_rows());
        outputs(&*updated(empty, &data, &rows), &data)
    });
    for (dense, csr) in by_dense.iter().zip(&by_csr) {
        let allowed = tolerance * dense.abs().max(1.0);
        assert!((dense - csr).abs() <= allowed, "dense {dense}, CSR {csr}");
    }
}

/// The laws that concern one layout.
fn check_on(empty: &dyn Learner, data: &Dataset<'_>) {
    let order = order(data.n_rows());
    let (a, b) = order.split_at(order.len() / 2);
    let mut model = updated(empty, data, a);
    check_isolation(&*model, data, b);
    check_threads(&*model, data, b);
    check_sharing(&*model, data, b);
    check_copying(&*model, data, b);
    if !empty.cost_model(data).atomic_batches {
        check_batching(empty, data, &order);
    }
    check_interleaving(&*model, data, [a, b]);
    check_leaf_blocks(&*model, data, &order);
    check_evaluation(&*model, data, &order);
    if empty.cost_model(data).undo.is_some() {
        check_reverting(&mut *model, data, b);
    }
}

/// No update is visible through another handle; equal states updated with equal rows are equal.
fn check_isolation(model: &dyn Learner, data: &Dataset<'_>, rows: &[usize]) {
    let before = bits(model);
    let mut fork = model.fork().expect("forked");
    assert_eq!(fork.take_bytes_copied(), 0, "a fork copies nothing");
    assert_eq!(bits(&*fork), before);
    let mut second = fork.fork().expect("forked");
    fork.update(data, rows, None).expect("updated");
    let after = bits(&*fork);
    assert_ne!(after, before, "no row changed the model: the test is empty");
    assert!(fork.take_bytes_copied() > 0 || states(model).iter().all(|s| s.n_vectors() == 0));
    assert_eq!((bits(model), bits(&*second)), (before.clone(), before));
    second.update(data, rows, None).expect("updated");
    assert_eq!(bits(&*second), after);
    drop(fork);
    assert_eq!(bits(&*second), after);
}

/// Forks of one model, updated, reverted and forked again on several threads at the same time.
fn check_threads(model: &dyn Learner, data: &Dataset<'_>, rows: &[usize]) {
    let before = bits(model);
    let expected = evaluate(model, data, rows);
    let can_log = model.cost_model(data).undo.is_some();
    let work = |first: usize| {
        for round in 0..3 {
            let start = (first * 5 + round) % rows.len();
            let own = [&rows[start..], &rows[..start]].concat();
            let plain = updated(&*copy(model), data, &own);
            let mut fork = model.fork().expect("forked");
            if can_log {
                let mut log = UndoLog::default();
                fork.update(data, &own, Some(&mut log)).expect("updated");
                fork.revert(&mut log, 0);
                assert_eq!(bits(&*fork), before);
            }
            let mut child = fork.fork().expect("forked");
            fork.update(data, &own, None).expect("updated");
            assert_eq!(bits(&*fork), bits(&*plain));
            assert_eq!(evaluate(model, data, rows), expected);
            child.update(data, &own, None).expect("updated");
            assert_eq!(bits(&*child), bits(&*plain));
        }
    };
    thread::scope(|scope| {
        let threads = [0, 1, 2].map(|first| scope.spawn(move || work(first)));
        work(3);
        for thread in threads {
            thread.join().expect("no assertion failed");
        }
    });
    assert_eq!(bits(model), before);
}

/// After an update a fork shares all vectors but those that the update changed, where there are
/// several.
fn check_sharing(model: &dyn Learner, data: &Dataset<'_>, rows: &[usize]) {
    let rows: Vec<_> = rows
        .iter()
        .copied()
        .filter(|&r| has_events(data, r))
        .collect();
    let before = states(model);
    let fork = model.fork().expect("forked");
    assert_eq!(shared(&states(&*fork), &before), every_vector(&before));
    if before.iter().all(|state| state.n_vectors() == 1) {
        return;
    }
    for row in rows {
        let after = states(&*updated(model, data, &[row]));
        let is_equal = |&(state, vector): &(usize, usize)| {
            let [a, b] = [&after, &before].map(|states| states[state].vector(vector));
            a.iter()
                .map(|a| a.to_bits())
                .eq(b.iter().map(|b| b.to_bits()))
        };
        let unchanged: Vec<_> = every_vector(&before).into_iter().filter(is_equal).collect();
        assert_eq!(shared(&after, &before), unchanged, "row {row}, {model:?}");
    }
}

/// A copy equals a fork and shares nothing, whatever it is copied over.
fn check_copying(model: &dyn Learner, data: &Dataset<'_>, rows: &[usize]) {
    let (before, n_bytes) = (bits(model), n_bytes(model));
    let mut over_other = updated(model, data, rows);
    let mut over_fork = model.fork().expect("forked");
    let mut over_shared = updated(model, data, rows);
    let handle = over_shared.fork().expect("forked");
    let other = bits(&*handle);
    for copy in [&mut over_other, &mut over_fork, &mut over_shared] {
        copy.take_bytes_copied();
        copy.copy_from(model).expect("copied");
        assert_eq!(copy.take_bytes_copied(), n_bytes);
        assert_eq!(bits(&**copy), before);
        assert_eq!(shared(&states(&**copy), &states(model)), []);
    }
    assert_eq!(bits(&*handle), other);
    over_fork.update(data, rows, None).expect("updated");
    assert_eq!((bits(&*over_fork), bits(model)), (other, before));
    assert_eq!(over_fork.take_bytes_copied(), 0, "nothing was shared");
}

/// In one call, in two, row by row, and with empty calls between.
fn check_batching(empty: &dyn Learner, data: &Dataset<'_>, rows: &[usize]) {
    let at_once = bits(&*updated(empty, data, rows));
    let (a, b) = rows.split_at(rows.len() / 2);
    assert_eq!(bits(&*updated(&*updated(empty, data, a), data, b)), at_once);
    let mut slow = empty.fork().expect("forked");
    for row in rows.chunks(1) {
        slow.update(data, row, None).expect("updated");
        slow.update(data, &[], None).expect("updated");
    }
    assert_eq!(bits(&*slow), at_once);
}

/// Two models at once, whatever the numbers of rows; forks of one model, or copies.
fn check_interleaving(model: &dyn Learner, data: &Dataset<'_>, [a, b]: [&[usize]; 2]) {
    for rows in [[a, b], [b, &a[1..]], [&b[..1], a], [a, &[]], [&[], b]] {
        let forks = [0, 1].map(|_| model.fork().expect("forked"));
        for mut models in [forks, [copy(model), copy(model)]] {
            let [first, second] = &mut models;
            first
                .update_pair(&mut **second, data, rows)
                .expect("updated");
            for (paired, rows) in models.iter().zip(rows) {
                assert_eq!(bits(&**paired), bits(&*updated(model, data, rows)));
            }
        }
    }
}

/// A few rows that are a fold each: the closed form, where there is one, is Algorithm 1.
fn check_leaf_blocks(model: &dyn Learner, data: &Dataset<'_>, rows: &[usize]) {
    let before = bits(model);
    for n_rows in 1..=LeafBlock::MAX_ROWS.min(rows.len() - 1) {
        let mut block = LeafBlock {
            rows: &rows[1..=n_rows],
            first_fold: 3,
            order: Order::Fixed,
        };
        let mut out = vec![f64::NAN; n_rows * model.n_outputs()];
        let found = model.leave_one_out_block(data, &mut block, &mut out);
        if found.expect("evaluated") {
            let (expected, n_fed) = leave_one_out(model, data, block.rows);
            assert_eq!(block.n_rows_fed(), n_fed);
            for (found, expected) in out.iter().zip(expected) {
                let allowed = 1e-11 * expected.abs().max(1.0);
                assert!((found - expected).abs() <= allowed, "{found}, {expected}");
            }
        }
    }
    assert_eq!(bits(model), before);
}

/// The outputs of rows that are a fold each by Algorithm 1, and the number of rows learnt.
fn leave_one_out(model: &dyn Learner, data: &Dataset<'_>, rows: &[usize]) -> (Vec<f64>, usize) {
    if rows.len() == 1 {
        return (evaluate(model, data, rows), 0);
    }
    let (left, right) = rows.split_at(rows.len().div_ceil(2));
    let (mut outputs, n_left) = leave_one_out(&*updated(model, data, right), data, left);
    let (others, n_right) = leave_one_out(&*updated(model, data, left), data, right);
    outputs.extend(others);
    (outputs, rows.len() + n_left + n_right)
}

/// Row by row or at once, in any order.
fn check_evaluation(model: &dyn Learner, data: &Dataset<'_>, rows: &[usize]) {
    let (before, all) = (bits(model), outputs(model, data));
    let n_outputs = model.n_outputs();
    for &row in rows {
        let own = &all[row * n_outputs..][..n_outputs];
        assert_eq!(evaluate(model, data, &[row]), own);
    }
    assert_eq!(bits(model), before);
}

/// Nested logged updates are reverted step by step; a logged update is an update. Other handles never
/// change.
fn check_reverting(model: &mut dyn Learner, data: &Dataset<'_>, rows: &[usize]) {
    let mut log = UndoLog::default();
    let mut steps = vec![];
    for batch in rows.chunks(3) {
        let plain = updated(&*model, data, batch);
        let handle = (steps.len() % 2 == 0).then(|| model.fork().expect("forked"));
        steps.push((log.len(), bits(&*model), handle));
        model.update(data, batch, Some(&mut log)).expect("updated");
        assert_eq!(bits(&*model), bits(&*plain));
    }
    for (len, state, _) in steps.iter().rev() {
        let handle = model.fork().expect("forked");
        let newer = bits(&*handle);
        model.revert(&mut log, *len);
        assert_eq!((&bits(&*model), bits(&*handle)), (state, newer));
        assert_eq!(log.len(), *len);
    }
    for (_, state, handle) in &steps {
        assert!(
            handle
                .as_ref()
                .is_none_or(|handle| bits(&**handle) == *state)
        );
    }
    let state = bits(&*model);
    model.save(&mut log);
    model.update(data, rows, None).expect("updated");
    model.revert(&mut log, 0);
    assert_eq!(bits(&*model), state);
}

/// An order that is not that of the rows.
fn order(n: usize) -> Vec<usize> {
    (0..n).map(|i| (i * 7 + 3) % n).collect()
}

/// A fork that has learnt `rows`.
pub(crate) fn updated(model: &dyn Learner, data: &Dataset<'_>, rows: &[usize]) -> Box<dyn Learner> {
    let mut model = model.fork().expect("forked");
    model.update(data, rows, None).expect("updated");
    model
}

/// The outputs for all rows, which must be finite.
fn outputs(model: &dyn Learner, data: &Dataset<'_>) -> Vec<f64> {
    let rows: Vec<usize> = (0..data.n_rows()).collect();
    let out = evaluate(model, data, &rows);
    assert!(out.iter().all(|output| output.is_finite()));
    out
}

/// Every bit of a model: what it saves as text, which tells −0 from 0.
pub(crate) fn bits(model: &dyn Learner) -> String {
    let mut log = UndoLog::default();
    model.save(&mut log);
    format!("{log:?}")
}

/// The state of a model, or of each learner in it.
pub(crate) fn states(model: &dyn Learner) -> Vec<State> {
    if !model.state().is_empty() {
        return vec![model.state().fork()];
    }
    let learners = CandidateSet::split(model.fork().expect("forked"), 2).expect("candidates");
    let states = learners.iter().map(|learner| learner.state().fork());
    states.collect()
}

/// The vectors that two models of one origin share: the number of the state and of the vector.
pub(crate) fn shared(one: &[State], other: &[State]) -> Vec<(usize, usize)> {
    let mut vectors = every_vector(one);
    vectors.retain(|&(state, vector)| one[state].shares(&other[state], vector));
    vectors
}

fn every_vector(states: &[State]) -> Vec<(usize, usize)> {
    let states = states.iter().enumerate();
    states
        .flat_map(|(state, s)| (0..s.n_vectors()).map(move |vector| (state, vector)))
        .collect()
}

/// The size of all vectors.
fn n_bytes(model: &dyn Learner) -> u64 {
    let states = states(model);
    let values = states
        .iter()
        .map(|state| state.len() - state.scalars().len());
    8 * values.sum::<usize>() as u64
}

/// Whether a row has a value that every learner learns from.
fn has_events(data: &Dataset<'_>, row: usize) -> bool {
    fn any<R: Row>(row: R) -> bool {
        row.entries().any(|(_, value)| value.abs() > 1.0)
    }
    match data.rows() {
        Rows::Dense(rows) => any(rows.row(row)),
        Rows::Csr32(rows) => any(rows.row(row)),
        Rows::Csr64(rows) => any(rows.row(row)),
        Rows::Stored(_) | Rows::External { .. } => false,
    }
}

#[test]
fn every_learner_obeys_the_laws() {
    let set = Set::counts(3, 40, 6, 3);
    for case in every_learner(6) {
        check_laws(&*case.learner, case.targets.of(&set), 1e-9);
        check_laws(&*case.learner, set.weighted(case.targets.of(&set)), 1e-9);
    }
}

/// Rows of one class change the vector of that class; all others stay shared, however many rows.
#[test]
fn rows_of_one_class_change_its_vector_alone() {
    let set = Set::counts(4, 60, 6, 3);
    for data in set.classified() {
        let rows: Vec<usize> = (0..60).collect();
        for class in 0..3 {
            let of_class = |row: &usize| set.codes()[*row] as usize == class;
            let own: Vec<usize> = rows.iter().copied().filter(of_class).collect();
            let others: Vec<_> = (0..3).filter(|&c| c != class).map(|c| (0, c)).collect();
            for case in every_learner(6) {
                // The fourth vector of Gaussian naive Bayes has the moments of all rows.
                if matches!(case.name, "discrete_nb" | "gaussian_nb") {
                    let parent = updated(&*case.learner, &data, &rows);
                    let child = updated(&*parent, &data, &own);
                    assert_eq!(shared(&states(&*child), &states(&*parent)), others);
                }
            }
        }
    }
}

/// Three clusters, each on an axis and far from the others, in both layouts.
fn clusters() -> (Array2<f64>, Array1<u32>) {
    let x = Array2::from_shape_fn((30, 3), |(row, feature)| {
        let is_own = if row % 3 == feature { 10.0 } else { 0.0 };
        is_own + (row * 7 + feature) as f64 % 5.0 / 10.0
    });
    let classes = (0..30).map(|row| row % 3).collect();
    (x, classes)
}

/// Rows of one cluster change its centre.
#[test]
fn rows_of_one_cluster_change_its_centre_alone() {
    let (x, _) = clusters();
    let data = Dataset::dense(x.view()).expect("valid");
    let empty = OnlineKMeans::new(KMeansOptions { n_clusters: 3 }, 3).expect("valid");
    let parent = updated(&empty, &data, &(0..15).collect::<Vec<_>>());
    let child = updated(&*parent, &data, &[16, 19, 22, 25, 28]);
    assert_eq!(
        shared(&states(&*child), &states(&*parent)),
        [(0, 0), (0, 2)]
    );
}

/// One against the rest: an output changes with the rows that are within its margin, no other.
#[test]
fn rows_beyond_the_margin_change_nothing() {
    let (x, classes) = clusters();
    // One row that the first two classes have wrong, far from the third.
    let doubtful = array![[6.0, 5.0, 0.0]];
    let x = concatenate![Axis(0), x, doubtful];
    let classes = concatenate![Axis(0), classes, array![1]];
    let data = Dataset::dense(x.view()).expect("valid");
    let data = data.with_classes(classes.view(), 3).expect("valid");
    let training: Vec<usize> = (0..30).cycle().take(120).collect();
    let pegasos = PegasosOptions {
        alpha: 0.01,
        ..PegasosOptions::default()
    };
    let learners: [(Box<dyn Learner>, f64); 3] = [
        (
            Box::new(Perceptron::new(PerceptronOptions::default(), 3, 3).expect("valid")),
            0.0,
        ),
        (
            Box::new(
                PassiveAggressive::new(PassiveAggressiveOptions::default(), 3, 3).expect("valid"),
            ),
            1.0,
        ),
        (Box::new(Pegasos::new(pegasos, 3, 3).expect("valid")), 1.0),
    ];
    for (empty, margin) in learners {
        let parent = updated(&*empty, &data, &training);
        let before = states(&*parent);
        let mut n_partly_shared = 0;
        for row in 0..31 {
            let outputs = evaluate(&*parent, &data, &[row]);
            let target = |output: usize| {
                let is_own = classes[row] as usize == output;
                if is_own { 1.0 } else { -1.0 }
            };
            let is_beyond = |&(_, output): &(usize, usize)| {
                let product = target(output) * outputs[output];
                if margin > 0.0 {
                    product >= margin
                } else {
                    product > 0.0
                }
            };
            let expected: Vec<_> = every_vector(&before)
                .into_iter()
                .filter(is_beyond)
                .collect();
            let child = updated(&*parent, &data, &[row]);
            assert_eq!(shared(&states(&*child), &before), expected, "row {row}");
            n_partly_shared += usize::from((1..3).contains(&expected.len()));
            let mut log = UndoLog::default();
            let mut child = parent.fork().expect("forked");
            child
                .update(&data, &[row], Some(&mut log))
                .expect("updated");
            assert_eq!(shared(&states(&*child), &before), expected, "row {row}");
        }
        assert!(n_partly_shared > 0, "the test is empty");
        // A row that changes nothing, and then one that does: only the latter costs a copy.
        let far = (0..30).find(|&row| {
            let child = updated(&*parent, &data, &[row]);
            shared(&states(&*child), &before).len() == 3
        });
        let far = far.expect("most rows are far from the margin");
        let child = updated(&*parent, &data, &[far; 20]);
        assert_eq!(shared(&states(&*child), &before).len(), 3);
        let mixed = updated(&*parent, &data, &[far, far, 30]);
        assert_eq!(shared(&states(&*mixed), &before), [(0, 2)]);
    }
}
