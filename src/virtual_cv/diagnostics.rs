//! Leverages and leave-one-out residuals, from which Cook's distances, PRESS and GCV follow.

use super::eliminate::{GROUP, Hat};
use super::primal::Primal;
use super::problem::{Cv, Model, Problem};
use crate::data::Layout;
use crate::linalg::Mat;
use crate::{Error, Folds, Monitor, Result};

/// What one pass over the rows tells about each of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostics {
    /// h_ii, the weight of a row's own target in its prediction.
    pub leverages: Vec<f64>,
    /// y − ŷ of the fit to all rows, output after output.
    pub residuals: Vec<f64>,
    /// y − ŷ of the fit without the row.
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
    let cv = Cv::Folds(&folds);
    if problem.rows.n_features() >= n
        && let Some(dual) = problem.dual(model, monitor)?
    {
        return pass(&dual, problem, model, monitor);
    }
    let primal = Primal::new(problem, model, cv, monitor)?.ok_or_else(|| Error::Parameter {
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
    let (n, q) = (problem.n_rows(), problem.n_outputs);
    monitor.expect(n as u64);
    let rows: Vec<usize> = (0..n).collect();
    let mut out = Diagnostics {
        leverages: Vec::with_capacity(n),
        residuals: Vec::with_capacity(n * q),
        left_out: Vec::with_capacity(n * q),
    };
    let scale = hat.residual_scale(0);
    for block in rows.chunks(GROUP) {
        let a = hat.weighted(block);
        let e = hat.residuals(block, a.as_ref());
        let h = hat.complements(&a);
        for (c, &row) in block.iter().enumerate() {
            let complement = h[(0, c)];
            out.leverages.push(1.0 - scale * complement);
            let root = hat.root_weight(row);
            let known = (root > 0.0 && complement > hat.floor()).then_some(root * complement);
            match known {
                Some(divisor) => {
                    out.residuals
                        .extend((0..q).map(|o| scale * e[(o, c)] / root));
                    out.left_out.extend((0..q).map(|o| e[(o, c)] / divisor));
                }
                None => alone(problem, model, (row, root), &e, c, &mut out, monitor)?,
            }
        }
        monitor.advance(block.len() as u64)?;
    }
    Ok(out)
}

/// A row that alone determines a part of the model, or one without weight: fitted by itself.
fn alone<R: Layout>(
    problem: &Problem<'_, R>,
    model: &Model,
    (row, root): (usize, f64),
    e: &Mat<f64>,
    column: usize,
    out: &mut Diagnostics,
    monitor: &Monitor,
) -> Result<()> {
    let train: Vec<usize> = (0..problem.n_rows()).filter(|&i| i != row).collect();
    let fitted = problem.fit(model, &train, row, monitor)?;
    let predicted = fitted.predict(problem.rows, &[row]);
    for (o, y) in problem.target(row).iter().enumerate() {
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
