"""Naive Bayes behind a scaler equals its refits, by models that are merged and rescaled."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from pairwise import pairwise
from sklearn.datasets import load_digits
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

import onefold
from onefold import learners

N = 48
X, CODES = load_digits(n_class=3, return_X_y=True)
X, CODES = X[:N, 10:30] + np.random.default_rng(1).random((N, 20)), CODES[:N]
y = np.array(["zero", "one", "two"])[CODES]
WEIGHTS = np.random.default_rng(0).uniform(0, 2, N)
SCALERS = {
    "standard": StandardScaler(),
    "centred": StandardScaler(with_std=False),
    "divided": StandardScaler(with_mean=False),
    "min-max": MinMaxScaler(),
    "min-max above zero": MinMaxScaler(feature_range=(0.5, 3)),
    "min-max about zero": MinMaxScaler(feature_range=(-1, 1)),
    "max-abs": MaxAbsScaler(),
    "robust": RobustScaler(),
    "robust, uncentred": RobustScaler(with_centering=False, unit_variance=True),
}
POSITIVE = ["divided", "min-max", "min-max above zero", "max-abs", "robust, uncentred"]
MODELS = {
    "Gaussian": GaussianNB(),
    "smoothed Gaussian": GaussianNB(var_smoothing=0.03, priors=[0.5, 0.25, 0.25]),
    "multinomial": MultinomialNB(),
    "multinomial, little smoothing": MultinomialNB(alpha=1e-10, fit_prior=False),
    "complement": ComplementNB(alpha=0.5),
    "normed complement": ComplementNB(norm=True),
    "native": learners.GaussianNB(var_smoothing=1e-3),
}
CV = {
    "k-fold": 5,
    "shuffled": KFold(7, shuffle=True, random_state=0),
    "stratified": StratifiedKFold(4, shuffle=True, random_state=0),
    "repeated": RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
    "groups": list(GroupKFold(4).split(X, y, np.sqrt(np.arange(N)).astype(int))),
    "loo": "loo",
    "Monte-Carlo": ShuffleSplit(3, test_size=0.3, random_state=0),
    "time series": TimeSeriesSplit(3),
}
PARTITIONS = [kind for kind in CV if kind not in ("Monte-Carlo", "time series")]


def assert_same(fast, slow):
    np.testing.assert_allclose(fast["test_score"], slow["test_score"])
    for fold in range(len(slow.folds)):
        found, expected = fast.fold_answers(fold), slow.fold_answers(fold)
        np.testing.assert_array_equal(found["predict"], expected["predict"])
        np.testing.assert_allclose(
            found["predict_proba"], expected["predict_proba"], rtol=1e-6, atol=1e-9
        )


def is_case(scaler, model, cv):
    """Counts are not negative; leave-one-out, which is many refits, of three models."""
    takes_it = scaler in POSITIVE or "Gaussian" in model or model == "native"
    return takes_it and (cv != "loo" or model in ("Gaussian", "multinomial", "complement"))


@pytest.mark.parametrize(("scaler", "model", "cv"), pairwise(SCALERS, MODELS, CV, allowed=is_case))
@pytest.mark.filterwarnings("ignore::onefold.RefitWarning")
def test_scaled_naive_bayes_equals_its_refits(scaler, model, cv):
    pipeline = make_pipeline(SCALERS[scaler], MODELS[model])
    for weights in [None, WEIGHTS] if cv == "shuffled" else [None]:
        keywords = {"cv": CV[cv], "sample_weight": weights}
        fast = onefold.cross_validate(pipeline, X, y, **keywords)
        slow = onefold.cross_validate(pipeline, X, y, engine="refit", **keywords)
        if cv in PARTITIONS:
            assert fast.engine == "merge"
            assert fast.cost["rows_fed"] <= 4 * N * len(fast.folds) / min(len(fast.folds), N)
        assert_same(fast, slow)


@pytest.mark.parametrize(
    ("scaler", "model", "cv"),
    pairwise(
        ["divided", "max-abs", "robust, uncentred"],
        [model for model in MODELS if "Gaussian" not in model],  # these take dense rows only
        ["k-fold", "repeated", "loo"],
    ),
)
def test_sparse_rows_stay_sparse(scaler, model, cv):
    rows = np.where(np.random.default_rng(2).random(X.shape) < 0.3, X, 0)
    pipeline = make_pipeline(SCALERS[scaler], MODELS[model])
    dense = onefold.cross_validate(pipeline, rows, y, cv=CV[cv])
    sparse = onefold.cross_validate(pipeline, sp.csr_array(rows), y, cv=CV[cv])
    assert dense.engine == sparse.engine == "merge"
    assert_same(sparse, dense)


def test_values_far_from_zero():
    rows = 1e6 + X
    for model in ["Gaussian", "multinomial", "complement"]:
        pipeline = make_pipeline(MinMaxScaler(), MODELS[model])
        fast = onefold.cross_validate(pipeline, rows, y, cv="loo")
        slow = onefold.cross_validate(pipeline, rows, y, cv="loo", engine="refit")
        assert fast.engine == "merge"
        np.testing.assert_allclose(fast.probabilities, slow.probabilities, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_do_not_change_a_bit(threads):
    for cv in [5, "loo"]:
        pipeline = make_pipeline(StandardScaler(), GaussianNB())
        one = onefold.cross_validate(pipeline, X, y, cv=cv, n_jobs=1)
        several = onefold.cross_validate(pipeline, X, y, cv=cv, n_jobs=threads)
        np.testing.assert_array_equal(one.probabilities, several.probabilities)


def test_candidates_of_a_search():
    grid = [
        {"gaussiannb__var_smoothing": [1e-9, 1e-2]},
        {"standardscaler": [MinMaxScaler(), RobustScaler()]},
        {"gaussiannb": [MultinomialNB(alpha=alpha) for alpha in (0.1, 1.0)]}
        | {"standardscaler": [MaxAbsScaler()]},
    ]
    pipeline = make_pipeline(StandardScaler(), GaussianNB())
    ours = onefold.GridSearchCV(pipeline, grid, cv=4).fit(X, y)
    theirs = GridSearchCV(pipeline, grid, cv=4).fit(X, y)
    found, expected = ours.cv_results_, theirs.cv_results_
    np.testing.assert_allclose(found["mean_test_score"], expected["mean_test_score"])


@pytest.mark.filterwarnings("ignore::onefold.RefitWarning")
def test_what_is_not_affine_or_negative_is_refitted():
    with pytest.raises(ValueError, match="BernoulliNB of scaled rows does not follow"):
        onefold.cross_validate(
            make_pipeline(StandardScaler(), BernoulliNB()), X, y, engine="merge", cv=3
        )
    for scaler in [StandardScaler(), MinMaxScaler((-1, 1)), RobustScaler()]:
        pipeline = make_pipeline(scaler, MultinomialNB())
        with pytest.raises(ValueError, match="MultinomialNB takes no negative values"):
            onefold.cross_validate(pipeline, X, y, engine="merge", cv=3)
        with pytest.raises(ValueError, match="Negative values in data passed to MultinomialNB"):
            onefold.cross_validate(pipeline, X, y, cv=3, error_score="raise")
    with pytest.raises(ValueError, match="takes no negative values"):
        onefold.cross_validate(
            make_pipeline(MaxAbsScaler(), MultinomialNB()), -X, y, engine="merge", cv=3
        )
    with pytest.raises(TypeError, match="takes dense rows only"):
        onefold.cross_validate(
            make_pipeline(StandardScaler(), GaussianNB()), sp.csr_array(X), y, engine="merge"
        )


def test_the_scaler_gets_weights_of_its_own():
    pipeline = make_pipeline(StandardScaler(), GaussianNB(var_smoothing=0.1))
    params = {"standardscaler__sample_weight": WEIGHTS}
    for cv in [4, "loo"]:
        fast = onefold.cross_validate(pipeline, X, y, cv=cv, params=params)
        slow = onefold.cross_validate(pipeline, X, y, cv=cv, params=params, engine="refit")
        plain = onefold.cross_validate(pipeline, X, y, cv=cv)
        assert fast.engine == "merge"
        assert_same(fast, slow)
        assert np.abs(fast.probabilities - plain.probabilities).max() > 1e-6


@pytest.mark.parametrize("of_scaler", [False, True])
@pytest.mark.parametrize("of_model", [False, True])
def test_steps_get_the_weights_they_request(of_scaler, of_model):
    if not (of_scaler or of_model):
        return
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=of_scaler)
        model = GaussianNB(var_smoothing=0.1).set_fit_request(sample_weight=of_model)
        model.set_score_request(sample_weight=False)
        pipeline = make_pipeline(scaler, model)
        keywords = {"cv": 4, "params": {"sample_weight": WEIGHTS}}
        fast = onefold.cross_validate(pipeline, X, y, **keywords)
        slow = onefold.cross_validate(pipeline, X, y, engine="refit", **keywords)
    assert fast.engine == "merge"
    assert_same(fast, slow)


NATIVE = [
    (learners.GaussianNB(), GaussianNB()),
    (learners.MultinomialNB(), MultinomialNB()),
]


@pytest.mark.parametrize(("learner", "same"), NATIVE, ids=str)
def test_native_learners_behind_a_scaler_are_those_of_scikit_learn(learner, same):
    ours, theirs = (
        onefold.cross_validate(make_pipeline(MaxAbsScaler(), own), X, y, cv=4, engine=engine)
        for own, engine in ((learner, "merge"), (same, "refit"))
    )
    np.testing.assert_allclose(ours.probabilities, theirs.probabilities, atol=1e-9)
