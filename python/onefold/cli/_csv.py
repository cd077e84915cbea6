"""CSV files: numbers in all columns but the target and the groups, with or without a head line."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import re
import sys
import warnings
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from ._console import UsageError

__all__ = ["CsvTable", "load_csv", "save_csv"]

_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


@dataclass(frozen=True)
class CsvTable:
    """The columns of a CSV file."""

    X: NDArray[np.float64]
    y: NDArray[Any]
    names: list[str] | None
    """Of the features, where the file has a head line."""
    groups: NDArray[Any] | None


def load_csv(path: str, target: str | None = None, groups: str | None = None) -> CsvTable:
    """Read a CSV file, or a TSV file by its name, plain or compressed.

    Parameters
    ----------
    path : str
    target : str, optional
        Name or number (from 0, negative from the end) of the target column; the last by default.
    groups : str, optional
        Name or number of the column with the groups of the rows, which is no feature.
    """
    delimiter = "\t" if ".tsv" in Path(path).name.lower() else ","
    try:
        with _open(path) as file, warnings.catch_warnings():
            warnings.filterwarnings("ignore", "loadtxt: input contained no data")
            warnings.filterwarnings("ignore", "Input line \\d+ contained no data")
            return _from_file(file, path, delimiter, target, groups)
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        if getattr(error, "errno", None) is not None:  # of the system
            raise
        raise ValueError(f"{path} cannot be decompressed: {error}") from error


def _from_file(
    file: TextIO, path: str, delimiter: str, target: str | None, groups: str | None
) -> CsvTable:
    head, n_lines = _first_row(path, file, delimiter)
    if len(head) < 2:
        separator = "tabs" if delimiter == "\t" else "commas"
        raise ValueError(
            f"{path}: a target and one feature or more are needed, separated by {separator}, got "
            f"{' '.join(head)!r}"
        )
    has_names = _has_names(head, [target or "-1", *([groups] if groups else [])])
    names = [cell.strip() for cell in head] if has_names else None
    y_column = _column(target, names, len(head), "--target") if target else len(head) - 1
    group_column = _column(groups, names, len(head), "--groups") if groups else None
    _check_widths(path, file, delimiter, len(head))
    features = [i for i in range(len(head)) if i not in (y_column, group_column)]
    if not features:
        raise ValueError(f"{path}: no column is left for the features")
    options: dict[str, Any] = {
        "delimiter": delimiter,
        "skiprows": n_lines if has_names else 0,
        "quotechar": '"',
        "comments": None,
        "encoding": "utf-8",
    }
    X = _numbers(path, file, features, options)
    if not len(X):
        raise ValueError(f"{path}: the file has no rows")
    return CsvTable(
        X=X,
        y=_texts(path, file, y_column, options),
        names=None if names is None else [names[i] for i in features],
        groups=None if group_column is None else _texts(path, file, group_column, options),
    )


def _first_row(path: str, file: TextIO, delimiter: str) -> tuple[list[str], int]:
    """The cells of the first row, and the number of lines that it takes."""
    reader = csv.reader(file, delimiter=delimiter)
    try:
        return next(reader, []), reader.line_num
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} is not a CSV file: {error}") from error


def _check_widths(path: str, file: TextIO, delimiter: str, n_columns: int) -> None:
    """Raise an error for a row that has more or fewer cells than the first line."""
    file.seek(0)
    reader = csv.reader(file, delimiter=delimiter)
    try:
        for cells in reader:
            if len(cells) != n_columns and cells:
                raise ValueError(
                    f"{path}, line {reader.line_num}: {len(cells)} cells, and the first line has "
                    f"{n_columns}"
                )
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}") from error


def _has_names(cells: list[str], others: list[str]) -> bool:
    """Whether a first line has names: a column is asked for by name, or a feature is no number."""
    numbers = [int(other) for other in others if re.fullmatch(r"-?\d+", other)]
    if len(numbers) < len(others) and set(others) & {cell.strip() for cell in cells}:
        return True
    apart = {number % len(cells) for number in numbers}
    return not all(_is_number(cell) for i, cell in enumerate(cells) if i not in apart)


def save_csv(path: str, X: Any, y: NDArray[Any], names: list[str] | None = None) -> None:
    """Write dense rows and targets, which are the last column, with a head line."""
    head = names or [f"x{i}" for i in range(X.shape[1])]
    delimiter = "\t" if ".tsv" in Path(path).name.lower() else ","
    with _open(path, "wt") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow([*head, "target"])
        for row, label in zip(X.tolist(), y.tolist(), strict=True):
            writer.writerow([*row, label])


def _open(path: str, mode: str = "rt") -> TextIO:
    """Open a file that can be read several times; a byte-order mark is skipped."""
    if path == "-":
        return io.StringIO(sys.stdin.buffer.read().decode("utf-8-sig"), newline="")
    suffix = Path(path).suffix.lower()
    if suffix == ".zst":
        raise UsageError(f"{path}: CSV files may be plain, gz, bz2 or xz, not zst")
    encoding = "utf-8" if "w" in mode else "utf-8-sig"
    file: TextIO = _OPENERS.get(suffix, open)(path, mode, encoding=encoding, newline="")
    return file


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _column(column: str, names: list[str] | None, n_columns: int, option: str) -> int:
    """The number of a column, which is a name or a number itself."""
    if names is not None and column in names:
        return names.index(column)
    if re.fullmatch(r"-?\d+", column) and -n_columns <= int(column) < n_columns:
        return int(column) % n_columns
    known = "the file has no names" if names is None else f"the names are {', '.join(names)}"
    raise UsageError(f"{option}: no column {column!r}; {known}, the numbers 0 to {n_columns - 1}")


def _numbers(
    path: str, file: TextIO, columns: list[int], options: dict[str, Any]
) -> NDArray[np.float64]:
    try:
        file.seek(0)
        return np.loadtxt(file, usecols=columns, ndmin=2, **options)
    except ValueError as error:
        raise ValueError(f"{path}, {_located(str(error), options['skiprows'])}") from error


def _located(message: str, n_skipped: int) -> str:
    """The message of numpy with the line of the file instead of the row of the array."""
    match = re.search(
        r"could not convert string (.*) to float64 at row (\d+), column (\d+)", message
    )
    if match is None:
        short = re.search(r"at row (\d+) with (\d+) columns", message)
        return f"line {int(short[1]) + n_skipped}: {short[2]} cells only" if short else message
    text, row, column = match.groups()
    line = int(row) + 1 + n_skipped
    what = "an empty cell" if text in ("''", '""') else f"{text} is not a number"
    return f"line {line}, column {column}: {what}; features must be numbers"


def _texts(path: str, file: TextIO, column: int, options: dict[str, Any]) -> NDArray[Any]:
    """A column as numbers if all of it are numbers, otherwise as text."""
    try:
        file.seek(0)
        texts: NDArray[Any] = np.loadtxt(file, usecols=[column], dtype=str, ndmin=1, **options)
    except ValueError as error:
        raise ValueError(f"{path}, {_located(str(error), options['skiprows'])}") from error
    try:
        return texts.astype(np.float64)
    except ValueError:
        return np.char.strip(texts)
