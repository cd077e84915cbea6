//! Cross-validation as the paper prints it: index lists, whole copies, no reuse.

use onefold::data::Dataset;
use onefold::learners::{Learner, Order};
use onefold::{Folds, Resampling};

/// What the recursion of Algorithm 1 passes on, and what it finds.
pub(crate) struct Textbook<'a> {
    data: &'a Dataset<'a>,
    chunks: Vec<Vec<usize>>,
    order: Order,
    /// Outputs in the order of the samples.
    pub(crate) outputs: Vec<Vec<f64>>,
    /// The model of each chunk.
    pub(crate) models: Vec<Box<dyn Learner>>,
    pub(crate) rows_fed: u64,
}

impl<'a> Textbook<'a> {
    /// Algorithm 1 on all chunks, from the empty model.
    pub(crate) fn tree(
        empty: &dyn Learner,
        data: &'a Dataset<'a>,
        folds: &Folds,
        order: Order,
    ) -> Self {
        let mut run = Self {
            data,
            chunks: (0..folds.len())
                .map(|fold| folds.rows(fold..fold + 1).to_vec())
                .collect(),
            order,
            outputs: vec![vec![]; data.n_rows()],
            models: vec![],
            rows_fed: 0,
        };
        run.tree_cv(1, folds.len(), empty);
        run
    }

    /// `TREECV(s, e, f)`, with chunks counted from 1 and both ends included.
    fn tree_cv(&mut self, s: usize, e: usize, f: &dyn Learner) {
        if s == e {
            for row in self.chunks[s - 1].clone() {
                self.outputs[row] = evaluate(f, self.data, &[row]);
            }
            self.models.push(copy(f));
            return;
        }
        let m = usize::midpoint(s, e);
        let left = self.updated(f, m + 1, e);
        self.tree_cv(s, m, &*left);
        let right = self.updated(f, s, m);
        self.tree_cv(m + 1, e, &*right);
    }

    /// The model after the chunks `from..=to`, updated row by row.
    fn updated(&mut self, f: &dyn Learner, from: usize, to: usize) -> Box<dyn Learner> {
        let mut rows: Vec<usize> = self.chunks[from - 1..to].concat();
        permute(&mut rows, self.order, from as u64 - 1, to as u64);
        self.rows_fed += rows.len() as u64;
        let mut model = copy(f);
        for row in rows {
            model.update(self.data, &[row], None).expect("updated");
        }
        model
    }
}

/// The outputs of one training per split, split after split in the order of the held-out rows.
pub(crate) fn refits(
    empty: &dyn Learner,
    data: &Dataset<'_>,
    resampling: &dyn Resampling,
    order: Order,
) -> Vec<f64> {
    let mut outputs = vec![];
    for split in 0..resampling.n_splits() {
        let mut rows = resampling.training(split).concat();
        permute(&mut rows, order, split as u64, split as u64 + 1);
        let mut model = copy(empty);
        for row in rows {
            model.update(data, &[row], None).expect("updated");
        }
        for &row in resampling.held_out(split) {
            outputs.extend(evaluate(&*model, data, &[row]));
        }
    }
    outputs
}

/// A model that shares nothing with `model`.
pub(crate) fn copy(model: &dyn Learner) -> Box<dyn Learner> {
    let mut copy = model.fork().expect("forked");
    copy.copy_from(model).expect("copied");
    copy
}

/// The outputs for some rows.
pub(crate) fn evaluate(model: &dyn Learner, data: &Dataset<'_>, rows: &[usize]) -> Vec<f64> {
    let mut out = vec![f64::NAN; rows.len() * model.n_outputs()];
    model.evaluate(data, rows, &mut out).expect("evaluated");
    out
}

/// The random order of a batch: `SplitMix64`, keyed by the seed and two numbers, shuffles from the end.
fn permute(rows: &mut [usize], order: Order, start: u64, end: u64) {
    let Order::Random { seed } = order else {
        return;
    };
    let mix = |mut z: u64| {
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    };
    let mut state = mix(mix(seed).wrapping_add(start)).wrapping_add(end);
    for i in (1..rows.len()).rev() {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let product = u128::from(mix(state)) * (i as u128 + 1);
        rows.swap(i, usize::try_from(product >> 64).expect("small"));
    }
}
