"""Every script of `examples` runs, without a warning, and prints something.

Scripts that take long at their full size take a number of rows as argument. A script whose optional
package is not installed is skipped.
"""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
DOCS = Path(__file__).parents[2] / "docs" / "examples.md"

ARGUMENTS = {
    "dask_covtype.py": ["8000"],
    "decoding_over_time.py": ["39"],
    "larger_than_memory.py": ["20000"],
    "leave_one_out.py": ["20000"],
}
"""What makes an example small."""

MAX_LINES = {".py": 80, ".rs": 160}
"""A learner in Rust implements a trait, which takes more lines."""


def scripts():
    return sorted(path.name for path in EXAMPLES.glob("*.py"))


def why_skipped(text):
    """The package that an example imports and that is not installed, or None."""
    imported = re.findall(r"^\s*(?:import|from) (\w+)", text, re.M)
    return next((name for name in imported if find_spec(name) is None), None)


@pytest.mark.parametrize("name", scripts())
def test_the_example_runs(name, tmp_path):
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    missing = why_skipped(text)
    if missing is not None:
        pytest.skip(f"needs {missing}")
    environment = os.environ | {"PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / name, *ARGUMENTS.get(name, [])],
        capture_output=True,
        cwd=tmp_path,
        encoding="utf-8",
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # A busy machine lets Dask's nanny kill workers that end too slowly.
    errors = [line for line in done.stderr.splitlines() if "distributed.nanny" not in line]
    assert errors == []
    assert done.stdout.count("\n") > 3


@pytest.mark.parametrize("path", sorted(EXAMPLES.iterdir()), ids=lambda path: path.name)
def test_the_example_is_short_and_says_what_it_shows(path):
    text = path.read_text(encoding="utf-8")
    assert text.startswith(('"""', "//! "))
    assert text.count("\n") < MAX_LINES[path.suffix]


def test_the_documentation_includes_every_example():
    text = DOCS.read_text(encoding="utf-8")
    included = re.findall(r"^```{(?:literalinclude} \.\./examples/|example} )(\S+)", text, re.M)
    assert sorted(included) == sorted(path.name for path in EXAMPLES.iterdir())
