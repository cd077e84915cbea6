"""The tables of engines in the README and in the documentation say what the engines declare."""

import re
from pathlib import Path

import pytest

import onefold
from onefold._engines import ENGINES

ROOT = Path(__file__).parents[2]
PACKAGE = Path(onefold.__file__).parent

TABLES = {"README.md": ROOT / "README.md", "engines.md": ROOT / "docs" / "engines.md"}


def rows_of(page):
    """The cells of the rows of the first table that names engines: name, what is exact, cost."""
    rows = re.findall(r'^\| \[`"(\w+)"`\][^|]*\|[^|]*\|([^|]*)\|([^|]*)\|$', page, re.M)
    return [(name, exact.strip(), cost.strip()) for name, exact, cost in rows]


@pytest.fixture(params=TABLES)
def table(request):
    return rows_of(TABLES[request.param].read_text(encoding="utf-8"))


def test_engines_are_in_the_order_in_which_auto_asks_them(table):
    assert [name for name, _, _ in table] == [engine.name for engine in ENGINES]


def test_exactness_is_what_the_engine_declares(table):
    for (name, exact, _), engine in zip(table, ENGINES, strict=True):
        assert exact.startswith(engine.exact), name


def numbers(text):
    return re.findall(r"\d+(?:\.\d+)?", text)


def test_costs_are_what_the_engine_declares(table):
    """Every number of a declaration is in the table; one without numbers begins the cell."""
    for (name, _, cost), engine in zip(table, ENGINES, strict=True):
        declared = engine.cost.removesuffix(" fits")
        if numbers(declared):
            assert set(numbers(declared)) <= set(numbers(cost)), name
        else:
            assert cost.startswith(declared), name


def files_that_name(engine):
    """Files of the package, besides documentation, that have the name of an engine as a text."""
    literal = re.compile(rf'"{engine}"|\b{engine.upper()}\b')
    for path in PACKAGE.rglob("*.py"):
        code = re.sub(r'""".*?"""', "", path.read_text(encoding="utf-8"), flags=re.S)
        if literal.search(code):
            yield path.relative_to(PACKAGE).as_posix()


@pytest.mark.parametrize("name", ["neighbors", "forest", "bag"])
def test_an_engine_is_named_in_its_own_modules_and_in_the_list_only(name):
    """With core, binding, stub and page that is what CONTRIBUTING promises: six files."""
    places = {path for path in files_that_name(name) if name not in path}
    assert places == {"_engines/registry.py"}
