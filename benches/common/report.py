"""Tables in markdown, and the machine they were measured on."""

import os
import platform
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sklearn

import onefold

__all__ = ["RESULTS", "Figures", "machine", "table", "write"]

RESULTS = Path(__file__).parents[1] / "results"


@dataclass(frozen=True)
class Line:
    """A figure: what was measured, what it is held to, what came out."""

    figure: str
    bound: str
    measured: str
    verdict: str
    detail: str


class Figures:
    """Figures, printed as they come and kept for the table."""

    HEADER = ("figure", "bound", "measured", "holds", "from")

    def __init__(self):
        self.lines = []

    def at_most(self, figure, measured, bound=None, *, unit="×", detail=""):
        """Add a figure that must not exceed its bound, where it has one."""
        self._add(figure, measured, bound, "≤", unit, detail)

    def at_least(self, figure, measured, bound=None, *, unit="×", detail=""):
        """Add a figure that must reach its bound, where it has one."""
        self._add(figure, measured, bound, "≥", unit, detail)

    def skip(self, figure, reason):
        """Say that a figure was not measured, and why."""
        self._keep(Line(figure, "", "skipped", "", reason))

    def _add(self, figure, measured, bound, sign, unit, detail):
        limit = verdict = ""
        if bound is not None:
            limit = f"{sign} {_short(bound)}{unit}"
            holds = measured <= bound if sign == "≤" else measured >= bound
            verdict = "yes" if holds else "**no**"
        self._keep(Line(figure, limit, f"{_short(measured)}{unit}", verdict, detail))

    def _keep(self, line):
        self.lines.append(line)
        cells = [line.measured, line.bound, line.verdict.strip("*"), line.detail]
        print(f"{line.figure:<68} " + "  ".join(filter(None, cells)), flush=True)

    def markdown(self):
        """Return the table."""
        rows = [(x.figure, x.bound, x.measured, x.verdict, x.detail) for x in self.lines]
        return table(self.HEADER, rows)

    def summary(self):
        """Say how many of the bounds hold."""
        verdicts = [line.verdict for line in self.lines if line.verdict]
        return f"{verdicts.count('yes')} of {len(verdicts)} bounds hold."


def _short(value):
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def table(header, rows):
    """Return a markdown table; columns of numbers are the caller's to format."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def machine():
    """Say what was measured on what: processor, memory, versions, and how busy it was."""
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
