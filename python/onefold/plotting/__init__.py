"""Plots of results with matplotlib: ``result.plot(kind=…)`` and ``search.result_.plot(kind=…)``.

Every plot takes axes or makes a figure, and returns its axes. Curves of classifiers, confusion
matrices and residuals are scikit-learn's displays, of held-out answers. It needs matplotlib: ``pip
install 'onefold[plot]'``.
"""

from ._comparison import plot_comparison
from ._cv_result import CV_KINDS, plot_cv_result
from ._search_result import SEARCH_KINDS, plot_search_result
from ._style import COLORS

__all__ = [
    "COLORS",
    "CV_KINDS",
    "SEARCH_KINDS",
    "plot_comparison",
    "plot_cv_result",
    "plot_search_result",
]
