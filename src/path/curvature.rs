//! The quadratic model of a loss at a predictor, as the solver of elastic nets takes it.
//!
//! At parameters φ with gradient g and Hessian H of the losses, a proximal Newton step minimises
//!
//! gᵀd + ½dᵀHd + λ₁‖φ + d‖₁ + ½λ₂‖φ + d‖².
//!
//! With a free intercept, which has no penalty and whose derivative is zero at φ, H is the Schur
//! complement of its diagonal element: the second moments about means weighted by ℓ''. The problem is
//! that of `solver` with XᵀX = H and Xᵀ(y − Xφ) = −g.
//!
//! | rows | what is computed | |
//! |---|---|---|
//! | many | H, in closed form from common second moments, for one or several steps | [`GramQuadratic`] |
//! | few for each feature | columns of a working set times √ℓ'', for one step | [`ColumnQuadratic`] |

use super::columns::{ColumnValues, Columns};
use super::gram::GramQuadratic;
use crate::Result;
use crate::linalg::MatRef;
use crate::linear::{Design, FoldMap, blocks};

/// A column whose variation is below this part of its second moment is constant to rounding, and of
/// the second moment of all rows, where that of other rows was subtracted.
const CONSTANT: f64 = 1e-13;
const CONSTANT_BY_DIFFERENCE: f64 = 1e-12;

/// The Hessian of a training set in the parameters with a penalty.
pub(super) struct Hessian {
    pub(super) quadratic: GramQuadratic<'static>,
    /// How the free intercept follows each coefficient; empty if none is free.
    pub(super) intercept_slopes: Vec<f64>,
    /// Features that do not vary in the training set: their coefficients are zero.
    pub(super) is_constant: Vec<bool>,
}

impl Hessian {
    /// From the common second moments of a training set, which may be those `before` less those of other
    /// rows; `None` if ℓ'' is zero.
    pub(super) fn new(
        moments: MatRef<'_, f64>,
        before: Option<MatRef<'_, f64>>,
        map: &FoldMap,
        is_free: bool,
    ) -> Option<Self> {
        let all = map.second_moments(moments);
        let n = if is_free {
            map.n_features()
        } else {
            map.n_params()
        };
        let (before, constant) = match before {
            Some(before) => (map.second_moments(before), CONSTANT_BY_DIFFERENCE),
            None => (all.clone(), CONSTANT),
        };
        let curvature = if is_free { all[(n, n)] } else { 1.0 };
        if curvature <= 0.0 {
            return None;
        }
        let sum = |j: usize| if is_free { all[(n, j)] } else { 0.0 };
        let mut gram = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..=i {
                let value = all[(i, j)] - sum(i) * sum(j) / curvature;
                gram[i * n + j] = value;
                gram[j * n + i] = value;
            }
        }
        let is_constant: Vec<bool> = (0..n)
            .map(|j| gram[j * n + j] <= constant * before[(j, j)])
            .collect();
        for j in (0..n).filter(|&j| is_constant[j]) {
            for i in 0..n {
                gram[i * n + j] = 0.0;
                gram[j * n + i] = 0.0;
            }
        }
        let slopes = if is_free {
            (0..n).map(|j| sum(j) / curvature).collect()
        } else {
            vec![]
        };
        Some(Self {
            quadratic: GramQuadratic::of_gram(gram, n),
            intercept_slopes: slopes,
            is_constant,
        })
    }
}

/// Columns of some parameters times √ℓ'', about their weighted means if the intercept is free, and
/// these means.
pub(super) fn weighted_columns(
    design: &Design<'_>,
    map: &FoldMap,
    (working, curvatures): (&[usize], &[f64]),
    is_free: bool,
) -> Result<(Columns, Vec<f64>)> {
    let n = curvatures.len();
    let roots: Vec<f64> = curvatures.iter().map(|v| v.sqrt()).collect();
    let weight: f64 = curvatures.iter().sum();
    let mean = |sum: f64| {
        if is_free && weight > 0.0 {
            sum / weight
        } else {
            0.0
        }
    };
    let (p, constant) = (map.n_features(), map.intercept_value());
    let is_stored = |j: usize| j < p && !map.has_shift();
    let (mut squares, mut means) = (vec![], vec![]);
    if design.is_transposed() && working.iter().all(|&j| is_stored(j) || j == p) {
        let (mut starts, mut rows, mut values) = (vec![0], vec![], vec![]);
        for &j in working {
            let (mut sum, mut square) = (0.0, 0.0);
            let mut push = |i: usize, v: f64| {
                sum += curvatures[i] * v;
                square += curvatures[i] * v * v;
                #[allow(clippy::cast_possible_truncation)] // fewer than 2³² rows are stored
                rows.push(i as u32);
                values.push(roots[i] * v);
            };
            if j < p {
                let scale = map.scale(j);
                design.for_each_stored(j, |i, v| push(i, v * scale));
            } else {
                (0..n).for_each(|i| push(i, constant));
            }
            starts.push(rows.len());
            means.push(mean(sum));
            squares.push(variation(square, weight * mean(sum).powi(2)));
        }
        let values = ColumnValues::Sparse {
            starts,
            rows,
            values,
            means: means.clone(),
        };
        let columns = Columns {
            values,
            roots,
            weight,
            squares,
        };
        return Ok((columns, means));
    }
    let mut values = vec![0.0; n * working.len()];
    let mut buffer = vec![];
    for block in blocks(0..n) {
        let u = design.block(block.clone(), &mut buffer)?;
        for (place, &j) in working.iter().enumerate() {
            for (i, row) in block.clone().enumerate() {
                values[place * n + row] = if j < p {
                    map.apply(j, u[(i, j)])
                } else {
                    constant
                };
            }
        }
    }
    for column in values.chunks_exact_mut(n.max(1)) {
        let sum: f64 = column.iter().zip(curvatures).map(|(v, w)| v * w).sum();
        let mean = mean(sum);
        let (mut square, mut before) = (0.0, 0.0);
        for ((v, root), w) in column.iter_mut().zip(&roots).zip(curvatures) {
            before += w * *v * *v;
            *v = root * (*v - mean);
            square += *v * *v;
        }
        means.push(mean);
        squares.push(variation(before, before - square));
    }
    let columns = Columns {
        values: ColumnValues::Dense(values),
        roots,
        weight,
        squares,
    };
    Ok((columns, means))
}

/// What a mean leaves of a second moment; zero of a constant column.
fn variation(square: f64, of_mean: f64) -> f64 {
    let left = square - of_mean;
    if left <= CONSTANT * square { 0.0 } else { left }
}
