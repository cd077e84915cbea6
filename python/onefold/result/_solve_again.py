"""Fold models of a result that did not keep them, by a second run of the same engine.

Engines of linear models are fast, and keep no coefficients that nobody asked for: those of
leave-one-out take as much memory as the rows. The result refers to rows of at most `MAX_BYTES`, and
the engine runs again when fold models are needed. The held-out predictions of both runs are
compared, so that rows, targets or an estimator that were changed in between are an error.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ._cv_result import CVResult

__all__ = ["MAX_BYTES", "can_solve_again", "solved_again"]

ENGINES = ("virtual", "newton", "path")

MAX_BYTES = 2**25
"""Rows that a result refers to: 32 MB."""

MAX_DIFFERENCE = 1e-6
"""Between the predictions of both runs, relative to the largest; certified ones may differ more."""


def can_solve_again(engine: str, X: Any) -> bool:
    """Whether a result of an engine refers to its rows.

    Examples
    --------
    >>> import numpy as np
    >>> from onefold.result._solve_again import can_solve_again
    >>> can_solve_again("virtual", np.ones((9, 2))), can_solve_again("tree", np.ones((9, 2)))
    (True, False)
    >>> can_solve_again("virtual", "rows.libsvm"), can_solve_again("virtual", np.ones((10**6, 9)))
    (False, False)
    """
    shape: Any = getattr(X, "shape", ())
    if engine not in ENGINES or len(shape) != 2:
        return False
    n_values = getattr(X, "nnz", None)
    return bool(8 * (shape[0] * shape[1] if n_values is None else 2 * n_values) <= MAX_BYTES)


def solved_again(result: CVResult, run: Callable[[], CVResult]) -> Any:
    """The fitted estimators of the folds of a result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were shown by the first run
        try:
            again = run()
        except ValueError as error:
            raise ValueError(
                f"predict_with_folds needs the fitted estimators of the folds, and {error}: "
                "cross_validate(..., return_estimator=True, engine='auto') keeps them"
            ) from error
    if not _are_equal(result, again):
        raise ValueError(
            "predict_with_folds solves the folds again, and their predictions are not those of "
            "this result: X, y or the estimator were changed since; "
            "cross_validate(..., return_estimator=True) keeps the models"
        )
    return again["estimator"]


def _are_equal(result: CVResult, again: CVResult) -> bool:
    """Whether two runs have the same held-out predictions, to the accuracy of the engine."""
    name = "decision_function" if "decision_function" in again._answers else "predict"
    first, second = (np.asarray(one._answers.get(name)) for one in (result, again))
    if first.shape != second.shape:
        return False
    if first.dtype.kind != "f":
        return bool(np.array_equal(first, second))
    tol = MAX_DIFFERENCE * float(np.abs(first).max(initial=0.0))
    if result.certificates is not None:
        tol = max(tol, 2 * result.certificates.epsilon)
    return bool(np.abs(first - second).max(initial=0.0) <= tol)
