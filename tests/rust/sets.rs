//! Small generated data sets, seen as dense or as CSR examples.

use onefold::data::{Csr, Dense, Examples};

/// Rows in both layouts with every kind of target.
pub(crate) struct Set {
    n_rows: usize,
    n_features: usize,
    dense: Vec<f64>,
    indptr: Vec<i32>,
    indices: Vec<i32>,
    stored: Vec<f64>,
    codes: Vec<u32>,
    n_classes: usize,
    values: Vec<f64>,
    weights: Vec<f64>,
}

impl Set {
    /// About two thirds of the values are zero, the others small integers: most sums are exact in
    /// any order, so that layouts can be compared bit for bit.
    pub(crate) fn new(seed: u64, n_rows: usize, n_features: usize, n_classes: usize) -> Self {
        let mut random = Random(seed);
        let dense: Vec<f64> = (0..n_rows * n_features)
            .map(|_| {
                let value = random.below(7) - 3.0;
                if random.below(3) == 0.0 { value } else { 0.0 }
            })
            .collect();
        let (mut indptr, mut indices, mut stored) = (vec![0], vec![], vec![]);
        for row in 0..n_rows {
            let values = &dense[row * n_features..][..n_features];
            for (feature, &value) in (0..).zip(values).filter(|(_, v)| **v != 0.0) {
                indices.push(feature);
                stored.push(value);
            }
            indptr.push(i32::try_from(stored.len()).expect("small"));
        }
        let classes = u32::try_from(n_classes).expect("small");
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // small and positive
        // Classes depend on the row, with some noise, so that there is something to learn.
        let codes = (0..n_rows)
            .map(|row| {
                let sum: f64 = dense[row * n_features..][..n_features].iter().sum();
                let noise = random.below(2);
                (sum.abs() + noise) as u32 % classes
            })
            .collect();
        Self {
            n_rows,
            n_features,
            dense,
            indptr,
            indices,
            stored,
            codes,
            n_classes,
            values: (0..n_rows).map(|_| random.below(9) / 8.0).collect(),
            weights: (0..n_rows).map(|_| random.below(5) / 2.0).collect(),
        }
    }

    /// The same with counts for values: nothing is negative.
    pub(crate) fn counts(seed: u64, n_rows: usize, n_features: usize, n_classes: usize) -> Self {
        let mut set = Self::new(seed, n_rows, n_features, n_classes);
        for value in set.dense.iter_mut().chain(&mut set.stored) {
            *value = value.abs();
        }
        set
    }

    /// Row after row, zeros and all.
    pub(crate) fn dense(&self) -> impl Iterator<Item = &[f64]> {
        self.dense.chunks_exact(self.n_features)
    }

    pub(crate) fn rows(&self) -> Dense<'_> {
        Dense::new(&self.dense, self.n_rows, self.n_features).expect("valid")
    }

    pub(crate) fn csr(&self) -> Csr<'_, i32> {
        Csr::new(&self.indptr, &self.indices, &self.stored, self.n_features).expect("valid")
    }

    /// The same rows as dense and as CSR examples with classes.
    pub(crate) fn classified(&self) -> (Examples<'_, Dense<'_>>, Examples<'_, Csr<'_, i32>>) {
        (
            Examples::classified(self.rows(), &self.codes, self.n_classes).expect("valid"),
            Examples::classified(self.csr(), &self.codes, self.n_classes).expect("valid"),
        )
    }

    /// The same rows as dense and as CSR examples with one number each.
    pub(crate) fn valued(&self) -> (Examples<'_, Dense<'_>>, Examples<'_, Csr<'_, i32>>) {
        (
            Examples::valued(self.rows(), &self.values, 1).expect("valid"),
            Examples::valued(self.csr(), &self.values, 1).expect("valid"),
        )
    }

    /// The same rows as dense and as CSR examples without targets.
    pub(crate) fn unlabelled(&self) -> (Examples<'_, Dense<'_>>, Examples<'_, Csr<'_, i32>>) {
        (
            Examples::unlabelled(self.rows()),
            Examples::unlabelled(self.csr()),
        )
    }

    /// A weight for each row, some of them zero.
    pub(crate) fn weights(&self) -> &[f64] {
        &self.weights
    }

    pub(crate) fn values(&self) -> &[f64] {
        &self.values
    }

    pub(crate) fn codes(&self) -> &[u32] {
        &self.codes
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
