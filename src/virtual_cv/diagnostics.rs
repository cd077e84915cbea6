//! Leverages and leave-one-out residuals, from which Cook's distances, PRESS and GCV follow.

use super::eliminate::{GROUP_ROWS, Hat};
use super::primal::Primal;
use super::problem::{Model, Problem};
use crate::data::Layout;
use crate::linalg::Mat;
use crate::{Error, Folds, Monitor, Result};

/// The influence of every row on the fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostics {
    /// h_ii, the derivative of a row's prediction with respect to its target.
    pub leverages: Vec<f64>,
    /// y − ŷ of the fit to all rows, row-major.
    pub residuals: Vec<f64>,
    /// y − ŷ of the fit without the row, row-major.
    pub left_out: Vec<f64>,
}

/// The diagnostics of a fit with one λ and no scaler.
pub fn diagnostics<R: Layout>(
    problem: &Problem<'_, R>,
    model: &Model,
    monitor: &Monitor,
) -> Result<Diagnostics> {
    model.check()?;
    let n = problem.n_rows();
    let folds = Folds::contiguous(n, n)?;
    if problem.rows.n_features() >= n
        && let Some(dual) = problem.dual(model, monitor)?
    {
        return pass(&dual, problem, model, monitor);
    }
    let primal = Primal::new(problem, model, &folds, monitor)?.ok_or_else(|| Error::Parameter {
        name: "X",
        rule: "clearly of full rank, or clearly not",
        value: "columns that are collinear up to rounding".into(),
    })?;
    pass(&primal, problem, model, monitor)
}

fn pass<R: Layout>(
    hat: &impl Hat,
    problem: &Problem<'_, R>,
    model: &Model,
    monitor: &Monitor,
) -> Result<Diagnostics> {
    let (n, q) = (problem.n_rows(), problem.targets.n_outputs);
    monitor.expect(n as u64);
    let rows: Vec<usize> = (0..n).collect();
    let mut out = Diagnostics {
        leverages: Vec::with_capacity(n),
        residuals: Vec::with_capacity(n * q),
        left_out: Vec::with_capacity(n * q),
    };
    let scale = hat.residual_scale(0);
    for block in rows.chunks(GROUP_ROWS) {
        let a = hat.weighted_coords(block);
        let e = hat.residuals(block, a.as_ref());
        let one_minus_h = hat.one_minus_h(&a);
        for (c, &row) in block.iter().enumerate() {
            let one_minus_h = one_minus_h[(0, c)];
            out.leverages.push(1.0 - scale * one_minus_h);
            let root = problem.targets.root_weight(row);
            if root > 0.0 && one_minus_h > hat.min_pivot() {
                let residuals = (0..q).map(|o| scale * e[(o, c)] / root);
                out.residuals.extend(residuals);
                let divisor = root * one_minus_h;
                out.left_out.extend((0..q).map(|o| e[(o, c)] / divisor));
            } else {
                refit_without(problem, model, (row, root), &e, c, &mut out, monitor)?;
            }
        }
        monitor.advance(block.len() as u64)?;
    }
    Ok(out)
}

/// Refits the model without a row that alone determines a part of it, or that has zero weight.
fn refit_without<R: Layout>(
    problem: &Problem<'_, R>,
    model: &Model,
    (row, root): (usize, f64),
    e: &Mat<f64>,
    column: usize,
    out: &mut Diagnostics,
    monitor: &Monitor,
) -> Result<()> {
    let train: Vec<usize> = (0..problem.n_rows()).filter(|&i| i != row).collect();
    let fitted = problem.refit(model, &train, row, monitor)?;
    let predicted = fitted.predict(&problem.rows, &[row]);
    for (o, y) in problem.targets.row(row).iter().enumerate() {
        let left_out = y - predicted[(o, 0)];
        out.left_out.push(left_out);
        out.residuals.push(if root > 0.0 {
            e[(o, column)] / root
        } else {
            left_out
        });
    }
    Ok(())
}
