//! How far one or two Newton steps end from the optimum without one row.
//!
//! # Problem
//! φ minimises F, with the Hessian H = Σ c xxᵀ + Λ, c = wℓ''. Without row i the objective is
//! F_i: the term of the row is gone, and the factors of the other terms and of the penalty may change to
//! 1 + η, |η| ≤ η̂ < 1 (balanced class weights, penalties that grow with the number of rows). The step
//! Δ = −Ĥ⁻¹∇F_i(φ) with Ĥ = H − c_i x_i x_iᵀ ends near the minimum of F_i. The bound is on the predictor
//! of row i: |x_iᵀe| for the distance e that is left.
//!
//! # Notation
//! ‖·‖ is the norm of H, h_j = x_jᵀH⁻¹x_j, k = 1 − c_i h_i. Then Ĥ ≥ kH, and x_jᵀΔ is at most
//! √h_j‖Δ‖.
//!
//! # Method
//! The gradient of F_i that is left after the step has the norm ρ (of Ĥ⁻¹). As Ĥ is at least
//! the sum of c xxᵀ over the other rows, that of Σ r_j x_j is at most the root of Σ r_j²/c_j.
//!
//! *Smooth losses*, |ℓ'''| ≤ Mℓ'' and |ℓ''''| ≤ M²ℓ''. On the way, M|x_jᵀΔ| is at most t = M√h_max‖Δ‖, and
//! what a row adds to the gradient beyond its first derivative is at most ½c_j m_j(t)(x_jᵀΔ)² with
//! m_j(t) = |ℓ'''_j|/ℓ''_j + M(κ(t) − 1), κ(t) = 2(e^t − 1 − t)/t². Therefore
//!
//! ρ ≤ (1 + η̂) · ½‖Δ‖ · √(ΔᵀBΔ) + η̂‖Δ‖,  B = Σ c_j h_j m_j(t)² x_j x_jᵀ.
//!
//! One B with a common t serves all rows: for those with a larger t', m_j(t') is at most m_j(t) times
//! (κ(t') − 1)/(κ(t) − 1).
//!
//! *Far rows.* The few rows with by far the largest h are left out of h_max and of B in these formulas. Their
//! x_jᵀΔ are computed: t is the largest of M√h_near‖Δ‖ and M|x_jᵀΔ|, and their part Σ c_j m_j²(x_jᵀΔ)⁴ is
//! added to ‖Δ‖²ΔᵀBΔ (`leave_one_out::far_rows`).
//!
//! They shrink further on the way to the optimum, by at most e^(−MR‖e‖) with R = √(h_max/k); therefore
//!
//! ‖e‖ ≤ −ln(1 − ρMRe^t/(1 − η̂)) / (MR),  |x_iᵀe| ≤ √(h_i/k)·‖e‖  (both in the norm of Ĥ).
//!
//! *Losses whose second derivative jumps by 2w at a distance of m_j from z_j.* Only rows with
//! m_j/√h_j < ‖Δ‖ may reach their jump, and leave a gradient of at most 2w_j(√h_j‖Δ‖ − m_j):
//!
//! ρ ≤ (1 + η̂) · Σ 2w_j(√h_j‖Δ‖ − m_j)√(h_j/k) + η̂‖Δ‖.
//!
//! Within the distance 2ρ/(1 − η̂) of the end of the step, rows that may jump take at most
//! τ = Σ c_j h_j/k of Ĥ; if τ < ½, ‖e‖ ≤ ρ/((1 − η̂)(1 − τ)).
//!
//! *The second step.* Once the gradient g at the end of the step is computed, ρ is known. One more step
//! −Ĥ⁻¹g leaves (I − Ĥ⁻¹H̄)e with a mean Hessian H̄ between the end of the first step and the optimum. It
//! is at most (1 + η̂)e^(t + MR‖e‖)Ĥ, or (1 + η̂)(1 + σ)Ĥ with σ = Σ 2w_j h_j/k over the rows that may jump;
//! what is left is ‖e‖ times that less 1.

/// The step that leaves out one row.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeaveOutStep {
    /// h_i.
    pub(super) h: f64,
    /// k = 1 − c_i h_i.
    pub(super) kept: f64,
    /// ‖Δ‖, or more.
    pub(super) norm: f64,
    /// √(ΔᵀBΔ), or more.
    pub(super) weighted_norm: f64,
    /// What the step does to far rows.
    pub(super) far: FarEffect,
    /// η̂.
    pub(super) change: f64,
}

/// What a step does to the far rows: nothing, where there are none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FarEffect {
    /// The largest |x_jᵀΔ|.
    pub(super) reach: f64,
    /// √(Σ c_j m_j²(x_jᵀΔ)⁴).
    pub(super) left: f64,
}

/// Bounds on the error of steps, from what the rows have in common.
#[derive(Debug)]
pub(super) enum Certificate {
    /// |ℓ'''| ≤ Mℓ''.
    Smooth {
        /// M.
        concordance: f64,
        /// The largest h.
        h_max: f64,
        /// The largest h of rows that are not far.
        h_near: f64,
        /// κ(t) − 1 in B.
        excess: f64,
    },
    /// ℓ'' jumps.
    Jumps(Jumps),
}

impl Certificate {
    /// Bounds the error of the predictor of the row that is left out; infinity if nothing is known.
    pub(super) fn bound(&self, step: &LeaveOutStep) -> f64 {
        if step.norm == 0.0 {
            return 0.0;
        }
        step.of_predictor(self.distance(step, self.gradient_left(step)))
    }

    /// The same at the end of the step, and at the end of one more step with the same factor, from the
    /// norm of the gradient at the end of the first.
    pub(super) fn bounds_after_gradient(&self, step: &LeaveOutStep, left: f64) -> [f64; 2] {
        let distance = self.distance(step, left);
        let factor = self.contraction(step, distance);
        [distance, factor * distance].map(|distance| step.of_predictor(distance))
    }

    /// Bounds ρ.
    fn gradient_left(&self, step: &LeaveOutStep) -> f64 {
        let left = match self {
            Self::Smooth {
                concordance,
                h_near,
                excess,
                ..
            } => {
                let step_excess = kappa_excess(concordance * h_near.sqrt() * step.norm);
                let growth = if step_excess > *excess {
                    step_excess / excess
                } else {
                    1.0
                };
                0.5 * (growth * step.norm * step.weighted_norm).hypot(step.far.left)
            }
            Self::Jumps(jumps) => {
                let [squares, margins, _] = jumps.within(step.norm);
                // The sums are rounded: what is left is not negative.
                (step.norm * squares - margins).max(0.0) / step.kept.sqrt()
            }
        };
        (1.0 + step.change) * left + step.change * step.norm
    }

    /// Bounds ‖e‖, from ρ.
    fn distance(&self, step: &LeaveOutStep, left: f64) -> f64 {
        let left = left / (1.0 - step.change);
        match self {
            Self::Smooth {
                concordance,
                h_max,
                h_near,
                ..
            } => {
                let left = left * (concordance * step.reach(*h_near)).exp();
                let rate = concordance * (h_max / step.kept).sqrt();
                let x = left * rate;
                if x >= 1.0 {
                    f64::INFINITY
                } else if x < 1e-8 {
                    left * (1.0 + x)
                } else {
                    -(-x).ln_1p() / rate
                }
            }
            Self::Jumps(jumps) => {
                let [_, _, lost] = jumps.within(step.norm + 2.0 * left / step.kept.sqrt());
                let lost = lost / step.kept;
                if lost < 0.5 {
                    left / (1.0 - lost)
                } else {
                    f64::INFINITY
                }
            }
        }
    }

    /// Bounds ‖I − Ĥ⁻¹H̄‖.
    fn contraction(&self, step: &LeaveOutStep, distance: f64) -> f64 {
        let growth = match self {
            Self::Smooth {
                concordance,
                h_max,
                h_near,
                ..
            } => {
                let rest = (h_max / step.kept).sqrt() * distance;
                (concordance * (step.reach(*h_near) + rest)).exp()
            }
            Self::Jumps(jumps) => {
                let [squares, ..] = jumps.within(step.norm + distance / step.kept.sqrt());
                1.0 + squares / step.kept
            }
        };
        (1.0 + step.change) * growth - 1.0
    }
}

impl LeaveOutStep {
    /// Bounds |x_jᵀΔ| of all rows, from the largest h of those that are not far.
    fn reach(&self, h_near: f64) -> f64 {
        (h_near.sqrt() * self.norm).max(self.far.reach)
    }

    /// Bounds the error of the predictor from ‖e‖.
    fn of_predictor(&self, distance: f64) -> f64 {
        let bound = (self.h / self.kept).sqrt() * distance;
        // Comparisons are false for NaN.
        let is_known = self.kept > 0.0 && self.change < 1.0 && self.norm.is_finite();
        if is_known && bound >= 0.0 {
            bound
        } else {
            f64::INFINITY
        }
    }
}

/// κ(t) − 1 = 2(e^t − 1 − t)/t² − 1.
pub(super) fn kappa_excess(t: f64) -> f64 {
    if t < 1e-2 {
        // The next term of the series is t⁴/360.
        t / 3.0 + t * t / 12.0 + t.powi(3) / 59.0
    } else {
        2.0 * (t.exp_m1() - t) / (t * t) - 1.0
    }
}

/// The rows by how far a step must go until their second derivative may jump.
#[derive(Debug)]
pub(super) struct Jumps {
    /// m/√h in increasing order.
    reach: Vec<f64>,
    /// Sums of 2wh, of 2wm√h and of ch over the first rows of this order.
    sums: Vec<[f64; 3]>,
}

impl Jumps {
    /// Of rows (m, h, w, c).
    pub(super) fn new(rows: impl Iterator<Item = (f64, f64, f64, f64)>) -> Self {
        let mut rows: Vec<_> = rows
            .filter(|&(_, h, weight, _)| h > 0.0 && weight > 0.0)
            .map(|(m, h, weight, c)| {
                let terms = [2.0 * weight * h, 2.0 * weight * m * h.sqrt(), c * h];
                (m / h.sqrt(), terms)
            })
            .collect();
        rows.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut total = [0.0; 3];
        let mut sums = vec![total];
        for (_, terms) in &rows {
            total = std::array::from_fn(|i| total[i] + terms[i]);
            sums.push(total);
        }
        Self {
            reach: rows.iter().map(|row| row.0).collect(),
            sums,
        }
    }

    /// The sums over the rows that a step of this length may reach.
    fn within(&self, length: f64) -> [f64; 3] {
        self.sums[self.reach.partition_point(|&reach| reach < length)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: LeaveOutStep = LeaveOutStep {
        h: 0.2,
        kept: 0.9,
        norm: 0.1,
        weighted_norm: 0.02,
        far: FarEffect {
            reach: 0.0,
            left: 0.0,
        },
        change: 0.0,
    };

    #[test]
    fn no_step_has_no_error_and_no_row_no_bound() {
        let smooth = Certificate::Smooth {
            concordance: 1.0,
            h_max: 0.5,
            h_near: 0.5,
            excess: 0.05,
        };
        let nothing = LeaveOutStep { norm: 0.0, ..STEP };
        assert_eq!(smooth.bound(&nothing), 0.0);
        for step in [
            LeaveOutStep { kept: 0.0, ..STEP },
            LeaveOutStep {
                kept: f64::NAN,
                ..STEP
            },
            LeaveOutStep {
                change: 1.0,
                ..STEP
            },
            LeaveOutStep {
                norm: 1e300,
                ..STEP
            },
        ] {
            assert_eq!(smooth.bound(&step), f64::INFINITY, "{step:?}");
        }
    }

    #[test]
    fn bounds_are_continuous_and_grow_with_the_step() {
        for concordance in [1e-9, 1.0] {
            let smooth = Certificate::Smooth {
                concordance,
                h_max: 0.5,
                h_near: 0.5,
                excess: 0.05,
            };
            let mut last = 0.0;
            for i in 1..4000 {
                let scale = f64::from(i) * 1e-4;
                let step = LeaveOutStep {
                    norm: scale,
                    weighted_norm: 0.2 * scale,
                    change: 0.01,
                    ..STEP
                };
                let bound = smooth.bound(&step);
                assert!(bound > last && bound < last * 1.2 + 1e-5, "{bound} {last}");
                last = bound;
            }
        }
    }

    #[test]
    fn far_rows_make_bounds_larger_by_what_the_step_does_to_them() {
        let [far, near] = [0.5, 0.1].map(|h_near| Certificate::Smooth {
            concordance: 1.0,
            h_max: 0.5,
            h_near,
            excess: 0.05,
        });
        assert!(near.bound(&STEP) < far.bound(&STEP));
        for effect in [
            FarEffect {
                reach: 0.1,
                left: 0.0,
            },
            FarEffect {
                reach: 0.0,
                left: 1e-3,
            },
        ] {
            let step = LeaveOutStep {
                far: effect,
                ..STEP
            };
            assert!(near.bound(&step) > near.bound(&STEP), "{effect:?}");
        }
    }

    #[test]
    fn squares_have_no_error() {
        let squares = Certificate::Smooth {
            concordance: 0.0,
            h_max: 0.5,
            h_near: 0.5,
            excess: 0.05,
        };
        let step = LeaveOutStep {
            weighted_norm: 0.0,
            ..STEP
        };
        assert_eq!(squares.bound(&step), 0.0);
    }

    #[test]
    fn steps_that_reach_no_jump_are_exact() {
        // Reaches of 0.5 and 2.
        let rows = [(0.5, 1.0, 1.0, 0.0), (2.0, 1.0, 1.0, 0.1)];
        let jumps = Certificate::Jumps(Jumps::new(rows.into_iter()));
        assert_eq!(jumps.bound(&STEP), 0.0);
        let far = LeaveOutStep { norm: 0.6, ..STEP };
        let left = 2.0 * 0.1 / 0.9_f64.sqrt();
        assert!((jumps.bound(&far) - (0.2_f64 / 0.9).sqrt() * left).abs() < 1e-15);
    }
}
