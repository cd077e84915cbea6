"""Scores and answers of a fitted estimator on its held-out rows, and how folds are joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from .._scoring import HeldOut, Scorer, score_held_out
from ._task import Task

__all__ = ["FoldResult", "FoldScorer", "join_folds"]


@dataclass(frozen=True)
class FoldScorer:
    """Evaluates fitted estimators on test sets. Small enough to send to another process."""

    scorers: dict[str, Scorer]
    responses: tuple[str, ...]
    score_weights: dict[str, Any]
    error_score: float | str

    @classmethod
    def of(cls, task: Task) -> FoldScorer:
        """Read the scorers and responses of a task."""
        return cls(task.scorers, task.responses, task.score_weights, task.error_score)

    @classmethod
    def answers_only(cls, task: Task) -> FoldScorer:
        """Compute no scores, only answers: scores are then computed from these."""
        responses = tuple(dict.fromkeys(("predict", *task.responses)))
        return cls({}, responses, {}, task.error_score)

    def on(self, rows: Any) -> FoldScorer:
        """The same for a subset of the rows, renumbered from 0."""
        return replace(self, score_weights=self._weights(rows))

    def scores(self, held: HeldOut, X: Any, y: Any, rows: Any) -> dict[str, float]:
        """Score one set of rows."""
        return score_held_out(
            self.scorers, held, X, y, weights=self._weights(rows), error_score=self.error_score
        )

    def _weights(self, rows: Any) -> dict[str, Any]:
        return {name: own[rows] for name, own in self.score_weights.items()}

    def evaluate(self, estimator: Any, X: Any, y: Any, rows: Any) -> FoldResult:
        """Return the scores and the answers of a fitted estimator on its held-out rows."""
        held = HeldOut(estimator)
        scores = self.scores(held, X, y, rows)
        answers = {name: held.answer(name, X) for name in self.responses}
        known = {name: answer for name, answer in answers.items() if answer is not None}
        return FoldResult(scores, known, getattr(estimator, "classes_", None))


@dataclass
class FoldResult:
    """Scores and answers of the estimator of one fold on its held-out rows."""

    scores: dict[str, float] = field(default_factory=dict)
    answers: dict[str, NDArray[Any]] = field(default_factory=dict)
    classes: NDArray[Any] | None = None
    estimator: Any = None
    """The estimator itself, where it is to be returned."""


def join_folds(
    folds: list[FoldResult], estimator: Any, task: Task
) -> tuple[dict[str, Any], NDArray[Any] | None]:
    """Join the answers of all folds in test order, where every fold has them."""
    known: list[Any] = [fold.classes for fold in folds]
    classes = None
    if is_classifier(estimator) and all(
        isinstance(own, np.ndarray) and own.ndim == 1 for own in known
    ):
        classes = _union(known)
    answers: dict[str, Any] = {}
    for name in max((fold.answers for fold in folds), key=len, default={}):
        parts: list[Any] = [fold.answers.get(name) for fold in folds]
        if all(isinstance(part, np.ndarray) for part in parts):
            answers[name] = _concatenate(parts, name, known, classes)
        elif all(isinstance(part, list) for part in parts):
            # One array per output, each with its own classes.
            answers[name] = [
                _concatenate(own, name, labels, _union(labels))
                for own, labels in zip(
                    zip(*parts, strict=True), zip(*known, strict=True), strict=True
                )
            ]
    return answers, classes


def _union(known: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """All classes that occur in some training set."""
    return np.unique(np.concatenate(known))


def _concatenate(
    parts: Sequence[NDArray[Any]], name: str, known: Sequence[Any], classes: Any
) -> NDArray[Any]:
    """One answer of all folds; the columns of each are the classes of its training set."""
    return np.concatenate(
        [_align(part, name, own, classes) for part, own in zip(parts, known, strict=True)]
    )


_MISSING = {"predict_proba": 0.0}
"""The answer for a class that a training set lacks; otherwise the smallest number."""


def _align(answer: NDArray[Any], name: str, known: Any, classes: Any) -> NDArray[Any]:
    """Give an answer one column for each of all classes."""
    if name in ("predict", "transform", "score_samples") or classes is None:
        return answer
    if len(known) == len(classes):
        return answer
    if answer.ndim != 2 or answer.shape[1] != len(known):
        raise ValueError(
            f"{name}: a training set holds only {len(known)} of {len(classes)} classes, so its "
            "answers cannot be lined up with those of the other folds; use stratified folds"
        )
    fill = _MISSING.get(name, np.finfo(answer.dtype).min)
    full = np.full((len(answer), len(classes)), fill, dtype=answer.dtype)
    full[:, np.searchsorted(classes, known)] = answer
    return full
