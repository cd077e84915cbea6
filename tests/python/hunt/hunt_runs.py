"""One case by scikit-learn, by onefold, and by scikit-learn where the last digits of X differ."""

import warnings
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
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

SMOOTH = (
    LogisticRegression,
    PoissonRegressor,
    GammaRegressor,
    TweedieRegressor,
    LinearSVC,
    LinearSVR,
)
PERTURBATION = 1e-13
"""The last digits of X are changed to see what they mean to scikit-learn itself."""


@dataclass
class Answers:
    """What came out of one run: an error, or the answers of every fold."""

    error: Exception | None = None
    folds: list = None
    scores: dict = None
    converged: bool = True
    iterations: int = 0
    result: object = None
    models: list = None
    train: list = None


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
            folds = [_fold_answers(one, X, test, case.error_score) for one, test in pairs]
            for one, fold, train in zip(
                done["estimator"], folds, done["indices"]["train"], strict=True
            ):
                if "predict" in fold and _has_any_intercept(last_step(one), train, weights):
                    del fold["predict"]
        except Exception as error:
            return Answers(error)
    scores = {name: value for name, value in done.items() if name.startswith("test_")}
    converged = not any(
        issubclass(one.category, ConvergenceWarning) or "did not converge" in str(one.message)
        for one in caught
    )
    fitted = [vars(last_step(one)) for one in done["estimator"]]
    iterations = sum(
        int(np.sum(one["n_iter_"])) for one in fitted if one.get("n_iter_") is not None
    )
    answers = Answers(None, folds, scores, converged, iterations)
    answers.models, answers.train = done["estimator"], done["indices"]["train"]
    return answers


def converging(estimator):
    """The same estimator with the solver that gets closest to the optimum."""
    if hasattr(last_step(estimator), "solver") and last_step(estimator).solver == "lbfgs":
        last_step(estimator).set_params(solver="newton-cholesky")
    if getattr(last_step(estimator), "solver", None) == "newton-cholesky":
        last_step(estimator).set_params(max_iter=200)
    return estimator


def by_onefold(case, X, y, weights, n_jobs=1, options=None, **keywords):
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
            engine_options=options,
            **keywords,
        )
    except Exception as error:
        return Answers(error)
    folds = [result.fold_answers(fold) for fold in range(len(result.folds))]
    scores = {f"test_{name}": value for name, value in result.scores.items()}
    return Answers(None, folds, scores, result=result)


def options_of(case):
    """A gradient at which rounding is left even of ill-conditioned problems."""
    return {"tol": 1e-12} if case.engine == "auto" and isinstance(case.estimator, SMOOTH) else {}


def _fold_answers(estimator, X, test, error_score):
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
            try:
                answers[name] = getattr(estimator, name)(X)
            except (IndexError, ValueError):  # a class of weight 0, no variance within classes
                continue
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
    if sizes.shape != (len(machine.classes_) - 1, machine.n_support_.sum()):
        return True  # LIBSVM did not know a class whose rows all have weight 0
    of = np.repeat(np.arange(len(machine.classes_)), machine.n_support_)
    bounds = bounds * machine.class_weight_[of]
    free = (sizes > 1e-9 * bounds) & (sizes < bounds * (1 - 1e-7))
    if len(machine.classes_) == 2:
        return not free.any()
    pairs = combinations(range(len(machine.classes_)), 2)
    return not all(free[b - 1, of == a].any() or free[a, of == b].any() for a, b in pairs)


def perturbed(case, X, y):
    """What scikit-learn answers where the last digits of X differ, or the order of its columns."""
    found = []
    for kind in ("entries", "columns", "mirrored"):
        try:
            other = by_scikit_learn(case, _wobbled(X, kind), y)
        except Exception:
            continue
        if other.error is None:
            found.append(other.folds)
    if isinstance(case.estimator, SVC | SVR):  # what its tolerance leaves open
        estimator = clone(case.estimator).set_params(tol=2 * case.estimator.tol)
        found.append(by_scikit_learn(replace(case, estimator=estimator), X, y).folds)
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


def last_step(estimator):
    return estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
