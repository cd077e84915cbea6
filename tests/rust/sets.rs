//! Small generated data sets, seen as dense and as CSR rows.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use onefold::data::{Csr, Dataset, Dense, Rows};

/// The same rows in both layouts: dense, then CSR.
pub(crate) type Layouts<'a> = [Dataset<'a>; 2];

/// Rows in both layouts with every kind of target.
pub(crate) struct Set {
    dense: Array2<f64>,
    indptr: Vec<i32>,
    indices: Vec<i32>,
    stored: Vec<f64>,
    codes: Array1<u32>,
    n_classes: usize,
    values: Array2<f64>,
    weights: Array1<f64>,
}

impl Set {
    /// About two thirds of the values are zero, the others small integers: most sums are exact in
    /// any order, so that layouts can be compared bit for bit.
    pub(crate) fn new(seed: u64, n_rows: usize, n_features: usize, n_classes: usize) -> Self {
        Self::generate(seed, (n_rows, n_features), n_classes, |value| value)
    }

    /// The same with counts for values: none is negative.
    pub(crate) fn counts(seed: u64, n_rows: usize, n_features: usize, n_classes: usize) -> Self {
        Self::generate(seed, (n_rows, n_features), n_classes, f64::abs)
    }

    fn generate(
        seed: u64,
        shape: (usize, usize),
        n_classes: usize,
        value: impl Fn(f64) -> f64,
    ) -> Self {
        let mut random = Random(seed);
        let signed = Array2::from_shape_simple_fn(shape, || {
            let value = random.below(7) - 3.0;
            if random.below(3) == 0.0 { value } else { 0.0 }
        });
        let classes = u32::try_from(n_classes).expect("small");
        // Classes depend on the row, with some noise, so that there is something to learn.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // small and positive
        let codes = signed
            .rows()
            .into_iter()
            .map(|row| (row.iter().sum::<f64>().abs() + random.below(2)) as u32 % classes)
            .collect();
        let dense = signed.mapv(value);
        let (mut indptr, mut indices, mut stored) = (vec![0], vec![], vec![]);
        for row in dense.rows() {
            for (feature, &value) in (0..).zip(row).filter(|(_, value)| **value != 0.0) {
                indices.push(feature);
                stored.push(value);
            }
            indptr.push(i32::try_from(stored.len()).expect("small"));
        }
        Self {
            dense,
            indptr,
            indices,
            stored,
            codes,
            n_classes,
            values: Array2::from_shape_simple_fn((shape.0, 1), || random.below(9) / 8.0),
            weights: Array1::from_shape_simple_fn(shape.0, || random.below(5) / 2.0),
        }
    }

    /// Row after row, zeros included.
    pub(crate) fn dense(&self) -> impl Iterator<Item = &[f64]> {
        let n_features = self.dense.ncols();
        self.dense
            .as_slice()
            .expect("contiguous")
            .chunks_exact(n_features)
    }

    /// The rows in both layouts without targets.
    pub(crate) fn unlabelled(&self) -> Layouts<'_> {
        let dense = Dense::new(self.dense.view()).expect("valid");
        let (indptr, indices, stored) = (&self.indptr, &self.indices, &self.stored);
        let csr = Csr::new(indptr, indices, stored, self.dense.ncols()).expect("valid");
        [Rows::Dense(dense), Rows::Csr32(csr)].map(|rows| Dataset::new(rows).expect("finite"))
    }

    /// The rows in both layouts with a class each.
    pub(crate) fn classified(&self) -> Layouts<'_> {
        self.unlabelled().map(|data| {
            data.with_classes(self.codes(), self.n_classes)
                .expect("valid")
        })
    }

    /// The rows in both layouts with one value each.
    pub(crate) fn valued(&self) -> Layouts<'_> {
        self.with_values(self.values.view())
    }

    /// The rows in both layouts with other values.
    pub(crate) fn with_values<'a>(&'a self, values: ArrayView2<'a, f64>) -> Layouts<'a> {
        self.unlabelled()
            .map(|data| data.with_values(values).expect("valid"))
    }

    /// The same data with a weight for each row, some of them zero.
    pub(crate) fn weighted<'a>(&'a self, data: Layouts<'a>) -> Layouts<'a> {
        data.map(|data| data.with_weights(self.weights()).expect("valid"))
    }

    pub(crate) fn weights(&self) -> ArrayView1<'_, f64> {
        self.weights.view()
    }

    pub(crate) fn values(&self) -> ArrayView1<'_, f64> {
        self.values.column(0)
    }

    pub(crate) fn codes(&self) -> ArrayView1<'_, u32> {
        self.codes.view()
    }
}

/// A multiplicative generator: plenty for test data.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A whole number of `0..n`.
    pub(crate) fn below(&mut self, n: u32) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let high = u32::try_from(self.0 >> 33).expect("31 bits");
        f64::from(high % n)
    }
}
