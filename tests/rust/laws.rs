//! The laws of learners (see `onefold::tree`), to be checked for each of them.

use std::fmt::Debug;

use onefold::data::{Csr, Dense, Examples, Samples};
use onefold::tree::{Few, Learner, Log, Order};

/// Checks every law for a learner that has learnt nothing, on the same examples in both layouts.
///
/// CSR and dense outputs may differ by `tolerance` × the larger of 1 and the output: 0 for learners
/// whose sums are exact on the small integers of the test data.
pub(crate) fn check_laws<L>(
    empty: &L,
    (dense, csr): (&Examples<'_, Dense<'_>>, &Examples<'_, Csr<'_, i32>>),
    tolerance: f64,
) where
    L: Debug,
    L: for<'a> Learner<Examples<'a, Dense<'a>>>,
    L: for<'a> Learner<Examples<'a, Csr<'a, i32>>>,
{
    check_on(empty, dense);
    check_on(empty, csr);
    let order = order(dense.n_samples());
    let outputs = |a: &[f64], b: &[f64]| {
        for (a, b) in a.iter().zip(b) {
            let allowed = tolerance * a.abs().max(1.0);
            assert!((a - b).abs() <= allowed, "dense {a}, CSR {b}");
        }
    };
    outputs(
        &evaluate(&fed(empty, dense, &order), dense),
        &evaluate(&fed(empty, csr, &order), csr),
    );
}

/// The laws that concern one kind of data.
pub(crate) fn check_on<D: Samples, L: Learner<D> + Debug>(empty: &L, data: &D) {
    let order = order(data.n_samples());
    let half = order.len() / 2;
    let (a, b) = order.split_at(half);
    let model = fed(empty, data, a);
    let before = bits(&model);

    // Value semantics: feeding a copy changes the copy and nothing else.
    let mut copy = model.copy().expect("copied");
    assert_eq!(bits(&copy), before);
    copy.update(data, b).expect("updated");
    let after = bits(&copy);
    assert_eq!(bits(&model), before);
    assert_ne!(after, before, "the rows taught nothing: the test is empty");

    // Determinism, and copying over whatever was there.
    copy.copy_from(&model).expect("copied");
    assert_eq!(bits(&copy), before);
    copy.update(data, b).expect("updated");
    assert_eq!(bits(&copy), after);

    // Batching: in one call, in two, row by row, and with empty calls between.
    if !empty.effort(data).indivisible {
        assert_eq!(bits(&fed(empty, data, &order)), after);
        let mut slow = empty.copy().expect("copied");
        for row in order.chunks(1) {
            slow.update(data, row).expect("updated");
            slow.update(data, &[]).expect("updated");
        }
        assert_eq!(bits(&slow), after);
    }

    // Company: two models at once, whatever the lengths.
    for (first, second) in [(a, b), (b, &a[1..]), (&b[..1], a), (a, &[]), (&[], b)] {
        let mut models = [0, 1].map(|_| model.copy().expect("copied"));
        let [one, other] = &mut models;
        L::learn_both([one, other], data, [first, second]).expect("updated");
        for (together, rows) in models.iter().zip([first, second]) {
            assert_eq!(bits(together), bits(&fed(&model, data, rows)));
        }
    }

    // Settling: a few rows, each from a model that has learnt the others as the tree has it.
    let n_outputs = model.n_outputs();
    for n_rows in 1..=Few::MOST.min(half) {
        let rows = &order[1..=n_rows];
        let mut buffer = Vec::new();
        let mut few = Few::new(rows, 3, Order::Fixed, &mut buffer);
        let mut out = vec![f64::NAN; n_rows * n_outputs];
        if model.settle(data, &mut few, &mut out).expect("evaluated") {
            let expected = last_nodes(&model, data, rows);
            for (found, expected) in out.iter().zip(expected) {
                let allowed = 1e-11 * expected.abs().max(1.0);
                assert!((found - expected).abs() <= allowed, "{found}, {expected}");
            }
        }
    }

    // Evaluation: row by row or at once, and it is asked in any order.
    let outputs = evaluate(&model, data);
    for &row in &order {
        let mut out = vec![f64::NAN; n_outputs];
        model.evaluate(data, &[row], &mut out).expect("evaluated");
        assert_eq!(out, outputs[row * n_outputs..][..n_outputs]);
    }

    if empty.effort(data).undo.is_some() {
        check_reverts(model, data, b);
    }
}

/// The outputs of rows that are a fold each, by Algorithm 1.
fn last_nodes<D: Samples, L: Learner<D>>(model: &L, data: &D, rows: &[usize]) -> Vec<f64> {
    if rows.len() == 1 {
        let mut out = vec![f64::NAN; model.n_outputs()];
        model.evaluate(data, rows, &mut out).expect("evaluated");
        return out;
    }
    let (left, right) = rows.split_at(rows.len().div_ceil(2));
    let mut outputs = last_nodes(&fed(model, data, right), data, left);
    outputs.extend(last_nodes(&fed(model, data, left), data, right));
    outputs
}

/// Nested logged updates go back step by step; a logged update is an update.
fn check_reverts<D: Samples, L: Learner<D> + Debug>(mut model: L, data: &D, rows: &[usize]) {
    let mut log = Log::default();
    let mut steps = vec![];
    for batch in rows.chunks(3) {
        let mut plain = model.copy().expect("copied");
        plain.update(data, batch).expect("updated");
        steps.push((log.len(), bits(&model)));
        model.learn(data, batch, &mut log).expect("updated");
        assert_eq!(bits(&model), bits(&plain));
    }
    for (len, state) in steps.into_iter().rev() {
        model.revert(&mut log, len);
        assert_eq!(bits(&model), state);
    }
    let state = bits(&model);
    model.save(&mut log);
    model.update(data, rows).expect("updated");
    model.revert(&mut log, 0);
    assert_eq!(bits(&model), state);
}

/// An order that is not that of the rows.
fn order(n: usize) -> Vec<usize> {
    (0..n).map(|i| (i * 7 + 3) % n).collect()
}

fn fed<D: Samples, L: Learner<D>>(empty: &L, data: &D, rows: &[usize]) -> L {
    let mut model = empty.copy().expect("copied");
    model.update(data, rows).expect("updated");
    model
}

fn evaluate<D: Samples, L: Learner<D>>(model: &L, data: &D) -> Vec<f64> {
    let rows: Vec<usize> = (0..data.n_samples()).collect();
    let mut out = vec![f64::NAN; rows.len() * model.n_outputs()];
    model.evaluate(data, &rows, &mut out).expect("evaluated");
    assert!(out.iter().all(|v| v.is_finite()));
    out
}

/// Every bit of a model: `Debug` shows numbers so that they can be read back, and tells −0 from 0.
fn bits<L: Debug>(model: &L) -> String {
    format!("{model:?}")
}
