"""Mathematics as MathML, converted by docutils: no script, no font, no network."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)

NAMESPACE = ' xmlns="http://www.w3.org/1998/Math/MathML"'
"""Not needed in HTML."""
HTML_ENTITY = re.compile(r"&(?!amp;|lt;|gt;|quot;|apos;|#)\w+;")
"""A character that XML has no name for."""
ACCENTS = set("ˆˉ˜˙¯~")


def to_mathml(formula: str, *, as_block: bool) -> str:
    r"""The MathML of a formula in LaTeX, in one line.

    docutils puts the subscript of an accented letter below it; here it goes where others are.

    Examples
    --------
    >>> "msub" in to_mathml(r"\hat f_s", as_block=False)
    True
    """
    found = tex2mathml(formula, as_block=as_block).replace(NAMESPACE, "")
    root = ElementTree.fromstring(HTML_ENTITY.sub(lambda own: unescape(own[0]), found))
    for own in root.iter():
        own.text, own.tail = (text and text.strip() for text in (own.text, own.tail))
        if own.tag == "munderover" and own[2].text in ACCENTS:
            base, subscript, accent = own
            letter = ElementTree.Element("mover", accent="true")
            letter.extend((base, accent))
            own.tag, own[:] = "msub", (letter, subscript)
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=False)


def convert(node: nodes.Element, *, as_block: bool) -> str:
    """The MathML of a node, or its source with a warning where it cannot be converted."""
    try:
        return to_mathml(node.astext(), as_block=as_block)
    except MathError as error:
        logger.warning("formula %r: %s", node.astext(), error, location=node)
        return f"<code>{node.astext()}</code>"


def visit_inline(translator: Any, node: nodes.math) -> None:
    """A formula within a line."""
    translator.body.append(convert(node, as_block=False))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.math_block) -> None:
    """A formula of its own."""
    translator.body.append(f'<div class="math-block">{convert(node, as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the renderer."""
    app.add_html_math_renderer(
        "mathml", inline_renderers=(visit_inline, None), block_renderers=(visit_block, None)
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
