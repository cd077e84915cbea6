//! Scalings of the columns as Python sees them.

use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use super::convert::RowsArg;
use super::folds::PyFolds;
use super::run::run;
use crate::Result;
use crate::data::Dataset;
use crate::linear::{self, FoldMaps};

/// Shift, or none, and scale: one row for all samples, then one per fold.
pub(super) type ScalingArg<'py> = (
    Option<PyReadonlyArray2<'py, f64>>,
    PyReadonlyArray2<'py, f64>,
);

/// The core's copy of a scaling.
pub(super) fn to_scaling((shift, scale): ScalingArg<'_>) -> Result<FoldMaps> {
    let shift = shift.map(|shift| shift.as_array().to_owned());
    FoldMaps::new(shift, scale.as_array().to_owned())
}

/// Columns of every training set as sums of the columns of all rows.
#[pyclass(frozen, module = "onefold._core", name = "ColumnSums")]
#[derive(Debug)]
pub(super) struct PyColumnSums(Arc<FoldMaps>);

#[pymethods]
impl PyColumnSums {
    /// `shift` and `values` have one row for all samples, then one per fold. Of the entries of the map,
    /// which are ordered by column of the rows, `starts` says where those of each begin, and `columns`
    /// which columns of the fold they add to.
    #[new]
    fn new(
        shift: PyReadonlyArray2<'_, f64>,
        starts: Vec<usize>,
        columns: Vec<usize>,
        values: PyReadonlyArray2<'_, f64>,
    ) -> Result<Self> {
        let maps = FoldMaps::of_sums(
            &shift.as_array().to_owned(),
            starts,
            columns,
            &values.as_array().to_owned(),
        )?;
        maps.check_finite()?;
        Ok(Self(Arc::new(maps)))
    }
}

/// A scaling, or sums of columns.
#[derive(FromPyObject)]
pub(super) enum MapsArg<'py> {
    /// Sums.
    Sums(Py<PyColumnSums>),
    /// Shift and scale.
    Scaling(ScalingArg<'py>),
}

/// The core's maps.
pub(super) fn to_maps(maps: MapsArg<'_>) -> Result<Arc<FoldMaps>> {
    match maps {
        MapsArg::Sums(sums) => Ok(Arc::clone(&sums.get().0)),
        MapsArg::Scaling(scaling) => to_scaling(scaling).map(Arc::new),
    }
}

/// Weights, means and variances: those of all samples, then those of the training set of each fold.
type MomentArrays<'py> = (
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray2<f64>>,
);

/// Σ w of every training set, and the weighted means and variances of its columns.
#[pyfunction]
#[pyo3(signature = (X, weights, folds, *, n_jobs=1))]
#[allow(non_snake_case)] // scikit-learn's X
pub(super) fn training_moments<'py>(
    py: Python<'py>,
    X: RowsArg<'py>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    folds: &PyFolds,
    n_jobs: usize,
) -> PyResult<MomentArrays<'py>> {
    let data = Dataset::new_unchecked(X.rows()?);
    let data = match &weights {
        None => data,
        Some(weights) => data.with_weights(weights.as_array())?,
    };
    let found = run(py, n_jobs, None, |monitor| {
        linear::training_moments(&data, &folds.0, monitor)
    })?;
    Ok((
        found.weights.into_pyarray(py),
        found.means.into_pyarray(py),
        found.variances.into_pyarray(py),
    ))
}
