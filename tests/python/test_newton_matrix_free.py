"""Newton's method without Hessians: multinomial logistic regression, and rows of many features."""

import numpy as np
import pytest
import scipy.sparse as sp
from newton_cases import TIGHT, binary, count_targets, three_classes
from reference.newton import newton_multinomial_predict
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.svm import LinearSVC

import onefold
from onefold import _core
from onefold._engines.newton_problem import NewtonOptions

MULTINOMIAL = {
    "lbfgs": LogisticRegression(C=0.7, **TIGHT),
    "weak penalty": LogisticRegression(C=1e3, solver="newton-cholesky", **TIGHT),
    "no penalty": LogisticRegression(C=np.inf, solver="newton-cholesky", **TIGHT),
    "no intercept": LogisticRegression(fit_intercept=False, solver="newton-cg", **TIGHT),
    "dict": LogisticRegression(class_weight={0: 2.0, 1: 0.5, 2: 1.0}, **TIGHT),
    "balanced": LogisticRegression(class_weight="balanced", **TIGHT),
}
SCHEMES = {
    "stratified": StratifiedKFold(3, shuffle=True, random_state=1),
    "kfold": KFold(4, shuffle=True, random_state=0),
    "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "splits": ShuffleSplit(3, random_state=0),
    "single split": ShuffleSplit(1, random_state=0),
}


def assert_equal(estimator, X, y, cv=3, rtol=1e-5, tol=1e-11, **keywords):
    """Compare held-out probabilities, or decisions, with those of refits."""
    found = onefold.cross_validate(
        estimator, X, y, cv=cv, engine="newton", engine_options={"tol": tol}, **keywords
    )
    expected = onefold.cross_validate(estimator, X, y, cv=cv, engine="refit", **keywords)
    for fold in range(len(found.folds)):
        ours, theirs = found.fold_answers(fold), expected.fold_answers(fold)
        for name, answers in theirs.items():
            if answers.dtype.kind == "f":
                np.testing.assert_allclose(ours[name], answers, rtol=rtol, atol=rtol)
            else:
                np.testing.assert_array_equal(ours[name], answers)
    assert not any("refitted" in note for note in found.notes)
    return found


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("name", MULTINOMIAL)
def test_multinomial(name, weights, layout):
    X, y, w = three_classes()
    rows = sp.csr_array(X) if layout == "sparse" else X
    scoring = ["neg_log_loss", "accuracy"]
    assert_equal(MULTINOMIAL[name], rows, y, sample_weight=w if weights else None, scoring=scoring)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_schemes(scheme):
    X, y, w = three_classes()
    assert_equal(MULTINOMIAL["balanced"], X, y, cv=SCHEMES[scheme], sample_weight=w)


@pytest.mark.parametrize(
    ("scaler", "layout"),
    [(StandardScaler(), "dense"), (MaxAbsScaler(), "sparse")],
    ids=["standard", "sparse"],
)
@pytest.mark.parametrize("intercept", [True, False])
def test_scalers(scaler, layout, intercept):
    X, y, w = three_classes()
    X = X * [1, 10, 100, 0.1] + [3, 0, -50, 1]
    rows = sp.csr_array(X) if layout == "sparse" else X
    model = make_pipeline(scaler, LogisticRegression(fit_intercept=intercept, **TIGHT))
    assert_equal(model, rows, y, params={"logisticregression__sample_weight": w})


def test_fold_models_have_scikit_learns_attributes():
    X, y, _ = three_classes()
    labels = np.array(["a", "b", "c"])[y]
    model = MULTINOMIAL["lbfgs"]
    found = onefold.cross_validate(model, X, labels, cv=3, engine="newton", return_estimator=True)
    train = found.folds.train(0)
    own, expected = found["estimator"][0], clone(model).fit(X[train], labels[train])
    np.testing.assert_allclose(own.coef_, expected.coef_, atol=1e-5)
    np.testing.assert_allclose(own.intercept_, expected.intercept_, atol=1e-5)
    np.testing.assert_allclose(own.predict_proba(X), expected.predict_proba(X), atol=1e-5)
    assert own.predict(X).dtype == labels.dtype


def test_a_class_that_a_training_set_lacks_is_left_to_scikit_learn():
    X, y, _ = three_classes(60)
    y = np.where(np.arange(60) == 7, 3, y)
    model = LogisticRegression()
    with pytest.raises(ValueError, match="class"):
        onefold.cross_validate(model, X, y, cv=KFold(3), engine="newton")
    with pytest.warns(onefold.RefitWarning, match="lacks the class"):
        assert onefold.cross_validate(model, X, y, cv=KFold(3)).engine == "refit"


def test_classes_that_are_separable_without_penalty_are_refitted():
    X, y, _ = three_classes(60)
    X = X + 50 * np.eye(3, 4)[y]
    model = LogisticRegression(C=np.inf)
    found = onefold.cross_validate(model, X, y, cv=3, engine="newton")
    assert any("refitted" in note for note in found.notes)


def test_the_slow_twin_finds_the_same():
    X, y, w = three_classes()
    folds = _core.Folds.contiguous(len(y), 4)
    penalties = np.outer([0.1, 5.0], np.linspace(1, 2, 5))
    codes = y.astype(np.uint32)
    models = _core.SmoothModel.family("multinomial", penalties, intercept="free")
    keep, options = ["coefficients"], NewtonOptions()
    found = _core.cross_validate("newton", models, (X, codes, 3, w), folds, options, keep=keep)
    predictors, theta, *_ = newton_multinomial_predict(X, codes, 3, w, folds, penalties)
    for candidate, own in enumerate(found):
        np.testing.assert_allclose(own.outputs, predictors[:, candidate], atol=1e-6)
        np.testing.assert_allclose(own.coefficients, theta[:, candidate], atol=1e-6)
        assert own.relative_gradients.shape == (4, 1)
        assert own.relative_gradients.max() <= 1e-8
        assert own.method == "matrix-free"


def wide_rows(n=80, p=1500, seed=0):
    """Sparse rows with more features than samples, of which some are frequent, and targets."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, p), density=0.02, random_state=rng, format="csr") * 3
    common = sp.csr_array(rng.poisson(1.0, (n, 20)).astype(float))
    X = sp.csr_array(sp.hstack([X, common]))
    z = common @ rng.standard_normal(20) + rng.standard_normal(n)
    return X, z


@pytest.mark.parametrize("n", [80, 1300])
@pytest.mark.parametrize("C", [0.1, 100.0])
def test_wide_rows(C, n):
    X, z = wide_rows(n)
    y = (z > np.median(z)).astype(int)
    w = np.random.default_rng(1).uniform(0.2, 2, n)
    model = LogisticRegression(C=C, class_weight="balanced", **TIGHT)
    assert_equal(model, X, y, sample_weight=w, rtol=1e-4)
    assert_equal(model, X.toarray(), y, sample_weight=w, rtol=1e-4)
    assert_equal(make_pipeline(MaxAbsScaler(), model), X, y, rtol=1e-4)


def test_wide_rows_of_several_classes():
    X, z = wide_rows()
    y = np.digitize(z, np.quantile(z, [0.3, 0.6]))
    assert_equal(LogisticRegression(**TIGHT), X, y, rtol=1e-4)
    machine = LinearSVC(C=0.3, dual=False, tol=1e-9, max_iter=1_000_000)
    assert_equal(machine, X, y, rtol=1e-4, tol=1e-9)  # within the passes of a refit


SMOOTH = {
    "logistic": binary,
    "squared_hinge": binary,
    "poisson": count_targets,
    "gamma": count_targets,
    "tweedie": count_targets,
    "half_squared": count_targets,
    "squared_epsilon_insensitive": count_targets,
}


@pytest.mark.parametrize("intercept", [None, "free", 2.0])
@pytest.mark.parametrize("name", SMOOTH)
def test_hessians_or_none_have_the_same_optimum(name, intercept):
    X, y, w = SMOOTH[name]()
    y = 2.0 * y - 1 if name == "squared_hinge" else y.astype(float)
    targets = np.column_stack([y, y[::-1]])
    pairs = [(np.r_[:80, 20:50], np.arange(80, 120)), (np.arange(40, 120), np.arange(30))]
    for cv in (_core.Folds.contiguous(120, 4), _core.Splits(120, pairs)):
        penalties = np.outer([10.0, 0.3], np.linspace(1, 2, len(cv) + 1))
        models = _core.SmoothModel.family(name, penalties, intercept=intercept)
        options = NewtonOptions(1e-10, method="hessians")
        examples, keep = (X, targets, 0, w), ["coefficients"]
        expected = _core.cross_validate("newton", models, examples, cv, options, keep=keep)
        options = NewtonOptions(1e-10, method="matrix-free")
        for rows in (X, sp.csr_matrix(X)):
            examples = (rows, targets, 0, w)
            found = _core.cross_validate("newton", models, examples, cv, options, keep=keep)
            for ours, theirs in zip(found, expected, strict=True):
                np.testing.assert_allclose(ours.outputs, theirs.outputs, atol=1e-6)
                np.testing.assert_allclose(ours.coefficients, theirs.coefficients, atol=1e-6)
                assert ours.relative_gradients.shape == (len(cv), 2)
                assert ours.relative_gradients.max() <= 1e-10


def test_the_number_of_threads_does_not_change_a_bit():
    X, z = wide_rows(1300)
    y = np.digitize(z, np.quantile(z, [0.3, 0.6])).astype(np.uint32)
    folds = _core.Folds.contiguous(1300, 3)
    models = _core.SmoothModel.family("multinomial", [1.0], intercept="free")
    examples, options = (sp.csr_matrix(X), y, 3, None), NewtonOptions()
    one, two = (
        _core.cross_validate("newton", models, examples, folds, options, n_jobs=n_jobs)[0].outputs
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one, two)


def test_bad_arguments_are_named():
    X, y, _ = three_classes(30)
    folds, codes = _core.Folds.contiguous(30, 3), y.astype(np.uint32)

    def run(penalties, y, n_classes, **options):
        models = _core.SmoothModel.family("multinomial", penalties)
        examples = (X, y, n_classes, None)
        _core.cross_validate("newton", models, examples, folds, NewtonOptions(**options))

    with pytest.raises(ValueError, match=r"y\[\d+\] is 2: "):
        run([1.0], codes, 2)
    with pytest.raises(ValueError, match="y must be two classes or more"):
        run([1.0], y[:, None] * 1.0, 0)
    with pytest.raises(ValueError, match="penalties"):
        run(-np.ones((1, 4)), codes, 3)
    with pytest.raises(ValueError, match='there is no loss "hinge"; there are logistic,'):
        _core.SmoothModel.family("hinge", [1.0])
    with pytest.raises(ValueError, match='there is no method "lbfgs"; there are hessians,'):
        run([1.0], codes, 3, method="lbfgs")


@pytest.mark.parametrize("penalty", [10.0, 0.01])
def test_dense_and_sparse_rows_of_many_features_have_the_same_optimum(penalty):
    X, z = wide_rows()
    folds = _core.Folds.contiguous(80, 3)
    scaling = (None, np.linspace(0.5, 2, 4 * X.shape[1]).reshape(4, -1))
    models = _core.SmoothModel.family("logistic", [penalty], intercept="free", scaling=scaling)
    dense, sparse = (
        _core.cross_validate(
            "newton",
            models,
            (rows, (z > 0).astype(np.uint32), 2, None),
            folds,
            NewtonOptions(1e-11, method="matrix-free"),
        )[0]
        for rows in (X.toarray(), sp.csr_matrix(X))
    )
    np.testing.assert_allclose(dense.outputs, sparse.outputs, rtol=1e-5, atol=1e-6)
    assert max(own.relative_gradients.max() for own in (dense, sparse)) <= 1e-11
