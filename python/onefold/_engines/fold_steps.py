"""Pipelines whose steps must be fitted per fold: once for all candidates that share them.

The steps before the last of all candidates form a prefix tree: candidates share a node as far as
their steps have the same class and parameters. Each training set walks the tree once, depth first.
At a node whose steps some candidates end with, the rows are transformed, and the last steps of
these candidates are solved together by their engine.

Steps that are parts of one fit (`step_families`) share it where they follow the same steps.

What a first step shares between folds (tokens of texts, codes of categories: `_transforms`) is
computed once, before the folds.

Memory: the transformed rows of one path of the tree, and of each fit whose parts follow these rows,
for each fold that is run at the same time.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from joblib.parallel import get_active_backend
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from .._inputs.caller_data import copied, without_writes
from .._inputs.folds import Splits
from .._inputs.routing import params_of_rows
from .._sklearn_compat import _safe_indexing
from .._transforms import Shared, reads_texts_in_part, share_steps
from .._transforms.step_key import step_key
from .._utils.jobs import effective_n_jobs
from .._utils.progress import reporter
from .base import Candidate, Outcome, assembled, fit_transform
from .cost_estimates import why_slower
from .costs import total_cost
from .engine import Engine
from .fold_refits import refit_note
from .fold_scorer import FoldResult, join_folds
from .refit import RowBlocks, fit_all
from .run import run
from .spec import Spec
from .status import Status
from .step_families import WholeFit, family_of
from .task import Data, Problem, Task

__all__ = ["FOLD_STEPS", "StepFits", "Steps", "fold_steps_spec", "gains_by_sharing"]


MIN_TABLE_ROWS = 3000
"""Rows from which one candidate gains by what folds share of numbers and categories; texts, and
several candidates, gain always."""


class Steps(NamedTuple):
    """The steps of a pipeline before the last one, and the last one with its engine."""

    before: tuple[Any, ...]
    last: Any
    engine: Engine
    is_auto: bool
    """Whether the engine was chosen, and not asked for by name."""

    @property
    def is_refitted(self) -> bool:
        """Whether the last step is fitted by its own ``fit``."""
        return self.engine.name == "refit" and not Candidate(self.last).is_native


@dataclass
class _Node:
    """Steps that several candidates have in common, up to one of them."""

    step: Any
    """None where several first steps are parts of one fit, and follow nothing."""
    children: dict[Hashable, _Node] = field(default_factory=dict)
    last: list[tuple[int, Steps]] = field(default_factory=list)
    """Candidates whose last step follows, by their position."""
    shared: Shared | None = None
    """Of a first step: what it shares between folds, if anything."""
    family: Hashable = None
    """Equal for steps that follow the same ones and are parts of one fit."""

    @property
    def positions(self) -> list[int]:
        """All candidates that share these steps."""
        own = [position for position, _ in self.last]
        return own + [at for child in self.children.values() for at in child.positions]

    @property
    def engines(self) -> list[Engine]:
        """The engines of their last steps."""
        own = [steps.engine for _, steps in self.last]
        return own + [engine for child in self.children.values() for engine in child.engines]

    @property
    def n_steps(self) -> int:
        """Fits of steps in each fold."""
        children = self.children.values()
        families = [child.family for child in children if child.family is not None]
        n_saved = len(families) - len(set(families))
        return (self.step is not None) + sum(child.n_steps for child in children) - n_saved


def _prefix_tree(candidates: Sequence[Steps]) -> list[_Node]:
    """The first steps of all candidates, with what follows them."""
    roots: dict[Hashable, _Node] = {}
    for position, steps in enumerate(candidates):
        children = roots
        for step in steps.before:
            node = children.setdefault(step_key(step), _Node(step))
            children = node.children
        node.last.append((position, steps))
    return _with_families(roots)


def _with_families(roots: dict[Hashable, _Node]) -> list[_Node]:
    """The roots of the tree, those that are parts of one fit below a root without a step."""
    _find_families(roots)
    together: dict[Hashable, _Node] = {}
    for key, root in roots.items():
        if root.family is None:
            together[key] = root
        else:
            together.setdefault(root.family, _Node(None)).children[key] = root
    return list(together.values())


def _find_families(siblings: dict[Hashable, _Node]) -> None:
    families = {key: family_of(node.step) for key, node in siblings.items()}
    counts = Counter(families.values())
    for key, node in siblings.items():
        node.family = families[key] if counts[families[key]] > 1 else None
        _find_families(node.children)


@dataclass(frozen=True)
class StepFits:
    """How many fits of steps before the last one are made, and how many sharing saves."""

    made: int
    saved: int

    @classmethod
    def of(cls, candidates: Sequence[Steps], n_folds: int) -> StepFits:
        """Count for some pipelines."""
        made = sum(root.n_steps for root in _prefix_tree(candidates)) * n_folds
        return cls(made, sum(len(steps.before) for steps in candidates) * n_folds - made)


def solve(specs: Sequence[Spec], task: Task) -> Iterator[tuple[int, Outcome]]:
    """Run all folds of the candidates that have the first step in common, then of the next.

    A candidate that fails on some fold is refitted as a whole, which records the failure.
    """
    alone: list[_Node] = []
    shared: list[_Node] = []
    roots = _prefix_tree([spec.params for spec in specs])
    n_rows = task.data.n_samples
    sharing = [root for root in roots if gains_by_sharing(root.step, n_rows, len(root.positions))]
    of_roots = share_steps([root.step for root in sharing], task.data)
    for root, of_root in zip(sharing, of_roots, strict=True):
        root.shared = of_root
    for root in roots:
        only = len(root.positions) == 1 and root.positions[0]
        gains = only is False or specs[only].params.engine.name != "refit"
        gains |= root.shared is not None
        (shared if gains else alone).append(root)
    if alone:
        positions = [root.positions[0] for root in alone]
        outcomes = fit_all([specs[at] for at in positions], task)
        yield from zip(positions, outcomes, strict=True)
    n_folds = len(task.folds)
    folds: list[dict[int, _Solved]] = []
    left = iter(shared)
    with reporter(task.progress, unit="folds") as report:
        for n_done, solved in enumerate(_run_all(shared, task), start=1):
            folds.append(solved)
            if report is not None:
                report(n_done, len(shared) * n_folds)
            if len(folds) == n_folds:
                yield from _outcomes(next(left), specs, folds, task)
                folds = []


def gains_by_sharing(step: Any, n_rows: int, n_candidates: int = 1) -> bool:
    """Whether what folds share of a first step saves time: columns of few rows are soon read."""
    return n_candidates > 1 or n_rows >= MIN_TABLE_ROWS or reads_texts_in_part(step)


def _fit(spec: Spec, task: Task) -> Any:
    """Fit the whole pipeline; its last step as the engine does."""
    engine: Engine = spec.params.engine
    return engine.fit_to_all(Spec(spec.view), task)


FOLD_STEPS = Engine(
    name="fold steps",
    exact="",
    cost="",
    returns=frozenset({"return_estimator", "return_train_score"}),
    holds_responses=False,
    fit=_fit,
)
"""Fits the steps of pipelines per fold, and solves the last steps together by their engines."""


def fold_steps_spec(view: Candidate, steps: Steps) -> Spec:
    """The spec of a pipeline whose steps are fitted per fold."""
    name = steps.engine.name
    return Spec(
        view,
        solve,
        steps,
        family="pipelines",
        group=partial(step_key, steps.before[0]),
        validates=False,
        engine_name=name,
    )


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
    whole_fits: dict[Hashable, WholeFit | None] = field(default_factory=dict)
    """Fits of which several steps behind these rows are parts, by their family."""

    @classmethod
    def of(cls, task: Task) -> _Rows:
        """Those of the one fold of a task."""
        X, folds = task.data.X, task.folds
        return cls(_safe_indexing(X, folds.train(0)), _safe_indexing(X, folds.test(0)))

    def through(self, node: _Node, y: Any) -> _Rows:
        """Fit a step to the training rows, and transform both."""

        def fit(X: Any, y: Any) -> tuple[Any, Any]:
            whole = None if node.family is None else self._whole_fit(node, X, y)
            part = None if whole is None else whole.part(node.step, X)
            if part is not None:
                return part
            fitted = clone(node.step)
            return fitted, fit_transform(fitted, X, y)

        # Other steps may follow the same rows.
        fitted, train = without_writes(fit, self.train, y)
        test = without_writes(fitted.transform, self.test)
        return _Rows(train, test, (*self.fitted, lambda: fitted))

    def _whole_fit(self, node: _Node, X: Any, y: Any) -> WholeFit | None:
        if node.family not in self.whole_fits:
            self.whole_fits[node.family] = WholeFit.of(node.step, X, y)
        return self.whole_fits[node.family]


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
    if node.step is None:
        return _Rows.of(task)
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
        for position, outcome in _solve(node, rows, task):
            own = seconds + float(np.sum(outcome.fit_time))
            steps = tuple(make() for make in rows.fitted) if task.return_estimator else ()
            found[position] = _Solved(outcome, own, steps)
    for child in node.children.values():
        _solve_subtree(child, rows, y, task, seconds, found)


def _solve(node: _Node, rows: _Rows, task: Task) -> Iterator[tuple[int, Outcome]]:
    """Solve the last steps of several candidates on the same rows, those of one engine together."""
    last = node.last
    if len(last) == 1 and last[0][1].is_refitted:
        inner = _on_rows(task, _own_blocks(rows, is_last=not node.children))
    else:
        inner = _on_rows(task, _stack(rows.train, rows.test))
    inner = replace(inner, n_candidates=len(last))
    groups: dict[str, tuple[Engine, list[tuple[int, Spec]]]] = {}
    for position, steps in last:
        view = Candidate(steps.last)
        spec = steps.engine.spec_of(view, inner)
        reason = spec if isinstance(spec, str) else steps.is_auto and why_slower(spec, inner)
        if isinstance(spec, str) or reason:
            refit = next(fit_all([Spec(view)], inner, str(reason)))
            if not refit.failures:
                yield position, refit
            continue
        groups.setdefault(steps.engine.name, (steps.engine, []))[1].append((position, spec))
    for engine, members in groups.values():
        positions = [position for position, _ in members]
        try:
            for at, outcome in run(engine, [spec for _, spec in members], inner):
                if not outcome.failures:
                    yield positions[at], outcome
        except (ValueError, TypeError, ArithmeticError):
            continue  # the candidates that are missing are refitted


def _on_rows(task: Task, X: Any) -> Task:
    """The task of one fold with transformed rows: first those for training, then the others."""
    data = task.data
    order = np.concatenate([task.folds.train(0), task.folds.test(0)])
    n_train = len(task.folds.train(0))
    positions = np.arange(len(order))
    return replace(
        task,
        problem=Problem(
            Data(
                X,
                None if data.y is None else _safe_indexing(data.y, order),
                None if data.weights is None else data.weights[order],
                data.n_jobs,
            ),
            Splits(len(order), [(positions[:n_train], positions[n_train:])]),
        ),
        score_params=params_of_rows(task.score_params, data.n_samples, order),
    )


def _own_blocks(rows: _Rows, *, is_last: bool) -> RowBlocks:
    """Rows that a fit may write to: copies in the same order, where others may read them, too."""

    def of(block: Any) -> Any:
        if isinstance(block, np.ndarray):
            return block if is_last and block.base is None else block.copy(order="K")
        return block if is_last else copied(block)

    return RowBlocks(of(rows.train), of(rows.test))


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
    root: _Node, specs: Sequence[Spec], found: list[dict[int, _Solved]], task: Task
) -> Iterator[tuple[int, Outcome]]:
    """Join the folds of all candidates below a root."""
    positions = sorted(root.positions)
    counted = StepFits.of([specs[at].params for at in positions], len(found))
    for position in positions:
        own = [fold[position] for fold in found if position in fold]
        kinds = {fold.outcome.test_scores is None for fold in own}
        if len(own) < len(found) or len(kinds) > 1:
            number = next((i for i, fold in enumerate(found) if position not in fold), 0)
            reason = f"fold {number} was not solved, so that every fold was fitted by itself"
            if len(own) == len(found):
                reason = "some folds can only be scored with the fitted estimator"
            yield position, next(fit_all([specs[position]], task, reason))
            continue
        outcome = _join(specs[position], own, task)
        outcome.cost["step_fits"] = counted.made
        outcome.cost["step_fits_saved"] = counted.saved
        if root.shared is not None and counted.made:
            outcome.cost["step_fits_shared"] = len(found)
        counted = StepFits(0, 0)
        yield position, outcome


def _join(spec: Spec, folds: Sequence[_Solved], task: Task) -> Outcome:
    engine = spec.params.engine.name
    outcomes = [fold.outcome for fold in folds]
    results = [
        FoldResult(_only(own.test_scores), own.answers, own.classes, None) for own in outcomes
    ]
    joined = join_folds(results, spec.estimator, task)
    statuses = [outcome.status_by(engine) for outcome in outcomes]
    reasons = {}
    if engine != "refit":
        reasons = {fold: own.reason for fold, own in enumerate(statuses) if own.refitted_folds}
    notes = [*joined.notes, *(note for own in outcomes for note in own.notes)]
    is_scored = outcomes[0].test_scores is not None
    return Outcome(
        answers=joined.answers,
        classes=joined.classes,
        cost=total_cost(outcome.cost for outcome in outcomes),
        fit_time=np.array([fold.seconds for fold in folds]),
        is_timed=True,
        test_scores=[result.scores for result in results] if is_scored else None,
        train_scores=[_only(own.train_scores) for own in outcomes]
        if task.return_train_score
        else None,
        estimators=[_assemble(spec, fold) for fold in folds] if task.return_estimator else None,
        notes=[*dict.fromkeys(notes), *refit_note(reasons)],
        status=Status.joined(statuses),
    )


def _assemble(spec: Spec, fold: _Solved) -> Any:
    """The fitted pipeline of a fold."""
    (last,) = fold.outcome.estimators or [None]
    return assembled(spec.estimator, (*fold.steps, last))


def _only(scores: list[dict[str, float]] | None) -> dict[str, float]:
    return {} if scores is None else scores[0]
