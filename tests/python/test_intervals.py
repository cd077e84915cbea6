"""Confidence intervals of test errors, and comparisons of two results."""

import numpy as np
import pytest
import sklearn.model_selection as sk
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import onefold
from onefold.learners import GaussianDensity, Pegasos
from onefold.stats._interval import interval

X, y = load_diabetes(return_X_y=True)
MSE = "neg_mean_squared_error"


def slow_interval(losses, labels, level, *, is_difference=False):
    """Bayle et al. 2020, fold by fold, with the corrections for small samples."""
    n, k = len(losses), labels.max() + 1
    total, freedom = 0.0, n - k
    for fold in range(k):
        own = [loss for loss, label in zip(losses, labels, strict=True) if label == fold]
        total += sum((loss - sum(own) / len(own)) ** 2 for loss in own)
    if k == n:
        total, freedom = sum((loss - losses.mean()) ** 2 for loss in losses), n - 1
    centred, mean = losses - losses.mean(), losses.mean()
    variance = max(total / freedom, (centred**2).sum() / (n - 1)) * (1 + 20 / n)
    excess = max(n * (centred**4).sum() / (centred**2).sum() ** 2 - 3, 0)
    nu = min(n - 1, max(2, 2 * n / (excess + 2)))
    reach = student.ppf((1 + level) / 2, nu) * np.sqrt(variance / n)
    if is_difference:
        return mean - reach, mean + reach
    return mean / np.exp(reach / mean), mean * np.exp(reach / mean)


@pytest.mark.parametrize("cv", [5, 10, "loo", sk.KFold(7, shuffle=True, random_state=0)])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_follow_from_their_definition(cv, level):
    result = onefold.cross_validate(Ridge(0.1), X, y, cv=cv, scoring=MSE)
    found = result.interval(level=level)
    low, high = slow_interval(result.losses, result.folds.labels, level)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    assert found.mean == pytest.approx(result.losses.mean())
    assert (found.loss, found.level) == ("squared error", level)
    assert "with confidence" in repr(found)


def test_equal_folds_have_the_mean_of_their_variances():
    result = onefold.cross_validate(Ridge(0.1), X[:440], y[:440], cv=10)
    variances = [
        np.var(result.losses[result.folds.test(fold)], ddof=1) for fold in range(len(result.folds))
    ]
    assert result.interval().std_error == pytest.approx(np.sqrt(np.mean(variances) / 440))


@pytest.mark.parametrize("cv", [5, "loo"])
def test_intervals_cover_the_error_of_the_fold_models(cv):
    rng = np.random.default_rng(7)
    n, n_draws, n_covered = 250, 300, 0
    truth = np.array([1.0, -2.0, 0.5, 3.0])  # the intercept last
    for _ in range(n_draws):
        rows = np.c_[rng.standard_normal((n, 3)), np.ones(n)]
        target = rows @ truth + rng.standard_normal(n)
        result = onefold.cross_validate(
            Ridge(0.0), rows[:, :3], target, cv=cv, scoring=MSE, return_estimator=True
        )
        # The expected loss on a new row, of rows and noise with variance 1.
        errors = [
            1 + np.sum((np.r_[own.coef_, own.intercept_] - truth) ** 2)
            for own in result["estimator"]
        ]
        found = result.interval(level=0.9)
        n_covered += found.low <= np.mean(errors) <= found.high
    assert 0.86 <= n_covered / n_draws <= 0.97


def test_intervals_are_refused_where_they_do_not_hold():
    groups = np.arange(len(X)) // 10
    grouped = onefold.cross_validate(Ridge(), X, y, cv=sk.GroupKFold(5), groups=groups)
    with pytest.raises(ValueError, match="interval does not hold here: the samples are in groups"):
        grouped.interval()
    for cv in (
        sk.TimeSeriesSplit(4),
        onefold.monte_carlo(5),
        sk.RepeatedKFold(n_repeats=2),
    ):
        result = onefold.cross_validate(Ridge(), X, y, cv=cv)
        with pytest.raises(ValueError, match=r"not a partition \(time series, Monte-Carlo"):
            result.interval()
    result = onefold.cross_validate(Ridge(), X, y)
    for level in (0, 1, 95, "high"):
        with pytest.raises(ValueError, match=f"level must be between 0 and 1, got {level!r}"):
            result.interval(level=level)


def test_losses_that_do_not_vary_have_no_interval():
    rows = np.r_[np.zeros(20), np.full(20, 9.0)][:, None] + np.arange(40)[:, None] % 2
    result = onefold.cross_validate(GaussianNB(), rows, np.arange(40) // 20, cv=4)
    assert result.mean == 1
    with pytest.raises(ValueError, match="all 40 losses are 0: the central limit theorem needs"):
        result.interval()


def test_every_kind_of_loss_has_an_interval():
    rows, labels = load_breast_cancer(return_X_y=True)
    rows = rows / rows.max(axis=0)
    assert onefold.cross_validate(Pegasos(), rows, labels).interval().loss == "zero-one"
    assert onefold.cross_validate(GaussianDensity(), rows[:, :3]).interval().loss == (
        "negative log density"
    )


def test_two_results_are_compared_on_their_folds():
    ridge = onefold.cross_validate(Ridge(0.1), X, y, cv=10)
    plain = onefold.cross_validate(LinearRegression(), X, y, cv=ridge.folds)
    found = onefold.compare(ridge, plain, level=0.9)
    row = int(np.flatnonzero(found.candidate == 0)[0])
    paired = ridge["test_score"] - plain["test_score"]
    assert found.difference[row] == pytest.approx(paired.mean())
    n_test = len(X) / 10
    corrected = np.sqrt((1 / 10 + n_test / (len(X) - n_test)) * paired.var(ddof=1))
    assert found.corrected_error[row] == pytest.approx(corrected)
    assert found.p[row] == pytest.approx(2 * student.sf(abs(paired.mean() / corrected), 9))
    losses = ridge.losses - plain.losses
    low, high = slow_interval(losses, ridge.folds.labels, 0.9, is_difference=True)
    assert (found.interval.low, found.interval.high) == (pytest.approx(low), pytest.approx(high))
    for shown in (repr(found), found._repr_html_()):  # one verdict, by its name
        assert "Nadeau and Bengio" in shown
        assert "Interval" not in shown
    assert "estimator='LinearRegression'" in repr(found)


def test_pipelines_are_named_by_the_steps_that_differ():
    X, y = load_iris(return_X_y=True)
    models = [SVC(C=2), SVC(C=3), LogisticRegression(C=3)]
    first = onefold.cross_validate(make_pipeline(StandardScaler(), models[0]), X, y, cv=5)
    others = [
        onefold.cross_validate(make_pipeline(StandardScaler(), model), X, y, cv=first.folds)
        for model in models[1:]
    ]
    by_step = onefold.compare(first, others[1]).params
    assert sorted(by_step, key=str) == [
        {"logisticregression": "LogisticRegression"},
        {"svc": "SVC"},
    ]
    by_parameter = onefold.compare(first, others[0]).params
    assert sorted(by_parameter, key=str) == [{"svc__C": 2}, {"svc__C": 3}]


def test_a_search_and_two_results_give_the_same_comparison():
    search = onefold.GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=5).fit(X, y)
    results = [onefold.cross_validate(Ridge(alpha), X, y, cv=5) for alpha in (0.1, 1.0)]
    ours, theirs = onefold.compare(*results, rope=0.02), search.compare(to=1, rope=0.02)
    for name in ("difference", "std_error", "corrected_error", "t", "p", "p_equivalent"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9)


@pytest.mark.parametrize("cv", [5, "loo"])
def test_candidates_of_a_search_have_intervals(cv):
    alphas = [0.1, 1.0, 10.0]
    search = onefold.GridSearchCV(Ridge(), {"alpha": alphas}, cv=cv, scoring=MSE).fit(X, y)
    found = search.compare(to=1, level=0.8)
    results = [onefold.cross_validate(Ridge(a), X, y, cv=cv, scoring=MSE) for a in alphas]
    for row, candidate in enumerate(found.candidate):
        if candidate == 1:
            assert found.intervals[row] is None
            continue
        losses = results[candidate].losses - results[1].losses
        low, high = slow_interval(losses, results[1].folds.labels, 0.8, is_difference=True)
        own = found.intervals[row]
        assert (own.low, own.high) == (pytest.approx(low), pytest.approx(high))
        pytest.importorskip("pandas")
        assert found.to_frame().loss_difference_low[candidate] == own.low
    # There are none for groups, nor where the engine kept no predictions.
    groups = {"groups": np.arange(len(X)) // 4}
    grid = {"alpha": alphas}
    grouped = onefold.GridSearchCV(Ridge(), grid, cv=sk.GroupKFold(4)).fit(X, y, **groups)
    drawn = onefold.GridSearchCV(Ridge(), grid, cv=onefold.monte_carlo(3)).fit(X, y)
    loaded = onefold.SearchResult.from_json(search.result_.to_json())
    for other in (grouped, drawn, loaded):
        assert other.compare(to=1).intervals == []
        assert other.compare(to=1).notes == []


def test_a_difference_of_one_sign_is_symmetric():
    # Wrong in three samples where the other is right: zero must not be out of reach.
    rows = np.arange(60.0)[:, None]
    labels = np.arange(60) % 2
    first = np.zeros(60)
    first[[5, 25, 45]] = 1
    folds = onefold.cross_validate(GaussianNB(), rows, labels, cv=5).folds
    found = interval(first, folds, loss="zero-one", level=0.99, is_difference=True)
    low, high = slow_interval(first, folds.labels, 0.99, is_difference=True)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    assert found.low < 0


@pytest.mark.parametrize(
    ("estimator", "scoring", "loss", "predicted"),
    [
        (LogisticRegression(), "neg_log_loss", "log", "zero-one"),
        (Ridge(), "neg_mean_absolute_error", "absolute error", "squared error"),
        (Ridge(), "r2", "squared error", "squared error"),
    ],
)
def test_losses_of_a_search_follow_the_metric(estimator, scoring, loss, predicted):
    target = (y > 150).astype(int) if predicted == "zero-one" else y
    parameter = "C" if predicted == "zero-one" else "alpha"
    grid = {parameter: [0.01, 1.0]}
    search = onefold.GridSearchCV(estimator, grid, cv=5, scoring=scoring, keep="all").fit(X, target)
    result = search.result_
    for candidate, value in enumerate(grid[parameter]):
        alone = onefold.cross_validate(
            clone(estimator).set_params(**{parameter: value}), X, target, cv=5, scoring=scoring
        )
        name, losses = result.candidate_losses[candidate]
        assert name == alone.loss == result.results[candidate].loss == loss
        np.testing.assert_allclose(losses, alone._losses, rtol=1e-6)
    found = [own for own in search.compare(level=0.9).intervals if own is not None]
    assert [own.loss for own in found] == [loss]
    assert result.chosen.interval(level=0.9).loss == loss
    # What is shown of predictions does not depend on the metric.
    heading = "Confusion matrix" if predicted == "zero-one" else "Predicted against actual"
    assert heading in result.chosen.to_html()
    assert "OF6" not in [
        own.number for own in result.chosen.checks() if own.verdict == "not applicable"
    ]


def test_prediction_intervals_do_not_depend_on_the_metric():
    keywords = {"cv": 5, "return_estimator": True}
    squared = onefold.cross_validate(Ridge(), X, y, scoring=MSE, **keywords)
    absolute = onefold.cross_validate(Ridge(), X, y, scoring="neg_mean_absolute_error", **keywords)
    assert absolute.loss == "absolute error"
    ours, theirs = (own.predict_interval(X[:9], level=0.8) for own in (absolute, squared))
    np.testing.assert_allclose(ours, theirs)


def test_results_on_other_folds_are_refused():
    first = onefold.cross_validate(Ridge(), X, y, cv=5)
    for second, match in (
        (onefold.cross_validate(Ridge(), X, y, cv=6), "have 5 and 6 test sets; pass cv=first"),
        (onefold.cross_validate(Ridge(), X[:99], y[:99], cv=5), "have 442 and 99 samples"),
        (
            onefold.cross_validate(Ridge(), X, y, cv=sk.KFold(5, shuffle=True, random_state=0)),
            "on different folds; pass cv=first.folds",
        ),
    ):
        with pytest.raises(ValueError, match=match):
            onefold.compare(first, second)
    tests = [np.arange(10), np.arange(10, 20)]
    less = [(np.arange(40, 442), test) for test in tests]
    more = [(np.arange(20, 442), test) for test in tests]
    results = [onefold.cross_validate(Ridge(), X, y, cv=cv) for cv in (less, more)]
    with pytest.raises(ValueError, match="on different folds"):
        onefold.compare(*results)


def test_a_metric_must_be_shared_and_defined():
    metrics = ["r2", "neg_mean_squared_error"]
    first = onefold.cross_validate(Ridge(), X, y, scoring=metrics)
    second = onefold.cross_validate(Ridge(2), X, y, scoring=[metrics[0], "neg_max_error"])
    assert onefold.compare(first, second).metric == "r2"
    with pytest.raises(ValueError, match=r"metric must be one of \['r2'\].*got 'neg_max_error'"):
        onefold.compare(first, second, metric="neg_max_error")
    assert onefold.compare(first, first, metric="r2").notes == [
        "no interval of losses: all 442 losses are 0: the central limit theorem needs losses that "
        "vary, and the interval would have no width"
    ]
    with pytest.warns(UserWarning, match="not defined"):
        undefined = onefold.cross_validate(Ridge(), X[:9], y[:9], cv="loo")
    with pytest.raises(ValueError, match="compare needs score on every test set"):
        onefold.compare(undefined, undefined)


def test_results_that_differ_in_parameters_are_named_by_these():
    X, y = load_diabetes(return_X_y=True)

    def result(alpha, **options):
        steps = [("impute", SimpleImputer()), ("ridge", Ridge(alpha, **options))]
        return onefold.cross_validate(Pipeline(steps), X, y, cv=3)

    weak, strong = result(0.1), result(np.float64(10.0), solver="svd")
    found = onefold.compare(weak, strong)
    assert found.params[found.candidate.tolist().index(1)] == {
        "ridge__alpha": 10.0,
        "ridge__solver": "svd",
    }
    assert "candidate 1, ridge__alpha=10, ridge__solver='svd', on 3 test sets" in repr(found)
    again = onefold.CVResult.from_json(weak.to_json())
    assert onefold.compare(again, strong).params == found.params
    assert onefold.compare(weak, weak).params == [{"estimator": "Pipeline"}] * 2


def test_results_that_are_no_partition_are_compared_without_an_interval():
    cv = list(onefold.monte_carlo(20, random_state=0).split(X))
    results = [onefold.cross_validate(Ridge(alpha), X, y, cv=cv) for alpha in (0.1, 1)]
    found = onefold.compare(*results)
    assert found.interval is None
    assert "the test sets are not a partition" in found.notes[0]
    np.testing.assert_allclose(found.std_error, found.corrected_error)


def slow_posterior(paired, ratio, rope):
    """Integrals of the density of Student's t over the three regions (trapezoidal rule)."""
    n = len(paired)
    scale = np.sqrt((1 / n + ratio) * np.var(paired, ddof=1))
    grid = paired.mean() + scale * np.linspace(-300, 300, 1_200_001)
    density = student.pdf((grid - paired.mean()) / scale, n - 1) / scale
    regions = [grid < -rope, np.abs(grid) <= rope, grid > rope]
    return [np.trapezoid(np.where(region, density, 0), grid) for region in regions]


@pytest.mark.parametrize("rope", [0.0, 0.01, 0.1])
def test_a_region_of_practical_equivalence(rope):
    search = onefold.GridSearchCV(Ridge(), {"alpha": [0.01, 0.1, 1.0]}, cv=10).fit(X, y)
    found = search.compare(rope=rope)
    scores = search.result_.scores()
    n_test = len(X) / 10
    for row, candidate in enumerate(found.candidate):
        three = (found.p_worse[row], found.p_equivalent[row], found.p_better[row])
        assert sum(three) == pytest.approx(1)
        if candidate == found.to:
            assert three == (0, 1, 0)
            continue
        paired = scores[candidate] - scores[found.to]
        expected = slow_posterior(paired, n_test / (len(X) - n_test), rope)
        np.testing.assert_allclose(three, expected, atol=1e-3)
    assert "p_equivalent" in repr(found)
    assert f"a difference of at most {rope:g}" in repr(found)
    pytest.importorskip("pandas")
    assert "p_better" in found.to_frame().columns
    for bad in (-1, np.inf, "small"):
        with pytest.raises(ValueError, match="rope must be finite and not negative"):
            search.compare(rope=bad)
