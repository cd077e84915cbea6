"""Standard errors that do not shrink with repeated or overlapping test sets."""

import numpy as np
import pytest
import sklearn.model_selection as sk
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge

import onefold
from onefold._inputs.folds import resolve_cv
from onefold.stats import StandardError
from onefold.virtual import ridge_path

X, y = load_diabetes(return_X_y=True)
X, y = X[:100], y[:100]
MSE = "neg_mean_squared_error"


def slow_error(scores, cv):
    """The three formulas, from the splits themselves."""
    splits = [(set(train), set(test)) for train, test in cv.split(X, y)]
    seen = [row for _, test in splits for row in test]
    if len(seen) == len(set(seen)):
        return np.std(scores, ddof=1) / np.sqrt(len(scores))
    partitions, part = [], []
    for _, test in splits:
        part.append(test)
        if sum(map(len, part)) == len(X) and set().union(*part) == set(range(len(X))):
            partitions.append(len(part))
            part = []
    if partitions and not part:
        ends = np.cumsum(partitions)
        parts = [scores[end - size : end] for end, size in zip(ends, partitions, strict=True)]
        return np.sqrt(np.mean([np.var(own, ddof=1) / len(own) for own in parts]))
    ratio = np.mean([len(test) for _, test in splits]) / np.mean([len(t) for t, _ in splits])
    return np.sqrt((1 / len(scores) + ratio) * np.var(scores, ddof=1))


CASES = {
    "k-fold": (sk.KFold(5), "disjoint"),
    "leave-one-out": (sk.LeaveOneOut(), "disjoint"),
    "time series": (sk.TimeSeriesSplit(4), "disjoint"),
    "part of the samples": (sk.PredefinedSplit(np.arange(100) % 4 - 1), "disjoint"),
    "repeated": (sk.RepeatedKFold(n_splits=5, n_repeats=7, random_state=0), "repeated"),
    "repeated, odd sizes": (sk.RepeatedKFold(n_splits=7, n_repeats=3, random_state=0), "repeated"),
    "Monte-Carlo": (onefold.monte_carlo(30, random_state=0), "overlapping"),
    "small training sets": (
        sk.ShuffleSplit(30, train_size=0.3, test_size=0.2, random_state=0),
        "overlapping",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_form_follows_from_the_test_sets(case):
    cv, form = CASES[case]
    result = onefold.cross_validate(Ridge(), X, y, cv=cv, scoring=MSE)
    assert result.std_error_form == form
    assert result.std_error == pytest.approx(slow_error(result["test_score"], cv))
    assert f"± {result.std_error:.4f}" in repr(result)
    phrase = {"disjoint": "error)", "repeated": "of one partition)", "overlapping": "overlapping"}
    assert phrase[form] in repr(result)
    assert f"{result.std_error:.4f}" in result._repr_html_()


def test_more_repetitions_do_not_make_it_smaller():
    folds = onefold.cross_validate(Ridge(), X, y, cv=sk.KFold(5, shuffle=True, random_state=1))
    repeats = sk.RepeatedKFold(n_splits=5, n_repeats=100, random_state=1)
    repeated = onefold.cross_validate(Ridge(), X, y, cv=repeats)
    drawn = onefold.cross_validate(Ridge(), X, y, cv=onefold.monte_carlo(1000, random_state=1))
    for other in (repeated, drawn):
        assert 0.5 * folds.std_error < other.std_error < 2 * folds.std_error


def test_it_is_the_error_of_the_sample_where_training_has_no_effect():
    """A mean of fixed losses of n independent samples has the standard error S/√n."""
    rng = np.random.default_rng(0)
    n, squares = 60, {"repeated": [], "overlapping": [], "disjoint": []}
    for draw in range(150):
        losses = rng.standard_normal(n)
        for cv in (
            sk.KFold(3),
            sk.RepeatedKFold(n_splits=3, n_repeats=8, random_state=draw),
            sk.ShuffleSplit(40, test_size=1 / 3, random_state=draw),
        ):
            folds = resolve_cv(cv, losses)
            scores = np.array([losses[folds.test(fold)].mean() for fold in range(len(folds))])
            error = StandardError.of(folds)
            squares[error.form].append(error(scores) ** 2)
    assert np.mean(squares["disjoint"]) == pytest.approx(1 / n, rel=0.25)
    assert np.mean(squares["repeated"]) == pytest.approx(1 / n, rel=0.15)
    # Nadeau and Bengio add 1/J.
    assert np.mean(squares["overlapping"]) == pytest.approx(1 / n, rel=0.25)


@pytest.mark.parametrize("case", CASES)
def test_searches_and_paths_have_the_same(case):
    cv, form = CASES[case]
    alphas = [0.01, 0.1, 1.0]
    search = onefold.GridSearchCV(Ridge(), {"alpha": alphas}, cv=cv, scoring=MSE).fit(X, y)
    path = ridge_path(Ridge(), X, y, alphas=alphas, cv=cv)
    assert path.std_error_form == form
    for place in range(3):
        expected = slow_error(search.result_.scores()[place], cv)
        assert path.std_error[place, 0] == pytest.approx(expected, rel=1e-6)
        if place == search.best_index_:
            assert f"± {expected:.4f}" in repr(search.result_)
        pytest.importorskip("pandas")
        frame = search.result_.to_frame()
        assert frame.std_error_test_score[place] == pytest.approx(expected)
    compared = search.compare()
    for row, candidate in enumerate(compared.candidate):
        paired = search.result_.scores()[candidate] - search.result_.scores()[compared.to]
        assert compared.std_error[row] == pytest.approx(slow_error(paired, cv), abs=1e-12)


def test_one_standard_error_is_that_of_the_test_sets():
    cv = sk.RepeatedKFold(n_splits=5, n_repeats=40, random_state=0)
    alphas = np.logspace(-3, 1, 30)
    keywords = {"cv": cv, "scoring": MSE, "rule": "one_se"}
    search = onefold.GridSearchCV(Ridge(), {"alpha": alphas}, **keywords).fit(X, y)
    scores = search.result_.scores()
    means = scores.mean(axis=1)
    limit = means.max() - slow_error(scores[means.argmax()], cv)
    assert search.best_params_["alpha"] == alphas[means >= limit].max()
    path = ridge_path(Ridge(), X, y, alphas=alphas, cv=cv)
    assert path.one_se_alpha == search.best_params_["alpha"]


def test_one_test_set_has_no_error():
    assert np.isnan(StandardError.of(resolve_cv(onefold.holdout(0.2), X))([0.5]))


def test_the_press_of_a_path_counts_every_sample_once():
    alphas = [0.1, 1.0]
    once = ridge_path(Ridge(), X, y, alphas=alphas, cv=sk.KFold(5, shuffle=True, random_state=0))
    cv = [*sk.KFold(5, shuffle=True, random_state=0).split(X)] * 3
    thrice = ridge_path(Ridge(), X, y, alphas=alphas, cv=cv)
    np.testing.assert_allclose(thrice.press, once.press, rtol=1e-9)
    np.testing.assert_allclose(thrice.std_error, once.std_error, rtol=1e-9)
