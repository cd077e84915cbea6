"""LIBSVM (SVMlight) text files: read, streamed, written, and kept as memory-mappable arrays.

The format holds one row a line, ``label index:value index:value …``. The reader is parallel and
strict: whatever is not exactly that, in a file however large, is an error that names the file, the
line and the text.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Literal, TypeAlias

import joblib
import numpy as np
import scipy.sparse as sp
import sklearn
from numpy.typing import ArrayLike, DTypeLike, NDArray

from . import _core
from .progress import reporter

__all__ = ["convert_libsvm", "dump_libsvm", "iter_libsvm", "load_libsvm", "open_libsvm"]

_File: TypeAlias = Any  # a path, an open binary file, or a file descriptor
_Files: TypeAlias = Any  # one or a list of them


def load_libsvm(
    source: _Files,
    *,
    n_features: int | None = None,
    dtype: DTypeLike = np.float64,
    multilabel: bool = False,
    zero_based: bool | Literal["auto"] = "auto",
    query_id: bool = False,
    offset: int = 0,
    length: int = -1,
    allow_nonfinite: bool = False,
    n_jobs: int | None = -1,
    progress: bool = False,
) -> tuple[Any, ...]:
    """Read files whole, as scikit-learn's ``load_svmlight_file`` and ``load_svmlight_files`` do.
    """
