"""Every Python block of the documentation and of the README runs, and prints what is shown.

The blocks of a page share one namespace. A block that is directly followed by a block of ``text``
must print it; ``...`` stands for what varies, and neither white space nor the number of seconds
(``0.02 s``) counts. Comments that are not shown steer this:

    <!-- no test: reason -->    before a block: it is not run
    <!-- setup … -->            code that is run at this place, such as to make a reader's file
    <!-- figure … -->           the same, code that draws the picture below
"""

import ast
import doctest
import importlib
import io
import re
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
import sklearn
from sklearn.utils.fixes import parse_version

from onefold._engines import ENGINES
from onefold._engines.explain import WITHIN_STABILITY

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.rglob("*.md")), ROOT / "README.md"]
PAGES = [page for page in PAGES if "_build" not in page.parts]

BLOCK = re.compile(
    r"<!--\s*(?P<setup>setup|figure)\n(?P<hidden>.*?)-->"
    r"|(?P<skip><!--\s*no test:[^>]*-->\s*)?"
    r"^(?P<fence>`{3,})(?P<language>python|pycon)\n(?P<code>.*?)^(?P=fence)$"
    r"(?:\s+^```text\n(?P<shown>.*?)^```$)?",
    re.M | re.S,
)

SECONDS = re.compile(r"\b\d+\.\d+ s\b")

README_SETUP = """
import numpy as np, onefold
from sklearn.datasets import load_digits
_X, _y = load_digits(return_X_y=True)
for name in ("covtype.libsvm.xz", "larger-than-memory", "big.libsvm"):
    onefold.dump_libsvm(_X[:200], _y[:200], name)
"""
"""The files that the README reads."""

of_the_newest = pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.8"),
    reason="the pages show parameters and results of scikit-learn 1.8 and newer",
)


@dataclass(frozen=True)
class Block:
    """A block of code."""

    code: str
    line: int
    shown: str | None = None
    is_skipped: bool = False


def blocks_of(text):
    for found in BLOCK.finditer(text):
        code = found["hidden"] if found["setup"] else found["code"]
        start = found.start("hidden" if found["setup"] else "code")
        line = text.count("\n", 0, start) + 1
        yield Block(code, line, found["shown"], is_skipped=bool(found["skip"]))


def is_sketch(block, namespace):
    """Whether a block shows how calls look: its ``estimator`` is the reader's."""
    nodes = ast.walk(ast.parse(block.code))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return "estimator" in names - set(namespace)


def run(block, namespace, page):
    if ">>> " in block.code:
        test = doctest.DocTestParser().get_doctest(
            block.code, namespace, page.name, str(page), block.line - 1
        )
        runner = doctest.DebugRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        runner.run(test, clear_globs=False)
        namespace.update(test.globs)
        return None
    printed = io.StringIO()
    with redirect_stdout(printed):
        # Lines of a traceback are those of the page.
        exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), namespace)
    return printed.getvalue()


@of_the_newest
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_runs_and_prints_what_is_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    namespace = {"__name__": "__main__"}
    if page.name == "README.md":
        exec(README_SETUP, namespace)
    checker = doctest.OutputChecker()
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    for block in blocks_of(page.read_text(encoding="utf-8")):
        if block.is_skipped or (page.name == "README.md" and is_sketch(block, namespace)):
            continue
        printed = run(block, namespace, page)
        if block.shown is not None and printed is not None:
            shown, printed = (SECONDS.sub("0.00 s", text) for text in (block.shown, printed))
            assert checker.check_output(shown, printed, flags), (
                f"{page.name}, line {block.line}, prints\n{printed}"
            )
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def test_blocks_are_found_with_their_output_and_marks():
    text = (
        "<!-- setup\na = 1\n-->\ntext\n\n```python\nprint(a)\n```\n\n```text\n1\n```\n"
        "<!-- no test: needs a cluster -->\n```python\nb\n```\n```console\nmake\n```\n"
    )
    assert list(blocks_of(text)) == [
        Block("a = 1\n", 2),
        Block("print(a)\n", 7, "1\n"),
        Block("b\n", 15, is_skipped=True),
    ]


@pytest.mark.parametrize("page", sorted(DOCS.glob("engine_*.md")), ids=lambda page: page.stem)
def test_every_page_of_an_engine_has_a_figure_that_its_code_draws(page):
    text = page.read_text(encoding="utf-8")
    drawn = re.findall(r"(?:^```|^-->)\n\n!\[[^\]]+\]\(_build/plots/([\w-]+)\.png\)", text, re.M)
    assert page.stem.replace("_", "-") in drawn


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_and_tests_that_are_named_exist(page):
    text = page.read_text(encoding="utf-8")
    named = re.findall(
        r"`((?:src|tests|benches|python|docs|examples)/[\w./-]+?)(?:::(\w+))?`", text
    )
    for path, function in named:
        if path.startswith("docs/_build"):  # what `make docs` writes
            continue
        assert (ROOT / path).exists(), f"{page.name} names {path}"
        if function:
            source = (ROOT / path).read_text(encoding="utf-8")
            assert f" {function}(" in source, f"{page.name} names {path}::{function}"


def table_below(text, head):
    """The cells of the rows of the table with that first cell in its head."""
    lines = iter(text.splitlines())
    next(line for line in lines if line.startswith(f"| {head} |"))
    next(lines)
    for line in lines:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split("|")]


def test_figures_of_the_first_page_are_those_of_the_results():
    first = (DOCS / "index.md").read_text(encoding="utf-8")
    results = (ROOT / "benches" / "results" / "README.md").read_text(encoding="utf-8")
    known = list(table_below(results, "what"))
    shown = list(table_below(first, "[measured](benchmarks.md)"))
    assert len(shown) > 4
    for row in shown:
        assert any(
            all(full.startswith(part) for part, full in zip(row, own, strict=True)) for own in known
        ), f"index.md has {row}"


def test_every_file_of_results_is_on_a_page():
    """The page on benchmarks has all of them, but those that it says are elsewhere."""
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for name in re.search(r"^:elsewhere: (.*)$", text, re.M)[1].split():
        assert f"../benches/results/{name}.md" in text, f"{name}.md is on no page"


def test_promises_are_those_that_random_tests_check(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "python" / "hunt"))
    promises = importlib.import_module("hunt_promises")
    text = (DOCS / "exactness.md").read_text(encoding="utf-8")
    shown = {
        re.search(r'"(\w+)"', engine)[1]: limit.split()[0] if limit else None
        for engine, _, limit, _ in table_below(text, "engine")
    }
    for engine in ENGINES:
        promise = promises.PROMISES[engine.name]
        if engine.name == "tree":
            promise = promises.ROUNDING
        limit = shown.pop(engine.name)
        assert float("inf" if limit == "any" else limit) == promise
    assert shown == {}


@pytest.fixture
def extensions(monkeypatch):
    """Import a module of the documentation's own extensions that needs no Sphinx."""
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    return importlib.import_module


def test_addresses_that_a_page_loads_are_found(extensions):
    offline = extensions("offline")
    assert offline.remote_addresses(
        '<link rel="stylesheet" href="https://a.org/a.css"><link rel="canonical" '
        'href="https://b.org"><a href="https://c.org">c</a><img src="//d.org/d.png">'
        '<img srcset="https://e.org/e.png 2x"><p style="background: url(https://f.org/f.png)">'
        "<style>@import 'https://g.org/g.css';</style><script src='local.js'></script>"
    ) == [
        "https://a.org/a.css",
        "//d.org/d.png",
        "https://e.org/e.png",
        "https://f.org/f.png",
        "https://g.org/g.css",
    ]


@pytest.mark.parametrize("name", ["example_gallery", "line_breaks", "mathml", "offline"])
def test_examples_of_the_extensions(name, extensions):
    if name != "offline":
        pytest.importorskip("sphinx", reason="needs the packages that `make docs` installs")
    found = doctest.testmod(extensions(name))
    assert found.attempted > 0
    assert found.failed == 0


@of_the_newest
def test_the_survey_of_engines_says_what_the_registry_does(extensions):
    survey = extensions("engine_survey")
    rows = {row.name: row for row in survey.scikit_learn_rows()}
    assert len(rows) > 100
    chosen = {name: rows[name].chosen for name in ("Ridge", "SVC", "Lasso", "GaussianNB")}
    assert chosen == {"Ridge": "virtual", "SVC": "seeded", "Lasso": "path", "GaussianNB": "merge"}
    assert all(bool(row.reason) == (row.chosen == "refit") for row in rows.values())
    assert rows["SGDClassifier"].usable == ("tree", "refit")
    assert "1000 passes" in rows["SGDClassifier"].reason
    learners = {row.name: row.exact for row in survey.learner_rows()}
    assert learners["Pegasos"] == WITHIN_STABILITY
    assert learners["RecursiveLeastSquares"] == "exactly"
    variants = {row.name: row.chosen for row in survey.variant_rows()}
    assert variants["LinearSVC(loss='hinge')"] == "refit"
    transformers = dict(survey.transformer_rows())
    assert transformers["StandardScaler"] == "inside the engine"
    assert transformers["Normalizer"] == "once"


PUBLIC = (
    *("onefold", "onefold.learners", "onefold.svm", "onefold.linear_model", "onefold.distributed"),
    *("onefold.plotting", "onefold.report", "onefold.stats", "onefold.testing", "onefold.virtual"),
)


def test_the_reference_has_every_public_class_and_function():
    listed = re.findall(r"^   ([\w.]+)$", (DOCS / "api.md").read_text(encoding="utf-8"), re.M)
    assert len(listed) == len(set(listed))
    documented = set()
    for path in listed:
        module, _, name = f"onefold.{path}".rpartition(".")
        documented.add(id(getattr(importlib.import_module(module), name)))
    for module in map(importlib.import_module, PUBLIC):
        for name in module.__all__:
            own = getattr(module, name)
            if callable(own):
                assert id(own) in documented, f"{module.__name__}.{name} is not in api.md"
