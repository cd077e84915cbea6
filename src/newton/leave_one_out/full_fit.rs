//! The optimum of all rows, and the steps away from it.

use std::ops::Range;

use super::far_rows::FarRows;
use crate::linalg::{Cholesky, Mat, MatRef, mirror_lower, par_product, product, row_major};
use crate::linear::{Design, FoldMap, TrainingSet, blocks, par_map, set_index};
use crate::newton::certificate::{Certificate, FarEffect, Jumps, LeaveOutStep, kappa_excess};
use crate::newton::factor::Factor;
use crate::newton::family::{Family, Subproblem};
use crate::newton::passes::{DerivativeSum, Derivatives};
use crate::newton::ridge::Ridge;
use crate::newton::solve::{Solution, Solver};
use crate::newton::vectors::{dot, weigh};
use crate::{Monitor, Result};

/// The per cent of the rows with shorter steps than the one for which B is made: beyond, bounds are less
/// sharp, and beyond are mostly the rows that are uncertified in any case.
const COMMON_PER_CENT: usize = 97;

/// The least t for which B is made.
const MIN_COMMON: f64 = 1e-6;

/// Something besides the row that changes the gradient when a row is left out: v is the sum of ηv_k.
pub(super) struct Perturbation {
    /// v_k as a gradient of losses in common parameters; `None` if it is not one of losses.
    pub(super) losses: Option<Vec<f64>>,
    /// H⁻¹v_k, in common parameters.
    pub(super) along: Vec<f64>,
    /// Kv_k.
    pub(super) whitened: Vec<f64>,
    /// η of each row; `None` if the gradient is there with all rows, too, and η is 1.
    pub(super) etas: Option<Vec<f64>>,
}

impl Perturbation {
    pub(super) fn eta(&self, row: usize) -> f64 {
        self.etas.as_ref().map_or(1.0, |etas| etas[row])
    }
}

/// What the rows have in common: the optimum of all of them.
pub(super) struct FullFit<'s> {
    pub(super) solver: &'s Solver<'s>,
    pub(super) output: usize,
    pub(super) penalties: &'s [f64],
    pub(super) solution: &'s Solution,
    pub(super) losses: &'s Derivatives,
    pub(super) map: &'s FoldMap,
    ridge: Ridge,
    pub(super) factor: Factor,
    /// K with KᵀK = H⁻¹, for rows in common columns.
    pub(super) whitening: Mat<f64>,
    pub(super) changes: Vec<Perturbation>,
}

/// Quantities of every row at the optimum of all rows.
#[derive(Default)]
pub(super) struct RowDerivatives {
    pub(super) z: Vec<f64>,
    /// wℓ'.
    pub(super) first: Vec<f64>,
    /// wℓ''.
    pub(super) second: Vec<f64>,
    pub(super) h: Vec<f64>,
    /// x_iᵀH⁻¹v_k: row × change.
    pub(super) along: Vec<f64>,
}

/// The parts of the bounds that depend on the row: see `certificate`.
#[derive(Default)]
pub(super) struct BoundParts {
    /// The square of the part in √(ΔᵀBΔ) of every row, and then of every change.
    squares: Vec<f64>,
    /// What the step without a row does to far rows; empty where there are none.
    far: Vec<FarEffect>,
}

/// The step that leaves out a row.
pub(super) struct RowStep {
    pub(super) predictor: f64,
    /// s.
    pub(super) length: f64,
    pub(super) bounded: LeaveOutStep,
}

impl<'s> FullFit<'s> {
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
        let (map, ridge) = (
            solver.family.map(None),
            solver.family.ridge(None, penalties),
        );
        let mut hessian = map.second_moments(losses.hessian.as_ref());
        ridge.add_hessian(&mut hessian);
        let Some(factor) = Factor::new(&hessian, penalties[0], monitor)? else {
            return Ok(None);
        };
        let width = solver.family.design.n_columns();
        let mut images = Mat::zeros(map.n_params(), width);
        for j in 0..width {
            let unit: Vec<f64> = (0..width).map(|i| f64::from(u8::from(i == j))).collect();
            for (i, value) in map.gradient(&unit).into_iter().enumerate() {
                images[(i, j)] = value;
            }
        }
        let whitening = factor.whiten(images);
        let mut found = Self {
            solver,
            output,
            penalties,
            solution,
            losses,
            map,
            ridge,
            factor,
            whitening,
            changes: vec![],
        };
        found.changes = found.find_changes(monitor)?;
        Ok(Some(found))
    }

    /// The training set without a row.
    pub(super) fn without(&self, row: usize) -> TrainingSet {
        self.family().samples.sets.without_row(row)
    }

    pub(super) fn family(&self) -> &'s Family<'s> {
        &self.solver.family
    }

    pub(super) fn design(&self) -> &'s Design<'s> {
        &self.family().design
    }

    fn find_changes(&self, monitor: &Monitor) -> Result<Vec<Perturbation>> {
        let penalty: Vec<f64> = self.ridge.gradient(&self.solution.params).collect();
        let mut left = self.map.gradient(&self.losses.gradient);
        left.iter_mut().zip(&penalty).for_each(|(g, p)| *g += p);
        let mut changes = vec![self.change(None, &left, None)];
        let (all, by_fold) = (self.penalties[0], &self.penalties[1..]);
        if by_fold.iter().any(|penalty| *penalty != all) {
            let penalty_without = |row| self.penalties[set_index(self.without(row))];
            let rows = 0..self.design().n_rows();
            let etas = rows
                .map(|row| relative_change(penalty_without(row), all))
                .collect();
            changes.push(self.change(None, &penalty, Some(etas)));
        }
        for class in 0..self.family().samples.sets.n_weighted_classes() {
            let factor = |set| {
                let sets = &self.family().samples.sets;
                sets.class_weight(set, self.output, class)
            };
            let all = factor(None);
            let etas = (0..self.design().n_rows())
                .map(|row| relative_change(factor(self.without(row)), all));
            let etas: Vec<f64> = etas.collect();
            if etas.iter().all(|eta| *eta == 0.0) {
                continue;
            }
            let sum = DerivativeSum {
                subproblem: Subproblem {
                    set: None,
                    output: self.output,
                },
                theta: &self.solution.common,
                rows: Some(&self.family().samples.sets.rows_of_class(class)),
            };
            let common = self.solver.sums(&[sum], monitor)?.swap_remove(0).gradient;
            let gradient = self.map.gradient(&common);
            changes.push(self.change(Some(common), &gradient, Some(etas)));
        }
        Ok(changes)
    }

    fn change(
        &self,
        losses: Option<Vec<f64>>,
        gradient: &[f64],
        etas: Option<Vec<f64>>,
    ) -> Perturbation {
        let solved: Vec<f64> = self.factor.solve(gradient);
        let column = self
            .factor
            .whiten(Mat::from_fn(gradient.len(), 1, |i, _| gradient[i]));
        Perturbation {
            losses,
            along: self.map.to_common(&solved),
            whitened: (0..gradient.len()).map(|i| column[(i, 0)]).collect(),
            etas,
        }
    }

    /// The columns Kᵀ, then the others, for products with rows.
    fn columns(&self, others: &[&[f64]]) -> Mat<f64> {
        let (n_params, width) = (self.whitening.nrows(), self.whitening.ncols());
        Mat::from_fn(width, n_params + others.len(), |i, j| {
            if j < n_params {
                self.whitening[(j, i)]
            } else {
                others[j - n_params][i]
            }
        })
    }

    pub(super) fn derivatives(&self, monitor: &Monitor) -> Result<RowDerivatives> {
        let n_params = self.whitening.nrows();
        let along = self.changes.iter().map(|change| &change.along[..]);
        let others: Vec<&[f64]> = std::iter::once(&self.solution.common[..])
            .chain(along)
            .collect();
        let columns = self.columns(&others);
        let samples = &self.family().samples;
        let found = map_products(self.design(), columns.as_ref(), monitor, |rows, t| {
            let n = rows.len();
            let z: Vec<f64> = (0..n).map(|i| t[(i, n_params)]).collect();
            let (mut first, mut second, mut weights) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
            let y = &samples.targets(self.output)[rows.clone()];
            self.solver.loss.derivatives(y, &z, &mut first, &mut second);
            samples.sets.weights(None, self.output, rows, &mut weights);
            weigh(&mut first, &weights);
            weigh(&mut second, &weights);
            RowDerivatives {
                h: squared_norms(t.get(.., ..n_params)),
                along: (0..n)
                    .flat_map(|i| (n_params + 1..t.ncols()).map(move |j| t[(i, j)]))
                    .collect(),
                z,
                first,
                second,
            }
        })?;
        let mut all = RowDerivatives::default();
        for part in found {
            all.z.extend(part.z);
            all.first.extend(part.first);
            all.second.extend(part.second);
            all.h.extend(part.h);
            all.along.extend(part.along);
        }
        Ok(all)
    }

    /// The bounds, and their parts that depend on the row.
    pub(super) fn certificate(
        &self,
        derivatives: &RowDerivatives,
        monitor: &Monitor,
    ) -> Result<(Certificate, BoundParts)> {
        let n = derivatives.z.len();
        let mut parts = BoundParts {
            squares: vec![0.0; n + self.changes.len()],
            far: vec![],
        };
        let Some(concordance) = self.solver.loss.self_concordance() else {
            let y = self.family().samples.targets(self.output);
            let mut weights = vec![0.0; n];
            let samples = &self.family().samples;
            samples.sets.weights(None, self.output, 0..n, &mut weights);
            let rows = (0..n).map(|i| {
                let distance = self.solver.loss.jump_distance(y[i], derivatives.z[i]);
                (
                    distance,
                    derivatives.h[i],
                    weights[i],
                    derivatives.second[i],
                )
            });
            return Ok((Certificate::Jumps(Jumps::new(rows)), parts));
        };
        let h_max = derivatives.h.iter().copied().fold(0.0, f64::max);
        let far = FarRows::of(&derivatives.h);
        let mut excess = 0.0;
        if concordance > 0.0 && h_max > 0.0 {
            let lengths = (0..n).map(|row| self.step(row, derivatives, &parts).bounded.norm);
            let length = percentile(lengths.collect(), COMMON_PER_CENT);
            let t = (concordance * far.h_near.sqrt() * length).max(MIN_COMMON);
            excess = concordance * kappa_excess(t);
            parts.far = self.far_effects(&far, derivatives, concordance, monitor)?;
            parts.squares = self.weighted_squares(derivatives, &far, excess, monitor)?;
        }
        let certificate = Certificate::Smooth {
            concordance,
            h_max,
            h_near: far.h_near,
            excess,
        };
        Ok((certificate, parts))
    }

    /// What the step without each row does to far rows; nothing where there are none.
    fn far_effects(
        &self,
        far: &FarRows,
        derivatives: &RowDerivatives,
        concordance: f64,
        monitor: &Monitor,
    ) -> Result<Vec<FarEffect>> {
        if far.rows.is_empty() {
            return Ok(vec![]);
        }
        let width = self.design().n_columns();
        let mut buffer = vec![];
        let u = self.design().block(far.rows.iter().copied(), &mut buffer)?;
        let white = product(self.whitening.as_ref(), u.transpose());
        let solved = product(self.whitening.transpose(), white.as_ref());
        debug_assert_eq!(solved.nrows(), width);
        let parts = BoundParts {
            squares: vec![0.0; derivatives.z.len() + self.changes.len()],
            far: vec![],
        };
        let n_changes = self.changes.len();
        let effects = map_products(self.design(), solved.as_ref(), monitor, |rows, products| {
            let first = rows.start;
            rows.map(|row| {
                let length = self.step(row, derivatives, &parts).length;
                let mut effect = FarEffect::default();
                for (j, &far_row) in far.rows.iter().enumerate() {
                    if far_row == row {
                        continue; // its term is gone
                    }
                    let along: f64 = (0..n_changes)
                        .map(|k| {
                            let change = &self.changes[k];
                            change.eta(row) * derivatives.along[far_row * n_changes + k]
                        })
                        .sum();
                    let moved = (length * products[(row - first, j)] - along).abs();
                    let curved = self.solver.loss.skewness(derivatives.z[far_row])
                        + concordance * kappa_excess(concordance * moved);
                    effect.reach = effect.reach.max(moved);
                    effect.left += derivatives.second[far_row] * (curved * moved * moved).powi(2);
                }
                effect.left = effect.left.sqrt();
                effect
            })
            .collect::<Vec<_>>()
        })?;
        Ok(effects.into_iter().flatten().collect())
    }

    /// x_iᵀH⁻¹BH⁻¹x_i of every row, then the same of every change, for B with a common κ(t) − 1.
    fn weighted_squares(
        &self,
        derivatives: &RowDerivatives,
        far: &FarRows,
        excess: f64,
        monitor: &Monitor,
    ) -> Result<Vec<f64>> {
        let rows = derivatives
            .second
            .iter()
            .zip(&derivatives.h)
            .zip(&derivatives.z);
        let weight = |((c, h), z): ((&f64, &f64), &f64)| {
            c * h * (self.solver.loss.skewness(*z) + excess).powi(2)
        };
        let mut weights: Vec<f64> = rows.map(weight).collect();
        for &row in &far.rows {
            weights[row] = 0.0;
        }
        let gram = mirror_lower(self.design().gram(&weights, monitor)?);
        let n_params = self.whitening.nrows();
        let half = par_product(self.whitening.as_ref(), gram.as_ref(), monitor)?;
        let mut white = par_product(half.as_ref(), self.whitening.transpose(), monitor)?;
        // It is at most a few h_near; what is added makes bounds larger, by much less than their rounding.
        for j in 0..n_params {
            white[(j, j)] += 1e-12 * far.h_near * n_params as f64;
        }
        let Some(cholesky) = Cholesky::new(white, 0.0, monitor)? else {
            return Ok(vec![f64::INFINITY; weights.len() + self.changes.len()]);
        };
        let upper = Mat::from_fn(n_params, n_params, |i, j| {
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
            let column = row_major(&change.whitened, n_params, 1);
            let turned = product(upper.as_ref(), column);
            squares.push(squared_norms(turned.transpose())[0]);
        }
        Ok(squares)
    }

    pub(super) fn step(
        &self,
        row: usize,
        derivatives: &RowDerivatives,
        parts: &BoundParts,
    ) -> RowStep {
        let n = derivatives.z.len();
        let (h, c) = (derivatives.h[row], derivatives.second[row]);
        let (mut along, mut norm, mut weighted, mut change) = (0.0, 0.0, 0.0, 0.0_f64);
        for (k, perturbation) in self.changes.iter().enumerate() {
            let eta = perturbation.eta(row);
            if eta == 0.0 {
                continue;
            }
            along += eta * derivatives.along[row * self.changes.len() + k];
            norm += eta.abs() * dot(&perturbation.whitened, &perturbation.whitened).sqrt();
            weighted += eta.abs() * parts.squares[n + k].sqrt();
            if perturbation.etas.is_some() {
                change = change.max(eta.abs());
            }
        }
        let kept = 1.0 - c * h;
        let length = (self.own_factor(row) * derivatives.first[row] - c * along) / kept;
        RowStep {
            predictor: derivatives.z[row] + length * h - along,
            length,
            bounded: LeaveOutStep {
                h,
                kept,
                norm: norm + length.abs() * h.sqrt(),
                weighted_norm: weighted + length.abs() * parts.squares[row].sqrt(),
                far: parts.far.get(row).copied().unwrap_or_default(),
                change,
            },
        }
    }

    /// 1 + η of the class of a row when it is left out itself.
    pub(super) fn own_factor(&self, row: usize) -> f64 {
        let sets = &self.family().samples.sets;
        let Some(class) = sets.class_of(row) else {
            return 1.0;
        };
        let both = [self.without(row), None];
        let [without, all] = both.map(|set| sets.class_weight(set, self.output, class));
        1.0 + relative_change(without, all)
    }
}

/// without/all − 1.
fn relative_change(without: f64, all: f64) -> f64 {
    if without == all {
        0.0
    } else {
        without / all - 1.0
    }
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
    let blocks: Vec<Range<usize>> = blocks(0..design.n_rows()).collect();
    par_map(&blocks, monitor, |block| {
        let mut buffer = vec![];
        let u = design.block(block.clone(), &mut buffer)?;
        Ok(work(block.clone(), product(u, columns).as_ref()))
    })
}
