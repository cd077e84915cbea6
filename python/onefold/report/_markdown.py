"""A report as Markdown, for terminals and issues."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from ._check import BY_URGENCY, Check
from ._content import Content, Headline, Table, content_of

if TYPE_CHECKING:
    from ..model_selection._search.result import SearchResult
    from ..result._cv_result import CVResult

__all__ = ["markdown"]

_SPECIAL = re.compile(r"([\\`*|\[\]])")


def markdown(result: CVResult | SearchResult) -> str:
    """The report of a result.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import onefold
    >>> from onefold.report._markdown import markdown
    >>> X, y = load_iris(return_X_y=True)
    >>> print(markdown(onefold.cross_validate(GaussianNB(), X, y, cv=5)))
    # GaussianNB
    <BLANKLINE>
    Cross-validation, 5 folds of 150 samples, engine 'merge'
    <BLANKLINE>
    **accuracy 0.953 ± 0.013** (pooled 0.9533)
    ...
    """
    content = content_of(result)
    blocks = [
        f"# {_text(content.title)}",
        _text(content.subtitle),
        *map(_headline, content.headlines),
        *map(_text, content.meanings),
        "## Checks",
        _checks(content.checks),
        *(block for table in content.tables for block in _table(table)),
        "## Settings",
        _rows(["setting", "value"], [[name, value] for name, value in content.settings]),
        "## Cost",
        _rows(
            ["counter", "count", "meaning"],
            [[name, f"{count:,}", meaning] for name, count, meaning in content.cost],
        ),
        *_notes(content),
        "## The call, as far as the result knows it",
        _code(content.call),
        ", ".join(f"{name} {_text(version)}" for name, version in content.versions.items()),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _text(text: str) -> str:
    """Text of a user as text: no markup, no line breaks."""
    plain = " ".join(text.split())
    return _SPECIAL.sub(r"\\\1", plain).replace("<", "&lt;")


def _headline(headline: Headline) -> str:
    has_both = not math.isnan(headline.pooled) and not math.isnan(headline.mean)
    pooled = f" (pooled {headline.pooled:.4g})" if has_both else ""
    return f"**{_text(headline.label)} {headline.text}**{pooled}"


def _checks(checks: list[Check]) -> str:
    rows = []
    for check in sorted(checks, key=lambda check: BY_URGENCY.index(check.verdict)):
        number = check.number if check.url is None else f"[{check.number}]({check.url})"
        is_bad = check.verdict in ("problem", "look")
        shown = f"**{check.verdict}**" if is_bad else check.verdict
        rows.append([number, shown, f"{_text(check.title)}: {_text(check.sentence)}"])
    return _rows(["check", "verdict", "finding"], rows, escape=False)


def _table(table: Table) -> list[str]:
    return [f"## {_text(table.title)}", _text(table.caption), _rows(table.head, table.rows)]


def _rows(head: list[str], rows: list[list[str]], *, escape: bool = True) -> str:
    """A table with columns of equal width, which terminals need."""
    cells = [[_text(cell) if escape else cell for cell in row] for row in [head, *rows]]
    last = len(head) - 1
    widths = [max(len(row[place]) for row in cells) for place in range(last)]

    def line(row: list[str]) -> str:
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        return f"| {' | '.join([*padded, *row[last:]])} |"

    rule = [*("-" * max(3, width) for width in widths), "---"]
    return "\n".join([line(cells[0]), line(rule), *map(line, cells[1:])])


def _notes(content: Content) -> list[str]:
    if not content.notes:
        return []
    return ["## Notes", "\n".join(f"- {_text(note)}" for note in content.notes)]


def _code(text: str) -> str:
    """A block of code, with a fence longer than any in it."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}python\n{text}\n{fence}"
