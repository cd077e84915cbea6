//! Several classes, one against one: a binary problem for every pair, and a vote.
//!
//! Outputs of problem (a, b) are positive for b, as those of binary learners for the second class.
//! The class with the most votes wins; of several, the first, as in LIBSVM.

use ndarray::{Array1, ArrayView1, ArrayView2};

/// The pairs of classes in the order of their problems: (0, 1), (0, 2), …, (1, 2), …
pub(super) fn pairs(n_classes: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n_classes).flat_map(move |a| (a + 1..n_classes).map(move |b| (a, b)))
}

/// The class elected by each row of decision values, which has one column per pair.
pub fn vote(decision_values: ArrayView2<'_, f64>, n_classes: usize) -> Array1<usize> {
    let rows = decision_values.rows().into_iter();
    rows.map(|row| elected(row, n_classes)).collect()
}

fn elected(decision_values: ArrayView1<'_, f64>, n_classes: usize) -> usize {
    let mut votes = vec![0_usize; n_classes];
    for ((a, b), &value) in pairs(n_classes).zip(decision_values) {
        votes[if value < 0.0 { a } else { b }] += 1;
    }
    let most = votes.iter().copied().max().unwrap_or(0);
    votes.iter().position(|&count| count == most).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn pairs_vote_and_ties_go_to_the_first_class() {
        // Pairs (0, 1), (0, 2), (1, 2); one vote each in the second row.
        let values = array![[-1.0, 1.0, 1.0], [-1.0, 1.0, -1.0]];
        assert_eq!(vote(values.view(), 3), array![2, 0]);
        assert_eq!(
            vote(array![[0.0]].view(), 2),
            array![1],
            "0 is not negative"
        );
    }
}
