"""The native part of onefold, checked against the extension by mypy.stubtest."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ColumnSums",
    "ElasticNet",
    "Folds",
    "KernelRidge",
    "Learner",
    "LeastSquares",
    "LibsvmReader",
    "OutOfFold",
    "SmoothModel",
    "SparseLogistic",
    "Splits",
    "StoredRows",
    "__version__",
    "check_rows",
    "convert_libsvm",
    "cross_validate",
    "dump_libsvm",
    "fail_memory_check",
    "is_canonical",
    "load_libsvm",
    "path_errors",
    "stored_fit",
    "svm_decide",
    "svm_fit",
    "svm_vote",
    "text_characters",
    "text_counts",
    "text_select",
    "text_statistics",
    "training_moments",
    "virtual_diagnostics",
    "virtual_errors",
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
    def scaling(self) -> tuple[_Floats | None, _Floats] | None: ...

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

@final
class OutOfFold:
    """What is found of a candidate; attributes that an engine does not have are empty."""

    @property
    def outputs(self) -> _Floats: ...
    @property
    def cost(self) -> dict[str, int]: ...
    @property
    def models(self) -> list[Learner]: ...
    @property
    def coefficients(self) -> _Floats: ...
    @property
    def method(self) -> str: ...
    @property
    def iterations(self) -> NDArray[np.uint64]: ...
    @property
    def gaps(self) -> _Floats: ...
    @property
    def relative_gaps(self) -> _Floats: ...
    @property
    def relative_gradients(self) -> _Floats: ...
    @property
    def undetermined(self) -> list[tuple[int, str]]: ...
    @property
    def refitted(self) -> list[int]: ...
    @property
    def leave_one_out(self) -> dict[str, NDArray[Any]] | None: ...

def cross_validate(
    engine: str,
    candidates: Sequence[
        Learner
        | _ForestParams
        | _SvmParams
        | SmoothModel
        | ElasticNet
        | SparseLogistic
        | LeastSquares
        | KernelRidge
        | tuple[Any, Any]
    ],
    examples: _Examples | None,
    folds: Folds | Splits,
    options: _TreeOptions | _SvmOptions | _NewtonOptions | _ForestOptions | None = None,
    *,
    keep: Sequence[str] | None = None,
    n_jobs: int = 1,
    finished: list[tuple[int, OutOfFold]] | None = None,
    progress: _Report | None = None,
) -> list[OutOfFold]: ...

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
class SmoothModel:
    @staticmethod
    def family(
        loss: str,
        penalties: Sequence[float] | _Floats,
        *,
        power: float = 1.5,
        epsilon: float = 0.0,
        intercept: float | str | None = None,
        of_mean: bool = False,
        scaling: tuple[_Floats | None, _Floats] | ColumnSums | None = None,
        class_weights: _Floats | None = None,
    ) -> list[SmoothModel]: ...

class _NewtonOptions(Protocol):
    """How smooth losses are minimised, whatever the model."""

    @property
    def tol(self) -> float: ...
    @property
    def limit(self) -> tuple[float, float, float] | None: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def method(self) -> str | None: ...

@final
class ElasticNet:
    @staticmethod
    def family(
        penalties: Sequence[tuple[float, float]],
        *,
        intercept: bool = True,
        positive: bool = False,
        scaling: tuple[_Floats | None, _Floats] | ColumnSums | None = None,
        tol: float = 1e-12,
    ) -> list[ElasticNet]: ...

@final
class SparseLogistic:
    @staticmethod
    def family(
        penalties: Sequence[tuple[float, float]],
        *,
        intercept: float | str | None = None,
        scaling: tuple[_Floats | None, _Floats] | ColumnSums | None = None,
        class_weights: _Floats | None = None,
        tol: float = 1e-12,
    ) -> list[SparseLogistic]: ...

def path_errors(
    X: Any,
    y: _Floats,
    weights: _Floats | None,
    cv: Folds | Splits,
    models: Sequence[ElasticNet],
    *,
    n_jobs: int = 1,
    progress: _Report | None = None,
) -> dict[str, Any]: ...

@final
class ColumnSums:
    def __new__(
        cls, shift: _Floats, starts: Sequence[int], columns: Sequence[int], values: _Floats
    ) -> ColumnSums: ...

@final
class LeastSquares:
    @staticmethod
    def family(
        alphas: Sequence[float],
        *,
        intercept: bool = True,
        scaling: tuple[_Floats | None, _Floats] | ColumnSums | None = None,
        cutoff: tuple[float, bool] | None = None,
    ) -> list[LeastSquares]: ...

@final
class KernelRidge:
    def __new__(cls, alpha: float) -> KernelRidge: ...

def virtual_errors(
    X: Any,
    y: _Floats,
    weights: _Floats | None,
    cv: Folds | Splits,
    models: Sequence[LeastSquares] | Sequence[KernelRidge],
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
    """Parameters of a decision tree or a forest."""

    @property
    def criterion(self) -> str: ...
    @property
    def splitter(self) -> str: ...
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
    def max_leaf_nodes(self) -> int | None: ...
    @property
    def ccp_alpha(self) -> float: ...
    @property
    def seeds(self) -> NDArray[np.uint32]: ...
    @property
    def sample_seeds(self) -> NDArray[np.uint32] | None: ...
    @property
    def n_draws(self) -> list[int] | None: ...

class _ForestOptions(Protocol):
    """What all trees have in common."""

    @property
    def min_difference(self) -> float: ...
    @property
    def on_finished(self) -> Callable[[int, OutOfFold], object] | None: ...

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
    def nu(self) -> float | None: ...
    @property
    def tol(self) -> float: ...
    @property
    def max_iter(self) -> int | None: ...
    @property
    def shrinking(self) -> bool: ...
    @property
    def kernel_mb(self) -> float | None: ...
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
    def kernel_mb(self) -> float | None: ...

def svm_fit(examples: _Examples, settings: _SvmParams) -> dict[str, Any]: ...
def svm_decide(
    X: Any, support_vectors: Any, model: dict[str, Any], settings: _SvmParams
) -> _Floats: ...
def svm_vote(decisions: _Floats, n_classes: int) -> NDArray[np.uint64]: ...
