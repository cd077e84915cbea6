"""Curves of classifiers from held-out answers: ROC, precision–recall and calibration.

They are scikit-learn's displays, one per fold and one of all held-out answers together. In the
pooled curve the answers of different models are ranked with each other; where models differ in
their scale, it lies below those of the folds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.calibration import CalibrationDisplay
from sklearn.metrics import (
    PrecisionRecallDisplay,
    RocCurveDisplay,
    average_precision_score,
    roc_auc_score,
)

from ._held_out import Binary, binary
from ._style import BLUE, GREY, LIGHT, has_layout, legend_above, line_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..result._cv_result import CVResult

__all__ = ["curve_size", "draw_calibration", "draw_precision_recall", "draw_roc"]

MAX_FOLDS = 30
"""Folds up to which each has a curve of its own."""

MIN_PER_BIN = 50
"""Samples per bin, on average, from which the calibration of a fold is worth a line."""

MAX_LISTED = 4
"""Classes up to which the legend is inside the axes."""

MAX_CLASSES = 10
"""Classes up to which each has a color of its own."""


def curve_size(result: CVResult, options: Mapping[str, Any]) -> tuple[float, float]:
    """Inches of a new figure: wider where the legend stands beside the axes."""
    n_classes = 1 if options.get("pos_label") is not None else len(np.asarray(result.classes))
    return (7.4 if MAX_LISTED < n_classes <= MAX_CLASSES else 5.6), 5.0


def draw_roc(
    result: CVResult,
    ax: Axes,
    *,
    pos_label: Any = None,
    response: str | None = None,
    folds: bool | None = None,
    chance: bool = True,
) -> Axes:
    """Draw the receiver operating characteristic."""
    several = binary(result, response, pos_label)
    if chance:
        ax.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1, label="chance (AUC = 0.5)")
    _draw(ax, several, RocCurveDisplay.from_predictions, roc_auc_score, "AUC", folds)
    _finish(ax, several, "lower right", "False Positive Rate", "True Positive Rate")
    return ax


def draw_precision_recall(
    result: CVResult,
    ax: Axes,
    *,
    pos_label: Any = None,
    response: str | None = None,
    folds: bool | None = None,
    chance: bool = True,
) -> Axes:
    """Draw precision against recall."""
    several = binary(result, response, pos_label)
    if chance and len(several) == 1:
        share = float(several[0].is_class.mean())
        ax.axhline(
            share, color=GREY, linestyle="--", linewidth=1, label=f"chance (AP = {share:.3f})"
        )
    _draw(
        ax, several, PrecisionRecallDisplay.from_predictions, average_precision_score, "AP", folds
    )
    _finish(ax, several, "lower left", "Recall", "Precision")
    return ax


def draw_calibration(
    result: CVResult,
    ax: Axes,
    *,
    pos_label: Any = None,
    n_bins: int = 5,
    strategy: str = "uniform",
    folds: bool | None = None,
) -> Axes:
    """Draw the frequency of a class against its predicted probability."""
    several = binary(result, "predict_proba", pos_label)

    def curve(is_class: Any, scores: Any, **options: Any) -> Any:
        return CalibrationDisplay.from_predictions(
            is_class, scores, n_bins=n_bins, strategy=strategy, ref_line=False, **options
        )

    def brier(is_class: Any, scores: Any) -> float:
        return float(np.mean((is_class - scores) ** 2))

    ax.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1, label="perfectly calibrated")
    if len(several) == 1:
        _shares(ax, several[0], n_bins)
    if folds is None and np.median(np.diff(result._starts)) < MIN_PER_BIN * n_bins:
        folds = False
    _draw(ax, several, curve, brier, "Brier", folds)
    _finish(ax, several, "upper left", "Mean predicted probability", "Fraction of positives")
    ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01))
    if len(several) <= MAX_LISTED:
        legend_above(ax)
    return ax


def _shares(ax: Axes, curve: Binary, n_bins: int) -> None:
    """The share of samples by predicted probability, on the axis of fractions."""
    counts, edges = np.histogram(curve.scores, bins=n_bins, range=(0, 1))
    ax.bar(
        edges[:-1],
        counts / len(curve.scores),
        width=np.diff(edges),
        align="edge",
        color=LIGHT,
        edgecolor="white",
        zorder=0,
        label="share of samples",
    )


def _draw(
    ax: Axes,
    several: list[Binary],
    display: Callable[..., Any],
    score: Callable[[Any, Any], Any],
    name: str,
    folds: bool | None,
) -> None:
    """Draw the folds of one class, then the pooled curve; of several classes the pooled curves."""
    if len(several) == 1:
        _draw_folds(ax, several[0], display, score, name, folds)
    is_many = len(several) > MAX_CLASSES
    values = []
    for position, curve in enumerate(several):
        if not curve.is_class.any() or curve.is_class.all():
            continue
        values.append(float(score(curve.is_class, curve.scores)))
        style: dict[str, Any] = {"color": BLUE, "alpha": 0.35, "linewidth": 1}
        label = None
        if not is_many:
            style = {"linewidth": 2 if len(several) == 1 else 1.5, **line_style(position)}
            whose = "pooled" if len(several) == 1 else f"class {curve.label}"
            label = f"{whose} ({name} = {values[-1]:.3f})"
        _add(ax, display, curve.is_class, curve.scores, label, style)
    if is_many and values:
        ax.plot(
            [],
            [],
            color=BLUE,
            label=f"{len(values)} classes ({name} {min(values):.3f} to {max(values):.3f}, "
            f"mean {np.mean(values):.3f})",
        )


def _draw_folds(
    ax: Axes,
    curve: Binary,
    display: Callable[..., Any],
    score: Callable[[Any, Any], Any],
    name: str,
    folds: bool | None,
) -> None:
    n_folds = len(curve.starts) - 1
    known = list(curve.by_fold()) if folds or (folds is None and n_folds <= MAX_FOLDS) else []
    if not known:
        if folds or (folds is None and n_folds <= MAX_FOLDS):
            ax.plot([], [], " ", label=f"none of {n_folds} folds holds out both kinds")
        return
    values = np.array([score(is_class, scores) for is_class, scores in known])
    some = "" if len(known) == n_folds else f"{len(known)} of "
    spread = f" ± {values.std(ddof=1):.3f}" if len(values) > 1 else ""
    label = f"{some}{n_folds} folds ({name} = {values.mean():.3f}{spread})"
    for position, (is_class, scores) in enumerate(known):
        style = {"color": BLUE, "alpha": 0.45, "linewidth": 0.9, "zorder": 1.5, "marker": ""}
        _add(ax, display, is_class, scores, label if position == 0 else None, style)


def _add(
    ax: Axes,
    display: Callable[..., Any],
    is_class: Any,
    scores: Any,
    label: str | None,
    style: dict[str, Any],
) -> None:
    """Add the line of a display; versions of scikit-learn differ in how they take its style."""
    n_before = len(ax.lines)
    display(is_class.astype(int), scores, pos_label=1, ax=ax)
    for line in ax.lines[n_before:]:
        if line.get_marker() == "s":
            line.set_markersize(4)
        line.set(label=label if label is not None else "_nolegend_", **style)


def _finish(ax: Axes, several: list[Binary], place: Any, x: str, y: str) -> None:
    positive = f" (Positive label: {several[0].label})" if len(several) == 1 else " (one-vs-rest)"
    ax.set(xlabel=x + positive, ylabel=y + positive)
    is_long = MAX_LISTED < len(several) <= MAX_CLASSES and has_layout(ax)
    ax.legend(
        loc="center left" if is_long else place,
        bbox_to_anchor=(1.0, 0.5) if is_long else None,
        fontsize="small",
        frameon=not is_long,
    )
