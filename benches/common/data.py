"""The real data sets, read from the folder that ``ONEFOLD_DATA`` names.

Rows are shuffled once with a fixed seed: covtype and news20 are sorted files, and what an online
learner makes of a sorted file says nothing about the learner.
"""

import bz2
import lzma
import os
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.preprocessing import minmax_scale, normalize

try:
    from onefold import load_libsvm
except ImportError:  # a build without the reader
    load_libsvm = None

__all__ = ["a9a", "covtype", "letter", "news20", "read", "spread", "years"]

OPENERS = {".xz": lzma.open, ".bz2": bz2.open}


def a9a(n_rows):
    """The first rows of the Adult set, as CSR rows of 123 indicators."""
    X, y = read("a9a", 123)
    return X[:n_rows], y[:n_rows]


def covtype(seed=0, *, centre=True, constant=True):
    """Covertype, class 1 against the rest: unit variance, centred, and a constant feature of 1."""
    X, y = read("covtype.libsvm.xz", 54)
    order = np.random.default_rng(seed).permutation(len(y))
    return _scaled(X.toarray(), centre, constant)[order], y[order] == 1


def letter(seed=0):
    """Images of the 26 letters, 16 features."""
    X, y = read("letter.scale", 16)
    order = np.random.default_rng(seed).permutation(len(y))
    return X.toarray()[order], y[order]


def news20(seed=0, *, binary=True):
    """20 newsgroups as counts of words, CSR rows of unit length: class 1 or not, or 20 classes."""
    X, y = read("news20.bz2", 62_061)
    order = np.random.default_rng(seed).permutation(len(y))
    return normalize(X)[order], y[order] == 1 if binary else y[order]


def years(seed=0):
    """5 000 songs of YearPredictionMSD: every feature, and the year, scaled to [0, 1]."""
    X, y = read("YearPredictionMSD.5k.xz", 90)
    order = np.random.default_rng(seed).permutation(len(y))
    return minmax_scale(X.toarray())[order], minmax_scale(y)[order]


def spread(X, factor):
    """Return the same CSR rows with their feature ids spread over `factor` times as many."""
    shape = (X.shape[0], X.shape[1] * factor)
    return sp.csr_matrix((X.data, X.indices * factor, X.indptr), shape=shape)


def _scaled(X, centre, constant):
    """Give the features unit variance; centre them, append a constant 1, as asked."""
    if centre:
        X -= X.mean(axis=0)
    X /= X.std(axis=0)
    return np.column_stack([X, np.ones(len(X))]) if constant else X


@cache
def read(name, n_features=None):
    """Return all rows of a file as CSR, and its labels."""
    folder = os.environ.get("ONEFOLD_DATA")
    if not folder:
        raise SystemExit(f"{name} is needed: set ONEFOLD_DATA to the folder that holds it")
    path = Path(folder, name)
    if not path.is_file():
        raise SystemExit(f"{name} is needed, and {folder} (ONEFOLD_DATA) does not hold it")
    if load_libsvm is not None:
        return load_libsvm(path, n_features=n_features)
    with OPENERS.get(path.suffix, open)(path, "rb") as file:
        return load_svmlight_file(file, n_features=n_features)
