"""Answers of estimators from linear predictors, by scikit-learn's formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils.extmath import softmax

from .._scoring.scorers import responses_read
from .newton_spec import SmoothSpec
from .task import Task

__all__ = ["answers", "wanted_answers"]

Floats = NDArray[np.float64]

ANSWERS = ("predict", "decision_function", "predict_proba", "predict_log_proba")


def wanted_answers(estimator: Any, task: Task) -> list[str]:
    """The answers that a task asks for, of those that an estimator has."""
    wanted = {"predict", *task.responses, *responses_read(task.scorers, estimator)}
    if task.required is not None:
        wanted.add(task.required)
    if task.why_not_scored is not None:
        wanted.update(ANSWERS)
    return [name for name in ANSWERS if name in wanted and hasattr(estimator, name)]


def answers(
    spec: SmoothSpec, z: Floats, classes: NDArray[Any] | None, names: list[str]
) -> dict[str, NDArray[Any]]:
    """Answers of held-out rows.

    Parameters
    ----------
    spec : SmoothSpec
    z : array of shape (n_rows, n_outputs)
        Linear predictors.
    classes : array, optional
        Of a classifier.
    names : list of str
        The answers that are asked for.
    """
    if classes is None:
        return {"predict": _regression(spec, z[:, 0])}
    is_binary = len(classes) == 2
    answers: dict[str, NDArray[Any]] = {}
    if is_binary:
        answers["predict"] = classes[(z[:, 0] > 0).astype(np.intp)]
    else:
        answers["predict"] = classes[z.argmax(axis=1)]
    if "decision_function" in names:
        answers["decision_function"] = z[:, 0] if is_binary else z
    if "predict_proba" in names or "predict_log_proba" in names:
        probabilities = _probabilities(spec, z)
        if "predict_proba" in names:
            answers["predict_proba"] = probabilities
        if "predict_log_proba" in names:
            with np.errstate(divide="ignore"):
                answers["predict_log_proba"] = np.log(probabilities)
    return answers


def _regression(spec: SmoothSpec, z: Floats) -> Floats:
    if spec.loss in ("half_squared", "squared_epsilon_insensitive"):
        return z
    with np.errstate(over="ignore"):
        return np.exp(z)


def _probabilities(spec: SmoothSpec, z: Floats) -> Floats:
    """Row × class."""
    if spec.classes == "joint":
        return np.asarray(softmax(z))
    each = np.asarray(expit(z))
    if each.shape[1] == 1:
        return np.column_stack([1.0 - each[:, 0], each[:, 0]])
    return np.asarray(each / each.sum(axis=1, keepdims=True))
