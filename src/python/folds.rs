//! `Folds` and `Splits` as Python sees them.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::tree::{GrowingSets, Placement};
use crate::{Folds, Resampling as _, Result, Splits};

/// A partition of the samples: every sample is held out in exactly one fold.
///
/// The `folds` of a result are such, where `cv` was a partition; they are a `cv` themselves.
///
/// Examples
/// --------
/// >>> import numpy as np
/// >>> from onefold import Folds
/// >>> folds = Folds.from_labels(np.array([0, 1, 0, 2, 1]), 3)
/// >>> folds
/// Folds(5 samples, 3 folds)
/// >>> folds.test(1), folds.train(1)
/// (array([1, 4]), array([0, 2, 3]))
/// >>> folds.labels, folds.rows
/// (array([0, 1, 0, 2, 1]), array([0, 2, 1, 4, 3]))
#[pyclass(frozen, module = "onefold._core", name = "Folds")]
#[derive(Debug)]
pub(super) struct PyFolds(pub(super) Folds);

/// Any other list of train and test sets.
///
/// Examples
/// --------
/// >>> import numpy as np
/// >>> from onefold import Splits
/// >>> splits = Splits(5, [(np.array([0, 1]), np.array([2])), (np.array([0, 1, 2]), np.array([3, 4]))])
/// >>> splits
/// Splits(5 samples, 2 splits)
/// >>> splits.train(1), splits.test(1)
/// (array([0, 1, 2]), array([3, 4]))
#[pyclass(frozen, module = "onefold._core", name = "Splits")]
#[derive(Debug)]
pub(super) struct PySplits(pub(super) Splits);

/// What pickle calls to make an object again, and with which arguments.
type Reduced<'py> = (Bound<'py, PyAny>, Bound<'py, PyTuple>);

fn to_array(py: Python<'_>, rows: impl Iterator<Item = usize>) -> Bound<'_, PyArray1<i64>> {
    #[allow(clippy::cast_possible_wrap)] // rows come from numpy arrays, whose lengths are signed
    rows.map(|row| row as i64)
        .collect::<Vec<_>>()
        .into_pyarray(py)
}

fn check(index: usize, len: usize) -> PyResult<()> {
    if index < len {
        Ok(())
    } else {
        Err(PyIndexError::new_err(format!("fold {index} of {len}")))
    }
}

/// Row numbers or labels; a negative one is an error that names the array.
pub(super) fn from_array(numbers: &PyReadonlyArray1<'_, i64>, name: &str) -> PyResult<Vec<usize>> {
    let numbers = numbers.as_slice()?.iter().enumerate();
    let checked = numbers.map(|(position, &number)| {
        usize::try_from(number).map_err(|_| {
            let message = format!("{name}[{position}] is {number}: it must not be negative");
            PyValueError::new_err(message)
        })
    });
    checked.collect()
}

#[pymethods]
impl PyFolds {
    /// `n_folds` runs of consecutive samples.
    #[staticmethod]
    fn contiguous(n_samples: usize, n_folds: usize) -> Result<Self> {
        Folds::contiguous(n_samples, n_folds).map(Self)
    }

    /// The folds that `labels`, one of `0..n_folds` a sample, name.
    #[staticmethod]
    fn from_labels(labels: PyReadonlyArray1<'_, i64>, n_folds: usize) -> PyResult<Self> {
        Ok(Self(Folds::from_labels(
            &from_array(&labels, "labels")?,
            n_folds,
        )?))
    }

    /// Assigns the i-th sample of class c to fold `assignments[c][i]`.
    #[staticmethod]
    fn from_class_assignments(
        classes: PyReadonlyArray1<'_, u32>,
        assignments: Vec<PyReadonlyArray1<'_, u32>>,
        n_folds: usize,
    ) -> PyResult<Self> {
        let assignments = assignments
            .iter()
            .map(|folds| folds.as_slice())
            .collect::<Result<Vec<_>, _>>()?;
        let classes = classes.as_slice()?;
        Ok(Self(Folds::from_class_assignments(
            classes,
            &assignments,
            n_folds,
        )?))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let py = slf.py();
        let arguments = (slf.get().labels(py), slf.get().__len__());
        Ok((
            slf.get_type().getattr("from_labels")?,
            arguments.into_pyobject(py)?,
        ))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __repr__(&self) -> String {
        format!(
            "Folds({} samples, {} folds)",
            self.0.n_samples(),
            self.0.len()
        )
    }

    /// How many samples there are.
    #[getter]
    fn n_samples(&self) -> usize {
        self.0.n_samples()
    }

    /// The fold of every sample.
    #[getter]
    fn labels<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        to_array(py, self.0.labels().into_iter())
    }

    /// The rows that are held out, fold after fold.
    #[getter]
    fn rows<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        to_array(py, self.0.rows(0..self.0.len()).iter().copied())
    }

    /// Where each fold starts among `rows`, and at last where they all end.
    #[getter]
    fn starts<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        to_array(py, self.0.starts().iter().copied())
    }

    /// The fold at each leaf of the tree when folds are placed at random.
    fn random_placement<'py>(&self, py: Python<'py>, seed: u64) -> Bound<'py, PyArray1<i64>> {
        let placement = Placement::Random { seed };
        to_array(py, placement.leaves(self.0.len()).into_iter())
    }

    /// The rows a fold holds out.
    fn test<'py>(&self, py: Python<'py>, fold: usize) -> PyResult<Bound<'py, PyArray1<i64>>> {
        check(fold, self.0.len())?;
        Ok(to_array(py, self.0.rows(fold..fold + 1).iter().copied()))
    }

    /// The rows a fold trains on, in increasing order.
    fn train<'py>(&self, py: Python<'py>, fold: usize) -> PyResult<Bound<'py, PyArray1<i64>>> {
        check(fold, self.0.len())?;
        let (before, after) = self.0.complement(fold);
        let mut rows = [before, after].concat();
        rows.sort_unstable();
        Ok(to_array(py, rows.into_iter()))
    }
}

#[pymethods]
impl PySplits {
    /// Splits of `n_samples` samples from (train, test) pairs of row arrays.
    #[new]
    fn new(
        n_samples: usize,
        pairs: Vec<(PyReadonlyArray1<'_, i64>, PyReadonlyArray1<'_, i64>)>,
    ) -> PyResult<Self> {
        let pairs = pairs
            .iter()
            .enumerate()
            .map(|(split, (train, test))| {
                let train = from_array(train, &format!("train set {split}"))?;
                let test = from_array(test, &format!("test set {split}"))?;
                Ok((train, test))
            })
            .collect::<PyResult<_>>()?;
        Ok(Self(Splits::new(n_samples, pairs)?))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let py = slf.py();
        let pairs = (0..slf.get().__len__())
            .map(|split| Ok((slf.get().train(py, split)?, slf.get().test(py, split)?)))
            .collect::<PyResult<Vec<_>>>()?;
        let arguments = (slf.get().n_samples(), pairs);
        Ok((slf.get_type().into_any(), arguments.into_pyobject(py)?))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __repr__(&self) -> String {
        format!(
            "Splits({} samples, {} splits)",
            self.0.n_samples(),
            self.0.len()
        )
    }

    /// How many samples there are.
    #[getter]
    fn n_samples(&self) -> usize {
        self.0.n_samples()
    }

    /// The rows that are held out, split after split.
    #[getter]
    fn rows<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        to_array(
            py,
            (0..self.0.len())
                .flat_map(|split| self.0.test(split))
                .copied(),
        )
    }

    /// Where each split starts among `rows`, and at last where they all end.
    #[getter]
    fn starts<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        to_array(py, self.0.test_starts().into_iter())
    }

    /// The rows a split holds out.
    fn test<'py>(&self, py: Python<'py>, fold: usize) -> PyResult<Bound<'py, PyArray1<i64>>> {
        check(fold, self.0.len())?;
        Ok(to_array(py, self.0.test(fold).iter().copied()))
    }

    /// How many rows refits learn more than once, of training sets that begin with others; with
    /// `any_order`, of training sets that contain others.
    fn n_shared_rows(&self, any_order: bool) -> usize {
        GrowingSets::new(&self.0, any_order).n_shared()
    }

    /// The rows a split trains on.
    fn train<'py>(&self, py: Python<'py>, fold: usize) -> PyResult<Bound<'py, PyArray1<i64>>> {
        check(fold, self.0.len())?;
        Ok(to_array(py, self.0.train(fold).iter().copied()))
    }
}
