"""Figures of a benchmark: tables in markdown, JSON for guard.py, and the machine's description."""

import json
import math
import os
import platform
import re
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import sklearn

import onefold

__all__ = ["RESULTS", "Figures", "add_options", "machine", "table", "write", "write_figures"]

RESULTS = Path(__file__).parents[1] / "results"


@dataclass(frozen=True)
class Line:
    """A row of the table: what was measured, its bound, the result."""

    figure: str
    bound: str
    measured: str
    verdict: str
    detail: str


@dataclass(frozen=True)
class Measurement:
    """A figure as guard.py compares it between two builds."""

    figure: str
    value: float | None
    """None if it is a ratio to a peer that was left out."""
    unit: str
    better: str
    """"lower" or "higher"."""
    ours: float | None
    """What our side of a ratio measured."""
    ours_unit: str
    """"s" (lower is better) or "MB/s" (higher is better)."""


def add_options(parser):
    """Add the options that all peer scripts have."""
    parser.add_argument("--json", metavar="FILE", help="write the figures for guard.py")
    parser.add_argument("--without-peers", action="store_true", help="time our side only")


class Figures:
    """Figures, printed when they are added and kept for the table.

    A ratio to a peer that was left out is NaN: it stands in the table without a value, and our
    side alone is compared between builds. Names that begin with "…" continue the last full name.
    """

    HEADER = ("figure", "bound", "measured", "holds", "from")

    def __init__(self):
        self.lines = []
        self.measurements = []
        self._parent = ""

    def at_most(self, figure, measured, bound=None, *, unit="×", detail="", ours=None, rate=None):
        """Add a figure that must not exceed its bound, if it has one.

        `ours` is the time of our side in seconds, or `rate` its speed in MB/s.
        """
        self._add(figure, measured, bound, "≤", unit, detail, ours, rate)
        self._measure(figure, measured, unit, "lower", ours, rate)

    def at_least(self, figure, measured, bound=None, *, unit="×", detail="", ours=None, rate=None):
        """Add a figure that must reach its bound, if it has one."""
        self._add(figure, measured, bound, "≥", unit, detail, ours, rate)
        self._measure(figure, measured, unit, "higher", ours, rate)

    def skip(self, figure, reason):
        """Add a figure that was not measured, with the reason."""
        self._keep(Line(figure, "", "skipped", "", reason))
        self._measure(figure, math.nan, "", "lower", None, None)

    def _add(self, figure, measured, bound, sign, unit, detail, ours, rate):
        limit = verdict = ""
        if math.isnan(measured):
            alone = f"{ours:.4g} s" if rate is None else f"{rate:.0f} MB/s"
            self._keep(Line(figure, "", "peer left out", "", f"ours {alone}"))
            return
        if bound is not None:
            limit = f"{sign} {_short(bound)}{unit}"
            holds = measured <= bound if sign == "≤" else measured >= bound
            verdict = "yes" if holds else "**no**"
        self._keep(Line(figure, limit, f"{_short(measured)}{unit}", verdict, detail))

    def _keep(self, line):
        self.lines.append(line)
        cells = [line.measured, line.bound, line.verdict.strip("*"), line.detail]
        print(f"{line.figure:<68} " + "  ".join(filter(None, cells)), flush=True)

    def _measure(self, figure, measured, unit, better, ours, rate):
        if figure.startswith("…"):
            figure = f"{self._parent} {figure}"
        else:
            self._parent = figure
        self.measurements.append(
            Measurement(
                figure,
                None if math.isnan(measured) else measured,
                unit.strip(),
                better,
                rate if ours is None else ours,
                "s" if rate is None else "MB/s",
            )
        )

    def markdown(self):
        """Return the table."""
        rows = [(x.figure, x.bound, x.measured, x.verdict, x.detail) for x in self.lines]
        return table(self.HEADER, rows)

    def summary(self):
        """Return a sentence with the number of bounds that hold."""
        verdicts = [line.verdict for line in self.lines if line.verdict]
        return f"{verdicts.count('yes')} of {len(verdicts)} bounds hold."

    def save(self, path):
        """Write the measurements as JSON, unless `path` is None."""
        if path is not None:
            text = json.dumps([asdict(x) for x in self.measurements], indent=1)
            Path(path).write_text(text, encoding="utf-8")


def _short(value):
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def table(header, rows):
    """Return a markdown table; columns of numbers are the caller's to format."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def machine():
    """Return the processor, the memory, the versions and the load."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{_processor()}, {os.cpu_count()} cores, {memory:.0f} GB; "
        f"load {os.getloadavg()[0]:.1f} at the start; "
        f"Python {platform.python_version()}, NumPy {np.__version__}, "
        f"scikit-learn {sklearn.__version__}, onefold {onefold.__version__}"
    )


def _processor():
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def write(name, text):
    """Write a result beside the scripts."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / name).write_text(text + "\n", encoding="utf-8")
    print(f"wrote benches/results/{name}")


def write_figures(name, title, described, figures):
    """Write the table of a peer script; notes that follow the table of an earlier run are kept."""
    path = RESULTS / name
    parts = [f"# {title}", f"{described}.", figures.markdown(), figures.summary()]
    if path.is_file():
        parts += notes_below(path.read_text(encoding="utf-8"))
    write(name, "\n\n".join(parts))


def notes_below(text):
    """Return what follows the first table and the sentence about its bounds, as a list."""
    after = re.split(r"^(?:\|.*\n)+", text, maxsplit=1, flags=re.M)[1:]
    notes = re.sub(r"\A\s*(?:All )?\d+ (?:of \d+ )?bounds hold\.", "", "".join(after)).strip()
    return [notes] if notes else []
