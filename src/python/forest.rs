//! Decision trees and random forests as Python sees them.

use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::convert::{ExamplesArg, cost_by_name};
use super::incremental::ResamplingArg;
use super::run::run;
use crate::engine::{Engine as _, Job};
use crate::forest::{Forest, Forests, Impurity, SampleCount, Stop, TreeOptions};
use crate::{Error, Result};

/// The attributes of the facade's `ForestParams`.
#[derive(FromPyObject)]
pub(super) struct ForestParams<'py> {
    criterion: String,
    max_depth: Option<usize>,
    min_samples_split: SampleCountArg,
    min_samples_leaf: SampleCountArg,
    min_weight_fraction_leaf: f64,
    min_impurity_decrease: f64,
    max_features: usize,
    seeds: PyReadonlyArray1<'py, u32>,
    n_draws: Option<Vec<usize>>,
}

#[derive(FromPyObject)]
enum SampleCountArg {
    Number(usize),
    Share(f64),
}

impl From<&SampleCountArg> for SampleCount {
    fn from(count: &SampleCountArg) -> Self {
        match *count {
            SampleCountArg::Number(number) => Self::Number(number),
            SampleCountArg::Share(share) => Self::Share(share),
        }
    }
}

impl ForestParams<'_> {
    fn forest(&self) -> Result<Forest> {
        let impurity = match self.criterion.as_str() {
            "gini" => Impurity::Gini,
            "entropy" | "log_loss" => Impurity::Entropy,
            "squared_error" => Impurity::SquaredError,
            other => {
                let rule = "'gini', 'entropy', 'log_loss' or 'squared_error'";
                return Err(Error::parameter("criterion", rule, other));
            }
        };
        let stop = Stop {
            max_depth: self.max_depth.unwrap_or(usize::MAX),
            min_samples_split: (&self.min_samples_split).into(),
            min_impurity_decrease: self.min_impurity_decrease,
        };
        let tree = TreeOptions {
            impurity,
            min_samples_leaf: (&self.min_samples_leaf).into(),
            min_weight_fraction_leaf: self.min_weight_fraction_leaf,
            max_features: self.max_features,
            stop,
        };
        Ok(Forest {
            tree,
            seeds: self.seeds.as_array().to_vec(),
            n_draws: self.n_draws.clone(),
        })
    }
}

/// Cross-validates candidates. Appends to `found` the number of each finished candidate, even if others
/// fail, and a dictionary of outputs (test row × class, or × 1) and counters.
#[pyfunction]
#[pyo3(signature = (examples, folds, candidates, found, *, n_jobs=1, progress=None))]
pub(super) fn forest_cv(
    py: Python<'_>,
    examples: ExamplesArg<'_>,
    folds: ResamplingArg<'_>,
    candidates: Vec<ForestParams<'_>>,
    found: &Bound<'_, PyList>,
    n_jobs: usize,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let forests = candidates.iter().map(ForestParams::forest);
    let forests = forests.collect::<Result<Vec<_>>>()?;
    let forests: Vec<&Forest> = forests.iter().collect();
    let (data, folds) = (examples.dataset()?, folds.get());
    let mut outcomes = vec![];
    let ended = run(py, n_jobs, progress, |monitor| {
        let mut finished = |index, outcome| outcomes.push((index, outcome));
        Forests.run(&forests, &Job::new(&data, folds, monitor), &mut finished)
    });
    // Finished candidates are kept if the rest is interrupted.
    for (index, outcome) in outcomes {
        let one = PyDict::new(py);
        one.set_item("cost", cost_by_name(py, &outcome.cost.of_models()[..3])?)?;
        one.set_item("outputs", outcome.outputs.into_pyarray(py))?;
        found.append((index, one))?;
    }
    ended
}
