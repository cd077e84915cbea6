"""Decision trees and random forests: scikit-learn's predictions, bit for bit, for less work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import get_tags

from .. import _core
from .._inputs.folds import Folds, Splits
from .._utils.estimator_class import known_class
from .._utils.jobs import effective_n_jobs
from .._utils.progress import Report, reporter
from .base import Candidate, Outcome
from .engine import Engine
from .forest_params import (
    BAGS,
    FORESTS,
    TREES,
    ForestOptions,
    ForestParams,
    growth,
    tree_of,
    why_not_parameters,
)
from .forest_proof import differing_trees
from .forest_weights import class_weights, why_not_weights
from .spec import Needs, Spec
from .streamed import streamed
from .task import Data, Problem, Task
from .train_scores import split_train_scores, with_training_rows

__all__ = ["FOREST"]

Floats = NDArray[np.float64]

MAX_CLASSES = 256
MAX_ROWS = 2**26

MAX_SPARSE_CELLS = 2**27
"""Rows times columns of sparse X: their ranks are dense, and take 6 or 12 bytes each."""

MIN_DENSITY = {"best": 0.02, "random": 0.1}
"""The least share of values that are stored, by splitter, where trees that draw few of the features
are not slower than scikit-learn's. Measured for 2000 rows and 1000 columns."""

MAX_TARGET = 2**31 - 1
MAX_SUM_OF_SQUARES = 2**48
"""Of the targets of a regression, with their weights, if all are whole numbers. Sums of others
depend on the order of addition."""

MAX_ROUNDED_SUM_OF_SQUARES = 1e300

MAX_TRAIN_RESPONSES = 2**26
"""For train scores: responses of all rows of all training sets."""


FOREST = Engine(
    name="forest",
    exact="bit for bit",
    cost="0.6 to 2.4 fits for a tree and 10 folds, 0.2 to 0.9 of k fits for a forest",
    responses=frozenset({"predict", "predict_proba", "predict_log_proba"}),
    returns=frozenset({"return_train_score"}),
    warns_of_refits=False,  # most calls leave random_state at None
    holds_responses=False,
    unknown="{name} is no decision tree, forest or bag of trees",
    solves_splits_alone=True,
)
"""Decision trees, forests and bags of trees, grown as scikit-learn grows them.

Columns are ranked once for all folds, trees and candidates. Trees that differ in where they stop
grow together, those that differ in how they are pruned are one tree, and the first m trees of a
forest serve a candidate of m trees. Predictions and probabilities are those of refits, bit for bit.
"""


@FOREST.supports(*TREES, *FORESTS, *BAGS, where=lambda view: _is_served(view.final))
def trees(view: Candidate, task: Task) -> Spec | str:
    """Parameters, targets and weights for which all sums are those of scikit-learn."""
    estimator, problem = view.estimator, task.problem
    if not _is_served(estimator):
        return f"{view.name} is no decision tree, forest or bag of trees"
    has_classes = view.is_classifier
    reason = task.why_not_scored or problem.once(
        ("not for forests", has_classes), lambda: _why_not_problem(problem, has_classes)
    )
    if reason is not None:
        return reason
    rows = task.data.rows
    n_features = rows.shape[1]
    n_train = problem.once("training set sizes of forests", lambda: _n_train(task.folds))
    has_missing = problem.once("missing values for forests", lambda: _has_missing(rows))
    factors = class_weights(estimator, task.data) if has_classes else None
    if isinstance(factors, str):
        return factors
    reason = (
        why_not_parameters(estimator, n_features, n_train)
        or why_not_weights(estimator, task, factors)
        or _why_not_responses(estimator, task)
        or _why_not_train_scores(view, task, n_train)
        or _why_not_missing(estimator, rows, has_missing)
    )
    if reason is not None:
        return reason
    has_fractions = not has_classes and problem.once(
        "fractions for forests", lambda: _has_fractions(task.data)
    )
    kinds = growth(
        estimator,
        has_fractions=has_fractions,
        is_weighted=factors is not None or task.data.weights is not None,
        is_sparse=sp.issparse(rows),
        has_missing=has_missing,
    )
    reason = differing_trees(kinds)
    if reason is not None:
        return reason
    try:
        params = ForestParams.of(estimator, n_features, n_train)
    except ValueError as error:
        return f"scikit-learn raises an error: {error}"
    needs = Needs(weights="any", scored_by_responses=False)
    return Spec(
        view,
        solve,
        params,
        family=(has_classes, factors),
        needs=needs,
        validates=False,
        on_request=_why_slower(params, rows),
    )


def solve(specs: Sequence[Spec], task: Task) -> Iterator[tuple[int, Outcome]]:
    """Grow the trees of all candidates on one pool of threads."""
    folds = with_training_rows(task.folds) if task.return_train_score else task.folds
    classes = task.data.classes[1] if specs[0].view.is_classifier else None
    start = time.perf_counter()
    for position, result in _results(specs, task, folds):
        seconds = time.perf_counter() - start
        estimator = specs[position].estimator
        outcome = _outcome(result, classes, seconds, estimator)
        if isinstance(folds, Splits) and folds is not task.folds:
            split_train_scores(outcome, estimator, task, folds)
        yield position, outcome
        start = time.perf_counter()


def _results(
    specs: Sequence[Spec], task: Task, folds: Folds | Splits
) -> Iterator[tuple[int, _core.OutOfFold]]:
    """What the core finds of each candidate, as soon as that is finished."""
    data = task.data
    _, factors = specs[0].family
    examples: tuple[Any, ...]
    if specs[0].view.is_classifier:
        codes, classes = data.classes
        weights = data.weights
        if factors is not None:
            of_rows = np.asarray(factors)[codes]
            weights = of_rows if weights is None else weights * of_rows
        examples = (data.rows, codes, len(classes), weights)
    else:
        examples = (data.rows, data.values, 0, data.weights)
    asked = [task.n_jobs, *(getattr(spec.estimator, "n_jobs", None) for spec in specs)]
    n_jobs = max(effective_n_jobs(n_jobs) for n_jobs in asked)
    params, options = [spec.params for spec in specs], ForestOptions.installed()
    with reporter(task.progress, unit="trees") as report:
        if len(specs) == 1:
            (result,) = _core.cross_validate(
                "forest", params, examples, folds, options, n_jobs=n_jobs, progress=report
            )
            yield 0, result
            return

        def call(send: Callable[[tuple[int, _core.OutOfFold]], object], report: Report) -> None:
            sent = replace(options, on_finished=lambda index, result: send((index, result)))
            _core.cross_validate(
                "forest", params, examples, folds, sent, n_jobs=n_jobs, progress=report
            )

        yield from streamed(call, report)


def _why_slower(params: ForestParams, rows: Any) -> str | None:
    """Why refits are faster: of sparse rows, they look at stored values only."""
    least = MIN_DENSITY[params.splitter]
    n_cells = rows.shape[0] * rows.shape[1]
    keeps_lists = params.splitter == "best" and 3 * params.max_features >= rows.shape[1]
    if keeps_lists or not sp.issparse(rows) or _stored_values(rows).size >= least * n_cells:
        return None
    return f"X is sparse, and stores less than {least:.0%} of its values: refits are faster"


def _is_served(estimator: Any) -> bool:
    if known_class(estimator, BAGS) is not None:
        return known_class(tree_of(estimator), TREES) is not None
    return known_class(estimator, (*TREES, *FORESTS)) is not None


def _n_train(folds: Folds | Splits) -> list[int]:
    """The number of rows of each training set."""
    if isinstance(folds, Splits):
        return [len(folds.train(fold)) for fold in range(len(folds))]
    sizes: list[int] = (folds.n_samples - np.diff(folds.starts)).tolist()
    return sizes


def _outcome(result: _core.OutOfFold, classes: Any, seconds: float, estimator: Any) -> Outcome:
    outputs: Floats = result.outputs
    if classes is None:
        answers = {"predict": outputs[:, 0]}
        return Outcome(answers, cost=result.cost, fit_time=seconds, is_timed=True)
    responses = {
        "predict": np.asarray(classes).take(outputs.argmax(axis=1), axis=0),
        "predict_proba": outputs,
    }
    if _has_log_of_shares(estimator):
        with np.errstate(divide="ignore"):
            responses["predict_log_proba"] = np.log(outputs)
    return Outcome(
        responses,
        classes=np.asarray(classes),
        cost=result.cost,
        fit_time=seconds,
        is_timed=True,
    )


def _has_log_of_shares(estimator: Any) -> bool:
    """Whether ``predict_log_proba`` is the logarithm of ``predict_proba``: not of a bag."""
    return known_class(estimator, BAGS) is None


def _why_not_responses(estimator: Any, task: Task) -> str | None:
    if task.required == "predict_log_proba" and not _has_log_of_shares(estimator):
        return "predict_log_proba of a bag is not that of its mean probabilities"
    return None


def _why_not_train_scores(view: Candidate, task: Task, n_train: Sequence[int]) -> str | None:
    if not task.return_train_score:
        return None
    n_outputs = len(task.data.classes[1]) if view.is_classifier else 1
    if (sum(n_train) + len(task.folds.rows)) * n_outputs > MAX_TRAIN_RESPONSES:
        return f"predictions of all training rows are more than {MAX_TRAIN_RESPONSES} numbers"
    return None


def _stored_values(rows: Any) -> Floats:
    is_sparse = sp.issparse(rows)
    values: Floats = rows.data if is_sparse else rows
    return values


def _has_missing(rows: Any) -> bool:
    return bool(np.isnan(np.min(_stored_values(rows), initial=0.0)))


def _why_not_missing(estimator: Any, rows: Any, has_missing: bool) -> str | None:
    if not has_missing:
        return None
    if sp.issparse(rows):
        return "X is sparse and has missing values"
    if not get_tags(tree_of(estimator)).input_tags.allow_nan:
        return "X has missing values, which the estimator does not take"
    return None


def _why_not_problem(problem: Problem, has_classes: bool) -> str | None:
    """Why rows, targets or folds are not covered, whatever the candidate."""
    data = problem.data
    if data.y is None:
        return "there are no targets"
    if np.ndim(data.y) != 1:
        return "y has columns"
    if data.n_samples > MAX_ROWS:
        return f"there are more than {MAX_ROWS} rows"
    return (
        _why_not_rows(data)
        or (_why_not_classes(problem) if has_classes else _why_not_values(data))
        or _why_not_folds(problem.folds)
    )


def _why_not_rows(data: Data) -> str | None:
    try:
        rows = data.rows
    except (TypeError, ValueError) as error:
        return str(error)
    n_cells = rows.shape[0] * rows.shape[1]
    if sp.issparse(rows) and n_cells > MAX_SPARSE_CELLS:
        return f"X is sparse, and has more than {MAX_SPARSE_CELLS} values with its zeros"
    values = _stored_values(rows)
    # Missing values do not count.
    lowest = np.fmin.reduce(values, axis=None, initial=0.0)
    highest = np.fmax.reduce(values, axis=None, initial=0.0)
    if max(-lowest, highest) > np.finfo(np.float32).max:
        return "X has values beyond float32"
    return None


def _why_not_classes(problem: Problem) -> str | None:
    try:
        _, classes = problem.data.classes
    except (TypeError, ValueError) as error:
        return str(error)
    if len(classes) > MAX_CLASSES:
        return f"there are more than {MAX_CLASSES} classes"
    return problem.missing_class()


def _why_not_values(data: Data) -> str | None:
    try:
        _ = data.values
    except (TypeError, ValueError) as error:
        return str(error)
    if not _sum_of_squares(data) <= MAX_ROUNDED_SUM_OF_SQUARES:
        return f"the squares of y add up to more than {MAX_ROUNDED_SUM_OF_SQUARES}"
    if sp.issparse(data.rows) and _has_fractions(data):
        return "X is sparse and y has values that are not whole numbers: rounding decides"
    return None


def _has_fractions(data: Data) -> bool:
    """Whether sums of the targets depend on the order of addition."""
    values = data.values
    is_exact = (
        np.all(values == np.floor(values))
        and np.abs(values).max() <= MAX_TARGET
        and _sum_of_squares(data) <= MAX_SUM_OF_SQUARES
    )
    return not is_exact


def _sum_of_squares(data: Data) -> float:
    weights = 1.0 if data.weights is None else data.weights[:, None]
    with np.errstate(over="ignore"):
        return float(np.sum(weights * data.values**2))


def _why_not_folds(folds: Folds | Splits) -> str | None:
    if isinstance(folds, Splits):
        for fold in range(len(folds)):
            if np.bincount(folds.train(fold)).max() > 1:
                return f"the training set of fold {fold} repeats rows"
    return None
