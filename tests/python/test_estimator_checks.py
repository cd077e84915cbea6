"""scikit-learn's own checks of every public estimator that no other file puts through them."""

import warnings

from sklearn.linear_model import LinearRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

import onefold
from onefold.linear_model import LogisticRegressionCV

KNOWN_DIFFERENCES = {
    "LogisticRegressionCV": {
        "check_non_transformer_estimators_n_iter": "the folds are solved together: n_iter_ is 0"
    },
    "SequentialFeatureSelector of GaussianNB": {
        "check_estimator_sparse_tag": "the engine merge takes sparse rows, GaussianNB does not",
        "check_fit2d_1sample": "the error of the splitter is in other words",
    },
    "RFECV": {"check_supervised_y_2d": "as of scikit-learn's: linear regression takes 2-D y"},
}
"""Checks that an estimator does not pass, by its name, each with the reason."""


def known_differences(estimator):
    name = type(estimator).__name__
    if isinstance(getattr(estimator, "estimator", None), GaussianNB):
        name += " of GaussianNB"
    return KNOWN_DIFFERENCES.get(name, {})


@parametrize_with_checks(
    [
        LogisticRegressionCV(Cs=[0.1, 1.0], cv=3),
        onefold.RFECV(LinearRegression(), cv=3),
        onefold.SequentialFeatureSelector(Ridge(), n_features_to_select=1, cv=3),
        onefold.SequentialFeatureSelector(GaussianNB(), n_features_to_select=1, cv=3),
    ],
    expected_failed_checks=known_differences,
)
def test_scikit_learns_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)
