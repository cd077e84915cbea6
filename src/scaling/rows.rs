//! Scaled copies of rows.

use ndarray::{ArrayView1, ArrayView2};

use super::Scaling;
use crate::data::{Csr, Dataset, Dense, Index as _, Layout, Row, Rows, with_layout};
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
    pub(crate) fn new(data: &Dataset<'_>, rows: &[usize], scaling: Scaling<'_>) -> Result<Self> {
        with_layout!(data, |examples| Ok(Self::copy(
            examples.rows(),
            rows,
            scaling
        )))
    }

    fn copy<R: Layout>(data: &R, rows: &[usize], scaling: Scaling<'_>) -> Self {
        let n_features = data.n_features();
        let mut values = vec![];
        if R::Row::STORES_ALL || scaling.shift.is_some() {
            for &row in rows {
                let start = values.len();
                values.extend((0..n_features).map(|j| -scaling.shift(j) * scaling.scale[j]));
                for (j, v) in data.row(row).entries() {
                    values[start + j] = scaling.apply(j, v);
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
                values.push(scaling.apply(j, v));
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
        let values = ArrayView1::from(&self.values);
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
        let (starts, features) = (ArrayView1::from(starts), ArrayView1::from(features));
        let rows = Csr::new(starts, features, values, self.n_features)?;
        Ok(Dataset::new_unchecked(Rows::Csr64(rows)))
    }
}
