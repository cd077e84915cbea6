//! Cross-validation as the paper prints it: index lists, clones everywhere, nothing reused.

use onefold::data::Samples;
use onefold::tree::{Learner, Order};
use onefold::{Folds, Resampling};

/// What the recursion of Algorithm 1 carries along, and what it counts.
pub(crate) struct Textbook<'a, D> {
    pub(crate) data: &'a D,
    pub(crate) chunks: Vec<Vec<usize>>,
    pub(crate) order: Order,
    /// Outputs in the order of the samples.
    pub(crate) outputs: Vec<Vec<f64>>,
    pub(crate) rows_fed: u64,
}

impl<'a, D: Samples> Textbook<'a, D> {
    /// Algorithm 1 on all chunks, from the empty model.
    pub(crate) fn tree<L: Learner<D>>(empty: &L, data: &'a D, folds: &Folds, order: Order) -> Self {
        let mut run = Self {
            data,
            chunks: (0..folds.len())
                .map(|fold| folds.rows(fold..fold + 1).to_vec())
                .collect(),
            order,
            outputs: vec![vec![]; data.n_samples()],
            rows_fed: 0,
        };
        run.tree_cv(1, folds.len(), &empty.copy().expect("copied"));
        run
    }

    /// `TREECV(s, e, f)`, with chunks counted from 1 and both ends included.
    fn tree_cv<L: Learner<D>>(&mut self, s: usize, e: usize, f: &L) {
        if s == e {
            for row in self.chunks[s - 1].clone() {
                let mut out = vec![0.0; f.n_outputs()];
                f.evaluate(self.data, &[row], &mut out).expect("evaluated");
                self.outputs[row] = out;
            }
            return;
        }
        let m = usize::midpoint(s, e);
        let left = self.updated(f, m + 1, e);
        self.tree_cv(s, m, &left);
        let right = self.updated(f, s, m);
        self.tree_cv(m + 1, e, &right);
    }

    /// The model after the chunks `from..=to`, fed row by row.
    fn updated<L: Learner<D>>(&mut self, f: &L, from: usize, to: usize) -> L {
        let mut model = f.copy().expect("copied");
        let mut rows: Vec<usize> = self.chunks[from - 1..to].concat();
        permute(&mut rows, self.order, from as u64 - 1, to as u64);
        for row in rows {
            model.update(self.data, &[row]).expect("updated");
            self.rows_fed += 1;
        }
        model
    }
}

/// The outputs of one training a split, split after split in the order of the held-out rows.
pub(crate) fn refits<D: Samples, L: Learner<D>>(
    empty: &L,
    data: &D,
    resampling: &impl Resampling,
    order: Order,
) -> Vec<(usize, Vec<f64>)> {
    let mut outputs = vec![];
    for split in 0..resampling.n_splits() {
        let mut rows = resampling.training(split).concat();
        permute(&mut rows, order, split as u64, split as u64 + 1);
        let mut model = empty.copy().expect("copied");
        for row in rows {
            model.update(data, &[row]).expect("updated");
        }
        for &row in resampling.held_out(split) {
            let mut out = vec![0.0; model.n_outputs()];
            model.evaluate(data, &[row], &mut out).expect("evaluated");
            outputs.push((row, out));
        }
    }
    outputs
}

/// The random order of a phase: SplitMix64, keyed by the seed and two numbers, shuffles from the end.
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
