"""Mathematics as MathML, converted by docutils: no script, no font, no network."""

from __future__ import annotations

import re
from collections.abc import Iterator
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
APPLICATION = "\N{FUNCTION APPLICATION}"
FENCES = set("⌈⌉⌊⌋⟨⟩|‖")
ROWS = {"math", "mrow", "msqrt", "mstyle", "mtd"}
"""Elements with any number of children, side by side."""
THIN_SPACE = "0.1667em"


def to_mathml(formula: str, *, as_block: bool) -> str:
    r"""The MathML of a formula in LaTeX, in one line.

    docutils puts the subscript of an accented letter below it; here it goes where others are.

    Examples
    --------
    >>> "msub" in to_mathml(r"\hat f_s", as_block=False)
    True
    >>> to_mathml(r"\log n", as_block=False)
    '<math><mi>log</mi><mspace width="0.1667em"></mspace><mo>\u2061</mo><mi>n</mi></math>'
    """
    text = tex2mathml(formula, as_block=as_block).replace(NAMESPACE, "")
    root = ElementTree.fromstring(HTML_ENTITY.sub(lambda entity: unescape(entity[0]), text))
    for element in root.iter():
        element.text, element.tail = (
            text and text.strip() for text in (element.text, element.tail)
        )
        if element.tag == "munderover" and element[2].text in ACCENTS:
            base, subscript, accent = element
            letter = ElementTree.Element("mover", accent="true")
            letter.extend((base, accent))
            element.tag, element[:] = "msub", (letter, subscript)
    for element in root.iter():
        if element.tag in ROWS:
            element[:] = _with_spaces(list(element))
        if (
            element.tag == "math"
        ):  # as in LaTeX, fences grow after \left and \right, which make rows
            for fence in element.findall("mo"):
                if fence.text in FENCES:
                    fence.set("stretchy", "false")
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=False)


def _with_spaces(parts: list[ElementTree.Element]) -> Iterator[ElementTree.Element]:
    """The parts of a row with thin spaces around names of functions, which docutils leaves out."""
    for position, part in enumerate(parts):
        is_function = _is_function(part)
        if is_function and position and parts[position - 1].tag in ("mi", "mn"):
            yield ElementTree.Element("mspace", width=THIN_SPACE)
        yield part
        following = [other for other in parts[position + 1 :] if other.text != APPLICATION][:1]
        if is_function and following and following[0].tag != "mo":
            yield ElementTree.Element("mspace", width=THIN_SPACE)


def _is_function(element: ElementTree.Element) -> bool:
    """Whether it is a name such as log, perhaps with a subscript."""
    if element.tag in ("msub", "msup", "msubsup"):
        element = element[0]
    return element.tag == "mi" and len(element.text or "") > 1 and (element.text or "").isascii()


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
