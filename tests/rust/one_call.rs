//! Engines are called alike, and data are checked when they are made.

use ndarray::{Array1, Array2, ArrayView1, Axis, array};
use onefold::data::{Csr, Rows};
use onefold::learners::{Pegasos, PegasosOptions};
use onefold::newton::{GlmSpec, Newton};
use onefold::path::{ElasticNet, ElasticNetSpec, PathOutputs, Penalty};
use onefold::svm::{Kernel, Seeded, SvmSpec};
use onefold::tree::Tree;
use onefold::virtual_cv::{LinearModel, Virtual};
use onefold::{Dataset, Engine, Folds, Job, Keep, Monitor, Resampling, Result};

const N: usize = 120;

fn rows() -> Array2<f64> {
    Array2::from_shape_fn((N, 3), |(i, j)| (i as f64 * (j + 2) as f64).sin())
}

/// The share of held-out rows whose output is positive exactly if their class is the second.
fn accuracy(outputs: ArrayView1<'_, f64>, codes: &Array1<u32>) -> f64 {
    let hits = outputs
        .iter()
        .zip(codes)
        .filter(|(output, code)| (**output > 0.0) == (**code == 1));
    hits.count() as f64 / codes.len() as f64
}

#[test]
fn binary_outputs_are_positive_for_the_second_class() {
    let x = rows();
    let codes = x.column(0).mapv(|value| u32::from(value > 0.2));
    let data = Dataset::dense(x.view()).expect("finite");
    let data = data.with_classes(codes.view(), 2).expect("valid");
    let folds = Folds::shuffled(N, 6, 1).expect("valid");
    let options = PegasosOptions {
        fit_intercept: true,
        ..PegasosOptions::default()
    };
    let pegasos = Pegasos::new(options, 3, 2).expect("valid");
    let svm = SvmSpec {
        kernels: vec![Kernel::Linear],
        ..SvmSpec::default()
    };
    let by_tree = Tree::default().cross_validate(&pegasos, &data, &folds);
    let by_seeds = Seeded::default().cross_validate(&svm, &data, &folds);
    let by_steps = Newton::default().cross_validate(&GlmSpec::default(), &data, &folds);
    for found in [by_tree, by_seeds, by_steps] {
        let outputs = found.expect("valid").by_sample(&folds);
        assert!(accuracy(outputs.column(0), &codes) > 0.9);
    }
}

/// Penalties share one pass over the rows, and have the results of a path.
#[test]
fn a_candidate_of_the_path_is_one_penalty() {
    let x = rows();
    let y = x
        .column(0)
        .mapv(|value| 3.0 * value + 1.0)
        .insert_axis(Axis(1));
    let data = Dataset::dense(x.view()).expect("finite");
    let data = data.with_values(y.view()).expect("valid");
    let folds = Folds::shuffled(N, 5, 0).expect("valid");
    let penalties = [(1.0, 1.0), (0.01, 1.0), (0.1, 0.5)];
    let penalties = penalties.map(|(alpha, l1_ratio)| Penalty { alpha, l1_ratio });
    let candidates = penalties.map(|penalty| ElasticNetSpec {
        penalty,
        ..ElasticNetSpec::default()
    });
    let other = ElasticNetSpec {
        fit_intercept: false,
        ..candidates[1].clone()
    };
    let [a, b, c] = candidates.each_ref();
    let monitor = Monitor::new();
    let keep = Keep {
        coefficients: true,
        ..Keep::default()
    };
    let job = Job::new(&data, &folds, &monitor).keeping(keep);
    let found = ElasticNet
        .out_of_fold(&[a, &other, b, c], &job)
        .expect("solved");
    let fed: Vec<u64> = found.iter().map(|one| one.cost.rows_fed).collect();
    assert_eq!(fed, [N as u64, N as u64, 0, 0], "one pass per family");
    let wanted = PathOutputs {
        predictions: true,
        coefficients: true,
        ..PathOutputs::default()
    };
    let expected = ElasticNet.solve(&[a, b, c], &data, &folds, wanted, &monitor);
    let expected = expected.expect("solved");
    let mixed = ElasticNet.solve(&[a, &other], &data, &folds, wanted, &monitor);
    assert!(
        mixed
            .expect_err("two families")
            .to_string()
            .starts_with("penalty must be")
    );
    for (penalty, one) in [0, 2, 3].into_iter().enumerate() {
        let one = &found[one];
        assert_eq!(
            one.outputs,
            expected.predictions.index_axis(Axis(1), penalty)
        );
        assert_eq!(
            one.coefficients,
            expected.coefficients.index_axis(Axis(1), penalty)
        );
        assert_eq!(one.status.gaps, expected.gaps.index_axis(Axis(1), penalty));
        assert_eq!(one.status.iterations.dim(), (5, 1));
    }
    let alone = ElasticNet
        .cross_validate(&other, &data, &folds)
        .expect("solved");
    assert_eq!(found[1].outputs, alone.outputs);
    assert!(alone.coefficients.is_empty());
}

/// Folds that do not determine a model are an error, or listed if that is asked for.
#[test]
fn undetermined_folds_are_listed_on_request() {
    let x = rows();
    let y = x.column(1).insert_axis(Axis(1)).to_owned();
    let weights: Array1<f64> = (0..N).map(|row| f64::from(u8::from(row < 20))).collect();
    let data = Dataset::dense(x.view()).expect("finite");
    let data = data.with_values(y.view()).expect("valid");
    let data = data.with_weights(weights.view()).expect("valid");
    // The first fold holds out all rows that have a weight.
    let few = Folds::contiguous(N, 6).expect("valid");
    // So many folds that each starts at the solution of all rows.
    let labels: Vec<usize> = (0..N).map(|row| row.saturating_sub(19) / 4).collect();
    let many = Folds::from_labels(&labels, 26).expect("valid");
    let lasso = ElasticNetSpec {
        penalty: Penalty {
            alpha: 0.01,
            l1_ratio: 1.0,
        },
        ..ElasticNetSpec::default()
    };
    for folds in [&few, &many] {
        lists_the_first_fold(&Virtual, &LinearModel::default(), &data, folds);
        lists_the_first_fold(&ElasticNet, &lasso, &data, folds);
    }
}

fn lists_the_first_fold<C>(
    engine: &impl Engine<C>,
    candidate: &C,
    data: &Dataset<'_>,
    folds: &Folds,
) {
    let found = engine.cross_validate(candidate, data, folds);
    let message = found.expect_err("undetermined").to_string();
    assert!(
        message.contains("its training rows have no weight"),
        "{message}"
    );
    let (monitor, keep) = (
        Monitor::new(),
        Keep {
            undetermined: true,
            coefficients: true,
            ..Keep::default()
        },
    );
    let job = Job::new(data, folds, &monitor).keeping(keep);
    let found = engine.out_of_fold(&[candidate], &job).expect("listed");
    let listed = &found[0].status.undetermined;
    let folds_listed: Vec<usize> = listed.iter().map(|one| one.fold).collect();
    assert_eq!(folds_listed, [0]);
    assert!(listed[0].reason.contains("no weight"));
    assert_eq!(found[0].coefficients.dim().0, folds.n_splits());
    let n_held_out = folds.held_out(0).len();
    for (position, output) in found[0].outputs.iter().enumerate() {
        assert_eq!(output.is_nan(), position < n_held_out);
    }
}

#[test]
fn values_that_are_not_finite_are_named() {
    let message = |data: Result<Dataset<'_>>| data.expect_err("refused").to_string();
    let mut x = rows();
    for (bad, name) in [
        (f64::NAN, "NaN"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
    ] {
        x[(70, 2)] = bad;
        let expected = format!("X[70, 2] is {name}: every value must be finite");
        assert_eq!(message(Dataset::dense(x.view())), expected);
        let values = [1.0, bad];
        let csr = Csr::new(&[0_i64, 1, 2], &[0, 4], &values, 9).expect("valid");
        let expected = format!("X[1, 4] is {name}: every value must be finite");
        assert_eq!(message(Dataset::new(Rows::Csr64(csr))), expected);
    }
    // The sum of squares overflows, the values do not.
    let large = array![[1e200, -1e300]];
    assert!(Dataset::dense(large.view()).is_ok());
}

#[test]
fn targets_and_weights_are_as_long_as_the_rows() {
    let x = rows();
    let data = Dataset::dense(x.view()).expect("finite");
    let message = |data: Result<Dataset<'_>>| data.expect_err("refused").to_string();
    for n in [0, N - 1, N + 1] {
        let (values, codes) = (Array2::ones((n, 1)), Array1::zeros(n));
        let weights = Array1::ones(n);
        let expected = format!("y: expected length {N}, got {n}");
        assert_eq!(message(data.with_values(values.view())), expected);
        assert_eq!(message(data.with_classes(codes.view(), 2)), expected);
        let expected = format!("weights: expected length {N}, got {n}");
        assert_eq!(message(data.with_weights(weights.view())), expected);
    }
}
