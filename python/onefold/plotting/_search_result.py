"""The kinds of plot of a search."""

from __future__ import annotations

from collections.abc import Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any

from ._comparison import TOP, draw_comparison, forest_size, why_no_comparison
from ._cv_result import CV_KINDS
from ._heatmap import draw_heatmap, why_no_heatmap
from ._kinds import Kind, draw
from ._validation_curve import draw_validation_curve, why_no_validation_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..model_selection import SearchResult

__all__ = ["SEARCH_KINDS", "plot_search_result"]


def _of_chosen(kind: Kind) -> Kind:
    """A kind of plot of the chosen candidate."""

    def why_not(result: SearchResult) -> str | None:
        try:
            chosen = result.chosen
        except ValueError as error:
            return str(error)
        return kind.why_not(chosen)

    @wraps(kind.draw)
    def draw_chosen(result: SearchResult, ax: Axes, **options: Any) -> Axes:
        return kind.draw(result.chosen, ax, **options)

    def size(result: SearchResult, options: Mapping[str, Any]) -> tuple[float, float]:
        return kind.size(result.chosen, options) if callable(kind.size) else kind.size

    return Kind(draw_chosen, why_not, size)


def _forest_size(result: SearchResult, options: Mapping[str, Any]) -> tuple[float, float]:
    return forest_size(min(len(result.engines), int(options.get("top", TOP))))


SEARCH_KINDS = {
    "heatmap": Kind(draw_heatmap, why_no_heatmap, (6.8, 4.8)),
    "validation_curve": Kind(draw_validation_curve, why_no_validation_curve),
    "comparison": Kind(draw_comparison, why_no_comparison, _forest_size),
} | {name: _of_chosen(kind) for name, kind in CV_KINDS.items()}
"""Kinds of plot by name, in the order in which a default is looked for."""


def plot_search_result(
    result: SearchResult, kind: str | None = None, ax: Axes | None = None, **options: Any
) -> Axes:
    """Plot the result of a search; ``search.result_.plot(kind, ax, **options)`` is the same.

    Parameters
    ----------
    result : SearchResult
    kind : str, optional
        By default the first of these that applies:

        - ``"heatmap"``: mean scores over two parameters, a cell per pair of values, or a point per
          candidate of a random search. Options: ``params``, the two names; ``metric``; ``cmap``;
          ``simpler``.
        - ``"validation_curve"``: mean scores against one parameter, with their standard errors and
          the simplest candidate within one standard error of the best. Options: ``param``, its
          name; ``metric``; ``simpler``, as in `onefold.GridSearchCV`.
        - ``"comparison"``: the differences of candidates from the chosen one, with intervals, as
          `plot_comparison` draws them. Options: ``to``, ``metric``, ``loss``, ``rope``, ``level``,
          as in `onefold.SearchResult.compare`; ``top``, how many candidates.

        Those of `plot_cv_result` are of the chosen candidate. Parameters of a pipeline can be
        named without their step.
    ax : matplotlib Axes, optional
        By default those of a new figure.
    **options
        Of the kind.

    Returns
    -------
    ax : matplotlib Axes

    Raises
    ------
    ValueError
        If the kind does not apply; the message says why, and which kinds do.
    TypeError
        For an option that the kind does not have.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> import onefold
    >>> from onefold.plotting import plot_search_result
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = onefold.GridSearchCV(Ridge(), {"alpha": [0.01, 0.1, 1, 10]}, cv=10).fit(X, y)
    >>> ax = plot_search_result(search.result_)
    >>> ax.get_xlabel(), ax.get_xscale()
    ('alpha', 'log')
    """
    return draw(result, SEARCH_KINDS, kind, ax, options)
