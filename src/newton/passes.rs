//! Passes over the rows: gradients of many problems at once, and sums over the rows of one.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::design::{BLOCK_ROWS, Design, blocks, map_all, map_parts};
use super::line_search::line_search;
use super::loss::Loss;
use super::samples::{Samples, TrainingSet};
use crate::linalg::{Mat, MatRef, add_outer, add_product, product, row_major};
use crate::{Monitor, Result};

/// Problems whose gradients are computed in one pass; more are divided into several passes.
const MOST_COLUMNS: usize = 256;

/// Values of all Hessians that are kept at a time.
const MOST_SUM_VALUES: usize = 1 << 23;

/// One problem: a training set and an output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Column {
    pub(super) set: TrainingSet,
    pub(super) output: usize,
}

/// A sum over rows at given shared parameters.
pub(super) struct Sum<'a> {
    pub(super) column: Column,
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
    pub(super) column: Column,
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
        for (own, other) in self.gradient.iter_mut().zip(&other.gradient) {
            *own += other;
        }
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

/// Everything that the passes read, and how much they have read.
#[derive(Debug)]
pub(super) struct Passes<'a> {
    pub(super) design: Design<'a>,
    pub(super) samples: Samples<'a>,
    pub(super) loss: Loss,
    /// Rows read for gradients, once for each problem.
    gradient_rows: AtomicU64,
    /// Rows read for Hessians.
    hessian_rows: AtomicU64,
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

impl<'a> Passes<'a> {
    pub(super) fn new(design: Design<'a>, samples: Samples<'a>, loss: Loss) -> Self {
        Self {
            design,
            samples,
            loss,
            gradient_rows: AtomicU64::new(0),
            hessian_rows: AtomicU64::new(0),
        }
    }

    /// Rows read for gradients, once for each problem, and rows read for Hessians.
    pub(super) fn n_rows_read(&self) -> [u64; 2] {
        [&self.gradient_rows, &self.hessian_rows].map(|count| count.load(Ordering::Relaxed))
    }

    /// Σ wℓ'u over the training set of each problem: one column each, at its column of `theta`.
    pub(super) fn gradients(
        &self,
        columns: &[Column],
        theta: MatRef<'_, f64>,
        monitor: &Monitor,
    ) -> Result<Mat<f64>> {
        let n_read = self.design.n_rows() * columns.len();
        self.gradient_rows
            .fetch_add(n_read as u64, Ordering::Relaxed);
        let mut all = Mat::zeros(theta.nrows(), theta.ncols());
        for start in (0..columns.len()).step_by(MOST_COLUMNS) {
            let end = columns.len().min(start + MOST_COLUMNS);
            let (own, theta) = (&columns[start..end], theta.get(.., start..end));
            let parts = map_parts(self.design.n_rows(), monitor, |rows| {
                self.part_gradients(own, theta, rows)
            })?;
            let mut out = all.get_mut(.., start..end);
            for part in parts {
                out += part;
            }
        }
        Ok(all)
    }

    fn part_gradients(
        &self,
        columns: &[Column],
        theta: MatRef<'_, f64>,
        rows: Range<usize>,
    ) -> Result<Mat<f64>> {
        let mut found = Mat::zeros(theta.nrows(), theta.ncols());
        let mut buffers = Buffers::default();
        let mut residuals = Mat::zeros(0, 0);
        for block in blocks(rows) {
            let n = block.len();
            buffers.resize(n);
            if residuals.nrows() != n {
                residuals = Mat::zeros(n, columns.len());
            }
            let u = self.design.block(block.clone(), &mut buffers.rows)?;
            let z = product(u, theta);
            for (c, column) in columns.iter().enumerate() {
                let y = &self.samples.targets(column.output)[block.clone()];
                let (first, second) = (&mut buffers.first, &mut buffers.second);
                self.loss
                    .derivatives(y, as_slice(z.as_ref(), c), first, second);
                let weights = &mut buffers.weights;
                self.samples
                    .training_weights(column.set, column.output, block.clone(), weights);
                for ((i, first), weight) in first.iter().enumerate().zip(weights) {
                    residuals[(i, c)] = if *weight == 0.0 { 0.0 } else { *weight * first };
                }
            }
            add_product(found.as_mut(), u.transpose(), residuals.as_ref());
        }
        Ok(found)
    }

    /// How many Hessians are kept at a time.
    pub(super) fn most_hessians(&self) -> usize {
        let width = self.design.n_columns();
        (MOST_SUM_VALUES / (width * width)).max(2)
    }

    /// Gradient and Hessian of each sum.
    pub(super) fn sums(&self, sums: &[Sum<'_>], monitor: &Monitor) -> Result<Vec<Derivatives>> {
        let width = self.design.n_columns();
        let most_parts = (MOST_SUM_VALUES / (width * width * sums.len())).clamp(2, 64);
        let mut parts = vec![];
        for (number, sum) in sums.iter().enumerate() {
            let n = sum.rows.map_or(self.design.n_rows(), <[usize]>::len);
            self.hessian_rows.fetch_add(n as u64, Ordering::Relaxed);
            let length = n.div_ceil(most_parts).max(BLOCK_ROWS);
            parts.extend(
                (0..n)
                    .step_by(length)
                    .map(|start| (number, start..n.min(start + length))),
            );
        }
        let found = map_all(&parts, monitor, |(number, range)| {
            self.part_sum(&sums[*number], range.clone())
        })?;
        let mut totals = vec![Derivatives::zeros(width); sums.len()];
        for ((number, _), part) in parts.iter().zip(&found) {
            totals[*number].add(part);
        }
        Ok(totals)
    }

    fn part_sum(&self, sum: &Sum<'_>, range: Range<usize>) -> Result<Derivatives> {
        let Column { set, output } = sum.column;
        let mut found = Derivatives::zeros(self.design.n_columns());
        let mut buffers = Buffers::default();
        for block in blocks(range) {
            buffers.resize(block.len());
            if let Some(rows) = sum.rows {
                let rows = rows[block].iter().copied();
                let weights = &mut buffers.weights;
                self.samples
                    .fill_weights(set, output, rows.clone(), weights);
                self.add_rows(sum, rows, &mut buffers, &mut found)?;
            } else {
                let weights = &mut buffers.weights;
                self.samples
                    .training_weights(set, output, block.clone(), weights);
                self.add_rows(sum, block, &mut buffers, &mut found)?;
            }
        }
        Ok(found)
    }

    /// Adds rows whose weights are in the buffers.
    fn add_rows(
        &self,
        sum: &Sum<'_>,
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
        let all_targets = self.samples.targets(sum.column.output);
        for (target, row) in targets.iter_mut().zip(rows.clone()) {
            *target = all_targets[row];
        }
        let u = self.design.block(rows, values)?;
        let z = product(u, column(sum.theta));
        self.loss
            .derivatives(targets, as_slice(z.as_ref(), 0), first, second);
        for (first, weight) in first.iter_mut().zip(&*weights) {
            *first = if *weight == 0.0 { 0.0 } else { weight * *first };
        }
        let gradient = product(u.transpose(), column(first));
        for (total, own) in found
            .gradient
            .iter_mut()
            .zip(as_slice(gradient.as_ref(), 0))
        {
            *total += own;
        }
        let width = u.ncols();
        let mut n = 0;
        for (i, (weight, second)) in weights.iter().zip(second).enumerate() {
            if *weight == 0.0 || *second == 0.0 {
                continue;
            }
            let root = (weight * *second).sqrt();
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
        let n_read = self.design.n_rows() * lines.len();
        self.gradient_rows
            .fetch_add(n_read as u64, Ordering::Relaxed);
        map_all(lines, monitor, |line| self.length(line))
    }

    fn length(&self, line: &Line) -> Result<Option<f64>> {
        let n = self.design.n_rows();
        let Column { set, output } = line.column;
        let theta = Mat::from_fn(self.design.n_columns(), 2, |i, j| line.theta[j][i]);
        let (mut z, mut change) = (Vec::with_capacity(n), Vec::with_capacity(n));
        let mut weights = vec![0.0; n];
        let mut values = vec![];
        for block in blocks(0..n) {
            let u = self.design.block(block.clone(), &mut values)?;
            let product = product(u, theta.as_ref());
            z.extend_from_slice(as_slice(product.as_ref(), 0));
            change.extend_from_slice(as_slice(product.as_ref(), 1));
            let weights = &mut weights[block.clone()];
            self.samples.training_weights(set, output, block, weights);
        }
        let targets = self.samples.targets(output);
        let (mut first, mut second, mut moved) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        Ok(line_search(line.slope, |length| {
            for ((moved, z), change) in moved.iter_mut().zip(&z).zip(&change) {
                *moved = z + length * change;
            }
            self.loss
                .derivatives(targets, &moved, &mut first, &mut second);
            let mut sums = (line.penalty[0] + length * line.penalty[1], line.penalty[1]);
            let terms = weights.iter().zip(&change).zip(first.iter().zip(&second));
            for ((weight, change), (first, second)) in terms {
                if *weight != 0.0 {
                    sums.0 += weight * first * change;
                    sums.1 += weight * second * change * change;
                }
            }
            sums
        }))
    }

    /// For each output, Σ w|ℓ'||u| over all rows at constant predictors.
    pub(super) fn magnitudes(&self, constants: &[f64], monitor: &Monitor) -> Result<Vec<Vec<f64>>> {
        let width = self.design.n_columns();
        let parts = map_parts(self.design.n_rows(), monitor, |rows| {
            let mut found = vec![vec![0.0; width]; constants.len()];
            let mut buffers = Buffers::default();
            for block in blocks(rows) {
                let n = block.len();
                buffers.resize(n);
                let u = self.design.block(block.clone(), &mut buffers.rows)?;
                let u = Mat::from_fn(n, width, |i, j| u[(i, j)].abs());
                for (output, &constant) in constants.iter().enumerate() {
                    let y = &self.samples.targets(output)[block.clone()];
                    let (first, second) = (&mut buffers.first, &mut buffers.second);
                    self.loss.derivatives(y, &vec![constant; n], first, second);
                    let weights = &mut buffers.weights;
                    self.samples
                        .training_weights(None, output, block.clone(), weights);
                    for (first, weight) in first.iter_mut().zip(weights) {
                        *first = first.abs() * *weight;
                    }
                    let sums = product(u.transpose(), column(first));
                    for (found, own) in found[output].iter_mut().zip(as_slice(sums.as_ref(), 0)) {
                        *found += own;
                    }
                }
            }
            Ok(found)
        })?;
        let mut totals = vec![vec![0.0; width]; constants.len()];
        for part in &parts {
            let own = totals.iter_mut().flatten().zip(part.iter().flatten());
            own.for_each(|(total, own)| *total += own);
        }
        Ok(totals)
    }

    /// z of some rows for several parameters: row × column of `theta`.
    pub(super) fn predictors(&self, rows: &[usize], theta: MatRef<'_, f64>) -> Result<Mat<f64>> {
        let mut found = Mat::zeros(rows.len(), theta.ncols());
        let mut buffer = vec![];
        for block in blocks(0..rows.len()) {
            let u = self
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
