//! Cross-validate with the Rust crate, on matrices of `ndarray`.
//!
//! Every engine takes a `Dataset`, which borrows the rows, and `Folds`, and returns held-out outputs
//! for every sample. Run it with `cargo run --release --example ndarray`.

#![allow(clippy::print_stdout)]

use ndarray::{Array1, Array2, Axis};
use onefold::learners::{Pegasos, PegasosOptions};
use onefold::tree::Tree;
use onefold::virtual_cv::{LinearModel, Virtual};
use onefold::{Dataset, Engine, Folds, Job, Monitor, Result};

const N_ROWS: usize = 20_000;
const N_FEATURES: usize = 20;

fn main() -> Result<()> {
    let mut noise = Uniform(1);
    let x = Array2::from_shape_simple_fn((N_ROWS, N_FEATURES), || noise.next());
    let slopes = Array1::linspace(-1.0, 1.0, N_FEATURES);
    let y = x.dot(&slopes) + Array1::from_shape_simple_fn(N_ROWS, || noise.next());

    classify(&x, &y)?;
    regress(&x, &y)
}

/// Leave-one-out of an incremental learner: `TreeCV`, about log2(2n) passes over the rows.
fn classify(x: &Array2<f64>, y: &Array1<f64>) -> Result<()> {
    let classes = y.mapv(|value| u32::from(value > 0.0));
    let data = Dataset::dense(x.view())?.with_classes(classes.view(), 2)?;
    let options = PegasosOptions {
        alpha: 1e-3,
        ..PegasosOptions::default()
    };
    let learner = Pegasos::new(options, N_FEATURES, 2)?;
    let folds = Folds::leave_one_out(N_ROWS)?;
    let found = Tree::default().cross_validate(&learner, &data, &folds)?;
    let margins = found.by_sample(&folds);
    let right = (margins.column(0).iter().zip(&classes))
        .filter(|(margin, class)| (**margin > 0.0) == (**class == 1))
        .count();
    let passes = found.cost.rows_fed as f64 / N_ROWS as f64;
    println!("Pegasos, leave-one-out of {N_ROWS} rows: {passes:.1} passes over them");
    println!("  accuracy {:.4}", right as f64 / N_ROWS as f64);
    Ok(())
}

/// Ten folds of ridge regression for several penalties, from one factorisation.
fn regress(x: &Array2<f64>, y: &Array1<f64>) -> Result<()> {
    let y = y.view().insert_axis(Axis(1));
    let data = Dataset::dense(x.view())?.with_values(y)?;
    let folds = Folds::shuffled(N_ROWS, 10, 0)?;
    let models = [0.1, 100.0, 10_000.0].map(|alpha| LinearModel {
        alpha,
        ..LinearModel::default()
    });
    let candidates: Vec<_> = models.iter().collect();
    let found = Virtual.out_of_fold(&candidates, &Job::new(&data, &folds, &Monitor::new()))?;
    println!("Ridge regression, 10 folds, mean squared error");
    for (model, outcome) in models.iter().zip(&found) {
        let errors = outcome.by_sample(&folds) - y;
        let mse = errors.powi(2).sum() / N_ROWS as f64;
        println!("  alpha {:>7}  {mse:.5}", model.alpha);
    }
    Ok(())
}

/// Numbers from −1 to 1 (`SplitMix64`).
struct Uniform(u64);

impl Uniform {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }
}
