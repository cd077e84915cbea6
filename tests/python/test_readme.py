"""The README's examples run, and print what it says."""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def test_the_first_example_prints_what_the_readme_shows():
    text = README.read_text(encoding="utf-8")
    code, shown = re.search(r"```python\n(.*?)```\s+```text\n(.*?)```", text, re.S).groups()
    assert text[: text.index("```python")].count("\n") < 20, "code within the first screen"
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue() == shown


def test_the_search_prints_what_the_readme_shows():
    text = README.read_text(encoding="utf-8")
    section = text[text.index("## Model selection") :]
    code, shown = re.search(r"```python\n(.*?)```\s+```text\n(.*?)```", section, re.S).groups()
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue() == shown


def test_the_readme_shows_the_two_commands():
    text = README.read_text(encoding="utf-8")
    assert "make demo" in text
    assert "make test" in text
