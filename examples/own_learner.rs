//! A learner of your own in every engine of incremental learners.
//!
//! `NearestMean` keeps the mean of the rows of each of two classes. It implements `Learner`: its
//! numbers are a `State`, so that models are forked without copies, and `learn` is written once for
//! dense and sparse rows. That is enough for TreeCV and refits; with `merge` it is cross-validated
//! by merging, too. Run it with `cargo run --release --example own_learner`.

#![allow(clippy::print_stdout)]

use ndarray::Array2;
use onefold::data::{Examples, Layout, Row, with_layout};
use onefold::learners::{CostModel, Learner, State, UndoLog};
use onefold::prelude::*;

/// The class whose mean is nearer.
#[derive(Clone, Debug)]
struct NearestMean {
    /// The sum of the rows of each class, and their numbers.
    state: State,
}

impl NearestMean {
    fn new(n_features: usize) -> Self {
        let sums = [vec![0.0; n_features], vec![0.0; n_features]];
        let state = State::new(sums, vec![0.0; 2]);
        Self { state }
    }

    fn learn(&mut self, data: &Examples<'_, impl Layout>, rows: &[usize]) -> Result<()> {
        data.check_features(self.state.vector(0).len())?;
        let codes = data.classes(2)?;
        for &row in rows {
            let class = codes[row] as usize;
            self.state.scalars_mut()[class] += 1.0;
            let sum = self.state.vector_mut(class);
            for (feature, value) in data.rows().row(row).entries() {
                sum[feature] += value;
            }
        }
        Ok(())
    }

    /// ‖x − m₀‖² − ‖x − m₁‖², which is positive if the second mean is nearer.
    fn output(&self, row: impl Row) -> f64 {
        let counts = self.state.scalars();
        let [first, second] =
            [0, 1].map(|class| (self.state.vector(class), counts[class].max(1.0)));
        let squared_norm =
            |(sum, n): (&[f64], f64)| sum.iter().map(|s| (s / n).powi(2)).sum::<f64>();
        let product = |(sum, n): (&[f64], f64)| -> f64 {
            row.entries()
                .map(|(feature, value)| value * sum[feature] / n)
                .sum()
        };
        squared_norm(first) - squared_norm(second) + 2.0 * (product(second) - product(first))
    }
}

impl Learner for NearestMean {
    fn n_outputs(&self) -> usize {
        1
    }

    fn cost_model(&self, data: &Dataset<'_>) -> CostModel {
        CostModel {
            update: data.mean_nnz(),
            copy: self.state.len() as f64,
            undo: None,
            atomic_batches: false,
        }
    }

    fn update(
        &mut self,
        data: &Dataset<'_>,
        rows: &[usize],
        _: Option<&mut UndoLog>,
    ) -> Result<()> {
        with_layout!(data, |examples| self.learn(examples, rows))
    }

    fn evaluate(&self, data: &Dataset<'_>, rows: &[usize], out: &mut [f64]) -> Result<()> {
        with_layout!(data, |examples| {
            for (out, &row) in out.iter_mut().zip(rows) {
                *out = self.output(examples.rows().row(row));
            }
            Ok(())
        })
    }

    fn fork(&self) -> Result<Box<dyn Learner>> {
        Ok(Box::new(self.clone()))
    }

    fn state(&self) -> &State {
        &self.state
    }

    fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    fn is_mergeable(&self) -> bool {
        true
    }

    fn merge(&mut self, other: &dyn Learner) -> Result<()> {
        let other = other.state();
        for class in 0..2 {
            for (sum, value) in self
                .state
                .vector_mut(class)
                .iter_mut()
                .zip(other.vector(class))
            {
                *sum += value;
            }
            self.state.scalars_mut()[class] += other.scalars()[class];
        }
        Ok(())
    }
}

fn main() -> Result<()> {
    let x = Array2::from_shape_fn((1000, 3), |(i, j)| (i as f64 * (j + 2) as f64).sin());
    let codes = x.column(0).mapv(|value| u32::from(value > 0.0));
    let data = Dataset::dense(x.view())?.with_classes(codes.view(), 2)?;
    let folds = Folds::shuffled(1000, 10, 0)?;
    let learner = NearestMean::new(3);
    let engines: [(&str, &dyn Engine<dyn Learner>); 3] = [
        ("tree", &Tree::default()),
        ("merge", &Merge::default()),
        ("refit", &Refit::default()),
    ];
    for (name, engine) in engines {
        let result = engine.cross_validate(&learner, &data, &folds)?;
        let outputs = result.by_sample(&folds);
        let hits = outputs.iter().zip(&codes);
        let hits = hits
            .filter(|(output, code)| (**output > 0.0) == (**code == 1))
            .count();
        println!(
            "{name:6} accuracy {:.3}, {} rows fed",
            hits as f64 / 1000.0,
            result.cost.rows_fed
        );
        assert!(hits > 950);
    }
    Ok(())
}
