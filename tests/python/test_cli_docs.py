"""The page about the command line shows what the commands print."""

import doctest
import re
import shlex
from pathlib import Path

import pytest
import sklearn
from cli_cases import run
from sklearn.utils.fixes import parse_version

from onefold.cli import make_parser

__all__ = ["run"]

PAGE = Path(__file__).parents[2] / "docs" / "command_line.md"

pytestmark = pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.8"),
    reason="the page shows results of scikit-learn 1.8 and newer",
)

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def commands(text):
    """Commands of the page in their order, with what it shows of their output."""
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.M | re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            line, _, shown = part.partition("\n")
            yield shlex.split(line), shown


def test_commands_print_what_is_shown(tmp_path, monkeypatch, run):
    text = PAGE.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec(re.search(r"```python\n(.*?)```", text, re.S)[1], {})
    checker = doctest.OutputChecker()
    n_checked = 0
    for (program, *arguments), shown in commands(text):
        assert program == "onefold"
        found = run(*arguments).out
        assert checker.check_output(shown, found, FLAGS), f"{arguments}:\n{found}"
        n_checked += 1
    assert n_checked == 9


def test_the_toml_file_of_the_page(tmp_path, monkeypatch, run):
    text = PAGE.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec(re.search(r"```python\n(.*?)```", text, re.S)[1], {})
    Path("search.toml").write_text(re.search(r"```toml\n(.*?)```", text, re.S)[1])
    assert "9 candidates, 5 folds" in run("select", "--config", "search.toml").out


def test_every_command_is_on_the_page():
    text = PAGE.read_text(encoding="utf-8")
    [commands_] = [own for own in make_parser()._actions if own.dest == "command"]
    for name in commands_.choices:
        assert f"| [`{name}`]" in text
