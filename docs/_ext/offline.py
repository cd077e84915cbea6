"""The pages load nothing from the network: checked at the end of every build."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

LOADED_BY_CSS = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s]+)""", re.I)
REMOTE = re.compile(r"^(?:https?:)?//", re.I)
NOT_LOADED = {"canonical", "license", "author", "help", "next", "prev", "search", "index"}
"""Values of ``rel`` for which a browser loads nothing."""


class _Finder(HTMLParser):
    """Collects the addresses of all that a page loads; links to follow by hand do not count."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        addresses = [values.get("src", ""), values.get("poster", ""), values.get("data", "")]
        addresses += [part.split()[0] for part in values.get("srcset", "").split(",") if part]
        loads = set(values.get("rel", "").lower().split()) - NOT_LOADED
        if tag == "link" and loads:
            addresses.append(values.get("href", ""))
        if tag in ("use", "image"):
            addresses += [values.get("href", ""), values.get("xlink:href", "")]
        addresses += LOADED_BY_CSS.findall(values.get("style", ""))
        self.addresses += [address for address in addresses if REMOTE.match(address)]


def remote_addresses(text: str) -> list[str]:
    """What a page of HTML, with its inline styles, would load from the network.

    Examples
    --------
    >>> remote_addresses('<a href="https://x.org">x</a><script src="https://x.org/a.js">')
    ['https://x.org/a.js']
    """
    finder = _Finder()
    finder.feed(text)
    return finder.addresses + [
        address
        for style in re.findall(r"<style[^>]*>(.*?)</style>", text, re.S | re.I)
        for address in LOADED_BY_CSS.findall(style)
    ]


def remote_loads(directory: Path) -> list[tuple[Path, str]]:
    """Every file of a built site that loads something from the network, and what it loads."""
    remote = []
    for path in sorted(directory.rglob("*.html")):
        remote += [
            (path, address) for address in remote_addresses(path.read_text(encoding="utf-8"))
        ]
    for path in sorted(directory.rglob("*.css")):
        text = path.read_text(encoding="utf-8", errors="replace")
        remote += [(path, address) for address in LOADED_BY_CSS.findall(text)]
    return remote


def _check(app: Sphinx, error: Exception | None) -> None:
    from sphinx.util import logging

    if error is None and app.builder.format == "html":
        for path, address in remote_loads(Path(app.outdir)):
            logging.getLogger(__name__).warning("%s loads %s", path.name, address)


def setup(app: Sphinx) -> dict[str, Any]:
    """Check the pages when they are built."""
    app.connect("build-finished", _check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
