"""What the engines promise, and the comparison of one case with scikit-learn."""

import math
import tempfile
import warnings
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import (
    GammaRegressor,
    LogisticRegression,
    PoissonRegressor,
    TweedieRegressor,
)
from sklearn.model_selection import LeaveOneOut
from sklearn.model_selection import cross_validate as sklearn_cross_validate
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR
from sklearn.utils import _safe_indexing, indexable

import onefold
from onefold.learners import GaussianNB, RidgeStatistics

BITS, ROUNDING, TOLERANCE, STABILITY = 0.0, 1e-9, 1e-5, math.inf
PROMISES = {
    "merge": ROUNDING,
    "virtual": ROUNDING,
    "newton": TOLERANCE,
    "path": TOLERANCE,
    "seeded": TOLERANCE,
    "neighbours": 1e-12,
    "forest": BITS,
    "bag": STABILITY,
    "tree": STABILITY,
    "refit": BITS,
}
"""The largest difference from refits, relative to the spread of what is predicted."""
ANY_ORDER = (GaussianNB, RidgeStatistics)
"""Incremental learners whose trees have the predictions of refits, to rounding."""
SMOOTH = (
    LogisticRegression,
    PoissonRegressor,
    GammaRegressor,
    TweedieRegressor,
    LinearSVC,
    LinearSVR,
)
PERTURBATION, CONDITION = 1e-13, 100
"""The last digits of X are changed to see what they mean to scikit-learn itself."""


class FindingError(AssertionError):
    """Something that the suite promises does not hold."""


@dataclass
class Answers:
    """What came out of one run: an error, or the answers of every fold."""

    error: Exception | None = None
    folds: list = None
    scores: dict = None
    converged: bool = True
    iterations: int = 0
    result: object = None


def check(case):
    """Raise `FindingError` where onefold and scikit-learn differ by more than is promised."""
    X, y = case.rows.make()
    kept = _copied(X), y.copy()
    weights = case.sample_weight()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        theirs = by_scikit_learn(case, X, y)
        ours = by_onefold(case, X, y, weights, **_options(case))
        if "has no option tol" in str(ours.error):
            ours = by_onefold(case, X, y, weights)
        _expect(_same(kept[0], X) and (kept[1] == y).all(), "X or y was changed")
        _expect(_same(weights, case.sample_weight()), "weights were changed")
        if theirs.error is not None or ours.error is not None:
            _compare_errors(ours.error, theirs.error)
            return
        _compare(case, X, y, ours, theirs)
        if case.n_jobs != 1 and ours.result.engine != "refit":
            _compare_bits(
                ours, by_onefold(case, X, y, weights, n_jobs=2, **_options(case)), "n_jobs"
            )
        if case.source != "memory":
            _compare_with_disk(case, X, y, weights)


def by_scikit_learn(case, X, y):
    """k refits by scikit-learn."""
    estimator = converging(case.pipeline())
    weights = case.sample_weight()
    name = f"{estimator.steps[-1][0]}__sample_weight" if case.steps else "sample_weight"
    cv = LeaveOneOut() if case.cv == "loo" else case.splits(X, y)
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        try:
            done = sklearn_cross_validate(
                estimator,
                X,
                y,
                cv=cv,
                groups=case.groups(),
                scoring=case.scoring,
                params=None if weights is None else {name: weights},
                error_score=case.error_score,
                return_estimator=True,
                return_indices=True,
            )
            X, y = indexable(X, y)
            pairs = zip(done["estimator"], done["indices"]["test"], strict=True)
            folds = [_answers(one, X, test, case.error_score) for one, test in pairs]
            for one, fold, train in zip(
                done["estimator"], folds, done["indices"]["train"], strict=True
            ):
                if "predict" in fold and _has_any_intercept(_last(one), train, weights):
                    del fold["predict"]
        except Exception as error:
            return Answers(error)
    scores = {name: value for name, value in done.items() if name.startswith("test_")}
    converged = not any(
        issubclass(one.category, ConvergenceWarning) or "did not converge" in str(one.message)
        for one in caught
    )
    fitted = [vars(_last(one)) for one in done["estimator"]]
    iterations = sum(
        int(np.sum(one["n_iter_"])) for one in fitted if one.get("n_iter_") is not None
    )
    return Answers(None, folds, scores, converged, iterations)


def converging(estimator):
    """The same estimator with the solver that gets closest to the optimum."""
    if hasattr(_last(estimator), "solver") and _last(estimator).solver == "lbfgs":
        _last(estimator).set_params(solver="newton-cholesky")
    if getattr(_last(estimator), "solver", None) == "newton-cholesky":
        _last(estimator).set_params(max_iter=200)
    return estimator


def by_onefold(case, X, y, weights, n_jobs=1, **options):
    """What onefold makes of it."""
    try:
        result = onefold.cross_validate(
            case.pipeline(),
            X,
            y,
            cv=case.splits(X, y),
            groups=case.groups(),
            scoring=case.scoring,
            sample_weight=weights,
            engine=case.engine,
            error_score=case.error_score,
            n_jobs=n_jobs,
            **options,
        )
    except Exception as error:
        return Answers(error)
    folds = [result.fold_answers(fold) for fold in range(len(result.folds))]
    scores = {f"test_{name}": value for name, value in result.scores.items()}
    return Answers(None, folds, scores, result=result)


def _options(case):
    """A gradient at which rounding is left even of ill-conditioned problems."""
    return {"tol": 1e-12} if case.engine == "auto" and isinstance(case.estimator, SMOOTH) else {}


def _answers(estimator, X, test, error_score):
    """The answers of a fitted estimator for its test set; only the rows where the fold failed."""
    X = _safe_indexing(X, test)
    try:
        answers = {"rows": test, "predict": estimator.predict(X)}
    except Exception:
        if error_score == "raise":
            raise
        return {"rows": test}
    for name in ("decision_function", "predict_proba"):
        if is_classifier(estimator) and hasattr(estimator, name):
            answers[name] = getattr(estimator, name)(X)
            answers["classes"] = estimator.classes_
            break
    return answers


def _has_any_intercept(machine, train, weights):
    """Whether all support vectors are at their bounds: rounding decides where LIBSVM ends."""
    if not isinstance(machine, SVC | SVR):
        return False
    bounds = machine.C * (1.0 if weights is None else weights[train][machine.support_])
    dual = machine.dual_coef_
    sizes = np.abs(dual.toarray() if sp.issparse(dual) else dual)
    if isinstance(machine, SVR):
        return not (sizes < bounds * (1 - 1e-7)).any()
    of = np.repeat(np.arange(len(machine.classes_)), machine.n_support_)
    bounds = bounds * machine.class_weight_[of]
    free = (sizes > 1e-9 * bounds) & (sizes < bounds * (1 - 1e-7))
    if len(machine.classes_) == 2:
        return not free.any()
    pairs = combinations(range(len(machine.classes_)), 2)
    return not all(free[b - 1, of == a].any() or free[a, of == b].any() for a, b in pairs)


def _compare_errors(ours, theirs):
    if ours is None:
        if "dense data is required" in str(theirs):
            return  # Gaussian naive Bayes takes sparse rows here
        _expect(False, f"scikit-learn raises {type(theirs).__name__}: {theirs}; we answer")
    if theirs is None:
        text = str(ours)
        raise FindingError(
            f"we raise {type(ours).__name__}: {text}; scikit-learn answers"
        ) from ours
    if "sample_weight" in str(ours) and isinstance(theirs, TypeError):
        return  # ours names the argument
    related = issubclass(type(ours), type(theirs)) or issubclass(type(theirs), type(ours))
    kinds = (
        f"we raise {type(ours).__name__} ({ours}), scikit-learn {type(theirs).__name__} ({theirs})"
    )
    _expect(related, kinds)


def promised(case, engine):
    """The promise of the engine that ran."""
    if engine == "tree" and isinstance(case.estimator, ANY_ORDER):
        return ROUNDING
    promise = PROMISES[engine]
    if case.rows.form == "float32":
        return max(promise, TOLERANCE)  # scikit-learn computes some of it in single precision
    return promise


def _compare(case, X, y, ours, theirs):
    result = ours.result
    _check_cost(case, result, theirs)
    tolerance = promised(case, result.engine)
    for name, value in theirs.scores.items():
        unlike = np.isnan(value) != np.isnan(ours.scores[name])
        _expect(not unlike.any(), f"{name} is {ours.scores[name]}, scikit-learn has {value}")
    if tolerance == STABILITY or not theirs.converged:
        return
    others = None
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
            others = _perturbed(case, X, y)
        spread = max((_spread(other, peer, fold) for other in others), default=0.0)
        wrong = _difference(case, y, own, peer, tolerance, spread, others, fold)
        _expect(wrong is None, f"fold {fold} by {result.engine} ({result.status}): {wrong}")
    constant = is_regressor(case.estimator) and any(
        np.ptp(y[fold["rows"]], axis=0).min() == 0 for fold in ours.folds
    )  # R² is one or zero with the last digit
    if others is None and is_sure and not constant:
        for name, value in theirs.scores.items():
            close = np.isclose(value, ours.scores[name], rtol=1e-5, atol=1e-5, equal_nan=True)
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
    if error > tolerance * scale + CONDITION * spread:
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


def _perturbed(case, X, y):
    """What scikit-learn answers where the last digits of X differ, or the order of its columns."""
    found = []
    for kind in ("entries", "columns", "mirrored"):
        try:
            other = by_scikit_learn(case, _wobbled(X, kind), y)
        except Exception:
            continue
        if other.error is None:
            found.append(other.folds)
    return found


def _wobbled(X, kind):
    rng = np.random.default_rng(0)
    if isinstance(X, list):
        return X
    if kind == "mirrored":
        return (
            X.iloc[:, ::-1]
            if isinstance(X, pd.DataFrame)
            else (X.tocsc() if sp.issparse(X) else X)[:, ::-1]
        )
    if sp.issparse(X):
        X = X.tocsr().astype(float)
        X.data = X.data * (1 + PERTURBATION * rng.uniform(-1, 1, X.data.shape))
        return X
    single = getattr(X, "dtype", None) == np.float32
    size = 1e-7 if single else PERTURBATION
    values = np.asarray(X, float)
    scale = values if kind == "entries" else np.nanmax(np.abs(values), axis=0)
    values = values + size * scale * rng.uniform(-1, 1, X.shape)
    if isinstance(X, pd.DataFrame):
        return pd.DataFrame(values, columns=X.columns)
    return values.astype(np.float32) if single else values


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
    if result.engine == "seeded" and theirs.converged:
        allowed = 3 * theirs.iterations + 50 * k + 1000
        done = cost["smo_iterations"]
        _expect(done <= allowed, f"{done} SMO iterations, LIBSVM has {theirs.iterations}")
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
        memory = by_onefold(case, rows, y, weights, **options)
        disk = by_onefold(case, path, y, weights, memory_mb=0.003, **options)
    if memory.error is not None:
        return
    if disk.error is not None:
        _expect(isinstance(disk.error, (ValueError, onefold.RefitWarning)), f"disk: {disk.error!r}")
        return
    if options:
        _compare_bits(memory, disk, "where the rows are")
    elif is_native or "NB" in type(case.estimator).__name__:
        tolerance = ROUNDING
        for fold, (one, two) in enumerate(zip(memory.folds, disk.folds, strict=True)):
            wrong = _difference(case, y, two, _with_classes(one, y), tolerance, 0.0)
            _expect(wrong is None, f"fold {fold} on disk: {wrong}")


def _with_classes(answers, y):
    return answers | {"classes": np.unique(y)}


def _needs_order(estimator):
    return type(estimator).__name__ in ("Pegasos", "Perceptron", "LogisticSGD", "LeastSquaresSGD")


def _last(estimator):
    return estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator


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
