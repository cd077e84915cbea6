"""Colors, axes and scales that all plots share.

Colors are those of M. Okabe and K. Ito, which remain distinct under the common forms of color
blindness; their yellow is left out, because it is hard to see on white.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "BLACK",
    "BLUE",
    "COLORS",
    "GREEN",
    "GREY",
    "LIGHT",
    "ORANGE",
    "PURPLE",
    "VERMILLION",
    "are_numbers",
    "as_percent",
    "grouped",
    "has_layout",
    "label_extremes",
    "legend_above",
    "line_style",
    "move_names_inside",
    "new_axes",
    "scale_of",
    "set_scale",
    "shortened",
    "shrink_labels",
]

Floats = NDArray[np.float64]

BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK = "#E69F00", "#56B4E9", "#000000"
GREY, LIGHT = "#767676", "#D0D0D0"

COLORS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK)
"""Colors of lines, in the order of their use."""

STYLES = ("-", "--", ":")
"""Styles of lines: the next one is used when all colors are."""


INCHES_PER_CHARACTER = 0.06
"""About the width of small text: a legend must not be wider than its axes."""


def new_axes(ax: Axes | None, size: tuple[float, float] = (6.4, 4.4)) -> Axes:
    """Return the axes, or those of a new figure.

    Raises
    ------
    ImportError
        Without matplotlib.
    """
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plot needs matplotlib: pip install 'onefold[plot]'") from error
    _, made = plt.subplots(figsize=size, layout="constrained")
    return made


def legend_above(ax: Axes, columns: int = 2, *, is_right: bool = False) -> None:
    """Put the legend above the axes, where it hides nothing; on the left or on the right.

    In a figure that does not make room for it (of ``plt.subplots`` without a layout), the legend is
    inside: above, it would hide the axes of the row before.
    """
    handles, labels = ax.get_legend_handles_labels()
    if handles and not has_layout(ax):
        ax.legend(
            fontsize="x-small",
            markerscale=0.7,
            framealpha=0.7,
            loc="lower right" if is_right else _loc(ax),
        )
    elif handles:
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


def has_layout(ax: Axes) -> bool:
    """Whether the figure of some axes makes room for what stands beside them."""
    return ax.figure.get_layout_engine() is not None


def shrink_labels(ax: Axes) -> None:
    """Write labels smaller, and broken to the width of the axes, where there is no room."""
    inches = ax.get_window_extent().width / ax.figure.dpi
    n_characters = int(inches / INCHES_PER_CHARACTER)
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set_fontsize("small")
        axis.set_tick_params(labelsize="x-small")
        axis.labelpad = 2
    ax.set_xlabel(_broken(ax.get_xlabel(), n_characters))
    for side in ("left", "center"):
        if ax.get_title(side):
            ax.set_title(_broken(ax.get_title(side), n_characters), loc=side, fontsize="x-small")


def move_names_inside(ax: Axes) -> None:
    """Write the names on the left into the axes, where there is no room beside them."""
    ax.set_yticks(
        ax.get_yticks(), [name.get_text() for name in ax.get_yticklabels()], ha="left", va="bottom"
    )
    ax.tick_params(axis="y", pad=-6, length=0)
    left, right = ax.get_xlim()
    ax.set_xlim(left - 0.7 * (right - left), right)


def _broken(text: str, width: int) -> str:
    """A text whose lines are broken at words."""
    return "\n".join(textwrap.fill(line, max(width, 10)) for line in text.split("\n"))


MAX_SEARCHED = 10_000
"""Points among which matplotlib searches the best place of a legend quickly."""


def _loc(ax: Axes) -> Literal["best", "upper right"]:
    """The best place within the axes, or a fixed one where a search would be slow."""
    n_points = sum(np.size(line.get_xdata()) for line in ax.lines)
    n_points += sum(np.size(points.get_offsets()) for points in ax.collections)
    return "best" if n_points <= MAX_SEARCHED else "upper right"


def _inches(labels: list[str], columns: int) -> float:
    """About the width of a legend: matplotlib fills its columns one after the other."""
    widths = [0.5 + INCHES_PER_CHARACTER * len(label) for label in labels]
    return float(sum(column.max() for column in np.array_split(np.array(widths), columns)))


def line_style(position: int) -> dict[str, Any]:
    """Color and style of the line at a position among several.

    Examples
    --------
    >>> from onefold.plotting._style import line_style
    >>> line_style(0), line_style(7)
    ({'color': '#0072B2', 'linestyle': '-'}, {'color': '#0072B2', 'linestyle': '--'})
    """
    style, color = divmod(position, len(COLORS))
    return {"color": COLORS[color], "linestyle": STYLES[style % len(STYLES)]}


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

    def unevenness(values: Floats) -> float:
        places = (values - values[0]) / (values[-1] - values[0])
        return float(np.abs(places - np.linspace(0, 1, len(values))).mean())

    if unevenness(np.log(positive)) >= unevenness(positive):
        return "linear"
    return "log" if len(positive) == len(distinct) else "symlog"


def set_scale(ax: Axes, axis: str, values: Any) -> None:
    """Give an axis the scale of its values; numbers on a logarithmic one are written as such."""
    scale = scale_of(values)
    options: dict[str, Any] = {}
    if scale == "symlog":
        numbers = np.asarray(values, dtype=np.float64)
        options["linthresh"] = float(numbers[numbers > 0].min())
    (ax.set_xscale if axis == "x" else ax.set_yscale)(scale, **options)
    if scale != "linear":
        from matplotlib.ticker import FuncFormatter

        (ax.xaxis if axis == "x" else ax.yaxis).set_major_formatter(
            FuncFormatter(lambda value, _: f"{value:g}")
        )


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
            low < label[1] and label[0] < high and abs(height - label[2]) < 0.14 * dpi
            for label in placed
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
