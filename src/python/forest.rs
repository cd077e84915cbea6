//! Decision trees and random forests as Python sees them.

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use super::cross_validate::{Call, PyOutOfFold};
use crate::engine::{Engine as _, OutOfFold};
use crate::forest::{
    Bootstrap, Forest, Forests, Impurity, Pruning, SampleCount, Splitter, Stop, TreeOptions,
};
use crate::{Error, Result};

/// The attributes of the facade's `ForestParams`.
#[derive(FromPyObject)]
struct ForestParams<'py> {
    criterion: String,
    max_depth: Option<usize>,
    min_samples_split: SampleCountArg,
    min_samples_leaf: SampleCountArg,
    min_weight_fraction_leaf: f64,
    min_impurity_decrease: f64,
    max_features: usize,
    splitter: String,
    ccp_alpha: f64,
    max_leaf_nodes: Option<usize>,
    seeds: PyReadonlyArray1<'py, u32>,
    sample_seeds: Option<PyReadonlyArray1<'py, u32>>,
    n_draws: Option<Vec<usize>>,
}

/// The attributes of the facade's `ForestOptions`.
#[derive(FromPyObject)]
struct ForestOptions {
    min_difference: f32,
    on_finished: Option<Py<PyAny>>,
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
        let splitter = match self.splitter.as_str() {
            "best" => Splitter::Best,
            "random" => Splitter::Random,
            other => return Err(Error::parameter("splitter", "'best' or 'random'", other)),
        };
        let pruning = match (self.max_leaf_nodes, self.ccp_alpha) {
            (None, 0.0) => Pruning::None,
            (None, alpha) => Pruning::CostComplexity(alpha),
            (Some(max_leaves), 0.0) => Pruning::LeafNodes(max_leaves),
            (Some(_), alpha) => {
                let rule = "0 for trees with max_leaf_nodes";
                return Err(Error::parameter("ccp_alpha", rule, alpha));
            }
        };
        let tree = TreeOptions {
            impurity,
            splitter,
            min_samples_leaf: (&self.min_samples_leaf).into(),
            min_weight_fraction_leaf: self.min_weight_fraction_leaf,
            max_features: self.max_features,
            stop,
            pruning,
        };
        let numbers = |seeds: &PyReadonlyArray1<'_, u32>| seeds.as_array().to_vec();
        let bootstrap = self.n_draws.clone().map(|n_draws| Bootstrap {
            seeds: numbers(self.sample_seeds.as_ref().unwrap_or(&self.seeds)),
            n_draws,
        });
        Ok(Forest {
            tree,
            seeds: numbers(&self.seeds),
            bootstrap,
        })
    }
}

/// Cross-validates trees and forests; outputs are test row × class, or × 1.
///
/// The option `on_finished` is called with the index and the result of each candidate as soon as it is
/// finished, on a thread of the pool; nothing is returned then.
pub(super) fn cross_validate(
    py: Python<'_>,
    call: &Call<'_, '_>,
) -> PyResult<Vec<Py<PyOutOfFold>>> {
    let params = call.candidates.iter().map(PyAnyMethods::extract);
    let params = params.collect::<PyResult<Vec<ForestParams<'_>>>>()?;
    let forests = params.iter().map(ForestParams::forest);
    let forests = forests.collect::<Result<Vec<_>>>()?;
    let forests: Vec<&Forest> = forests.iter().collect();
    let ForestOptions {
        min_difference,
        on_finished,
    } = call.options.extract()?;
    let engine = Forests { min_difference };
    let mut raised = Ok(());
    let results = call.run(
        py,
        |job, finished| {
            let Some(receive) = &on_finished else {
                return engine.run(&forests, job, finished);
            };
            engine.run(&forests, job, &mut |index, result| {
                let pass_on = |py: Python<'_>| -> PyResult<()> {
                    receive
                        .call1(py, (index, converted(py, result)?))
                        .map(|_| ())
                };
                // At the exit of the interpreter, no one is left to receive it.
                if let Some(Err(error)) = Python::try_attach(pass_on) {
                    raised = Err(error);
                }
            })
        },
        |_, result| converted(py, result),
    );
    raised.and(results)
}

fn converted(py: Python<'_>, result: OutOfFold) -> PyResult<PyOutOfFold> {
    let counters = result.cost.of_models();
    PyOutOfFold::new(py, result, &counters[..3], vec![])
}
