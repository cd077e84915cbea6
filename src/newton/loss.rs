//! Convex losses of a linear predictor, with their derivatives.

use crate::runtime::simd::{self, Simd, WithSimd};
use crate::{Error, Result};

/// ℓ(y, z) of a target y and a linear predictor z: convex in z, with a second derivative almost
/// everywhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// ln(1 + eᶻ) − yz for y in [0, 1].
    Logistic,
    /// Half of the Tweedie deviance with mean eᶻ and a power from 1 (Poisson) to 2 (gamma).
    Tweedie {
        /// The variance is the mean to this power.
        power: f64,
    },
    /// (y − z)²/2.
    HalfSquared,
    /// max(0, 1 − yz)² for y = ±1.
    SquaredHinge,
    /// max(0, |y − z| − ε)².
    SquaredEpsilonInsensitive {
        /// ε.
        epsilon: f64,
    },
}

impl Loss {
    /// Checks the parameters of the loss, of which it is convex.
    pub(crate) fn check(self) -> Result<()> {
        match self {
            Self::Tweedie { power } if !(1.0..=2.0).contains(&power) => Err(Error::parameter(
                "power",
                "from 1 to 2, where the deviance is convex",
                power,
            )),
            Self::SquaredEpsilonInsensitive { epsilon }
                if !(epsilon.is_finite() && epsilon >= 0.0) =>
            {
                Err(Error::parameter(
                    "epsilon",
                    "finite and not negative",
                    epsilon,
                ))
            }
            _ => Ok(()),
        }
    }

    /// Whether the loss is defined for a target.
    pub(crate) fn is_target(self, y: f64) -> bool {
        match self {
            Self::Logistic => (0.0..=1.0).contains(&y),
            Self::Tweedie { power: 2.0 } => y > 0.0,
            Self::Tweedie { .. } => y >= 0.0,
            Self::HalfSquared | Self::SquaredEpsilonInsensitive { .. } => true,
            Self::SquaredHinge => y.abs() == 1.0,
        }
    }

    /// Which targets the loss is defined for.
    pub(crate) fn target_rule(self) -> &'static str {
        match self {
            Self::Logistic => "targets of the logistic loss are from 0 to 1",
            Self::Tweedie { power: 2.0 } => "targets of the gamma deviance are positive",
            Self::Tweedie { .. } => "targets of the Tweedie deviance are not negative",
            Self::HalfSquared | Self::SquaredEpsilonInsensitive { .. } => "targets are numbers",
            Self::SquaredHinge => "targets of the squared hinge are -1 or 1",
        }
    }

    /// ∂ℓ/∂z into `first`, and ∂²ℓ/∂z² into `second`, for each target and predictor.
    ///
    /// # Panics
    /// When the lengths differ.
    pub(crate) fn derivatives(self, y: &[f64], z: &[f64], first: &mut [f64], second: &mut [f64]) {
        assert!(y.len() == z.len() && y.len() == first.len() && y.len() == second.len());
        match self {
            Self::Logistic => each(y, z, first, second, Logistic),
            Self::Tweedie { power: 1.0 } => each(y, z, first, second, Poisson),
            Self::Tweedie { power: 2.0 } => each(y, z, first, second, Gamma),
            Self::Tweedie { power } => each(y, z, first, second, Tweedie { power }),
            Self::HalfSquared => each(y, z, first, second, HalfSquared),
            Self::SquaredHinge => each(y, z, first, second, SquaredHinge),
            Self::SquaredEpsilonInsensitive { epsilon } => {
                each(y, z, first, second, EpsilonInsensitive { epsilon });
            }
        }
    }

    /// The constant predictor that fits targets of a mean, or one near it.
    pub(crate) fn constant(self, mean: f64) -> f64 {
        match self {
            Self::Logistic => {
                let mean = mean.clamp(1e-9, 1.0 - 1e-9);
                (mean / (1.0 - mean)).ln()
            }
            Self::Tweedie { .. } => mean.max(f64::MIN_POSITIVE).ln(),
            Self::HalfSquared | Self::SquaredHinge | Self::SquaredEpsilonInsensitive { .. } => mean,
        }
    }

    /// M of |ℓ'''| ≤ M·ℓ'' and |ℓ''''| ≤ M²·ℓ'' (generalised self-concordance); `None` for losses with kinks in their
    /// derivative.
    pub(crate) fn self_concordance(self) -> Option<f64> {
        match self {
            Self::Logistic | Self::Tweedie { .. } => Some(1.0),
            Self::HalfSquared => Some(0.0),
            Self::SquaredHinge | Self::SquaredEpsilonInsensitive { .. } => None,
        }
    }

    /// |ℓ'''|/ℓ'' of a smooth loss, or more.
    pub(crate) fn skewness(self, z: f64) -> f64 {
        match self {
            Self::Logistic => (z.abs() / 2.0).tanh(),
            Self::Tweedie { .. } => 1.0,
            Self::HalfSquared | Self::SquaredHinge | Self::SquaredEpsilonInsensitive { .. } => 0.0,
        }
    }

    /// How far a predictor is from where the second derivative jumps; infinity if it does not.
    pub(crate) fn jump_distance(self, y: f64, z: f64) -> f64 {
        match self {
            Self::Logistic | Self::Tweedie { .. } | Self::HalfSquared => f64::INFINITY,
            Self::SquaredHinge => (1.0 - y * z).abs(),
            Self::SquaredEpsilonInsensitive { epsilon } => ((y - z).abs() - epsilon).abs(),
        }
    }

    /// Whether the sign of a predictor is a class.
    pub(crate) fn decides_by_sign(self) -> bool {
        matches!(self, Self::Logistic | Self::SquaredHinge)
    }

    /// Whether predictors have the unit of targets.
    pub(crate) fn has_unit_of_targets(self) -> bool {
        matches!(
            self,
            Self::HalfSquared | Self::SquaredEpsilonInsensitive { .. }
        )
    }
}

/// One loss, known at compile time.
trait Derivatives: Copy {
    /// ∂ℓ/∂z and ∂²ℓ/∂z².
    fn at<S: Simd>(self, y: f64, z: f64) -> (f64, f64);
}

#[derive(Clone, Copy)]
struct Logistic;

impl Derivatives for Logistic {
    #[inline(always)]
    fn at<S: Simd>(self, y: f64, z: f64) -> (f64, f64) {
        // e^−|z| does not overflow, and both tails keep their relative accuracy.
        let tail = simd::exp::<S>(-z.abs());
        let upper = 1.0 / (1.0 + tail);
        let lower = tail * upper;
        let mean = if z >= 0.0 { upper } else { lower };
        (mean - y, lower * upper)
    }
}

#[derive(Clone, Copy)]
struct Poisson;

impl Derivatives for Poisson {
    #[inline(always)]
    fn at<S: Simd>(self, y: f64, z: f64) -> (f64, f64) {
        let mean = simd::exp::<S>(z);
        (mean - y, mean)
    }
}

#[derive(Clone, Copy)]
struct Gamma;

impl Derivatives for Gamma {
    #[inline(always)]
    fn at<S: Simd>(self, y: f64, z: f64) -> (f64, f64) {
        let ratio = y * simd::exp::<S>(-z);
        (1.0 - ratio, ratio)
    }
}

#[derive(Clone, Copy)]
struct Tweedie {
    power: f64,
}

impl Derivatives for Tweedie {
    #[inline(always)]
    fn at<S: Simd>(self, y: f64, z: f64) -> (f64, f64) {
        let (a, b) = (2.0 - self.power, 1.0 - self.power);
        let (mean, target) = (simd::exp::<S>(a * z), y * simd::exp::<S>(b * z));
        (mean - target, a * mean - b * target)
    }
}

#[derive(Clone, Copy)]
struct HalfSquared;

impl Derivatives for HalfSquared {
    #[inline(always)]
    fn at<S: Simd>(self, y: f64, z: f64) -> (f64, f64) {
        (z - y, 1.0)
    }
}

#[derive(Clone, Copy)]
struct SquaredHinge;

impl Derivatives for SquaredHinge {
    #[inline(always)]
    fn at<S: Simd>(self, y: f64, z: f64) -> (f64, f64) {
        let slack = (1.0 - y * z).max(0.0);
        (-2.0 * y * slack, if slack > 0.0 { 2.0 } else { 0.0 })
    }
}

#[derive(Clone, Copy)]
struct EpsilonInsensitive {
    epsilon: f64,
}

impl Derivatives for EpsilonInsensitive {
    #[inline(always)]
    fn at<S: Simd>(self, y: f64, z: f64) -> (f64, f64) {
        let error = z - y;
        let excess = (error.abs() - self.epsilon).max(0.0);
        let second = if excess > 0.0 { 2.0 } else { 0.0 };
        (2.0 * excess.copysign(error), second)
    }
}

fn each(y: &[f64], z: &[f64], first: &mut [f64], second: &mut [f64], loss: impl Derivatives) {
    simd::dispatch(Each {
        y,
        z,
        first,
        second,
        loss,
    });
}

struct Each<'a, D> {
    y: &'a [f64],
    z: &'a [f64],
    first: &'a mut [f64],
    second: &'a mut [f64],
    loss: D,
}

impl<D: Derivatives> WithSimd for Each<'_, D> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let targets = self.y.iter().zip(self.z);
        let out = self.first.iter_mut().zip(self.second);
        for ((&y, &z), (first, second)) in targets.zip(out) {
            (*first, *second) = self.loss.at::<S>(y, z);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ℓ(y, z), from its definition.
    fn value(loss: Loss, y: f64, z: f64) -> f64 {
        match loss {
            Loss::Logistic => z.max(0.0) + (-z.abs()).exp().ln_1p() - y * z,
            Loss::Tweedie { power: 1.0 } => z.exp() - y * z,
            Loss::Tweedie { power: 2.0 } => z + y * (-z).exp(),
            Loss::Tweedie { power } => {
                let (a, b) = (2.0 - power, 1.0 - power);
                (a * z).exp() / a - y * (b * z).exp() / b
            }
            Loss::HalfSquared => (y - z).powi(2) / 2.0,
            Loss::SquaredHinge => (1.0 - y * z).max(0.0).powi(2),
            Loss::SquaredEpsilonInsensitive { epsilon } => {
                ((y - z).abs() - epsilon).max(0.0).powi(2)
            }
        }
    }

    #[test]
    fn derivatives_are_those_of_the_loss() {
        let step = 1e-4;
        for (loss, y) in [
            (Loss::Logistic, 0.0),
            (Loss::Logistic, 1.0),
            (Loss::Tweedie { power: 1.0 }, 3.0),
            (Loss::Tweedie { power: 1.5 }, 0.7),
            (Loss::Tweedie { power: 2.0 }, 2.5),
            (Loss::HalfSquared, -1.2),
            (Loss::SquaredHinge, 1.0),
            (Loss::SquaredHinge, -1.0),
            (Loss::SquaredEpsilonInsensitive { epsilon: 0.5 }, 0.3),
        ] {
            for z in [-2.3, -0.4, 0.6, 1.9] {
                let (mut first, mut second) = ([0.0], [0.0]);
                loss.derivatives(&[y], &[z], &mut first, &mut second);
                let [below, at, above] = [-step, 0.0, step].map(|d| value(loss, y, z + d));
                let expected = (above - below) / (2.0 * step);
                assert!((first[0] - expected).abs() < 1e-6, "{loss:?} {y} {z}");
                let expected = (above - 2.0 * at + below) / (step * step);
                assert!((second[0] - expected).abs() < 1e-5, "{loss:?} {y} {z}");
            }
        }
    }

    #[test]
    fn extreme_predictors_do_not_overflow() {
        let z = [-1e4, -800.0, 800.0, 1e4];
        let (mut first, mut second) = ([0.0; 4], [0.0; 4]);
        Loss::Logistic.derivatives(&[0.0; 4], &z, &mut first, &mut second);
        assert!(first[0] < 1e-300 && first[3] == 1.0 && second.iter().all(|v| *v < 1e-300));
        Loss::Tweedie { power: 1.0 }.derivatives(&[0.0; 4], &z, &mut first, &mut second);
        assert!(first.iter().chain(&second).all(|v| v.is_finite()));
    }
}
