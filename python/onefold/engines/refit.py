"""The standard way: one fit a fold. Slow, sure, and the yardstick of every other engine."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from traceback import format_exc
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import clone, is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params, has_fit_parameter

from ..progress import reporter
from ..scoring import RESPONSES, HeldOut, score_held_out
from .base import Outcome, Task

__all__ = ["Refit"]


class Refit:
    """Fit a clone of the estimator on every training set, in parallel over folds."""

    name = "refit"
    options: frozenset[str] = frozenset()
    responses = frozenset(RESPONSES)

    def why_not(self, task: Task) -> str | None:
        """Any estimator can be refitted."""
        return None

    def why_not_auto(self, task: Task) -> str | None:
        """Refits are what is estimated."""
        return None

    def run(self, task: Task) -> Outcome:
        """Fit, score and ask for predictions, fold by fold."""
        fit_params = dict(task.fit_params)
        if task.weights is not None:
            fit_params[_weight_name(task.estimator)] = task.weights
        folds = task.folds
        jobs = (
            delayed(_fit_fold)(task_part, folds.train(i), folds.test(i))
            for task_part in [_FoldTask.of(task, fit_params)]
            for i in range(len(folds))
        )
        fitted: list[_Fitted] = []
        with reporter(task.progress, unit="folds") as report:
            for fold in Parallel(n_jobs=task.n_jobs, return_as="generator")(jobs):
                fitted.append(fold)
                if report is not None:
                    report(len(fitted), len(folds))
        _report_failures(fitted, task.error_score)
        answers, classes = _gather(fitted, task)
        return Outcome(
            answers=answers,
            classes=classes,
            cost={
                "fits": len(fitted),
                "rows_fed": sum(fold.n_train for fold in fitted),
                "rows_evaluated": sum(fold.n_test for fold in fitted),
            },
            fit_time=np.array([fold.fit_time for fold in fitted]),
            score_time=np.array([fold.score_time for fold in fitted]),
            test_scores=[fold.test_scores for fold in fitted],
            train_scores=[fold.train_scores for fold in fitted]
            if task.return_train_score
            else None,
            estimators=[fold.estimator for fold in fitted] if task.return_estimator else None,
        )


def _weight_name(estimator: Any) -> str:
    """The keyword by which ``fit`` takes weights, through a pipeline to its last step."""
    last = estimator
    name = "sample_weight"
    while isinstance(last, Pipeline):
        step, last = last.steps[-1]
        if not get_config()["enable_metadata_routing"]:
            name = f"{step}__{name}"
    if not has_fit_parameter(last, "sample_weight"):
        raise ValueError(f"sample_weight: {type(last).__name__}.fit takes no weights")
    return name


@dataclass(frozen=True)
class _FoldTask:
    """What one fold's worker needs of the task, and nothing that is costly to send."""

    estimator: Any
    X: Any
    y: Any
    fit_params: dict[str, Any]
    scorers: dict[str, Any]
    responses: tuple[str, ...]
    score_weights: Any
    error_score: float | str
    train_score: bool
    keep: bool

    @classmethod
    def of(cls, task: Task, fit_params: dict[str, Any]) -> _FoldTask:
        return cls(
            estimator=clone(task.estimator),
            X=task.X,
            y=task.y,
            fit_params=fit_params,
            scorers=task.scorers,
            responses=task.responses,
            score_weights=task.score_weights,
            error_score=task.error_score,
            train_score=task.return_train_score,
            keep=task.return_estimator,
        )


@dataclass
class _Fitted:
    """What one fold's worker sends back."""

    n_train: int
    n_test: int
    fit_time: float
    score_time: float
    test_scores: dict[str, float]
    train_scores: dict[str, float]
    answers: dict[str, NDArray[Any]]
    classes: NDArray[Any] | None
    estimator: Any
    failure: str | None


def _fit_fold(task: _FoldTask, train: Any, test: Any) -> _Fitted:
    estimator = clone(task.estimator)
    X_train, y_train = _safe_split(estimator, task.X, task.y, train)
    X_test, y_test = _safe_split(estimator, task.X, task.y, test, train)
    fit_params = _check_method_params(task.X, params=task.fit_params, indices=train)
    found = _Fitted(len(train), len(test), 0.0, 0.0, {}, {}, {}, None, None, None)
    start = time.perf_counter()
    try:
        estimator.fit(X_train, **fit_params) if y_train is None else estimator.fit(
            X_train, y_train, **fit_params
        )
    except Exception:
        if task.error_score == "raise":
            raise
        found.fit_time = time.perf_counter() - start
        found.failure = format_exc()
        found.test_scores = found.train_scores = dict.fromkeys(
            task.scorers, float(task.error_score)
        )
        return found
    found.fit_time = time.perf_counter() - start
    start = time.perf_counter()
    held = HeldOut(estimator)
    found.test_scores = _scores(task, held, X_test, y_test, test)
    found.score_time = time.perf_counter() - start
    if task.train_score:
        found.train_scores = _scores(task, HeldOut(estimator), X_train, y_train, train)
    for name in task.responses:
        answer = held.answer(name, X_test)
        if answer is not None:
            found.answers[name] = answer
    found.classes = getattr(estimator, "classes_", None)
    found.estimator = estimator if task.keep else None
    return found


def _scores(task: _FoldTask, held: HeldOut, X: Any, y: Any, rows: Any) -> dict[str, float]:
    weights = None if task.score_weights is None else _safe_indexing(task.score_weights, rows)
    return score_held_out(task.scorers, held, X, y, weights=weights, error_score=task.error_score)


def _report_failures(fitted: list[_Fitted], error_score: float | str) -> None:
    """Warn of folds whose fit failed; all of them failing is an error, as in scikit-learn."""
    failures = [fold.failure for fold in fitted if fold.failure is not None]
    if not failures:
        return
    details = "\n".join(dict.fromkeys(failures))
    summary = f"{len(failures)} fits failed out of a total of {len(fitted)}"
    if len(failures) == len(fitted):
        raise ValueError(
            f"All the {len(fitted)} fits failed. error_score='raise' stops at the first.\n{details}"
        )
    warnings.warn(
        f"{summary}. The score on these folds is set to {error_score}. Details:\n{details}",
        FitFailedWarning,
        stacklevel=5,
    )


def _gather(
    fitted: list[_Fitted], task: Task
) -> tuple[dict[str, NDArray[Any]], NDArray[Any] | None]:
    """Join the answers of all folds in test order, where every fold has them."""
    if any(fold.failure is not None for fold in fitted):
        return {}, None
    classes = None
    if is_classifier(task.estimator) and all(
        isinstance(fold.classes, np.ndarray) and fold.classes.ndim == 1 for fold in fitted
    ):
        classes = np.unique(np.concatenate([fold.classes for fold in fitted]))
    answers = {}
    for name in task.responses:
        if all(isinstance(fold.answers.get(name), np.ndarray) for fold in fitted):
            parts = [_align(fold.answers[name], name, fold.classes, classes) for fold in fitted]
            answers[name] = np.concatenate(parts)
    return answers, classes


_MISSING = {"predict_proba": 0.0}
"""The answer for a class that a training set does not hold; otherwise the smallest number."""


def _align(answer: NDArray[Any], name: str, known: Any, classes: Any) -> NDArray[Any]:
    """Give an answer one column for each of all classes, whatever its own training set held."""
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
