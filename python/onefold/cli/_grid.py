"""``onefold grid``: C and γ of a support vector machine, with the options of LIBSVM's grid.py."""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._utils.text import counted
from ..model_selection import GridSearchCV
from ._console import Console, UsageError
from ._options import check_outputs
from ._svm_options import SvmProblem, add_svm_options, load_problem

__all__ = ["Point", "add_parser", "log2_range"]

_EXAMPLES = """\
examples:
  onefold grid heart_scale
  onefold grid -log2c -5,5,1 -log2g -4,0,1 -v 10 -png grid.png heart_scale
  onefold grid --fine --libsvm-folds heart_scale
  onefold grid -t 0 -log2g null heart_scale          only C, for a linear kernel

A range is begin,end,step of the logarithm to base 2, or null for the value of -c or -g.
The last line is C, gamma and the rate, as grid.py prints it. Among points with the same rate,
the one with the smallest C is chosen, then the one with the smallest gamma.
"""

_PARTS = 4
"""The fine grid has this many steps in one step of the coarse grid."""


@dataclass(frozen=True)
class Point:
    """A point of the grid; None is the value of the options."""

    log2c: float | None
    log2g: float | None


def add_parser(commands: Any, summary: str) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "grid",
        help=summary,
        description="Choose C and gamma of a support vector machine by cross-validation, as "
        "LIBSVM's grid.py does. All folds and all values of C share one kernel matrix.",
        epilog=_EXAMPLES,
        add_help=False,
    )
    parser.add_argument("file", metavar="FILE", help="LIBSVM text, a directory, CSV or npz")
    grid = parser.add_argument_group("options of grid.py")
    grid.add_argument(
        "-log2c",
        default="-5,15,2",
        metavar="BEGIN,END,STEP",
        help="range of C, or null (default: -5,15,2)",
    )
    grid.add_argument(
        "-log2g",
        default="3,-15,-2",
        metavar="BEGIN,END,STEP",
        help="range of gamma, or null (default: 3,-15,-2)",
    )
    grid.add_argument("-v", type=int, default=5, metavar="N", help="number of folds (default: 5)")
    grid.add_argument("-out", metavar="FILE", help="also write all rates to this file")
    grid.add_argument("-png", metavar="FILE", help="write a picture (needs matplotlib)")
    grid.add_argument(
        "--fine",
        action="store_true",
        help=f"search again around the best point, in steps {_PARTS} times smaller",
    )
    add_svm_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Run the command."""
    if arguments.v < 2:
        raise UsageError(f"-v: n-fold cross validation: n must >= 2, got {arguments.v}")
    if arguments.s not in (0, 3):
        raise UsageError(f"-s {arguments.s}: grid is for C-SVC (0) and epsilon-SVR (3)")
    if arguments.b:
        raise UsageError("-b 1: grid compares machines without probabilities; svm takes -b 1")
    ranges = [log2_range("-log2c", arguments.log2c), log2_range("-log2g", arguments.log2g)]
    if ranges == [None, None]:
        raise UsageError("-log2c and -log2g are both null: there is nothing to search")
    check_outputs(arguments, "out", "png")
    if arguments.png:
        _need_matplotlib()
    console.is_quiet |= arguments.q
    problem = load_problem(arguments.file, arguments, progress=console.progress)
    start = time.perf_counter()
    coarse = [Point(c, g) for g in _or_none(ranges[1]) for c in _or_none(ranges[0])]
    rates = _evaluate(problem, coarse, arguments, console)
    best = _best(rates, problem)
    if arguments.fine:
        steps = [0.0 if bounds is None else _step(bounds) / _PARTS for bounds in ranges]
        finer = [point for point in _around(best, steps) if point not in rates]
        console.remark(f"{counted(len(finer), 'finer point')} around the best")
        rates |= _evaluate(problem, finer, arguments, console)
    seconds = time.perf_counter() - start
    best = _show(rates, problem, arguments, console)
    if not arguments.q:
        console.remark(f"{counted(len(rates), 'point')}, {seconds:.2f} s")
    if arguments.out:
        Path(arguments.out).write_text("".join(_out_lines(rates)), encoding="utf-8")
    if arguments.png:
        _plot(rates, best, problem, arguments.png)
        console.remark(f"picture: {arguments.png}")
    C, gamma = _values(best, problem)
    console.emit(
        {
            "command": "grid",
            "file": arguments.file,
            "n_folds": min(arguments.v, len(problem.y)),
            "libsvm_folds": arguments.libsvm_folds,
            "seconds": seconds,
            "measure": _measure_name(problem),
            "best": {"C": C, "gamma": gamma, "rate": rates[best]},
            "points": [
                {"log2c": point.log2c, "log2g": point.log2g, "rate": rate}
                for point, rate in rates.items()
            ],
        }
    )


def log2_range(option: str, text: str) -> list[float] | None:
    """Read ``begin,end,step``.

    Examples
    --------
    >>> from onefold.cli._grid import log2_range
    >>> log2_range("-log2c", "-1,2,1"), log2_range("-log2g", "null")
    ([-1.0, 0.0, 1.0, 2.0], None)
    """
    if text == "null":
        return None
    try:
        begin, end, step = map(float, text.split(","))
    except ValueError:
        raise UsageError(f"{option}: expected begin,end,step or null, got {text!r}") from None
    if not np.isfinite([begin, end, step]).all() or step == 0 or (end - begin) / step < 0:
        raise UsageError(f"{option}: the step does not lead from begin to end in {text!r}")
    n_steps = int((end - begin) / step + 1e-9)
    if n_steps > 10_000:
        raise UsageError(f"{option}: {n_steps} steps in {text!r} are too many")
    return [begin + i * step for i in range(n_steps + 1)]


def _or_none(values: list[float] | None) -> list[float | None]:
    return [None] if values is None else list(values)


def _step(values: list[float]) -> float:
    return abs(values[1] - values[0]) if len(values) > 1 else 1.0


def _around(best: Point, steps: list[float]) -> list[Point]:
    """The points of the fine grid, one coarse step to all sides."""
    offsets = range(-_PARTS, _PARTS + 1)
    cs = _or_none(None if best.log2c is None else [best.log2c + i * steps[0] for i in offsets])
    gs = _or_none(None if best.log2g is None else [best.log2g + i * steps[1] for i in offsets])
    return [Point(c, g) for g in gs for c in cs]


def _evaluate(
    problem: SvmProblem, points: list[Point], arguments: argparse.Namespace, console: Console
) -> dict[Point, float]:
    """The rate of every point: accuracy in per cent, or mean squared error."""
    if not points:
        return {}
    grid = []
    for point in points:
        candidate = {}
        if point.log2c is not None:
            candidate["C"] = [2.0**point.log2c]
        if point.log2g is not None:
            candidate["gamma"] = [2.0**point.log2g]
        grid.append(candidate)
    has_limit = arguments.m is not None and problem.engine != "refit"
    options = {"kernel_mb": arguments.m} if has_limit else None
    search = GridSearchCV(
        problem.estimator(),
        grid,
        cv=problem.folds(arguments.v),
        scoring="neg_mean_squared_error" if problem.is_regression else "accuracy",
        refit=False,
        keep=None,
        engine=problem.engine,
        engine_options=options,
        n_jobs=arguments.jobs,
        progress=console.progress,
        error_score="raise",
    )
    search.fit(problem.X, problem.y)
    sizes = np.diff(search.result_.folds.starts)
    # The rate of all rows together, as LIBSVM has it, not the mean of folds.
    means = search.result_.scores("score") @ sizes / sizes.sum()
    rates = -means if problem.is_regression else 100 * means
    return dict(zip(points, rates.tolist(), strict=True))


def _best(rates: dict[Point, float], problem: SvmProblem) -> Point:
    sign = 1 if problem.is_regression else -1

    def key(point: Point) -> tuple[float, float, float]:
        return sign * round(rates[point], 9), point.log2c or 0.0, point.log2g or 0.0

    return min(rates, key=key)


def _values(point: Point, problem: SvmProblem) -> tuple[float, float]:
    """C and γ of a point."""
    params = problem.estimator().get_params()
    C = params["C"] if point.log2c is None else 2.0**point.log2c
    gamma = params["gamma"] if point.log2g is None else 2.0**point.log2g
    return float(C), float(gamma)


def _measure_name(problem: SvmProblem) -> str:
    return "mean_squared_error" if problem.is_regression else "accuracy"


def _show(
    rates: dict[Point, float], problem: SvmProblem, arguments: argparse.Namespace, console: Console
) -> Point:
    """Print every point with the best so far, as grid.py does, and the best of all."""
    seen: dict[Point, float] = {}
    best = next(iter(rates))
    for point, rate in rates.items():
        seen[point] = rate
        best = _best({item: rates[item] for item in (best, point)}, problem)
        if not arguments.q:
            place = " ".join(f"{item:g}" for item in (point.log2c, point.log2g) if item is not None)
            console.line(f"[local] {place} {rate:g} ({_named(best, rates[best], problem)})")
    C, gamma = _values(best, problem)
    numbers = [C] * (best.log2c is not None) + [gamma] * (best.log2g is not None)
    console.line(" ".join(map(str, [*numbers, f"{rates[best]:g}"])))
    return best


def _named(best: Point, rate: float, problem: SvmProblem) -> str:
    C, gamma = _values(best, problem)
    parts = [f"c={C}"] * (best.log2c is not None) + [f"g={gamma}"] * (best.log2g is not None)
    return "best " + ", ".join([*parts, f"rate={rate:g}"])


def _out_lines(rates: dict[Point, float]) -> list[str]:
    lines = []
    for point, rate in rates.items():
        parts = [f"log2c={point.log2c:g}"] if point.log2c is not None else []
        parts += [f"log2g={point.log2g:g}"] if point.log2g is not None else []
        lines.append(" ".join([*parts, f"rate={rate:g}"]) + "\n")
    return lines


def _need_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError("-png needs matplotlib: pip install 'onefold[plot]'") from error


def _plot(rates: dict[Point, float], best: Point, problem: SvmProblem, path: str) -> None:
    """Draw the rates as contours over log2 C and log2 γ, or as a curve of the one there is."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.8), layout="constrained")
    axes = figure.subplots()
    name = "mean squared error" if problem.is_regression else "accuracy (%)"
    points = list(rates)
    values = np.array(list(rates.values()))
    cs = np.array([np.nan if point.log2c is None else point.log2c for point in points])
    gs = np.array([np.nan if point.log2g is None else point.log2g for point in points])
    is_plane = len(set(cs)) > 1 and len(set(gs)) > 1
    if is_plane and best.log2c is not None and best.log2g is not None:
        shades = axes.tricontourf(cs, gs, values, levels=12, cmap="viridis")
        figure.colorbar(shades, ax=axes, label=name)
        axes.plot(cs, gs, ".", color="black", markersize=2)
        axes.plot(best.log2c, best.log2g, "o", mfc="none", mec="#D55E00", ms=12, mew=2.5)
        axes.set(xlabel="log₂ C", ylabel="log₂ γ")
    else:
        is_c = len(set(cs)) > 1 or best.log2g is None
        along, chosen = (cs, best.log2c) if is_c else (gs, best.log2g)
        order = np.argsort(along)
        axes.plot(along[order], values[order], ".-", color="#0072B2")
        axes.plot([chosen or 0.0], rates[best], "o", mfc="none", mec="#D55E00", ms=12, mew=2)
        axes.set(xlabel="log₂ C" if is_c else "log₂ γ", ylabel=name)
    C, gamma = _values(best, problem)
    axes.set_title(f"{Path(problem.path).name}: best {rates[best]:g} at C={C:g}, γ={gamma:g}")
    figure.savefig(path, dpi=120)
