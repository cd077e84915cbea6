//! A diagonal matrix and the rows of largest leverage: a preconditioner for rows of many features.
//!
//! The Hessian is XᵀDX + λI. With A the rows of √D·X of largest leverage, and Λ the penalty and the
//! diagonal of what the other rows add, M = Λ + AᵀA has the inverse
//!
//! M⁻¹ = Λ⁻¹ − Λ⁻¹Aᵀ(I + AΛ⁻¹Aᵀ)⁻¹AΛ⁻¹.

use rayon::prelude::*;

use super::preconditioner::Columns;
use crate::linalg::{Cholesky, Mat};
use crate::linear::Design;
use crate::{Monitor, Result};

/// The most rows of A, and the square of their number for each row of the data: the product AΛ⁻¹Aᵀ then
/// costs no more than some passes over the rows.
const MAX_ROWS: usize = 1024;
const SQUARE_PER_ROW: usize = 64;

/// The smallest part of the diagonal that is left in Λ, so that it has an inverse.
const MIN_PART: f64 = 1e-3;

/// M.
pub(super) struct LowRank {
    /// The diagonal of Λ⁻¹.
    inverse: Vec<f64>,
    /// A: of each row the values that are not zero.
    rows: Vec<Vec<(usize, f64)>>,
    /// Of I + AΛ⁻¹Aᵀ; `None` for the diagonal alone.
    factor: Option<Cholesky>,
}

impl LowRank {
    /// From the weights D of all rows.
    pub(super) fn new(columns: &Columns<'_>, weights: &[f64], monitor: &Monitor) -> Result<Self> {
        let Columns { design, map, ridge } = *columns;
        let chosen = largest_leverages(design, ridge.lambda, weights, monitor)?;
        let mut others = weights.to_vec();
        for &row in &chosen {
            others[row] = 0.0;
        }
        let weights_of_both = [weights.to_vec(), others];
        let sums = design.column_sums(&weights_of_both, |_, u| u, monitor)?;
        let squares = design.column_sums(&weights_of_both, |_, u| u * u, monitor)?;
        let diagonal = |at: usize| {
            let mut diagonal = map.squares(&sums[at], &squares[at]);
            ridge.add_diagonal(&mut diagonal);
            diagonal
        };
        let (all, others) = (diagonal(0), diagonal(1));
        let inverse: Vec<f64> = others
            .iter()
            .zip(&all)
            .map(|(others, all)| {
                let inverse = others.max(MIN_PART * all).recip();
                if inverse.is_finite() { inverse } else { 1.0 }
            })
            .collect();
        let mapped = |&row: &usize| -> Result<Vec<(usize, f64)>> {
            let mut u = vec![];
            design.block([row].into_iter(), &mut u)?;
            let root = weights[row].sqrt();
            for u in &mut u {
                *u *= root;
            }
            let values = map.gradient(&u).into_iter().enumerate();
            Ok(values.filter(|(_, value)| *value != 0.0).collect())
        };
        let rows = chosen.par_iter().map(mapped).collect::<Result<Vec<_>>>()?;
        let gram = gram(&rows, &inverse);
        Ok(Self {
            factor: Cholesky::new(gram, 0.0, monitor)?,
            inverse,
            rows,
        })
    }

    /// Multiplies each column with M⁻¹.
    pub(super) fn apply(&self, columns: &mut [&mut [f64]]) {
        for column in columns.iter_mut() {
            column
                .iter_mut()
                .zip(&self.inverse)
                .for_each(|(v, d)| *v *= d);
        }
        let Some(factor) = &self.factor else { return };
        let mut solved = Mat::from_fn(self.rows.len(), columns.len(), |i, j| {
            sparse_dot(&self.rows[i], columns[j])
        });
        factor.solve(&mut solved);
        for (j, column) in columns.iter_mut().enumerate() {
            for (i, row) in self.rows.iter().enumerate() {
                for &(feature, value) in row {
                    column[feature] -= self.inverse[feature] * value * solved[(i, j)];
                }
            }
        }
    }
}

/// Rows in the order of w Σ u²/(Σ w u² + λ), which is near their leverage, as many as there may be.
fn largest_leverages(
    design: &Design<'_>,
    penalty: f64,
    weights: &[f64],
    monitor: &Monitor,
) -> Result<Vec<usize>> {
    let squares = design.column_sums(&[weights.to_vec()], |_, u| u * u, monitor)?;
    let mut inverse = squares.concat();
    for square in &mut inverse {
        *square = (*square + penalty).max(f64::MIN_POSITIVE).recip();
    }
    let sums = design.row_sums(&inverse, |u| u * u)?;
    let leverages: Vec<f64> = sums.iter().zip(weights).map(|(sum, w)| sum * w).collect();
    let mut order: Vec<usize> = (0..weights.len())
        .filter(|&row| leverages[row] > 0.0)
        .collect();
    order.sort_by(|&a, &b| leverages[b].total_cmp(&leverages[a]));
    order.truncate(MAX_ROWS.min((SQUARE_PER_ROW * weights.len()).isqrt()));
    Ok(order)
}

/// I + AΛ⁻¹Aᵀ; the lower triangle.
fn gram(rows: &[Vec<(usize, f64)>], inverse: &[f64]) -> Mat<f64> {
    let lines: Vec<Vec<f64>> = rows
        .par_iter()
        .enumerate()
        .map_init(
            || vec![0.0; inverse.len()],
            |dense, (i, row)| {
                for &(j, v) in row {
                    dense[j] = v * inverse[j];
                }
                let line = rows[..=i].iter().map(|other| sparse_dot(other, dense));
                let line = line.collect();
                for &(j, _) in row {
                    dense[j] = 0.0;
                }
                line
            },
        )
        .collect();
    Mat::from_fn(rows.len(), rows.len(), |i, j| {
        let product = if j <= i { lines[i][j] } else { 0.0 };
        product + f64::from(i == j)
    })
}

fn sparse_dot(row: &[(usize, f64)], dense: &[f64]) -> f64 {
    row.iter().map(|&(j, v)| v * dense[j]).sum()
}
