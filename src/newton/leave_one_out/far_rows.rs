//! The few rows that are by far the farthest from the others.
//!
//! # Problem
//! Along a step Δ, |x_jᵀΔ| is at most √h_j‖Δ‖, and the largest h_j decides the bound of every step. The rows
//! of a rare category, all of one class, may have an h_j of 10⁵, although hardly any step changes their
//! predictors.
//!
//! # Method
//! These rows are the first of the order by h_j, before its largest gap. For them |x_jᵀΔ| is computed, which
//! takes O(np) for each; the largest h of the others serves for the rest.

/// Rows with the largest h that are looked at one by one, at most.
const MAX_ROWS: usize = 16;

/// The least factor between the h of far rows and those of others.
const MIN_GAP: f64 = 4.0;

/// Rows with by far the largest h.
#[derive(Debug, PartialEq)]
pub(super) struct FarRows {
    pub(super) rows: Vec<usize>,
    /// The largest h of the others.
    pub(super) h_near: f64,
}

impl FarRows {
    pub(super) fn of(h: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..h.len()).collect();
        let by_h = |a: &usize, b: &usize| h[*b].total_cmp(&h[*a]).then(a.cmp(b));
        if order.len() > MAX_ROWS + 1 {
            order.select_nth_unstable_by(MAX_ROWS, by_h);
            order.truncate(MAX_ROWS + 1);
        }
        order.sort_unstable_by(by_h);
        let gap = |n: usize| h[order[n - 1]] / h[order[n]];
        let n_far = (1..order.len())
            .filter(|&n| gap(n) >= MIN_GAP)
            .max_by(|&a, &b| gap(a).total_cmp(&gap(b)))
            .unwrap_or(0);
        Self {
            h_near: order.get(n_far).map_or(0.0, |&row| h[row]),
            rows: order[..n_far].to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_rows_end_at_the_largest_gap() {
        let mut h = vec![0.1; 100];
        h[7] = 50.0;
        h[3] = 60.0;
        h[9] = 0.5;
        let far = FarRows::of(&h);
        assert_eq!((far.rows, far.h_near), (vec![3, 7], 0.5));
    }

    #[test]
    fn rows_that_are_alike_are_not_far() {
        for h in [vec![], vec![1.0], vec![1.0; 40], vec![0.0; 5]] {
            let largest = h.first().copied().unwrap_or(0.0);
            let near = FarRows {
                rows: vec![],
                h_near: largest,
            };
            assert_eq!(FarRows::of(&h), near);
        }
    }
}
