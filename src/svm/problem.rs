//! Binary problems: one per pair of classes, or one for a regression or for one class.
//!
//! A problem has two ranges of samples, with β ≥ 0 in the first and β ≤ 0 in the second. Solver and
//! seeding know neither classes nor regression.
//!
//! Samples are sorted by class, so that the two classes of a pair are two contiguous ranges of the
//! kernel matrix. A regression lists all samples twice: with β = β⁺ + β⁻, β⁺ in [0, C] and β⁻ in
//! [−C, 0], the dual of ε-support vector regression is
//!
//! maximise Σ (yᵢ − ε)βᵢ⁺ + Σ (yᵢ + ε)βᵢ⁻ − ½ βᵀKβ subject to Σβ = 0.
//!
//! ν replaces ε, or the C of classes: p = y, or 0 for classes, and Σβ⁺ = −Σβ⁻ = ½νΣC. The margin of
//! classes is then a variable, ρ, by which decision values are divided, as LIBSVM does. Without
//! targets there is one class: β ≥ 0, p = 0 and Σβ = νΣC.

use std::ops::Range;

use super::dual::{Bounds, Dual, Group, Solution};
use super::gram::Gram;
use super::multiclass::pairs;
use crate::data::Targets;
use crate::{Error, Result};

/// The smallest margin as a multiple of the gap: decision values are right to two digits.
const MIN_MARGIN: f64 = 100.0;

/// One binary problem: variables β ≥ 0 for the first range of samples, β ≤ 0 for the second.
#[derive(Clone, Debug)]
pub(super) struct BinaryProblem {
    pub(super) ranges: [Range<usize>; 2],
    /// The linear term p.
    pub(super) linear: Vec<f64>,
    /// Whether decision values are divided by the margin.
    pub(super) has_free_margin: bool,
}

/// What a machine minimises besides the norm: the linear terms of its dual.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Errors {
    /// Errors at the price C, of a regression those above ε.
    Above(f64),
    /// Errors and the width of the tube or margin, whose price is ν.
    AboveWidth,
}

impl BinaryProblem {
    /// Its dual over a kernel matrix.
    pub(super) fn dual<'a>(&'a self, gram: &'a Gram<'a>) -> Dual<'a> {
        Dual::new(gram, self.ranges.clone(), &self.linear)
    }

    /// Its constraints, where `costs` holds the C of each sample. An error if ν is too large for them.
    pub(super) fn bounds(&self, costs: &[f64], nu: Option<f64>) -> Result<Bounds> {
        let sides = self.ranges.clone().map(|range| &costs[range]);
        let [positive, negative] = sides;
        let zeros = |n| std::iter::repeat_n(0.0, n);
        let lower = zeros(positive.len()).chain(negative.iter().map(|c| -c));
        let upper = positive.iter().copied().chain(zeros(negative.len()));
        let bounds = Bounds::balanced(lower.collect(), upper.collect());
        let Some(nu) = nu else {
            return Ok(bounds);
        };
        let totals = sides.map(|costs| costs.iter().sum::<f64>());
        let n_sides = sides.iter().filter(|costs| !costs.is_empty()).count();
        // Both sides of a regression are all samples. Added up as by LIBSVM: whether a variable is free, or
        // an ulp from its bound, may decide about the intercept.
        let is_regression = self.ranges[0] == self.ranges[1];
        let counted = if is_regression {
            &sides[..1]
        } else {
            &sides[..]
        };
        let counted = counted.iter().copied().flatten();
        let sum = counted.map(|cost| nu * cost).sum::<f64>() / n_sides as f64;
        if totals[..n_sides]
            .iter()
            .any(|&side| sum > side * (1.0 + 1e-12))
        {
            let rule = "at most twice the share of the smaller class of every pair";
            return Err(Error::parameter("nu", rule, nu));
        }
        let n_positive = positive.len();
        let groups = [(0..n_positive, sum), (n_positive..self.linear.len(), -sum)];
        let groups = groups.into_iter().take(n_sides);
        let groups = groups.map(|(variables, sum)| Group { variables, sum });
        Ok(Bounds {
            groups: groups.collect(),
            ..bounds
        })
    }

    /// Returns true if the margin is known to some digits. Where the classes cannot be separated as well as
    /// ν asks for, the optimum is β = 0 or Kβ = 0, and all decision values are rounding errors.
    pub(super) fn has_margin(&self, solution: &Solution) -> bool {
        !self.has_free_margin || solution.margin >= MIN_MARGIN * solution.gap
    }

    /// What Kβ and b of a solution are multiplied by to become a decision function.
    pub(super) fn decision_scale(&self, solution: &Solution) -> f64 {
        if self.has_free_margin {
            1.0 / solution.margin
        } else {
            1.0
        }
    }

    /// A variable of a sample, if the sample is part of the problem.
    pub(super) fn variable(&self, sample: usize) -> Option<usize> {
        let [first, second] = &self.ranges;
        if first.contains(&sample) {
            return Some(sample - first.start);
        }
        let is_second = second.contains(&sample);
        is_second.then(|| first.len() + sample - second.start)
    }
}

/// All binary problems, and the order of samples in which their ranges are contiguous.
#[derive(Debug)]
pub(super) struct BinaryProblems {
    /// The row of X of each sample.
    pub(super) row_of_sample: Vec<usize>,
    /// The first sample of each class, then the number of samples; [0, n] for a regression.
    pub(super) class_starts: Vec<usize>,
    /// The problems, in the order of [`pairs`].
    pub(super) problems: Vec<BinaryProblem>,
}

impl BinaryProblems {
    /// The problems of the targets of `n` samples.
    pub(super) fn new(n: usize, targets: Targets<'_>, errors: Errors) -> Result<Self> {
        let value = match (targets, errors) {
            (Targets::Classes { codes, n_classes }, _) => {
                return Self::one_vs_one(codes, n_classes, errors == Errors::AboveWidth);
            }
            (
                Targets::Values {
                    values,
                    n_outputs: 1,
                },
                _,
            ) => return Self::regression(values, errors),
            (Targets::None, Errors::AboveWidth) => return Ok(Self::one_class(n)),
            (Targets::Values { n_outputs, .. }, _) => format!("{n_outputs} numbers a sample"),
            (Targets::None, Errors::Above(_)) => "nothing".into(),
        };
        Err(Error::parameter(
            "y",
            "a class or a number for each sample",
            value,
        ))
    }

    /// What decision values of the duals, positive for the first class of a pair, are multiplied by to
    /// become outputs, positive for the second.
    pub(super) fn output_sign(&self) -> f64 {
        if self.class_starts.len() > 2 {
            -1.0
        } else {
            1.0
        }
    }

    fn one_vs_one(codes: &[u32], n_classes: usize, has_free_margin: bool) -> Result<Self> {
        let mut class_starts = vec![0; n_classes + 1];
        for &code in codes {
            class_starts[code as usize + 1] += 1;
        }
        if let Some(empty) = class_starts[1..].iter().position(|&count| count == 0) {
            let value = format!("none of class {empty}");
            return Err(Error::parameter(
                "y",
                "at least one sample of every class",
                value,
            ));
        }
        if n_classes < 2 {
            return Err(Error::parameter("y", "of two classes or more", n_classes));
        }
        for class in 0..n_classes {
            class_starts[class + 1] += class_starts[class];
        }
        let mut row_of_sample: Vec<usize> = (0..codes.len()).collect();
        row_of_sample.sort_by_key(|&row| codes[row]);
        let range = |class: usize| class_starts[class]..class_starts[class + 1];
        let margin = if has_free_margin { 0.0 } else { 1.0 };
        let problem = |(a, b): (usize, usize)| BinaryProblem {
            ranges: [range(a), range(b)],
            linear: [vec![margin; range(a).len()], vec![-margin; range(b).len()]].concat(),
            has_free_margin,
        };
        Ok(Self {
            problems: pairs(n_classes).map(problem).collect(),
            row_of_sample,
            class_starts,
        })
    }

    fn regression(values: &[f64], errors: Errors) -> Result<Self> {
        let epsilon = match errors {
            Errors::Above(epsilon) => epsilon,
            Errors::AboveWidth => 0.0,
        };
        if !(epsilon >= 0.0 && epsilon.is_finite()) {
            return Err(Error::parameter(
                "epsilon",
                "finite and not negative",
                epsilon,
            ));
        }
        let n = values.len();
        let above = values.iter().map(|y| y - epsilon);
        let below = values.iter().map(|y| y + epsilon);
        Ok(Self {
            row_of_sample: (0..n).collect(),
            class_starts: vec![0, n],
            problems: vec![BinaryProblem {
                ranges: [0..n, 0..n],
                linear: above.chain(below).collect(),
                has_free_margin: false,
            }],
        })
    }

    fn one_class(n: usize) -> Self {
        Self {
            row_of_sample: (0..n).collect(),
            class_starts: vec![0, n],
            problems: vec![BinaryProblem {
                ranges: [0..n, n..n],
                linear: vec![0.0; n],
                has_free_margin: false,
            }],
        }
    }

    /// The sample of each row of X.
    pub(super) fn sample_of_row(&self) -> Vec<usize> {
        let mut sample_of_row = vec![0; self.row_of_sample.len()];
        for (sample, &row) in self.row_of_sample.iter().enumerate() {
            sample_of_row[row] = sample;
        }
        sample_of_row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_become_ranges() {
        let all = BinaryProblems::one_vs_one(&[2, 0, 1, 0, 2], 3, false).expect("valid");
        assert_eq!(all.row_of_sample, [1, 3, 2, 0, 4]);
        assert_eq!(all.class_starts, [0, 2, 3, 5]);
        assert_eq!(all.problems[1].ranges, [0..2, 3..5]);
        assert_eq!(all.problems[1].linear, [1.0, 1.0, -1.0, -1.0]);
    }

    #[test]
    fn what_is_not_a_set_of_classes_is_refused() {
        let message = |codes: &[u32], n| {
            let refused = BinaryProblems::one_vs_one(codes, n, false).expect_err("refused");
            refused.to_string()
        };
        assert!(message(&[0, 0], 2).contains("none of class 1"));
        assert!(message(&[0, 0], 1).contains("of two classes or more"));
    }
}
