"""The engine that CONTRIBUTING shows works, with a core in Python in place of one in Rust."""

import re
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import Lasso, Ridge

import onefold
from onefold._estimator_class import known_class
from onefold.engines import ENGINES, Outcome, Plan, _choice
from onefold.engines._base import EngineBase
from onefold.engines._options import whole

CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"


def solve(X, values, folds, penalty):
    """Held-out predictions of ridge regression, in test order; targets are a column."""
    (y,) = values.T
    for fold in range(len(folds)):
        test = folds.test(fold)
        train = np.setdiff1d(np.arange(len(y)), test)
        centre, level = X[train].mean(axis=0), y[train].mean()
        rows = X[train] - centre
        gram = rows.T @ rows + penalty * np.eye(X.shape[1])
        yield (X[test] - centre) @ np.linalg.solve(gram, rows.T @ (y[train] - level)) + level


@pytest.fixture
def mine(monkeypatch):
    """The class of the page, registered."""
    core = SimpleNamespace(mine=lambda *arguments: np.concatenate(list(solve(*arguments))))
    namespace = {
        **{own.__name__: own for own in (EngineBase, Outcome, Plan, Ridge, dataclass)},
        "_core": core,
        "known_class": known_class,
        "whole": whole,
    }
    text = CONTRIBUTING.read_text(encoding="utf-8")
    chapter = text[text.index("## How to add an engine") :]
    exec(re.search(r"```python\n(.*?)```", chapter, re.S)[1], namespace)
    engine = namespace["Mine"]()
    monkeypatch.setattr(_choice, "ENGINES", (engine, *ENGINES))
    by_name = {"mine": engine, **_choice.ENGINES_BY_NAME}
    monkeypatch.setattr(_choice, "ENGINES_BY_NAME", by_name)
    return engine


def test_an_engine_is_added_as_contributing_says(mine):
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 4))
    y = X @ [1.0, -2.0, 0.5, 0.0] + 3.0 + 0.1 * random.normal(size=60)
    found = onefold.cross_validate(Ridge(0.5), X, y, cv=6, engine="mine", depth=3)
    refits = onefold.cross_validate(Ridge(0.5), X, y, cv=6, engine="refit")
    assert found.engine == "mine"
    np.testing.assert_allclose(found.predictions, refits.predictions)
    np.testing.assert_allclose(found["test_score"], refits["test_score"])
    assert onefold.cross_validate(Ridge(0.5), X, y, cv=6).engine == "mine"
    with pytest.raises(ValueError, match="it is for Ridge"):
        onefold.cross_validate(Lasso(), X, y, engine="mine")
    with pytest.raises(ValueError, match="depth"):
        onefold.cross_validate(Ridge(0.5), X, y, engine="mine", depth=-1)
