"""Results as JSON: strict (no NaN literals), exact (every float comes back with the same bits).

Finite floats are written in the shortest form that reads back as the same number. What JSON lacks
is an object with the key ``"__onefold__"`` that names its type: arrays with dtype and shape, folds,
tuples, and floats that are not finite. What has no form, such as a fitted estimator, is left out,
and its place is listed under ``"left_out"``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from .._core import __version__
from .._inputs.folds import Folds, Splits

__all__ = ["check_result", "dump", "load", "reading"]

TYPE = "__onefold__"


MAX_SPARE_CHARACTERS = 1024
"""Length of texts that a type of arrays may have without need."""


MAX_PATH_CHARACTERS = 4096
"""Of the path of a file: what is longer is JSON."""


class _NotSavedError(Exception):
    """A value has no form in JSON."""


def dump(kind: str, state: Mapping[str, Any], path: str | os.PathLike[str] | None) -> str | None:
    """Return an object's state as JSON, or write it to a file.

    Parameters
    ----------
    kind : str
        The name of its class.
    state : dict
    path : str or PathLike, optional
        The file; without it, the text is returned.
    """
    left_out: list[str] = []
    encoded = _Encoder(left_out).encode(dict(state), "")
    content = {TYPE: kind, "version": __version__, "left_out": left_out, "state": encoded}
    text = json.dumps(content, allow_nan=False)
    if path is None:
        return text
    Path(path).write_text(text, encoding="utf-8")
    return None


def load(kind: str, source: str | os.PathLike[str]) -> tuple[dict[str, Any], list[str]]:
    """Read back the state, and the places of what was left out.

    Parameters
    ----------
    kind : str
        The name of the class that it must be of.
    source : str or PathLike
        JSON, or the path of a file.
    """
    content = _parsed(source)
    saved_kind = content.get(TYPE) if isinstance(content, dict) else None
    if saved_kind != kind:
        raise ValueError(f"source must hold a {kind} saved by to_json, got {saved_kind!r}")
    with reading(kind):
        state, left_out = _decode(content["state"]), content["left_out"]
        if not isinstance(state, dict) or not _is_list_of_texts(left_out):
            raise TypeError("its state must be an object, and left_out a list of texts")
        return state, left_out


@contextmanager
def reading(kind: str) -> Iterator[None]:
    """Turn whatever a damaged source leads to into an error that says so."""
    try:
        yield
    except (MemoryError, OSError):
        raise
    except RecursionError:
        raise ValueError(f"source holds a damaged {kind}: it is nested too deeply") from None
    except Exception as error:
        what = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(
            f"source holds a {kind} that is damaged or of another version: {what}; save it again "
            "by to_json"
        ) from error


def check_result(columns: Any, state: dict[str, Any]) -> None:
    """Raise an error where columns, folds and notes of a result contradict each other."""
    folds = state["folds"]
    if not isinstance(columns, dict) or not isinstance(folds, Folds | Splits):
        raise TypeError("columns must be an object, and folds must be folds")
    for name, column in columns.items():
        if np.shape(column)[:1] != (len(folds),) and name.startswith(("test_", "train_", "fit_")):
            raise ValueError(f"column {name} must have an entry for each of {len(folds)} folds")
    if not _is_list_of_texts(state["notes"]):
        raise TypeError("notes must be a list of texts")


def _parsed(source: Any) -> Any:
    if not isinstance(source, str | os.PathLike):
        raise TypeError(
            f"source must be JSON text or the path of a file, got {type(source).__name__}"
        )
    is_long = isinstance(source, str) and len(source) > MAX_PATH_CHARACTERS
    is_text = is_long or (isinstance(source, str) and source.lstrip().startswith("{"))
    try:
        return json.loads(str(source) if is_text else Path(source).read_text(encoding="utf-8"))
    except RecursionError:
        raise ValueError("source is not JSON of a result: it is nested too deeply") from None
    except ValueError as error:  # also of text that is not UTF-8, and of names with NUL
        raise ValueError(f"source is not JSON: {error}") from None


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


class _Encoder:
    """Turns values into what JSON has; entries of dictionaries that have no form are left out."""

    def __init__(self, left_out: list[str]) -> None:
        self._left_out = left_out

    def encode(self, value: Any, place: str) -> Any:
        """Encode one value."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if isfinite(value) else {TYPE: "float", "value": repr(value)}
        if isinstance(value, np.ma.MaskedArray):
            return self._masked(value, place)
        if isinstance(value, (np.ndarray, np.generic)):
            return self._array(np.asarray(value), place)
        if isinstance(value, Mapping):
            return self._mapping(value, place)
        if isinstance(value, (list, tuple)):
            items = [self.encode(item, f"{place}[{i}]") for i, item in enumerate(value)]
            return {TYPE: "tuple", "items": items} if isinstance(value, tuple) else items
        if isinstance(value, Folds):
            labels = self._array(value.labels, place)
            return {TYPE: "Folds", "labels": labels, "n_folds": len(value)}
        if isinstance(value, Splits):
            pairs = [(value.train(i), value.test(i)) for i in range(len(value))]
            encoded = [[self._array(rows, place) for rows in pair] for pair in pairs]
            return {TYPE: "Splits", "n_samples": value.n_samples, "pairs": encoded}
        raise _NotSavedError

    def _mapping(self, value: Mapping[Any, Any], place: str) -> Any:
        items = []
        for key, item in value.items():
            place_of_item = f"{place}.{key}" if place else str(key)
            try:
                items.append((key, self.encode(item, place_of_item)))
            except _NotSavedError:
                self._left_out.append(place_of_item)
        if all(type(key) is str for key in value) and TYPE not in value:
            return dict(items)
        return {TYPE: "dict", "items": [[self.encode(key, place), item] for key, item in items]}

    def _array(self, array: np.ndarray[Any, Any], place: str) -> Any:
        kind = array.dtype.kind
        flat = array.ravel()
        values = flat.tolist()
        if kind == "O":
            values = [self.encode(item, f"{place}[{i}]") for i, item in enumerate(values)]
        elif kind == "f" and array.dtype.itemsize <= 8:
            if not np.isfinite(flat).all():
                values = [item if isfinite(item) else repr(item) for item in values]
        elif kind not in "biuU":
            raise _NotSavedError
        return {
            TYPE: "array",
            "dtype": array.dtype.str,
            "shape": list(array.shape),
            "values": values,
        }

    def _masked(self, array: np.ma.MaskedArray[Any, Any], place: str) -> Any:
        return {
            TYPE: "masked array",
            "data": self._array(np.asarray(array.filled()), place),
            "mask": np.ma.getmaskarray(array).ravel().tolist(),
            "fill_value": self.encode(array.fill_value, place),
        }


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if TYPE not in value:
        return {key: _decode(item) for key, item in value.items()}
    return _DECODERS[value[TYPE]](value)


def _decode_array(value: dict[str, Any]) -> Any:
    dtype = np.dtype(value["dtype"])
    items = value["values"]
    if not isinstance(items, list) or dtype.kind not in "biufUO" or dtype.names is not None:
        raise TypeError(f"an array of type {dtype} is not one that is saved")
    if dtype.kind == "U":
        longest = max((len(item) for item in items), default=0)
        if dtype.itemsize > 4 * max(longest, MAX_SPARE_CHARACTERS):
            raise ValueError(f"an array of type {dtype} has no text of more than {longest}")
    if dtype.kind == "O":
        array = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):
            array[i] = _decode(item)
    elif dtype.kind == "f":
        array = np.array([float(item) for item in items], dtype=dtype)
    else:
        array = np.array(items, dtype=dtype)
    return array.reshape(value["shape"])[()]


def _decode_masked(value: dict[str, Any]) -> Any:
    data = np.asarray(_decode_array(value["data"]))
    mask = np.reshape(np.array(value["mask"], dtype=bool), data.shape)
    return np.ma.MaskedArray(data, mask=mask, fill_value=_decode(value["fill_value"]))


def _decode_splits(value: dict[str, Any]) -> Splits:
    pairs = [(_decode_array(train), _decode_array(test)) for train, test in value["pairs"]]
    return Splits(value["n_samples"], pairs)


_DECODERS = {
    "float": lambda value: float(value["value"]),
    "tuple": lambda value: tuple(_decode(value["items"])),
    "dict": lambda value: {_decode(key): _decode(item) for key, item in value["items"]},
    "array": _decode_array,
    "masked array": _decode_masked,
    "Folds": lambda value: Folds.from_labels(_decode_array(value["labels"]), value["n_folds"]),
    "Splits": _decode_splits,
}
"""How each type is read."""
