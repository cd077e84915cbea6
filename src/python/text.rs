//! Texts as counts of words, as Python sees them.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use super::run::run;
use crate::text::{self, Characters, CountRows, Selection, Statistics, WordCounts, Words};

/// Documents: texts, or their bytes in UTF-8.
type Documents<'py> = Vec<Bound<'py, PyAny>>;

fn borrow<'a>(documents: &'a Documents<'_>) -> PyResult<Vec<&'a str>> {
    let texts = documents.iter().map(|document| {
        if let Ok(text) = document.cast::<PyString>() {
            return text.to_str();
        }
        let bytes = document.cast::<PyBytes>()?.as_bytes();
        std::str::from_utf8(bytes).map_err(|error| PyValueError::new_err(error.to_string()))
    });
    texts.collect()
}

/// The characters outside of ASCII that occur in some document.
#[pyfunction]
pub(super) fn text_characters(
    py: Python<'_>,
    documents: Documents<'_>,
    n_jobs: usize,
) -> PyResult<String> {
    let texts = borrow(&documents)?;
    let found = run(py, n_jobs, None, |monitor| {
        text::distinct_characters(&texts, monitor)
    })?;
    Ok(found.into_iter().collect())
}

/// Where rows begin, columns, counts.
type CountArrays<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i32>>,
    Bound<'py, PyArray1<i32>>,
);

/// Counts of the words and n-grams of all documents, the terms, and the number of words of each.
#[pyfunction]
#[pyo3(signature = (
    documents, characters, replacements, is_word, *, lowercase, stop_words, ngram_range, n_jobs
))]
#[allow(clippy::too_many_arguments)] // the parameters of a vectorizer
pub(super) fn text_counts<'py>(
    py: Python<'py>,
    documents: Documents<'py>,
    characters: &str,
    replacements: Vec<String>,
    is_word: Vec<bool>,
    lowercase: bool,
    stop_words: Vec<String>,
    ngram_range: (usize, usize),
    n_jobs: usize,
) -> PyResult<(CountArrays<'py>, Vec<String>, Bound<'py, PyArray1<u8>>)> {
    let texts = borrow(&documents)?;
    let characters: Vec<char> = characters.chars().collect();
    let replacements: Vec<&str> = replacements.iter().map(String::as_str).collect();
    let words = Words {
        characters: Characters::new(&characters, &replacements, &is_word)?,
        lowercase,
        stop_words: stop_words.into_iter().collect(),
        ngram_range,
    };
    let found = run(py, n_jobs, None, |monitor| {
        text::count_words(&texts, &words, monitor)
    })?;
    let WordCounts {
        indptr,
        indices,
        counts,
        terms,
        n_words,
    } = found;
    let arrays = (
        indptr.into_pyarray(py),
        indices.into_pyarray(py),
        counts.into_pyarray(py),
    );
    Ok((arrays, terms, n_words.into_pyarray(py)))
}

/// The arrays of a matrix of counts.
type CountArgs<'py> = (
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, i32>,
    PyReadonlyArray1<'py, i32>,
);

/// Numbers of rows and first positions, by column.
type ColumnArrays<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>);

/// In how many of some rows each column occurs, and where it occurs first.
#[pyfunction]
pub(super) fn text_statistics<'py>(
    py: Python<'py>,
    counts: CountArgs<'py>,
    n_columns: usize,
    rows: PyReadonlyArray1<'py, i64>,
) -> PyResult<ColumnArrays<'py>> {
    let (indptr, indices, values) = (
        counts.0.as_slice()?,
        counts.1.as_slice()?,
        counts.2.as_slice()?,
    );
    let rows = rows.as_slice()?;
    let Statistics { n_rows, first } = run(py, 1, None, |monitor| {
        let matrix = CountRows::new(indptr, indices, values, n_columns)?;
        text::statistics(matrix, rows, monitor)
    })?;
    Ok((n_rows.into_pyarray(py), first.into_pyarray(py)))
}

/// Some rows and columns of a matrix of counts.
#[pyfunction]
#[pyo3(signature = (counts, rows, new_columns, keys=None))]
pub(super) fn text_select<'py>(
    py: Python<'py>,
    counts: CountArgs<'py>,
    rows: PyReadonlyArray1<'py, i64>,
    new_columns: PyReadonlyArray1<'py, i32>,
    keys: Option<PyReadonlyArray1<'py, i64>>,
) -> PyResult<CountArrays<'py>> {
    let (indptr, indices, values) = (
        counts.0.as_slice()?,
        counts.1.as_slice()?,
        counts.2.as_slice()?,
    );
    let (rows, new_columns) = (rows.as_slice()?, new_columns.as_slice()?);
    let keys = keys.as_ref().map(|keys| keys.as_slice()).transpose()?;
    let selected = run(py, 1, None, |monitor| {
        let matrix = CountRows::new(indptr, indices, values, new_columns.len())?;
        text::select(matrix, rows, new_columns, keys, monitor)
    })?;
    let Selection {
        indptr,
        indices,
        counts,
    } = selected;
    Ok((
        indptr.into_pyarray(py),
        indices.into_pyarray(py),
        counts.into_pyarray(py),
    ))
}
