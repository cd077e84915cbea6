"""A forest plot: the differences of candidates from one of them, with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import t as student

from ..stats._interval import check_level
from ._candidates import labels_of
from ._style import (
    BLUE,
    GREEN,
    GREY,
    VERMILLION,
    as_percent,
    has_layout,
    legend_above,
    move_names_inside,
    new_axes,
    shrink_labels,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..model_selection import SearchResult
    from ..stats._comparison import Comparison

__all__ = ["TOP", "draw_comparison", "forest_size", "plot_comparison", "why_no_comparison"]

TOP = 20
"""How many candidates are drawn by default."""


def forest_size(n_candidates: int) -> tuple[float, float]:
    """Inches of a figure with one line per candidate."""
    return 6.8, max(2.4, 1.3 + 0.3 * n_candidates)


def why_no_comparison(result: SearchResult) -> str | None:
    """Why candidates cannot be compared, or None."""
    if len(result.engines) < 2:
        return "there is only one candidate"
    if len(result.folds) < 2:
        return "there is only one test set, so differences have no standard error"
    if result.metric in result.table.pooled:
        try:
            result._losses_of(0, str(result.loss))
        except ValueError:
            return f"{result.metric} is not defined on every test set, and losses are not known"
    return None


def draw_comparison(
    result: SearchResult,
    ax: Axes,
    *,
    to: int | None = None,
    metric: str | None = None,
    loss: str | None = None,
    level: float = 0.95,
    rope: float | None = None,
    top: int = TOP,
) -> Axes:
    """Draw the differences of all candidates from the chosen one."""
    if metric is None and loss is None and result.metric in result.table.pooled:
        loss = result.loss
    comparison = result.compare(to, metric=metric, loss=loss, rope=rope, level=level)
    return plot_comparison(comparison, ax, level=level, top=top)


def plot_comparison(
    comparison: Comparison, ax: Axes | None = None, *, level: float = 0.95, top: int = TOP
) -> Axes:
    """Draw what `onefold.compare` or ``search.compare()`` has found as a forest plot.

    Intervals are those of the corrected resampled t-test; one that excludes zero has a p-value
    below 1 − level. Differences are not corrected for the number of candidates.

    Parameters
    ----------
    comparison : Comparison
    ax : Axes, optional
        By default those of a new figure.
    level : float, default=0.95
        Of the intervals.
    top : int, default=20
        Draw this many candidates, those with the best means, and the one that they are compared
        with.

    Returns
    -------
    ax : Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression, Ridge
    >>> import onefold
    >>> from onefold.plotting import plot_comparison
    >>> X, y = load_diabetes(return_X_y=True)
    >>> plain = onefold.cross_validate(LinearRegression(), X, y, cv=10)
    >>> ridge = onefold.cross_validate(Ridge(), X, y, cv=plain.folds)
    >>> ax = plot_comparison(onefold.compare(ridge, plain))
    >>> len(ax.get_yticklabels())
    2
    """
    check_level(level)
    if not isinstance(top, (int, np.integer)) or top < 1:
        raise ValueError(f"top must be a positive number of candidates, got {top!r}")
    n = len(comparison.candidate)
    is_base = comparison.candidate == comparison.to
    is_known = np.isfinite(comparison.difference)
    shown = np.flatnonzero(((np.arange(n) < top) & is_known) | is_base)
    labels = labels_of([comparison.params[candidate] for candidate in shown])
    if ax is None:
        ax = new_axes(None, forest_size(len(shown)))
    factor = float(student.ppf((1 + level) / 2, max(comparison.n_test_sets - 1, 1)))
    at = np.arange(len(shown))
    difference = comparison.difference[shown]
    reach = np.nan_to_num(factor * comparison.corrected_error[shown])
    _bars(ax, at, difference, reach, is_base[shown], as_percent(level))
    ax.axvline(0, color=GREY, linewidth=1, zorder=0)
    if comparison.rope is not None:
        ax.axvspan(
            -comparison.rope,
            comparison.rope,
            color=GREEN,
            alpha=0.12,
            linewidth=0,
            label=f"equivalent: within ±{comparison.rope:g}",
        )
    if len(shown) < n:
        ax.plot([], [], " ", label=f"{n - len(shown)} of {n} candidates are not shown")
    ax.set_yticks(at, labels, fontsize="small" if len(shown) > 12 else "medium")
    ax.set_ylim(len(shown) - 0.4, -0.6)
    base = labels[int(np.flatnonzero(is_base[shown])[0])]
    ax.set_xlabel(f"difference of {comparison.metric}\nfrom {base}")
    legend_above(ax, is_right=True)
    if not has_layout(ax):
        shrink_labels(ax)
        move_names_inside(ax)
    return ax


def _bars(ax: Axes, at: Any, difference: Any, reach: Any, is_base: Any, level: str) -> None:
    """The candidate to compare with is a point; the others have intervals."""
    is_clear = np.abs(difference) > reach
    groups = (
        (~is_base & ~is_clear, BLUE, "o", f"{level} interval with zero"),
        (~is_base & is_clear, VERMILLION, "s", f"{level} interval without zero"),
    )
    for members, color, sign, label in groups:
        if members.any():
            ax.errorbar(
                difference[members],
                at[members],
                xerr=reach[members],
                fmt=sign,
                color=color,
                markersize=5,
                capsize=3,
                linewidth=1.3,
                label=label,
            )
    ax.plot(difference[is_base], at[is_base], "D", color=GREY, markersize=6, label="compared with")
