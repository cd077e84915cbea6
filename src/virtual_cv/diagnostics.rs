//! Leverages and leave-one-out residuals, from which Cook's distances, PRESS and GCV follow.

use super::ridge_path::RidgePath;
use ndarray::{Array1, Array2};

use super::eliminate::{GROUP_ROWS, Hat};
use super::primal::Primal;
use crate::data::Layout;
use crate::linalg::Mat;
use crate::linear::LinearProblem;
use crate::{Error, Folds, Monitor, Result};

/// The influence of every row on the fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostics {
    /// h_ii, the derivative of a row's prediction with respect to its target.
    pub leverages: Array1<f64>,
    /// y − ŷ of the fit to all rows: one column per output.
    pub residuals: Array2<f64>,
    /// y − ŷ of the fit without the row: one column per output.
    pub left_out: Array2<f64>,
}

impl<R: Layout> LinearProblem<'_, R> {
    /// The diagnostics of a fit with one λ and no scaler.
    pub(super) fn diagnostics(
        &self,
        path: &RidgePath<'_>,
        monitor: &Monitor,
    ) -> Result<Diagnostics> {
        let n = self.n_rows();
        let folds = Folds::leave_one_out(n)?;
        let is_dual = self.rows.n_features() >= n;
        self.check_memory(is_dual)?;
        if is_dual && let Some(dual) = self.dual(path, monitor)? {
            return leave_one_out(&dual, self, path, monitor);
        }
        let primal = Primal::new(self, path, &folds, monitor)?.ok_or_else(|| Error::Parameter {
            name: "X",
            rule: "clearly of full rank, or clearly not",
            value: "columns that are collinear up to rounding".into(),
        })?;
        leave_one_out(&primal, self, path, monitor)
    }
}

fn leave_one_out<R: Layout>(
    hat: &impl Hat,
    problem: &LinearProblem<'_, R>,
    path: &RidgePath<'_>,
    monitor: &Monitor,
) -> Result<Diagnostics> {
    let (n, q) = (problem.n_rows(), problem.targets.n_outputs);
    monitor.add_total(n as u64);
    let rows: Vec<usize> = (0..n).collect();
    let mut out = Diagnostics {
        leverages: Array1::zeros(n),
        residuals: Array2::zeros((n, q)),
        left_out: Array2::zeros((n, q)),
    };
    let scale = hat.residual_scale(0);
    for block in rows.chunks(GROUP_ROWS) {
        let a = hat.weighted_coords(block);
        let e = hat.residuals(block, a.as_ref());
        let one_minus_h = hat.one_minus_h(&a);
        for (c, &row) in block.iter().enumerate() {
            let (one_minus_h, root) = (one_minus_h[(0, c)], problem.targets.root_weight(row));
            out.leverages[row] = 1.0 - scale * one_minus_h;
            // Otherwise the row alone determines a part of the model, or has zero weight.
            let smallest = hat.min_pivot().max(hat.min_eigenvalue());
            let is_determined = root > 0.0 && one_minus_h > smallest;
            let refitted = (!is_determined)
                .then(|| predict_left_out(problem, path, row, monitor))
                .transpose()?;
            for (o, y) in problem.targets.row(row).iter().enumerate() {
                let e = e[(o, c)];
                let (residual, left_out) = match &refitted {
                    None => (scale * e / root, e / (root * one_minus_h)),
                    Some(predicted) if root > 0.0 => (e / root, y - predicted[(o, 0)]),
                    Some(predicted) => (y - predicted[(o, 0)], y - predicted[(o, 0)]),
                };
                out.residuals[(row, o)] = residual;
                out.left_out[(row, o)] = left_out;
            }
        }
        monitor.advance(block.len() as u64)?;
    }
    Ok(out)
}

/// Predictions of a row by the model refitted without it.
fn predict_left_out<R: Layout>(
    problem: &LinearProblem<'_, R>,
    path: &RidgePath<'_>,
    row: usize,
    monitor: &Monitor,
) -> Result<Mat<f64>> {
    let train: Vec<usize> = (0..problem.n_rows()).filter(|&i| i != row).collect();
    let fitted = problem.refit(path, &train, row, monitor)?;
    Ok(fitted.predict(&problem.rows, &[row]))
}
