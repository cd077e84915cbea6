"""What people pass as ``cv`` becomes folds or splits, or a clear error."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    LeavePOut,
    PredefinedSplit,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
    check_cv,
)

import onefold
from onefold import Folds, Splits
from onefold._inputs.folds import resolve_cv

X = np.arange(60.0).reshape(30, 2)
y = np.tile(["a", "b", "b"], 10)
groups = np.repeat(np.arange(6), 5)


def pairs(folds):
    return [(folds.train(i).tolist(), folds.test(i).tolist()) for i in range(len(folds))]


def groups_for(cv):
    return groups if "Group" in type(cv).__name__ else None


def expected(cv, classifier=True):
    split = check_cv(cv, y, classifier=classifier).split(X, y, groups_for(cv))
    return [(sorted(train.tolist()), sorted(test.tolist())) for train, test in split]


@pytest.mark.parametrize(
    "cv",
    [
        2,
        np.int64(5),
        None,
        KFold(7),
        KFold(7, shuffle=True, random_state=3),
        LeaveOneOut(),
        StratifiedKFold(5, shuffle=True, random_state=0),
        GroupKFold(3),
        LeaveOneGroupOut(),
        StratifiedGroupKFold(3),
        PredefinedSplit(np.arange(30) % 4),
    ],
)
@pytest.mark.parametrize("classifier", [True, False])
def test_partitions_become_folds(cv, classifier):
    folds = resolve_cv(cv, X, y, groups=groups_for(cv), classifier=classifier)
    assert isinstance(folds, Folds)
    assert pairs(folds) == expected(cv, classifier)


@pytest.mark.parametrize(
    "cv",
    [
        ShuffleSplit(4, test_size=0.3, random_state=0),
        ShuffleSplit(1, test_size=0.3, random_state=0),
        StratifiedShuffleSplit(3, random_state=0),
        TimeSeriesSplit(4),
        RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
        LeavePOut(2),
        PredefinedSplit([-1] * 10 + [0, 1] * 10),
    ],
)
def test_everything_else_becomes_splits(cv):
    splits = resolve_cv(cv, X, y, groups=groups_for(cv), classifier=True)
    assert isinstance(splits, Splits)
    assert [(sorted(a), sorted(b)) for a, b in pairs(splits)] == expected(cv)
    assert splits.rows.tolist() == [row for _, test in pairs(splits) for row in test]
    sizes = [len(test) for _, test in pairs(splits)]
    assert np.diff(splits.starts).tolist() == sizes


@pytest.mark.parametrize("n_folds", [2, 3, 7, 10])
@pytest.mark.parametrize("random_state", [None, 0, 1])
def test_stratified_folds_are_those_of_scikit_learn(n_folds, random_state):
    rng = np.random.default_rng(n_folds)
    for labels in (
        rng.permutation(np.repeat(["c", "a", "b"], [10, 25, 40])),
        rng.permutation(np.repeat([7, -1, 3, 2], [12, 25, 40, 11])),
        np.repeat([2.0, 1.0], [30, 45]),
        rng.random(75) < 0.4,
    ):
        cv = StratifiedKFold(n_folds, shuffle=random_state is not None, random_state=random_state)
        theirs = [(a.tolist(), b.tolist()) for a, b in cv.split(labels[:, None], labels)]
        assert pairs(resolve_cv(cv, labels[:, None], labels)) == theirs


@pytest.mark.parametrize(
    "cv", [5, StratifiedKFold(5), StratifiedKFold(7, shuffle=True, random_state=0)]
)
@pytest.mark.parametrize("kind", [float, str, object])
def test_a_rare_class_is_a_warning_as_in_scikit_learn(cv, kind):
    rare = np.r_[np.zeros(14, dtype=int), 1, 1, np.zeros(14, dtype=int)].astype(str).astype(kind)
    message = "The least populated class in y has only 2 members, which is less than n_splits="
    with pytest.warns(UserWarning, match=message):
        theirs = [test.tolist() for _, test in check_cv(cv, rare, classifier=True).split(X, rare)]
    with pytest.warns(UserWarning, match=message) as caught:
        folds = resolve_cv(cv, X, rare, classifier=True)
    assert [folds.test(fold).tolist() for fold in range(len(folds))] == theirs
    assert "some folds hold out none of class" in str(caught[0].message)


def test_folds_of_an_earlier_result_are_a_cv():
    X, y = np.arange(12.0)[:, None], np.arange(12.0)
    for cv in (KFold(3, shuffle=True, random_state=0), ShuffleSplit(2, random_state=0)):
        first = onefold.cross_validate(Ridge(), X, y, cv=cv)
        again = onefold.cross_validate(Ridge(), X, y, cv=first.folds)
        np.testing.assert_array_equal(again["test_score"], first["test_score"])
        search = onefold.GridSearchCV(Ridge(), {}, cv=first.folds).fit(X, y)
        assert search.best_score_ == pytest.approx(first.mean)
        with pytest.raises(ValueError, match=r"cv is .*\(12 samples, .* there are 11 samples"):
            onefold.cross_validate(Ridge(), X[1:], y[1:], cv=first.folds)


def test_leave_one_out_by_name():
    folds = resolve_cv("loo", X)
    assert len(folds) == 30
    assert folds.test(7).tolist() == [7]


def test_pairs_and_masks_are_read_as_scikit_learn_reads_them():
    mask = np.arange(30) < 10
    given_pairs = [(~mask, mask), (np.arange(10), np.arange(10, 30))]
    folds = resolve_cv(iter(given_pairs), X)
    assert isinstance(folds, Folds)
    assert folds.test(0).tolist() == list(range(10))
    overlapping = [([0, 1], [2, 3]), ([2, 3], [0, 1])]
    assert isinstance(resolve_cv(overlapping, X), Splits)


@pytest.mark.parametrize("kind", [list, np.array])
def test_labels_of_any_kind_name_folds(kind):
    labels = [["one", "two", "three"][i % 3] for i in range(30)]
    folds = resolve_cv(kind(labels), X)
    assert len(folds) == 3
    assert {labels[i] for i in folds.test(0)} == {"one"}


@given(st.integers(2, 40).flatmap(lambda k: st.tuples(st.just(k), st.integers(k, 60))))
def test_folds_partition_the_samples(sizes):
    n_folds, n_samples = sizes
    folds = Folds.contiguous(n_samples, n_folds)
    assert sorted(folds.rows.tolist()) == list(range(n_samples))
    assert np.ptp(np.diff(folds.starts)) <= 1
    assert pairs(Folds.from_labels(folds.labels, n_folds)) == pairs(folds)


def test_folds_and_splits_pickle():
    for cv in (KFold(4, shuffle=True, random_state=0), ShuffleSplit(3, random_state=0)):
        folds = resolve_cv(cv, X)
        copy = pickle.loads(pickle.dumps(folds))
        assert type(copy) is type(folds)
        assert pairs(copy) == pairs(folds)


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (31, "cv=31: the number of folds must be from 2 to the number of samples, n_samples=30"),
        (1, "cv=1: the number of folds"),
        (-3, "cv=-3"),
        (25, "n_splits=25 cannot be greater than the number of members in each class"),
        (StratifiedKFold(25), "n_splits=25 cannot be greater than the number of members"),
        (2.5, "cv must be a number of folds, 'loo', a splitter, fold labels or pairs .*got 2.5"),
        ("jackknife", "cv must be a number of folds, a splitter or 'loo', got 'jackknife'"),
        ([0, 1, 2], "cv has 3 fold labels for 30 samples"),
        ([0] * 30, "one fold label 0"),
        ([0.0, np.nan] * 15, r"cv\[1\] is nan: every sample needs a fold label"),
        ([None, 1] * 15, r"cv\[0\] is None: every sample needs a fold label"),
        ([([0, 1], [])], "the test set of split 0 is empty"),
        ([([0, 1], [2]), ([], [0])], "the train set of split 1 is empty"),
        ([([0, 1], [30])], "split 0 names sample 30 of 30"),
        ([([0, -31], [3])], "split 0 names sample -31 of 30"),
        ([([0.5, 1], [3])], "split 0 must hold indices or a mask"),
        ([([0, 1], [3], [4])], r"split 0 must be a pair \(train, test\)"),
        ([], "there are no splits"),
        (KFold(31), "cannot split 30 samples into 31 folds"),
    ],
)
def test_what_is_not_a_cv_is_refused(cv, message):
    with pytest.raises(ValueError, match=message):
        resolve_cv(cv, X, y, classifier=True)


def test_folds_refuse_labels_that_miss_a_fold_or_name_too_many():
    with pytest.raises(ValueError, match="fold 1 is empty"):
        Folds.from_labels(np.array([0, 0, 2]), 3)
    with pytest.raises(ValueError, match="sample 1 has label 3 of 2 folds"):
        Folds.from_labels(np.array([0, 3, 1]), 2)
    with pytest.raises(ValueError, match=r"labels\[2\] is -1: it must not be negative"):
        Folds.from_labels(np.array([0, 1, -1]), 2)
    with pytest.raises(ValueError, match=r"test set 1\[0\] is -3: it must not be negative"):
        Splits(3, [(np.array([0]), np.array([1])), (np.array([0]), np.array([-3]))])
    with pytest.raises(IndexError, match="fold 5 of 2"):
        Folds.contiguous(4, 2).test(5)
