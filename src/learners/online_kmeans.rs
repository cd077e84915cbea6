//! Online k-means: every centre is the mean of the rows that were assigned to it.
//!
//! # Problem
//! Centres c with a small Σ wᵢ·min ‖xᵢ − c‖², the minimum being over all centres.
//!
//! # Method
//! MacQueen's: the first k distinct rows are the first centres; from then on a row goes to its
//! nearest centre (the first of them, if several are equally near), which moves to the mean of its
//! rows. A row of weight 0 has no effect. The algorithm is deterministic.
//!
//! Centre c = s/W is kept as the weight W and the sum s of its rows, with ‖c‖², so that a row costs
//! what it stores:
//!
//! > ‖x − c‖² = ‖x‖² − 2⟨x, s⟩/W + ‖c‖².
//!
//! This is exact to about 1e-16 of ‖x‖² + ‖c‖²: centre rows that lie far from zero and close
//! together. Two rows are distinct when their squared distance is above 1e-12 of that. Rows whose
//! squares overflow are refused, and so are those whose squares underflow where no other row tells
//! them apart.
//!
//! # Cost
//! | operation | values |
//! |---|---|
//! | update with or evaluate a row | stored values of the row × centres |
//! | copy | (features + 2) × centres; a fork and an update copy the centres that moved |
//!
//! Outputs: the squared distance to each centre, ∞ for those that have no row yet. The smallest is
//! the row's loss, its index the row's cluster.
//!
//! # References
//! J. MacQueen, *Some methods for classification and analysis of multivariate observations*, Fifth
//! Berkeley Symposium (1967), section 3.

use std::ops::Range;

use ndarray::Array2;

use super::hyper_parameters;
use super::learner::{CostModel, Fitted, Learner};
use super::state::State;
use super::undo::{Undo, UndoLog};
use super::{state_methods, with_undo};
use crate::data::{Dataset, Examples, Layout, Row, with_layout};
use crate::runtime::simd::{self, Simd, WithSimd};
use crate::{Error, Result};

/// Rows whose squared distance is below this fraction of their squared norms are the same row.
const MIN_RELATIVE_DISTANCE: f64 = 1e-12;

/// Squared norms with all their digits, and room for sums.
const SQUARED_NORMS: Range<f64> = 1e-305..1e307;

/// The smallest weighted sum with all its digits.
const MIN_SUM: f64 = 1e-305;

/// The weight of a centre from which sums are above [`MIN_SUM`], whatever its rows.
const MIN_WEIGHT: f64 = 1e-140;

hyper_parameters! {
    /// Hyper-parameters of [`OnlineKMeans`].
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub struct KMeansOptions {
        /// The number of centres.
        n_clusters: usize = 8 ;
    }
}

/// k-means, one row at a time.
///
/// State: one vector per centre, s; scalars: W and ‖c‖² of each. Centres get their first rows in order.
#[derive(Clone, Debug)]
pub struct OnlineKMeans {
    n_features: usize,
    n_clusters: usize,
    state: State,
}

impl OnlineKMeans {
    /// Centres without rows.
    pub fn new(options: KMeansOptions, n_features: usize) -> Result<Self> {
        let n_clusters = options.n_clusters;
        super::check_domain(
            n_clusters > 0,
            "n_clusters",
            "at least 1",
            n_clusters as f64,
        )?;
        let what = format_args!("n_clusters={n_clusters} with {n_features} features");
        let state = State::zeros(what, n_clusters, n_features, n_clusters.saturating_mul(2))?;
        Ok(Self {
            n_features,
            n_clusters,
            state,
        })
    }

    /// The centres that have rows, each with the weight of its rows.
    pub fn centres(&self) -> Vec<(Vec<f64>, f64)> {
        let sizes = self.state.scalars().chunks_exact(2).map(|size| size[0]);
        let centre = |(centre, size): (usize, f64)| {
            let sum = self.state.vector(centre).iter();
            (sum.map(|s| s / size).collect(), size)
        };
        let seen = sizes.take_while(|&size| size > 0.0);
        seen.enumerate().map(centre).collect()
    }
}

impl Learner for OnlineKMeans {
    fn n_outputs(&self) -> usize {
        self.n_clusters
    }

    fn cost_model(&self, data: &Dataset<'_>) -> CostModel {
        let stored = data.mean_nnz();
        CostModel::logged(
            stored * (self.n_clusters + 1) as f64,
            stored + 2.0,
            &self.state,
        )
    }

    fn update(
        &mut self,
        data: &Dataset<'_>,
        rows: &[usize],
        undo: Option<&mut UndoLog>,
    ) -> Result<()> {
        with_layout!(data, |data| {
            data.check_features(self.n_features)?;
            let model = self;
            with_undo!(undo, |undo| simd::dispatch(Update {
                model,
                data,
                rows,
                undo,
            }))
        })
    }

    fn evaluate(&self, data: &Dataset<'_>, rows: &[usize], out: &mut [f64]) -> Result<()> {
        with_layout!(data, |data| {
            data.check_features(self.n_features)?;
            simd::dispatch(Evaluate {
                model: self,
                data,
                rows,
                out,
            })
        })
    }

    fn outputs_may_be_infinite(&self) -> bool {
        true
    }

    state_methods!();

    /// Centres without rows are NaN.
    fn fitted(&self) -> Result<Fitted> {
        let centres = self.centres();
        let shape = (self.n_clusters, self.n_features);
        let array = Array2::from_shape_fn(shape, |(centre, feature)| {
            let centre = centres.get(centre);
            centre.map_or(f64::NAN, |(centre, _)| centre[feature])
        });
        Ok(vec![("cluster_centers_", array.into_dyn())])
    }
}

/// ‖x − c‖² of a centre that has rows.
#[inline(always)]
fn squared_distance(product: f64, norm: f64, size: &[f64]) -> f64 {
    let distance = norm - 2.0 * product / size[0] + size[1];
    // NaN, of sums that have overflowed, stays.
    if distance < 0.0 { 0.0 } else { distance }
}

/// [`Error::Value`] for a row whose ‖x‖², with that of its nearest centre, has overflowed or lost its
/// digits to underflow.
#[cold]
fn out_of_range<R: Row>(row: R, index: usize, norm: f64) -> Error {
    let largest = row
        .entries()
        .fold(0.0, |largest: f64, (_, v)| largest.max(v.abs()));
    Error::Value {
        place: format!("the largest |X[{index}, …]|"),
        value: largest,
        rule: if norm < 1.0 {
            "squared distances underflow; scale the features up"
        } else {
            "squared distances overflow; scale the features down"
        },
    }
}

/// Returns true if `square`, the larger of the squared norms of a row and of its nearest centre, has
/// all its digits.
#[inline(always)]
fn is_in_range<R: Row>(square: f64, row: R) -> bool {
    let all_zero = || square < 1.0 && row.entries().all(|(_, v)| v == 0.0);
    SQUARED_NORMS.contains(&square) || all_zero()
}

struct Update<'a, 'd, R, U> {
    model: &'a mut OnlineKMeans,
    data: &'a Examples<'d, R>,
    rows: &'a [usize],
    undo: &'a mut U,
}

impl<R: Layout, U: Undo> WithSimd for Update<'_, '_, R, U> {
    type Output = Result<()>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Result<()> {
        let Self { model, data, .. } = self;
        let n_clusters = model.n_clusters;
        for index in data.prefetched(self.rows) {
            let (row, weight) = (data.rows().row(index), data.weight(index));
            if weight <= 0.0 {
                continue;
            }
            let norm = row.squared_norm(simd);
            // The nearest centre, its distance and ⟨x, s⟩; or the first without rows.
            let (mut nearest, mut least, mut product) = (0, f64::INFINITY, 0.0);
            let sizes = model.state.scalars();
            for (centre, size) in sizes.chunks_exact(2).enumerate() {
                if size[0] <= 0.0 {
                    let of = &sizes[2 * nearest..];
                    if least > MIN_RELATIVE_DISTANCE * (norm + of[1]) || centre == 0 {
                        (nearest, product) = (centre, 0.0);
                    }
                    break;
                }
                let with = row.dot(simd, model.state.vector(centre));
                let distance = squared_distance(with, norm, size);
                if distance < least {
                    (nearest, least, product) = (centre, distance, with);
                }
            }
            let (sum, sizes) = model.state.parts_mut(nearest);
            let size = &mut sizes[2 * nearest..][..2];
            if !is_in_range(norm.max(size[1]), row) {
                return Err(out_of_range(row, index, norm.max(size[1])));
            }
            self.undo.save_row(row, nearest, 0, sum);
            self.undo.save_all(n_clusters, 2 * nearest, size);
            row.axpy(simd, weight, sum);
            let before = size[0];
            size[0] += weight;
            let (kept, share) = (before / size[0], weight / size[0]);
            let product = if before > 0.0 { product / before } else { 0.0 };
            size[1] = kept * kept * size[1] + share * (2.0 * kept * product + share * norm);
            if size[0] < MIN_WEIGHT && size[0] * norm.max(size[1]).sqrt() < MIN_SUM {
                return Err(Error::Value {
                    place: format!("weights[{index}]"),
                    value: weight,
                    rule: "weighted sums underflow; scale the weights up",
                });
            }
        }
        Ok(())
    }
}

struct Evaluate<'a, 'd, R> {
    model: &'a OnlineKMeans,
    data: &'a Examples<'d, R>,
    rows: &'a [usize],
    out: &'a mut [f64],
}

impl<R: Layout> WithSimd for Evaluate<'_, '_, R> {
    type Output = Result<()>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Result<()> {
        let Self { model, data, .. } = self;
        let sizes = model.state.scalars();
        let outs = self.out.chunks_exact_mut(model.n_clusters);
        for (index, out) in data.prefetched(self.rows).zip(outs) {
            let row = data.rows().row(index);
            let norm = row.squared_norm(simd);
            let mut largest = norm;
            for (centre, (out, size)) in out.iter_mut().zip(sizes.chunks_exact(2)).enumerate() {
                let sum = model.state.vector(centre);
                largest = largest.max(size[1]);
                *out = if size[0] > 0.0 {
                    squared_distance(row.dot(simd, sum), norm, size)
                } else {
                    f64::INFINITY
                };
            }
            if !is_in_range(largest, row) {
                return Err(out_of_range(row, index, largest));
            }
        }
        Ok(())
    }
}
