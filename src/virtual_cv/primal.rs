//! Fewer features than rows: everything from p × p moments.

use super::eliminate::Hat;
use super::model::Cutoff;
use super::ridge_path::RidgePath;
use super::spectrum::Spectrum;
use crate::data::{Layout, Row};
use crate::linalg::{self, Mat, MatMut, MatRef};
use crate::linear::{
    Fitted, FoldMap, FoldMaps, LinearProblem, Moments, PANEL_ROWS, ROUNDING, RowPanel,
    WeightedTargets, is_sparse,
};
use crate::{Monitor, Resampling, Result};

/// The fit to all rows, in coordinates z that make it diagonal.
pub(super) struct Primal<'a, R> {
    pub(super) problem: &'a LinearProblem<'a, R>,
    pub(super) moments: Moments,
    pub(super) spectrum: Spectrum,
    /// Whether the spectrum came from the Gram: then moments of folds may be rotated, too.
    pub(super) is_from_gram: bool,
    /// Vᵀ(mean − shift), in the frame's units.
    vt_offset: Vec<f64>,
    /// ȳ; 0 without an intercept.
    pub(super) target_mean: Vec<f64>,
    pub(super) fit_intercept: bool,
    /// The smallest eigenvalue of I − H_DD that keeps all singular values of a fold above the cut-off.
    pub(super) min_eigenvalue: f64,
    /// λ in the frame's units.
    pub(super) alphas: Vec<f64>,
    /// The diagonal of G: 1/(d + λ), and 1/Σw for the intercept; one column per λ.
    pub(super) g: Mat<f64>,
    /// θ for every λ and output; that of the intercept is zero, as targets are centred.
    theta: Mat<f64>,
}

impl<'a, R: Layout> Primal<'a, R> {
    /// `None` if rounding hides which directions the rows determine.
    pub(super) fn new(
        problem: &'a LinearProblem<'a, R>,
        path: &RidgePath<'_>,
        folds: &dyn Resampling,
        monitor: &Monitor,
    ) -> Result<Option<Self>> {
        let p = problem.rows.n_features();
        let Some(moments) = problem.moments_of_all(path.model.fit_intercept, folds, monitor)?
        else {
            return Ok(None);
        };
        let unit = if p == 0 { 1.0 } else { moments.map.scale(0) };
        let alphas: Vec<f64> = path
            .alphas
            .iter()
            .map(|a| (a * unit * unit).min(f64::MAX))
            .collect();
        let weight = moments.weight();
        if weight == 0.0 {
            return Ok(None);
        }
        let mean_offset = |j: usize| {
            if path.model.fit_intercept {
                moments.mean_offset(j)
            } else {
                0.0
            }
        };
        let mut offset: Vec<f64> = (0..p).map(mean_offset).collect();
        let n_outputs = problem.targets.n_outputs;
        let target_mean: Vec<f64> = (p..p + n_outputs).map(mean_offset).collect();
        let gram = Mat::from_fn(p, p, |i, j| {
            moments.all[(i.max(j), i.min(j))] - weight * offset[i] * offset[j]
        });
        let products = Mat::from_fn(p, n_outputs, |i, o| {
            moments.all[(p + o, i)] - weight * offset[i] * target_mean[o]
        });
        let min_alpha = path.min_alpha() * unit * unit;
        // Behind a scaler, the cut-off is one for scaled columns.
        let scaling = path.model.scaling.as_deref().filter(|s| s.has_scale());
        let cutoff = path.model.cutoff.filter(|_| scaling.is_none());
        let from_gram = Spectrum::from_gram(&gram, &products, min_alpha, cutoff, monitor)?;
        let is_from_gram = from_gram.is_some();
        let spectrum = if is_from_gram {
            from_gram
        } else {
            let map = moments.map.clone();
            let mut scale = map.scales();
            for j in 0..p {
                let mean = (map.shift(j) * map.scale(j)).abs() + offset[j].abs();
                if path.model.fit_intercept && gram[(j, j)] <= weight * (ROUNDING * mean).powi(2) {
                    scale[j] = 0.0;
                    offset[j] = 0.0;
                }
            }
            let map = map.with_scale(scale);
            let rows: Vec<usize> = (0..problem.n_rows()).collect();
            let r = r_factor(problem, &rows, &map, (&offset, &target_mean), monitor)?;
            Spectrum::from_r_factor(&r, p, min_alpha, cutoff, monitor)?
        };
        let scaled = match (path.model.cutoff, scaling) {
            (Some(cutoff), Some(scaling)) => {
                let n_folds = folds.n_splits();
                Some(scaled_min_eigenvalue(
                    &gram, cutoff, scaling, n_folds, monitor,
                )?)
            }
            _ => None,
        };
        Ok(spectrum.map(|spectrum| Self {
            min_eigenvalue: scaled.unwrap_or_else(|| spectrum.min_eigenvalue(cutoff)),
            vt_offset: (0..spectrum.vt.nrows())
                .map(|i| (0..p).map(|j| spectrum.vt[(i, j)] * offset[j]).sum())
                .collect(),
            g: g_diagonal(
                &spectrum,
                &alphas,
                path.model.fit_intercept.then_some(weight),
            ),
            theta: theta(&spectrum, &alphas, path.model.fit_intercept),
            problem,
            moments,
            spectrum,
            is_from_gram,
            target_mean,
            fit_intercept: path.model.fit_intercept,
            alphas,
        }))
    }

    /// The rank of the rows, plus one for an intercept.
    pub(super) fn n_coordinates(&self) -> usize {
        self.spectrum.d.len() + usize::from(self.fit_intercept)
    }

    /// Coordinates of `rows`, times `factor`: one column per row.
    pub(super) fn scaled_coords(&self, rows: &[usize], factor: impl Fn(usize) -> f64) -> Mat<f64> {
        let map = &self.moments.map;
        let vt = &self.spectrum.vt;
        let factors: Vec<f64> = rows.iter().map(|&row| factor(row)).collect();
        let mut z = Mat::from_fn(self.n_coordinates(), rows.len(), |i, c| {
            factors[c] * self.vt_offset.get(i).map_or(1.0, |o| -o)
        });
        if is_sparse(&self.problem.rows) && map.is_identity() {
            for (c, (&row, factor)) in rows.iter().zip(&factors).enumerate() {
                let out = z.col_as_slice_mut(c);
                for (j, x) in self.problem.rows.row(row).entries() {
                    for (out, v) in out.iter_mut().zip(vt.col_as_slice(j)) {
                        *out += factor * x * v;
                    }
                }
            }
            return z;
        }
        let mut panel = RowPanel::new(vt.ncols());
        let mut start = 0;
        for rows in rows.chunks(PANEL_ROWS) {
            let x = panel.columns(rows, |row, out| {
                let factor = factor(row);
                map.write(&self.problem.rows, row, out);
                for x in out {
                    *x *= factor;
                }
            });
            let columns = z.get_mut(..vt.nrows(), start..start + rows.len());
            linalg::add_product(columns, vt.as_ref(), x);
            start += rows.len();
        }
        z
    }

    /// The model with parameters θ: one per λ and output.
    pub(super) fn to_fitted(&self, theta: &Mat<f64>) -> Fitted {
        let (r, p) = (self.spectrum.vt.nrows(), self.spectrum.vt.ncols());
        let beta = linalg::product(self.spectrum.vt.transpose(), theta.get(..r, ..));
        let q = self.target_mean.len();
        let coefficients = Mat::from_fn(p + 1, beta.ncols(), |j, c| {
            if j < p {
                return beta[(j, c)] * self.moments.map.scale(j);
            }
            let at_shift: f64 = (0..r).map(|i| self.vt_offset[i] * theta[(i, c)]).sum();
            let change = if self.fit_intercept {
                theta[(r, c)]
            } else {
                0.0
            };
            self.target_mean[c % q] + change - at_shift
        });
        Fitted::new(self.moments.map.shifts(), coefficients)
    }

    /// The matrix that maps (x − shift, y, 1) to (z, 1, y − ȳ).
    pub(super) fn coordinate_map(&self) -> Mat<f64> {
        let (r, p) = (self.spectrum.vt.nrows(), self.spectrum.vt.ncols());
        let (n, q) = (self.n_coordinates(), self.target_mean.len());
        Mat::from_fn(n + q, p + q + 1, |i, j| match (i, j) {
            _ if i < r && j < p => self.spectrum.vt[(i, j)],
            _ if i < r && j == p + q => -self.vt_offset[i],
            _ if i >= n && j == p + q => -self.target_mean[i - n],
            _ if i >= n => f64::from(j == p + i - n),
            _ => f64::from(i >= r && j == p + q),
        })
    }
}

/// [`Spectrum::min_eigenvalue`] behind a scaler, from the Gram of all rows. With R its correlation
/// matrix and s the diagonal of the Gram of all rows in the scaling of a fold, the squared singular
/// values of the fold are at least the eigenvalue times the smallest of R times min s, and at most Σ s.
fn scaled_min_eigenvalue(
    gram: &Mat<f64>,
    cutoff: Cutoff,
    scaling: &FoldMaps,
    n_folds: usize,
    monitor: &Monitor,
) -> Result<f64> {
    let varying: Vec<usize> = (0..gram.nrows()).filter(|&j| gram[(j, j)] > 0.0).collect();
    let p = varying.len();
    let correlations = Mat::from_fn(p, p, |i, j| {
        let (i, j) = (varying[i], varying[j]);
        gram[(i, j)] / gram[(i, i)].sqrt() / gram[(j, j)].sqrt()
    });
    let Some((values, _)) = linalg::symmetric_eigen(correlations, monitor)? else {
        return Ok(f64::INFINITY);
    };
    let Some(smallest) = values.first() else {
        return Ok(0.0);
    };
    let smallest = smallest - f64::EPSILON * (p * p) as f64;
    if smallest <= 0.0 {
        return Ok(f64::INFINITY);
    }
    let mut largest_ratio = 0.0_f64;
    for fold in 0..n_folds {
        let map = scaling.fold(fold);
        let squares = varying.iter().map(|&j| gram[(j, j)] * map.scale(j).powi(2));
        let least = squares.clone().fold(f64::INFINITY, f64::min);
        let ratio = squares.sum::<f64>() / least;
        largest_ratio = largest_ratio.max(if ratio.is_nan() { f64::INFINITY } else { ratio });
    }
    Ok(cutoff.ratio.powi(2) * largest_ratio / smallest)
}

fn g_diagonal(spectrum: &Spectrum, alphas: &[f64], intercept: Option<f64>) -> Mat<f64> {
    let n = spectrum.d.len() + usize::from(intercept.is_some());
    Mat::from_fn(n, alphas.len(), |i, l| {
        let value = spectrum.d.get(i).map(|d| d + alphas[l]);
        let total = value.or(intercept).unwrap_or(0.0);
        // A zero column without penalty: this coordinate of all rows is zero.
        if total == 0.0 { 0.0 } else { total.recip() }
    })
}

fn theta(spectrum: &Spectrum, alphas: &[f64], fit_intercept: bool) -> Mat<f64> {
    let theta = spectrum.solve(alphas);
    let n = theta.nrows();
    Mat::from_fn(n + usize::from(fit_intercept), theta.ncols(), |i, c| {
        if i < n { theta[(i, c)] } else { 0.0 }
    })
}

impl<R: Layout> Hat for Primal<'_, R> {
    fn epsilon(&self) -> f64 {
        1.0
    }
    fn theta(&self) -> &Mat<f64> {
        &self.theta
    }
    fn residual_scale(&self, _: usize) -> f64 {
        1.0
    }
    fn weighted_coords(&self, rows: &[usize]) -> Mat<f64> {
        self.scaled_coords(rows, |row| self.problem.targets.root_weight(row))
    }
    fn coords(&self, rows: &[usize]) -> Mat<f64> {
        self.scaled_coords(rows, |_| 1.0)
    }
    fn targets(&self) -> WeightedTargets<'_> {
        self.problem.targets
    }
    fn target_mean(&self) -> &[f64] {
        &self.target_mean
    }
    fn min_eigenvalue(&self) -> f64 {
        self.min_eigenvalue
    }
    fn coefficients(&self, theta: &Mat<f64>) -> Mat<f64> {
        self.to_fitted(theta).coefficients()
    }
    fn one_minus_h(&self, a: &Mat<f64>) -> Mat<f64> {
        let squares = Mat::from_fn(a.nrows(), a.ncols(), |i, j| a[(i, j)] * a[(i, j)]);
        let mut h = linalg::product(self.g.transpose(), squares.as_ref());
        for c in 0..h.ncols() {
            h.col_as_slice_mut(c).iter_mut().for_each(|h| *h = 1.0 - *h);
        }
        h
    }
    fn system(&self, alpha: usize, a: MatRef<'_, f64>, monitor: &Monitor) -> Result<Mat<f64>> {
        let mut scaled = a.to_owned();
        self.apply_g(alpha, scaled.as_mut());
        let mut system = linalg::par_product(a.transpose(), scaled.as_ref(), monitor)?;
        for j in 0..system.ncols() {
            let column = system.col_as_slice_mut(j);
            for s in column.iter_mut() {
                *s = -*s;
            }
            column[j] += 1.0;
        }
        Ok(system)
    }
    fn apply_g(&self, alpha: usize, b: MatMut<'_, f64>) {
        let g = self.g.col_as_slice(alpha);
        for column in b.col_iter_mut() {
            for (b, g) in column.iter_mut().zip(g) {
                *b *= g;
            }
        }
    }
}

/// The R factor of some rows behind a map and of their targets, centred.
pub(super) fn r_factor<R: Layout>(
    problem: &LinearProblem<'_, R>,
    rows: &[usize],
    map: &FoldMap,
    (offset, target_mean): (&[f64], &[f64]),
    monitor: &Monitor,
) -> Result<Mat<f64>> {
    let p = offset.len();
    let targets = &problem.targets;
    linalg::tsqr(rows, p + target_mean.len(), monitor, &|row, out| {
        let root = targets.root_weight(row);
        map.write(&problem.rows, row, &mut out[..p]);
        out.iter_mut()
            .zip(offset)
            .for_each(|(x, o)| *x = root * (*x - o));
        for ((out, y), mean) in out[p..].iter_mut().zip(targets.row(row)).zip(target_mean) {
            *out = root * (y - mean);
        }
    })
}
