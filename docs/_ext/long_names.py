"""Names of files and tests may be broken after their parts, since columns are narrow."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

NAME = re.compile(
    r'(<span class="pre">)((?:src|tests|benches|python|docs|examples)/[\w./:-]+)(</span>)'
)


def with_breaks(body: str) -> str:
    """The page with a possible break after each part of a path.

    Examples
    --------
    >>> with_breaks('<span class="pre">src/tree/mod.rs</span>')
    '<span class="pre">src/<wbr>tree/<wbr>mod.rs</span>'
    """
    return NAME.sub(lambda own: own[1] + re.sub(r"(/|::|_)", r"\1<wbr>", own[2]) + own[3], body)


def _change(_app: Sphinx, _page: str, _template: str, context: dict[str, Any], _tree: Any) -> None:
    if "body" in context:
        context["body"] = with_breaks(context["body"])


def setup(app: Sphinx) -> dict[str, Any]:
    """Change every page before it is written."""
    app.connect("html-page-context", _change)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
