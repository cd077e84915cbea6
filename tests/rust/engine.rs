//! What else engines promise: learners of users, errors, progress, cancellation.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ndarray::{Array2, Axis};
use onefold::data::Dataset;
use onefold::learners::{CandidateSet, CostModel, Learner, State, UndoLog};
use onefold::refit::Refit;
use onefold::tree::{Strategy, Tree};
use onefold::{Engine, Error, Folds, Job, Monitor, OutOfFold, Result, Splits};

use crate::sets::Set;
use crate::tree::{WithCost, folds_of, pegasos, pools, run_in};

/// A learner that cannot log, whose batches must arrive whole, and that fails on demand. Its outputs
/// are the numbers of rows and of calls; that for row 11 is infinite.
#[derive(Debug)]
struct Toy {
    /// Two scalars: rows and calls.
    state: State,
    fails_on: Option<usize>,
    forks_left: Arc<AtomicU64>,
}

#[derive(Debug, thiserror::Error)]
#[error("row {0} is refused")]
struct Refusal(usize);

fn toy(fails_on: Option<usize>, n_forks: u64) -> Toy {
    Toy {
        state: State::new([], vec![0.0; 2]),
        fails_on,
        forks_left: Arc::new(AtomicU64::new(n_forks)),
    }
}

impl Learner for Toy {
    fn n_outputs(&self) -> usize {
        2
    }

    fn cost_model(&self, _: &Dataset<'_>) -> CostModel {
        CostModel {
            update: 1e9,
            copy: 1.0,
            undo: None,
            atomic_batches: true,
        }
    }

    fn update(
        &mut self,
        _: &Dataset<'_>,
        rows: &[usize],
        undo: Option<&mut UndoLog>,
    ) -> Result<()> {
        assert!(undo.is_none(), "cannot log");
        if let Some(row) = self.fails_on.filter(|row| rows.contains(row)) {
            return Err(Error::Callback(Box::new(Refusal(row))));
        }
        let scalars = self.state.scalars_mut();
        scalars[0] += rows.len() as f64;
        scalars[1] += 1.0;
        Ok(())
    }

    fn evaluate(&self, _: &Dataset<'_>, rows: &[usize], out: &mut [f64]) -> Result<()> {
        for (row, out) in rows.iter().zip(out.chunks_exact_mut(2)) {
            out.copy_from_slice(self.state.scalars());
            if *row == 11 {
                out[1] = f64::NEG_INFINITY;
            }
        }
        Ok(())
    }

    fn fork(&self) -> Result<Box<dyn Learner>> {
        let left = self.forks_left.fetch_sub(1, Ordering::Relaxed);
        if left == 0 {
            return Err(Error::Callback("no more forks".into()));
        }
        Ok(Box::new(Self {
            state: self.state.fork(),
            forks_left: Arc::clone(&self.forks_left),
            ..*self
        }))
    }

    fn state(&self) -> &State {
        &self.state
    }

    fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

fn message<T: std::fmt::Debug>(found: Result<T>) -> String {
    found.expect_err("refused").to_string()
}

#[test]
fn learners_of_users_run_on_the_same_recursion() {
    let x = Array2::zeros((12, 1));
    let folds = |n| Folds::contiguous(n, n / 2).expect("valid");
    for pool in pools() {
        run_in(pool.as_ref(), || {
            let run = |learner: &Toy, n, strategy| -> Result<OutOfFold> {
                let tree = Tree {
                    strategy,
                    ..Tree::in_given_order()
                };
                let (x, _) = x.view().split_at(Axis(0), n);
                let dense = tree.cross_validate(learner, &Dataset::dense(x)?, &folds(n))?;
                let external = tree.cross_validate(learner, &Dataset::external(n), &folds(n))?;
                assert_eq!(external.outputs, dense.outputs);
                Ok(external)
            };
            for strategy in [Strategy::Auto, Strategy::Share, Strategy::Copy] {
                // Every batch in one call: as many calls as the leaf is deep.
                let found = run(&toy(None, 100), 8, strategy).expect("valid");
                let expected = [6.0, 2.0].repeat(8);
                assert_eq!(found.outputs.as_slice().expect("contiguous"), expected);
                assert_eq!((found.outputs.dim(), found.cost.copies), ((8, 2), 3));
                // Row 7 is learnt at the root, row 3 only further down: the leftmost error counts.
                for row in [7, 3] {
                    let error = run(&toy(Some(row), 100), 8, strategy).expect_err("refused");
                    assert!(matches!(&error, Error::Callback(e) if e.is::<Refusal>()));
                    assert_eq!(error.to_string(), format!("row {row} is refused"));
                }
            }
            assert_eq!(
                message(run(&toy(None, 100), 8, Strategy::Revert)),
                "strategy must be auto, share or copy for a learner that keeps no undo log, \
                 got revert"
            );
            // The candidate, the root of the tree, and then each of its nodes.
            assert_eq!(
                message(run(&toy(None, 4), 8, Strategy::Auto)),
                "no more forks"
            );
            let expected =
                "the learner's output for sample 11 (fold 5) is -inf: outputs must be finite";
            let found = run(&toy(None, 100), 12, Strategy::Auto);
            assert!(message(found).starts_with(expected));
            let external = Dataset::external(12);
            let found = Refit::default().cross_validate(&toy(None, 100), &external, &folds(12));
            assert!(message(found).starts_with(expected));
        });
    }
}

/// Batches of a learner that needs them whole stay whole beside candidates that do not.
#[test]
fn atomic_batches_stay_whole_among_candidates() {
    let set = Set::new(19, 4000, 9, 2);
    let [dense, _] = set.classified();
    let linear = pegasos(9, 2);
    let candidates: [&dyn Learner; 2] = [&linear, &toy(None, 100)];
    let mut model = CandidateSet::of(&candidates).expect("valid");
    let rows: Vec<usize> = (0..3000).collect();
    model.update(&dense, &rows, None).expect("updated");
    let models = CandidateSet::split(model, 2).expect("split");
    let toy: &dyn Any = &*models[1];
    let toy: &Toy = toy.downcast_ref().expect("a toy");
    assert_eq!(toy.state.scalars(), [3000.0, 1.0]);
}

#[test]
fn folds_of_other_samples_are_refused() {
    let set = Set::new(13, 20, 4, 2);
    let [dense, _] = set.classified();
    let folds = Folds::contiguous(21, 3).expect("valid");
    let expected = "samples of the folds: expected length 20, got 21";
    let learner = pegasos(4, 2);
    let tree = Tree::in_given_order().cross_validate(&learner, &dense, &folds);
    assert_eq!(message(tree), expected);
    let refit = Refit::default().cross_validate(&learner, &dense, &folds);
    assert_eq!(message(refit), expected);
    let splits = Splits::new(20, vec![(vec![0, 1], vec![2])]).expect("valid");
    let tree = Tree::in_given_order().cross_validate(&learner, &dense, &splits);
    assert!(message(tree).contains("the engine tree needs test sets that are a partition"));
}

#[test]
fn progress_ends_at_its_total_and_cancellation_ends_the_work() {
    let set = Set::new(14, 45, 4, 2);
    let [dense, _] = set.classified();
    let learner = WithCost::new(&pegasos(4, 2), 1e5, 1.0);
    let engines: [Box<dyn Engine<dyn Learner> + Sync>; 2] =
        [Box::new(Tree::in_given_order()), Box::new(Refit::default())];
    for pool in pools() {
        run_in(pool.as_ref(), || {
            for folds in folds_of(45) {
                let monitor = Monitor::new();
                for engine in &engines {
                    let found =
                        engine.out_of_fold(&[&learner], &Job::new(&dense, &folds, &monitor));
                    found.expect("valid");
                }
                let (done, total) = monitor.progress();
                assert_eq!(done, total);
                monitor.cancel();
                for engine in &engines {
                    let found =
                        engine.out_of_fold(&[&learner], &Job::new(&dense, &folds, &monitor));
                    assert!(matches!(found, Err(Error::Interrupted)));
                }
            }
        });
    }
}
