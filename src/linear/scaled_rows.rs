//! Scaled copies of rows: some of them, or the stored values of all in the place of others.

use std::fmt::Debug;

use ndarray::ArrayView2;

use super::FoldMap;
use crate::data::{Csr, Dataset, Dense, Index, Layout, Row, Rows, with_layout};
use crate::runtime::memory;
use crate::{Error, Result};

/// Some rows, scaled. Sparse rows stay sparse if there is no shift.
#[derive(Debug)]
pub(crate) struct ScaledRows {
    n_features: usize,
    values: Vec<f64>,
    /// Where each row begins in the values, and the end; features of the values. Of sparse rows only.
    layout: Option<(Vec<i64>, Vec<i64>)>,
}

impl ScaledRows {
    /// Copies `rows` of `data`.
    pub(crate) fn new(data: &Dataset<'_>, rows: &[usize], map: &FoldMap) -> Result<Self> {
        with_layout!(data, |examples| Ok(Self::copy(examples.rows(), rows, map)))
    }

    fn copy<R: Layout>(data: &R, rows: &[usize], map: &FoldMap) -> Self {
        let n_features = data.n_features();
        let mut values = vec![];
        if R::Row::STORES_ALL || map.has_shift() {
            for &row in rows {
                let start = values.len();
                values.extend((0..n_features).map(|j| map.apply(j, 0.0)));
                for (j, v) in data.row(row).entries() {
                    values[start + j] = map.apply(j, v);
                }
            }
            return Self {
                n_features,
                values,
                layout: None,
            };
        }
        let (mut starts, mut features) = (vec![0], vec![]);
        for &row in rows {
            for (j, v) in data.row(row).entries() {
                features.push(i64::from_offset(j));
                values.push(map.apply(j, v));
            }
            starts.push(i64::from_offset(values.len()));
        }
        Self {
            n_features,
            values,
            layout: Some((starts, features)),
        }
    }

    /// The rows as a data set without targets.
    pub(crate) fn dataset(&self) -> Result<Dataset<'_>> {
        let Some((starts, features)) = &self.layout else {
            let n_rows = self.values.len() / self.n_features.max(1);
            let shape = (n_rows, self.n_features);
            let rows = ArrayView2::from_shape(shape, &self.values);
            let rows = rows.map_err(|_| Error::Shape {
                what: "scaled rows",
                expected: n_rows * self.n_features,
                found: self.values.len(),
            })?;
            return Ok(Dataset::new_unchecked(Rows::Dense(Dense::new(rows)?)));
        };
        let rows = Csr::new_unchecked(starts, features, &self.values, self.n_features);
        Ok(Dataset::new_unchecked(Rows::Csr64(rows)))
    }
}

/// A layout whose stored values can be replaced.
pub(crate) trait ScaledLayout: Layout + Debug + Send {
    /// The same rows with other values.
    type View<'s>: Layout + Debug
    where
        Self: 's;

    /// The same rows with `values` in place of the stored ones.
    fn with_values<'s>(&'s self, values: &'s [f64]) -> Self::View<'s>;

    /// All stored values, scaled for a training set.
    fn scaled(&self, map: &FoldMap) -> Result<Vec<f64>> {
        let mut values = vec![];
        memory::reserve("the scaled rows of X", &mut values, self.n_stored())?;
        for row in 0..self.n_rows() {
            let entries = self.row(row).entries();
            values.extend(entries.map(|(j, value)| map.apply(j, value)));
        }
        Ok(values)
    }
}

impl ScaledLayout for Dense<'_> {
    type View<'s>
        = Dense<'s>
    where
        Self: 's;

    fn with_values<'s>(&'s self, values: &'s [f64]) -> Dense<'s> {
        Dense::with_values(self, values)
    }
}

impl<I: Index> ScaledLayout for Csr<'_, I> {
    type View<'s>
        = Csr<'s, I>
    where
        Self: 's;

    fn with_values<'s>(&'s self, values: &'s [f64]) -> Csr<'s, I> {
        Csr::with_values(self, values)
    }
}

/// Rows that kernel values are computed from.
pub(crate) trait RowStore: Sync + Send + Debug {
    /// The rows in their layout.
    type View<'s>: Layout + Debug
    where
        Self: 's;

    /// The rows.
    fn view(&self) -> Self::View<'_>;
}

impl<R: Layout + Debug> RowStore for &R {
    type View<'s>
        = R
    where
        Self: 's;

    fn view(&self) -> R {
        **self
    }
}

/// The rows of one training set, scaled.
#[derive(Debug)]
pub(crate) struct ScaledValues<'a, R> {
    rows: &'a R,
    values: Vec<f64>,
}

impl<'a, R: ScaledLayout> ScaledValues<'a, R> {
    /// All rows behind a map.
    pub(crate) fn new(rows: &'a R, map: &FoldMap) -> Result<Self> {
        let values = rows.scaled(map)?;
        Ok(Self { rows, values })
    }
}

impl<R: ScaledLayout> RowStore for ScaledValues<'_, R> {
    type View<'s>
        = R::View<'s>
    where
        Self: 's;

    fn view(&self) -> R::View<'_> {
        self.rows.with_values(&self.values)
    }
}
