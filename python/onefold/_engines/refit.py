"""The standard method: one fit per fold. Slow, and the reference for every other engine."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from traceback import format_exc
from typing import Any

import numpy as np
from joblib.parallel import get_active_backend
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.utils.parallel import Parallel, delayed

from .._scoring.scorers import HeldOut
from .._sklearn_compat import _check_method_params, _num_samples, _safe_indexing, _safe_split
from .._utils.jobs import effective_n_jobs
from .._utils.progress import part, reporter
from .._utils.warnings import warn
from .base import FoldHook, Outcome, fit_keywords
from .early_stopping import EvalSplit
from .fold_scorer import FoldResult, FoldScorer, Joined, join_folds
from .iterations import Iterations, iterations_of
from .spec import Spec
from .status import Status
from .submodels import families_of_sizes, size_of, truncated
from .task import Task

__all__ = [
    "Fitted",
    "RowBlocks",
    "Training",
    "can_stream",
    "fit_all",
    "fit_fold",
    "join_fits",
    "report_failures",
    "solve",
]


def solve(specs: Sequence[Spec], task: Task) -> Iterator[tuple[int, Outcome]]:
    """Fit all candidates; ensembles that differ in the number of members only are fitted together.

    Fit, score and predict, fold by fold.
    """
    families = [[number] for number in range(len(specs))]
    if not task.return_estimator and all(spec.hooks is None for spec in specs):
        estimators = [spec.estimator for spec in specs]
        families = families_of_sizes(estimators, task.data.n_samples, task.fit_params)
    alone = [family[0] for family in families if len(family) == 1]
    together = [family for family in families if len(family) > 1]
    if alone:
        progress = part(task.progress, 0, 1 + len(together)) if together else task.progress
        outcomes = fit_all([specs[number] for number in alone], replace(task, progress=progress))
        yield from zip(alone, outcomes, strict=True)
    n_before = len(families) - len(together) > 0
    for index, family in enumerate(together, start=n_before):
        n_parts = n_before + len(together)
        progress = part(task.progress, index, n_parts) if n_parts > 1 else task.progress
        members = [specs[number].estimator for number in family]
        outcomes = _fit_sizes(members, replace(task, progress=progress))
        yield from zip(family, outcomes, strict=True)


def _fit_sizes(estimators: Sequence[Any], task: Task) -> Iterator[Outcome]:
    """Fit the first ensemble on all training sets, and read the others, which are parts of it."""
    folds, n_folds = task.folds, len(task.folds)
    scorer = FoldScorer.of(task)
    trainings = [Training.of(estimator, task) for estimator in estimators]
    keep = task.return_train_score
    jobs = (
        delayed(_fit_fold_of_sizes)(trainings, scorer, folds.train(fold), folds.test(fold), keep)
        for fold in range(n_folds)
    )
    parallel = Parallel(
        n_jobs=effective_n_jobs(task.n_jobs, n_folds),
        pre_dispatch=task.pre_dispatch,
        return_as="generator" if can_stream() else "list",
    )
    fitted: list[list[Fitted]] = []
    with reporter(task.progress, unit="folds") as report:
        for fold in parallel(jobs):
            fitted.append(fold)
            if report is not None:
                report(len(fitted), n_folds)
    for estimator, of_size in zip(estimators, zip(*fitted, strict=True), strict=True):
        outcome = join_fits(estimator, task, list(of_size), "")
        if outcome.cost["fits"] == 0:
            largest = size_of(estimators[0])
            outcome.notes.append(f"its members are the first of {largest}, which were fitted once")
        yield outcome


def _fit_fold_of_sizes(
    trainings: Sequence[Training], scorer: FoldScorer, train: Any, test: Any, keep: bool
) -> list[Fitted]:
    """Fit the first ensemble on one training set and evaluate all; each alone if that fails."""
    largest, *others = trainings
    first = fit_fold(largest, scorer, train, test, keep, True, None)
    if first.failure is not None:
        alone = [fit_fold(own, scorer, train, test, keep, False, None) for own in others]
        return [first, *alone]
    estimator, first.estimator = first.estimator, None
    first.fit_time /= len(trainings)
    X_train, y_train, X_test, y_test = largest.split(train, test)
    results = [first]
    for training in others:
        start = time.perf_counter()
        smaller = truncated(estimator, size_of(training.estimator))
        result = Fitted(len(train), len(test), fit_time=first.fit_time, n_fits=0)
        result.iterations = iterations_of(smaller)
        result.test = scorer.evaluate(smaller, X_test, y_test, test)
        result.score_time = time.perf_counter() - start
        if keep:
            result.train_scores = scorer.scores(HeldOut(smaller), X_train, y_train, train)
        results.append(result)
    return results


def can_stream() -> bool:
    """Backends that cannot stream results, such as multiprocessing, return all at the end."""
    return bool(getattr(get_active_backend()[0], "supports_return_generator", False))


def fit_all(specs: Sequence[Spec], task: Task, reason: str = "") -> Iterator[Outcome]:
    """Fit the estimators of all specs on all training sets, in one pool of processes.

    ``reason`` says why, where an engine was to solve them.
    """
    folds, n_folds = task.folds, len(task.folds)
    scorer = FoldScorer.of(task)
    keep = (task.return_train_score, task.return_estimator)
    jobs = (
        delayed(fit_fold)(training, scorer, folds.train(fold), folds.test(fold), *keep, hook)
        for training, hooks in ((Training.of(plan.estimator, task), plan.hooks) for plan in specs)
        for fold, hook in enumerate(hooks or [None] * n_folds)
    )
    parallel = Parallel(
        n_jobs=effective_n_jobs(task.n_jobs, n_folds * len(specs)),
        pre_dispatch=task.pre_dispatch,
        return_as="generator" if can_stream() else "list",
    )
    fitted: list[Fitted] = []
    left = iter(specs)
    with reporter(task.progress, unit="folds") as report:
        for n_done, fold in enumerate(parallel(jobs), start=1):
            fitted.append(fold)
            if len(fitted) == n_folds:
                yield join_fits(next(left).estimator, task, fitted, reason)
                fitted = []
            if report is not None:  # last: it may end the work
                report(n_done, n_folds * len(specs))


def join_fits(estimator: Any, task: Task, fitted: list[Fitted], reason: str) -> Outcome:
    """Join the folds of one estimator."""
    failures = [fold.failure for fold in fitted if fold.failure is not None]
    tests = [fold.test for fold in fitted]
    joined = Joined() if failures else join_folds(tests, estimator, task)
    iterations = Iterations()
    for fold in fitted:
        iterations.add_counts(*fold.iterations)
    return Outcome(
        answers=joined.answers,
        classes=joined.classes,
        cost={
            "fits": sum(fold.n_fits for fold in fitted),
            "rows_fed": sum(fold.n_train * fold.n_fits for fold in fitted),
            "rows_evaluated": sum(fold.n_test for fold in fitted),
        },
        fit_time=np.array([fold.fit_time for fold in fitted]),
        score_time=np.array([fold.score_time for fold in fitted]),
        test_scores=[fold.test.scores for fold in fitted],
        train_scores=[fold.train_scores for fold in fitted] if task.return_train_score else None,
        estimators=[fold.estimator for fold in fitted] if task.return_estimator else None,
        failures=failures,
        notes=joined.notes,
        is_observed=True,
        is_timed=True,
        status=Status(
            "refit",
            refitted_folds=len(fitted),
            reason=reason,
            unsolved=iterations.text if iterations.n_reached else "",
        ),
    )


@dataclass(frozen=True)
class RowBlocks:
    """The training and the held-out rows of the only fold of a task: neither stacked nor copied."""

    train: Any
    test: Any

    def __len__(self) -> int:
        return int(_num_samples(self.train) + _num_samples(self.test))


@dataclass(frozen=True)
class Training:
    """What the worker of a fold fits, and on what."""

    estimator: Any
    X: Any
    y: Any
    fit_params: dict[str, Any]
    eval_split: EvalSplit | None = None

    @classmethod
    def of(cls, estimator: Any, task: Task) -> Training:
        data = task.data
        keywords = fit_keywords(estimator, task)
        return cls(clone(estimator), data.X, data.y, keywords, EvalSplit.of(task))

    def split(self, train: Any, test: Any) -> tuple[Any, Any, Any, Any]:
        """Rows and targets for training, then those that are held out."""
        if isinstance(self.X, RowBlocks):
            X = self.X.train, self.X.test
            y = [None if self.y is None else _safe_indexing(self.y, rows) for rows in (train, test)]
            return X[0], y[0], X[1], y[1]
        return (
            *_safe_split(self.estimator, self.X, self.y, train),
            *_safe_split(self.estimator, self.X, self.y, test, train),
        )


@dataclass
class Fitted:
    """What the worker of a fold sends back."""

    n_train: int
    n_test: int
    fit_time: float = 0.0
    score_time: float = 0.0
    test: FoldResult = field(default_factory=FoldResult)
    train_scores: dict[str, float] = field(default_factory=dict)
    estimator: Any = None
    failure: str | None = None
    iterations: tuple[int, int] = (0, 0)
    """Those of the model, and their limit."""
    n_fits: int = 1
    """0 of a part of an ensemble that was fitted for another candidate."""


def fit_fold(
    training: Training,
    scorer: FoldScorer,
    train: Any,
    test: Any,
    return_train_score: bool,
    return_estimator: bool,
    hook: FoldHook | None,
) -> Fitted:
    estimator = clone(training.estimator)
    X_train, y_train, X_test, y_test = training.split(train, test)
    fit_params = _check_method_params(training.X, params=training.fit_params, indices=train)
    found = Fitted(len(train), len(test))
    observed: AbstractContextManager[None] = nullcontext()
    if hook is not None:
        observed = hook.around(estimator, X_train, y_train, fit_params.get("sample_weight"))
    start = time.perf_counter()
    try:
        with observed:
            if training.eval_split is not None:
                training.eval_split.fit(estimator, X_train, y_train, fit_params)
            else:
                targets = () if y_train is None else (y_train,)
                estimator.fit(X_train, *targets, **fit_params)
    except Exception:
        if scorer.error_score == "raise":
            raise
        found.fit_time = time.perf_counter() - start
        found.failure = format_exc()
        return found
    found.fit_time = time.perf_counter() - start
    found.iterations = iterations_of(estimator)
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
    failures = Counter(failure for outcome in outcomes for failure in outcome.failures)
    if not failures:
        return
    details = "\n".join(
        f"{'-' * 80}\n{count} fits failed with the following error:\n{traceback}"
        for traceback, count in failures.items()
    )
    if failures.total() == n_fits:
        raise ValueError(
            f"All the {n_fits} fits failed: it is very likely that your model is misconfigured. "
            f"error_score='raise' stops at the first.\n{details}"
        )
    warn(
        f"{failures.total()} fits failed out of a total of {n_fits}. The score on these "
        f"train-test partitions for these parameters will be set to {error_score}. "
        f"error_score='raise' stops at the first.\n{details}",
        FitFailedWarning,
    )
