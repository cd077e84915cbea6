//! The warm-start plan of a seeding rule, as a table: anchors × seeds × chooser.
//!
//! *Anchors* are training sets that are solved first, in order. Every other training set, the rest,
//! tries all *seeds* of the rule, each made from an anchor. As the rest depends on anchors alone, its
//! folds run in parallel, and the number of threads does not change the results.
//!
//! The *chooser* is the same for all rules (see [`start`](super::start)):
//!
//! | seeds | chosen |
//! |---|---|
//! | those of the plan | the one with the fewest violators of the optimality conditions |
//! | that for the previous C, as it is or its bounds moved | if it has none, or less than half of the chosen seed's |
//! | that for the previous C, scaled to the new C | if its dual objective exceeds the chosen seed's |
//!
//! The number of violators predicts the number of iterations; the dual objective does so only between
//! seeds that differ by a change of all variables.

use crate::svm::seeding::Seeding;

/// A training set that is solved first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    /// The training set of a fold.
    Fold(usize),
    /// All samples.
    AllSamples,
    /// All samples, approximated by merging the solutions of folds 0 and 1.
    Merged,
}

/// A seed to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seed {
    /// β = 0.
    Zero,
    /// The solution of an anchor, changed by a rule.
    From(Anchor, Seeding),
}

/// What is solved first, and the seeds of the rest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// The rule, resolved for the number of folds.
    pub(super) rule: Seeding,
    /// The training sets solved first, each with its seeds.
    pub(super) anchors: &'static [(Anchor, &'static [Seed])],
    /// The seeds of all other training sets.
    pub(super) seeds: &'static [Seed],
}

/// Number of folds from which `auto` solves all samples first: that solution differs from each fold by
/// one test set instead of two.
const MANY_FOLDS: usize = 50;

impl Plan {
    /// The plan of a rule.
    #[rustfmt::skip]
    pub(super) fn new(rule: Seeding, n_folds: usize) -> Self {
        use self::Anchor::{AllSamples, Fold, Merged};
        use self::Seed::{From, Zero};
        use self::Seeding::{Ato, Auto, Avg, Cold, Mir, Sir, Top, Withdraw};
        // The training sets of two folds have nothing in common.
        let rule = if rule == Auto && n_folds <= 2 { Cold } else { rule };
        let plan = |anchors, seeds| Self { rule, anchors, seeds };
        match rule {
            //               anchors, each with its seeds                  seeds of the rest
            Cold     => plan(&[],                                          &[Zero]),
            Avg      => plan(&[(AllSamples, &[Zero])],                     &[From(AllSamples, Avg)]),
            Top      => plan(&[(AllSamples, &[Zero])],                     &[From(AllSamples, Top)]),
            Withdraw => plan(&[(AllSamples, &[Zero])],                     &[From(AllSamples, Withdraw)]),
            Ato      => plan(&[(Fold(0),    &[Zero])],                     &[From(Fold(0), Ato)]),
            Mir      => plan(&[(Fold(0),    &[Zero])],                     &[From(Fold(0), Mir)]),
            Sir      => plan(&[(Fold(0),    &[Zero])],                     &[From(Fold(0), Sir)]),
            Auto if n_folds < MANY_FOLDS
                     => plan(&[(Fold(0),    &[Zero]),
                               (Fold(1),    &[From(Fold(0), Sir), Zero]),
                               (Merged,     &[])],                         &[From(Merged, Withdraw), Zero]),
            Auto     => plan(&[(Fold(0),    &[Zero]),
                               (AllSamples, &[From(Fold(0), Sir), Zero])], &[From(Fold(0), Sir),
                                                                             From(AllSamples, Withdraw), Zero]),
        }
    }

    /// Number of training sets that are solved: all folds, and perhaps all samples.
    pub(super) fn n_training_sets(&self, n_folds: usize) -> usize {
        let is_extra = |(anchor, _): &&(Anchor, _)| *anchor == Anchor::AllSamples;
        n_folds + self.anchors.iter().filter(is_extra).count()
    }

    /// Returns true if other training sets start from the solution of an anchor.
    pub(super) fn has_seed_from(&self, anchor: Anchor) -> bool {
        let is_from = |seed: &Seed| matches!(seed, Seed::From(from, _) if *from == anchor);
        let of_anchors = self.anchors.iter().flat_map(|(_, seeds)| *seeds);
        of_anchors.chain(self.seeds).any(is_from)
    }

    /// Returns true if the solution for the previous C is tried.
    pub(super) fn follows_c_path(&self) -> bool {
        self.rule != Seeding::Cold
    }

    /// Returns true if steps are conjugate; otherwise iterations compare with LIBSVM's.
    pub(super) fn is_conjugate(&self) -> bool {
        self.rule == Seeding::Auto
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_come_from_anchors_that_are_solved_before() {
        for (name, rule) in Seeding::ALL {
            for n_folds in [1, 2, 3, 10, 49, 50, 1000] {
                let plan = Plan::new(rule, n_folds);
                let mut solved = vec![];
                let rest = (Anchor::Merged, plan.seeds);
                for &(anchor, seeds) in plan.anchors.iter().chain([&rest]) {
                    let is_solved = |seed: &Seed| match seed {
                        Seed::Zero => true,
                        Seed::From(anchor, _) => solved.contains(anchor),
                    };
                    assert!(seeds.iter().all(is_solved), "{name}, {n_folds} folds");
                    solved.push(anchor);
                }
            }
        }
        assert_eq!(Plan::new(Seeding::Auto, 2).rule, Seeding::Cold);
    }
}
