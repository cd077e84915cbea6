//! Small binary problems of support vector machines.

use ndarray::Array2;

pub(crate) const N_FEATURES: usize = 3;

/// Rows, the positive ones first, and what their errors cost.
#[derive(Clone, Debug)]
pub(crate) struct Small {
    pub(crate) values: Array2<f64>,
    /// 1 for positive rows, −1 for others.
    pub(crate) labels: Vec<f64>,
    pub(crate) costs: Vec<f64>,
}

impl Small {
    pub(crate) fn new(values: Array2<f64>, n_positive: usize, costs: Vec<f64>) -> Self {
        let label = |v: usize| if v < n_positive { 1.0 } else { -1.0 };
        Self {
            labels: (0..costs.len()).map(label).collect(),
            values,
            costs,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.costs.len()
    }
}

/// Two noisy clouds, large enough for shrinking to set in.
pub(crate) fn clouds(n: usize) -> Small {
    let mut state = 7_u64;
    let uniform = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 40) as f64 / f64::from(1 << 24) - 0.5
    };
    let shift = |i: usize| if i < n / 2 { 0.3 } else { -0.3 };
    let values = Array2::from_shape_simple_fn((n, N_FEATURES), uniform)
        + Array2::from_shape_fn((n, 1), |(i, _)| shift(i));
    Small::new(values, n / 2, vec![50.0; n])
}
