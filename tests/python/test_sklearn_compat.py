"""What this package assumes about scikit-learn's private names: a test fails where one is gone."""

import ast
import inspect
from pathlib import Path

import numpy as np
import pytest
import sklearn.linear_model
import sklearn.svm
from newton_cases import binary
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import RFECV, SequentialFeatureSelector
from sklearn.linear_model import GammaRegressor, PoissonRegressor, Ridge, TweedieRegressor
from sklearn.metrics import check_scoring, f1_score, get_scorer, make_scorer, mean_squared_error
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, TunedThresholdClassifierCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import SVC, SVR
from versions import SKLEARN

import onefold
from onefold import _sklearn_compat as compat
from onefold._engines.sklearn_svm_fit import native_solver
from onefold._scoring.scorers import DevianceExplained
from onefold.linear_model import ElasticNetCV, LassoCV, LogisticRegressionCV

PACKAGE = Path(onefold.__file__).parent
CANCER, GOOD = load_breast_cancer(return_X_y=True)
CANCER = scale(CANCER)[:200]
GOOD = GOOD[:200]
DIABETES, PROGRESSION = load_diabetes(return_X_y=True)

# Imports


def private_imports(path):
    """Imports of private names and modules of scikit-learn."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sklearn":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_no_other_module_imports_private_names():
    found = {
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in PACKAGE.rglob("*.py")
        for name in private_imports(path)
        if path.name != "_sklearn_compat.py"
        and name.startswith("sklearn.")
        and (any(part.startswith("_") for part in name.split(".")) or ".fixes" in name)
    }
    assert found == set()


READ_BY_FUNCTIONS_HERE = (
    "_parameter_constraints",
    "_validate_params",
    "_get_loss",
    "_score_func",
    "_sign",
    "_kwargs",
    "_response_method",
    "_scorers",
    "_skl_callbacks",
    "_fit_method",
    "_base_loss",
    "_predictors",
    "_n_support",
    "_probA",
)


def test_no_other_module_reads_these_attributes():
    """Classes that define constraints of their own, as estimators do, may."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        if path.name == "_sklearn_compat.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            is_read = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
            if is_read and node.attr in READ_BY_FUNCTIONS_HERE:
                found.add(f"{path.relative_to(PACKAGE)}:{node.lineno} .{node.attr}")
            is_text = isinstance(node, ast.Constant) and node.value in READ_BY_FUNCTIONS_HERE
            if is_text:
                found.add(f"{path.relative_to(PACKAGE)}:{node.lineno} {node.value!r}")
    assert found == set()


# Functions and attributes


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="'alpha' parameter of Ridge"):
        compat.validate_params(Ridge(alpha=-1.0))


@pytest.mark.parametrize(
    "kind",
    [
        SVC,
        SVR,
        GridSearchCV,
        RandomizedSearchCV,
        compat.HalvingGridSearchCV,
        compat.HalvingRandomSearchCV,
        CalibratedClassifierCV,
        TunedThresholdClassifierCV,
        sklearn.ensemble.StackingClassifier,
        sklearn.ensemble.StackingRegressor,
        RFECV,
        SequentialFeatureSelector,
    ],
)
def test_constraints_have_the_names_of_parameters(kind):
    constraints = compat.parameter_constraints(kind)
    assert constraints.keys() <= inspect.signature(kind).parameters.keys()
    assert len(constraints) > 3


def test_attributes_of_scorers():
    scorer = make_scorer(mean_squared_error, greater_is_better=False)
    assert compat.scorer_metric(scorer) is mean_squared_error
    assert compat.scorer_sign(scorer) == -1
    assert compat.scorer_sign(get_scorer("r2")) == 1
    assert compat.scorer_responses(get_scorer("roc_auc")) == ("decision_function", "predict_proba")
    assert compat.scorer_responses(get_scorer("accuracy")) == ("predict",)
    assert compat.scorer_keywords(make_scorer(f1_score, average="macro")) == {"average": "macro"}
    assert compat.scorer_keywords(get_scorer("accuracy")) == {}

    def score(estimator, X, y):
        return 0.0

    assert compat.scorer_metric(score) is None
    assert compat.scorer_sign(score) == 1
    assert compat.scorer_responses(score) == ()
    assert compat.scorer_keywords(score) == {}


def test_a_scorer_passes_the_keywords_that_are_added():
    log_loss = get_scorer("neg_log_loss")
    model = GaussianNB().fit(CANCER, GOOD)
    ones = GOOD == 1
    with pytest.raises(ValueError, match="one label"):
        log_loss(model, CANCER[ones], GOOD[ones])
    changed = compat.with_keywords(log_loss, labels=[0, 1])
    assert changed(model, CANCER[ones], GOOD[ones]) < 0
    assert compat.scorer_keywords(log_loss) == {}


def test_kinds_of_scorers():
    own = check_scoring(Ridge(), scoring=None)
    assert isinstance(own, compat._PassthroughScorer)
    assert isinstance(compat.scorer_subject(own), Ridge)
    both = check_scoring(Ridge(), scoring=["r2", "neg_mean_squared_error"])
    assert isinstance(both, compat._MultimetricScorer)
    assert list(compat.scorers_by_name(both)) == ["r2", "neg_mean_squared_error"]
    assert compat.scorers_by_name(own) is own
    assert isinstance(get_scorer("r2"), compat._BaseScorer)
    assert list(compat._check_multimetric_scoring(Ridge(), ["r2"])) == ["r2"]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "model",
    [PoissonRegressor(), GammaRegressor(), TweedieRegressor(power=0), TweedieRegressor(power=1.5)],
)
def test_deviance_explained_is_the_score_of_the_estimator(model, weighted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.exp(0.3 * X[:, 0]) + rng.random(60)
    weights = rng.random(60) if weighted else None
    model = clone(model).fit(X, y)
    score = DevianceExplained(make_pipeline(StandardScaler(), model))
    expected = model.score(X, y, sample_weight=weights)
    assert score(y, model.predict(X), weights) == pytest.approx(expected, rel=1e-13)
    if not isinstance(model, TweedieRegressor):
        with pytest.raises(ValueError, match="y has values out of the range of Half"):
            score(-y, model.predict(X), weights)


def test_scales_of_a_pls_regression():
    rows, values = np.arange(8.0).reshape(4, 2) ** 2, np.arange(4.0) ** 3
    x_scale, y_scale = compat.pls_scales(PLSRegression(1).fit(rows, values))
    np.testing.assert_allclose(x_scale, rows.std(axis=0, ddof=1))
    np.testing.assert_allclose(y_scale, values.std(ddof=1))


def test_forests_draw_as_many_rows():
    y = np.arange(100) % 2
    X = np.arange(100.0)[:, None]
    for max_samples, expected in ((None, 100), (0.5, 50), (7, 7)):
        assert compat.n_bootstrap_rows(100, max_samples) == expected
        forest = RandomForestClassifier(1, max_samples=max_samples, random_state=0).fit(X, y)
        assert forest.estimators_[0].tree_.weighted_n_node_samples[0] == expected


def test_functions_of_validation():
    assert compat._num_samples([1, 2, 3]) == 3
    assert compat._safe_indexing(np.arange(5), [1, 3]).tolist() == [1, 3]
    X, y = compat._safe_split(Ridge(), DIABETES, PROGRESSION, np.arange(4))
    assert (X.shape, y.shape) == ((4, 10), (4,))
    params = compat._check_method_params(DIABETES, {"w": PROGRESSION, "a": 1}, indices=[0, 1])
    assert params["w"].tolist() == PROGRESSION[:2].tolist()
    assert params["a"] == 1
    weights = compat._check_sample_weight(2.0, DIABETES, dtype=np.float64)
    assert weights.tolist() == [2.0] * len(DIABETES)
    assert compat._check_response_method(SVC(), ["decision_function"]).__name__ == (
        "decision_function"
    )
    assert compat._translate_train_sizes(np.array([0.5, 1.0]), 10).tolist() == [5, 10]
    [(name, column)] = compat._yield_masked_array_for_each_param([{"a": 1}, {}])
    assert name == "param_a"
    assert column.mask.tolist() == [False, True]
    assert compat._get_weights(np.array([[1.0, 2.0]]), "distance").tolist() == [[1.0, 0.5]]
    pandas = pytest.importorskip("pandas")
    model = Ridge()
    compat._check_feature_names(model, pandas.DataFrame({"a": [1.0]}), reset=True)
    assert model.feature_names_in_.tolist() == ["a"]


def test_votes_of_pairs_of_classes():
    decisions = np.array([[1.0, -2.0, 0.5]])
    votes = compat._ovr_decision_function(decisions > 0, decisions, 3)
    expected = SVC(kernel="linear").fit([[0.0], [1.0], [2.0]], [0, 1, 2])
    assert votes.shape == expected.decision_function([[0.5]]).shape


def test_the_method_of_an_index_of_neighbors():
    index = NearestNeighbors(algorithm="kd_tree")
    assert compat.search_method(index) == ""
    assert compat.search_method(index.fit(DIABETES)) == "kd_tree"


class Silent:
    """A callback that does nothing."""

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass


@pytest.mark.skipif(SKLEARN < (1, 9), reason="scikit-learn has callbacks from version 1.9 on")
def test_callbacks_of_an_estimator():
    search = onefold.GridSearchCV(Ridge(), {"alpha": [1.0]})
    assert compat.callbacks_of(search) == []
    silent = Silent()
    search.set_callbacks(silent)
    assert compat.callbacks_of(search) == [silent]
    assert hasattr(search, "_init_callback_context")


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (
            GridSearchCV,
            {
                "_get_scorers",
                "_get_routed_params_for_fit",
                "_check_refit_for_multimetric",
                "_select_best_index",
                "_run_search",
            },
        ),
        (RFECV, {"_get_scorer"}),
        (TunedThresholdClassifierCV, {"_fit", "_get_response_method"}),
        (CountVectorizer, {"_warn_for_unused_params"}),
        (sklearn.linear_model.LassoCV, {"_get_estimator"}),
    ],
)
def test_methods_that_subclasses_here_call_or_override(kind, names):
    assert all(callable(getattr(kind, name)) for name in names)


# Methods with other functions behind some of their global names


@pytest.mark.parametrize("function", compat.REPLACED, ids=lambda function: function.__qualname__)
def test_replaced_names_are_globals_of_scikit_learns_functions(function):
    names = compat.REPLACED[function]
    plain = inspect.unwrap(function)
    assert names <= compat.global_names(plain.__code__)
    assert names <= plain.__globals__.keys()
    replaced = compat.with_replaced_globals(function, **dict.fromkeys(names, print))
    assert all(replaced.__globals__[name] is print for name in names)
    assert not any(plain.__globals__[name] is print for name in names)


def test_a_name_that_is_gone_is_an_error(monkeypatch):
    def fit(self):
        return sorted([1])

    monkeypatch.setattr(compat, "REPLACED", {fit: frozenset({"sorted", "cross_val_predict"})})
    with pytest.raises(ImportError, match=r"fit does not call cross_val_predict, which"):
        compat.with_replaced_globals(fit, sorted=print, cross_val_predict=print)
    with pytest.raises(TypeError, match="replace"):
        compat.with_replaced_globals(fit, sorted=print)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_logistic_regression_is_solved_by_the_engine():
    X, y, _ = binary()
    model = LogisticRegressionCV(Cs=4, cv=3, scoring="neg_log_loss").fit(X, y)
    assert np.unique(model.n_iter_).tolist() == [0]
    theirs = sklearn.linear_model.LogisticRegressionCV(Cs=4, cv=3, scoring="neg_log_loss")
    assert (theirs.fit(X, y).n_iter_ > 0).all()


@pytest.mark.parametrize("kind", [LassoCV, ElasticNetCV])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_elastic_nets_are_solved_by_the_engine(kind):
    """One sweep with this tolerance leaves scikit-learn's own solver far from the solution."""
    X = np.vander(np.linspace(0, 1, 50), 8)
    y = np.sin(7 * X[:, -2])
    loose = {"alphas": [1e-4, 1e-3], "cv": 3, "tol": 0.1, "max_iter": 1}
    model = kind(**loose).fit(X, y)
    theirs = getattr(sklearn.linear_model, kind.__name__)(**loose).fit(X, y)
    assert model.dual_gap_ < 1e-10 < theirs.dual_gap_
    exact = getattr(sklearn.linear_model, kind.__name__)(
        alphas=[1e-4, 1e-3], cv=3, tol=1e-10, max_iter=10**6
    ).fit(X, y)
    np.testing.assert_allclose(model.mse_path_, exact.mse_path_, rtol=1e-5)
    assert not np.allclose(theirs.mse_path_, exact.mse_path_, rtol=1e-3)


@pytest.fixture
def rows_in_libsvm(monkeypatch):
    """The number of rows in each call of scikit-learn's LIBSVM."""
    from functools import wraps

    from sklearn.svm._base import BaseLibSVM

    n_rows = []
    solve = BaseLibSVM._dense_fit

    @wraps(solve)
    def counted(self, X, *arguments, **keywords):
        n_rows.append(len(X))
        return solve(self, X, *arguments, **keywords)

    monkeypatch.setattr(BaseLibSVM, "_dense_fit", counted)
    return n_rows


ON_MACHINES = {
    "calibrated, one model": lambda of: of.CalibratedClassifierCV(SVC(), ensemble=False, cv=3),
    "calibrated, one model per fold": lambda of: of.CalibratedClassifierCV(SVC(), cv=3),
    "stacked": lambda of: of.StackingClassifier([("svm", SVC())], GaussianNB(), cv=3),
    "stacked regressions": lambda of: of.StackingRegressor([("svm", SVR())], Ridge(), cv=3),
    "tuned threshold": lambda of: of.TunedThresholdClassifierCV(SVC(), cv=3),
}


@pytest.mark.parametrize("make", ON_MACHINES.values(), ids=ON_MACHINES)
def test_support_vector_machines_are_solved_by_the_engine(make, rows_in_libsvm):
    """LIBSVM only shows the attributes that it sets, on a row of each class."""
    make(onefold).fit(CANCER, GOOD)
    assert max(rows_in_libsvm, default=0) <= 2


class TheirClasses:
    """scikit-learn's classes by their names, for the proof that the test above can fail."""

    CalibratedClassifierCV = CalibratedClassifierCV
    StackingClassifier = sklearn.ensemble.StackingClassifier
    StackingRegressor = sklearn.ensemble.StackingRegressor
    TunedThresholdClassifierCV = TunedThresholdClassifierCV


@pytest.mark.parametrize("make", ON_MACHINES.values(), ids=ON_MACHINES)
def test_scikit_learns_classes_use_libsvm(make, rows_in_libsvm):
    make(TheirClasses).fit(CANCER, GOOD)
    assert max(rows_in_libsvm) > 100


@pytest.mark.parametrize("model", [SVC(), SVR()], ids=["SVC", "SVR"])
@pytest.mark.parametrize("rows", [CANCER, csr_array(CANCER)], ids=["dense", "sparse"])
def test_libsvm_sets_the_attributes_that_are_known(model, rows):
    assert not compat.is_fitted_by_libsvm(model)
    fitted = clone(model)
    for name in compat.libsvm_methods(fitted):
        setattr(fitted, name, with_checked_attributes(fitted, getattr(fitted, name)))
    fitted.fit(rows, GOOD)
    assert compat.is_fitted_by_libsvm(fitted)


def with_checked_attributes(estimator, solve):
    def checked(*arguments, **keywords):
        before = set(vars(estimator))
        solve(*arguments, **keywords)
        compat.check_libsvm_attributes(estimator, before)
        with pytest.raises(ImportError, match=r"SV[CR]\.fit sets other attributes: .*support_"):
            compat.check_libsvm_attributes(estimator, set(vars(estimator)))

    return checked


def test_a_method_that_is_gone_is_an_error():
    with pytest.raises(ImportError, match=r"Ridge\._dense_fit is not the known one"):
        compat.libsvm_methods(Ridge())


def test_a_generalised_linear_model_keeps_its_loss():
    fitted = PoissonRegressor().fit(np.abs(DIABETES), PROGRESSION)
    other = clone(fitted)
    compat.keep_glm_loss(other)
    added = vars(other).keys() - clone(fitted).__dict__.keys()
    assert added <= vars(fitted).keys()
    assert len(added) == 1


@pytest.mark.parametrize(
    ("ensemble", "attribute"),
    [
        (BaggingClassifier(n_estimators=3), compat.BAG_SEEDS),
        (BaggingRegressor(n_estimators=3), compat.BAG_SEEDS),
        (HistGradientBoostingClassifier(max_iter=3), compat.STAGES_OF_HISTOGRAMS),
        (HistGradientBoostingRegressor(max_iter=3), compat.STAGES_OF_HISTOGRAMS),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else value,
)
def test_fitted_ensembles_list_their_members(ensemble, attribute):
    assert len(getattr(ensemble.fit(CANCER, GOOD), attribute)) == 3


@pytest.mark.parametrize("model", [SVC(), SVR()], ids=["SVC", "SVR"])
def test_the_native_solver_sets_the_attributes_of_libsvm(model, rows_in_libsvm):
    """The names that `native_solver` lists are those of this version of scikit-learn."""
    with native_solver(model, kernel_mb=None, n_jobs=1):
        model.fit(CANCER, GOOD)
    assert max(rows_in_libsvm) == 2
    np.testing.assert_allclose(
        model.decision_function(CANCER) if isinstance(model, SVC) else model.predict(CANCER),
        (
            SVC(tol=1e-6).fit(CANCER, GOOD).decision_function(CANCER)
            if isinstance(model, SVC)
            else SVR(tol=1e-6).fit(CANCER, GOOD).predict(CANCER)
        ),
        atol=0.02,
    )
