"""Decision trees and random forests: scikit-learn's predictions, bit for bit, for less work."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier
from sklearn.utils import check_random_state

from .. import _core
from .._estimator_class import known_class
from .._folds import Folds, Splits
from .._jobs import effective_n_jobs
from .._progress import reporter
from ._base import Candidate, EngineBase, Outcome, Plan
from ._forest_proof import differing_trees
from ._options import Check
from ._sklearn_forest import n_bootstrap_rows
from ._task import Data, Problem, Task

__all__ = ["ForestParams", "ForestPlan", "Forests"]

Floats = NDArray[np.float64]

TREES = (DecisionTreeClassifier,)
FORESTS = (RandomForestClassifier,)

MAX_CLASSES = 256
MAX_ROWS = 2**26
MAX_WEIGHT = 2**24 - 1
"""Of a sample. Sums of weights and their squares are exact in float64."""

MAX_SEED = 2**32 - 1


@dataclass(frozen=True, kw_only=True)
class ForestParams:
    """The parameters of a tree or a forest, as the core reads them."""

    criterion: str
    max_depth: int | None
    min_samples_split: int | float
    min_samples_leaf: int | float
    min_weight_fraction_leaf: float
    min_impurity_decrease: float
    max_features: int
    seeds: NDArray[np.uint32]
    """The ``random_state`` of every tree."""
    n_draws: list[int] | None
    """Rows of a bootstrap sample of each training set; None without bootstrap."""

    @classmethod
    def of(cls, estimator: Any, n_features: int, n_train: Sequence[int]) -> ForestParams:
        """Read the parameters of an estimator, for training sets of ``n_train`` rows."""
        is_forest = known_class(estimator, FORESTS) is not None
        seeds = np.array([estimator.random_state], dtype=np.uint32)
        if is_forest:
            random_state = check_random_state(estimator.random_state)
            largest = np.iinfo(np.int32).max
            draws = random_state.randint(largest, size=int(estimator.n_estimators))
            seeds = draws.astype(np.uint32)
        n_draws = None
        if is_forest and estimator.bootstrap:
            sizes = {n: n_bootstrap_rows(n, estimator.max_samples) for n in set(n_train)}
            n_draws = [sizes[n] for n in n_train]
        return cls(
            criterion=estimator.criterion,
            max_depth=None if estimator.max_depth is None else int(estimator.max_depth),
            min_samples_split=_count(estimator.min_samples_split),
            min_samples_leaf=_count(estimator.min_samples_leaf),
            min_weight_fraction_leaf=float(estimator.min_weight_fraction_leaf),
            min_impurity_decrease=float(estimator.min_impurity_decrease),
            max_features=_max_features(estimator.max_features, n_features),
            seeds=seeds,
            n_draws=n_draws,
        )


def _count(number: Any) -> int | float:
    return int(number) if isinstance(number, Integral) else float(number)


def _max_features(max_features: Any, n_features: int) -> int:
    """The number of features that a node draws, as scikit-learn reads it."""
    if max_features is None:
        return n_features
    if isinstance(max_features, str):
        root = np.sqrt if max_features == "sqrt" else np.log2
        return max(1, int(root(n_features)))
    if isinstance(max_features, Integral):
        return int(max_features)
    return max(1, int(max_features * n_features))


@dataclass(frozen=True, kw_only=True)
class ForestPlan(Plan):
    """A tree or a forest of classes."""

    params: ForestParams


class Forests(EngineBase):
    """Decision trees and random forests of classes, grown as scikit-learn grows them.

    Columns are ranked once for all folds, trees and candidates. Trees that differ in where they
    stop grow together, and the first m trees of a forest serve a candidate of m trees. Predictions
    and probabilities are those of refits, bit for bit.
    """

    name = "forest"
    warns_of_refits = False  # most calls leave random_state at None
    options: Mapping[str, Check] = {}
    responses = frozenset({"predict", "predict_proba", "predict_log_proba"})

    def serves(self, candidate: Candidate) -> bool:
        """Trees and forests of classes."""
        return _is_served(candidate.final)

    def plan(self, candidate: Candidate, task: Task) -> ForestPlan | str:
        """Parameters, targets and weights for which all sums are exact."""
        estimator = candidate.estimator
        if not _is_served(estimator):
            return f"{candidate.name} is no decision tree or random forest of classes"
        reason = (
            task.why_not_scored
            or _why_not_parameters(estimator)
            or _why_not_weights(estimator, task)
            or task.problem.once("not for forests", lambda: _why_not_problem(task.problem))
            or differing_trees()
        )
        if reason is not None:
            return reason
        n_train = task.problem.once("training set sizes", lambda: _n_train(task.folds))
        try:
            params = ForestParams.of(estimator, task.data.rows.shape[1], n_train)
        except ValueError as error:
            return f"scikit-learn raises an error: {error}"
        return ForestPlan(estimator, params=params)

    def run_many(self, plans: Sequence[ForestPlan], task: Task) -> Iterator[tuple[int, Outcome]]:
        """Grow the trees of all candidates on one pool of threads."""
        start = time.perf_counter()
        data = task.data
        codes, classes = data.classes
        examples = (data.rows, codes, len(classes), data.weights)
        asked = [task.n_jobs, *(getattr(plan.estimator, "n_jobs", None) for plan in plans)]
        n_jobs = max(effective_n_jobs(n_jobs) for n_jobs in asked)
        finished: list[tuple[int, dict[str, Any]]] = []
        stopped: BaseException | None = None
        with reporter(task.progress, unit="trees") as report:
            try:
                _core.forest_cv(
                    examples,
                    task.folds,
                    [plan.params for plan in plans],
                    finished,
                    n_jobs=n_jobs,
                    progress=report,
                )
            except BaseException as error:  # raised again when all finished outcomes are yielded
                stopped = error
        # Candidates share most of the work: each gets an equal part of the time.
        seconds = (time.perf_counter() - start) / max(len(finished), 1)
        for position, result in finished:
            yield position, _outcome(result, classes, task, seconds)
        if stopped is not None:
            raise stopped


def _is_served(estimator: Any) -> bool:
    # ExtraTreeClassifier is a subclass that changes defaults only, but those are not covered.
    known = known_class(estimator, (*TREES, *FORESTS, ExtraTreeClassifier))
    return known is not None and known is not ExtraTreeClassifier


def _n_train(folds: Folds | Splits) -> list[int]:
    """The number of rows of each training set."""
    if isinstance(folds, Splits):
        return [len(folds.train(fold)) for fold in range(len(folds))]
    sizes: list[int] = (folds.n_samples - np.diff(folds.starts)).tolist()
    return sizes


def _outcome(result: dict[str, Any], classes: Any, task: Task, seconds: float) -> Outcome:
    shares: Floats = result["outputs"]
    responses = {
        "predict": np.asarray(classes).take(shares.argmax(axis=1), axis=0),
        "predict_proba": shares,
    }
    with np.errstate(divide="ignore"):
        responses["predict_log_proba"] = np.log(shares)
    return Outcome(
        answers=responses, classes=np.asarray(classes), cost=result["cost"], fit_time=seconds
    )


def _why_not_parameters(estimator: Any) -> str | None:
    """Which parameter of an estimator the engine does not cover, or None."""
    try:
        estimator._validate_params()
    except ValueError as error:
        return str(error)
    random_state: Any = estimator.random_state
    if not isinstance(random_state, Integral) or not 0 <= int(random_state) <= MAX_SEED:
        return f"random_state={random_state!r} is not an integer, as random_state=0 is"
    if not isinstance(estimator.criterion, str):
        return "criterion is an object"
    unused: dict[str, Any] = {
        "splitter": "best",
        "max_leaf_nodes": None,
        "ccp_alpha": 0.0,
        "class_weight": None,
        "monotonic_cst": None,
        "warm_start": False,
        "oob_score": False,
    }
    for name, value in unused.items():
        given: Any = getattr(estimator, name, value)
        if given is not value and not (np.ndim(given) == 0 and given == value):
            return f"{name}={given!r} is not covered"
    bootstrap = getattr(estimator, "bootstrap", True)
    if not bootstrap and estimator.max_samples is not None:
        return "max_samples is for bootstrap=True"
    return None


def _why_not_weights(estimator: Any, task: Task) -> str | None:
    """Why the weights of the samples are not covered, or None."""
    if task.fit_params:
        return f"it passes no {', '.join(sorted(task.fit_params))} to fit"
    weights = task.data.weights
    if weights is None:
        return None
    if getattr(estimator, "bootstrap", False):
        return "sample_weight decides how bootstrap samples are drawn"
    if not (np.all(weights == np.floor(weights)) and weights.max() <= MAX_WEIGHT):
        return f"sample_weight is not made of whole numbers up to {MAX_WEIGHT}"
    if weights.sum() > MAX_ROWS:
        return f"sample_weight adds up to more than {MAX_ROWS}"
    return None


def _why_not_problem(problem: Problem) -> str | None:
    """Why rows, targets or folds are not covered, whatever the candidate."""
    data = problem.data
    if sp.issparse(data.X):
        return "X is sparse"
    if data.y is None:
        return "there are no targets"
    if np.ndim(data.y) != 1:
        return "y has columns"
    if data.n_samples > MAX_ROWS:
        return f"there are more than {MAX_ROWS} rows"
    return _why_not_values(data) or _why_not_folds(problem)


def _why_not_values(data: Data) -> str | None:
    try:
        rows, (_, classes) = data.rows, data.classes
    except (TypeError, ValueError) as error:
        return str(error)
    if np.ndim(rows) != 2 or rows.shape[1] == 0:
        return "X has no columns"
    if len(classes) > MAX_CLASSES:
        return f"there are more than {MAX_CLASSES} classes"
    lowest, highest = rows.min(initial=0.0), rows.max(initial=0.0)
    if np.isnan(lowest) or np.isnan(highest):
        return "X has missing values"
    if max(-lowest, highest) > np.finfo(np.float32).max:
        return "X has values beyond float32"
    return None


def _why_not_folds(problem: Problem) -> str | None:
    if isinstance(problem.folds, Splits):
        for fold in range(len(problem.folds)):
            if np.bincount(problem.folds.train(fold)).max() > 1:
                return f"the training set of fold {fold} repeats rows"
    return problem.missing_class()
