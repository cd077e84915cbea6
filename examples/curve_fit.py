"""Prediction intervals for a curve fitted by ``scipy.optimize.curve_fit``, without fitting again.

`onefold.virtual_cv` computes the parameters and the residual of every left-out observation from
the Jacobian at the solution. From these follow jackknife standard errors of the parameters and
jackknife+ intervals for new observations. Some observations are left out for real, to check the
linearisation: a ``LinearizationWarning`` would tell if it were off.

Run it with ``python examples/curve_fit.py``.
"""

import math

import numpy as np
from scipy.optimize import curve_fit

import onefold


def decay(t, height, rate, base):
    """An exponential decay to a base line."""
    return height * np.exp(-rate * t) + base


truth = (2.5, 1.3, 0.5)
random = np.random.default_rng(0)
t = random.uniform(0, 4, 150)
y = decay(t, *truth) + 0.1 * random.standard_normal(len(t))

fit = curve_fit(decay, t, y, p0=(1, 1, 1), full_output=True)
parameters, covariance = fit[0], fit[1]
found = onefold.virtual_cv(fit, cv="loo", fun=lambda theta: decay(t, *theta) - y, check=10)
print(found)

# Standard errors: those of curve_fit assume one variance for all observations, the jackknife's
# do not.
n = len(t)
jackknife = np.sqrt((n - 1) * found.parameters.var(axis=0))
print("\nparameter   truth      fit   curve_fit's error   jackknife error")
names = ("height", "rate", "base")
errors = np.sqrt(np.diag(covariance))
for row in zip(names, truth, parameters, errors, jackknife, strict=True):
    print("{:9s} {:7.3f} {:8.4f} {:19.4f} {:17.4f}".format(*row))


def jackknife_plus(new, alpha=0.1):
    """Return the lower and upper ends of intervals for observations at new times.

    Every left-out model predicts, plus or minus the size of the residual that it was left out for.
    """
    centres = decay(new[:, None], *found.parameters.T)
    sizes = np.abs(found.residuals)
    rank = math.floor(alpha * (n + 1))
    low = np.sort(centres - sizes, axis=1)[:, rank - 1]
    high = np.sort(centres + sizes, axis=1)[:, -rank]
    return low, high


print("\n    t    fitted   90 % interval of a new observation")
times = np.linspace(0, 4, 5)
for time, low, high in zip(times, *jackknife_plus(times), strict=True):
    print(f"{time:5.1f} {decay(time, *parameters):9.3f}   from {low:.3f} to {high:.3f}")

new = random.uniform(0, 4, 10_000)
observed = decay(new, *truth) + 0.1 * random.standard_normal(len(new))
low, high = jackknife_plus(new)
covered = np.mean((low <= observed) & (observed <= high))
print(f"\n{covered:.1%} of 10 000 new observations are in their interval.")
print("Asked for were 90 %; jackknife+ guarantees 80 %, on average over data sets.")
