//! No fewer features than rows, or a kernel: everything from the n × n Gram K.
//!
//! With K = U·diag(d)·Uᵀ, C = (K + λI)⁻¹ = U·diag(1/(d + λ))·Uᵀ and c = Cy, rows D that are left
//! out have residuals C_DD⁻¹ c_D: no 1 − h that could cancel, though here h may be close to 1 for
//! every row. An intercept is the direction √w, along which C is zero: K is centred, so that √w is
//! an eigenvector, and a large eigenvalue given to it tells it from all others.

use super::eliminate::Hat;
use super::linalg::{self, Mat, MatMut};
use super::moments::{BLOCK, Frame, Packed, is_sparse};
use super::problem::{Model, Problem};
use crate::data::{Row, Rows};
use crate::{Monitor, Result};

/// (d_max + λ)/(d_min + λ) above which C has too few digits.
const WORST: f64 = 1e7;

/// How much larger inner products may be before centring than after it.
const FAR: f64 = 1e3;

/// The targets and weights of a dual problem.
#[derive(Clone, Copy)]
pub(super) struct Targets<'a> {
    pub(super) values: &'a [f64],
    pub(super) n_outputs: usize,
    pub(super) root_weights: Option<&'a [f64]>,
}

impl Targets<'_> {
    fn root_weight(&self, row: usize) -> f64 {
        self.root_weights.map_or(1.0, |w| w[row])
    }
}

/// The fit to all rows, in the eigenvectors of √w·K·√w.
pub(super) struct Dual<'a> {
    targets: Targets<'a>,
    /// Uᵀ: a column a row of the data.
    vectors: Mat<f64>,
    gains: Mat<f64>,
    theta: Mat<f64>,
    level: Vec<f64>,
    alphas: Vec<f64>,
}

impl<'a> Dual<'a> {
    /// From K, or from the centred K if there is an intercept. `None` where K has too few digits
    /// for the smallest λ; then folds must be fitted one by one.
    pub(super) fn new(
        mut gram: Mat<f64>,
        targets: Targets<'a>,
        alphas: &[f64],
        intercept: bool,
    ) -> Option<Self> {
        let (n, q) = (gram.nrows(), targets.n_outputs);
        let roots: Vec<f64> = (0..n).map(|row| targets.root_weight(row)).collect();
        if roots.contains(&0.0) {
            return None;
        }
        let weight: f64 = roots.iter().map(|w| w * w).sum();
        let trace: f64 = (0..n).map(|i| roots[i] * roots[i] * gram[(i, i)]).sum();
        let apart = match intercept {
            true if trace == 0.0 => 1.0,
            true => 2.0 * trace,
            false => 0.0,
        };
        for j in 0..n {
            for i in j..n {
                gram[(i, j)] = roots[i] * roots[j] * (gram[(i, j)] + apart / weight);
            }
        }
        let (mut values, vectors) = linalg::eigen(&gram)?;
        if intercept {
            values.pop();
        }
        let is_safe = |alpha: &f64| {
            let sizes = values.iter().map(|d| (d + alpha).abs());
            let largest = sizes.clone().fold(0.0, f64::max);
            sizes.fold(f64::INFINITY, f64::min) * WORST >= largest && largest.is_finite()
        };
        if !alphas.iter().all(is_safe) {
            return None;
        }
        let gains = Mat::from_fn(n, alphas.len(), |i, l| {
            values.get(i).map_or(0.0, |d| -(d + alphas[l]).recip())
        });
        let level: Vec<f64> = (0..q)
            .map(|o| {
                let sum = (0..n).map(|i| roots[i] * roots[i] * targets.values[i * q + o]);
                if intercept {
                    sum.sum::<f64>() / weight
                } else {
                    0.0
                }
            })
            .collect();
        let weighted = Mat::from_fn(n, q, |i, o| {
            roots[i] * (targets.values[i * q + o] - level[o])
        });
        let along = linalg::product(vectors.transpose(), weighted.as_ref());
        let theta = Mat::from_fn(n, alphas.len() * q, |i, c| {
            gains[(i, c / q)] * along[(i, c % q)]
        });
        Some(Self {
            targets,
            vectors: vectors.transpose().to_owned(),
            gains,
            theta,
            level,
            alphas: alphas.to_vec(),
        })
    }
}

impl Hat for Dual<'_> {
    fn identity(&self) -> f64 {
        0.0
    }
    fn gains(&self) -> &Mat<f64> {
        &self.gains
    }
    fn theta(&self) -> &Mat<f64> {
        &self.theta
    }
    fn residual_scale(&self, alpha: usize) -> f64 {
        self.alphas[alpha]
    }
    fn weighted(&self, rows: &[usize]) -> Mat<f64> {
        Mat::from_fn(self.vectors.nrows(), rows.len(), |i, c| {
            self.vectors[(i, rows[c])]
        })
    }
    fn plain(&self, rows: &[usize]) -> Mat<f64> {
        self.weighted(rows)
    }
    fn root_weight(&self, row: usize) -> f64 {
        self.targets.root_weight(row)
    }
    fn target(&self, row: usize) -> &[f64] {
        let q = self.targets.n_outputs;
        &self.targets.values[row * q..][..q]
    }
    fn level(&self) -> &[f64] {
        &self.level
    }
    fn coefficients(&self, _: &Mat<f64>) -> Mat<f64> {
        Mat::new()
    }
}

impl<R: Rows> Problem<'_, R> {
    pub(super) fn dual_targets(&self) -> Targets<'_> {
        Targets {
            values: self.targets,
            n_outputs: self.n_outputs,
            root_weights: self.root_weights.as_deref(),
        }
    }

    /// ⟨x_i, x_j⟩ of all rows, about their weighted mean if there is an intercept; `None` where
    /// centring leaves too few digits.
    pub(super) fn inner_products(
        &self,
        model: &Model,
        monitor: &Monitor,
    ) -> Result<Option<Mat<f64>>> {
        let n = self.n_rows();
        let frame = if model.intercept {
            Frame::near_mean(self.rows)
        } else {
            Frame::plain(self.rows.n_features())
        };
        let mut gram = Mat::zeros(n, n);
        self.fill(&frame, 0, gram.as_mut(), monitor)?;
        linalg::mirror(&mut gram);
        let largest = |gram: &Mat<f64>| (0..n).map(|i| gram[(i, i)]).fold(0.0, f64::max);
        let before = largest(&gram);
        if model.intercept {
            self.centre(&mut gram);
        }
        Ok((largest(&gram) * FAR >= before).then_some(gram))
    }

    /// Fills the lower triangle of some columns, `first` and those after it.
    fn fill(
        &self,
        frame: &Frame,
        first: usize,
        gram: MatMut<'_, f64>,
        monitor: &Monitor,
    ) -> Result<()> {
        let width = gram.ncols();
        if width > BLOCK {
            let middle = (width / 2).next_multiple_of(BLOCK);
            let (left, right) = gram.split_at_col_mut(middle);
            let (left, right) = rayon::join(
                || self.fill(frame, first, left, monitor),
                || self.fill(frame, first + middle, right, monitor),
            );
            return left.and(right);
        }
        let n = self.n_rows();
        let rows: Vec<usize> = (first..n).collect();
        let mut gram = gram;
        if frame.is_plain() && is_sparse(self.rows) {
            let mut scattered = vec![0.0; self.rows.n_features()];
            for j in 0..width {
                let column = self.rows.row(first + j);
                column.entries().for_each(|(f, v)| scattered[f] = v);
                for i in first + j..n {
                    let row = self.rows.row(i).entries();
                    gram[(i, j)] = row.map(|(f, v)| v * scattered[f]).sum();
                }
                column.entries().for_each(|(f, _)| scattered[f] = 0.0);
            }
            return monitor.check();
        }
        let p = self.rows.n_features();
        let write = |row: usize, out: &mut [f64]| frame.write(self.rows.row(row), 1.0, out);
        let (mut packed, mut own) = (Packed::new(p), Packed::new(p));
        let own = own.columns(&rows[..width], write);
        for block in rows.chunks(BLOCK) {
            let x = packed.columns(block, write);
            let part = gram.as_mut().get_mut(block[0]..block[0] + block.len(), ..);
            linalg::add_product(part, x.transpose(), own);
            monitor.check()?;
        }
        Ok(())
    }

    /// K − K̄_i − K̄_j + K̄, the means weighted.
    fn centre(&self, gram: &mut Mat<f64>) {
        let n = gram.nrows();
        let w: Vec<f64> = (0..n).map(|row| self.root_weight(row).powi(2)).collect();
        let weight: f64 = w.iter().sum();
        let means: Vec<f64> = (0..n)
            .map(|j| (0..n).map(|i| w[i] * gram[(i, j)]).sum::<f64>() / weight)
            .collect();
        let mean: f64 = (0..n).map(|j| w[j] * means[j]).sum::<f64>() / weight;
        for j in 0..n {
            for i in 0..n {
                gram[(i, j)] += mean - means[i] - means[j];
            }
        }
    }
}
