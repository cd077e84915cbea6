"""Transformers whose columns are, in every fold, a linear map of columns that all folds share.

Shared columns come in *slots*: in each row exactly one column of a slot is not zero. Numbers have a
slot with a column of their values about a centre and, where some are missing, a column with a one
for these; categories have a slot with one column each. A column of a fold is v = c + Σ l·u, over
the columns u of one slot: a filled value is x + missing·fill, a category that the training rows
lack has l = 0, and a scaler behind them scales l and c. So the transformed rows are never made, and
means, variances and extremes of v follow from those of u.

For each training set there are l and c only: `LinearMaps` holds one line for all rows, then one for
each fold. The rules of scikit-learn's transformers (which columns are constant, which categories
are dropped) are followed; values are equal up to the rounding of sums.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

from .. import _core
from .._inputs.folds import Folds, Splits, partitions, train_sizes
from .._inputs.routing import is_routing
from .._sklearn_compat import _check_feature_names, validate_params
from .._utils.jobs import effective_n_jobs
from .compose import column_parts
from .contract import returns_arrays
from .encoders import Codes, code_columns, finds_categories
from .imputed_codes import FilledColumns, filled_columns
from .imputers import STATISTICS, is_nan, sort_columns
from .training_statistics import largest, quantiles

if TYPE_CHECKING:
    from .._engines.task import Data

__all__ = ["LinearMaps", "linear_maps"]

Floats = NDArray[np.float64]

MAX_COLUMNS = 1024
"""Shared columns up to which maps are made: their second moments are a matrix for each fold."""

MAX_VALUES = 2**24
"""Values of the maps of all folds: 128 MB."""

MIN_VARIANCE = 1e-10
"""Variances that are smaller, relative to the squares that they are a difference of, may be
rounding error: whether such a column is constant is left to the scaler itself."""

CENTRE_ROWS = 1024
"""Rows whose median is the centre of a column of numbers."""


class _NotLinearError(Exception):
    """Columns are no linear map of shared ones, or scikit-learn raises an error for them."""


@dataclass(frozen=True)
class _Slot:
    """Columns of which each row has one value other than zero."""

    n_columns: int
    values: Floats | None
    """That value; None for ones."""
    places: NDArray[np.int32] | None
    """The column that has it; None for the first."""


@dataclass(frozen=True)
class LinearMaps:
    """The columns of every training set as maps of shared columns; the line of all rows first."""

    sizes: Floats
    """How many rows each training set has."""
    slots: list[_Slot]
    means: Floats
    """Of the shared columns: training set × column."""
    squares: Floats
    """Their mean squares."""
    extremes: Callable[[], tuple[Floats, Floats]]
    """The smallest and the largest value of each column of a fold, before the map changed."""
    sources: NDArray[np.intp]
    """The shared column of each entry l, increasing."""
    targets: NDArray[np.intp]
    """The column of the fold that it adds to."""
    factors: Floats
    """l: training set × entry."""
    constants: Floats
    """c: training set × column of the fold."""
    quantiles: Callable[[Sequence[float]], Floats] | None = None
    """Quantiles of each column: fraction × training set × column, where they are known."""
    is_deficient: bool = False
    """Whether some columns always add up to one value, so that only a penalty tells them apart."""

    @property
    def n_columns(self) -> int:
        """The number of columns of a fold."""
        return int(self.constants.shape[1])

    def moments(self) -> tuple[Floats, Floats, Floats]:
        """Means, variances, and what these are differences of: training set × column."""
        factors, means = self.factors, self.means[:, self.sources]
        total = partial(_sums_by_column, targets=self.targets, n_columns=self.n_columns)
        mean = total(factors * means)
        squares = total(factors**2 * self.squares[:, self.sources])
        variances = squares - mean**2
        return mean + self.constants, variances, squares

    def scaled(self, shift: Floats | None, scale: Floats) -> LinearMaps:
        """The maps of (v − shift)·scale."""
        constants = self.constants if shift is None else self.constants - shift

        def extremes() -> tuple[Floats, Floats]:
            ends = self.extremes()
            low, high = ((end if shift is None else end - shift) * scale for end in ends)
            return low, high

        def ranks(fractions: Sequence[float]) -> Floats:
            assert self.quantiles is not None
            found = self.quantiles(fractions)
            return (found if shift is None else found - shift) * scale

        return replace(
            self,
            factors=self.factors * scale[:, self.targets],
            constants=constants * scale,
            extremes=extremes,
            quantiles=None if self.quantiles is None else ranks,
        )

    def core(self) -> _core.ColumnSums:
        """The maps as the core takes them."""
        n_shared = sum(slot.n_columns for slot in self.slots)
        starts = np.searchsorted(self.sources, np.arange(n_shared + 1))
        return _core.ColumnSums(
            np.ascontiguousarray(-self.constants),
            starts.tolist(),
            self.targets.tolist(),
            np.ascontiguousarray(self.factors),
        )

    def rows(self) -> Any:
        """The shared columns of all rows: sparse if there are many zeros."""
        sizes = [slot.n_columns for slot in self.slots]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        n, n_slots, width = self._n_rows, len(self.slots), int(offsets[-1])
        values, places = np.ones((n, n_slots)), np.empty((n, n_slots), dtype=np.int32)
        for j, (slot, offset) in enumerate(zip(self.slots, offsets[:-1], strict=True)):
            places[:, j] = offset if slot.places is None else slot.places + offset
            if slot.values is not None:
                values[:, j] = slot.values
        if width > SPARSITY * n_slots:
            ends = n_slots * np.arange(n + 1, dtype=np.int32)
            return sp.csr_matrix((values.ravel(), places.ravel(), ends), shape=(n, width))
        dense = np.zeros((n, width))
        np.put_along_axis(dense, places, values, axis=1)
        return dense

    @property
    def _n_rows(self) -> int:
        arrays = (own for slot in self.slots for own in (slot.values, slot.places))
        return len(next(own for own in arrays if own is not None))


SPARSITY = 8
"""Columns per slot from which rows are sparse."""


def _sums_by_column(terms: Floats, *, targets: NDArray[np.intp], n_columns: int) -> Floats:
    """Sums of terms that add to the same column: training set × column."""
    out = np.zeros((len(terms), n_columns))
    order = np.argsort(targets, kind="stable")
    ordered = targets[order]
    if len(ordered):
        starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        out[:, ordered[starts]] = np.add.reduceat(terms[:, order], starts, axis=1)
    return out


def linear_maps(steps: Sequence[Any], data: Data, folds: Folds | Splits) -> LinearMaps | None:
    """Make the maps of the columns behind some steps.

    Parameters
    ----------
    steps : sequence of transformers
        Never fitted, only read.
    data : Data
        All rows; what does not depend on the folds is kept there.
    folds : Folds or Splits

    Returns
    -------
    maps : LinearMaps or None
        None where columns are no linear maps, or where scikit-learn may raise an error or warn.
    """
    if is_routing() or not all(map(_may_be_linear, steps)):
        return None
    table: Any = _Table(data, _TrainingSets(folds))
    try:
        _check_feature_names(BaseEstimator(), data.X, reset=True)
        with np.errstate(all="ignore"):
            for step in steps:
                validate_params(step)
                table = _behind(step, table)
            maps = _as_maps(table)
        is_finite = np.isfinite(maps.factors).all() and np.isfinite(maps.constants).all()
        return maps if is_finite else None
    except Exception:  # the pipeline itself will show it
        return None


def _may_be_linear(step: Any) -> bool:
    """Whether a step is of a class in the table, and so are those inside it."""
    if step is None or isinstance(step, str):
        return step in (None, "passthrough", "drop")
    if type(step) is Pipeline:
        return step.memory is None and all(_may_be_linear(own) for _, own in step.steps)
    if type(step) is ColumnTransformer:
        has_defaults = step.transformer_weights is None and isinstance(step.remainder, str)
        parts = (own for _, own, _ in step.transformers)
        return has_defaults and returns_arrays(step) and all(map(_may_be_linear, parts))
    return type(step) in LINEAR and returns_arrays(step)


@dataclass(frozen=True)
class _TrainingSets:
    """Statistics of all rows, then of every training set."""

    folds: Folds | Splits

    @property
    def sizes(self) -> Floats:
        """How many rows there are."""
        return np.array([self.folds.n_samples, *train_sizes(self.folds)], dtype=np.float64)

    @property
    def _sets(self) -> list[Any]:
        return [self.folds.train(fold) for fold in range(len(self.folds))]

    def by_partition(
        self, of_folds: Callable[[Folds], Floats], of_set: Callable[[Any], Any]
    ) -> Any:
        """A statistic from one pass over each partition, or of each training set by itself."""
        parts = [self.folds] if isinstance(self.folds, Folds) else partitions(self.folds)
        if parts is None:
            return np.array([of_set(slice(None)), *map(of_set, self._sets)], dtype=np.float64)
        lines = [of_folds(part) for part in parts]
        return np.concatenate([lines[0][:1], *(own[1:] for own in lines)])

    def check_size(self, n_columns: int) -> None:
        """Leave tables of so many training sets and columns to scikit-learn."""
        if (1 + len(self.folds)) * n_columns > MAX_VALUES:
            raise _NotLinearError

    def counts(self, codes: NDArray[Any], n_codes: int) -> Floats:
        """How often each code occurs: training set × code."""
        self.check_size(n_codes)

        def of_folds(folds: Folds) -> Floats:
            cells = folds.labels.astype(np.intp) * n_codes + codes
            held_out = np.bincount(cells, minlength=len(folds) * n_codes)
            by_fold = held_out.reshape(len(folds), n_codes).astype(np.float64)
            total = by_fold.sum(axis=0)
            return np.vstack([total, total - by_fold])

        def of_set(rows: Any) -> Any:
            return np.bincount(codes[rows], minlength=n_codes)

        counts: Floats = self.by_partition(of_folds, of_set)
        return counts

    def held_out_counts(self, codes: NDArray[Any], n_codes: int) -> Floats:
        """How often each code occurs in the held-out rows: fold × code."""
        tests = (self.folds.test(fold) for fold in range(len(self.folds)))
        if isinstance(self.folds, Folds):
            counts = self.counts(codes, n_codes)
            return counts[:1] - counts[1:]
        return np.array([np.bincount(codes[rows], minlength=n_codes) for rows in tests])

    def moments(self, columns: Floats, n_jobs: int | None) -> tuple[Floats, Floats]:
        """Means and variances: training set × column."""
        self.check_size(2 * columns.shape[1])

        def of_folds(folds: Folds) -> Floats:
            jobs = effective_n_jobs(n_jobs)
            _, means, variances = _core.training_moments(columns, None, folds, n_jobs=jobs)
            return np.stack([means, variances], axis=1)

        def of_set(rows: Any) -> Any:
            own = columns[rows]
            return [own.mean(axis=0), own.var(axis=0)]

        both = self.by_partition(of_folds, of_set)
        return both[:, 0], both[:, 1]

    def largest(self, columns: Floats) -> Floats:
        """Largest values: training set × column."""
        found: Floats = self.by_partition(
            lambda folds: largest(columns, folds), lambda rows: columns[rows].max(axis=0)
        )
        return found

    def quantiles(self, columns: Floats, fractions: Sequence[float]) -> Floats:
        """Quantiles: fraction × training set × column."""

        def of_folds(folds: Folds) -> Floats:
            return np.moveaxis(quantiles(columns, folds, fractions), 0, 1)

        def of_set(rows: Any) -> Any:
            return np.quantile(columns[rows], fractions, axis=0)

        return np.moveaxis(self.by_partition(of_folds, of_set), 1, 0)


@dataclass(frozen=True)
class _Table:
    """Columns as the caller has them."""

    data: Data
    sets: _TrainingSets

    def numbers(self) -> _Numbers:
        """All columns as numbers."""
        numbers: _Numbers = self.data.once_for_rows("slots of numbers", self._numbers)
        return numbers

    def _numbers(self) -> _Numbers:
        X = self.data.X
        kinds = [X.dtype] if isinstance(X, np.ndarray) else list(X.dtypes)
        are_plain = all(isinstance(kind, np.dtype) for kind in kinds) and np.ndim(X) == 2
        if not are_plain or not all(kind == np.float64 or kind.kind in "iu" for kind in kinds):
            raise _NotLinearError
        values = np.asarray(X, dtype=np.float64)
        is_missing = np.isnan(values)
        some = values[:: max(1, len(values) // CENTRE_ROWS)]
        known = np.where(np.isnan(some), np.inf, some)
        known.sort(axis=0)
        n_known = np.isfinite(known).sum(axis=0)
        centres = known[n_known // 2 - (n_known > 0), np.arange(known.shape[1])]
        centres = np.where(np.isfinite(centres), centres, 0.0)
        shared = np.ascontiguousarray(np.where(is_missing, 0.0, values - centres))
        if not np.isfinite(shared).all():
            raise _NotLinearError
        are_floats = all(kind == np.float64 for kind in kinds)
        return _Numbers(values, shared, centres, is_missing, are_floats)


@dataclass(frozen=True)
class _Numbers:
    """Columns of numbers, of which some may be missing."""

    values: Floats
    shared: Floats
    """About centres, and 0 where they are missing."""
    centres: Floats
    is_missing: NDArray[np.bool_]
    are_floats: bool

    def maps(self, sets: _TrainingSets, n_jobs: int | None, fills: Floats | None) -> LinearMaps:
        """The maps of the columns, filled by training set × column."""
        has_missing = np.asarray(self.is_missing.any(axis=0))
        if fills is None and has_missing.any():
            raise _NotLinearError
        means, variances = sets.moments(self.shared, n_jobs)
        slots: list[_Slot] = []
        lines: list[Floats] = []
        mean_lines: list[Floats] = []
        square_lines: list[Floats] = []
        sources: list[int] = []
        targets: list[int] = []
        ones = np.ones(len(means))
        for j, has in enumerate(has_missing):
            values = np.ascontiguousarray(self.shared[:, j])
            sources.append(len(mean_lines))
            targets.append(j)
            lines.append(ones)
            mean_lines.append(means[:, j])
            square_lines.append(variances[:, j] + means[:, j] ** 2)
            if not has:
                slots.append(_Slot(1, values, None))
                continue
            assert fills is not None
            missing = self.is_missing[:, j]
            counts = sets.counts(missing, 2)
            share = counts[:, 1] / counts.sum(axis=1)
            sources.append(len(mean_lines))
            targets.append(j)
            lines.append(fills[:, j] - self.centres[j])
            mean_lines.append(share)
            square_lines.append(share)
            slots.append(_Slot(2, np.where(missing, 1.0, values), missing.astype(np.int32)))

        def extremes() -> tuple[Floats, Floats]:
            low, high = (
                sign * sets.largest(np.where(self.is_missing, -np.inf, sign * self.values))
                for sign in (-1.0, 1.0)
            )
            if fills is None:
                return low, high
            has = np.stack([sets.counts(column, 2)[:, 1] > 0 for column in self.is_missing.T], 1)
            filled = np.where(has, fills, np.nan)
            return np.fmin(low, filled), np.fmax(high, filled)

        return LinearMaps(
            sets.sizes,
            slots,
            np.stack(mean_lines, axis=1),
            np.stack(square_lines, axis=1),
            extremes,
            np.array(sources),
            np.array(targets),
            np.stack(lines, axis=1),
            np.broadcast_to(self.centres, (len(means), len(self.centres))).copy(),
            None if has_missing.any() else partial(sets.quantiles, self.values),
        )


def _as_maps(table: Any) -> LinearMaps:
    if isinstance(table, LinearMaps):
        return table
    if not isinstance(table, _Table):
        raise _NotLinearError
    return table.numbers().maps(table.sets, table.data.n_jobs, None)


def _behind(step: Any, table: Any) -> Any:
    """The columns behind a step."""
    if step is None or step == "passthrough":
        return table
    if type(step) is Pipeline:
        for _, own in step.steps:
            table = _behind(own, table)
        return table
    if type(step) is ColumnTransformer:
        return _side_by_side(step, table)
    return LINEAR[type(step)](step, table)


def _side_by_side(step: ColumnTransformer, table: Any) -> LinearMaps:
    """The columns of all parts of a `ColumnTransformer`."""
    if not isinstance(table, _Table):
        raise _NotLinearError
    data = table.data
    parts = column_parts(step, data)
    if len(parts) != len(step.transformers):  # columns by functions, or none
        raise _NotLinearError
    if step.remainder == "passthrough":
        dropped = [(name, "drop", columns) for name, _, columns in step.transformers]
        rest = ColumnTransformer(dropped, remainder="passthrough").fit(data.X[:2])
        (_, kept, columns) = rest.transformers_[-1]
        if kept != "drop" and len(columns):
            rest = ColumnTransformer([("remainder", "passthrough", columns)])
            parts = [*parts, *column_parts(rest, data)]
    made = []
    for _, part, rows in parts:
        if part != "drop":
            validate_params(part)
            made.append(_as_maps(_behind(part, _Table(rows(), table.sets))))
    return _joined(made)


def _joined(parts: Sequence[LinearMaps]) -> LinearMaps:
    if len(parts) == 1:
        return parts[0]
    n_shared = np.cumsum([0, *(part.means.shape[1] for part in parts)])
    n_columns = np.cumsum([0, *(part.n_columns for part in parts)])

    def extremes() -> tuple[Floats, Floats]:
        low, high = zip(*(part.extremes() for part in parts), strict=True)
        return np.hstack(low), np.hstack(high)

    def ranks(fractions: Sequence[float]) -> Floats:
        known = [part.quantiles for part in parts]
        return np.concatenate([own(fractions) for own in known if own is not None], axis=2)

    return LinearMaps(
        parts[0].sizes,
        [slot for part in parts for slot in part.slots],
        np.hstack([part.means for part in parts]),
        np.hstack([part.squares for part in parts]),
        extremes,
        np.concatenate([p.sources + at for p, at in zip(parts, n_shared[:-1], strict=True)]),
        np.concatenate([p.targets + at for p, at in zip(parts, n_columns[:-1], strict=True)]),
        np.hstack([part.factors for part in parts]),
        np.hstack([part.constants for part in parts]),
        ranks if all(part.quantiles is not None for part in parts) else None,
        any(part.is_deficient for part in parts),
    )


def _impute(step: SimpleImputer, table: Any) -> LinearMaps | _Filled:
    """Values in the place of missing ones: x + missing·fill."""
    if not isinstance(table, _Table) or not is_nan(step.missing_values) or step.add_indicator:
        raise _NotLinearError
    texts = filled_columns(step, table.data)
    if texts is not None:
        return _Filled(texts, table.sets)
    numbers, sets, data = table.numbers(), table.sets, table.data
    if step.strategy == "constant" and not numbers.are_floats:  # it may not fit whole numbers
        raise _NotLinearError
    if not numbers.is_missing.any():
        return numbers.maps(sets, data.n_jobs, None)
    known = np.stack([sets.counts(column, 2)[:, 0] for column in numbers.is_missing.T], axis=1)
    if (known == 0).any():  # columns that an imputer removes
        raise _NotLinearError
    return numbers.maps(sets, data.n_jobs, _fills(step, numbers, table))


def _fills(step: SimpleImputer, numbers: _Numbers, table: _Table) -> Floats:
    """What an imputer fills in: training set × column."""
    sets, folds = table.sets, table.sets.folds
    shape = (1 + len(folds), len(numbers.centres))
    if step.strategy == "constant":
        fill = 0.0 if step.fill_value is None else step.fill_value
        return np.full(shape, float(fill))
    if step.strategy == "mean":
        means, _ = sets.moments(numbers.shared, table.data.n_jobs)
        parts = [sets.counts(column, 2) for column in numbers.is_missing.T]
        share = np.stack([part[:, 0] / part.sum(axis=1) for part in parts], axis=1)
        return np.asarray(means / share + numbers.centres)
    fills = np.zeros(shape)
    has_missing = np.flatnonzero(numbers.is_missing.any(axis=0))
    if step.strategy == "median" and isinstance(folds, Folds):
        for j in has_missing:
            fills[:, j] = _medians(numbers.values[:, j], numbers.is_missing[:, j], folds)
        return fills
    columns = sort_columns(numbers.values[:, has_missing])
    statistic = STATISTICS[step.strategy]
    assert columns is not None
    for line in range(len(fills)):
        rows = np.arange(len(numbers.values)) if line == 0 else np.asarray(folds.train(line - 1))
        fills[line, has_missing] = [statistic(own) for own in columns.of_rows(rows)]
    return fills


def _medians(column: Floats, is_missing: NDArray[np.bool_], folds: Folds) -> Floats:
    """Medians of the known values of a column: of all rows, then of every training set.

    Folds without a known value have the median of all rows, so that what is known is a partition.
    """
    known = ~is_missing
    of_known = folds.labels[known]
    present, which = np.unique(of_known, return_inverse=True)
    if len(present) < len(folds):
        of_known = which
    parts = Folds.from_labels(of_known.astype(folds.labels.dtype), len(present))
    found = quantiles(column[known][:, None], parts, [0.5])[0, :, 0]
    out = np.full(1 + len(folds), found[0])
    out[1 + present.astype(np.intp)] = found[1:]
    return out


@dataclass(frozen=True)
class _Filled:
    """Columns of texts whose missing values an encoder behind the imputer sees filled in."""

    columns: FilledColumns
    sets: _TrainingSets


def _encode(step: OneHotEncoder, table: Any) -> LinearMaps:
    """Indicators of categories: a selection of those of all rows."""
    has_rules = step.min_frequency is not None or step.max_categories is not None
    if has_rules or not finds_categories(step) or isinstance(table, LinearMaps):
        raise _NotLinearError
    if isinstance(table, _Filled):
        return _joined(
            [_encode_filled(step, table, j) for j in range(table.columns.codes.shape[1])]
        )
    codes = _codes(table.data)
    pairs = zip(np.asarray(codes.X).T, codes.categories, strict=True)
    return _joined([_encode_column(step, table.sets, column, len(own)) for column, own in pairs])


def _codes(data: Data) -> Codes:
    """The codes of texts, of objects or of whole numbers."""
    codes = data.once_for_rows("codes", lambda: code_columns(data.X))
    if codes is not None:
        return codes
    codes = data.once_for_rows("codes by column", lambda: _codes_by_column(data.X))
    if codes is None:
        raise _NotLinearError
    return codes


def _codes_by_column(X: Any) -> Codes | None:
    """The codes of a table some of whose columns are whole numbers; None for other numbers."""
    numbers: list[NDArray[Any]] = []
    categories: list[NDArray[Any]] = []
    for j in range(X.shape[1]):
        column = X.iloc[:, [j]] if hasattr(X, "iloc") else X[:, [j]]
        of_texts = code_columns(column)
        if of_texts is not None:
            numbers.append(np.asarray(of_texts.X)[:, 0])
            categories.append(of_texts.categories[0])
            continue
        values = np.asarray(column)[:, 0]
        if values.dtype.kind not in "iub":
            return None
        known, which = np.unique(values, return_inverse=True)
        numbers.append(which)
        categories.append(known)
    return Codes(np.stack(numbers, axis=1), categories, has_missing=False)


def _encode_column(
    step: OneHotEncoder, sets: _TrainingSets, codes: NDArray[Any], n: int
) -> LinearMaps:
    counts = sets.counts(codes, n)
    if step.handle_unknown in ("error", "warn"):
        _check_known(counts, sets.held_out_counts(codes, n))
    slot = _Slot(n, None, codes.astype(np.int32))
    factors, numbers = _kept(step.drop, counts), np.arange(n)
    return _indicators(step, slot, counts, counts, (numbers, numbers, factors))


def _encode_filled(step: OneHotEncoder, table: _Filled, j: int) -> LinearMaps:
    """A missing value adds to the column of the category that a fold fills in."""
    columns, sets = table.columns, table.sets
    n, missing = len(columns.categories[j]), columns.is_missing[:, j]
    codes = np.where(missing, n, columns.codes[:, j])
    counts, held_out = (of(codes, n + 1) for of in (sets.counts, sets.held_out_counts))
    known = counts[:, :n]
    if not known.any(axis=1).all():  # a column that the imputer removes
        raise _NotLinearError
    constants = columns.constants
    fills = known.argmax(axis=1) if constants is None else np.full(len(counts), constants[j])
    is_fill = np.arange(n) == fills[:, None]
    filled = known + is_fill * counts[:, n:]
    if step.handle_unknown in ("error", "warn"):
        _check_known(filled, held_out[:, :n] + is_fill[1:] * held_out[:, n:])
    kept = _kept(step.drop, filled)
    slot = _Slot(n + 1, None, codes.astype(np.int32))
    sources = np.concatenate([np.arange(n), np.full(n, n)])
    entries = sources, np.tile(np.arange(n), 2), np.hstack([kept, kept * is_fill])
    return _indicators(step, slot, counts, filled, entries)


def _indicators(
    step: OneHotEncoder,
    slot: _Slot,
    shared: Floats,
    counts: Floats,
    entries: tuple[NDArray[np.intp], NDArray[np.intp], Floats],
) -> LinearMaps:
    """The maps of one column of categories, by how often each column is one."""
    n_rows = counts.sum(axis=1, keepdims=True)
    kept = _kept(step.drop, counts)
    ends = kept * (counts == n_rows), kept
    share = shared / n_rows
    return LinearMaps(
        n_rows[:, 0],
        [slot],
        share,
        share,
        lambda: ends,
        *entries,
        np.zeros_like(kept),
        is_deficient=step.drop != "first",
    )


def _check_known(counts: Floats, held_out: Floats) -> None:
    """Leave a category that occurs in a test set only to scikit-learn, for which it is an error."""
    if ((counts[1:] == 0) & (held_out > 0)).any():
        raise _NotLinearError


def _kept(drop: str | None, counts: Floats) -> Floats:
    """One for each category that has a column, by its counts: training set × category."""
    is_known = counts > 0
    kept = is_known.astype(np.float64)
    if drop is not None:
        is_dropping = (is_known.sum(axis=1) == 2) | (drop == "first")
        first = is_known.argmax(axis=1)
        lines = np.flatnonzero(is_dropping)
        kept[lines, first[lines]] = 0.0
    return kept


def _standardise(scaler: StandardScaler, table: Any) -> LinearMaps:
    maps = _as_maps(table)
    means, variances, squares = maps.moments()
    is_sparse = scaler.with_mean and any(slot.values is None for slot in maps.slots)
    if is_sparse:  # of sparse rows an error, of dense ones not
        raise _NotLinearError
    scale = np.ones_like(means)
    if scaler.with_std:
        unclear = (variances != 0) & (variances < MIN_VARIANCE * squares)
        if unclear.any():
            raise _NotLinearError
        # As scikit-learn decides whether a variance is rounding error.
        rounding = maps.sizes[:, None] * np.finfo(np.float64).eps
        is_constant = variances <= rounding * variances + (rounding * means) ** 2
        scale = 1.0 / np.sqrt(np.where(is_constant, 1.0, variances))
    return maps.scaled(means if scaler.with_mean else None, scale)


def _scale_range(scaler: MinMaxScaler, table: Any) -> LinearMaps:
    if scaler.clip:
        raise _NotLinearError
    maps = _as_maps(table)
    low, high = maps.extremes()
    start, end = scaler.feature_range
    scale = (end - start) / _without_zeros(high - low)
    return maps.scaled(low - start / scale, scale)


def _scale_largest(scaler: MaxAbsScaler, table: Any) -> LinearMaps:
    if getattr(scaler, "clip", False):
        raise _NotLinearError
    maps = _as_maps(table)
    low, high = maps.extremes()
    return maps.scaled(None, 1.0 / _without_zeros(np.maximum(np.abs(low), np.abs(high))))


def _scale_quantiles(scaler: RobustScaler, table: Any) -> LinearMaps:
    maps = _as_maps(table)
    if maps.quantiles is None:
        raise _NotLinearError
    low, high = scaler.quantile_range
    found = maps.quantiles([low / 100, high / 100, 0.5])
    scale = np.ones_like(maps.constants)
    if scaler.with_scaling:
        scale /= _without_zeros(found[1] - found[0])
        if scaler.unit_variance:
            scale *= norm.ppf(high / 100.0) - norm.ppf(low / 100.0)
    return maps.scaled(found[2] if scaler.with_centering else None, scale)


def _without_zeros(ranges: Floats) -> Floats:
    """Ranges by which columns are divided: 1 if they are constant by scikit-learn's rule."""
    return np.where(ranges < 10 * np.finfo(np.float64).eps, 1.0, ranges)


LINEAR: Mapping[type, Callable[[Any, Any], Any]] = {
    SimpleImputer: _impute,
    OneHotEncoder: _encode,
    StandardScaler: _standardise,
    MinMaxScaler: _scale_range,
    MaxAbsScaler: _scale_largest,
    RobustScaler: _scale_quantiles,
}
"""Transformers that are linear maps of shared columns; a subclass may compute anything else."""


def are_small(maps: LinearMaps) -> bool:
    """Whether the maps, and the second moments of the shared columns, take little memory."""
    n_shared, n_lines = maps.means.shape[1], len(maps.constants)
    n_values = n_lines * (n_shared + maps.factors.shape[1])
    return bool(n_shared <= MAX_COLUMNS and n_values <= MAX_VALUES)
