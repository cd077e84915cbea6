//! Decision values in f64: of fitted models, and of held-out rows where kernel values are not bounded.
//!
//! The gradient of the solver holds Kβ of held-out samples, but of kernel values rounded to f32,
//! with an error of up to 6e-8·Σ|K·β|. If |K| ≤ 1 that is far below any tolerance; linear and
//! polynomial kernels of large features would lose digits that LIBSVM, which predicts in f64, has.
//!
//! # Cost
//! (rows) × (support vectors of any problem) kernel values, once for all problems and candidates.

use ndarray::Array2;
use rayon::prelude::*;

use super::kernel::{self, Columns, Kernel, PANEL_ROWS, Panel, Precision};
use crate::data::Layout;
use crate::runtime::memory;
use crate::{Monitor, Result};

/// A decision function: coefficients of support vectors, by their position among all, and an intercept.
pub(super) struct Decision {
    pub(super) coefficients: Vec<(usize, f64)>,
    pub(super) intercept: f64,
}

/// Rows and those of them that are meant.
type Members<'a, R> = (&'a R, &'a [usize]);

/// The decision values of rows, one column per decision. With a precomputed kernel the rows hold
/// the kernel values to the support vectors, in order.
pub(super) fn decision_values<R: Layout, T: Layout>(
    kernel: Kernel,
    (rows, members): Members<'_, R>,
    (support_rows, support): Members<'_, T>,
    decisions: &[Decision],
    monitor: &Monitor,
) -> Result<Array2<f64>> {
    let shape = [members.len(), decisions.len()];
    let what = format_args!("{} decision values of {} rows", shape[1], shape[0]);
    memory::check_shape::<f64>(what, &shape)?;
    let is_precomputed = kernel == Kernel::Precomputed;
    let norms = if is_precomputed {
        vec![]
    } else {
        kernel::squared_norms(support_rows, support)
    };
    let columns = Columns {
        rows: support_rows,
        members: support,
        norms: &norms,
    };
    let mut out = Array2::zeros(shape);
    out.as_slice_mut()
        .unwrap_or_default()
        .par_chunks_mut((PANEL_ROWS * decisions.len()).max(1))
        .zip(members.par_chunks(PANEL_ROWS))
        .try_for_each(|(out, members)| {
            monitor.check()?;
            let norms = kernel::squared_norms(rows, members);
            let panel = Panel::<f64, PANEL_ROWS>::new(rows, members, &norms);
            let values = if is_precomputed {
                panel.values
            } else {
                let mut values = Vec::with_capacity(support.len());
                kernel::kernel_block((kernel, Precision::Double), &panel, columns, |_, tile| {
                    values.extend(tile);
                });
                values
            };
            for (at, decision) in decisions.iter().enumerate() {
                let mut sums = [decision.intercept; PANEL_ROWS];
                for &(position, beta) in &decision.coefficients {
                    let lanes: &[f64; PANEL_ROWS] = &values[position];
                    for (sum, value) in sums.iter_mut().zip(lanes) {
                        *sum += beta * value;
                    }
                }
                for (row, sum) in out.chunks_mut(decisions.len()).zip(sums) {
                    row[at] = sum;
                }
            }
            Ok(())
        })?;
    Ok(out)
}
