//! Rescaled models are those of scaled rows, and merging with a scaling per fold equals refits.

use std::sync::Arc;

use ndarray::{Array1, Array2};
use onefold::data::Dataset;
use onefold::learners::Learner;
use onefold::linear::{FoldMap, FoldMaps};
use onefold::merge::Merge;
use onefold::{Engine as _, Error, Folds, Job, Monitor, Resampling as _};

use crate::algebra::assert_close;
use crate::laws::{bits, updated};
use crate::naive_bayes::{every_discrete, every_gaussian};
use crate::sets::Set;
use crate::textbook::evaluate;

const N: usize = 40;
const P: usize = 6;

/// Learners that can be rescaled.
fn learners() -> Vec<Box<dyn Learner>> {
    let mut all: Vec<Box<dyn Learner>> = vec![];
    for learner in every_gaussian(P) {
        all.push(Box::new(learner));
    }
    // The last two are Bernoulli.
    for learner in every_discrete(P).into_iter().take(4) {
        all.push(Box::new(learner));
    }
    all
}

fn dense(set: &Set) -> Array2<f64> {
    let rows: Vec<f64> = set.dense().flatten().copied().collect();
    Array2::from_shape_vec((N, P), rows).expect("one shape")
}

fn scaled(x: &Array2<f64>, scaling: &FoldMap) -> Array2<f64> {
    Array2::from_shape_fn(x.dim(), |(i, j)| scaling.apply(j, x[(i, j)]))
}

/// Shifts that leave counts positive, and scales, different in every fold.
fn scaling(n_folds: usize, has_shift: bool) -> FoldMaps {
    let wave = |(fold, j): (usize, usize)| ((fold * P + j) as f64).sin();
    let scale = Array2::from_shape_fn((n_folds + 1, P), |at| 1.5 + wave(at));
    let shift = Array2::from_shape_fn((n_folds + 1, P), |at| -1.0 - wave(at).abs());
    FoldMaps::new(has_shift.then_some(shift), scale).expect("one shape")
}

fn merge(scaling: &FoldMaps) -> Merge {
    let scaling = Some(Arc::new(scaling.clone()));
    Merge { scaling }
}

fn with_targets<'a>(
    x: &'a Array2<f64>,
    codes: &'a Array1<u32>,
    weights: Option<&'a Array1<f64>>,
) -> Dataset<'a> {
    let data = Dataset::dense(x.view()).expect("contiguous");
    let data = data.with_classes(codes.view(), 3).expect("valid");
    match weights {
        None => data,
        Some(weights) => data.with_weights(weights.view()).expect("valid"),
    }
}

#[test]
fn a_rescaled_model_is_that_of_scaled_rows() {
    let set = Set::counts(5, N, P, 3);
    let (x, codes) = (dense(&set), set.codes().to_owned());
    let weights = set.weights().to_owned();
    let rows: Vec<usize> = (0..N).collect();
    for has_shift in [false, true] {
        let all = scaling(1, has_shift);
        let x = scaled(&x, all.fold(0));
        for weights in [None, Some(&weights)] {
            let expected = with_targets(&x, &codes, weights);
            for learner in learners() {
                let once = evaluate(&*updated(&*learner, &expected, &rows), &expected, &rows);
                let layouts = set.classified();
                let layouts = weights.map_or(layouts, |_| set.weighted(layouts));
                for data in layouts {
                    let mut model = updated(&*learner, &data, &rows);
                    let handle = model.fork().expect("forked");
                    let before = bits(&*handle);
                    model.rescale(all.fold(0)).expect("rescaled");
                    let found = evaluate(&*model, &expected, &rows);
                    assert_close(&found, &once, 1e-9, &format!("{learner:?} {has_shift}"));
                    assert_eq!(bits(&*handle), before, "other handles stay as they are");
                }
            }
        }
    }
}

#[test]
fn merging_with_a_scaling_per_fold_equals_refits() {
    let set = Set::counts(6, N, P, 3);
    let (x, codes) = (dense(&set), set.codes().to_owned());
    let weights = set.weights().to_owned();
    let all = learners();
    let candidates: Vec<&dyn Learner> = all.iter().map(|learner| &**learner).collect();
    for (n_folds, has_shift) in [(2, true), (5, false), (5, true), (N, false), (N, true)] {
        let folds = Folds::shuffled(N, n_folds, 3).expect("valid");
        let scaling = scaling(n_folds, has_shift);
        for weights in [None, Some(&weights)] {
            let layouts = set.classified();
            let layouts = weights.map_or(layouts, |_| set.weighted(layouts));
            for data in layouts {
                let monitor = Monitor::new();
                let job = Job::new(&data, &folds, &monitor);
                let found = merge(&scaling).out_of_fold(&candidates, &job);
                let found = found.expect("merged");
                for (learner, found) in all.iter().zip(found) {
                    assert!(found.cost.rows_fed <= 4 * N as u64);
                    let mut expected = vec![];
                    for fold in 0..n_folds {
                        let x = scaled(&x, scaling.fold(fold));
                        let data = with_targets(&x, &codes, weights);
                        let model = updated(&**learner, &data, &folds.training(fold).concat());
                        expected.extend(evaluate(&*model, &data, folds.held_out(fold)));
                    }
                    let outputs: Vec<f64> = found.outputs.iter().copied().collect();
                    assert_close(&outputs, &expected, 1e-9, &format!("{learner:?} {n_folds}"));
                }
            }
        }
    }
}

#[test]
fn what_cannot_be_rescaled_is_refused() {
    let set = Set::counts(7, N, P, 3);
    let [data, _] = set.classified();
    let folds = Folds::contiguous(N, 4).expect("valid");
    let bernoulli = every_discrete(P).pop().expect("the last");
    let run = |folds: &Folds, scaling: &FoldMaps| {
        let found = merge(scaling).cross_validate(&bernoulli, &data, folds);
        found
            .err()
            .map_or(String::new(), |error: Error| error.to_string())
    };
    assert!(run(&folds, &scaling(4, true)).contains("one whose models can be rescaled"));
    assert!(run(&folds, &scaling(3, true)).contains("folds of the scaling"));
    let narrow = Array2::ones((5, P - 1));
    let narrow = FoldMaps::new(None, narrow).expect("one shape");
    assert!(run(&folds, &narrow).contains("features of the scaling"));
    assert!(FoldMaps::new(Some(Array2::ones((4, P))), Array2::ones((5, P))).is_err());
}
