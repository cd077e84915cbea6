"""What each engine promises of its answers, against those of refits by scikit-learn.

`PROMISES` are differences of well-conditioned problems. Where one is exceeded, the equations of the
fold say what rounding may do to the engines that solve them directly (`rounding`), and the value
of the objective says whose solution of an iterative engine is the better one (`is_optimum`).
"""

import math

from onefold.learners import GaussianNB, RidgeStatistics

BITS, ROUNDING, TOLERANCE, STABILITY = 0.0, 1e-9, 1e-5, math.inf
PROMISES = {
    "merge": ROUNDING,
    "virtual": ROUNDING,
    "newton": TOLERANCE,
    "path": TOLERANCE,
    "seeded": TOLERANCE,
    "neighbors": 1e-12,
    "forest": BITS,
    "bag": STABILITY,
    "tree": STABILITY,
    "refit": BITS,
}
"""The largest difference from refits, relative to the spread of what is predicted."""
ANY_ORDER = (GaussianNB, RidgeStatistics)
"""Incremental learners whose trees have the predictions of refits, to rounding."""


def promised(case, engine):
    """The promise of the engine that ran."""
    if engine == "tree" and isinstance(case.estimator, ANY_ORDER):
        return ROUNDING
    promise = PROMISES[engine]
    if case.rows.form == "float32":
        return max(promise, TOLERANCE)  # scikit-learn computes some of it in single precision
    return promise
