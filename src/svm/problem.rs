//! Binary problems: one per pair of classes, or one for a regression.
//!
//! A problem has two ranges of samples, with β ≥ 0 in the first and β ≤ 0 in the second. Solver and
//! seeding know neither classes nor regression.
//!
//! Samples are sorted by class, so that the two classes of a pair are two contiguous ranges of the
//! kernel matrix. A regression lists all samples twice: with β = β⁺ + β⁻, β⁺ in [0, C] and β⁻ in
//! [−C, 0], the dual of ε-support vector regression is
//!
//! maximise Σ (yᵢ − ε)βᵢ⁺ + Σ (yᵢ + ε)βᵢ⁻ − ½ βᵀKβ subject to Σβ = 0.

use std::ops::Range;

use super::dual::{Bounds, Dual};
use super::gram::Gram;
use super::multiclass::pairs;
use crate::data::Targets;
use crate::{Error, Result};

/// One binary problem: variables β ≥ 0 for the first range of samples, β ≤ 0 for the second.
#[derive(Clone, Debug)]
pub(super) struct BinaryProblem {
    pub(super) ranges: [Range<usize>; 2],
    /// The linear term p.
    pub(super) linear: Vec<f64>,
}

impl BinaryProblem {
    /// Its dual over a kernel matrix.
    pub(super) fn dual<'a>(&'a self, gram: &'a Gram<'a>) -> Dual<'a> {
        Dual::new(gram, self.ranges.clone(), &self.linear)
    }

    /// Its box constraints, where `costs` holds the C of each sample.
    pub(super) fn bounds(&self, costs: &[f64]) -> Bounds {
        let [positive, negative] = self.ranges.clone().map(|range| &costs[range]);
        let zeros = |n| std::iter::repeat_n(0.0, n);
        let lower = zeros(positive.len()).chain(negative.iter().map(|c| -c));
        let upper = positive.iter().copied().chain(zeros(negative.len()));
        Bounds {
            lower: lower.collect(),
            upper: upper.collect(),
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
    /// The problems of the targets; `epsilon` is that of a regression.
    pub(super) fn new(targets: Targets<'_>, epsilon: f64) -> Result<Self> {
        let value = match targets {
            Targets::Classes { codes, n_classes } => return Self::one_vs_one(codes, n_classes),
            Targets::Values {
                values,
                n_outputs: 1,
            } => return Self::regression(values, epsilon),
            Targets::Values { n_outputs, .. } => format!("{n_outputs} numbers a sample"),
            Targets::None => "nothing".into(),
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

    fn one_vs_one(codes: &[u32], n_classes: usize) -> Result<Self> {
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
        let problem = |(a, b): (usize, usize)| BinaryProblem {
            ranges: [range(a), range(b)],
            linear: [vec![1.0; range(a).len()], vec![-1.0; range(b).len()]].concat(),
        };
        Ok(Self {
            problems: pairs(n_classes).map(problem).collect(),
            row_of_sample,
            class_starts,
        })
    }

    fn regression(values: &[f64], epsilon: f64) -> Result<Self> {
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
            }],
        })
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
        let all = BinaryProblems::one_vs_one(&[2, 0, 1, 0, 2], 3).expect("valid");
        assert_eq!(all.row_of_sample, [1, 3, 2, 0, 4]);
        assert_eq!(all.class_starts, [0, 2, 3, 5]);
        assert_eq!(all.problems[1].ranges, [0..2, 3..5]);
        assert_eq!(all.problems[1].linear, [1.0, 1.0, -1.0, -1.0]);
    }

    #[test]
    fn what_is_not_a_set_of_classes_is_refused() {
        let message = |codes: &[u32], n| {
            let refused = BinaryProblems::one_vs_one(codes, n).expect_err("refused");
            refused.to_string()
        };
        assert!(message(&[0, 0], 2).contains("none of class 1"));
        assert!(message(&[0, 0], 1).contains("of two classes or more"));
    }
}
