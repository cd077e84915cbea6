"""Scores and answers of a fitted estimator on its held-out rows, and how folds are joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import is_classifier

from .._inputs.routing import ScorerParams, params_of_rows
from .._scoring.decided import decided
from .._scoring.scorers import HeldOut, Scorer, score_held_out
from .._utils.warnings import warn
from .task import Task

__all__ = [
    "COLUMNS_ARE_CLASSES",
    "FoldResult",
    "FoldScorer",
    "Joined",
    "finite_where_unknown",
    "join_folds",
]


@dataclass(frozen=True)
class FoldScorer:
    """Evaluates fitted estimators on test sets. Small enough to send to another process."""

    scorers: dict[str, Scorer]
    responses: tuple[str, ...]
    required: str | None
    score_params: ScorerParams
    n_samples: int
    error_score: float | str

    @classmethod
    def of(cls, task: Task) -> FoldScorer:
        """Read the scorers and responses of a task."""
        return cls(
            task.scorers,
            task.responses,
            task.required,
            task.score_params,
            task.data.n_samples,
            task.error_score,
        )

    @classmethod
    def answers_only(cls, task: Task) -> FoldScorer:
        """Compute no scores, only answers: scores are then computed from these."""
        responses = tuple(dict.fromkeys(("predict", *task.responses)))
        scorer = cls.of(task)
        return replace(scorer, scorers={}, score_params={}, responses=responses)

    def on(self, rows: Any) -> FoldScorer:
        """The same for a subset of the rows, renumbered from 0."""
        return replace(self, score_params=self._params(rows), n_samples=len(rows))

    def scores(self, held: HeldOut, X: Any, y: Any, rows: Any) -> dict[str, float]:
        """Score one set of rows."""
        return score_held_out(
            self.scorers, held, X, y, params=self._params(rows), error_score=self.error_score
        )

    def _params(self, rows: Any) -> ScorerParams:
        return params_of_rows(self.score_params, self.n_samples, rows)

    def evaluate(self, estimator: Any, X: Any, y: Any, rows: Any) -> FoldResult:
        """Return the scores and the answers of a fitted estimator on its held-out rows."""
        held = HeldOut(estimator, known=self._decided(estimator, X))
        scores = self.scores(held, X, y, rows)
        answers = {name: self._answer(held, name, X) for name in self.responses}
        known = {name: answer for name, answer in answers.items() if answer is not None}
        return FoldResult(scores, known, getattr(estimator, "classes_", None))

    def _decided(self, estimator: Any, X: Any) -> dict[str, NDArray[Any]]:
        """Predictions by decision values, where both are among the answers."""
        if not {"predict", "decision_function"} <= set(self.responses):
            return {}
        try:
            return decided(estimator, X)
        except Exception:  # raised again, or left out, where the answers are asked for
            return {}

    def _answer(self, held: HeldOut, name: str, X: Any) -> Any:
        """An answer; one that is not required may be missing."""
        if name == self.required:
            return getattr(held, name)(X)
        try:
            return held.answer(name, X)
        except Exception:
            return None


@dataclass
class FoldResult:
    """Scores and answers of the estimator of one fold on its held-out rows."""

    scores: dict[str, float] = field(default_factory=dict)
    answers: dict[str, NDArray[Any]] = field(default_factory=dict)
    classes: NDArray[Any] | None = None
    estimator: Any = None
    """The estimator itself, where it is to be returned."""


@dataclass
class Joined:
    """The answers of all folds in test order."""

    answers: dict[str, Any] = field(default_factory=dict)
    classes: NDArray[Any] | None = None
    notes: list[str] = field(default_factory=list)


def join_folds(folds: list[FoldResult], estimator: Any, task: Task) -> Joined:
    """Join the answers of all folds in test order, where every fold has them."""
    known: list[Any] = [fold.classes for fold in folds]
    joined = Joined()
    if is_classifier(estimator) and all(
        isinstance(classes, np.ndarray) and classes.ndim == 1 for classes in known
    ):
        joined.classes = _union(known)
    for name in max((fold.answers for fold in folds), key=len, default={}):
        parts: list[Any] = [fold.answers.get(name) for fold in folds]
        try:
            answer = _join(parts, name, known, joined.classes, is_required=name == task.required)
        except ValueError as error:
            if name == task.required:
                raise
            joined.notes.append(f"no {name}: {error}")
            continue
        if answer is not None:
            joined.answers[name] = answer
    return joined


def _join(parts: list[Any], name: str, known: list[Any], classes: Any, *, is_required: bool) -> Any:
    """One answer of all folds; None if it is not one array per fold."""
    if is_required and all(sp.issparse(part) for part in parts):
        return sp.vstack(parts, format=parts[0].format)
    if name in COLUMNS_ARE_CLASSES and all(isinstance(part, list) for part in parts):
        # One array per output, each with its own classes.
        outputs = zip(zip(*parts, strict=True), zip(*known, strict=True), strict=True)
        return [
            _concatenate(output, name, labels, _union(labels), warns=is_required)
            for output, labels in outputs
        ]
    arrays = [np.asarray(part) for part in parts if _is_array(part, name)]
    if len(arrays) < len(parts):
        return None
    return _concatenate(arrays, name, known, classes, warns=is_required)


def _is_array(answer: Any, name: str) -> bool:
    """Whether an answer has one entry per row; a list of other answers has one per output."""
    if isinstance(answer, list):
        return name == "predict"
    return not sp.issparse(answer) and np.ndim(answer) > 0


def _union(known: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """All classes that occur in some training set."""
    return np.unique(np.concatenate(known))


def _concatenate(
    parts: Sequence[NDArray[Any]], name: str, known: Sequence[Any], classes: Any, *, warns: bool
) -> NDArray[Any]:
    """One answer of all folds; the columns of each are the classes of its training set."""
    if name not in COLUMNS_ARE_CLASSES or classes is None:
        return np.concatenate(parts)
    n_known = min(len(labels) for labels in known)
    if warns and n_known < len(classes):
        warn(
            f"Number of classes in training fold ({n_known}) does not match total number of "
            f"classes ({len(classes)}). Results may not be appropriate for your use case. "
            f"{_ADVICE}",
            RuntimeWarning,
        )
    return np.concatenate(
        [_align(part, name, labels, classes) for part, labels in zip(parts, known, strict=True)]
    )


COLUMNS_ARE_CLASSES = ("decision_function", "predict_proba", "predict_log_proba")
"""Answers with one column per class."""
_ADVICE = "To fix this, use a cross-validation technique resulting in properly stratified folds"


def _align(answer: NDArray[Any], name: str, known: Any, classes: Any) -> NDArray[Any]:
    """Give an answer one column for each of all classes: 0 or the smallest number if missing."""
    if len(known) == len(classes):
        return answer
    if answer.ndim == 2 and answer.shape[1] != len(known):
        raise ValueError(
            f"Output shape {answer.shape} of {name} does not match number of classes "
            f"({len(known)}) in fold. Irregular {name} outputs are not currently supported by "
            "cross_val_predict"
        )
    if answer.ndim == 1:
        raise ValueError(
            f"Only {len(known)} class/es in training fold, but {len(classes)} in overall dataset. "
            f"This is not supported for {name} with imbalanced folds. {_ADVICE}"
        )
    fill = 0.0 if name == "predict_proba" else np.finfo(answer.dtype).min
    full = np.full((len(answer), len(classes)), fill, dtype=answer.dtype)
    full[:, np.searchsorted(classes, known)] = answer
    return full


def finite_where_unknown(answers: NDArray[Any], task: Task) -> NDArray[Any]:
    """The smallest number for classes that a training set lacks, as scikit-learn has it."""
    lacks = np.repeat(task.problem.class_counts() == 0, np.diff(task.folds.starts), axis=0)
    if lacks.shape != answers.shape or not lacks.any():
        return answers
    return np.where(lacks & np.isneginf(answers), np.finfo(answers.dtype).min, answers)
