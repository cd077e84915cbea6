//! Decision values in f64, for kernels whose values are not bounded.
//!
//! The gradient holds Kβ of held-out samples, but of kernel values rounded to f32, with an error of up
//! to 6e-8·Σ|K·β|. If |K| ≤ 1 that is far below any tolerance; linear and polynomial kernels of large
//! features would lose digits that LIBSVM, which predicts in f64, has.
//!
//! # Cost
//! (test samples of the fold) × (support vectors of any of its problems) kernel values, once for all
//! problems and candidates.

use ndarray::Array2;
use rayon::prelude::*;

use crate::data::Layout;
use crate::svm::kernel::{self, Columns, Kernel, PANEL_ROWS, Panel, Precision};
use crate::{Monitor, Result};

/// One solution: its support vectors, as rows with their β, and its intercept.
pub(super) struct Decision {
    pub(super) support: Vec<(usize, f64)>,
    pub(super) intercept: f64,
}

/// The decision values of the rows `test`, one column per decision.
pub(super) fn decision_values<R: Layout>(
    kernel: Kernel,
    rows: &R,
    test: &[usize],
    decisions: &[Decision],
    monitor: &Monitor,
) -> Result<Array2<f64>> {
    let mut support: Vec<usize> = decisions
        .iter()
        .flat_map(|decision| decision.support.iter().map(|(row, _)| *row))
        .collect();
    support.sort_unstable();
    support.dedup();
    let mut position = vec![0; rows.n_rows()];
    for (at, &row) in support.iter().enumerate() {
        position[row] = at;
    }
    let columns = Columns {
        rows,
        members: &support,
        norms: &kernel::squared_norms(rows, &support),
    };
    let mut out = Array2::zeros((test.len(), decisions.len()));
    out.as_slice_mut()
        .unwrap_or_default()
        .par_chunks_mut((PANEL_ROWS * decisions.len()).max(1))
        .zip(test.par_chunks(PANEL_ROWS))
        .try_for_each(|(out, members)| {
            monitor.check()?;
            let norms = kernel::squared_norms(rows, members);
            let panel = Panel::<f64, PANEL_ROWS>::new(rows, members, &norms);
            let mut values = Vec::with_capacity(support.len());
            kernel::kernel_block((kernel, Precision::Double), &panel, columns, |_, tile| {
                values.extend(tile);
            });
            for (at, decision) in decisions.iter().enumerate() {
                let mut sums = [decision.intercept; PANEL_ROWS];
                for &(row, beta) in &decision.support {
                    let lanes: &[f64; PANEL_ROWS] = &values[position[row]];
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
