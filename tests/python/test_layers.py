"""Imports inside the package go one way: a layer imports those before it, and none behind it."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import onefold

ROOT = Path(onefold.__file__).parent

LAYERS = [
    {"_core", "_sklearn_compat", "_utils"},
    {"_inputs", "libsvm"},
    {"learners", "svm"},
    {"_scoring"},
    {"_transforms"},
    {"_engines"},
    {"stats"},
    {"result"},
    {"model_selection"},
    {"calibration", "ensemble", "feature_selection", "linear_model", "testing", "virtual"},
    {"plotting"},
    {"report"},
    {"distributed"},
    {"cli"},
    {"__init__", "__main__"},
]
RANKS = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}

LATE = {
    ("result/_report_methods.py", "report"),
    ("result/_cv_result.py", "plotting"),
    ("model_selection/_search/result.py", "plotting"),
}
"""Methods of results that show them: they import what draws when they are called."""


class Import(NamedTuple):
    module: str
    line: int
    target: str
    is_late: bool


def imports_of(path: Path) -> Iterator[Import]:
    """Imports of other parts of the package, but for those that only type checkers read."""
    module = path.relative_to(ROOT)
    package = module.parent.parts

    def visit(node: ast.AST, *, is_late: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                continue
            if isinstance(child, ast.ImportFrom) and child.level:
                start = package[: len(package) - child.level + 1]
                names = [child.module] if child.module else [alias.name for alias in child.names]
                for name in names:
                    target = (*start, *name.split("."))[0]
                    yield Import(module.as_posix(), child.lineno, target, is_late)
            is_function = isinstance(child, ast.FunctionDef)
            yield from visit(child, is_late=is_late or is_function)

    yield from visit(ast.parse(path.read_text(encoding="utf-8")), is_late=False)


IMPORTS = [found for path in sorted(ROOT.rglob("*.py")) for found in imports_of(path)]


def layer_of(module: str) -> str:
    return module.split("/")[0].removesuffix(".py")


def is_upwards(found: Import) -> bool:
    return RANKS[found.target] > RANKS[layer_of(found.module)]


def test_every_part_has_a_layer():
    parts = {layer_of(path.relative_to(ROOT).as_posix()) for path in ROOT.rglob("*.py")}
    assert parts | {"_core"} == set(RANKS)
    assert len(IMPORTS) > 500


@pytest.mark.parametrize("part", sorted(RANKS))
def test_no_layer_imports_what_is_built_on_it(part):
    upwards = [found for found in IMPORTS if layer_of(found.module) == part and is_upwards(found)]
    assert [found for found in upwards if not found.is_late] == []
    assert {(found.module, found.target) for found in upwards} <= LATE


def test_layers_side_by_side_do_not_import_each_other():
    beside = {
        (layer_of(found.module), found.target)
        for found in IMPORTS
        if RANKS[found.target] == RANKS[layer_of(found.module)]
        and layer_of(found.module) != found.target
    }
    # The public functions on LIBSVM files and the files among the arguments share their readers.
    assert beside == {("_inputs", "libsvm"), ("libsvm", "_inputs")}
