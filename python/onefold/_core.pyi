"""The native part of onefold, checked against the extension by mypy.stubtest."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Folds",
    "Learner",
    "LeastSquares",
    "LibsvmReader",
    "Splits",
    "__version__",
    "check_rows",
    "convert_libsvm",
    "dump_libsvm",
    "load_libsvm",
    "merge_cv",
    "refit_cv",
    "svm_decide",
    "svm_fit",
    "svm_kfold",
    "svm_vote",
    "tree_cv",
    "tree_walk",
    "virtual_diagnostics",
    "virtual_errors",
    "virtual_kernel_errors",
    "virtual_kernel_predict",
    "virtual_predict",
]

__version__: str

_Indices: TypeAlias = NDArray[np.int64]
_Codes: TypeAlias = NDArray[np.uint32]
_Floats: TypeAlias = NDArray[np.float64]
_Report: TypeAlias = Callable[[int, int], None]

_Examples: TypeAlias = tuple[Any, NDArray[Any] | None, int, _Floats | None]
"""Rows, targets (codes of classes, a matrix of numbers or None), number of classes, weights."""

class _Walk(Protocol):
    """How the core goes over the rows."""

    @property
    def strategy(self) -> str: ...
    @property
    def seed(self) -> int | None: ...
    @property
    def n_jobs(self) -> int: ...

# values, indices, indptr, labels, ends of labels, qids
_Matrix: TypeAlias = tuple[
    NDArray[Any], NDArray[Any], NDArray[Any], NDArray[np.float64], _Indices, _Indices
]

def check_rows(X: Any, n_jobs: int) -> None: ...
def load_libsvm(
    files: list[Any],
    buffers: list[tuple[NDArray[Any], NDArray[np.int32]]],
    options: dict[str, Any],
    n_jobs: int,
    progress: _Report | None,
) -> tuple[list[tuple[Any, ...]], int]: ...
def convert_libsvm(
    files: list[Any], directory: str, options: dict[str, Any], n_jobs: int, progress: _Report | None
) -> None: ...
def dump_libsvm(
    X: Any,
    labels: NDArray[np.float64],
    file: Any,
    options: dict[str, Any],
    n_jobs: int,
    progress: _Report | None,
) -> None: ...

@final
class LibsvmReader:
    def __new__(
        cls, files: list[Any], n_rows: int, options: dict[str, Any], n_jobs: int
    ) -> LibsvmReader: ...
    @property
    def n_features(self) -> int: ...
    def next(self) -> _Matrix | None: ...
    def close(self) -> None: ...

@final
class Folds:
    @staticmethod
    def contiguous(n_samples: int, n_folds: int) -> Folds: ...
    @staticmethod
    def from_labels(labels: _Indices, n_folds: int) -> Folds: ...
    @staticmethod
    def dealt(classes: _Codes, dealt: list[_Codes], n_folds: int) -> Folds: ...
    def __len__(self) -> int: ...
    @property
    def n_samples(self) -> int: ...
    @property
    def labels(self) -> _Indices: ...
    @property
    def rows(self) -> _Indices: ...
    @property
    def starts(self) -> _Indices: ...
    def test(self, fold: int) -> _Indices: ...
    def train(self, fold: int) -> _Indices: ...

@final
class Splits:
    def __new__(cls, n_samples: int, pairs: list[tuple[_Indices, _Indices]]) -> Splits: ...
    def __len__(self) -> int: ...
    @property
    def n_samples(self) -> int: ...
    @property
    def rows(self) -> _Indices: ...
    @property
    def starts(self) -> _Indices: ...
    def test(self, fold: int) -> _Indices: ...
    def train(self, fold: int) -> _Indices: ...

@final
class Learner:
    @staticmethod
    def pegasos(
        n_features: int, n_classes: int, *, alpha: float, project: bool, intercept: bool
    ) -> Learner: ...
    @staticmethod
    def least_squares_sgd(
        n_features: int, n_outputs: int, *, step: float, radius: float, intercept: bool
    ) -> Learner: ...
    @staticmethod
    def logistic_sgd(
        n_features: int, n_classes: int, *, alpha: float, eta0: float, intercept: bool
    ) -> Learner: ...
    @staticmethod
    def perceptron(n_features: int, n_classes: int, *, intercept: bool) -> Learner: ...
    @staticmethod
    def passive_aggressive(
        n_features: int, n_classes: int, *, aggressiveness: float, damped: bool, intercept: bool
    ) -> Learner: ...
    @staticmethod
    def gaussian_nb(
        n_features: int, n_classes: int, *, var_smoothing: float, priors: _Floats | bool
    ) -> Learner: ...
    @staticmethod
    def discrete_nb(
        n_features: int,
        n_classes: int,
        *,
        alpha: float,
        priors: _Floats | bool,
        events: str,
        norm: bool = False,
        above: float = 0.0,
    ) -> Learner: ...
    @staticmethod
    def gaussian_density(n_features: int, *, full: bool, reg_covar: float) -> Learner: ...
    @staticmethod
    def histogram_density(edges: list[_Floats], *, smoothing: float) -> Learner: ...
    @staticmethod
    def online_kmeans(n_features: int, *, n_clusters: int) -> Learner: ...
    @staticmethod
    def recursive_least_squares(
        n_features: int, n_outputs: int, *, alpha: float, intercept: bool
    ) -> Learner: ...
    @staticmethod
    def least_squares_statistics(
        n_features: int, n_outputs: int, *, alpha: float, intercept: bool
    ) -> Learner: ...
    def learn(self, examples: _Examples) -> None: ...
    def evaluate(self, X: Any) -> _Floats: ...
    def hypothesis(self) -> tuple[_Floats, _Floats]: ...
    def copy(self) -> Learner: ...
    @property
    def n_outputs(self) -> int: ...
    @property
    def state(self) -> _Floats: ...
    @state.setter
    def state(self, state: _Floats) -> None: ...

def tree_cv(
    learners: Learner | list[Learner],
    examples: _Examples,
    folds: Folds,
    walk: _Walk,
    progress: _Report | None = None,
) -> tuple[_Floats, dict[str, int]]: ...
def refit_cv(
    learners: Learner | list[Learner],
    examples: _Examples,
    folds: Folds | Splits,
    walk: _Walk,
    progress: _Report | None = None,
) -> tuple[_Floats, dict[str, int]]: ...
def merge_cv(
    learners: Learner | list[Learner],
    examples: _Examples,
    folds: Folds,
    walk: _Walk,
    progress: _Report | None = None,
) -> tuple[_Floats, dict[str, int]]: ...
def tree_walk(
    handler: Any,
    model: Any,
    folds: Folds,
    walk: _Walk,
    progress: _Report | None = None,
) -> dict[str, int]: ...

@final
class LeastSquares:
    def __new__(
        cls,
        alphas: list[float],
        *,
        intercept: bool = True,
        scaler: tuple[bool, bool] | None = None,
    ) -> LeastSquares: ...

def virtual_predict(
    X: Any,
    y: _Floats,
    weights: _Floats | None,
    cv: Folds | Splits,
    model: LeastSquares,
    *,
    coefficients: bool = False,
    n_jobs: int = 1,
    progress: _Report | None = None,
) -> tuple[_Floats, _Floats]: ...
def virtual_errors(
    X: Any,
    y: _Floats,
    weights: _Floats | None,
    cv: Folds | Splits,
    model: LeastSquares,
    *,
    n_jobs: int = 1,
    progress: _Report | None = None,
) -> tuple[_Floats, _Floats, _Floats]: ...
def virtual_kernel_predict(
    K: _Floats,
    y: _Floats,
    weights: _Floats | None,
    cv: Folds | Splits,
    alphas: list[float],
    *,
    n_jobs: int = 1,
    progress: _Report | None = None,
) -> _Floats: ...
def virtual_kernel_errors(
    K: _Floats,
    y: _Floats,
    weights: _Floats | None,
    cv: Folds | Splits,
    alphas: list[float],
    *,
    n_jobs: int = 1,
    progress: _Report | None = None,
) -> tuple[_Floats, _Floats, _Floats]: ...
def virtual_diagnostics(
    X: Any,
    y: _Floats,
    weights: _Floats | None,
    model: LeastSquares,
    *,
    n_jobs: int = 1,
    progress: _Report | None = None,
) -> tuple[_Floats, _Floats, _Floats]: ...

class _Settings(Protocol):
    """What the solver of support vector machines needs to know."""

    @property
    def kernel(self) -> str: ...
    @property
    def gammas(self) -> list[float]: ...
    @property
    def coef0(self) -> float: ...
    @property
    def degree(self) -> int: ...
    @property
    def C(self) -> float: ...  # noqa: N802
    @property
    def epsilon(self) -> float: ...
    @property
    def tol(self) -> float: ...
    @property
    def max_iter(self) -> int | None: ...
    @property
    def shrinking(self) -> bool: ...
    @property
    def memory_mb(self) -> float | None: ...
    @property
    def class_weights(self) -> _Floats | None: ...
    @property
    def n_jobs(self) -> int: ...

class _Effort(Protocol):
    """How machines are cross-validated, whatever the candidate."""

    @property
    def seeding(self) -> str: ...
    @property
    def memory_mb(self) -> float | None: ...
    @property
    def n_jobs(self) -> int: ...

def svm_fit(examples: _Examples, settings: _Settings) -> dict[str, Any]: ...
def svm_decide(
    X: Any, support_vectors: Any, model: dict[str, Any], settings: _Settings
) -> _Floats: ...
def svm_kfold(
    examples: _Examples,
    folds: Folds | Splits,
    candidates: Sequence[_Settings],
    effort: _Effort,
    found: list[tuple[int, dict[str, Any]]],
    progress: _Report | None = None,
) -> None: ...
def svm_vote(decisions: _Floats, n_classes: int) -> NDArray[np.uint64]: ...
