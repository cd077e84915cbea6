"""Held-out predictions against targets: confusion matrix and residuals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import ConfusionMatrixDisplay, PredictionErrorDisplay

from ._held_out import check_fold, rows_of
from ._style import BLACK, COLORS, grouped, legend_above, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..result._cv_result import CVResult

__all__ = ["draw_actual_vs_predicted", "draw_confusion_matrix", "draw_residuals"]

MAX_WRITTEN = 15
"""Classes up to which the counts are written into the cells."""


def draw_confusion_matrix(
    result: CVResult,
    ax: Axes,
    *,
    fold: int | None = None,
    normalize: str | None = None,
    cmap: str = "Blues",
    colorbar: bool = True,
) -> Axes:
    """Draw how many samples of each class were predicted as each."""
    if normalize not in (None, "true", "pred", "all"):
        raise ValueError(f"normalize must be None, 'true', 'pred' or 'all', got {normalize!r}")
    where = check_fold(result, fold)
    targets, predictions = (values[where] for values in rows_of(result))
    labels = np.unique(np.concatenate([np.unique(targets), np.asarray(result.classes)]))
    is_small = len(labels) <= MAX_WRITTEN
    names = [shortened(str(label)) for label in labels.tolist()]
    longest = max(map(len, names))
    ConfusionMatrixDisplay.from_predictions(
        targets,
        predictions,
        labels=labels,
        display_labels=names,
        normalize=normalize,
        include_values=is_small,
        values_format=None if normalize is None else ".2f",
        xticks_rotation="vertical" if longest * len(labels) > 45 else "horizontal",
        cmap=cmap,
        ax=ax,
        colorbar=colorbar,
        text_kw={"fontsize": "small"} if len(labels) > 8 else None,
    )
    if not is_small:
        step = -(-len(labels) // 20)
        shown = np.arange(0, len(labels), step)
        ax.set(xticks=shown, yticks=shown)
        written = [names[i] for i in shown]
        ax.set_xticklabels(written, rotation="vertical" if longest > 2 else "horizontal")
        ax.set_yticklabels(written)
    if fold is not None:
        ax.set_title(f"fold {fold}")
    return ax


def draw_residuals(
    result: CVResult,
    ax: Axes,
    *,
    fold: int | None = None,
    output: int = 0,
    subsample: int | None = 5000,
) -> Axes:
    """Draw residuals against predictions."""
    return _draw(result, ax, "residual_vs_predicted", fold, output, subsample)


def draw_actual_vs_predicted(
    result: CVResult,
    ax: Axes,
    *,
    fold: int | None = None,
    output: int = 0,
    subsample: int | None = 5000,
) -> Axes:
    """Draw targets against predictions."""
    return _draw(result, ax, "actual_vs_predicted", fold, output, subsample)


def _draw(
    result: CVResult,
    ax: Axes,
    kind: str,
    fold: int | None,
    output: int,
    subsample: int | None,
) -> Axes:
    where = check_fold(result, fold)
    targets, predictions = (_output(values[where], output) for values in rows_of(result))
    targets = np.asarray(targets, dtype=np.float64)
    if subsample is not None and not (isinstance(subsample, int) and subsample > 0):
        raise ValueError(f"subsample must be a positive number of samples, got {subsample!r}")
    n_shown = len(targets) if subsample is None else min(subsample, len(targets))
    n_folds = len(result.folds)
    is_by_fold = fold is None and n_folds <= len(COLORS) and n_shown == len(targets)
    PredictionErrorDisplay.from_predictions(
        targets,
        predictions,
        kind=kind,
        subsample=None if n_shown == len(targets) else n_shown,
        random_state=0,
        ax=ax,
        scatter_kwargs={
            "alpha": 0.7 if n_shown < 1000 else 0.35,
            "s": 16 if n_shown < 1000 else 8,
            "linewidths": 0,
            "color": COLORS[0],
            "rasterized": n_shown > 2000,
        },
        line_kwargs={"color": BLACK, "linewidth": 1},
    )
    if is_by_fold:
        _color_by_fold(result, ax)
    n_outputs = np.size(result._answers["predict"]) // len(result._rows)
    remarks = [f"output {output} of {n_outputs}"] if n_outputs > 1 else []
    remarks += [] if fold is None else [f"fold {fold}"]
    if n_shown < len(targets):
        remarks.append(f"{grouped(n_shown)} of {grouped(len(targets))} samples, at random")
    if remarks and is_by_fold:  # the legend stands above the axes
        ax.text(0.02, 0.97, ", ".join(remarks), transform=ax.transAxes, va="top", fontsize="small")
    elif remarks:
        ax.set_title(", ".join(remarks), fontsize="small")
    _square(ax, kind)
    return ax


def _output(values: Any, output: int) -> Any:
    """One output of several."""
    columns = values[:, None] if values.ndim == 1 else values
    n_outputs = columns.shape[1]
    if not isinstance(output, (int, np.integer)) or not 0 <= output < n_outputs:
        raise ValueError(f"output must be from 0 to {n_outputs - 1}, got {output!r}")
    return columns[:, output]


def _color_by_fold(result: CVResult, ax: Axes) -> None:
    """Color the points by the fold that held them out."""
    [points] = ax.collections[-1:]
    fold_of = np.repeat(np.arange(len(result.folds)), np.diff(result._starts))
    points.set_facecolor([COLORS[fold] for fold in fold_of.tolist()])
    for fold in range(len(result.folds)):
        ax.scatter([], [], s=16, color=COLORS[fold], label=f"fold {fold}")
    legend_above(ax, columns=len(COLORS))


def _square(ax: Axes, kind: str) -> None:
    """Give targets and predictions the same scale, with ticks at round numbers."""
    from matplotlib.ticker import AutoLocator, ScalarFormatter

    if kind == "actual_vs_predicted":
        ax.set_aspect("equal", adjustable="datalim")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(AutoLocator())
            axis.set_major_formatter(ScalarFormatter())
