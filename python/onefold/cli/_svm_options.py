"""The options of ``svm-train``, read as it reads them, and the estimator that they describe."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import sklearn.svm as theirs
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold

from ..svm import SVC, SVR
from ._console import UsageError
from ._files import Rows, format_of, load_rows, targets_for
from ._libsvm_folds import class_order, libsvm_order
from ._options import add_output_options, job_count

__all__ = ["SvmProblem", "add_svm_options", "join_values", "load_problem"]

_KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")
_CLASSIFICATION = (0, 1)
_REGRESSION = (3, 4)
_ONE_CLASS = 2
_SIGMOID, _PRECOMPUTED = 3, 4

_LETTERS = ("s", "t", "d", "g", "r", "c", "n", "p", "m", "e", "h", "b", "v")
_WORDS = ("log2c", "log2g", "v", "out", "png")


def join_values(argv: Sequence[str]) -> list[str]:
    """Join options of svm-train and grid.py with values that look like options.

    Examples
    --------
    >>> from onefold.cli._svm_options import join_values
    >>> join_values(["svm", "-r", "-1e-3", "-w-1", "2", "-q", "heart_scale"])
    ['svm', '-r=-1e-3', '--weight=-1=2', '-q', 'heart_scale']
    >>> join_values(["cv", "-k", "5"])
    ['cv', '-k', '5']
    """
    if not argv or argv[0] not in ("svm", "grid"):
        return list(argv)
    joined: list[str] = []
    rest = list(argv)
    while rest:
        argument = rest.pop(0)
        weight = re.fullmatch(r"-w(-?\d+)", argument)
        if argument == "-h" and not (rest and rest[0] in ("0", "1")):
            joined.append("--help")
        elif rest and weight:
            joined.append(f"--weight={weight[1]}={rest.pop(0)}")
        elif rest and argument[:1] == "-" and argument[1:] in (*_LETTERS, *_WORDS):
            joined.append(f"{argument}={rest.pop(0)}")
        else:
            joined.append(argument)
    return joined


def add_svm_options(parser: argparse.ArgumentParser) -> None:
    """Add the letters of ``svm-train`` but those that ``grid.py`` has a use of its own for."""
    group = parser.add_argument_group("options of svm-train")
    add = group.add_argument
    add(
        "-s",
        type=int,
        choices=range(5),
        default=0,
        metavar="TYPE",
        help="0 C-SVC, 1 nu-SVC, 2 one-class, 3 epsilon-SVR, 4 nu-SVR (default: 0)",
    )
    add(
        "-t",
        type=int,
        choices=range(5),
        default=2,
        metavar="KERNEL",
        help="0 linear, 1 polynomial, 2 radial basis function, 3 sigmoid, 4 precomputed "
        "(default: 2)",
    )
    add(
        "-d",
        type=int,
        default=3,
        metavar="DEGREE",
        help="degree of the polynomial kernel (default: 3)",
    )
    add(
        "-g",
        type=float,
        default=None,
        metavar="GAMMA",
        help="gamma (default: 1/number of features)",
    )
    add("-r", type=float, default=0.0, metavar="COEF0", help="coef0 of the kernel (default: 0)")
    add("-c", type=float, default=1.0, metavar="COST", help="C (default: 1)")
    add("-n", type=float, default=0.5, metavar="NU", help="nu of types 1, 2 and 4 (default: 0.5)")
    add("-p", type=float, default=0.1, metavar="EPSILON", help="epsilon of type 3 (default: 0.1)")
    add(
        "-m",
        type=float,
        default=None,
        metavar="MB",
        help="memory for kernel values (default: half of the free memory)",
    )
    add(
        "-e",
        type=float,
        default=0.001,
        metavar="TOLERANCE",
        help="tolerance at which the solver stops (default: 0.001)",
    )
    add(
        "-h",
        type=int,
        choices=(0, 1),
        default=1,
        metavar="0|1",
        dest="shrinking",
        help="shrinking (default: 1)",
    )
    add(
        "-b",
        type=int,
        choices=(0, 1),
        default=0,
        metavar="0|1",
        help="predict the most probable class, by Platt's sigmoid (default: 0; not in grid)",
    )
    add(
        "--weight",
        "-wI",
        action="append",
        default=[],
        metavar="WEIGHT",
        help="C of class I is WEIGHT·C, as in -w1 10 -w-1 2",
    )
    add("-q", action="store_true", dest="q", help="print only the result")
    more = parser.add_argument_group("options of onefold")
    more.add_argument(
        "--libsvm-folds",
        action="store_true",
        help="use the folds of svm-train (glibc's rand()), for the same accuracy",
    )
    more.add_argument(
        "--seed", type=int, default=0, help="seed of the shuffle of rows (default: 0)"
    )
    more.add_argument(
        "--jobs", "-j", type=job_count, default=1, metavar="N", help="threads (default: 1)"
    )
    more.add_argument(
        "--engine",
        choices=("auto", "seeded", "refit"),
        default="auto",
        help="refit fits each fold with scikit-learn's LIBSVM",
    )
    more.add_argument("--help", action="help", help="show this message")
    add_output_options(parser)


class SvmProblem:
    """Rows, targets and folds of a support vector machine, as LIBSVM takes them.

    Attributes
    ----------
    X : ndarray or CSR matrix
    y : ndarray
        Targets, or of a classification the positions of the labels in LIBSVM's order.
    labels : ndarray or None
    n_features : int
        The largest index of a feature, which the default of γ is made from.
    """

    def __init__(self, rows: Rows, options: argparse.Namespace) -> None:
        self.options = options
        self.path = rows.path
        targets = targets_for(rows, numbers=True).astype(np.float64)
        self.is_regression = options.s in _REGRESSION
        self.is_classification = options.s in (0, 1)
        self.X = rows.X
        # Read with indices as they are in the file: column 0 has no feature there.
        has_zeroth = rows.format == "libsvm"
        self.n_features = int(rows.X.shape[1]) - int(has_zeroth)
        if options.t == _PRECOMPUTED:
            self.X = _kernel_matrix(rows.X[:, 1:] if has_zeroth else rows.X, rows.path)
        self._libsvm_folds: NDArray[np.intp] | None = None
        if options.libsvm_folds:
            targets = self._order_as_libsvm(targets)
        self.targets = targets
        self.y: NDArray[Any] = targets
        self.labels: NDArray[np.float64] | None = None
        if self.is_classification:
            self.labels = class_order(targets)
            if len(self.labels) < 2:
                raise ValueError(f"{rows.path}: all rows have the label {self.labels[0]:g}")
            by_label = np.argsort(self.labels)
            self.y = by_label[np.searchsorted(self.labels[by_label], targets)]

    def _order_as_libsvm(self, targets: NDArray[np.float64]) -> NDArray[np.float64]:
        """Draw the folds of svm-train, and put the rows into the order in which it trains."""
        order, self._libsvm_folds = libsvm_order(
            targets, self.options.v, stratified=self.is_classification
        )
        self.X = self.X[order][:, order] if self.options.t == _PRECOMPUTED else self.X[order]
        ordered: NDArray[np.float64] = targets[order]
        return ordered

    @property
    def engine(self) -> str:
        """How the folds are computed; ``"refit"`` is LIBSVM itself."""
        if self.options.s in (1, 2, 4):
            return "refit"
        is_open = self.options.engine == "auto" and self.options.libsvm_folds
        # The problem of a sigmoid kernel may have several solutions, one for each path of a solver.
        return "refit" if is_open and self.options.t == _SIGMOID else str(self.options.engine)

    def estimator(self, *, C: float | None = None, gamma: float | None = None) -> Any:
        """The estimator that the options describe."""
        options = self.options
        if gamma is None:
            gamma = options.g if options.g else 1 / max(self.n_features, 1)
        common: dict[str, Any] = {
            "kernel": _KERNELS[options.t],
            "degree": options.d,
            "gamma": gamma,
            "coef0": options.r,
            "tol": options.e,
            "shrinking": bool(options.shrinking),
        }
        C = options.c if C is None else C
        refits = self.engine == "refit"
        if options.s == 0:
            classifier = theirs.SVC if refits else SVC
            return classifier(C=C, class_weight=self._class_weight(), **common)
        if options.s == 1:
            return theirs.NuSVC(nu=options.n, **common)
        if options.s == _ONE_CLASS:
            return theirs.OneClassSVM(nu=options.n, **common)
        if options.s == 3:
            regressor = theirs.SVR if refits else SVR
            return regressor(C=C, epsilon=options.p, **common)
        return theirs.NuSVR(C=C, nu=options.n, **common)

    def _class_weight(self) -> dict[int, float] | None:
        weights: dict[int, float] = {}
        assert self.labels is not None
        for text in self.options.weight:
            label, _, factor = text.partition("=")
            try:
                value, weight = float(label), float(factor)
            except ValueError:
                raise UsageError(f"-w{label}: expected a number, got {factor!r}") from None
            positions = np.flatnonzero(self.labels == value)
            if not len(positions):
                raise UsageError(f"-w{label}: {self.path} has no label {label}")
            weights[int(positions[0])] = weight
        return weights or None

    def folds(self, n_folds: int) -> Any:
        """What to pass as ``cv``."""
        n_rows = len(self.y)
        if n_folds >= n_rows:
            return "loo"
        if self._libsvm_folds is not None:
            return self._libsvm_folds
        if not self.is_classification:
            return KFold(n_folds, shuffle=True, random_state=self.options.seed)
        largest = int(np.bincount(self.y.astype(np.intp)).max())
        if largest < n_folds:
            raise ValueError(f"-v {n_folds}: the largest class of {self.path} has {largest} rows")
        return StratifiedKFold(n_folds, shuffle=True, random_state=self.options.seed)

    def measure(self, predictions: NDArray[Any]) -> dict[str, float]:
        """What svm-train prints: accuracy in per cent, or squared error and correlation."""
        truth = self.targets
        if not self.is_regression:
            right = predictions == (self.y if self.is_classification else truth)
            return {"accuracy": 100 * float(right.mean())}
        error = float(np.mean((predictions - truth) ** 2))
        with np.errstate(invalid="ignore", divide="ignore"):
            correlation = float(np.corrcoef(predictions, truth)[0, 1]) ** 2
        return {"mean_squared_error": error, "squared_correlation": correlation}


def load_problem(path: str, options: argparse.Namespace, *, progress: bool) -> SvmProblem:
    """Check the options and read the file."""
    if options.b and options.s not in _CLASSIFICATION:
        raise UsageError(f"-b 1 is for classification (-s 0, -s 1), got -s {options.s}")
    if not options.e > 0:
        raise UsageError(f"-e must be positive, got {options.e:g}")
    if not options.c > 0:
        raise UsageError(f"-c must be positive, got {options.c:g}")
    if options.g is not None and options.g < 0:
        raise UsageError(f"-g must not be negative, got {options.g:g}")
    rows = load_rows(path, progress=progress, **_indices(path))
    return SvmProblem(rows, options)


def _indices(path: str) -> dict[str, Any]:
    is_text = path == "-" or format_of(path) == "libsvm"
    return {"zero_based": True} if is_text else {}


def _kernel_matrix(X: Any, path: str) -> NDArray[np.float64]:
    K: NDArray[np.float64] = np.ascontiguousarray(X.toarray() if hasattr(X, "toarray") else X)
    if K.shape[0] != K.shape[1]:
        raise ValueError(f"{path}: a precomputed kernel must be square, got {K.shape}")
    return K
