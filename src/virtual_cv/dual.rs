//! No fewer features than rows, or a kernel: everything from the n × n Gram K.
//!
//! With K = QBQᵀ, B a band (`reduce`), C = (K + λI)⁻¹ = Q(B + λI)⁻¹Qᵀ and c = Cy, rows D that are
//! left out have residuals C_DD⁻¹ c_D: no 1 − h that could cancel, though here h may be close to 1
//! for every row. With B + λI = LDLᵀ, C_DD is that of the columns L⁻¹Q_Dᵀ, so that eigenvectors are
//! not needed for any λ. An intercept is the direction √w, along which C is zero: Q leaves it out,
//! and that also centres K.

use rayon::prelude::*;

use super::eliminate::Hat;
use super::moments::{Frame, is_sparse};
use super::problem::{Model, Problem};
use crate::data::{Layout, Row};
use crate::linalg::{self, BandFactor, BandForm, Mat, MatMut, MatRef, TILE_COLUMNS, par_tiles};
use crate::{Monitor, Result};

/// (d_max + λ)/(d_min + λ) above which C has too few digits.
const WORST: f64 = 1e7;

/// λ in units of K beyond which nothing but the intercept is left of a prediction.
const ENDLESS: f64 = 1e100;

/// Features that are copied and multiplied at a time: no power of two, which would crowd the rows
/// of a tile into a few lines of the cache.
const FEATURES: usize = 1000;

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

    /// The weighted means, if there is an intercept to take them up.
    fn level(&self, intercept: bool) -> Vec<f64> {
        let q = self.n_outputs;
        let weights = (0..self.values.len() / q).map(|row| self.root_weight(row).powi(2));
        let weight: f64 = weights.clone().sum();
        let mean = |o: usize| {
            let sum = weights.clone().zip(self.values[o..].iter().step_by(q));
            sum.map(|(w, y)| w * y).sum::<f64>() / weight
        };
        (0..q)
            .map(|o| if intercept { mean(o) } else { 0.0 })
            .collect()
    }
}

/// The fit to all rows, in coordinates in which √w·K·√w is a band.
pub(super) struct Dual<'a> {
    targets: Targets<'a>,
    /// Qᵀ: a column a row of the data.
    vectors: Mat<f64>,
    /// Of B + λI for every λ, all in units of K.
    factors: Vec<BandFactor>,
    alphas: Vec<f64>,
    theta: Mat<f64>,
    level: Vec<f64>,
}

impl<'a> Dual<'a> {
    /// From the lower triangle of K. `None` where K has too few digits for the smallest λ; then
    /// folds must be fitted one by one.
    pub(super) fn new(
        mut gram: Mat<f64>,
        targets: Targets<'a>,
        model: &Model,
        monitor: &Monitor,
    ) -> Result<Option<Self>> {
        let n = gram.nrows();
        let roots = Mat::from_fn(n, 1, |row, _| targets.root_weight(row));
        let Some(unit) = weigh(&mut gram, roots.col_as_slice(0)) else {
            return Ok(None);
        };
        let alphas: Vec<f64> = model
            .alphas
            .iter()
            .map(|a| (a / unit).min(ENDLESS))
            .collect();
        let trace: f64 = (0..n).map(|i| gram[(i, i)]).sum();
        let axis = model.intercept.then(|| roots.clone());
        let reduced = BandForm::new(gram, axis, monitor)?;
        let is_far = model.intercept && reduced.band.trace() * FAR < trace;
        let Some((reduced, factors)) = (!is_far).then(|| factors(reduced, &alphas)).flatten()
        else {
            return Ok(None);
        };
        let level = targets.level(model.intercept);
        let q = targets.n_outputs;
        let weighted = Mat::from_fn(n, q, |i, o| {
            roots[(i, 0)] * (targets.values[i * q + o] - level[o])
        });
        let along = linalg::product(reduced.q_transposed.as_ref(), weighted.as_ref());
        let mut theta = Mat::from_fn(along.nrows(), alphas.len() * q, |i, c| along[(i, c % q)]);
        for (alpha, factor) in factors.iter().enumerate() {
            gain(factor, theta.get_mut(.., alpha * q..(alpha + 1) * q));
        }
        Ok(Some(Self {
            targets,
            vectors: reduced.q_transposed,
            factors,
            alphas,
            theta,
            level,
        }))
    }
}

/// A ← −(B + λI)⁻¹A.
fn gain(factor: &BandFactor, mut a: MatMut<'_, f64>) {
    for j in 0..a.ncols() {
        let mut x: Vec<f64> = a.as_ref().col(j).iter().map(|a| -a).collect();
        factor.solve(&mut x);
        for (a, x) in a.as_mut().col_mut(j).iter_mut().zip(x) {
            *a = x;
        }
    }
}

/// K ← √w·K·√w in units, powers of two, in which it is neither huge nor tiny; `None` where some
/// weight is zero or some value not finite.
fn weigh(gram: &mut Mat<f64>, roots: &[f64]) -> Option<f64> {
    let n = gram.nrows();
    let mut largest = 0.0_f64;
    for j in 0..n {
        let column = &mut gram.col_as_slice_mut(j)[j..];
        for (k, root) in column.iter_mut().zip(&roots[j..]) {
            *k *= root * roots[j];
            largest = largest.max(k.abs());
        }
        if column.iter().any(|k| !k.is_finite()) {
            return None;
        }
    }
    if roots.contains(&0.0) {
        return None;
    }
    let unit = if largest > 0.0 {
        largest.log2().floor().exp2()
    } else {
        1.0
    };
    for j in 0..n {
        gram.col_as_slice_mut(j)[j..]
            .iter_mut()
            .for_each(|k| *k /= unit);
    }
    Some(unit)
}

/// A factor for every λ, with a diagonal band if that of K is not definite; `None` where they have
/// too few digits.
fn factors(reduced: BandForm, alphas: &[f64]) -> Option<(BandForm, Vec<BandFactor>)> {
    let factor = |reduced: &BandForm| -> Vec<BandFactor> {
        let alphas = alphas.par_iter();
        alphas.map(|&alpha| reduced.band.factor(alpha)).collect()
    };
    let found = factor(&reduced);
    if found.iter().all(BandFactor::is_definite) {
        let hardest = (0..alphas.len()).min_by(|&i, &j| alphas[i].total_cmp(&alphas[j]))?;
        let condition = reduced.band.condition(alphas[hardest], &found[hardest]);
        return (condition <= WORST).then_some((reduced, found));
    }
    // Without pivoting an indefinite band has no stable factor, but a diagonal has.
    let (values, reduced) = reduced.diagonalize()?;
    let is_safe = |alpha: &f64| {
        let sizes = values.iter().map(|d| (d + alpha).abs());
        let largest = sizes.clone().fold(0.0, f64::max);
        sizes.fold(f64::INFINITY, f64::min) * WORST >= largest && largest.is_finite()
    };
    alphas.iter().all(is_safe).then(|| {
        let found = factor(&reduced);
        (reduced, found)
    })
}

impl Hat for Dual<'_> {
    fn identity(&self) -> f64 {
        0.0
    }
    fn n_alphas(&self) -> usize {
        self.factors.len()
    }
    fn theta(&self) -> &Mat<f64> {
        &self.theta
    }
    fn residual_scale(&self, alpha: usize) -> f64 {
        self.alphas[alpha]
    }
    fn weighted(&self, rows: &[usize]) -> Mat<f64> {
        let mut out = Mat::zeros(self.vectors.nrows(), rows.len());
        for (c, &row) in rows.iter().enumerate() {
            out.col_as_slice_mut(c)
                .copy_from_slice(self.vectors.col_as_slice(row));
        }
        out
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
    fn complements(&self, a: &Mat<f64>) -> Mat<f64> {
        linalg::quadratic_form_diagonals(&self.factors, a.as_ref())
    }
    fn system(&self, alpha: usize, a: MatRef<'_, f64>) -> Mat<f64> {
        self.factors[alpha].quadratic_form(a)
    }
    fn gain(&self, alpha: usize, b: MatMut<'_, f64>) {
        gain(&self.factors[alpha], b);
    }
}

impl<R: Layout> Problem<'_, R> {
    /// The fit to all rows; `None` where its digits do not suffice.
    pub(super) fn dual(&self, model: &Model, monitor: &Monitor) -> Result<Option<Dual<'_>>> {
        let targets = Targets {
            values: self.targets,
            n_outputs: self.n_outputs,
            root_weights: self.root_weights.as_deref(),
        };
        let frame = if model.intercept {
            Frame::near_mean(self.rows)
        } else {
            Frame::plain(self.rows.n_features())
        };
        let gram = self.inner_products(&frame, monitor)?;
        Dual::new(gram, targets, model, monitor)
    }

    /// ⟨x_i, x_j⟩ of all rows, the lower triangle.
    fn inner_products(&self, frame: &Frame, monitor: &Monitor) -> Result<Mat<f64>> {
        let (n, p) = (self.n_rows(), self.rows.n_features());
        let mut gram = Mat::zeros(n, n);
        if frame.is_plain() && is_sparse(self.rows) {
            par_tiles(0, gram.as_mut(), &|first, columns| {
                self.fill_sparse(first, columns, monitor);
            });
            monitor.check()?;
            return Ok(gram);
        }
        for first in (0..p).step_by(FEATURES) {
            let mut x = Mat::zeros(FEATURES.min(p - first), n);
            par_tiles(0, x.as_mut(), &|row, columns| {
                for (row, column) in (row..).zip(columns.col_iter_mut()) {
                    let column = column.try_as_col_major_mut();
                    let out = column.expect("a column of a new matrix").as_slice_mut();
                    frame.write_from(first, self.rows.row(row), out);
                }
            });
            par_tiles(0, gram.as_mut(), &|row, columns| {
                add_products(row, columns, x.as_ref(), monitor);
            });
            monitor.check()?;
        }
        Ok(gram)
    }

    /// The columns from `first` on, on and below the diagonal, from stored values alone.
    fn fill_sparse(&self, first: usize, mut columns: MatMut<'_, f64>, monitor: &Monitor) {
        let mut scattered = vec![0.0; self.rows.n_features()];
        for j in 0..columns.ncols() {
            if monitor.check().is_err() {
                return;
            }
            let column = self.rows.row(first + j);
            column.entries().for_each(|(f, v)| scattered[f] = v);
            for i in first + j..self.n_rows() {
                let row = self.rows.row(i).entries();
                columns[(i, j)] = row.map(|(f, v)| v * scattered[f]).sum();
            }
            column.entries().for_each(|(f, _)| scattered[f] = 0.0);
        }
    }
}

/// Adds XᵀX to the columns of a Gram from `first` on, on and below the tile of the diagonal.
fn add_products(first: usize, columns: MatMut<'_, f64>, x: MatRef<'_, f64>, monitor: &Monitor) {
    let own = x.get(.., first..first + columns.ncols());
    let mut columns = columns;
    for top in (first..x.ncols()).step_by(TILE_COLUMNS) {
        if monitor.check().is_err() {
            return;
        }
        let end = x.ncols().min(top + TILE_COLUMNS);
        let part = columns.as_mut().get_mut(top..end, ..);
        linalg::add_product(part, x.get(.., top..end).transpose(), own);
    }
}
