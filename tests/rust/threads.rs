//! Every engine runs on the pool it is called in, and its results do not depend on the threads.

use ndarray::Array2;
use onefold::learners::{GaussianNb, GaussianNbOptions, Pegasos, PegasosOptions};
use onefold::path::Penalty;
use onefold::prelude::*;
use rayon::ThreadPoolBuilder;

const N: usize = 400;

/// The outputs of every engine, with its name.
fn outputs_of_all() -> Vec<(&'static str, Array2<f64>)> {
    let x = Array2::from_shape_fn((N, 4), |(i, j)| (i as f64 * (j + 2) as f64).sin());
    let y = x.column(0).mapv(|value| 3.0 * value - 0.9);
    let codes = y.mapv(|value| u32::from(value > 0.0));
    let rows = Dataset::dense(x.view()).expect("finite");
    let classes = rows.with_classes(codes.view(), 2).expect("valid");
    let values = rows.with_values(y.view()).expect("valid");
    let folds = Folds::shuffled(N, 7, 0).expect("valid");
    let pegasos = Pegasos::new(PegasosOptions::default(), 4, 2).expect("valid");
    let bayes = GaussianNb::new(GaussianNbOptions::default(), 4, 2).expect("valid");
    let ridge = LinearModel {
        alpha: 1.0,
        ..LinearModel::default()
    };
    let lasso = ElasticNetSpec {
        penalty: Penalty {
            alpha: 0.01,
            l1_ratio: 1.0,
        },
        ..ElasticNetSpec::default()
    };
    let results = [
        (
            "tree",
            Tree::default().cross_validate(&pegasos, &classes, &folds),
        ),
        (
            "merge",
            Merge::default().cross_validate(&bayes, &classes, &folds),
        ),
        (
            "refit",
            Refit::default().cross_validate(&pegasos, &classes, &folds),
        ),
        (
            "seeded",
            Seeded::default().cross_validate(&SvmSpec::default(), &classes, &folds),
        ),
        (
            "newton",
            Newton::default().cross_validate(&GlmSpec::default(), &classes, &folds),
        ),
        ("virtual", Virtual.cross_validate(&ridge, &values, &folds)),
        ("path", ElasticNet.cross_validate(&lasso, &values, &folds)),
    ];
    results
        .map(|(name, result)| (name, result.expect("valid").outputs))
        .into()
}

#[test]
fn all_engines_have_the_same_bits_for_any_number_of_threads() {
    let outside = outputs_of_all();
    for n_threads in [1, 3] {
        let pool = ThreadPoolBuilder::new().num_threads(n_threads).build();
        let inside = pool.expect("threads").install(outputs_of_all);
        for ((name, expected), (_, found)) in outside.iter().zip(&inside) {
            assert_eq!(expected, found, "{name} on {n_threads} threads");
        }
    }
}
