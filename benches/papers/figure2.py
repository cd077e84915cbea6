"""Figure 2 of the TreeCV paper: running time against n. `treecv.py` runs it.

Three columns as in the paper: k-fold in fixed order, k-fold in random order, leave-one-out in both.
A row a learner. Time is on a logarithmic scale everywhere, so that every line can be told from the
axis; the paper has that for leave-one-out only.
"""

from dataclasses import astuple, dataclass

from common.native import Native
from common.report import RESULTS, table
from common.timing import race

__all__ = ["draw", "measure", "points_as_csv", "summary"]

FOLDS = (5, 10, 100)
SMALL = (1_000, 2_000, 5_000, 10_000)
"""Rows for leave-one-out by the standard method, which is quadratic; the paper stops there, too."""

PAPER_LOO = {
    ("tree", "fixed"): (581_012, 20),
    ("tree", "random"): (581_012, 46),
    ("refit", "fixed"): (10_000, 124),
    ("refit", "random"): (10_000, 175),
}
"""Pegasos: rows, and seconds on a core of a Xeon E5430, as the text of section 5 tells them."""

NAMES = {"tree": "TreeCV", "refit": "standard"}
STYLES = {"tree": "o-", "refit": "s--"}


@dataclass(frozen=True)
class Point:
    """A running time."""

    learner: str
    method: str
    order: str
    k: int | str
    n: int
    seconds: float


def measure(learners, rounds, progress):
    """Time every method on the first rows of each data set; return the points."""
    points = []
    for name, (estimator, X, y) in learners.items():
        steps = [round(len(y) * i / 8) for i in range(1, 9)]
        small = [n for n in (*SMALL, 20_000) if n < len(y) and n not in steps]
        for n in small + steps:
            native = Native(estimator, X[:n], y[:n])
            for k in (*FOLDS, "n") if n in steps else ("n",):
                progress(f"Figure 2, {name}: n = {n:,}, k = {k}")
                points += _point(name, native, n, k, rounds)
    progress("")
    return points


def _point(name, native, n, k, rounds):
    folds = native.folds(n if k == "n" else k)
    affordable = k != "n" or n in SMALL
    engines = {"tree": native.tree} | ({"refit": native.refit} if affordable else {})
    sides = {
        f"{method} {order}": lambda engine=engine, order=order: engine(folds, order=order)
        for method, engine in engines.items()
        for order in ("fixed", "random")
    }
    best = race(rounds, **sides)
    return [Point(name, *side.split(), k, n, seconds) for side, seconds in best.items()]


def summary(points):
    """Return leave-one-out beside the paper's four numbers, and the largest k-fold times."""
    lines = []
    for learner in dict.fromkeys(point.learner for point in points):
        for (method, order), (rows, paper) in PAPER_LOO.items():
            series = _series(points, learner, method, order, "n")
            n, seconds = series[-1]
            beside = f"{paper} s, n = {rows:,}" if learner == "Pegasos" else ""
            title = f"{learner}, leave-one-out, {NAMES[method]} {order}"
            lines.append((title, f"{n:,}", f"{seconds:.3f} s", beside))
        for k in FOLDS:
            n, tree = _series(points, learner, "tree", "fixed", k)[-1]
            _, refit = _series(points, learner, "refit", "fixed", k)[-1]
            times = f"{tree:.3f} s / {refit:.3f} s = 1 / {refit / tree:.1f}"
            lines.append((f"{learner}, k = {k}, TreeCV / standard", f"{n:,}", times, ""))
    return table(("running time, one thread", "n", "here", "paper"), lines)


def _series(points, learner, method, order, k):
    wanted = (learner, method, order, k)
    found = [p for p in points if (p.learner, p.method, p.order, p.k) == wanted]
    return sorted((p.n, p.seconds) for p in found)


def points_as_csv(points):
    """Return all points, a line each."""
    lines = ["learner,method,order,k,n,seconds"]
    lines += [",".join(map(str, astuple(point)[:-1])) + f",{point.seconds:.6f}" for point in points]
    return "\n".join(lines)


def draw(points, name):
    """Draw the three columns into benches/results."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    learners = list(dict.fromkeys(point.learner for point in points))
    figure, grid = plt.subplots(
        len(learners), 3, figsize=(13, 3.6 * len(learners)), squeeze=False, layout="constrained"
    )
    for axes, learner in zip(grid, learners, strict=True):
        _k_fold(axes[0], points, learner, "fixed")
        _k_fold(axes[1], points, learner, "random")
        _leave_one_out(axes[2], points, learner)
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    figure.savefig(RESULTS / name, dpi=110)
    plt.close(figure)
    print(f"wrote benches/results/{name}")


def _k_fold(axes, points, learner, order):
    """One color a k; solid for TreeCV, dashed for the standard method."""
    for color, k in enumerate(FOLDS):
        for method, style in STYLES.items():
            n, seconds = zip(*_series(points, learner, method, order, k), strict=True)
            thousands = [size / 1000 for size in n]
            label = f"{NAMES[method]}, k = {k}"
            axes.plot(thousands, seconds, style, color=f"C{color}", markersize=3, label=label)
    axes.set(title=f"{learner}, {order} order", xlabel="n (thousands)", ylabel="seconds")
    axes.set_yscale("log")
    axes.grid(alpha=0.3)


def _leave_one_out(axes, points, learner):
    for (method, order), (rows, paper) in PAPER_LOO.items():
        color = "C0" if order == "fixed" else "C1"
        n, seconds = zip(*_series(points, learner, method, order, "n"), strict=True)
        label = f"{NAMES[method]}, {order}"
        axes.loglog(n, seconds, STYLES[method], color=color, markersize=3, label=label)
        if learner == "Pegasos":
            axes.plot(rows, paper, "*", color=color, markersize=10)
    if learner == "Pegasos":
        axes.plot([], [], "*", color="grey", markersize=10, label="the paper, in 2015")
    axes.set(title=f"{learner}, leave-one-out", xlabel="n", ylabel="seconds")
    # Room for the legend below the curves.
    axes.set_ylim(bottom=2e-5)
    axes.legend(fontsize=8, loc="lower right")
    axes.grid(alpha=0.3)
