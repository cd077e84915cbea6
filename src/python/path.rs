//! Elastic nets as Python sees them.

use std::sync::Arc;

use numpy::{IntoPyArray, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::convert::RowsArg;
use super::incremental::ResamplingArg;
use super::run::run;
use super::scaling::{ScalingArg, to_scaling};
use super::virtual_cv::{Weights, dataset};
use crate::path::{ElasticNetPath, Path, PathResult, Penalty, Wanted};

/// Elastic nets that differ in the penalty, (`alpha`, `l1_ratio`) each.
#[pyclass(frozen, module = "onefold._core", name = "ElasticNetPath")]
#[derive(Debug)]
pub(super) struct PyElasticNetPath(ElasticNetPath);

#[pymethods]
impl PyElasticNetPath {
    /// `scaling` is the shift (or none) and the scale of all rows and of every fold; `tol` is the
    /// duality gap at which a problem is solved, relative to the squares of its centred targets.
    #[new]
    #[pyo3(signature = (penalties, *, intercept=true, positive=false, scaling=None, tol=1e-12))]
    fn new(
        penalties: Vec<(f64, f64)>,
        intercept: bool,
        positive: bool,
        scaling: Option<ScalingArg<'_>>,
        tol: f64,
    ) -> PyResult<Self> {
        let penalty = |(alpha, l1_ratio)| Penalty { alpha, l1_ratio };
        Ok(Self(ElasticNetPath {
            penalties: penalties.into_iter().map(penalty).collect(),
            fit_intercept: intercept,
            positive,
            tol,
            scaling: scaling.map(to_scaling).transpose()?.map(Arc::new),
        }))
    }

    fn __repr__(&self) -> String {
        format!("ElasticNetPath({} penalties)", self.0.penalties.len())
    }
}

/// Fits every fold for every penalty. The dictionary holds `gaps` and `n_iterations` (fold × penalty ×
/// output) and `spreads` (fold × output); what is asked for of `predictions` (test row × penalty ×
/// output), `errors` (fold × penalty × output) and `coefficients` (fold × penalty × output × feature,
/// the intercept last); and, with `all_rows`, `all_coefficients`, `all_gaps`, `all_n_iterations` and
/// `all_spreads` of the fit to all rows.
#[pyfunction]
#[pyo3(signature = (
    X, y, weights, cv, path, *, predictions=false, errors=false, coefficients=false, all_rows=false,
    n_jobs=1, progress=None
))]
#[allow(
    non_snake_case,
    clippy::too_many_arguments,
    clippy::fn_params_excessive_bools
)]
// scikit-learn's X; keywords in Python
pub(super) fn path_cv<'py>(
    py: Python<'py>,
    X: RowsArg<'py>,
    y: PyReadonlyArray2<'py, f64>,
    weights: Weights<'py>,
    cv: ResamplingArg<'py>,
    path: &PyElasticNetPath,
    predictions: bool,
    errors: bool,
    coefficients: bool,
    all_rows: bool,
    n_jobs: usize,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (data, folds) = (dataset(X.rows()?, &y, &weights)?, cv.get());
    let wanted = Wanted {
        predictions,
        errors,
        coefficients,
        all_rows,
    };
    let found = run(py, n_jobs, progress.as_ref(), |monitor| {
        Path.solve(&path.0, &data, folds, wanted, monitor)
    })?;
    to_dict(py, found, wanted)
}

fn to_dict(py: Python<'_>, found: PathResult, wanted: Wanted) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("gaps", found.gaps.into_pyarray(py))?;
    dict.set_item("n_iterations", found.n_iterations.into_pyarray(py))?;
    dict.set_item("spreads", found.spreads.into_pyarray(py))?;
    if wanted.predictions {
        dict.set_item("predictions", found.predictions.into_pyarray(py))?;
    }
    if wanted.errors {
        dict.set_item("errors", found.errors.into_pyarray(py))?;
    }
    if wanted.coefficients {
        dict.set_item("coefficients", found.coefficients.into_pyarray(py))?;
    }
    if let Some(all) = found.all_rows {
        dict.set_item("all_coefficients", all.coefficients.into_pyarray(py))?;
        dict.set_item("all_gaps", all.gaps.into_pyarray(py))?;
        dict.set_item("all_n_iterations", all.n_iterations.into_pyarray(py))?;
        dict.set_item("all_spreads", all.spreads.into_pyarray(py))?;
    }
    Ok(dict)
}
