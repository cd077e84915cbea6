"""Reports: one self-contained page or text about a result, with numbered checks.

``result.to_html("report.html")`` writes the page, ``result.to_markdown()`` is its twin for
terminals and issues, ``result.checks()`` has the checks as objects. All work for the result of a
cross-validation and for that of a search. The figures of a page are plots of `onefold.plotting`,
which need matplotlib, the extra ``report``; without it, a page has none and says so.

Content
-------
The score with its error bar and what that means, figures, the checks, settings, exact counts of the
work, notes, the call that reproduces it as far as it is known, and versions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._check import ABOUT, Check

if TYPE_CHECKING:
    from ..model_selection._search.result import SearchResult
    from ..result._cv_result import CVResult

__all__ = ["ABOUT", "Check", "checks"]


def checks(result: CVResult | SearchResult) -> list[Check]:
    """Return the numbered checks of a result, OF1 to OF11.

    Parameters
    ----------
    result : CVResult or SearchResult

    Returns
    -------
    checks : list of Check
        In the order of their numbers; `Check.verdict` is ``"ok"``, ``"look"``, ``"problem"`` or
        ``"not applicable"``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> import onefold
    >>> from onefold.report import checks
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = onefold.GridSearchCV(Ridge(), {"alpha": [1, 10, 100]}, cv=10).fit(X, y)
    >>> checks(search.result_)[0]
    OF1 look: alpha=1 is the smallest of 3 values tried (+0.265 against the next one).
    """
    from ..model_selection._search.result import SearchResult
    from ._result_checks import recorded_checks, result_checks
    from ._search_checks import search_checks

    if isinstance(result, SearchResult):
        return search_checks(result)
    alone = "There is one candidate."
    return [
        Check("OF1", "not applicable", alone),
        *result_checks(result),
        Check("OF9", "not applicable", alone),
        *recorded_checks(result),
    ]
