"""The native part of onefold, checked against the extension by mypy.stubtest."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ElasticNetPath",
    "Folds",
    "Learner",
    "LeastSquares",
    "LibsvmReader",
    "SmoothLoss",
    "Splits",
    "StoredRows",
    "__version__",
    "callback_cv",
    "check_rows",
    "convert_libsvm",
    "dump_libsvm",
    "fail_memory_check",
    "forest_cv",
    "incremental_cv",
    "is_canonical",
    "load_libsvm",
    "newton_fit",
    "newton_leave_one_out",
    "newton_matrix_free_predict",
    "newton_multinomial_predict",
    "newton_predict",
    "path_cv",
    "stored_fit",
    "svm_decide",
    "svm_fit",
    "svm_kfold",
    "svm_vote",
    "text_characters",
    "text_counts",
    "text_select",
    "text_statistics",
    "training_moments",
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
"""Rows, targets (codes of classes, a matrix of numbers or None), number of classes, weights.

Rows are a dense or CSR matrix, or a tuple of `StoredRows`, bytes of memory and a directory.
"""

_StoredArray: TypeAlias = tuple[str, int, str, int]
"""Path, byte of the first element, type and number of the elements."""

class _TreeOptions(Protocol):
    """How the core trains incremental learners."""

    @property
    def strategy(self) -> str: ...
    @property
    def placement_seed(self) -> int | None: ...
    @property
    def order_seed(self) -> int | None: ...
    @property
    def shuffles_once(self) -> bool: ...
    @property
    def n_jobs(self) -> int: ...

_Counts: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]
"""Where rows begin, columns, counts."""

# values, indices, indptr, labels, ends of labels, qids
_Matrix: TypeAlias = tuple[
    NDArray[Any], NDArray[Any], NDArray[Any], NDArray[np.float64], _Indices, _Indices
]

def is_canonical(
    indptr: NDArray[Any], indices: NDArray[Any], n_values: int, n_features: int
) -> bool: ...
def fail_memory_check(n: int) -> int: ...
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
    def from_class_assignments(
        classes: _Codes, assignments: list[_Codes], n_folds: int
    ) -> Folds: ...
    def __len__(self) -> int: ...
    @property
    def n_samples(self) -> int: ...
    @property
    def labels(self) -> _Indices: ...
    @property
    def rows(self) -> _Indices: ...
    @property
    def starts(self) -> _Indices: ...
    def random_placement(self, seed: int) -> _Indices: ...
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
    def n_shared_rows(self, any_order: bool) -> int: ...
    def test(self, fold: int) -> _Indices: ...
    def train(self, fold: int) -> _Indices: ...

@final
class Learner:
    def __new__(
        cls,
        name: str,
        n_features: int,
        n_targets: int,
        parameters: dict[str, Any],
        state: _Floats | None = None,
    ) -> Learner: ...
    def update(self, examples: _Examples, order_seed: int | None = None) -> None: ...
    def evaluate(self, X: Any) -> _Floats: ...
    def fitted(self) -> dict[str, _Floats]: ...
    def shares(self, other: Learner, vector: int) -> bool: ...
    def fork(self) -> Learner: ...
    def merged(self, other: Learner) -> Learner: ...
    @property
    def depends_on_order(self) -> bool: ...
    @property
    def n_outputs(self) -> int: ...
    @property
    def state(self) -> _Floats: ...
    @property
    def parameters(self) -> dict[str, Any]: ...

def incremental_cv(
    engine: str,
    learners: list[Learner],
    examples: _Examples,
    folds: Folds | Splits,
    options: _TreeOptions,
    progress: _Report | None = None,
    *,
    keep_models: bool = False,
    scaling: tuple[_Floats | None, _Floats] | None = None,
) -> list[tuple[_Floats, dict[str, int], list[Learner] | None]]: ...

@final
class StoredRows:
    @staticmethod
    def dense(values: _StoredArray, shape: tuple[int, int]) -> StoredRows: ...
    @staticmethod
    def csr(
        indptr: _StoredArray,
        indices: _StoredArray,
        values: _StoredArray,
        shape: tuple[int, int],
    ) -> StoredRows: ...
    @property
    def shape(self) -> tuple[int, int]: ...

def stored_fit(
    learner: Learner,
    examples: _Examples,
    order_seed: int | None,
    progress: _Report | None = None,
) -> Learner: ...
def callback_cv(
    engine: str,
    handler: Any,
    model: Any,
    folds: Folds | Splits,
    options: _TreeOptions,
    progress: _Report | None = None,
) -> dict[str, int]: ...
def text_characters(documents: Sequence[str | bytes], n_jobs: int) -> str: ...
def text_counts(
    documents: Sequence[str | bytes],
    characters: str,
    replacements: Sequence[str],
    is_word: Sequence[bool],
    *,
    lowercase: bool,
    stop_words: Sequence[str],
    ngram_range: tuple[int, int],
    n_jobs: int,
) -> tuple[_Counts, list[str], NDArray[np.uint8]]: ...
def text_statistics(
    counts: _Counts, n_columns: int, rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
def text_select(
    counts: _Counts,
    rows: NDArray[np.int64],
    new_columns: NDArray[np.int32],
    keys: NDArray[np.int64] | None = None,
) -> _Counts: ...
def training_moments(
    X: Any, weights: _Floats | None, folds: Folds, *, n_jobs: int = 1
) -> tuple[_Floats, _Floats, _Floats]: ...

@final
class SmoothLoss:
    def __new__(cls, name: str, *, power: float = 1.5, epsilon: float = 0.0) -> SmoothLoss: ...

def newton_predict(
    X: Any,
    targets: _Floats,
    weights: _Floats | None,
    cv: Folds | Splits,
    loss: SmoothLoss,
    penalties: _Floats,
    *,
    intercept: float | str | None = None,
    scaling: tuple[_Floats | None, _Floats] | None = None,
    class_weights: tuple[_Codes, _Floats] | None = None,
    tol: float = 1e-8,
    limit: tuple[float, float] | None = None,
    coefficients: bool = False,
    n_jobs: int = 1,
    progress: _Report | None = None,
) -> tuple[_Floats, _Floats, _Floats, dict[str, int]]: ...
def newton_leave_one_out(
    X: Any,
    targets: _Floats,
    weights: _Floats | None,
    loss: SmoothLoss,
    penalties: _Floats,
    *,
    intercept: float | str | None = None,
    class_weights: tuple[_Codes, _Floats] | None = None,
    epsilon: float = 1e-3,
    tol: float = 1e-8,
    n_jobs: int = 1,
    progress: _Report | None = None,
) -> tuple[_Floats, _Floats, NDArray[np.uint8], _Floats, _Floats, _Floats, dict[str, int]]: ...
def newton_matrix_free_predict(
    X: Any,
    targets: _Floats,
    weights: _Floats | None,
    cv: Folds | Splits,
    loss: SmoothLoss,
    penalties: _Floats,
    *,
    intercept: float | str | None = None,
    scaling: tuple[_Floats | None, _Floats] | None = None,
    class_weights: tuple[_Codes, _Floats] | None = None,
    tol: float = 1e-8,
    limit: tuple[float, float] | None = None,
    coefficients: bool = False,
    n_jobs: int = 1,
    progress: _Report | None = None,
) -> tuple[_Floats, _Floats, _Floats, dict[str, int]]: ...
def newton_multinomial_predict(
    X: Any,
    codes: _Codes,
    n_classes: int,
    weights: _Floats | None,
    cv: Folds | Splits,
    penalties: _Floats,
    *,
    intercept: float | str | None = None,
    scaling: tuple[_Floats | None, _Floats] | None = None,
    class_weights: tuple[_Codes, _Floats] | None = None,
    tol: float = 1e-8,
    limit: tuple[float, float] | None = None,
    coefficients: bool = False,
    n_jobs: int = 1,
    progress: _Report | None = None,
) -> tuple[_Floats, _Floats, _Floats, dict[str, int]]: ...
def newton_fit(
    X: Any,
    targets: _Floats,
    weights: _Floats | None,
    loss: SmoothLoss,
    penalties: list[float],
    *,
    intercept: float | str | None = None,
    tol: float = 1e-8,
    n_jobs: int = 1,
    progress: _Report | None = None,
) -> tuple[_Floats, _Floats]: ...

@final
class ElasticNetPath:
    def __new__(
        cls,
        penalties: list[tuple[float, float]],
        *,
        intercept: bool = True,
        positive: bool = False,
        scaling: tuple[_Floats | None, _Floats] | None = None,
        tol: float = 1e-12,
    ) -> ElasticNetPath: ...

def path_cv(
    X: Any,
    y: _Floats,
    weights: _Floats | None,
    cv: Folds | Splits,
    path: ElasticNetPath,
    *,
    predictions: bool = False,
    errors: bool = False,
    coefficients: bool = False,
    all_rows: bool = False,
    n_jobs: int = 1,
    progress: _Report | None = None,
) -> dict[str, Any]: ...

@final
class LeastSquares:
    def __new__(
        cls,
        alphas: list[float],
        *,
        intercept: bool = True,
        scaling: tuple[_Floats | None, _Floats] | None = None,
        cutoff: tuple[float, bool] | None = None,
    ) -> LeastSquares: ...

def virtual_predict(
    X: Any,
    y: _Floats,
    weights: _Floats | None,
    cv: Folds | Splits,
    model: LeastSquares,
    *,
    coefficients: bool = False,
    undetermined: list[tuple[int, str]] | None = None,
    refitted: list[int] | None = None,
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
    undetermined: list[tuple[int, str]] | None = None,
    refitted: list[int] | None = None,
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

class _ForestParams(Protocol):
    """Parameters of a decision tree or a random forest."""

    @property
    def criterion(self) -> str: ...
    @property
    def max_depth(self) -> int | None: ...
    @property
    def min_samples_split(self) -> int | float: ...
    @property
    def min_samples_leaf(self) -> int | float: ...
    @property
    def min_weight_fraction_leaf(self) -> float: ...
    @property
    def min_impurity_decrease(self) -> float: ...
    @property
    def max_features(self) -> int: ...
    @property
    def seeds(self) -> NDArray[np.uint32]: ...
    @property
    def n_draws(self) -> list[int] | None: ...

def forest_cv(
    examples: _Examples,
    folds: Folds | Splits,
    candidates: Sequence[_ForestParams],
    found: list[tuple[int, dict[str, Any]]],
    *,
    n_jobs: int = 1,
    progress: _Report | None = None,
) -> None: ...

class _SvmParams(Protocol):
    """Parameters of the solver of support vector machines."""

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
    def scaling(self) -> Any: ...
    @property
    def class_weights(self) -> _Floats | None: ...
    @property
    def n_jobs(self) -> int: ...

class _SvmOptions(Protocol):
    """How support vector machines are cross-validated, whatever the candidate."""

    @property
    def seeding(self) -> str: ...
    @property
    def memory_mb(self) -> float | None: ...
    @property
    def n_jobs(self) -> int: ...

def svm_fit(examples: _Examples, settings: _SvmParams) -> dict[str, Any]: ...
def svm_decide(
    X: Any, support_vectors: Any, model: dict[str, Any], settings: _SvmParams
) -> _Floats: ...
def svm_kfold(
    examples: _Examples,
    folds: Folds | Splits,
    candidates: Sequence[_SvmParams],
    effort: _SvmOptions,
    found: list[tuple[int, dict[str, Any]]],
    progress: _Report | None = None,
) -> None: ...
def svm_vote(decisions: _Floats, n_classes: int) -> NDArray[np.uint64]: ...
