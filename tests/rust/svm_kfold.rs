//! Folds and grids of machines: threads, memory and shared work.

use onefold::Monitor;
use onefold::data::Examples;
use onefold::folds::Folds;
use onefold::svm::candidate::{Candidate, Penalty};
use onefold::svm::cv::{CvOptions, Outcome, cross_validate};
use onefold::svm::kernel::Kernel;
use onefold::svm::memory::Budget;
use onefold::svm::seeding::Seeding;
use onefold::svm::smo::Options;

use crate::svm::{Small, clouds};

/// A candidate with one kernel, or with one a round.
fn candidate(c: f64, kernels: &[Kernel]) -> Candidate {
    Candidate {
        kernels: kernels.to_vec(),
        penalty: Penalty::new(c).expect("valid"),
        options: Options::new(1e-4, None, true).expect("valid"),
        ..Candidate::default()
    }
}

fn rbf(gamma: f64) -> Kernel {
    Kernel::Rbf { gamma }
}

/// Three classes in five folds.
fn outcomes(
    problem: &Small,
    candidates: &[Candidate],
    megabytes: f64,
    n_threads: usize,
    seeding: Seeding,
) -> Vec<Outcome> {
    let rows = problem.rows();
    let codes: Vec<u32> = (0..problem.len())
        .map(|v| u32::from(v % 3 == 0) + u32::from(v >= problem.n_positive))
        .collect();
    let examples = Examples::classified(rows, &codes, 3).expect("valid");
    let labels: Vec<usize> = (0..problem.len()).map(|v| v / 3 % 5).collect();
    let folds = Folds::from_labels(&labels, 5).expect("valid");
    let options = CvOptions {
        seeding,
        budget: Budget::new(Some(megabytes)).expect("positive"),
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(n_threads)
        .build()
        .expect("starts");
    let mut found: Vec<_> = candidates.iter().map(|_| None).collect();
    pool.install(|| {
        let mut finished = |number: usize, outcome| found[number] = Some(outcome);
        let monitor = Monitor::new();
        cross_validate(
            &examples,
            candidates,
            &folds,
            &options,
            &monitor,
            &mut finished,
        )
        .expect("runs");
    });
    found.into_iter().flatten().collect()
}

#[test]
fn threads_and_memory_change_nothing() {
    let problem = clouds(200);
    let own: Vec<_> = (0..6).map(|set| rbf(0.5 + 0.01 * f64::from(set))).collect();
    for kernels in [vec![rbf(0.5)], own] {
        let candidates = [candidate(3.0, &kernels), candidate(30.0, &kernels)];
        let one = outcomes(&problem, &candidates, 8.0, 1, Seeding::Auto);
        for (megabytes, n_threads) in [(8.0, 4), (0.05, 1), (0.05, 4)] {
            let other = outcomes(&problem, &candidates, megabytes, n_threads, Seeding::Auto);
            for (one, other) in one.iter().zip(&other) {
                assert_eq!(
                    one.decision_values, other.decision_values,
                    "{megabytes} MB, {n_threads} threads"
                );
                assert_eq!(one.iterations, other.iterations);
            }
        }
        for outcome in &one {
            assert_eq!(outcome.decision_values.len(), 200 * 3);
            assert_eq!(
                outcome.cost.smo_iterations,
                outcome.all_samples_iterations + outcome.iterations.iter().sum::<u64>()
            );
        }
    }
}

#[test]
fn a_grid_shares_kernel_rows_and_solutions() {
    let problem = clouds(200);
    let poly = Kernel::Poly {
        gamma: 0.5,
        coef0: 1.0,
        degree: 2,
    };
    let kernels = [rbf(0.1), rbf(1.0), Kernel::Linear, poly];
    let grid: Vec<_> = kernels
        .iter()
        .flat_map(|&kernel| [10.0, 1.0, 3.0].map(|c| candidate(c, &[kernel])))
        .collect();
    let together = outcomes(&problem, &grid, 8.0, 2, Seeding::Auto);
    let rows: u64 = together.iter().map(|o| o.cost.kernel_rows).sum();
    assert_eq!(rows, 2 * 200, "once the distances, once the inner products");
    let cold = outcomes(&problem, &grid, 8.0, 2, Seeding::Cold);
    let total = |all: &[Outcome]| all.iter().map(|o| o.cost.smo_iterations).sum::<u64>();
    let alone: Vec<Outcome> = grid
        .iter()
        .flat_map(|one| outcomes(&problem, std::slice::from_ref(one), 8.0, 2, Seeding::Auto))
        .collect();
    assert!(total(&together) < total(&alone) && total(&alone) < total(&cold));
    for (number, one) in together.iter().enumerate() {
        for other in [&alone[number], &cold[number]] {
            for (a, b) in one.decision_values.iter().zip(&other.decision_values) {
                assert!((a - b).abs() < 2e-2, "candidate {number}: {a} and {b}");
            }
        }
    }
}

#[test]
fn no_candidates_have_no_outcomes() {
    let none = outcomes(&clouds(30), &[], 1.0, 1, Seeding::Auto);
    assert!(none.is_empty());
}
