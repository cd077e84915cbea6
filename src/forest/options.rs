//! Parameters of trees and forests, with scikit-learn's meaning.

/// How good a split is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Impurity {
    /// `"gini"`.
    Gini,
    /// `"entropy"` and `"log_loss"`.
    Entropy,
    /// `"squared_error"`, of targets that are numbers.
    SquaredError,
}

/// Which boundaries of a column a node looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Splitter {
    /// `"best"`: all.
    Best,
    /// `"random"`: one, drawn between the lowest and the highest value.
    Random,
}

/// What is left of a tree. Trees that differ in nothing else are one tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pruning {
    /// All.
    None,
    /// Links weaker than `ccp_alpha`, or as weak, are cut.
    CostComplexity(f64),
    /// `max_leaf_nodes`: at most so many leaves, of a tree that grows best first.
    LeafNodes(usize),
}

/// A number of samples, or a share of those of a training set, rounded up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SampleCount {
    /// The number itself.
    Number(usize),
    /// A share, above 0 and at most 1.
    Share(f64),
}

impl SampleCount {
    /// The number of samples of a training set of `n_samples`.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // shares are at most 1
    pub(super) fn of(self, n_samples: usize) -> usize {
        match self {
            Self::Number(number) => number,
            Self::Share(share) => (share * n_samples as f64).ceil() as usize,
        }
    }
}

/// Where a tree stops growing. Trees that differ in nothing else are grown together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stop {
    /// The depth of the deepest leaf.
    pub max_depth: usize,
    /// The samples of the smallest node that is split.
    pub min_samples_split: SampleCount,
    /// The weighted decrease of impurity of the worst split.
    pub min_impurity_decrease: f64,
}

impl Default for Stop {
    fn default() -> Self {
        Self {
            max_depth: usize::MAX,
            min_samples_split: SampleCount::Number(2),
            min_impurity_decrease: 0.0,
        }
    }
}

/// How a tree is grown, apart from its random numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TreeOptions {
    /// The criterion.
    pub impurity: Impurity,
    /// Which boundaries are looked at.
    pub splitter: Splitter,
    /// The samples of the smallest leaf.
    pub min_samples_leaf: SampleCount,
    /// The weight of the lightest leaf, as a share of the weight of the training set.
    pub min_weight_fraction_leaf: f64,
    /// The number of features that a node draws.
    pub max_features: usize,
    /// Where it stops.
    pub stop: Stop,
    /// What is left of it.
    pub pruning: Pruning,
}

impl Default for TreeOptions {
    fn default() -> Self {
        Self {
            impurity: Impurity::Gini,
            splitter: Splitter::Best,
            min_samples_leaf: SampleCount::Number(1),
            min_weight_fraction_leaf: 0.0,
            max_features: usize::MAX,
            stop: Stop::default(),
            pruning: Pruning::None,
        }
    }
}

/// A tree, or a forest: the mean of its trees.
///
/// Forests that differ in the number of seeds only share their first trees.
#[derive(Clone, Debug, PartialEq)]
pub struct Forest {
    /// How its trees are grown.
    pub tree: TreeOptions,
    /// The `random_state` of every tree.
    pub seeds: Vec<u32>,
    /// The bootstrap samples; none if trees take the training set itself.
    pub bootstrap: Option<Bootstrap>,
}

/// The bootstrap samples of a forest: rows of a training set drawn with replacement.
#[derive(Clone, Debug, PartialEq)]
pub struct Bootstrap {
    /// The `random_state` of the sample of every tree.
    pub seeds: Vec<u32>,
    /// How many rows are drawn from each training set.
    pub n_draws: Vec<usize>,
}
