"""NuSVC, NuSVR and OneClassSVM by the seeded engine, beside refits by LIBSVM."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    LeaveOneOut,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, RobustScaler, StandardScaler
from sklearn.svm import SVC, NuSVC, NuSVR, OneClassSVM
from svm_cases import noisy, regression, wine

import onefold

RULES = ["auto", "cold", "avg", "top", "ato", "mir", "sir", "withdraw"]
TIGHT = {"tol": 1e-7}


def same(estimator, X, y, cv=5, *, atol=2e-4, **keywords):
    """Whether held-out answers are those of refits; returns ours."""
    ours = onefold.cross_validate(estimator, X, y, cv=cv, engine="seeded", **keywords)
    keywords.pop("engine_options", None)
    theirs = onefold.cross_validate(estimator, X, y, cv=cv, engine="refit", **keywords)
    method = "decision_values" if isinstance(_last(estimator), NuSVC) else "predictions"
    if not isinstance(ours.folds, onefold.Folds):
        for fold in range(len(ours.folds)):
            ours_answers, theirs_answers = (one.fold_answers(fold) for one in (ours, theirs))
            name = "decision_function" if method == "decision_values" else "predict"
            np.testing.assert_allclose(ours_answers[name], theirs_answers[name], atol=atol)
        return ours
    ours_values, theirs_values = getattr(ours, method), getattr(theirs, method)
    np.testing.assert_allclose(ours_values, theirs_values, atol=atol * np.abs(theirs_values).max())
    if method == "decision_values":
        decided = np.abs(theirs_values.reshape(len(theirs_values), -1)).min(axis=1) > 1e-3
        np.testing.assert_array_equal(
            np.asarray(ours.predictions)[decided], np.asarray(theirs.predictions)[decided]
        )
    return ours


def _last(estimator):
    return estimator[-1] if hasattr(estimator, "steps") else estimator


KERNELS = [
    {"kernel": "rbf", "gamma": "scale"},
    {"kernel": "rbf", "gamma": "auto"},
    {"kernel": "rbf", "gamma": 0.05},
    {"kernel": "linear"},
    {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": 0.1},
]


@pytest.mark.parametrize("options", KERNELS)
@pytest.mark.parametrize("classes", [2, 3])
def test_classes(options, classes):
    X, y = noisy(150, classes=classes)
    # A line has a margin for a large ν only.
    same(NuSVC(nu=0.6 if options["kernel"] == "linear" else 0.4, **options, **TIGHT), X, y)


@pytest.mark.parametrize("options", KERNELS)
def test_regressions(options):
    X, y = regression()
    same(NuSVR(nu=0.4, C=2.0, **options, **TIGHT), X[:120], y[:120])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("cv", [3, KFold(7), LeaveOneOut()], ids=str)
def test_every_rule_finds_what_refits_find(rule, cv):
    X, y = noisy(70)
    found = same(NuSVC(nu=0.3, gamma=0.1, **TIGHT), X, y, cv, engine_options={"seeding": rule})
    assert found.status.solved_by == "seeded"
    X, y = regression()
    same(NuSVR(gamma=0.1, **TIGHT), X[:70], y[:70], KFold(4), engine_options={"seeding": rule})


@pytest.mark.parametrize(
    "cv",
    [StratifiedKFold(4, shuffle=True, random_state=0), ShuffleSplit(5, random_state=0)],
    ids=["stratified", "shuffle"],
)
@pytest.mark.parametrize("shrinking", [True, False])
def test_folds_and_shrinking(cv, shrinking):
    X, y = noisy(160)
    same(NuSVC(nu=0.25, shrinking=shrinking, **TIGHT), X, y, cv)
    X, y = regression()
    same(NuSVR(shrinking=shrinking, **TIGHT), X, y, ShuffleSplit(4, random_state=1))
    same(NuSVR(shrinking=shrinking, **TIGHT), X, y, TimeSeriesSplit(4))


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
@pytest.mark.parametrize("break_ties", [False, True])
def test_shapes_of_the_decision_function(shape, break_ties):
    X, y = wine()
    model = NuSVC(nu=0.2, decision_function_shape=shape, break_ties=break_ties, **TIGHT)
    if shape == "ovo" and break_ties:
        with pytest.raises(ValueError, match="break_ties"):
            onefold.cross_validate(model, X, y, engine="seeded")
        return
    same(model, X, y, 4)


@pytest.mark.parametrize("scaler", [StandardScaler(), RobustScaler(), MaxAbsScaler()], ids=str)
@pytest.mark.parametrize("gamma", ["scale", 0.1])
def test_behind_a_scaler(scaler, gamma):
    X, y = noisy(150)
    X = X * np.arange(1, 9)
    same(make_pipeline(clone(scaler), NuSVC(nu=0.3, gamma=gamma, **TIGHT)), X, y)
    X, y = regression()
    same(make_pipeline(clone(scaler), NuSVR(gamma=gamma, **TIGHT)), X[:120], y[:120])


def test_weights_of_samples_and_classes():
    X, y = noisy(150)
    weights = np.random.default_rng(0).uniform(0, 3, len(y)).round(1)
    for class_weight in (None, "balanced", {0: 5.0, 1: 1.0}):
        model = NuSVC(nu=0.25, class_weight=class_weight, **TIGHT)
        same(model, X, y)
        same(model, X, y, sample_weight=weights)
    X, y = regression()
    same(NuSVR(**TIGHT), X[:150], y[:150], sample_weight=weights)


def test_sparse_rows_and_precomputed_kernels():
    X, y = noisy(120)
    same(NuSVC(nu=0.3, **TIGHT), sp.csr_matrix(X), y)
    K = rbf_kernel(X, gamma=0.1)
    of_kernel = same(NuSVC(nu=0.3, kernel="precomputed", **TIGHT), K, y)
    of_rows = same(NuSVC(nu=0.3, gamma=0.1, **TIGHT), X, y)
    np.testing.assert_allclose(of_kernel.decision_values, of_rows.decision_values, atol=1e-4)


@pytest.mark.filterwarnings("ignore:The `probability` parameter")
def test_probabilities_are_left_to_refits():
    X, y = noisy(100)
    model = NuSVC(nu=0.3, probability=True, random_state=0)
    scored = onefold.cross_validate(model, X, y, scoring="accuracy")
    assert scored.status.solved_by == "seeded"
    with pytest.warns(onefold.RefitWarning, match="is calibrated by folds of its own"):
        result = onefold.cross_validate(model, X, y, scoring="neg_log_loss")
    assert result.status.solved_by == "refit"


def test_an_infeasible_nu_is_an_error_of_its_fold():
    X, y = noisy(120)
    labels = np.full(len(y), 2)
    labels[np.flatnonzero(y == 0)[:40]] = 0  # of its training rows, a quarter is of class 0
    labels[np.flatnonzero(y == 1)[:30]] = 1
    reason = "nu=0.7 is infeasible for the classes of the training rows of"
    with (
        pytest.warns(FitFailedWarning, match="specified nu is infeasible"),
        pytest.warns(onefold.RefitWarning, match=reason),
    ):
        result = onefold.cross_validate(NuSVC(nu=0.7), X, y, cv=labels, error_score=np.nan)
    assert np.isnan(result["test_score"]).tolist() == [True, True, False]
    with pytest.raises(ValueError, match=r"nu=0\.7 is infeasible"):
        onefold.cross_validate(NuSVC(nu=0.7), X, y, cv=labels, engine="seeded")


def test_classes_without_a_margin_are_left_to_refits():
    """A line does not separate them as well as ν asks for: LIBSVM's values are rounding errors."""
    X, y = noisy(150)
    result = onefold.cross_validate(NuSVC(nu=0.2, kernel="linear"), X, y)
    expected = onefold.cross_validate(NuSVC(nu=0.2, kernel="linear"), X, y, engine="refit")
    assert result.status.refitted_folds == 5
    assert "no margin" in result.status.reason
    np.testing.assert_array_equal(result.decision_values, expected.decision_values)


@pytest.mark.parametrize("scaled", [False, True])
def test_grids(scaled):
    X, y = noisy(150)
    model = NuSVC(**TIGHT)
    grid = {"nu": [0.1, 0.2, 0.4], "gamma": [0.02, 0.1, "scale"]}
    if scaled:
        model = make_pipeline(StandardScaler(), model)
        grid = {f"nusvc__{name}": values for name, values in grid.items()}
    ours = onefold.GridSearchCV(model, grid, cv=4, engine="seeded").fit(X, y)
    theirs = GridSearchCV(model, grid, cv=4).fit(X, y)
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=0.03
    )
    X, y = regression()
    grid = {"C": [0.1, 1.0, 10.0], "nu": [0.2, 0.5], "gamma": [0.02, "scale"]}
    ours = onefold.GridSearchCV(NuSVR(**TIGHT), grid, cv=4, engine="seeded").fit(X, y)
    theirs = GridSearchCV(NuSVR(**TIGHT), grid, cv=4).fit(X, y)
    for name in ("mean_test_score", "split2_test_score"):
        np.testing.assert_allclose(ours.cv_results_[name], theirs.cv_results_[name], atol=1e-4)
    assert ours.best_params_ == theirs.best_params_
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-4)


def test_one_search_of_machines_with_and_without_nu():
    X, y = noisy(120)
    pipeline = make_pipeline(StandardScaler(), SVC())
    machines = [SVC(C=1.0, **TIGHT), NuSVC(nu=0.3, **TIGHT), SVC(C=5.0, **TIGHT)]
    ours = onefold.GridSearchCV(pipeline, {"svc": machines}, cv=4, engine="seeded").fit(X, y)
    theirs = GridSearchCV(pipeline, {"svc": machines}, cv=4).fit(X, y)
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=0.02
    )


@pytest.mark.filterwarnings("ignore:Solver terminated early")
def test_early_stops_are_said():
    X, y = regression()
    with pytest.warns(Warning, match="stopped after max_iter=5"):
        result = onefold.cross_validate(NuSVR(max_iter=5), X, y, engine="seeded")
    assert "above tol" in result.status.unsolved


@pytest.mark.parametrize("rule", RULES)
# LIBSVM hardly ends on a linear kernel with this tolerance.
@pytest.mark.parametrize("options", KERNELS[:3])
def test_one_class(rule, options):
    X, y = noisy(100)
    model = OneClassSVM(nu=0.2, **options, **TIGHT)
    weights = np.random.default_rng(0).uniform(0, 3, len(y)).round(1)
    signs = np.where(y == 1, 1, -1)
    for weight in (None, weights):
        ours, theirs = (
            onefold.cross_validate(
                model,
                X,
                signs,
                cv=KFold(4),
                scoring="roc_auc",
                sample_weight=weight,
                engine=engine,
                engine_options=options,
            )
            for engine, options in (("seeded", {"seeding": rule}), ("refit", None))
        )
        scale = np.abs(theirs.decision_values).max()
        np.testing.assert_allclose(ours.decision_values, theirs.decision_values, atol=2e-4 * scale)
        assert ours.predictions.dtype == theirs.predictions.dtype


def test_one_class_without_targets():
    X, _ = noisy(100)
    for method in ("predict", "decision_function"):
        model = make_pipeline(StandardScaler(), OneClassSVM(nu=0.17, gamma=0.1, **TIGHT))
        ours = onefold.cross_val_predict(model, X, cv=KFold(5), method=method, engine="seeded")
        theirs = cross_val_predict(model, X, cv=KFold(5), method=method)
        np.testing.assert_allclose(ours, theirs, atol=1e-4)
