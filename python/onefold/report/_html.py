"""A report as one self-contained page.

No script, no font, no picture and no style sheet is loaded: a policy in the head of the page
forbids it. All text is escaped, as names of estimators, parameters and classes are the user's.
"""

from __future__ import annotations

import html
import math
from collections import Counter
from typing import TYPE_CHECKING

from ._check import ABOUT, BY_URGENCY, Check
from ._content import Content, Headline, Table, content_of
from ._figures import NO_FIGURES, figures_of, has_matplotlib
from ._style import STYLE

if TYPE_CHECKING:
    from ..model_selection._search.result import SearchResult
    from ..result._cv_result import CVResult

__all__ = ["SIGNS", "page"]

SIGNS = {"ok": "✓", "look": "!", "problem": "✗", "not applicable": "–"}
"""Verdicts can be told apart without colors."""

NBSP = "\u00a0"
"""A space that no line is broken at."""

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page(result: CVResult | SearchResult) -> str:
    """The page of a result.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import onefold
    >>> from onefold.report._html import page
    >>> X, y = load_iris(return_X_y=True)
    >>> text = page(onefold.cross_validate(GaussianNB(), X, y, cv=5))
    >>> "<script" in text, "<h1>GaussianNB</h1>" in text
    (False, True)
    """
    content = content_of(result)
    title = _text(f"{content.title}: report of onefold")
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title><style>{STYLE}</style></head><body>",
        _header(content),
        "<main>",
        _checks(content.checks),
        _figures(result, content),
        *(_table(table) for table in content.tables),
        _settings(content),
        "</main>",
        _footer(content),
        "</body></html>\n",
    ]
    return "\n".join(parts)


def _text(text: str) -> str:
    """Text of a user as text; an error stays on the line of its number."""
    return (
        html.escape(text, quote=True)
        .replace(" ± ", NBSP + "±" + NBSP)
        .replace("p = ", f"p{NBSP}={NBSP}")
    )


def _header(content: Content) -> str:
    meanings = "".join(f"<p class='soft'>{_text(meaning)}</p>" for meaning in content.meanings)
    return (
        f"<header><h1>{_text(content.title)}</h1><p class='soft'>{_text(content.subtitle)}</p>"
        f"<div class='scores'>{''.join(map(_headline, content.headlines))}</div>{meanings}</header>"
    )


def _headline(headline: Headline) -> str:
    pooled = ""
    if not math.isnan(headline.pooled) and not math.isnan(headline.mean):
        pooled = f"<div class='label'>pooled {headline.pooled:.4g}</div>".replace("-", "−")
    return (
        f"<div class='score'><div class='label'>{_text(headline.label)}</div>"
        f"<div class='value'>{_text(headline.text)}</div>{pooled}</div>"
    )


def verdict(name: str, text: str | None = None) -> str:
    """A verdict as a colored word with a sign."""
    kind = "none" if name == "not applicable" else name
    return f"<span class='verdict {kind}'>{SIGNS[name]} {_text(text or name)}</span>"


def _checks(checks: list[Check]) -> str:
    counts = Counter(check.verdict for check in checks)
    summary = "".join(
        verdict(name, f"{counts[name]} {name}") for name in BY_URGENCY if counts[name]
    )
    urgent_first = sorted(checks, key=lambda check: BY_URGENCY.index(check.verdict))
    answered = [check for check in urgent_first if check.verdict != "not applicable"]
    others = [check for check in checks if check.verdict == "not applicable"]
    rest = ""
    if others:
        rest = (
            f"<details><summary>{len(others)} not applicable</summary>"
            f"<ol class='checks'>{''.join(map(_check, others))}</ol></details>"
        )
    return (
        f"<section><h2 id='checks'>Checks</h2><div class='summary'>{summary}</div>"
        f"<ol class='checks'>{''.join(map(_check, answered))}</ol>{rest}</section>"
    )


def _check(check: Check) -> str:
    about = ABOUT[check.number]
    link = ""
    if check.url is not None:
        link = f"<p><a href='{_text(check.url)}'>{check.number} in the documentation</a></p>"
    return (
        f"<li id='{check.anchor}'><div>{verdict(check.verdict)}</div><div>"
        f"<h3>{check.number} · {_text(check.title)}</h3><p>{_text(check.sentence)}</p>"
        f"<details class='about'><summary>What is tested, and what to do</summary>"
        f"<p class='soft'>{_text(about.tests)}</p><p class='soft'>{_text(about.advice)}</p>{link}"
        f"</details></div></li>"
    )


def _figures(result: CVResult | SearchResult, content: Content) -> str:
    if not has_matplotlib():
        return f"<section><h2>Figures</h2><p class='soft'>{_text(NO_FIGURES)}</p></section>"
    figures = figures_of(result, content.labels)
    if not figures:
        return ""
    parts = "".join(
        f"<figure><h3>{_text(figure.title)}</h3>{figure.svg}"
        f"<figcaption>{_text(figure.caption)}</figcaption></figure>"
        for figure in figures
    )
    return f"<section><h2>Figures</h2><div class='figures'>{parts}</div></section>"


def _table(table: Table) -> str:
    head = "".join(f"<th scope='col'>{_text(title)}</th>" for title in table.head)
    rows = "".join(_row(table, number) for number in range(len(table.rows)))
    body = _wide(f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>")
    caption = f"<p class='caption'>{_text(table.caption)}</p>" if table.caption else ""
    if table.is_long:
        body = f"<details><summary>Show the table</summary>{body}</details>"
    return f"<section><h2>{_text(table.title)}</h2>{caption}{body}</section>"


def _wide(rows: str) -> str:
    """A table that scrolls sideways if it has to, also by the keyboard."""
    return f"<div class='wide' tabindex='0'><table>{rows}</table></div>"


def _row(table: Table, number: int) -> str:
    first, *cells = table.rows[number]
    parts = [f"<th scope='row'>{_text(first)}</th>"]
    for place, cell in enumerate(cells):
        if table.shares is not None:
            share = table.shares[number][place]
            parts.append(f"<td class='shade' style='--share:{share:.3f}'>{_text(cell)}</td>")
        else:
            is_number = cell[:1] in set("0123456789−-") or cell == "undefined"
            kind = "number" if is_number else "text"
            parts.append(f"<td class='{kind}'>{_text(cell)}</td>")
    return f"<tr>{''.join(parts)}</tr>"


def _settings(content: Content) -> str:
    settings = "".join(
        f"<tr><th scope='row'>{_text(name)}</th><td class='text'>{_text(value)}</td></tr>"
        for name, value in content.settings
    )
    cost = "".join(
        f"<tr><th scope='row'>{_text(name)}</th><td class='number'>{count:,}</td>"
        f"<td class='text soft'>{_text(meaning)}</td></tr>"
        for name, count, meaning in content.cost
    )
    notes = "".join(f"<li>{_text(note)}</li>" for note in content.notes)
    noted = f"<section><h2>Notes</h2><ul class='notes'>{notes}</ul></section>" if notes else ""
    return (
        f"<section><h2>Settings</h2>{_wide(f'<tbody>{settings}</tbody>')}</section>"
        f"<section><h2>Cost</h2><p class='soft'>Exact counts of the work.</p>"
        f"{_wide(f'<tbody>{cost}</tbody>')}</section>{noted}"
        f"<section><h2>The call, as far as the result knows it</h2>"
        f"<pre><code>{_text(content.call)}</code></pre></section>"
    )


def _footer(content: Content) -> str:
    known = ", ".join(f"{name} {version}" for name, version in content.versions.items())
    return f"<footer><p>{_text(known)}</p></footer>"
