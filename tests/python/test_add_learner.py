"""The steps of CONTRIBUTING that add a linear learner, followed in a copy of the tree."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONTRIBUTING = ROOT / "CONTRIBUTING.md"

SCRIPT = """
import numpy as np, pickle, onefold
from onefold.learners import LeastMeanSquares

random = np.random.default_rng(0)
X = random.normal(size=(300, 4))
y = X @ [1.0, -2.0, 0.5, 0.0] + 0.1 * random.normal(size=300)
learner = LeastMeanSquares(eta=0.05)
plain, bias = np.zeros(4), 0.0
for x, target in zip(X, y):
    step = 0.05 * (target - plain @ x - bias)
    plain, bias = plain + step * x, bias + step
np.testing.assert_allclose(learner.fit(X, y).coef_, plain, rtol=1e-12)
tree = onefold.cross_validate(learner, X, y, cv=10, engine="tree", return_estimator=True)
refit = onefold.cross_validate(learner, X, y, cv=10, engine="refit")
assert tree.engine == "tree" and len(tree["estimator"]) == 10
assert abs(tree.mean - refit.mean) < 0.01 and tree.mean > 0.95, (tree.mean, refit.mean)
same = {}
for strategy in ("share", "copy", "revert"):
    options = {"strategy": strategy}
    found = onefold.cross_validate(
        learner, X, y, cv="loo", scoring="neg_mean_squared_error", engine_options=options
    )
    same[strategy] = found.predictions.tobytes()
assert len(set(same.values())) == 1
again = pickle.loads(pickle.dumps(learner))
assert (again.predict(X) == learner.predict(X)).all()
try:
    LeastMeanSquares(eta=-1.0).fit(X, y)
except ValueError as error:
    assert str(error) == "eta must be positive and finite, got -1", error
else:
    raise AssertionError("a negative step was accepted")
print("added")
"""


def snippets():
    """The code of the chapter, in the order of its steps."""
    text = CONTRIBUTING.read_text()
    chapter = text[text.index("## How to add a learner") :]
    return re.findall(r"```(?:rust|python)\n(.*?)```", chapter, re.DOTALL)


def insert_before(path, line, marker):
    """Insert a line before the first one that holds the marker."""
    text = path.read_text()
    assert marker in text, f"{path.name} has no line {marker!r}"
    path.write_text(text.replace(marker, line + marker, 1))


@pytest.mark.skipif(shutil.which("cargo") is None, reason="there is no Rust toolchain")
@pytest.mark.timeout(1200)
def test_a_learner_is_added_by_the_steps_of_contributing(tmp_path):
    rule, core, facade, names = snippets()
    for name in ("Cargo.toml", "Cargo.lock", "README.md"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("src", "benches", "tests/rust"):
        shutil.copytree(ROOT / name, tmp_path / name)
    binaries = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    shutil.copytree(ROOT / "python", tmp_path / "python", ignore=binaries)

    learners = tmp_path / "src" / "learners"
    (learners / "least_mean_squares.rs").write_text(rule)
    module, types, entry = core.splitlines(keepends=True)
    insert_before(learners / "mod.rs", module, "mod least_squares_sgd;\n")
    insert_before(learners / "mod.rs", types, "pub use least_squares_sgd::")
    insert_before(learners / "mod.rs", entry, '    "least_squares_sgd" =>')
    package = tmp_path / "python" / "onefold" / "learners"
    with (package / "_linear.py").open("a") as file:
        file.write("\n\n" + facade)
    imported, listed = names.splitlines(keepends=True)
    insert_before(package / "__init__.py", imported, "from ._linear import")
    insert_before(package / "__init__.py", listed, '    "LeastSquaresSGD",')

    # The dependencies are those that the Rust tests have built.
    target = ROOT / "target"
    command = ["cargo", "build", "--quiet", "--locked", "--lib", "--features", "python"]
    environment = os.environ | {"CARGO_TARGET_DIR": str(target), "PYO3_PYTHON": sys.executable}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=1200)
    suffix = {"darwin": "dylib", "win32": "dll"}.get(sys.platform, "so")
    prefix = "" if sys.platform == "win32" else "lib"
    extension = sysconfig.get_config_var("EXT_SUFFIX")
    built = target / "debug" / f"{prefix}onefold.{suffix}"
    shutil.copy(built, tmp_path / "python" / "onefold" / f"_core{extension}")
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "python")}
    output = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, check=True, capture_output=True, text=True
    )
    assert output.stdout.strip() == "added"
