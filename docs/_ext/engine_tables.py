"""The tables of the page on engines: a directive that asks the registry when the page is built."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from docutils import nodes
from engine_survey import (
    NAMES,
    Row,
    learner_rows,
    scikit_learn_rows,
    transformer_rows,
    variant_rows,
)
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

HEADINGS = {
    "classifier": "Classifiers",
    "regressor": "Regressors",
    "clustering": "Clustering",
    "density or decomposition": "Others",
}


def page(engine: str) -> str:
    """The page about an engine."""
    return f"engine_{'forest' if engine == 'bag' else engine}.md"


def table(rows: Iterable[Row]) -> str:
    """One line per estimator: what `auto` takes, how good that is or why not, and what else is."""
    lines = [
        "| estimator | `auto` takes | equals refits, cost; or why it is refitted | by name |",
        "|---|---|---|---|",
    ]
    for row in rows:
        others = [
            name for name in NAMES if name in row.usable and name not in (row.chosen, "refit")
        ]
        is_refitted = row.chosen == "refit"
        cells = [
            f"`{row.name}`",
            "refit" if is_refitted else f"[**{row.chosen}**]({page(row.chosen)})",
            row.reason if is_refitted else f"**{row.exact}**, {row.cost}",
            ", ".join(f"`{name}`" for name in others),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def served(rows: Iterable[Row]) -> str:
    """The estimators with an engine, by engine."""
    by_engine: dict[str, list[str]] = {name: [] for name in NAMES}
    for row in rows:
        by_engine[row.chosen].append(row.name)
    lines = ["| engine | estimators |", "|---|---|"]
    for engine, names in by_engine.items():
        if names and engine != "refit":
            listed = ", ".join(f"`{name}`" for name in names)
            lines.append(f"| [{engine}]({page(engine)}) | {listed} |")
    lines.append(f"| [refit](engine_refit.md) | the other {len(by_engine['refit'])} |")
    return "\n".join(lines)


def transformers() -> str:
    """The transformers, by how they are treated."""
    by_treatment: dict[str, list[str]] = {}
    for name, treatment in transformer_rows():
        by_treatment.setdefault(treatment, []).append(f"`{name}`")
    lines = ["| fitted | transformers |", "|---|---|"]
    lines += [
        f"| {treatment} | {', '.join(names)} |" for treatment, names in sorted(by_treatment.items())
    ]
    return "\n".join(lines)


def by_kind() -> str:
    """All estimators of scikit-learn, one table per kind, in tabs."""
    rows = list(scikit_learn_rows())
    parts = ["::::{tab-set}"]
    for kind, heading in HEADINGS.items():
        of_kind = [row for row in rows if row.kind == kind]
        parts += [f":::{{tab-item}} {heading} ({len(of_kind)})", table(of_kind), ":::"]
    return "\n".join([*parts, "::::"])


TABLES: dict[str, Callable[[], str]] = {
    "served": lambda: served(scikit_learn_rows()),
    "scikit-learn": by_kind,
    "variants": lambda: table(variant_rows()),
    "learners": lambda: table(learner_rows()),
    "transformers": transformers,
}


class EngineTable(SphinxDirective):
    """``{engine-table} name``: one of `TABLES`, in Markdown."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Ask the registry, and parse the table."""
        return self.parse_text_to_nodes(TABLES[self.arguments[0]]())


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive."""
    app.add_directive("engine-table", EngineTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
