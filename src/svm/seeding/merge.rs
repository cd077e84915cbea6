//! An approximate solution of all samples, merged from those of two folds.
//!
//! A sample held out in one fold gets the β of the other. A sample in both training sets may have two
//! different β, because each solution compensates for its held-out samples in their neighborhood.
//! The compensation at v is Σ β_u K_uv over the held-out u, with β of the other solution: v gets its β
//! from the solution that compensates less. The least clear choices are reversed where that brings Σβ
//! of a group closer to its value, so that every β is taken from one of the solutions.

use crate::svm::dual::{Bounds, Dual, Solution};
use crate::{Monitor, Result};

/// A choice that may be reversed.
struct Choice {
    variable: usize,
    /// The other β.
    other: f64,
    /// Difference of the compensations.
    preference: f64,
}

/// Merges two solutions, each with its constraints, for those of all samples. The result need not be
/// feasible.
pub(in crate::svm) fn merge(
    (dual, bounds): (&Dual<'_>, &Bounds),
    first: (&Solution, &Bounds),
    second: (&Solution, &Bounds),
    monitor: &Monitor,
) -> Result<Solution> {
    let compensation = |bounds: &Bounds, other: &Solution| {
        let held_out: Vec<usize> = (0..dual.len()).filter(|&v| !bounds.is_open(v)).collect();
        let beta: Vec<f64> = held_out.iter().map(|&v| other.beta[v]).collect();
        dual.combine(&held_out, &beta, monitor)
    };
    let by_first = compensation(first.1, second.0)?;
    let by_second = compensation(second.1, first.0)?;
    let mut beta = first.0.beta.clone();
    let mut choices = vec![];
    for (v, chosen) in beta.iter_mut().enumerate() {
        let other = second.0.beta[v];
        let preference = by_second[v].abs() - by_first[v].abs();
        match (first.1.is_open(v), second.1.is_open(v)) {
            (false, _) => *chosen = other,
            (true, true) if *chosen != other => {
                let (better, worse) = if preference < 0.0 {
                    (other, *chosen)
                } else {
                    (*chosen, other)
                };
                *chosen = better;
                choices.push(Choice {
                    variable: v,
                    other: worse,
                    preference: preference.abs(),
                });
            }
            (true, _) => {}
        }
    }
    choices.sort_by(|a, b| a.preference.total_cmp(&b.preference));
    for group in &bounds.groups {
        let mut excess = group.excess(&beta);
        let of_group = choices.iter();
        for choice in of_group.filter(|choice| group.variables.contains(&choice.variable)) {
            let reversed = excess - beta[choice.variable] + choice.other;
            if reversed.abs() < excess.abs() {
                (excess, beta[choice.variable]) = (reversed, choice.other);
            }
        }
    }
    let mut gradient = first.0.gradient.clone();
    let rows_read = dual.shift(&first.0.beta, &beta, &mut gradient, monitor)?;
    Ok(Solution {
        objective: dual.objective(&beta, &gradient),
        beta,
        gradient,
        rows_read,
        iterations: 0,
        ..first.0.clone()
    })
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;
    use crate::data::Dense;
    use crate::svm::gram::Gram;
    use crate::svm::kernel::Kernel;
    use crate::svm::memory::Budget;

    /// Two pairs of neighbors far from each other; each fold holds out one of a pair.
    #[test]
    fn each_variable_comes_from_the_solution_that_compensates_less() {
        let values = array![[0.0], [0.1], [50.0], [50.1]];
        let rows = Dense::new(values.view()).expect("contiguous");
        let (order, monitor) = ([0, 1, 2, 3], Monitor::new());
        let kernel = Kernel::Rbf { gamma: 1.0 };
        let budget = Budget::new(Some(1.0)).expect("valid");
        let gram = Gram::new(&rows, &order, kernel, budget, &monitor).expect("fits");
        let dual = Dual::new(&gram, [0..2, 2..4], &[1.0, 1.0, -1.0, -1.0]);
        let bounds = |held_out: usize| {
            let mut upper = vec![5.0, 5.0, 0.0, 0.0];
            let mut lower = vec![0.0, 0.0, -5.0, -5.0];
            (upper[held_out], lower[held_out]) = (0.0, 0.0);
            Bounds::balanced(lower, upper)
        };
        let solution = |beta: [f64; 4]| Solution {
            gradient: dual.gradient(&beta, &monitor).expect("not stopped").0,
            beta: beta.to_vec(),
            intercept: 0.0,
            margin: 0.0,
            objective: 0.0,
            iterations: 7,
            rows_read: 0,
            gap: 0.0,
        };
        // Sample 1 compensates for sample 0 in the first, sample 3 for sample 2 in the second.
        let first = solution([0.0, 2.0, -1.0, -1.0]);
        let second = solution([1.0, 1.0, 0.0, -2.0]);
        let (out_0, out_2) = (bounds(0), bounds(2));
        let all = Bounds::balanced(vec![0.0, 0.0, -5.0, -5.0], vec![5.0, 5.0, 0.0, 0.0]);
        let merged = merge((&dual, &all), (&first, &out_0), (&second, &out_2), &monitor);
        let merged = merged.expect("not stopped");
        assert_eq!(merged.beta, [1.0, 1.0, -1.0, -1.0]);
        let (gradient, _) = dual.gradient(&merged.beta, &monitor).expect("not stopped");
        for (found, expected) in merged.gradient.iter().zip(gradient) {
            assert!((found - expected).abs() < 1e-12);
        }
        assert_eq!(merged.iterations, 0);

        // With another β for sample 2 the sum would be 1; reversing sample 3 makes it 0.
        let first = solution([0.0, 2.0, 0.0, -1.0]);
        let merged = merge((&dual, &all), (&first, &out_0), (&second, &out_2), &monitor);
        assert_eq!(merged.expect("not stopped").beta, [1.0, 1.0, 0.0, -2.0]);
    }
}
