//! Fewer features than rows: everything from p × p sums.

use super::direct::{Fitted, ROUNDING};
use super::eliminate::Hat;
use super::moments::{BLOCK, Frame, Packed, is_sparse};
use super::problem::{Cv, Model, Problem};
use super::spectrum::Spectrum;
use crate::data::{Layout, Row};
use crate::linalg::{self, Mat, MatMut, MatRef};
use crate::{Monitor, Result};

/// Sums about a point this many deviations from the mean lose too many digits when centred.
const FAR: f64 = 10.0;

/// The fit to all rows, in coordinates z that make it diagonal.
pub(super) struct Primal<'a, R> {
    pub(super) problem: &'a Problem<'a, R>,
    pub(super) sums: Totals,
    pub(super) spectrum: Spectrum,
    /// Whether the spectrum came from the Gram: then Grams of folds may be rotated too.
    pub(super) is_from_gram: bool,
    /// A(mean − shift), in the frame's units.
    offset: Vec<f64>,
    /// The mean of the targets, if there is an intercept.
    pub(super) level: Vec<f64>,
    pub(super) intercept: bool,
    /// λ in the frame's units.
    pub(super) alphas: Vec<f64>,
    /// 1/(d + λ), and 1/Σw for the intercept: a column a λ.
    pub(super) gains: Mat<f64>,
    /// θ for every λ and output; the intercept's is zero, as targets are measured from their mean.
    theta: Mat<f64>,
}

/// Sums over all rows and, where they were kept, over each fold.
pub(super) struct Totals {
    pub(super) frame: Frame,
    pub(super) all: Mat<f64>,
    pub(super) folds: Vec<Mat<f64>>,
}

impl Totals {
    /// Mean − shift of column `j`, in the frame's units.
    fn off(&self, j: usize) -> f64 {
        let last = self.all.nrows() - 1;
        self.all[(last, j)] / self.all[(last, last)]
    }

    /// Σ w.
    pub(super) fn weight(&self) -> f64 {
        let last = self.all.nrows() - 1;
        self.all[(last, last)]
    }
}

impl<R: Layout> Problem<'_, R> {
    /// Sums in a frame in which they can be centred; `None` where the columns have no common scale.
    pub(super) fn totals(
        &self,
        is_centred: bool,
        cv: Cv<'_>,
        monitor: &Monitor,
    ) -> Result<Option<Totals>> {
        let p = self.rows.n_features();
        let rows: Vec<usize> = (0..self.n_rows()).collect();
        let frame = if is_centred {
            Frame::near_mean(self.rows)
        } else {
            Frame::plain(p)
        };
        let mut totals = self.totals_in(frame, cv, &rows, monitor)?;
        let is_harmless = |d: f64| d == 0.0 || (1e-200..1e200).contains(&d);
        if !(0..p).all(|j| is_harmless(totals.all[(j, j)])) {
            let Some((unit, _)) = self.unit(&totals.frame, &rows) else {
                return Ok(None);
            };
            let frame = Frame {
                scale: vec![unit; p],
                ..totals.frame
            };
            totals = self.totals_in(frame, cv, &rows, monitor)?;
        }
        if is_centred && (0..p).any(|j| is_far(&totals, j)) {
            let mut frame = totals.frame.clone();
            for j in 0..p {
                frame.shift[j] += totals.off(j) / frame.scale[j];
            }
            totals = self.totals_in(frame, cv, &rows, monitor)?;
        }
        Ok(Some(totals))
    }

    fn totals_in(
        &self,
        frame: Frame,
        cv: Cv<'_>,
        rows: &[usize],
        monitor: &Monitor,
    ) -> Result<Totals> {
        // Sums of folds are kept if they are small beside the rows; else they are formed twice.
        let width = self.width();
        let (Cv::Folds(folds), true) = (cv, cv.n_folds() * width * 8 < self.n_rows()) else {
            let all = self.moments(&frame, rows, monitor)?;
            return Ok(Totals {
                frame,
                all,
                folds: vec![],
            });
        };
        let mut all = Mat::zeros(width, width);
        let mut each = vec![];
        for fold in 0..folds.len() {
            let sums = self.moments(&frame, folds.rows(fold..fold + 1), monitor)?;
            all += &sums;
            each.push(sums);
        }
        Ok(Totals {
            frame,
            all,
            folds: each,
        })
    }
}

fn is_far(totals: &Totals, j: usize) -> bool {
    let off = totals.off(j);
    let correction = totals.weight() * off.powi(2);
    // A constant column is off by rounding alone, and a second round would change nothing.
    let is_rounding = off.abs() <= 1e-12 * (totals.frame.shift[j] * totals.frame.scale[j]).abs();
    !is_rounding && correction > FAR * FAR * (totals.all[(j, j)] - correction)
}

impl<'a, R: Layout> Primal<'a, R> {
    /// `None` where all rows together do not tell which directions they determine.
    pub(super) fn new(
        problem: &'a Problem<'a, R>,
        model: &Model,
        cv: Cv<'_>,
        monitor: &Monitor,
    ) -> Result<Option<Self>> {
        let p = problem.rows.n_features();
        let Some(sums) = problem.totals(model.intercept, cv, monitor)? else {
            return Ok(None);
        };
        let unit = sums.frame.scale.first().copied().unwrap_or(1.0);
        let alphas: Vec<f64> = model
            .alphas
            .iter()
            .map(|a| (a * unit * unit).min(f64::MAX))
            .collect();
        let weight = sums.weight();
        if weight == 0.0 {
            return Ok(None);
        }
        let mut off: Vec<f64> = (0..p)
            .map(|j| if model.intercept { sums.off(j) } else { 0.0 })
            .collect();
        let level: Vec<f64> = (0..problem.n_outputs)
            .map(|o| {
                if model.intercept {
                    sums.off(p + o)
                } else {
                    0.0
                }
            })
            .collect();
        let gram = Mat::from_fn(p, p, |i, j| {
            sums.all[(i.max(j), i.min(j))] - weight * off[i] * off[j]
        });
        let products = Mat::from_fn(p, problem.n_outputs, |i, o| {
            sums.all[(p + o, i)] - weight * off[i] * level[o]
        });
        let smallest = model.smallest_alpha() * unit * unit;
        let from_gram = Spectrum::of_gram(&gram, &products, smallest);
        let is_from_gram = from_gram.is_some();
        let spectrum = if is_from_gram {
            from_gram
        } else {
            let mut frame = sums.frame.clone();
            for j in 0..p {
                let mean = (frame.shift[j] * frame.scale[j]).abs() + off[j].abs();
                if model.intercept && gram[(j, j)] <= weight * (ROUNDING * mean).powi(2) {
                    frame.scale[j] = 0.0;
                    off[j] = 0.0;
                }
            }
            let r = factor(problem, &frame, (&off, &level), monitor)?;
            Spectrum::of_triangle(&r, p, smallest, monitor)?
        };
        Ok(spectrum.map(|spectrum| Self {
            offset: (0..spectrum.axes.nrows())
                .map(|i| (0..p).map(|j| spectrum.axes[(i, j)] * off[j]).sum())
                .collect(),
            gains: gains(&spectrum, &alphas, model.intercept.then_some(weight)),
            theta: theta(&spectrum, &alphas, model.intercept),
            problem,
            sums,
            spectrum,
            is_from_gram,
            level,
            intercept: model.intercept,
            alphas,
        }))
    }

    /// r, and one for the intercept.
    pub(super) fn n_coordinates(&self) -> usize {
        self.spectrum.values.len() + usize::from(self.intercept)
    }

    /// Coordinates of `rows`, times `factor`: a column a row.
    pub(super) fn coordinates(&self, rows: &[usize], factor: impl Fn(usize) -> f64) -> Mat<f64> {
        let frame = &self.sums.frame;
        let axes = &self.spectrum.axes;
        let r = axes.nrows();
        let factors: Vec<f64> = rows.iter().map(|&row| factor(row)).collect();
        let mut z = Mat::from_fn(self.n_coordinates(), rows.len(), |i, c| {
            factors[c] * self.offset.get(i).map_or(1.0, |o| -o)
        });
        if is_sparse(self.problem.rows) && frame.is_plain() {
            for (c, (&row, factor)) in rows.iter().zip(&factors).enumerate() {
                let out = z.col_as_slice_mut(c);
                for (j, v) in self.problem.rows.row(row).entries() {
                    for (out, a) in out.iter_mut().zip(axes.col_as_slice(j)) {
                        *out += factor * v * a;
                    }
                }
            }
            return z;
        }
        let mut packed = Packed::new(axes.ncols());
        let mut start = 0;
        for block in rows.chunks(BLOCK) {
            let x = packed.columns(block, |row, out| {
                frame.write(self.problem.rows.row(row), factor(row), out);
            });
            let columns = z.get_mut(..r, start..start + block.len());
            linalg::add_product(columns, axes.as_ref(), x);
            start += block.len();
        }
        z
    }

    /// Coefficients for shifted rows from θ in coordinates: a column a λ and output, the value at
    /// the shift last.
    pub(super) fn coefficients(&self, theta: &Mat<f64>) -> Mat<f64> {
        let (r, p) = (self.spectrum.axes.nrows(), self.spectrum.axes.ncols());
        let beta = linalg::product(self.spectrum.axes.transpose(), theta.get(..r, ..));
        let q = self.level.len();
        Mat::from_fn(p + 1, beta.ncols(), |j, c| {
            if j < p {
                return beta[(j, c)] * self.sums.frame.scale[j];
            }
            let at_shift: f64 = (0..r).map(|i| self.offset[i] * theta[(i, c)]).sum();
            let shift = if self.intercept { theta[(r, c)] } else { 0.0 };
            self.level[c % q] + shift - at_shift
        })
    }

    /// (z, 1, y − level) from (x − shift, y, 1).
    pub(super) fn to_coordinates(&self) -> Mat<f64> {
        let (r, p) = (self.spectrum.axes.nrows(), self.spectrum.axes.ncols());
        let (n, q) = (self.n_coordinates(), self.level.len());
        Mat::from_fn(n + q, p + q + 1, |i, j| match (i, j) {
            _ if i < r && j < p => self.spectrum.axes[(i, j)],
            _ if i < r && j == p + q => -self.offset[i],
            _ if i >= n && j == p + q => -self.level[i - n],
            _ if i >= n => f64::from(j == p + i - n),
            _ => f64::from(i >= r && j == p + q),
        })
    }
}

fn gains(spectrum: &Spectrum, alphas: &[f64], intercept: Option<f64>) -> Mat<f64> {
    let n = spectrum.values.len() + usize::from(intercept.is_some());
    Mat::from_fn(n, alphas.len(), |i, l| {
        let value = spectrum.values.get(i).map(|d| d + alphas[l]);
        let total = value.or(intercept).unwrap_or(0.0);
        // A column of zeros without penalty: no row has anything along it.
        if total == 0.0 { 0.0 } else { total.recip() }
    })
}

fn theta(spectrum: &Spectrum, alphas: &[f64], intercept: bool) -> Mat<f64> {
    let theta = spectrum.solve(alphas);
    let n = theta.nrows();
    Mat::from_fn(n + usize::from(intercept), theta.ncols(), |i, c| {
        if i < n { theta[(i, c)] } else { 0.0 }
    })
}

impl<R: Layout> Hat for Primal<'_, R> {
    fn identity(&self) -> f64 {
        1.0
    }
    fn n_alphas(&self) -> usize {
        self.gains.ncols()
    }
    fn theta(&self) -> &Mat<f64> {
        &self.theta
    }
    fn residual_scale(&self, _: usize) -> f64 {
        1.0
    }
    fn weighted(&self, rows: &[usize]) -> Mat<f64> {
        self.coordinates(rows, |row| self.problem.root_weight(row))
    }
    fn plain(&self, rows: &[usize]) -> Mat<f64> {
        self.coordinates(rows, |_| 1.0)
    }
    fn root_weight(&self, row: usize) -> f64 {
        self.problem.root_weight(row)
    }
    fn target(&self, row: usize) -> &[f64] {
        self.problem.target(row)
    }
    fn level(&self) -> &[f64] {
        &self.level
    }
    fn coefficients(&self, theta: &Mat<f64>) -> Mat<f64> {
        let shift = self.sums.frame.shift.clone();
        Fitted::new(shift, self.coefficients(theta)).unshifted()
    }
    fn complements(&self, a: &Mat<f64>) -> Mat<f64> {
        let squares = Mat::from_fn(a.nrows(), a.ncols(), |i, j| a[(i, j)] * a[(i, j)]);
        let mut h = linalg::product(self.gains.transpose(), squares.as_ref());
        for c in 0..h.ncols() {
            h.col_as_slice_mut(c).iter_mut().for_each(|h| *h = 1.0 - *h);
        }
        h
    }
    fn system(&self, alpha: usize, a: MatRef<'_, f64>) -> Mat<f64> {
        let mut scaled = a.to_owned();
        self.gain(alpha, scaled.as_mut());
        let mut system = linalg::product(a.transpose(), scaled.as_ref());
        for j in 0..system.ncols() {
            let column = system.col_as_slice_mut(j);
            for s in column.iter_mut() {
                *s = -*s;
            }
            column[j] += 1.0;
        }
        system
    }
    fn gain(&self, alpha: usize, b: MatMut<'_, f64>) {
        let gains = self.gains.col_as_slice(alpha);
        for column in b.col_iter_mut() {
            for (b, gain) in column.iter_mut().zip(gains) {
                *b *= gain;
            }
        }
    }
}

/// The triangular factor of all centred rows and targets.
fn factor<R: Layout>(
    problem: &Problem<'_, R>,
    frame: &Frame,
    (off, level): (&[f64], &[f64]),
    monitor: &Monitor,
) -> Result<Mat<f64>> {
    let p = off.len();
    let rows: Vec<usize> = (0..problem.n_rows()).collect();
    linalg::tsqr(&rows, p + level.len(), monitor, &|row, out| {
        let root = problem.root_weight(row);
        frame.write(problem.rows.row(row), root, &mut out[..p]);
        out.iter_mut().zip(off).for_each(|(x, o)| *x -= root * o);
        for ((out, y), level) in out[p..].iter_mut().zip(problem.target(row)).zip(level) {
            *out = root * (y - level);
        }
    })
}
