//! The rows of a file on disk, as arrays that can be mapped into memory.
//!
//! A directory of `.npy` files (`indptr`, `indices`, `values`, `labels`, and `label_indptr` or
//! `qids` where there are such), each written as rows come, and `meta.json`, written last.

use std::path::{Path, PathBuf};

use super::layout::Layout;
use super::matrix::rebased;
use super::npy::{Column, failed};
use super::parse::Columns;
use super::place::PlacedDirectory;
use super::read::{Pipeline, Sink, expect};
use super::source::Input;
use super::{Options, Precision};
use crate::{Monitor, Result};

/// Values on disk.
#[derive(Debug)]
enum Values {
    Single(Column<f32>),
    Double(Column<f64>),
}

/// The columns of a directory that is being written.
#[derive(Debug)]
struct Store {
    directory: PathBuf,
    /// Indices as in the file, until it is known where they begin and how large they are.
    row_ends: Column<i64>,
    indices: Column<i64>,
    values: Values,
    labels: Column<f64>,
    label_ends: Option<Column<i64>>,
    qids: Option<Column<i64>>,
    n_stored: usize,
    n_labels: usize,
}

impl Store {
    fn create(directory: PathBuf, options: &Options) -> Result<Self> {
        let path = |name: &str| directory.join(name);
        let mut row_ends = Column::create(path("row_ends.partial"))?;
        row_ends.append([0])?;
        let mut label_ends = None;
        if options.multilabel {
            let mut column = Column::create(path("label_indptr.npy"))?;
            column.append([0])?;
            label_ends = Some(column);
        }
        let qids = options.query_id.then(|| Column::create(path("qids.npy")));
        Ok(Self {
            row_ends,
            indices: Column::create(path("indices.partial"))?,
            values: match options.precision {
                Precision::Single => Values::Single(Column::create(path("values.npy"))?),
                Precision::Double => Values::Double(Column::create(path("values.npy"))?),
            },
            labels: Column::create(path("labels.npy"))?,
            label_ends,
            qids: qids.transpose()?,
            n_stored: 0,
            n_labels: 0,
            directory,
        })
    }

    #[allow(clippy::cast_possible_truncation)] // narrow only where all fit
    fn finish(self, layout: Layout, n_rows: usize, monitor: &Monitor) -> Result<()> {
        let first = i64::from(layout.is_one_based);
        let indptr = self.directory.join("indptr.npy");
        let indices = self.directory.join("indices.npy");
        if layout.is_wide(n_rows) || i32::try_from(self.n_stored).is_err() {
            self.row_ends.map(indptr, |end| end, monitor)?.finish()?;
            self.indices
                .map(indices, |index| index - first, monitor)?
                .finish()?;
        } else {
            self.row_ends
                .map(indptr, |end| end as i32, monitor)?
                .finish()?;
            self.indices
                .map(indices, |index| (index - first) as i32, monitor)?
                .finish()?;
        }
        match self.values {
            Values::Single(column) => column.finish()?,
            Values::Double(column) => column.finish()?,
        }
        self.labels.finish()?;
        let (multilabel, query_id) = (self.label_ends.is_some(), self.qids.is_some());
        for column in [self.label_ends, self.qids].into_iter().flatten() {
            column.finish()?;
        }
        let meta = format!(
            "{{\"format\": \"onefold-libsvm\", \"version\": 1, \"shape\": [{n_rows}, {}], \
             \"multilabel\": {multilabel}, \"query_id\": {query_id}}}\n",
            layout.n_features
        );
        let path = self.directory.join("meta.json");
        std::fs::write(&path, meta).map_err(|source| failed(&path, source))
    }
}

impl Sink for Store {
    fn append(&mut self, columns: &Columns) -> Result<()> {
        let stored = rebased(&columns.row_ends, 0, self.n_stored);
        self.row_ends.append(stored)?;
        self.indices.append(columns.indices.iter().copied())?;
        let values = columns.values.iter().copied();
        match &mut self.values {
            #[allow(clippy::cast_possible_truncation)] // what the user asked for
            Values::Single(column) => column.append(values.map(|value| value as f32))?,
            Values::Double(column) => column.append(values)?,
        }
        self.labels.append(columns.labels.iter().copied())?;
        if let Some(column) = &mut self.label_ends {
            column.append(rebased(&columns.label_ends, 0, self.n_labels))?;
        }
        if let Some(column) = &mut self.qids {
            column.append(columns.qids.iter().copied())?;
        }
        self.n_stored += columns.values.len();
        self.n_labels += columns.labels.len();
        Ok(())
    }
}

/// Converts files, one after another, into one directory of arrays. Memory stays bounded.
pub fn convert(
    inputs: Vec<Input>,
    directory: &Path,
    options: &Options,
    monitor: &Monitor,
) -> Result<()> {
    let options = options.resolved()?;
    expect(&inputs, &options, monitor);
    let at_target = |source| failed(directory, source);
    let (placed, partial) = PlacedDirectory::create(directory).map_err(at_target)?;
    let mut store = Store::create(partial, &options)?;
    let mut tallies = Vec::new();
    for input in inputs {
        tallies.push(Pipeline::open(input, &options)?.drain(&mut store, monitor)?);
    }
    let layout = Layout::new(&tallies, &options)?;
    let n_rows = tallies.iter().map(|tally| tally.n_rows).sum();
    store.finish(layout, n_rows, monitor)?;
    placed.commit().map_err(at_target)
}
