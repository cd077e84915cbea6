"""Examples with their figure, their output, their code, and files to download.

``{example} name.py`` runs a script of `examples` while the page is read, in a separate process.
``:figure:`` is an expression whose value is the axes to show, such as ``result.plot()``;
``:arguments:`` makes a long example short. A script that reads its arguments has no notebook.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

EXAMPLES = Path(__file__).parents[2] / "examples"

DRAW = """
import runpy, sys
script, figure, image, *arguments = sys.argv[1:]
sys.argv = [script, *arguments]
names = runpy.run_path(script, run_name="__main__")
axes = eval(figure, names)
axes.figure.savefig(image, dpi=110, bbox_inches="tight")
"""
"""The program that runs an example and draws its figure."""


def cells(script: str) -> list[dict[str, Any]]:
    r"""The cells of a notebook: a docstring, then the paragraphs that begin with a comment.

    Examples
    --------
    >>> script = "'What it shows.'\n\na = 1\n\n# Then:\nb = 2"
    >>> [(cell["cell_type"], cell["source"]) for cell in cells(script)]
    [('markdown', 'What it shows.'), ('code', 'a = 1'), ('code', '# Then:\nb = 2')]
    """
    tree = ast.parse(script)
    text = ast.get_docstring(tree) or ""
    code = "\n".join(script.splitlines()[tree.body[0].end_lineno :]).strip()
    common = {"metadata": {}}
    notebook: list[dict[str, Any]] = [{"cell_type": "markdown", "source": text} | common]
    for part in re.split(r"\n\n(?=# )", code):
        empty = {"execution_count": None, "outputs": []}
        notebook.append({"cell_type": "code", "source": part} | common | empty)
    return notebook


class Example(SphinxDirective):
    """``{example} name.py``."""

    required_arguments = 1
    option_spec: ClassVar = {"figure": directives.unchanged, "arguments": str.split}

    def run(self) -> list[nodes.Node]:
        """Run the example; write what it shows, prints and is."""
        name = Path(self.arguments[0]).stem
        self.env.note_dependency(EXAMPLES / f"{name}.py")
        parts = []
        if "figure" in self.options:
            parts.append(f"![The figure of this example](_build/plots/example-{name}.png)")
        parts.append(f"```text\n{self._output(name)}\n```")
        parts.append(f"```{{literalinclude}} ../examples/{name}.py\n:language: python\n```")
        parts.append(self._downloads(name))
        return self.parse_text_to_nodes("\n\n".join(parts))

    def _output(self, name: str) -> str:
        """Run the script; return what it prints."""
        command = [str(EXAMPLES / f"{name}.py"), *self.options.get("arguments", [])]
        if "figure" in self.options:
            image = Path(self.env.srcdir, "_build", "plots", f"example-{name}.png")
            image.parent.mkdir(parents=True, exist_ok=True)
            command = ["-c", DRAW, command[0], self.options["figure"], str(image), *command[1:]]
        environment = os.environ | {"MPLBACKEND": "Agg", "PYTHONIOENCODING": "utf-8"}
        environment.pop("ONEFOLD_DATA", None)
        done = subprocess.run(
            [sys.executable, *command],
            capture_output=True,
            encoding="utf-8",
            env=environment,
            check=False,
        )
        if done.returncode:
            raise self.error(f"{name}.py failed:\n{done.stderr}")
        return done.stdout.strip("\n")

    def _downloads(self, name: str) -> str:
        """Links to the script, and to a notebook made of it."""
        links = f"{{download}}`{name}.py <../examples/{name}.py>`"
        script = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
        if "sys.argv" in script:
            return links
        notebook = {"cells": cells(script), "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
        path = Path(self.env.srcdir, "_build", "notebooks", f"{name}.ipynb")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(notebook, ensure_ascii=False, indent=1), encoding="utf-8")
        return f"{links}, {{download}}`{name}.ipynb <_build/notebooks/{name}.ipynb>`"


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive."""
    app.add_directive("example", Example)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
