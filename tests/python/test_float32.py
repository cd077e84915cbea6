"""Rows of single precision: the scores of scikit-learn, whatever the engine."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.model_selection as sk
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_diabetes, load_iris
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.feature_selection import SelectKBest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.impute import SimpleImputer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    ElasticNet,
    GammaRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    TweedieRegressor,
)
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import onefold
from onefold.learners import Pegasos

CASES = [
    (GaussianNB(), "merge"),
    (BernoulliNB(binarize=2.0), "merge"),
    (Ridge(0.1, tol=1e-9), "virtual"),
    (make_pipeline(StandardScaler(with_mean=False), Ridge(0.1, tol=1e-9)), "virtual"),
    (LogisticRegression(tol=1e-6, max_iter=2000), "newton"),
    (Lasso(0.1, tol=1e-6), "path"),
    (SVC(tol=1e-6), "seeded"),
    (SVR(C=10.0, tol=1e-6), "seeded"),
    (KNeighborsClassifier(), "neighbors"),
    (KNeighborsRegressor(weights="distance"), "neighbors"),
    (Pegasos(), "tree"),
    (DecisionTreeClassifier(random_state=0), "refit"),
]


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize(("estimator", "engine"), CASES, ids=lambda own: str(own)[:24])
def test_scores_of_single_precision_are_those_of_scikit_learn(estimator, engine, layout):
    X, y = (load_iris if is_classifier(estimator) else load_diabetes)(return_X_y=True)
    if isinstance(estimator, Pegasos):
        y = (y == 0).astype(int)
    if layout == "csr" and isinstance(estimator, GaussianNB):
        pytest.skip("scikit-learn's GaussianNB takes dense rows only")
    X = X.astype(np.float32)
    X = sp.csr_array(X) if layout == "csr" else X
    kept = X.copy()
    cv = sk.KFold(5, shuffle=True, random_state=0)
    ours = onefold.cross_validate(estimator, X, y, cv=cv, engine=engine)
    assert ours.engine == engine
    if isinstance(estimator, Pegasos):  # scikit-learn has none; single precision is exact here
        double = onefold.cross_validate(estimator, X.astype(np.float64), y, cv=cv, engine=engine)
        np.testing.assert_array_equal(ours.decision_values, double.decision_values)
        return
    # scikit-learn computes in single precision where an engine does not: 24 bits, conditioned.
    theirs = sk.cross_validate(clone(estimator), X, y, cv=cv)["test_score"]
    np.testing.assert_allclose(ours["test_score"], theirs, atol=1e-5)
    predicted = sk.cross_val_predict(clone(estimator), X, y, cv=cv)
    np.testing.assert_allclose(ours.predictions, predicted, rtol=1e-3)
    assert ours.predictions.dtype == predicted.dtype
    assert X.dtype == np.float32
    assert (kept != X).sum() == 0


@pytest.mark.parametrize("scaler", [MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler])
@pytest.mark.parametrize("cv", [sk.KFold(4), sk.ShuffleSplit(4, random_state=0)], ids=str)
def test_features_are_constant_by_the_precision_of_the_rows(scaler, cv):
    """Of numbers of size 1e-7, as scikit-learn decides for rows of single precision."""
    rng = np.random.default_rng(0)
    signs = rng.normal(size=(40, 3))
    y = signs @ [1.0, 2.0, 0.5]
    for dtype in (np.float32, np.float64):
        X = (signs * 1e-7).astype(dtype)
        model = make_pipeline(scaler(), Ridge(solver="svd"))
        ours = onefold.cross_validate(model, X, y, cv=cv)["test_score"]
        theirs = sk.cross_validate(model, X, y, cv=cv)["test_score"]
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


PRECISIONS = [
    *(LinearRegression(), Ridge(), Ridge(solver="svd"), KernelRidge(), Lasso(0.1), ElasticNet(0.1)),
    *(PoissonRegressor(), GammaRegressor(), TweedieRegressor(), SVR()),
    GaussianProcessRegressor(alpha=0.1, optimizer=None),
    LinearSVR(loss="squared_epsilon_insensitive", dual=False),
    *(KNeighborsRegressor(), KNeighborsRegressor(weights="distance"), DecisionTreeRegressor()),
    *(make_pipeline(StandardScaler(), Ridge()), make_pipeline(MinMaxScaler(), Lasso(0.1))),
    make_pipeline(PolynomialFeatures(), StandardScaler(), Ridge()),
    make_pipeline(SimpleImputer(), SelectKBest(k=2), LinearRegression()),
    make_pipeline(OneHotEncoder(handle_unknown="ignore"), Ridge()),
    *(LogisticRegression(max_iter=1000), RidgeClassifier(), LinearSVC(), SVC()),
    *(KNeighborsClassifier(), NearestCentroid(), DecisionTreeClassifier(random_state=0)),
    *(GaussianNB(), MultinomialNB(), BernoulliNB(), ComplementNB()),
    *(LinearDiscriminantAnalysis(), LinearDiscriminantAnalysis(solver="lsqr")),
    *(QuadraticDiscriminantAnalysis(), make_pipeline(StandardScaler(), GaussianNB())),
    make_pipeline(MaxAbsScaler(), LogisticRegression(max_iter=1000)),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("X_type", ["float32", "float64", "int64", "frame"])
@pytest.mark.parametrize("y_type", ["float32", "float64"])
@pytest.mark.parametrize("estimator", PRECISIONS, ids=lambda own: str(own)[:60])
def test_answers_have_the_precision_of_scikit_learns(estimator, X_type, y_type):
    X, y = (load_iris if is_classifier(estimator) else load_diabetes)(return_X_y=True)
    X, y = np.abs(100 * X[::2]).round(), y[::2].astype(y_type)
    frame = pd.DataFrame(X, columns=[f"feature {number}" for number in range(X.shape[1])])
    X = frame.astype("float32") if X_type == "frame" else X.astype(X_type)
    methods = [
        method
        for method in ("predict", "predict_proba", "decision_function")
        if hasattr(estimator, method)
    ]
    for method in methods:
        ours = onefold.cross_val_predict(estimator, X, y, cv=3, method=method)
        theirs = sk.cross_val_predict(clone(estimator), X, y, cv=3, method=method)
        assert ours.dtype == theirs.dtype, method
        result = onefold.cross_validate(estimator, X, y, cv=3)
        assert method != "predict" or result.predictions.dtype == theirs.dtype
