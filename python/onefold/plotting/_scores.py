"""The scores of the folds, with their mean and its error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from .._inputs.folds import Folds
from .._utils.text import counted
from ..stats._interval import check_level
from ._held_out import choose_metric, metric_label
from ._style import BLACK, BLUE, GREY, LIGHT, VERMILLION, as_percent, grouped, legend_above

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..result._cv_result import CVResult

__all__ = ["draw_scores", "why_no_scores"]

Floats = NDArray[np.float64]

MAX_POINTS = 50
"""Folds up to which each has a point of its own; the scores of more are counted."""

MAX_VALUES = 12
"""Distinct scores up to which each is counted by itself."""


def why_no_scores(result: CVResult) -> str | None:
    """Why there are no scores to draw, or None."""
    scores = result.scores
    if not scores:
        return "there are no scores"
    if all(np.isnan(score).all() for score in scores.values()):
        return (
            f"{' and '.join(scores)} is defined on no test set (R², D² and AUC need several "
            "samples in each): `pooled` has the score of all held-out predictions together"
        )
    return None


def draw_scores(
    result: CVResult, ax: Axes, *, metric: str | None = None, level: float | None = None
) -> Axes:
    """Draw the score of every fold, or their counts where there are many."""
    names = [name for name, score in result.scores.items() if not np.isnan(score).all()]
    name = choose_metric(names, metric)
    scores = result.scores[name]
    known = scores[~np.isnan(scores)]
    is_many = len(scores) > MAX_POINTS
    if is_many:
        _counts(ax, known, metric_label(result, name))
    else:
        _points(ax, result, name)
    pooled, is_alike = result._pooled.get(name, np.nan), False
    line, span = (ax.axvline, ax.axvspan) if is_many else (ax.axhline, ax.axhspan)
    if len(known) == len(scores):
        mean = float(scores.mean())
        reach, what = _reach(result, scores, level)
        is_alike = abs(pooled - mean) <= 0.05 * reach or f"{pooled:.4g}" == f"{mean:.4g}"
        label = f"mean {mean:.4g}" + (f", pooled {pooled:.4g}" if is_alike else "")
        line(mean, color=VERMILLION, linewidth=1.5, label=label)
        if np.isfinite(reach):
            span(
                mean - reach,
                mean + reach,
                color=VERMILLION,
                alpha=0.18,
                linewidth=0,
                label=f"± {float(f'{reach:.2g}'):g}, {what}",
            )
    if np.isfinite(pooled) and not is_alike:
        line(pooled, color=BLACK, linewidth=1.2, linestyle=":", label=f"pooled {pooled:.4g}")
    n_without = len(scores) - len(known)
    if n_without:
        ax.plot([], [], " ", label=f"{counted(n_without, 'fold')} without a score: no mean")
    legend_above(ax)
    return ax


def _reach(result: CVResult, scores: Floats, level: float | None) -> tuple[float, str]:
    """Half the width of the band, and what it is."""
    error = float(result._error(scores))
    if level is None:
        return error, result._error.phrase
    check_level(level)
    freedom = max(result._error.sizes[0] - 1, 1)
    factor = float(student.ppf((1 + level) / 2, freedom))
    return factor * error, f"{as_percent(level)} by Student's t"


def _points(ax: Axes, result: CVResult, name: str) -> None:
    """One point per fold; the partitions of repeated k-fold side by side."""
    from matplotlib.ticker import MaxNLocator

    scores = result.scores[name]
    folds = np.arange(len(scores))
    train: Any = result.get(f"train_{name}")
    if train is not None:
        ax.plot(folds, train, "^", color=GREY, mfc="none", label="on the training set")
    ax.plot(folds, scores, "o", color=BLUE, label="on the test set" if train is not None else None)
    sizes = result._error.sizes
    ends = np.cumsum(sizes)
    for end in ends[:-1]:
        ax.axvline(end - 0.5, color=LIGHT, linewidth=1, zorder=0)
    if len(sizes) > 1:
        for position, (end, size) in enumerate(zip(ends, sizes, strict=True)):
            mean = float(scores[end - size : end].mean())
            label = "mean of a partition" if position == 0 else ""
            ax.hlines(mean, end - size - 0.4, end - 0.6, color=BLUE, linewidth=1.5, label=label)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    ax.set_xlim(-0.6, len(scores) - 0.4)
    ax.set_xlabel("fold" if isinstance(result.folds, Folds) else "split")
    ax.set_ylabel(metric_label(result, name))


def _counts(ax: Axes, scores: Floats, metric: str) -> None:
    """The number of folds by score."""
    values, counts = np.unique(scores, return_counts=True)
    if len(values) <= MAX_VALUES:
        gap = float(np.diff(values).min()) if len(values) > 1 else 1.0
        bars = ax.bar(values, counts, width=0.3 * gap, color=BLUE, alpha=0.7)
        texts = [grouped(count) for count in counts.tolist()]
        for label in ax.bar_label(bars, texts, padding=2, fontsize="small"):
            label.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1})
            label.set_zorder(5)
        ax.margins(y=0.12)
        if len(values) <= 3:
            ax.set_xlim(values[0] - 0.4 * gap, values[-1] + 0.4 * gap)
            ax.set_xticks(values)
    else:
        ax.hist(scores, bins="auto" if len(scores) < 5_000 else 60, color=BLUE, alpha=0.7)
    ax.set_xlabel(metric)
    ax.set_ylabel(f"number of folds, of {grouped(len(scores))}")
