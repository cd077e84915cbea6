//! A data set: rows in one of several layouts, with targets and weights.

// Without rows on disk the wildcards below match one layout.
#![cfg_attr(
    not(feature = "stored"),
    allow(clippy::match_wildcard_for_single_variants)
)]

use ndarray::{ArrayView, ArrayView1, ArrayView2, Dimension};

use super::contiguous;
use super::examples::{check_classes, check_length, check_values, check_weights, gather_into};
use super::{Csr, Dense, Examples, Layout as _, RowBuffer, Targets};
#[cfg(feature = "stored")]
use crate::stored::{Stored, StoredRows, Streaming};
use crate::{Error, Monitor, Result};

/// The rows of a data set, borrowed from the caller.
#[derive(Clone, Copy, Debug)]
pub enum Rows<'a> {
    /// A C-contiguous matrix.
    Dense(Dense<'a>),
    /// CSR with 32-bit indices.
    Csr32(Csr<'a, i32>),
    /// CSR with 64-bit indices.
    Csr64(Csr<'a, i64>),
    /// Rows on disk, which are read block by block.
    #[cfg(feature = "stored")]
    Stored(Stored<'a>),
    /// Rows that only the learner can read; the engine knows their number.
    External {
        /// How many rows.
        n_rows: usize,
    },
}

/// Evaluates `$body` with `$examples` bound to the [`Examples`](crate::data::Examples) of a
/// [`Dataset`](crate::data::Dataset), whose layout is then known at compile time: how learners are
/// written once for all layouts in memory. Of other rows, the value is an error.
/// (`examples/own_learner.rs` is an example.)
#[macro_export]
#[doc(hidden)]
macro_rules! with_layout {
    ($data:expr, |$examples:ident| $body:expr) => {{
        let data: &$crate::data::Dataset<'_> = $data;
        match *data.rows() {
            $crate::data::Rows::Dense(rows) => {
                let $examples = &data.examples(rows);
                $body
            }
            $crate::data::Rows::Csr32(rows) => {
                let $examples = &data.examples(rows);
                $body
            }
            $crate::data::Rows::Csr64(rows) => {
                let $examples = &data.examples(rows);
                $body
            }
            _ => Err($crate::data::unreadable(data)),
        }
    }};
}
#[doc(inline)]
pub use with_layout;

/// The error of a native algorithm that is given rows it cannot read.
#[doc(hidden)]
pub fn unreadable(data: &Dataset<'_>) -> Error {
    Error::Parameter {
        name: "X",
        rule: "a dense or CSR matrix in memory",
        value: if data.is_on_disk() {
            "rows on disk".into()
        } else {
            "rows that only the learner can read".into()
        },
    }
}

/// Rows, targets and weights. They are checked here, once: lengths, class codes, and that every
/// value is finite; of rows on disk when they are read. Behind it, learners and engines compare
/// numbers of features, classes and outputs with their own, and a loss that is not defined for all
/// numbers checks targets; no value of the rows is checked again.
///
/// ```
/// use ndarray::array;
/// use onefold::Dataset;
///
/// let x = array![[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]];
/// let classes = array![0, 1, 1];
/// let data = Dataset::dense(x.view())?.with_classes(classes.view(), 2)?;
/// assert_eq!((data.n_rows(), data.n_features()), (3, 2));
/// # Ok::<(), onefold::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Dataset<'a> {
    rows: Rows<'a>,
    targets: Targets<'a>,
    weights: Option<&'a [f64]>,
}

impl<'a> Dataset<'a> {
    /// Rows without targets. Every value must be finite.
    pub fn new(rows: Rows<'a>) -> Result<Self> {
        let data = Self::new_unchecked(rows);
        data.check_finite(&Monitor::new())?;
        Ok(data)
    }

    /// Rows that are known to be finite.
    pub fn new_unchecked(rows: Rows<'a>) -> Self {
        Self {
            rows,
            targets: Targets::None,
            weights: None,
        }
    }

    /// The rows of a C-contiguous matrix. Every value must be finite.
    pub fn dense(x: ArrayView2<'a, f64>) -> Result<Self> {
        Self::new(Rows::Dense(Dense::new(x)?))
    }

    /// Rows on disk, and how they are read. Their values are checked when they are read.
    #[cfg(feature = "stored")]
    pub fn stored(rows: &'a StoredRows, streaming: &'a Streaming) -> Self {
        Self::new_unchecked(Rows::Stored(Stored { rows, streaming }))
    }

    /// Rows that only the learner can read.
    pub fn external(n_rows: usize) -> Self {
        Self::new_unchecked(Rows::External { n_rows })
    }

    /// Adds a class to each row: codes in `0..n_classes`.
    pub fn with_classes(self, codes: ArrayView1<'a, u32>, n_classes: usize) -> Result<Self> {
        let codes = contiguous(codes.to_slice(), "y")?;
        check_classes(codes, n_classes, self.n_rows())?;
        Ok(Self {
            targets: Targets::Classes { codes, n_classes },
            ..self
        })
    }

    /// Adds finite target values: one per sample, or one row per sample with one column per output.
    pub fn with_values<D: Dimension>(self, values: ArrayView<'a, f64, D>) -> Result<Self> {
        let n_outputs = match *values.shape() {
            [_] => 1,
            [_, n_outputs] => n_outputs,
            _ => {
                let shape = format!("{:?}", values.shape());
                return Err(Error::parameter("y", "of one or two dimensions", shape));
            }
        };
        let values = contiguous(values.to_slice(), "y")?;
        check_values(values, n_outputs, self.n_rows())?;
        Ok(Self {
            targets: Targets::Values { values, n_outputs },
            ..self
        })
    }

    /// Adds weights, finite and not negative.
    pub fn with_weights(self, weights: ArrayView1<'a, f64>) -> Result<Self> {
        let weights = contiguous(weights.to_slice(), "weights")?;
        check_weights(weights, self.n_rows())?;
        Ok(Self {
            weights: Some(weights),
            ..self
        })
    }

    /// The rows.
    pub fn rows(&self) -> &Rows<'a> {
        &self.rows
    }

    /// The targets.
    pub fn targets(&self) -> Targets<'a> {
        self.targets
    }

    /// The weights, if there are any.
    pub fn weights(&self) -> Option<&'a [f64]> {
        self.weights
    }

    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        match self.rows {
            Rows::Dense(rows) => rows.n_rows(),
            Rows::Csr32(rows) => rows.n_rows(),
            Rows::Csr64(rows) => rows.n_rows(),
            #[cfg(feature = "stored")]
            Rows::Stored(stored) => stored.rows.n_rows(),
            Rows::External { n_rows } => n_rows,
        }
    }

    /// Whether every value of the rows is stored.
    pub(crate) fn is_dense(&self) -> bool {
        match self.rows {
            Rows::Dense(_) => true,
            #[cfg(feature = "stored")]
            Rows::Stored(stored) => stored.rows.is_dense(),
            _ => false,
        }
    }

    /// Whether the rows are on disk.
    pub(crate) fn is_on_disk(&self) -> bool {
        !matches!(
            self.rows,
            Rows::Dense(_) | Rows::Csr32(_) | Rows::Csr64(_) | Rows::External { .. }
        )
    }

    /// The number of features; 0 where only the learner can read the rows.
    pub fn n_features(&self) -> usize {
        match self.rows {
            Rows::Dense(rows) => rows.n_features(),
            Rows::Csr32(rows) => rows.n_features(),
            Rows::Csr64(rows) => rows.n_features(),
            #[cfg(feature = "stored")]
            Rows::Stored(stored) => stored.rows.n_features(),
            Rows::External { .. } => 0,
        }
    }

    /// The number of stored values in memory.
    pub fn n_stored(&self) -> usize {
        match self.rows {
            Rows::Dense(rows) => rows.n_stored(),
            Rows::Csr32(rows) => rows.n_stored(),
            Rows::Csr64(rows) => rows.n_stored(),
            _ => 0,
        }
    }

    /// The mean number of stored values per row.
    pub fn mean_nnz(&self) -> f64 {
        self.n_stored() as f64 / self.n_rows().max(1) as f64
    }

    /// An [`Error::Value`] that names the first NaN or infinity in memory, if there is one.
    pub fn check_finite(&self, monitor: &Monitor) -> Result<()> {
        match self.rows {
            Rows::Dense(rows) => rows.check_finite(monitor),
            Rows::Csr32(rows) => rows.check_finite(monitor),
            Rows::Csr64(rows) => rows.check_finite(monitor),
            _ => Ok(()),
        }
    }

    /// The same data seen through `rows`, whose layout is known at compile time.
    #[inline(always)]
    pub fn examples<X>(&self, rows: X) -> Examples<'a, X> {
        Examples {
            rows,
            targets: self.targets,
            weights: self.weights,
        }
    }

    /// The same targets and weights with other rows: a renumbering of these, or these themselves.
    #[cfg(any(test, feature = "python"))]
    pub(crate) fn with_rows<'s>(&self, rows: Rows<'s>) -> Dataset<'s>
    where
        'a: 's,
    {
        Dataset {
            rows,
            targets: self.targets,
            weights: self.weights,
        }
    }

    /// Copies the rows at `order`, with targets and weights, into `buffer`.
    ///
    /// # Panics
    /// When there is no such row.
    pub(crate) fn gather<'s>(
        &self,
        order: &[usize],
        buffer: &'s mut DatasetBuffer,
    ) -> Result<Dataset<'s>> {
        if !(buffer.rows.as_ref()).is_some_and(|rows| rows.fits(&self.rows)) {
            buffer.rows = RowBuffer::like(&self.rows);
        }
        if let Some(rows) = &mut buffer.rows {
            rows.clear();
            rows.append(&self.rows, order)?;
        }
        self.gather_targets(order, &mut buffer.targets);
        let external = Rows::External {
            n_rows: order.len(),
        };
        let rows = buffer.rows.as_ref().map_or(external, RowBuffer::view);
        Ok(self.with_gathered(rows, &buffer.targets))
    }

    /// Copies targets and weights of the rows at `order` into `buffer`.
    pub(crate) fn gather_targets(&self, order: &[usize], buffer: &mut TargetBuffer) {
        match self.targets {
            Targets::None => {}
            Targets::Classes { codes, .. } => gather_into(&mut buffer.codes, codes, order, 1),
            Targets::Values { values, n_outputs } => {
                gather_into(&mut buffer.values, values, order, n_outputs);
            }
        }
        if let Some(weights) = self.weights {
            gather_into(&mut buffer.weights, weights, order, 1);
        }
    }

    /// `rows` with the targets and weights that [`Dataset::gather_targets`] copied from these.
    pub(crate) fn with_gathered<'s>(
        &self,
        rows: Rows<'s>,
        buffer: &'s TargetBuffer,
    ) -> Dataset<'s> {
        Dataset {
            rows,
            targets: match self.targets {
                Targets::None => Targets::None,
                Targets::Classes { n_classes, .. } => Targets::Classes {
                    codes: &buffer.codes,
                    n_classes,
                },
                Targets::Values { n_outputs, .. } => Targets::Values {
                    values: &buffer.values,
                    n_outputs,
                },
            },
            weights: self.weights.map(|_| &buffer.weights[..]),
        }
    }

    /// [`Error::Shape`] unless the data set has as many rows as `n_samples`, those of the folds.
    pub(crate) fn check_samples(&self, n_samples: usize) -> Result<()> {
        check_length("samples of the folds", self.n_rows(), n_samples)
    }
}

/// Owns a copy of some rows of a [`Dataset`]; reused from copy to copy.
#[derive(Debug, Default)]
pub(crate) struct DatasetBuffer {
    rows: Option<RowBuffer>,
    targets: TargetBuffer,
}

/// Owns a copy of the targets and weights of some rows.
#[derive(Debug, Default)]
pub(crate) struct TargetBuffer {
    codes: Vec<u32>,
    values: Vec<f64>,
    weights: Vec<f64>,
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, array};

    use super::super::{Layout, Row as _};
    use super::*;

    fn message<T>(result: Result<T>) -> String {
        result.err().map_or(String::new(), |e| e.to_string())
    }

    #[test]
    fn what_does_not_fit_the_rows_is_refused() {
        let x = array![[1.0, 2.0], [3.0, 4.0]];
        let data = Dataset::dense(x.view()).expect("shape");
        assert_eq!(
            message(data.with_classes(array![0].view(), 2)),
            "y: expected length 2, got 1"
        );
        assert!(message(data.with_classes(array![0, 2].view(), 2)).starts_with("y[1] is 2: "));
        assert_eq!(
            message(data.with_values(Array2::zeros((3, 1)).view())),
            "y: expected length 2, got 3"
        );
        let bad = array![[0.0, 0.0], [0.0, f64::NAN]];
        assert!(message(data.with_values(bad.view())).starts_with("y[1] is"));
        assert!(message(data.with_weights(array![1.0].view())).contains("length 2, got 1"));
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            let weights = array![0.0, bad];
            assert!(message(data.with_weights(weights.view())).starts_with("weights[1] is"));
        }
        assert!(message(Dataset::dense(x.t())).starts_with("X must be C-contiguous"));
        assert!(message(Dataset::dense(bad.view())).starts_with("X[1, 1] is NaN"));
        let csr = Csr::new(&[0, 0, 2], &[0, 3], &[1.0, f64::INFINITY], 4).expect("valid");
        assert!(message(Dataset::new(Rows::Csr32(csr))).starts_with("X[1, 3] is inf"));
        assert!(
            message(data.check_samples(3))
                .contains("samples of the folds: expected length 2, got 3")
        );
    }

    #[test]
    fn targets_have_one_dimension_or_two() {
        let x = array![[1.0], [2.0]];
        let data = Dataset::dense(x.view()).expect("finite");
        let (one, two) = (array![3.0, 4.0], array![[3.0], [4.0]]);
        for data in [data.with_values(one.view()), data.with_values(two.view())] {
            let targets = data.expect("valid").targets();
            assert!(matches!(
                targets,
                Targets::Values {
                    values: [3.0, 4.0],
                    n_outputs: 1
                }
            ));
        }
        let three = array![[[3.0]], [[4.0]]];
        let message = data
            .with_values(three.view())
            .expect_err("refused")
            .to_string();
        assert_eq!(message, "y must be of one or two dimensions, got [2, 1, 1]");
    }

    #[test]
    fn a_copy_has_rows_targets_and_weights_in_the_new_order() {
        let x = array![[1.0], [2.0], [3.0]];
        let data = Dataset::dense(x.view()).expect("shape");
        let mut buffer = DatasetBuffer::default();
        let plain = data.gather(&[2, 0], &mut buffer).expect("memory");
        assert!(matches!(plain.targets(), Targets::None));
        assert!(matches!(plain.rows(), Rows::Dense(rows) if rows.row(0) == [3.0]));
        let codes = array![0, 1, 2];
        let weights = array![4.0, 5.0, 6.0];
        let classes = data.with_classes(codes.view(), 5).expect("valid");
        let classes = classes.with_weights(weights.view()).expect("valid");
        let classes = classes.gather(&[2, 0], &mut buffer).expect("memory");
        let Rows::Dense(rows) = *classes.rows() else {
            panic!("dense rows stay dense")
        };
        let examples = classes.examples(rows);
        assert_eq!(examples.classes(5).expect("classes"), [2, 0]);
        assert_eq!((examples.weight(0), examples.weight(1)), (6.0, 4.0));
        let values = array![[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]];
        let values = data.with_values(values.view()).expect("valid");
        let values = values.gather(&[2, 0, 1], &mut buffer).expect("memory");
        let Targets::Values {
            values,
            n_outputs: 2,
        } = values.targets()
        else {
            panic!("values stay values")
        };
        assert_eq!(values, [5.0, 6.0, 1.0, 2.0, 3.0, 4.0]);
    }

    /// What each row stores, without zeros.
    fn entries<X: Layout>(rows: &X) -> Vec<Vec<(usize, f64)>> {
        let row = |index| {
            rows.row(index)
                .entries()
                .filter(|entry| entry.1 != 0.0)
                .collect()
        };
        (0..rows.n_rows()).map(row).collect()
    }

    /// Copies of rows in any order, some of them twice, into a buffer that held more rows or fewer.
    #[test]
    fn copies_of_dense_and_sparse_rows_are_alike() {
        let x = array![
            [0.0, 1.0, 2.0],
            [0.0, 0.0, 0.0],
            [3.0, 0.0, 4.0],
            [5.0, 6.0, 0.0]
        ];
        let (indptr, indices) = ([0, 2, 2, 4, 6], [1, 2, 0, 2, 0, 1]);
        let stored = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let (wide_indptr, wide_indices) = (indptr.map(i64::from), indices.map(i64::from));
        let csr32 = Csr::new(&indptr, &indices, &stored, 3).expect("valid");
        let csr64 = Csr::new(&wide_indptr, &wide_indices, &stored, 3).expect("valid");
        let dense = Dataset::dense(x.view()).expect("shape");
        let layouts = [
            dense,
            Dataset::new(Rows::Csr32(csr32)).expect("finite"),
            Dataset::new(Rows::Csr64(csr64)).expect("finite"),
        ];
        let entries = |data: &Dataset<'_>| -> Result<_> {
            with_layout!(data, |examples| Ok(entries(examples.rows())))
        };
        let all = entries(&layouts[0]).expect("dense");
        let mut buffer = DatasetBuffer::default();
        for order in [
            vec![3, 2, 1, 0, 3],
            vec![1],
            vec![],
            vec![0, 0, 2],
            vec![2, 3, 1, 0, 1, 2],
        ] {
            let expected: Vec<_> = order.iter().map(|&row| all[row].clone()).collect();
            for data in &layouts {
                let copy = data.gather(&order, &mut buffer).expect("memory");
                assert_eq!((copy.n_rows(), copy.n_features()), (order.len(), 3));
                assert_eq!(entries(&copy).expect("same layout"), expected);
            }
        }
    }
}
