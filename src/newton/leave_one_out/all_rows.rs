//! The optimum of all rows, and the steps away from it.

use std::ops::Range;

use crate::linalg::{
    Cholesky, Mat, MatRef, add_outer, mirror_lower, par_product, product, row_major,
};
use crate::newton::certificate::{Certificate, Jumps, LeaveOutStep, kappa_excess};
use crate::newton::coordinates::Coordinates;
use crate::newton::design::{Design, blocks, map_all, map_parts};
use crate::newton::factor::{Factor, dot};
use crate::newton::passes::{Column, Derivatives, Passes, Sum};
use crate::newton::solve::{Solution, Solver};
use crate::{Monitor, Result};

/// Values of all parts of a Gram matrix.
const MOST_GRAM_VALUES: usize = 1 << 23;

/// The per cent of the rows with shorter steps than the one for which B is made: beyond, bounds are less
/// sharp, and beyond are mostly the rows that are suspect in any case.
const COMMON_PER_CENT: usize = 97;

/// The least t for which B is made.
const MIN_COMMON: f64 = 1e-6;

/// Something besides the row that changes the gradient when a row is left out: v is the sum of ηv_k.
pub(super) struct Change {
    /// v_k as a gradient of losses in shared parameters; `None` if it is not one of losses.
    pub(super) losses: Option<Vec<f64>>,
    /// H⁻¹v_k, in shared parameters.
    pub(super) along: Vec<f64>,
    /// Kv_k.
    pub(super) whitened: Vec<f64>,
    /// η of each row; `None` if the gradient is there with all rows, too, and η is 1.
    pub(super) etas: Option<Vec<f64>>,
}

impl Change {
    pub(super) fn eta(&self, row: usize) -> f64 {
        self.etas.as_ref().map_or(1.0, |etas| etas[row])
    }
}

/// What the rows have in common: the optimum of all of them.
pub(super) struct AllRows<'s> {
    pub(super) solver: &'s Solver<'s>,
    pub(super) output: usize,
    pub(super) penalties: &'s [f64],
    pub(super) solution: &'s Solution,
    pub(super) losses: &'s Derivatives,
    pub(super) coordinates: &'s Coordinates,
    pub(super) factor: Factor,
    /// K with KᵀK = H⁻¹, for rows in shared coordinates.
    pub(super) whitening: Mat<f64>,
    pub(super) changes: Vec<Change>,
}

/// Quantities of every row at the optimum of all rows.
#[derive(Default)]
pub(super) struct Terms {
    pub(super) z: Vec<f64>,
    /// wℓ'.
    pub(super) first: Vec<f64>,
    /// wℓ''.
    pub(super) second: Vec<f64>,
    pub(super) h: Vec<f64>,
    /// x_iᵀH⁻¹v_k: row × change.
    pub(super) along: Vec<f64>,
}

/// The step that leaves out a row.
pub(super) struct RowStep {
    pub(super) predictor: f64,
    /// s.
    pub(super) length: f64,
    pub(super) bounded: LeaveOutStep,
}

impl<'s> AllRows<'s> {
    /// `None` if there is no finite or no unique optimum.
    pub(super) fn new(
        solver: &'s Solver<'s>,
        output: usize,
        penalties: &'s [f64],
        (solution, losses): (&'s Solution, &'s Derivatives),
        monitor: &Monitor,
    ) -> Result<Option<Self>> {
        if solution.relative_gradient.is_nan() {
            return Ok(None);
        }
        let coordinates = solver.coordinates(Column { set: None, output });
        let hessian = coordinates.hessian(losses.hessian.as_ref(), penalties[0]);
        let Some(factor) = Factor::new(&hessian, penalties[0], monitor)? else {
            return Ok(None);
        };
        let width = solver.passes.design.n_columns();
        let mut own = Mat::zeros(coordinates.n_own(), width);
        for j in 0..width {
            let unit: Vec<f64> = (0..width).map(|i| f64::from(u8::from(i == j))).collect();
            for (i, value) in coordinates.gradient(&unit).into_iter().enumerate() {
                own[(i, j)] = value;
            }
        }
        let whitening = factor.whiten(own);
        let mut found = Self {
            solver,
            output,
            penalties,
            solution,
            losses,
            coordinates,
            factor,
            whitening,
            changes: vec![],
        };
        found.changes = found.find_changes(monitor)?;
        Ok(Some(found))
    }

    pub(super) fn passes(&self) -> &'s Passes<'s> {
        &self.solver.passes
    }

    pub(super) fn design(&self) -> &'s Design<'s> {
        &self.passes().design
    }

    /// The gradient of the penalty.
    fn penalty_gradient(&self) -> Vec<f64> {
        let own = self.solution.own.iter().enumerate();
        own.map(|(j, own)| {
            let is_penalised = self.coordinates.is_penalised(j);
            self.penalties[0] * own * f64::from(u8::from(is_penalised))
        })
        .collect()
    }

    fn find_changes(&self, monitor: &Monitor) -> Result<Vec<Change>> {
        let penalty = self.penalty_gradient();
        let mut left = self.coordinates.gradient(&self.losses.gradient);
        left.iter_mut().zip(&penalty).for_each(|(g, p)| *g += p);
        let mut changes = vec![self.change(None, &left, None)];
        let (all, each) = (self.penalties[0], &self.penalties[1..]);
        if each.iter().any(|own| *own != all) {
            let etas = each.iter().map(|own| relative_change(*own, all)).collect();
            changes.push(self.change(None, &penalty, Some(etas)));
        }
        for class in 0..self.passes().samples.n_classes() {
            let factor = |set| {
                let samples = &self.passes().samples;
                samples.class_factor(set, self.output, class)
            };
            let all = factor(None);
            let etas =
                (0..self.design().n_rows()).map(|row| relative_change(factor(Some(row)), all));
            let etas: Vec<f64> = etas.collect();
            if etas.iter().all(|eta| *eta == 0.0) {
                continue;
            }
            let sum = Sum {
                column: Column {
                    set: None,
                    output: self.output,
                },
                theta: &self.solution.shared,
                rows: Some(&self.passes().samples.rows_of_class(class)),
            };
            let found = self.passes().sums(&[sum], monitor)?.swap_remove(0).gradient;
            let own = self.coordinates.gradient(&found);
            changes.push(self.change(Some(found), &own, Some(etas)));
        }
        Ok(changes)
    }

    fn change(&self, losses: Option<Vec<f64>>, own: &[f64], etas: Option<Vec<f64>>) -> Change {
        let solved: Vec<f64> = self.factor.solve(own);
        let column = self
            .factor
            .whiten(Mat::from_fn(own.len(), 1, |i, _| own[i]));
        Change {
            losses,
            along: self.coordinates.to_shared(&solved),
            whitened: (0..own.len()).map(|i| column[(i, 0)]).collect(),
            etas,
        }
    }

    /// The columns Kᵀ, then the others, for products with rows.
    fn columns(&self, others: &[&[f64]]) -> Mat<f64> {
        let (n_own, width) = (self.whitening.nrows(), self.whitening.ncols());
        Mat::from_fn(width, n_own + others.len(), |i, j| {
            if j < n_own {
                self.whitening[(j, i)]
            } else {
                others[j - n_own][i]
            }
        })
    }

    pub(super) fn terms(&self, monitor: &Monitor) -> Result<Terms> {
        let n_own = self.whitening.nrows();
        let along = self.changes.iter().map(|change| &change.along[..]);
        let others: Vec<&[f64]> = std::iter::once(&self.solution.shared[..])
            .chain(along)
            .collect();
        let columns = self.columns(&others);
        let samples = &self.passes().samples;
        let found = map_products(self.design(), columns.as_ref(), monitor, |rows, t| {
            let n = rows.len();
            let z: Vec<f64> = (0..n).map(|i| t[(i, n_own)]).collect();
            let (mut first, mut second, mut weights) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
            let y = &samples.targets(self.output)[rows.clone()];
            self.passes()
                .loss
                .derivatives(y, &z, &mut first, &mut second);
            samples.training_weights(None, self.output, rows, &mut weights);
            for ((first, second), weight) in first.iter_mut().zip(&mut second).zip(&weights) {
                *first = if *weight == 0.0 { 0.0 } else { *first * weight };
                *second = if *weight == 0.0 {
                    0.0
                } else {
                    *second * weight
                };
            }
            Terms {
                h: squared_norms(t.get(.., ..n_own)),
                along: (0..n)
                    .flat_map(|i| (n_own + 1..t.ncols()).map(move |j| t[(i, j)]))
                    .collect(),
                z,
                first,
                second,
            }
        })?;
        let mut all = Terms::default();
        for own in found {
            all.z.extend(own.z);
            all.first.extend(own.first);
            all.second.extend(own.second);
            all.h.extend(own.h);
            all.along.extend(own.along);
        }
        Ok(all)
    }

    /// The bounds, and for every row and then for every change the square of its part in √(ΔᵀBΔ).
    pub(super) fn certificate(
        &self,
        terms: &Terms,
        monitor: &Monitor,
    ) -> Result<(Certificate, Vec<f64>)> {
        let n = terms.z.len();
        let nothing = vec![0.0; n + self.changes.len()];
        let Some(concordance) = self.passes().loss.self_concordance() else {
            let y = self.passes().samples.targets(self.output);
            let mut weights = vec![0.0; n];
            let samples = &self.passes().samples;
            samples.training_weights(None, self.output, 0..n, &mut weights);
            let rows = (0..n).map(|i| {
                let distance = self.passes().loss.jump_distance(y[i], terms.z[i]);
                (distance, terms.h[i], weights[i], terms.second[i])
            });
            return Ok((Certificate::Jumps(Jumps::new(rows)), nothing));
        };
        let h_max = terms.h.iter().copied().fold(0.0, f64::max);
        let mut excess = 0.0;
        let mut squares = nothing;
        if concordance > 0.0 && h_max > 0.0 {
            let lengths = (0..n).map(|row| self.step(row, terms, &squares).bounded.norm);
            let length = percentile(lengths.collect(), COMMON_PER_CENT);
            let t = (concordance * h_max.sqrt() * length).max(MIN_COMMON);
            excess = concordance * kappa_excess(t);
            squares = self.weighted_squares(terms, (h_max, excess), monitor)?;
        }
        let certificate = Certificate::Smooth {
            concordance,
            h_max,
            excess,
        };
        Ok((certificate, squares))
    }

    /// x_iᵀH⁻¹BH⁻¹x_i of every row, then the same of every change, for B with a common κ(t) − 1.
    fn weighted_squares(
        &self,
        terms: &Terms,
        (h_max, excess): (f64, f64),
        monitor: &Monitor,
    ) -> Result<Vec<f64>> {
        let rows = terms.second.iter().zip(&terms.h).zip(&terms.z);
        let weight = |((c, h), z): ((&f64, &f64), &f64)| {
            c * h * (self.passes().loss.skewness(*z) + excess).powi(2)
        };
        let weights: Vec<f64> = rows.map(weight).collect();
        let gram = weighted_gram(self.design(), &weights, monitor)?;
        let n_own = self.whitening.nrows();
        let half = par_product(self.whitening.as_ref(), gram.as_ref(), monitor)?;
        let mut white = par_product(half.as_ref(), self.whitening.transpose(), monitor)?;
        // It is at most a few h_max; what is added makes bounds larger, by much less than their rounding.
        for j in 0..n_own {
            white[(j, j)] += 1e-12 * h_max * n_own as f64;
        }
        let Some(cholesky) = Cholesky::new(white, 0.0, monitor)? else {
            return Ok(vec![f64::INFINITY; weights.len() + self.changes.len()]);
        };
        let upper = Mat::from_fn(n_own, n_own, |i, j| {
            if i <= j {
                cholesky.lower()[(j, i)]
            } else {
                0.0
            }
        });
        let k = par_product(upper.as_ref(), self.whitening.as_ref(), monitor)?;
        let found = map_products(self.design(), k.transpose(), monitor, |_, t| {
            squared_norms(t)
        })?;
        let mut squares: Vec<f64> = found.into_iter().flatten().collect();
        for change in &self.changes {
            let column = row_major(&change.whitened, n_own, 1);
            let turned = product(upper.as_ref(), column);
            squares.push(squared_norms(turned.transpose())[0]);
        }
        Ok(squares)
    }

    pub(super) fn step(&self, row: usize, terms: &Terms, squares: &[f64]) -> RowStep {
        let n = terms.z.len();
        let (h, c) = (terms.h[row], terms.second[row]);
        let (mut along, mut norm, mut weighted, mut change) = (0.0, 0.0, 0.0, 0.0_f64);
        for (k, own) in self.changes.iter().enumerate() {
            let eta = own.eta(row);
            if eta == 0.0 {
                continue;
            }
            along += eta * terms.along[row * self.changes.len() + k];
            norm += eta.abs() * dot(&own.whitened, &own.whitened).sqrt();
            weighted += eta.abs() * squares[n + k].sqrt();
            if own.etas.is_some() {
                change = change.max(eta.abs());
            }
        }
        let kept = 1.0 - c * h;
        let length = (self.own_factor(row) * terms.first[row] - c * along) / kept;
        RowStep {
            predictor: terms.z[row] + length * h - along,
            length,
            bounded: LeaveOutStep {
                h,
                kept,
                norm: norm + length.abs() * h.sqrt(),
                weighted_norm: weighted + length.abs() * squares[row].sqrt(),
                change,
            },
        }
    }

    /// 1 + η of the class of a row when it is left out itself.
    pub(super) fn own_factor(&self, row: usize) -> f64 {
        let samples = &self.passes().samples;
        let Some(class) = samples.class_of(row) else {
            return 1.0;
        };
        let [own, all] = [Some(row), None].map(|set| samples.class_factor(set, self.output, class));
        1.0 + relative_change(own, all)
    }
}

/// own/all − 1.
fn relative_change(own: f64, all: f64) -> f64 {
    if own == all { 0.0 } else { own / all - 1.0 }
}

/// A percentile of values that are not empty.
fn percentile(mut values: Vec<f64>, per_cent: usize) -> f64 {
    let index = (values.len() - 1) * per_cent / 100;
    *values.select_nth_unstable_by(index, f64::total_cmp).1
}

/// The squared norm of each row.
fn squared_norms(t: MatRef<'_, f64>) -> Vec<f64> {
    let mut found = vec![0.0; t.nrows()];
    for column in t.col_iter() {
        for (found, value) in found.iter_mut().zip(column.iter()) {
            *found += value * value;
        }
    }
    found
}

/// What `work` finds from the products of each block of rows with `columns`, in their order.
fn map_products<T: Send>(
    design: &Design<'_>,
    columns: MatRef<'_, f64>,
    monitor: &Monitor,
    work: impl Fn(Range<usize>, MatRef<'_, f64>) -> T + Sync,
) -> Result<Vec<T>> {
    let parts = map_parts(design.n_rows(), monitor, |rows| {
        let mut buffer = vec![];
        let each = blocks(rows).map(|block| {
            let u = design.block(block.clone(), &mut buffer)?;
            Ok(work(block, product(u, columns).as_ref()))
        });
        each.collect::<Result<Vec<T>>>()
    })?;
    Ok(parts.into_iter().flatten().collect())
}

/// Σ weight·uuᵀ over all rows.
fn weighted_gram(design: &Design<'_>, weights: &[f64], monitor: &Monitor) -> Result<Mat<f64>> {
    let (n, width) = (design.n_rows(), design.n_columns());
    let n_parts = (MOST_GRAM_VALUES / (width * width)).clamp(2, 64);
    let parts: Vec<usize> = (0..n).step_by(n.div_ceil(n_parts)).collect();
    let found = map_all(&parts, monitor, |&start| {
        let mut gram = Mat::zeros(width, width);
        let mut buffer = vec![];
        for block in blocks(start..n.min(start + n.div_ceil(n_parts))) {
            design.block(block.clone(), &mut buffer)?;
            for (row, weight) in buffer.chunks_exact_mut(width).zip(&weights[block.clone()]) {
                let root = weight.sqrt();
                for value in row {
                    *value *= root;
                }
            }
            let scaled = row_major(&buffer, block.len(), width);
            add_outer(gram.as_mut(), scaled.transpose());
        }
        Ok(gram)
    })?;
    let mut total = Mat::zeros(width, width);
    for part in &found {
        total += part;
    }
    Ok(mirror_lower(total))
}
