"""Plots with one point per sample: held-out losses, and the influence of samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._inputs.folds import Folds
from ..stats._interval import check_level, interval, why_not_independent
from ._style import (
    BLACK,
    BLUE,
    GREY,
    VERMILLION,
    as_percent,
    grouped,
    label_extremes,
    legend_above,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..result._cv_result import CVResult
    from ..virtual import Diagnostics

__all__ = ["draw_influence", "draw_losses", "why_no_losses"]

Floats = NDArray[np.float64]

_FINER = ("log", "hinge")
"""Losses of a classifier that say more about a sample than right or wrong, the best first."""


def why_no_losses(result: CVResult) -> str | None:
    """Why there are no losses of samples, or None."""
    if result._losses is None:
        return "there is no loss of every sample (see `loss`)"
    if not len(result._losses):
        return "no sample was held out"
    return None


def _losses(result: CVResult, loss: str | None) -> tuple[str, Floats]:
    """Name and values in test order: of a classifier the finest loss that is known."""
    if loss is None and result.loss == "zero-one":
        for name in _FINER:
            try:
                return name, result.losses_in_test_order(name)
            except ValueError:
                continue  # the classifier has no such answer
    name = loss or str(result.loss)
    return name, result.losses_in_test_order(name)


def _title(loss: str) -> str:
    return loss if loss.endswith(("error", "density", "distance")) else f"{loss} loss"


def draw_losses(
    result: CVResult,
    ax: Axes,
    *,
    loss: str | None = None,
    n_labels: int = 5,
    level: float = 0.95,
) -> Axes:
    """Draw the loss of every sample while it was held out."""
    check_level(level)
    name, values = _losses(result, loss)
    rows = result._rows
    if name == "zero-one":
        _errors(ax, rows, values)
    else:
        n = len(values)
        ax.plot(
            rows,
            values,
            ".",
            color=BLUE,
            markersize=5 if n < 1000 else 3,
            alpha=0.7 if n < 1000 else 0.35,
            rasterized=n > 5000,
        )
        ax.margins(x=0.02)
        label_extremes(ax, rows, values, rows, n_labels)
    _mean(ax, result, name, values, level)
    ax.set_xlabel("sample")
    ax.set_ylabel(_title(name))
    legend_above(ax)
    return ax


def _mean(ax: Axes, result: CVResult, name: str, values: Floats, level: float) -> None:
    mean = float(values.mean())
    ax.axhline(mean, color=VERMILLION, linewidth=1.5, label=f"mean {mean:.4g}")
    folds = result.folds
    if not isinstance(folds, Folds) or why_not_independent(folds, result.has_groups) is not None:
        return
    ordered = np.empty_like(values)
    ordered[result._rows] = values
    try:
        of_mean = interval(ordered, folds, loss=name, level=level)
    except ValueError:
        return  # losses that do not vary, or are not finite, have none
    ax.axhspan(
        of_mean.low,
        of_mean.high,
        color=VERMILLION,
        alpha=0.18,
        linewidth=0,
        label=f"its {as_percent(level)} interval, {of_mean.low:.4g} to {of_mean.high:.4g}",
    )


def _errors(ax: Axes, rows: Any, values: Floats) -> None:
    """Wrong predictions as marks above a moving mean over neighboring samples."""
    order = np.argsort(rows, kind="stable")
    sorted_rows, ordered = rows[order], values[order]
    wrong = sorted_rows[ordered > 0]
    ax.plot(
        wrong,
        np.full(len(wrong), 1.04),
        "|",
        color=BLACK,
        markersize=7,
        markeredgewidth=0.6,
        label=f"{grouped(len(wrong))} of {grouped(len(rows))} wrong",
    )
    width = max(1, min(len(ordered), max(10, len(ordered) // 20)))
    moving = np.convolve(ordered, np.full(width, 1 / width), mode="valid")
    centres = sorted_rows[(width - 1) // 2 : (width - 1) // 2 + len(moving)]
    ax.plot(centres, moving, color=BLUE, linewidth=1.2, label=f"mean of {width} neighbors")
    ax.set_ylim(-0.03, 1.1)
    ax.margins(x=0.02)


def draw_influence(
    result: CVResult,
    ax: Axes,
    *,
    diagnostics: Diagnostics | None = None,
    loss: str | None = None,
    output: int = 0,
    n_labels: int = 5,
) -> Axes:
    """Draw Cook's distances against leverages, or else how much each sample adds to the loss."""
    if diagnostics is not None:
        return _cook(ax, result, diagnostics, output, n_labels)
    name, in_test_order = _losses(result, loss)
    # A sample that is held out several times counts by its mean loss.
    n_times = np.bincount(result._rows)
    samples = np.flatnonzero(n_times)
    values = np.bincount(result._rows, weights=in_test_order)[samples] / n_times[samples]
    order = np.argsort(-values, kind="stable")
    ranked = values[order]
    ranks = np.arange(1, len(ranked) + 1)
    ax.plot(ranks, ranked, color=BLUE, linewidth=1.2)
    n_points = min(len(ranked), 200)
    ax.plot(ranks[:n_points], ranked[:n_points], ".", color=BLUE, markersize=5)
    if len(ranked) > 100:
        ax.set_xscale("log")
    label_extremes(ax, ranks.astype(np.float64), ranked, samples[order], n_labels, rise=4)
    total = float(ranked.sum())
    if total > 0 and (ranked >= 0).all():
        n_half = int(np.searchsorted(np.cumsum(ranked), total / 2)) + 1
        ax.axvline(
            n_half,
            color=VERMILLION,
            linestyle="--",
            linewidth=1,
            label=f"{grouped(n_half)} of {grouped(len(ranked))} samples make up half of the loss",
        )
    ax.set_xlabel("rank of the sample, the largest loss first")
    ax.set_ylabel(f"{_title(name)}, held out")
    legend_above(ax)
    return ax


def _cook(ax: Axes, result: CVResult, influence: Diagnostics, output: int, n_labels: int) -> Axes:
    leverages = np.asarray(getattr(influence, "leverages", None), dtype=np.float64)
    if leverages.shape != (result.folds.n_samples,):
        raise ValueError(
            f"diagnostics must be those of the {result.folds.n_samples} samples of this result, "
            f"as onefold.diagnostics(estimator, X, y) returns them; got {type(influence).__name__} "
            f"with leverages of shape {leverages.shape}"
        )
    distances = np.asarray(influence.cooks_distance, dtype=np.float64)
    if distances.ndim == 2:
        if not 0 <= output < distances.shape[1]:
            raise ValueError(f"output must be from 0 to {distances.shape[1] - 1}, got {output!r}")
        distances = distances[:, output]
    ax.plot(leverages, distances, ".", color=BLUE, alpha=0.7, rasterized=len(leverages) > 5000)
    n = len(leverages)
    usual = 2 * influence.degrees_of_freedom / n
    ax.axhline(4 / n, color=VERMILLION, linestyle="--", linewidth=1, label=f"4/n = {4 / n:.3g}")
    ax.axvline(
        usual,
        color=GREY,
        linestyle=":",
        linewidth=1.2,
        label=f"twice the mean leverage, {usual:.3g}",
    )
    label_extremes(ax, leverages, distances, np.arange(n), n_labels)
    ax.set_xlabel("leverage")
    ax.set_ylabel("Cook's distance")
    legend_above(ax)
    return ax
