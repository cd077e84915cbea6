"""All engines, in the order in which ``engine="auto"`` asks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._inputs.row_sources import RowSource
from .bag import BAG
from .engine import Engine
from .forest import FOREST
from .specs.merge import MERGE
from .specs.neighbors import NEIGHBORS
from .specs.newton import NEWTON
from .specs.path import PATH
from .specs.refit import REFIT
from .specs.seeded import SEEDED
from .specs.tree import TREE
from .specs.virtual import VIRTUAL

__all__ = [
    "ENGINES",
    "REFIT",
    "SEEDED",
    "engine_named",
    "engines_for",
    "register",
    "unregister",
]

ENGINES: list[Engine] = [
    MERGE,
    VIRTUAL,
    NEWTON,
    PATH,
    SEEDED,
    NEIGHBORS,
    FOREST,
    BAG,
    TREE,
    REFIT,
]
"""`REFIT` does everything and comes last."""


def engines_for(X: Any) -> Sequence[Engine]:
    """The engines that may take rows, in the order in which they are asked."""
    return ENGINES if not isinstance(X, RowSource) or X.engines is None else X.engines


def engine_named(name: str, engines: Sequence[Engine] = ENGINES) -> Engine:
    """The engine of a name among some, or an error that lists all of these."""
    for engine in engines:
        if engine.name == name:
            return engine
    names = [engine.name for engine in engines]
    raise ValueError(f"engine must be 'auto' or one of {names}, got {name!r}")


def register(engine: Engine) -> None:
    """Add an engine before all others: it is asked first.

    Examples
    --------
    >>> from onefold._engines.engine import Engine
    >>> from onefold._engines.registry import engine_named, register, unregister
    >>> register(Engine(name="mine", exact="exactly", cost="one fit"))
    >>> engine_named("mine").cost
    'one fit'
    >>> unregister("mine")
    """
    if any(engine.name == known.name for known in ENGINES) or engine.name == "auto":
        raise ValueError(f"there is an engine {engine.name!r} already")
    ENGINES.insert(0, engine)


def unregister(name: str) -> None:
    """Remove an engine that was added by `register`."""
    ENGINES.remove(engine_named(name))
