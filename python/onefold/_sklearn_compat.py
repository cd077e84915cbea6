"""Every private name of scikit-learn that this package uses, in one place.

# Problem
scikit-learn may rename or remove what begins with an underscore in any version. A package that
imports such names in fifty files, or that reads them with a default, breaks in fifty places, or
goes on silently without them.

# Method
No other module imports a private name of scikit-learn. Imported names keep scikit-learn's names;
private attributes are read by functions. Nothing here has a fallback to other behavior: a missing
name is an error, on import where it is imported, on use otherwise. Names that differ between the
supported versions are resolved here. Each assumption has a test in
``tests/python/test_sklearn_compat.py``, which fails when the name is gone.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Mapping
from copy import copy
from functools import cache, partial
from inspect import signature, unwrap
from types import CodeType, FunctionType
from typing import Any

import sklearn
from sklearn.base import _fit_context
from sklearn.calibration import CalibratedClassifierCV, _fit_classifier_calibrator_pair
from sklearn.ensemble._stacking import _BaseStacking, _fit_single_estimator
from sklearn.linear_model._coordinate_descent import LinearModelCV
from sklearn.linear_model._logistic import LogisticRegressionCV, _log_reg_scoring_path
from sklearn.metrics._scorer import (
    _BaseScorer,
    _check_multimetric_scoring,
    _MultimetricScorer,
    _PassthroughScorer,
)
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.model_selection._search import BaseSearchCV, _yield_masked_array_for_each_param
from sklearn.model_selection._search_successive_halving import (
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
)
from sklearn.model_selection._validation import _translate_train_sizes
from sklearn.neighbors._base import _get_weights
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.fixes import parse_version
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.multiclass import _ovr_decision_function
from sklearn.utils.validation import (
    _check_feature_names,
    _check_method_params,
    _check_response_method,
    _check_sample_weight,
    _num_samples,
)

try:
    from sklearn.ensemble._bootstrap import _get_n_samples_bootstrap
except ImportError:  # before 1.9
    from sklearn.ensemble._forest import _get_n_samples_bootstrap

    _bootstrap_size = _get_n_samples_bootstrap
else:
    _bootstrap_size = partial(_get_n_samples_bootstrap, sample_weight=None)

__all__ = [
    "BAG_SEEDS",
    "REPLACED",
    "STAGES_OF_HISTOGRAMS",
    "BaseSearchCV",
    "HalvingGridSearchCV",
    "HalvingRandomSearchCV",
    "Interval",
    "LinearModelCV",
    "StrOptions",
    "_BaseScorer",
    "_BaseStacking",
    "_MultimetricScorer",
    "_PassthroughScorer",
    "_check_feature_names",
    "_check_method_params",
    "_check_multimetric_scoring",
    "_check_response_method",
    "_check_sample_weight",
    "_fit_classifier_calibrator_pair",
    "_fit_context",
    "_fit_single_estimator",
    "_get_weights",
    "_log_reg_scoring_path",
    "_num_samples",
    "_ovr_decision_function",
    "_safe_indexing",
    "_safe_split",
    "_translate_train_sizes",
    "_yield_masked_array_for_each_param",
    "callbacks_of",
    "check_libsvm_attributes",
    "glm_loss",
    "is_fitted_by_libsvm",
    "keep_glm_loss",
    "libsvm_methods",
    "n_bootstrap_rows",
    "parameter_constraints",
    "pls_scales",
    "score_predictions",
    "scorer_keywords",
    "scorer_metric",
    "scorer_responses",
    "scorer_sign",
    "scorer_subject",
    "scorers_by_name",
    "search_method",
    "sklearn_is_at_least",
    "validate_params",
    "with_keywords",
    "with_replaced_globals",
]


def sklearn_is_at_least(version: str) -> bool:
    """Whether this is a version of scikit-learn, or a later one.

    Examples
    --------
    >>> from onefold._sklearn_compat import sklearn_is_at_least
    >>> sklearn_is_at_least("1.6"), sklearn_is_at_least("99.0.dev0")
    (True, False)
    """
    return bool(parse_version(sklearn.__version__) >= parse_version(version))


# Estimators


def validate_params(estimator: Any) -> None:
    """Check the parameters of an estimator of scikit-learn as its ``fit`` does.

    Estimators without constraints, as those of other packages, check their parameters themselves.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from onefold._sklearn_compat import validate_params
    >>> validate_params(Ridge(alpha=-1.0))
    Traceback (most recent call last):
        ...
    sklearn.utils._param_validation.InvalidParameterError: The 'alpha' parameter of Ridge ...
    """
    if hasattr(estimator, "_parameter_constraints"):
        estimator._validate_params()


def parameter_constraints(kind: type) -> dict[str, Any]:
    """The values that the parameters of an estimator class may have, by name of the parameter."""
    constraints: dict[str, Any] = kind._parameter_constraints  # type: ignore[attr-defined]
    return constraints


def callbacks_of(estimator: Any) -> list[Any]:
    """The callbacks that are set on an estimator; scikit-learn has them from version 1.9 on."""
    return list(getattr(estimator, "_skl_callbacks", ()))


def n_bootstrap_rows(n_rows: int, max_samples: Any) -> int:
    """The number of rows that a forest draws from a training set.

    Examples
    --------
    >>> from onefold._sklearn_compat import n_bootstrap_rows
    >>> n_bootstrap_rows(100, None), n_bootstrap_rows(100, 0.5)
    (100, 50)
    """
    return int(_bootstrap_size(n_rows, max_samples))


def search_method(index: Any) -> str:
    """How an index of nearest neighbors searches: ``"brute"``, ``"kd_tree"`` or ``"ball_tree"``.

    It is empty before the index is fitted.
    """
    return str(getattr(index, "_fit_method", ""))


def pls_scales(fitted: Any) -> tuple[Any, Any]:
    """What a fitted PLS regression divides its features and its targets by."""
    return fitted._x_std, fitted._y_std


def glm_loss(estimator: Any) -> Any:
    """The loss of a generalised linear model: half its deviance, with the link function."""
    return estimator._get_loss()


def keep_glm_loss(estimator: Any) -> None:
    """Set the loss of a generalised linear model, which its ``fit`` sets, too."""
    estimator._base_loss = glm_loss(estimator)


BAG_SEEDS = "_seeds"
"""The attribute of a fitted bag that has the seeds of its members."""

STAGES_OF_HISTOGRAMS = "_predictors"
"""The attribute of fitted gradient boosting of histograms that has its trees."""


# Support vector machines

_LIBSVM_SOLVERS = ("_dense_fit", "_sparse_fit")
_LIBSVM_PARAMETERS = ["X", "y", "sample_weight", "solver_type", "kernel", "random_seed"]
_LIBSVM_ATTRIBUTES = {
    "support_",
    "support_vectors_",
    "_n_support",
    "dual_coef_",
    "intercept_",
    "_probA",
    "_probB",
    "fit_status_",
    "_num_iter",
}


def libsvm_methods(estimator: Any) -> tuple[str, ...]:
    """The methods of a support vector machine that call LIBSVM, with the parameters known here.

    Raises
    ------
    ImportError
        If this version of scikit-learn has others: they cannot be replaced.
    """
    for name in _LIBSVM_SOLVERS:
        method = getattr(estimator, name, None)
        if method is None or list(signature(method).parameters) != _LIBSVM_PARAMETERS:
            raise _unsupported(f"{type(estimator).__name__}.{name} is not the known one")
    return _LIBSVM_SOLVERS


def is_fitted_by_libsvm(estimator: Any) -> bool:
    """Whether a support vector machine has some attribute that LIBSVM sets."""
    return bool(_LIBSVM_ATTRIBUTES & vars(estimator).keys())


def check_libsvm_attributes(estimator: Any, before: set[str]) -> None:
    """Raise an ImportError unless LIBSVM has set just the attributes that are known here.

    Parameters
    ----------
    estimator : estimator
    before : set of str
        The attributes that it had before.
    """
    added = vars(estimator).keys() - before
    if "_gamma" not in before or added != _LIBSVM_ATTRIBUTES:
        differing = sorted((added ^ _LIBSVM_ATTRIBUTES) | ({"_gamma"} - before))
        name = type(estimator).__name__
        raise _unsupported(f"{name}.fit sets other attributes: {', '.join(differing)}")


def _unsupported(what: str) -> ImportError:
    return ImportError(
        f"scikit-learn {sklearn.__version__}: {what}; "
        "install a version of scikit-learn that onefold supports"
    )


# Scorers


def scorer_metric(scorer: Any) -> Callable[..., Any] | None:
    """The metric that a scorer of `make_scorer` computes, None for other scorers.

    Examples
    --------
    >>> from sklearn.metrics import get_scorer
    >>> from onefold._sklearn_compat import scorer_metric
    >>> scorer_metric(get_scorer("accuracy")).__name__
    'accuracy_score'
    """
    return scorer._score_func if isinstance(scorer, _BaseScorer) else None


def scorer_keywords(scorer: Any) -> dict[str, Any]:
    """The keywords that a scorer passes to its metric."""
    return scorer._kwargs if isinstance(scorer, _BaseScorer) else {}


def with_keywords(scorer: Any, **keywords: Any) -> Any:
    """A scorer of `make_scorer` that passes more keywords to its metric."""
    changed = copy(scorer)
    changed._kwargs = scorer_keywords(scorer) | keywords
    return changed


def scorer_sign(scorer: Any) -> int:
    """−1 of a scorer whose metric is a loss, 1 of all others."""
    return int(scorer._sign) if isinstance(scorer, _BaseScorer) else 1


def score_predictions(scorer: Any, estimator: Any, *arguments: Any, **params: Any) -> Any:
    """Score what ``predict`` returns, without the check that ``pos_label`` is one of the classes.

    scikit-learn checks it where it predicts. Of several scorers of predictions only the first
    predicts, and the others read what it has kept.
    """

    def read(estimator: Any, method: str, X: Any, **_: Any) -> Any:
        return getattr(estimator, method)(X)

    return scorer._score(read, estimator, *arguments, **params)


def scorer_responses(scorer: Any) -> tuple[str, ...]:
    """The methods of an estimator whose responses a scorer reads: the first that there is.

    Examples
    --------
    >>> from sklearn.metrics import get_scorer
    >>> from onefold._sklearn_compat import scorer_responses
    >>> scorer_responses(get_scorer("accuracy")), scorer_responses(get_scorer("roc_auc"))
    (('predict',), ('decision_function', 'predict_proba'))
    """
    if not isinstance(scorer, _BaseScorer):
        return ()
    methods: Any = scorer._response_method
    return (methods,) if isinstance(methods, str) else tuple(methods)


def scorer_subject(scorer: _PassthroughScorer) -> Any:
    """The estimator whose own method ``score`` a scorer calls."""
    return scorer._estimator


def scorers_by_name(scorer: Any) -> Any:
    """The scorers of several metrics as a dict, a single scorer as it is."""
    return dict(scorer._scorers) if isinstance(scorer, _MultimetricScorer) else scorer


# Methods with other functions behind some of their global names

REPLACED: Mapping[Callable[..., Any], frozenset[str]] = {
    CalibratedClassifierCV.fit: frozenset({"cross_val_predict", "_fit_classifier_calibrator_pair"}),
    _BaseStacking.fit: frozenset({"cross_val_predict", "_fit_single_estimator"}),
    TunedThresholdClassifierCV._fit: frozenset({"clone", "delayed", "Parallel"}),
    LogisticRegressionCV.fit: frozenset({"Parallel"}),
    _log_reg_scoring_path: frozenset({"_logistic_regression_path"}),
    LinearModelCV.fit: frozenset({"delayed", "Parallel"}),
}
"""Functions of scikit-learn that this package runs, and their global names that it replaces."""


def with_replaced_globals(
    function: Callable[..., Any], **replacements: Callable[..., Any]
) -> Callable[..., Any]:
    """A function of `REPLACED` that calls other functions by some of its global names.

    The result is a new function with the same code and a copy of the globals: scikit-learn itself
    is not changed, so other calls and threads see nothing of it.

    Parameters
    ----------
    function : function
        A key of `REPLACED`. Decorators that keep ``__wrapped__`` are taken off.
    **replacements
        By global name: exactly those that `REPLACED` lists.

    Raises
    ------
    ImportError
        If the function no longer calls one of the names. Without the replacement it would run,
        but as scikit-learn's own.

    Examples
    --------
    >>> from onefold._sklearn_compat import _BaseStacking, with_replaced_globals
    >>> fit = with_replaced_globals(
    ...     _BaseStacking.fit, cross_val_predict=print, _fit_single_estimator=print
    ... )
    >>> fit.__globals__["cross_val_predict"], _BaseStacking.fit.__globals__.get("print")
    (<built-in function print>, None)
    """
    if replacements.keys() != REPLACED[function]:
        raise TypeError(f"{function.__qualname__}: replace {sorted(REPLACED[function])}")
    plain: Any = unwrap(function)
    missing = sorted(replacements.keys() - global_names(plain.__code__))
    if missing:
        raise _unsupported(
            f"{function.__qualname__} does not call {', '.join(missing)}, which this version of "
            "onefold replaces"
        )
    replaced = FunctionType(
        plain.__code__,
        plain.__globals__ | replacements,
        plain.__name__,
        plain.__defaults__,
        plain.__closure__,
    )
    replaced.__kwdefaults__ = plain.__kwdefaults__
    return replaced


@cache
def global_names(code: CodeType) -> frozenset[str]:
    """The global names that a function reads, and those that functions inside it read."""
    read = {step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL"}
    inner = (part for part in code.co_consts if isinstance(part, CodeType))
    return frozenset(read).union(*map(global_names, inner))
