"""Splitters in the order of time, compared with the definitions row by row."""

from itertools import combinations
from math import comb

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, TimeSeriesSplit

import onefold
from onefold import CombinatorialPurgedKFold, PurgedKFold, SlidingWindow

RANDOM = np.random.default_rng(0)
DAYS = pd.Series(pd.date_range("2024-01-01", periods=8), pd.date_range("2024-01-01", periods=8))


def naive(n_samples, blocks, n_test_blocks, horizon, embargo):
    """Training and test rows by comparing the labels of each pair of rows."""
    reach = np.broadcast_to(horizon, n_samples)
    ends = [min(row + int(reach[row]), n_samples - 1) for row in range(n_samples)]
    for chosen in combinations(range(len(blocks)), n_test_blocks):
        test = [row for block in chosen for row in blocks[block]]
        train = []
        for row in set(range(n_samples)) - set(test):
            is_out = False
            for block in chosen:
                span = blocks[block][0], max(ends[own] for own in blocks[block])
                overlaps = row <= span[1] and ends[row] >= span[0]
                follows = span[1] < row <= span[1] + embargo
                is_out |= overlaps or follows
            if not is_out:
                train.append(row)
        yield sorted(train), test


@pytest.mark.parametrize("embargo", [0, 2])
@pytest.mark.parametrize("horizon", [0, 3, RANDOM.integers(0, 6, 41)], ids=["0", "3", "each"])
@pytest.mark.parametrize("n_test_blocks", [1, 2, 3])
def test_rows_are_those_of_the_definition(n_test_blocks, horizon, embargo):
    splitter = CombinatorialPurgedKFold(6, n_test_blocks, horizon=horizon, embargo=embargo)
    blocks = np.array_split(np.arange(41), 6)
    expected = list(naive(41, blocks, n_test_blocks, horizon, embargo))
    found = list(splitter.split(np.zeros((41, 1))))
    assert len(found) == len(expected) == splitter.get_n_splits()
    for (train, test), (own_train, own_test) in zip(found, expected, strict=True):
        assert train.tolist() == own_train
        assert test.tolist() == own_test


def purged_times(t1, test_times):
    """Snippet 7.1 of López de Prado, word by word: the rows that are left to train on."""
    left = t1.copy(deep=True)
    for start, end in test_times.items():
        begin_within = left[(start <= left.index) & (left.index <= end)].index
        end_within = left[(start <= left) & (left <= end)].index
        envelop = left[(left.index <= start) & (end <= left)].index
        left = left.drop(begin_within.union(end_within).union(envelop))
    return left


def embargo_times(times, share):
    """Snippet 7.2: by when the embargo after each time ends."""
    step = int(times.shape[0] * share)
    if step == 0:
        return pd.Series(times, index=times)
    ends = pd.Series(times[step:], index=times[:-step])
    return pd.concat([ends, pd.Series(times[-1], index=times[-step:])])


def last_bar(times, when):
    """The last row that is not later than a time."""
    return times[times <= when][-1]


@pytest.mark.parametrize("share", [0, 0.01, 0.05, 0.1])
@pytest.mark.parametrize("n_test_blocks", [1, 2])
def test_labels_that_end_at_times_are_purged_as_by_lopez_de_prado(n_test_blocks, share):
    random = np.random.default_rng(3)
    hours = np.cumsum(random.integers(1, 30, 60))  # bars are not evenly spaced
    times = pd.Timestamp("2024-01-01") + pd.to_timedelta(hours, unit="h")
    reach = pd.to_timedelta(random.integers(0, 80, 60), unit="h")
    t1 = pd.Series(np.minimum(times + reach, times[-1]), index=times)
    splitter = CombinatorialPurgedKFold(6, n_test_blocks, embargo=share, t1=t1)
    blocks = np.array_split(np.arange(60), 6)
    embargo = embargo_times(times, share)
    splits = list(splitter.split(np.zeros((60, 1))))
    for chosen, (train, test) in zip(combinations(range(6), n_test_blocks), splits, strict=True):
        ends = {
            times[blocks[block][0]]: embargo[last_bar(times, t1.iloc[blocks[block]].max())]
            for block in chosen
        }
        left = purged_times(t1, pd.Series(ends))
        expected = sorted(set(times.get_indexer(left.index)) - set(test.tolist()))
        assert train.tolist() == expected
        assert test.tolist() == np.concatenate([blocks[block] for block in chosen]).tolist()


def test_ends_of_labels_are_a_horizon_in_rows():
    days = pd.date_range("2024-01-01", periods=40)
    reach = RANDOM.integers(0, 5, 40)
    ends = pd.Series(days[np.minimum(np.arange(40) + reach, 39)], index=days)
    rows = np.zeros((40, 1))
    by_rows = CombinatorialPurgedKFold(5, 2, horizon=reach, embargo=2).split(rows)
    by_time = CombinatorialPurgedKFold(5, 2, t1=ends, embargo=0.05).split(rows)
    for ours, theirs in zip(by_time, by_rows, strict=True):
        np.testing.assert_array_equal(ours[0], theirs[0])
    numbers = pd.Series(np.arange(40) + reach, index=np.arange(40))
    [first, *_] = CombinatorialPurgedKFold(5, 2, t1=numbers, embargo=2).split(rows)
    [other, *_] = CombinatorialPurgedKFold(5, 2, horizon=reach, embargo=2).split(rows)
    np.testing.assert_array_equal(first[0], other[0])


@pytest.mark.parametrize(("n", "k"), [(6, 2), (5, 3), (10, 2), (4, 1)])
def test_paths_are_those_of_lopez_de_prado(n, k):
    """Chapter 12: φ[N, k] = k/N · C(N, k) paths; path p takes the p-th prediction of each group."""
    splitter = CombinatorialPurgedKFold(n, k)
    assert splitter.n_paths * n == k * comb(n, k)
    splits = list(combinations(range(n), k))
    first_rows = np.cumsum([0] + [k * 3 for _ in splits])
    expected = np.empty((splitter.n_paths, 3 * n), dtype=int)
    for group in range(n):
        holding = [number for number, chosen in enumerate(splits) if group in chosen]
        for path, number in enumerate(holding):
            start = first_rows[number] + 3 * splits[number].index(group)
            expected[path, 3 * group : 3 * group + 3] = np.arange(start, start + 3)
    np.testing.assert_array_equal(splitter.paths(3 * n), expected)


def test_45_fits_of_ridge_are_one_factorisation():
    X = RANDOM.normal(size=(200, 4))
    y = X[:, 0] + RANDOM.normal(size=200)
    splitter = CombinatorialPurgedKFold(10, 2, horizon=3, embargo=2)
    result = onefold.cross_validate(Ridge(), X, y, cv=splitter)
    assert (result.engine, result.cost["fits"], len(result.folds)) == ("virtual", 1, 45)
    refits = onefold.cross_validate(Ridge(), X, y, cv=splitter, engine="refit")
    np.testing.assert_allclose(result["test_score"], refits["test_score"], rtol=1e-9)
    assert refits.cost["fits"] == 45


def test_without_horizon_and_embargo_it_is_k_fold():
    rows = np.zeros((23, 1))
    for ours, theirs in zip(PurgedKFold(4).split(rows), KFold(4).split(rows), strict=True):
        for own, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(own, other)


@pytest.mark.parametrize(("n_blocks", "n_test_blocks"), [(4, 1), (6, 2), (5, 3)])
def test_every_path_holds_out_every_row_once(n_blocks, n_test_blocks):
    splitter = CombinatorialPurgedKFold(n_blocks, n_test_blocks)
    rows = np.zeros((31, 1))
    splits = list(splitter.split(rows))
    held_out = np.concatenate([test for _, test in splits])
    of_split = np.concatenate([np.full(len(test), i) for i, (_, test) in enumerate(splits)])
    places = splitter.paths(31)
    assert places.shape == (splitter.n_paths, 31)
    for path in places:
        np.testing.assert_array_equal(held_out[path], np.arange(31))
    assert sorted(places.ravel()) == list(range(len(held_out)))
    for row in range(31):
        assert len(set(of_split[places[:, row]])) == splitter.n_paths


def test_a_backtest_has_the_predictions_of_refits():
    X = RANDOM.normal(size=(60, 3))
    y = X[:, 0] + RANDOM.normal(size=60)
    splitter = CombinatorialPurgedKFold(5, 2, horizon=2, embargo=1)
    result = onefold.cross_validate(Ridge(), X, y, cv=splitter, return_estimator=True)
    assert len(result["test_score"]) == 10
    predictions = []
    for (train, test), score in zip(splitter.split(X), result["test_score"], strict=True):
        model = Ridge().fit(X[train], y[train])
        predictions.append(model.predict(X[test]))
        assert model.score(X[test], y[test]) == pytest.approx(score)
    paths = np.concatenate(predictions)[splitter.paths(60)]
    assert paths.shape == (4, 60)
    assert np.ptp(paths, axis=0).max() > 0


@pytest.mark.parametrize(
    ("train", "test", "gap", "step"), [(5, 2, 0, None), (4, 3, 2, 1), (6, 1, 0, 4)]
)
def test_windows_move_through_the_rows(train, test, gap, step):
    splitter = SlidingWindow(train, test, gap=gap, step=step)
    rows = np.zeros((25, 1))
    found = list(splitter.split(rows))
    assert len(found) == splitter.get_n_splits(rows)
    expected = [
        (list(range(i, i + train)), list(range(i + train + gap, i + train + gap + test)))
        for i in range(0, 25, step or test)
        if i + train + gap + test <= 25
    ]
    assert [(a.tolist(), b.tolist()) for a, b in found] == expected


def test_windows_of_one_size_are_those_of_scikit_learn():
    rows = np.zeros((20, 1))
    theirs = TimeSeriesSplit(5, max_train_size=5, test_size=3).split(rows)
    for ours, other in zip(SlidingWindow(5, 3).split(rows), theirs, strict=True):
        for own, expected in zip(ours, other, strict=True):
            np.testing.assert_array_equal(own, expected)


def test_searches_and_nested_searches_take_them():
    X = RANDOM.normal(size=(60, 3))
    y = X[:, 0] + RANDOM.normal(size=60)
    for cv in (PurgedKFold(4, horizon=2), SlidingWindow(20, 5)):
        search = onefold.GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=cv).fit(X, y)
        assert search.n_splits_ == cv.get_n_splits(X)
    outer = PurgedKFold(3, horizon=2)
    nested = onefold.nested_cross_validate(
        search.set_params(cv=SlidingWindow(10, 5)), X, y, cv=outer
    )
    assert len(nested["test_score"]) == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CombinatorialPurgedKFold(3, 3), "n_test_blocks must be from 1 to"),
        (lambda: PurgedKFold(1), "n_splits must be 2 or more"),
        (lambda: PurgedKFold(horizon=-1), "must be 0 or more"),
        (lambda: PurgedKFold(embargo=-1), "must be 0 or more"),
        (lambda: PurgedKFold(embargo=1.5), "a whole number of rows or a share"),
        (lambda: PurgedKFold(horizon=1, t1=DAYS), "pass one of them"),
        (lambda: next(PurgedKFold(2, t1=DAYS).split([[0]] * 4)), "t1 has 8 entries for 4 rows"),
        (lambda: next(PurgedKFold(2, t1=DAYS[::-1]).split([[0]] * 8)), "in increasing order"),
        (lambda: next(PurgedKFold(2, t1=DAYS.shift(1)).split([[0]] * 8)), r"t1\[0\] is missing"),
        (
            lambda: next(PurgedKFold(2, t1=DAYS - pd.Timedelta(days=1)).split([[0]] * 8)),
            r"t1\[0\] is 2023-12-31 00:00:00, before its row",
        ),
        (lambda: SlidingWindow(0), "train_size must be 1 or more"),
        (lambda: SlidingWindow(3, step=0), "step must be 1 or more"),
        (lambda: next(PurgedKFold(5).split([[0]] * 4)), "4 rows cannot be cut into 5 blocks"),
        (lambda: next(PurgedKFold(2, horizon=9).split([[0]] * 4)), "no training row is left"),
        (lambda: next(PurgedKFold(2, horizon=[1, 1]).split([[0]] * 4)), "2 entries for 4 rows"),
        (lambda: SlidingWindow(3).get_n_splits(), "pass X"),
        (lambda: SlidingWindow(3).get_n_splits([[0]] * 2), "a window takes 4 rows"),
    ],
)
def test_bad_sizes_are_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_t1_needs_the_times_of_the_rows():
    for bad in (np.arange(8), [1, 2], DAYS.to_frame()):
        with pytest.raises(TypeError, match="a pandas Series with the times of the rows as its"):
            PurgedKFold(t1=bad)
    mixed = pd.Series(np.arange(8), index=DAYS.index)
    with pytest.raises(TypeError, match="must be times of one kind, got int64 and datetime64"):
        next(PurgedKFold(2, t1=mixed).split([[0]] * 8))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PurgedKFold("5"), "n_splits must be a whole number, got '5'"),
        (lambda: PurgedKFold(5.0), "n_splits must be a whole number, got 5.0"),
        (lambda: CombinatorialPurgedKFold(6, 1.5), "n_test_blocks must be a whole number"),
        (lambda: PurgedKFold(horizon=2.5), "times are passed as t1"),
        (lambda: PurgedKFold(horizon=pd.Timedelta(days=3)), "times are passed as t1"),
        (lambda: PurgedKFold(embargo="1"), "embargo must be a number of rows"),
        (lambda: PurgedKFold().paths(np.eye(2)), "n_samples must be a whole number"),
    ],
)
def test_bad_types_are_errors(make, message):
    with pytest.raises(TypeError, match=message):
        make()


def test_they_show_their_parameters():
    assert repr(PurgedKFold(3, t1=DAYS)).endswith("embargo=0, t1=<8 times>)")
    assert repr(SlidingWindow(3, 2)) == "SlidingWindow(train_size=3, test_size=2, gap=0, step=None)"
    assert repr(PurgedKFold(3, horizon=2)) == "PurgedKFold(n_splits=3, horizon=2, embargo=0)"
    text = "CombinatorialPurgedKFold(n_blocks=4, n_test_blocks=2, horizon=0, embargo=0.1)"
    assert repr(CombinatorialPurgedKFold(4, 2, embargo=0.1)) == text


@pytest.mark.parametrize("model", [Ridge(alpha=0.5), Ridge(fit_intercept=False)], ids=repr)
def test_all_pairs_of_purged_blocks_are_one_factorisation(model):
    rows = RANDOM.normal(size=(200, 4))
    targets = rows[:, 0] + RANDOM.normal(size=200)
    splitter = CombinatorialPurgedKFold(10, 2, horizon=3, embargo=2)
    result = onefold.cross_validate(model, rows, targets, cv=splitter)
    refits = onefold.cross_validate(model, rows, targets, cv=splitter, engine="refit")
    assert (result.engine, len(result.folds)) == ("virtual", 45)
    assert result.cost["fits"] == 1
    assert result.cost["rows_fed"] == 200
    assert refits.cost["fits"] == 45
    np.testing.assert_allclose(result["test_score"], refits["test_score"], rtol=1e-9)
    for split in range(45):
        np.testing.assert_allclose(
            result.fold_answers(split)["predict"],
            refits.fold_answers(split)["predict"],
            rtol=1e-9,
            atol=1e-12,
        )
