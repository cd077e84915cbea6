"""Pipelines whose steps must be fitted per fold: once for all candidates that share them.

The steps before the last of all candidates form a prefix tree: candidates share a node as far as
their steps have the same class and parameters. Each training set walks the tree once, depth first.
At a node whose steps some candidates end with, the rows are transformed, and the last steps of
these candidates are solved together by their engine.

What a first step shares between folds (tokens of texts, codes of categories: `_transforms`) is
computed once, before the folds.

Memory: the transformed rows of one path of the tree, for each fold that is run at the same time.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib.parallel import get_active_backend
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed

from .._caller_data import without_writes
from .._folds import Splits
from .._jobs import effective_n_jobs
from .._progress import reporter
from .._routing import params_of_rows
from .._status import Status
from .._step_key import step_key
from .._transforms import Shared, share_steps
from ._base import Candidate, Engine, Outcome, Plan, fit_transform, slots
from ._fold_scorer import FoldResult, join_folds
from ._refit import Refit, fit_all
from ._task import Data, Problem, Task

__all__ = ["FoldSteps", "FoldStepsPlan", "StepFits"]


@dataclass(frozen=True, kw_only=True)
class FoldStepsPlan(Plan):
    """A pipeline, its steps before the last one, and the last one with its engine."""

    steps: tuple[Any, ...]
    last: Any
    engine: Engine

    @property
    def served_by(self) -> str:
        """The engine of the last step."""
        return self.engine.name


@dataclass
class _Node:
    """Steps that several candidates have in common, up to one of them."""

    step: Any
    children: dict[Hashable, _Node] = field(default_factory=dict)
    last: list[tuple[int, Engine, Any]] = field(default_factory=list)
    """Candidates whose last step follows: position, engine, estimator."""
    shared: Shared | None = None
    """Of a first step: what it shares between folds, if anything."""

    @property
    def positions(self) -> list[int]:
        """All candidates that share these steps."""
        own = [position for position, _, _ in self.last]
        return own + [at for child in self.children.values() for at in child.positions]

    @property
    def engines(self) -> list[Engine]:
        """The engines of their last steps."""
        own = [engine for _, engine, _ in self.last]
        return own + [engine for child in self.children.values() for engine in child.engines]

    @property
    def n_steps(self) -> int:
        """Steps that are fitted per fold."""
        return 1 + sum(child.n_steps for child in self.children.values())


def _prefix_tree(plans: Sequence[FoldStepsPlan]) -> list[_Node]:
    """The first steps of all candidates, with what follows them."""
    roots: dict[Hashable, _Node] = {}
    for position, plan in enumerate(plans):
        children = roots
        for step in plan.steps:
            node = children.setdefault(step_key(step), _Node(step))
            children = node.children
        node.last.append((position, plan.engine, plan.last))
    return list(roots.values())


@dataclass(frozen=True)
class StepFits:
    """How many fits of steps before the last one are made, and how many sharing saves."""

    made: int
    saved: int

    @classmethod
    def of(cls, plans: Sequence[FoldStepsPlan], n_folds: int) -> StepFits:
        """Count for some plans."""
        made = sum(root.n_steps for root in _prefix_tree(plans)) * n_folds
        return cls(made, sum(len(plan.steps) for plan in plans) * n_folds - made)


class FoldSteps:
    """Fits the steps of pipelines per fold, and solves the last steps together by their engines.

    A candidate that fails on some fold is refitted as a whole, which records the failure.
    """

    name = "fold steps"

    def run_many(self, plans: Sequence[FoldStepsPlan], task: Task) -> Iterator[tuple[int, Outcome]]:
        """Run all folds of the candidates that have the first step in common, then of the next."""
        alone: list[_Node] = []
        shared: list[_Node] = []
        roots = _prefix_tree(plans)
        for root, own in zip(
            roots, share_steps([root.step for root in roots], task.data), strict=True
        ):
            root.shared = own
            only = len(root.positions) == 1 and root.positions[0]
            gains = only is False or plans[only].engine.name != "refit" or own is not None
            (shared if gains else alone).append(root)
        if alone:
            positions = [root.positions[0] for root in alone]
            outcomes = fit_all([plans[at] for at in positions], task)
            yield from zip(positions, outcomes, strict=True)
        n_folds = len(task.folds)
        found: list[dict[int, _Solved]] = []
        left = iter(shared)
        with reporter(task.progress, unit="folds") as report:
            for n_done, solved in enumerate(_run_all(shared, task), start=1):
                found.append(solved)
                if report is not None:
                    report(n_done, len(shared) * n_folds)
                if len(found) == n_folds:
                    yield from _outcomes(next(left), plans, found, task)
                    found = []

    def fit(self, plan: FoldStepsPlan, task: Task) -> Any:
        """Fit the whole pipeline; its last step as the engine does."""
        return plan.engine.fit(Plan(plan.estimator), task)


def _run_all(roots: Sequence[_Node], task: Task) -> Iterator[dict[int, _Solved]]:
    """Run every fold of every root, in parallel over both."""
    folds, data = task.folds, task.data
    n_jobs = effective_n_jobs(task.n_jobs, len(folds) * len(roots))
    inner_jobs = task.n_jobs if n_jobs == 1 else 1
    lean = Data(data.X, data.y, data.weights, inner_jobs)

    def units() -> Iterator[tuple[_Node, Task]]:
        for root in roots:
            for fold in range(len(folds)):
                split = Splits(data.n_samples, [(folds.train(fold), folds.test(fold))])
                problem = Problem(lean, split)
                yield root, replace(task, problem=problem, progress=False, n_jobs=inner_jobs)

    if n_jobs == 1:
        return (_run_fold(*unit) for unit in units())
    can_stream = getattr(get_active_backend()[0], "supports_return_generator", False)
    # The core releases the GIL, and threads start at once; what is refitted may hold it.
    engines = {engine.name for root in roots for engine in root.engines}
    parallel = Parallel(
        n_jobs=n_jobs,
        prefer=None if "refit" in engines else "threads",
        pre_dispatch=task.pre_dispatch,
        return_as="generator" if can_stream else "list",
    )
    return iter(parallel(delayed(_run_fold)(*unit) for unit in units()))


@dataclass
class _Solved:
    """One candidate on one fold."""

    outcome: Outcome
    seconds: float
    """Of its share of the steps and of its last step."""
    steps: tuple[Any, ...] = ()
    """The fitted steps before the last one, where these are to be returned."""


@dataclass(frozen=True)
class _Rows:
    """Training and test rows of one fold."""

    train: Any
    test: Any
    fitted: tuple[Callable[[], Any], ...] = ()
    """The fitted steps before them."""

    @classmethod
    def of(cls, task: Task) -> _Rows:
        """Those of the one fold of a task."""
        X, folds = task.data.X, task.folds
        return cls(_safe_indexing(X, folds.train(0)), _safe_indexing(X, folds.test(0)))

    def through(self, node: _Node, y: Any) -> _Rows:
        """Fit a step to the training rows, and transform both."""

        def fit(X: Any, y: Any) -> tuple[Any, Any]:
            fitted = clone(node.step)
            return fitted, fit_transform(fitted, X, y)

        # Other steps may follow the same rows.
        fitted, train = without_writes(fit, self.train, y)
        test = without_writes(fitted.transform, self.test)
        return _Rows(train, test, (*self.fitted, lambda: fitted))


def _run_fold(root: _Node, task: Task) -> dict[int, _Solved]:
    """Solve the candidates below a root for the one fold of a task.

    Candidates that fail are missing from what is returned.
    """
    y = task.data.y
    y = None if y is None else _safe_indexing(y, task.folds.train(0))
    found: dict[int, _Solved] = {}
    _solve_subtree(root, None, y, task, 0.0, found)
    return found


def _transform(node: _Node, rows: _Rows | None, y: Any, task: Task) -> _Rows:
    """The rows behind the step of a node; those before a first step are None."""
    if rows is not None:
        return rows.through(node, y)
    if node.shared is None:
        return _Rows.of(task).through(node, y)
    fold = node.shared.fold(task.folds.train(0), task.folds.test(0))
    return _Rows(fold.train, fold.test, (fold.fitted,))


def _solve_subtree(
    node: _Node, rows: _Rows | None, y: Any, task: Task, seconds: float, found: dict[int, _Solved]
) -> None:
    start = time.perf_counter()
    try:
        rows = _transform(node, rows, y, task)
    except Exception:  # of a fit that fails: the candidates are refitted, which reports it
        return
    seconds += (time.perf_counter() - start) / len(node.positions)
    if node.last:
        for position, outcome in _solve(node.last, rows, task):
            own = seconds + float(np.sum(outcome.fit_time))
            steps = tuple(make() for make in rows.fitted) if task.return_estimator else ()
            found[position] = _Solved(outcome, own, steps)
    for child in node.children.values():
        _solve_subtree(child, rows, y, task, seconds, found)


def _solve(
    last: Sequence[tuple[int, Engine, Any]], rows: _Rows, task: Task
) -> Iterator[tuple[int, Outcome]]:
    """Solve the last steps of several candidates on the same rows, those of one engine together."""
    inner = _on_rows(task, rows)
    groups: dict[str, tuple[Engine, list[tuple[int, Plan]]]] = {}
    for position, engine, estimator in last:
        plan = engine.plan(Candidate(estimator), inner)
        if isinstance(plan, str):
            engine, plan = Refit(), Plan(estimator)
        groups.setdefault(engine.name, (engine, []))[1].append((position, plan))
    for engine, members in groups.values():
        positions = [position for position, _ in members]
        try:
            for at, outcome in engine.run_many([plan for _, plan in members], inner):
                if not outcome.failures:
                    yield positions[at], outcome
        except (ValueError, TypeError, ArithmeticError):
            continue  # the candidates that are missing are refitted


def _on_rows(task: Task, rows: _Rows) -> Task:
    """The task of one fold with transformed rows: first those for training, then the others."""
    data = task.data
    order = np.concatenate([task.folds.train(0), task.folds.test(0)])
    n_train = len(task.folds.train(0))
    positions = np.arange(len(order))
    return replace(
        task,
        problem=Problem(
            Data(
                _stack(rows.train, rows.test),
                None if data.y is None else _safe_indexing(data.y, order),
                None if data.weights is None else data.weights[order],
                data.n_jobs,
            ),
            Splits(len(order), [(positions[:n_train], positions[n_train:])]),
        ),
        score_params=params_of_rows(task.score_params, data.n_samples, order),
    )


def _stack(above: Any, below: Any) -> Any:
    """One block of rows above another."""
    blocks: list[Any] = [above, below]
    if sp.issparse(above):
        return sp.vstack(blocks, format="csr")
    if hasattr(above, "iloc"):
        import pandas as pd

        return pd.concat(blocks)
    return np.concatenate([np.asarray(block) for block in blocks])


def _outcomes(
    root: _Node, plans: Sequence[FoldStepsPlan], found: list[dict[int, _Solved]], task: Task
) -> Iterator[tuple[int, Outcome]]:
    """Join the folds of all candidates below a root."""
    positions = sorted(root.positions)
    counted = StepFits.of([plans[at] for at in positions], len(found))
    for position in positions:
        own = [fold[position] for fold in found if position in fold]
        kinds = {fold.outcome.test_scores is None for fold in own}
        if len(own) < len(found) or len(kinds) > 1:
            yield position, next(fit_all([plans[position]], task))
            continue
        outcome = _join(plans[position], own, task)
        outcome.cost["step_fits"] = counted.made
        outcome.cost["step_fits_saved"] = counted.saved
        if root.shared is not None and counted.made:
            outcome.cost["step_fits_shared"] = len(found)
        counted = StepFits(0, 0)
        yield position, outcome


def _join(plan: FoldStepsPlan, folds: Sequence[_Solved], task: Task) -> Outcome:
    outcomes = [fold.outcome for fold in folds]
    results = [
        FoldResult(_only(own.test_scores), own.answers, own.classes, None) for own in outcomes
    ]
    joined = join_folds(results, plan.estimator, task)
    cost: Counter[str] = Counter()
    for own in outcomes:
        cost.update(own.cost)
    notes = joined.notes + [note for own in outcomes for note in own.notes]
    is_scored = outcomes[0].test_scores is not None
    return Outcome(
        answers=joined.answers,
        classes=joined.classes,
        cost=dict(cost),
        fit_time=np.array([fold.seconds for fold in folds]),
        test_scores=[result.scores for result in results] if is_scored else None,
        train_scores=[_only(own.train_scores) for own in outcomes]
        if task.return_train_score
        else None,
        estimators=[_assemble(plan, fold) for fold in folds] if task.return_estimator else None,
        notes=_distinct(notes),
        status=Status.joined([outcome.status_by(plan.engine.name) for outcome in outcomes]),
    )


def _assemble(plan: FoldStepsPlan, fold: _Solved) -> Any:
    """The fitted pipeline of a fold."""
    pipeline = clone(plan.estimator)
    (last,) = fold.outcome.estimators or [None]
    for (owner, index), fitted in zip(slots(pipeline), (*fold.steps, last), strict=True):
        owner.steps[index] = (owner.steps[index][0], fitted)
    return pipeline


def _only(scores: list[dict[str, float]] | None) -> dict[str, float]:
    return {} if scores is None else scores[0]


def _distinct(notes: Sequence[str]) -> list[str]:
    """The first of all notes that differ in numbers only."""
    return list({re.sub(r"[\d.e-]+", "", note): note for note in reversed(notes)}.values())[::-1]
