//! The kernel matrix, the solver and the starts, on small random problems.

use ndarray::Array2;
use onefold::data::{Csr, Dense};
use onefold::svm::dual::{Bounds, Dual, Solution, Start};
use onefold::svm::gram::Gram;
use onefold::svm::seeding::{Seeding, Transition, seed};
use onefold::svm::smo::solve;
use onefold::svm::{Budget, Kernel, SolverOptions};
use onefold::{Error, Monitor};
use proptest::prelude::*;

use crate::clouds::{N_FEATURES, Small, clouds};

const TOLERANCE: f64 = 1e-3;
/// Where kernel values are rounded to f32, a small tolerance may never be reached.
const LIMIT: u64 = 20_000;

impl Small {
    fn n_positive(&self) -> usize {
        self.labels.iter().filter(|label| **label > 0.0).count()
    }

    fn rows(&self) -> Dense<'_> {
        Dense::new(self.values.view()).expect("contiguous")
    }

    fn dual<'a>(&'a self, gram: &'a Gram<'a>) -> Dual<'a> {
        let (n, positive) = (self.len(), self.n_positive());
        Dual::new(gram, [0..positive, positive..n], &self.labels)
    }

    /// Boxes with every sample in, except those that `is_held_out` names.
    fn bounds(&self, is_held_out: impl Fn(usize) -> bool) -> Bounds {
        let cost = |v: usize| if is_held_out(v) { 0.0 } else { self.costs[v] };
        let n = self.len();
        let lower = (0..n).map(|v| (cost(v) * self.labels[v]).min(0.0));
        let upper = (0..n).map(|v| (cost(v) * self.labels[v]).max(0.0));
        Bounds::balanced(lower.collect(), upper.collect())
    }
}

fn cold_start(dual: &Dual<'_>, bounds: &Bounds) -> Start {
    Start::cold(dual, bounds, &Monitor::new()).expect("runs").0
}

fn small() -> impl Strategy<Value = Small> {
    (6_usize..30).prop_flat_map(|n| {
        (
            prop::collection::vec(-2.0..2.0, n * N_FEATURES),
            2..n - 2,
            prop::collection::vec(prop_oneof![Just(1.0), Just(10.0), 0.1..100.0], n),
        )
            .prop_map(move |(values, n_positive, costs)| {
                let values = Array2::from_shape_vec((n, N_FEATURES), values).expect("shape");
                Small::new(values, n_positive, costs)
            })
    })
}

fn order(n: usize) -> Vec<usize> {
    (0..n).collect()
}

fn gram<'a>(rows: &'a Dense<'a>, order: &'a [usize], kernel: Kernel, megabytes: f64) -> Gram<'a> {
    let budget = Budget::new(Some(megabytes)).expect("positive");
    Gram::new(rows, order, kernel, budget, &Monitor::new()).expect("fits")
}

fn solved(
    dual: &Dual<'_>,
    bounds: &Bounds,
    start: Start,
    tolerance: f64,
    shrinking: bool,
) -> Solution {
    let options = SolverOptions {
        tolerance,
        shrinking,
        ..SolverOptions::default()
    };
    solve(dual, bounds, start, &options, &Monitor::new()).expect("runs")
}

/// Solved with conjugate steps, from nothing.
fn conjugated(dual: &Dual<'_>, bounds: &Bounds, tolerance: f64, shrinking: bool) -> Solution {
    limited(dual, bounds, tolerance, (shrinking, true), u64::MAX)
}

/// Solved from nothing, in so many iterations or unfinished.
fn limited(
    dual: &Dual<'_>,
    bounds: &Bounds,
    tolerance: f64,
    (shrinking, conjugate): (bool, bool),
    limit: u64,
) -> Solution {
    let options = SolverOptions {
        tolerance,
        max_iterations: limit,
        shrinking,
        conjugate,
    };
    let start = cold_start(dual, bounds);
    solve(dual, bounds, start, &options, &Monitor::new()).expect("runs")
}

fn assert_feasible(beta: &[f64], bounds: &Bounds, what: &str) {
    for (v, &value) in beta.iter().enumerate() {
        let (lower, upper) = bounds.range(v);
        assert!(
            lower <= value && value <= upper,
            "{what}: β[{v}] = {value} of [{lower}, {upper}]"
        );
    }
    let (sum, size) = beta
        .iter()
        .fold((0.0, 0.0), |(s, a), b| (s + b, a + b.abs()));
    assert!(f64::abs(sum) <= 1e-12 * (1.0 + size), "{what}: Σβ = {sum}");
}

const RULES: [Seeding; 7] = [
    Seeding::Cold,
    Seeding::Avg,
    Seeding::Top,
    Seeding::Ato,
    Seeding::Mir,
    Seeding::Sir,
    Seeding::Withdraw,
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn every_start_is_feasible_and_leads_to_the_same_optimum(
        problem in small(),
        n_folds in 2_usize..6,
        kernel in prop_oneof![Just(Kernel::Linear), Just(Kernel::Rbf { gamma: 0.7 })],
    ) {
        let rows = problem.rows();
        let order = order(problem.len());
        let gram = gram(&rows, &order, kernel, 1.0);
        let dual = problem.dual(&gram);
        let before = problem.bounds(|v| v % n_folds == 0);
        let after = problem.bounds(|v| v % n_folds == 1);
        let all = problem.bounds(|_| false);
        let cold = solved(&dual, &after, cold_start(&dual, &after), TOLERANCE, false);
        // A solution misses the optimum by the gap times the sizes of the boxes, at most.
        let leeway = TOLERANCE * problem.costs.iter().sum::<f64>();
        for origin in [&before, &all] {
            let previous = solved(&dual, origin, cold_start(&dual, origin), TOLERANCE, false);
            for rule in RULES {
                let monitor = Monitor::new();
                let step = Transition {
                    dual: &dual, previous: &previous, old_bounds: origin, new_bounds: &after, monitor: &monitor,
                };
                let start = seed(rule, &step).expect("not stopped").start;
                assert_feasible(&start.beta, &after, rule.name());
                let (gradient, _) = dual.gradient(&start.beta, &Monitor::new()).expect("not stopped");
                for (found, expected) in start.gradient.iter().zip(&gradient) {
                    prop_assert!((found - expected).abs() < 1e-6 * (1.0 + expected.abs()), "{}", rule.name());
                }
                let found = solved(&dual, &after, start, TOLERANCE, false);
                assert_feasible(&found.beta, &after, rule.name());
                let error = (found.objective - cold.objective).abs();
                prop_assert!(error <= leeway, "{}: {error}", rule.name());
            }
        }
    }

    #[test]
    fn conjugate_steps_lead_to_the_same_optimum(
        problem in small(),
        kernel in prop_oneof![
            Just(Kernel::Linear),
            Just(Kernel::Rbf { gamma: 0.7 }),
            Just(Kernel::Poly { gamma: 0.5, coef0: 1.0, degree: 3 }),
        ],
        shrinking in any::<bool>(),
    ) {
        let rows = problem.rows();
        let order = order(problem.len());
        let gram = gram(&rows, &order, kernel, 1.0);
        let dual = problem.dual(&gram);
        let bounds = problem.bounds(|v| v % 5 == 0);
        for tolerance in [TOLERANCE, 1e-6] {
            let [pairs, found] = [false, true].map(|conjugate| {
                limited(&dual, &bounds, tolerance, (shrinking, conjugate), LIMIT)
            });
            assert_feasible(&found.beta, &bounds, "conjugate");
            if pairs.iterations.max(found.iterations) == LIMIT {
                continue;
            }
            prop_assert!(found.gap < tolerance);
            let (gradient, _) = dual.gradient(&found.beta, &Monitor::new()).expect("not stopped");
            for (found, expected) in found.gradient.iter().zip(&gradient) {
                prop_assert!((found - expected).abs() < 1e-9 * (1.0 + expected.abs()));
            }
            let error = (found.objective - pairs.objective).abs();
            prop_assert!(error <= tolerance * problem.costs.iter().sum::<f64>(), "{error}");
        }
    }

    #[test]
    fn sparse_rows_and_a_cache_of_rows_give_the_same_bits(problem in small()) {
        let n = problem.len();
        let rows = problem.rows();
        let indptr: Vec<i32> = (0..=n).map(|i| i32::try_from(i * N_FEATURES).expect("small")).collect();
        let indices: Vec<i32> = (0..n).flat_map(|_| 0..3).collect();
        let sparse = Csr::new(&indptr, &indices, problem.values.as_slice().expect("contiguous"), N_FEATURES).expect("valid");
        let order: Vec<usize> = (0..n).rev().collect();
        // Room for eight rows and not for all.
        let tight = Budget::new(Some(9.0 * 4.0 * n as f64 / 1_048_576.0)).expect("positive");
        for kernel in [
            Kernel::Linear,
            Kernel::Rbf { gamma: 0.3 },
            Kernel::Poly { gamma: 0.5, coef0: 1.0, degree: 3 },
            Kernel::Sigmoid { gamma: 0.1, coef0: -0.2 },
        ] {
            let full = gram(&rows, &order, kernel, 1.0);
            let csr = Gram::new(&sparse, &order, kernel, tight, &Monitor::new()).expect("fits");
            prop_assert!(full.is_full());
            prop_assert_eq!(csr.is_full(), n <= 9);
            for i in (0..n).chain((0..n).rev()) {
                prop_assert_eq!(&*full.row(i), &*csr.row(i));
                prop_assert_eq!(full.diagonal()[i], full.row(i)[i]);
            }
            if !matches!(kernel, Kernel::Linear | Kernel::Rbf { .. }) {
                continue;
            }
            let base = gram(&rows, &order, kernel.base(), 1.0);
            let derived = Gram::derive(&base, kernel, tight, &Monitor::new()).expect("fits");
            for i in 0..n {
                for (a, b) in full.row(i).iter().zip(&*derived.row(i)) {
                    prop_assert!((a - b).abs() <= 2e-6 * (1.0 + a.abs()), "{kernel:?}: {a} and {b}");
                }
            }
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]

    #[test]
    fn the_gap_of_a_solution_is_what_it_says(
        problem in small(),
        kernel in prop_oneof![Just(Kernel::Linear), Just(Kernel::Rbf { gamma: 1.0 })],
        shrinking in any::<bool>(),
        conjugate in any::<bool>(),
    ) {
        let rows = problem.rows();
        let order = order(problem.len());
        let gram = gram(&rows, &order, kernel, 1.0);
        let dual = problem.dual(&gram);
        let bounds = problem.bounds(|v| v % 4 == 3);
        let found = limited(&dual, &bounds, 1e-4, (shrinking, conjugate), LIMIT);
        let (gradient, _) = dual.gradient(&found.beta, &Monitor::new()).expect("not stopped");
        let may = |rise: bool| {
            let (beta, bounds) = (&found.beta, &bounds);
            (0..beta.len()).filter(move |&v| if rise { beta[v] < bounds.upper[v] } else { beta[v] > bounds.lower[v] })
        };
        let top = may(true).map(|v| gradient[v]).fold(f64::NEG_INFINITY, f64::max);
        let low = may(false).map(|v| gradient[v]).fold(f64::INFINITY, f64::min);
        // With every variable at a bound there may be room between the two.
        prop_assert!(((top - low).max(0.0) - found.gap).abs() < 1e-6);
        prop_assert!(found.gap < 1e-4 || found.iterations == LIMIT);
    }
}

/// Rows of a whole matrix, half of which is mirrored, against rows computed one by one.
#[test]
fn a_mirrored_matrix_has_the_bits_of_its_rows() {
    let problem = clouds(53);
    let rows = problem.rows();
    let order: Vec<usize> = (0..53).rev().collect();
    for kernel in [
        Kernel::Linear,
        Kernel::Rbf { gamma: 0.3 },
        Kernel::SquaredDistance,
    ] {
        let (whole, cache) = (
            gram(&rows, &order, kernel, 1.0),
            gram(&rows, &order, kernel, 0.005),
        );
        assert!(whole.is_full() && !cache.is_full());
        for i in 0..53 {
            assert_eq!(*whole.row(i), *cache.row(i), "{kernel:?}, row {i}");
        }
    }
}

#[test]
fn a_precomputed_matrix_need_not_be_symmetric() {
    let values = Array2::from_shape_fn((53, 53), |(i, j)| ((53 * i + j) as f64 * 0.7).sin());
    let rows = Dense::new(values.view()).expect("contiguous");
    let order = order(53);
    let gram = gram(&rows, &order, Kernel::Precomputed, 1.0);
    for (i, row) in values.rows().into_iter().enumerate() {
        #[allow(clippy::cast_possible_truncation)] // as the matrix rounds
        let expected: Vec<f32> = row.iter().map(|&value| value as f32).collect();
        assert_eq!(*gram.row(i), *expected);
    }
}

#[test]
fn shrinking_changes_nothing() {
    let problem = clouds(700);
    let rows = problem.rows();
    let order = order(problem.len());
    let gram = gram(&rows, &order, Kernel::Rbf { gamma: 2.0 }, 8.0);
    let dual = problem.dual(&gram);
    let bounds = problem.bounds(|v| v % 10 == 0);
    let plain = solved(&dual, &bounds, cold_start(&dual, &bounds), 1e-9, false);
    let shrunk = solved(&dual, &bounds, cold_start(&dual, &bounds), 1e-9, true);
    assert!(
        plain.iterations > 2000,
        "{} iterations are too few to shrink",
        plain.iterations
    );
    assert!((plain.objective - shrunk.objective).abs() <= 1e-9 * plain.objective);
    for v in 0..dual.len() {
        let error = plain.decision_value(&dual, v) - shrunk.decision_value(&dual, v);
        assert!(
            error.abs() < 1e-6,
            "held out or not, {v} differs by {error}"
        );
    }
    // Gradients that were put aside are exact again.
    let (gradient, _) = dual
        .gradient(&shrunk.beta, &Monitor::new())
        .expect("not stopped");
    for (found, expected) in shrunk.gradient.iter().zip(gradient) {
        assert!((found - expected).abs() < 1e-8);
    }
}

#[test]
fn conjugate_steps_are_fewer_where_bounds_are_far() {
    let mut problem = clouds(400);
    problem.costs = vec![1e3; problem.len()];
    let rows = problem.rows();
    let order = order(problem.len());
    let gram = gram(&rows, &order, Kernel::Rbf { gamma: 2.0 }, 8.0);
    let dual = problem.dual(&gram);
    let bounds = problem.bounds(|v| v % 10 == 0);
    for shrinking in [false, true] {
        let pairs = solved(&dual, &bounds, cold_start(&dual, &bounds), 1e-7, shrinking);
        let found = conjugated(&dual, &bounds, 1e-7, shrinking);
        assert!(
            2 * found.iterations < pairs.iterations,
            "{} and {}",
            found.iterations,
            pairs.iterations
        );
        assert!((pairs.objective - found.objective).abs() <= 1e-9 * pairs.objective);
        for v in 0..dual.len() {
            let error = pairs.decision_value(&dual, v) - found.decision_value(&dual, v);
            assert!(error.abs() < 1e-5, "{v} differs by {error}");
        }
    }
}

#[test]
fn iterations_run_out_with_the_gap_in_the_solution() {
    let problem = clouds(100);
    let rows = problem.rows();
    let order = order(problem.len());
    let gram = gram(&rows, &order, Kernel::Linear, 1.0);
    let dual = problem.dual(&gram);
    let bounds = problem.bounds(|_| false);
    let options = SolverOptions {
        max_iterations: 5,
        ..SolverOptions::default()
    };
    let found = solve(
        &dual,
        &bounds,
        cold_start(&dual, &bounds),
        &options,
        &Monitor::new(),
    )
    .expect("runs");
    assert_eq!(found.iterations, 5);
    assert!(found.gap > 1e-3);
}

#[test]
fn cancelled_work_stops() {
    let problem = clouds(100);
    let rows = problem.rows();
    let order = order(problem.len());
    let monitor = Monitor::new();
    monitor.cancel();
    let budget = Budget::new(Some(1.0)).expect("positive");
    assert!(Gram::new(&rows, &order, Kernel::Linear, budget, &monitor).is_err());
}

#[test]
fn rules_that_solve_equations_can_be_stopped() {
    let problem = clouds(60);
    let rows = problem.rows();
    let order = order(problem.len());
    let gram = gram(&rows, &order, Kernel::Rbf { gamma: 0.7 }, 1.0);
    let dual = problem.dual(&gram);
    let before = problem.bounds(|v| v % 3 == 0);
    let after = problem.bounds(|v| v % 3 == 1);
    let previous = solved(&dual, &before, cold_start(&dual, &before), TOLERANCE, false);
    let monitor = Monitor::new();
    monitor.cancel();
    for rule in [Seeding::Ato, Seeding::Mir] {
        let step = Transition {
            dual: &dual,
            previous: &previous,
            old_bounds: &before,
            new_bounds: &after,
            monitor: &monitor,
        };
        assert!(matches!(seed(rule, &step), Err(Error::Interrupted)));
    }
}

#[test]
fn too_little_memory_is_an_error_and_not_a_crash() {
    let problem = clouds(1000);
    let rows = problem.rows();
    let order = order(problem.len());
    let budget = Budget::new(Some(0.01)).expect("positive");
    let error =
        Gram::new(&rows, &order, Kernel::Linear, budget, &Monitor::new()).expect_err("refused");
    assert!(
        error
            .to_string()
            .contains("kernel memory must be enough for eight rows"),
        "{error}"
    );
}

/// Whole numbers: the kernel is coded in bytes where f32 do not fit, and decoded block by block.
#[test]
fn a_quantized_matrix_leads_to_the_same_bits() {
    let (n, n_positive) = (700_usize, 300);
    let value = |i: usize, most: usize| ((i * i * 31 + i * 17) % 101 % (most + 1)) as f64;
    for (most, kernels) in [
        // Distances of 12 at most, and distances of up to 108 that are all far, or not.
        (1, vec![Kernel::Linear, Kernel::Rbf { gamma: 0.5 }]),
        (
            3,
            vec![Kernel::Rbf { gamma: 4.0 }, Kernel::Rbf { gamma: 0.1 }],
        ),
    ] {
        let values = Array2::from_shape_fn((n, 12), |(i, j)| value(12 * i + j, most));
        let rows = Dense::new(values.view()).expect("contiguous");
        let order = order(n);
        let side = |v: usize| -> f64 { if v < n_positive { 1.0 } else { -1.0 } };
        let lower = (0..n).map(|v| side(v).min(0.0));
        let upper = (0..n).map(|v| side(v).max(0.0));
        let bounds = Bounds::balanced(lower.collect(), upper.collect());
        for kernel in kernels {
            let (whole, coded) = (
                gram(&rows, &order, kernel, 4.0),
                gram(&rows, &order, kernel, 0.6),
            );
            assert!(whole.is_full() && coded.is_full(), "{kernel:?}");
            let [expected, found] = [&whole, &coded].map(|gram| {
                let linear: Vec<f64> = (0..n).map(side).collect();
                let dual = Dual::new(gram, [0..n_positive, n_positive..n], &linear);
                [(false, false), (false, true), (true, false), (true, true)].map(|options| {
                    let found = limited(&dual, &bounds, 1e-3, options, 20_000);
                    (found.beta, found.gradient, found.iterations)
                })
            });
            assert!(expected.iter().all(|(_, _, iterations)| *iterations > 100));
            assert!(expected == found, "{kernel:?}");
        }
    }
}
