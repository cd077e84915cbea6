//! Conversion of files to arrays on disk that can be memory-mapped.
//!
//! A directory of `.npy` files (`indptr`, `indices`, `values`, `labels`, and, if applicable,
//! `label_indptr` or `qids`), written incrementally, and `meta.json`, written last: the shape of the
//! matrix, and type, length, size and CRC-32 of each array, by which damage is recognised.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::atomic::AtomicDirectory;
use super::features::FeatureSpace;
use super::matrix::rebased;
use super::npy::{ArrayFile, NpyWriter, io_error};
use super::parse::Columns;
use super::read::{Pipeline, Sink, announce};
use super::source::Input;
use super::{ReadOptions, ValueType};
use crate::{Monitor, Result};

/// Values on disk.
#[derive(Debug)]
enum Values {
    Single(NpyWriter<f32>),
    Double(NpyWriter<f64>),
}

/// A directory of arrays that is being written.
#[derive(Debug)]
struct ArrayDirectory {
    directory: PathBuf,
    /// Indices as in the file: their base and width are known only at the end.
    row_ends: NpyWriter<i64>,
    indices: NpyWriter<i64>,
    values: Values,
    labels: NpyWriter<f64>,
    label_ends: Option<NpyWriter<i64>>,
    qids: Option<NpyWriter<i64>>,
    n_entries: usize,
    n_labels: usize,
}

impl ArrayDirectory {
    fn create(directory: PathBuf, options: &ReadOptions) -> Result<Self> {
        let path = |name: &str| directory.join(name);
        let mut row_ends = NpyWriter::create(path("row_ends.partial"))?;
        row_ends.append([0])?;
        let mut label_ends = None;
        if options.multilabel {
            let mut array = NpyWriter::create(path("label_indptr.npy"))?;
            array.append([0])?;
            label_ends = Some(array);
        }
        let qids = options
            .query_id
            .then(|| NpyWriter::create(path("qids.npy")));
        Ok(Self {
            row_ends,
            indices: NpyWriter::create(path("indices.partial"))?,
            values: match options.precision {
                ValueType::Single => Values::Single(NpyWriter::create(path("values.npy"))?),
                ValueType::Double => Values::Double(NpyWriter::create(path("values.npy"))?),
            },
            labels: NpyWriter::create(path("labels.npy"))?,
            label_ends,
            qids: qids.transpose()?,
            n_entries: 0,
            n_labels: 0,
            directory,
        })
    }

    #[allow(clippy::cast_possible_truncation)] // 32-bit only if all fit
    fn finish(self, features: FeatureSpace, n_rows: usize, monitor: &Monitor) -> Result<()> {
        let first = i64::from(features.is_one_based);
        let path = |name: &str| self.directory.join(name);
        let (indptr, indices) = (path("indptr.npy"), path("indices.npy"));
        let (indptr, indices) =
            if features.needs_i64(n_rows) || i32::try_from(self.n_entries).is_err() {
                (
                    self.row_ends.map(indptr, |end| end, monitor)?.finish()?,
                    self.indices
                        .map(indices, |index| index - first, monitor)?
                        .finish()?,
                )
            } else {
                (
                    self.row_ends
                        .map(indptr, |end| end as i32, monitor)?
                        .finish()?,
                    self.indices
                        .map(indices, |index| (index - first) as i32, monitor)?
                        .finish()?,
                )
            };
        let values = match self.values {
            Values::Single(array) => array.finish()?,
            Values::Double(array) => array.finish()?,
        };
        let (multilabel, query_id) = (self.label_ends.is_some(), self.qids.is_some());
        let mut arrays = vec![
            ("indptr", indptr),
            ("indices", indices),
            ("values", values),
            ("labels", self.labels.finish()?),
        ];
        if let Some(array) = self.label_ends {
            arrays.push(("label_indptr", array.finish()?));
        }
        if let Some(array) = self.qids {
            arrays.push(("qids", array.finish()?));
        }
        let arrays: Vec<_> = arrays.iter().map(description).collect();
        let meta = format!(
            "{{\"format\": \"onefold-libsvm\", \"version\": 2, \"shape\": [{n_rows}, {}], \
             \"multilabel\": {multilabel}, \"query_id\": {query_id}, \"arrays\": {{\n{}\n}}}}\n",
            features.n_features,
            arrays.join(",\n")
        );
        let path = self.directory.join("meta.json");
        write_synced(&path, &meta).map_err(|source| io_error(&path, source))
    }
}

/// The entry of an array in `meta.json`.
fn description((name, array): &(&str, ArrayFile)) -> String {
    let ArrayFile {
        dtype,
        len,
        n_bytes,
        crc32,
    } = array;
    format!(
        "  \"{name}\": {{\"dtype\": \"{dtype}\", \"length\": {len}, \"bytes\": {n_bytes}, \
         \"crc32\": {crc32}}}"
    )
}

/// Writes a file and flushes it to the disk.
fn write_synced(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

impl Sink for ArrayDirectory {
    fn append(&mut self, columns: &Columns) -> Result<()> {
        let ends = rebased(&columns.row_ends, 0, self.n_entries);
        self.row_ends.append(ends)?;
        self.indices.append(columns.indices.iter().copied())?;
        let values = columns.values.iter().copied();
        match &mut self.values {
            #[allow(clippy::cast_possible_truncation)] // the requested precision
            Values::Single(array) => array.append(values.map(|value| value as f32))?,
            Values::Double(array) => array.append(values)?,
        }
        self.labels.append(columns.labels.iter().copied())?;
        if let Some(array) = &mut self.label_ends {
            array.append(rebased(&columns.label_ends, 0, self.n_labels))?;
        }
        if let Some(array) = &mut self.qids {
            array.append(columns.qids.iter().copied())?;
        }
        self.n_entries += columns.values.len();
        self.n_labels += columns.labels.len();
        Ok(())
    }
}

/// Converts the concatenation of files to a directory of arrays, in bounded memory.
pub fn convert(
    inputs: Vec<Input>,
    directory: &Path,
    options: &ReadOptions,
    monitor: &Monitor,
) -> Result<()> {
    let options = options.resolved()?;
    announce(&inputs, &options, monitor);
    let at_target = |source| io_error(directory, source);
    let (target, partial) = AtomicDirectory::create(directory).map_err(at_target)?;
    let mut arrays = ArrayDirectory::create(partial, &options)?;
    let mut stats = Vec::new();
    for input in inputs {
        let pipeline = Pipeline::open(input, &options, monitor)?;
        stats.push(pipeline.run(&mut arrays, monitor)?);
    }
    let features = FeatureSpace::new(&stats, &options)?;
    let n_rows = stats.iter().map(|file| file.n_rows).sum();
    arrays.finish(features, n_rows, monitor)?;
    target.commit().map_err(at_target)
}
