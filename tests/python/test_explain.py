"""`explain` says what `cross_validate` does: without running it."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Lasso, LogisticRegression, Ridge, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import onefold
from onefold import _core
from onefold.learners import Pegasos

X, Y = make_classification(90, 6, random_state=0)

CASES = {
    "ridge": Ridge(),
    "positive": Ridge(positive=True),
    "lasso": make_pipeline(StandardScaler(), Lasso(0.1)),
    "logistic": LogisticRegression(),
    "machine": make_pipeline(Normalizer(), SVC()),
    "bayes": GaussianNB(),
    "online": Pegasos(),
    "several passes": SGDClassifier(),
    "components": make_pipeline(Normalizer(), PCA(2), LogisticRegression()),
    "imputed": make_pipeline(SimpleImputer(), SelectKBest(k=2), GaussianNB()),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::onefold.RefitWarning")
def test_it_names_the_engine_that_is_chosen(name, monkeypatch):
    result = onefold.cross_validate(CASES[name], X, Y, cv=4)
    monkeypatch.delattr(_core, "cross_validate")  # it runs nothing
    explained = onefold.explain(CASES[name], X, Y, cv=4)
    assert explained.engine == result.engine
    assert explained.n_folds == 4
    assert explained.engine not in explained.reasons
    assert explained.exact
    assert explained.cost


def test_it_says_why_not():
    explained = onefold.explain(Ridge(positive=True), X, Y, cv=4)
    assert explained.engine == "refit"
    assert explained.cost == "4 fits"
    assert explained.reasons["virtual"] == "positive=True is not least squares without constraints"
    assert explained.advice.startswith("positive=True is not least squares")
    assert "engine='refit' silences this warning" in explained.advice
    assert "not       virtual: positive=True" in repr(explained)
    for name, reason in explained.reasons.items():
        with pytest.raises(ValueError, match="does not apply") as caught:
            onefold.explain(Ridge(positive=True), X, Y, cv=4, engine=name)
        assert reason in str(caught.value)


def test_it_names_engines_on_request():
    explained = onefold.explain(SGDClassifier(), X, Y, cv=4)
    assert explained.usable == ("tree", "refit")
    assert "engine='tree' uses it anyway" in explained.advice
    asked = onefold.explain(SGDClassifier(), X, Y, cv=4, engine="tree")
    assert (asked.engine, asked.exact) == ("tree", "within its stability")


def test_it_says_how_the_steps_of_pipelines_are_treated():
    def steps(*before, copies=1):
        rows, y = np.tile(X, (copies, 1)), np.tile(Y, copies)
        return onefold.explain(make_pipeline(*before, LogisticRegression()), rows, y).steps

    assert steps() == {}
    assert steps(StandardScaler()) == {"StandardScaler": "inside the engine"}
    assert steps(Normalizer(), PCA(2)) == {
        "Normalizer": "once, for all folds",
        "PCA": "fitted per fold, once for all candidates that share it",
    }
    shared = "shared by all folds, then a small part per fold"
    median = SimpleImputer(strategy="median")
    assert steps(median, PCA(2), copies=34)["SimpleImputer"] == shared
    assert steps(Normalizer(), median, PCA(2), copies=34) == {
        "Normalizer": "once, for all folds",
        "SimpleImputer": shared,
        "PCA": "fitted per fold, once for all candidates that share it",
    }
    assert steps(median, PCA(2))["SimpleImputer"] == (  # of few rows, nothing is gained
        "fitted per fold, once for all candidates that share it"
    )


@pytest.mark.parametrize(
    "before",
    [
        (SimpleImputer(),),
        (OneHotEncoder(handle_unknown="ignore"),),  # of numbers
        (PCA(2), SimpleImputer(strategy="median")),
    ],
    ids=str,
)
def test_it_does_not_say_that_a_step_is_shared_which_is_not(before):
    pipeline = make_pipeline(*before, PCA(1, svd_solver="arpack"), LogisticRegression())
    rows, y = np.tile(X, (34, 1)), np.tile(Y, 34)
    assert "shared by all folds" not in str(onefold.explain(pipeline, rows, y).steps)


def test_arguments_are_those_of_cross_validate():
    returned = onefold.explain(SVC(), X, Y, return_estimator=True)
    assert returned.engine == "refit"
    assert "return_estimator=True needs" in returned.reasons["seeded"]
    with pytest.raises(ValueError, match="there is no option 'speed'"):
        onefold.explain(SVC(), X, Y, engine_options={"speed": 1})
    with pytest.raises(ValueError, match="engine_options must be a dict"):
        onefold.explain(SVC(), X, Y, engine_options="fast")
    with pytest.raises(TypeError, match="n_job"):
        onefold.cross_validate(SVC(), X, Y, n_job=2)


def test_a_result_names_the_engine_that_did_the_work():
    """The kernel matrix of so little noise is ill-conditioned: five plain fits."""
    process = GaussianProcessRegressor(RBF(2.0), optimizer=None)
    result = onefold.cross_validate(process, X[:, :1], np.sin(X[:, 0]), cv=5)
    assert result.engine == result.status.solved_by == "refit"
    assert result.status.refitted_folds == result.cost["fits"] == 5
    assert result.status.reason == "its kernel matrix is ill-conditioned"
