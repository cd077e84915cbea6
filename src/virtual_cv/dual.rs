//! At least as many features as rows, or a kernel: everything from the n × n Gram K.
//!
//! # Method
//! With K = QBQᵀ, B a band matrix, C = (K + λI)⁻¹ = Q(B + λI)⁻¹Qᵀ and c = Cy, the rows D
//! that are left out have residuals C_DD⁻¹ c_D. No 1 − h cancels, although h may be close to 1 for
//! every row. C_DD = Q_D(B + λI)⁻¹Q_Dᵀ follows from a factor of the band, so eigenvectors are not
//! needed for any λ. An intercept is the direction √w, along which C is zero: Q spans its orthogonal
//! complement, which also centres K.

use super::ridge_path::RidgePath;
use rayon::prelude::*;

use super::eliminate::Hat;
use crate::data::{Layout, Row};
use crate::linalg::{self, BandFactor, BandForm, Mat, MatMut, MatRef, TILE_COLUMNS, par_tiles};
use crate::linear::{FoldMap, LinearProblem, WeightedTargets, is_sparse, near_mean};
use crate::{Monitor, Result};

/// The condition number (d_max + λ)/(d_min + λ) above which C has too few digits.
pub(super) const MAX_CONDITION: f64 = 1e7;

/// λ in units of K from which predictions are the intercept.
const MAX_ALPHA: f64 = 1e100;

/// The largest value of K from which underflow of smaller values loses no digits.
const MIN_PRODUCT: f64 = 1e-290;

/// Features that are copied and multiplied at a time. Not a power of two, which would map the rows of
/// a tile to a few cache sets.
const BLOCK_FEATURES: usize = 1000;

/// The largest ratio of the traces of K before and after centring.
const MAX_CENTRING_RATIO: f64 = 1e3;

/// The fit to all rows, in coordinates in which √w·K·√w is a band matrix.
pub(super) struct Dual<'a> {
    targets: WeightedTargets<'a>,
    /// Qᵀ: one column per row of the data.
    q_transposed: Mat<f64>,
    /// Factors of B + λI for every λ, in units of K.
    factors: Vec<BandFactor>,
    alphas: Vec<f64>,
    /// The unit of K.
    unit: f64,
    theta: Mat<f64>,
    /// ȳ; 0 without an intercept.
    target_mean: Vec<f64>,
}

impl<'a> Dual<'a> {
    /// From the lower triangle of K. `None` if the condition number of K for the smallest λ exceeds
    /// `max_condition`; then folds have to be refitted.
    pub(super) fn new(
        mut gram: Mat<f64>,
        targets: WeightedTargets<'a>,
        alphas: &[f64],
        fit_intercept: bool,
        max_condition: f64,
        monitor: &Monitor,
    ) -> Result<Option<Self>> {
        let n = gram.nrows();
        let roots = Mat::from_fn(n, 1, |row, _| targets.root_weight(row));
        let Some(unit) = weight_and_normalize(&mut gram, roots.col_as_slice(0)) else {
            return Ok(None);
        };
        let alphas: Vec<f64> = alphas.iter().map(|a| (a / unit).min(MAX_ALPHA)).collect();
        let trace: f64 = (0..n).map(|i| gram[(i, i)]).sum();
        let axis = fit_intercept.then(|| roots.clone());
        let form = BandForm::new(gram, axis, monitor)?;
        let is_far_from_mean = fit_intercept && form.band.trace() * MAX_CENTRING_RATIO < trace;
        if is_far_from_mean {
            return Ok(None);
        }
        let Some((form, factors)) = factors(form, &alphas, max_condition, monitor)? else {
            return Ok(None);
        };
        let target_mean = targets.means(0..n, fit_intercept);
        let q = targets.n_outputs;
        let weighted = Mat::from_fn(n, q, |i, o| {
            roots[(i, 0)] * (targets.row(i)[o] - target_mean[o])
        });
        let along = linalg::product(form.q_transposed.as_ref(), weighted.as_ref());
        let mut theta = Mat::from_fn(along.nrows(), alphas.len() * q, |i, c| along[(i, c % q)]);
        for (alpha, factor) in factors.iter().enumerate() {
            apply_g(factor, theta.get_mut(.., alpha * q..(alpha + 1) * q));
        }
        Ok(Some(Self {
            targets,
            q_transposed: form.q_transposed,
            factors,
            alphas,
            unit,
            theta,
            target_mean,
        }))
    }

    /// c for every λ and output: one row per row of the data.
    pub(super) fn coefficients_of_rows(&self) -> Mat<f64> {
        let mut c = linalg::product(self.q_transposed.transpose(), self.theta.as_ref());
        for j in 0..c.ncols() {
            c.col_as_slice_mut(j)
                .iter_mut()
                .for_each(|c| *c /= -self.unit);
        }
        c
    }
}

/// A ← −(B + λI)⁻¹A.
fn apply_g(factor: &BandFactor, mut a: MatMut<'_, f64>) {
    for j in 0..a.ncols() {
        let mut x: Vec<f64> = a.as_ref().col(j).iter().map(|a| -a).collect();
        factor.solve(&mut x);
        for (a, x) in a.as_mut().col_mut(j).iter_mut().zip(x) {
            *a = x;
        }
    }
}

/// K ← √w·K·√w, divided by the power of two that is returned, so that it neither overflows nor
/// underflows; `None` if some weight is zero, or if K has overflowed or lost digits to underflow.
fn weight_and_normalize(gram: &mut Mat<f64>, roots: &[f64]) -> Option<f64> {
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
    if largest > 0.0 && largest < MIN_PRODUCT {
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

/// A factor for every λ, of the diagonal form if the band is not definite; `None` if they are too
/// badly conditioned.
fn factors(
    form: BandForm,
    alphas: &[f64],
    max_condition: f64,
    monitor: &Monitor,
) -> Result<Option<(BandForm, Vec<BandFactor>)>> {
    let factor = |form: &BandForm| -> Vec<BandFactor> {
        let alphas = alphas.par_iter();
        alphas.map(|&alpha| form.band.factor(alpha)).collect()
    };
    let found = factor(&form);
    let smallest = (0..alphas.len()).min_by(|&i, &j| alphas[i].total_cmp(&alphas[j]));
    if let Some(smallest) = smallest.filter(|_| found.iter().all(BandFactor::is_definite)) {
        let condition = form.band.condition(alphas[smallest], &found[smallest]);
        return Ok((condition <= max_condition).then_some((form, found)));
    }
    // Without pivoting the factor of an indefinite band matrix is unstable; that of a diagonal is not.
    let Some((values, form)) = form.diagonalize(monitor)? else {
        return Ok(None);
    };
    let is_safe = |alpha: &f64| {
        let sizes = values.iter().map(|d| (d + alpha).abs());
        let largest = sizes.clone().fold(0.0, f64::max);
        sizes.fold(f64::INFINITY, f64::min) * max_condition >= largest && largest.is_finite()
    };
    Ok(alphas.iter().all(is_safe).then(|| {
        let found = factor(&form);
        (form, found)
    }))
}

impl Hat for Dual<'_> {
    fn epsilon(&self) -> f64 {
        0.0
    }
    fn theta(&self) -> &Mat<f64> {
        &self.theta
    }
    fn residual_scale(&self, alpha: usize) -> f64 {
        self.alphas[alpha]
    }
    fn weighted_coords(&self, rows: &[usize]) -> Mat<f64> {
        let mut out = Mat::zeros(self.q_transposed.nrows(), rows.len());
        for (c, &row) in rows.iter().enumerate() {
            out.col_as_slice_mut(c)
                .copy_from_slice(self.q_transposed.col_as_slice(row));
        }
        out
    }
    fn targets(&self) -> WeightedTargets<'_> {
        self.targets
    }
    fn target_mean(&self) -> &[f64] {
        &self.target_mean
    }
    fn one_minus_h(&self, a: &Mat<f64>) -> Mat<f64> {
        linalg::quadratic_form_diagonals(&self.factors, a.as_ref())
    }
    fn system(&self, alpha: usize, a: MatRef<'_, f64>, _: &Monitor) -> Result<Mat<f64>> {
        Ok(self.factors[alpha].quadratic_form(a))
    }
    fn apply_g(&self, alpha: usize, b: MatMut<'_, f64>) {
        apply_g(&self.factors[alpha], b);
    }
}

impl<R: Layout> LinearProblem<'_, R> {
    /// The fit to all rows; `None` if it is too badly conditioned.
    pub(super) fn dual(&self, path: &RidgePath<'_>, monitor: &Monitor) -> Result<Option<Dual<'_>>> {
        let map = if path.model.fit_intercept {
            near_mean(&self.rows)
        } else {
            FoldMap::identity(self.rows.n_features())
        };
        let gram = self.inner_products(&map, monitor)?;
        // The eigenvalues of K without some rows lie between those of K, so that all singular values of
        // a fold exceed a cut-off that those of all rows exceed.
        let cutoff = path.model.cutoff;
        let by_cutoff = cutoff.map_or(f64::INFINITY, |c| 0.25 * c.ratio.powi(-2));
        Dual::new(
            gram,
            self.targets,
            &path.alphas,
            path.model.fit_intercept,
            MAX_CONDITION.min(by_cutoff),
            monitor,
        )
    }

    /// ⟨x_i, x_j⟩ of all rows, the lower triangle.
    fn inner_products(&self, map: &FoldMap, monitor: &Monitor) -> Result<Mat<f64>> {
        let (n, p) = (self.n_rows(), self.rows.n_features());
        let mut gram = linalg::zeros("the Gram matrix of X", n, n)?;
        if map.is_identity() && is_sparse(&self.rows) {
            par_tiles(0, gram.as_mut(), &|first, columns| {
                self.fill_sparse(first, columns, monitor);
            });
            monitor.check()?;
            return Ok(gram);
        }
        for first in (0..p).step_by(BLOCK_FEATURES) {
            let mut x = Mat::zeros(BLOCK_FEATURES.min(p - first), n);
            par_tiles(0, x.as_mut(), &|row, columns| {
                for (row, column) in (row..).zip(columns.col_iter_mut()) {
                    let column = column.try_as_col_major_mut();
                    let out = column.expect("a column of a new matrix").as_slice_mut();
                    map.write_from(first, self.rows.row(row), out);
                }
            });
            par_tiles(0, gram.as_mut(), &|row, columns| {
                add_products(row, columns, x.as_ref(), monitor);
            });
            monitor.check()?;
        }
        Ok(gram)
    }

    /// Fills the columns of the Gram from `first` on, on and below the diagonal, from stored values.
    fn fill_sparse(&self, first: usize, mut columns: MatMut<'_, f64>, monitor: &Monitor) {
        let mut dense = vec![0.0; self.rows.n_features()];
        for j in 0..columns.ncols() {
            if monitor.check().is_err() {
                return;
            }
            let column = self.rows.row(first + j);
            column.entries().for_each(|(f, v)| dense[f] = v);
            for i in first + j..self.n_rows() {
                let row = self.rows.row(i).entries();
                columns[(i, j)] = row.map(|(f, v)| v * dense[f]).sum();
            }
            column.entries().for_each(|(f, _)| dense[f] = 0.0);
        }
    }
}

/// Adds XᵀX to the columns of the Gram from `first` on, on and below the tile of the diagonal.
fn add_products(first: usize, columns: MatMut<'_, f64>, x: MatRef<'_, f64>, monitor: &Monitor) {
    let chosen = x.get(.., first..first + columns.ncols());
    let mut columns = columns;
    for top in (first..x.ncols()).step_by(TILE_COLUMNS) {
        if monitor.check().is_err() {
            return;
        }
        let end = x.ncols().min(top + TILE_COLUMNS);
        let part = columns.as_mut().get_mut(top..end, ..);
        linalg::add_product(part, x.get(.., top..end).transpose(), chosen);
    }
}
