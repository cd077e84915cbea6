"""The comparison of one case with scikit-learn."""

import math
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from hunt_cases import ILL_CONDITIONED
from hunt_optima import GLMS, is_dense_solution, is_optimum, rounding
from hunt_promises import ROUNDING, STABILITY, TOLERANCE, promised
from hunt_runs import by_onefold, by_scikit_learn, options_of, perturbed
from sklearn.base import is_regressor
from sklearn.svm import SVC, SVR

import onefold
from onefold.learners._base import NativeEstimator

CONDITION = 100
"""What scikit-learn moves by if the last digits of X change is allowed this many times."""


WHAT_FILES_REFUSE = (
    "rows on disk",
    "only one class",
    "at least two classes",
    "sample_weight is zero",
    "must have at least 2 ",
    "error_score",
    "is not finite",
    "not negative",
    "of memory_mb",  # the sums of all folds
)
"""What errors say of rows on disk that have answers in memory."""

GRIDS = {"alpha": 10.0, "C": 10.0, "n_neighbors": 2, "max_depth": 2}
"""Parameters of the other candidate of a search, and what they are multiplied by."""

WHAT_TREES_LEARN = ("y must hold at least two classes", "sample_weight is zero for all")
"""What ``fit`` of a native learner refuses, and ``partial_fit``, by which trees learn, does not."""

NOT_FINITE = "every value must be finite"
"""What native learners say of rows that they do not take, also if some folds do without them."""


class FindingError(AssertionError):
    """Something that the suite promises does not hold."""


def check(case):
    """Raise `FindingError` where onefold and scikit-learn differ by more than is promised."""
    X, y = case.rows.make()
    kept = _copied(X), y.copy()
    weights = case.sample_weight()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        theirs = by_scikit_learn(case, X, y)
        ours = by_onefold(case, X, y, weights, options=options_of(case))
        if "has no option tol" in str(ours.error):
            ours = by_onefold(case, X, y, weights)
        _expect(_same(kept[0], X) and (kept[1] == y).all(), "X or y was changed")
        _expect(_same(weights, case.sample_weight()), "weights were changed")
        if isinstance(case.estimator, NativeEstimator) and NOT_FINITE in str(ours.error):
            return
        if theirs.error is not None or ours.error is not None:
            _compare_errors(ours.error, theirs.error)
            return
        _compare(case, X, y, ours, theirs)
        if case.n_jobs != 1 and ours.result.engine != "refit":
            _compare_bits(
                ours, by_onefold(case, X, y, weights, n_jobs=2, options=options_of(case)), "n_jobs"
            )
        if case.source != "memory":
            _compare_with_disk(case, X, y, weights)
        if case.in_grid and case.engine == "auto":
            _compare_with_grid(case, X, y, ours)


def _compare_errors(ours, theirs):
    if ours is None:
        if any(words in str(theirs) for words in WHAT_TREES_LEARN):
            return
        _expect(False, f"scikit-learn raises {type(theirs).__name__}: {theirs}; we answer")
    if theirs is None:
        text = str(ours)
        raise FindingError(
            f"we raise {type(ours).__name__}: {text}; scikit-learn answers"
        ) from ours
    if "sample_weight" in str(ours) and isinstance(theirs, TypeError):
        return  # ours names the argument
    related = issubclass(type(ours), type(theirs)) or issubclass(type(theirs), type(ours))
    needs_dense = "sparse rows" in str(ours) or "dense rows" in str(ours)
    related |= needs_dense and "parse" in str(theirs)
    related |= "object has no attribute '__name__'" in str(theirs)  # in the place of a ValueError
    related |= f"{type(ours).__name__}: " in str(theirs)  # all fits failed, by an error like ours
    kinds = (
        f"we raise {type(ours).__name__} ({ours}), scikit-learn {type(theirs).__name__} ({theirs})"
    )
    _expect(related, kinds)


def _compare(case, X, y, ours, theirs):
    result = ours.result
    _check_cost(case, result, theirs)
    tolerance = promised(case, result.engine)
    if result.certificates is not None:  # of linear predictors, which are of the order of 1
        tolerance = max(tolerance, 2 * result.certificates.epsilon)
    undefined = np.array([_has_no_d2(case, fold) for fold in ours.folds])
    for name, value in theirs.scores.items():
        unlike = (np.isnan(value) != np.isnan(ours.scores[name])) & ~undefined
        if isinstance(case.estimator, NativeEstimator):  # see WHAT_TREES_LEARN
            unlike &= ~np.isnan(value)
        _expect(not unlike.any(), f"{name} is {ours.scores[name]}, scikit-learn has {value}")
    is_said = result.engine == "seeded" and bool(result.status.unsolved)
    if tolerance == STABILITY or not theirs.converged or is_said or _is_vague(case.estimator):
        return
    others, direct = None, result.engine == "virtual"
    is_sure = all("predict" in peer for peer in theirs.folds)
    failed = any(np.isnan(value).any() for value in ours.scores.values())
    for fold, (own, peer) in enumerate(zip(ours.folds, theirs.folds, strict=True)):
        if "predict" not in peer or (failed and "predict" not in own):
            continue
        wrong = _difference(case, y, own, peer, tolerance, 0.0)
        if wrong is None:
            is_sure &= is_regressor(case.estimator) or _same_labels(own, peer)
            continue
        if others is None:
            others = perturbed(case, X, y)
        spread = max((_spread(other, peer, fold) for other in others), default=0.0)
        within = max(tolerance, rounding(case, X, y, theirs, fold) if direct else 0.0)
        wrong = _difference(case, y, own, peer, within, spread, others, fold)
        is_right = is_dense_solution if direct else is_optimum
        if wrong and is_right(case, X, y, own, theirs, fold):
            wrong = None
        _expect(wrong is None, f"fold {fold} by {result.engine} ({result.status}): {wrong}")
    constant = is_regressor(case.estimator) and any(
        np.ptp(y[fold["rows"]], axis=0).min() == 0 for fold in ours.folds
    )  # R² is one or zero with the last digit
    if others is None and is_sure and not constant:
        for name, value in theirs.scores.items():
            if case.rows.form == "float32" and case.rows.target == "far numbers":
                continue  # predictions of single precision are all but whole numbers
            rtol = 1e-3 if case.rows.form == "float32" else 1e-5
            close = np.isclose(value, ours.scores[name], rtol=rtol, atol=1e-5, equal_nan=True)
            close |= undefined
            _expect(close.all(), f"{name} is {ours.scores[name]}, scikit-learn has {value}")


def _difference(case, y, own, peer, tolerance, spread, others=(), fold=0):
    """What differs, or None."""
    at = np.argsort(own["rows"], kind="stable")
    theirs_at = np.argsort(peer["rows"], kind="stable")
    if not np.array_equal(own["rows"][at], peer["rows"][theirs_at]):
        return f"rows {own['rows']} and {peer['rows']} are held out"
    ours, theirs = own["predict"][at], peer["predict"][theirs_at]
    if ours.shape != theirs.shape:
        return f"predictions have shape {ours.shape}, scikit-learn's {theirs.shape}"
    if is_regressor(case.estimator):
        return _far(ours, theirs, tolerance, spread, _unit(y))
    name = next((one for one in ("decision_function", "predict_proba") if one in peer), None)
    sure = np.ones(len(theirs), bool)
    if name is not None and name in own and len(peer["classes"]) == len(np.unique(y)):
        values, others_values = own[name][at], peer[name][theirs_at]
        wrong = _far(values, others_values, tolerance, spread, 1.0)
        if wrong is not None:
            return f"{name}: {wrong}"
        margin = _margin(others_values)
        same = (values == others_values).reshape(len(values), -1).all(axis=1)
        scale = np.abs(others_values).max() + 1.0
        sure = same | (margin > 2 * (tolerance * scale + CONDITION * spread))
    for other in others:
        sure &= other[fold].get("predict", peer["predict"])[theirs_at] == theirs
    wrong = np.flatnonzero((ours != theirs) & sure)
    if len(wrong):
        rows = own["rows"][at][wrong]
        return f"rows {rows[:5]} are {ours[wrong][:5]}, scikit-learn has {theirs[wrong][:5]}"
    return None


def _is_vague(estimator):
    """Whether the kernel is not definite, and a machine may end in one of several places."""
    return isinstance(estimator, SVC | SVR) and estimator.kernel == "sigmoid"


def _has_no_d2(case, fold):
    """Whether D² is of a single row, or of means that underflow: ours is computed from the means.

    Scikit-learn's models give a number there, from their linear predictors.
    """
    if case.scoring is not None or not isinstance(case.estimator, GLMS) or "predict" not in fold:
        return False
    means = fold["predict"]
    return len(means) == 1 or bool(((means == 0) | np.isinf(means)).any())


def _same_labels(own, peer):
    mine, theirs = np.argsort(own["rows"], kind="stable"), np.argsort(peer["rows"], kind="stable")
    return np.array_equal(own["predict"][mine], peer["predict"][theirs])


def _far(ours, theirs, tolerance, spread, unit):
    if ours.shape != theirs.shape:
        return f"shape {ours.shape}, scikit-learn's {theirs.shape}"
    unlike = np.isfinite(ours) != np.isfinite(theirs)
    if unlike.any():
        return f"finite are {ours[unlike][:3]} and {theirs[unlike][:3]}"
    finite = np.isfinite(theirs)
    if not finite.any():
        return None
    ours, theirs = ours[finite], theirs[finite]
    center = np.median(theirs)
    scale = unit + np.abs(theirs - center).max() + 1e-6 * np.abs(center)
    error = np.abs(ours - theirs).max()
    digits = 4 * np.finfo(theirs.dtype).eps * np.abs(theirs).max()
    if error > tolerance * scale + CONDITION * spread + digits:
        worst = np.abs(ours - theirs).argmax()
        return (
            f"{ours.flat[worst]} is not {theirs.flat[worst]}: {error / scale:.1e} of the scale, "
            f"where {tolerance:.0e} is promised; scikit-learn itself moves by {spread / scale:.0e}"
        )
    return None


def _unit(y):
    """What an error of targets is compared with."""
    return float(np.std(y, axis=0).max() + 1e-3 * np.abs(y).max())


def _margin(values):
    if values.ndim == 1:
        return np.abs(values)
    ordered = np.sort(values, axis=1)
    return ordered[:, -1] - ordered[:, -2] if values.shape[1] > 1 else np.full(len(values), np.inf)


def _spread(others, peer, fold):
    """How much the answers of scikit-learn change with the last digits of X."""
    other, spread = others[fold], 0.0
    for name in ("decision_function", "predict_proba", "predict"):
        if name in peer and name in other and peer[name].dtype.kind == "f":
            if other[name].shape != peer[name].shape:
                return np.inf
            spread = max(spread, np.nanmax(np.abs(other[name] - peer[name]), initial=0.0))
    return spread


def _check_cost(case, result, theirs):
    """Counters that theory bounds."""
    n, k, cost = case.rows.n, len(result.folds), result.cost
    _expect(all(value >= 0 for value in cost.values()), f"a counter is negative: {cost}")
    if result.engine in ("merge", "tree") and isinstance(result.folds, onefold.Folds):
        bound = n * math.log2(2 * k) + n
        _expect(cost["rows_fed"] <= bound, f"{cost['rows_fed']} rows fed, {bound:.0f} allowed")
    if result.engine == "seeded" and theirs.converged and not result.status.unsolved:
        allowed = 3 * theirs.iterations + 50 * k + 1000
        done = cost["smo_iterations"]
        _expect(done <= allowed, f"{done} SMO iterations, LIBSVM has {theirs.iterations}")
    n_members = getattr(case.estimator, "n_estimators", 1)
    if result.engine in ("path", "virtual", "neighbors", "forest"):
        n_models = n_members * (2 if case.rows.target == "two outputs" else 1)
        allowed = (k + 1) * n_models + result.status.refitted_folds
        _expect(cost["fits"] <= allowed, f"{cost['fits']} fits, {allowed} allowed")
    if result.engine == "newton":
        n_outputs = len(result.classes) if result.classes is not None else 1
        allowed = 200 * n * (k + 1) * n_outputs
        _expect(cost["gradient_rows"] <= allowed, f"gradient_rows {cost}, {allowed} allowed")
    if result.status.refitted_folds and case.engine == "auto" and result.engine != "refit":
        _expect(
            bool(result.status.reason), f"folds are refitted, and nothing says why: {result.status}"
        )
    if result.status.reached is not None and not result.status.reason and not result.notes:
        within = result.status.reached <= result.status.tol
        _expect(within, f"the tolerance was not reached, and nothing says so: {result.status}")


def _compare_bits(ours, other, what):
    _expect(other.error is None, f"{what}: {other.error!r}")
    for one, two in zip(ours.folds, other.folds, strict=True):
        for name, value in one.items():
            same = np.array_equal(
                np.asarray(value), np.asarray(two[name]), equal_nan=value.dtype.kind == "f"
            )
            _expect(same, f"{name} depends on {what}")


def _compare_with_disk(case, X, y, weights):
    """Rows on disk against the same rows in memory."""
    is_native = type(case.estimator).__module__.startswith("onefold")
    names = ("LinearRegression", "Ridge", "GaussianNB", "MultinomialNB", "BernoulliNB")
    if not is_native and type(case.estimator).__name__ not in names:
        return
    if np.ndim(y) != 1 or case.rows.missing or case.cv == "pairs" or case.engine != "auto":
        return
    rows = X.toarray() if sp.issparse(X) else np.asarray(X, float)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"rows.{case.source}"
        if case.source == "npy":
            rows = np.ascontiguousarray(rows)
            np.save(path, rows)
        else:
            rows = sp.csr_array(rows)
            onefold.dump_libsvm(rows, np.zeros(len(y)), path)
            rows = onefold.load_libsvm(path)[0]
        options = {"order": "once"} if _needs_order(case.estimator) else {}
        memory = by_onefold(case, rows, y, weights, options=options)
        disk = by_onefold(case, path, y, weights, options=options | {"memory_mb": 0.003})
    if memory.error is not None:
        return
    if disk.error is not None:
        is_known = isinstance(disk.error, onefold.RefitWarning) or (
            isinstance(disk.error, ValueError)
            and any(words in str(disk.error) for words in WHAT_FILES_REFUSE)
        )
        _expect(is_known, f"disk: {disk.error!r}")
        return
    if options:
        _compare_bits(memory, disk, "where the rows are")
    else:
        is_vague = not is_native and "NB" not in type(case.estimator).__name__
        is_vague &= (
            bool(set(case.rows.quirks) & set(ILL_CONDITIONED)) or case.rows.p >= case.rows.n // 2
        )
        tolerance = 1e-3 if is_vague else TOLERANCE if not is_native else ROUNDING
        for fold, (one, two) in enumerate(zip(memory.folds, disk.folds, strict=True)):
            wrong = _difference(case, y, two, _with_classes(one, y), tolerance, 0.0)
            _expect(wrong is None, f"fold {fold} on disk: {wrong}")


def _compare_with_grid(case, X, y, alone):
    """One of two candidates of a search has the scores that it has alone."""
    name = next(
        (name for name in GRIDS if isinstance(getattr(case.estimator, name, None), int | float)),
        None,
    )
    simple = case.weights == "none" and case.error_score == "raise" and np.ndim(y) == 1
    if name is None or not simple or isinstance(case.scoring, list):
        return
    value = getattr(case.estimator, name)
    prefix = f"{case.pipeline().steps[-1][0]}__" if case.steps else ""
    grid = {prefix + name: [value, type(value)(value * GRIDS[name])]}
    search = onefold.GridSearchCV(
        case.pipeline(),
        grid,
        cv=case.splits(X, y),
        scoring=case.scoring,
        refit=False,
        error_score=np.nan,
        engine_options=options_of(case),
    )
    search.fit(X, y, groups=case.groups())
    [expected] = alone.scores.values()
    found = [search.cv_results_[f"split{fold}_test_score"][0] for fold in range(len(expected))]
    sizes = np.array([len(fold["rows"]) for fold in alone.folds])
    slack = 1e-5 * (1 + np.abs(expected))
    if not is_regressor(case.estimator):
        if case.scoring not in (None, "accuracy"):
            return
        slack = 1.01 / sizes  # a row whose classes are as likely
    close = np.abs(found - expected) <= slack
    close |= np.isnan(found) & np.isnan(expected)
    _expect(close.all(), f"in a grid of {grid} scores are {found}, alone {expected}")


def _with_classes(answers, y):
    return answers | {"classes": np.unique(y)}


def _needs_order(estimator):
    return type(estimator).__name__ in ("Pegasos", "Perceptron", "LogisticSGD", "LeastSquaresSGD")


def _copied(X):
    return list(X) if isinstance(X, list) else X.copy()


def _same(one, two):
    if one is None or isinstance(one, list):
        return one == two
    if sp.issparse(one):
        one, two = one.tocsr(), two.tocsr()
        return all(
            np.array_equal(getattr(one, name), getattr(two, name), equal_nan=name == "data")
            for name in ("data", "indices", "indptr")
        )
    if isinstance(one, pd.DataFrame):
        return one.equals(two)
    return np.array_equal(one, two, equal_nan=one.dtype.kind == "f")


def _expect(holds, message):
    if not holds:
        raise FindingError(message)
