"""Which candidates are evaluated together, and by what."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from functools import partial

from ..._engines import Choice, Engine, Spec, Task, refit, run
from ..._engines.registry import REFIT
from ..._engines.spec import Solve
from ..._engines.submodels import families_of_sizes
from .cells import Cells
from .journal import Journal, run_recorded

__all__ = ["Group", "groups_of", "refitted_as_one"]

Group = tuple[Engine, Solve, list[int]]
"""The engine of candidates, what runs it, and their positions."""


def groups_of(
    name: str, choices: list[Choice], task: Task, refits: Cells | None = None
) -> list[Group]:
    """Group the positions of candidates by what evaluates them.

    Those of one engine are a group. Refits that share nothing are a group of their own, the last
    one, if they are done cell by cell; with a journal, every group of an engine is a group whose
    outcomes are recorded. In paired nesting, an engine solves the folds of all searches. ``name``
    is the engine that is asked for.
    """
    journal = None if refits is None else refits.journal
    pairs = None if refits is None else refits.pairs
    groups: dict[Hashable, Group] = {}
    cells = [] if refits is None else _refitted_alone(choices, task)
    for position, choice in enumerate(choices):
        if position in cells:
            continue
        engine, positions = choice.engine, list[int]()
        solve = partial(run, engine)
        if pairs is not None:
            solve = partial(pairs.run, name, engine, positions)
        recorded = solve if journal is None else partial(run_recorded, solve, journal)
        key = engine.name, _group_of(choice, journal)
        groups.setdefault(key, (engine, recorded, positions))[2].append(position)
    if refits is None or not cells:
        return list(groups.values())
    return [*groups.values(), (REFIT, refits.run, cells)]


def refitted_as_one(choice: Choice) -> Choice:
    """A pipeline whose last step is refitted as a single estimator, which has cells."""
    if choice.name != "refit" or choice.engine.name == "refit":
        return choice
    return replace(choice, engine=REFIT, spec=Spec(choice.spec.view, refit.solve, validates=False))


def _group_of(choice: Choice, journal: Journal | None) -> Hashable:
    if journal is None or choice.spec.group is None:
        return None
    return choice.spec.group()


def _refitted_alone(choices: list[Choice], task: Task) -> list[int]:
    """Positions of refits, but for those of ensembles that are read from a larger one."""
    refits = [
        position for position, choice in enumerate(choices) if choice.spec.solve is refit.solve
    ]
    estimators = [choices[position].spec.estimator for position in refits]
    families = families_of_sizes(estimators, task.data.n_samples, task.fit_params)
    return sorted(refits[family[0]] for family in families if len(family) == 1)
