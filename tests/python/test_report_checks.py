"""The numbered checks: what they find, what they leave alone, and how often they are wrong."""

import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import binom, chi2_contingency, f_oneway, kstest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import onefold
from onefold._engines.status import Status
from onefold.learners import Pegasos
from onefold.report import ABOUT, Check, checks
from onefold.report._dummy import dummy_losses
from onefold.report._search_checks import _bootstrap_optimism
from onefold.report._statistics import MAX_PERMUTED, between_sets, neighbor_correlation
from onefold.result import _refit_check

X, y = load_diabetes(return_X_y=True)
IRIS = load_iris(return_X_y=True)
NUMBERS = [f"OF{number}" for number in range(1, 12)]


def found(result, number):
    by_number = {check.number: check for check in result.checks()}
    assert list(by_number) == NUMBERS
    return by_number[number]


def noise(n, seed=0, n_features=3):
    return np.random.default_rng(seed).standard_normal((n, n_features))


# The tests behind them


def test_permutation_test_has_its_level_for_values_of_any_distribution():
    rng = np.random.default_rng(0)
    starts = np.array([0, 7, 14, 24, 30])
    drawn = [rng.standard_cauchy(30) for _ in range(300)]
    p = np.array([between_sets(values, starts, seed=i) for i, values in enumerate(drawn)])
    assert kstest(p, "uniform").pvalue > 0.01


def test_f_test_takes_over_where_permutations_end():
    rng = np.random.default_rng(1)
    starts = np.arange(0, MAX_PERMUTED + 1, MAX_PERMUTED // 8)
    more = starts + np.arange(len(starts)) * 50
    for _ in range(3):
        values = rng.exponential(size=more[-1]) + np.repeat(rng.normal(0, 0.05, 8), np.diff(more))
        few = np.concatenate([values[a : a + 500] for a in more[:-1]])
        classes = rng.integers(0, 3, more[-1])
        shares = np.bincount(classes) / len(classes)
        columns = (classes[:, None] == np.arange(3)) / np.sqrt(shares)
        groups = np.split(values, more[1:-1])
        assert between_sets(values, more) == pytest.approx(f_oneway(*groups).pvalue)
        groups = np.split(few, starts[1:-1])
        assert between_sets(few, starts) == pytest.approx(f_oneway(*groups).pvalue, abs=0.05)
        table = np.array([np.bincount(own, minlength=3) for own in np.split(classes, more[1:-1])])
        expected = chi2_contingency(table).pvalue
        assert between_sets(columns, more, rank=2) == pytest.approx(expected, abs=0.01)


def test_neighbor_correlation_of_random_and_of_similar_rows():
    rng = np.random.default_rng(0)
    p = [neighbor_correlation(rng.exponential(size=40), seed=i)[1] for i in range(300)]
    assert kstest(p, "uniform").pvalue > 0.01
    p = [neighbor_correlation(rng.exponential(size=MAX_PERMUTED + 1))[1] for i in range(200)]
    assert kstest(p, "uniform").pvalue > 0.01
    steps = np.cumsum(rng.standard_normal(200))
    correlation, p = neighbor_correlation(steps)
    assert correlation > 0.8
    assert p == 0.001


@pytest.mark.parametrize("values", [np.ones(10), np.ones(2)])
def test_equal_values_have_no_p_value(values):
    assert np.isnan(between_sets(values, np.array([0, 1, len(values)])))
    assert np.isnan(neighbor_correlation(values)).all()


@pytest.mark.parametrize(("estimator", "classifies"), [(Ridge(), False), (GaussianNB(), True)])
def test_false_alarms_of_exchangeable_folds_are_as_rare_as_the_level(estimator, classifies):
    """OF2, OF3 and OF8 of 300 sets of independent rows; all of them have the level 0.01."""
    p = {"OF2": [], "OF3": [], "OF8": []}
    for seed in range(300):
        rows = noise(80, seed)
        values = rows[:, 0] + np.random.default_rng(1000 + seed).standard_normal(80)
        targets = (values > 0).astype(int) if classifies else values
        result = onefold.cross_validate(estimator, rows, targets, cv=KFold(8))
        for check in result.checks():
            if check.number in p:
                p[check.number].append(check.values["p"])
    for own in p.values():
        for level in (0.01, 0.05, 0.1):
            n_alarms = int((np.array(own) <= level).sum())
            assert n_alarms <= binom.ppf(0.999, 300, level)
    # A test that never rejects would pass so far.
    assert (np.array(p["OF2"]) <= 0.1).sum() >= binom.ppf(0.001, 300, 0.1)


# One by one


def test_of1_finds_choices_at_the_edge():
    low = onefold.GridSearchCV(Ridge(), {"alpha": [1, 10, 100]}, cv=5).fit(X, y).result_
    check = found(low, "OF1")
    assert check.verdict == "look"
    assert "alpha=1 is the smallest of 3" in check.sentence
    inside = onefold.GridSearchCV(Ridge(), {"alpha": [0.01, 0.1, 1]}, cv=10).fit(X, y).result_
    assert found(inside, "OF1").verdict == "ok"
    few = onefold.GridSearchCV(Ridge(), {"alpha": [1, 10]}, cv=5).fit(X, y).result_
    assert found(few, "OF1").verdict == "not applicable"


def test_of1_compares_candidates_that_differ_in_one_parameter_only():
    grids = [
        {"alpha": [0.1, 1, 10], "fit_intercept": [True]},
        {"alpha": [0.001], "fit_intercept": [False]},
    ]
    search = onefold.GridSearchCV(Ridge(), grids, cv=10).fit(X, y)
    assert "alpha=0.1 is the smallest of 3" in found(search.result_, "OF1").sentence


def test_of2_finds_folds_that_differ():
    rows, targets = noise(200), np.random.default_rng(1).standard_normal(200)
    targets[:40] *= 5
    result = onefold.cross_validate(Ridge(), rows, targets, cv=5)
    assert found(result, "OF2").verdict == "look"
    shuffled = onefold.cross_validate(
        Ridge(), rows, targets, cv=KFold(5, shuffle=True, random_state=0)
    )
    assert found(shuffled, "OF2").verdict == "ok"
    digits = onefold.cross_validate(GaussianNB(), *load_digits(return_X_y=True), cv=10)
    assert found(digits, "OF2").verdict == "look"  # the writers of the digits differ


@pytest.mark.parametrize(
    ("cv", "verdict"),
    [
        ("loo", "not applicable"),
        (LeaveOneOut(), "not applicable"),
        (ShuffleSplit(5, random_state=0), "not applicable"),
        (TimeSeriesSplit(5), "ok"),
        (RepeatedKFold(n_splits=5, n_repeats=2, random_state=0), "ok"),
    ],
)
def test_of2_by_the_kind_of_test_sets(cv, verdict):
    result = onefold.cross_validate(Ridge(), X, y, cv=cv, scoring="neg_mean_squared_error")
    assert found(result, "OF2").verdict == verdict


def test_groups_are_not_taken_for_independent_rows():
    groups = np.arange(len(y)) // 20
    result = onefold.cross_validate(Ridge(), X, y, cv=GroupKFold(5), groups=groups)
    for number in ("OF2", "OF3", "OF8"):
        assert found(result, number).verdict == "not applicable"
    assert found(result, "OF6").verdict == "ok"


def test_of3_finds_sorted_rows():
    order = np.argsort(y)
    result = onefold.cross_validate(Ridge(), X[order], y[order], cv=5)
    check = found(result, "OF3")
    assert check.verdict == "look"
    assert "sorted" in check.sentence
    assert found(onefold.cross_validate(GaussianNB(), *IRIS, cv=KFold(3)), "OF3").verdict == "look"
    assert found(onefold.cross_validate(GaussianNB(), *IRIS, cv=3), "OF3").verdict == "ok"


def test_of3_reads_the_comparison_with_refits():
    result = onefold.cross_validate(
        Pegasos(), *IRIS, cv=10, engine="tree", engine_options={"check": 10}
    )
    assert result.check is not None
    assert found(result, "OF3").verdict == "ok"
    flattered = result.copy()
    flattered.check = _refit_check.RefitCheck(10, {"score": 0.3}, {"score": 0.02})
    assert found(flattered, "OF3").verdict == "problem"
    flattered.check = _refit_check.RefitCheck(10, {"score": -0.3}, {"score": 0.02})
    assert found(flattered, "OF3").verdict == "look"
    flattered.check = _refit_check.RefitCheck(10, {"score": 1e-9}, {"score": 1e-12})
    assert found(flattered, "OF3").verdict == "ok"
    flattered.check = _refit_check.RefitCheck(10, {"zero-one": -0.3}, {"zero-one": 0.02})
    assert found(flattered, "OF3").verdict == "problem"


def test_of3_warns_of_the_paper_order_on_sorted_rows():
    result = onefold.cross_validate(
        Pegasos(),
        *IRIS,
        cv="loo",
        engine="tree",
        engine_options={"placement": "given", "order": "fixed"},
    )
    assert found(result, "OF3").verdict == "problem"


def test_of4_asks_kept_models_and_reads_the_status():
    rows, targets = load_breast_cancer(return_X_y=True)
    few = LogisticRegression(max_iter=3)
    with pytest.warns(UserWarning, match="converge"):
        result = onefold.cross_validate(
            few, rows, targets, cv=3, engine="refit", return_estimator=True
        )
    assert found(result, "OF4").verdict == "problem"
    saved = onefold.CVResult.from_json(result.to_json())
    assert "estimator" not in saved
    assert found(saved, "OF4").verdict == "problem"
    assert "3 of 3 fold models stopped at max_iter=3" in found(saved, "OF4").sentence
    unknown = result.copy()
    del unknown["estimator"]
    unknown.notes = ["not converged: notes are for people"]
    assert found(unknown, "OF4").verdict == "problem"  # the status says so
    unknown.status = Status("refit", refitted_folds=3)
    assert found(unknown, "OF4").verdict == "not applicable"
    unknown.status = Status("seeded", 1e-3, 1.0, unsolved="the gap is 1, above tol=0.001")
    assert found(unknown, "OF4").verdict == "problem"
    solved = onefold.cross_validate(LogisticRegression(), rows, targets, cv=3)
    assert solved.engine == "newton"
    assert found(solved, "OF4").verdict == "ok"


@pytest.mark.parametrize(
    "estimator",
    [
        HistGradientBoostingClassifier(max_iter=3),
        SGDClassifier(tol=None, max_iter=3),
        LogisticRegression(max_iter=1000),
    ],
)
@pytest.mark.parametrize("is_kept", [False, True])
def test_of4_knows_models_that_take_all_iterations(estimator, is_kept):
    result = onefold.cross_validate(
        estimator, *IRIS, cv=3, engine="refit", return_estimator=is_kept
    )
    assert found(result, "OF4").verdict in ("ok", "not applicable")


def test_of5_counts_classes():
    result = onefold.cross_validate(GaussianNB(), *IRIS, cv=KFold(5))
    assert found(result, "OF5").verdict == "look"
    assert found(result, "OF5").values == {"untrained": 0, "untested": 5}
    result = onefold.cross_validate(KNeighborsClassifier(), *IRIS, cv=KFold(3), engine="refit")
    assert found(result, "OF5").values["untrained"] == 3
    assert found(result, "OF5").verdict == "problem"
    assert found(onefold.cross_validate(GaussianNB(), *IRIS, cv="loo"), "OF5").verdict == "ok"
    assert found(onefold.cross_validate(Ridge(), X, y), "OF5").verdict == "not applicable"


def test_of5_counts_classes_of_splits_as_of_folds():
    folds = onefold.cross_validate(GaussianNB(), *IRIS, cv=KFold(5))
    pairs = [(folds.folds.train(i), folds.folds.test(i)) for i in range(5)]
    splits = onefold.cross_validate(GaussianNB(), *IRIS, cv=pairs[:4], engine="refit")
    assert found(splits, "OF5").values == {"untrained": 0, "untested": 4}


@pytest.mark.parametrize("cv", [5, "loo", TimeSeriesSplit(4), ShuffleSplit(3, random_state=0)])
def test_dummy_losses_are_those_of_the_dummies_of_scikit_learn(cv):
    targets = IRIS[1][np.random.default_rng(0).permutation(150)]
    targets = np.where(targets == 2, 1, targets)
    result = onefold.cross_validate(
        DummyClassifier(), IRIS[0], targets, cv=cv, engine="refit", scoring="accuracy"
    )
    np.testing.assert_array_equal(dummy_losses("zero-one", targets, result.folds), result._losses)
    result = onefold.cross_validate(
        DummyRegressor(), X, y, cv=cv, engine="refit", scoring="neg_mean_squared_error"
    )
    np.testing.assert_allclose(dummy_losses("squared error", y, result.folds), result._losses)


def test_dummy_of_two_equal_classes_is_not_always_wrong():
    folds = onefold.Folds.contiguous(10, 10)
    assert dummy_losses("zero-one", np.arange(10) % 2, folds).mean() == 0.5


def test_of6_compares_with_the_dummy():
    assert found(onefold.cross_validate(Ridge(), X, y, cv=5), "OF6").verdict == "ok"
    rng = np.random.default_rng(0)
    useless = onefold.cross_validate(Ridge(), noise(300), rng.standard_normal(300), cv=5)
    assert found(useless, "OF6").verdict == "look"
    labels = (rng.random(400) < 0.15).astype(int)
    worse = onefold.cross_validate(KNeighborsClassifier(n_neighbors=1), noise(400), labels, cv=5)
    assert found(worse, "OF6").verdict == "problem"
    equal = onefold.cross_validate(DummyClassifier(), noise(400), labels, cv=5, engine="refit")
    assert found(equal, "OF6").verdict == "look"


def test_of6_is_as_rarely_wrong_as_its_level():
    """Targets that do not depend on the rows cannot be predicted better than by their mean."""
    n_better = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        result = onefold.cross_validate(Ridge(), noise(60, seed), rng.standard_normal(60), cv=6)
        n_better += found(result, "OF6").verdict == "ok"
    assert n_better <= binom.ppf(0.999, 150, 0.01)


def test_of7_finds_metrics_that_are_not_defined():
    with pytest.warns(UserWarning, match="not defined for a single sample"):
        result = onefold.cross_validate(Ridge(), X, y, cv="loo")
    check = found(result, "OF7")
    assert check.verdict == "look"
    assert "442 of 442" in check.sentence
    lost = result.copy()
    lost._pooled = {"score": float("nan")}
    assert found(lost, "OF7").verdict == "problem"
    assert found(onefold.cross_validate(Ridge(), X, y), "OF7").verdict == "ok"


def test_of8_finds_rows_in_groups():
    rng = np.random.default_rng(0)
    spread = np.repeat(rng.exponential(size=60), 5)
    targets = spread * rng.standard_normal(300)
    result = onefold.cross_validate(Ridge(), noise(300), targets, cv=KFold(5, shuffle=True))
    assert found(result, "OF8").verdict == "look"
    mixed = rng.permutation(300)
    result = onefold.cross_validate(
        Ridge(), noise(300)[mixed], targets[mixed], cv=KFold(5, shuffle=True, random_state=0)
    )
    assert found(result, "OF8").verdict == "ok"


def test_of9_estimates_the_optimism_of_a_choice():
    """The best of candidates without any difference is too good by the mean of their maximum."""
    rng = np.random.default_rng(0)
    estimates, truths = [], []
    for _ in range(200):
        scores = rng.standard_normal((30, 10))
        best = int(scores.mean(axis=1).argmax())
        estimates.append(_bootstrap_optimism(scores, best))
        truths.append(scores[best].mean())
    assert np.mean(truths) > 0.5
    assert np.mean(estimates) == pytest.approx(np.mean(truths), rel=0.15)
    clear = rng.standard_normal((5, 10)) + np.array([0, 0, 20, 0, 0])[:, None]
    assert abs(_bootstrap_optimism(clear, 2)) < 0.3


def test_of9_of_searches():
    search = onefold.GridSearchCV(Ridge(), {"alpha": [0.01, 0.1, 1]}, cv=10).fit(X, y)
    assert found(search.result_, "OF9").verdict == "ok"
    seeds = {"random_state": range(20), "strategy": ["uniform"]}
    chance = onefold.GridSearchCV(DummyClassifier(), seeds, cv=10, engine="refit")
    labels = np.random.default_rng(0).integers(0, 2, 200)
    assert found(chance.fit(noise(200), labels).result_, "OF9").verdict == "look"
    one = onefold.GridSearchCV(Ridge(), {"alpha": [1]}, cv=10).fit(X, y)
    assert found(one.result_, "OF9").verdict == "not applicable"
    simple = onefold.GridSearchCV(Ridge(), {"alpha": [0.01, 0.1, 0.3]}, cv=10, rule="one_se")
    check = found(simple.fit(X, y).result_, "OF9")
    assert check.verdict == "not applicable"


def test_searches_without_kept_answers_have_checks_too():
    search = onefold.GridSearchCV(Ridge(), {"alpha": [0.01, 0.1, 1]}, cv=10, keep=None).fit(X, y)
    verdicts = {check.number: check.verdict for check in search.result_.checks()}
    assert verdicts["OF1"] == "ok"
    assert verdicts["OF2"] == "not applicable"


def test_labels_that_cannot_be_sorted_do_not_end_a_report():
    result = onefold.cross_validate(GaussianNB(), *IRIS, cv=5).copy()
    result.targets = np.array([1, "a", None] * 50, dtype=object)
    assert found(result, "OF5").verdict == "not applicable"


# The objects


def test_a_check_knows_its_words():
    check = Check("OF2", "look", "Folds differ.")
    assert check.title == ABOUT["OF2"].title
    assert check.anchor == "of2"
    assert repr(check) == "OF2 look: Folds differ."
    with pytest.raises(ValueError, match="number must be one of"):
        Check("OF99", "ok", "")
    with pytest.raises(ValueError, match="verdict must be one of"):
        Check("OF1", "fine", "")


def test_the_address_of_a_check_is_that_of_the_documentation(monkeypatch):
    monkeypatch.setattr("onefold.report._check.documentation", lambda: None)
    assert Check("OF2", "ok", "").url is None
    monkeypatch.setattr("onefold.report._check.documentation", lambda: "https://example.org/doc/")
    assert Check("OF2", "ok", "").url == "https://example.org/doc/checks.html#of2"


def test_the_address_of_the_documentation_may_be_given(monkeypatch):
    monkeypatch.setenv("ONEFOLD_DOCS", ".")
    assert Check("OF2", "ok", "").url == "./checks.html#of2"


@pytest.mark.parametrize("is_sparse", [False, True])
def test_of10_finds_features_of_other_scales(is_sparse):
    X = noise(60)
    y = (X[:, 0] > 0).astype(int)
    wide = X * [1.0, 1.0, 5000.0]
    if is_sparse:
        X, wide = sp.csr_array(X), sp.csr_array(wide)
    for estimator in (SVC(), KNeighborsClassifier(), Pegasos()):
        check = found(onefold.cross_validate(estimator, wide, y, cv=3), "OF10")
        assert check.verdict == "look"
        assert check.values["ratio"] == pytest.approx(5000, rel=0.4)
        assert "put a scaler before it" in check.sentence
        assert found(onefold.cross_validate(estimator, X, y, cv=3), "OF10").verdict == "ok"
    scaler = StandardScaler(with_mean=False)
    for estimator in (make_pipeline(scaler, SVC()), LogisticRegression()):
        result = onefold.cross_validate(estimator, wide, y, cv=3)
        assert found(result, "OF10").verdict == "not applicable"
    search = onefold.GridSearchCV(SVC(), {"C": [1, 2]}, cv=3).fit(wide, y)
    assert found(search.result_, "OF10").verdict == "look"
    again = onefold.CVResult.from_json(search.result_.chosen.to_json())
    assert found(again, "OF10").verdict == "look"


class Boosting(RegressorMixin, BaseEstimator):
    """Takes an ``eval_set``, as boosted trees do."""

    def __init__(self, rate=0.1):
        self.rate = rate

    def fit(self, X, y, eval_set=None):
        self.value_ = np.mean(y) if eval_set is None else np.mean(eval_set[0][1])
        return self

    def predict(self, X):
        return np.full(len(X), self.rate * self.value_)


@pytest.mark.filterwarnings("ignore:eval_set has:UserWarning")
@pytest.mark.parametrize("is_search", [False, True])
@pytest.mark.parametrize(
    ("eval_set", "verdict", "n_rows"),
    [
        ([(X[:20], y[:20])], "look", 20),
        ([(X[:20] + 9, y[:20]), (X[:1], y[:1])], "look", 1),
        ([(X[:20] + 9, y[:20])], "ok", 0),
        ([(X[:20].astype(str), y[:20])], "not applicable", None),
        (None, "not applicable", None),
    ],
    ids=range(5),
)
def test_of11_finds_rows_of_x_that_stop_the_training(eval_set, verdict, n_rows, is_search):
    params = {} if eval_set is None else {"eval_set": eval_set}
    options = {"cv": 3, "engine": "refit"}
    if is_search:
        search = onefold.GridSearchCV(Boosting(), {"rate": [0.5, 1]}, **options)
        result = search.fit(X, y, **params).result_
    else:
        result = onefold.cross_validate(Boosting(), X, y, params=params, **options)
    check = found(result, "OF11")
    assert (check.verdict, check.values.get("n_rows")) == (verdict, n_rows)
    if verdict == "look":
        assert re.match(f"eval_set has {n_rows} rows? of X: .*'eval_split': 0.1", check.sentence)
    single = result.chosen if is_search else result
    assert found(onefold.CVResult.from_json(single.to_json()), "OF11") == check


def test_of11_is_content_with_rows_of_the_training_set():
    options = {"cv": 3, "engine": "refit", "engine_options": {"eval_split": 0.2}}
    result = onefold.cross_validate(Boosting(), X, y, **options)
    search = onefold.GridSearchCV(Boosting(), {"rate": [0.5, 1]}, **options).fit(X, y)
    again = onefold.CVResult.from_json(result.to_json())
    for check in (found(one, "OF11") for one in (result, search.result_, again)):
        assert (check.verdict, "eval_split=0.2" in check.sentence) == ("ok", True)


def test_the_documentation_has_one_section_per_check():
    page = Path(__file__, "../../../docs/checks.md").resolve()
    if not page.exists():
        pytest.skip("the documentation is not part of this installation")
    text = page.read_text(encoding="utf-8")
    assert [line[1:-2] for line in text.splitlines() if line.startswith("(of")] == [
        number.lower() for number in NUMBERS
    ]
    for number, about in ABOUT.items():
        assert f"## {number}: {about.title}" in text


def test_checks_of_one_result_have_all_numbers():
    assert [check.number for check in checks(onefold.cross_validate(Ridge(), X, y))] == NUMBERS
    assert list(ABOUT) == NUMBERS
