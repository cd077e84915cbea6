//! Learners of sparse rows without the features that no row stores.
//!
//! Rows of words, hashes or ids may number many more features than occur. A weight that is used
//! then has a cache line of its own, and a copy of the model is mostly zeros. For learners that say
//! it makes no difference, the features that occur are numbered anew, in their order: one pass over
//! the indices, and the same result to the last bit.

use super::feeder::CACHE;
use super::learner::Learner;
use crate::data::{Examples, Layout};

/// A learner for the stored features alone, and those features.
pub(super) struct Narrow<L, F> {
    learner: L,
    features: F,
}

impl<L, F> Narrow<L, F> {
    /// `None` if `learner` fits the cache as it is, or minds, or most features are stored.
    pub(super) fn new<R>(learner: &L, examples: &Examples<'_, R>) -> Option<Self>
    where
        R: Layout<Features = F>,
        L: for<'s> Learner<Examples<'s, R::View<'s>>>,
    {
        let n_features = examples.rows().n_features();
        if learner.effort(&examples.with_features(None)).copy <= CACHE {
            return None;
        }
        learner.narrowed(n_features, 0)?;
        let features = examples.rows().stored_features()?;
        let n_stored = examples.rows().with_features(Some(&features)).n_features();
        Some(Self {
            learner: learner.narrowed(n_features, n_stored)?,
            features,
        })
    }

    /// What is to be used in place of `learner`, and with which features.
    pub(super) fn parts<'a>(narrow: Option<&'a Self>, learner: &'a L) -> (&'a L, Option<&'a F>) {
        narrow.map_or((learner, None), |narrow| {
            (&narrow.learner, Some(&narrow.features))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Csr, Dense};
    use crate::learners::{DiscreteNb, DiscreteNbOptions, Events, Pegasos, PegasosOptions, Priors};
    use crate::tree::{Flat, Several};

    fn pegasos(n_features: usize) -> Pegasos {
        let options = PegasosOptions {
            alpha: 0.1,
            project: false,
            intercept: false,
        };
        Pegasos::new(options, n_features, 2).expect("valid")
    }

    #[test]
    fn long_models_of_few_features_are_narrowed_unless_they_mind() {
        const MANY: usize = 100_000;
        let csr = Csr::new(&[0, 2, 4], &[5, 70_000, 63, 64], &[1.0; 4], MANY).expect("valid");
        let examples = Examples::classified(csr, &[0, 1], 2).expect("valid");
        let narrow = Narrow::new(&pegasos(MANY), &examples).expect("narrowed");
        assert_eq!(narrow.learner.state().len(), pegasos(4).state().len());
        let rows = csr.with_features(Some(&narrow.features));
        let entries = |row| crate::data::Row::entries(rows.row(row)).collect::<Vec<_>>();
        assert_eq!(entries(0), [(0, 1.0), (3, 1.0)]);
        assert_eq!(entries(1), [(1, 1.0), (2, 1.0)]);

        let both = Several::new(vec![pegasos(MANY), pegasos(MANY)]).expect("valid");
        assert!(Narrow::new(&both, &examples).is_some());
        let options = DiscreteNbOptions {
            events: Events::Counts,
            alpha: 1.0,
            priors: Priors::Counted,
        };
        let smooth = DiscreteNb::new(options, MANY, 2).expect("valid");
        assert!(Narrow::new(&smooth, &examples).is_none());
        // A learner of other rows: the error is left to those who check.
        assert!(Narrow::new(&pegasos(MANY - 1), &examples).is_none());
    }

    #[test]
    fn short_models_and_full_rows_are_left_alone() {
        let csr = Csr::new(&[0, 1], &[5], &[1.0], 1000).expect("valid");
        let examples = Examples::classified(csr, &[0], 2).expect("valid");
        assert!(Narrow::new(&pegasos(1000), &examples).is_none());
        let indices: Vec<i32> = (0..100_000).step_by(2).collect();
        let ones = vec![1.0; indices.len()];
        let csr = Csr::new(&[0, 50_000], &indices, &ones, 100_000).expect("valid");
        let examples = Examples::classified(csr, &[0], 2).expect("valid");
        assert!(Narrow::new(&pegasos(100_000), &examples).is_none());
        let zeros = vec![0.0; 100_000];
        let dense = Dense::new(&zeros, 1, 100_000).expect("valid");
        let examples = Examples::classified(dense, &[0], 2).expect("valid");
        assert!(Narrow::new(&pegasos(100_000), &examples).is_none());
    }
}
