//! The gradient of a solution for RBF kernels whose γ is nearly the same.
//!
//! # Problem
//! With `gamma="scale"` every training set has a γ of its own, within a few per cent of the others. The
//! gradient of a seed over the kernel of another training set takes the kernel rows of all its support
//! vectors, each with n exponentials, although the start changes few of them.
//!
//! # Method
//! With γ' = γ(1 + ε) and t = γd², exp(−γ'd²) = exp(−t)·exp(−εt) is the series Σ (−ε)^m ·
//! exp(−t)·t^m/m!. exp(−t) damps the powers: exp(−t)·t^m/m! is at most 1/√(2πm), so the error after
//! M terms is below ε^(M+1), whatever the distance. The sums over the support vectors of
//! exp(−t)·t^m/m! are computed once, and give the gradient for every γ'.
//!
//! # Cost
//! One pass over the kernel rows and the distances of the support vectors.

use crate::runtime::simd::{self, Simd, WithSimd};
use crate::svm::dual::Dual;
use crate::svm::kernel::Kernel;
use crate::{Monitor, Result};

/// Maximum number of terms.
const MAX_TERMS: usize = 5;

/// The error of a kernel value, below that of rounding to f32.
const MAX_ERROR: f64 = 1e-9;

/// Σ β·exp(−t)·t^m/m! of every variable, by m from 1 on.
#[derive(Debug)]
pub(in crate::svm) struct GammaSeries {
    gamma: f64,
    terms: Vec<Vec<f64>>,
}

impl GammaSeries {
    /// The series of a β over the kernel of `dual`, for all of `kernels`, and the number of kernel rows
    /// read. `None` if kernels differ too much, or if there are no distances to compute it from.
    pub(in crate::svm) fn new(
        dual: &Dual<'_>,
        beta: &[f64],
        kernel: Kernel,
        kernels: &[Kernel],
        monitor: &Monitor,
    ) -> Result<Option<(Self, u64)>> {
        let Kernel::Rbf { gamma } = kernel else {
            return Ok(None);
        };
        let change = |other: &Kernel| match other {
            Kernel::Rbf { gamma: other } => (other / gamma - 1.0).abs(),
            _ => f64::INFINITY,
        };
        let largest = kernels.iter().map(change).fold(0.0, f64::max);
        let mut error = largest;
        let n_terms = (1..=MAX_TERMS).find(|_| {
            error *= largest;
            error <= MAX_ERROR
        });
        let Some(n_terms) = n_terms else {
            return Ok(None);
        };
        let mut terms = vec![vec![0.0; dual.len()]; n_terms];
        let support = beta.iter().enumerate().filter(|(_, beta)| **beta != 0.0);
        let mut n_read = 0;
        for (variable, &beta) in support {
            monitor.check()?;
            let sample = dual.sample(variable);
            let Some((distances, scale)) = dual.gram().distances(sample) else {
                return Ok(None);
            };
            let row = dual.gram().row(sample);
            n_read += 1;
            let mut start = 0;
            for range in dual.columns() {
                simd::dispatch(AddTerms {
                    beta,
                    factor: gamma * scale,
                    row: &row[range.clone()],
                    distances: &distances[range.clone()],
                    terms: &mut terms,
                    start,
                });
                start += range.len();
            }
        }
        Ok(Some((Self { gamma, terms }, n_read)))
    }

    /// The gradient for another γ, from that for the γ of the series.
    pub(in crate::svm) fn gradient(&self, gradient: &[f64], gamma: f64) -> Vec<f64> {
        let change = gamma / self.gamma - 1.0;
        let mut gradient = gradient.to_vec();
        let mut power = -1.0;
        for term in &self.terms {
            power *= -change;
            for (g, term) in gradient.iter_mut().zip(term) {
                *g += power * term;
            }
        }
        gradient
    }
}

/// Adds the terms of one support vector to those of the variables from `start` on.
struct AddTerms<'a> {
    beta: f64,
    /// γ divided by the unit of the distances.
    factor: f64,
    row: &'a [f32],
    distances: &'a [f32],
    terms: &'a mut [Vec<f64>],
    start: usize,
}

impl WithSimd for AddTerms<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        const BLOCK: usize = 256;
        let (mut t, mut product) = ([0.0; BLOCK], [0.0; BLOCK]);
        let blocks = self.row.chunks(BLOCK).zip(self.distances.chunks(BLOCK));
        for (block, (row, distances)) in blocks.enumerate() {
            let (t, product) = (&mut t[..row.len()], &mut product[..row.len()]);
            for (((t, product), &k), &d) in t.iter_mut().zip(&mut *product).zip(row).zip(distances)
            {
                *t = self.factor * f64::from(d);
                *product = self.beta * f64::from(k);
            }
            let start = self.start + block * BLOCK;
            for (m, term) in (1_u32..).zip(&mut *self.terms) {
                let inverse = 1.0 / f64::from(m);
                let term = &mut term[start..start + row.len()];
                for ((term, product), t) in term.iter_mut().zip(&mut *product).zip(&*t) {
                    *product *= inverse * t;
                    *term += *product;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;
    use crate::data::Dense;
    use crate::svm::gram::Gram;
    use crate::svm::memory::Budget;

    #[test]
    fn the_series_is_the_gradient_for_another_gamma() {
        let values = Array2::from_shape_fn((60, 3), |(i, j)| ((i * i + 7 * j) as f64 * 0.7).sin());
        let rows = Dense::new(values.view()).expect("contiguous");
        let (order, monitor) = ((0..60).collect::<Vec<_>>(), Monitor::new());
        let budget = Budget::new(Some(1.0)).expect("valid");
        let rbf = |gamma| Kernel::Rbf { gamma };
        let base = Kernel::SquaredDistance;
        let base = Gram::new(&rows, &order, base, budget, &monitor).expect("fits");
        let derive = |gamma| Gram::derive(&base, rbf(gamma), budget, &monitor).expect("fits");
        let linear = [vec![1.0; 30], vec![-1.0; 30]].concat();
        let beta: Vec<f64> = (0..60).map(|v| f64::from(v % 4) - 1.0).collect();
        for change in [0.0_f64, 1e-4, -0.003, 0.01, 0.025] {
            let (gram, other) = (derive(1.5), derive(1.5 * (1.0 + change)));
            let [dual, other] =
                [&gram, &other].map(|gram| Dual::new(gram, [0..30, 30..60], &linear));
            let kernels = [rbf(1.5), rbf(1.5 * (1.0 + change))];
            let series = GammaSeries::new(&dual, &beta, kernels[0], &kernels, &monitor);
            let (series, n_read) = series.expect("not stopped").expect("near");
            assert_eq!(n_read, 45);
            let gradient = |dual: &Dual<'_>| dual.gradient(&beta, &monitor).expect("not stopped").0;
            let found = series.gradient(&gradient(&dual), 1.5 * (1.0 + change));
            for (found, expected) in found.iter().zip(gradient(&other)) {
                assert!(
                    (found - expected).abs() < 1e-6,
                    "{change}: {found} {expected}"
                );
            }
        }
        let gram = derive(1.5);
        let dual = Dual::new(&gram, [0..30, 30..60], &[0.0; 60]);
        for others in [[rbf(1.5), rbf(1.7)], [rbf(1.5), Kernel::Linear]] {
            let series = GammaSeries::new(&dual, &beta, rbf(1.5), &others, &monitor);
            assert!(series.expect("not stopped").is_none());
        }
    }
}
