//! Cross-validation as Python calls it: one function for all engines, one class of results.
//!
//! Two functions beside it return errors without predictions: `virtual_errors` and `path_errors`.
//! An engine adds one arm to [`cross_validate`] and a function that reads its candidates and options.

use numpy::{IntoPyArray, PyArray2, PyArray3};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::convert::ExamplesArg;
use super::folds::{PyFolds, PySplits};
use super::learners::PyLearner;
use super::run::run;
use super::{forest, incremental, newton, path, svm, virtual_cv};
use crate::data::Dataset;
use crate::engine::{Finished, Job, Keep, OutOfFold};
use crate::{Error, Resampling, Result};

/// `Folds` or `Splits`.
#[derive(FromPyObject)]
pub(super) enum ResamplingArg<'py> {
    Folds(PyRef<'py, PyFolds>),
    Splits(PyRef<'py, PySplits>),
}

impl ResamplingArg<'_> {
    pub(super) fn get(&self) -> &dyn Resampling {
        match self {
            Self::Folds(folds) => &folds.0,
            Self::Splits(splits) => &splits.0,
        }
    }
}

/// What is found of a candidate. Attributes that were not asked for, or that an engine does not
/// have, are empty.
#[pyclass(frozen, module = "onefold._core", name = "OutOfFold")]
#[derive(Debug)]
pub(super) struct PyOutOfFold {
    /// Held-out row × output, in test order.
    #[pyo3(get)]
    outputs: Py<PyArray2<f64>>,
    /// Counters by name.
    #[pyo3(get)]
    cost: Py<PyDict>,
    /// The fitted learner of every fold.
    #[pyo3(get)]
    models: Py<PyList>,
    /// Fold × output × feature, the intercept last.
    #[pyo3(get)]
    coefficients: Py<PyArray3<f64>>,
    /// The rule that an engine with several has chosen.
    #[pyo3(get)]
    method: &'static str,
    /// Iterations: fold × output.
    #[pyo3(get)]
    iterations: Py<PyArray2<u64>>,
    /// What is left of the duality gap: fold × output.
    #[pyo3(get)]
    gaps: Py<PyArray2<f64>>,
    /// The same relative to the variance of the targets of the fold.
    #[pyo3(get)]
    relative_gaps: Py<PyArray2<f64>>,
    /// Relative gradients that are left: fold × output, NaN where there is no optimum.
    #[pyo3(get)]
    relative_gradients: Py<PyArray2<f64>>,
    /// Folds without a model, and why.
    #[pyo3(get)]
    undetermined: Vec<(usize, String)>,
    /// Folds that were fitted to their training rows alone, for want of digits.
    #[pyo3(get)]
    refitted: Vec<usize>,
    /// What leaving out each row does, by name, if an engine leaves out rows one by one.
    #[pyo3(get)]
    leave_one_out: Option<Py<PyDict>>,
}

impl PyOutOfFold {
    /// The result of an engine, with the counters that it has, and its models as Python's.
    pub(super) fn new(
        py: Python<'_>,
        result: OutOfFold,
        counters: &[(&'static str, u64)],
        models: Vec<PyLearner>,
    ) -> PyResult<Self> {
        let cost = PyDict::new(py);
        for (name, count) in counters {
            cost.set_item(name, count)?;
        }
        let status = result.status;
        let undetermined = status.undetermined.into_iter();
        let rows = result.leave_one_out.map(|rows| newton::to_dict(py, rows));
        Ok(Self {
            outputs: result.outputs.into_pyarray(py).unbind(),
            cost: cost.unbind(),
            models: models.into_pyobject(py)?.cast_into()?.unbind(),
            coefficients: result.coefficients.into_pyarray(py).unbind(),
            method: status.method,
            iterations: status.iterations.into_pyarray(py).unbind(),
            gaps: status.gaps.into_pyarray(py).unbind(),
            relative_gaps: status.relative_gaps.into_pyarray(py).unbind(),
            relative_gradients: status.relative_gradients.into_pyarray(py).unbind(),
            undetermined: undetermined.map(|one| (one.fold, one.reason)).collect(),
            refitted: status.refitted,
            leave_one_out: rows.transpose()?.map(Bound::unbind),
        })
    }
}

/// The arguments of a call that all engines have.
pub(super) struct Call<'a, 'py> {
    pub(super) candidates: Vec<Bound<'py, PyAny>>,
    pub(super) data: Dataset<'a>,
    pub(super) folds: &'a dyn Resampling,
    pub(super) options: Bound<'py, PyAny>,
    pub(super) keep: Keep,
    n_jobs: usize,
    finished: Option<Bound<'py, PyList>>,
    progress: Option<Bound<'py, PyAny>>,
}

impl Call<'_, '_> {
    /// Runs an engine without the GIL, and converts what it finds of each candidate. Candidates
    /// that are finished are in the list of the caller even if others fail.
    pub(super) fn run(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Job<'_>, &mut Finished<'_>) -> Result<()> + Send,
        convert: impl Fn(usize, OutOfFold) -> PyResult<PyOutOfFold>,
    ) -> PyResult<Vec<Py<PyOutOfFold>>> {
        let (data, folds, keep) = (&self.data, self.folds, self.keep);
        let mut results = vec![];
        let ended = run(py, self.n_jobs, self.progress.as_ref(), |monitor| {
            let job = Job::new(data, folds, monitor).keeping(keep);
            work(&job, &mut |index, result| results.push((index, result)))
        });
        let mut converted: Vec<_> = self.candidates.iter().map(|_| None).collect();
        for (index, result) in results {
            let result = Py::new(py, convert(index, result)?)?;
            if let Some(finished) = &self.finished {
                finished.append((index, &result))?;
            }
            converted[index] = Some(result);
        }
        ended?;
        Ok(converted.into_iter().flatten().collect())
    }
}

/// The result of every candidate.
///
/// | engine | candidates | options: attributes of |
/// |---|---|---|
/// | "tree", "merge", "refit" | learners that have learnt nothing, or a tuple of a handler, which has the `examples`, and a Python model | `TreeOptions` |
/// | "seeded" | attributes of the facade's `SvmParams` | `SvmOptions` |
/// | "forest" | attributes of the facade's `ForestParams` | `ForestOptions` |
/// | "newton" | `SmoothModel` | `NewtonOptions` |
/// | "path" | `ElasticNet`, or `SparseLogistic` | none |
/// | "virtual" | `LeastSquares`, or `KernelRidge` on rows of a kernel matrix | none |
///
/// `keep` names what else is kept: "models", "coefficients", "undetermined" (folds without a model get
/// NaN). `finished` receives the index and the result of each finished candidate, even if others fail.
#[pyfunction]
#[pyo3(signature = (
    engine, candidates, examples, folds, options=None, *, keep=None, n_jobs=1, finished=None,
    progress=None
))]
#[allow(clippy::too_many_arguments)] // the facade's keywords
pub(super) fn cross_validate<'py>(
    py: Python<'py>,
    engine: &str,
    candidates: Vec<Bound<'py, PyAny>>,
    examples: Option<ExamplesArg<'py>>,
    folds: ResamplingArg<'py>,
    options: Option<Bound<'py, PyAny>>,
    keep: Option<Vec<String>>,
    n_jobs: usize,
    finished: Option<Bound<'py, PyList>>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Vec<Py<PyOutOfFold>>> {
    let folds = folds.get();
    let call = Call {
        candidates,
        data: match &examples {
            Some(examples) => examples.dataset()?,
            None => Dataset::external(folds.n_samples()),
        },
        folds,
        options: options.unwrap_or_else(|| py.None().into_bound(py)),
        keep: to_keep(&keep.unwrap_or_default())?,
        n_jobs,
        finished,
        progress,
    };
    match engine {
        "tree" | "merge" | "refit" => incremental::cross_validate(py, engine, &call),
        "seeded" => svm::cross_validate(py, &call),
        "forest" => forest::cross_validate(py, &call),
        "newton" => newton::cross_validate(py, &call),
        "path" => path::cross_validate(py, &call),
        "virtual" => virtual_cv::cross_validate(py, &call),
        other => {
            let rule =
                "'tree', 'merge', 'refit', 'seeded', 'forest', 'newton', 'path' or 'virtual'";
            Err(Error::parameter("engine", rule, format_args!("{other:?}")).into())
        }
    }
}

fn to_keep(names: &[String]) -> Result<Keep> {
    let mut keep = Keep::default();
    for name in names {
        match name.as_str() {
            "models" => keep.models = true,
            "coefficients" => keep.coefficients = true,
            "undetermined" => keep.undetermined = true,
            other => {
                let rule = "'models', 'coefficients' or 'undetermined'";
                return Err(Error::parameter("keep", rule, format_args!("{other:?}")));
            }
        }
    }
    Ok(keep)
}
