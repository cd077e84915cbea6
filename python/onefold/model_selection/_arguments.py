"""From the arguments of a function to one task: checks, routing, folds and weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import check_scoring
from sklearn.utils import indexable

from .._engines import Data, Task
from .._inputs.data import as_weights, check_no_dates
from .._inputs.files import names_files
from .._inputs.folds import resolve_cv
from .._inputs.routing import is_routing, route, take_weights
from .._sklearn_compat import _num_samples

__all__ = ["check_has_fit", "make_task", "unknown_keyword"]


def make_task(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    responses: tuple[str, ...] | None,
    cv: Any,
    scoring: Any = None,
    required: str | None = None,
    groups: Any,
    sample_weight: Any = None,
    weighted_scores: bool = False,
    params: dict[str, Any] | None,
    verbose: int,
    owner: str | None = None,
    fit_method: str = "fit",
    keeps_order: bool = False,
    **keywords: Any,
) -> Task:
    """Check and route the arguments of a function, and put them into one task.

    ``owner`` is the name of the function, for messages about metadata, which ``fit_method`` of the
    estimator may request; ``keeps_order`` as in `resolve_cv`. Other keywords are those of `Task`.
    """
    check_has_fit(estimator)
    if not (params is None or isinstance(params, Mapping)):
        raise ValueError(f"params must be a dict of arguments of fit, got {params!r}")
    _check(keywords | {"verbose": verbose})
    if names_files(X):
        raise TypeError(f"{owner} takes rows in memory, got X={X!r}; load_libsvm reads files")
    X, y = indexable(X, y)
    if is_regressor(estimator):
        check_no_dates(y)
    if not is_routing():
        _, groups = indexable(X, groups)
    n_samples = _num_samples(X)
    is_routed = is_routing() and required is None
    scorer = check_scoring(estimator, scoring=scoring) if is_routed else None
    given = dict(params or {})
    owner = owner or ("cross_val_predict" if required else "cross_validate")
    consumers = {"estimator": estimator, "cv": cv, "scorer": scorer}
    routed = route(given, owner=owner, groups=groups, fit_method=fit_method, **consumers)
    kind: dict[str, bool] = {"classifier": is_classifier(estimator), "keeps_order": keeps_order}
    folds = resolve_cv(cv, X, y, **kind, **routed.split)
    weights = as_weights(_only_one(sample_weight, take_weights(estimator, routed.fit)), n_samples)
    if required is not None and not _is_permutation(folds.rows, n_samples):
        raise ValueError("cross_val_predict only works for partitions; see cross_validate")
    return Task.of(
        estimator,
        Data(X, y, weights, keywords["n_jobs"]),
        folds,
        routed,
        scoring=scoring,
        scorer=scorer,
        required=required,
        responses=responses,
        weighted_scores=weighted_scores,
        **keywords,
    )


def check_has_fit(estimator: Any) -> None:
    """Raise an error that says what to do, unless an estimator has ``fit``.

    Examples
    --------
    >>> from onefold.model_selection._arguments import check_has_fit
    >>> check_has_fit("ridge")
    Traceback (most recent call last):
    TypeError: estimator must have a fit method, got 'ridge'
    """
    if hasattr(estimator, "fit"):
        return
    advice = ""
    if hasattr(estimator, "partial_fit"):
        advice = (
            ": add fit(X, y) as one pass of partial_fit, as in the example of "
            "onefold.IncrementalLearner"
        )
    elif hasattr(estimator, "learn_one"):
        advice = (
            ": wrap it in onefold.OneRowClassifier or OneRowRegressor, or make it an "
            "onefold.IncrementalLearner"
        )
    raise TypeError(f"estimator must have a fit method, got {estimator!r}{advice}")


def unknown_keyword(function: str, names: Iterable[str]) -> TypeError:
    """The error for keywords that a function does not have.

    Examples
    --------
    >>> from onefold.model_selection._arguments import unknown_keyword
    >>> unknown_keyword("cross_validate", ["fit_params"])
    TypeError("cross_validate() got an unexpected keyword argument 'fit_params': use params=")
    """
    name = next(iter(names))
    text = f"{function}() got an unexpected keyword argument {name!r}"
    return TypeError(f"{text}: use params=" if name == "fit_params" else text)


def _is_permutation(rows: NDArray[np.int64], n_samples: int) -> bool:
    """Whether every sample is held out exactly once."""
    return len(rows) == n_samples and bool((np.bincount(rows, minlength=n_samples) == 1).all())


def _only_one(sample_weight: Any, among: Any) -> Any:
    """The weights, which are an argument or among the parameters of ``fit``, but not both."""
    if sample_weight is not None and among is not None:
        raise ValueError("sample_weight is passed twice: by itself and in params")
    return sample_weight if among is None else among


def _check(keywords: dict[str, Any]) -> None:
    """Raise an error for a bad argument, whether or not the engine uses it."""
    n_jobs, error_score = keywords["n_jobs"], keywords["error_score"]
    if not isinstance(keywords["verbose"], Real):
        raise ValueError(f"verbose must be a number, got {keywords['verbose']!r}")
    if not (n_jobs is None or isinstance(n_jobs, Integral)):
        raise ValueError(f"n_jobs must be a whole number or None, got {n_jobs!r}")
    if not (isinstance(error_score, Real) or error_score == "raise"):
        raise ValueError(f"error_score must be a number or 'raise', got {error_score!r}")
