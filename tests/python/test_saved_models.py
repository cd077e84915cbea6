"""A fitted model predicts with the parameters it was fitted with, also saved or copied."""

import copy
import io
import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone, is_regressor
from sklearn.datasets import load_iris

from onefold import _core, learners, svm

X, y = load_iris(return_X_y=True)
X, y = X[::2], np.array(["a", "b", "c"])[y[::2]]
EDGES = np.linspace(0, 9, 4)

# Another value for every parameter of every learner.
OTHERS = {
    "BernoulliNB": {
        "alpha": 0.1,
        "binarize": 3.0,
        "fit_prior": False,
        "class_prior": [0.7, 0.2, 0.1],
    },
    "ComplementNB": {
        "alpha": 0.1,
        "fit_prior": False,
        "class_prior": [0.7, 0.2, 0.1],
        "norm": True,
    },
    "GaussianDensity": {"covariance": "diagonal", "reg_covar": 0.5},
    "GaussianNB": {"priors": [0.7, 0.2, 0.1], "var_smoothing": 0.5},
    "HistogramDensity": {
        "n_bins": 3,
        "range": (0.0, 9.0),
        "edges": [EDGES] * 4,
        "smoothing": 0.1,
    },
    "LeastSquaresSGD": {"step": 0.1, "radius": 0.1, "fit_intercept": True},
    "LogisticSGD": {"alpha": 0.5, "eta0": 1.0, "fit_intercept": False},
    "MultinomialNB": {"alpha": 0.1, "fit_prior": False, "class_prior": [0.7, 0.2, 0.1]},
    "OnlineKMeans": {"n_clusters": 3},
    "PassiveAggressive": {"C": 0.01, "variant": "PA-II", "fit_intercept": False},
    "Pegasos": {"alpha": 0.5, "project": True, "fit_intercept": True},
    "Perceptron": {"fit_intercept": False},
    "RecursiveLeastSquares": {"alpha": 9.0, "fit_intercept": False},
    "RidgeStatistics": {"alpha": 9.0, "fit_intercept": False},
    "SVC": {
        "C": 0.01,
        "kernel": "poly",
        "degree": 2,
        "gamma": 5.0,
        "coef0": 1.0,
        "shrinking": False,
        "tol": 0.1,
        "max_iter": 2,
        "class_weight": "balanced",
        "random_state": 0,
        "kernel_mb": 1.0,
        "n_jobs": 2,
    },
    "SVR": {
        "kernel": "poly",
        "degree": 2,
        "gamma": 5.0,
        "coef0": 1.0,
        "tol": 0.1,
        "C": 0.01,
        "epsilon": 0.5,
        "shrinking": False,
        "max_iter": 2,
        "kernel_mb": 1.0,
        "n_jobs": 2,
    },
}
# These choose the form of answers, not the model: they may change after fit, as in scikit-learn.
ANSWERS = {"decision_function_shape", "break_ties"}
CASES = [(name, parameter) for name, others in OTHERS.items() for parameter in others]

METHODS = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "score_samples",
    "transform",
)
ATTRIBUTES = (
    "coef_",
    "intercept_",
    "theta_",
    "var_",
    "epsilon_",
    "class_prior_",
    "class_count_",
    "class_log_prior_",
    "feature_log_prob_",
    "feature_count_",
    "feature_all_",
    "means_",
    "covariances_",
    "cluster_centers_",
)


def make(name):
    return getattr(svm if name.startswith("SV") else learners, name)()


def labels_for(estimator):
    """Numbers for a regression, words for a classification; others do not look at them."""
    return X[:, 0] if is_regressor(estimator) else y


def fitted(estimator):
    return estimator.fit(X, labels_for(estimator))


def everything(model):
    """All that a fitted model shows."""
    shown = {name: getattr(model, name)(X) for name in METHODS if hasattr(model, name)}
    return shown | {name: getattr(model, name) for name in ATTRIBUTES if hasattr(model, name)}


def joblib_copy(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


COPIES = {
    "itself": lambda model: model,
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    "joblib": joblib_copy,
}


def test_every_parameter_is_listed():
    for name in [*learners.__all__, *svm.__all__]:
        assert set(OTHERS[name]) == set(make(name).get_params()) - ANSWERS, name


@pytest.mark.parametrize(("name", "parameter"), CASES, ids=lambda part: str(part))
def test_parameters_set_after_fit_wait_for_the_next_fit(name, parameter):
    model = fitted(make(name))
    expected = everything(model)
    assert expected
    model.set_params(**{parameter: OTHERS[name][parameter]})
    for kind, copied in COPIES.items():
        other = copied(model)
        assert str(other.get_params()) == str(model.get_params())
        found = everything(other)
        assert found.keys() == expected.keys()
        for shown, value in expected.items():
            np.testing.assert_array_equal(found[shown], value, err_msg=f"{shown} of {kind}")


@pytest.mark.parametrize("name", learners.__all__)
def test_parameters_set_after_fit_change_the_next_fit(name):
    for parameter, value in OTHERS[name].items():
        made = make(name).set_params(**{parameter: value})
        model = fitted(make(name)).set_params(**{parameter: value})
        for one in (made, model):
            fitted(one)
        found, expected = everything(model), everything(made)
        for shown in expected:
            np.testing.assert_array_equal(found[shown], expected[shown])


@pytest.mark.parametrize(
    ("name", "parameter"), [case for case in CASES if not case[0].startswith("SV")], ids=str
)
def test_partial_fit_goes_on_with_the_parameters_of_the_first_call(name, parameter):
    model, plain = fitted(make(name)), fitted(make(name))
    model.set_params(**{parameter: OTHERS[name][parameter]})
    labels = labels_for(plain)
    copies = [copied(model) for copied in COPIES.values()]
    plain.partial_fit(X[:50], labels[:50])
    for one in copies:
        one.partial_fit(X[:50], labels[:50])
    expected = everything(plain)
    for one in copies:
        for shown, value in everything(one).items():
            np.testing.assert_array_equal(value, expected[shown])


def test_a_shallow_copy_keeps_its_model_when_the_other_learns():
    model = fitted(make("Pegasos"))
    other = copy.copy(model)
    before = everything(other)
    model.partial_fit(X[:50], y[:50])
    assert not np.array_equal(model.coef_, before["coef_"])
    np.testing.assert_array_equal(other.coef_, before["coef_"])


def test_a_clone_is_not_fitted_and_has_the_new_parameters():
    model = fitted(make("Pegasos")).set_params(alpha=0.5)
    assert clone(model).alpha == 0.5
    assert not hasattr(clone(model), "_learner")


def test_a_saved_model_of_other_sizes_is_refused():
    model = fitted(make("GaussianNB"))._learner
    _, arguments = model.__reduce__()
    name, n_features, n_targets, parameters, state = arguments
    for wrong in (
        (name, n_features, n_targets, parameters, state[1:]),
        (name, n_features + 1, n_targets, parameters, state),
        (name, 2**60, n_targets, parameters, state),
        (name, n_features, 2**60, parameters, state),
        (name, n_features, n_targets + 1, parameters, state),
    ):
        with pytest.raises(ValueError, match="state: expected length"):
            _core.Learner(*wrong)
    for wrong in (
        ("perceptrons", n_features, n_targets, {}, state),
        (name, n_features, n_targets, {"alpha": 1.0}, state),
        (name, 0, n_targets, parameters, state),
    ):
        with pytest.raises(ValueError, match=r"learner|alpha|n_features"):
            _core.Learner(*wrong)


def test_a_list_that_holds_itself_is_no_parameter():
    endless = []
    endless.append(endless)
    with pytest.raises(TypeError, match="variant must be a number, text"):
        learners.PassiveAggressive(variant=endless).fit(X, y)
