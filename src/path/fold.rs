//! One fold: its training set, its fits, and what is wanted of its held-out rows.

use super::columns::ColumnQuadratic;
use super::fold_moments::FoldMoments;
use super::gram::GramQuadratic;
use super::row_products::TrainingRows;
use super::solver::{self, Quadratic, Solver};
use super::training::TrainingColumns;
use super::{PathOutputs, PenaltyPath};
use crate::data::Layout;
use crate::linalg::Mat;
use crate::linear::{
    Fitted, FoldMap, FoldMaps, LinearProblem, MIN_KEPT_FRACTION, Moments, NormalEquations,
    TrainingSet, is_sparse, training_rows,
};
use crate::runtime::memory;
use crate::{Error, Monitor, Resampling, Result};

/// The largest number of features for which Gram matrices are formed.
const MAX_GRAM_FEATURES: usize = 4096;
/// The same for sparse rows: their columns are cheap to read.
const MAX_SPARSE_GRAM_FEATURES: usize = 1024;
/// Features per problem (fold and penalty) up to which a Gram matrix is cheaper than columns.
const GRAM_FEATURES_PER_PROBLEM: usize = 128;
/// The number of folds from which a fold starts at the solutions of all rows: most of its supports
/// are theirs.
const MIN_STARTING_FOLDS: usize = 20;

/// Elastic nets of all folds, with targets about `target_centres` in units of `unit`.
pub(super) struct FoldProblem<'a, R> {
    pub(super) linear: LinearProblem<'a, R>,
    pub(super) path: &'a PenaltyPath<'a>,
    /// The order in which penalties are solved.
    pub(super) order: Vec<usize>,
    pub(super) unit: f64,
    pub(super) target_centres: Vec<f64>,
    pub(super) folds: &'a dyn Resampling,
    pub(super) wanted: PathOutputs,
    /// Moments of all rows, or of the training rows of a single split; `None` if columns are used.
    pub(super) moments: Option<Moments>,
}

/// What is found of one fold, in the units of the targets: penalty × output.
pub(super) struct FoldFits {
    pub(super) gaps: Vec<f64>,
    pub(super) n_iterations: Vec<u32>,
    /// One per output.
    pub(super) target_variances: Vec<f64>,
    /// Empty if not wanted.
    pub(super) errors: Vec<f64>,
    /// Penalty × output × feature, the intercept last; empty if not wanted.
    pub(super) coefficients: Vec<f64>,
}

/// β of the scaled features, one column per penalty and output.
struct Solutions {
    beta: Mat<f64>,
    gaps: Vec<f64>,
    n_iterations: Vec<u32>,
    target_variances: Vec<f64>,
}

impl<R: Layout> FoldProblem<'_, R> {
    pub(super) fn n_features(&self) -> usize {
        self.linear.rows.n_features()
    }

    /// The features of the models, which may be sums of columns.
    fn n_model_features(&self) -> usize {
        let maps = self.path.spec.scaling.as_deref();
        maps.map_or(self.n_features(), |maps| maps.all_rows().n_features())
    }

    fn n_outputs(&self) -> usize {
        self.target_centres.len()
    }

    pub(super) fn is_centred(&self) -> bool {
        self.path.spec.fit_intercept
            || self
                .path
                .spec
                .scaling
                .as_deref()
                .is_some_and(FoldMaps::has_shift)
    }

    /// Computes the moments, if they are cheaper than columns.
    pub(super) fn prepare(&mut self, monitor: &Monitor) -> Result<()> {
        let (n, p, k) = (
            self.linear.n_rows(),
            self.n_features(),
            self.folds.n_splits(),
        );
        let n_problems = k * self.path.penalties.len();
        let limit = if is_sparse(&self.linear.rows) {
            MAX_SPARSE_GRAM_FEATURES
        } else {
            MAX_GRAM_FEATURES
        };
        let maps = self.path.spec.scaling.as_deref();
        let has_sums = maps.is_some_and(FoldMaps::has_sums);
        let is_too_wide = p > GRAM_FEATURES_PER_PROBLEM * n_problems;
        // Columns that are sums are dense, and would be made for every fold.
        if p > n || p > limit || (is_too_wide && !has_sums) {
            return Ok(());
        }
        self.moments = if self.is_single() {
            let train = training_rows(self.folds, Some(0));
            self.linear
                .moments(self.is_centred(), &train, None, monitor)?
        } else {
            self.linear
                .moments_of_all(self.is_centred(), self.folds, monitor)?
        };
        Ok(())
    }

    /// Whether the moments are those of the training rows of the only split.
    pub(super) fn is_single(&self) -> bool {
        self.folds.n_splits() == 1 && !self.wanted.all_rows
    }

    /// Whether folds start at the solutions of all rows.
    pub(super) fn starts_from_all_rows(&self) -> bool {
        self.folds.n_splits() >= MIN_STARTING_FOLDS
    }

    /// β and the fits of all rows, if they are wanted or start the others. Folds can do without a start.
    pub(super) fn all_rows(&self, monitor: &Monitor) -> Result<Option<(Mat<f64>, FoldFits)>> {
        if !self.wanted.all_rows && !self.starts_from_all_rows() {
            return Ok(None);
        }
        let (solutions, fitted, _) = match self.solve(None, None, monitor) {
            Err(Error::Undetermined { .. }) if !self.wanted.all_rows => return Ok(None),
            solved => solved?,
        };
        let coefficients = self.coefficients(&fitted, self.wanted.all_rows);
        let beta = solutions.beta.clone();
        Ok(Some((beta, self.fits(solutions, vec![], coefficients))))
    }

    /// Fits one fold, from `start` if given, and writes predictions to `slot` if they are wanted.
    pub(super) fn fit(
        &self,
        fold: usize,
        start: Option<&Mat<f64>>,
        slot: &mut [f64],
        monitor: &Monitor,
    ) -> Result<FoldFits> {
        let test = self.folds.held_out(fold);
        let (solutions, fitted, moments) = self.solve(Some(fold), start, monitor)?;
        let mut squares = None;
        if let (true, Some(moments)) = (self.wanted.errors, &moments) {
            squares = self.squares_by_moments(moments, &fitted, test, monitor)?;
        }
        if self.wanted.predictions || (self.wanted.errors && squares.is_none()) {
            let predicted = fitted.predict(&self.linear.rows, test);
            let means = self.target_centres.iter().cycle();
            for (row, values) in slot.chunks_exact_mut(predicted.nrows()).enumerate() {
                for ((value, mean), c) in values.iter_mut().zip(means.clone()).zip(0..) {
                    *value = predicted[(c, row)] * self.unit + mean;
                }
            }
            squares = squares.or_else(|| Some(self.squares_by_rows(&predicted, test)));
        }
        let mut errors = vec![];
        if let (true, Some(squares)) = (self.wanted.errors, squares) {
            let weight: f64 = test.iter().map(|&i| self.linear.targets.weight(i)).sum();
            errors.extend(
                squares
                    .iter()
                    .map(|square| square / weight * self.unit * self.unit),
            );
        }
        let coefficients = self.coefficients(&fitted, self.wanted.coefficients);
        Ok(self.fits(solutions, errors, coefficients))
    }

    /// What is listed of a fold that does not determine a model: NaN for whatever is wanted.
    pub(super) fn undetermined_fits(&self) -> FoldFits {
        let (q, width) = (self.n_outputs(), self.n_features() + 1);
        let n_models = self.order.len() * q;
        let missing =
            |is_wanted: bool, length: usize| vec![f64::NAN; usize::from(is_wanted) * length];
        FoldFits {
            gaps: missing(true, n_models),
            n_iterations: vec![0; n_models],
            target_variances: missing(true, q),
            errors: missing(self.wanted.errors, n_models),
            coefficients: missing(self.wanted.coefficients, n_models * width),
        }
    }

    /// Puts the results of a fold into the units of the targets.
    fn fits(&self, solutions: Solutions, errors: Vec<f64>, coefficients: Vec<f64>) -> FoldFits {
        let square = self.unit * self.unit;
        FoldFits {
            gaps: solutions.gaps.iter().map(|gap| gap * square).collect(),
            n_iterations: solutions.n_iterations,
            target_variances: solutions
                .target_variances
                .iter()
                .map(|variance| variance * square)
                .collect(),
            errors,
            coefficients,
        }
    }

    /// Penalty × output × feature, the intercept last; nothing if not `wanted`.
    fn coefficients(&self, fitted: &Fitted, wanted: bool) -> Vec<f64> {
        if !wanted {
            return vec![];
        }
        let (found, p) = (fitted.coefficients(), self.n_features());
        let mut coefficients = Vec::with_capacity(found.nrows() * found.ncols());
        for c in 0..found.ncols() {
            coefficients.extend((0..p).map(|j| found[(j, c)] * self.unit));
            let mean = self.target_centres[c % self.n_outputs()];
            coefficients.push(found[(p, c)] * self.unit + mean);
        }
        coefficients
    }

    /// Σ w(y − ŷ)² of the held-out rows as quadratic forms of their moments, for every penalty and
    /// output; `None` if too few digits would be left.
    fn squares_by_moments(
        &self,
        moments: &FoldMoments,
        fitted: &Fitted,
        test: &[usize],
        monitor: &Monitor,
    ) -> Result<Option<Vec<f64>>> {
        let computed;
        let held_out = if let Some(held_out) = &moments.held_out {
            held_out
        } else {
            computed = self.linear.second_moments(&moments.map, test, monitor)?;
            &computed
        };
        let (p, q) = (self.n_features(), self.n_outputs());
        let mut squares = vec![];
        let mut terms: Vec<(usize, f64)> = vec![];
        for c in 0..fitted.n_models() {
            terms.clear();
            let units = |j: usize| fitted.coefficient(j, c) / moments.map.scale(j);
            terms.extend((0..p).map(|j| (j, -units(j))).filter(|term| term.1 != 0.0));
            terms.push((p + c % q, 1.0));
            terms.push((p + q, -fitted.coefficient(p, c)));
            let (mut square, mut largest) = (0.0, 0.0);
            for (position, &(i, v)) in terms.iter().enumerate() {
                let others = terms[..position].iter().map(|&(j, u)| u * held_out[(i, j)]);
                let diagonal = v * held_out[(i, i)];
                square += v * (2.0 * others.sum::<f64>() + diagonal);
                largest += v * diagonal;
            }
            if square < MIN_KEPT_FRACTION * largest {
                return Ok(None);
            }
            squares.push(square);
        }
        Ok(Some(squares))
    }

    /// Σ w(y − ŷ)² of predicted rows, for every penalty and output.
    fn squares_by_rows(&self, predicted: &Mat<f64>, test: &[usize]) -> Vec<f64> {
        let mut squares = vec![0.0; predicted.nrows()];
        for (i, &row) in test.iter().enumerate() {
            let (targets, weight) = (
                self.linear.targets.row(row),
                self.linear.targets.weight(row),
            );
            for (c, square) in squares.iter_mut().enumerate() {
                *square += weight * (targets[c % targets.len()] - predicted[(c, i)]).powi(2);
            }
        }
        squares
    }

    /// Solves a fold, or all rows, for every penalty and output; the moments if it was by them.
    fn solve(
        &self,
        set: TrainingSet,
        start: Option<&Mat<f64>>,
        monitor: &Monitor,
    ) -> Result<(Solutions, Fitted, Option<FoldMoments>)> {
        let scaling = self
            .path
            .spec
            .scaling
            .as_deref()
            .map(|maps| maps.of_set(set));
        let undetermined = |reason: &str| Error::Undetermined {
            fold: set.unwrap_or_default(),
            reason: reason.into(),
        };
        if scaling.is_some_and(|map| !map.is_regular()) {
            return Err(undetermined(
                "the scaling of its columns is zero or not finite",
            ));
        }
        let no_weight = || undetermined("its training rows have no weight");
        if let Some(moments) = self.moments_of(set, scaling, monitor)? {
            let found = self.solve_moments(set, &moments, scaling, start, monitor)?;
            let (solutions, fitted) = found.ok_or_else(no_weight)?;
            return Ok((solutions, fitted, Some(moments)));
        }
        let found = self.solve_columns(&self.training(set), scaling, start, monitor)?;
        let (solutions, fitted) = found.ok_or_else(no_weight)?;
        Ok((solutions, fitted, None))
    }

    fn solve_moments(
        &self,
        set: TrainingSet,
        moments: &FoldMoments,
        scaling: Option<&FoldMap>,
        start: Option<&Mat<f64>>,
        monitor: &Monitor,
    ) -> Result<Option<(Solutions, Fitted)>> {
        let FoldMoments {
            map,
            train,
            is_constant,
            error,
            ..
        } = moments;
        let normal = NormalEquations::new(train, map, scaling, self.path.spec.fit_intercept);
        let Some(normal) = normal else {
            return Ok(None);
        };
        let rows = TrainingRows::new(self, set, &normal, is_constant);
        let mut quadratic = GramQuadratic::new(&normal, is_constant, *error, &rows);
        let set = |quadratic: &mut GramQuadratic<'_>, o| {
            quadratic.set_output(&normal, is_constant, o);
        };
        let solutions = self.solve_path(&mut quadratic, normal.weight, start, set, monitor)?;
        let fitted = Fitted::of_normal(&normal, &solutions.beta);
        Ok(Some((solutions, fitted)))
    }

    fn solve_columns(
        &self,
        train: &[usize],
        scaling: Option<&FoldMap>,
        start: Option<&Mat<f64>>,
        monitor: &Monitor,
    ) -> Result<Option<(Solutions, Fitted)>> {
        let (p, q) = (self.n_model_features(), self.n_outputs());
        let fit_intercept = self.path.spec.fit_intercept;
        let TrainingColumns { columns, map } =
            TrainingColumns::new(&self.linear, train, scaling, fit_intercept)?;
        if columns.weight == 0.0 {
            return Ok(None);
        }
        let target = |row: usize, o: usize| self.linear.targets.row(row)[o];
        let targets = &self.linear.targets;
        let means = targets.means(train.iter().copied(), fit_intercept);
        let mut quadratic = ColumnQuadratic::new(&columns);
        let set = |quadratic: &mut ColumnQuadratic<'_>, o: usize| {
            let rows = train.iter().zip(&columns.roots);
            quadratic.set_output(
                rows.map(|(&i, root)| root * (target(i, o) - means[o]))
                    .collect(),
            );
        };
        let solutions = self.solve_path(&mut quadratic, columns.weight, start, set, monitor)?;
        let beta = &solutions.beta;
        // Sparse rows are predicted without a shift.
        let is_shifted = map.has_sums() || !is_sparse(&self.linear.rows);
        let coefficients = Mat::from_fn(p + 1, beta.ncols(), |j, c| {
            if j < p {
                return beta[(j, c)] * map.scale(j);
            }
            let at_zero = || {
                (0..p)
                    .map(|j| beta[(j, c)] * map.scale(j) * map.shift(j))
                    .sum::<f64>()
            };
            means[c % q] - if is_shifted { 0.0 } else { at_zero() }
        });
        let fitted = if is_shifted {
            Fitted::behind(&map, coefficients)
        } else {
            Fitted::new(vec![0.0; p], coefficients)
        };
        Ok(Some((solutions, fitted)))
    }

    /// Solves all penalties for every output.
    fn solve_path<Q: Quadratic>(
        &self,
        quadratic: &mut Q,
        weight: f64,
        start: Option<&Mat<f64>>,
        set_output: impl Fn(&mut Q, usize),
        monitor: &Monitor,
    ) -> Result<Solutions> {
        let (p, q, n_penalties) = (self.n_model_features(), self.n_outputs(), self.order.len());
        let at_a_time = rayon::current_num_threads(); // training sets
        let shape = [at_a_time, 2 * n_penalties * q + 6, p];
        memory::check_shape::<f64>("coefficients of the penalties of training sets", &shape)?;
        let mut found = Solutions {
            beta: Mat::zeros(p, n_penalties * q),
            gaps: vec![0.0; n_penalties * q],
            n_iterations: vec![0; n_penalties * q],
            target_variances: vec![],
        };
        for output in 0..q {
            set_output(quadratic, output);
            found
                .target_variances
                .push(quadratic.target_square() / weight);
            let mut solver = Solver::new(p);
            let mut last_ratio = None;
            for &index in &self.order {
                let (super::Penalty { alpha, l1_ratio }, c) =
                    (self.path.penalties[index], index * q + output);
                if let Some(start) = start {
                    solver
                        .beta
                        .iter_mut()
                        .zip(0..)
                        .for_each(|(b, j)| *b = start[(j, c)]);
                } else if last_ratio != Some(l1_ratio) {
                    solver.beta.fill(0.0);
                }
                last_ratio = Some(l1_ratio);
                let penalty = solver::Penalty {
                    l1: weight * alpha * l1_ratio / self.unit,
                    l2: weight * alpha * (1.0 - l1_ratio),
                    positive: self.path.spec.positive,
                };
                let end = solver.solve(quadratic, penalty, self.path.spec.tol, monitor)?;
                solver
                    .beta
                    .iter()
                    .zip(0..)
                    .for_each(|(b, j)| found.beta[(j, c)] = *b);
                found.gaps[c] = end.gap / weight;
                found.n_iterations[c] = u32::try_from(end.n_iterations).unwrap_or(u32::MAX);
            }
        }
        Ok(found)
    }
}
