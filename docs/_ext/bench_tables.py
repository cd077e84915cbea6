"""The benchmarks page: tables and a chart of all figures in ``benches/results``."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from line_breaks import joined
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

RESULTS = Path(__file__).parents[2] / "benches" / "results"


@dataclass(frozen=True)
class Figure:
    """One line of a table of results."""

    file: str
    heading: str
    """Of the file."""
    title: str
    bound: str
    measured: str
    holds: str
    source: str

    @property
    def ratio(self) -> float | None:
        """How many times faster, where that is what was measured."""
        match = re.fullmatch(r"([\d,.]+)×", self.measured)
        is_cost = self.bound.startswith("≤")  # of a line below one about speed
        is_speed = self.bound.startswith("≥") or "faster" in self.title
        # One without a bound in a table of speeds: their seconds / ours.
        is_listed = "against" not in self.title and re.match(r"[\d.]+ s ", self.source)
        if match is None or is_cost or not (is_speed or is_listed):
            return None
        return float(match[1].replace(",", ""))

    @property
    def label(self) -> str:
        """The title in HTML."""
        return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(joined(self.title)))

    @property
    def falls_short(self) -> bool:
        """Whether the figure misses its bound."""
        return "no" in self.holds.lower()


def figures(directory: Path = RESULTS) -> Iterator[Figure]:
    """Every line of every table with the columns figure, bound, measured, holds and from."""
    for path in sorted(directory.glob("*.md")):
        in_table, context = False, ""
        first, _, rest = path.read_text(encoding="utf-8").partition("\n")
        heading = first.removeprefix("# ").partition(":")[0]
        for line in rest.splitlines():
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if cells[:4] == ["figure", "bound", "measured", "holds"]:
                in_table = True
            elif not line.startswith("|"):
                in_table = False
            elif in_table and not set(line) <= set("|-: "):
                title = cells[0]
                if title.startswith("…"):
                    title = f"{context} {title}"
                else:
                    context = title
                source = cells[4] if len(cells) > 4 else ""
                yield Figure(path.stem, heading, title, *cells[1:4], source)


def summary() -> str:
    """How many bounds hold, by file."""
    lines = ["| results | figures | with a bound | hold | fall short |", "|---|---|---|---|---|"]
    all_figures = list(figures())
    for file in dict.fromkeys(figure.file for figure in all_figures):
        here = [figure for figure in all_figures if figure.file == file]
        bounded = [figure for figure in here if figure.bound]
        short = sum(figure.falls_short for figure in bounded)
        counts = [len(here), len(bounded), len(bounded) - short, short]
        lines.append(f"| {here[0].heading} | {' | '.join(map(str, counts))} |")
    return "\n".join(lines)


def shortfalls() -> str:
    """The figures that miss their bound."""
    lines = ["| figure | bound | measured | from |", "|---|---|---|---|"]
    lines += [
        f"| {figure.title} | {figure.bound} | {figure.measured} | {figure.source} |"
        for figure in figures()
        if figure.falls_short
    ]
    return "\n".join(lines)


def chart() -> str:
    """All ratios of ours to theirs, as bars on a logarithmic scale; the line is at 1."""
    ratios = [(figure, figure.ratio) for figure in figures() if figure.ratio is not None]
    largest = max(ratio for _, ratio in ratios if ratio is not None)
    bars = []
    heading = ""
    for figure, ratio in ratios:
        assert ratio is not None
        if figure.heading != heading:
            heading = figure.heading
            bars.append(f'<div class="group">{html.escape(heading)}</div>')
        width = 100 * math.log(max(ratio, 1.0)) / math.log(largest)
        short = " short" if figure.falls_short else ""
        mark = " (misses its bound)" if figure.falls_short else ""
        bars.append(
            f'<div class="bar{short}"><span class="label">{figure.label}</span>'
            f'<span class="track"><span class="fill" style="width:{width:.1f}%"></span>'
            f'<span class="value">{html.escape(figure.measured)}{mark}</span></span></div>'
        )
    return '<div class="bars">' + "".join(bars) + "</div>"


PARTS: dict[str, Callable[[], str]] = {"summary": summary, "shortfalls": shortfalls}


class BenchTable(SphinxDirective):
    """``{bench-table} name``: ``summary``, ``shortfalls`` or ``chart``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Read the results."""
        for path in RESULTS.glob("*.md"):
            self.env.note_dependency(path)
        if self.arguments[0] == "chart":
            return [nodes.raw("", chart(), format="html")]
        return self.parse_text_to_nodes(PARTS[self.arguments[0]]())


class BenchResults(SphinxDirective):
    """``{bench-results}``: every file of results, folded, but those that are on other pages."""

    option_spec: ClassVar = {"elsewhere": str.split}

    def run(self) -> list[nodes.Node]:
        """Write one dropdown per file."""
        paths = [
            path for path in RESULTS.glob("*.md") if path.stem not in self.options["elsewhere"]
        ]
        headings = {path: path.read_text(encoding="utf-8").partition("\n")[0] for path in paths}
        parts = []
        for path, heading in sorted(headings.items(), key=lambda item: item[1].lower()):
            self.env.note_dependency(path)
            title = heading.removeprefix("# ").partition(":")[0]
            parts.append(
                f":::{{dropdown}} {title}\n"
                f"```{{include}} ../benches/results/{path.name}\n"
                ":heading-offset: 1\n:start-line: 1\n:relative-images:\n```\n:::\n"
            )
        return self.parse_text_to_nodes("\n".join(parts), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directives."""
    app.add_directive("bench-results", BenchResults)
    app.add_directive("bench-table", BenchTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
