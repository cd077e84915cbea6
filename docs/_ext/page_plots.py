"""Make the pictures of a page by running its code.

A Python block that is followed by an image of ``_build/plots/`` must leave the axes in ``ax``;
their figure becomes that image. So pictures are those of the code above them, in the version that
is documented. The code of a picture that only explains is a comment, ``<!-- figure … -->``. Files
that the code writes are put beside the built pages.
"""

from __future__ import annotations

import io
import os
import re
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

FOLDER = "_build/plots"
LINKED = "sample_report.html"

BLOCK = re.compile(
    r"^(?:```python\n(?P<code>.*?)^```$|<!-- figure\n(?P<hidden>.*?)^-->$)"
    r"(?:\s+!\[[^\]]*\]\((?P<image>_build/plots/[\w-]+\.png)\))?",
    re.M | re.S,
)


def pages(source: Path) -> list[Path]:
    """The pages whose code draws a picture or writes a file that they link to."""
    paths = sorted(source.glob("*.md"))
    return [path for path in paths if FOLDER in (text := path.read_text("utf-8")) or LINKED in text]


def draw(app: Sphinx) -> None:
    """Run the blocks of all pages, and save what they draw."""
    import matplotlib

    os.environ["ONEFOLD_DOCS"] = "."  # a report beside the pages links to them
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    source = Path(app.srcdir)
    (source / FOLDER).mkdir(parents=True, exist_ok=True)
    Path(app.outdir).mkdir(parents=True, exist_ok=True)
    for page in pages(source):
        namespace: dict[str, Any] = {}
        for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
            with chdir(app.outdir), redirect_stdout(io.StringIO()):
                exec(compile(block["code"] or block["hidden"], page, "exec"), namespace)
            if block["image"]:
                namespace["ax"].figure.savefig(source / block["image"], dpi=110)
        plt.close("all")


def setup(app: Sphinx) -> dict[str, bool]:
    """Draw before pages are read."""
    app.connect("builder-inited", draw)
    return {"parallel_read_safe": True}
