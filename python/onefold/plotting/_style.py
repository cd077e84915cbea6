"""Colours, axes and scales that all plots share.

Colours are those of M. Okabe and K. Ito, which remain distinct under the common forms of colour
blindness; their yellow is left out, because it is hard to see on white.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "BLACK",
    "BLUE",
    "COLOURS",
    "GREEN",
    "GREY",
    "LIGHT",
    "ORANGE",
    "PURPLE",
    "VERMILLION",
    "are_numbers",
    "as_percent",
    "grouped",
    "label_extremes",
    "legend_above",
    "line_style",
    "new_axes",
    "scale_of",
    "set_scale",
    "shortened",
]

Floats = NDArray[np.float64]

BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK = "#E69F00", "#56B4E9", "#000000"
GREY, LIGHT = "#767676", "#D0D0D0"

COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK)
"""Colours of lines, in the order of their use."""

STYLES = ("-", "--", ":")
"""Styles of lines: the next one is used when all colours are."""


INCHES_PER_CHARACTER = 0.06
"""About the width of small text: a legend must not be wider than its axes."""


def new_axes(ax: Axes | None, size: tuple[float, float] = (6.4, 4.4)) -> Axes:
    """Return the axes, or those of a new figure.

    Raises
    ------
    ImportError
        Without matplotlib.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plot needs matplotlib: pip install 'onefold[plot]'") from error
    if ax is not None:
        return ax
    _, made = plt.subplots(figsize=size, layout="constrained")
    return made


def legend_above(ax: Axes, columns: int = 2, *, is_right: bool = False) -> None:
    """Put the legend above the axes, where it hides nothing; on the left or on the right."""
    handles, labels = ax.get_legend_handles_labels()
    if handles:
        inches = ax.get_window_extent().width / ax.figure.dpi
        columns = min(columns, len(handles))
        while columns > 1 and _inches(labels, columns) > inches:
            columns -= 1
        ax.legend(
            handles,
            labels,
            loc="lower right" if is_right else "lower left",
            bbox_to_anchor=(1.0 if is_right else 0.0, 1.0),
            ncols=columns,
            frameon=False,
            fontsize="small",
            markerscale=0.8,
            borderaxespad=0.2,
            columnspacing=1.2,
        )


def _inches(labels: list[str], columns: int) -> float:
    """About the width of a legend: matplotlib fills its columns one after the other."""
    widths = [0.5 + INCHES_PER_CHARACTER * len(label) for label in labels]
    return float(sum(own.max() for own in np.array_split(np.array(widths), columns)))


def line_style(position: int) -> dict[str, Any]:
    """Colour and style of the line at a position among several.

    Examples
    --------
    >>> from onefold.plotting._style import line_style
    >>> line_style(0), line_style(7)
    ({'color': '#0072B2', 'linestyle': '-'}, {'color': '#0072B2', 'linestyle': '--'})
    """
    style, colour = divmod(position, len(COLOURS))
    return {"color": COLOURS[colour], "linestyle": STYLES[style % len(STYLES)]}


def are_numbers(values: Sequence[Any]) -> bool:
    """Whether all values are finite real numbers, and not truth values.

    Examples
    --------
    >>> from onefold.plotting._style import are_numbers
    >>> are_numbers([1, 0.5]), are_numbers([1, "scale"]), are_numbers([True, False])
    (True, False, False)
    """
    return all(
        isinstance(value, Real)
        and not isinstance(value, (bool, np.bool_))
        and np.isfinite(float(value))
        for value in values
    )


def scale_of(values: Any) -> str:
    """The scale that spreads values evenly: ``"linear"``, ``"log"``, or ``"symlog"`` with a zero.

    Examples
    --------
    >>> from onefold.plotting._style import scale_of
    >>> scale_of([0.01, 0.1, 1, 10]), scale_of([1, 2, 3, 4]), scale_of([0, 0.1, 1, 10])
    ('log', 'linear', 'symlog')
    """
    distinct = np.unique(np.asarray(values, dtype=np.float64))
    positive = distinct[distinct > 0]
    if len(positive) < 3 or distinct[0] < 0 or positive[-1] < 8 * positive[0]:
        return "linear"

    def unevenness(own: Floats) -> float:
        places = (own - own[0]) / (own[-1] - own[0])
        return float(np.abs(places - np.linspace(0, 1, len(own))).mean())

    if unevenness(np.log(positive)) >= unevenness(positive):
        return "linear"
    return "log" if len(positive) == len(distinct) else "symlog"


def set_scale(ax: Axes, axis: str, values: Any) -> None:
    """Give an axis the scale of its values."""
    scale = scale_of(values)
    options: dict[str, Any] = {}
    if scale == "symlog":
        numbers = np.asarray(values, dtype=np.float64)
        options["linthresh"] = float(numbers[numbers > 0].min())
    (ax.set_xscale if axis == "x" else ax.set_yscale)(scale, **options)


def as_percent(level: float) -> str:
    """A level as text.

    Examples
    --------
    >>> from onefold.plotting._style import as_percent
    >>> as_percent(0.95), as_percent(0.999)
    ('95 %', '99.9 %')
    """
    return f"{100 * level:g} %"


def shortened(text: str, length: int = 20) -> str:
    """A text of a limited length.

    Examples
    --------
    >>> from onefold.plotting._style import shortened
    >>> shortened("versicolor"), shortened("a class with a long name", 10)
    ('versicolor', 'a class w…')
    """
    return text if len(text) <= length else f"{text[: length - 1].rstrip()}…"


def grouped(number: int) -> str:
    """A count with its digits in groups of three.

    Examples
    --------
    >>> from onefold.plotting._style import grouped
    >>> grouped(581012), grouped(1797)
    ('581 012', '1797')
    """
    return f"{number:,}".replace(",", " ") if number >= 10_000 else str(number)


def label_extremes(ax: Axes, x: Any, y: Any, names: Any, n_labels: int, *, rise: float = 0) -> None:
    """Write the names of the points with the largest y beside them, away from the edge."""
    if n_labels <= 0 or len(y) == 0:
        return
    finite = np.flatnonzero(np.isfinite(y) & np.isfinite(x))
    top = finite[np.argsort(-np.asarray(y)[finite], kind="stable")[:n_labels]]
    ax.autoscale_view()  # without it, limits are computed when the figure is drawn
    middle = float(ax.transAxes.transform((0.5, 0.5))[0])
    dpi = ax.figure.dpi
    placed: list[tuple[float, float, float]] = []
    for position in top.tolist():
        at, height = ax.transData.transform((x[position], y[position]))
        is_right = at > middle
        width = (0.1 + 0.075 * len(str(names[position]))) * dpi
        low, high = (at - width, at) if is_right else (at, at + width)
        if any(
            low < own[1] and own[0] < high and abs(height - own[2]) < 0.14 * dpi for own in placed
        ):
            continue  # it would be written over another
        placed.append((low, high, height))
        ax.annotate(
            str(names[position]),
            (x[position], y[position]),
            xytext=(-5 if is_right else 5, rise),
            textcoords="offset points",
            ha="right" if is_right else "left",
            va="center",
            fontsize="small",
            color=BLACK,
        )
