"""One short text for a value, the same in every process: estimators, data, folds, functions."""

from __future__ import annotations

import dis
import hashlib
import pickle
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib.hashing import NumpyHasher

__all__ = ["digest", "digest_of_rows"]


def digest(value: Any) -> str:
    """A hash of any value that can be pickled, and of functions by what they do.

    Parameters
    ----------
    value : object
        The order of the keys of a dictionary or of the members of a set does not matter. Functions
        are hashed by their code, their defaults, and the values of the variables of their module
        or of an enclosing function that they read, other functions among them. Attributes of
        modules and the code of classes are not part of it.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from onefold._utils.digest import digest
    >>> digest(Ridge(alpha=2)) == digest(Ridge(alpha=2)), digest(Ridge()) == digest(Ridge(alpha=2))
    (True, False)
    >>> digest(lambda x: x + 1) == digest(lambda x: x + 2)
    False
    """
    try:
        return str(_Hasher("sha1").hash(value))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            f"{value!r} has no hash: {str(error).splitlines()[0]}; define its class at the top "
            "level of a module"
        ) from error


def digest_of_rows(X: Any) -> str:
    """A hash of the rows of a data set, whatever holds them: equal values in equal types.

    Examples
    --------
    >>> import numpy as np
    >>> from onefold._utils.digest import digest_of_rows
    >>> digest_of_rows(np.eye(2)) == digest_of_rows(np.eye(2)), digest_of_rows(np.ones((2, 2)))[:4]
    (True, '...')
    """
    if sp.issparse(X):
        matrix: Any = X
        rows = matrix.tocsr()
        return digest((matrix.format, rows.shape, rows.indptr, rows.indices, rows.data))
    if hasattr(X, "digest"):  # on a cluster
        return str(X.digest())
    if hasattr(X, "blocks"):  # of a file
        parts = [digest_of_rows(block) for _, block in X.blocks()]
        return digest((X.shape, parts))
    if hasattr(X, "columns"):
        columns = [(str(name), str(X[name].dtype), np.asarray(X[name])) for name in X.columns]
        return digest(columns)
    if hasattr(X, "__array__"):
        return digest(np.asarray(X))
    return digest(X)


_WITH_VERSION = ("joblib", "numpy", "onefold", "scipy", "sklearn")
"""Packages whose functions are told by their code: journals have the versions."""


class _Hasher(NumpyHasher):
    """joblib's, for functions that have no name of their own, too: lambdas and inner ones."""

    def _save_function(self, function: FunctionType) -> None:
        self.memoize(function)  # first: it may refer to itself
        inside = [cell.cell_contents for cell in function.__closure__ or ()]
        defaults = (function.__defaults__, function.__kwdefaults__)
        self.save((function.__qualname__, _parts(function.__code__), defaults, inside))
        self.save(_globals_read(function))

    def _save_module(self, module: ModuleType) -> None:
        self.save(module.__name__)

    dispatch = NumpyHasher.dispatch.copy()
    dispatch[FunctionType] = _save_function
    dispatch[ModuleType] = _save_module


def _globals_read(function: FunctionType) -> list[tuple[str, Any]]:
    """Variables of its module that a function reads, with their values now."""
    package = (function.__module__ or "").partition(".")[0]
    if package in _WITH_VERSION:
        return []
    names = sorted(set(_global_names(function.__code__)))
    values = function.__globals__
    return [(name, values[name]) for name in names if name in values]


def _global_names(code: CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _global_names(constant)


def _parts(code: CodeType) -> list[Any]:
    """What a function does: its instructions with the names and constants that they refer to."""
    constants: list[Any] = []
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            constants.append(_parts(constant))
        elif isinstance(constant, frozenset):
            constants.append(sorted(map(repr, constant)))
        else:
            constants.append(constant)
    names = [*code.co_names, *code.co_varnames, *code.co_freevars]
    return [hashlib.sha1(code.co_code, usedforsecurity=False).hexdigest(), names, constants]
