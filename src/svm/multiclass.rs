//! Several classes, one against one: a machine for every pair, and a vote.
//!
//! Samples are sorted by class, so that the two classes of a machine are two contiguous ranges of
//! the kernel matrix. Machine (a, b) is positive for a. Every machine has one vote; the class with
//! the most wins, the first of them where several have as many, as in LIBSVM.

use super::machine::{Machine, Machines};
use crate::{Error, Result};

/// A machine for every pair of classes.
pub(super) fn machines(codes: &[u32], n_classes: usize) -> Result<Machines> {
    let mut starts = vec![0; n_classes + 1];
    for &code in codes {
        starts[code as usize + 1] += 1;
    }
    if let Some(empty) = starts[1..].iter().position(|&count| count == 0) {
        return Err(Error::Parameter {
            name: "y",
            rule: "at least one sample of every class",
            value: format!("none of class {empty}"),
        });
    }
    if n_classes < 2 {
        return Err(Error::Parameter {
            name: "y",
            rule: "of two classes or more",
            value: format!("{n_classes}"),
        });
    }
    for class in 0..n_classes {
        starts[class + 1] += starts[class];
    }
    let mut order: Vec<usize> = (0..codes.len()).collect();
    order.sort_by_key(|&row| codes[row]);
    let range = |class: usize| starts[class]..starts[class + 1];
    let pair = |(a, b): (usize, usize)| Machine {
        ranges: [range(a), range(b)],
        linear: [vec![1.0; range(a).len()], vec![-1.0; range(b).len()]].concat(),
    };
    let list = pairs(n_classes).map(pair).collect();
    Ok(Machines {
        order,
        starts,
        list,
    })
}

/// The pairs of classes in the order of their machines.
pub fn pairs(n_classes: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n_classes).flat_map(move |a| (a + 1..n_classes).map(move |b| (a, b)))
}

/// The class that the decisions of all machines elect.
pub fn vote(decisions: &[f64], n_classes: usize) -> usize {
    let mut votes = vec![0_usize; n_classes];
    for ((a, b), &decision) in pairs(n_classes).zip(decisions) {
        votes[if decision > 0.0 { a } else { b }] += 1;
    }
    let most = votes.iter().copied().max().unwrap_or(0);
    votes.iter().position(|&count| count == most).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_become_ranges_and_pairs_vote() {
        let machines = machines(&[2, 0, 1, 0, 2], 3).expect("valid");
        assert_eq!(machines.order, [1, 3, 2, 0, 4]);
        assert_eq!(machines.starts, [0, 2, 3, 5]);
        assert_eq!(machines.list[1].ranges, [0..2, 3..5]);
        assert_eq!(machines.list[1].linear, [1.0, 1.0, -1.0, -1.0]);
        // Machines (0, 1), (0, 2), (1, 2).
        assert_eq!(vote(&[1.0, -1.0, -1.0], 3), 2);
        assert_eq!(
            vote(&[1.0, -1.0, 1.0], 3),
            0,
            "one vote each: the first class"
        );
        assert_eq!(vote(&[0.0], 2), 1, "a tie is not positive");
    }

    #[test]
    fn what_is_not_a_set_of_classes_is_refused() {
        let message = |codes: &[u32], n| machines(codes, n).expect_err("refused").to_string();
        assert!(message(&[0, 0], 2).contains("none of class 1"));
        assert!(message(&[0, 0], 1).contains("of two classes or more"));
    }
}
