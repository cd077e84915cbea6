"""Scores of a search over two of its parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._candidates import Candidates, levels, mark_choices, short_name, text_of, varied
from ._style import VERMILLION, are_numbers, legend_above, set_scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..model_selection import SearchResult

__all__ = ["draw_heatmap", "why_no_heatmap"]

Floats = NDArray[np.float64]

MAX_COLUMNS_WRITTEN, MAX_ROWS_WRITTEN = 10, 16
"""Columns and rows up to which the scores are written into the cells."""


def why_no_heatmap(result: SearchResult) -> str | None:
    """Why there are not two parameters to draw, or None."""
    names = list(varied(result))
    if len(names) < 2:
        return f"it needs two parameters that vary, and there is {names[0] if names else 'none'}"
    return None


def draw_heatmap(
    result: SearchResult,
    ax: Axes,
    *,
    params: tuple[str, str] | None = None,
    metric: str | None = None,
    cmap: str = "cividis",
    simpler: Any = None,
) -> Axes:
    """Draw a cell per pair of values, or a point per candidate where they are no grid."""
    columns = varied(result)
    across, up = _choose(columns, params)
    candidates = Candidates.of(result, metric, simpler)
    x_levels, y_levels = levels(columns[across]), levels(columns[up])
    cells = np.full((len(y_levels), len(x_levels)), np.nan)
    places = []
    x_texts, y_texts = ([text_of(level) for level in some] for some in (x_levels, y_levels))
    for x, y, mean in zip(columns[across], columns[up], candidates.means, strict=True):
        place = y_texts.index(text_of(y)), x_texts.index(text_of(x))
        cells[place] = np.fmax(cells[place], mean)
        places.append(place)
    n_filled = len(set(places))
    if n_filled <= 0.3 * cells.size and are_numbers([*columns[across], *columns[up]]):
        at = np.array(columns[across], dtype=float), np.array(columns[up], dtype=float)
        _points(ax, candidates, at, cmap)
    else:
        _cells(ax, candidates, cells, (x_texts, y_texts), cmap)
        at = np.array([x for _, x in places], float), np.array([y for y, _ in places], float)
    rise = 0.27 if ax.texts else 0.0  # above what is written into a cell
    for position, words, sign in mark_choices(candidates):
        ax.plot(
            at[0][position],
            at[1][position] + rise,
            sign,
            markersize=15 if sign == "*" else 10,
            color=VERMILLION,
            markerfacecolor=VERMILLION if sign == "*" else "none",
            markeredgecolor="white" if sign == "*" else VERMILLION,
            markeredgewidth=0.8 if sign == "*" else 2,
            linestyle="none",
            label=words,
        )
    ax.set(xlabel=across, ylabel=up)
    rest = [short_name(name) for name in columns if name not in (across, up)]
    if rest:
        ax.plot([], [], " ", label=f"each the best over {', '.join(rest)}")
    legend_above(ax)
    return ax


def _choose(columns: dict[str, list[Any]], params: tuple[str, str] | None) -> tuple[str, str]:
    """The two parameters: by default those with most values."""
    if params is None:
        by_size = sorted(columns, key=lambda name: -len(levels(columns[name])))
        first, second = sorted(by_size[:2], key=list(columns).index)
        return first, second
    known = {short_name(name): name for name in columns} | {name: name for name in columns}
    if (
        isinstance(params, str)
        or len(params) != 2
        or any(setting not in known for setting in params)
    ):
        raise ValueError(
            f"params must be two of {list(columns)}, the parameters that vary, got {params!r}"
        )
    first, second = (known[setting] for setting in params)
    if first == second:
        raise ValueError(f"params must be two different parameters, got {params!r}")
    return first, second


def _cells(
    ax: Axes, candidates: Candidates, cells: Floats, texts: tuple[list[str], list[str]], cmap: str
) -> None:
    image = ax.imshow(cells, origin="lower", aspect="auto", cmap=cmap)
    figure = ax.get_figure()
    assert figure is not None
    figure.colorbar(image, ax=ax, label=candidates.label)
    x_texts, y_texts = texts
    for texts_, set_ticks, is_x in (
        (x_texts, ax.set_xticks, True),
        (y_texts, ax.set_yticks, False),
    ):
        step = -(-len(texts_) // (12 if is_x else 16))
        shown = list(range(0, len(texts_), step))
        is_long = is_x and sum(len(texts_[i]) + 1 for i in shown) > 40
        set_ticks(
            shown,
            [texts_[i] for i in shown],
            rotation=45 if is_long else 0,
            ha="right" if is_long or not is_x else "center",
        )
    if len(x_texts) <= MAX_COLUMNS_WRITTEN and len(y_texts) <= MAX_ROWS_WRITTEN:
        for (row, column), value in np.ndenumerate(cells):
            if np.isnan(value):
                continue
            red, green, blue, _ = image.cmap(image.norm(np.asarray(value)))
            is_dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
            ax.text(
                column,
                row,
                f"{value:.3g}",
                ha="center",
                va="center",
                fontsize="small" if cells.shape[1] <= 7 else "x-small",
                color="white" if is_dark else "black",
            )


def _points(ax: Axes, candidates: Candidates, at: tuple[Floats, Floats], cmap: str) -> None:
    points = ax.scatter(
        *at, c=candidates.means, cmap=cmap, s=36, edgecolors="white", linewidths=0.5
    )
    figure = ax.get_figure()
    assert figure is not None
    figure.colorbar(points, ax=ax, label=candidates.label)
    set_scale(ax, "x", at[0])
    set_scale(ax, "y", at[1])
