//! Logistic regression with ℓ1 and elastic-net penalties: all folds side by side along the penalties.
//!
//! # Problem
//! For every fold and every penalty (λ₁, λ₂), λ₁ > 0,
//!
//! min Σ w ln(1 + eᶻ) − wyz + λ₁‖β‖₁ + ½λ₂‖β‖², z = ⟨β, x⟩ + b,
//!
//! perhaps behind an affine scaler that is fitted to the training rows. The intercept is free, or the
//! coefficient of a constant feature with a penalty (as in LIBLINEAR), or there is none.
//!
//! # Method
//! Penalties are solved from the largest to the smallest. Each is solved for all rows first, from the
//! solution of the penalty before it, by proximal Newton steps (see `proximal`). All folds start at that
//! solution, with the Hessian there less that of the rows that they hold out, and advance side by side:
//! one product of the rows with the parameters of all folds, one of their transpose with the derivatives
//! of all folds.
//!
//! # Exactness
//! Every problem is solved to a duality gap of `tol`·Σ w ln 2, the loss of the predictor zero; gaps reached
//! are in the result. Predictors of the optimum are unique, as ℓ is strictly convex.
//!
//! # Cost
//! With 4p ≤ n, some three Hessians of O(n·p²) for all rows, one for all folds, and four to eight passes of
//! O(n·p) for each fold, for every penalty. With more features, passes and the
//! columns of supports only.
//!
//! # References
//! Friedman, Hastie and Tibshirani, "Regularization paths for generalized linear models via coordinate
//! descent" (2010); see also `proximal`.

use ndarray::{Array2, Array3};
use rayon::prelude::*;

use super::ElasticNet;
use super::curvature::Hessian;
use super::proximal::Problem;
use crate::engine::{Finished, Job, Status, group};
use crate::linalg::Mat;
use crate::linear::{Design, FoldMaps, TrainingSet, set_index};
use crate::newton::{GlmSpec, Intercept, Link, Loss, Samples, Subproblem, penalties};
use crate::runtime::memory;
use crate::{Cost, Engine, Error, Monitor, OutOfFold, Resampling, Result};

/// The largest number of features for which Hessians are formed.
const MAX_HESSIAN_FEATURES: usize = 1024;
/// The fewest rows for each of them: of fewer, the columns of supports are cheaper.
const MIN_ROWS_PER_FEATURE: usize = 4;
/// Problems that advance side by side, and values of their rows, at most.
const MAX_TOGETHER: usize = 32;
const MAX_ROW_VALUES: usize = 1 << 24;
/// Vectors of all rows that a problem keeps.
const VECTORS_PER_PROBLEM: usize = 7;
/// The relative gap of the fit to all rows, times the fourth power of the number of folds.
const START_GAP: f64 = 1e-3;

/// A logistic regression with an ℓ1 penalty: a candidate of [`ElasticNet`].
#[derive(Clone, Debug, PartialEq)]
pub struct SparseLogistic {
    /// The intercept, λ₂, the scaling and the weights of classes; its loss is logistic.
    pub smooth: GlmSpec,
    /// λ₁, positive.
    pub l1: f64,
    /// The duality gap at which a problem is solved, relative to the loss of the predictor zero.
    pub tol: f64,
}

impl Default for SparseLogistic {
    /// λ₁ = 1, λ₂ = 0.
    fn default() -> Self {
        Self {
            smooth: GlmSpec {
                penalty: crate::newton::Penalty::Sum(0.0),
                ..GlmSpec::default()
            },
            l1: 1.0,
            tol: 1e-12,
        }
    }
}

impl SparseLogistic {
    fn is_of_path(&self, other: &Self) -> bool {
        self.tol == other.tol && self.smooth.is_of_family(&other.smooth)
    }

    fn check(&self) -> Result<()> {
        self.smooth.check()?;
        if self.smooth.link != Link::Independent(Loss::Logistic) {
            return Err(Error::parameter("link", "the logistic loss", "another"));
        }
        if !(self.l1 > 0.0 && self.l1.is_finite()) {
            return Err(Error::parameter("l1", "positive and finite", self.l1));
        }
        if !(self.tol > 0.0 && self.tol < 1.0) {
            return Err(Error::parameter("tol", "between 0 and 1", self.tol));
        }
        Ok(())
    }
}

impl Engine<SparseLogistic> for ElasticNet {
    /// Candidates that differ in the penalty only start from one another.
    fn run(
        &self,
        candidates: &[&SparseLogistic],
        job: &Job<'_>,
        finished: &mut Finished<'_>,
    ) -> Result<()> {
        candidates.iter().try_for_each(|one| one.check())?;
        for members in group(candidates, |a, b| a.is_of_path(b)) {
            let specs: Vec<_> = members.iter().map(|&index| candidates[index]).collect();
            let path = LogisticPath::new(&specs, job)?;
            path.solve(&specs, &mut |member, result| {
                finished(members[member], result);
            })?;
        }
        Ok(())
    }
}

/// Logistic regressions that differ in the penalty, for all training sets.
struct LogisticPath<'a> {
    job: &'a Job<'a>,
    design: Design<'a>,
    samples: Samples<'a>,
    maps: FoldMaps,
    intercept: Intercept,
    /// λ₂: candidate × training set.
    ridges: Array2<f64>,
    tol: f64,
}

impl<'a> LogisticPath<'a> {
    fn new(specs: &[&'a SparseLogistic], job: &'a Job<'a>) -> Result<Self> {
        let (data, folds, smooth) = (job.data, job.folds, &specs[0].smooth);
        let samples = Samples::new(smooth, data, folds)?;
        let models: Vec<&GlmSpec> = specs.iter().map(|spec| &spec.smooth).collect();
        let ridges = penalties(&models, &samples.sets)?;
        let design = Design::centred(data, job.monitor)?.transposed()?;
        Ok(Self {
            job,
            maps: smooth.maps(&design, folds)?,
            design,
            samples,
            intercept: smooth.intercept,
            ridges,
            tol: specs[0].tol,
        })
    }

    fn folds(&self) -> &'a dyn Resampling {
        self.job.folds
    }

    fn monitor(&self) -> &'a Monitor {
        self.job.monitor
    }

    fn is_free(&self) -> bool {
        self.intercept == Intercept::Free
    }

    /// Whether Hessians are formed.
    fn is_forming(&self) -> bool {
        let (n, p) = (self.design.n_rows(), self.design.n_features());
        MIN_ROWS_PER_FEATURE * p <= n && p <= MAX_HESSIAN_FEATURES
    }

    /// The order in which penalties are solved: the strongest first.
    fn order(&self, specs: &[&SparseLogistic]) -> Vec<usize> {
        let strength = |i: usize| specs[i].l1 + self.ridges[(i, 0)];
        let mut order: Vec<usize> = (0..specs.len()).collect();
        order.sort_by(|&i, &j| {
            strength(j)
                .total_cmp(&strength(i))
                .then(specs[j].l1.total_cmp(&specs[i].l1))
        });
        order
    }

    fn problem(&self, subproblem: Subproblem, common: &[f64]) -> Result<Problem<'_>> {
        let Subproblem { set, output } = subproblem;
        let map = self.maps.of_set(set);
        if !map.is_regular() {
            return Err(undetermined(
                set,
                "the scaling of its columns is zero or not finite",
            ));
        }
        let weights = self.samples.all_weights(subproblem);
        if weights.iter().all(|w| *w == 0.0) {
            return Err(undetermined(set, "its training rows have no weight"));
        }
        Ok(Problem::new(
            subproblem,
            (map, self.is_free()),
            (self.samples.targets(output), weights),
            map.to_fold(common),
            self.is_forming(),
        ))
    }

    fn solve(
        &self,
        specs: &[&SparseLogistic],
        finish: &mut dyn FnMut(usize, OutOfFold),
    ) -> Result<()> {
        let (folds, monitor) = (self.folds(), self.monitor());
        let (k, q) = (folds.n_splits(), self.samples.n_problems());
        let n_values = VECTORS_PER_PROBLEM * self.design.n_rows().max(1);
        let together = (MAX_ROW_VALUES / n_values).clamp(1, MAX_TOGETHER);
        memory::check_shape::<f64>("predictors of folds side by side", &[together, n_values])?;
        monitor.add_total((specs.len() * k) as u64);
        let first_set = if k > 1 { None } else { Some(0) };
        let mut starts = (0..q)
            .map(|output| {
                let subproblem = Subproblem {
                    set: first_set,
                    output,
                };
                let mut common = vec![0.0; self.design.n_columns()];
                if self.intercept != Intercept::None {
                    let last = common.len() - 1;
                    common[last] = Loss::Logistic.constant(self.samples.mean(subproblem));
                }
                common
            })
            .collect::<Vec<_>>();
        for candidate in self.order(specs) {
            let l1 = specs[candidate].l1;
            let mut result = self.empty_result()?;
            let mut all = starts
                .iter()
                .zip(0..)
                .map(|(start, output)| {
                    let subproblem = Subproblem {
                        set: first_set,
                        output,
                    };
                    let mut problem = self.problem(subproblem, start)?;
                    let tol = if k > 1 {
                        self.tol.max(START_GAP / (k as f64).powi(4))
                    } else {
                        self.tol
                    };
                    problem.set_penalty(l1, self.ridges[(candidate, set_index(first_set))], tol);
                    Ok(problem)
                })
                .collect::<Result<Vec<_>>>()?;
            self.minimise(&mut all)?;
            for (start, problem) in starts.iter_mut().zip(&all) {
                *start = problem.common();
            }
            if k == 1 {
                for problem in &all {
                    self.record(&mut result, problem);
                }
                monitor.advance(1)?;
                finish(candidate, result);
                continue;
            }
            let subproblems: Vec<Subproblem> = (0..k * q)
                .map(|at| Subproblem {
                    set: Some(at / q),
                    output: at % q,
                })
                .collect();
            let mut totals: Option<Vec<Mat<f64>>> = None;
            for chunk in subproblems.chunks(together) {
                let mut problems = vec![];
                for &subproblem in chunk {
                    let mut problem = self.problem(subproblem, &starts[subproblem.output])?;
                    let l2 = self.ridges[(candidate, set_index(subproblem.set))];
                    problem.set_penalty(l1, l2, self.tol);
                    problems.push(problem);
                }
                if self.is_forming() {
                    let is_whole = chunk.len() == k * q;
                    self.start_hessians(&mut problems, &all, (&mut totals, is_whole))?;
                }
                self.minimise(&mut problems)?;
                for problem in &problems {
                    self.record(&mut result, problem);
                }
                monitor.advance((chunk.len() / q) as u64)?;
            }
            finish(candidate, result);
        }
        Ok(())
    }

    /// Sets the Hessians of folds where all rows are solved, less those of the rows that they hold out.
    fn start_hessians(
        &self,
        problems: &mut [Problem<'_>],
        all: &[Problem<'_>],
        (totals, is_whole): (&mut Option<Vec<Mat<f64>>>, bool),
    ) -> Result<()> {
        let mut weights = vec![0.0; self.design.n_rows()];
        let removed = problems
            .iter()
            .map(|problem| {
                let Subproblem { set, output } = problem.subproblem;
                let Some(rows) = set.and_then(|fold| self.samples.removed(fold)) else {
                    return Ok(None);
                };
                weights.fill(0.0);
                for &row in &*rows {
                    weights[row] = all[output].second[row];
                }
                self.design.gram(&weights, self.monitor()).map(Some)
            })
            .collect::<Result<Vec<_>>>()?;
        if removed.iter().all(Option::is_none) {
            return Ok(());
        }
        if totals.is_none() {
            // The folds of a partition add up to all rows.
            let is_sum = is_whole && self.folds().partition().is_some();
            let total = |output: usize| {
                if !is_sum {
                    return self.design.gram(&all[output].second, self.monitor());
                }
                let width = self.design.n_columns();
                let mut sum = Mat::zeros(width, width);
                for (problem, removed) in problems.iter().zip(&removed) {
                    if let (true, Some(removed)) = (problem.subproblem.output == output, removed) {
                        sum += removed;
                    }
                }
                Ok(sum)
            };
            *totals = Some((0..all.len()).map(total).collect::<Result<_>>()?);
        }
        let totals = totals.as_deref().unwrap_or(&[]);
        for (problem, removed) in problems.iter_mut().zip(&removed) {
            if let Some(removed) = removed {
                let total = &totals[problem.subproblem.output];
                let left = total - removed;
                let before = Some(total.as_ref());
                let hessian = Hessian::new(left.as_ref(), before, problem.map, self.is_free());
                problem.set_hessian(hessian);
            }
        }
        Ok(())
    }

    /// Solves problems side by side.
    fn minimise(&self, problems: &mut [Problem<'_>]) -> Result<()> {
        let (design, monitor) = (&self.design, self.monitor());
        let thetas: Vec<Vec<f64>> = problems.iter().map(Problem::common).collect();
        let z = design.forward(&thetas, monitor)?;
        let width = thetas.len();
        problems
            .par_iter_mut()
            .enumerate()
            .for_each(|(c, problem)| {
                problem.set_predictors(z.iter().skip(c).step_by(width).copied());
            });
        loop {
            let mut active: Vec<&mut Problem<'_>> = problems
                .iter_mut()
                .filter(|problem| !problem.is_finished)
                .collect();
            if active.is_empty() {
                return Ok(());
            }
            let width = active.len();
            let mut first = vec![0.0; design.n_rows() * width];
            for (c, problem) in active.iter().enumerate() {
                let column = first.iter_mut().skip(c).step_by(width);
                column.zip(&problem.first).for_each(|(out, v)| *out = *v);
            }
            let gradients = design.adjoint(&first, width, monitor)?;
            active
                .par_iter_mut()
                .zip(&gradients)
                .for_each(|(problem, gradient)| problem.assess(gradient));
            active.retain(|problem| !problem.is_finished);
            for problem in &mut active {
                if problem.needs_hessian() {
                    let moments = design.gram(&problem.second, monitor)?;
                    let hessian = Hessian::new(moments.as_ref(), None, problem.map, self.is_free());
                    problem.set_hessian(hessian);
                }
            }
            active
                .par_iter_mut()
                .try_for_each(|problem| problem.propose(design, monitor))?;
            let thetas: Vec<Vec<f64>> = active.iter().map(|problem| problem.step()).collect();
            if thetas.is_empty() {
                return Ok(());
            }
            let changes = design.forward(&thetas, monitor)?;
            let width = thetas.len();
            active.par_iter_mut().enumerate().for_each(|(c, problem)| {
                problem.advance(changes.iter().skip(c).step_by(width).copied());
            });
        }
    }

    fn empty_result(&self) -> Result<OutOfFold> {
        let (k, q) = (self.folds().n_splits(), self.samples.n_problems());
        let n_test = *self.folds().test_starts().last().unwrap_or(&0);
        memory::check_shape::<f64>(format_args!("predictions of {n_test} rows"), &[n_test, q])?;
        let n_kept = if self.job.keep.coefficients { k } else { 0 };
        let kept = [n_kept, q, self.design.n_columns()];
        memory::check_shape::<f64>(format_args!("coefficients of {n_kept} folds"), &kept)?;
        Ok(OutOfFold {
            outputs: Array2::from_elem((n_test, q), f64::NAN),
            coefficients: Array3::zeros(kept),
            cost: Cost {
                fits: (k * q) as u64,
                rows_evaluated: n_test as u64,
                ..Cost::default()
            },
            status: Status {
                iterations: Array2::zeros((k, q)),
                gaps: Array2::from_elem((k, q), f64::NAN),
                relative_gaps: Array2::from_elem((k, q), f64::NAN),
                ..Status::default()
            },
            ..OutOfFold::default()
        })
    }

    fn record(&self, result: &mut OutOfFold, problem: &Problem<'_>) {
        let Subproblem { set, output } = problem.subproblem;
        let fold = set.unwrap_or(0);
        let start = self.folds().test_starts()[fold];
        for (place, &row) in self.folds().held_out(fold).iter().enumerate() {
            result.outputs[(start + place, output)] = problem.z[row];
        }
        result.cost.rows_fed += (problem.n_steps * self.design.n_rows()) as u64;
        result.status.iterations[(fold, output)] = problem.n_steps as u64;
        result.status.gaps[(fold, output)] = problem.gap;
        result.status.relative_gaps[(fold, output)] = problem.gap / problem.loss_at_zero();
        if result.coefficients.is_empty() {
            return;
        }
        let p = problem.map.n_features();
        for (j, param) in problem.params.iter().take(p).enumerate() {
            result.coefficients[(fold, output, j)] = *param;
        }
        result.coefficients[(fold, output, p)] = problem.map.intercept(&problem.params);
    }
}

fn undetermined(set: TrainingSet, reason: &str) -> Error {
    Error::Undetermined {
        fold: set.unwrap_or_default(),
        reason: reason.into(),
    }
}
