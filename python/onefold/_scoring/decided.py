"""Predictions that follow from decision values, so that a classifier need not be asked for both."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC

__all__ = ["decided"]


def decided(estimator: Any, X: Any) -> dict[str, NDArray[Any]]:
    """Decision values of a fitted classifier, and its predictions, with the bits of `predict`.

    Parameters
    ----------
    estimator : estimator
        Fitted; perhaps a pipeline, whose steps then transform the rows once.
    X : array-like
        Rows.

    Returns
    -------
    responses : dict of arrays
        ``"decision_function"`` and ``"predict"``; empty unless the class is a linear classifier of
        scikit-learn or, with two classes, a support vector machine.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from onefold._scoring.decided import decided
    >>> model = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"])
    >>> decided(model, [[0.0], [3.0]])["predict"]
    array(['a', 'b'], dtype='<U1')
    """
    final = estimator
    while type(final) is Pipeline:
        final = final.steps[-1][1]
    is_linear, is_machine = _has_methods_of(final, LogisticRegression), _has_methods_of(final, SVC)
    if not is_linear and not (is_machine and len(final.classes_) == 2):
        return {}
    values = estimator.decision_function(X)
    if not isinstance(values, np.ndarray):
        return {}
    if values.ndim > 1:
        codes = values.argmax(axis=1)
    else:  # LIBSVM counts a vote of 0 for the second class
        codes = (values >= 0 if is_machine else values > 0).astype(np.intp)
    return {"decision_function": values, "predict": np.take(final.classes_, codes, axis=0)}


def _has_methods_of(final: Any, kind: type) -> bool:
    """Whether an estimator has the `predict` and `decision_function` of a class, and no others."""
    names = ("predict", "decision_function")
    return all(getattr(type(final), name, None) is getattr(kind, name) for name in names)
