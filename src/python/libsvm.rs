//! LIBSVM files: inputs from Python, matrices to numpy.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadwriteArray1};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyInt;

use super::convert::RowsArg;
use super::file::FileArg;
use super::folds::from_array;
use super::run::{guarded, run};
use crate::data::{Dataset, with_layout};
use crate::libsvm::{
    Buffers, Document, GrowableColumn, IndexArray, IndexBase, Input, Labels, Matrix, ReadOptions,
    RowReader, ValueType, Values, convert, load_into,
};

fn inputs(files: Vec<FileArg>) -> Vec<Input> {
    let input = |file| match file {
        FileArg::Path(path) => Input::Path(path),
        FileArg::Open(name, file) => Input::stream(name, file),
    };
    files.into_iter().map(input).collect()
}

/// Options for reading, a dict of the facade.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct ReadOptionsArg {
    n_features: Option<u64>,
    /// "float32" or "float64".
    dtype: String,
    multilabel: bool,
    /// None is "auto".
    zero_based: Option<bool>,
    query_id: bool,
    offset: u64,
    length: Option<u64>,
    allow_nonfinite: bool,
}

impl From<ReadOptionsArg> for ReadOptions {
    fn from(options: ReadOptionsArg) -> Self {
        Self {
            n_features: options.n_features,
            precision: match options.dtype.as_str() {
                "float32" => ValueType::Single,
                _ => ValueType::Double,
            },
            multilabel: options.multilabel,
            base: match options.zero_based {
                None => IndexBase::Auto,
                Some(true) => IndexBase::Zero,
                Some(false) => IndexBase::One,
            },
            query_id: options.query_id,
            offset: options.offset,
            length: options.length,
            allow_nonfinite: options.allow_nonfinite,
            ..Self::default()
        }
    }
}

/// numpy arrays for the values and indices of a file. numpy allocates huge pages, which are filled in
/// a third of the time of ordinary ones.
#[derive(Debug, FromPyObject)]
pub(super) struct BuffersArg<'py>(ValuesArg<'py>, PyReadwriteArray1<'py, i32>);

#[derive(Debug, FromPyObject)]
enum ValuesArg<'py> {
    Single(PyReadwriteArray1<'py, f32>),
    Double(PyReadwriteArray1<'py, f64>),
}

impl BuffersArg<'_> {
    fn buffers(&mut self) -> PyResult<Buffers<'_>> {
        Ok(Buffers {
            values: match &mut self.0 {
                ValuesArg::Single(array) => {
                    Values::Single(GrowableColumn::Borrowed(array.as_slice_mut()?, 0))
                }
                ValuesArg::Double(array) => {
                    Values::Double(GrowableColumn::Borrowed(array.as_slice_mut()?, 0))
                }
            },
            indices: GrowableColumn::Borrowed(self.1.as_slice_mut()?, 0),
        })
    }
}

/// values, indices, indptr, labels, ends of labels, query ids
type Arrays<'py> = (
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
);

/// An array, or the number of items in the buffer of the caller.
fn array<'py, T: numpy::Element>(
    py: Python<'py>,
    column: GrowableColumn<'_, T>,
) -> Bound<'py, PyAny> {
    match column {
        GrowableColumn::Owned(items) => items.into_pyarray(py).into_any(),
        GrowableColumn::Borrowed(_, n) => PyInt::new(py, n).into_any(),
    }
}

fn arrays<'py>(py: Python<'py>, matrix: Matrix<'_>) -> Arrays<'py> {
    let indices = |indices| match indices {
        IndexArray::I32(indices) => array(py, indices),
        IndexArray::I64(indices) => array(py, indices),
    };
    let values = match matrix.values {
        Values::Single(values) => array(py, values),
        Values::Double(values) => array(py, values),
    };
    (
        values,
        indices(matrix.indices),
        indices(matrix.indptr),
        matrix.labels.into_pyarray(py),
        matrix.label_ends.into_pyarray(py),
        matrix.qids.into_pyarray(py),
    )
}

/// Reads whole files: the arrays of each, and the number of features of all.
///
/// For values and indices that fit `buffers`, their number is returned instead of an array.
#[pyfunction]
pub(super) fn load_libsvm<'py>(
    py: Python<'py>,
    files: Vec<FileArg>,
    mut buffers: Vec<BuffersArg<'py>>,
    options: ReadOptionsArg,
    n_jobs: usize,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<(Vec<Arrays<'py>>, u64)> {
    let options = options.into();
    let buffers = buffers.iter_mut().map(BuffersArg::buffers);
    let buffers = buffers.collect::<PyResult<Vec<_>>>()?;
    let inputs = inputs(files).into_iter().zip(buffers).collect();
    let loaded = run(py, n_jobs, progress.as_ref(), |monitor| {
        load_into(inputs, &options, monitor)
    })?;
    let matrices = loaded.matrices.into_iter();
    Ok((
        matrices.map(|matrix| arrays(py, matrix)).collect(),
        loaded.n_features,
    ))
}

/// Converts files to a directory of arrays.
#[pyfunction]
pub(super) fn convert_libsvm(
    py: Python<'_>,
    files: Vec<FileArg>,
    directory: PathBuf,
    options: ReadOptionsArg,
    n_jobs: usize,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<()> {
    let (inputs, options) = (inputs(files), options.into());
    run(py, n_jobs, progress.as_ref(), |monitor| {
        convert(inputs, &directory, &options, monitor)
    })
}

/// Reads files in chunks of rows.
#[pyclass(frozen, module = "onefold._core")]
#[derive(Debug)]
pub(super) struct LibsvmReader {
    /// `None` once it is closed.
    reader: Mutex<Option<RowReader>>,
    n_jobs: usize,
    #[pyo3(get)]
    n_features: u64,
}

impl LibsvmReader {
    /// Locks the reader, with the GIL released: the thread that holds the lock may need it.
    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, Option<RowReader>> {
        self.reader
            .lock_py_attached(py)
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl LibsvmReader {
    #[new]
    fn new(
        py: Python<'_>,
        files: Vec<FileArg>,
        n_rows: usize,
        options: ReadOptionsArg,
        n_jobs: usize,
    ) -> PyResult<Self> {
        let (inputs, options) = (inputs(files), options.into());
        let reader = run(py, n_jobs, None, |monitor| {
            RowReader::new(inputs, n_rows, &options, monitor)
        })?;
        Ok(Self {
            n_features: reader.n_features(),
            reader: Mutex::new(Some(reader)),
            n_jobs,
        })
    }

    /// The arrays of the next rows, or None after the last.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Arrays<'py>>> {
        let mut guard = self.lock(py);
        let Some(reader) = guard.as_mut() else {
            return Ok(None);
        };
        let matrix = match guarded(|| reader.next_parsed())? {
            None => run(py, self.n_jobs, None, |monitor| reader.next(monitor))?,
            parsed => parsed,
        };
        Ok(matrix.map(|matrix| arrays(py, matrix)))
    }

    /// Closes the files.
    fn close(&self, py: Python<'_>) {
        *self.lock(py) = None;
    }
}

/// What is written besides rows and labels, a dict of the facade.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct WriteOptions<'py> {
    /// The end of each row's labels, for multilabel files.
    label_ends: Option<PyReadonlyArray1<'py, i64>>,
    qids: Option<PyReadonlyArray1<'py, i64>>,
    zero_based: bool,
    header: Vec<u8>,
}

/// Writes rows as text.
#[pyfunction]
#[allow(non_snake_case)] // scikit-learn's X
pub(super) fn dump_libsvm(
    py: Python<'_>,
    X: RowsArg<'_>,
    labels: PyReadonlyArray1<'_, f64>,
    file: FileArg,
    options: WriteOptions<'_>,
    n_jobs: usize,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<()> {
    let labels = labels.as_slice()?;
    let qids = options.qids.as_ref().map(|qids| qids.as_slice());
    let qids = qids.transpose()?;
    let label_ends = options.label_ends.as_ref();
    let label_ends = label_ends.map(|ends| from_array(ends, "label_ends"));
    let label_ends = label_ends.transpose()?;
    let writes_zeros = !matches!(X, RowsArg::Dense(_));
    let data = Dataset::new_unchecked(X.rows()?);
    run(py, n_jobs, progress.as_ref(), |monitor| {
        with_layout!(&data, |examples| {
            let document = Document {
                rows: examples.rows(),
                labels: match &label_ends {
                    Some(ends) => Labels::Multi(labels, ends),
                    None => Labels::Single(labels),
                },
                qids,
                is_one_based: !options.zero_based,
                writes_zeros,
                header: &options.header,
            };
            match file {
                FileArg::Path(path) => document.write_to_path(&path, monitor),
                FileArg::Open(name, mut file) => document.write(&mut file, &name, monitor),
            }
        })
    })
}
