"""The runner: all that is done around an engine, whichever it is.

Candidates that share their work (a family) are solved in one call, in lots whose responses fit into
memory. Here are their progress, their time, their cost, repeated partitions, train scores, the
folds that an engine leaves to refits, and the refits of ``check=m``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .._sklearn_compat import validate_params
from .._utils.progress import part
from .base import LeftToRefits, Outcome, flat_steps
from .fold_refits import refit_undetermined
from .refit import fit_all
from .refit_check import choose_folds, refitted_folds
from .repeated import join_outcomes
from .spec import Spec
from .status import Status
from .task import Task
from .train_scores import train_scores, with_estimators

if TYPE_CHECKING:
    from .engine import Engine

__all__ = ["MAX_RESPONSES_HELD", "lots", "n_outputs", "run"]

MAX_RESPONSES_HELD = 2**27
"""Responses of all candidates of a lot in memory at a time: 1 GB of float64."""


def run(engine: Engine, specs: Sequence[Spec], task: Task) -> Iterator[tuple[int, Outcome]]:
    """Cross-validate all candidates of one engine, sharing what can be shared.

    Yields the position of a spec and its outcome, in any order, as soon as it is known. What is
    finished when the work is interrupted is yielded before the exception is raised.
    """
    if task.return_train_score and "return_train_score" not in engine.returns:
        return _with_train_scores(engine, specs, task)
    if engine.needs_partition and not task.problem.is_partition and task.problem.partitions:
        return _on_partitions(engine, specs, task)
    return _run_lots(engine, specs, task)


def _with_train_scores(
    engine: Engine, specs: Sequence[Spec], task: Task
) -> Iterator[tuple[int, Outcome]]:
    """Score the fitted estimators of the folds, of an engine that has these."""
    for position, outcome in run(engine, specs, with_estimators(task)):
        outcome.train_scores = train_scores(outcome.estimators or [], task)
        outcome.estimators = outcome.estimators if task.return_estimator else None
        yield position, outcome


def _on_partitions(
    engine: Engine, specs: Sequence[Spec], task: Task
) -> Iterator[tuple[int, Outcome]]:
    """Run each lot on several partitions, for an engine that needs one, and join the outcomes."""
    parts, problems = list(lots(engine, specs, task)), task.problem.of_partitions
    n_runs = len(parts) * len(problems)
    for first, positions in enumerate(parts):
        members = [specs[position] for position in positions]
        outcomes: list[list[Outcome]] = [[] for _ in positions]
        for number, problem in enumerate(problems):
            progress = part(task.progress, first * len(problems) + number, n_runs)
            on_partition = replace(task, problem=problem, progress=progress)
            for at, outcome in _run_lots(engine, members, on_partition):
                outcomes[at].append(outcome)
        yield from zip(positions, map(join_outcomes, outcomes), strict=True)


def _run_lots(engine: Engine, specs: Sequence[Spec], task: Task) -> Iterator[tuple[int, Outcome]]:
    """Solve one lot after the other."""
    for spec in specs:
        for step in flat_steps(spec.estimator) if spec.validates else ():
            validate_params(step)
    parts = list(lots(engine, specs, task))
    for number, positions in enumerate(parts):
        lot, of_lot = [specs[position] for position in positions], task
        if len(parts) > 1:
            of_lot = replace(task, progress=part(task.progress, number, len(parts)))
        solve, n_done, start = lot[0].solve, 0, time.perf_counter()
        assert solve is not None
        try:
            for at, outcome in solve(lot, of_lot):
                if n_done == 0:  # what is left is decoding
                    seconds = (time.perf_counter() - start) / len(lot)
                if not outcome.is_timed:
                    outcome.fit_time = seconds
                if not outcome.cost:
                    outcome.cost = _cost_of_family(task, is_first=n_done == 0)
                n_done += 1
                yield positions[at], _completed(engine, lot[at], outcome, task)
        except LeftToRefits as reason:
            yield from zip(positions, fit_all(lot, of_lot, str(reason)), strict=True)


def lots(engine: Engine, specs: Sequence[Spec], task: Task) -> Iterator[list[int]]:
    """Positions of the specs that are solved in one call: families, in lots of about one size."""
    families: dict[Hashable, list[int]] = {}
    for position, spec in enumerate(specs):
        families.setdefault(spec.key, []).append(position)
    for positions in families.values():
        size = len(positions)
        if size > 1 and engine.holds_responses:
            of_each = len(task.folds.rows) * n_outputs(specs[positions[0]], task)
            size = max(1, min(MAX_RESPONSES_HELD // of_each, engine.max_together or size))
        n_lots = math.ceil(len(positions) / size)
        if n_lots == 1:
            yield positions
        else:
            yield from (lot.tolist() for lot in np.array_split(positions, n_lots))


def n_outputs(spec: Spec, task: Task) -> int:
    """Responses of one row, about."""
    if spec.view.is_classifier:
        return max(1, len(task.data.classes[1]))
    y = task.data.y
    return 1 if y is None else max(1, np.size(y) // len(y))


def _cost_of_family(task: Task, *, is_first: bool) -> dict[str, int]:
    """Work that all candidates share, counted for the first of them."""
    return {
        "fits": int(is_first),
        "rows_fed": task.data.n_samples if is_first else 0,
        "rows_evaluated": len(task.folds.rows),
    }


def _completed(engine: Engine, spec: Spec, outcome: Outcome, task: Task) -> Outcome:
    """The outcome with refits of folds that are left to them, and of those to compare with."""
    if outcome.status is None:
        outcome.status = Status(engine.name)
    if outcome.undetermined:
        outcome = refit_undetermined(outcome, spec, task)
    n_checked = min(task.options.get("check", 0), len(task.folds))
    if n_checked and engine.refit_folds is not None:
        chosen = choose_folds(task, n_checked)
        refits = engine.refit_folds(spec, task, chosen)
        outcome.refitted = refitted_folds(chosen, task, refits)
    return outcome if engine.complete is None else engine.complete(outcome, spec, task)
