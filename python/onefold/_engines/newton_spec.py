"""Estimators that minimise a smooth convex loss of a linear predictor, in the terms of the core.

The core minimises Σ w ℓ(y, z) + ½ λ‖β‖², and of logistic regressions also + λ₁‖β‖₁ (by the engine
``path``). In these terms

| estimator | λ | intercept |
|---|---|---|
| `LogisticRegression` | (1 − l1_ratio) / C, or 0 | free; penalised by the solver ``"liblinear"`` |
| `LinearSVC`, `LinearSVR` | 1 / C | penalised |
| `PoissonRegressor`, `GammaRegressor`, `TweedieRegressor` | alpha · Σ w | free |

λ₁ is l1_ratio / C. LIBLINEAR penalises the intercept, as the coefficient of a feature with the
constant value ``intercept_scaling``.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, Literal

from sklearn.linear_model import (
    GammaRegressor,
    LogisticRegression,
    PoissonRegressor,
    TweedieRegressor,
)
from sklearn.svm import LinearSVC, LinearSVR

from .._sklearn_compat import sklearn_is_at_least, validate_params
from .._utils.estimator_class import known_class
from .base import Candidate

__all__ = ["CLASSIFIERS", "MODELS", "SmoothSpec", "has_l1_penalty", "parse", "parse_logistic"]

CLASSIFIERS = (LogisticRegression, LinearSVC)
GENERALISED_LINEAR = (PoissonRegressor, GammaRegressor, TweedieRegressor)
MODELS = (*CLASSIFIERS, *GENERALISED_LINEAR, LinearSVR)

LIBLINEAR_IS_BINARY = sklearn_is_at_least("1.8.dev0")
"""Whether `LogisticRegression` refuses more than two classes with the solver ``"liblinear"``."""

MAX_ITERATIONS = 1000
"""Passes over the rows after which scikit-learn's solvers are mostly done."""

Classes = Literal["none", "each", "joint"]
"""Of the outputs: a regression, each class against the rest, or all classes jointly by softmax."""


@dataclass(frozen=True)
class SmoothSpec:
    """An estimator as the core solves it, perhaps behind a scaler."""

    final: Any
    """The estimator itself."""
    loss: str
    """The name of the loss in the core."""
    penalty: float
    """λ, or λ by the sum of the weights of the training rows."""
    intercept: Literal["free"] | float | None
    """Free, penalised as the coefficient of a feature with this value, or none."""
    classes: Classes = "none"
    l1: float = 0.0
    """λ₁."""
    power: float = 1.5
    """Of the loss ``"tweedie"``."""
    epsilon: float = 0.0
    """Of the loss ``"squared_epsilon_insensitive"``."""
    scaler: Any = None
    """The affine scaler before the estimator, if there is one."""
    patience: int = 1
    """The refits that a fold may cost."""

    @property
    def is_mean(self) -> bool:
        """Whether the estimator minimises a mean over the weights, and the core a sum."""
        return isinstance(self.final, GENERALISED_LINEAR)

    @property
    def is_liblinear(self) -> bool:
        """Whether scikit-learn solves it by LIBLINEAR."""
        is_machine = isinstance(self.final, (LinearSVC, LinearSVR))
        return is_machine or self.final.solver == "liblinear"

    @property
    def is_one_sided(self) -> bool:
        """Whether class weights apply to the positive class of an output only."""
        return self.is_liblinear and self.classes != "none"

    @property
    def n_iterations(self) -> int:
        """Passes over the rows that a refit takes, or fewer; those of the classes are separate."""
        return int(min(max(1, self.final.max_iter), MAX_ITERATIONS))

    def family(self) -> Hashable:
        """Everything but the penalty: equal for estimators that are solved together."""
        key = (self.loss, self.intercept, self.classes, self.power, self.epsilon)
        if self.classes == "none":
            return key
        kind = known_class(self.final, MODELS)
        return (*key, kind, self.is_one_sided, repr(self.final.class_weight))


def parse(candidate: Candidate, n_classes: int | None) -> SmoothSpec | str:
    """Parse an estimator, or return the reason why the core does not solve it.

    Parameters
    ----------
    candidate : Candidate
    n_classes : int, optional
        Of the targets, if the estimator is a classifier.
    """
    final = candidate.final
    kind = known_class(final, MODELS)
    if kind is None:
        return f"{type(final).__name__} is not {', '.join(model.__name__ for model in MODELS)}"
    try:
        validate_params(final)
    except ValueError as error:
        return f"scikit-learn refuses {error}"
    if kind is LogisticRegression:
        if (has_l1 := _l1_penalty(final)) is not None:
            return f"{has_l1} has an l1 penalty, which is not smooth"
        spec = parse_logistic(final, n_classes or 0)
    elif kind is LinearSVC:
        spec = _linear_svc(final)
    elif kind is LinearSVR:
        spec = _linear_svr(final)
    else:
        spec = _generalised(final)
    return spec if isinstance(spec, str) else replace(spec, scaler=candidate.scaler)


def parse_logistic(final: LogisticRegression, n_classes: int) -> SmoothSpec | str:
    """Parse a logistic regression, which may have an ℓ1 penalty, or return why it cannot be."""
    is_liblinear = final.solver == "liblinear"
    if final.dual and not is_liblinear:
        return f"dual=True is not for the solver {final.solver!r}"
    penalty = 0.0 if final.penalty is None else 1.0 / final.C
    ratio = 0.0 if _l1_penalty(final) is None else 1.0
    if ratio and final.penalty != "l1":
        ratio = float(final.l1_ratio)
    if is_liblinear and penalty == 0:
        return "the solver 'liblinear' needs a penalty"
    joint: Classes = "joint" if n_classes > 2 and not is_liblinear else "each"
    multi_class = getattr(final, "multi_class", "auto")
    if multi_class == "ovr" and joint == "joint":
        if final.class_weight is not None:
            return "multi_class='ovr' weighs the classes of each problem in its own way"
        joint = "each"
    if multi_class == "multinomial" and n_classes == 2:
        return "multi_class='multinomial' penalises both classes"
    if is_liblinear and n_classes > 2 and LIBLINEAR_IS_BINARY:
        return "the solver 'liblinear' is for two classes"
    intercept: Literal["free"] | float | None = _penalised(final)
    if not is_liblinear:
        intercept = "free" if final.fit_intercept else None
    spec = SmoothSpec(final, "logistic", (1.0 - ratio) * penalty, intercept, joint)
    return replace(spec, l1=ratio * penalty)


def has_l1_penalty(final: Any) -> bool:
    """Whether an estimator is a logistic regression with an ℓ1 penalty, perhaps among others."""
    kind = known_class(final, [LogisticRegression])
    return kind is not None and _l1_penalty(final) is not None


def _l1_penalty(final: LogisticRegression) -> str | None:
    """The parameter that asks for an ℓ1 penalty, if one does."""
    ratio = final.l1_ratio
    if final.penalty in ("l2", None) or float("inf") == final.C:
        return None
    if final.penalty == "l1":
        return "penalty='l1'"
    if ratio in (0, None) and final.penalty in ("deprecated", "elasticnet"):
        return None
    return f"l1_ratio={ratio}"


def _penalised(final: Any) -> float | None:
    """The intercept of LIBLINEAR."""
    return float(final.intercept_scaling) if final.fit_intercept else None


def _linear_svc(final: LinearSVC) -> SmoothSpec | str:
    if final.multi_class != "ovr":
        return f"multi_class={final.multi_class!r} is no problem of each class against the rest"
    if final.penalty != "l2":
        return f"penalty={final.penalty!r} is not smooth"
    if final.loss != "squared_hinge":
        return f"loss={final.loss!r} is not smooth, loss='squared_hinge' is"
    if final.fit_intercept and final.intercept_scaling <= 0:
        return f"intercept_scaling={final.intercept_scaling} is not positive"
    return SmoothSpec(final, "squared_hinge", 1.0 / final.C, _penalised(final), "each")


def _linear_svr(final: LinearSVR) -> SmoothSpec | str:
    if final.loss != "squared_epsilon_insensitive":
        return f"loss={final.loss!r} is not smooth, loss='squared_epsilon_insensitive' is"
    if final.epsilon < 0:
        return f"epsilon={final.epsilon} makes the loss constant nowhere"
    if final.fit_intercept and final.intercept_scaling <= 0:
        return f"intercept_scaling={final.intercept_scaling} is not positive"
    spec = SmoothSpec(final, final.loss, 1.0 / final.C, _penalised(final))
    return replace(spec, epsilon=float(final.epsilon))


def _generalised(final: Any) -> SmoothSpec | str:
    """Generalised linear models whose loss is convex in the linear predictor."""
    intercept: Literal["free"] | None = "free" if final.fit_intercept else None
    spec = SmoothSpec(final, "", float(final.alpha), intercept)
    if isinstance(final, PoissonRegressor):
        return replace(spec, loss="poisson")
    if isinstance(final, GammaRegressor):
        return replace(spec, loss="gamma")
    power = float(final.power)
    if final.link == "identity" or (final.link == "auto" and power <= 0):
        if power == 0:
            return replace(spec, loss="half_squared")
        return f"power={final.power} with an identity link is not defined for every predictor"
    if not 1 <= power <= 2:
        return f"power={final.power} with a log link is not convex: from 1 to 2 it is"
    return replace(spec, loss="tweedie", power=power)
