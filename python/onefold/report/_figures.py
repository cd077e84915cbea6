"""The figures of a report: plots of `onefold.plotting` as SVG in the page.

# Method
Each figure is drawn on a figure of matplotlib's own, with matplotlib's default style, and written
as SVG whose text is text. Black becomes the color of the page's text and white that of the page,
so that the figures follow the reader's choice of light or dark. The same result gives the same
bytes.

# References
matplotlib is the extra ``report``; without it, a report has no figures and says so.
"""

from __future__ import annotations

import html
import io
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from ._search_checks import line_through, numeric_parameters

if TYPE_CHECKING:
    from ..model_selection._search.result import SearchResult
    from ..result._cv_result import CVResult

__all__ = ["NO_FIGURES", "Figure", "figures_of", "first_figure", "has_matplotlib"]

MAX_METRICS = 4
"""Metrics whose fold scores are drawn, and parameters whose validation curves are."""

MIN_VALUES = 3
"""Values of a parameter from which it has a validation curve."""

NO_FIGURES = "Figures need matplotlib: pip install 'onefold[report]'."

SIZE = (5.0, 3.7)
"""Width and height of a figure, in inches: its text is readable on a phone."""

STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "onefold",
    "text.parse_math": False,
    "font.size": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
"""Settings of matplotlib, besides its defaults. Names of users are text, not formulas."""


@dataclass(frozen=True)
class Plot:
    """A plot of a report: its kind and options as in ``result.plot``, heading and caption."""

    title: str
    kind: str
    caption: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Figure:
    """A picture with its heading and its caption."""

    title: str
    svg: str
    caption: str


def has_matplotlib() -> bool:
    """Whether figures can be drawn."""
    return find_spec("matplotlib") is not None


def figures_of(result: CVResult | SearchResult, labels: dict[str, str]) -> list[Figure]:
    """Draw the figures of a report.

    Parameters
    ----------
    result : CVResult or SearchResult
    labels : dict
        What to call each metric.
    """
    from ..model_selection._search.result import SearchResult

    if not has_matplotlib():
        return []
    if not isinstance(result, SearchResult):
        return [_drawn(result, plot) for plot in _plots_of_result(result, labels)]
    figures = [_drawn(result, plot) for plot in _plots_of_search(result, labels)]
    chosen = None if result.best is None else result.results.get(result.best)
    return figures + ([] if chosen is None else figures_of(chosen, labels))


def first_figure(result: CVResult | SearchResult) -> Figure | None:
    """The first figure of a report, or None without matplotlib or plots."""
    from ..model_selection._search.result import SearchResult

    if not has_matplotlib():
        return None
    if isinstance(result, SearchResult):
        plot = next(_plots_of_search(result, {}), None)
    else:
        plot = next(_plots_of_result(result, {}), None)
    return None if plot is None else _drawn(result, plot)


def _plots_of_result(result: CVResult, labels: dict[str, str]) -> Iterator[Plot]:
    """Fold scores, and the ROC curve of two classes or predicted against actual values."""
    from ..plotting import CV_KINDS

    for name in list(result.scores)[:MAX_METRICS]:
        if np.isfinite(result.scores[name]).any():
            yield Plot(
                f"{labels.get(name, name)} of the test sets",
                "scores",
                "The score of each test set, or how many test sets have which score; the line is "
                "the mean, the band its standard error.",
                {"metric": name},
            )
    if CV_KINDS["roc"].why_not(result) is None and len(np.asarray(result.classes)) == 2:
        yield Plot(
            "ROC curve",
            "roc",
            "Each test set by itself where there are few, and all held-out samples together, which "
            "takes the decisions of the models of different folds to be on one scale.",
        )
    has_one_output = result.targets is not None and result.targets.ndim == 1
    if has_one_output and CV_KINDS["actual_vs_predicted"].why_not(result) is None:
        yield Plot(
            "Predicted against actual",
            "actual_vs_predicted",
            "Held-out samples; on the line both are equal.",
        )


def _plots_of_search(search: SearchResult, labels: dict[str, str]) -> Iterator[Plot]:
    """The score along each numeric parameter, and differences from the choice."""
    from ..plotting import SEARCH_KINDS

    if search.best is None or not np.isfinite(search.table[f"mean_test_{search.metric}"]).any():
        return
    label = labels.get(search.metric, search.metric)
    params = search.table["params"]
    for name in numeric_parameters(params, search.best)[:MAX_METRICS]:
        if len(line_through(params, search.best, name)) >= MIN_VALUES:
            yield Plot(
                f"{label} by {name}",
                "validation_curve",
                "Mean scores on the test sets, one line for each value of the other parameters.",
                {"param": name},
            )
    if SEARCH_KINDS["comparison"].why_not(search) is None:
        yield Plot(
            "Differences from the choice",
            "comparison",
            "Differences of mean scores from that of the choice, with 95 % intervals (Nadeau and "
            "Bengio), not corrected for the number of candidates.",
        )


def _drawn(result: CVResult | SearchResult, plot: Plot) -> Figure:
    from matplotlib import figure, style

    from ..plotting import CV_KINDS, SEARCH_KINDS

    size = SIZE
    if plot.kind == "comparison":
        kind = SEARCH_KINDS[plot.kind].size
        size = SIZE[0], kind(result, plot.options)[1] if callable(kind) else SIZE[1]
    elif plot.kind in CV_KINDS and plot.kind != "scores":
        size = SIZE[0], SIZE[0]  # both axes have the same scale
    file = io.StringIO()
    with style.context(["default", STYLE]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # signs that matplotlib's font lacks are the reader's
        canvas = figure.Figure(figsize=size, layout="constrained")
        result.plot(plot.kind, canvas.add_subplot(), **plot.options)
        canvas.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    return Figure(plot.title, _inline(file.getvalue(), plot), plot.caption)


_VIEW_BOX = re.compile(r'viewBox="([^"]*)"')
_BODY = re.compile(r"<svg[^>]*>(.*)</svg>", re.DOTALL)
_METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
_GROUP_ID = re.compile(r'<g id="[^"]*"')


def _inline(text: str, plot: Plot) -> str:
    """The SVG of matplotlib as an element of a page, with a description for who cannot see it."""
    view_box, body = _VIEW_BOX.search(text), _BODY.search(text)
    if view_box is None or body is None:
        raise ValueError("matplotlib wrote an SVG without a viewBox")
    marks = _GROUP_ID.sub("<g", _METADATA.sub("", body[1]))  # ids would repeat in the page
    marks = marks.replace("#000000", "currentColor").replace("#ffffff", "var(--page)")
    title, caption = html.escape(plot.title), html.escape(plot.caption)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="{view_box[1]}" role="img" aria-label="{title}. {caption}">'
        f"<title>{title}</title><desc>{caption}</desc>{marks}</svg>"
    )
