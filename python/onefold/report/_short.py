"""The short form of a report in a notebook: the checks that say something, in one line each."""

from __future__ import annotations

import html
from collections import Counter
from typing import TYPE_CHECKING

from ._check import BY_URGENCY, Check

if TYPE_CHECKING:
    from .._result import CVResult
    from ..search._result import SearchResult

__all__ = ["short_form"]


def short_form(result: CVResult | SearchResult) -> str:
    """Counts of the verdicts, and the checks that are worth a look.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import onefold
    >>> from onefold.report._short import short_form
    >>> X, y = load_iris(return_X_y=True)
    >>> short_form(onefold.cross_validate(GaussianNB(), X, y, cv=10))
    '<div><b>checks</b> 7 ok, 2 not applicable</div>'
    """
    from . import checks

    found = checks(result)
    counts = Counter(own.verdict for own in found)
    summary = ", ".join(f"{counts[name]} {name}" for name in BY_URGENCY if counts[name])
    lines = [_line(own) for name in ("problem", "look") for own in found if own.verdict == name]
    listed = f"<ul>{''.join(lines)}</ul>" if lines else ""
    return f"<div><b>checks</b> {html.escape(summary)}{listed}</div>"


def _line(own: Check) -> str:
    number = html.escape(own.number)
    if own.url is not None:
        number = f'<a href="{html.escape(own.url, quote=True)}">{number}</a>'
    return f"<li>{number} <b>{own.verdict}</b> {html.escape(own.sentence)}</li>"
