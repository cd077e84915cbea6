"""The engine that CONTRIBUTING shows works, with a core in Python in place of one in Rust."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import Lasso, Ridge
from sklearn.model_selection import RepeatedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, PolynomialFeatures

import onefold
from onefold._engines import ENGINES, Needs, Outcome, Spec
from onefold._engines.engine import Engine
from onefold._engines.options import whole
from onefold._engines.registry import register, unregister

CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(60, 4))
Y = X @ [1.0, -2.0, 0.5, 0.0] + 3.0 + 0.1 * RANDOM.normal(size=60)


def solve(X, values, folds, penalty):
    """Held-out predictions of ridge regression, in test order; targets are a column."""
    (y,) = values.T
    for fold in range(len(folds)):
        test, train = folds.test(fold), folds.train(fold)
        centre, level = X[train].mean(axis=0), y[train].mean()
        rows = X[train] - centre
        gram = rows.T @ rows + penalty * np.eye(X.shape[1])
        yield (X[test] - centre) @ np.linalg.solve(gram, rows.T @ (y[train] - level)) + level


@pytest.fixture
def mine():
    """The engine of the page, registered."""
    core = SimpleNamespace(mine=lambda *arguments: np.concatenate(list(solve(*arguments))))
    namespace = {
        **{kind.__name__: kind for kind in (Engine, Needs, Outcome, Ridge, Spec)},
        "_core": core,
        "register": register,
        "whole": whole,
    }
    text = CONTRIBUTING.read_text(encoding="utf-8")
    chapter = text[text.index("## How to add an engine") :]
    exec(re.search(r"```python\n(.*?)```", chapter, re.S)[1], namespace)
    yield namespace["MINE"]
    unregister("mine")


def test_an_engine_is_added_as_contributing_says(mine):
    options = {"depth": 3}
    found = onefold.cross_validate(Ridge(0.5), X, Y, cv=6, engine="mine", engine_options=options)
    refits = onefold.cross_validate(Ridge(0.5), X, Y, cv=6, engine="refit")
    assert found.engine == "mine"
    np.testing.assert_allclose(found.predictions, refits.predictions)
    np.testing.assert_allclose(found["test_score"], refits["test_score"])
    assert found.cost == {"fits": 1, "rows_fed": 60, "rows_evaluated": 60}
    with pytest.raises(ValueError, match="it is for Ridge"):
        onefold.cross_validate(Lasso(), X, Y, engine="mine")
    with pytest.raises(ValueError, match="depth"):
        onefold.cross_validate(Ridge(0.5), X, Y, engine="mine", engine_options={"depth": -1})
    with pytest.raises(ValueError, match="positive=True is not least squares"):
        onefold.cross_validate(Ridge(positive=True), X, Y, engine="mine")
    with pytest.raises(ValueError, match="it takes no weights"):
        onefold.cross_validate(Ridge(), X, Y, engine="mine", sample_weight=np.ones(60))


def test_it_is_asked_first_and_explained(mine):
    assert onefold.cross_validate(Ridge(0.5), X, Y, cv=6).engine == "mine"
    explained = onefold.explain(Ridge(0.5), X, Y, cv=6)
    assert (explained.engine, explained.exact, explained.cost) == (
        "mine",
        "exactly",
        "one factorisation",
    )
    assert explained.usable[:2] == ("mine", "virtual")


def test_it_is_in_searches_pipelines_repeats_and_reports(mine, tmp_path):
    search = onefold.GridSearchCV(Ridge(), {"alpha": [0.1, 1.0, 10.0]}, cv=5, engine="mine")
    other = onefold.GridSearchCV(Ridge(), {"alpha": [0.1, 1.0, 10.0]}, cv=5, engine="refit")
    search.fit(X, Y)
    scores = other.fit(X, Y).cv_results_["mean_test_score"]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], scores)
    assert search.result_.engines == ["mine"] * 3
    assert search.result_.cost["fits"] == 1  # one family
    pipelines = [
        make_pipeline(Normalizer(), Ridge(0.5)),
        make_pipeline(PolynomialFeatures(2), Ridge(0.5)),
    ]
    for pipeline in pipelines:
        result = onefold.cross_validate(pipeline, X, Y, cv=4)
        assert result.status.solved_by == "mine"
        refits = onefold.cross_validate(pipeline, X, Y, cv=4, engine="refit")
        np.testing.assert_allclose(result.predictions, refits.predictions)
    cv = RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)
    repeated = onefold.cross_validate(Ridge(0.5), X, Y, cv=cv)
    refits = onefold.cross_validate(Ridge(0.5), X, Y, cv=cv, engine="refit")
    assert repeated.engine == "mine"
    np.testing.assert_allclose(repeated["test_score"], refits["test_score"])


def test_its_report_says_what_it_is(mine, tmp_path):
    result = onefold.cross_validate(Ridge(0.5), X, Y, cv=6)
    path = tmp_path / "report.html"
    result.to_html(path)
    assert "mine" in path.read_text(encoding="utf-8")


def test_engines_have_names_of_their_own(mine):
    assert ENGINES[0] is mine
    with pytest.raises(ValueError, match="there is an engine 'mine' already"):
        register(mine)
