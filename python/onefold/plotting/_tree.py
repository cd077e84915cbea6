"""The recursion of TreeCV, for a small number of folds.

A node is a model that has learnt every fold but those of its span. Its two children have learnt one
half of the span more, and hold out the other half; a leaf holds out one fold and is evaluated on
it. The first half is the larger one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._inputs.folds import Folds
from ._style import BLACK, BLUE, GREY, ORANGE, grouped, has_layout

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..result._cv_result import CVResult

__all__ = ["draw_tree", "tree_nodes", "why_no_tree"]

MAX_FOLDS = 32
"""Folds up to which the nodes can be read."""


@dataclass(frozen=True)
class Node:
    """A node of the recursion; spans are numbered from 1 and include both ends, as in the paper."""

    first: int
    last: int
    depth: int
    parent: tuple[int, int] | None = None
    learns: tuple[int, int] | None = None

    @property
    def place(self) -> float:
        """In the middle of its leaves."""
        return (self.first + self.last) / 2


def tree_nodes(n_folds: int) -> Iterator[Node]:
    """The nodes, parents before children.

    Examples
    --------
    >>> from onefold.plotting._tree import tree_nodes
    >>> [(node.first, node.last, node.learns) for node in tree_nodes(3)]
    [(1, 3, None), (1, 2, (3, 3)), (3, 3, (1, 2)), (1, 1, (2, 2)), (2, 2, (1, 1))]
    """
    level = [Node(1, n_folds, 0)]
    while level:
        yield from level
        below = []
        for node in level:
            if node.first == node.last:
                continue
            span = (node.first, node.last)
            middle = sum(span) // 2
            halves = (node.first, middle), (middle + 1, node.last)
            for half, other in (halves, halves[::-1]):
                below.append(Node(*half, node.depth + 1, span, other))
        level = below


def why_no_tree(result: CVResult) -> str | None:
    """Why the recursion cannot be drawn, or None."""
    if result.engine != "tree":
        return f"it is for engine='tree', and this is engine={result.engine!r}"
    if not isinstance(result.folds, Folds):
        return "the test sets are not a partition, so there was no recursion over folds"
    if len(result.folds) > MAX_FOLDS:
        return f"it can be read for up to {MAX_FOLDS} folds, and there are {len(result.folds)}"
    return None


def draw_tree(result: CVResult, ax: Axes) -> Axes:
    """Draw the recursion from no training at all to the models of the folds."""
    n_folds = len(result.folds)
    is_labelled = n_folds <= 10
    size = 9 if n_folds <= 10 else 7.5 if n_folds <= 16 else 6
    nodes = list(tree_nodes(n_folds))
    places = {(node.first, node.last): node.place for node in nodes}
    for node in nodes:
        if node.parent is not None and node.learns is not None:
            above = places[node.parent]
            ax.plot([above, node.place], [node.depth - 1, node.depth], color=GREY, linewidth=1)
            if is_labelled:
                ax.text(
                    0.45 * above + 0.55 * node.place,
                    node.depth - 0.45,
                    f"+{_span(node.learns)}",
                    fontsize=size - 1,
                    color=BLUE,
                    ha="center",
                    va="center",
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
                )
    for node in nodes:
        is_leaf = node.first == node.last
        ax.text(
            node.place,
            node.depth,
            _span((node.first, node.last)),
            fontsize=size,
            color=BLACK,
            ha="center",
            va="center",
            bbox={
                "facecolor": "#FBE3B0" if is_leaf else "white",
                "edgecolor": ORANGE if is_leaf else GREY,
                "boxstyle": "round,pad=0.25",
            },
        )
    depth = max(node.depth for node in nodes)
    ax.set_xlim(0.3, n_folds + 0.7)
    ax.set_ylim(depth + 0.5, -0.5)
    ax.set_yticks(range(depth + 1))
    ax.set_ylabel("depth")
    ax.set_xticks([])
    ax.set_xlabel("chunks held out by each model, in the order of the leaves")
    for side in ("top", "right", "bottom"):
        ax.spines[side].set_visible(False)
    title = _title(result)
    if not has_layout(ax):  # there is room for one line
        title = title.split("\n")[-1]
    ax.set_title(title, fontsize="small", loc="left")
    return ax


def _span(span: tuple[int, int]) -> str:
    first, last = span
    return str(first) if first == last else f"{first}–{last}"


def _title(result: CVResult) -> str:
    n, k = result.folds.n_samples, len(result.folds)
    words = "a box: chunks that the model has not learnt"
    if k <= 10:
        words += "; +: chunks that it learns next"
    fed = result.cost.get("rows_fed")
    if fed is not None:
        words += f"\nrows learnt: {grouped(fed)}, by {k} refits {grouped(n * (k - 1))}"
    return words
