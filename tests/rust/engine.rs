//! What else the engine promises: foreign learners, errors, progress, cancellation.

use std::sync::atomic::{AtomicU64, Ordering};

use onefold::data::{Dense, Examples, Layout};
use onefold::tree::{
    Effort, Learner, Log, Model, Options, Order, Outcome, Strategy, Undo, cross_validate, refit,
};
use onefold::{Error, Folds, Monitor, Result};

use crate::sets::Set;
use crate::tree::{Claims, folds_of, pegasos, pools, run_in};

/// A learner that cannot log, whose batches must stay whole, and that fails or overflows on demand.
/// Its outputs are the number of rows and of calls it has seen.
#[derive(Debug)]
struct Moody<'a> {
    rows: u32,
    calls: u32,
    fails_on: Option<usize>,
    copies_left: &'a AtomicU64,
}

#[derive(Debug, thiserror::Error)]
#[error("row {0} is not to my taste")]
struct Distaste(usize);

fn moody(fails_on: Option<usize>, copies_left: &AtomicU64) -> Moody<'_> {
    Moody {
        rows: 0,
        calls: 0,
        fails_on,
        copies_left,
    }
}

impl Model for Moody<'_> {
    fn n_outputs(&self) -> usize {
        2
    }

    fn copy(&self) -> Result<Self> {
        let left = self.copies_left.fetch_sub(1, Ordering::Relaxed);
        if left == 0 {
            return Err(Error::Callback("no more copies".into()));
        }
        Ok(Self { ..*self })
    }

    fn copy_from(&mut self, source: &Self) -> Result<()> {
        *self = source.copy()?;
        Ok(())
    }

    fn save(&self, _: &mut Log) {
        panic!("cannot log");
    }

    fn revert(&mut self, _: &mut Log, _: usize) {
        panic!("cannot log");
    }
}

impl<R: Layout> Learner<Examples<'_, R>> for Moody<'_> {
    fn effort(&self, _: &Examples<'_, R>) -> Effort {
        Effort {
            update: 1e9,
            copy: 1.0,
            undo: None,
            indivisible: true,
        }
    }

    fn learn<U: Undo>(&mut self, _: &Examples<'_, R>, rows: &[usize], _: &mut U) -> Result<()> {
        if let Some(row) = self.fails_on.filter(|row| rows.contains(row)) {
            return Err(Error::Callback(Box::new(Distaste(row))));
        }
        self.rows += u32::try_from(rows.len()).expect("few");
        self.calls += 1;
        Ok(())
    }

    fn evaluate(&self, _: &Examples<'_, R>, rows: &[usize], out: &mut [f64]) -> Result<()> {
        for (row, out) in rows.iter().zip(out.chunks_exact_mut(2)) {
            out[0] = f64::from(self.rows);
            out[1] = if *row == 11 {
                f64::NEG_INFINITY
            } else {
                f64::from(self.calls)
            };
        }
        Ok(())
    }
}

#[test]
fn learners_of_another_kind_run_on_the_same_recursion() {
    let values = [0.0; 12];
    let data = |n| Examples::unlabelled(Dense::new(&values[..n], n, 1).expect("shape"));
    let folds = |n| Folds::contiguous(n, n / 2).expect("valid");
    let plenty = AtomicU64::new(u64::MAX);
    let options = Options::default();
    for pool in pools() {
        run_in(pool.as_ref(), || {
            let run = |learner: &Moody<'_>, n, options| {
                let monitor = Monitor::new();
                cross_validate(learner, &data(n), &folds(n), options, &monitor)
            };
            // Every phase in one call: as many calls as the leaf is deep.
            let outcome = run(&moody(None, &plenty), 8, &options).expect("valid");
            assert_eq!(outcome.outputs, [6.0, 2.0].repeat(8));
            assert_eq!((outcome.n_outputs, outcome.cost.copies), (2, 3));

            let message = |outcome: Result<Outcome>| outcome.expect_err("refused").to_string();
            let revert = Options {
                strategy: Strategy::Revert,
                ..options
            };
            assert_eq!(
                message(run(&moody(None, &plenty), 8, &revert)),
                "strategy must be 'auto' or 'copy' for a learner that keeps no undo log, got 'revert'"
            );
            // Row 7 is fed at the root, row 3 only further down: the leftmost error wins.
            for row in [7, 3] {
                let error = run(&moody(Some(row), &plenty), 8, &options).expect_err("refused");
                assert!(matches!(&error, Error::Callback(e) if e.is::<Distaste>()));
                assert_eq!(error.to_string(), format!("row {row} is not to my taste"));
            }
            let few = AtomicU64::new(2);
            assert_eq!(
                message(run(&moody(None, &few), 8, &options)),
                "no more copies"
            );
            let expected =
                "the learner's output for sample 11 (fold 5) is -inf: outputs must be finite";
            assert!(message(run(&moody(None, &plenty), 12, &options)).starts_with(expected));
            let refitted = refit(
                &moody(None, &plenty),
                &data(12),
                &folds(12),
                Order::Fixed,
                &Monitor::new(),
            );
            assert!(message(refitted).starts_with(expected));
        });
    }
}

#[test]
fn folds_of_other_samples_are_refused() {
    let set = Set::new(13, 20, 4, 2);
    let (dense, _) = set.classified();
    let folds = Folds::contiguous(21, 3).expect("valid");
    let expected = "samples of cv: expected length 20, got 21";
    let monitor = Monitor::new();
    let tree = cross_validate(
        &pegasos(4, 2),
        &dense,
        &folds,
        &Options::default(),
        &monitor,
    );
    assert_eq!(tree.expect_err("refused").to_string(), expected);
    let refit = refit(&pegasos(4, 2), &dense, &folds, Order::Fixed, &monitor);
    assert_eq!(refit.expect_err("refused").to_string(), expected);
}

#[test]
fn progress_ends_at_its_total_and_cancellation_ends_the_work() {
    let set = Set::new(14, 45, 4, 2);
    let (dense, _) = set.classified();
    for pool in pools() {
        run_in(pool.as_ref(), || {
            for folds in folds_of(45) {
                let monitor = Monitor::new();
                let learner = Claims {
                    learner: pegasos(4, 2),
                    update: 1e5,
                    copy: 1.0,
                };
                let run =
                    || cross_validate(&learner, &dense, &folds, &Options::default(), &monitor);
                run().expect("valid");
                refit(&learner, &dense, &folds, Order::Fixed, &monitor).expect("valid");
                let (done, total) = monitor.progress();
                assert_eq!(done, total);
                monitor.cancel();
                assert!(matches!(run(), Err(Error::Interrupted)));
                let refitted = refit(&learner, &dense, &folds, Order::Fixed, &monitor);
                assert!(matches!(refitted, Err(Error::Interrupted)));
            }
        });
    }
}
