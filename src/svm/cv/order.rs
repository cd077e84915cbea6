//! The order in which a grid is visited: coarse to fine.
//!
//! # Problem
//! A search that is interrupted keeps the candidates that are finished. They should cover the grid,
//! instead of one of its corners.
//!
//! # Method
//! C paths, by increasing γ, are visited in the order of the van der Corput sequence: after any
//! number of visits, those that are finished are spread evenly. Of a large grid, two C of each of
//! the first four paths come before everything else. The order does not depend on when the search
//! ends, and neither do its results.
//!
//! # Cost
//! A visit derives its kernel matrix, so paths that are visited twice have theirs derived twice.
//!
//! # References
//! van der Corput (1935), *Verteilungsfunktionen*.

use super::CPath;
use crate::svm::kernel::Kernel;

/// Number of candidates from which a few are visited first.
const LARGE_GRID: usize = 36;

/// Paths visited first in a large grid, and candidates of each.
const COARSE: (usize, usize) = (4, 2);

/// The stages of a family, each a list of visits that may run at the same time. A visit solves some
/// candidates of one path, by increasing C.
pub(super) fn stages(mut paths: Vec<CPath<'_>>) -> Vec<Vec<CPath<'_>>> {
    let gamma = |path: &CPath<'_>| gamma(path[0].1.candidate.kernels[0]);
    paths.sort_by(|a, b| gamma(a).total_cmp(&gamma(b)));
    let mut paths = permuted(paths);
    let n_candidates: usize = paths.iter().map(Vec::len).sum();
    let (n_paths, n_steps) = COARSE;
    if n_candidates < LARGE_GRID || paths.len() <= n_paths {
        return vec![paths];
    }
    let coarse = paths.iter_mut().take(n_paths).map(|path| {
        let mut order = permuted((0..path.len()).collect());
        order.truncate(n_steps);
        let steps = std::mem::take(path).into_iter().enumerate();
        let (first, rest): (Vec<_>, Vec<_>) = steps.partition(|(step, _)| order.contains(step));
        *path = rest.into_iter().map(|(_, candidate)| candidate).collect();
        first.into_iter().map(|(_, candidate)| candidate).collect()
    });
    let coarse = coarse.collect();
    paths.retain(|path| !path.is_empty());
    vec![coarse, paths]
}

fn gamma(kernel: Kernel) -> f64 {
    match kernel {
        Kernel::Rbf { gamma } | Kernel::Poly { gamma, .. } | Kernel::Sigmoid { gamma, .. } => gamma,
        Kernel::Linear | Kernel::Precomputed | Kernel::SquaredDistance => 0.0,
    }
}

/// The items in the order of the van der Corput sequence of their number.
fn permuted<T>(items: Vec<T>) -> Vec<T> {
    let n = items.len();
    if n < 2 {
        return items;
    }
    let bits = n.next_power_of_two().trailing_zeros();
    let reversed = |i: usize| i.reverse_bits() >> (usize::BITS - bits);
    let mut order: Vec<usize> = (0..1_usize << bits).map(reversed).collect();
    // Numbers of a power of two, scaled to those of the items: equal ones are dropped.
    let mut is_taken = vec![false; n];
    for number in &mut order {
        *number = (*number * n) >> bits;
    }
    order.retain(|&number| !std::mem::replace(&mut is_taken[number], true));
    let mut items: Vec<Option<T>> = items.into_iter().map(Some).collect();
    let taken = order.into_iter().filter_map(|number| items[number].take());
    taken.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_is_spread_from_the_start() {
        for n in 0..40 {
            let order = permuted((0..n).collect());
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..n).collect::<Vec<_>>(), "{n}");
        }
        assert_eq!(permuted((0..10).collect()), [0, 5, 2, 7, 1, 6, 3, 8, 4, 9]);
        assert_eq!(permuted((0..3).collect()), [0, 1, 2]);
    }
}
