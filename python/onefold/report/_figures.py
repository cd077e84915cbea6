"""The figures of a report."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score, roc_curve

from .._losses import shaped_like
from .._text import counted, describe
from ..stats._standard_error import StandardError
from ._search_checks import line_through, numeric_parameters
from ._svg import Chart

if TYPE_CHECKING:
    from .._result import CVResult
    from ..search._result import SearchResult

__all__ = ["Figure", "result_figures", "search_figures"]

Floats = NDArray[np.float64]

MAX_DOTS = 40
"""Test sets up to which each has a dot; above, scores are a histogram."""

MAX_POINTS = 800
"""Samples up to which each has a point; above, they are counted in cells."""

MAX_METRICS = 4
"""Metrics whose fold scores are drawn."""

MAX_CANDIDATES = 20
"""Candidates in a forest plot, the best first."""


@dataclass(frozen=True)
class Figure:
    """A picture with its heading and its caption."""

    title: str
    svg: str
    caption: str


def result_figures(result: CVResult, labels: dict[str, str]) -> list[Figure]:
    """Fold scores, and the ROC curve of two classes or predicted against actual values."""
    found = [
        fold_scores(scores, float(result._error(scores)), labels[name], result._error.phrase)
        for name, scores in list(result.scores.items())[:MAX_METRICS]
        if np.isfinite(scores).any()
    ]
    for make in (_roc, _predicted):
        figure = make(result)
        if figure is not None:
            found.append(figure)
    return found


def padded(values: Any, share: float = 0.08) -> tuple[float, float]:
    """The range of values, a little wider, and never empty.

    Examples
    --------
    >>> from onefold.report._figures import padded
    >>> padded([1.0, 2.0], 0.5), padded([3.0])
    ((0.5, 2.5), (2.5, 3.5))
    """
    numbers = np.asarray(values, dtype=np.float64)
    numbers = numbers[np.isfinite(numbers)]
    low, high = (float(numbers.min()), float(numbers.max())) if len(numbers) else (0.0, 1.0)
    if low == high:
        reach = 0.5 if abs(low) < 10 else 0.05 * abs(low)
        return low - reach, high + reach
    pad = share * (high - low)
    return low - pad, high + pad


def fold_scores(scores: Floats, error: float, label: str, phrase: str) -> Figure:
    """One dot per test set, or a histogram of many."""
    mean = float(scores.mean()) if np.isfinite(scores).all() else float(np.nanmean(scores))
    spread = "" if math.isnan(error) else f", {phrase} {error:.2g}"
    about = (
        f"{counted(len(scores), 'test set')}, {np.nanmin(scores):.4g} to {np.nanmax(scores):.4g}, "
        f"mean {mean:.4g}{spread}"
    )
    title = f"{label} of the test sets"
    if len(scores) > MAX_DOTS:
        return _histogram(scores, mean, label, title, about)
    reach = 0.0 if math.isnan(error) else error
    chart = Chart(
        title, about, x=(-0.5, len(scores) - 0.5), y=padded([*scores, mean - reach, mean + reach])
    )
    ends = (-0.5, len(scores) - 0.5)
    if reach:
        chart.box(ends, (mean - reach, mean + reach))
    chart.line([(ends[0], mean), (ends[1], mean)], "mean")
    chart.points([(i, float(own)) for i, own in enumerate(scores)])
    chart.y_axis(label)
    step = math.ceil(len(scores) / 10)
    chart.x_axis("test set", at=range(0, len(scores), step))
    band = f"; the band is ± one {phrase}" if reach else ""
    return Figure(title, chart.text(), f"One dot per test set; the line is their mean{band}.")


def _histogram(scores: Floats, mean: float, label: str, title: str, about: str) -> Figure:
    finite = scores[np.isfinite(scores)]
    counts, edges = np.histogram(finite, bins=30)
    chart = Chart(title, about, x=padded(edges, 0.03), y=(0, max(1.0, 1.08 * counts.max())))
    for count, low, high in zip(counts.tolist(), edges[:-1], edges[1:], strict=True):
        if count:
            chart.box((float(low), float(high)), (0, count), "bar")
    chart.line([(mean, chart.y[0]), (mean, chart.y[1])], "mean")
    chart.y_axis("test sets")
    chart.x_axis(label)
    return Figure(title, chart.text(), "How many test sets have which score; the line is the mean.")


def _roc(result: CVResult) -> Figure | None:
    """The pooled ROC curve of two classes."""
    answers, targets, classes = result._answers, result.targets, result.classes
    if targets is None or classes is None or np.ndim(targets) != 1 or len(classes) != 2:
        return None
    values: Any = answers.get("decision_function")
    if values is None:
        values = answers.get("predict_proba")
    if values is None or isinstance(values, list):
        return None
    values = np.asarray(values, dtype=np.float64)
    values = values if values.ndim == 1 else values[:, -1]
    is_positive = targets[result._rows] == classes[1]
    if len(values) != len(is_positive) or is_positive.all() or not is_positive.any():
        return None
    if not np.isfinite(values).all():
        return None
    false_rate, true_rate, _ = roc_curve(is_positive, values)
    area = float(roc_auc_score(is_positive, values))
    step = max(1, len(false_rate) // 300)
    curve = [*zip(false_rate[::step], true_rate[::step], strict=True), (1.0, 1.0)]
    title = "ROC curve"
    about = f"All held-out samples together, positive class {classes[1]!s}; area {area:.4f}"
    chart = Chart(title, about, x=(0, 1), y=(0, 1), height=340)
    chart.line([(0, 0), (1, 1)], "guide")
    chart.line([(float(a), float(b)) for a, b in curve], "line")
    chart.y_axis("true positive rate")
    chart.x_axis("false positive rate")
    caption = (
        f"{about}. It compares decisions of the models of different folds, and so takes them to be "
        "on one scale."
    )
    return Figure(title, chart.text(), caption)


def _predicted(result: CVResult) -> Figure | None:
    """Predicted against actual values of a regression with one output."""
    predicted: Any = result._answers.get("predict")
    if (
        result._loss_of_predictions != "squared error"
        or result.targets is None
        or isinstance(predicted, list)
    ):
        return None
    predicted = np.asarray(predicted, dtype=np.float64)
    actual = np.asarray(result.targets[result._rows], dtype=np.float64)
    actual = shaped_like(predicted, actual)
    if predicted.ndim != 1 or actual.ndim != 1:
        return None
    good = np.isfinite(actual) & np.isfinite(predicted)
    if not good.any():
        return None
    actual, predicted = actual[good], predicted[good]
    title = "Predicted against actual"
    about = f"{counted(len(actual), 'held-out sample')}; on the line both are equal"
    low, high = padded([actual.min(), actual.max(), predicted.min(), predicted.max()], 0.04)
    chart = Chart(title, about, x=(low, high), y=(low, high), height=340)
    chart.line([(low, low), (high, high)], "guide")
    if len(actual) <= MAX_POINTS:
        points = [(float(a), float(b)) for a, b in zip(actual, predicted, strict=True)]
        chart.points(points, "dot", 2.5)
        caption = f"{about}."
    else:
        _add_cells(chart, actual, predicted, low, high)
        caption = f"{about}. Darker cells have more samples."
    chart.y_axis("predicted while held out")
    chart.x_axis("actual")
    return Figure(title, chart.text(), caption)


def _add_cells(chart: Chart, actual: Floats, predicted: Floats, low: float, high: float) -> None:
    edges = np.linspace(low, high, 41)
    counts, _, _ = np.histogram2d(actual, predicted, bins=(edges, edges))
    most = np.log1p(counts.max())
    for i, j in np.argwhere(counts > 0):
        share = 0.12 + 0.88 * float(np.log1p(counts[i, j]) / most)
        x, y = (edges[i], edges[i + 1]), (edges[j], edges[j + 1])
        chart.box((float(x[0]), float(x[1])), (float(y[0]), float(y[1])), "cell", share)


# Searches


def search_figures(search: SearchResult, label: str) -> list[Figure]:
    """The score along each numeric parameter, or the best candidates with their errors."""
    means = np.asarray(search.table[f"mean_test_{search.metric}"], dtype=np.float64)
    if not np.isfinite(means).any():
        return []
    errors = np.zeros_like(means)
    if search.metric not in search.table.pooled and len(search.folds) > 1:
        errors = np.nan_to_num(StandardError.of(search.folds)(search.scores()))
    found = []
    if search.best is not None:
        params = search.table["params"]
        for name in numeric_parameters(params, search.best)[:MAX_METRICS]:
            line = line_through(params, search.best, name)
            if len(line) >= 3:
                found.append(_curve(name, line, means, errors, search.best, label))
    return [*found, _forest(search, means, errors, label)]


def _curve(
    name: str,
    line: list[tuple[float, int]],
    means: Floats,
    errors: Floats,
    best: int,
    label: str,
) -> Figure:
    line = [(value, own) for value, own in line if np.isfinite(means[own])]
    values = [value for value, _ in line]
    is_log = min(values) > 0 and max(values) / min(values) >= 50
    x = padded(values, 0.05)
    if is_log:
        reach = (max(values) / min(values)) ** 0.08
        x = (min(values) / reach, max(values) * reach)
    own = np.array([position for _, position in line])
    title = f"{label} by {name}"
    chosen = next((value for value, position in line if position == best), float("nan"))
    about = f"{len(line)} values from {values[0]:g} to {values[-1]:g}; the choice is {chosen:g}"
    y = padded([*(means[own] - errors[own]), *(means[own] + errors[own])])
    chart = Chart(title, about, x=x, y=y, log_x=is_log)
    for value, position in line:
        mean, error = float(means[position]), float(errors[position])
        chart.line([(value, mean - error), (value, mean + error)], "whisker")
    chart.line([(value, float(means[position])) for value, position in line], "line")
    chart.points([(value, float(means[p])) for value, p in line if p != best])
    chart.points([(value, float(means[p])) for value, p in line if p == best], "chosen", 6.5)
    chart.y_axis(label)
    chart.x_axis(name)
    caption = (
        "Candidates that differ from the choice in this parameter alone, ± one standard error; "
        "the larger mark is the choice."
    )
    return Figure(title, chart.text(), caption)


def _forest(search: SearchResult, means: Floats, errors: Floats, label: str) -> Figure:
    order = np.argsort(search.table[f"rank_test_{search.metric}"], kind="stable")
    order = order[np.isfinite(means[order])][:MAX_CANDIDATES]
    n_rows = len(order)
    title = f"The best {n_rows} candidates" if n_rows < len(means) else "All candidates"
    about = f"{label} ± one standard error of {n_rows} of {counted(len(means), 'candidate')}"
    x = padded([*(means[order] - errors[order]), *(means[order] + errors[order])], 0.05)
    chart = Chart(title, about, x=x, y=(n_rows + 0.5, 0.5), height=58 + 36 * n_rows, left=14, top=4)
    names = _short_names(dict.fromkeys(name for own in search.table["params"] for name in own))
    # Row 1 is at the top: the scale runs from n_rows + 0.5 at the bottom to 0.5 at the top.
    for row, position in enumerate(order.tolist(), start=1):
        mean, error = float(means[position]), float(errors[position])
        is_best = position == search.best
        own = {names[name]: value for name, value in search.table["params"][position].items()}
        text = f"{position}: {describe(own)}"
        text = text if len(text) <= 62 else f"{text[:61]}…"
        chart.label(
            f"{text} ← choice" if is_best else text,
            chart.left,
            chart.y_scale(row) - 4,
            anchor="start",
            kind="entry",
        )
        chart.line([(mean - error, row + 0.22), (mean + error, row + 0.22)], "whisker")
        radius = 6.0 if is_best else 4.0
        chart.points([(mean, row + 0.22)], "chosen" if is_best else "point", radius)
    chart.x_axis(label)
    return Figure(title, chart.text(), f"{about}, the best first.")


def _short_names(names: Iterable[str]) -> dict[str, str]:
    """Parameters of steps without the names of the steps, where these are not needed."""
    last = {name: name.rpartition("__")[2] for name in names}
    counts = Counter(last.values())
    return {name: own if counts[own] == 1 else name for name, own in last.items()}
