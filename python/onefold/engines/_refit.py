"""The standard way: one fit a fold. Slow, sure, and the yardstick of every other engine."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from traceback import format_exc
from typing import Any

import numpy as np
from joblib.parallel import get_active_backend
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params

from .. import _core
from .._progress import reporter
from .._scoring import RESPONSES, HeldOut
from . import _native as native
from ._base import Outcome, Task, Together, why_not_scored
from ._fold_scorer import FoldResult, FoldScorer, join_folds
from ._options import Check

__all__ = ["Refit", "report_failures"]


class Refit(Together):
    """Fit a clone of the estimator on every training set, in parallel over tasks and folds.

    Native learners are trained by the core, on as many threads, and know the option ``order``:
    ``"fixed"`` feeds the training rows as they come, ``"random"`` in a random order a fold.
    """

    name = "refit"
    options: Mapping[str, Check] = {"order": native.ORDER}
    responses = frozenset(RESPONSES)

    def why_not(self, task: Task) -> str | None:
        """Any estimator can be refitted."""
        if "order" in task.options and not native.is_native(task):
            return "only native learners have an order"
        return None

    def why_not_auto(self, task: Task) -> str | None:
        """Refits are what is estimated."""
        return None

    def run_many(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome]]:
        """Fit, score and ask for predictions, fold by fold."""
        natives = [place for place, task in enumerate(tasks) if _runs_natively(task)]
        others = [place for place, task in enumerate(tasks) if not _runs_natively(task)]
        if natives:
            batch = [tasks[place] for place in natives]
            for number, outcome in native.run_many(batch, _core.refit_cv):
                yield natives[number], outcome
        if others:
            outcomes = fit_all([tasks[place] for place in others])
            yield from zip(others, outcomes, strict=True)


def _runs_natively(task: Task) -> bool:
    """Whether the core's answers are enough."""
    return native.is_native(task) and ("order" in task.options or why_not_scored(task) is None)


def fit_all(tasks: Sequence[Task]) -> Iterator[Outcome]:
    """Fit all tasks on all training sets in one pool of processes."""
    folds, n_folds = tasks[0].folds, len(tasks[0].folds)
    jobs = (
        delayed(_fit_fold)(training, scorer, folds.train(fold), folds.test(fold), *keep)
        for training, scorer, keep in map(_read, tasks)
        for fold in range(n_folds)
    )
    # A pool that cannot give folds as they come, such as multiprocessing's, gives all at the end.
    can_stream = getattr(get_active_backend()[0], "supports_return_generator", False)
    parallel = Parallel(
        n_jobs=tasks[0].n_jobs,
        pre_dispatch=tasks[0].pre_dispatch,
        return_as="generator" if can_stream else "list",
    )
    fitted: list[_Fitted] = []
    left = iter(tasks)
    with reporter(tasks[0].progress, unit="folds") as report:
        for n_done, fold in enumerate(parallel(jobs), start=1):
            fitted.append(fold)
            if report is not None:
                report(n_done, n_folds * len(tasks))
            if len(fitted) == n_folds:
                yield _outcome(next(left), fitted)
                fitted = []


def _read(task: Task) -> tuple[_Training, FoldScorer, tuple[bool, bool]]:
    training = _Training(clone(task.estimator), task.X, task.y, task.fit_keywords)
    return training, FoldScorer.of(task), (task.return_train_score, task.return_estimator)


def _outcome(task: Task, fitted: list[_Fitted]) -> Outcome:
    """Join the folds of one task."""
    failures = [fold.failure for fold in fitted if fold.failure is not None]
    answers, classes = ({}, None) if failures else join_folds([f.test for f in fitted], task)
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
        test_scores=[fold.test.scores for fold in fitted],
        train_scores=[fold.train_scores for fold in fitted] if task.return_train_score else None,
        estimators=[fold.estimator for fold in fitted] if task.return_estimator else None,
        failures=failures,
    )


@dataclass(frozen=True)
class _Training:
    """What one fold's worker fits, and on what."""

    estimator: Any
    X: Any
    y: Any
    fit_params: dict[str, Any]


@dataclass
class _Fitted:
    """What one fold's worker sends back."""

    n_train: int
    n_test: int
    fit_time: float = 0.0
    score_time: float = 0.0
    test: FoldResult = field(default_factory=FoldResult)
    train_scores: dict[str, float] = field(default_factory=dict)
    estimator: Any = None
    failure: str | None = None


def _fit_fold(
    training: _Training,
    scorer: FoldScorer,
    train: Any,
    test: Any,
    return_train_score: bool,
    return_estimator: bool,
) -> _Fitted:
    estimator = clone(training.estimator)
    X_train, y_train = _safe_split(estimator, training.X, training.y, train)
    X_test, y_test = _safe_split(estimator, training.X, training.y, test, train)
    fit_params = _check_method_params(training.X, params=training.fit_params, indices=train)
    found = _Fitted(len(train), len(test))
    start = time.perf_counter()
    try:
        targets = () if y_train is None else (y_train,)
        estimator.fit(X_train, *targets, **fit_params)
    except Exception:
        if scorer.error_score == "raise":
            raise
        found.fit_time = time.perf_counter() - start
        found.failure = format_exc()
        return found
    found.fit_time = time.perf_counter() - start
    start = time.perf_counter()
    found.test = scorer.evaluate(estimator, X_test, y_test, test)
    found.score_time = time.perf_counter() - start
    if return_train_score:
        found.train_scores = scorer.scores(HeldOut(estimator), X_train, y_train, train)
    if return_estimator:
        found.estimator = estimator
    return found


def report_failures(outcomes: Sequence[Outcome], n_fits: int, error_score: float | str) -> None:
    """Warn of fits that failed; all of them failing is an error, as in scikit-learn."""
    failures = [failure for outcome in outcomes for failure in outcome.failures]
    if not failures:
        return
    details = "\n".join(dict.fromkeys(failures))
    if len(failures) == n_fits:
        raise ValueError(
            f"All the {n_fits} fits failed. error_score='raise' stops at the first.\n{details}"
        )
    warnings.warn(
        f"{len(failures)} fits failed out of a total of {n_fits}. The score on these folds "
        f"is set to {error_score}. Details:\n{details}",
        FitFailedWarning,
        stacklevel=4,
    )
