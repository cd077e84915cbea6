"""The short form of a report in a notebook: its first figure, and a line of each urgent check."""

from __future__ import annotations

import html
from collections import Counter
from typing import TYPE_CHECKING

from ._check import BY_URGENCY, Check
from ._figures import first_figure

if TYPE_CHECKING:
    from ..model_selection._search.result import SearchResult
    from ..result._cv_result import CVResult

__all__ = ["short_form"]


def short_form(result: CVResult | SearchResult) -> str:
    """Counts of the verdicts, the checks that are worth a look, and the first figure.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import onefold
    >>> from onefold.report._short import short_form
    >>> X, y = load_iris(return_X_y=True)
    >>> short_form(onefold.cross_validate(GaussianNB(), X, y, cv=10))
    '<div><b>checks</b> 7 ok, 4 not applicable</div><div style=...<svg...</svg></div>'
    """
    from . import checks

    verdicts = checks(result)
    counts = Counter(check.verdict for check in verdicts)
    summary = ", ".join(f"{counts[name]} {name}" for name in BY_URGENCY if counts[name])
    lines = [
        _line(check) for name in ("problem", "look") for check in verdicts if check.verdict == name
    ]
    listed = f"<ul>{''.join(lines)}</ul>" if lines else ""
    figure = first_figure(result)
    drawn = "" if figure is None else f"<div style='{_STYLE}'>{figure.svg}</div>"
    return f"<div><b>checks</b> {html.escape(summary)}{listed}</div>{drawn}"


_STYLE = "max-width: 26em; --page: transparent"
"""The figure is as wide as a column of a page, and takes the colors of the notebook."""


def _line(check: Check) -> str:
    number = html.escape(check.number)
    if check.url is not None:
        number = f'<a href="{html.escape(check.url, quote=True)}">{number}</a>'
    return f"<li>{number} <b>{check.verdict}</b> {html.escape(check.sentence)}</li>"
