"""The cost of cross-validation against the number of folds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._inputs.folds import Folds
from ._style import BLUE, GREY, ORANGE, VERMILLION, grouped, legend_above

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..result._cv_result import CVResult

__all__ = ["draw_cost", "rows_fed_by_tree", "why_no_cost"]


def rows_fed_by_tree(n_samples: int, n_folds: int) -> int:
    """The rows that TreeCV feeds, exactly, for folds whose sizes differ by at most one.

    Every row of a fold is fed once at each depth above the leaf of its fold, so the count is the
    sum of the depths of leaves, weighted by the sizes of folds. The larger folds come first.

    Examples
    --------
    >>> from onefold.plotting._cost import rows_fed_by_tree
    >>> rows_fed_by_tree(1797, 1797), rows_fed_by_tree(8, 4), rows_fed_by_tree(7, 3)
    (19516, 16, 12)
    """
    size, n_larger = divmod(n_samples, n_folds)
    return size * _depths(n_folds, n_folds) + _depths(n_folds, n_larger)


def _depths(n_folds: int, n_first: int) -> int:
    """The sum of the depths of the first leaves of the tree."""
    total = 0
    while n_first > 0 and n_folds > 1:
        total += n_first
        left = -(-n_folds // 2)
        if n_first <= left:
            n_folds = left
        else:
            total += _all_depths(left)
            n_folds, n_first = n_folds - left, n_first - left
    return total


def _all_depths(n_folds: int) -> int:
    depth: int = n_folds.bit_length() - 1
    return n_folds * depth + 2 * (n_folds - (1 << depth))


def why_no_cost(result: CVResult) -> str | None:
    """Why the cost cannot be drawn, or None."""
    if not any(result.cost.values()):
        return f"engine={result.engine!r} has no counts of its work"
    return None


def draw_cost(result: CVResult, ax: Axes) -> Axes:
    """Draw the rows that the tree and refits feed, and the rows that were fed here.

    Where nothing is fed, or the test sets are no partition, the counts of the work are drawn.
    """
    if not isinstance(result.folds, Folds) or not result.cost.get("rows_fed"):
        return _draw_counts(result, ax)
    n, k, fed = result.folds.n_samples, len(result.folds), result.cost["rows_fed"]
    numbers = np.unique(np.append(np.geomspace(2, n, 200).round().astype(int), k))
    tree = [rows_fed_by_tree(n, number) for number in numbers.tolist()]
    ax.plot(numbers, n * (numbers - 1.0), color=GREY, label="refits, n·(k − 1)")
    ax.plot(numbers, n * np.log2(2 * numbers), "--", color=ORANGE, label="bound n·log₂(2k)")
    ax.plot(numbers, tree, color=BLUE, label="tree, exactly")
    ax.axhline(n, color=GREY, linestyle=":", linewidth=1.2, label=f"one fit, n = {grouped(n)}")
    ax.plot(
        [k],
        [fed],
        "o",
        color=VERMILLION,
        zorder=5,
        label=f"this result: {result.engine}, k = {grouped(k)}, {grouped(fed)} rows",
    )
    ax.set(xscale="log", yscale="log", xlabel="number of folds k", ylabel="rows fed to training")
    ax.set_ylim(bottom=0.6 * min(n, fed))
    ax.grid(True, which="major", color="#E5E5E5", linewidth=0.6)
    legend_above(ax)
    return ax


def _draw_counts(result: CVResult, ax: Axes) -> Axes:
    """Draw the counts of the work as bars, the largest above."""
    counts = sorted((count, name) for name, count in result.cost.items() if count)
    numbers = np.array([count for count, _ in counts], dtype=np.float64)
    at = np.arange(len(counts))
    ax.barh(at, numbers, color=BLUE, height=0.6)
    for place, (count, name) in enumerate(counts):
        text = f"{name.replace('_', ' ')}: {grouped(count)}"
        ax.text(0.01, place + 0.42, text, transform=ax.get_yaxis_transform(), fontsize="small")
    n_fits = grouped(len(result.folds))
    ax.set(xscale="log", yticks=[], xlabel=f"counts of {result.engine!r}, instead of {n_fits} fits")
    if result.engine == "refit":
        ax.set_xlabel(f"counts of {n_fits} fits")
    ax.set_xlim(left=0.5)
    ax.set_ylim(-0.5, len(counts))
    return ax
