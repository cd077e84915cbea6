"""What all native learners share: scikit-learn's contract around a native model.

``_core.Learner`` holds the model and does the arithmetic; the classes here check arguments and keep
scikit-learn's contract. A learner declares its parameters once, as annotated class attributes under
the decorator `native`, which generates ``__init__`` and names the learner of the core:

    @native("pegasos")
    class Pegasos(LinearClassifier):
        alpha: float = 1e-4
        _: KW_ONLY
        fit_intercept: bool = False
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any, Self, TypeVar, dataclass_transform

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClusterMixin,
    DensityMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .._core import Learner
from .._inputs.data import as_values, as_weights, encode, native_rows

__all__ = [
    "NativeClassifier",
    "NativeClusterer",
    "NativeDensity",
    "NativeEstimator",
    "NativeRegressor",
    "native",
]

Floats = NDArray[np.float64]
Native = TypeVar("Native", bound="NativeEstimator")

_KINDS: dict[type, tuple[Any, str]] = {
    bool: ((bool, np.bool_), "True or False"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
}
"""What a parameter must be, by the type of its default."""


@dataclass_transform(eq_default=False)
def native(kind: str) -> Callable[[type[Native]], type[Native]]:
    """Make a learner of a class that declares its parameters as annotated attributes.

    Parameters
    ----------
    kind : str
        The name of the learner in the core. It gets the parameters by their names, see
        `NativeEstimator._core_params`.
    """

    def declare(cls: type[Native]) -> type[Native]:
        cls._kind = kind
        return dataclass(cls, repr=False, eq=False, match_args=False)

    return declare


class NativeEstimator(BaseEstimator):
    """A scikit-learn estimator whose model is native and learns row by row."""

    _is_order_sensitive = False
    """Whether the order of the rows changes the model by more than rounding."""
    _is_mergeable = False
    """Whether the models of two sets of rows can be merged into the model of both."""
    _is_rescalable = False
    """Whether the model of scaled rows follows from that of the rows."""
    _shows_bad_rows = False
    """Whether the output for a row that holds NaN or infinity is never finite itself."""
    _kind: str
    """The name of the learner in the core."""
    n_features_in_: int
    _learner: Learner
    """The fitted model, which keeps the parameters that it was made with."""

    def _new_learner(self, n_features: int, n_targets: int) -> Learner:
        """Make an untrained native model.

        ``n_targets`` counts classes or outputs; it is 0 for unsupervised learners.
        """
        return Learner(self._kind, n_features, n_targets, self._core_params(n_features))

    def _core_params(self, n_features: int) -> dict[str, Any]:
        """The parameters by the names of the core."""
        return {parameter.name: getattr(self, parameter.name) for parameter in fields(self)}

    def _make_learner(self, n_features: int, n_targets: int) -> Learner:
        """Check the types of the parameters, and make an untrained native model."""
        for parameter in fields(self):
            if type(parameter.default) not in _KINDS:
                continue
            kind, description = _KINDS[type(parameter.default)]
            if not isinstance(value := getattr(self, parameter.name), kind):
                raise TypeError(f"{parameter.name} must be {description}, got {value!r}")
        return self._new_learner(n_features, n_targets)

    def _answers(self, outputs: Floats) -> dict[str, NDArray[Any]]:
        """Convert the native model's outputs to what ``predict`` and similar methods return."""
        raise NotImplementedError

    def _targets(self, y: Any, n_samples: int) -> tuple[Any, int]:
        """Convert targets for the native model; also return the number of classes or outputs."""
        return None, 0

    def _take_over_targets(self, other: Self) -> None:
        """Copy the attributes that ``_targets`` of another learner of the class has set."""

    def _rows(self, X: Any, *, reset: bool) -> Any:
        rows = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=np.float64, order="C")
        return native_rows(rows)

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Train on all rows, once each, in their order.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self : object
        """
        return self._fit(X, y, sample_weight)

    def _fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, order_seed: int | None = None
    ) -> Self:
        """Train on all rows in their order, or in a random order if there is a seed."""
        self._forget()
        return self._learn(X, y, sample_weight, first=True, order_seed=order_seed)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Train on more rows, with the parameters of the first call.

        What ``set_params`` changes after that is used by the next ``fit``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self : object
        """
        return self._learn(X, y, sample_weight, first=not hasattr(self, "_learner"))

    def _forget(self) -> None:
        self.__dict__.pop("_learner", None)

    def _learn(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        *,
        first: bool,
        order_seed: int | None = None,
    ) -> Self:
        rows = self._rows(X, reset=first)
        n_samples = rows.shape[0]
        targets, n_targets = self._targets(y, n_samples)
        weights = as_weights(sample_weight, n_samples)
        with self._unshared():
            if first:
                self._learner = self._make_learner(rows.shape[1], n_targets)
            else:
                # Shallow copies of this estimator keep the model as it is.
                self._learner = self._learner.fork()
            self._learner.update((rows, targets, n_targets, weights), order_seed)
        return self

    @contextmanager
    def _unshared(self) -> Iterator[None]:
        """Say what it means that another thread uses the model."""
        try:
            yield
        except RuntimeError as error:
            if "borrowed" not in str(error):
                raise
            raise RuntimeError(
                f"this {type(self).__name__} is being fitted by another thread: wait for it, or "
                "let each thread have a copy"
            ) from None

    def _with_model(self, model: Learner, n_features: int) -> Self:
        """A copy of this estimator, which knows its targets, fitted by a model of the core."""
        fitted = copy(self)
        fitted._learner = model
        fitted.n_features_in_ = n_features
        return fitted

    def _fitted(self, name: str) -> Floats:
        """A fitted parameter of the native model."""
        check_is_fitted(self, "_learner")
        with self._unshared():
            return self._learner.fitted()[name]

    def _used(self, name: str) -> Any:
        """A parameter of the core, as it was when the native model was made."""
        check_is_fitted(self, "_learner")
        return self._learner.parameters[name]

    def _ask(self, name: str, X: Any) -> Any:
        check_is_fitted(self, "_learner")
        return self._answers(self._outputs(X))[name]

    def _outputs(self, X: Any) -> Floats:
        rows = self._rows(X, reset=False)
        with self._unshared():
            return self._learner.evaluate(rows)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class NativeClassifier(ClassifierMixin, NativeEstimator):
    """A native learner of classes."""

    classes_: NDArray[Any]

    def _forget(self) -> None:
        super()._forget()
        self.__dict__.pop("classes_", None)

    def partial_fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Train on more rows, with the parameters of the first call.

        What ``set_params`` changes after that is used by the next ``fit``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like, optional
            All classes; required in the first call.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self : object
        """
        first = not hasattr(self, "_learner")
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        if classes is not None:
            known = np.unique(np.asarray(classes))
            if not first and not np.array_equal(known, self.classes_):
                raise ValueError(
                    f"classes={classes!r} is not the same as on last call to partial_fit: "
                    f"{self.classes_.tolist()}"
                )
            self.classes_ = known
        return self._learn(X, y, sample_weight, first=first)

    def _targets(self, y: Any, n_samples: int) -> tuple[Any, int]:
        labels = _one_column(y, n_samples)
        assert_all_finite(labels, input_name="y")
        if labels.dtype.kind not in "biu":
            check_classification_targets(labels)
        classes, codes = encode(labels)
        if not hasattr(self, "classes_"):
            self.classes_ = classes
        if len(self.classes_) < 2:
            only = self.classes_.tolist()
            raise ValueError(f"y must hold at least two classes, got one class: {only}")
        if np.array_equal(classes, self.classes_):
            return codes, len(classes)
        known_codes = np.searchsorted(self.classes_, labels)
        known_codes[known_codes == len(self.classes_)] = 0
        if (unknown := self.classes_[known_codes] != labels).any():
            index = int(unknown.argmax())
            label, known = labels.tolist()[index], self.classes_.tolist()
            raise ValueError(
                f"The target label(s) [{label!r}] in y do not exist in the initial classes "
                f"{known}; the first is y[{index}]"
            )
        return known_codes.astype(np.uint32), len(self.classes_)

    def _take_over_targets(self, other: Self) -> None:
        self.classes_ = other.classes_

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most likely class of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        return np.asarray(self._ask("predict", X))


class NativeRegressor(RegressorMixin, NativeEstimator):
    """A native learner of numbers."""

    def _targets(self, y: Any, n_samples: int) -> tuple[Any, int]:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        values = as_values(y, n_samples)
        self._is_single = np.asarray(y).ndim == 1
        return values, values.shape[1]

    def _take_over_targets(self, other: Self) -> None:
        self._is_single = other._is_single

    def _answers(self, outputs: Floats) -> dict[str, NDArray[Any]]:
        return {"predict": outputs[:, 0] if self._is_single else outputs}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def predict(self, X: Any) -> Floats:
        """Return the predicted value of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        return np.asarray(self._ask("predict", X))


class NativeDensity(DensityMixin, NativeEstimator):
    """A native density estimator."""

    def _answers(self, outputs: Floats) -> dict[str, NDArray[Any]]:
        return {"score_samples": outputs[:, 0]}

    def score_samples(self, X: Any) -> Floats:
        """Return the log density at each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
        """
        return np.asarray(self._ask("score_samples", X))

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log density of the rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        score : float
        """
        return float(self.score_samples(X).mean())


class NativeClusterer(TransformerMixin, ClusterMixin, NativeEstimator):
    """A native clustering: the native model's outputs are squared distances from the centres."""

    def _answers(self, outputs: Floats) -> dict[str, NDArray[Any]]:
        return {"predict": outputs.argmin(axis=1), "transform": np.sqrt(outputs)}

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Train on all rows, once each, in their order, then assign them to the centres.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self : object
        """
        super().fit(X, sample_weight=sample_weight)
        self.labels_ = self.predict(X)
        return self

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the nearest centre of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        return np.asarray(self._ask("predict", X))

    def transform(self, X: Any) -> Floats:
        """Return the distances of each row from the centres.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
        """
        return np.asarray(self._ask("transform", X))

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the sum of squared distances from the nearest centres, as `KMeans` does.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        score : float
        """
        return -float(np.square(self.transform(X).min(axis=1)).sum())


def _one_column(y: Any, n_samples: int) -> NDArray[Any]:
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    labels = column_or_1d(y, warn=True)
    if len(labels) != n_samples:
        raise ValueError(f"y has {len(labels)} entries for {n_samples} samples")
    return np.asarray(labels)
