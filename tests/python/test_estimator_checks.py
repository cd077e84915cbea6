"""scikit-learn's own checks of every public estimator."""

import inspect
import warnings

import pytest
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks
from versions import SKLEARN

import onefold
from onefold import (
    calibration,
    ensemble,
    feature_selection,
    learners,
    linear_model,
    model_selection,
    svm,
)

PENALTIES = {"alphas": 20} if SKLEARN >= (1, 7) else {"n_alphas": 20}
SEARCH = {"cv": 2, "error_score": "raise"}
ESTIMATORS = [
    *(getattr(learners, name)() for name in learners.__all__),
    linear_model.LassoCV(cv=3, **PENALTIES),
    linear_model.ElasticNetCV(cv=3, **PENALTIES),
    linear_model.LogisticRegressionCV(Cs=[0.1, 1.0], cv=3),
    # With a γ of the data's own, weights and repeated rows are different problems; with a loose
    # tolerance, they have different solutions.
    svm.SVC(gamma=0.1, tol=1e-12),
    svm.SVR(gamma=0.1, tol=1e-12),
    onefold.GridSearchCV(Ridge(), {"alpha": [0.1, 1]}, **SEARCH),
    onefold.GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 2]}, engine="refit", **SEARCH),
    onefold.RandomizedSearchCV(Ridge(), {"alpha": [0.1, 1]}, n_iter=2, random_state=0, **SEARCH),
    model_selection.HalvingGridSearchCV(Ridge(), {"alpha": [0.1, 1]}, **SEARCH),
    model_selection.HalvingRandomSearchCV(Ridge(), {"alpha": [0.1, 1]}, random_state=0, **SEARCH),
    onefold.CalibratedClassifierCV(GaussianNB(), ensemble=False, cv=2),
    onefold.StackingClassifier([("bayes", GaussianNB())], cv=2),
    onefold.StackingRegressor([("ridge", Ridge())], cv=2),
    onefold.TunedThresholdClassifierCV(GaussianNB(), cv=2, thresholds=20),
    onefold.RFECV(LinearRegression(), cv=3),
    onefold.SequentialFeatureSelector(Ridge(), n_features_to_select=1, cv=3),
    onefold.SequentialFeatureSelector(GaussianNB(), n_features_to_select=1, cv=3),
]

WORDS = "the error is in other words"
OUTPUTS = {"check_supervised_y_2d": "as of scikit-learn's: Ridge takes several outputs"}
HALVING = OUTPUTS | {
    "check_fit2d_1sample": "as of scikit-learn's: the smallest rung has more rows",
}
ONE_STEP_A_ROW = "a row of weight 2 makes one step, two rows of weight 1 make two"
KNOWN_DIFFERENCES = {
    "LogisticRegressionCV": {
        "check_non_transformer_estimators_n_iter": "the folds are solved together: n_iter_ is 0"
    },
    "SequentialFeatureSelector of GaussianNB": {
        "check_fit2d_1sample": "the error of the splitter is in other words",
    },
    "RFECV of LinearRegression": OUTPUTS,
    "GridSearchCV of Ridge": OUTPUTS,
    "HalvingGridSearchCV of Ridge": HALVING,
    "HalvingRandomSearchCV of Ridge": HALVING,
    "RandomizedSearchCV of Ridge": OUTPUTS,
    "CalibratedClassifierCV of GaussianNB": {
        "check_dtype_object": WORDS,
        "check_estimators_empty_data_messages": WORDS,
        "check_classifiers_one_label": "scikit-learn's class cannot predict one class, either",
    },
    "StackingClassifier": {"check_fit2d_1sample": WORDS},
}
"""Checks that an estimator does not pass, by its name, each with the reason."""


def known_differences(estimator):
    if getattr(estimator, "_is_order_sensitive", False):
        kinds = ("dense", "sparse")
        return {f"check_sample_weight_equivalence_on_{kind}_data": ONE_STEP_A_ROW for kind in kinds}
    name = type(estimator).__name__
    inner = getattr(estimator, "estimator", None)
    if inner is not None:
        name += f" of {type(inner).__name__}"
    return KNOWN_DIFFERENCES.get(name, {})


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=known_differences)
def test_scikit_learns_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            check(estimator)
        except Exception:
            # Some checks have too few rows to tune a threshold: scikit-learn's class fails, too.
            if not isinstance(estimator, onefold.TunedThresholdClassifierCV):
                raise
            parameters = estimator.get_params(deep=False)
            del parameters["engine"]
            with pytest.raises((AssertionError, ValueError)):
                check(TunedThresholdClassifierCV(**parameters))


def test_no_public_estimator_is_left_out():
    modules = (onefold, calibration, ensemble, feature_selection, learners, linear_model,
               model_selection, svm)  # fmt: skip
    public = {
        value
        for module in modules
        for value in (getattr(module, name) for name in module.__all__)
        if inspect.isclass(value) and hasattr(value, "fit")
    }
    # What these accept and refuse is up to the models in them: names, categories, missing values.
    adapters = {onefold.OneRowClassifier, onefold.OneRowRegressor}
    assert public == {type(estimator) for estimator in ESTIMATORS} | adapters
