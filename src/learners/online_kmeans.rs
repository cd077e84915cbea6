//! Online k-means: every centre is the mean of the rows that were assigned to it.
//!
//! # Problem
//! Centres c with a small Σ wᵢ·min ‖xᵢ − c‖², the minimum being over all centres.
//!
//! # Method
//! MacQueen's: the first k distinct rows are the first centres; from then on a row goes to its
//! nearest centre (the first of them, if several are equally near), which moves to the mean of its
//! rows. A row of weight 0 is as good as absent. There is no chance in it.
//!
//! Centre c is kept as the weight W and the sum s of its rows, with ‖s‖², so that a row costs what it
//! stores:
//!
//! > ‖x − c‖² = ‖x‖² − 2⟨x, s⟩/W + ‖s‖²/W².
//!
//! This is exact to about 1e-16 of ‖x‖² + ‖c‖²: centre rows that lie far from zero and close
//! together. Two rows are distinct when their squared distance is above 1e-12 of that.
//!
//! # Cost
//! | operation | numbers |
//! |---|---|
//! | feed or evaluate a row | stored values of the row × centres |
//! | copy | (features + 2) × centres |
//!
//! Outputs: the squared distance to each centre, ∞ for those that have no row yet. The smallest is
//! the row's loss, and its place the row's cluster.
//!
//! # References
//! J. MacQueen, *Some methods for classification and analysis of multivariate observations*, Fifth
//! Berkeley Symposium (1967), section 3.

use crate::Result;
use crate::data::{Examples, Layout, Row};
use crate::runtime::simd::{self, Simd, WithSimd};
use crate::tree::{Effort, Flat, Learner, Undo};

/// Rows nearer than this share of their squared norms are one row.
const SAME: f64 = 1e-12;

/// k-means, one row at a time.
///
/// State: s of each centre; then W and ‖s‖² of each. Centres get their first rows in order.
#[derive(Clone, Debug)]
pub struct OnlineKMeans {
    n_features: usize,
    n_clusters: usize,
    state: Vec<f64>,
}

impl OnlineKMeans {
    /// `n_clusters` centres without rows.
    pub fn new(n_clusters: usize, n_features: usize) -> Result<Self> {
        super::check_domain(
            n_clusters > 0,
            "n_clusters",
            "at least 1",
            n_clusters as f64,
        )?;
        Ok(Self {
            n_features,
            n_clusters,
            state: vec![0.0; (n_features + 2) * n_clusters],
        })
    }

    /// The centres that have rows, each with the weight of its rows.
    pub fn centres(&self) -> Vec<(Vec<f64>, f64)> {
        let (sums, sizes) = self.state.split_at(self.n_features * self.n_clusters);
        let centre = |(centre, size): (usize, &[f64])| {
            let sum = &sums[centre * self.n_features..][..self.n_features];
            (sum.iter().map(|s| s / size[0]).collect(), size[0])
        };
        let seen = sizes.chunks_exact(2).take_while(|size| size[0] > 0.0);
        seen.enumerate().map(centre).collect()
    }
}

impl Flat for OnlineKMeans {
    fn n_outputs(&self) -> usize {
        self.n_clusters
    }

    fn state(&self) -> &[f64] {
        &self.state
    }

    fn state_mut(&mut self) -> &mut [f64] {
        &mut self.state
    }

    fn may_be_infinite(&self) -> bool {
        true
    }

    fn narrowed(&self, from: usize, to: usize) -> Option<Self> {
        (from == self.n_features).then(|| Self::new(self.n_clusters, to).ok())?
    }
}

impl<R: Layout> Learner<Examples<'_, R>> for OnlineKMeans {
    fn effort(&self, data: &Examples<'_, R>) -> Effort {
        let stored = data.stored_per_row();
        Effort {
            update: stored * (self.n_clusters + 1) as f64,
            copy: self.state.len() as f64,
            undo: Some(stored + 2.0),
            indivisible: false,
        }
    }

    fn learn<U: Undo>(
        &mut self,
        data: &Examples<'_, R>,
        rows: &[usize],
        undo: &mut U,
    ) -> Result<()> {
        data.check_features(self.n_features)?;
        simd::dispatch(Feed {
            model: self,
            data,
            rows,
            undo,
        });
        Ok(())
    }

    fn evaluate(&self, data: &Examples<'_, R>, rows: &[usize], out: &mut [f64]) -> Result<()> {
        data.check_features(self.n_features)?;
        simd::dispatch(Evaluate {
            model: self,
            data,
            rows,
            out,
        });
        Ok(())
    }
}

/// ‖x − c‖² of a centre that has rows.
#[inline(always)]
fn squared_distance(product: f64, norm: f64, size: &[f64]) -> f64 {
    (norm - 2.0 * product / size[0] + size[1] / (size[0] * size[0])).max(0.0)
}

struct Feed<'a, 'd, R, U> {
    model: &'a mut OnlineKMeans,
    data: &'a Examples<'d, R>,
    rows: &'a [usize],
    undo: &'a mut U,
}

impl<R: Layout, U: Undo> WithSimd for Feed<'_, '_, R, U> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { model, data, .. } = self;
        let n_features = model.n_features;
        let n_sums = n_features * model.n_clusters;
        let (sums, sizes) = model.state.split_at_mut(n_sums);
        for index in data.ahead(self.rows) {
            let (row, weight) = (data.rows().row(index), data.weight(index));
            if weight <= 0.0 {
                continue;
            }
            let norm = row.squared_norm(simd);
            // The nearest centre, its distance and ⟨x, s⟩; or the first without rows.
            let (mut nearest, mut least, mut product) = (0, f64::INFINITY, 0.0);
            for (centre, size) in sizes.chunks_exact(2).enumerate() {
                if size[0] <= 0.0 {
                    let of = &sizes[2 * nearest..];
                    if least > SAME * (norm + of[1] / (of[0] * of[0])) || centre == 0 {
                        (nearest, product) = (centre, 0.0);
                    }
                    break;
                }
                let sum = &sums[centre * n_features..][..n_features];
                let with = row.dot(simd, sum);
                let distance = squared_distance(with, norm, size);
                if distance < least {
                    (nearest, least, product) = (centre, distance, with);
                }
            }
            let start = nearest * n_features;
            let sum = &mut sums[start..start + n_features];
            let size = &mut sizes[2 * nearest..][..2];
            self.undo.save_row(row, start, sum);
            self.undo.save_all(n_sums + 2 * nearest, size);
            row.axpy(simd, weight, sum);
            size[0] += weight;
            size[1] += weight * (2.0 * product + weight * norm);
        }
    }
}

struct Evaluate<'a, 'd, R> {
    model: &'a OnlineKMeans,
    data: &'a Examples<'d, R>,
    rows: &'a [usize],
    out: &'a mut [f64],
}

impl<R: Layout> WithSimd for Evaluate<'_, '_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { model, data, .. } = self;
        let n_features = model.n_features;
        let (sums, sizes) = model.state.split_at(n_features * model.n_clusters);
        let outs = self.out.chunks_exact_mut(model.n_clusters);
        for (index, out) in data.ahead(self.rows).zip(outs) {
            let row = data.rows().row(index);
            let norm = row.squared_norm(simd);
            for (centre, (out, size)) in out.iter_mut().zip(sizes.chunks_exact(2)).enumerate() {
                let sum = &sums[centre * n_features..][..n_features];
                *out = if size[0] > 0.0 {
                    squared_distance(row.dot(simd, sum), norm, size)
                } else {
                    f64::INFINITY
                };
            }
        }
    }
}
