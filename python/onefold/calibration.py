"""Probabilities of classifiers by calibration on held-out predictions."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import Any

import sklearn.calibration as theirs

from ._engines.svm_solver import ENGINE_CONSTRAINT, call_with_solver, solver_of
from ._sklearn_compat import (
    _fit_classifier_calibrator_pair,
    _fit_context,
    parameter_constraints,
    with_replaced_globals,
)
from .model_selection._cross_validate import cross_val_predict

__all__ = ["CalibratedClassifierCV"]


class CalibratedClassifierCV(theirs.CalibratedClassifierCV):
    """Calibrate the probabilities of a classifier, for about the price of one fit.

    This is scikit-learn's class. With ``ensemble=False`` an engine computes the held-out decision
    values of all samples; for ``SVC`` all folds share one kernel matrix. This replaces
    ``SVC(probability=True)``, which scikit-learn deprecates. With ``ensemble=True`` a classifier is
    fitted for each fold and kept, as in scikit-learn. The solver of onefold makes all fits of an
    ``SVC``.

    Parameters
    ----------
    estimator : estimator, optional
        The classifier; by default a linear support vector machine.
    method, cv, n_jobs, ensemble
        As in scikit-learn.
    engine : str, default="auto"
        The engine, as in `onefold.cross_validate`; ``"refit"`` does what scikit-learn does. Only
        ``ensemble=False`` uses it.

    Attributes
    ----------
    calibrated_classifiers_, classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> import onefold
    >>> X, y = load_iris(return_X_y=True)
    >>> calibrated = onefold.CalibratedClassifierCV(SVC(), ensemble=False).fit(X, y)
    >>> calibrated.predict_proba(X[::50]).round(2)
    array([[0.96, 0.04, 0.  ],
           [0.01, 0.89, 0.1 ],
           [0.01, 0.01, 0.99]])
    """

    _parameter_constraints = (
        parameter_constraints(theirs.CalibratedClassifierCV) | ENGINE_CONSTRAINT
    )

    def __init__(
        self,
        estimator: Any = None,
        *,
        method: str = "sigmoid",
        cv: Any = None,
        n_jobs: int | None = None,
        ensemble: bool | str = "auto",
        engine: str = "auto",
    ) -> None:
        super().__init__(estimator, method=method, cv=cv, n_jobs=n_jobs, ensemble=ensemble)
        self.engine = engine

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Any:
        """Fit the classifier and the calibration.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Weights in training, if the classifier takes them, and in the calibration.
        **fit_params
            More arguments of ``fit`` of the classifier.

        Returns
        -------
        self : object
        """
        how: dict[str, Any] = {"engine": self.engine, "n_jobs": self.n_jobs}
        fit_pair = partial(call_with_solver, _fit_classifier_calibrator_pair, **how)
        with ExitStack() as stack:

            def predict(estimator: Any, **keywords: Any) -> Any:
                held_out = cross_val_predict(estimator, engine=self.engine, **keywords)
                stack.enter_context(solver_of(estimator, **how))  # it is fitted to all rows next
                return held_out

            fit = with_replaced_globals(
                theirs.CalibratedClassifierCV.fit,
                cross_val_predict=predict,
                _fit_classifier_calibrator_pair=fit_pair,
            )
            return fit(self, X, y, sample_weight, **fit_params)
