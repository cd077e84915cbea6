"""The loss of each held-out sample, by name.

==================== ================= ===========================================================
loss                 response          of one sample
==================== ================= ===========================================================
zero-one             predict           1 if the predicted class is wrong, else 0
hinge                decision_function max(0, 1 − margin): of several classes the margin of
                                       Crammer and Singer, decision of the class − best other
log                  predict_proba     −log p(class)
Brier                predict_proba     Σ (p(c) − [c is the class])², half of it for two classes
squared error        predict           (y − prediction)², the mean over outputs
absolute error       predict           abs(y − prediction), the mean over outputs
negative log density score_samples     −log p(x)
squared distance     transform         to the nearest centre
==================== ================= ===========================================================

The means over samples are those of scikit-learn's ``zero_one_loss``, ``hinge_loss``, ``log_loss``,
``brier_score_loss``, ``mean_squared_error`` and ``mean_absolute_error``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_clusterer, is_regressor

__all__ = [
    "LOSSES",
    "loss_of_predictions",
    "losses",
    "over_outputs",
    "sample_losses",
    "shaped_like",
]

Responses = Mapping[str, NDArray[Any]]
Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


def _hinge(codes: Codes, decisions: Floats) -> Floats:
    if decisions.ndim == 1:
        margins = np.where(codes == 1, decisions, -decisions)
    else:
        others = decisions.copy()
        rows = np.arange(len(codes))
        others[rows, codes] = -np.inf
        margins = decisions[rows, codes] - others.max(axis=1)
    return np.maximum(0.0, 1.0 - margins)


def _log(codes: Codes, probabilities: Floats) -> Floats:
    of_true_class = probabilities[np.arange(len(codes)), codes]
    return -np.log(np.maximum(of_true_class, np.finfo(of_true_class.dtype).eps))


def _brier(codes: Codes, probabilities: Floats) -> Floats:
    difference = probabilities.copy()
    difference[np.arange(len(codes)), codes] -= 1.0
    total: Floats = np.square(difference).sum(axis=1)
    return total / 2 if probabilities.shape[1] == 2 else total


def over_outputs(values: NDArray[Any]) -> Floats:
    """The mean over outputs, if there are several."""
    return np.asarray(values if values.ndim == 1 else values.mean(axis=1))


_OF_CLASSES: dict[str, tuple[str, Callable[[Codes, Floats], Floats]]] = {
    "hinge": ("decision_function", _hinge),
    "log": ("predict_proba", _log),
    "Brier": ("predict_proba", _brier),
}
"""Losses of classes and a response with one column per class."""

_OF_PREDICTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "zero-one": lambda y, prediction: (prediction != y).astype(np.float64),
    "squared error": lambda y, prediction: over_outputs(np.square(prediction - y)),
    "absolute error": lambda y, prediction: over_outputs(np.abs(prediction - y)),
}
"""Losses of targets and predictions."""

_WITHOUT_TARGETS: dict[str, tuple[str, Callable[[Any], Floats]]] = {
    "negative log density": (
        "score_samples",
        lambda densities: -np.asarray(densities, dtype=np.float64),
    ),
    "squared distance": ("transform", lambda values: np.square(values.min(axis=1))),
}
"""Losses of unsupervised estimators."""

LOSSES = (*_OF_PREDICTIONS, *_OF_CLASSES, *_WITHOUT_TARGETS)
"""The names of all losses."""


def sample_losses(loss: str, y: Any, responses: Responses, classes: Any) -> Floats:
    """The loss of each sample.

    Parameters
    ----------
    loss : str
        One of `LOSSES`.
    y : array or None
        Targets, in the order of the responses.
    responses : dict of arrays
        Held-out responses, by the name of the method.
    classes : array or None
        The classes of the columns of the responses.

    Raises
    ------
    ValueError
        If the loss is not known, or its response is not.

    Examples
    --------
    >>> import numpy as np
    >>> from onefold._scoring.losses import sample_losses
    >>> responses = {"predict": np.array([1.0, 2.0])}
    >>> sample_losses("absolute error", np.array([1.5, 2.0]), responses, None)
    array([0.5, 0. ])
    """
    if loss not in LOSSES:
        raise ValueError(f"loss must be one of {', '.join(LOSSES)}, got {loss!r}")
    if loss in _WITHOUT_TARGETS:
        name, compute = _WITHOUT_TARGETS[loss]
        return compute(_known(loss, name, responses))
    if y is None:
        raise ValueError(f"loss={loss!r} needs targets, and there is no y")
    if loss in _OF_PREDICTIONS:
        prediction = _known(loss, "predict", responses)
        targets = shaped_like(prediction, y)
        if loss == "zero-one" and targets.ndim != 1:
            raise ValueError("loss='zero-one' needs one label per sample, and y has several")
        if loss != "zero-one" and targets.dtype.kind in "OSU":
            targets = _as_numbers(loss, targets)
        return np.asarray(_OF_PREDICTIONS[loss](targets, prediction), dtype=np.float64)
    name, of_codes = _OF_CLASSES[loss]
    response = _known(loss, name, responses)
    return of_codes(_codes(loss, y, response, classes), np.asarray(response, dtype=np.float64))


def _known(loss: str, name: str, responses: Responses) -> NDArray[Any]:
    if name not in responses or isinstance(responses[name], list):
        raise ValueError(
            f"loss={loss!r} needs {name} of every sample; what is known: "
            f"{', '.join(responses) or 'nothing'}"
        )
    return responses[name]


def _as_numbers(loss: str, targets: NDArray[Any]) -> Floats:
    try:
        return targets.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"loss={loss!r} needs numbers as targets, y has labels") from None


def _codes(loss: str, y: Any, response: NDArray[Any], classes: Any) -> Codes:
    """The column of each sample's class."""
    labels = np.asarray(y)
    labels = labels.ravel() if labels.size == len(response) else labels
    n_columns = 2 if response.ndim == 1 else response.shape[1]
    if classes is None or labels.ndim != 1 or n_columns != len(classes):
        raise ValueError(f"loss={loss!r} needs one label per sample and one column per class")
    codes = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    unknown = np.asarray(classes)[codes] != labels
    if unknown.any():
        raise ValueError(
            f"loss={loss!r}: no training set has the class {labels[unknown.argmax()]!r}"
        )
    return codes


def losses(
    estimator: Any, y: Any, responses: Responses, classes: Any = None, *, asked: str | None = None
) -> tuple[str, Floats] | None:
    """Name and value of each held-out sample's loss: the one asked for, or that of the estimator.

    Classification has the zero-one loss, regression the squared error (the mean over outputs),
    density estimation the negative log density, clustering the squared distance to the nearest
    centre; None where no such responses are known.
    """
    if asked is not None:
        try:
            return asked, sample_losses(asked, y, responses, classes)
        except ValueError:
            pass  # it is not defined on every sample
    loss = _usual_loss(estimator, y, responses)
    return None if loss is None else (loss, sample_losses(loss, y, responses, None))


def _usual_loss(estimator: Any, y: Any, responses: Responses) -> str | None:
    if y is not None and "predict" in responses:
        if is_classifier(estimator) and shaped_like(responses["predict"], y).ndim == 1:
            return "zero-one"
        if is_regressor(estimator):
            return "squared error"
    if is_clusterer(estimator) and "transform" in responses:
        return "squared distance"
    return "negative log density" if "score_samples" in responses else None


def loss_of_predictions(loss: str | None, *, is_classifier: bool) -> str | None:
    """The loss of ``predict`` for targets of the same kind: of classes, of numbers, or as it is.

    Examples
    --------
    >>> from onefold._scoring.losses import loss_of_predictions
    >>> loss_of_predictions("log", is_classifier=True)
    'zero-one'
    """
    is_of_numbers = loss in ("squared error", "absolute error")
    if loss in _OF_CLASSES or (is_of_numbers and is_classifier):
        return "zero-one"
    return "squared error" if is_of_numbers else loss


def shaped_like(prediction: NDArray[Any], y: Any) -> NDArray[Any]:
    """Targets in the shape of the predictions: a single column becomes one dimension."""
    targets = np.asarray(y)
    return targets.reshape(prediction.shape) if targets.size == prediction.size else targets
