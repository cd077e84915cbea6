//! Cross-validation of one candidate and of grids: threads, memory and shared work.

use std::sync::Arc;

use ndarray::{Array1, Array3, Axis};
use onefold::folds::Folds;
use onefold::svm::{Budget, ClassWeights, Kernel, Seeded, Seeding, SolverOptions, SvmSpec, vote};
use onefold::{Dataset, Engine, Job, Monitor, OutOfFold};

use crate::clouds::{Small, clouds};

/// A candidate with one kernel, or with one per fold.
fn candidate(c: f64, kernels: &[Kernel]) -> SvmSpec {
    SvmSpec {
        kernels: kernels.to_vec(),
        c,
        options: SolverOptions {
            tolerance: 1e-4,
            ..SolverOptions::default()
        },
        ..SvmSpec::default()
    }
}

fn rbf(gamma: f64) -> Kernel {
    Kernel::Rbf { gamma }
}

/// Three classes.
fn codes(problem: &Small) -> Array1<u32> {
    let code = |(v, label): (usize, &f64)| u32::from(v % 3 == 0) + u32::from(*label < 0.0);
    problem.labels.iter().enumerate().map(code).collect()
}

fn five_folds(problem: &Small) -> Folds {
    let labels: Array1<usize> = (0..problem.len()).map(|v| v / 3 % 5).collect();
    Folds::from_labels(&labels, 5).expect("valid")
}

/// Three classes in five folds.
fn outcomes(
    problem: &Small,
    candidates: &[SvmSpec],
    megabytes: f64,
    n_threads: usize,
    seeding: Seeding,
) -> Vec<OutOfFold> {
    let codes = codes(problem);
    let data = Dataset::dense(problem.values.view()).expect("contiguous");
    let data = data.with_classes(codes.view(), 3).expect("valid");
    let engine = Seeded {
        seeding,
        budget: Budget::new(Some(megabytes)).expect("positive"),
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(n_threads)
        .build()
        .expect("starts");
    let candidates: Vec<&SvmSpec> = candidates.iter().collect();
    let folds = five_folds(problem);
    let mut found: Vec<_> = candidates.iter().map(|_| None).collect();
    pool.install(|| {
        let mut finished = |index: usize, outcome| found[index] = Some(outcome);
        engine
            .run(
                &candidates,
                &Job::new(&data, &folds, &Monitor::new()),
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
                    one.outputs, other.outputs,
                    "{megabytes} MB, {n_threads} threads"
                );
                assert_eq!(one.status, other.status);
            }
        }
        for outcome in &one {
            assert_eq!(outcome.outputs.dim(), (200, 3));
            assert_eq!(outcome.status.iterations.dim(), (5, 3));
            assert!(outcome.cost.smo_iterations >= outcome.status.iterations.sum());
            assert!(outcome.status.gaps.iter().all(|gap| *gap < 1e-4));
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
    let total = |all: &[OutOfFold]| all.iter().map(|o| o.cost.smo_iterations).sum::<u64>();
    let alone: Vec<OutOfFold> = grid
        .iter()
        .flat_map(|one| outcomes(&problem, std::slice::from_ref(one), 8.0, 2, Seeding::Auto))
        .collect();
    assert!(total(&together) < total(&alone) && total(&alone) < total(&cold));
    for (number, one) in together.iter().enumerate() {
        for other in [&alone[number], &cold[number]] {
            for (a, b) in one.outputs.iter().zip(&other.outputs) {
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

#[test]
fn the_engine_returns_what_it_reports() {
    let problem = clouds(90);
    let data = Dataset::dense(problem.values.view()).expect("contiguous");
    let codes = codes(&problem);
    let data = data.with_classes(codes.view(), 3).expect("valid");
    let folds = five_folds(&problem);
    let converged = candidate(3.0, &[rbf(0.5)]);
    let limited = SvmSpec {
        options: SolverOptions {
            max_iterations: 2,
            ..converged.options
        },
        ..converged.clone()
    };
    let reported = outcomes(
        &problem,
        &[limited.clone(), converged.clone()],
        8.0,
        1,
        Seeding::Sir,
    );
    let engine = Seeded {
        seeding: Seeding::Sir,
        ..Seeded::default()
    };
    let found = engine.out_of_fold(
        &[&limited, &converged],
        &Job::new(&data, &folds, &Monitor::new()),
    );
    let found = found.expect("runs");
    for (found, reported) in found.iter().zip(&reported) {
        assert_eq!(found.outputs, reported.outputs);
        assert_eq!(
            (found.cost, &found.status),
            (reported.cost, &reported.status)
        );
    }
    let is_converged = |found: &OutOfFold| found.status.gaps.iter().all(|gap| *gap < 1e-4);
    assert!(!is_converged(&found[0]) && is_converged(&found[1]));
    assert_eq!(found[0].status.method, "sir");
    // A candidate of its own; together, the second starts from the first.
    let alone = engine.cross_validate(&limited, &data, &folds);
    assert_eq!(alone.expect("runs").outputs, found[0].outputs);
    let classes = vote(found[1].by_sample(&folds).view(), 3);
    let hits = classes.iter().zip(&codes);
    let hits = hits.filter(|&(&class, &code)| class == code as usize);
    assert!(hits.count() > 45, "better than chance");
    let other = Folds::contiguous(80, 5).expect("valid");
    assert!(engine.cross_validate(&converged, &data, &other).is_err());
}

#[test]
fn parameters_outside_their_domain_are_refused() {
    let problem = clouds(30);
    let data = Dataset::dense(problem.values.view()).expect("contiguous");
    let y = problem.values.column(0).insert_axis(Axis(1)).to_owned();
    let data = data.with_values(y.view()).expect("valid");
    let good = SvmSpec::default();
    let with_kernel = |kernel| SvmSpec {
        kernels: vec![kernel],
        ..SvmSpec::default()
    };
    let (gamma, coef0) = (1.0, f64::NAN);
    let poly = Kernel::Poly {
        gamma,
        coef0: 0.0,
        degree: -2,
    };
    let mut cases = vec![
        (
            with_kernel(rbf(-1.0)),
            "gamma must be finite and not negative, got -1",
        ),
        (
            with_kernel(Kernel::Sigmoid { gamma, coef0 }),
            "coef0 must be finite, got NaN",
        ),
        (with_kernel(poly), "degree must be at least 0, got -2"),
    ];
    let mut refuse = |change: &dyn Fn(&mut SvmSpec), message| {
        let mut candidate = good.clone();
        change(&mut candidate);
        cases.push((candidate, message));
    };
    refuse(&|one| one.c = 0.0, "C must be positive and finite, got 0");
    refuse(
        &|one| one.epsilon = -1.0,
        "epsilon must be finite and not negative",
    );
    refuse(
        &|one| one.options.tolerance = 0.0,
        "tol must be positive and finite, got 0",
    );
    refuse(
        &|one| {
            let weights = ClassWeights::new(Array3::ones((1, 1, 2))).expect("valid");
            one.class_weights = Some(Arc::new(weights));
        },
        "y must be classes if classes have weights",
    );
    refuse(
        &|one| one.kernels = vec![rbf(1.0); 5],
        "kernels: expected length 6, got 5",
    );
    for (candidate, expected) in cases {
        let found = Seeded::default().cross_validate(&candidate, &data, &five_folds(&problem));
        let message = found.expect_err("refused").to_string();
        assert!(message.starts_with(expected), "{message}");
    }
}
