//! Passes over the rows: gradients of many problems at once, and sums over the rows of one.

use std::ops::Range;

use super::family::Subproblem;
use super::line_search::line_search;
use super::solve::Solver;
use super::vectors::{add, weigh};
use crate::linalg::{Mat, MatMut, MatRef, add_outer, add_product, product, row_major};
use crate::linear::{MATRIX_ROWS, blocks, par_map, par_reduce};
use crate::{Monitor, Result};

/// Problems whose gradients are computed in one pass; more are divided into several passes.
const MAX_COLUMNS: usize = 256;

/// Values of all Hessians that are kept at a time.
const MAX_SUM_VALUES: usize = 1 << 23;

/// A sum over rows at given shared parameters.
pub(super) struct DerivativeSum<'a> {
    pub(super) subproblem: Subproblem,
    /// Shared parameters.
    pub(super) theta: &'a [f64],
    /// The rows, each once and whether or not they are in the training set; `None` for the training
    /// set.
    pub(super) rows: Option<&'a [usize]>,
}

/// Gradient and Hessian of a sum of losses in shared parameters.
#[derive(Clone, Debug)]
pub(super) struct Derivatives {
    pub(super) gradient: Vec<f64>,
    /// Its lower triangle.
    pub(super) hessian: Mat<f64>,
    /// Rows whose second derivative is not zero.
    pub(super) n_curved: usize,
}

/// A step of one problem.
pub(super) struct Line {
    pub(super) subproblem: Subproblem,
    /// Shared parameters of its start and of its direction.
    pub(super) theta: [Vec<f64>; 2],
    /// The derivative along the direction at the start.
    pub(super) slope: f64,
    /// That of the penalty, and by how much it increases with the length.
    pub(super) penalty: [f64; 2],
}

impl Derivatives {
    pub(super) fn zeros(n: usize) -> Self {
        Self {
            gradient: vec![0.0; n],
            hessian: Mat::zeros(n, n),
            n_curved: 0,
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        add(&mut self.gradient, 1.0, &other.gradient);
        self.hessian += &other.hessian;
        self.n_curved += other.n_curved;
    }

    /// What is left without some of the rows.
    pub(super) fn without(&self, removed: &Self) -> Self {
        let gradient = self.gradient.iter().zip(&removed.gradient);
        Self {
            gradient: gradient.map(|(all, removed)| all - removed).collect(),
            hessian: &self.hessian - &removed.hessian,
            n_curved: self.n_curved - removed.n_curved,
        }
    }
}

/// Buffers of one part of a pass.
#[derive(Default)]
struct Buffers {
    rows: Vec<f64>,
    weights: Vec<f64>,
    targets: Vec<f64>,
    first: Vec<f64>,
    second: Vec<f64>,
}

impl Buffers {
    fn resize(&mut self, n: usize) {
        for values in [
            &mut self.weights,
            &mut self.targets,
            &mut self.first,
            &mut self.second,
        ] {
            values.resize(n, 0.0);
        }
    }
}

impl Solver<'_> {
    /// Σ wℓ'u over the training set of each problem: one column each, at its column of `theta`.
    pub(super) fn gradients(
        &self,
        subproblems: &[Subproblem],
        theta: MatRef<'_, f64>,
        monitor: &Monitor,
    ) -> Result<Mat<f64>> {
        self.family.count_gradients(subproblems.len());
        let mut all = Mat::zeros(theta.nrows(), theta.ncols());
        for start in (0..subproblems.len()).step_by(MAX_COLUMNS) {
            let end = subproblems.len().min(start + MAX_COLUMNS);
            let (subproblems, theta) = (&subproblems[start..end], theta.get(.., start..end));
            let sums = self.family.design.fused_gradient(
                theta,
                monitor,
                |rows, predictors, residuals| {
                    self.first_derivatives(subproblems, rows, predictors, residuals);
                },
            )?;
            all.get_mut(.., start..end).copy_from(&sums);
        }
        Ok(all)
    }

    /// wℓ' of consecutive rows in the training set of each problem.
    fn first_derivatives(
        &self,
        subproblems: &[Subproblem],
        rows: Range<usize>,
        predictors: MatRef<'_, f64>,
        mut residuals: MatMut<'_, f64>,
    ) {
        let mut buffers = Buffers::default();
        buffers.resize(rows.len());
        let Buffers {
            weights,
            first,
            second,
            ..
        } = &mut buffers;
        for (c, subproblem) in subproblems.iter().enumerate() {
            let y = &self.family.samples.targets(subproblem.output)[rows.clone()];
            self.loss
                .derivatives(y, as_slice(predictors, c), first, second);
            let sets = &self.family.samples.sets;
            sets.weights(subproblem.set, subproblem.output, rows.clone(), weights);
            weigh(first, weights);
            for (i, first) in first.iter().enumerate() {
                residuals[(i, c)] = *first;
            }
        }
    }

    /// How many Hessians are kept at a time.
    pub(super) fn max_hessians(&self) -> usize {
        let width = self.family.design.n_columns();
        (MAX_SUM_VALUES / (width * width)).max(2)
    }

    /// Gradient and Hessian of each sum.
    pub(super) fn sums(
        &self,
        sums: &[DerivativeSum<'_>],
        monitor: &Monitor,
    ) -> Result<Vec<Derivatives>> {
        par_map(sums, monitor, |sum| {
            let n = sum.rows.map_or(self.family.design.n_rows(), <[usize]>::len);
            self.family.count_hessian_rows(n);
            let part = |rows| self.part_sum(sum, rows);
            par_reduce((n, MATRIX_ROWS), monitor, part, |total, part| {
                total.add(&part);
            })
        })
    }

    fn part_sum(&self, sum: &DerivativeSum<'_>, range: Range<usize>) -> Result<Derivatives> {
        let Subproblem { set, output } = sum.subproblem;
        let mut found = Derivatives::zeros(self.family.design.n_columns());
        let mut buffers = Buffers::default();
        for block in blocks(range) {
            buffers.resize(block.len());
            if let Some(rows) = sum.rows {
                let rows = rows[block].iter().copied();
                let weights = &mut buffers.weights;
                self.family
                    .samples
                    .sets
                    .weights_once(set, output, rows.clone(), weights);
                self.add_rows(sum, rows, &mut buffers, &mut found)?;
            } else {
                let weights = &mut buffers.weights;
                self.family
                    .samples
                    .sets
                    .weights(set, output, block.clone(), weights);
                self.add_rows(sum, block, &mut buffers, &mut found)?;
            }
        }
        Ok(found)
    }

    /// Adds rows whose weights are in the buffers.
    fn add_rows(
        &self,
        sum: &DerivativeSum<'_>,
        rows: impl ExactSizeIterator<Item = usize> + Clone,
        buffers: &mut Buffers,
        found: &mut Derivatives,
    ) -> Result<()> {
        let Buffers {
            rows: values,
            weights,
            targets,
            first,
            second,
        } = buffers;
        let all_targets = self.family.samples.targets(sum.subproblem.output);
        for (target, row) in targets.iter_mut().zip(rows.clone()) {
            *target = all_targets[row];
        }
        let u = self.family.design.block(rows, values)?;
        let z = product(u, column(sum.theta));
        self.loss
            .derivatives(targets, as_slice(z.as_ref(), 0), first, second);
        weigh(first, weights);
        weigh(second, weights);
        let gradient = product(u.transpose(), column(first));
        add(&mut found.gradient, 1.0, as_slice(gradient.as_ref(), 0));
        let width = u.ncols();
        let mut n = 0;
        for (i, second) in second.iter().enumerate() {
            if *second == 0.0 {
                continue;
            }
            let root = second.sqrt();
            values.copy_within(i * width..(i + 1) * width, n * width);
            for value in &mut values[n * width..(n + 1) * width] {
                *value *= root;
            }
            n += 1;
        }
        found.n_curved += n;
        add_outer(
            found.hessian.as_mut(),
            row_major(&values[..n * width], n, width).transpose(),
        );
        Ok(())
    }

    /// The lengths of steps at which objectives are least; `None` where there is none.
    pub(super) fn lengths(&self, lines: &[Line], monitor: &Monitor) -> Result<Vec<Option<f64>>> {
        self.family.count_gradients(lines.len());
        par_map(lines, monitor, |line| self.length(line))
    }

    fn length(&self, line: &Line) -> Result<Option<f64>> {
        let n = self.family.design.n_rows();
        let Subproblem { set, output } = line.subproblem;
        let theta = Mat::from_fn(self.family.design.n_columns(), 2, |i, j| line.theta[j][i]);
        let (mut z, mut change) = (Vec::with_capacity(n), Vec::with_capacity(n));
        let mut weights = vec![0.0; n];
        let mut values = vec![];
        for block in blocks(0..n) {
            let u = self.family.design.block(block.clone(), &mut values)?;
            let product = product(u, theta.as_ref());
            z.extend_from_slice(as_slice(product.as_ref(), 0));
            change.extend_from_slice(as_slice(product.as_ref(), 1));
            let weights = &mut weights[block.clone()];
            self.family
                .samples
                .sets
                .weights(set, output, block, weights);
        }
        let targets = self.family.samples.targets(output);
        let (mut first, mut second, mut moved) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        Ok(line_search(line.slope, |length| {
            for ((moved, z), change) in moved.iter_mut().zip(&z).zip(&change) {
                *moved = z + length * change;
            }
            self.loss
                .derivatives(targets, &moved, &mut first, &mut second);
            let mut sums = (line.penalty[0] + length * line.penalty[1], line.penalty[1]);
            weigh(&mut first, &weights);
            weigh(&mut second, &weights);
            for (change, (first, second)) in change.iter().zip(first.iter().zip(&second)) {
                sums.0 += first * change;
                sums.1 += second * change * change;
            }
            sums
        }))
    }

    /// z of some rows for several parameters: row × column of `theta`.
    pub(super) fn predictors(&self, rows: &[usize], theta: MatRef<'_, f64>) -> Result<Mat<f64>> {
        let mut found = Mat::zeros(rows.len(), theta.ncols());
        let mut buffer = vec![];
        for block in blocks(0..rows.len()) {
            let u = self
                .family
                .design
                .block(rows[block.clone()].iter().copied(), &mut buffer)?;
            add_product(found.get_mut(block, ..), u, theta);
        }
        Ok(found)
    }
}

/// A slice as a matrix of one column.
fn column(values: &[f64]) -> MatRef<'_, f64> {
    row_major(values, values.len(), 1)
}

/// A column of a matrix in column-major order.
fn as_slice(matrix: MatRef<'_, f64>, index: usize) -> &[f64] {
    let column = matrix.col(index).try_as_col_major();
    column.expect("columns are contiguous").as_slice()
}
