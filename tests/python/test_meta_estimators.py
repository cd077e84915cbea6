"""scikit-learn's meta-estimators with our engines inside answer as scikit-learn's do."""

import pickle
import sys
import threading
import warnings
from functools import wraps

import numpy as np
import pytest
import sklearn
import sklearn.calibration
import sklearn.ensemble as ensemble
import sklearn.model_selection as model_selection
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import KFold, RepeatedStratifiedKFold, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC
from threadpoolctl import threadpool_limits

import onefold

pytestmark = pytest.mark.filterwarnings("ignore::onefold.RefitWarning")


@pytest.fixture(autouse=True, scope="module")
def one_blas_thread():
    """The problems are small: several threads would only get in each other's way."""
    with threadpool_limits(1):
        yield


ROWS, LABELS = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[LABELS]
CANCER, GOOD = load_breast_cancer(return_X_y=True)
CANCER, GOOD = StandardScaler().fit_transform(CANCER[:200, ::4]), GOOD[:200]
X, y = load_diabetes(return_X_y=True)
X, y = X[:150], y[:150]
WEIGHTS = np.random.default_rng(0).uniform(0.5, 2, size=200)
TIGHT = {"tol": 1e-6}

CLASSIFIERS = {
    "svm": (SVC(**TIGHT), "seeded"),
    "scaled svm": (make_pipeline(StandardScaler(), SVC(C=10, **TIGHT)), None),
    "bayes": (GaussianNB(), "merge"),
    "ridge": (RidgeClassifier(), "virtual"),
    "forest": (RandomForestClassifier(5, random_state=0), "forest"),
}


def both(ours, theirs, *arguments, engine="auto", **keywords):
    return ours(*arguments, engine=engine, **keywords), theirs(*arguments, **keywords)


def assert_close(ours, theirs, atol=1e-4):
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=atol)


# Calibration


def calibrated(*arguments, **keywords):
    theirs = sklearn.calibration.CalibratedClassifierCV
    return both(onefold.CalibratedClassifierCV, theirs, *arguments, **keywords)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("labels", ["two", "three"])
@pytest.mark.parametrize("case", CLASSIFIERS)
def test_probabilities_equal_scikit_learns(case, labels, method):
    estimator, engine = CLASSIFIERS[case]
    data = (CANCER, GOOD) if labels == "two" else (ROWS, NAMES)
    keywords = {"method": method, "cv": 4, "ensemble": False}
    pairs = [calibrated(estimator, **keywords)]
    if engine is not None:
        pairs.append(calibrated(estimator, engine=engine, **keywords))
    for ours, theirs in pairs:
        ours.fit(*data)
        theirs.fit(*data)
        # Steps of the isotonic regression move with the last digits of the decision values.
        is_stepwise = method == "isotonic" and "svm" in case
        found, expected = ours.predict_proba(data[0]), theirs.predict_proba(data[0])
        if is_stepwise:
            assert np.abs(found - expected).mean() < 1e-3
        else:
            assert_close(found, expected)
        assert (ours.predict(data[0]) == theirs.predict(data[0])).mean() > 0.98
        np.testing.assert_array_equal(ours.classes_, theirs.classes_)
        assert len(ours.calibrated_classifiers_) == 1


@pytest.mark.parametrize("ensemble_of_folds", [True, False])
@pytest.mark.parametrize("case", ["svm", "scaled svm", "bayes", "forest"])
def test_weights_reach_training_and_calibration(case, ensemble_of_folds):
    estimator, _ = CLASSIFIERS[case]
    ours, theirs = calibrated(estimator, cv=3, ensemble=ensemble_of_folds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a pipeline takes its weights by another name
        ours.fit(CANCER, GOOD, sample_weight=WEIGHTS)
        theirs.fit(CANCER, GOOD, sample_weight=WEIGHTS)
        plain = clone(ours).fit(CANCER, GOOD)
    assert_close(ours.predict_proba(CANCER), theirs.predict_proba(CANCER))
    assert np.abs(ours.predict_proba(CANCER) - plain.predict_proba(CANCER)).max() > 1e-3


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("case", ["svm", "scaled svm", "bayes"])
def test_an_ensemble_of_the_folds_equals_scikit_learns(case, n_jobs):
    ours, theirs = calibrated(CLASSIFIERS[case][0], cv=3, ensemble=True, n_jobs=n_jobs)
    assert_close(
        ours.fit(ROWS, NAMES).predict_proba(ROWS), theirs.fit(ROWS, NAMES).predict_proba(ROWS)
    )
    assert len(ours.calibrated_classifiers_) == 3
    for own in ours.calibrated_classifiers_:
        last = own.estimator[-1] if case == "scaled svm" else own.estimator
        assert "_dense_fit" not in vars(last)


@pytest.fixture
def rows_of_libsvm(monkeypatch):
    """The number of rows in every call of LIBSVM."""
    rows, theirs = [], SVC._dense_fit

    @wraps(theirs)
    def counted(self, X, *arguments, **keywords):
        rows.append(len(X))
        return theirs(self, X, *arguments, **keywords)

    monkeypatch.setattr(SVC, "_dense_fit", counted)
    return rows


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda own, **how: onefold.CalibratedClassifierCV(own, ensemble=True, **how),
        lambda own, **how: onefold.CalibratedClassifierCV(own, ensemble=False, **how),
        lambda own, **how: onefold.StackingClassifier([("svm", own)], **how),
        lambda own, **how: onefold.TunedThresholdClassifierCV(own, thresholds=5, **how),
    ],
    ids=["ensemble", "calibrated", "stacked", "tuned"],
)
def test_our_solver_fits_machines_to_all_rows(make, scaled, rows_of_libsvm):
    machine = make_pipeline(StandardScaler(), SVC()) if scaled else SVC()
    make(machine).fit(CANCER, GOOD)
    # It calls LIBSVM for two rows, to see which attributes there are to be set. Engines may refit
    # the folds of a pipeline.
    assert len(CANCER) not in rows_of_libsvm
    assert scaled or set(rows_of_libsvm) == {2}
    rows_of_libsvm.clear()
    make(machine, engine="refit").fit(CANCER, GOOD)
    assert max(rows_of_libsvm) >= 0.8 * len(CANCER)
    assert min(rows_of_libsvm) > 2


def test_fitted_estimators_are_calibrated_as_they_are():
    fitted = FrozenEstimator(SVC().fit(CANCER[:100], GOOD[:100]))
    ours, theirs = calibrated(fitted)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ours.fit(CANCER[100:], GOOD[100:])
    theirs.fit(CANCER[100:], GOOD[100:])
    np.testing.assert_allclose(found.predict_proba(CANCER), theirs.predict_proba(CANCER))


def test_the_default_is_a_linear_machine():
    ours, theirs = calibrated(ensemble=False)
    ours.fit(CANCER, GOOD)
    theirs.fit(CANCER, GOOD)
    assert isinstance(ours.calibrated_classifiers_[0].estimator, LinearSVC)
    # Their decision values are those of liblinear's default tolerance.
    np.testing.assert_allclose(
        ours.predict_proba(CANCER), theirs.predict_proba(CANCER), rtol=0.01, atol=1e-4
    )


@pytest.mark.skipif(
    "temperature" not in str(sklearn.calibration.CalibratedClassifierCV._parameter_constraints),
    reason="scikit-learn has it from version 1.8 on",
)
@pytest.mark.parametrize("ensemble_of_folds", [True, False])
def test_temperatures(ensemble_of_folds):
    ours, theirs = calibrated(SVC(**TIGHT), method="temperature", cv=3, ensemble=ensemble_of_folds)
    assert_close(
        ours.fit(ROWS, LABELS).predict_proba(ROWS), theirs.fit(ROWS, LABELS).predict_proba(ROWS)
    )


def test_metadata_is_routed_as_in_scikit_learn():
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = SVC(**TIGHT).set_fit_request(sample_weight=True)
        ours, theirs = calibrated(estimator, cv=3, ensemble=False)
        ours.fit(CANCER, GOOD, sample_weight=WEIGHTS)
        theirs.fit(CANCER, GOOD, sample_weight=WEIGHTS)
        assert_close(ours.predict_proba(CANCER), theirs.predict_proba(CANCER))
        unset = onefold.CalibratedClassifierCV(SVC(), ensemble=False)
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
            unset.fit(CANCER, GOOD, sample_weight=WEIGHTS)


# Stacking


def stacked(*arguments, regression=False, **keywords):
    name = "StackingRegressor" if regression else "StackingClassifier"
    return both(getattr(onefold, name), getattr(ensemble, name), *arguments, **keywords)


BASE = [(name.replace(" ", "_"), estimator) for name, (estimator, _) in CLASSIFIERS.items()]
REGRESSIONS = [
    ("ridge", Ridge(0.1)),
    ("svm", SVR(C=100, **TIGHT)),
    ("scaled", make_pipeline(StandardScaler(), Ridge())),
    ("forest", RandomForestRegressor(5, random_state=0)),
    ("dropped", "drop"),
]


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize(
    ("data", "passthrough"),
    [((CANCER, GOOD), False), ((ROWS, NAMES), True)],
    ids=["two", "three and the rows"],
)
def test_stacked_classifiers_equal_scikit_learns(data, passthrough, n_jobs):
    final = LogisticRegression(max_iter=1000)
    ours, theirs = stacked(BASE, final, passthrough=passthrough, cv=3, n_jobs=n_jobs)
    ours.fit(*data)
    theirs.fit(*data)
    assert ours.stack_method_ == theirs.stack_method_
    assert_close(ours.transform(data[0]), theirs.transform(data[0]))
    assert_close(ours.predict_proba(data[0]), theirs.predict_proba(data[0]), atol=1e-3)
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    machine = ours.named_estimators_["scaled_svm"][-1]
    assert not {"_dense_fit", "_sparse_fit"} & vars(machine).keys()


@pytest.mark.parametrize("passthrough", [True, False])
@pytest.mark.parametrize("cv", [3, KFold(3, shuffle=True, random_state=0)], ids=["3", "KFold"])
@pytest.mark.parametrize("final", [None, SVR(**TIGHT)], ids=["default", "svm"])
def test_stacked_regressions_equal_scikit_learns(final, cv, passthrough):
    ours, theirs = stacked(REGRESSIONS, final, cv=cv, passthrough=passthrough, regression=True)
    ours.fit(X, y)
    theirs.fit(X, y)
    assert_close(ours.predict(X), theirs.predict(X), atol=1e-2)
    assert ours.named_estimators_["dropped"] == "drop"


def test_weights_reach_every_base_estimator():
    weights = WEIGHTS[: len(X)]
    base = [own for own in REGRESSIONS if own[0] != "scaled"]
    ours, theirs = stacked(base, cv=3, regression=True)
    ours.fit(X, y, sample_weight=weights)
    theirs.fit(X, y, sample_weight=weights)
    assert_close(ours.predict(X), theirs.predict(X), atol=1e-2)
    assert not np.allclose(ours.predict(X), clone(ours).fit(X, y).predict(X))
    base = [own for own in BASE if own[0] != "scaled_svm"]
    ours, theirs = stacked(base, cv=3)
    ours.fit(CANCER, GOOD, sample_weight=WEIGHTS)
    theirs.fit(CANCER, GOOD, sample_weight=WEIGHTS)
    assert_close(ours.predict_proba(CANCER), theirs.predict_proba(CANCER), atol=1e-3)


def test_fitted_base_estimators_are_taken_as_they_are():
    base = [("bayes", GaussianNB().fit(ROWS, LABELS)), ("svm", SVC().fit(ROWS, LABELS))]
    ours, theirs = stacked(base, cv="prefit")
    np.testing.assert_allclose(
        ours.fit(ROWS, LABELS).predict_proba(ROWS), theirs.fit(ROWS, LABELS).predict_proba(ROWS)
    )


@pytest.mark.parametrize("method", ["predict", "decision_function"])
def test_the_stack_method_is_chosen_as_in_scikit_learn(method):
    base = [("svm", SVC(**TIGHT)), ("ridge", RidgeClassifier())]
    ours, theirs = stacked(base, stack_method=method, cv=3)
    assert_close(
        ours.fit(ROWS, LABELS).predict_proba(ROWS), theirs.fit(ROWS, LABELS).predict_proba(ROWS)
    )


def test_the_engine_of_each_base_estimator_is_printed(capsys):
    base = [own for own in BASE if own[0] in ("svm", "bayes", "ridge", "forest")]
    onefold.StackingClassifier(base, verbose=1).fit(ROWS, LABELS)
    printed = capsys.readouterr().out
    for name in ("seeded", "merge", "virtual", "forest"):
        assert f"engine='{name}'" in printed


# Thresholds


def tuned(*arguments, **keywords):
    names = ("TunedThresholdClassifierCV",) * 2
    classes = [
        getattr(own, name) for own, name in zip((onefold, model_selection), names, strict=True)
    ]
    return both(*classes, *arguments, **keywords)


CVS = {
    "default": None,
    "folds": StratifiedKFold(3, shuffle=True, random_state=0),
    "repeated": RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
    "held out": 0.3,
}


@pytest.mark.parametrize("cv", CVS)
@pytest.mark.parametrize("case", CLASSIFIERS)
def test_thresholds_equal_scikit_learns(case, cv):
    estimator, engine = CLASSIFIERS[case]
    scoring = make_scorer(f1_score, pos_label=0)
    keywords = {
        "scoring": scoring,
        "cv": CVS[cv],
        "random_state": 0,
        "store_cv_results": True,
        "thresholds": 20,
        "refit": cv != "held out",
    }
    engines = ["auto"] if engine is None or cv in ("repeated", "held out") else ["auto", engine]
    for name in engines:
        ours, theirs = tuned(estimator, engine=name, **keywords)
        ours.fit(CANCER, GOOD)
        theirs.fit(CANCER, GOOD)
        assert_close(ours.cv_results_["thresholds"], theirs.cv_results_["thresholds"])
        near = np.abs(ours.cv_results_["scores"] - theirs.cv_results_["scores"])
        assert np.median(near) < 1e-4
        assert ours.best_score_ == pytest.approx(theirs.best_score_, abs=1e-3)
        if "svm" not in case:
            assert ours.best_threshold_ == pytest.approx(theirs.best_threshold_)
            np.testing.assert_array_equal(ours.predict(CANCER), theirs.predict(CANCER))


@pytest.mark.parametrize("case", ["svm", "bayes", "forest"])
def test_weights_of_thresholds_are_routed(case):
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = clone(CLASSIFIERS[case][0]).set_fit_request(sample_weight="training")
        scoring = make_scorer(f1_score).set_score_request(sample_weight="scoring")
        ours, theirs = tuned(estimator, scoring=scoring, store_cv_results=True, cv=3, thresholds=20)
        weights = {"training": WEIGHTS, "scoring": WEIGHTS[::-1].copy()}
        ours.fit(CANCER, GOOD, **weights)
        theirs.fit(CANCER, GOOD, **weights)
    assert_close(ours.cv_results_["thresholds"], theirs.cv_results_["thresholds"])
    near = np.abs(ours.cv_results_["scores"] - theirs.cv_results_["scores"])
    assert np.median(near) < 1e-4


def test_a_fitted_classifier_is_tuned_as_it_is():
    fitted = SVC().fit(CANCER[:100], GOOD[:100])
    ours, theirs = tuned(fitted, cv="prefit", refit=False)
    ours.fit(CANCER[100:], GOOD[100:])
    assert ours.best_threshold_ == theirs.fit(CANCER[100:], GOOD[100:]).best_threshold_
    assert ours.estimator_ is fitted


# All of them

ALL = {
    "calibrated": onefold.CalibratedClassifierCV(SVC(), ensemble=False),
    "stacked": onefold.StackingClassifier([("svm", SVC()), ("bayes", GaussianNB())]),
    "regression": onefold.StackingRegressor([("svm", SVR()), ("ridge", Ridge())]),
    "tuned": onefold.TunedThresholdClassifierCV(SVC()),
}


@pytest.mark.parametrize("case", ALL)
def test_they_pickle_and_clone(case):
    fitted = clone(ALL[case]).fit(CANCER, GOOD)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(CANCER), fitted.predict(CANCER))
    assert clone(fitted).get_params(deep=False).keys() == ALL[case].get_params(deep=False).keys()


@pytest.mark.parametrize("case", ALL)
def test_a_bad_engine_is_named(case):
    with pytest.raises(ValueError, match="'engine' parameter"):
        clone(ALL[case]).set_params(engine="quick").fit(CANCER, GOOD)
    with pytest.raises(ValueError, match="engine='merge' does not apply"):
        clone(ALL[case]).set_params(engine="merge").fit(CANCER, GOOD)


def test_other_threads_see_nothing_of_it():
    """scikit-learn's own class, fitted at the same time, keeps scikit-learn's functions."""
    theirs = sys.modules["sklearn.calibration"].cross_val_predict
    seen, done = set(), threading.Event()

    def watch():
        while not done.is_set():
            seen.add(sys.modules["sklearn.calibration"].cross_val_predict)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        ALL["calibrated"].fit(CANCER, GOOD)
    finally:
        done.set()
        watcher.join()
    assert seen <= {theirs}
