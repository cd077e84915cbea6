"""Where lines may be broken: within names of files and tests, but not within numbers."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

NAME = re.compile(
    r'(<span class="pre">)'
    r"((?:src|tests|benches|python|docs|examples)/[\w./:-]+|(?:sklearn|onefold)(?:\.\w+)+)(</span>)"
)
WITHIN_NUMBER = re.compile(
    r"(?<=\d) (?=\d{3}(?!\d)|[±%]|(?:s|ms|MB|GB)\b)|(?<=[±≤≥]) (?=\d)|(?<=\w) (?=×)|(?<=×) (?=\w)"
)
"""A space within 581 012 × 54, p × p, 0.46 ± 0.04, 50 MB or ≤ 20."""
EXPONENT_SIGN = re.compile(r"(?<=\de)-(?=\d)")
"""The minus of 1e-8."""
NO_BREAK_SPACE, WORD_JOINER = "\N{NO-BREAK SPACE}", "\N{WORD JOINER}"
VERBATIM = (nodes.FixedTextElement, nodes.literal, nodes.math, nodes.raw, nodes.comment)


def with_breaks(body: str) -> str:
    """The page with a possible break after each part of a path or of a name in Python.

    Examples
    --------
    >>> with_breaks('<span class="pre">src/tree/mod.rs</span>')
    '<span class="pre">src/<wbr>tree/<wbr>mod.rs</span>'
    >>> with_breaks('<span class="pre">onefold.svm.SVC</span>')
    '<span class="pre">onefold.<wbr>svm.<wbr>SVC</span>'
    """

    def broken(own: re.Match[str]) -> str:
        ends = r"(/|::|_)" if "/" in own[2] else r"(\.)"
        return own[1] + re.sub(ends, r"\1<wbr>", own[2]) + own[3]

    return NAME.sub(broken, body)


def joined(text: str) -> str:
    r"""The text with numbers that no line breaks.

    Examples
    --------
    >>> joined("covtype (581 012 × 54), 10 folds: 0.2 s").split(" ")
    ['covtype', '(581\xa0012\xa0×\xa054),', '10', 'folds:', '0.2\xa0s']
    """
    text = WITHIN_NUMBER.sub(NO_BREAK_SPACE, text)
    return EXPONENT_SIGN.sub(f"{WORD_JOINER}-{WORD_JOINER}", text)


def _change_page(
    _app: Sphinx, _page: str, _template: str, context: dict[str, Any], _tree: Any
) -> None:
    if "body" in context:
        context["body"] = with_breaks(context["body"])


def _change_numbers(_app: Sphinx, tree: nodes.document) -> None:
    for own in list(tree.findall(nodes.Text)):
        text = joined(own)
        if text != own and not isinstance(own.parent, VERBATIM):
            own.parent.replace(own, nodes.Text(text))


def setup(app: Sphinx) -> dict[str, Any]:
    """Change every page before it is written."""
    app.connect("doctree-read", _change_numbers)
    app.connect("html-page-context", _change_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
