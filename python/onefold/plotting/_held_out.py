"""What the plots of held-out answers read from a result: targets, answers, one fold at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._scoring.losses import shaped_like
from ..result._settings import metric_labels

if TYPE_CHECKING:
    from ..result._cv_result import CVResult

__all__ = [
    "Binary",
    "binary",
    "check_fold",
    "choose_metric",
    "metric_label",
    "rows_of",
    "why_no_classes",
    "why_no_probabilities",
    "why_no_regression",
    "why_no_responses",
]

RESPONSES = ("decision_function", "predict_proba")


def why_no_classes(result: CVResult) -> str | None:
    """Why there are no predicted classes of samples with one label each, or None."""
    if result.targets is None:
        return "there are no targets"
    if "predict" not in result._answers:
        return "there are no held-out predictions"
    if result._loss_of_predictions != "zero-one" or result.classes is None:
        return f"it is for classifiers with one label per sample, and this is {_what(result)}"
    return None


def why_no_responses(result: CVResult) -> str | None:
    """Why there are no scores of the classes, or None."""
    reason = why_no_classes(result)
    if reason is None and not any(_columns(result, name) for name in RESPONSES):
        return (
            f"{result.estimator_name} gave neither predict_proba nor decision_function with one "
            "column per class"
        )
    return reason


def why_no_probabilities(result: CVResult) -> str | None:
    """Why there are no class probabilities, or None."""
    reason = why_no_classes(result)
    if reason is None and not _columns(result, "predict_proba"):
        return (
            "there are no held-out probabilities; most engines keep them where a metric needs "
            "them, such as scoring='neg_log_loss', and "
            "onefold.cross_val_predict(method='predict_proba') computes them"
        )
    return reason


def why_no_regression(result: CVResult) -> str | None:
    """Why there are no numbers predicted, or None."""
    if result.targets is None:
        return "there are no targets"
    if "predict" not in result._answers:
        return "there are no held-out predictions"
    if result._loss_of_predictions != "squared error":
        return f"it is for regression, and this is {_what(result)}"
    return None


def _what(result: CVResult) -> str:
    kinds = {
        "zero-one": "a classifier",
        "squared error": "a regression",
        "negative log density": "a density estimator",
        "squared distance": "a clustering",
    }
    kind = kinds.get(result._loss_of_predictions or "", "of another kind")
    return f"{kind} ({result.estimator_name})"


def _columns(result: CVResult, name: str) -> bool:
    """Whether an answer has one column per class, or is the decision between two."""
    answer, classes = result._answers.get(name), result.classes
    if answer is None or isinstance(answer, list) or classes is None:
        return False
    return (answer.ndim == 1 and len(classes) == 2) or answer.shape[1:] == (len(classes),)


def check_fold(result: CVResult, fold: int | None) -> slice:
    """The positions of a fold in test order; of all without a fold."""
    if fold is None:
        return slice(None)
    n_folds = len(result.folds)
    if not isinstance(fold, (int, np.integer)) or not 0 <= fold < n_folds:
        raise ValueError(f"fold={fold!r}: there are {n_folds} folds, from 0")
    return slice(int(result._starts[fold]), int(result._starts[fold + 1]))


def rows_of(result: CVResult) -> tuple[NDArray[Any], NDArray[Any]]:
    """Targets and predictions in test order, in the same shape."""
    predictions = np.asarray(result._answers["predict"])
    targets = np.asarray(result.targets)[result._rows]
    return shaped_like(predictions, targets), predictions


def metric_label(result: Any, name: str) -> str:
    """What to write at an axis: the name of scikit-learn's metric, where it is known."""
    return metric_labels(getattr(result, "settings", None) or {}).get(name, name)


def choose_metric(names: list[str], metric: str | None) -> str:
    """A metric of several, by default the first."""
    if metric is None:
        return names[0]
    if metric not in names:
        raise ValueError(f"metric must be one of {names}, got {metric!r}")
    return metric


@dataclass(frozen=True)
class Binary:
    """One class against the others: who belongs to it, and how strongly the models said so."""

    label: Any
    is_class: NDArray[np.bool_]
    """In test order."""
    scores: NDArray[np.float64]
    starts: NDArray[np.int64]

    def by_fold(self) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.float64]]]:
        """The folds that hold out some of the class and some of the others."""
        for start, stop in zip(self.starts[:-1], self.starts[1:], strict=True):
            is_class = self.is_class[start:stop]
            if is_class.any() and not is_class.all():
                yield is_class, self.scores[start:stop]


def binary(result: CVResult, response: str | None, pos_label: Any) -> list[Binary]:
    """One class against the others: of two classes the second, of several each of them.

    Parameters
    ----------
    result : CVResult
    response : {"predict_proba", "decision_function"} or None
        By default probabilities where they are known, else decisions, as in scikit-learn.
    pos_label : label, optional
        Only this class.
    """
    names = [name for name in RESPONSES if _columns(result, name)]
    if response is not None and response not in names:
        raise ValueError(f"response must be one of {names}, which the result has, got {response!r}")
    answer = np.asarray(result._answers[response or names[-1]], dtype=np.float64)
    classes = np.asarray(result.classes)
    labels = np.asarray(result.targets)[result._rows].ravel()
    positions = range(len(classes)) if len(classes) > 2 else range(1, 2)
    if pos_label is not None:
        places = np.flatnonzero(classes == pos_label)
        if len(places) == 0:
            raise ValueError(f"pos_label must be one of {classes.tolist()}, got {pos_label!r}")
        positions = range(int(places[0]), int(places[0]) + 1)
    return [
        Binary(
            label=classes.tolist()[position],
            is_class=labels == classes[position],
            scores=_column(answer, position),
            starts=result._starts,
        )
        for position in positions
    ]


def _column(answer: NDArray[np.float64], position: int) -> NDArray[np.float64]:
    """The column of a class; the decision between two is that of the second."""
    if answer.ndim == 2:
        return answer[:, position]
    return answer if position == 1 else -answer
