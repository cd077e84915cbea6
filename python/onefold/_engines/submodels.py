"""Estimators whose first m members are the estimator of m members.

A grid over the number of members fits the largest estimator of each training set and reads the
others from it. This holds where members are drawn or boosted one after the other from an integer
``random_state``, without ``warm_start``, and where components are found one after the other:

| classes | parameter | when it holds |
|---|---|---|
| random forests, extremely randomised trees, bagging | ``n_estimators`` | no ``oob_score`` |
| AdaBoost | ``n_estimators`` | always |
| gradient boosting | ``n_estimators`` | no ``n_iter_no_change`` |
| gradient boosting of histograms | ``max_iter`` | no early stopping |
| those of XGBoost | ``n_estimators`` | booster ``gbtree``, no early stopping, no callbacks |
| those of LightGBM | ``n_estimators`` | ``boosting_type="gbdt"``, none but its named parameters |
| ``PLSRegression`` | ``n_components`` | always |

The last two boosters must not get other parameters of ``fit`` than weights.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import scipy.linalg
from sklearn import ensemble
from sklearn.base import clone
from sklearn.cross_decomposition import PLSRegression

from .._sklearn_compat import BAG_SEEDS, STAGES_OF_HISTOGRAMS, pls_scales
from .._utils.estimator_class import known_class
from .steps import step_key

__all__ = ["families_of_sizes", "size_of", "truncated"]


@dataclass(frozen=True)
class _Ensemble:
    """Where the members of an ensemble are."""

    parameter: str
    """The number of members."""
    lists: tuple[str, ...]
    """Fitted attributes with an entry per member."""
    counts: tuple[str, ...] = ()
    """Fitted attributes that are the number of members."""
    columns: tuple[str, ...] = ()
    """Fitted attributes with a column per member."""
    booster: Callable[[Any, int], Any] | None = None
    """Makes the booster of the first members, of another library."""


def _first_of_xgboost(fitted: Any, size: int) -> Any:
    return fitted.get_booster()[:size]


def _first_of_lightgbm(fitted: Any, size: int) -> Any:
    booster = fitted.booster_
    return type(booster)(model_str=booster.model_to_string(num_iteration=size))


BOOSTER = "_Booster"
"""The fitted attribute of XGBoost and LightGBM; both libraries have no setter."""

_XGBOOST = _Ensemble("n_estimators", (), booster=_first_of_xgboost)
_LIGHTGBM = _Ensemble("n_estimators", (), booster=_first_of_lightgbm)
_MEMBERS = _Ensemble("n_estimators", ("estimators_",))
_BAGS = _Ensemble("n_estimators", ("estimators_", "estimators_features_", BAG_SEEDS))
_WEIGHTED = _Ensemble("n_estimators", ("estimators_", "estimator_weights_", "estimator_errors_"))
_STAGES = _Ensemble("n_estimators", ("estimators_", "train_score_"), ("n_estimators_",))
_HISTOGRAMS = _Ensemble("max_iter", (STAGES_OF_HISTOGRAMS,))
_COMPONENTS = _Ensemble(
    "n_components",
    ("n_iter_",),
    ("_n_features_out",),
    columns=(
        "x_weights_",
        "y_weights_",
        "x_loadings_",
        "y_loadings_",
        "_x_scores",
        "_y_scores",
        "x_scores_",
        "y_scores_",
    ),
)

ENSEMBLES = {
    ensemble.RandomForestClassifier: _MEMBERS,
    ensemble.RandomForestRegressor: _MEMBERS,
    ensemble.ExtraTreesClassifier: _MEMBERS,
    ensemble.ExtraTreesRegressor: _MEMBERS,
    ensemble.BaggingClassifier: _BAGS,
    ensemble.BaggingRegressor: _BAGS,
    ensemble.AdaBoostClassifier: _WEIGHTED,
    ensemble.AdaBoostRegressor: _WEIGHTED,
    ensemble.GradientBoostingClassifier: _STAGES,
    ensemble.GradientBoostingRegressor: _STAGES,
    ensemble.HistGradientBoostingClassifier: _HISTOGRAMS,
    ensemble.HistGradientBoostingRegressor: _HISTOGRAMS,
    PLSRegression: _COMPONENTS,
}

MAX_ROWS_WITHOUT_STOPPING = 10_000
"""With more training rows ``early_stopping="auto"`` stops early."""


def _kind(estimator: Any) -> _Ensemble | None:
    kinds = ENSEMBLES | _boosters()
    known = known_class(estimator, list(kinds))
    return None if known is None else kinds[known]


def _boosters() -> dict[type, _Ensemble]:
    """Those of other libraries, if they are imported."""
    names = {
        "xgboost": (("XGBClassifier", "XGBRegressor"), _XGBOOST),
        "lightgbm": (("LGBMClassifier", "LGBMRegressor"), _LIGHTGBM),
    }
    return {
        getattr(sys.modules[module], name): kind
        for module, (classes, kind) in names.items()
        if module in sys.modules
        for name in classes
        if hasattr(sys.modules[module], name)
    }


def size_of(estimator: Any) -> int:
    """The number of members of an ensemble of the table, as its parameter says."""
    kind = _kind(estimator)
    if kind is None:
        raise TypeError(f"{type(estimator).__name__} has no members")
    return int(getattr(estimator, kind.parameter))


def families_of_sizes(
    estimators: Sequence[Any], n_samples: int, fit_params: Collection[str] = ()
) -> list[list[int]]:
    """Positions of the estimators that differ in the number of their members only.

    The largest comes first. Estimators that share nothing are families of one. ``fit_params`` are
    the names of the other parameters of ``fit``.

    Examples
    --------
    >>> from sklearn.ensemble import AdaBoostClassifier
    >>> from onefold._engines.submodels import families_of_sizes
    >>> sizes = [AdaBoostClassifier(n_estimators=n, random_state=0) for n in (5, 9, 7)]
    >>> families_of_sizes(sizes, 100)
    [[1, 2, 0]]
    """
    families: dict[Hashable, list[int]] = {}
    for position, estimator in enumerate(estimators):
        kind = _kind(estimator)
        key: Hashable = position
        if (
            kind is not None
            and _is_nested(estimator, kind, n_samples)
            and (kind.booster is None or set(fit_params) <= {"sample_weight"})
        ):
            key = step_key(clone(estimator).set_params(**{kind.parameter: 1}))
        families.setdefault(key, []).append(position)
    for family in families.values():
        if len(family) > 1:
            family.sort(key=lambda position: -size_of(estimators[position]))
    return list(families.values())


def _is_nested(estimator: Any, kind: _Ensemble, n_samples: int) -> bool:
    """Whether a smaller ensemble is the first part of a larger one."""
    size = getattr(estimator, kind.parameter)
    is_seeded = kind is _COMPONENTS or isinstance(estimator.random_state, Integral)
    if not is_seeded or not isinstance(size, Integral):
        return False
    if size < 1 or getattr(estimator, "warm_start", False) or getattr(estimator, "oob_score", 0):
        return False
    if kind.booster is not None and not _boosts_all_rounds(estimator):
        return False
    if getattr(estimator, "n_iter_no_change", None) is not None and kind is _STAGES:
        return False
    stopping = getattr(estimator, "early_stopping", False)
    return stopping is False or (stopping == "auto" and n_samples <= MAX_ROWS_WITHOUT_STOPPING)


def _boosts_all_rounds(estimator: Any) -> bool:
    """Whether an estimator of XGBoost or LightGBM adds trees one after the other, to the last."""
    params = estimator.get_params()
    allowed = {"booster": (None, "gbtree"), "boosting_type": ("gbdt",)}
    allowed |= dict.fromkeys(("early_stopping_rounds", "callbacks"), (None,))
    named = {*type(estimator)().get_params(), "verbose", "verbosity"}
    return set(params) <= named and all(
        params[name] in values for name, values in allowed.items() if name in params
    )


def truncated(fitted: Any, size: int) -> Any:
    """The ensemble of the first members of a fitted one, which it shares."""
    kind = _kind(fitted)
    if kind is None:
        raise TypeError(f"{type(fitted).__name__} has no members")
    smaller = copy.copy(fitted)
    setattr(smaller, kind.parameter, size)
    if kind.booster is not None:
        setattr(smaller, BOOSTER, kind.booster(fitted, size))
    for name in kind.lists:
        if hasattr(fitted, name):
            setattr(smaller, name, getattr(fitted, name)[:size])
    for name in kind.counts:
        setattr(smaller, name, size)
    for name in kind.columns:
        if hasattr(fitted, name):
            setattr(smaller, name, np.ascontiguousarray(getattr(fitted, name)[:, :size]))
    if kind is _COMPONENTS:
        _rotate(smaller)
    return smaller


def _rotate(fitted: PLSRegression) -> None:
    """Compute what depends on all components together, as the end of ``fit`` does."""
    for kind in ("x", "y"):
        weights, loadings = (getattr(fitted, f"{kind}_{name}_") for name in ("weights", "loadings"))
        inverse = scipy.linalg.pinv(np.dot(loadings.T, weights), check_finite=False)
        setattr(fitted, f"{kind}_rotations_", np.dot(weights, inverse))
    coefficients = np.dot(fitted.x_rotations_, fitted.y_loadings_.T)
    x_scale, y_scale = pls_scales(fitted)
    fitted.coef_ = (coefficients * y_scale).T / x_scale
