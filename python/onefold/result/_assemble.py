"""From the outcome of an engine to scores and the result of a call."""

from __future__ import annotations

import time
from copy import copy
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import r2_score, roc_auc_score

from .._engines import Outcome, Task
from .._engines.precision import in_precision_of_fits
from .._inputs.caller_data import copied
from .._inputs.routing import params_of_rows
from .._scoring.losses import losses
from .._scoring.scorers import (
    DevianceExplained,
    HeldOut,
    Scorer,
    is_sum,
    loss_of,
    metric_of,
    per_sample,
    reads_answers,
    score_held_out,
    sign_of,
)
from .._sklearn_compat import _safe_indexing, scorer_keywords
from .._utils.cached_property import cached_property
from .._utils.warnings import each_warning_once, warn
from ._cv_result import CVResult
from ._refit_check import RefitCheck
from ._settings import settings_of

__all__ = [
    "HeldOutTargets",
    "compare_with_refits",
    "fold_scores",
    "held_out_losses",
    "make_result",
    "pooled_scores",
    "result_of_columns",
    "score_columns",
    "times_per_fold",
]

Floats = NDArray[np.float64]


def make_result(
    estimator: Any, task: Task, outcome: Outcome, *, engine: str, return_indices: bool
) -> CVResult:
    """Score the held-out answers and put everything into one result."""
    folds = task.folds
    targets = HeldOutTargets(task)
    columns = score_columns(estimator, task, outcome, targets)
    if outcome.estimators is not None:
        columns["estimator"] = outcome.estimators
    if return_indices:
        columns["indices"] = {
            "train": tuple(folds.train(i) for i in range(len(folds))),
            "test": tuple(folds.test(i) for i in range(len(folds))),
        }
    return result_of_columns(estimator, task, outcome, columns, targets, engine=engine)


def result_of_columns(
    estimator: Any,
    task: Task,
    outcome: Outcome,
    columns: dict[str, Any],
    targets: HeldOutTargets,
    *,
    engine: str,
) -> CVResult:
    """The result of held-out answers whose folds are scored."""
    metrics = [key.removeprefix("test_") for key in columns if key.startswith("test_")]
    pooled, notes = pooled_scores(estimator, task, outcome, metrics, targets)
    notes += [
        f"{name} is not defined on every test set: see the pooled one"
        for name in metrics
        if np.isnan(columns[f"test_{name}"]).any() and not np.isnan(pooled[name])
    ]
    check = compare_with_refits(estimator, task, outcome, columns, targets)
    status = outcome.status_by(engine)
    result = CVResult(
        columns,
        estimator_name=type(estimator).__name__,
        folds=task.folds,
        targets=_as_array(task.data.y),
        answers=in_precision_of_fits(outcome.answers, estimator, task),
        pooled=pooled,
        losses=held_out_losses(estimator, outcome, targets),
        classes=outcome.classes,
        status=status,
        cost=outcome.cost,
        notes=[*status.notes, *outcome.notes, *notes],
        check=check,
        certificates=outcome.certificates,
        has_groups=task.has_groups,
        settings=settings_of(estimator, task),
    )
    if result.std_error_form == "repeated":
        n_partitions = len(result._error.sizes)
        result.notes.append(
            f"{n_partitions} partitions: see partition_means and between_partitions"
        )
    return result


def _as_array(y: Any) -> NDArray[Any] | None:
    """Targets as they are given; None if they are sparse."""
    return None if y is None or sp.issparse(y) else np.asarray(y)


def compare_with_refits(
    estimator: Any,
    task: Task,
    outcome: Outcome,
    columns: dict[str, Any],
    targets: HeldOutTargets,
) -> RefitCheck | None:
    """Compare the scores of folds that were also trained from nothing, if there are any."""
    refitted = outcome.refitted
    if refitted is None:
        return None
    refit_targets = HeldOutTargets(refitted.task)
    refit_columns = score_columns(estimator, refitted.task, refitted.outcome, refit_targets)
    differences = {
        key.removeprefix("test_"): columns[key][refitted.folds] - refit_columns[key]
        for key in columns
        if key.startswith("test_")
    }
    if any(np.isnan(values).any() for values in differences.values()):
        # Metrics that are not defined on single samples: compare the losses.
        engine_losses = losses(estimator, targets.y, outcome.answers)
        refit_losses = losses(estimator, refit_targets.y, refitted.outcome.answers)
        if engine_losses is not None and refit_losses is not None:
            means = targets.fold_means(engine_losses[1], "")[refitted.folds]
            differences = {engine_losses[0]: means - refit_targets.fold_means(refit_losses[1], "")}
    return RefitCheck.of(differences)


class HeldOutTargets:
    """Targets, and the arguments of each scorer, in test order: the same for all candidates."""

    def __init__(self, task: Task) -> None:
        self.task = task
        problem, y = task.problem, task.data.y
        rows = problem.folds.rows
        self.y: Any = None if y is None else _safe_indexing(y, rows)
        self.params = params_of_rows(task.score_params, problem.data.n_samples, rows)
        """Arguments of each scorer besides rows and targets."""
        self.weights = {
            name: arguments["sample_weight"]
            for name, arguments in self.params.items()
            if "sample_weight" in arguments
        }
        sizes = np.diff(problem.folds.starts)
        self.smallest, self.largest = int(sizes.min()), int(sizes.max())
        """Sizes of test sets."""
        self._problem = problem
        self._is_one_set = False
        self._spreads: dict[str, Floats] = {}

    @cached_property
    def together(self) -> HeldOutTargets:
        """The same rows as a single test set."""
        other = copy(self)
        other._is_one_set = True
        other.smallest = other.largest = len(self._problem.folds.rows)
        other._spreads = {}
        return other

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where each fold starts in test order. Not kept: with leave-one-out it is as long as y."""
        starts = self._problem.folds.starts
        return starts[[0, -1]] if self._is_one_set else starts

    def spread(self, metric: str) -> Floats:
        """The variance of the targets of every fold."""
        if metric not in self._spreads:
            y = np.asarray(self.y, dtype=np.float64)
            means = np.repeat(self.fold_means(y, metric), np.diff(self.starts))
            self._spreads[metric] = self.fold_means(np.square(y - means), metric)
        return self._spreads[metric]

    def fold_sums(self, values: NDArray[Any], metric: str) -> Floats:
        """Sums of every fold, with the weights of a metric."""
        weights = self.weights.get(metric)
        weighted = values if weights is None else values * weights
        return np.add.reduceat(weighted, self.starts[:-1], dtype=np.float64)

    def fold_means(self, values: NDArray[Any], metric: str) -> Floats:
        """Means of every fold, with the weights of a metric."""
        weights = self.weights.get(metric)
        if self._is_one_set:
            return np.array([np.average(values, weights=weights)])
        if weights is None and len(self._problem.folds) == len(values):
            return np.asarray(values, dtype=np.float64)  # one row per fold
        starts = self.starts
        if weights is None:
            totals = np.add.reduceat(values, starts[:-1], dtype=np.float64)
            return np.asarray(totals / np.diff(starts))
        totals = np.add.reduceat(weights, starts[:-1])
        with np.errstate(invalid="ignore"):
            return np.asarray(np.add.reduceat(values * weights, starts[:-1]) / totals)


def held_out_losses(
    estimator: Any, outcome: Outcome, targets: HeldOutTargets
) -> tuple[str, Floats] | None:
    """Name and value of each held-out sample's loss: of the one metric asked for, if it is one."""
    asked = loss_of(targets.task.scorers, estimator)
    return losses(estimator, targets.y, outcome.answers, outcome.classes, asked=asked)


def score_columns(
    estimator: Any, task: Task, outcome: Outcome, targets: HeldOutTargets
) -> dict[str, Any]:
    """Times and scores of every fold, under the names scikit-learn gives them."""
    scores = fold_scores(estimator, task, outcome, targets)
    n_folds = len(task.folds)
    return {
        "fit_time": times_per_fold(outcome.fit_time, n_folds),
        "score_time": times_per_fold(outcome.score_time, n_folds),
    } | {name: np.require(score, requirements="W") for name, score in scores.items()}


def fold_scores(
    estimator: Any, task: Task, outcome: Outcome, targets: HeldOutTargets
) -> dict[str, Floats]:
    """Scores of every fold, under the names scikit-learn gives them; ``score_time`` is noted."""
    start = time.perf_counter()
    if outcome.test_scores is not None:
        test = _by_metric(outcome.test_scores, task)
    else:
        test = _from_answers(estimator, task, outcome, targets)
        outcome.score_time = time.perf_counter() - start
    columns = {f"test_{name}": scores for name, scores in test.items()}
    if outcome.train_scores is not None:
        train = _by_metric(outcome.train_scores, task)
        columns |= {f"train_{name}": scores for name, scores in train.items()}
    return columns


def times_per_fold(seconds: Floats | float, n_folds: int) -> Floats:
    """Seconds of each fold; work that folds share is divided evenly."""
    return np.full(n_folds, seconds / n_folds) if isinstance(seconds, float) else seconds


def _by_metric(folds: list[dict[str, float]], task: Task) -> dict[str, Floats]:
    """Turn one dictionary per fold into one array per metric.

    A fold whose fit failed has no scores, nor the names of the metrics that a callable returns.
    """
    names = max(folds, key=len) or task.scorers
    return {
        name: np.array([fold.get(name, task.error_score) for fold in folds], dtype=np.float64)
        for name in names
    }


def _from_answers(
    estimator: Any, task: Task, outcome: Outcome, targets: HeldOutTargets
) -> dict[str, Floats]:
    """Scores of every fold from an engine's answers."""
    scores: dict[str, Floats] = {}
    for name, scorer in task.scorers.items():
        fast = _in_one_pass(name, scorer, estimator, outcome, targets)
        if fast is not None:
            scores[name] = fast
        else:
            held = (estimator, outcome, targets)
            scores |= _one_by_one(name, scorer, task, *held)
    return scores


def _in_one_pass(
    name: str, scorer: Scorer, estimator: Any, outcome: Outcome, targets: HeldOutTargets
) -> Floats | None:
    """Scores of all test sets in a few passes over the answers, of metrics that are known."""
    metric = metric_of(scorer, estimator)
    is_of_sets = metric in (r2_score, roc_auc_score) or isinstance(metric, DevianceExplained)
    if is_of_sets and targets.largest == 1:
        warn(
            "R², D² and AUC are not defined for a single sample; see the result's pooled score",
            UndefinedMetricWarning,
        )
        return np.broadcast_to(np.nan, len(targets.starts) - 1)
    if not _are_finite(outcome.answers.get("predict")):
        return None  # exp(1000), which scikit-learn's metrics refuse
    values = per_sample(scorer, estimator, targets.y, outcome.answers)
    if values is not None:
        total = targets.fold_sums if is_sum(scorer, estimator) else targets.fold_means
        return total(values, name)
    if metric is r2_score and targets.smallest > 1 and _is_plain_r2(scorer, outcome, targets):
        return sign_of(scorer) * _fold_r2(outcome.answers["predict"], targets, name)
    return None


def _are_finite(prediction: Any) -> bool:
    """Whether predictions have no infinite number, as labels and other objects have none."""
    is_of_numbers = isinstance(prediction, np.ndarray) and prediction.dtype.kind == "f"
    return not is_of_numbers or bool(np.isfinite(prediction).all())


def _is_plain_r2(scorer: Scorer, outcome: Outcome, targets: HeldOutTargets) -> bool:
    """Whether R² is that of one output."""
    y = targets.y
    return (
        not scorer_keywords(scorer)
        and isinstance(y, np.ndarray)
        and y.ndim == 1
        and y.dtype.kind in "fiu"
        and "predict" in outcome.answers
        and outcome.answers["predict"].shape == y.shape
    )


def _fold_r2(prediction: Floats, targets: HeldOutTargets, metric: str) -> Floats:
    """R² of all folds in a few passes, as scikit-learn defines it: 1 where nothing is left."""
    left = targets.fold_means(np.square(targets.y - prediction), metric)
    spread = targets.spread(metric)
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = 1.0 - left / spread
    scores[spread == 0.0] = 0.0
    scores[left == 0.0] = 1.0
    return np.asarray(scores)


def _one_by_one(
    name: str,
    scorer: Scorer,
    task: Task,
    estimator: Any,
    outcome: Outcome,
    targets: HeldOutTargets,
) -> dict[str, Floats]:
    """Scores of every fold by a scorer that is called for each of them."""
    y = targets.y
    folds = []
    # scikit-learn's scorers read the answers and never the rows.
    X = None if reads_answers(scorer) else task.data.X
    with each_warning_once():
        for fold, (start, stop) in enumerate(pairwise(targets.starts.tolist())):
            part = slice(start, stop)
            rows = None if X is None else _safe_indexing(X, task.folds.test(fold))
            held = HeldOut(
                estimator,
                {key: answer[part] for key, answer in outcome.answers.items()},
                outcome.classes,
                rows,
            )
            folds.append(
                score_held_out(
                    {name: scorer},
                    held,
                    rows,
                    None if y is None else copied(y[part]),
                    params=params_of_rows(targets.params, len(task.folds.rows), part),
                    error_score=task.error_score,
                    beside=task.scorers,
                )
            )
    return _by_metric(folds, task)


def pooled_scores(
    estimator: Any, task: Task, outcome: Outcome, metrics: list[str], targets: HeldOutTargets
) -> tuple[dict[str, float], list[str]]:
    """Score all held-out answers at once; a metric that needs more than answers gets NaN."""
    pooled = dict.fromkeys(metrics, float("nan"))
    if not outcome.answers:
        return pooled, ["some fits failed, so there are no held-out predictions"]
    y = targets.y
    classes: Any = outcome.classes
    if classes is None and is_classifier(estimator) and isinstance(y, np.ndarray) and y.ndim == 2:
        classes = [np.unique(column) for column in y.T]
    held = HeldOut(estimator, outcome.answers, classes)
    notes = []
    for name, scorer in task.scorers.items():
        try:
            fast = _in_one_pass(name, scorer, estimator, outcome, targets.together)
            if fast is not None:
                pooled[name] = float(fast[0])
                continue
            pooled |= score_held_out(
                {name: scorer},
                held,
                None,
                copied(y),
                params=targets.params,
                beside=task.scorers,
            )
        except Exception as error:
            notes.append(f"no pooled {name}: {error}")
    return pooled, notes
