"""Losses of samples are those of scikit-learn's metrics; results are compared by them."""

import numpy as np
import pytest
import sklearn.metrics as metrics
from scipy.stats import t as student
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GroupKFold, RepeatedKFold, ShuffleSplit
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import onefold
from onefold.learners import GaussianDensity, OnlineKMeans

X, y = load_diabetes(return_X_y=True)
X, y = X[:200], y[:200]
ROWS, LABELS = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[LABELS]
TWO = LABELS > 0


def brier(y, p):
    """scikit-learn has it for more than two classes from version 1.7 on."""
    hot = (np.unique(y) == np.asarray(y)[:, None]).astype(float)
    total = np.square(hot - p).sum(axis=1).mean()
    return total / 2 if p.shape[1] == 2 else total


def of_two_columns(metric):
    return lambda y, p: metric(y, p[:, 1] if p.shape[1] == 2 else p)


CASES = [
    ("zero-one", GaussianNB(), NAMES, "predictions", metrics.zero_one_loss),
    ("hinge", SVC(), NAMES[TWO], "decision_values", metrics.hinge_loss),
    ("hinge", SVC(), NAMES, "decision_values", metrics.hinge_loss),
    ("log", GaussianNB(), NAMES[TWO], "probabilities", metrics.log_loss),
    ("log", GaussianNB(), NAMES, "probabilities", metrics.log_loss),
    ("Brier", GaussianNB(), TWO, "probabilities", of_two_columns(metrics.brier_score_loss)),
    ("Brier", GaussianNB(), NAMES, "probabilities", brier),
    ("squared error", Ridge(), y, "predictions", metrics.mean_squared_error),
    ("absolute error", Ridge(), y, "predictions", metrics.mean_absolute_error),
    (
        "absolute error",
        Ridge(),
        np.stack([y, y[::-1]], axis=1),
        "predictions",
        metrics.mean_absolute_error,
    ),
]


def rows_of(targets):
    return {len(X): X, len(ROWS): ROWS}.get(len(targets), ROWS[TWO])


@pytest.mark.parametrize(
    ("loss", "estimator", "targets", "answer", "metric"), CASES, ids=range(len(CASES))
)
def test_means_of_losses_are_the_metrics_of_scikit_learn(loss, estimator, targets, answer, metric):
    result = onefold.cross_validate(estimator, rows_of(targets), targets, cv=4)
    losses = result.losses_in_test_order(loss)
    assert losses.mean() == pytest.approx(metric(targets, getattr(result, answer)))
    for fold, rows in enumerate(np.split(result.folds.rows, result.folds.starts[1:-1])):
        own = losses[result.folds.starts[fold] : result.folds.starts[fold + 1]]
        expected = metric(targets[rows], getattr(result, answer)[rows])
        assert own.mean() == pytest.approx(expected)


def test_unsupervised_losses():
    density = onefold.cross_validate(GaussianDensity(), ROWS, cv=5)
    losses = density.losses_in_test_order("negative log density")
    np.testing.assert_array_equal(losses, -density.log_densities[density.folds.rows])
    clusters = onefold.cross_validate(OnlineKMeans(), ROWS, cv=5)
    losses = clusters.losses_in_test_order("squared distance")
    nearest = np.square(clusters.distances.min(axis=1))
    np.testing.assert_array_equal(losses, nearest[clusters.folds.rows])


def test_losses_that_are_not_known_are_named():
    ridge = onefold.cross_validate(Ridge(), X, y)
    machine = onefold.cross_validate(SVC(decision_function_shape="ovo"), ROWS[TWO], NAMES[TWO])
    several = onefold.cross_validate(
        MultiOutputClassifier(DecisionTreeClassifier(random_state=0)),
        ROWS,
        np.stack([LABELS, LABELS[::-1]], axis=1),
        engine="refit",
    )
    for result, loss, message in (
        (ridge, "surprise", "loss must be one of zero-one, squared error"),
        (ridge, "log", "needs predict_proba of every sample; what is known: predict"),
        (machine, "log", "what is known: predict, decision_function"),
        (machine, "squared error", "needs numbers"),
        (several, "zero-one", "one label per sample"),
        (several, "log", "needs predict_proba"),
        (onefold.cross_validate(GaussianDensity(), ROWS), "zero-one", "needs targets"),
    ):
        with pytest.raises(ValueError, match=message):
            result.losses_in_test_order(loss)
    four = np.arange(len(ROWS)) % 4
    pairs = onefold.cross_validate(SVC(decision_function_shape="ovo"), ROWS, four)
    with pytest.raises(ValueError, match="one column per class"):
        pairs.losses_in_test_order("hinge")


CVS = {
    "folds": 5,
    "loo": "loo",
    "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "drawn": ShuffleSplit(4, random_state=0),
}


def mean_error(result, fold):
    own = result.fold_answers(fold)
    return -np.abs(y[own["rows"]] - own["predict"]).mean()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize("cv", CVS)
def test_results_are_compared_by_a_loss(cv):
    ridge = onefold.cross_validate(Ridge(0.1), X, y, cv=CVS[cv])
    plain = onefold.cross_validate(LinearRegression(), X, y, cv=ridge.folds)
    found = onefold.compare(ridge, plain, loss="absolute error", rope=0.5)
    assert found.metric == "negative absolute error loss"
    folds = ridge.folds
    means = np.array(
        [[mean_error(result, i) for i in range(len(folds))] for result in (ridge, plain)]
    )
    paired = means[0] - means[1]
    row = int(np.flatnonzero(found.candidate == 0)[0])
    assert found.mean[row] == pytest.approx(means[0].mean())
    assert found.difference[row] == pytest.approx(paired.mean())
    n_test = np.mean([len(folds.test(i)) for i in range(len(folds))])
    n_train = np.mean([len(folds.train(i)) for i in range(len(folds))])
    corrected = np.sqrt((1 / len(folds) + n_test / n_train) * paired.var(ddof=1))
    assert found.corrected_error[row] == pytest.approx(corrected)
    p = 2 * student.sf(abs(paired.mean() / corrected), len(folds) - 1)
    assert found.p[row] == pytest.approx(p)
    if cv in ("folds", "loo"):
        assert found.interval.loss == "absolute error"
        assert found.interval.mean == pytest.approx(
            np.mean(np.abs(y - ridge.predictions) - np.abs(y - plain.predictions))
        )
    else:
        assert found.interval is None
        assert "not a partition" in found.notes[0]


@pytest.mark.filterwarnings("ignore::onefold.RefitWarning")
def test_a_search_is_compared_by_a_loss_as_results_are():
    grid = {"C": [0.01, 1.0]}
    search = onefold.GridSearchCV(LogisticRegression(), grid, keep="all", scoring="neg_log_loss")
    search.fit(ROWS[TWO], NAMES[TWO])
    results = search.result_.results
    for loss in ("zero-one", "hinge"):
        ours = search.compare(to=1, loss=loss)
        theirs = onefold.compare(results[0], results[1], loss=loss)
        for name in ("candidate", "mean", "difference", "std_error", "corrected_error", "t", "p"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
        assert ours.intervals == theirs.intervals
    assert search.compare(loss="hinge").to == search.best_index_


def test_the_usual_loss_is_known_for_all_candidates_of_a_search():
    alphas = [0.1, 1.0, 10.0]
    search = onefold.GridSearchCV(Ridge(), {"alpha": alphas}, cv=5).fit(X, y)
    whole = onefold.GridSearchCV(Ridge(), {"alpha": alphas}, cv=5, keep="all").fit(X, y)
    assert repr(search.compare(loss="squared error")) == repr(whole.compare(loss="squared error"))
    assert repr(whole.compare(loss="absolute error")).startswith("negative absolute error loss of")
    with pytest.raises(ValueError, match=r"of candidate 1, alpha=1 is not known.*keep='all'"):
        search.compare(loss="absolute error")
    several = onefold.GridSearchCV(
        Ridge(), {"alpha": alphas}, scoring=["r2", "neg_mean_absolute_error"], refit=False
    ).fit(X, y)
    found = several.compare(loss="squared error")
    assert found.to == found.candidate[0]


def test_groups_have_no_interval():
    search = onefold.GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=GroupKFold(4))
    search.fit(X, y, groups=np.arange(len(X)) // 4)
    found = search.compare(loss="squared error")
    assert found.interval is None
    assert "in groups" in found.notes[0]


def test_a_metric_and_a_loss_are_one_too_many():
    search = onefold.GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}).fit(X, y)
    result = search.result_.chosen
    for call in (search.compare, lambda **own: onefold.compare(result, result, **own)):
        with pytest.raises(ValueError, match="one of metric='score' and loss='squared error'"):
            call(metric="score", loss="squared error")
