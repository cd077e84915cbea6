"""Scores of a search against one of its parameters, with the one-standard-error choice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._candidates import Candidates, levels, mark_choices, short_name, text_of, varied
from ._style import (
    BLUE,
    COLORS,
    GREY,
    VERMILLION,
    are_numbers,
    legend_above,
    line_style,
    set_scale,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..model_selection import SearchResult

__all__ = ["draw_validation_curve", "why_no_validation_curve"]

Floats = NDArray[np.float64]

MAX_LINES = len(COLORS)
"""Combinations of the other parameters up to which each has a line."""


def why_no_validation_curve(result: SearchResult) -> str | None:
    """Why there is no parameter to draw against, or None."""
    columns = varied(result)
    if not columns:
        return "no parameter varies"
    if not any(_is_axis(column) for column in columns.values()):
        return f"no parameter that varies has numbers as values ({', '.join(columns)})"
    return None


def _is_axis(values: list[Any]) -> bool:
    """Whether values are numbers, where they are given at all."""
    return are_numbers([value for value in values if value is not None])


def draw_validation_curve(
    result: SearchResult,
    ax: Axes,
    *,
    param: str | None = None,
    metric: str | None = None,
    simpler: Any = None,
) -> Axes:
    """Draw mean scores against a parameter, one line for each value of the others."""
    columns = varied(result)
    name = _choose(columns, param)
    candidates = Candidates.of(result, metric, simpler)
    x, ticks = _positions(columns[name])
    others = {key: values for key, values in columns.items() if key != name}
    groups = _groups(others, len(x))
    if len(groups) <= MAX_LINES:
        _lines(ax, result, candidates, x, groups, others)
    else:
        _cloud(ax, candidates, x)
    if np.isfinite(candidates.limit):
        ax.axhline(
            candidates.limit,
            color=GREY,
            linestyle=":",
            linewidth=1.2,
            label="best − standard error",
        )
    for position, words, sign in mark_choices(candidates):
        ax.plot(
            x[position],
            candidates.means[position],
            sign,
            color=VERMILLION,
            markersize=13 if sign == "*" else 8,
            markerfacecolor=VERMILLION if sign == "*" else "none",
            markeredgewidth=1.5,
            zorder=5,
            label=words,
        )
    if ticks is None:
        set_scale(ax, "x", x)
    else:
        ax.set_xticks(range(len(ticks)), ticks, rotation=30 if max(map(len, ticks)) > 8 else 0)
    ax.set_xlabel(name)
    ax.set_ylabel(candidates.label)
    legend_above(ax)
    return ax


def _choose(columns: dict[str, list[Any]], param: str | None) -> str:
    """The parameter of the axis: by default, of those with numbers, the one with most values."""
    if param is None:
        mostly = [name for name, column in columns.items() if _is_axis(column)]
        always = [name for name in mostly if are_numbers(columns[name])]
        return max(always or mostly, key=lambda name: len(levels(columns[name])))
    if param in columns:
        return param
    matches = [name for name in columns if short_name(name) == param]
    if len(matches) != 1:
        raise ValueError(
            f"param must be one of {list(columns)}, the parameters that vary, got {param!r}"
        )
    return matches[0]


def _positions(values: list[Any]) -> tuple[Floats, list[str] | None]:
    """Numbers as they are, others side by side with their names."""
    if are_numbers(values):
        return np.array(values, dtype=np.float64), None
    ticks = [text_of(level) for level in levels(values)]
    return np.array([ticks.index(text_of(level)) for level in values], dtype=np.float64), ticks


def _groups(others: dict[str, list[Any]], n: int) -> dict[str, list[int]]:
    """Candidates by the values of the other parameters."""
    groups: dict[str, list[int]] = {}
    for position in range(n):
        known = {short_name(name): other[position] for name, other in others.items()}
        key = ", ".join(f"{k}={text_of(v)}" for k, v in known.items() if v is not None)
        groups.setdefault(key, []).append(position)
    return groups


def _lines(
    ax: Axes,
    result: SearchResult,
    candidates: Candidates,
    x: Floats,
    groups: dict[str, list[int]],
    others: dict[str, list[Any]],
) -> None:
    for number, (key, members) in enumerate(groups.items()):
        known = np.array(members)
        known = known[np.argsort(x[known], kind="stable")]
        style = line_style(number)
        ax.plot(
            x[known],
            candidates.means[known],
            marker="o",
            markersize=4,
            label=key if others else "mean on the test sets",
            **style,
        )
        errors = candidates.errors[known]
        if len(groups) <= 3 and np.isfinite(errors).any():
            ax.fill_between(
                x[known],
                candidates.means[known] - errors,
                candidates.means[known] + errors,
                color=style["color"],
                alpha=0.15,
                linewidth=0,
                label=f"± {candidates.phrase}" if not others else None,
            )
        train = result.table.get(f"mean_train_{candidates.metric}")
        if train is not None:
            ax.plot(
                x[known],
                train[known],
                linestyle=":",
                marker="^",
                markersize=4,
                markerfacecolor="none",
                color=style["color"] if others else GREY,
                label="on the training sets" if number == 0 else None,
            )


def _cloud(ax: Axes, candidates: Candidates, x: Floats) -> None:
    """A point for every candidate, and a line of the best where some share a value."""
    ax.plot(x, candidates.means, "o", color=BLUE, markersize=4, alpha=0.6, label="candidates")
    values = np.unique(x)
    if 2 * len(values) <= len(x):
        of_value = [candidates.means[x == value] for value in values]
        best = [np.nan if np.isnan(some).all() else np.nanmax(some) for some in of_value]
        ax.plot(values, best, color=BLUE, label="best over the other parameters")
