"""Where lines may be broken: within names of files and tests, but not within numbers.

Output of programs is never cut: the style sheet makes its letters smaller where a line is long, and
needs the number of characters of the longest line for that.
"""

from __future__ import annotations

import html
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
OUTPUT = re.compile(
    r'<div class="highlight-(?:text|console) notranslate">(.*?<pre>(.*?)</pre>)', re.S
)
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

    def broken(match: re.Match[str]) -> str:
        ends = r"(/|::|_)" if "/" in match[2] else r"(\.)"
        return match[1] + re.sub(ends, r"\1<wbr>", match[2]) + match[3]

    return NAME.sub(broken, body)


def with_widths(body: str) -> str:
    """The page with the length of the longest line beside each block of output.

    Examples
    --------
    >>> with_widths('<div class="highlight-text notranslate"><pre>a &lt; b</pre></div>')
    '<div class="highlight-text notranslate" style="--columns: 5"><pre>a &lt; b</pre></div>'
    """

    def measured(block: re.Match[str]) -> str:
        text = html.unescape(re.sub(r"<[^>]+>", "", block[2]))
        columns = max(map(len, text.splitlines()), default=0)
        start = block[0].partition(">")[0]
        return f'{start} style="--columns: {columns}">{block[1]}'

    return OUTPUT.sub(measured, body)


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
        context["body"] = with_widths(with_breaks(context["body"]))


def _change_numbers(_app: Sphinx, tree: nodes.document) -> None:
    for node in list(tree.findall(nodes.Text)):
        text = joined(node)
        if text != node and not isinstance(node.parent, VERBATIM):
            node.parent.replace(node, nodes.Text(text))


def setup(app: Sphinx) -> dict[str, Any]:
    """Change every page before it is written."""
    app.connect("doctree-read", _change_numbers)
    app.connect("html-page-context", _change_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
