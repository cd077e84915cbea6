//! Training sets as columns: weighted, scaled, and centred if there is an intercept.

use super::columns::{ColumnValues, Columns};
use crate::Result;
use crate::data::{Layout, Row};
use crate::linear::{FoldMap, LinearProblem, ROUNDING, is_sparse};
use crate::runtime::memory;

/// The columns of a training set, and what they were scaled by.
pub(super) struct TrainingColumns {
    pub(super) columns: Columns,
    /// What maps rows to them, but for the weights.
    pub(super) map: FoldMap,
}

impl TrainingColumns {
    pub(super) fn new<R: Layout>(
        linear: &LinearProblem<'_, R>,
        train: &[usize],
        scaling: Option<&FoldMap>,
        fit_intercept: bool,
    ) -> Result<Self> {
        let n_features = linear.rows.n_features();
        let p = scaling.map_or(n_features, FoldMap::n_features);
        let sums = scaling.filter(|map| map.has_sums());
        let at_a_time = rayon::current_num_threads(); // training sets
        memory::check_shape::<f64>("sums of the features of training sets", &[at_a_time, 8, p])?;
        let roots: Vec<f64> = train
            .iter()
            .map(|&i| linear.targets.root_weight(i))
            .collect();
        let weight = roots.iter().map(|root| root * root).sum();
        let factor = scaling.map_or_else(|| vec![1.0; p], FoldMap::scales);
        let has_shift = scaling.is_some_and(FoldMap::has_shift);
        if is_sparse(&linear.rows) && sums.is_none() && (fit_intercept || !has_shift) {
            return Ok(sparse(linear, train, roots, weight, factor, fit_intercept));
        }
        memory::check_shape::<f64>("the columns of a training set", &[train.len(), p])?;
        let shift = || scaling.map_or_else(|| vec![0.0; p], FoldMap::shifts);
        let centre = (!fit_intercept).then(shift);
        let identity = FoldMap::identity(p);
        let sums = identity.of_sums_of(sums.unwrap_or(&FoldMap::identity(p)));
        Ok(dense(linear, (train, &sums), roots, weight, factor, centre))
    }
}

/// Copies all columns, or sums of them; without a given centre it is their mean.
fn dense<R: Layout>(
    linear: &LinearProblem<'_, R>,
    (train, sums): (&[usize], &FoldMap),
    roots: Vec<f64>,
    weight: f64,
    factor: Vec<f64>,
    centre: Option<Vec<f64>>,
) -> TrainingColumns {
    let (n, p) = (train.len(), sums.n_features());
    let mut values = vec![0.0; n * p];
    let mut of_row = vec![0.0; p];
    for (i, &row) in train.iter().enumerate() {
        sums.write(&linear.rows, row, &mut of_row);
        for (j, v) in of_row.iter().enumerate() {
            values[j * n + i] = *v;
        }
    }
    let mut squares = vec![0.0; p];
    let mut centres = vec![0.0; p];
    for (j, column) in values.chunks_exact_mut(n.max(1)).enumerate() {
        let mean = centre
            .as_ref()
            .map_or_else(|| mean(column, &roots, weight), |c| c[j]);
        for (v, root) in column.iter_mut().zip(&roots) {
            *v = root * (*v - mean) * factor[j];
        }
        let square: f64 = column.iter().map(|v| v * v).sum();
        if square > (ROUNDING * mean * factor[j]).powi(2) * weight {
            squares[j] = square;
        }
        centres[j] = mean;
    }
    let values = ColumnValues::Dense(values);
    TrainingColumns {
        columns: Columns {
            values,
            roots,
            weight,
            squares,
        },
        map: FoldMap::affine(centres, factor).of_sums_of(sums),
    }
}

/// The weighted mean, with one step of iterative refinement.
fn mean(column: &[f64], roots: &[f64], weight: f64) -> f64 {
    let about = |centre: f64| {
        let terms = column.iter().zip(roots);
        terms
            .map(|(v, root)| root * root * (v - centre))
            .sum::<f64>()
            / weight
    };
    let first = about(0.0);
    first + about(first)
}

/// Compresses the columns of sparse rows.
fn sparse<R: Layout>(
    linear: &LinearProblem<'_, R>,
    train: &[usize],
    roots: Vec<f64>,
    weight: f64,
    factor: Vec<f64>,
    is_centred: bool,
) -> TrainingColumns {
    let p = linear.rows.n_features();
    let mut starts = vec![0; p + 1];
    for &row in train {
        for (j, _) in linear.rows.row(row).entries() {
            starts[j + 1] += 1;
        }
    }
    for j in 0..p {
        starts[j + 1] += starts[j];
    }
    let mut next = starts.clone();
    let mut rows = vec![0; starts[p]];
    let mut values = vec![0.0; starts[p]];
    let mut centre = vec![0.0; p];
    let mut squares = vec![0.0; p];
    for (i, &row) in train.iter().enumerate() {
        let root = roots[i];
        for (j, v) in linear.rows.row(row).entries() {
            let scaled = root * v * factor[j];
            #[allow(clippy::cast_possible_truncation)] // fewer than 2³² rows are stored
            let index = i as u32;
            (rows[next[j]], values[next[j]]) = (index, scaled);
            next[j] += 1;
            centre[j] += root * root * v / weight;
            squares[j] += scaled * scaled;
        }
    }
    let mut means = vec![0.0; p];
    if is_centred {
        for j in 0..p {
            means[j] = centre[j] * factor[j];
            let about_mean = squares[j] - weight * means[j] * means[j];
            // What is left of a constant column is rounding error.
            let is_constant = about_mean <= 1e-14 * squares[j];
            squares[j] = if is_constant { 0.0 } else { about_mean };
        }
    } else {
        centre.fill(0.0);
    }
    let values = ColumnValues::Sparse {
        starts,
        rows,
        values,
        means,
    };
    TrainingColumns {
        columns: Columns {
            values,
            roots,
            weight,
            squares,
        },
        map: FoldMap::affine(centre, factor),
    }
}
