//! The boundary that a node chooses in one column.
//!
//! The samples of a node pass from right to left in the order of their ranks. Between two ranks that
//! differ lies a boundary; the first of the best ones is chosen, as in scikit-learn. Extremely randomised
//! trees draw the boundary.
//!
//! Missing values have the last rank. Where samples of a node have some, the samples pass twice: first
//! missing values stay on the right until the end, then they are on the left from the start.

mod list;
mod samples;

pub(super) use list::List;

use super::criterion::{Criterion, Label, SideWeights};
use super::draws::Xorshift;
use super::ranks::{Column, Width};

/// What is to be predicted of the rows of a table, and their weights in one tree.
pub(super) struct Samples<'a, L> {
    pub(super) labels: &'a [L],
    /// 0 for rows that are not in the training set. Looked at by weighted trees only.
    pub(super) weights: &'a [u32],
}

/// A row of the training set, and the code of its label and weight (see [`Target::encode`](super::criterion::Target::encode)).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample(u64);

#[allow(clippy::cast_possible_truncation)] // halves of 32 bits
impl Sample {
    pub(super) fn new(row: u32, code: u32) -> Self {
        Self(u64::from(code) << 32 | u64::from(row))
    }

    #[inline(always)]
    pub(super) fn row(self) -> u32 {
        self.0 as u32
    }

    #[inline(always)]
    pub(super) fn code(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// A key to sort by: the rank in the upper half, the code in the lower.
    #[inline(always)]
    pub(super) fn with_rank(self, rank: usize) -> u64 {
        (rank as u64) << 32 | self.0 >> 32
    }
}

/// What a split must leave on both sides.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeafLimits {
    pub(super) samples: usize,
    pub(super) weight: f64,
}

/// The samples of a node, added up.
#[derive(Clone, Copy)]
pub(super) struct NodeSums<'a> {
    pub(super) n_samples: usize,
    pub(super) weight: i64,
    pub(super) sums: &'a [i64],
}

/// What was found in a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ColumnSplit {
    /// All values count as equal.
    Constant,
    /// No boundary is allowed, or none reaches the bound.
    Nothing,
    /// The best boundary.
    Best(Boundary),
}

/// A boundary between two ranks of the node, and its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Boundary {
    pub(super) score: f64,
    pub(super) lower: usize,
    pub(super) upper: usize,
    /// The side of missing values, if samples of the node have any.
    pub(super) missing_goes_left: Option<bool>,
}

impl Boundary {
    /// Draws a boundary between the lowest and the highest of the ranks of a node, as extremely randomised
    /// trees do, and the side of missing values; none if the column is constant.
    pub(super) fn at_random<W: Width>(
        column: &Column<W>,
        ranks: &[usize],
        random: &mut Xorshift,
    ) -> Option<Self> {
        let missing = column.missing.unwrap_or(NO_RANK);
        let present = || ranks.iter().filter(|&&rank| rank != missing);
        let (&lowest, &highest) = present().min().zip(present().max())?;
        let has_missing = ranks.contains(&missing);
        if !has_missing && !column.differ(lowest, highest) {
            return None;
        }
        let lower = column.cut_at_random(lowest, highest, random);
        Some(Self {
            score: f64::NEG_INFINITY,
            lower,
            upper: lower + 1,
            missing_goes_left: has_missing.then(|| random.below(2) == 1),
        })
    }
}

/// Memory for one search.
#[derive(Default)]
pub(super) struct Scratch {
    /// The sums of samples of one rank.
    common: Vec<i64>,
    /// The number and the weight of the samples by rank and class.
    counts: Vec<u64>,
    /// The rank of each sample.
    ranks: Vec<usize>,
}

/// A search of one column.
pub(super) struct Search<'a, W: Width, C: Criterion, const WEIGHTED: bool> {
    pub(super) column: &'a Column<W>,
    pub(super) samples: &'a Samples<'a, Label<C>>,
    pub(super) node: NodeSums<'a>,
    pub(super) limits: LeafLimits,
    pub(super) criterion: &'a mut C,
    /// The bound of the best score so far, which a boundary must reach to be of interest.
    pub(super) bound: &'a mut f64,
}

/// The rank before the first.
const NO_RANK: usize = usize::MAX;

/// How far a search has come.
struct Passed {
    n_samples: usize,
    weight: i64,
    /// The rank of the last sample.
    rank: usize,
    /// As in [`Boundary`].
    missing_goes_left: Option<bool>,
    best: Boundary,
}

impl Passed {
    fn nothing() -> Self {
        Self {
            n_samples: 0,
            weight: 0,
            rank: NO_RANK,
            missing_goes_left: None,
            best: Boundary {
                score: f64::NEG_INFINITY,
                lower: 0,
                upper: 0,
                missing_goes_left: None,
            },
        }
    }

    /// Nothing again, but for missing samples, which are on the left from the start.
    fn begin_with_missing(&mut self, n_samples: usize, weight: i64) {
        (self.n_samples, self.weight) = (n_samples, weight);
        (self.rank, self.missing_goes_left) = (NO_RANK, Some(true));
    }

    fn split(self) -> ColumnSplit {
        if self.best.score > f64::NEG_INFINITY {
            ColumnSplit::Best(self.best)
        } else {
            ColumnSplit::Nothing
        }
    }
}

impl<W: Width, C: Criterion, const WEIGHTED: bool> Search<'_, W, C, WEIGHTED> {
    /// Looks at the boundary between the last rank and the next.
    #[inline(always)]
    fn evaluate(&mut self, passed: &mut Passed, next: usize) {
        if let Some(weights) = self.allowed(passed)
            && self.column.differ(passed.rank, next)
        {
            self.compare(passed, next, weights);
        }
    }

    /// The weights on both sides of the boundary after the last sample, if leaves may be that small and
    /// the score may be of interest.
    #[inline(always)]
    fn allowed(&self, passed: &Passed) -> Option<SideWeights> {
        let (n_left, limits) = (passed.n_samples, self.limits);
        if n_left < limits.samples || self.node.n_samples - n_left < limits.samples {
            return None;
        }
        let weights = SideWeights {
            left: passed.weight as f64,
            right: (self.node.weight - passed.weight) as f64,
        };
        let is_allowed = self.criterion.may_reach(weights, *self.bound)
            && weights.left >= limits.weight
            && weights.right >= limits.weight;
        is_allowed.then_some(weights)
    }

    /// Compares the boundary between the last rank and the next with the best one.
    #[inline(always)]
    fn compare(&mut self, passed: &mut Passed, next: usize, weights: SideWeights) {
        let score = self.criterion.score(weights);
        if score > passed.best.score {
            passed.best = Boundary {
                score,
                lower: passed.rank,
                upper: next,
                missing_goes_left: passed.missing_goes_left,
            };
            *self.bound = self.bound.max(self.criterion.bound(weights));
        }
    }
}
